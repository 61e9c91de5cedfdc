//! Numbers between all pairs of rows: squared distances from differences, and products of differences to a centre. Sums are
//! float64 and in a fixed order, whatever the number of threads.

use crate::Result;
use crate::aggregate::engine::{Square, Watch};
use crate::cpu::{Float, install, simd};
use rayon::prelude::*;

/// Columns whose sums are taken apart from those of others, at least.
const PIECE: usize = 1 << 14;
/// Pieces at most.
const MOST_PIECES: usize = 64;
/// Numbers in all partial sums together, about.
const MOST_PARTIAL: usize = 1 << 25;
/// Rows of a task.
const BAND: usize = 32;
/// Numbers of a block of columns, so that it stays in a second-level cache.
const BLOCK: usize = 1 << 15;
/// Sums that run beside each other: enough for the widest vectors to hide how long an addition takes.
const LANES: usize = 32;

/// Sums over all columns, upper triangle mirrored: of squared differences, or, with a centre, of products. Rows that are `bad`
/// take part as zeros. Rows are scaled by `scale` first.
pub fn all<T: Float>(
    rows: &[&[T]],
    centre: Option<&[T]>,
    scale: f64,
    bad: &[bool],
    watch: &Watch,
) -> Result<Square> {
    let n = rows.len();
    let d = rows.first().map_or(0, |row| row.len());
    let most = (MOST_PARTIAL / (n * n)).clamp(1, MOST_PIECES);
    let piece = d.div_ceil(most).max(PIECE).next_multiple_of(LANES);
    let bands = n.div_ceil(BAND);
    let task = |index: usize| {
        let (start, band) = (index / bands * piece, index % bands * BAND);
        let task = Task { rows, centre, scale, bad, band, count: BAND.min(n - band) };
        task.run(start, (start + piece).min(d), |columns| watch.advance(if band == 0 { columns } else { 0 }))
    };
    let parts: Vec<Vec<f64>> = install(|| (0..d.div_ceil(piece) * bands).into_par_iter().map(task).collect());
    watch.check()?;
    let mut square = Square { n, values: vec![0.0; n * n], scale };
    for (index, part) in parts.iter().enumerate() {
        let band = index % bands * BAND;
        let target = &mut square.values[band * n..(band + part.len() / n) * n];
        target.iter_mut().zip(part).for_each(|(total, value)| *total += value);
    }
    for i in 0..n {
        for j in 0..i {
            square.values[i * n + j] = square.values[j * n + i];
        }
    }
    Ok(square)
}

/// Some rows against all later ones over some columns.
struct Task<'a, T> {
    rows: &'a [&'a [T]],
    centre: Option<&'a [T]>,
    scale: f64,
    bad: &'a [bool],
    band: usize,
    count: usize,
}

impl<T: Float> Task<'_, T> {
    fn run(&self, start: usize, end: usize, more: impl Fn(usize) -> bool) -> Vec<f64> {
        let n = self.rows.len();
        let width = (BLOCK / n).clamp(256, 1024).next_multiple_of(LANES);
        let mut block = vec![0.0f64; (n - self.band) * width];
        let mut sums = vec![0.0f64; self.count * n];
        for at in (start..end).step_by(width) {
            let columns = width.min(end - at);
            self.load(at, columns, width, &mut block);
            simd::vectorize(
                #[inline(always)]
                || self.add(&block, width, &mut sums),
            );
            if !more(columns) {
                break;
            }
        }
        sums
    }

    /// The band's rows and all later ones, as float64; columns beyond the last are zeros.
    fn load(&self, at: usize, columns: usize, width: usize, block: &mut [f64]) {
        for (row, line) in (self.band..self.rows.len()).zip(block.chunks_exact_mut(width)) {
            line[columns..].fill(0.0);
            if self.bad[row] {
                line.fill(0.0);
                continue;
            }
            let values = self.rows[row][at..at + columns].iter();
            match self.centre {
                Some(centre) => {
                    let pairs = line.iter_mut().zip(values.zip(&centre[at..]));
                    pairs.for_each(|(out, (value, centre))| {
                        *out = value.to_f64() * self.scale - centre.to_f64() * self.scale;
                    });
                }
                None => {
                    line.iter_mut().zip(values).for_each(|(out, value)| *out = value.to_f64() * self.scale)
                }
            }
        }
    }

    /// Adds a block's terms. The band's own lines stay in a first-level cache while the later ones pass by.
    #[inline(always)]
    fn add(&self, block: &[f64], width: usize, sums: &mut [f64]) {
        let n = self.rows.len();
        let line = |row: usize| &block[(row - self.band) * width..][..width];
        for j in self.band..n {
            for i in self.band..(j + 1).min(self.band + self.count) {
                let slot = &mut sums[(i - self.band) * n + j];
                *slot += match self.centre {
                    Some(_) => total(line(i), line(j), |a, b| a * b),
                    None => total(line(i), line(j), |a, b| (a - b) * (a - b)),
                };
            }
        }
    }
}

