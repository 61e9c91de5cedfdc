//! Reductions of whole numbers and of truth: folded in 64 bits, which wrap, and cut to the type at the end.

use super::super::Call;
use super::super::operands::{device_operand, host_operand};
use super::{Finish, Fold, Map, Rule, Step, count, reduced, rule_of, steps};
use crate::cpu::for_pieces;
use crate::cpu::whole::{Whole, for_whole};
use crate::kernels::{Arg, Launcher, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result};

pub fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    for_whole!(call.dtype(), run(call, inputs, outputs))
}

/// What a fold starts from; the extremes of bool are those of its bytes, 0 and 1.
fn identity<T: Whole>(fold: Fold, dtype: DType) -> u64 {
    match fold {
        Fold::Sum => 0,
        Fold::Product => 1,
        Fold::Max => T::LEAST.widened(),
        Fold::Min if dtype == DType::Bool => 1,
        Fold::Min => T::MOST.widened(),
    }
}

fn folded(fold: Fold, signed: bool, a: u64, b: u64) -> u64 {
    // Numbers with a sign are in order once theirs is turned.
    let order = |bits: u64| if signed { bits ^ 1 << 63 } else { bits };
    match fold {
        Fold::Sum => a.wrapping_add(b),
        Fold::Product => a.wrapping_mul(b),
        Fold::Max => {
            if order(b) > order(a) {
                b
            } else {
                a
            }
        }
        Fold::Min => {
            if order(b) < order(a) {
                b
            } else {
                a
            }
        }
    }
}

fn run<T: Whole>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let (dims, rule) = (&call.input(0).dims, rule_of(call.spec));
    let chosen = reduced(call.spec, &call.attrs, dims.len())?;
    let steps = steps(dims, &chosen);
    let start = identity::<T>(rule.fold, call.dtype());
    let truth = call.dtype() == DType::Bool;
    let map = |value: T| match rule.map {
        Map::Identity if truth => u64::from(value != T::ZERO),
        Map::Identity => value.widened(),
        Map::Abs if T::SIGNED => (value.widened() as i64).wrapping_abs() as u64,
        Map::Abs => value.widened(),
        Map::Square => value.widened().wrapping_mul(value.widened()),
    };
    let fold = |a, b| folded(rule.fold, T::SIGNED, a, b);
    let mut values = step(x, steps[0], start, map, fold);
    for next in &steps[1..] {
        values = step(&values, *next, start, |value| value, fold);
    }
    let count = count(dims, &chosen);
    let y = outputs[0].as_slice_mut::<T>();
    y.iter_mut().zip(&values).for_each(|(y, &value)| *y = finished(rule, value, count));
    Ok(())
}

fn finished<T: Whole>(rule: Rule, value: u64, count: usize) -> T {
    match rule.finish {
        Finish::Mean if T::SIGNED => T::cut((value as i64).checked_div(count as i64).unwrap_or(0) as u64),
        Finish::Mean => T::cut(value.checked_div(count as u64).unwrap_or(0)),
        Finish::Root if T::SIGNED => T::from_f64((value as i64 as f64).sqrt()),
        Finish::Root => T::from_f64((value as f64).sqrt()),
        Finish::Nothing | Finish::Log => T::cut(value),
    }
}

fn step<T: Copy + Sync>(
    x: &[T],
    Step { outer, length, inner }: Step,
    start: u64,
    map: impl Fn(T) -> u64 + Send + Sync,
    fold: impl Fn(u64, u64) -> u64 + Send + Sync,
) -> Vec<u64> {
    let mut y = vec![start; outer * inner];
    for_pieces(&mut y, 1, length, |first, piece| {
        for (index, y) in piece.iter_mut().enumerate() {
            let (row, column) = ((first + index) / inner, (first + index) % inner);
            let line = (0..length).map(|at| map(x[(row * length + at) * inner + column]));
            *y = line.fold(start, &fold);
        }
    });
    y
}

/// How kernels/common/whole.cuh knows a type of whole numbers: bytes of an element, 16 with a sign, 32 for truth.
pub fn code(dtype: DType) -> u32 {
    let size = dtype.size() as u32;
    size | u32::from(dtype.is_signed()) << 4 | u32::from(dtype == DType::Bool) << 5
}

