//! Elementwise arithmetic of two operands with NumPy's broadcasting.

use super::operands::{device_operand, divisor, host_operand};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::Result;
use crate::cpu::scalar::{Add, Div, Max, Min, Mul, Pow, Scalar, Sub};
use crate::cpu::{Float, Math, for_pieces};
use crate::driver::DevicePtr;
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, linear};
use crate::shape::{broadcast, broadcast_strides};
use crate::tensor::{DeviceView, HostView, HostViewMut};

const AB: &[Operand] = &[required("a"), required("b")];

const fn row<F: Scalar>(tolerance: Tolerance, doc: &'static str) -> OpSpec {
    let (results, cpu) = (Results::One, join::<F> as CpuForm);
    OpSpec {
        name: F::NAME,
        operands: AB,
        attributes: &[],
        dtypes: FLOATS,
        results,
        shape,
        cpu,
        cuda,
        tolerance,
        doc,
    }
}

use Tolerance::{Exact, Function, Rounded};

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    row::<Add>(Rounded, "a + b with broadcasting (ONNX Add)."),
    row::<Sub>(Rounded, "a - b with broadcasting (ONNX Sub)."),
    row::<Mul>(Rounded, "a * b with broadcasting (ONNX Mul)."),
    row::<Div>(Rounded, "a / b with broadcasting (ONNX Div)."),
    row::<Pow>(Function, "a to the power b with broadcasting (ONNX Pow)."),
    row::<Max>(Exact, "The larger of a and b with broadcasting; NaN where either is (ONNX Max)."),
    row::<Min>(Exact, "The smaller of a and b with broadcasting; NaN where either is (ONNX Min)."),
];

fn shape(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    let (a, b) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    Ok(vec![Meta::new(a.dtype, broadcast(spec.name, &a.dims, &b.dims)?)])
}

/// One axis of the output after collapsing; strides are in elements, 0 where an operand is broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    a: usize,
    b: usize,
}

/// The output's axes, innermost first: axes of one element left out, neighbours joined that both operands walk (or
/// broadcast) as one. There is always one; the innermost one's strides are 0 or 1.
fn collapse(a: &[usize], b: &[usize], out: &[usize]) -> Vec<Axis> {
    let (a, b) = (broadcast_strides(a, out), broadcast_strides(b, out));
    let mut axes: Vec<Axis> = Vec::with_capacity(out.len());
    for index in (0..out.len()).rev().filter(|&index| out[index] != 1) {
        let next = Axis { size: out[index], a: a[index], b: b[index] };
        match axes.last_mut() {
            Some(last) if next.a == last.a * last.size && next.b == last.b * last.size => {
                last.size *= next.size;
            }
            _ => axes.push(next),
        }
    }
    if axes.is_empty() {
        axes.push(Axis { size: 1, a: 1, b: 1 });
    }
    axes
}

fn axes_of(call: &Call) -> Vec<Axis> {
    collapse(&call.input(0).dims, &call.input(1).dims, &call.output().dims)
}

/// Where an output element's operands lie.
fn locate(axes: &[Axis], mut index: usize) -> (usize, usize) {
    let (mut a, mut b) = (0, 0);
    for axis in axes {
        a += index % axis.size * axis.a;
        b += index % axis.size * axis.b;
        index /= axis.size;
    }
    (a, b)
}

fn join<F: Scalar>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => join_elements::<F, f64>(call, inputs, outputs),
        _ => join_elements::<F, f32>(call, inputs, outputs),
    }
}

fn join_elements<F: Scalar, T: Math>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let (a, b) = (host_operand::<T>(call, inputs, 0)?, host_operand::<T>(call, inputs, 1)?);
    let axes = axes_of(call);
    let inner = axes[0];
    let function = |a: T, b: T| F::of([a, b, T::ZERO], [T::ZERO; 2]);
    for_pieces(outputs[0].as_slice_mut::<T>(), 1, F::COST, |start, piece| {
        let (mut index, mut rest) = (start, piece);
        while !rest.is_empty() {
            let length = (inner.size - index % inner.size).min(rest.len());
            let (run, tail) = rest.split_at_mut(length);
            let (at_a, at_b) = locate(&axes, index);
            join_run(run, (&a[at_a..], inner.a), (&b[at_b..], inner.b), &function);
            index += length;
            rest = tail;
        }
    });
    Ok(())
}

