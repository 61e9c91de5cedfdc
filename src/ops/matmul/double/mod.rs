//! float64 products on tensor cores, from compute capability 8.0 on (kernels/gemm_double.cu). Their sums are the chains of
//! the plain kernels, so this route differs from those in time alone.

mod launch;

pub use self::launch::run;

use super::super::tile::{Card, Choice, LAUNCH, STEP, Tile, Work, choose, split_evenly};
use super::cuda::{BATCH_AXES, Form, Setting, is_narrow, pack};
use super::{BatchAxis, LARGEST, Product};

/// Tiles of any operands, fitted with the others to times of an H200.
#[rustfmt::skip]
const TILES: &[Tile] = &[
    Tile { name: "mma_64x64", rows: 64, columns: 64, threads: 256, resident: 2, peak: 0.224, half: 0.31 },
    Tile { name: "mma_32x32", rows: 32, columns: 32, threads: 128, resident: 2, peak: 0.65, half: 7.5 },
];

/// Tiles of compute capability 9.0, which tensor maps bring.
#[rustfmt::skip]
const RING: &[Tile] = &[
    Tile { name: "tma_128x128", rows: 128, columns: 128, threads: 384, resident: 1, peak: 0.2325, half: 0.02 },
    Tile { name: "tma_128x64", rows: 128, columns: 64, threads: 384, resident: 1, peak: 0.2285, half: 0.02 },
];

/// Dynamic shared memory of a tile: slots of 16 of k.
fn shared(tile: &Tile) -> u32 {
    match tile.name {
        "mma_64x64" => 3 * 128 * 160,
        "mma_32x32" => 4 * 64 * 160,
        _ => 193 << 10,
    }
}

/// Share of the bandwidth that a padding copy reaches.
const PADDING: f64 = 0.6;

/// A or B as a tensor map sees it: `matrices` of `lines` lines of `columns` elements.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Operand {
    lines: usize,
    columns: usize,
    matrices: usize,
    /// Whether k runs over lines rather than along them.
    across: bool,
    /// Whether the copy engine cannot read it where it lies: it wants lines at multiples of 16 bytes.
    padded: bool,
}

impl Operand {
    fn new(
        rows: usize,
        k: usize,
        across: bool,
        steps: impl Iterator<Item = (usize, usize)>,
        aligned: bool,
    ) -> Operand {
        let (lines, columns) = if across { (k, rows) } else { (rows, k) };
        let last: usize = steps.map(|(size, step)| (size - 1) * step).sum();
        Operand { lines, columns, matrices: 1 + last, across, padded: !aligned || !columns.is_multiple_of(2) }
    }

    /// Elements from one line to the next, after padding.
    fn pitch(&self) -> usize {
        self.columns.next_multiple_of(2)
    }

    fn all_lines(&self) -> usize {
        self.matrices.saturating_mul(self.lines)
    }

    /// Lines of a box of the copy engine, which is 16 elements wide.
    fn box_lines(&self, tile_rows: usize) -> u32 {
        if self.across { 16 } else { tile_rows as u32 }
    }

    fn is_within_limits(&self) -> bool {
        self.all_lines() <= LARGEST && self.lines.saturating_mul(self.pitch()) < 1 << 36
    }

    /// Microseconds that padding takes.
    fn time(&self, card: &Card) -> f64 {
        if !self.padded {
            return 0.0;
        }
        LAUNCH + 2.0 * (8 * self.all_lines() * self.pitch()) as f64 / (PADDING * card.bandwidth)
    }
}

#[derive(Debug, PartialEq)]
struct Plan {
    kernel: String,
    blocks: u64,
    threads: u32,
    shared: u32,
    splits: usize,
    words: Vec<u32>,
    /// Operands of tensor maps with the tile's rows of each, where the kernel takes those.
    maps: Option<[(Operand, usize); 2]>,
}

