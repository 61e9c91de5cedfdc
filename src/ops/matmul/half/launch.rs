//! The launches of a plan.

use super::super::cuda::Job;
use super::{Operand, Plan, ROWS, SHARED, Setting, plan};
use crate::driver::{DevicePtr, Halves, TensorMap};
use crate::kernels::{Arg, Launcher, float_arg, grid_x};
use crate::tensor::DeviceBuffer;
use crate::{DType, Error, Result};

/// Enqueues the product; `false` where this route does not take it, or the device lacks the memory or its driver the
/// tensor maps that it needs.
pub fn run(job: &Job) -> Result<bool> {
    if job.launcher.compute_capability() != 90 {
        return Ok(false);
    }
    let setting = Setting {
        aligned: [job.at.a, job.at.b, job.at.d].map(|ptr| ptr.0 % 16 == 0),
        operands: job.types.0,
        result: job.types.1,
        precision: job.precision,
        multiprocessors: job.launcher.multiprocessors(),
    };
    let Some(plan) = plan(&job.product, job.activation.code, setting) else { return Ok(false) };
    match launch(&plan, job) {
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
            pad(launcher, operand, ptr, room.ptr())?;
        }
    }
    let [p0, p1] = job.activation.arguments(DType::F32);
    let mut arguments: Vec<Arg> = maps.iter().map(|map| Arg::Block(map.words())).collect();
    arguments.extend([job.at.c, job.at.bias, job.at.d].map(Arg::Ptr));
    arguments.extend([float_arg(DType::F32, job.alpha), float_arg(DType::F32, job.beta), p0, p1]);
    arguments.push(Arg::Block(&plan.words));
    let blocks = plan.tiles.min(launcher.multiprocessors() as usize);
    launcher.launch(&plan.kernel, grid_x(blocks as u64, 384, SHARED)?, &arguments)?;
    Ok(true)
}

/// Memory for an operand's padded copy.
fn room(launcher: &Launcher, operand: &Operand) -> Result<Option<DeviceBuffer>> {
    let bytes = 2 * operand.all_lines() * operand.pitch();
    operand.padded.then(|| launcher.scratch(bytes)).transpose()
}

fn pad(launcher: &Launcher, operand: &Operand, from: DevicePtr, to: DevicePtr) -> Result<()> {
    let sizes = [operand.all_lines(), operand.columns, operand.pitch()].map(|size| Arg::U32(size as u32));
    let arguments = [&[from, to].map(Arg::Ptr)[..], &sizes].concat();
    launcher.launch("matmul_half_pad", grid_x(operand.all_lines().div_ceil(8) as u64, 256, 0)?, &arguments)
}
