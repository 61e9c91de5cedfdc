//! Elementwise arithmetic of two operands with NumPy's broadcasting; on a GPU operands of different dims take the kernels of
//! expressions.

use super::evaluate::layout::{axes, locate};
use super::evaluate::{self, Expression};
use super::operands::{device_operand, host_operand};
use super::spec::*;
use super::unary::THREADS;
use super::{Attrs, Call, FLOATS};
use crate::Result;
use crate::cpu::scalar::{Add, Div, Max, Min, Mul, Pow, Scalar, Sub};
use crate::cpu::{Float, Math, for_pieces};
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, linear};
use crate::shape::broadcast;
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
    let axes = axes(&[&call.input(0).dims, &call.input(1).dims], &call.output().dims);
    let (inner, steps) = (axes[0].size, &axes[0].strides);
    let function = |a: T, b: T| F::of([a, b, T::ZERO], [T::ZERO; 2]);
    for_pieces(outputs[0].as_slice_mut::<T>(), 1, F::COST, |start, piece| {
        let (mut index, mut rest) = (start, piece);
        while !rest.is_empty() {
            let length = (inner - index % inner).min(rest.len());
            let (run, tail) = rest.split_at_mut(length);
            let (at_a, at_b) = (locate(&axes, 0, index), locate(&axes, 1, index));
            join_run(run, (&a[at_a..], steps[0]), (&b[at_b..], steps[1]), &function);
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
    let n = call.output().size() as u64;
    if n == 0 {
        return Ok(());
    }
    if call.input(0).dims != call.input(1).dims {
        return evaluate::enqueue(call, &expression(call.spec.name)?, launcher, inputs, outputs);
    }
    let dtype = call.dtype();
    let grid = linear(n, THREADS, 16 / dtype.size() as u32)?;
    let [a, b] = [device_operand(call, inputs, 0)?, device_operand(call, inputs, 1)?];
    let arguments = [Arg::Ptr(a), Arg::Ptr(b), Arg::Ptr(outputs[0].ptr), Arg::U64(n)];
    launcher.launch(&format!("{}_{}", call.spec.name, dtype.suffix()), grid, &arguments)
}

/// The op as an expression.
fn expression(op: &str) -> Result<Expression> {
    let mut expression = Expression::default();
    let operands = [expression.input(0)?, expression.input(1)?];
    let result = expression.apply(op, &operands, &[])?;
    expression.finish(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find as kernel};

    fn run(op: &str, a: (&[usize], &[f32]), b: (&[usize], &[f32])) -> (Vec<usize>, Vec<f32>) {
        let tensors = [a, b].map(|(dims, data)| Tensor::from_slice(DType::F32, dims, data).unwrap());
        let metas = tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect();
        let call = Call::new(op, metas, &[]).unwrap();
        let outputs = call.run_cpu(&tensors.map(Some)).unwrap();
        (outputs[0].meta().dims.clone(), outputs[0].host_view().unwrap().as_slice::<f32>().to_vec())
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
    fn every_row_has_its_kernels() {
        use Parameter::Word64;
        for (spec, dtype) in OPS.iter().flat_map(|spec| FLOATS.iter().map(move |dtype| (spec, dtype))) {
            let plain = format!("{}_{}", spec.name, dtype.suffix());
            assert_eq!(kernel(&plain, 75).unwrap().1.parameters, [Word64; 4]);
            assert!(expression(spec.name).is_ok());
        }
    }
}
