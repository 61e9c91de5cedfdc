//! topK: the largest or smallest elements along an axis, in order.

use super::operands::{device_operand, host_operand};
use super::reduce::code;
use super::spec::*;
use super::{Attrs, Call, NUMBERS};
use crate::cpu::for_pieces;
use crate::cpu::whole::{Whole, for_whole};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::shape::{normalize_axis, size_of};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result, mismatch};
use bytemuck::Pod;
use half::{bf16, f16};

const K: Attribute = attribute("k", Kind::Int(None), "How many elements are taken; required.");
const AXIS: Attribute =
    attribute("axis", Kind::Int(Some(-1)), "Axis to look along; negative ones count from the end.");
const LARGEST: Attribute =
    attribute("largest", Kind::Bool(true), "Whether the largest elements are taken instead of the smallest.");
const SORTED: Attribute =
    attribute("sorted", Kind::Bool(true), "Whether the results must be in order; they are in any case.");

/// The family's rows.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "topK",
    operands: &[required("x")],
    attributes: &[K, AXIS, LARGEST, SORTED],
    dtypes: NUMBERS,
    results: Results::These(&[output("values"), output_of("indices", DType::I64)]),
    shape,
    cpu,
    cuda,
    tolerance: Tolerance::Exact,
    doc: "The k largest or smallest elements along an axis, the first in order first, and their indices; of equal ones the \
          lower index comes first, and NaN comes before any number (ONNX TopK).",
}];

/// Axis; a scalar is a row of one.
fn axis_of(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<usize> {
    normalize_axis(spec.name, attrs.int(AXIS.name), dims.len().max(1))
}

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    let axis = axis_of(spec, attrs, &x.dims)?;
    let (k, length) = (attrs.int(K.name), x.dims.get(axis).copied().unwrap_or(1));
    let Some(k) = usize::try_from(k).ok().filter(|k| *k <= length) else {
        return mismatch!(
            "{}: 'k' must lie from 0 to {length}, the length of axis {axis}, got {k}",
            spec.name
        );
    };
    let mut dims = x.dims.clone();
    match dims.get_mut(axis) {
        Some(dim) => *dim = k,
        None if k == 1 => {}
        None => return mismatch!("{}: 'k' must be 1 for a scalar, got {k}", spec.name),
    }
    Ok(vec![Meta::new(x.dtype, dims.clone()), Meta::new(DType::I64, dims)])
}

/// Length of the axis, and elements that lie behind an index of it.
fn extents(call: &Call) -> Result<(usize, usize)> {
    let dims = &call.input(0).dims;
    let axis = axis_of(call.spec, &call.attrs, dims)?;
    Ok((dims.get(axis).copied().unwrap_or(1), dims.get(axis + 1..).map_or(1, size_of)))
}

/// What elements are taken by: the largest come first. kernels/common/order.cuh has the same.
fn key_of_float(value: f64, largest: bool) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    let bits = (value + 0.0).to_bits();
    let key = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    if largest { key } else { !key }
}

fn key_of_whole<T: Whole>(value: T, largest: bool) -> u64 {
    let key = if T::SIGNED { value.widened() ^ 1 << 63 } else { value.widened() };
    if largest { key } else { !key }
}

fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => take::<f64>(call, inputs, outputs, key_of_float),
        DType::F32 => take::<f32>(call, inputs, outputs, |x, largest| key_of_float(x.into(), largest)),
        DType::F16 => take::<f16>(call, inputs, outputs, |x, largest| key_of_float(x.into(), largest)),
        DType::Bf16 => take::<bf16>(call, inputs, outputs, |x, largest| key_of_float(x.into(), largest)),
        dtype => for_whole!(dtype, wholes(call, inputs, outputs)),
    }
}

fn wholes<T: Whole>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    take(call, inputs, outputs, key_of_whole::<T>)
}

