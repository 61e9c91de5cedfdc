//! Products of few rows by many, and small ones: operands go from memory straight to the matrix units, float32 accurate
//! (kernels/gemm_direct.cu).

mod launch;
mod tiles;

pub use self::launch::run;

use self::tiles::{LAUNCH, RESIDENT, ROWS, TALL, TALL_GROUP, TALL_K, TALL_START, TILES, Tile, WAVE};
use super::super::Precision;
use super::cuda::{BATCH_AXES, Setting};
use super::split::{flags_of, wide};
use super::{BatchAxis, Product};

/// Shorter sums stay float32 chains: the error of the split, 1.6e-7 of the norm, would be larger than theirs. Very many rows
/// have one of their own that is smaller.
const LEAST_K: usize = 96;
const LEAST_TALL_K: usize = 64;
const SPLITS: &[usize] = &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// Microseconds for adding splits: once, and for each of those that a thread has on their way at once.
const JOINING: (f64, f64) = (1.0, 0.8);
const JOINED_AT_ONCE: usize = 16;
/// Lowest compute capability whose matrix units take TF32.
const LEAST_LEVEL: u32 = 80;
/// Sizes, and tiles whose sums are split.
const MOST: usize = 1 << 30;
const MOST_TILES: usize = crate::kernels::TICKETS;

// Flags of struct Direct.
const VECTOR_L: u32 = 1;
const VECTOR_S: u32 = 2;
const L_IS_B: u32 = 4;
const FLIPPED: u32 = 8;
const VECTOR_D: u32 = 16;
const EARLY: u32 = 32;
/// Where the flags stand in struct Direct.
const FLAGS: usize = 3;

/// An operand as the kernels see it: rows by k, with elements from one row, and from one k, to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Side {
    rows: usize,
    row: usize,
    k: usize,
    /// Whether it begins at a multiple of 16 bytes in every product of the batch.
    aligned: bool,
    /// Matrices of the batch.
    count: usize,
}

impl Side {
    fn new(
        rows: usize,
        (pitch, turned): (usize, bool),
        aligned: bool,
        batch: &[BatchAxis],
        step: fn(&BatchAxis) -> usize,
    ) -> Side {
        let (row, k) = if turned { (1, pitch) } else { (pitch, 1) };
        let walked = batch.iter().filter(|axis| step(axis) != 0);
        let aligned = aligned && batch.iter().all(|axis| step(axis).is_multiple_of(4));
        Side { rows, row, k, aligned, count: walked.map(|axis| axis.size).product() }
    }

    fn k_major(&self) -> bool {
        self.k == 1
    }

    /// Whether vectors of that many elements can be read of it.
    fn vectors(&self, lanes: usize) -> bool {
        let across = self.k_major() || self.rows.is_multiple_of(lanes);
        let pitch = if self.k_major() { self.row } else { self.k };
        self.aligned && across && (pitch.is_multiple_of(lanes) || self.k_major() && self.rows == 1)
    }
}

/// The launch of one product.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    tile: &'static Tile,
    long: Side,
    short: Side,
    long_is_b: bool,
    k: usize,
    batch: usize,
    splits: usize,
    /// Times 16 of k for each split.
    chunks: usize,
    blocks: usize,
    /// Microseconds expected.
    pub time: f64,
    kernel: String,
    /// `struct Direct`.
    words: Vec<u32>,
}

/// The fastest plan; `None` where these kernels do not take the product.
pub fn plan(product: &Product, setting: Setting, precision: Precision) -> Option<Plan> {
    let Product { m, n, k, .. } = *product;
    let batch = product.batch_count();
    let within = m.max(n).max(k) <= MOST && batch <= MOST && product.batch.len() <= BATCH_AXES;
    if setting.size != 4 || setting.card.level < LEAST_LEVEL || k < LEAST_TALL_K || !within {
        return None;
    }
    let a =
        Side::new(m, (product.pitch_a, product.transposed_a), setting.aligned[0], &product.batch, |axis| {
            axis.a
        });
    let b =
        Side::new(n, (product.pitch_b, !product.transposed_b), setting.aligned[1], &product.batch, |axis| {
            axis.b
        });
    let long_is_b = n >= m;
    let (long, short) = if long_is_b { (b, a) } else { (a, b) };
    let strict = precision == Precision::Strict;
    let tiles = TILES.iter().filter(|_| !strict && k >= LEAST_K && (long.k_major() || short.k_major()));
    let rows = Some(&ROWS).filter(|_| short.rows == 1 && long.k_major());
    let tall = Some(&TALL).filter(|_| !strict);
    let plans =
        tiles.chain(rows).chain(tall).flat_map(|tile| SPLITS.iter().map(move |&splits| (tile, splits)));
    let (kernel, words) = (String::new(), Vec::new());
    let plan = Plan {
        tile: &ROWS,
        long,
        short,
        long_is_b,
        k,
        batch,
        splits: 1,
        chunks: 0,
        blocks: 0,
        time: 0.0,
        kernel,
        words,
    };
    let cuts = plans.filter_map(|(tile, splits)| Plan { tile, splits, ..plan.clone() }.cut(&setting));
    let best = cuts.min_by(|one, other| one.time.total_cmp(&other.time))?;
    Some(Plan { kernel: best.name(), words: best.words(product, setting), ..best })
}

