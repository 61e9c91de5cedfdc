//! float32 convolution by tiles of sums in registers. What a range of windows sees is copied once, with its padding and
//! sorted by the stride's residues, so that every term of a line of windows is a line of the copy at a fixed distance.

mod units;
mod window;

use super::super::activation::Activation;
use super::problem::Problem;
use crate::cpu::tile::{self, BLOCK, REACH, WIDEST, for_tile};
use crate::cpu::{for_pieces, simd, thread_count};
use crate::tensor::FormKey;
use pulp::{Simd, WithSimd};
use std::cell::RefCell;
use std::ops::Range;
use units::{Split, Unit};
use window::{Steps, copy_seen, tap_offsets};

/// Elements of a copy, about: what stays in a core's second cache.
const COPIED: usize = 1 << 17;
/// The most by which one line's copy may exceed that.
const LONGEST: usize = 1 << 22;

/// A convolution that this form takes.
pub struct Tiles<'a> {
    problem: &'a Problem,
    lines: Steps,
    columns: Steps,
}

impl<'a> Tiles<'a> {
    /// The form, where it suits: over at most two axes, with windows that are not too far apart.
    pub fn new(problem: &'a Problem) -> Option<Tiles<'a>> {
        let [depth, mut height, mut width] = problem.axes;
        if depth.input != 1
            || depth.output != 1
            || depth.kernel != 1
            || problem.group_in * problem.windows() == 0
        {
            return None;
        }
        if problem.is_pointwise() {
            // One line of all elements.
            width.input = problem.slid();
            (width.output, width.stride) = (width.input, 1);
            (height.input, height.output) = (1, 1);
        }
        let tiles = Tiles { problem, lines: Steps::new(height), columns: Steps::new(width) };
        let line = tiles.lines.all_seen(1).checked_mul(tiles.columns.all_seen(width.output))?;
        let fits = height.output == 1 || line.checked_mul(problem.group_in)? <= LONGEST;
        (fits && line <= LONGEST).then_some(tiles)
    }

    fn depth(&self) -> usize {
        self.problem.group_in * self.problem.taps()
    }

    /// What the order of packed weights depends on.
    pub fn key(&self) -> FormKey {
        let Problem { groups, group_out, .. } = *self.problem;
        ("conv tiles", [groups as u64, group_out as u64, self.depth() as u64, 0, 0, 0])
    }

    /// The weights in the order in which tiles take them.
    pub fn pack(&self, w: &[f32]) -> Vec<f32> {
        let (depth, rows) = (self.depth(), self.problem.group_out);
        let [most, _] = simd::largest_tile();
        let mut packed = vec![0.0; w.len()];
        for_pieces(&mut packed, rows * depth, 1, |start, piece| {
            for (index, to) in piece.chunks_mut(rows * depth).enumerate() {
                pack_rows(&w[start + index * rows * depth..][..rows * depth], depth, most, to);
            }
        });
        packed
    }

    /// y = activation(x * w + bias) with packed weights.
    pub fn run(
        &self,
        x: &[f32],
        packed: &[f32],
        bias: Option<&[f32]>,
        activation: Activation,
        y: &mut [f32],
    ) {
        let split = Split::new(self, thread_count());
        let mut units = split.units(self, y);
        let range = units.first().map_or([1, 1], |unit| unit.range);
        let work = Work { tiles: self, x, packed, bias, activation, range, offsets: self.offsets(range) };
        for_pieces(&mut units, 1, split.cost, |_, units| {
            COPY.with_borrow_mut(|copy| simd::dispatch(Run { work: &work, units, copy }));
        });
    }

    /// Elements of one channel's copy for a range of windows.
    fn copied(&self, range: [usize; 2]) -> usize {
        self.lines.all_seen(range[0]) * self.columns.all_seen(range[1])
    }

    /// Where the line of each term begins in the copy for a range of windows.
    fn offsets(&self, range: [usize; 2]) -> Vec<usize> {
        let taps = tap_offsets(&self.lines, &self.columns, range);
        let channels = (0..self.problem.group_in).map(|channel| channel * self.copied(range));
        channels.flat_map(|channel| taps.iter().map(move |tap| channel + tap)).collect()
    }
}

/// Panels of rows, each with the factors of one term side by side.
fn pack_rows(w: &[f32], depth: usize, most: usize, to: &mut [f32]) {
    let (mut row, rows) = (0, w.len() / depth);
    while row < rows {
        let height = tile::rows_of(rows - row, most);
        let panel = &mut to[row * depth..][..height * depth];
        for (index, line) in w[row * depth..][..height * depth].chunks_exact(depth).enumerate() {
            panel[index..].iter_mut().step_by(height).zip(line).for_each(|(to, &w)| *to = w);
        }
        row += height;
    }
}

struct Work<'a> {
    tiles: &'a Tiles<'a>,
    x: &'a [f32],
    packed: &'a [f32],
    bias: Option<&'a [f32]>,
    activation: Activation,
    /// The range that most units have, and where the lines of its terms begin.
    range: [usize; 2],
    offsets: Vec<usize>,
}

