//! Forms that the elementwise families share: loops over one operand, or over two with broadcasting, run by run along the
//! innermost axis; launches of one function.

use super::evaluate::layout::{Axis, axes, locate};
use super::evaluate::{self, Expression};
use super::operands::host_operand;
use super::{Call, halves};
use crate::cpu::scalar::{Scalar, block};
use crate::cpu::whole::{Whole, WholeScalar, for_whole};
use crate::cpu::{Math, for_pieces};
use crate::kernels::Launcher;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result};
use bytemuck::Pod;

/// Calls `work` for each run of the result along the innermost axis, with the place of each operand's first element.
pub fn for_runs<Y: Send, const N: usize>(
    axes: &[Axis],
    out: &mut [Y],
    cost: usize,
    work: impl Fn(&mut [Y], [usize; N]) + Send + Sync,
) {
    let inner = axes[0].size;
    for_pieces(out, 1, cost, |start, piece| {
        let (mut index, mut rest) = (start, piece);
        while !rest.is_empty() {
            let length = (inner - index % inner).min(rest.len());
            let (run, tail) = rest.split_at_mut(length);
            work(run, std::array::from_fn(|operand| locate(axes, operand, index)));
            index += length;
            rest = tail;
        }
    });
}

/// A function of each element.
pub fn map<X: Pod + Sync, Y: Pod + Send>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    cost: usize,
    function: impl Fn(X) -> Y + Send + Sync,
) -> Result<()> {
    let x = host_operand::<X>(call, inputs, 0)?;
    for_pieces(outputs[0].as_slice_mut::<Y>(), 1, cost, |start, piece| {
        piece.iter_mut().zip(&x[start..]).for_each(|(y, &x)| *y = function(x));
    });
    Ok(())
}

/// A function of each pair of elements.
pub fn join<X: Pod + Sync, Y: Pod + Send>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    cost: usize,
    function: impl Fn(X, X) -> Y + Send + Sync,
) -> Result<()> {
    let (a, b) = (host_operand::<X>(call, inputs, 0)?, host_operand::<X>(call, inputs, 1)?);
    let axes = axes(&[&call.input(0).dims, &call.input(1).dims], &call.output().dims);
    let steps = &axes[0].strides;
    for_runs(&axes, outputs[0].as_slice_mut::<Y>(), cost, |run, [at_a, at_b]| {
        join_run(run, (&a[at_a..], steps[0]), (&b[at_b..], steps[1]), &function);
    });
    Ok(())
}

/// One run; each operand with its stride of 0 or 1.
fn join_run<X: Copy, Y: Copy>(
    out: &mut [Y],
    (a, step_a): (&[X], usize),
    (b, step_b): (&[X], usize),
    function: &impl Fn(X, X) -> Y,
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

type Inputs<'a, 'b> = &'a [Option<HostView<'b>>];
type Outputs<'a, 'b> = &'a mut [HostViewMut<'b>];

/// A function of one operand of floats, with up to two numbers.
pub fn map_floats<F: Scalar, T: Math>(
    call: &Call,
    inputs: Inputs,
    outputs: Outputs,
    numbers: [f64; 2],
) -> Result<()> {
    let numbers = numbers.map(T::from_f64);
    let x = host_operand::<T>(call, inputs, 0)?;
    for_pieces(outputs[0].as_slice_mut::<T>(), 1, F::COST, |start, piece| {
        block::<F, T>(piece, [&x[start..], &[], &[]], numbers);
    });
    Ok(())
}

/// The same of whole numbers.
pub fn map_wholes<F: WholeScalar, T: Whole>(
    call: &Call,
    inputs: Inputs,
    outputs: Outputs,
    numbers: [f64; 2],
) -> Result<()> {
    let numbers = numbers.map(T::from_f64);
    map(call, inputs, outputs, F::COST, |x: T| F::whole([x, T::ZERO, T::ZERO], numbers))
}

fn join_floats<F: Scalar, T: Math>(call: &Call, inputs: Inputs, outputs: Outputs) -> Result<()> {
    join(call, inputs, outputs, F::COST, |a: T, b: T| F::of([a, b, T::ZERO], [T::ZERO; 2]))
}

fn join_wholes<F: WholeScalar, T: Whole>(call: &Call, inputs: Inputs, outputs: Outputs) -> Result<()> {
    join(call, inputs, outputs, F::COST, |a: T, b: T| F::whole([a, b, T::ZERO], [T::ZERO; 2]))
}

/// CPU form of two operands of floats.
pub fn join_of_floats<F: Scalar>(call: &Call, inputs: Inputs, outputs: Outputs) -> Result<()> {
    match call.dtype() {
        DType::F64 => join_floats::<F, f64>(call, inputs, outputs),
        DType::F32 => join_floats::<F, f32>(call, inputs, outputs),
        _ => halves::around(call, inputs, outputs, join_of_floats::<F>),
    }
}

/// CPU form of two operands of whole numbers.
pub fn join_of_wholes<F: WholeScalar>(call: &Call, inputs: Inputs, outputs: Outputs) -> Result<()> {
    for_whole!(call.dtype(), join_wholes::<F>(call, inputs, outputs))
}

/// CPU form of two operands of numbers.
pub fn join_of_numbers<F: Scalar + WholeScalar>(call: &Call, inputs: Inputs, outputs: Outputs) -> Result<()> {
    if call.dtype().is_float() {
        join_of_floats::<F>(call, inputs, outputs)
    } else {
        join_of_wholes::<F>(call, inputs, outputs)
    }
}

fn test_floats<F: Scalar, T: Math>(call: &Call, inputs: Inputs, outputs: Outputs) -> Result<()> {
    let holds = |a: T, b: T| u8::from(F::of([a, b, T::ZERO], [T::ZERO; 2]) != T::ZERO);
    join(call, inputs, outputs, F::COST, holds)
}

fn test_wholes<F: WholeScalar, T: Whole>(call: &Call, inputs: Inputs, outputs: Outputs) -> Result<()> {
    let holds = |a: T, b: T| u8::from(F::whole([a, b, T::ZERO], [T::ZERO; 2]) != T::ZERO);
    join(call, inputs, outputs, F::COST, holds)
}

/// CPU form of a condition on two operands, whose result is bool.
pub fn test<F: Scalar + WholeScalar>(call: &Call, inputs: Inputs, outputs: Outputs) -> Result<()> {
    match call.dtype() {
        DType::F64 => test_floats::<F, f64>(call, inputs, outputs),
        DType::F32 => test_floats::<F, f32>(call, inputs, outputs),
        DType::F16 | DType::Bf16 => halves::around(call, inputs, outputs, test::<F>),
        // Whatever is not 0 is true.
        DType::Bool => {
            join(call, inputs, outputs, 1, |a: u8, b: u8| F::whole([a.min(1), b.min(1), 0], [0; 2]))
        }
        dtype => for_whole!(dtype, test_wholes::<F>(call, inputs, outputs)),
    }
}

/// Enqueues a kernel of one device function of the call's operands, then of numbers.
pub fn enqueue(
    call: &Call,
    (function, numbers): (&'static str, &[f64]),
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let expression = Expression::of_function(function, inputs.len(), numbers);
    evaluate::enqueue(call, &expression, launcher, inputs, outputs)
}

/// GPU form of an op whose function has its name and takes no numbers.
pub fn enqueue_named(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    enqueue(call, (call.spec.name, &[]), launcher, inputs, outputs)
}
