//! Where the terms of a window lie once the input is copied so that all windows see them at the same distances.

use crate::ops::geometry::WindowAxis;
use std::ops::Range;

/// One spatial axis: its taps by the residue of their place by the stride. Elements of one residue lie side by side in a
/// copy, so that neighbouring windows read neighbours whatever the stride.
#[derive(Debug, Clone)]
pub struct Steps {
    axis: WindowAxis,
    /// Residues that taps have.
    residues: Vec<usize>,
    /// For each tap the place of its residue among those, and how many elements of it lie before.
    taps: Vec<(usize, usize)>,
    /// Elements that the last window of a range reads beyond its own place.
    beyond: usize,
}

impl Steps {
    /// Of an axis.
    pub fn new(axis: WindowAxis) -> Steps {
        let places = (0..axis.kernel).map(|tap| tap * axis.dilation);
        let mut residues: Vec<usize> = places.clone().map(|place| place % axis.stride).collect();
        residues.sort_unstable();
        residues.dedup();
        let at = |residue| residues.binary_search(&residue).unwrap_or(0);
        let taps: Vec<_> = places.map(|place| (at(place % axis.stride), place / axis.stride)).collect();
        let beyond = taps.iter().map(|&(_, before)| before).max().unwrap_or(0);
        Steps { axis, residues, taps, beyond }
    }

    /// Elements of one residue that windows of so large a range see.
    pub fn seen(&self, windows: usize) -> usize {
        windows + self.beyond
    }

    /// Elements of all residues that windows of so large a range see.
    pub fn all_seen(&self, windows: usize) -> usize {
        self.residues.len() * self.seen(windows)
    }

    /// Number of residues.
    pub fn residues(&self) -> usize {
        self.residues.len()
    }

    /// Windows along the axis.
    pub fn windows(&self) -> usize {
        self.axis.output
    }

    /// The input's element under the first tap of that residue of a window that begins within it.
    fn begin(&self, window: usize, residue: usize) -> usize {
        (window * self.axis.stride + self.residues[residue]).saturating_sub(self.axis.begin)
    }

    /// The input's element under the first tap of that residue of a window, if it lies in the input.
    fn place(&self, window: usize, residue: usize) -> Option<usize> {
        let padded = window * self.axis.stride + self.residues[residue];
        padded.checked_sub(self.axis.begin).filter(|&place| place < self.axis.input)
    }
}

/// Where each tap's line begins in a copy of one channel, for a range of so many lines and columns.
pub fn tap_offsets(lines: &Steps, columns: &Steps, range: [usize; 2]) -> Vec<usize> {
    let (height, pitch) = (lines.seen(range[0]), columns.seen(range[1]));
    let mut offsets = Vec::with_capacity(lines.taps.len() * columns.taps.len());
    for &(residue_h, before_h) in &lines.taps {
        for &(residue_w, before_w) in &columns.taps {
            let plane = residue_h * columns.residues.len() + residue_w;
            offsets.push((plane * height + before_h) * pitch + before_w);
        }
    }
    offsets
}

/// Copies what the windows of a range see of one channel, zeros for the padding.
#[inline(always)]
pub fn copy_seen(
    steps: [&Steps; 2],
    [first_line, first_column]: [usize; 2],
    [lines, columns]: [usize; 2],
    x: &[f32],
    to: &mut [f32],
) {
    let [of_lines, of_columns] = steps;
    let (height, pitch) = (of_lines.seen(lines), of_columns.seen(columns));
    let mut planes = to.chunks_exact_mut(height * pitch);
    for residue_h in 0..of_lines.residues() {
        for (residue_w, to) in (0..of_columns.residues()).zip(&mut planes) {
            let inside = inside(of_columns, first_column, residue_w, pitch);
            let begin = of_columns.begin(first_column + inside.start, residue_w);
            for (line, to) in to.chunks_exact_mut(pitch).enumerate() {
                let Some(row) = of_lines.place(first_line + line, residue_h) else {
                    to.fill(0.0);
                    continue;
                };
                to[..inside.start].fill(0.0);
                to[inside.end..].fill(0.0);
                if !inside.is_empty() {
                    let x = &x[row * of_columns.axis.input + begin..(row + 1) * of_columns.axis.input];
                    copy_line(of_columns.axis.stride, x, &mut to[inside.clone()]);
                }
            }
        }
    }
}

/// Every so many elements of x.
#[inline(always)]
fn copy_line(stride: usize, x: &[f32], to: &mut [f32]) {
    match stride {
        1 => to.copy_from_slice(&x[..to.len()]),
        2 => {
            // Pairs, which vectors take apart; the last one may be but half there.
            let pairs = x.as_chunks::<2>().0;
            to.iter_mut().zip(pairs).for_each(|(to, pair)| *to = pair[0]);
            if let Some(last) = to.get_mut(pairs.len()) {
                *last = x[2 * pairs.len()];
            }
        }
        _ => to.iter_mut().zip(x.iter().step_by(stride)).for_each(|(to, &x)| *to = x),
    }
}

/// Elements of a copied line that lie in the input.
fn inside(steps: &Steps, first: usize, residue: usize, count: usize) -> Range<usize> {
    let WindowAxis { input, stride, begin, .. } = steps.axis;
    let offset = first * stride + steps.residues[residue];
    let start = begin.saturating_sub(offset).div_ceil(stride).min(count);
    let past = (begin + input).saturating_sub(offset).div_ceil(stride);
    start..past.clamp(start, count)
}
