//! Elements by index: gather, gatherElements, scatterElements. Indices out of range are no error, since a GPU would have
//! to be waited for to report one: they give zeros and nothing is written to them.

use super::cpu::for_unit;
use super::cuda;
use super::walk::{Axis, Walk, pack};
use crate::cpu::for_pieces;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, linear};
use crate::ops::operands::{device_view, divisor};
use crate::ops::spec::*;
use crate::ops::{Attrs, Call, TYPES};
use crate::shape::{normalize_axis, size_of, strides_of};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Error, Result, mismatch};
use bytemuck::Pod;

const AXIS: Attribute = attribute("axis", Kind::Int(Some(0)), "Axis of x that the indices are of.");

const fn row(
    name: &'static str,
    operands: &'static [Operand],
    shape: ShapeRule,
    cpu: CpuForm,
    cuda: CudaForm,
    doc: &'static str,
) -> OpSpec {
    let (results, tolerance) = (Results::One, Tolerance::Exact);
    OpSpec { name, operands, attributes: &[AXIS], dtypes: TYPES, results, shape, cpu, cuda, tolerance, doc }
}

/// `gather`.
pub const GATHER: OpSpec = row(
    "gather",
    &[required("x"), indices("indices")],
    gather_shape,
    gather_cpu,
    gather_cuda,
    "The slices of x along an axis that indices of any shape name; negative ones count from the end, ones out of range \
     give zeros (ONNX Gather).",
);

/// `gatherElements`.
pub const GATHER_ELEMENTS: OpSpec = row(
    "gatherElements",
    &[required("x"), indices("indices")],
    gather_elements_shape,
    gather_elements_cpu,
    |call, launcher, inputs, outputs| {
        let x = device_view(call, inputs, 0)?.ptr;
        elements_cuda(call, launcher, x, inputs, outputs[0].ptr)
    },
    "For each index the element of x that has it along an axis and its own place along the others; indices out of range \
     give zeros (ONNX GatherElements).",
);

/// `scatterElements`.
pub const SCATTER_ELEMENTS: OpSpec = row(
    "scatterElements",
    &[required("x"), indices("indices"), required("updates")],
    scatter_elements_shape,
    scatter_elements_cpu,
    scatter_elements_cuda,
    "x with each update in the place of the element that has its index along an axis and its own place along the others; \
     any one of those that meet, and none out of range (ONNX ScatterElements without a reduction).",
);

/// Indices of either type as int64.
enum Indices<'a> {
    Wide(&'a [i64]),
    Narrow(&'a [i32]),
}

impl<'a> Indices<'a> {
    fn of(view: &HostView<'a>) -> Indices<'a> {
        match view.dtype {
            DType::I32 => Indices::Narrow(view.as_slice()),
            _ => Indices::Wide(view.as_slice()),
        }
    }

    /// The index at a position, counted from the start of an axis of that length; `None` out of range.
    fn get(&self, position: usize, length: usize) -> Option<usize> {
        let index = match self {
            Indices::Wide(values) => values[position],
            Indices::Narrow(values) => i64::from(values[position]),
        };
        let whole = if index < 0 { index.checked_add(length as i64)? } else { index };
        usize::try_from(whole).ok().filter(|index| *index < length)
    }
}

fn axis_of(spec: &OpSpec, attrs: &Attrs, x: &Meta) -> Result<usize> {
    normalize_axis(spec.name, attrs.int(AXIS.name), x.dims.len())
}

fn host<'a, 'b>(call: &Call, inputs: &'b [Option<HostView<'a>>], index: usize) -> Result<&'b HostView<'a>> {
    let missing = || Error::Internal(format!("{}: operand {index} is missing", call.spec.name));
    inputs.get(index).and_then(Option::as_ref).ok_or_else(missing)
}

fn gather_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let (x, indices) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    let axis = axis_of(spec, attrs, x)?;
    let dims = [&x.dims[..axis], &indices.dims, &x.dims[axis + 1..]].concat();
    Ok(vec![Meta::new(x.dtype, dims)])
}

