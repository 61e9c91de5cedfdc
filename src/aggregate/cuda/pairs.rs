//! Numbers between rows.

use super::rows::Chunk;
use super::scan::{self, Seen};
use super::{Cuda, columns, tables};
use crate::aggregate::cpu::pairs::{fitting_scale, rescaled, usual};
use crate::aggregate::engine::{ColumnRule, Square, check_paired, check_start};
use crate::driver::DevicePtr;
use crate::kernels::columns::{Even, NanPolicy};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::{DType, Result, Tensor};

/// A kernel that walks over pairs of rows, tile by tile of its square.
#[derive(Clone, Copy)]
struct Tiles {
    kernel: &'static str,
    /// Rows of a tile's side.
    rows: usize,
}

/// Bytes of partial sums beyond which the columns are not cut further.
const MOST_PARTS: u64 = 256 << 20;
/// Below this a sum of squares in float32 may have lost terms.
const LEAST_SQUARES: f64 = 1e-25;

impl Tiles {
    /// Squares of differences in float32, where nothing overflows or vanishes.
    fn single(n: usize) -> Tiles {
        match n {
            0..=16 => Tiles { kernel: "rows_distance_f32_16", rows: 16 },
            _ => Tiles { kernel: "rows_distance_f32_64", rows: 64 },
        }
    }

    /// In float64: squares of differences, or products.
    fn double(dtype: DType, products: bool) -> Tiles {
        let kernel = match (dtype, products) {
            (DType::F64, false) => "rows_distance_f64",
            (DType::F64, true) => "rows_product_f64",
            (_, false) => "rows_distance_f32",
            (_, true) => "rows_product_f32",
        };
        Tiles { kernel, rows: 32 }
    }

    fn count(self, n: usize) -> usize {
        let bands = n.div_ceil(self.rows);
        bands * (bands + 1) / 2
    }

    /// Numbers of all tiles.
    fn size(self, n: usize) -> usize {
        self.count(n) * self.rows * self.rows
    }

    /// Pieces of so many columns, and the width of each.
    fn pieces(self, launcher: &Launcher, n: usize, columns: usize) -> (u64, u64) {
        let most = (MOST_PARTS / (self.size(n) as u64 * 8)).max(1);
        let pieces = tables::pieces(launcher, self.count(n) as u64, columns as u64).min(most);
        let width = (columns as u64).div_ceil(pieces).next_multiple_of(32);
        ((columns as u64).div_ceil(width), width)
    }

    /// The square of what the tiles hold.
    fn square(self, n: usize, scale: f64, tiles: &[f64]) -> Square {
        let mut values = vec![0.0; n * n];
        let bands = n.div_ceil(self.rows);
        let pairs = (0..bands).flat_map(|band| (band..bands).map(move |other| (band, other)));
        for ((band, other), tile) in pairs.zip(tiles.chunks_exact(self.rows * self.rows)) {
            for i in (band * self.rows)..((band + 1) * self.rows).min(n) {
                for j in (other * self.rows).max(i)..((other + 1) * self.rows).min(n) {
                    let value = tile[i % self.rows * self.rows + j % self.rows];
                    values[i * n + j] = value;
                    values[j * n + i] = value;
                }
            }
        }
        Square { n, values, scale }
    }
}

/// More rows than those of a call: the starting point as the last.
struct Side<'a> {
    bad: &'a [bool],
    /// A vector that differences are taken to.
    centre: Option<&'a Tensor>,
    last: Option<&'a Tensor>,
}

/// Numbers between all rows over all columns.
fn between(cuda: &Cuda, tiles: Tiles, side: &Side, scale: f64) -> Result<Square> {
    let (launcher, n) = (cuda.launcher, side.bad.len());
    let totals = tables::Totals::new(launcher, tiles.size(n))?;
    let all = cuda.rows.all();
    cuda.rows.pass(launcher, &all, &cuda.watch, |chunk| {
        let vector = |tensor: &Tensor| part(cuda, tensor, chunk);
        let mut pointers = chunk.pointers.clone();
        pointers.extend(side.last.map(vector).transpose()?);
        let centre = side.centre.map(vector).transpose()?.unwrap_or(DevicePtr::NULL);
        let table = tables::addresses(launcher, &pointers, side.bad)?;
        let (pieces, width) = tiles.pieces(launcher, n, chunk.width());
        totals.add(launcher, pieces, |parts| {
            let arguments = [
                Arg::Ptr(table.ptr()),
                Arg::Ptr(centre),
                Arg::Ptr(parts),
                Arg::U64(chunk.width() as u64),
                Arg::F64(scale),
                Arg::U32(n as u32),
                Arg::U64(width),
            ];
            launcher.launch(tiles.kernel, grid_x(pieces * tiles.count(n) as u64, 256, 0)?, &arguments)
        })
    })?;
    Ok(tiles.square(n, scale, &totals.read(launcher)?))
}

/// Where a vector's values of a chunk lie.
fn part(cuda: &Cuda, vector: &Tensor, chunk: &Chunk) -> Result<DevicePtr> {
    let at = chunk.columns.start * cuda.result.dtype.size();
    Ok(vector.device_view(cuda.launcher.core())?.ptr.offset(at as u64))
}

