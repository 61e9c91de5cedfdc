//! A convolution, forward or transposed, in numbers.

use super::super::activation::Activation;
use super::super::geometry::WindowAxis;
use super::super::spec::*;
use super::super::{Attrs, Call};
use super::GROUP;
use crate::cpu::{Math, for_pieces};
use crate::{Result, invalid};

/// Sizes with depth, height and width; axes that the operands do not have are windows of one over one element.
#[derive(Debug, Clone, Copy)]
pub struct Problem {
    /// Images.
    pub images: usize,
    /// Groups.
    pub groups: usize,
    /// Input channels of a group.
    pub group_in: usize,
    /// Output channels of a group.
    pub group_out: usize,
    /// Windows over the side that the kernel slides along: x forward, the result transposed.
    pub axes: [WindowAxis; 3],
}

impl Problem {
    /// The problem over one to three axes.
    pub fn new(
        images: usize,
        groups: usize,
        group_in: usize,
        group_out: usize,
        own: &[WindowAxis],
    ) -> Problem {
        let one = WindowAxis { input: 1, kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0, output: 1 };
        let mut axes = [one; 3];
        axes[3 - own.len()..].copy_from_slice(own);
        Problem { images, groups, group_in, group_out, axes }
    }

    /// Elements of a kernel.
    pub fn taps(&self) -> usize {
        product(self.axes.map(|axis| axis.kernel))
    }

    /// Elements of one channel on the side that the kernel slides along.
    pub fn slid(&self) -> usize {
        product(self.axes.map(|axis| axis.input))
    }

    /// Windows over one channel.
    pub fn windows(&self) -> usize {
        product(self.axes.map(|axis| axis.output))
    }

    /// Whether the kernel is one element that lies on every element in turn.
    pub fn is_pointwise(&self) -> bool {
        self.axes.iter().all(|axis| {
            axis.kernel == 1
                && axis.begin == 0
                && axis.input == axis.output
                && (axis.stride == 1 || axis.output <= 1)
        })
    }
}

/// Sizes beside a 0 may be any.
fn product(sizes: [usize; 3]) -> usize {
    sizes.into_iter().fold(1, usize::saturating_mul)
}

/// The option `group`, which is at least 1.
pub fn groups(spec: &OpSpec, attrs: &Attrs) -> Result<usize> {
    match attrs.int(GROUP.name) {
        group @ 1.. => Ok(group as usize),
        group => invalid!("{}: 'group' must be at least 1, got {group}", spec.name),
    }
}

/// An error unless the bias, if given, holds one element for each of that many filters.
pub fn expect_bias(spec: &OpSpec, inputs: Metas, filters: usize) -> Result<()> {
    match inputs.get(2) {
        Some(Some(bias)) => spec.expect_dims(2, bias, &[filters]),
        _ => Ok(()),
    }
}

/// Adds the bias to planes of the result and applies the activation.
pub fn finish<T: Math>(call: &Call, bias: Option<&[T]>, plane: usize, y: &mut [T]) {
    let activation = Activation::new(&call.attrs);
    if y.is_empty() || (bias.is_none() && activation.is_none()) {
        return;
    }
    for_pieces(y, plane, 1 + activation.cost(), |start, piece| {
        for (index, values) in piece.chunks_mut(plane).enumerate() {
            if let Some(bias) = bias {
                let value = bias[(start / plane + index) % bias.len()];
                values.iter_mut().for_each(|y| *y = *y + value);
            }
            activation.apply(values);
        }
    });
}