/// Length of the axis, and elements that lie behind an index of it.
fn extents(call: &Call) -> Result<(usize, usize)> {
    let x = call.input(0);
    let axis = axis_of(call.spec, &call.attrs, x)?;
    Ok((x.dims[axis], size_of(&x.dims[axis + 1..])))
}

fn gather_cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let (x, indices) = (host(call, inputs, 0)?, Indices::of(host(call, inputs, 1)?));
    let (length, inner) = extents(call)?;
    let count = call.input(1).size();
    for_unit!(x.dtype.size(), gather_units(x, &indices, count, length, inner, &mut outputs[0]));
    Ok(())
}

fn gather_units<T: Pod + Send + Sync>(
    x: &HostView,
    indices: &Indices,
    count: usize,
    length: usize,
    inner: usize,
    y: &mut HostViewMut,
) {
    let x = x.as_slice::<T>();
    for_pieces(y.as_slice_mut::<T>(), inner, 1, |start, piece| {
        for (index, row) in piece.chunks_mut(inner).enumerate() {
            let line = start / inner + index;
            match indices.get(line % count, length) {
                Some(index) => row.copy_from_slice(&x[(line / count * length + index) * inner..][..inner]),
                None => row.fill(T::zeroed()),
            }
        }
    });
}

fn gather_cuda(
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
    let (x, indices, y) = (device_view(call, inputs, 0)?.ptr, device_view(call, inputs, 1)?, outputs[0].ptr);
    let rows = Walk::new(0, 0, [Axis { size: inner, x: 1, y: 1 }].into_iter());
    let (units, bytes) = rows.widest(call.dtype().size(), x.0, y.0);
    let (inner, n) = (units.size(), size / (inner / units.size()));
    let count = call.input(1).size();
    let arguments = [
        Arg::Ptr(x),
        Arg::Ptr(indices.ptr),
        Arg::Ptr(y),
        Arg::U64(n as u64),
        Arg::U64(length as u64),
        Arg::U64(count as u64),
        Arg::U64(divisor(count)),
        Arg::U64(inner as u64),
        Arg::U64(divisor(inner)),
        Arg::U32(u32::from(indices.dtype == DType::I64)),
    ];
    let grid = linear(n as u64, 256, if bytes == 16 { 1 } else { 4 })?;
    launcher.launch(&format!("gather_u{}", 8 * bytes), grid, &arguments)
}

/// The indices of an elementwise form: of x's rank, and no longer than x along the other axes.
fn check_indices(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<()> {
    let (x, indices) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    let axis = axis_of(spec, attrs, x)?;
    let fits = x.dims.len() == indices.dims.len()
        && x.dims.iter().zip(&indices.dims).enumerate().all(|(at, (x, index))| at == axis || index <= x);
    if !fits {
        let (x, got) = (&x.dims, &indices.dims);
        return mismatch!(
            "{}: 'indices' must fit into {x:?} but for axis {axis}, got dims {got:?}",
            spec.name
        );
    }
    let joined = elements_walk(x, indices, axis).axes.len();
    if joined > super::walk::LAUNCH_AXES {
        let rank = x.dims.len();
        return Err(Error::UnsupportedOp(format!("{}: too many axes are cut, of {rank}", spec.name)));
    }
    Ok(())
}

/// Along the indices, the element of x that stands in the same place with index 0 along the axis.
fn elements_walk(x: &Meta, indices: &Meta, axis: usize) -> Walk {
    let (own, strides) = (strides_of(&indices.dims), strides_of(&x.dims));
    let axes = (0..x.dims.len()).map(|at| {
        let step = if at == axis { 0 } else { strides[at] as isize };
        Axis { size: indices.dims[at], x: step, y: own[at] as isize }
    });
    Walk::new(0, 0, axes)
}

fn gather_elements_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    check_indices(spec, inputs, attrs)?;
    Ok(vec![Meta::new(spec.operand(inputs, 0)?.dtype, spec.operand(inputs, 1)?.dims.clone())])
}

