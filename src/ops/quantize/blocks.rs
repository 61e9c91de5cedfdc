//! Which scale and zero point an element has: one for all, one for each place along an axis, or one for each block along it.

use super::super::spec::{Meta, OpSpec};
use crate::shape::{normalize_axis, size_of};
use crate::{Result, invalid, mismatch};
use std::ops::Range;

/// x as [outer, length, inner]; the element at [o, a, i] has the scale at o * outer_step + a / block * step + i * inner_step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    pub length: usize,
    pub inner: usize,
    pub block: usize,
    pub outer_step: usize,
    pub step: usize,
    pub inner_step: usize,
}

/// Scales of neighbouring elements.
#[derive(Debug, PartialEq, Eq)]
pub enum Run {
    /// All have this one.
    One(usize),
    /// They have their own, from this one on.
    From(usize),
}

impl Blocks {
    /// One scale for all.
    pub const WHOLE: Blocks = Blocks { length: 1, inner: 1, block: 1, outer_step: 0, step: 0, inner_step: 0 };

    /// The places of the scales that an operand of those dims holds for x.
    pub fn new(
        spec: &OpSpec,
        x: &[usize],
        axis: i64,
        block: i64,
        index: usize,
        scale: &Meta,
    ) -> Result<Blocks> {
        if block < 0 {
            return invalid!("{}: 'blockSize' must be 0 or more, got {block}", spec.name);
        }
        if block == 0 && (scale.dims.is_empty() || scale.dims == [1]) {
            return Ok(Blocks::WHOLE);
        }
        let axis = normalize_axis(spec.name, axis, x.len())?;
        let (length, inner) = (x[axis], size_of(&x[axis + 1..]));
        if block == 0 {
            spec.expect_dims(index, scale, &[length])?;
            return Ok(Blocks { length, inner, block: 1, outer_step: 0, step: 1, inner_step: 0 });
        }
        let block = block as usize;
        let mut dims = x.to_vec();
        dims[axis] = length.div_ceil(block);
        let outer_step = dims[axis] * inner;
        if scale.dims != dims {
            let name = spec.operands[index].name;
            return mismatch!(
                "{}: '{name}' must have dims {dims:?} for blocks of {block} along axis {axis} of {x:?}, got {:?}",
                spec.name,
                scale.dims
            );
        }
        Ok(Blocks { length, inner, block, outer_step, step: inner, inner_step: 1 })
    }

    fn is_whole(&self) -> bool {
        self.outer_step + self.step + self.inner_step == 0
    }

    /// Calls `work` with stretches of `range` and their scales.
    pub fn for_runs(&self, range: Range<usize>, mut work: impl FnMut(Range<usize>, Run)) {
        let mut at = range.start;
        while at < range.end {
            let (length, run) = self.run(at);
            let end = range.end.min(at.saturating_add(length));
            work(at..end, run);
            at = end;
        }
    }

    /// How many elements from one on have scales that lie alike, and those scales.
    fn run(&self, at: usize) -> (usize, Run) {
        if self.is_whole() {
            return (usize::MAX, Run::One(0));
        }
        let (row, i) = (at / self.inner, at % self.inner);
        let (o, a) = (row / self.length, row % self.length);
        let scale = o * self.outer_step + a / self.block * self.step + i * self.inner_step;
        match (self.inner, self.block) {
            (1, 1) if self.step == 1 => (self.length - a, Run::From(scale)),
            (1, block) => ((block - a % block).min(self.length - a), Run::One(scale)),
            (inner, _) if self.inner_step == 0 => (inner - i, Run::One(scale)),
            (inner, _) => (inner - i, Run::From(scale)),
        }
    }

    /// `struct Blocks` of kernels/quantize.cu.
    pub fn words(&self) -> Vec<u32> {
        let Blocks { length, inner, block, outer_step, step, inner_step } = *self;
        let sizes = [length.max(1), inner.max(1), block, outer_step, step, inner_step];
        sizes.into_iter().flat_map(|size| [size as u32, (size as u64 >> 32) as u32]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_a_range_and_name_each_elements_scale() {
        let all = [
            Blocks::WHOLE,
            Blocks { length: 5, inner: 3, block: 1, outer_step: 0, step: 1, inner_step: 0 },
            Blocks { length: 5, inner: 1, block: 1, outer_step: 0, step: 1, inner_step: 0 },
            Blocks { length: 5, inner: 1, block: 2, outer_step: 3, step: 1, inner_step: 1 },
            Blocks { length: 5, inner: 3, block: 2, outer_step: 9, step: 3, inner_step: 1 },
            Blocks { length: 5, inner: 3, block: 1, outer_step: 3, step: 0, inner_step: 1 },
        ];
        for blocks in all {
            let mut next = 2;
            blocks.for_runs(2..28, |range, run| {
                assert_eq!(range.start, next);
                next = range.end;
                for at in range.clone() {
                    let (row, i) = (at / blocks.inner, at % blocks.inner);
                    let (o, a) = (row / blocks.length, row % blocks.length);
                    let want = o * blocks.outer_step + a / blocks.block * blocks.step + i * blocks.inner_step;
                    let got = match run {
                        Run::One(scale) => scale,
                        Run::From(scale) => scale + at - range.start,
                    };
                    assert_eq!(got, want, "{blocks:?} at {at}");
                }
            });
            assert_eq!(next, 28);
        }
    }
}
