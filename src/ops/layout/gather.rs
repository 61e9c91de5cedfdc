//! gather: slices by index. Indices out of range that lie on a GPU are no error, since the call would have to wait for
//! the GPU to see them: they give zeros.

use super::cpu::for_unit;
use super::walk::{Axis, Walk};
use crate::cpu::for_pieces;
use crate::kernels::{Arg, Launcher, linear};
use crate::ops::indices::Indices;
use crate::ops::operands::{device_view, divisor};
use crate::ops::spec::*;
use crate::ops::{Attrs, Call, TYPES};
use crate::shape::{normalize_axis, size_of};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Error, Result};
use bytemuck::Pod;

pub(super) const AXIS: Attribute =
    attribute("axis", Kind::Int(Some(0)), "Axis of x that the indices are of.");

pub(super) const fn row(
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
    "The slices of x along an axis that indices of any shape name; negative ones count from the end (ONNX Gather).",
);

pub(super) fn axis_of(spec: &OpSpec, attrs: &Attrs, x: &Meta) -> Result<usize> {
    normalize_axis(spec.name, attrs.int(AXIS.name), x.dims.len())
}

pub(super) fn host<'a, 'b>(
    call: &Call,
    inputs: &'b [Option<HostView<'a>>],
    index: usize,
) -> Result<&'b HostView<'a>> {
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
pub(super) fn extents(call: &Call) -> Result<(usize, usize)> {
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
            let index = indices.at(line % count, length);
            row.copy_from_slice(&x[(line / count * length + index) * inner..][..inner]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find as kernel};
    use crate::ops::Raw;

    fn run(x: (&[usize], &[u8]), indices: (&[usize], &[i32]), axis: f64) -> Result<Vec<u8>> {
        let tensors = vec![
            Tensor::from_slice(DType::U8, x.0, x.1)?,
            Tensor::from_slice(DType::I32, indices.0, indices.1)?,
        ];
        let options = [("axis".to_string(), Raw::Number(axis))];
        let call = Call::new(
            "gather",
            tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect(),
            &options,
        )?;
        let outputs = call.run_cpu(&tensors.into_iter().map(Some).collect::<Vec<_>>())?;
        Ok(outputs[0].host_view()?.as_slice::<u8>().to_vec())
    }

    const X: (&[usize], &[u8]) = (&[2, 3], &[1, 2, 3, 4, 5, 6]);

    #[test]
    fn indices_name_slices() {
        assert_eq!(run(X, (&[2], &[-1, 0]), 0.0).unwrap(), [4, 5, 6, 1, 2, 3]);
        assert_eq!(run(X, (&[1, 2], &[2, -3]), 1.0).unwrap(), [3, 1, 6, 4]);
        let refused = run(X, (&[3], &[0, 3, -4]), 1.0).unwrap_err();
        assert_eq!(refused.code(), "OUT_OF_RANGE");
        assert_eq!(
            refused.to_string(),
            "gather: 'indices' must lie from -3 to 2 for axis 1 of 3, got 3 at position 1"
        );
        assert_eq!(run(X, (&[], &[1]), -1.0).unwrap(), [2, 5]);
        assert_eq!(run((&[0], &[]), (&[2], &[0, 1]), 0.0).unwrap_err().code(), "OUT_OF_RANGE");
        assert_eq!(run((&[0], &[]), (&[0], &[]), 0.0).unwrap(), []);
    }

    #[test]
    fn every_width_has_its_kernels() {
        use Parameter::{Word32, Word64 as W};
        for bits in [8, 16, 32, 64, 128] {
            let (_, entry) = kernel(&format!("gather_u{bits}"), 75).unwrap();
            assert_eq!(entry.parameters, [W, W, W, W, W, W, W, W, W, Word32]);
        }
    }
}