fn scatter_elements_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    check_indices(spec, inputs, attrs)?;
    spec.expect_dims(2, spec.operand(inputs, 2)?, &spec.operand(inputs, 1)?.dims)?;
    Ok(vec![spec.operand(inputs, 0)?.clone()])
}

/// The walk of an elementwise form, the axis's length and its stride in x.
fn elements(call: &Call) -> Result<(Walk, usize, usize)> {
    let (length, stride) = extents(call)?;
    let axis = axis_of(call.spec, &call.attrs, call.input(0))?;
    Ok((elements_walk(call.input(0), call.input(1), axis), length, stride))
}

fn gather_elements_cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let (x, indices) = (host(call, inputs, 0)?, Indices::of(host(call, inputs, 1)?));
    let place = elements(call)?;
    for_unit!(x.dtype.size(), gather_element_units(x, &indices, &place, &mut outputs[0]));
    Ok(())
}

fn gather_element_units<T: Pod + Send + Sync>(
    x: &HostView,
    indices: &Indices,
    (walk, length, stride): &(Walk, usize, usize),
    y: &mut HostViewMut,
) {
    let x = x.as_slice::<T>();
    for_pieces(y.as_slice_mut::<T>(), 1, 8, |start, piece| {
        for (offset, y) in piece.iter_mut().enumerate() {
            let at = start + offset;
            let place = |index: usize| x[walk.source(at) as usize + index * stride];
            *y = indices.get(at, *length).map_or(T::zeroed(), place);
        }
    });
}

fn scatter_elements_cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let (x, indices, updates) =
        (host(call, inputs, 0)?, Indices::of(host(call, inputs, 1)?), host(call, inputs, 2)?);
    let place = elements(call)?;
    for_unit!(x.dtype.size(), scatter_element_units(x, &indices, updates, &place, &mut outputs[0]));
    Ok(())
}

/// One after the other: of updates that meet the last one stays.
fn scatter_element_units<T: Pod + Send + Sync>(
    x: &HostView,
    indices: &Indices,
    updates: &HostView,
    (walk, length, stride): &(Walk, usize, usize),
    y: &mut HostViewMut,
) {
    let y = y.as_slice_mut::<T>();
    y.copy_from_slice(x.as_slice::<T>());
    for (at, &update) in updates.as_slice::<T>().iter().enumerate() {
        if let Some(index) = indices.get(at, *length) {
            y[walk.source(at) as usize + index * stride] = update;
        }
    }
}

/// Enqueues the kernel of an elementwise form from `x`, operand 0 or the updates, to `y`.
fn elements_cuda(
    call: &Call,
    launcher: &Launcher,
    x: DevicePtr,
    inputs: &[Option<DeviceView>],
    y: DevicePtr,
) -> Result<()> {
    let n = call.input(1).size() as u64;
    if n == 0 {
        return Ok(());
    }
    let (walk, length, stride) = elements(call)?;
    let indices = device_view(call, inputs, 1)?;
    let words = pack(&walk.axes, true);
    let wide = u32::from(indices.dtype == DType::I64);
    let arguments = [
        Arg::Ptr(x),
        Arg::Ptr(indices.ptr),
        Arg::Ptr(y),
        Arg::U64(n),
        Arg::U64(length as u64),
        Arg::U64(stride as u64),
        Arg::U32(wide),
        Arg::Block(&words),
    ];
    let kernel = format!("{}_u{}", call.spec.name, 8 * call.dtype().size());
    launcher.launch(&kernel, linear(n, 256, 4)?, &arguments)
}

