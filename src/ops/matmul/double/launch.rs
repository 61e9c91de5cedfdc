//! The launches of a plan.

use super::super::cuda::{Job, Setting, add_parts};
use super::{Operand, Plan, plan};
use crate::driver::{DevicePtr, TensorMap};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::tensor::DeviceBuffer;
use crate::{Error, Result};

/// Enqueues the product; `false` where this route does not take it.
pub fn run(job: &Job, setting: Setting, factors: &[Arg; 4]) -> Result<bool> {
    let level = job.launcher.compute_capability();
    let Some(first) = plan(&job.product, setting, level) else { return Ok(false) };
    let maps = first.maps.as_ref().map(|operands| mapped(job, operands)).transpose()?.flatten();
    if first.maps.is_none() || maps.is_some() {
        launch(&first, job, factors, maps.as_ref())?;
        return Ok(true);
    }
    // The device lacks the memory, or its driver the tensor maps.
    let Some(second) = plan(&job.product, setting, 80) else { return Ok(false) };
    launch(&second, job, factors, None)?;
    Ok(true)
}

/// The operands' tensor maps, and the memory of those that were copied.
struct Maps {
    maps: [TensorMap; 2],
    _rooms: [Option<DeviceBuffer>; 2],
}

fn launch(plan: &Plan, job: &Job, factors: &[Arg; 4], maps: Option<&Maps>) -> Result<()> {
    let operands = match maps {
        Some(Maps { maps: [a, b], .. }) => [Arg::Block(a.words()), Arg::Block(b.words())],
        None => [job.at.a, job.at.b].map(Arg::Ptr),
    };
    let grid = grid_x(plan.blocks, plan.threads, plan.shared)?;
    add_parts(job, plan.splits, &plan.words, factors, |d| {
        let rest = [job.at.c, job.at.bias, d].map(Arg::Ptr);
        let arguments = [&operands[..], &rest, &factors[..], &[Arg::Block(&plan.words)]].concat();
        job.launcher.launch(&format!("matmul_f64_{}", plan.kernel), grid, &arguments)
    })
}

/// `None` where the device lacks the memory, or its driver the tensor maps.
fn mapped(job: &Job, operands: &[(Operand, usize); 2]) -> Result<Option<Maps>> {
    let [a, b] = operands;
    match (map(job.launcher, a, job.at.a), map(job.launcher, b, job.at.b)) {
        (Ok(Some((map_a, room_a))), Ok(Some((map_b, room_b)))) => {
            Ok(Some(Maps { maps: [map_a, map_b], _rooms: [room_a, room_b] }))
        }
        (Ok(_), Ok(_)) => Ok(None),
        (Err(Error::OutOfMemory(_) | Error::MemoryLimit(_)), _)
        | (_, Err(Error::OutOfMemory(_) | Error::MemoryLimit(_))) => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// The map of an operand, copied to padded lines where it has to be.
fn map(
    launcher: &Launcher,
    (operand, tile_rows): &(Operand, usize),
    ptr: DevicePtr,
) -> Result<Option<(TensorMap, Option<DeviceBuffer>)>> {
    let bytes = 8 * operand.all_lines() * operand.pitch();
    let room = operand.padded.then(|| launcher.scratch(bytes)).transpose()?;
    let dims = [operand.columns, operand.lines, operand.matrices];
    let at = room.as_ref().map_or(ptr, DeviceBuffer::ptr);
    let context = launcher.core().context();
    let Some(map) = TensorMap::doubles(context, at, dims, operand.pitch(), operand.box_lines(*tile_rows))?
    else {
        return Ok(None);
    };
    if let Some(room) = &room {
        let sizes = [operand.all_lines(), operand.columns, operand.pitch()].map(|size| Arg::U32(size as u32));
        let arguments = [&[ptr, room.ptr()].map(Arg::Ptr)[..], &sizes].concat();
        let grid = grid_x(operand.all_lines().div_ceil(8) as u64, 256, 0)?;
        launcher.launch("matmul_f64_pad", grid, &arguments)?;
    }
    Ok(Some((map, room)))
}
