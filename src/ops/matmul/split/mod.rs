//! The route over tensor cores: float32 operands as scaled float16 planes (kernels/common/split.cuh).

mod launch;
mod tiles;

pub use self::launch::{Pointers, run};
pub use self::tiles::{Tile, known, mma};
pub use super::super::planes::Planes;

use super::super::tile::Card;
use super::super::{Precision, planes};
use super::cuda::Setting;
use super::{BatchAxis, Product};
use crate::kernels::Launcher;
use crate::tensor::{DeviceView, Form, FormKey};

/// Sums shorter than this stay float32 chains.
const LEAST_K: usize = 64;

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

    /// Blocks of kernels/split.cu that exchange their largest values, where devices have clusters.
    fn cluster(&self, card: &Card) -> usize {
        let most = if card.level == 90 { 8 } else { 1 };
        if self.turned { self.k.div_ceil(HELD).next_power_of_two().min(most) } else { 1 }
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

    /// Elements from one row, k and matrix to the next.
    fn steps(&self) -> [usize; 3] {
        let (row, k) = if self.turned { (1, self.pitch) } else { (self.pitch, 1) };
        [row, k, self.walk.step]
    }
}

impl planes::Side for Side {
    fn planes_size(&self) -> usize {
        4 * self.all_rows() * self.plane_pitch()
    }

    fn scales(&self) -> usize {
        self.all_rows()
    }

    fn moved(&self) -> usize {
        self.all_rows() * self.k * if self.hi_only { 6 } else { 8 }
    }

    fn key(&self) -> FormKey {
        let flags = flags_of(&[(self.turned, TURNED), (self.hi_only, HI_ONLY)]);
        let sizes = [self.rows, self.k, self.pitch, self.walk.count, self.walk.step, flags as usize];
        ("split", sizes.map(|size| size as u64))
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
    /// Bytes of dynamic shared memory.
    shared: usize,
    card: Card,
    a: Side,
    b: Side,
    batch: usize,
    c_batch: usize,
    vector_d: bool,
    /// Microseconds that the tiles take.
    time: f64,
}

/// The plan of a product; `None` where this route does not take it.
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
    let card = setting.card;
    let tiles = Tile::of(&card, precision);
    let most = tiles.iter().map(|tile| tile.count(m, n, batch)).max()?;
    if most > i32::MAX as usize || !a.is_within_limits() || !b.is_within_limits() {
        return None;
    }
    let timed = tiles.iter().filter(|tile| k <= tile.longest).filter_map(|tile| {
        let (shared, resident) = tile.held(&card)?;
        Some((tile, shared, tile.time(tile.count(m, n, batch), k, resident, &card)))
    });
    let (tile, shared, time) = timed.min_by(|one, other| one.2.total_cmp(&other.2))?;
    // Rows of the result lie n apart.
    let vector_d = setting.aligned[2] && n.is_multiple_of(2);
    Some(Plan { tile, shared, card, a, b, batch, c_batch, vector_d, time })
}

impl Plan {
    /// What is known of the operands' planes, and note of this use.
    pub fn forms(&self, launcher: &Launcher, views: &[DeviceView; 2]) -> [Form<Planes>; 2] {
        planes::forms(launcher, [&self.a, &self.b], views)
    }

    /// Microseconds expected.
    pub fn time(&self, forms: &[Form<Planes>; 2]) -> f64 {
        planes::time([&self.a, &self.b], forms, self.card.bandwidth) + self.time
    }

    /// Blocks of the multiplying kernel.
    fn blocks(&self) -> usize {
        let tiles = self.tile.count(self.a.rows, self.b.rows, self.batch);
        if self.tile.maps { tiles.min(self.card.multiprocessors as usize) } else { tiles }
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
