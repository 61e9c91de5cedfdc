//! The launches of a plan.

use super::super::super::tile::Card;
use super::super::cuda::Job;
use super::{Operand, Plan, ROWS, SHARED, Setting, mma, plan};
use crate::driver::{DevicePtr, Halves, TensorMap};
use crate::kernels::{Arg, Launcher, float_arg, grid_x};
use crate::tensor::DeviceBuffer;
use crate::{DType, Error, Result};

/// Enqueues the product; `false` where this route does not take it, or the device lacks the memory or its driver the
/// tensor maps that it needs.
pub fn run(job: &Job) -> Result<bool> {
    let setting = Setting {
        aligned: [job.at.a, job.at.b, job.at.d].map(|ptr| ptr.0 % 16 == 0),
        operands: job.types.0,
        result: job.types.1,
        precision: job.precision,
        card: Card::of(job.launcher)?,
    };
    let activation = job.activation.code;
    let launched = match setting.card.level {
        90 => plan(&job.product, activation, setting).map(|plan| launch(&plan, job)),
        _ => mma::plan(&job.product, activation, setting).map(|plan| launch_mma(&plan, job)),
    };
    match launched.unwrap_or(Ok(false)) {
        Err(Error::OutOfMemory(_) | Error::MemoryLimit(_)) => Ok(false),
        done => done,
    }
}

fn launch(plan: &Plan, job: &Job) -> Result<bool> {
    let launcher = job.launcher;
    let rooms = [room(launcher, &plan.a)?, room(launcher, &plan.b)?];
    let operands = [(&plan.a, job.at.a, ROWS), (&plan.b, job.at.b, plan.tile.columns)];
    let mut maps = Vec::with_capacity(2);
    for ((operand, ptr, rows), room) in operands.into_iter().zip(&rooms) {
        let halves = Halves {
            ptr: room.as_ref().map_or(ptr, DeviceBuffer::ptr),
            columns: operand.columns,
            rows: operand.lines,
            matrices: operand.walk.count,
            pitch: operand.pitch(),
        };
        let Some(map) = TensorMap::halves(launcher.core().context(), halves, operand.box_lines(rows))? else {
            return Ok(false);
        };
        maps.push(map);
    }
    for ((operand, ptr, _), room) in operands.into_iter().zip(&rooms) {
        if let Some(room) = room {
            pad(launcher, "matmul_half_pad", operand, ptr, room.ptr())?;
        }
    }
    let mut arguments: Vec<Arg> = maps.iter().map(|map| Arg::Block(map.words())).collect();
    arguments.extend(rest(job, &plan.words));
    let blocks = plan.tiles.min(launcher.multiprocessors() as usize);
    launcher.launch(&plan.kernel, grid_x(blocks as u64, 384, SHARED)?, &arguments)?;
    Ok(true)
}

fn launch_mma(plan: &mma::Plan, job: &Job) -> Result<bool> {
    let launcher = job.launcher;
    let operands = [(&plan.a, job.at.a), (&plan.b, job.at.b)];
    let rooms = [room(launcher, &plan.a)?, room(launcher, &plan.b)?];
    let mut arguments = Vec::with_capacity(10);
    for ((operand, ptr), room) in operands.into_iter().zip(&rooms) {
        if let Some(room) = room {
            pad(launcher, "mma_half_pad", operand, ptr, room.ptr())?;
        }
        arguments.push(Arg::Ptr(room.as_ref().map_or(ptr, DeviceBuffer::ptr)));
    }
    arguments.extend(rest(job, &plan.words));
    let grid = grid_x(plan.tiles as u64, plan.tile.threads, plan.shared as u32)?;
    launcher.launch(&plan.kernel, grid, &arguments)?;
    Ok(true)
}

/// The arguments after a and b.
fn rest<'a>(job: &Job, words: &'a [u32]) -> Vec<Arg<'a>> {
    let [p0, p1] = job.activation.arguments(DType::F32);
    let mut rest: Vec<Arg> = [job.at.c, job.at.bias, job.at.d].map(Arg::Ptr).into();
    rest.extend([float_arg(DType::F32, job.alpha), float_arg(DType::F32, job.beta), p0, p1]);
    rest.push(Arg::Block(words));
    rest
}

/// Memory for an operand's padded copy.
fn room(launcher: &Launcher, operand: &Operand) -> Result<Option<DeviceBuffer>> {
    let bytes = 2 * operand.all_lines() * operand.pitch();
    operand.padded.then(|| launcher.scratch(bytes)).transpose()
}

fn pad(launcher: &Launcher, kernel: &str, operand: &Operand, from: DevicePtr, to: DevicePtr) -> Result<()> {
    let sizes = [operand.all_lines(), operand.columns, operand.pitch()].map(|size| Arg::U32(size as u32));
    let arguments = [&[from, to].map(Arg::Ptr)[..], &sizes].concat();
    launcher.launch(kernel, grid_x(operand.all_lines().div_ceil(8) as u64, 256, 0)?, &arguments)
}
