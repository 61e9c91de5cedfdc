//! `where`: elements of one operand or of another, moved as they are.

use super::elements::for_runs;
use super::evaluate::layout::axes;
use super::evaluate::{Expression, enqueue_as};
use super::layout::cpu::for_unit;
use super::operands::host_operand;
use super::spec::*;
use super::{Call, TYPES};
use crate::kernels::Launcher;
use crate::shape::broadcast;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result};
use bytemuck::Pod;

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "where",
    operands: &[condition("condition"), required("a"), required("b")],
    attributes: &[],
    dtypes: TYPES,
    results: Results::One,
    shape: |spec, inputs, _| {
        let [condition, a, b] =
            [spec.operand(inputs, 0)?, spec.operand(inputs, 1)?, spec.operand(inputs, 2)?];
        let dims = broadcast(spec.name, &a.dims, &b.dims)?;
        Ok(vec![Meta::new(a.dtype, broadcast(spec.name, &condition.dims, &dims)?)])
    },
    cpu,
    cuda,
    tolerance: Tolerance::Exact,
    doc: "a where the condition holds, else b, with broadcasting of all three (ONNX Where).",
}];

fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    for_unit!(call.dtype().size(), choose(call, inputs, outputs))
}

fn choose<T: Pod + Send + Sync>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let conditions = host_operand::<u8>(call, inputs, 0)?;
    let (a, b) = (host_operand::<T>(call, inputs, 1)?, host_operand::<T>(call, inputs, 2)?);
    let dims = [0, 1, 2].map(|index| call.input(index).dims.as_slice());
    let axes = axes(&dims, &call.output().dims);
    let steps = &axes[0].strides;
    for_runs(&axes, outputs[0].as_slice_mut::<T>(), 1, |run, [at, at_a, at_b]| {
        let (a, b) = ((&a[at_a..], steps[1]), (&b[at_b..], steps[2]));
        if steps[0] == 0 {
            copy_run(run, if conditions[at] != 0 { a } else { b });
        } else {
            choose_run(run, &conditions[at..], a, b);
        }
    });
    Ok(())
}

fn copy_run<T: Copy>(out: &mut [T], (x, step): (&[T], usize)) {
    if step == 0 {
        out.fill(x[0]);
    } else {
        out.copy_from_slice(&x[..out.len()]);
    }
}

/// One run with a condition for each element; both operands with their strides of 0 or 1.
fn choose_run<T: Copy>(
    out: &mut [T],
    conditions: &[u8],
    (a, step_a): (&[T], usize),
    (b, step_b): (&[T], usize),
) {
    let pick = |condition: u8, a: T, b: T| if condition != 0 { a } else { b };
    let targets = out.iter_mut().zip(conditions);
    match (step_a, step_b) {
        (0, 0) => {
            let (a, b) = (a[0], b[0]);
            targets.for_each(|(y, &condition)| *y = pick(condition, a, b));
        }
        (0, _) => {
            let a = a[0];
            targets.zip(b).for_each(|((y, &condition), &b)| *y = pick(condition, a, b));
        }
        (_, 0) => {
            let b = b[0];
            targets.zip(a).for_each(|((y, &condition), &a)| *y = pick(condition, a, b));
        }
        _ => targets.zip(a).zip(b).for_each(|(((y, &condition), &a), &b)| *y = pick(condition, a, b)),
    }
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let expression = Expression::of_function("where", 3, &[]);
    let bits = call.dtype().of_bits();
    enqueue_as(call, (bits, &[DType::Bool, bits, bits], bits), &expression, launcher, inputs, outputs)
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;
    use crate::Tensor;

    fn run(dims: [&[usize]; 3], condition: &[u8], a: &[i64], b: &[i64]) -> (Vec<usize>, Vec<i64>) {
        let tensors = [
            Tensor::from_slice(DType::Bool, dims[0], condition).unwrap(),
            Tensor::from_slice(DType::I64, dims[1], a).unwrap(),
            Tensor::from_slice(DType::I64, dims[2], b).unwrap(),
        ];
        let metas = tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect();
        let call = Call::new("where", metas, &[]).unwrap();
        let outputs = call.run_cpu(&tensors.map(Some)).unwrap();
        (outputs[0].meta().dims.clone(), outputs[0].host_view().unwrap().as_slice::<i64>().to_vec())
    }

    #[test]
    fn three_operands_broadcast() {
        assert_eq!(run([&[3], &[3], &[3]], &[1, 0, 2], &[1, 2, 3], &[4, 5, 6]).1, [1, 5, 3]);
        let got = run([&[2, 1], &[3], &[]], &[0, 1], &[1, 2, 3], &[9]);
        assert_eq!(got, (vec![2, 3], vec![9, 9, 9, 1, 2, 3]));
        assert_eq!(run([&[3], &[], &[2, 1]], &[0, 1, 0], &[7], &[1, 2]).1, [1, 7, 1, 2, 7, 2]);
        assert_eq!(run([&[], &[], &[]], &[0], &[i64::MIN], &[i64::MAX]), (vec![], vec![i64::MAX]));
        assert_eq!(run([&[0], &[1], &[1]], &[], &[1], &[2]), (vec![0], vec![]));
        assert!(find("where").unwrap().operands[0].dtypes == [DType::Bool]);
    }

    #[test]
    fn conditions_are_bool() {
        let metas = [DType::U8, DType::F32, DType::F32].map(|dtype| Some(Meta::new(dtype, [1])));
        let error = Call::new("where", metas.to_vec(), &[]).unwrap_err();
        assert_eq!(error.code(), "UNSUPPORTED_DTYPE");
        assert!(error.to_string().contains("'condition' must be one of bool, got uint8"), "{error}");
    }
}
