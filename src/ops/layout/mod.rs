//! Ops that move elements and compute nothing: transpose, slice, split, concat, pad and those by index.

pub(super) mod cpu;
mod cuda;
mod elements;
mod gather;
mod pad;
mod repeat;
mod scatter;
mod walk;

use self::walk::{Axis, Walk};
use super::operands::device_operand;
use super::spec::*;
use super::{Attrs, Call, TYPES};
use crate::kernels::Launcher;
use crate::shape::{normalize_axis, size_of, strides_of};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, invalid, mismatch};

const X: &[Operand] = &[required("x")];
const PERM: Attribute = attribute(
    "perm",
    Kind::Ints,
    "For each axis of the result the axis of x that it is; all axes in reverse order by default.",
);
const STARTS: Attribute = attribute(
    "starts",
    Kind::Ints,
    "First index along each axis of `axes`; negative ones count from the end.",
);
const ENDS: Attribute = attribute(
    "ends",
    Kind::Ints,
    "Index past the last along each axis of `axes`; negative ones count from the end, ones out of range are clamped.",
);
const AXES: Attribute = attribute(
    "axes",
    Kind::Ints,
    "Axes to cut, negative ones counted from the end; the first ones by default.",
);
const STEPS: Attribute = attribute(
    "steps",
    Kind::Ints,
    "Step along each axis of `axes`, negative ones walk backwards; 1 by default.",
);
const SPLIT: Attribute = attribute("split", Kind::Ints, "Size of each part along the axis.");
const PARTS: Attribute = attribute(
    "numOutputs",
    Kind::Int(Some(0)),
    "Number of parts of one size, the last one smaller where it does not divide the axis; instead of `split`.",
);

const fn row(
    name: &'static str,
    attributes: &'static [Attribute],
    shape: ShapeRule,
    cpu: CpuForm,
    cuda: CudaForm,
    doc: &'static str,
) -> OpSpec {
    let (results, tolerance) = (Results::One, Tolerance::Exact);
    OpSpec { name, operands: X, attributes, dtypes: TYPES, results, shape, cpu, cuda, tolerance, doc }
}

/// The family's rows.
pub const OPS: &[OpSpec] = &[
    row(
        "transpose",
        &[PERM],
        transpose_shape,
        |call, inputs, outputs| on_cpu(transpose_walks(call)?, inputs, outputs),
        |call, launcher, inputs, outputs| on_cuda(call, launcher, transpose_walks(call)?, inputs, outputs),
        "The axes in another order (ONNX Transpose).",
    ),
    row(
        "slice",
        &[STARTS, ENDS, AXES, STEPS],
        slice_shape,
        |call, inputs, outputs| on_cpu(slice_walks(call)?, inputs, outputs),
        |call, launcher, inputs, outputs| on_cuda(call, launcher, slice_walks(call)?, inputs, outputs),
        "Every so many-th index of a range along each of some axes (ONNX Slice).",
    ),
    OpSpec {
        results: Results::List,
        ..row(
            "split",
            &[attribute("axis", Kind::Int(Some(0)), "Axis to cut."), SPLIT, PARTS],
            split_shape,
            |call, inputs, outputs| on_cpu(split_walks(call)?, inputs, outputs),
            |call, launcher, inputs, outputs| on_cuda(call, launcher, split_walks(call)?, inputs, outputs),
            "The parts that an axis is cut into, one after the other (ONNX Split).",
        )
    },
    OpSpec {
        operands: &[list("inputs")],
        ..row(
            "concat",
            &[attribute("axis", Kind::Int(None), "Axis along which they follow each other.")],
            concat_shape,
            concat_cpu,
            concat_cuda,
            "Tensors one after the other along an axis; their other dims are equal (ONNX Concat).",
        )
    },
    pad::PAD,
    repeat::EXPAND,
    repeat::TILE,
    gather::GATHER,
    elements::GATHER_ELEMENTS,
    elements::SCATTER_ELEMENTS,
];

/// One walk for each result, whose target is all of it in order.
fn on_cpu(walks: Vec<Walk>, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let Some(Some(x)) = inputs.first() else { return Ok(()) };
    walks.iter().zip(outputs).for_each(|(walk, y)| cpu::copy(walk, x, y));
    Ok(())
}

fn on_cuda(
    call: &Call,
    launcher: &Launcher,
    walks: Vec<Walk>,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let x = device_operand(call, inputs, 0)?;
    let bytes = call.dtype().size();
    walks.iter().zip(outputs).try_for_each(|(walk, y)| cuda::copy(launcher, walk, bytes, x, y.ptr))
}

fn signed_strides(dims: &[usize]) -> Vec<isize> {
    strides_of(dims).into_iter().map(|stride| stride as isize).collect()
}

