//! Two arrays walked side by side: what a strided copy is made of.

use crate::ops::operands::divisor;

/// Axes that one launch takes.
pub const LAUNCH_AXES: usize = 8;

/// One axis; strides are in elements and may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Number of elements.
    pub size: usize,
    /// Step in the source.
    pub x: isize,
    /// Step in the target.
    pub y: isize,
}

/// Where a copy reads and writes: offsets in elements and axes, innermost first. There is always an axis, and none has
/// one element while there are others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// First element of the source.
    pub x: usize,
    /// First element of the target.
    pub y: usize,
    /// Axes, innermost first.
    pub axes: Vec<Axis>,
}

impl Walk {
    /// The walk over axes given outermost first. Neighbours that both arrays walk as one are joined.
    pub fn new(x: usize, y: usize, outermost_first: impl DoubleEndedIterator<Item = Axis>) -> Walk {
        let mut axes: Vec<Axis> = Vec::new();
        for next in outermost_first.rev().filter(|axis| axis.size != 1) {
            match axes.last_mut() {
                Some(last) if last.goes_on_with(next) => last.size *= next.size,
                _ => axes.push(next),
            }
        }
        if axes.is_empty() {
            axes.push(Axis { size: 1, x: 1, y: 1 });
        }
        Walk { x, y, axes }
    }

    /// Number of elements.
    pub fn size(&self) -> usize {
        self.axes.iter().map(|axis| axis.size).product()
    }

    /// The place in the source of an element, relative to the first, by its number in the walk.
    pub fn source(&self, mut index: usize) -> isize {
        let mut at = 0;
        for axis in &self.axes {
            at += (index % axis.size) as isize * axis.x;
            index /= axis.size;
        }
        at
    }

    /// Whether the target is written in order, without gaps.
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1;
        self.axes.iter().all(|axis| {
            let follows = axis.y == next;
            next *= axis.size as isize;
            follows
        })
    }

    /// The same walk over units of `of` elements; `None` where they are not whole.
    fn in_units(&self, of: usize) -> Option<Walk> {
        let inner = self.axes[0];
        let whole = |step: isize| step.unsigned_abs().is_multiple_of(of);
        let fits = inner.x == 1
            && inner.y == 1
            && inner.size.is_multiple_of(of)
            && self.axes[1..].iter().all(|axis| whole(axis.x) && whole(axis.y));
        if !fits || !self.x.is_multiple_of(of) || !self.y.is_multiple_of(of) {
            return None;
        }
        let units = |step: isize| step / of as isize;
        let outer =
            self.axes[1..].iter().map(|axis| Axis { size: axis.size, x: units(axis.x), y: units(axis.y) });
        let inner = Axis { size: inner.size / of, x: 1, y: 1 };
        let axes: Vec<Axis> = std::iter::once(inner).chain(outer).collect();
        Some(Walk::new(self.x / of, self.y / of, axes.into_iter().rev()))
    }

    /// The walk over the widest units up to 16 bytes that keep to their alignment at both addresses, and their bytes.
    pub fn widest(&self, bytes: usize, x: u64, y: u64) -> (Walk, usize) {
        let mut unit = 16;
        while unit > bytes {
            let aligned = x.is_multiple_of(unit as u64) && y.is_multiple_of(unit as u64);
            if aligned && let Some(walk) = self.in_units(unit / bytes) {
                return (walk, unit);
            }
            unit /= 2;
        }
        (self.clone(), bytes)
    }
}

impl Axis {
    fn goes_on_with(&self, outer: Axis) -> bool {
        outer.x == self.x * self.size as isize && outer.y == self.y * self.size as isize
    }
}

/// `struct WwWalk` of kernels/common/walk.cuh; no more than [`LAUNCH_AXES`].
pub fn pack(axes: &[Axis], contiguous: bool) -> Vec<u32> {
    let mut words = vec![axes.len().max(1) as u32, u32::from(contiguous)];
    let fields: [fn(&Axis) -> u64; 4] =
        [|axis| axis.size as u64, |axis| divisor(axis.size), |axis| axis.x as u64, |axis| axis.y as u64];
    for (field, of_none) in fields.into_iter().zip([1, u64::MAX, 0, 0]) {
        for index in 0..LAUNCH_AXES {
            let value = axes.get(index).map_or(of_none, field);
            words.extend([value as u32, (value >> 32) as u32]);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(axes: &[(usize, isize, isize)]) -> Walk {
        Walk::new(0, 0, axes.iter().map(|&(size, x, y)| Axis { size, x, y }))
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(walk(&[(2, 12, 12), (3, 4, 4), (4, 1, 1)]).axes, [Axis { size: 24, x: 1, y: 1 }]);
        let transposed = walk(&[(4, 1, 6), (1, 9, 9), (2, 12, 3), (3, 4, 1)]);
        assert_eq!(transposed.axes, [Axis { size: 6, x: 4, y: 1 }, Axis { size: 4, x: 1, y: 6 }]);
        assert!(transposed.is_contiguous());
        assert_eq!(walk(&[(1, 7, 7)]).axes, [Axis { size: 1, x: 1, y: 1 }]);
        assert_eq!(walk(&[(3, -2, 1)]).source(2), -4);
    }

    #[test]
    fn units_are_as_wide_as_strides_and_addresses_allow() {
        let rows = walk(&[(5, 24, 8), (8, 1, 1)]);
        assert_eq!(rows.widest(4, 256, 512).1, 16);
        assert_eq!(
            rows.widest(4, 256, 512).0.axes,
            [Axis { size: 2, x: 1, y: 1 }, Axis { size: 5, x: 6, y: 2 }]
        );
        assert_eq!(rows.widest(4, 264, 512).1, 8);
        assert_eq!(rows.widest(4, 260, 512).1, 4);
        assert_eq!(rows.widest(2, 2, 512).1, 2);
        assert_eq!(walk(&[(5, 22, 8), (8, 1, 1)]).widest(4, 0, 0).1, 8);
        // A unit that swallows the innermost axis leaves a transpose of units.
        let pairs = walk(&[(7, 2, 10), (5, 14, 2), (2, 1, 1)]);
        assert_eq!(pairs.widest(4, 0, 0), (walk(&[(7, 1, 5), (5, 7, 1)]), 8));
    }
}