fn take<T: Pod + Send + Sync>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    key: impl Fn(T, bool) -> u64 + Send + Sync,
) -> Result<()> {
    let size = call.output().size();
    if size == 0 {
        return Ok(());
    }
    let x = host_operand::<T>(call, inputs, 0)?;
    let (length, inner) = extents(call)?;
    let (k, largest) = (call.attrs.int(K.name) as usize, call.attrs.bool(LARGEST.name));
    let at = |column: usize, index: usize| (column / inner * length + index) * inner + column % inner;
    // Column by column, whose elements need not be neighbours in the results.
    let mut taken = vec![0usize; size];
    for_pieces(&mut taken, k, (20 * length).div_ceil(k), |first, piece| {
        for (offset, taken) in piece.chunks_mut(k).enumerate() {
            let column = first / k + offset;
            let mut all: Vec<(u64, usize)> =
                (0..length).map(|index| (!key(x[at(column, index)], largest), index)).collect();
            if k < length {
                all.select_nth_unstable(k - 1);
                all.truncate(k);
            }
            all.sort_unstable();
            taken.iter_mut().zip(&all).for_each(|(taken, (_, index))| *taken = *index);
        }
    });
    let place = |position: usize| {
        let (column, rank) = (position / k, position % k);
        (column, (column / inner * k + rank) * inner + column % inner)
    };
    let (values, indices) = outputs.split_at_mut(1);
    let (values, indices) = (values[0].as_slice_mut::<T>(), indices[0].as_slice_mut::<i64>());
    for (position, &index) in taken.iter().enumerate() {
        let (column, to) = place(position);
        (values[to], indices[to]) = (x[at(column, index)], index as i64);
    }
    Ok(())
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let size = call.output().size();
    if size == 0 {
        return Ok(());
    }
    let (length, inner) = extents(call)?;
    let k = call.attrs.int(K.name) as usize;
    let arguments = [
        Arg::Ptr(device_operand(call, inputs, 0)?),
        Arg::Ptr(outputs[0].ptr),
        Arg::Ptr(outputs[1].ptr),
        Arg::U64(length as u64),
        Arg::U64(inner as u64),
        Arg::U64(k as u64),
        Arg::U32(code_of(call.dtype())),
        Arg::U32(u32::from(!call.attrs.bool(LARGEST.name))),
    ];
    let form = if length <= SORTED_AT_ONCE && k > 2 { "topK_sorted" } else { "topK_picked" };
    launcher.launch(form, grid_x((size / k) as u64, 256, 0)?, &arguments)
}

/// Elements that a block sorts.
const SORTED_AT_ONCE: usize = 1024;

/// How kernels/common/order.cuh knows a type.
fn code_of(dtype: DType) -> u32 {
    code(dtype) | u32::from(dtype.is_float()) << 6 | u32::from(dtype == DType::Bf16) << 7
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find};

    fn run(dims: &[usize], x: &[f32], k: f64, axis: f64, largest: bool) -> Result<(Vec<f32>, Vec<i64>)> {
        let x = Tensor::from_slice(DType::F32, dims, x)?;
        let options = [
            ("k".to_string(), Raw::Number(k)),
            ("axis".to_string(), Raw::Number(axis)),
            ("largest".to_string(), Raw::Bool(largest)),
        ];
        let call = Call::new("topK", vec![Some(x.meta().clone())], &options)?;
        let y = call.run_cpu(&[Some(x)])?;
        Ok((y[0].host_view()?.as_slice::<f32>().to_vec(), y[1].host_view()?.as_slice::<i64>().to_vec()))
    }

    #[test]
    fn the_first_in_order_are_taken() {
        let x = [1.0, 3.0, 3.0, -2.0, 7.0, 0.0];
        assert_eq!(run(&[6], &x, 3.0, 0.0, true).unwrap(), (vec![7.0, 3.0, 3.0], vec![4, 1, 2]));
        assert_eq!(run(&[6], &x, 2.0, -1.0, false).unwrap(), (vec![-2.0, 0.0], vec![3, 5]));
        assert_eq!(run(&[2, 3], &x, 1.0, 0.0, true).unwrap(), (vec![1.0, 7.0, 3.0], vec![0, 1, 0]));
        assert_eq!(run(&[3], &[0.0, -0.0, -1.0], 2.0, 0.0, true).unwrap().1, [0, 1]);
        assert_eq!(run(&[3], &[0.0, f32::NAN, -1.0], 1.0, 0.0, false).unwrap().1, [1]);
        assert_eq!(run(&[3], &[0.0, f32::NAN, 9.0], 2.0, 0.0, true).unwrap().1, [1, 2]);
        assert_eq!(run(&[2, 0], &[], 0.0, 1.0, true).unwrap(), (vec![], vec![]));
        assert_eq!(run(&[], &[4.0], 1.0, 0.0, true).unwrap(), (vec![4.0], vec![0]));
        for k in [4.0, -1.0] {
            assert_eq!(run(&[3], &[0.0; 3], k, 0.0, true).unwrap_err().code(), "SHAPE_MISMATCH");
        }
    }

    #[test]
    fn kernels_exist() {
        use Parameter::{Word32, Word64 as W};
        for form in ["topK_sorted", "topK_picked"] {
            assert_eq!(find(form, 75).unwrap().1.parameters, [W, W, W, W, W, W, Word32, Word32]);
        }
    }
}