/// The axis of x that each axis of the result is.
fn permutation(spec: &OpSpec, attrs: &Attrs, rank: usize) -> Result<Vec<usize>> {
    let Some(perm) = attrs.ints(PERM.name) else { return Ok((0..rank).rev().collect()) };
    if perm.len() != rank {
        return mismatch!("{}: 'perm' must name the {rank} axes of 'x', got {perm:?}", spec.name);
    }
    let axes = perm.iter().map(|&axis| normalize_axis(spec.name, axis, rank)).collect::<Result<Vec<_>>>()?;
    match (0..rank).find(|axis| !axes.contains(axis)) {
        Some(axis) => {
            invalid!("{}: 'perm' must name every axis once, got {perm:?} without {axis}", spec.name)
        }
        None => Ok(axes),
    }
}

fn transpose_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    let axes = permutation(spec, attrs, x.dims.len())?;
    Ok(vec![Meta::new(x.dtype, axes.iter().map(|&axis| x.dims[axis]).collect::<Vec<_>>())])
}

fn transpose_walks(call: &Call) -> Result<Vec<Walk>> {
    let dims = &call.input(0).dims;
    let (x, y) = (signed_strides(dims), signed_strides(&call.output().dims));
    let axes = permutation(call.spec, &call.attrs, dims.len())?;
    let axes = axes.iter().zip(y).map(|(&axis, y)| Axis { size: dims[axis], x: x[axis], y });
    Ok(vec![Walk::new(0, 0, axes)])
}

/// The indices taken along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: usize,
    step: isize,
    size: usize,
}

/// A range of an axis of `dim` elements by ONNX's rule: negative ends count from the end, then both are clamped.
fn range(dim: usize, start: i64, end: i64, step: i64) -> Range {
    let size = dim as i64;
    let from_end = |index: i64| if index < 0 { index + size } else { index };
    let (start, end) = (from_end(start), from_end(end));
    if size == 0 {
        return Range { start: 0, step: 1, size: 0 };
    }
    let (start, end) = match step > 0 {
        true => (start.clamp(0, size), end.clamp(0, size)),
        false => (start.clamp(0, size - 1), end.clamp(-1, size - 1)),
    };
    let length = if step > 0 { end - start } else { start - end };
    let count = length.max(0) as u64;
    let count = count.div_ceil(step.unsigned_abs()) as usize;
    Range { start: if count == 0 { 0 } else { start as usize }, step: step as isize, size: count }
}

/// The range of every axis.
fn ranges(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<Vec<Range>> {
    let (Some(starts), Some(ends)) = (attrs.ints(STARTS.name), attrs.ints(ENDS.name)) else {
        return invalid!("{}: options 'starts' and 'ends' are required", spec.name);
    };
    let first: Vec<i64> = (0..starts.len() as i64).collect();
    let axes = attrs.ints(AXES.name).unwrap_or(&first);
    let ones = vec![1; starts.len()];
    let steps = attrs.ints(STEPS.name).unwrap_or(&ones);
    for (name, values) in [(ENDS.name, ends), (AXES.name, axes), (STEPS.name, steps)] {
        if values.len() != starts.len() {
            let (wanted, got) = (starts.len(), values.len());
            return mismatch!("{}: '{name}' must be as long as 'starts' ({wanted}), got {got}", spec.name);
        }
    }
    let mut ranges: Vec<Option<Range>> = vec![None; dims.len()];
    for (index, &axis) in axes.iter().enumerate() {
        let axis = normalize_axis(spec.name, axis, dims.len())?;
        if steps[index] == 0 {
            return invalid!("{}: 'steps' must not hold 0, got {steps:?}", spec.name);
        }
        let chosen = range(dims[axis], starts[index], ends[index], steps[index]);
        if ranges[axis].replace(chosen).is_some() {
            return invalid!("{}: 'axes' {axes:?} name axis {axis} twice", spec.name);
        }
    }
    let all = |&size: &usize| Range { start: 0, step: 1, size };
    Ok(ranges.into_iter().zip(dims).map(|(range, dim)| range.unwrap_or_else(|| all(dim))).collect())
}

fn slice_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    let ranges = ranges(spec, attrs, &x.dims)?;
    Ok(vec![Meta::new(x.dtype, ranges.iter().map(|range| range.size).collect::<Vec<_>>())])
}

fn slice_walks(call: &Call) -> Result<Vec<Walk>> {
    let dims = &call.input(0).dims;
    let ranges = ranges(call.spec, &call.attrs, dims)?;
    let (x, y) = (strides_of(dims), signed_strides(&call.output().dims));
    let start = ranges.iter().zip(&x).map(|(range, stride)| range.start * stride).sum();
    let axes = ranges.iter().zip(x).zip(y).map(|((range, x), y)| {
        // The step of an axis with one index is never taken, and may pass every size.
        let step = if range.size > 1 { range.step * x as isize } else { 1 };
        Axis { size: range.size, x: step, y }
    });
    Ok(vec![Walk::new(start, 0, axes)])
}

