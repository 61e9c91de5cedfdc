//! quantizeLinear, dequantizeLinear and requantizeLinear.

use super::super::operands::host_operand;
use super::super::spec::*;
use super::super::{Attrs, Call, FLOATS};
use super::blocks::{Blocks, Run};
use super::{SMALL, Whole, cuda, expect_like, for_whole};
use crate::cpu::{Float, Math, for_pieces};
use crate::tensor::{HostView, HostViewMut};
use crate::{DType, Error, Result, for_float, invalid};

const AXIS: Attribute =
    attribute("axis", Kind::Int(Some(1)), "Axis along which scales differ, where there is more than one.");
const BLOCK_SIZE: Attribute = attribute(
    "blockSize",
    Kind::Int(Some(0)),
    "Neighbours along the axis that share a scale; scale then has the dims of x, but for the number of blocks along the \
     axis. 0: scale is one number, or one for each place along the axis.",
);
const OUTPUT_TYPE: Attribute = attribute(
    "outputType",
    Kind::Type { required: true },
    "Element type of the result: uint8, int8, uint16 or int16.",
);
const ZERO_POINT: Operand = Operand { dtypes: SMALL, ..optional("zeroPoint") };

/// The family's rows.
pub const OPS: &[OpSpec] = &[
    OpSpec {
        name: "quantizeLinear",
        operands: &[required("x"), required("scale"), ZERO_POINT],
        attributes: &[AXIS, BLOCK_SIZE, OUTPUT_TYPE],
        dtypes: FLOATS,
        results: Results::One,
        shape: quantized_shape,
        cpu: |call, inputs, outputs| for_float!(call.dtype(), quantize(call, inputs, outputs)),
        cuda: |call, launcher, inputs, outputs| cuda::linear(call, launcher, inputs, &outputs[0]),
        tolerance: Tolerance::Exact,
        doc: "x / scale to the nearest whole number, ties to even, plus zeroPoint (0 when left out), kept within the range of \
              `outputType`; NaN gives zeroPoint. The quotient is rounded to the type of x, of 16 bits to float32 (ONNX \
              QuantizeLinear).",
    },
    OpSpec {
        name: "dequantizeLinear",
        operands: &[
            Operand { dtypes: WIDE, ..required("x") },
            required("scale"),
            Operand { dtypes: WIDE, ..optional("zeroPoint") },
        ],
        attributes: &[AXIS, BLOCK_SIZE],
        dtypes: FLOATS,
        results: Results::One,
        shape: |spec, inputs, attrs| {
            let x = spec.operand(inputs, 0)?;
            check_scale(spec, inputs, attrs, x.dtype)?;
            Ok(vec![Meta::new(spec.operand(inputs, 1)?.dtype, x.dims.clone())])
        },
        cpu: |call, inputs, outputs| for_float!(call.dtype(), dequantize(call, inputs, outputs)),
        cuda: |call, launcher, inputs, outputs| cuda::dequantize(call, launcher, inputs, &outputs[0]),
        tolerance: Tolerance::Rounded,
        doc: "(x - zeroPoint) * scale in the type of scale (ONNX DequantizeLinear).",
    },
    OpSpec {
        name: "requantizeLinear",
        operands: &[Operand { dtypes: &[DType::I32], ..required("x") }, required("scale"), ZERO_POINT],
        attributes: &[AXIS, OUTPUT_TYPE],
        dtypes: &[DType::F32],
        results: Results::One,
        shape: quantized_shape,
        cpu: requantize,
        cuda: |call, launcher, inputs, outputs| cuda::linear(call, launcher, inputs, &outputs[0]),
        tolerance: Tolerance::Exact,
        doc: "Sums of whole numbers times a scale to the nearest whole number, ties to even, plus zeroPoint, kept within the \
              range of `outputType`: what ONNX QLinearMatMul and QLinearConv end with, the scale being that of a times that \
              of b over that of the result.",
    },
];

const WIDE: &[DType] = &[DType::U8, DType::I8, DType::U16, DType::I16, DType::I32];

fn quantized_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let to = attrs.dtype(OUTPUT_TYPE.name);
    let Some(to) = to.filter(|to| SMALL.contains(to)) else {
        let got = to.map(|to| to.name()).unwrap_or_default();
        return invalid!("{}: 'outputType' must be one of uint8, int8, uint16, int16, got {got}", spec.name);
    };
    check_scale(spec, inputs, attrs, to)?;
    Ok(vec![Meta::new(to, spec.operand(inputs, 0)?.dims.clone())])
}

/// Checks scale and zero point, whose type is given.
fn check_scale(spec: &OpSpec, inputs: Metas, attrs: &Attrs, zero: DType) -> Result<()> {
    let (x, scale) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    let (axis, block) = (attrs.int(AXIS.name), attrs.int(BLOCK_SIZE.name));
    Blocks::new(spec, &x.dims, axis, block, 1, scale)?;
    expect_like(spec, 2, inputs[2].as_ref(), zero, Some(&scale.dims))
}