/// Squared distances from differences, +Inf where a row is `bad`, 0 on the diagonal.
pub fn distances(cuda: &Cuda, bad: &[bool]) -> Result<Square> {
    let n = bad.len();
    check_paired(n)?;
    let side = Side { bad, centre: None, last: None };
    let single = match cuda.result.dtype {
        DType::F32 => Some(between(cuda, Tiles::single(n), &side, 1.0)?).filter(|square| holds(square, bad)),
        _ => None,
    };
    let mut square = match single {
        Some(square) => square,
        None => {
            let tiles = Tiles::double(cuda.result.dtype, false);
            let pairs = |scale| between(cuda, tiles, &side, scale);
            rescaled(pairs, bad, cuda.result.size(), || largest(cuda, bad))?
        }
    };
    square.hide(bad);
    Ok(square)
}

/// Whether no square of float32 between good rows overflowed and none may have vanished.
fn holds(square: &Square, bad: &[bool]) -> bool {
    let good: Vec<usize> = (0..square.n).filter(|&row| !bad[row]).collect();
    good.iter().all(|&i| {
        let others = good.iter().filter(|&&j| j != i);
        others.map(|&j| square.at(i, j)).all(|value| value.is_finite() && value >= LEAST_SQUARES)
    })
}

/// The largest magnitude in rows that are not `bad`.
fn largest(cuda: &Cuda, bad: &[bool]) -> Result<f64> {
    let seen = scan::look(cuda, &cuda.rows)?;
    let good = seen.iter().zip(bad).filter(|pair| !pair.1);
    Ok(good.fold(0.0f64, |most, (seen, _)| most.max(seen.largest)))
}

/// Distances from a row, or from zero; +Inf for `bad` rows.
pub fn lengths(cuda: &Cuda, from: Option<usize>, bad: &[bool]) -> Result<Vec<f64>> {
    let all = cuda.rows.all();
    let squares = squares(cuda, &all, from, bad, 1.0)?;
    let seen = match squares.iter().zip(bad).all(|(&sum, &bad)| bad || usual(sum)) {
        true => Vec::new(),
        false => scan::look(cuda, &cuda.rows)?,
    };
    let length = |row: usize| {
        if bad[row] {
            return Ok(f64::INFINITY);
        }
        if usual(squares[row]) {
            return Ok(squares[row].sqrt());
        }
        let other = from.map_or(0.0, |from| seen[from].largest);
        let largest = seen[row].largest.max(other);
        if largest == 0.0 {
            return Ok(0.0);
        }
        let scale = fitting_scale(largest, cuda.result.size() as f64);
        Ok(self::squares(cuda, &[row], from, &[false], scale)?[0].sqrt() / scale)
    };
    all.iter().map(|&row| length(row)).collect()
}

/// Sums of the squares of those rows' scaled differences from another.
fn squares(cuda: &Cuda, rows: &[usize], from: Option<usize>, bad: &[bool], scale: f64) -> Result<Vec<f64>> {
    let (launcher, n) = (cuda.launcher, rows.len());
    let totals = tables::Totals::new(launcher, n)?;
    let kernel = format!("rows_length_{}", cuda.result.dtype.suffix());
    let taken: Vec<usize> = rows.iter().copied().chain(from).collect();
    cuda.rows.pass(launcher, &taken, &cuda.watch, |chunk| {
        let from = chunk.pointers.get(n).copied().unwrap_or(DevicePtr::NULL);
        let table = tables::addresses(launcher, &chunk.pointers[..n], bad)?;
        let pieces = tables::pieces(launcher, n as u64, chunk.width() as u64);
        totals.add(launcher, pieces, |parts| {
            let arguments = [
                Arg::Ptr(table.ptr()),
                Arg::Ptr(from),
                Arg::Ptr(parts),
                Arg::U64(chunk.width() as u64),
                Arg::F64(scale),
                Arg::U32(n as u32),
            ];
            launcher.launch(&kernel, grid_x(pieces * n as u64, 256, 0)?, &arguments)
        })
    })?;
    totals.read(launcher)
}

/// Products of the rows' differences to the median of those that are not `bad`, the starting point last.
pub fn products(cuda: &Cuda, bad: &[bool]) -> Result<Square> {
    check_paired(bad.len())?;
    let finite: Vec<usize> = (0..bad.len()).filter(|&row| !bad[row]).collect();
    let centre = match finite[..] {
        [] => cuda.zeros()?,
        _ => columns::run(cuda, &finite, &ColumnRule::Median(Even::Upper), NanPolicy::Last)?,
    };
    let start = cuda.start.clone().map_or_else(|| cuda.zeros(), Ok)?;
    let seen = seen_of(cuda, &start)?;
    check_start(&seen.state)?;
    let all: Vec<bool> = bad.iter().copied().chain([false]).collect();
    let side = Side { bad: &all, centre: Some(&centre), last: Some(&start) };
    let tiles = Tiles::double(cuda.result.dtype, true);
    let pairs = |scale| between(cuda, tiles, &side, scale);
    rescaled(pairs, &all, cuda.result.size(), || Ok(largest(cuda, bad)?.max(seen.largest)))
}

/// A look at a vector.
fn seen_of(cuda: &Cuda, vector: &Tensor) -> Result<Seen> {
    if cuda.start.is_none() {
        return Ok(Seen::default());
    }
    let core = cuda.launcher.core();
    let pointers = vec![vector.device_view(core)?.ptr];
    let rows = super::rows::Rows::made(core, &cuda.result, pointers, vec![vector.clone()]);
    Ok(scan::look(cuda, &rows)?[0])
}
