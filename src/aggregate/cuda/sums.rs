//! Sums of weighted rows.

use super::Cuda;
use super::rows::Rows;
use super::tables;
use crate::aggregate::engine::Combination;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, linear};
use crate::{Result, Tensor};

/// A combination of the rows. A single row that is divided by its own weight is copied bit by bit.
pub fn sum(cuda: &Cuda, combination: &Combination) -> Result<Tensor> {
    let out = cuda.vector()?;
    let target = out.device_view(cuda.launcher.core())?.ptr;
    let Combination { terms, start, divisor } = combination;
    let rows: Vec<usize> = terms.iter().map(|term| term.0).collect();
    let alone = matches!(terms[..], [(_, weight)] if weight == *divisor) && *start == 0.0;
    let size = cuda.result.dtype.size();
    let start = cuda.start.as_ref().filter(|_| *start != 0.0).map(|tensor| (tensor, *start));
    if rows.is_empty() {
        return constant(cuda, out, start, *divisor);
    }
    cuda.rows.pass(cuda.launcher, &rows, &cuda.watch, |chunk| {
        let at = chunk.columns.start * size;
        let to = target.offset(at as u64);
        if alone {
            return cuda.launcher.core().stream().copy(to, chunk.pointers[0], chunk.width() * size);
        }
        let mut pointers = Vec::with_capacity(terms.len() + 1);
        let mut weights = Vec::with_capacity(terms.len() + 1);
        if let Some((tensor, weight)) = start {
            pointers.push(tensor.device_view(cuda.launcher.core())?.ptr.offset(at as u64));
            weights.push(weight);
        }
        pointers.extend(&chunk.pointers);
        weights.extend(terms.iter().map(|term| term.1));
        launch(cuda, &pointers, &weights, *divisor, (to, chunk.width()))
    })?;
    Ok(out)
}

/// A sum without rows: of the starting point, or zeros.
fn constant(cuda: &Cuda, out: Tensor, start: Option<(&Tensor, f64)>, divisor: f64) -> Result<Tensor> {
    let core = cuda.launcher.core();
    let target = out.device_view(core)?.ptr;
    match start {
        Some((tensor, weight)) => {
            let pointers = [tensor.device_view(core)?.ptr];
            launch(cuda, &pointers, &[weight], divisor, (target, cuda.result.size()))?;
        }
        None => return cuda.zeros(),
    }
    Ok(out)
}

fn launch(
    cuda: &Cuda,
    pointers: &[DevicePtr],
    weights: &[f64],
    divisor: f64,
    (out, width): (DevicePtr, usize),
) -> Result<()> {
    if width == 0 {
        return Ok(());
    }
    let launcher = cuda.launcher;
    let table = tables::addresses(launcher, pointers, &vec![false; pointers.len()])?;
    let factors = launcher.scratch_of(bytemuck::cast_slice(weights))?;
    let arguments = [
        Arg::Ptr(table.ptr()),
        Arg::Ptr(factors.ptr()),
        Arg::Ptr(out),
        Arg::U64(width as u64),
        Arg::F64(divisor),
        Arg::U32(pointers.len() as u32),
    ];
    let kernel = format!("rows_sum_{}", cuda.result.dtype.suffix());
    launcher.launch(&kernel, linear(width as u64, 256, 1)?, &arguments)
}

/// Rows made of combinations of the rows; they lie on the device.
pub fn replace(cuda: &Cuda, combinations: &[Combination]) -> Result<Rows> {
    let core = cuda.launcher.core();
    let made = combinations.iter().map(|one| sum(cuda, one)).collect::<Result<Vec<_>>>()?;
    let pointers = made.iter().map(|row| Ok(row.device_view(core)?.ptr)).collect::<Result<_>>()?;
    Ok(Rows::made(core, &cuda.result, pointers, made))
}
