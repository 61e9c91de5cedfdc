//! float16 and bfloat16 products on Hopper's tensor cores (kernels/gemm_half.cu): operands as they lie in memory.

mod launch;

pub use self::launch::run;

use super::super::Precision;
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
    multiprocessors: u32,
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
    let outputs = m.div_ceil(ROWS).checked_mul(n.div_ceil(64))?.checked_mul(batch)?;
    if outputs > i32::MAX as usize || !a.is_within_limits() || !b.is_within_limits() {
        return None;
    }
    let promotes = promotes(k, setting);
    let count = |tile: &Tile| m.div_ceil(ROWS) * n.div_ceil(tile.columns) * batch;
    let time = |tile: &Tile| {
        let each = tile.times.0 * k.div_ceil(64) as f64 + tile.times.1;
        count(tile).div_ceil(setting.multiprocessors.max(1) as usize) as f64 * each
    };
    let tile = match promotes {
        true => &PROMOTED,
        false => TILES.iter().min_by(|one, other| time(one).total_cmp(&time(other)))?,
    };
    // Few tiles with long sums want splitting, which other routes do.
    if 4 * count(tile) < setting.multiprocessors as usize && k >= LONG {
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
    let mut words = [m, n, k, batch].map(|size| size as u32).to_vec();
    words.extend([activation, flags_of(&flags)]);
    words.extend([walk_a.each, walk_a.count, walk_b.each, walk_b.count].map(|size| size as u32));
    let (row_c, column_c) = product.c.unwrap_or((0, 0));
    words.extend([row_c, column_c, c_batch, product.bias.0, product.bias.1].into_iter().flat_map(wide));
    Some(Plan { kernel, tile, a, b, tiles: count(tile), words })
}

#[cfg(test)]
mod tests;