#[inline(always)]
fn total(a: &[f64], b: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sums = [0.0f64; LANES];
    for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += term(a[lane], b[lane]);
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// The numbers as they are, or, where the largest of them would overflow in sums or all but vanish, once more with the rows
/// scaled by a power of two.
pub fn rescaled(
    pairs: impl Fn(f64) -> Result<Square>,
    bad: &[bool],
    d: usize,
    largest: impl FnOnce() -> Result<f64>,
) -> Result<Square> {
    let square = pairs(1.0)?;
    let n = square.n as f64;
    let good = (0..square.n)
        .filter(|&i| !bad[i])
        .flat_map(|i| (0..square.n).filter(|&j| !bad[j]).map(move |j| (i, j)));
    let most = good
        .map(|(i, j)| square.at(i, j).abs())
        .fold(0.0f64, |most, value| if value <= most { most } else { value });
    if most <= f64::MAX / (8.0 * n * n) && most >= 1e-250 {
        return Ok(square);
    }
    let largest = largest()?;
    if largest == 0.0 {
        return Ok(square);
    }
    pairs(fitting_scale(largest, 4.0 * n * n * d as f64))
}

/// The power of two that brings values up to `largest` to where sums of so many squares of their differences stay below 2^1020.
pub fn fitting_scale(largest: f64, squares: f64) -> f64 {
    // Differences are at most twice the largest.
    let room = 1020.0 - (4.0 * squares).log2();
    (room / 2.0 - largest.log2()).floor().clamp(-1000.0, 1000.0).exp2()
}

/// The sum of squares of a row, or of its differences from another, scaled first.
fn squares<T: Float>(row: &[T], from: Option<&[T]>, scale: f64) -> f64 {
    const PART: usize = 4096;
    let mut sum = 0.0;
    for (index, part) in row.chunks(PART).enumerate() {
        let mut values = [0.0f64; PART];
        values.iter_mut().zip(part).for_each(|(out, value)| *out = value.to_f64() * scale);
        if let Some(from) = from {
            let centre = &from[index * PART..];
            values
                .iter_mut()
                .zip(&centre[..part.len()])
                .for_each(|(out, value)| *out -= value.to_f64() * scale);
        }
        sum += simd::vectorize(
            #[inline(always)]
            || total(&values, &values, |a, b| a * b),
        );
    }
    sum
}

/// Whether a sum of squares has neither overflowed nor all but vanished.
pub fn usual(sum: f64) -> bool {
    sum.is_finite() && sum >= 1e-250
}

/// The length of a row, or its distance from another: squares are scaled where they overflow or vanish.
pub fn length<T: Float>(row: &[T], from: Option<&[T]>) -> f64 {
    let sum = squares(row, from, 1.0);
    if usual(sum) {
        return sum.sqrt();
    }
    let both = row.iter().chain(from.unwrap_or(&[]));
    let largest = both.fold(0.0f64, |most, value| most.max(value.to_f64().abs()));
    if largest == 0.0 {
        return 0.0;
    }
    let scale = fitting_scale(largest, row.len() as f64);
    squares(row, from, scale).sqrt() / scale
}
