//! How a convolution is split into units of work that stay within a cache and keep all threads busy.

use super::{COPIED, Tiles};
use crate::cpu::simd;
use std::ops::Range;

/// Nanoseconds of a unit, about, where there are enough of them.
const UNIT: usize = 20_000;
/// Multiply-adds in a nanosecond.
const RATE: usize = 48;
/// Rows of a unit, at least, where rows are split.
const FEWEST_ROWS: usize = 16;
/// Windows of a unit, at least, where lines are split.
const FEWEST_WINDOWS: usize = 96;

/// Some rows of one image and group over a range of windows.
pub struct Unit<'y> {
    /// The group, counted over all images.
    pub group: usize,
    /// The first row, counted within the group.
    pub row: usize,
    /// The first line and column of windows.
    pub first: [usize; 2],
    /// Lines and columns of windows.
    pub range: [usize; 2],
    /// The rows, each over that range.
    pub rows: Vec<&'y mut [f32]>,
}

/// The split of every group.
pub struct Split {
    /// Lines of windows, or columns where there is one line.
    stretches: Vec<Range<usize>>,
    rows: Vec<Range<usize>>,
    /// Nanoseconds of a unit.
    pub cost: usize,
}

impl Split {
    /// For that many threads.
    pub fn new(tiles: &Tiles, threads: usize) -> Split {
        let problem = tiles.problem;
        let (height, width) = (tiles.lines.windows(), tiles.columns.windows());
        let groups = problem.images * problem.groups;
        let terms = problem.group_out * tiles.depth();
        // Beside the products each element of the copy and of the result is moved.
        let moved = problem.group_in + problem.group_out;
        let work = |windows: usize| (terms * windows / RATE + moved * windows / 4).max(1);
        let wanted = (groups * work(height * width) / UNIT).clamp(1, 4 * threads).div_ceil(groups);
        let (length, line) = match height {
            1 => (width, tiles.lines.all_seen(1) * tiles.columns.residues()),
            _ => (height, tiles.lines.residues() * tiles.columns.all_seen(width)),
        };
        let copied = problem.group_in * line;
        let for_cache = length.div_ceil((COPIED / copied.max(1)).max(1));
        let most = (height * width / FEWEST_WINDOWS).clamp(1, length);
        let count = wanted.max(for_cache).min(most);
        let parts = wanted.div_ceil(count).min(problem.group_out / FEWEST_ROWS).max(1);
        let step = if height == 1 { 48 } else { 1 };
        Split {
            stretches: split(length, count, step),
            rows: split(problem.group_out, parts, simd::largest_tile()[0]),
            cost: work(height * width / count) / parts,
        }
    }

    /// The units over a result.
    pub fn units<'y>(&self, tiles: &Tiles, y: &'y mut [f32]) -> Vec<Unit<'y>> {
        let (height, width) = (tiles.lines.windows(), tiles.columns.windows());
        let (count, parts) = (self.stretches.len(), self.rows.len());
        let rows_of_group = tiles.problem.group_out;
        let mut units = Vec::with_capacity(y.len() / (height * width * rows_of_group) * count * parts);
        for (group, y) in y.chunks_exact_mut(height * width * rows_of_group).enumerate() {
            for rows in &self.rows {
                for stretch in &self.stretches {
                    let (first, range) = match height {
                        1 => ([0, stretch.start], [1, stretch.len()]),
                        _ => ([stretch.start, 0], [stretch.len(), width]),
                    };
                    units.push(Unit {
                        group,
                        row: rows.start,
                        first,
                        range,
                        rows: Vec::with_capacity(rows.len()),
                    });
                }
            }
            let first = units.len() - count * parts;
            for (row, mut y) in y.chunks_exact_mut(height * width).enumerate() {
                let part = self.rows.iter().position(|rows| rows.contains(&row)).unwrap_or(0);
                for (index, stretch) in self.stretches.iter().enumerate() {
                    let length = stretch.len() * if height == 1 { 1 } else { width };
                    let (own, rest) = y.split_at_mut(length);
                    units[first + part * count + index].rows.push(own);
                    y = rest;
                }
            }
        }
        units
    }
}

/// At most that many ranges of about the same length that begin at multiples of a step.
fn split(length: usize, count: usize, step: usize) -> Vec<Range<usize>> {
    let each = length.div_ceil(count.max(1)).next_multiple_of(step);
    (0..length).step_by(each).map(|start| start..(start + each).min(length)).collect()
}