/// One run along the innermost axis; each operand with its stride of 0 or 1.
fn join_run<T: Float>(
    out: &mut [T],
    (a, step_a): (&[T], usize),
    (b, step_b): (&[T], usize),
    function: &impl Fn(T, T) -> T,
) {
    match (step_a, step_b) {
        (0, 0) => out.fill(function(a[0], b[0])),
        (0, _) => {
            let a = a[0];
            out.iter_mut().zip(b).for_each(|(y, &b)| *y = function(a, b));
        }
        (_, 0) => {
            let b = b[0];
            out.iter_mut().zip(a).for_each(|(y, &a)| *y = function(a, b));
        }
        _ => out.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| *y = function(a, b)),
    }
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let pointers = [device_operand(call, inputs, 0)?, device_operand(call, inputs, 1)?, outputs[0].ptr];
    launch(call, launcher, &axes_of(call), pointers)
}

/// Axes that one launch takes.
const LAUNCH_AXES: usize = 8;

/// Launches over those axes; where there are more than a launch takes, one launch per index of the outermost.
fn launch(call: &Call, launcher: &Launcher, axes: &[Axis], [a, b, y]: [DevicePtr; 3]) -> Result<()> {
    let dtype = call.dtype();
    let n: usize = axes.iter().map(|axis| axis.size).product();
    if axes.len() > LAUNCH_AXES {
        let (outer, inner) = (axes[axes.len() - 1], &axes[..axes.len() - 1]);
        let bytes = |elements: usize| (elements * dtype.size()) as u64;
        for index in 0..outer.size {
            let at = [
                a.offset(bytes(index * outer.a)),
                b.offset(bytes(index * outer.b)),
                y.offset(bytes(index * (n / outer.size))),
            ];
            launch(call, launcher, inner, at)?;
        }
        return Ok(());
    }
    let kernel = format!("{}_{}", call.spec.name, dtype.suffix());
    let grid = linear(n as u64, 256, 16 / dtype.size() as u32)?;
    let pointers = [Arg::Ptr(a), Arg::Ptr(b), Arg::Ptr(y), Arg::U64(n as u64)];
    if axes.len() == 1 && axes[0].a == 1 && axes[0].b == 1 {
        return launcher.launch(&kernel, grid, &pointers);
    }
    let words = pack(axes, 16 / dtype.size());
    let [a, b, y, n] = pointers;
    launcher.launch(&format!("{kernel}_broadcast"), grid, &[a, b, y, n, Arg::Block(&words)])
}