/// The kernel of a first or a later step.
fn kernel(rule: Rule, first: bool) -> &'static str {
    match (rule.fold, rule.map) {
        (Fold::Product, _) => "reduceWhole_product",
        (Fold::Max, _) => "reduceWhole_max",
        (Fold::Min, _) => "reduceWhole_min",
        (Fold::Sum, Map::Abs) if first => "reduceWhole_abs",
        (Fold::Sum, Map::Square) if first => "reduceWhole_square",
        (Fold::Sum, _) => "reduceWhole_sum",
    }
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
    let (dims, rule, dtype) = (&call.input(0).dims, rule_of(call.spec), call.dtype());
    let chosen = reduced(call.spec, &call.attrs, dims.len())?;
    let steps = steps(dims, &chosen);
    let start = for_whole!(dtype, identity(rule.fold, dtype));
    let held_as = if dtype.is_signed() { DType::I64 } else { DType::U64 };
    let (mut from, mut stored) = (device_operand(call, inputs, 0)?, dtype);
    let mut held = None;
    for (index, &Step { outer, length, inner }) in steps.iter().enumerate() {
        let (columns, last) = (outer * inner, index + 1 == steps.len());
        let next = if last { None } else { Some(launcher.scratch(columns * held_as.size())?) };
        let to = next.as_ref().map_or(outputs[0].ptr, |buffer| buffer.ptr());
        let finish = match rule.finish {
            Finish::Mean if last => 1,
            Finish::Root if last => 2,
            _ => 0,
        };
        let width = length.div_ceil(4).next_power_of_two().min(32);
        let arguments = [
            Arg::Ptr(from),
            Arg::Ptr(to),
            Arg::U64(columns as u64),
            Arg::U64(length as u64),
            Arg::U64(inner as u64),
            Arg::U64(start),
            Arg::U64(count(dims, &chosen) as u64),
            Arg::U32(width as u32),
            Arg::U32(code(stored)),
            Arg::U32(code(if last { dtype } else { held_as })),
            Arg::U32(finish),
        ];
        let grid = linear((columns * width) as u64, 256, 1)?;
        launcher.launch(kernel(rule, index == 0), grid, &arguments)?;
        (held, from, stored) = (next, to, held_as);
    }
    drop(held);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::{Meta, Raw};
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find};
    use bytemuck::Pod;

    fn run<T: Pod>(op: &str, dtype: DType, dims: &[usize], axes: &[f64], x: &[T]) -> Vec<T> {
        let options = [("axes".to_string(), Raw::List(axes.to_vec()))];
        let call = Call::new(op, vec![Some(Meta::new(dtype, dims))], &options).unwrap();
        let outputs = call.run_cpu(&[Some(Tensor::from_slice(dtype, dims, x).unwrap())]).unwrap();
        outputs[0].host_view().unwrap().as_slice::<T>().to_vec()
    }

    #[test]
    fn whole_numbers_are_folded_exactly() {
        let x = [1i64, -2, 3, 1 << 62, 1 << 62, 7];
        assert_eq!(run("reduceSum", DType::I64, &[2, 3], &[1.0], &x), [2, i64::MIN + 7]);
        assert_eq!(run("reduceMax", DType::I64, &[2, 3], &[0.0], &x), [1 << 62, 1 << 62, 7]);
        assert_eq!(run("reduceMin", DType::I64, &[6], &[], &x), [-2]);
        assert_eq!(run("reduceMean", DType::I32, &[3], &[], &[-1i32, -2, -5]), [-2]);
        assert_eq!(run("reduceMean", DType::I32, &[2], &[], &[i32::MAX, i32::MAX]), [i32::MAX]);
        assert_eq!(run("reduceL1", DType::I32, &[3], &[], &[-1i32, 2, -5]), [8]);
        assert_eq!(run("reduceL2", DType::I32, &[2], &[], &[-3i32, 5]), [5]);
        assert_eq!(run("reduceProd", DType::U32, &[2], &[], &[1u32 << 31, 3]), [1 << 31]);
        assert_eq!(run("reduceMax", DType::U64, &[2], &[], &[u64::MAX, 3]), [u64::MAX]);
        assert_eq!(
            run("reduceMax", DType::I8, &[2, 2, 2], &[0.0, 2.0], &[-9i8, -8, -7, -6, -5, -4, -3, -2]),
            [-4, -2]
        );
        assert_eq!(run("reduceMin", DType::Bool, &[2, 2], &[1.0], &[1u8, 0, 1, 1]), [0, 1]);
    }

    #[test]
    fn every_fold_has_its_kernel() {
        use Parameter::{Word32, Word64 as W};
        for rule in super::super::RULES {
            for first in [true, false] {
                let (_, entry) = find(kernel(*rule, first), 75).unwrap();
                assert_eq!(entry.parameters, [W, W, W, W, W, W, W, Word32, Word32, Word32, Word32]);
            }
        }
    }
}
