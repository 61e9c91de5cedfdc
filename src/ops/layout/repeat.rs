//! `expand` and `tile`: elements more than once, as walks that stand still in the source.

use super::super::spec::*;
use super::super::{Attrs, Call, TYPES};
use super::walk::{Axis, Walk};
use super::{X, on_cpu, on_cuda, signed_strides};
use crate::shape::broadcast;
use crate::{Result, invalid, mismatch};

const SHAPE: Attribute = attribute("shape", Kind::Ints, "Dims that x is broadcast with; required.");
const REPEATS: Attribute =
    attribute("repeats", Kind::Ints, "How often each axis of x follows itself; required.");

const fn row(
    name: &'static str,
    attributes: &'static [Attribute],
    shape: ShapeRule,
    doc: &'static str,
) -> OpSpec {
    OpSpec {
        name,
        operands: X,
        attributes,
        dtypes: TYPES,
        results: Results::One,
        shape,
        cpu: |call, inputs, outputs| on_cpu(vec![walk(call)], inputs, outputs),
        cuda: |call, launcher, inputs, outputs| on_cuda(call, launcher, vec![walk(call)], inputs, outputs),
        tolerance: Tolerance::Exact,
        doc,
    }
}

pub const EXPAND: OpSpec =
    row("expand", &[SHAPE], expand_shape, "x under the dims that it and `shape` broadcast to (ONNX Expand).");
pub const TILE: OpSpec = row("tile", &[REPEATS], tile_shape, "x several times along its axes (ONNX Tile).");

fn counts(spec: &OpSpec, attrs: &Attrs, option: &Attribute) -> Result<Vec<usize>> {
    let Some(values) = attrs.ints(option.name) else {
        return invalid!("{}: option '{}' is required", spec.name, option.name);
    };
    match values.iter().find(|&&value| value < 0) {
        Some(bad) => invalid!("{}: '{}' must hold numbers from 0 on, got {bad}", spec.name, option.name),
        None => Ok(values.iter().map(|&value| value as usize).collect()),
    }
}

fn expand_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    Ok(vec![Meta::new(x.dtype, broadcast(spec.name, &x.dims, &counts(spec, attrs, &SHAPE)?)?)])
}

fn tile_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let (x, repeats) = (spec.operand(inputs, 0)?, counts(spec, attrs, &REPEATS)?);
    if repeats.len() != x.dims.len() {
        let rank = x.dims.len();
        return mismatch!(
            "{}: 'repeats' must hold {rank} numbers, one per axis of 'x', got {repeats:?}",
            spec.name
        );
    }
    let dims: Vec<usize> =
        x.dims.iter().zip(&repeats).map(|(&dim, &count)| dim.saturating_mul(count)).collect();
    Ok(vec![Meta::new(x.dtype, dims)])
}

/// Each axis of the result as x's own within its repetitions.
fn walk(call: &Call) -> Walk {
    let (dims, out) = (&call.input(0).dims, &call.output().dims);
    let (x, y) = (signed_strides(dims), signed_strides(out));
    let extra = out.len() - dims.len();
    let mut axes = Vec::with_capacity(2 * out.len());
    for (axis, (&size, &step)) in out.iter().zip(&y).enumerate() {
        let (own, from) = if axis < extra { (1, 0) } else { (dims[axis - extra], x[axis - extra]) };
        let times = size.checked_div(own).unwrap_or(0);
        axes.push(Axis { size: times, x: 0, y: step * own as isize });
        axes.push(Axis { size: own, x: from, y: step });
    }
    Walk::new(0, 0, axes.into_iter())
}