/// `struct Broadcast` of kernels/broadcast.cu; `vector` is the number of elements in 16 bytes.
fn pack(axes: &[Axis], vector: usize) -> Vec<u32> {
    let whole = |stride: fn(&Axis) -> usize| {
        stride(&axes[0]) == 0 || axes[1..].iter().all(|axis| stride(axis).is_multiple_of(vector))
    };
    let rows_whole = axes.len() == 1 || axes[0].size.is_multiple_of(vector);
    let vectors = rows_whole && whole(|axis| axis.a) && whole(|axis| axis.b);
    let mut words = vec![axes.len() as u32, u32::from(vectors)];
    let fields: [fn(&Axis) -> u64; 4] =
        [|axis| axis.size as u64, |axis| divisor(axis.size), |axis| axis.a as u64, |axis| axis.b as u64];
    for field in fields {
        for index in 0..LAUNCH_AXES {
            let value = axes.get(index).map_or(0, field);
            words.extend([value as u32, (value >> 32) as u32]);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find as kernel};

    fn axis(size: usize, a: usize, b: usize) -> Axis {
        Axis { size, a, b }
    }

    fn run(op: &str, a: (&[usize], &[f32]), b: (&[usize], &[f32])) -> (Vec<usize>, Vec<f32>) {
        let tensors = [a, b].map(|(dims, data)| Tensor::from_slice(DType::F32, dims, data).unwrap());
        let metas = tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect();
        let call = Call::new(op, metas, &[]).unwrap();
        let outputs = call.run_cpu(&tensors.map(Some)).unwrap();
        (outputs[0].meta().dims.clone(), outputs[0].host_view().unwrap().as_slice::<f32>().to_vec())
    }

    #[test]
    fn neighbouring_axes_collapse() {
        assert_eq!(collapse(&[2, 3, 4], &[2, 3, 4], &[2, 3, 4]), [axis(24, 1, 1)]);
        assert_eq!(collapse(&[2, 3, 4], &[], &[2, 3, 4]), [axis(24, 1, 0)]);
        assert_eq!(collapse(&[], &[], &[]), [axis(1, 1, 1)]);
        assert_eq!(collapse(&[1, 1], &[1, 5], &[1, 5]), [axis(5, 0, 1)]);
        assert_eq!(
            collapse(&[2, 3, 4, 5], &[1, 3, 1, 1], &[2, 3, 4, 5]),
            [axis(20, 1, 0), axis(3, 20, 1), axis(2, 60, 0)]
        );
        assert_eq!(collapse(&[7, 1, 5], &[7, 1, 1], &[7, 1, 5]), [axis(5, 1, 0), axis(7, 5, 1)]);
    }

    #[test]
    fn broadcasts_as_numpy() {
        let got = run("sub", (&[3, 1], &[10.0, 20.0, 30.0]), (&[2], &[1.0, 2.0]));
        assert_eq!(got, (vec![3, 2], vec![9.0, 8.0, 19.0, 18.0, 29.0, 28.0]));
        assert_eq!(run("add", (&[0], &[]), (&[1], &[1.0])), (vec![0], vec![]));
        assert_eq!(run("div", (&[], &[1.0]), (&[], &[4.0])), (vec![], vec![0.25]));
        let nan = run("max", (&[2], &[f32::NAN, 1.0]), (&[2], &[1.0, f32::NAN])).1;
        assert!(nan.iter().all(|value| value.is_nan()));
    }

    #[test]
    fn pieces_may_begin_inside_a_run() {
        let rows = 7;
        let columns = 10_007;
        let a: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..rows).map(|i| i as f32).collect();
        let got = run("add", (&[rows, columns], &a), (&[rows, 1], &b)).1;
        assert!(got.iter().enumerate().all(|(i, &y)| y == a[i] + b[i / columns]));
    }

    #[test]
    fn vectors_need_whole_rows() {
        let vectors = |axes: &[Axis]| pack(axes, 4)[1] == 1;
        assert!(vectors(&[axis(5, 1, 0)]));
        assert!(vectors(&[axis(8, 1, 0), axis(3, 8, 1)]));
        assert!(!vectors(&[axis(6, 1, 0), axis(3, 6, 1)]));
        assert!(!vectors(&[axis(8, 1, 1), axis(3, 8, 0), axis(2, 0, 6)]));
        assert!(vectors(&[axis(8, 0, 1), axis(3, 1, 0)]));
    }

    #[test]
    fn every_row_has_its_kernels() {
        use Parameter::{Block, Word64};
        let block = Block(pack(&[axis(1, 1, 1)], 4).len() * 4);
        for (spec, dtype) in OPS.iter().flat_map(|spec| FLOATS.iter().map(move |dtype| (spec, dtype))) {
            let plain = format!("{}_{}", spec.name, dtype.suffix());
            assert_eq!(kernel(&plain, 75).unwrap().1.parameters, [Word64; 4]);
            let (_, entry) = kernel(&format!("{plain}_broadcast"), 75).unwrap();
            assert_eq!(entry.parameters, [Word64, Word64, Word64, Word64, block], "{}", spec.name);
        }
    }
}
