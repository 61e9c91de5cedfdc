//! Expressions on a GPU: one launch of a kernel that is made for the expression.

use super::expression::Expression;
use super::layout::{Axis, axes, is_single, is_whole};
use crate::Result;
use crate::driver::DevicePtr;
use crate::dtype::DType;
use crate::kernels::fused::{Access, Plan, THREADS, generate, lanes_of, length};
use crate::kernels::{Arg, Launcher, linear, number_arg};
use crate::ops::operands::divisor;

/// Axes that one launch takes.
const LAUNCH_AXES: usize = 8;
/// Steps that are few, whatever they are.
const FEW_STEPS: usize = 16;
/// Lines of a kernel's functions from which on it is long: some 5 s of compiling.
const LONG: usize = 20_000;
/// Most elements with positions of 32 bits: those of the last block stay below 2^32 too.
const NARROW: usize = u32::MAX as usize - (1 << 16);

/// An operand or the result: dims, element type, address.
pub type Array<'a> = (&'a [usize], DType, DevicePtr);

/// Enqueues the expression, whose values are of type `element`, over operands that broadcast to the result. All are of that
/// type or bool.
pub fn enqueue(
    launcher: &Launcher,
    expression: &Expression,
    element: DType,
    operands: &[Array],
    (out_dims, result, out): Array,
) -> Result<()> {
    if out_dims.contains(&0) {
        return Ok(());
    }
    let dims: Vec<&[usize]> = operands.iter().map(|operand| operand.0).collect();
    let types: Vec<DType> = operands.iter().map(|operand| operand.1).collect();
    let pointers: Vec<DevicePtr> = operands.iter().map(|operand| operand.2).collect();
    let pass = Pass { launcher, expression, element, types: &types, result };
    pass.launch(&axes(&dims, out_dims), &pointers, out)
}

struct Pass<'a> {
    launcher: &'a Launcher,
    expression: &'a Expression,
    element: DType,
    types: &'a [DType],
    result: DType,
}

impl Pass<'_> {
    /// A launch over those axes; where there are more than one takes, one for each index of the outermost.
    fn launch(&self, axes: &[Axis], inputs: &[DevicePtr], out: DevicePtr) -> Result<()> {
        if axes.len() <= LAUNCH_AXES {
            return self.launch_once(axes, inputs, out);
        }
        let (outer, inner) = (&axes[axes.len() - 1], &axes[..axes.len() - 1]);
        let length: usize = inner.iter().map(|axis| axis.size).product();
        for index in 0..outer.size {
            let steps = inputs.iter().zip(&outer.strides).zip(self.types);
            let inputs: Vec<DevicePtr> = steps
                .map(|((ptr, stride), dtype)| ptr.offset((index * stride * dtype.size()) as u64))
                .collect();
            self.launch(inner, &inputs, out.offset((index * length * self.result.size()) as u64))?;
        }
        Ok(())
    }

    /// Whether a kernel of several elements a thread would take long to compile.
    fn is_long(&self, lanes: usize) -> Result<bool> {
        let steps = self.expression.steps();
        Ok(steps.len() > FEW_STEPS && length(steps, self.element)? * lanes > LONG)
    }

    fn launch_once(&self, axes: &[Axis], inputs: &[DevicePtr], out: DevicePtr) -> Result<()> {
        let lanes = lanes_of(self.types, self.result);
        let n: usize = axes.iter().map(|axis| axis.size).product();
        let indices = 0..inputs.len();
        let fits = |ptr: DevicePtr, dtype: DType| ptr.0.is_multiple_of((lanes * dtype.size()) as u64);
        let aligned = |index: usize| fits(inputs[index], self.types[index]);
        let long = self.is_long(lanes)?;
        let whole = |index: usize| !is_whole(axes, index) || aligned(index);
        let vectors = !long && fits(out, self.result) && indices.clone().all(whole);
        let accesses: Vec<Access> =
            indices.map(|index| access(axes, index, aligned(index), vectors, lanes)).collect();
        let lanes = if long { 1 } else { lanes };
        let plan = Plan {
            steps: self.expression.steps(),
            element: self.element,
            result: self.result,
            inputs: &accesses,
            types: self.types,
            numbers: self.expression.numbers().len(),
            axes: axes.len(),
            lanes,
            vectors,
            wide: n > NARROW,
            paired: self.launcher.compute_capability() >= 80,
        };
        let mut arguments = vec![Arg::Ptr(out), Arg::U64(n as u64)];
        for axis in &axes[..plan.divided()] {
            arguments.extend([Arg::U64(axis.size as u64), Arg::U64(divisor(axis.size))]);
        }
        for (index, &input) in accesses.iter().enumerate() {
            arguments.push(Arg::Ptr(inputs[index]));
            arguments.extend(plan.strided(input).map(|axis| Arg::U64(axes[axis].strides[index] as u64)));
        }
        arguments.extend(self.expression.numbers().iter().map(|&number| number_arg(self.element, number)));
        let grid = linear(n as u64, THREADS, lanes as u32)?;
        self.launcher.launch_generated(&plan.key(), || generate(&plan), grid, &arguments)
    }
}

/// How a thread reads an operand; `lanes` is the number of its elements, `aligned` whether so many may be read at once.
fn access(axes: &[Axis], input: usize, aligned: bool, vectors: bool, lanes: usize) -> Access {
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
    let aligned = aligned && strides().skip(1).all(|stride| stride.is_multiple_of(lanes));
    if rows_whole && aligned { Access::Rows(mask) } else { Access::Scattered(mask) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dims: &[&[usize]], out: &[usize], ptr: u64) -> Vec<Access> {
        let axes = axes(dims, out);
        let vectors = ptr.is_multiple_of(16);
        (0..dims.len()).map(|index| access(&axes, index, vectors, vectors, 4)).collect()
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
