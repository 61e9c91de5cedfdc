//! Distinct elements or slices.

use super::{list, operand, take};
use crate::tensor::{HostView, Tensor};
use crate::{DType, Result};
use std::cmp::Ordering;

/// Numbers that stand in the order of the elements; equal for equal ones, for zeros of either sign and for NaNs, which
/// come last.
fn keys(view: &HostView) -> Vec<u64> {
    fn signed<T: bytemuck::Pod + Into<i64>>(view: &HostView) -> Vec<u64> {
        view.as_slice::<T>().iter().map(|&value| value.into() as u64 ^ (1 << 63)).collect()
    }
    fn unsigned<T: bytemuck::Pod + Into<u64>>(view: &HostView) -> Vec<u64> {
        view.as_slice::<T>().iter().map(|&value| value.into()).collect()
    }
    let half =
        |widen: fn(u16) -> f64| view.as_slice::<u16>().iter().map(move |&bits| float(widen(bits))).collect();
    match view.dtype {
        DType::F32 => view.as_slice::<f32>().iter().map(|&value| float(value.into())).collect(),
        DType::F64 => view.as_slice::<f64>().iter().map(|&value| float(value)).collect(),
        DType::F16 => half(|bits| ::half::f16::from_bits(bits).to_f64()),
        DType::Bf16 => half(|bits| ::half::bf16::from_bits(bits).to_f64()),
        DType::I64 => signed::<i64>(view),
        DType::I32 => signed::<i32>(view),
        DType::I16 => signed::<i16>(view),
        DType::I8 => signed::<i8>(view),
        DType::U64 => unsigned::<u64>(view),
        DType::U32 => unsigned::<u32>(view),
        DType::U16 => unsigned::<u16>(view),
        DType::U8 | DType::Bool => unsigned::<u8>(view),
    }
}

fn float(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    // Adding 0 gives -0 the sign of 0.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Distinct slices along an axis in ascending order, or where they come first; and for each its first index, for each
/// slice of `x` its place among them, and how many there are of each.
pub fn unique(inputs: &[Option<Tensor>], axis: usize, sorted: bool) -> Result<Vec<Tensor>> {
    let x = operand(inputs, 0)?;
    let dims = &x.meta().dims;
    let count = |dims: &[usize]| dims.iter().product::<usize>();
    let (outer, length, inner) = (count(&dims[..axis]), dims[axis], count(&dims[axis + 1..]));
    let keys = keys(&x.host_view()?);
    let compare = |a: usize, b: usize| -> Ordering {
        let part = |slice: usize, at: usize| &keys[(at * length + slice) * inner..][..inner];
        (0..outer)
            .map(|at| part(a, at).cmp(part(b, at)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    let mut order: Vec<usize> = (0..length).collect();
    order.sort_by(|&a, &b| compare(a, b));
    let mut groups: Vec<&[usize]> = order.chunk_by(|&a, &b| compare(a, b).is_eq()).collect();
    if !sorted {
        // The sort kept equal ones in order, so the first of a group is the first of all.
        groups.sort_by_key(|group| group[0]);
    }
    let firsts: Vec<i64> = groups.iter().map(|group| group[0] as i64).collect();
    let counts: Vec<i64> = groups.iter().map(|group| group.len() as i64).collect();
    let mut inverse = vec![0; length];
    for (place, group) in groups.iter().enumerate() {
        group.iter().for_each(|&index| inverse[index] = place as i64);
    }
    Ok(vec![take(x, &firsts, axis)?, list(&firsts)?, list(&inverse)?, list(&counts)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::plan::integers;

    #[test]
    fn numbers_of_every_kind_stand_in_order() {
        let x = [f32::NEG_INFINITY, -1.0, -1e-45, 0.0, 1e-45, 2.0, f32::INFINITY, f32::NAN];
        let tensor = Tensor::from_slice(DType::F32, [x.len()], &x).unwrap();
        assert!(keys(&tensor.host_view().unwrap()).is_sorted_by(|a, b| a < b));
        assert_eq!(float(-0.0), float(0.0));
        let tensor = Tensor::from_slice(DType::I8, [3], &[-128i8, -1, 5]).unwrap();
        assert!(keys(&tensor.host_view().unwrap()).is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn slices_in_both_orders() {
        let x = Tensor::from_slice(DType::I32, [3, 2], &[5, 1, 4, 1, 5, 1]).unwrap();
        let run = |axis, sorted| {
            let x = if axis == 0 { x.clone() } else { x.reshape([6]).unwrap() };
            let results = unique(&[Some(x)], 0, sorted).unwrap();
            results.iter().map(|it| integers(it).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(run(0, true), [vec![4, 1, 5, 1], vec![1, 0], vec![1, 0, 1], vec![1, 2]]);
        assert_eq!(run(0, false), [vec![5, 1, 4, 1], vec![0, 1], vec![0, 1, 0], vec![2, 1]]);
        assert_eq!(run(1, true), [vec![1, 4, 5], vec![1, 2, 0], vec![2, 0, 1, 0, 2, 0], vec![3, 1, 2]]);
        let empty = Tensor::from_slice::<i32>(DType::I32, [0], &[]).unwrap();
        assert!(unique(&[Some(empty)], 0, true).unwrap().iter().all(|it| it.meta().dims == [0]));
    }
}
