//! Expressions on a GPU: one launch of a kernel made for the expression.

use super::expression::Expression;
use super::layout::{Axis, axes, is_single, is_whole};
use crate::Result;
use crate::driver::DevicePtr;
use crate::kernels::fused::{Access, Plan, THREADS, generate};
use crate::kernels::{Arg, Launcher, float_arg, linear};
use crate::ops::Call;
use crate::ops::operands::{device_operand, divisor};
use crate::tensor::DeviceView;

/// Axes that one launch takes.
const LAUNCH_AXES: usize = 8;
/// Most elements with positions of 32 bits: those of the last block stay below 2^32 too.
const NARROW: usize = u32::MAX as usize - (1 << 16);

pub fn run(
    call: &Call,
    expression: &Expression,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let pointers: Vec<DevicePtr> =
        (0..inputs.len()).map(|index| device_operand(call, inputs, index)).collect::<Result<_>>()?;
    let dims: Vec<&[usize]> = (0..inputs.len()).map(|index| call.input(index).dims.as_slice()).collect();
    launch(call, expression, launcher, &axes(&dims, &call.output().dims), &pointers, outputs[0].ptr)
}

/// A launch over those axes; where there are more than one takes, one for each index of the outermost.
fn launch(
    call: &Call,
    expression: &Expression,
    launcher: &Launcher,
    axes: &[Axis],
    inputs: &[DevicePtr],
    out: DevicePtr,
) -> Result<()> {
    let size = call.dtype().size();
    let n: usize = axes.iter().map(|axis| axis.size).product();
    if axes.len() > LAUNCH_AXES {
        let (outer, inner) = (&axes[axes.len() - 1], &axes[..axes.len() - 1]);
        for index in 0..outer.size {
            let steps = inputs.iter().zip(&outer.strides);
            let inputs: Vec<_> =
                steps.map(|(ptr, stride)| ptr.offset((index * stride * size) as u64)).collect();
            let out = out.offset((index * (n / outer.size) * size) as u64);
            launch(call, expression, launcher, inner, &inputs, out)?;
        }
        return Ok(());
    }
    let vectors = out.0.is_multiple_of(16)
        && (0..inputs.len()).all(|index| !is_whole(axes, index) || inputs[index].0.is_multiple_of(16));
    let accesses: Vec<Access> =
        (0..inputs.len()).map(|index| access(axes, index, inputs[index], vectors, 16 / size)).collect();
    let plan = Plan {
        steps: expression.steps(),
        dtype: call.dtype(),
        inputs: &accesses,
        numbers: expression.numbers().len(),
        axes: axes.len(),
        vectors,
        wide: n > NARROW,
    };
    let mut arguments = vec![Arg::Ptr(out), Arg::U64(n as u64)];
    for axis in &axes[..plan.divided()] {
        arguments.extend([Arg::U64(axis.size as u64), Arg::U64(divisor(axis.size))]);
    }
    for (index, &input) in accesses.iter().enumerate() {
        arguments.push(Arg::Ptr(inputs[index]));
        arguments.extend(plan.strided(input).map(|axis| Arg::U64(axes[axis].strides[index] as u64)));
    }
    arguments.extend(expression.numbers().iter().map(|&number| float_arg(call.dtype(), number)));
    let grid = linear(n as u64, THREADS, plan.elements() as u32)?;
    launcher.launch_generated(&plan.key(), || generate(&plan), grid, &arguments)
}

/// How a thread reads an operand; `lanes` is the number of elements in 16 bytes.
fn access(axes: &[Axis], input: usize, ptr: DevicePtr, vectors: bool, lanes: usize) -> Access {
    if is_whole(axes, input) {
        return Access::Whole;
    }
    if is_single(axes, input) {
        return Access::Single;
    }
    let strides = || axes.iter().map(|axis| axis.strides[input]);
    let mask = strides().enumerate().fold(0, |mask, (axis, stride)| mask | u32::from(stride != 0) << axis);
    let rows_whole = vectors && axes[0].size.is_multiple_of(lanes);
    if rows_whole && mask & 1 == 0 {
        return Access::Columns(mask);
    }
    let aligned = ptr.0.is_multiple_of(16) && strides().skip(1).all(|stride| stride.is_multiple_of(lanes));
    if rows_whole && aligned { Access::Rows(mask) } else { Access::Scattered(mask) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dims: &[&[usize]], out: &[usize], ptr: u64) -> Vec<Access> {
        let axes = axes(dims, out);
        let vectors = ptr.is_multiple_of(16);
        (0..dims.len()).map(|index| access(&axes, index, DevicePtr(ptr), vectors, 4)).collect()
    }

    #[test]
    fn operands_are_read_by_vectors_where_they_can_be() {
        use Access::{Columns, Rows, Scattered, Single, Whole};
        assert_eq!(of(&[&[6, 8], &[8], &[6, 1], &[]], &[6, 8], 256), [Whole, Rows(1), Columns(2), Single]);
        assert_eq!(of(&[&[6, 7], &[7], &[6, 1]], &[6, 7], 256), [Whole, Scattered(1), Scattered(2)]);
        assert_eq!(
            of(&[&[6, 8], &[8], &[6, 1], &[1, 1]], &[6, 8], 4),
            [Whole, Scattered(1), Scattered(2), Single]
        );
        assert_eq!(of(&[&[2, 3, 8], &[3, 1], &[2, 1, 8]], &[2, 3, 8], 0), [Whole, Columns(2), Rows(5)]);
        assert_eq!(of(&[&[9], &[1]], &[9], 16), [Whole, Single]);
    }
}
