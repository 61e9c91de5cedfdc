//! cumSum and cumProd: running sums and products along an axis.

use super::operands::{device_operand, host_operand};
use super::spec::*;
use super::{Attrs, Call, halves};
use crate::cpu::whole::{Whole, for_whole};
use crate::cpu::{Float, for_pieces};
use crate::kernels::{Arg, Launcher, linear};
use crate::shape::{normalize_axis, size_of};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result};
use bytemuck::Pod;

const X: &[Operand] = &[required("x")];
const AXIS: Attribute =
    attribute("axis", Kind::Int(Some(0)), "Axis to run along; negative ones count from the end.");
const EXCLUSIVE: Attribute = attribute(
    "exclusive",
    Kind::Bool(false),
    "Whether an element counts from the next place on only, so that the first result is that of none.",
);
const REVERSE: Attribute =
    attribute("reverse", Kind::Bool(false), "Whether the axis is walked from its end to its start.");

const fn row(name: &'static str, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: X,
        attributes: &[AXIS, EXCLUSIVE, REVERSE],
        dtypes: super::reduce::SUMMED,
        results: Results::One,
        shape,
        cpu,
        cuda,
        tolerance: Tolerance::Accumulate,
        doc,
    }
}

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    row("cumSum", "Sums of the elements up to each place of an axis; whole numbers wrap (ONNX CumSum)."),
    row("cumProd", "Products of the elements up to each place of an axis; whole numbers wrap (ONNX CumProd)."),
];

/// Axis; a scalar is a row of one.
fn axis_of(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<usize> {
    normalize_axis(spec.name, attrs.int(AXIS.name), dims.len().max(1))
}

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    axis_of(spec, attrs, &x.dims)?;
    Ok(vec![x.clone()])
}

/// Length of the axis, and elements that lie behind an index of it.
fn extents(call: &Call) -> Result<(usize, usize)> {
    let dims = &call.input(0).dims;
    let axis = axis_of(call.spec, &call.attrs, dims)?;
    Ok((dims.get(axis).copied().unwrap_or(1), dims.get(axis + 1..).map_or(1, size_of)))
}

fn is_product(call: &Call) -> bool {
    call.spec.name == "cumProd"
}

fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => floats::<f64>(call, inputs, outputs),
        DType::F32 => floats::<f32>(call, inputs, outputs),
        DType::F16 | DType::Bf16 => halves::around(call, inputs, outputs, cpu),
        dtype => for_whole!(dtype, wholes(call, inputs, outputs)),
    }
}

fn floats<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let (wide, round) = (T::to_f64, T::from_f64);
    if is_product(call) {
        run(call, inputs, outputs, 1.0, |total: f64, x: T| total * wide(x), round)
    } else {
        run(call, inputs, outputs, 0.0, |total: f64, x: T| total + wide(x), round)
    }
}

fn wholes<T: Whole>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    if is_product(call) {
        run(call, inputs, outputs, T::ONE, T::times, |total| total)
    } else {
        run(call, inputs, outputs, T::ZERO, T::plus, |total| total)
    }
}

fn run<T: Pod + Send + Sync, A: Copy + Send + Sync>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    start: A,
    fold: impl Fn(A, T) -> A + Send + Sync,
    round: impl Fn(A) -> T + Send + Sync,
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let (length, inner) = extents(call)?;
    let (exclusive, reverse) = (call.attrs.bool(EXCLUSIVE.name), call.attrs.bool(REVERSE.name));
    let block = length * inner;
    for_pieces(outputs[0].as_slice_mut::<T>(), block, 2, |first, piece| {
        for (index, y) in piece.chunks_mut(block).enumerate() {
            let x = &x[first + index * block..][..block];
            let mut totals = vec![start; inner];
            for at in 0..length {
                let line = if reverse { length - 1 - at } else { at } * inner;
                for (column, total) in totals.iter_mut().enumerate() {
                    let before = *total;
                    *total = fold(before, x[line + column]);
                    y[line + column] = round(if exclusive { before } else { *total });
                }
            }
        }
    });
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
    let columns = size / length;
    // A warp runs along a row of neighbours; columns have a thread each.
    let width = if inner == 1 && length > 1 { 32 } else { 1 };
    let flags = [EXCLUSIVE, REVERSE].map(|option| u32::from(call.attrs.bool(option.name)));
    let arguments = [
        Arg::Ptr(device_operand(call, inputs, 0)?),
        Arg::Ptr(outputs[0].ptr),
        Arg::U64(columns as u64),
        Arg::U64(length as u64),
        Arg::U64(inner as u64),
        Arg::U32(flags[0]),
        Arg::U32(flags[1]),
    ];
    let form = if width == 1 { "columns" } else { "rows" };
    let kernel = format!("{}_{}_{form}", call.spec.name, stored(call.dtype()).suffix());
    launcher.launch(&kernel, linear((columns * width) as u64, 256, 1)?, &arguments)
}

/// Whole numbers wrap the same with a sign and without.
fn stored(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { dtype.of_bits() }
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find};

    fn run(op: &str, axis: f64, exclusive: bool, reverse: bool) -> Vec<i32> {
        let x = Tensor::from_slice(DType::I32, [2, 3], &[1, 2, 3, 4, 5, 6]).unwrap();
        let options = [
            ("axis".to_string(), Raw::Number(axis)),
            ("exclusive".to_string(), Raw::Bool(exclusive)),
            ("reverse".to_string(), Raw::Bool(reverse)),
        ];
        let call = Call::new(op, vec![Some(x.meta().clone())], &options).unwrap();
        let y = call.run_cpu(&[Some(x)]).unwrap();
        y[0].host_view().unwrap().as_slice::<i32>().to_vec()
    }

    #[test]
    fn totals_run_along_the_axis() {
        assert_eq!(run("cumSum", 1.0, false, false), [1, 3, 6, 4, 9, 15]);
        assert_eq!(run("cumSum", 0.0, false, false), [1, 2, 3, 5, 7, 9]);
        assert_eq!(run("cumSum", -1.0, true, false), [0, 1, 3, 0, 4, 9]);
        assert_eq!(run("cumSum", 1.0, false, true), [6, 5, 3, 15, 11, 6]);
        assert_eq!(run("cumSum", 1.0, true, true), [5, 3, 0, 11, 6, 0]);
        assert_eq!(run("cumProd", 1.0, false, false), [1, 2, 6, 4, 20, 120]);
        assert_eq!(run("cumProd", 1.0, true, false), [1, 1, 2, 1, 4, 20]);
    }

    #[test]
    fn every_type_has_its_kernels() {
        use Parameter::{Word32, Word64 as W};
        for (op, dtype) in OPS.iter().flat_map(|op| op.dtypes.iter().map(move |dtype| (op.name, dtype))) {
            for form in ["rows", "columns"] {
                let (_, entry) = find(&format!("{op}_{}_{form}", stored(*dtype).suffix()), 75).unwrap();
                assert_eq!(entry.parameters, [W, W, W, W, W, Word32, Word32]);
            }
        }
    }
}