impl Plan {
    /// With its sums cut; `None` where that many splits are none too few for the kernel.
    fn cut(mut self, setting: &Setting) -> Option<Plan> {
        let card = &setting.card;
        let multiprocessors = card.multiprocessors as usize;
        let all = self.k.div_ceil(16);
        self.chunks = all.div_ceil(self.splits).next_multiple_of(self.tile.step);
        let asked = std::mem::replace(&mut self.splits, all.div_ceil(self.chunks));
        if asked > 1 && (self.splits != asked || self.chunks < self.tile.groups || self.tiles() > MOST_TILES)
        {
            return None;
        }
        if self.tile == &TALL && !self.is_tall(setting) {
            return None;
        }
        let work = self.tiles().saturating_mul(self.splits);
        let warps = self.tile.threads as usize / 32;
        // Blocks of that kernel stay, a tile is a warp's.
        self.blocks = if self.tile == &TALL { work.div_ceil(warps).min(multiprocessors) } else { work };
        let share = work.div_ceil(multiprocessors);
        let each = self.tile.times.0 + self.tile.times.1 * self.chunks.div_ceil(self.tile.groups) as f64;
        let elements = self.long.rows * self.long.count + self.short.rows * self.short.count;
        let reading = 4.0 * elements as f64 * self.k as f64 / (self.tile.share * card.bandwidth);
        let joining = if self.splits > 1 { JOINING.0 + JOINING.1 * self.joins() as f64 } else { 0.0 };
        let staging = if self.tile == &TALL { TALL_START } else { 0.0 };
        let later = if self.tile == &TALL { 0 } else { share.div_ceil(RESIDENT) - 1 };
        self.time = LAUNCH
            + staging
            + (share as f64 * each / card.tensor).max(reading)
            + later as f64 * WAVE
            + joining;
        Some(self)
    }

    /// How often a thread waits for partial sums.
    fn joins(&self) -> usize {
        let vectors = (self.tile.long * self.tile.short).div_ceil(4 * self.tile.threads as usize);
        self.splits.div_ceil(JOINED_AT_ONCE) * vectors
    }

    /// Whether the kernel for very many rows takes it.
    fn is_tall(&self, setting: &Setting) -> bool {
        let (long, short) = (&self.long, &self.short);
        let fits = short.rows <= TALL.short
            && short.rows.is_multiple_of(4)
            && long.rows >= TALL.long
            && self.k <= TALL_K
            && self.shared() as usize <= setting.card.shared[1];
        fits && self.splits == 1 && self.batch == 1 && !self.flipped() && long.k_major() && long.vectors(4)
    }

    /// Name of the kernel.
    fn name(&self) -> String {
        let letter = |side: &Side| if side.k_major() { 'k' } else { 'm' };
        if self.tile == &ROWS || self.tile == &TALL {
            return format!("matmul_f32_{}", self.tile.name);
        }
        format!("matmul_f32_{}_{}{}", self.tile.name, letter(&self.long), letter(&self.short))
    }

    fn tiles_along(&self) -> [usize; 2] {
        [self.long.rows.div_ceil(self.tile.long), self.short.rows.div_ceil(self.tile.short)]
    }

    fn tiles(&self) -> usize {
        self.tiles_along().into_iter().fold(self.batch, usize::saturating_mul)
    }

    /// Bytes of partial sums.
    fn workspace(&self) -> usize {
        if self.splits == 1 { 0 } else { self.tiles() * self.splits * self.tile.long * self.tile.short * 4 }
    }

    /// Bytes of dynamic shared memory.
    fn shared(&self) -> u32 {
        if self.tile == &TALL {
            return self.tile.threads * 16
                + (self.k.div_ceil(TALL_GROUP) * TALL_GROUP * TALL.short * 8) as u32;
        }
        let outputs = self.tile.long * self.tile.short * self.tile.groups;
        if self.tile == &ROWS { 0 } else { (outputs * 4 + 16) as u32 }
    }

    /// Whether the long operand's rows lie side by side in the result. A column has no other side.
    fn flipped(&self) -> bool {
        self.long_is_b || self.short.rows == 1
    }

    fn flags(&self, setting: Setting) -> u32 {
        let width = if self.flipped() { self.long.rows } else { self.short.rows };
        // Fragments across k of a short operand are read by as many lanes as a warp has of them.
        let lanes = if self.short.k_major() { 4 } else { (self.tile.short / 8).clamp(1, 4) };
        flags_of(&[
            (self.long.vectors(4), VECTOR_L),
            (lanes == 1 || self.short.vectors(lanes), VECTOR_S),
            (self.long_is_b, L_IS_B),
            (self.flipped(), FLIPPED),
            (setting.aligned[2] && width.is_multiple_of(4), VECTOR_D),
        ])
    }

    /// `struct Direct`.
    fn words(&self, product: &Product, setting: Setting) -> Vec<u32> {
        let [tiles_l, tiles_s] = if self.tile == &TALL { [1; 2] } else { self.tiles_along() };
        let magic = |size: usize| u32::MAX / size as u32;
        // The result is read by rows of `width`, which are a column's one where it has no other.
        let column = self.flipped() && !self.long_is_b;
        let turn = |(row, step): (usize, usize)| if column { (step, row) } else { (row, step) };
        let (bias, c) = (turn(product.bias), turn(product.c.unwrap_or((0, 0))));
        let sizes = [self.long.rows, self.short.rows, self.k, self.flags(setting) as usize];
        let mut words: Vec<u32> = sizes.map(|size| size as u32).into();
        words.push(setting.activation);
        words.extend([self.splits, self.chunks, tiles_l, tiles_s, self.batch].map(|size| size as u32));
        words.extend([magic(tiles_l), magic(tiles_s), magic(self.splits), bias.0 as u32, bias.1 as u32]);
        let (long, short) = (&self.long, &self.short);
        let steps = [long.row, long.k, short.row, short.k, product.n, c.0, c.1, product.m * product.n];
        words.extend(steps.into_iter().flat_map(wide));
        words.extend(super::cuda::batch_words(product));
        words
    }
}

#[cfg(test)]
mod tests;
