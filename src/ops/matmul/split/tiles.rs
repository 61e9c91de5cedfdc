//! The kernels that multiply planes, and how long each takes.

use super::super::super::Precision;
use super::super::super::tile::Card;

/// One kernel of kernels/gemm_split.cu, kernels/gemm_mma.cu or kernels/gemm_mma_half.cu. The times are those of an H200.
#[derive(Debug, PartialEq)]
pub struct Tile {
    /// The kernel's suffix.
    pub name: &'static str,
    pub rows: usize,
    pub columns: usize,
    pub threads: u32,
    /// Whether it reads through tensor maps, and its blocks take one tile after the other.
    pub maps: bool,
    /// Bytes of dynamic shared memory: of each stage along k, and beside them.
    stage: usize,
    beside: usize,
    /// Numbers of stages that it takes, the best first.
    stages: &'static [usize],
    /// Most blocks that a multiprocessor holds.
    resident: usize,
    /// Microseconds that a multiprocessor takes for 64 of k of a tile, and for the rest of it.
    times: (f64, f64),
    /// Number of blocks with which a multiprocessor is half as fast.
    half: f64,
    /// Longest sums.
    pub longest: usize,
}

/// Those of compute capability 9.0. Tiles of 64 rows are multiplied by two warpgroups along k, which exchange sums.
const fn wgmma(
    name: &'static str,
    (rows, columns): (usize, usize),
    stages: &'static [usize],
    (times, longest): ((f64, f64), usize),
) -> Tile {
    let stage = (rows + columns) * 128;
    let beside = 1024 + if rows == 64 { 256 * columns } else { 0 };
    let (threads, maps, resident, half) = (384, true, 1, 0.0);
    Tile { name, rows, columns, threads, maps, stage, stages, beside, resident, times, half, longest }
}

/// Those of all others; a stage holds 32 of k of each plane.
pub const fn mma(
    name: &'static str,
    planes: usize,
    (rows, columns): (usize, usize),
    (threads, resident): (u32, usize),
    (times, half): ((f64, f64), f64),
) -> Tile {
    let (stage, beside, stages) = (planes * (rows + columns) * 64, 0, &[4, 3]);
    let (maps, longest) = (false, OFFSETS);
    Tile { name, rows, columns, threads, maps, stage, stages, beside, resident, times, half, longest }
}

const ANY: usize = usize::MAX;
/// The tensor core truncates: what stays in it comes out low by some 2^-27 for each 64 terms.
const TRUNCATED: usize = 1 << 14;
/// Offsets in a tile of kernels/gemm_mma.cu take 32 bits.
const OFFSETS: usize = (1 << 23) - 64;

static WGMMA_THREE: [Tile; 3] = [
    wgmma("split_64x64", (64, 64), &[12], ((0.475, 1.4), ANY)),
    wgmma("split_64x128", (64, 128), &[8], ((0.66, 1.5), ANY)),
    wgmma("split_128x128", (128, 128), &[7], ((1.25, 1.0), ANY)),
];
static WGMMA_ONE: [Tile; 2] = [
    wgmma("half_128x128", (128, 128), &[7], ((0.53, 0.6), ANY)),
    wgmma("half_128x256", (128, 256), &[4], ((0.82, 2.0), TRUNCATED)),
];
/// The last of three is for compute capability 8.0 on.
static MMA_THREE: [Tile; 3] = [
    mma("mma_128x128", 2, (128, 128), (256, 1), ((2.05, 4.4), 0.0)),
    mma("mma_64x64", 2, (64, 64), (128, 3), ((0.507, 0.97), 0.55)),
    mma("mma_64x128", 2, (64, 128), (128, 2), ((0.953, 1.95), 0.31)),
];
static MMA_ONE: [Tile; 3] = [
    mma("mma_half_256x128", 1, (256, 128), (256, 1), ((1.54, 6.2), 0.0)),
    mma("mma_half_64x64", 1, (64, 64), (128, 4), ((0.221, 0.79), 0.75)),
    mma("mma_half_64x128", 1, (64, 128), (128, 3), ((0.395, 1.63), 0.41)),
];

/// Of kernels by mma.sync, those that the device's level has.
pub fn known(card: &Card, tiles: &'static [Tile; 3]) -> &'static [Tile] {
    if card.level < 80 { &tiles[..2] } else { tiles }
}

/// What the float32 chains of a block take.
const LEAST_SHARED: usize = 17_408;

impl Tile {
    /// The kernels of a device for a precision.
    pub fn of(card: &Card, precision: Precision) -> &'static [Tile] {
        match (card.level == 90, precision) {
            (true, Precision::Highest) => &WGMMA_THREE,
            (true, _) => &WGMMA_ONE,
            (false, Precision::Highest) => known(card, &MMA_THREE),
            (false, _) => known(card, &MMA_ONE),
        }
    }

    /// Bytes of dynamic shared memory, and blocks that a multiprocessor then holds: as many as may be, with as many stages
    /// as leave that. `None` where it holds none.
    pub fn held(&self, card: &Card) -> Option<(usize, usize)> {
        // Without asynchronous copies there are two stages; with them the system takes 1 KiB of each block's.
        let (stages, taken): (&[usize], usize) =
            if card.level < 80 { (&[2], 0) } else { (self.stages, 1024) };
        let held = stages.iter().map(|count| {
            let shared = (self.stage * count + self.beside).max(LEAST_SHARED);
            (
                shared,
                if shared > card.shared[1] {
                    0
                } else {
                    self.resident.min(card.shared[0] / (shared + taken))
                },
            )
        });
        held.filter(|(_, resident)| *resident > 0).max_by_key(|(shared, resident)| (*resident, *shared))
    }

    /// Tiles of a product.
    pub fn count(&self, m: usize, n: usize, batch: usize) -> usize {
        m.div_ceil(self.rows).saturating_mul(n.div_ceil(self.columns)).saturating_mul(batch)
    }

    /// Microseconds for that many tiles of which a multiprocessor holds `resident`.
    pub fn time(&self, tiles: usize, k: usize, resident: usize, card: &Card) -> f64 {
        let share = tiles.div_ceil(card.multiprocessors as usize);
        let together = share.min(resident) as f64;
        let each = self.times.0 * k.div_ceil(64) as f64 + self.times.1;
        let speed = if self.maps { 1.0 } else { card.tensor };
        share as f64 * each * (together + self.half) / (together * speed)
    }
}
