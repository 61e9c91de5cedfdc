//! Logarithms of sums of exponentials: step by step, each relative to its largest element.

use super::super::Call;
use super::super::operands::{device_operand, host_operand};
use super::super::spec::CpuForm;
use super::{Step, reduced, steps};
use crate::cpu::{Math, for_pieces, math};
use crate::kernels::{Arg, Launcher, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result, for_float};

pub const CPU: CpuForm = |call, inputs, outputs| for_float!(call.dtype(), run(call, inputs, outputs));

fn run<T: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let dims = &call.input(0).dims;
    let steps = steps(dims, &reduced(call.spec, &call.attrs, dims.len())?);
    let y = outputs[0].as_slice_mut::<T>();
    let mut values = step(x, steps[0], T::to_f64);
    for next in &steps[1..] {
        values = step(&values, *next, |value| value);
    }
    y.iter_mut().zip(&values).for_each(|(y, &value)| *y = T::from_f64(value));
    Ok(())
}

fn step<T: Copy + Sync>(
    x: &[T],
    Step { outer, length, inner }: Step,
    wide: impl Fn(T) -> f64 + Send + Sync,
) -> Vec<f64> {
    let mut y = vec![0.0; outer * inner];
    for_pieces(&mut y, 1, length.saturating_mul(10), |start, piece| {
        for (index, y) in piece.iter_mut().enumerate() {
            let (row, column) = ((start + index) / inner, (start + index) % inner);
            let line = || (0..length).map(|at| wide(x[(row * length + at) * inner + column]));
            let most = line().fold(f64::NEG_INFINITY, math::max);
            // Infinities are not subtracted from themselves.
            let base = if most.is_infinite() { 0.0 } else { most };
            let sum: f64 = line().map(|value| (value - base).exp()).sum();
            *y = base + sum.ln();
        }
    });
    y
}

/// Threads that fold a line: powers of two up to a warp.
fn width(length: usize) -> usize {
    length.div_ceil(4).next_power_of_two().min(32)
}

pub fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let dims = &call.input(0).dims;
    let steps = steps(dims, &reduced(call.spec, &call.attrs, dims.len())?);
    let compute = call.dtype().arithmetic();
    let (mut from, mut dtype) = (device_operand(call, inputs, 0)?, call.dtype());
    let mut held = None;
    for (index, &Step { outer, length, inner }) in steps.iter().enumerate() {
        let (columns, last) = (outer * inner, index + 1 == steps.len());
        let next = if last { None } else { Some(launcher.scratch(columns * compute.size())?) };
        let to = next.as_ref().map_or(outputs[0].ptr, |buffer| buffer.ptr());
        let width = width(length);
        let arguments = [
            Arg::Ptr(from),
            Arg::Ptr(to),
            Arg::U64(columns as u64),
            Arg::U64(length as u64),
            Arg::U64(inner as u64),
            Arg::U32(width as u32),
            Arg::U32(if last { kept(call.dtype()) } else { 0 }),
        ];
        let grid = linear((columns * width) as u64, 256, 1)?;
        launcher.launch(&format!("reduceLogSumExp_{}", dtype.suffix()), grid, &arguments)?;
        (held, from, dtype) = (next, to, compute);
    }
    drop(held);
    Ok(())
}

/// How the kernel rounds what it stores, as in kernels/common/reduce.cuh.
fn kept(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => super::cuda::F16,
        DType::Bf16 => super::cuda::BF16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{FLOATS, Meta};
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find};

    fn lines(dims: &[usize], x: &[f32]) -> Vec<f32> {
        let options = [("axes".to_string(), super::super::super::Raw::List(vec![1.0]))];
        let call = Call::new("reduceLogSumExp", vec![Some(Meta::new(DType::F32, dims))], &options).unwrap();
        let outputs = call.run_cpu(&[Some(Tensor::from_slice(DType::F32, dims, x).unwrap())]).unwrap();
        outputs[0].host_view().unwrap().as_slice::<f32>().to_vec()
    }

    #[test]
    fn sums_are_relative_to_the_largest() {
        assert_eq!(
            lines(&[2, 2], &[1000.0, 1000.0, -1000.0, -1000.0]),
            [1000.0 + std::f32::consts::LN_2, -1000.0 + std::f32::consts::LN_2]
        );
        let infinite = f32::INFINITY;
        assert_eq!(lines(&[2, 2], &[-infinite, -infinite, infinite, -infinite]), [-infinite, infinite]);
        assert!(lines(&[1, 2], &[infinite, f32::NAN])[0].is_nan());
        assert_eq!(lines(&[2, 0], &[]), [-infinite; 2]);
    }

    #[test]
    fn every_type_has_its_kernel() {
        use Parameter::{Word32, Word64 as W};
        for dtype in FLOATS {
            let (_, entry) = find(&format!("reduceLogSumExp_{}", dtype.suffix()), 75).unwrap();
            assert_eq!(entry.parameters, [W, W, W, W, W, Word32, Word32]);
        }
    }
}