struct Run<'a, 'y> {
    work: &'a Work<'a>,
    units: &'a mut [Unit<'y>],
    copy: &'a mut Vec<f32>,
}

thread_local! {
    static COPY: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl WithSimd for Run<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for unit in self.units {
            run_unit(simd, self.work, unit, self.copy);
        }
    }
}

#[inline(always)]
fn run_unit<S: Simd>(simd: S, work: &Work, unit: &mut Unit, copy: &mut Vec<f32>) {
    let Tiles { problem, lines, columns } = work.tiles;
    let range = unit.range;
    let channel = work.tiles.copied(range);
    if copy.len() < channel * problem.group_in + REACH {
        copy.resize(channel * problem.group_in + REACH, 0.0);
    }
    let plane = problem.slid();
    let x = &work.x[unit.group * problem.group_in * plane..];
    for (x, to) in x.chunks_exact(plane).zip(copy.chunks_exact_mut(channel)).take(problem.group_in) {
        copy_seen([lines, columns], unit.first, range, x, to);
    }
    let own = (range != work.range).then(|| work.tiles.offsets(range));
    let offsets = own.as_ref().unwrap_or(&work.offsets);
    let (depth, of_group) = (work.tiles.depth(), unit.group % problem.groups);
    let filter = of_group * problem.group_out + unit.row;
    let weights = &work.packed[filter * depth..][..unit.rows.len() * depth];
    let bias = work.bias.map(|bias| &bias[filter..][..unit.rows.len()]);
    let part = Part { copy, offsets, weights, bias, pitch: columns.seen(range[1]), width: range[1] };
    run_part(simd, &part, range[0], &mut unit.rows);
    if !work.activation.is_none() {
        unit.rows.iter_mut().for_each(|row| work.activation.apply(row));
    }
}

/// Rows of the result over a range of windows.
struct Part<'a> {
    copy: &'a [f32],
    offsets: &'a [usize],
    weights: &'a [f32],
    bias: Option<&'a [f32]>,
    /// Elements from one line's windows to the next one's in the copy.
    pitch: usize,
    /// Windows of a line.
    width: usize,
}

#[inline(always)]
fn run_part<S: Simd>(simd: S, part: &Part, lines: usize, y: &mut [&mut [f32]]) {
    let vectors = |count: usize| count.div_ceil(S::F32_LANES);
    // Lines may be walked as one, with what lies between them computed and dropped.
    let joined = (lines - 1) * part.pitch + part.width;
    if vectors(joined) <= lines * vectors(part.width) {
        run_strips(simd, part, 0..joined, y);
    } else {
        for line in 0..lines {
            run_strips(simd, part, line * part.pitch..line * part.pitch + part.width, y);
        }
    }
}

#[inline(always)]
fn run_strips<S: Simd>(simd: S, part: &Part, range: Range<usize>, y: &mut [&mut [f32]]) {
    let [most, _] = tile::largest::<S>();
    let full = y.len() / most * most;
    let (upper, lower) = y.split_at_mut(full);
    for block in (0..part.offsets.len()).step_by(BLOCK) {
        run_rows(simd, part, block, most, [0, range.start, range.end], upper);
        let mut row = 0;
        while row < lower.len() {
            let height = tile::rows_of(lower.len() - row, most);
            let rows = &mut lower[row..row + height];
            run_rows(simd, part, block, height, [full + row, range.start, range.end], rows);
            row += height;
        }
    }
}

