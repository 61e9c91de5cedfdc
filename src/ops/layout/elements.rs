//! gatherElements and scatterElements: single elements by index, with gather's rule for indices out of range; nothing is
//! written to those.

use super::cpu::for_unit;
use super::cuda;
use super::gather::{AXIS, axis_of, extents, host, row};
use super::scatter::{self, REDUCTION};
use super::walk::{Axis, LAUNCH_AXES, Walk, pack};
use crate::cpu::for_pieces;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, linear};
use crate::ops::indices::Indices;
use crate::ops::operands::device_view;
use crate::ops::spec::*;
use crate::ops::{Attrs, Call};
use crate::shape::strides_of;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Error, Result, mismatch};
use bytemuck::Pod;

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
    "For each index the element of x that has it along an axis and its own place along the others (ONNX \
     GatherElements).",
);

const SCATTERED: &[Operand] = &[required("x"), indices("indices"), required("updates")];

/// `scatterElements`.
pub const SCATTER_ELEMENTS: OpSpec = OpSpec {
    attributes: &[AXIS, REDUCTION],
    ..row(
        "scatterElements",
        SCATTERED,
        scatter_elements_shape,
        |call, inputs, outputs| match call.attrs.choice(REDUCTION.name) {
            "none" => scatter_elements_cpu(call, inputs, outputs),
            _ => scatter::cpu(call, inputs, outputs),
        },
        |call, launcher, inputs, outputs| match call.attrs.choice(REDUCTION.name) {
            "none" => scatter_elements_cuda(call, launcher, inputs, outputs),
            _ => scatter::cuda(call, launcher, inputs, outputs),
        },
        "x with each update in the place of the element that has its index along an axis and its own place along the \
         others, or joined with it; without a reduction any one of those that meet (ONNX ScatterElements).",
    )
};

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
    if joined > LAUNCH_AXES {
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
pub(super) fn elements(call: &Call) -> Result<(Walk, usize, usize)> {
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
            *y = x[walk.source(at) as usize + indices.at(at, *length) * stride];
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
        y[walk.source(at) as usize + indices.at(at, *length) * stride] = update;
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
    fn indices_name_elements() {
        let indices: (&[usize], &[i32]) = (&[1, 4], &[2, 0, -1, -3]);
        assert_eq!(run("gatherElements", X, indices, &[], 1.0).unwrap(), [3, 1, 3, 1]);
        assert_eq!(
            run("gatherElements", X, (&[3, 2], &[0, 1, 1, 0, -2, -1]), &[], 0.0).unwrap(),
            [1, 5, 4, 2, 1, 5]
        );
        let y = run("scatterElements", X, (&[1, 2], &[1, -2]), &[7, 8], 0.0).unwrap();
        assert_eq!(y, [1, 8, 3, 7, 5, 6]);
        let code = |x: (&[usize], &[u8]), indices: (&[usize], &[i32])| {
            run("gatherElements", x, indices, &[], 0.0).map(|_| ()).map_err(|error| error.code())
        };
        assert_eq!(code(X, (&[1, 2], &[0, 3])), Err("OUT_OF_RANGE"));
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
    }
}