/// The axis and the size of each part along it.
fn split_parts(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<(usize, Vec<usize>)> {
    let axis = normalize_axis(spec.name, attrs.int("axis"), dims.len())?;
    let (dim, count) = (dims[axis], attrs.int(PARTS.name));
    match (attrs.ints(SPLIT.name), count) {
        (Some(sizes), 0) => {
            let parts: Vec<usize> = sizes.iter().map_while(|&size| usize::try_from(size).ok()).collect();
            let total = parts.iter().fold(0usize, |sum, &size| sum.saturating_add(size));
            if parts.len() < sizes.len() || parts.is_empty() || total != dim {
                return mismatch!(
                    "{}: 'split' must add up to the {dim} of axis {axis}, got {sizes:?}",
                    spec.name
                );
            }
            Ok((axis, parts))
        }
        (None, count) if count > 0 => {
            let size = dim.div_ceil(count as usize);
            let whole = (count as usize - 1).saturating_mul(size);
            if whole > dim {
                return mismatch!(
                    "{}: axis {axis} of {dim} cannot be cut into {count} parts of {size}",
                    spec.name
                );
            }
            let mut parts = vec![size; count as usize];
            parts[count as usize - 1] = dim - whole;
            Ok((axis, parts))
        }
        (split, count) => invalid!(
            "{}: give either 'split' or 'numOutputs' of at least 1, got {split:?} and {count}",
            spec.name
        ),
    }
}

/// Parts of a split at most: each is a tensor of its own.
const MOST_PARTS: i64 = 1 << 16;

fn split_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    if attrs.int(PARTS.name) > MOST_PARTS {
        let got = attrs.int(PARTS.name);
        return invalid!("{}: 'numOutputs' must be at most {MOST_PARTS}, got {got}", spec.name);
    }
    let (axis, parts) = split_parts(spec, attrs, &x.dims)?;
    let part = |size: usize| {
        let mut dims = x.dims.clone();
        dims[axis] = size;
        Meta::new(x.dtype, dims)
    };
    Ok(parts.into_iter().map(part).collect())
}

fn split_walks(call: &Call) -> Result<Vec<Walk>> {
    let dims = &call.input(0).dims;
    let (axis, parts) = split_parts(call.spec, &call.attrs, dims)?;
    let (outer, inner) = (size_of(&dims[..axis]), size_of(&dims[axis + 1..]));
    let mut start = 0;
    let walks = parts.into_iter().map(|size| {
        let rows = Axis { size: outer, x: (dims[axis] * inner) as isize, y: (size * inner) as isize };
        let walk = Walk::new(start, 0, [rows, Axis { size: size * inner, x: 1, y: 1 }].into_iter());
        start += size * inner;
        walk
    });
    Ok(walks.collect())
}

fn concat_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let first = spec.operand(inputs, 0)?;
    let axis = normalize_axis(spec.name, attrs.int("axis"), first.dims.len())?;
    let mut dims = first.dims.clone();
    for index in 1..inputs.len() {
        let next = spec.operand(inputs, index)?;
        let mut wanted = next.dims.clone();
        if let Some(size) = wanted.get_mut(axis) {
            *size = first.dims[axis];
        }
        if wanted != first.dims {
            let (first, got) = (&first.dims, &next.dims);
            return mismatch!(
                "{}: dims must be {first:?} but for axis {axis}, input {index} has {got:?}",
                spec.name
            );
        }
        dims[axis] = dims[axis].saturating_add(next.dims[axis]);
    }
    Ok(vec![Meta::new(first.dtype, dims)])
}

/// Axis, and the elements of a row of each input: all from the axis on.
fn concat_rows(call: &Call) -> Result<(usize, Vec<usize>)> {
    let axis = normalize_axis(call.spec.name, call.attrs.int("axis"), call.input(0).dims.len())?;
    Ok((axis, (0..call.inputs.len()).map(|index| size_of(&call.input(index).dims[axis..])).collect()))
}

fn concat_cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let (_, rows) = concat_rows(call)?;
    let parts: Vec<_> = inputs.iter().flatten().zip(rows).collect();
    cpu::join(&parts, &mut outputs[0]);
    Ok(())
}

fn concat_cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let (axis, rows) = concat_rows(call)?;
    let (bytes, n) = (call.dtype().size(), call.output().size());
    if n == 0 {
        return Ok(());
    }
    let mut parts = Vec::with_capacity(rows.len());
    for (index, &length) in rows.iter().enumerate().filter(|(_, length)| **length > 0) {
        parts.push((device_operand(call, inputs, index)?, length));
    }
    let outer = size_of(&call.output().dims[..axis]);
    if parts.len() <= cuda::MOST_PARTS {
        return cuda::join(launcher, &parts, n, bytes, outputs[0].ptr);
    }
    let total: usize = rows.iter().sum();
    let mut start = 0;
    for (x, length) in parts {
        let lines = Axis { size: outer, x: length as isize, y: total as isize };
        let walk = Walk::new(0, start, [lines, Axis { size: length, x: 1, y: 1 }].into_iter());
        cuda::copy(launcher, &walk, bytes, x, outputs[0].ptr)?;
        start += length;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
