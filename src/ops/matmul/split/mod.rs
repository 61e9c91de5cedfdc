//! The route over Hopper's tensor cores: float32 operands as scaled float16 planes (kernels/common/split.cuh).

mod launch;

pub use self::launch::{Pointers, run};

use super::super::Precision;
use super::super::tile::{BANDWIDTH, LAUNCH};
use super::cuda::Setting;
use super::{BatchAxis, Product};

/// One of the kernels of kernels/gemm_split.cu. The times are those of an H200.
#[derive(Debug, PartialEq)]
struct Tile {
    name: &'static str,
    columns: usize,
    /// Tiles of A and B that shared memory holds.
    units: usize,
    /// Microseconds for 64 of k, and for the rest of a tile.
    times: (f64, f64),
}

const ROWS: usize = 128;

#[rustfmt::skip]
static THREE_PRODUCTS: [Tile; 2] = [
    Tile { name: "split_128x64", columns: 64, units: 9, times: (0.74, 1.4) },
    Tile { name: "split_128x128", columns: 128, units: 7, times: (1.28, 2.0) },
];
#[rustfmt::skip]
static ONE_PRODUCT: [Tile; 2] = [
    Tile { name: "half_128x128", columns: 128, units: 7, times: (0.53, 0.6) },
    Tile { name: "half_128x192", columns: 192, units: 5, times: (0.74, 1.4) },
];

/// Sums shorter than this stay float32 chains.
const LEAST_K: usize = 64;
/// Share of the bandwidth that the splitting kernels reach.
const SPLITTING: f64 = 0.6;

// Flags of kernels/split.cu.
const TRANSPOSE: u32 = 1;
const VECTOR: u32 = 2;
const HI_ONLY: u32 = 4;
// Flag of struct Split.
const VECTOR_D: u32 = 1;

/// How a batch's index leads to a matrix: index / each % count, matrices `step` elements apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Walk {
    each: usize,
    count: usize,
    step: usize,
}

impl Walk {
    /// `None` where the axes do not have that form.
    fn over(batch: &[BatchAxis], step: fn(&BatchAxis) -> usize) -> Option<Walk> {
        let mut walk = Walk { each: 1, count: 1, step: 0 };
        let mut outside = false;
        for axis in batch.iter().rev() {
            match step(axis) {
                0 if walk.step == 0 => walk.each *= axis.size,
                0 => outside = true,
                here if walk.step == 0 => walk = Walk { count: axis.size, step: here, ..walk },
                here if !outside && here == walk.count * walk.step => walk.count *= axis.size,
                _ => return None,
            }
        }
        Some(walk)
    }
}

/// A, or B by columns: matrices of `rows` by k.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Side {
    rows: usize,
    k: usize,
    /// Whether rows rather than k lie side by side.
    turned: bool,
    /// Elements from one row to the next, or from one k where turned.
    pitch: usize,
    walk: Walk,
    vectors: bool,
    /// Values of k whose largest is found by one block of the first launch, where turned.
    chunk: usize,
    hi_only: bool,
}

impl Side {
    fn new(
        rows: usize,
        (k, pitch): (usize, usize),
        turned: bool,
        walk: Walk,
        (aligned, multiprocessors): (bool, u32),
    ) -> Side {
        let vectors = aligned && pitch.is_multiple_of(4) && walk.step.is_multiple_of(4);
        let panels = rows.div_ceil(128).saturating_mul(walk.count);
        let chunks = (4 * multiprocessors as usize).div_ceil(panels).min(k.div_ceil(32)).clamp(1, 16);
        Side { rows, k, turned, pitch, walk, vectors, chunk: k.div_ceil(chunks), hi_only: false }
    }

    /// Elements from one row of a plane to the next.
    fn plane_pitch(&self) -> usize {
        self.k.next_multiple_of(64)
    }

    fn chunks(&self) -> usize {
        self.k.div_ceil(self.chunk)
    }

    fn all_rows(&self) -> usize {
        self.walk.count * self.rows
    }

    /// Blocks of the two launches of kernels/split.cu.
    fn blocks(&self) -> [usize; 2] {
        if self.turned {
            let first = self.rows.div_ceil(128) * self.chunks() * self.walk.count;
            return [first, self.rows.div_ceil(64) * self.k.div_ceil(128) * self.walk.count];
        }
        [if self.k <= 1024 { self.all_rows().div_ceil(8) } else { self.all_rows() }, 0]
    }

    fn is_within_limits(&self) -> bool {
        let most = i32::MAX as usize;
        self.all_rows() <= most
            && self.blocks().iter().all(|blocks| *blocks <= most / 2)
            && self.rows.saturating_mul(self.plane_pitch()) < 1 << 38
    }

