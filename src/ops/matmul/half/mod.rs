//! float16 and bfloat16 products on tensor cores: operands as they lie in memory. This is the route of compute capability
//! 9.0 (kernels/gemm_half.cu) and what it shares with that of the others.

mod launch;
mod mma;

pub use self::launch::run;

use super::super::Precision;
use super::super::tile::Card;
use super::Product;
use super::split::{Walk, flags_of, wide};
use crate::dtype::DType;

/// One of the kernels' tiles. The times are those of an H200.
#[derive(Debug, PartialEq)]
struct Tile {
    columns: usize,
    /// Microseconds for 64 of k, and for the rest of a tile.
    times: (f64, f64),
}

const ROWS: usize = 128;

static TILES: [Tile; 4] = [
    Tile { columns: 64, times: (0.27, 1.6) },
    Tile { columns: 128, times: (0.37, 1.8) },
    Tile { columns: 192, times: (0.565, 2.2) },
    Tile { columns: 256, times: (0.72, 3.0) },
];
/// The only one whose kernels know WGMMA_PROMOTE.
static PROMOTED: Tile = Tile { columns: 128, times: (0.45, 2.2) };

/// Sums from here on are long where few tiles share the device.
const LONG: usize = 4096;

/// Dynamic shared memory of every tile: slots of 192 KiB, 4 KiB for each of eight warps, alignment.
const SHARED: u32 = (192 + 32 + 1) << 10;

// Flags of kernels/common/wgmma_store.cuh.
const ALIGNED_D: u32 = 1;
const FLOAT_D: u32 = 2;
const PROMOTE: u32 = 4;

/// What a plan depends on besides the product.
#[derive(Debug, Clone, Copy)]
struct Setting {
    /// Whether a, b and the result begin at multiples of 16 bytes.
    aligned: [bool; 3],
    operands: DType,
    result: DType,
    precision: Precision,
    card: Card,
}

/// A or B in memory: `matrices` of `lines` lines of `columns` elements.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Operand {
    lines: usize,
    columns: usize,
    /// Whether k runs over lines rather than along them.
    across: bool,
    walk: Walk,
    /// Whether the copy engine cannot read it where it lies: it wants lines at multiples of 16 bytes.
    padded: bool,
}

impl Operand {
    fn new(rows: usize, k: usize, across: bool, walk: Walk, aligned: bool) -> Operand {
        let (lines, columns) = if across { (k, rows) } else { (rows, k) };
        Operand { lines, columns, across, walk, padded: !aligned || !columns.is_multiple_of(8) }
    }

    /// Elements from one line to the next, after padding.
    fn pitch(&self) -> usize {
        self.columns.next_multiple_of(8)
    }

    /// Elements from one matrix to the next, after padding.
    fn step(&self) -> usize {
        self.lines * self.pitch()
    }

    fn all_lines(&self) -> usize {
        self.walk.count.saturating_mul(self.lines)
    }

    /// Lines of a box of the copy engine, which is 64 elements wide.
    fn box_lines(&self, tile_rows: usize) -> u32 {
        if self.across { 64 } else { tile_rows as u32 }
    }

    fn is_within_limits(&self) -> bool {
        self.all_lines() <= i32::MAX as usize && self.lines.saturating_mul(self.pitch()) < 1 << 38
    }
}

/// The operands of a product, and how its batch leads to them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sides {
    a: Operand,
    b: Operand,
    batch: usize,
    c_batch: usize,
}

impl Sides {
    /// Those of a product that has elements; `None` where these routes do not take it.
    fn new(product: &Product, setting: Setting) -> Option<Sides> {
        let Product { m, n, k, .. } = *product;
        if k == 0 || !setting.operands.is_half() || setting.precision == Precision::Strict {
            return None;
        }
        let [walk_a, walk_b, walk_c] = [
            Walk::over(&product.batch, |axis| axis.a)?,
            Walk::over(&product.batch, |axis| axis.b)?,
            Walk::over(&product.batch, |axis| axis.c)?,
        ];
        let batch = product.batch_count();
        let c_batch = walk_c.plain_step(batch)?;
        let a = Operand::new(m, k, product.transposed_a, walk_a, setting.aligned[0]);
        let b = Operand::new(n, k, !product.transposed_b, walk_b, setting.aligned[1]);
        // The smallest tiles.
        let outputs = m.div_ceil(64).checked_mul(n.div_ceil(64))?.checked_mul(batch)?;
        let within = outputs <= i32::MAX as usize && a.is_within_limits() && b.is_within_limits();
        within.then_some(Sides { a, b, batch, c_batch })
    }

    /// `struct Half`.
    fn words(&self, product: &Product, activation: u32, flags: &[(bool, u32)]) -> Vec<u32> {
        let mut words = [product.m, product.n, product.k, self.batch].map(|size| size as u32).to_vec();
        words.extend([activation, flags_of(flags)]);
        let (a, b) = (self.a.walk, self.b.walk);
        words.extend([a.each, a.count, b.each, b.count].map(|size| size as u32));
        let (row_c, column_c) = product.c.unwrap_or((0, 0));
        let steps = [row_c, column_c, self.c_batch, product.bias.0, product.bias.1];
        words.extend(steps.into_iter().flat_map(wide));
        words
    }
}

#[derive(Debug, PartialEq)]
struct Plan {
    kernel: String,
    tile: &'static Tile,
    a: Operand,
    b: Operand,
    /// Output tiles.
    tiles: usize,
    words: Vec<u32>,
}

/// Whether sums leave the tensor core every 128 terms. It truncates, so that sums of one sign come out low by up to 2^-27
/// of themselves for each 64 terms: hidden by the result's rounding up to some length, and never in float32.
fn promotes(k: usize, setting: Setting) -> bool {
    match setting.result {
        DType::Bf16 => k > 1 << 17,
        DType::F32 if setting.precision == Precision::Highest => true,
        _ => k > 1 << 14,
    }
}

/// The plan of a product that has elements, on compute capability 9.0; `None` where this route does not take it.
fn plan(product: &Product, activation: u32, setting: Setting) -> Option<Plan> {
    let Product { m, n, k, .. } = *product;
    let sides = Sides::new(product, setting)?;
    let promotes = promotes(k, setting);
    let count = |tile: &Tile| m.div_ceil(ROWS) * n.div_ceil(tile.columns) * sides.batch;
    let time = |tile: &Tile| {
        let each = tile.times.0 * k.div_ceil(64) as f64 + tile.times.1;
        count(tile).div_ceil(setting.card.multiprocessors as usize) as f64 * each
    };
    let tile = match promotes {
        true => &PROMOTED,
        false => TILES.iter().min_by(|one, other| time(one).total_cmp(&time(other)))?,
    };
    // Few tiles with long sums want splitting, which other routes do.
    if 4 * count(tile) < setting.card.multiprocessors as usize && k >= LONG {
        return None;
    }
    let stored = |transposed: bool| if transposed { 't' } else { 'n' };
    let kernel = format!(
        "matmul_{}_{ROWS}x{}_{}{}",
        setting.operands.suffix(),
        tile.columns,
        stored(product.transposed_a),
        stored(product.transposed_b)
    );
    let flags =
        [(setting.aligned[2], ALIGNED_D), (setting.result == DType::F32, FLOAT_D), (promotes, PROMOTE)];
    let words = sides.words(product, activation, &flags);
    Some(Plan { kernel, tile, a: sides.a, b: sides.b, tiles: count(tile), words })
}

#[cfg(test)]
mod tests;
