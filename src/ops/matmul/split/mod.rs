//! The route over Hopper's tensor cores: float32 operands as scaled float16 planes (kernels/common/split.cuh).

mod launch;

pub use self::launch::{Planes, Pointers, run};

use super::super::Precision;
use super::super::tile::{BANDWIDTH, LAUNCH};
use super::cuda::Setting;
use super::{BatchAxis, Product};
use crate::tensor::{DeviceView, Form, FormKey};

/// One of the kernels of kernels/gemm_split.cu. The times are those of an H200.
#[derive(Debug, PartialEq)]
struct Tile {
    name: &'static str,
    rows: usize,
    columns: usize,
    /// Tiles of A and B that shared memory holds.
    units: usize,
    /// Longest sums: the tensor core truncates, so what stays in it comes out low by some 2^-27 for each 64 terms.
    longest: usize,
    /// Microseconds for 64 of k, and for the rest of a tile.
    times: (f64, f64),
}

const ANY: usize = usize::MAX;
#[rustfmt::skip]
static THREE_PRODUCTS: [Tile; 3] = [
    Tile { name: "split_64x64", rows: 64, columns: 64, units: 12, longest: ANY, times: (0.475, 1.4) },
    Tile { name: "split_64x128", rows: 64, columns: 128, units: 8, longest: ANY, times: (0.66, 1.5) },
    Tile { name: "split_128x128", rows: 128, columns: 128, units: 7, longest: ANY, times: (1.25, 1.0) },
];
#[rustfmt::skip]
static ONE_PRODUCT: [Tile; 2] = [
    Tile { name: "half_128x128", rows: 128, columns: 128, units: 7, longest: ANY, times: (0.53, 0.6) },
    Tile { name: "half_128x256", rows: 128, columns: 256, units: 4, longest: 1 << 14, times: (0.82, 2.0) },
];

impl Tile {
    fn count(&self, rows: usize, columns: usize, batch: usize) -> usize {
        rows.div_ceil(self.rows).saturating_mul(columns.div_ceil(self.columns)).saturating_mul(batch)
    }

    /// Tiles of 64 rows are multiplied by two warpgroups along k.
    fn along_k(&self) -> bool {
        self.rows == 64
    }
}

/// Sums shorter than this stay float32 chains.
const LEAST_K: usize = 64;
/// Share of the bandwidth that the splitting kernel reaches, and the microseconds that its launch adds.
const SPLITTING: (f64, f64) = (0.6, 2.0);

// Flags of kernels/split.cu.
const TURNED: u32 = 1;
const HI_ONLY: u32 = 4;
// Flag of struct Split.
const VECTOR_D: u32 = 1;

/// Rows of a panel that a cluster splits, where turned, and values of k that a block of it holds.
const PANEL: usize = 16;
const HELD: usize = 512;

/// How a batch's index leads to a matrix: index / each % count, matrices `step` elements apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    pub each: usize,
    pub count: usize,
    pub step: usize,
}

