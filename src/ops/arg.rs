//! argMax and argMin over one axis.

use super::operands::{device_operand, divisor, host_operand};
use super::reduce::code;
use super::spec::*;
use super::{Attrs, Call, NUMBERS, halves};
use crate::cpu::whole::{Whole, for_whole};
use crate::cpu::{Float, for_pieces};
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, linear};
use crate::shape::{normalize_axis, size_of};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, mismatch};
use bytemuck::Pod;

const X: &[Operand] = &[required("x")];
const AXIS: Attribute = attribute("axis", Kind::Int(Some(0)), "Axis that the indices are of.");
const KEEP_DIMS: Attribute =
    attribute("keepDims", Kind::Bool(true), "Whether the axis stays in the result with size 1.");
const LAST: Attribute = attribute(
    "selectLastIndex",
    Kind::Bool(false),
    "Whether the last of equal elements is taken instead of the first.",
);

const fn row(name: &'static str, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: X,
        attributes: &[AXIS, KEEP_DIMS, LAST],
        dtypes: NUMBERS,
        results: Results::Of(DType::I64),
        shape,
        cpu,
        cuda,
        tolerance: Tolerance::Exact,
        doc,
    }
}

/// The family's rows.
pub const OPS: &[OpSpec] = &[
    row("argMax", "Index of the largest element along an axis; NaN counts as larger than any (ONNX ArgMax)."),
    row(
        "argMin",
        "Index of the smallest element along an axis; NaN counts as smaller than any (ONNX ArgMin).",
    ),
];

/// Axis; a scalar is a row of one.
fn axis_of(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<usize> {
    normalize_axis(spec.name, attrs.int(AXIS.name), dims.len().max(1))
}

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    let axis = axis_of(spec, attrs, &x.dims)?;
    let mut dims = x.dims.clone();
    if let Some(dim) = dims.get_mut(axis) {
        let nothing = std::mem::replace(dim, 1) == 0;
        if nothing && !dims.contains(&0) {
            return mismatch!("{}: 'x' has no elements along axis {axis} (dims {:?})", spec.name, x.dims);
        }
        if !attrs.bool(KEEP_DIMS.name) {
            dims.remove(axis);
        }
    }
    Ok(vec![Meta::new(DType::I64, dims)])
}

/// Length of the axis, and elements that lie behind an index of it.
fn extents(call: &Call) -> Result<(usize, usize)> {
    let dims = &call.input(0).dims;
    let axis = axis_of(call.spec, &call.attrs, dims)?;
    Ok((dims.get(axis).copied().unwrap_or(1), dims.get(axis + 1..).map_or(1, size_of)))
}

fn is_min(call: &Call) -> bool {
    call.spec.name == "argMin"
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
    let (min, last) = (is_min(call), call.attrs.bool(LAST.name));
    search(call, inputs, outputs, |next: T, best: T| match (next.is_nan(), best.is_nan()) {
        (false, false) if next == best => last,
        (false, false) => (next < best) == min,
        (true, true) => last,
        (odd, _) => odd,
    })
}

fn wholes<T: Whole>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let (min, last) = (is_min(call), call.attrs.bool(LAST.name));
    search(call, inputs, outputs, |next: T, best: T| if next == best { last } else { (next < best) == min })
}