/// The scales' places of a call.
pub fn blocks(call: &Call) -> Result<Blocks> {
    let (axis, block) = (call.attrs.int(AXIS.name), call.attrs.int(BLOCK_SIZE.name));
    Blocks::new(call.spec, &call.input(0).dims, axis, block, 1, call.input(1))
}

/// A number rounded, moved by the zero point and kept within the range.
fn finish<X: Math, Y: Whole>(value: X, zero: Y) -> Y {
    let whole = if value.is_nan() { X::ZERO } else { value.round() };
    Y::nearest((whole + X::from_f64(zero.wide() as f64)).to_f64())
}

fn quantize<X: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    for_whole!(call.output().dtype, quantize_to::<X>(call, inputs, outputs, |x: X, scale| x / scale))
}

fn requantize(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    for_whole!(call.output().dtype, requantize_to(call, inputs, outputs))
}

fn requantize_to<Y: Whole>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    scaled::<i32, f32, Y>(call, inputs, outputs, |x, scale| x as f32 * scale)
}

fn quantize_to<X: Math, Y: Whole>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    quotient: impl Fn(X, X) -> X + Sync,
) -> Result<()> {
    scaled::<X, X, Y>(call, inputs, outputs, quotient)
}

/// What becomes of every element with its scale, rounded.
fn scaled<X: bytemuck::Pod + Sync, S: Math, Y: Whole>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    apply: impl Fn(X, S) -> S + Sync,
) -> Result<()> {
    let blocks = blocks(call)?;
    let x = inputs[0].as_ref().map(HostView::as_slice::<X>).ok_or_else(|| missing(call))?;
    let scale = host_operand::<S>(call, inputs, 1)?;
    let zero = inputs.get(2).and_then(Option::as_ref).map(HostView::as_slice::<Y>);
    let zero_at = |index: usize| zero.map_or(Y::nearest(0.0), |zero| zero[index]);
    for_pieces(outputs[0].as_slice_mut::<Y>(), 1, 4, |start, piece| {
        blocks.for_runs(start..start + piece.len(), |range, run| {
            let y = &mut piece[range.start - start..range.end - start];
            let pairs = y.iter_mut().zip(&x[range]);
            match run {
                Run::One(at) => {
                    let (scale, zero) = (scale[at], zero_at(at));
                    pairs.for_each(|(y, &x)| *y = finish(apply(x, scale), zero));
                }
                Run::From(at) => {
                    let each = pairs.zip(&scale[at..]).enumerate();
                    each.for_each(|(k, ((y, &x), &scale))| *y = finish(apply(x, scale), zero_at(at + k)));
                }
            }
        });
    });
    Ok(())
}

fn dequantize<Y: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = inputs[0].as_ref().ok_or_else(|| missing(call))?;
    let scale = host_operand::<Y>(call, inputs, 1)?;
    let zero = inputs.get(2).and_then(Option::as_ref);
    let y = outputs[0].as_slice_mut::<Y>();
    for_whole!(x.dtype, shift::<Y>(x, zero, Some(scale), blocks(call)?, y));
    Ok(())
}

/// Elements less their zero points, times their scales.
pub fn shift<Y: Float, X: Whole>(
    x: &HostView,
    zero: Option<&HostView>,
    scale: Option<&[Y]>,
    blocks: Blocks,
    y: &mut [Y],
) {
    let (x, zero) = (x.as_slice::<X>(), zero.map(HostView::as_slice::<X>));
    let zero_at = |index: usize| zero.map_or(0, |zero| zero[index].wide());
    let scale_at = |index: usize| scale.map_or(1.0, |scale| scale[index].to_f64());
    // In float64 differences are exact, and products of all but the widest, so that a result is rounded once.
    let one = |x: X, zero: i64, scale: f64| Y::from_f64((x.wide() - zero) as f64 * scale);
    for_pieces(y, 1, 2, |start, piece| {
        blocks.for_runs(start..start + piece.len(), |range, run| {
            let y = &mut piece[range.start - start..range.end - start];
            let pairs = y.iter_mut().zip(&x[range]);
            match run {
                Run::One(at) => {
                    let (zero, scale) = (zero_at(at), scale_at(at));
                    pairs.for_each(|(y, &x)| *y = one(x, zero, scale));
                }
                Run::From(at) => {
                    pairs.enumerate().for_each(|(k, (y, &x))| *y = one(x, zero_at(at + k), scale_at(at + k)))
                }
            }
        });
    });
}

fn missing(call: &Call) -> Error {
    Error::Internal(format!("{}: operand 0 is missing", call.spec.name))
}