/// A block of terms of rows in tiles of one height: strip by strip, so that a strip's lines stay in the first cache.
#[inline(always)]
fn run_rows<S: Simd>(
    simd: S,
    part: &Part,
    block: usize,
    height: usize,
    [first, start, end]: [usize; 3],
    y: &mut [&mut [f32]],
) {
    let mut at = start;
    while at < end && !y.is_empty() {
        let vectors = tile::vectors_of::<S>(height, end - at);
        let past = (at + vectors * S::F32_LANES).min(end);
        for (panel, rows) in y.chunks_exact_mut(height).enumerate() {
            let tile = Tile { part, block, row: first + panel * height, range: at..past, y: rows };
            for_tile!(height, vectors, run_tile(simd, tile));
        }
        at = past;
    }
}

/// A block of terms of some rows at windows `range`, counted with the pitch.
struct Tile<'a, 'y> {
    part: &'a Part<'a>,
    block: usize,
    row: usize,
    range: Range<usize>,
    y: &'a mut [&'y mut [f32]],
}

/// A tile of M rows by N vectors.
struct Sized<'a, 'y, const M: usize, const N: usize>(Tile<'a, 'y>);

/// Compiled once for each size and kind of vectors.
fn run_tile<S: Simd, const M: usize, const N: usize>(simd: S, tile: Tile) {
    simd.vectorize(Sized::<M, N>(tile));
}

impl<const M: usize, const N: usize> WithSimd for Sized<'_, '_, M, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Tile { part, block, row, range, y } = self.0;
        let (depth, reach) = (part.offsets.len(), N * S::F32_LANES);
        let past = (block + BLOCK).min(depth);
        let offsets = &part.offsets[block..past];
        let factors = part.weights[row * depth..][..M * depth].as_chunks::<M>().0;
        let factors = &factors[block..past];
        let starts =
            (block == 0).then(|| part.bias.map_or([0.0; M], |bias| std::array::from_fn(|i| bias[row + i])));
        let copy = &part.copy[range.start..];
        let line = |term: usize| &copy[offsets[term]..][..reach];
        if let Some(at) = part.place(&range).filter(|_| range.len() == reach) {
            return tile::join::<S, M, N>(simd, starts, factors, line, at, y);
        }
        let mut sums = [[[0.0; WIDEST]; N]; M];
        let mut rows = sums.each_mut().map(|row| row.as_flattened_mut());
        if starts.is_none() {
            part.stretches(&range, |from, to| {
                rows.iter_mut()
                    .zip(&*y)
                    .for_each(|(row, y)| row[to.clone()].copy_from_slice(&y[from.clone()]));
            });
        }
        tile::join::<S, M, N>(simd, starts, factors, line, 0, &mut rows);
        part.stretches(&range, |from, to| {
            rows.iter().zip(&mut *y).for_each(|(row, y)| y[from.clone()].copy_from_slice(&row[to.clone()]));
        });
    }
}

impl Part<'_> {
    /// Where a range begins in a row, if it lies within one line.
    fn place(&self, range: &Range<usize>) -> Option<usize> {
        let (line, column) = (range.start / self.pitch, range.start % self.pitch);
        (column + range.len() <= self.width).then_some(line * self.width + column)
    }

    /// Calls with the stretches of a range that lie within a line: where they are in a row, and where in the range.
    fn stretches(&self, range: &Range<usize>, mut call: impl FnMut(Range<usize>, Range<usize>)) {
        let mut at = range.start;
        while at < range.end {
            let (line, column) = (at / self.pitch, at % self.pitch);
            let next = (at - column + self.pitch).min(range.end);
            let past = next.min(at - column + self.width);
            if past > at {
                let place = line * self.width + column;
                call(place..place + past - at, at - range.start..past - range.start);
            }
            at = next;
        }
    }
}

#[cfg(test)]
mod tests;