/// The plan of a product that has elements, for kernels of that level; `None` where this route does not take it.
fn plan(product: &Product, setting: Setting, level: u32) -> Option<Plan> {
    let Product { m, n, k, .. } = *product;
    let batch = product.batch_count();
    let is_large = m.max(n).max(k).max(batch) > LARGEST || product.batch.len() > BATCH_AXES;
    if setting.size != 8 || level < 80 || is_large || is_narrow(product, setting) {
        return None;
    }
    let work = Work { rows: m, columns: n, depth: k, batch, size: setting.size };
    let tile = choose(TILES, &work, &setting.card);
    let ring = choose(RING, &work, &setting.card);
    let maps = if level == 90 { maps(product, setting, &ring) } else { None };
    let maps = maps.filter(|[a, b]| ring.time + a.time(&setting.card) + b.time(&setting.card) < tile.time);
    Some(match maps {
        Some(maps) => with_maps(product, setting, ring, maps),
        None => planned(product, setting, tile),
    })
}

fn planned(product: &Product, setting: Setting, choice: Choice) -> Plan {
    let Choice { tile, splits, .. } = choice;
    let (steps, splits) = split_evenly(product.k.div_ceil(STEP), splits);
    let terms = if splits == 1 { product.k.max(1) } else { steps * STEP };
    let tiles = product.m.div_ceil(tile.rows) * product.n.div_ceil(tile.columns);
    let form = Form {
        kernel: tile.name.into(),
        blocks: tiles,
        threads: tile.threads,
        splits,
        either_way: true,
        large_b: false,
    };
    let words = pack(product, setting, &form, splits, terms);
    Plan {
        blocks: (tiles * splits) as u64 * product.batch_count() as u64,
        shared: shared(tile),
        kernel: form.kernel,
        threads: form.threads,
        splits,
        words,
        maps: None,
    }
}

/// The operands of tensor maps; `None` where those or the kernels' counters do not reach.
fn maps(product: &Product, setting: Setting, choice: &Choice) -> Option<[Operand; 2]> {
    let Product { m, n, k, .. } = *product;
    let tiles = m.div_ceil(choice.tile.rows) * n.div_ceil(choice.tile.columns);
    let blocks = tiles.saturating_mul(choice.splits).saturating_mul(product.batch_count());
    if k == 0 || blocks > LARGEST {
        return None;
    }
    let batch = in_matrices(product);
    let steps = |step: fn(&BatchAxis) -> usize| batch.iter().map(move |axis| (axis.size, step(axis)));
    let a = Operand::new(m, k, product.transposed_a, steps(|axis| axis.a), setting.aligned[0]);
    let b = Operand::new(n, k, !product.transposed_b, steps(|axis| axis.b), setting.aligned[1]);
    (a.is_within_limits() && b.is_within_limits()).then_some([a, b])
}

/// The batch with steps of a and b in matrices.
fn in_matrices(product: &Product) -> Vec<BatchAxis> {
    let Product { m, n, k, .. } = *product;
    product
        .batch
        .iter()
        .map(|axis| BatchAxis { a: axis.a / (m * k), b: axis.b / (k * n), ..axis.clone() })
        .collect()
}

fn with_maps(product: &Product, setting: Setting, choice: Choice, maps: [Operand; 2]) -> Plan {
    let walked = Product { batch: in_matrices(product), ..product.clone() };
    let [a, b] = maps;
    let maps = [(a, choice.tile.rows), (b, choice.tile.columns)];
    let plan = planned(&walked, setting, choice);
    let stored = |transposed: bool| if transposed { 't' } else { 'n' };
    Plan {
        kernel: format!("{}_{}{}", plan.kernel, stored(product.transposed_a), stored(product.transposed_b)),
        blocks: plan.blocks.min(u64::from(setting.card.multiprocessors)),
        maps: Some(maps),
        ..plan
    }
}

#[cfg(test)]
mod tests;
