//! How operands that are broadcast lie beside the result.

use crate::shape::broadcast_strides;

/// An axis of the result with each operand's stride in elements, 0 where it is broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    pub size: usize,
    pub strides: Vec<usize>,
}

/// The result's axes, innermost first: axes of one element left out, neighbours joined that every operand walks (or
/// broadcasts) as one. There is always one, and the innermost one's strides are 0 or 1.
pub fn axes(operands: &[&[usize]], out: &[usize]) -> Vec<Axis> {
    let strides: Vec<Vec<usize>> = operands.iter().map(|dims| broadcast_strides(dims, out)).collect();
    let mut axes: Vec<Axis> = Vec::with_capacity(out.len());
    for index in (0..out.len()).rev().filter(|&index| out[index] != 1) {
        let next = Axis { size: out[index], strides: strides.iter().map(|strides| strides[index]).collect() };
        match axes.last_mut() {
            Some(last) if last.continues(&next) => last.size *= next.size,
            _ => axes.push(next),
        }
    }
    if axes.is_empty() {
        axes.push(Axis { size: 1, strides: vec![1; operands.len()] });
    }
    axes
}

impl Axis {
    fn continues(&self, outer: &Axis) -> bool {
        let mut pairs = self.strides.iter().zip(&outer.strides);
        pairs.all(|(inner, outer)| *outer == inner.saturating_mul(self.size))
    }
}

/// Whether an operand lies as the result does.
pub fn is_whole(axes: &[Axis], operand: usize) -> bool {
    let mut next = 1;
    axes.iter().all(|axis| {
        let fits = axis.strides[operand] == next;
        next *= axis.size;
        fits
    })
}

/// Whether there is but one element of an operand.
pub fn is_single(axes: &[Axis], operand: usize) -> bool {
    axes.iter().all(|axis| axis.strides[operand] == 0)
}

/// Where the operand's element for an element of the result lies.
pub fn locate(axes: &[Axis], operand: usize, mut index: usize) -> usize {
    let mut at = 0;
    for axis in axes {
        at += index % axis.size * axis.strides[operand];
        index /= axis.size;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(size: usize, strides: &[usize]) -> Axis {
        Axis { size, strides: strides.to_vec() }
    }

    #[test]
    fn neighbouring_axes_join_where_all_operands_allow() {
        assert_eq!(axes(&[&[2, 3, 4], &[2, 3, 4], &[]], &[2, 3, 4]), [axis(24, &[1, 1, 0])]);
        let channels = axes(&[&[2, 3, 4, 5], &[3, 1, 1], &[5]], &[2, 3, 4, 5]);
        let wanted = [axis(5, &[1, 0, 1]), axis(4, &[5, 0, 0]), axis(3, &[20, 1, 0]), axis(2, &[60, 0, 0])];
        assert_eq!(channels, wanted);
        assert_eq!(axes(&[&[], &[1]], &[1]), [axis(1, &[1, 1])]);
        assert!(is_whole(&channels, 0) && !is_whole(&channels, 1) && !is_single(&channels, 2));
        assert_eq!(
            (locate(&channels, 0, 119), locate(&channels, 1, 119), locate(&channels, 2, 119)),
            (119, 2, 4)
        );
        assert!(is_single(&axes(&[&[7], &[1]], &[7]), 1));
    }
}