/// `replaces`: whether an element takes the place of an earlier one.
fn search<T: Pod + Send + Sync>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    replaces: impl Fn(T, T) -> bool + Send + Sync,
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let (length, inner) = extents(call)?;
    for_pieces(outputs[0].as_slice_mut::<i64>(), 1, length, |start, piece| {
        for (offset, y) in piece.iter_mut().enumerate() {
            let (row, column) = ((start + offset) / inner, (start + offset) % inner);
            let at = |index: usize| x[(row * length + index) * inner + column];
            let mut best = 0;
            for index in 1..length {
                if replaces(at(index), at(best)) {
                    best = index;
                }
            }
            *y = best as i64;
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
    let columns = call.output().size();
    if columns == 0 {
        return Ok(());
    }
    let (length, inner) = extents(call)?;
    let x = device_operand(call, inputs, 0)?;
    if !call.dtype().is_float() {
        return whole_cuda(call, launcher, x, outputs);
    }
    let (size, y) = (call.dtype().size(), outputs[0].ptr);
    let plan = Plan::of(columns, length, inner, 16 / size, x.0.is_multiple_of(16));
    let workspace = if plan.parts == 1 { None } else { Some(launcher.scratch(16 * columns * plan.parts)?) };
    let flags = flags(call);
    let mut arguments = vec![
        Arg::Ptr(x),
        Arg::Ptr(workspace.as_ref().map_or(y, |workspace| workspace.ptr())),
        Arg::U64(columns as u64),
        Arg::U64(length as u64),
        Arg::U64(plan.chunk as u64),
        Arg::U32(plan.parts as u32),
        Arg::U32(plan.width as u32),
        Arg::U32(flags),
    ];
    if inner > 1 {
        arguments.extend([Arg::U64(inner as u64), Arg::U64(divisor(inner))]);
    }
    let suffix = call.dtype().suffix();
    let grid = linear((plan.units * plan.parts * plan.width) as u64, 256, 1)?;
    launcher.launch(&format!("arg_{suffix}_{}", plan.form), grid, &arguments)?;
    let Some(workspace) = workspace else { return Ok(()) };
    let width = plan.parts.next_power_of_two().min(256);
    let arguments = [
        Arg::Ptr(workspace.ptr()),
        Arg::Ptr(y),
        Arg::U64(columns as u64),
        Arg::U32(plan.parts as u32),
        Arg::U32(width as u32),
        Arg::U32(flags),
    ];
    launcher.launch(&format!("arg_{suffix}_merge"), linear((columns * width) as u64, 256, 1)?, &arguments)
}

fn flags(call: &Call) -> u32 {
    u32::from(is_min(call)) | u32::from(call.attrs.bool(LAST.name)) << 1
}

/// Whole numbers, by kernels/reduce_whole.cu.
fn whole_cuda(
    call: &Call,
    launcher: &Launcher,
    x: crate::driver::DevicePtr,
    outputs: &[DeviceView],
) -> Result<()> {
    let ((length, inner), columns) = (extents(call)?, call.output().size());
    let width = length.div_ceil(4).next_power_of_two().min(32);
    let arguments = [
        Arg::Ptr(x),
        Arg::Ptr(outputs[0].ptr),
        Arg::U64(columns as u64),
        Arg::U64(length as u64),
        Arg::U64(inner as u64),
        Arg::U32(width as u32),
        Arg::U32(code(call.dtype())),
        Arg::U32(flags(call)),
    ];
    launcher.launch("argWhole", linear((columns * width) as u64, 256, 1)?, &arguments)
}

/// Threads that keep a device busy.
const BUSY: usize = 1 << 18;
/// Elements of a part at most, which kernels count in 32 bits.
const LONGEST: usize = 1 << 31;

/// How the columns are spread over threads and launches.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    form: &'static str,
    /// Columns, or vectors of them where a thread takes several.
    units: usize,
    /// Threads of a part.
    width: usize,
    /// Elements of a part.
    chunk: usize,
    /// Parts of a column; from two on another launch finds the best of theirs.
    parts: usize,
}

impl Plan {
    /// `vector` is the number of elements in 16 bytes.
    fn of(columns: usize, length: usize, inner: usize, vector: usize, aligned: bool) -> Plan {
        let (form, units) = match inner {
            1 => ("rows", columns),
            _ if aligned && inner.is_multiple_of(vector) => ("columns", columns / vector),
            _ => ("column", columns),
        };
        // Threads of a row lie side by side and are many; those of a column read a line each, so few of them leave long lines.
        let (most, each) = if inner == 1 { (256, 4 * vector) } else { (8, 4) };
        let wanted = length.div_ceil(each).next_power_of_two().min(most);
        let enough = |width: &usize| inner == 1 || units * width >= BUSY;
        let width = (0..8).map(|bits| 1 << bits).find(|width| *width >= wanted || enough(width));
        let width = if inner == 1 { wanted } else { width.unwrap_or(wanted) };
        let spare = BUSY.div_ceil(units * width).min(length / (4 * width * each));
        let parts = spare.max(length.div_ceil(LONGEST)).max(1);
        let chunk = length.div_ceil(parts).next_multiple_of(vector);
        Plan { form, units, width, chunk, parts: length.div_ceil(chunk) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find as kernel};

    fn run(op: &str, dims: &[usize], x: &[f32], axis: f64, last: bool) -> Result<(Vec<usize>, Vec<i64>)> {
        let input = Tensor::from_slice(DType::F32, dims, x)?;
        let options = [
            ("axis".to_string(), Raw::Number(axis)),
            ("keepDims".to_string(), Raw::Bool(false)),
            ("selectLastIndex".to_string(), Raw::Bool(last)),
        ];
        let outputs = Call::new(op, vec![Some(input.meta().clone())], &options)?.run_cpu(&[Some(input)])?;
        Ok((outputs[0].meta().dims.clone(), outputs[0].host_view()?.as_slice::<i64>().to_vec()))
    }

    #[test]
    fn ties_and_nan_follow_the_policy() {
        let x = [1.0, 3.0, 3.0, f32::NAN, 9.0, f32::NAN];
        assert_eq!(run("argMax", &[2, 3], &x, 1.0, false).unwrap(), (vec![2], vec![1, 0]));
        assert_eq!(run("argMax", &[2, 3], &x, -1.0, true).unwrap().1, [2, 2]);
        assert_eq!(run("argMin", &[2, 3], &x, 1.0, false).unwrap().1, [0, 0]);
        assert_eq!(run("argMin", &[2, 3], &x, 0.0, false).unwrap(), (vec![3], vec![1, 0, 1]));
        assert_eq!(run("argMax", &[2], &[-0.0, 0.0], 0.0, false).unwrap().1, [0]);
        assert_eq!(run("argMax", &[2], &[f32::NEG_INFINITY; 2], 0.0, true).unwrap().1, [1]);
        assert_eq!(run("argMax", &[], &[5.0], 0.0, false).unwrap(), (vec![], vec![0]));
        assert_eq!(
            run("argMax", &[0, 2], &[], 0.0, false).map_err(|error| error.code()),
            Err("SHAPE_MISMATCH")
        );
        assert_eq!(run("argMax", &[0, 2], &[], 1.0, false).unwrap().0, [0]);
    }

    #[test]
    fn columns_are_shared_where_they_are_few() {
        let plan = |columns, length, inner| {
            let Plan { form, units, width, chunk, parts } = Plan::of(columns, length, inner, 4, true);
            assert!(chunk * parts >= length && chunk * (parts - 1) < length);
            (form, units, width, parts)
        };
        assert_eq!(plan(8192, 8192, 1), ("rows", 8192, 256, 1));
        assert_eq!(plan(10, 5, 1), ("rows", 10, 1, 1));
        assert_eq!(plan(1, 1 << 26, 1), ("rows", 1, 256, 1024));
        assert_eq!(plan(1 << 20, 1000, 64), ("columns", 1 << 18, 1, 1));
        assert_eq!(plan(8192, 8192, 8192), ("columns", 2048, 8, 16));
        assert_eq!(plan(70, 1, 7), ("column", 70, 1, 1));
        assert_eq!(plan(1, 5 << 31, 1).3, 1024);
    }

    #[test]
    fn every_type_has_its_kernel() {
        use Parameter::{Word32, Word64 as W};
        for suffix in super::super::FLOATS.iter().map(|dtype| dtype.suffix()) {
            let parameters = |form| kernel(&format!("arg_{suffix}_{form}"), 75).unwrap().1.parameters;
            let rows = [W, W, W, W, W, Word32, Word32, Word32];
            assert_eq!(parameters("rows"), rows);
            assert_eq!(parameters("columns"), [&rows[..], &[W, W]].concat());
            assert_eq!(parameters("column"), [&rows[..], &[W, W]].concat());
            assert_eq!(parameters("merge"), [W, W, W, Word32, Word32, Word32]);
        }
        assert_eq!(kernel("argWhole", 75).unwrap().1.parameters, [W, W, W, W, W, Word32, Word32, Word32]);
    }
}
