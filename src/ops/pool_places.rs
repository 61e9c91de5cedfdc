//! Maxima of windows with their places, and maxima of whole numbers: window by window, element by element.

use super::geometry::*;
use super::operands::{device_operand, host_operand};
use super::pool::{KERNEL, pack, shape as pooled, three_axes};
use super::spec::*;
use super::{Attrs, Call};
use crate::cpu::for_pieces;
use crate::driver::DevicePtr;
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, invalid};
use bytemuck::Pod;
use half::{bf16, f16};

/// Element types of maxPool.
#[rustfmt::skip]
pub const POOLED: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I8, DType::U8];

const X: &[Operand] = &[required("x")];
const OUTPUTS: &[Output] = &[output("values"), output_of("indices", DType::I64)];
const STORAGE_ORDER: Attribute = attribute(
    "storageOrder",
    Kind::Int(Some(0)),
    "How indices count the places of a plane: 0 with the last axis fastest, as x lies, 1 with the first one.",
);

const fn row(name: &'static str, shape: ShapeRule, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: X,
        attributes: &[KERNEL, STRIDES, PADS, DILATIONS, AUTO_PAD, CEIL_MODE, STORAGE_ORDER],
        dtypes: POOLED,
        results: Results::These(OUTPUTS),
        shape,
        cpu,
        cuda,
        tolerance: Tolerance::Exact,
        doc,
    }
}

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    row("maxPool1dWithIndices", shape::<1>, "maxPool1d, and where in all of x the largest elements stand: the first of equal ones (ONNX MaxPool)."),
    row("maxPool2dWithIndices", shape::<2>, "maxPool2d, and where in all of x the largest elements stand: the first of equal ones (ONNX MaxPool)."),
    row("maxPool3dWithIndices", shape::<3>, "maxPool3d, and where in all of x the largest elements stand: the first of equal ones (ONNX MaxPool)."),
];

fn shape<const AXES: usize>(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let order = attrs.int(STORAGE_ORDER.name);
    if !(0..=1).contains(&order) {
        return invalid!("{}: 'storageOrder' must be 0 or 1, got {order}", spec.name);
    }
    let mut metas = pooled::<AXES>(spec, inputs, attrs)?;
    metas.push(Meta::new(DType::I64, metas[0].dims.clone()));
    Ok(metas)
}

/// CPU form, of maxima alone too.
pub fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => run(call, inputs, outputs, f64::NEG_INFINITY, |x: f64| x),
        DType::F32 => run(call, inputs, outputs, f32::NEG_INFINITY, |x: f32| x.into()),
        DType::F16 => run(call, inputs, outputs, f16::NEG_INFINITY, |x: f16| x.into()),
        DType::Bf16 => run(call, inputs, outputs, bf16::NEG_INFINITY, |x: bf16| x.into()),
        DType::I8 => run(call, inputs, outputs, i8::MIN, |x: i8| x.into()),
        _ => run(call, inputs, outputs, u8::MIN, |x: u8| x.into()),
    }
}

/// `least`: what a window of padding gives; its index is -1.
fn run<T: Pod + Send + Sync>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    least: T,
    value: impl Fn(T) -> f64 + Send + Sync,
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let axes = three_axes(call)?;
    let mut places = vec![-1i64; call.output().size()];
    let cost = axes.iter().map(|axis| axis.kernel).fold(1, usize::saturating_mul);
    for_pieces(&mut places, 1, cost, |start, piece| {
        for (offset, place) in piece.iter_mut().enumerate() {
            let mut most = f64::NEG_INFINITY;
            for_window(&axes, start + offset, |at| {
                let next = value(x[at]);
                if *place < 0 || next > most || (next.is_nan() && !most.is_nan()) {
                    (*place, most) = (at as i64, next);
                }
            });
        }
    });
    let values = outputs[0].as_slice_mut::<T>();
    for (y, &place) in values.iter_mut().zip(&places) {
        *y = usize::try_from(place).map_or(least, |place| x[place]);
    }
    if let Some(indices) = outputs.get_mut(1) {
        let turned = call.attrs.int(STORAGE_ORDER.name) == 1;
        let indices = indices.as_slice_mut::<i64>();
        for (index, &place) in indices.iter_mut().zip(&places) {
            *index = if turned && place >= 0 { turn(&axes, place as usize) as i64 } else { place };
        }
    }
    Ok(())
}

/// Calls `visit` with the place of each element of a window, in order.
fn for_window([depth, height, width]: &[WindowAxis; 3], index: usize, mut visit: impl FnMut(usize)) {
    let (rest, w) = (index / width.output, index % width.output);
    let (rest, h) = (rest / height.output, rest % height.output);
    let (plane, d) = (rest / depth.output, rest % depth.output);
    for depth_tap in depth.taps(d) {
        let slice = plane * depth.input + depth.position(d, depth_tap);
        for height_tap in height.taps(h) {
            let line = slice * height.input + height.position(h, height_tap);
            for tap in width.taps(w) {
                visit(line * width.input + width.position(w, tap));
            }
        }
    }
}

/// The number of a place whose plane is counted with its first axis fastest.
fn turn([depth, height, width]: &[WindowAxis; 3], place: usize) -> usize {
    let (rest, w) = (place / width.input, place % width.input);
    let (rest, h) = (rest / height.input, rest % height.input);
    let (plane, d) = (rest / depth.input, rest % depth.input);
    ((plane * width.input + w) * height.input + h) * depth.input + d
}

/// GPU form, of maxima of whole numbers too.
pub fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let n = call.output().size() as u64;
    if n == 0 {
        return Ok(());
    }
    let words = pack(call.spec, &three_axes(call)?, n, false)?;
    let arguments = [
        Arg::Ptr(device_operand(call, inputs, 0)?),
        Arg::Ptr(outputs[0].ptr),
        Arg::Ptr(outputs.get(1).map_or(DevicePtr::NULL, |view| view.ptr)),
        Arg::U64(n),
        Arg::U32(call.attrs.int(STORAGE_ORDER.name) as u32),
        Arg::Block(&words),
    ];
    launcher.launch(&format!("maxPoolPlaces_{}", call.dtype().suffix()), linear(n, 256, 1)?, &arguments)
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::Tensor;
    use crate::kernels::find;

    fn run(dims: &[usize], x: &[u8], order: f64) -> (Vec<u8>, Vec<i64>) {
        let x = Tensor::from_slice(DType::U8, dims, x).unwrap();
        let options = [
            ("kernel".to_string(), Raw::List(vec![2.0, 2.0])),
            ("storageOrder".to_string(), Raw::Number(order)),
        ];
        let call = Call::new("maxPool2dWithIndices", vec![Some(x.meta().clone())], &options).unwrap();
        let y = call.run_cpu(&[Some(x)]).unwrap();
        (y[0].host_view().unwrap().as_slice().to_vec(), y[1].host_view().unwrap().as_slice().to_vec())
    }

    #[test]
    fn places_are_those_of_the_whole_tensor() {
        let x = [1, 5, 5, 2, 5, 0, 0, 0, 9, 0, 0, 0];
        assert_eq!(run(&[1, 2, 2, 3], &x, 0.0), (vec![5, 5, 0, 9], vec![1, 1, 6, 8]));
        assert_eq!(run(&[1, 2, 2, 3], &x, 1.0).1, [2, 2, 6, 10]);
    }

    #[test]
    fn every_type_has_its_kernel() {
        for dtype in POOLED {
            assert!(find(&format!("maxPoolPlaces_{}", dtype.suffix()), 75).is_ok());
        }
    }
}