    /// `struct SplitOperand`.
    fn words(&self, blocks: usize, epoch: u32) -> Vec<u32> {
        let flags = [(self.turned, TRANSPOSE), (self.vectors, VECTOR), (self.hi_only, HI_ONLY)];
        let sizes = [
            self.rows,
            self.k,
            self.plane_pitch(),
            flags_of(&flags) as usize,
            self.walk.count,
            blocks,
            self.chunk,
            self.chunks(),
            epoch as usize,
        ];
        sizes
            .map(|size| size as u32)
            .into_iter()
            .chain([self.pitch, self.walk.step].into_iter().flat_map(wide))
            .collect()
    }

    /// Microseconds to split it, launches aside.
    fn time(&self) -> f64 {
        let bytes = 4 + if self.turned { 4 } else { 0 } + if self.hi_only { 2 } else { 4 };
        (self.all_rows() * self.k * bytes) as f64 / (SPLITTING * BANDWIDTH)
    }
}

fn wide(value: usize) -> [u32; 2] {
    [value as u32, (value as u64 >> 32) as u32]
}

fn flags_of(flags: &[(bool, u32)]) -> u32 {
    flags.iter().map(|(set, flag)| if *set { *flag } else { 0 }).sum()
}

/// The launches of one product.
#[derive(Debug, PartialEq)]
pub struct Plan {
    tile: &'static Tile,
    a: Side,
    b: Side,
    batch: usize,
    c_batch: usize,
    vector_d: bool,
    /// Microseconds expected.
    pub time: f64,
}

/// The plan of a product on a device of compute capability 9.0; `None` where this route does not take it.
pub fn plan(product: &Product, setting: Setting, precision: Precision) -> Option<Plan> {
    let Product { m, n, k, .. } = *product;
    if setting.size != 4 || k < LEAST_K || precision == Precision::Strict {
        return None;
    }
    let batch = product.batch_count();
    let at = |index: usize| (setting.aligned[index], setting.multiprocessors);
    let walk_a = Walk::over(&product.batch, |axis| axis.a)?;
    let walk_b = Walk::over(&product.batch, |axis| axis.b)?;
    let mut a = Side::new(m, (k, product.pitch_a), product.transposed_a, walk_a, at(0));
    let mut b = Side::new(n, (k, product.pitch_b), !product.transposed_b, walk_b, at(1));
    let tiles = if precision == Precision::Highest { &THREE_PRODUCTS } else { &ONE_PRODUCT };
    (a.hi_only, b.hi_only) = (precision != Precision::Highest, precision != Precision::Highest);
    let walk_c = Walk::over(&product.batch, |axis| axis.c)?;
    let c_batch = match walk_c {
        _ if product.c.is_none() => 0,
        Walk { step: 0, .. } => 0,
        Walk { each: 1, count, step } if count == batch => step,
        _ => return None,
    };
    let outputs = m.div_ceil(ROWS).checked_mul(n.div_ceil(64))?.checked_mul(batch)?;
    if outputs > i32::MAX as usize || !a.is_within_limits() || !b.is_within_limits() {
        return None;
    }
    let time = |tile: &Tile| {
        let count = m.div_ceil(ROWS) * n.div_ceil(tile.columns) * batch;
        let each = tile.times.0 * k.div_ceil(64) as f64 + tile.times.1;
        count.div_ceil(setting.multiprocessors.max(1) as usize) as f64 * each
    };
    let tile = tiles.iter().min_by(|one, other| time(one).total_cmp(&time(other)))?;
    let launches = if a.turned || b.turned { 4.0 } else { 3.0 };
    let total = launches * LAUNCH + a.time() + b.time() + time(tile);
    // Rows of the result lie n apart.
    let vector_d = setting.aligned[2] && n.is_multiple_of(2);
    Some(Plan { tile, a, b, batch, c_batch, vector_d, time: total })
}

impl Plan {
    fn tiles(&self, columns: usize) -> usize {
        self.a.rows.div_ceil(ROWS) * self.b.rows.div_ceil(columns) * self.batch
    }

    fn shared(&self) -> u32 {
        (self.tile.units * (ROWS + self.tile.columns) * 128 + 1024) as u32
    }

    /// `struct Split`.
    fn words(&self, product: &Product, activation: u32, epoch: u32) -> Vec<u32> {
        let (a, b) = (&self.a, &self.b);
        let flags = [(self.vector_d, VECTOR_D)];
        let mut words = vec![a.rows as u32, b.rows as u32, a.k as u32, self.batch as u32, activation];
        words.extend([flags_of(&flags), epoch, epoch]);
        words.extend([a.walk.each, a.walk.count, b.walk.each, b.walk.count].map(|size| size as u32));
        let (row_c, column_c) = product.c.unwrap_or((0, 0));
        let (row_bias, column_bias) = product.bias;
        let result = [b.rows, a.rows * b.rows, row_c, column_c, self.c_batch, row_bias, column_bias];
        words.extend(result.into_iter().flat_map(wide));
        words
    }
}

#[cfg(test)]
mod tests;