impl Walk {
    /// `None` where the axes do not have that form.
    pub fn over(batch: &[BatchAxis], step: fn(&BatchAxis) -> usize) -> Option<Walk> {
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

    /// Elements from one product's matrix to the next; `None` where a step does not say it.
    pub fn plain_step(&self, batch: usize) -> Option<usize> {
        match *self {
            Walk { step: 0, .. } => Some(0),
            Walk { each: 1, count, step } if count == batch => Some(step),
            _ => None,
        }
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
    hi_only: bool,
}

impl Side {
    /// Elements from one row of a plane to the next.
    fn plane_pitch(&self) -> usize {
        self.k.next_multiple_of(64)
    }

    fn all_rows(&self) -> usize {
        self.walk.count * self.rows
    }

    /// Bytes of both planes of all matrices.
    fn planes_size(&self) -> usize {
        4 * self.all_rows() * self.plane_pitch()
    }

    /// Blocks of kernels/split.cu that exchange their largest values.
    fn cluster(&self) -> usize {
        if self.turned { self.k.div_ceil(HELD).next_power_of_two().min(8) } else { 1 }
    }

    /// Threads of a row; where turned, values of k of a block in a cluster.
    fn width(&self, cluster: usize) -> usize {
        if self.turned {
            return self.k.div_ceil(cluster).next_multiple_of(64).max(128);
        }
        (self.k.div_ceil(32)).next_power_of_two().clamp(32, 256)
    }

    /// Blocks of kernels/split.cu, a multiple of the cluster.
    fn blocks(&self, cluster: usize) -> usize {
        if self.turned {
            return self.rows.div_ceil(PANEL) * self.walk.count * cluster;
        }
        self.all_rows().div_ceil(256 / self.width(cluster)).next_multiple_of(cluster)
    }

    fn is_within_limits(&self) -> bool {
        let most = i32::MAX as usize;
        self.rows.saturating_mul(self.walk.count) <= most
            && self.blocks(8) <= most / 2
            && self.rows.saturating_mul(self.plane_pitch()) < 1 << 38
    }

    /// `struct SplitOperand`.
    fn words(&self, blocks: usize, cluster: usize, epoch: u32) -> Vec<u32> {
        let flags = flags_of(&[(self.turned, TURNED), (self.hi_only, HI_ONLY)]);
        let sizes = [self.rows, self.k, self.plane_pitch(), flags as usize, self.walk.count, blocks];
        let mut words: Vec<u32> = sizes.map(|size| size as u32).into();
        words.extend([self.width(cluster) as u32, epoch]);
        words.extend([self.pitch, self.walk.step].into_iter().flat_map(wide));
        words
    }

    /// What its planes depend on beside the elements.
    fn key(&self) -> FormKey {
        let flags = flags_of(&[(self.turned, TURNED), (self.hi_only, HI_ONLY)]);
        let sizes = [self.rows, self.k, self.pitch, self.walk.count, self.walk.step, flags as usize];
        ("split", sizes.map(|size| size as u64))
    }

    /// Elements from one row, k and matrix to the next.
    fn steps(&self) -> [usize; 3] {
        let (row, k) = if self.turned { (1, self.pitch) } else { (self.pitch, 1) };
        [row, k, self.walk.step]
    }

    /// Microseconds to split it, launches aside.
    fn time(&self) -> f64 {
        let bytes = if self.hi_only { 6 } else { 8 };
        (self.all_rows() * self.k * bytes) as f64 / (SPLITTING.0 * BANDWIDTH)
    }
}

pub fn wide(value: usize) -> [u32; 2] {
    [value as u32, (value as u64 >> 32) as u32]
}

pub fn flags_of(flags: &[(bool, u32)]) -> u32 {
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
    /// Microseconds that the tiles take.
    time: f64,
}

/// The plan of a product on a device of compute capability 9.0; `None` where this route does not take it.
pub fn plan(product: &Product, setting: Setting, precision: Precision) -> Option<Plan> {
    let Product { m, n, k, .. } = *product;
    if setting.size != 4 || k < LEAST_K || precision == Precision::Strict {
        return None;
    }
    let batch = product.batch_count();
    let highest = precision == Precision::Highest;
    let side = |rows, pitch: usize, turned, walk: Walk, aligned| {
        let vectors = aligned && pitch.is_multiple_of(4) && walk.step.is_multiple_of(4);
        Side { rows, k, turned, pitch, walk, vectors, hi_only: !highest }
    };
    let [walk_a, walk_b] =
        [Walk::over(&product.batch, |axis| axis.a)?, Walk::over(&product.batch, |axis| axis.b)?];
    let a = side(m, product.pitch_a, product.transposed_a, walk_a, setting.aligned[0]);
    let b = side(n, product.pitch_b, !product.transposed_b, walk_b, setting.aligned[1]);
    // Without c its steps are 0.
    let c_batch = Walk::over(&product.batch, |axis| axis.c)?.plain_step(batch)?;
    let tiles: &[Tile] = if highest { &THREE_PRODUCTS } else { &ONE_PRODUCT };
    if tiles[0].count(m, n, batch) > i32::MAX as usize || !a.is_within_limits() || !b.is_within_limits() {
        return None;
    }
    let time = |tile: &Tile| {
        let each = tile.times.0 * k.div_ceil(64) as f64 + tile.times.1;
        tile.count(m, n, batch).div_ceil(setting.multiprocessors.max(1) as usize) as f64 * each
    };
    let fitting = tiles.iter().filter(|tile| k <= tile.longest);
    let tile = fitting.min_by(|one, other| time(one).total_cmp(&time(other)))?;
    // Rows of the result lie n apart.
    let vector_d = setting.aligned[2] && n.is_multiple_of(2);
    Some(Plan { tile, a, b, batch, c_batch, vector_d, time: time(tile) })
}

impl Plan {
    /// What is known of the operands' planes, and note of this use.
    pub fn forms(&self, [a, b]: &[DeviceView; 2]) -> [Form<Planes>; 2] {
        [a.form(self.a.key(), b), b.form(self.b.key(), a)]
    }

    /// Microseconds expected. Planes that a tensor keeps cost nothing, nor do those that are made once to be kept.
    pub fn time(&self, forms: &[Form<Planes>; 2]) -> f64 {
        let passing = [(&self.a, &forms[0]), (&self.b, &forms[1])]
            .into_iter()
            .filter(|(_, form)| matches!(form, Form::Passing));
        let splits: Vec<f64> = passing.map(|(side, _)| side.time()).collect();
        let launch = if splits.is_empty() { 0.0 } else { SPLITTING.1 };
        LAUNCH + launch + splits.iter().sum::<f64>() + self.time
    }

    fn tiles(&self) -> usize {
        self.tile.count(self.a.rows, self.b.rows, self.batch)
    }

    fn shared(&self) -> u32 {
        let exchange = if self.tile.along_k() { 256 * self.tile.columns } else { 0 };
        (self.tile.units * (self.tile.rows + self.tile.columns) * 128 + exchange + 1024) as u32
    }

    /// `struct Split`.
    fn words(&self, product: &Product, activation: u32, epochs: [u32; 2]) -> Vec<u32> {
        let (a, b) = (&self.a, &self.b);
        let flags = [(self.vector_d, VECTOR_D)];
        let mut words = vec![a.rows as u32, b.rows as u32, a.k as u32, self.batch as u32, activation];
        words.extend([flags_of(&flags), epochs[0], epochs[1]]);
        words.extend([a.walk.each, a.walk.count, b.walk.each, b.walk.count].map(|size| size as u32));
        let (row_c, column_c) = product.c.unwrap_or((0, 0));
        let (row_bias, column_bias) = product.bias;
        let result = [b.rows, a.rows * b.rows, row_c, column_c, self.c_batch, row_bias, column_bias];
        words.extend(result.into_iter().chain(a.steps()).chain(b.steps()).flat_map(wide));
        words
    }
}

#[cfg(test)]
mod tests;