fn scatter_elements_cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let (x, updates) = (device_view(call, inputs, 0)?.ptr, device_view(call, inputs, 2)?.ptr);
    let all = Walk::new(0, 0, [Axis { size: call.output().size(), x: 1, y: 1 }].into_iter());
    cuda::copy(launcher, &all, call.dtype().size(), x, outputs[0].ptr)?;
    elements_cuda(call, launcher, updates, inputs, outputs[0].ptr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find as kernel};
    use crate::ops::Raw;

    fn run(
        op: &str,
        x: (&[usize], &[u8]),
        indices: (&[usize], &[i32]),
        updates: &[u8],
        axis: f64,
    ) -> Result<Vec<u8>> {
        let mut tensors = vec![
            Tensor::from_slice(DType::U8, x.0, x.1)?,
            Tensor::from_slice(DType::I32, indices.0, indices.1)?,
        ];
        if op == "scatterElements" {
            tensors.push(Tensor::from_slice(DType::U8, indices.0, updates)?);
        }
        let options = [("axis".to_string(), Raw::Number(axis))];
        let call =
            Call::new(op, tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect(), &options)?;
        let outputs = call.run_cpu(&tensors.into_iter().map(Some).collect::<Vec<_>>())?;
        Ok(outputs[0].host_view()?.as_slice::<u8>().to_vec())
    }

    const X: (&[usize], &[u8]) = (&[2, 3], &[1, 2, 3, 4, 5, 6]);

    #[test]
    fn indices_name_slices() {
        assert_eq!(run("gather", X, (&[2], &[-1, 0]), &[], 0.0).unwrap(), [4, 5, 6, 1, 2, 3]);
        assert_eq!(run("gather", X, (&[1, 2], &[2, -3]), &[], 1.0).unwrap(), [3, 1, 6, 4]);
        assert_eq!(run("gather", X, (&[3], &[3, -4, i32::MIN]), &[], 1.0).unwrap(), [0; 6]);
        assert_eq!(run("gather", X, (&[], &[1]), &[], -1.0).unwrap(), [2, 5]);
        assert_eq!(run("gather", (&[0], &[]), (&[2], &[0, 1]), &[], 0.0).unwrap(), [0, 0]);
    }

    #[test]
    fn indices_name_elements() {
        let indices: (&[usize], &[i32]) = (&[1, 4], &[2, 0, -1, 3]);
        assert_eq!(run("gatherElements", X, indices, &[], 1.0).unwrap(), [3, 1, 3, 0]);
        assert_eq!(
            run("gatherElements", X, (&[3, 2], &[0, 1, 1, 0, -2, 2]), &[], 0.0).unwrap(),
            [1, 5, 4, 2, 1, 0]
        );
        let y = run("scatterElements", X, (&[1, 2], &[1, -9]), &[7, 8], 0.0).unwrap();
        assert_eq!(y, [1, 2, 3, 7, 5, 6]);
        let code = |x: (&[usize], &[u8]), indices: (&[usize], &[i32])| {
            run("gatherElements", x, indices, &[], 0.0).map(|_| ()).map_err(|error| error.code())
        };
        assert_eq!(code(X, (&[1, 4], &[0; 4])), Err("SHAPE_MISMATCH"));
        assert_eq!(code(X, (&[2], &[0; 2])), Err("SHAPE_MISMATCH"));
    }

    #[test]
    fn every_width_has_its_kernels() {
        use Parameter::{Block, Word32, Word64 as W};
        let walk = Block(pack(&[], true).len() * 4);
        for bits in [8, 16, 32, 64] {
            for name in ["gatherElements", "scatterElements"] {
                let (_, entry) = kernel(&format!("{name}_u{bits}"), 75).unwrap();
                assert_eq!(entry.parameters, [W, W, W, W, W, W, Word32, walk]);
            }
        }
        for bits in [8, 16, 32, 64, 128] {
            let (_, entry) = kernel(&format!("gather_u{bits}"), 75).unwrap();
            assert_eq!(entry.parameters, [W, W, W, W, W, W, W, W, W, Word32]);
        }
    }
}
