//! Which tile a product is cut into, and into how many parts its sums are split: the fastest by a model of the device,
//! fitted to the times of some 700 launches on an H200. There its choices cost 1 % on average over the best ones. For other
//! cards its figures are scaled by what they multiply, move and hold.

use crate::Result;
use crate::driver::DeviceProperties;
use crate::kernels::{Launcher, Rates};

/// One tiled kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tile {
    /// The kernel's suffix.
    pub name: &'static str,
    /// Rows of a block's outputs.
    pub rows: usize,
    /// Columns of a block's outputs.
    pub columns: usize,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that a multiprocessor holds.
    pub resident: usize,
    /// 10^6 multiply-adds that an H200's multiprocessor would do in a microsecond with any number of blocks.
    pub peak: f64,
    /// Number of blocks with which it does half as many.
    pub half: f64,
}

/// A device as the model sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Card {
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Plain multiply-adds of a multiprocessor in a second, an H200's being 1.
    pub speed: f64,
    /// Products of mma.sync, an H200's being 1.
    pub tensor: f64,
    /// Bytes that the device moves in a microsecond.
    pub bandwidth: f64,
    /// Compute capability as 75, 80, 90.
    pub level: u32,
    /// Bytes of shared memory of a multiprocessor, and those that a block may have.
    pub shared: [usize; 2],
}

const H200_CLOCK: f64 = 1_980_000.0;
/// Bytes a second.
const H200_BANDWIDTH: f64 = 4.814e12;

impl Card {
    /// The device of that launcher; may measure it.
    pub fn of(launcher: &Launcher) -> Result<Card> {
        let properties = launcher.core().context().properties();
        Ok(Card::new(properties, launcher.rates()?, launcher.compute_capability()))
    }

    fn new(properties: &DeviceProperties, rates: Rates, level: u32) -> Card {
        let clock = f64::from(properties.clock) / H200_CLOCK;
        let relative =
            if properties.bandwidth == 0 { 1.0 } else { properties.bandwidth as f64 / H200_BANDWIDTH };
        Card {
            multiprocessors: properties.multiprocessors.max(1),
            speed: clock * rates.plain / Rates::HOPPER.plain,
            tensor: clock * rates.tensor / Rates::HOPPER.tensor,
            bandwidth: BANDWIDTH * relative,
            level,
            shared: [properties.shared_memory, properties.shared_memory_per_block]
                .map(|bytes| bytes as usize),
        }
    }

    /// A card of so many multiprocessors, clock in MHz and bytes a second, by the rates of one.
    #[cfg(test)]
    pub fn named(
        level: u32,
        (multiprocessors, clock, bandwidth): (u32, u32, f64),
        (plain, tensor): (f64, f64),
        shared: [u32; 2],
    ) -> Card {
        let properties = DeviceProperties {
            ordinal: 0,
            name: String::new(),
            uuid: String::new(),
            compute_capability: (level / 10, level % 10),
            multiprocessors,
            clock: clock * 1000,
            bandwidth: bandwidth as u64,
            total_memory: 1 << 34,
            shared_memory: shared[0] << 10,
            shared_memory_per_block: shared[1] << 10,
            memory_pools: true,
        };
        Card::new(&properties, Rates { plain, tensor }, level)
    }

    /// An H200.
    #[cfg(test)]
    pub const H200: Card = Card {
        multiprocessors: 132,
        speed: 1.0,
        tensor: 1.0,
        bandwidth: BANDWIDTH,
        level: 90,
        shared: [228 << 10, 227 << 10],
    };
}

/// A product as the tiles see it: `batch` products of [rows, depth] by [depth, columns].
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Rows of the result.
    pub rows: usize,
    /// Columns of the result.
    pub columns: usize,
    /// Length of the sums.
    pub depth: usize,
    /// Number of products.
    pub batch: usize,
    /// Bytes of an element.
    pub size: usize,
}

/// A tile, the number of parts of each sum and the time expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The kernel.
    pub tile: &'static Tile,
    /// Parts of each sum; more than one are written to a workspace and added by a second kernel.
    pub splits: usize,
    /// Microseconds.
    pub time: f64,
}

/// Sums are cut at multiples of this many terms.
pub const STEP: usize = 16;
/// Microseconds of a launch.
pub const LAUNCH: f64 = 2.5;
/// Bytes that an H200 moves in a microsecond.
pub const BANDWIDTH: f64 = 6e6;

const SPLITS: &[usize] = &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/// Microseconds that adding the parts takes beside moving them: once, and for each part.
const ADDING: (f64, f64) = (1.9, 0.033);
/// Terms whose time a block takes to start and to finish.
const PROLOGUE: usize = 11;
/// Largest workspace of parts, in bytes.
const WORKSPACE: usize = 1 << 30;

/// The fastest tile and number of splits.
pub fn choose(tiles: &'static [Tile], work: &Work, card: &Card) -> Choice {
    let outputs = work.rows.saturating_mul(work.columns).saturating_mul(work.batch);
    let mut best = Choice { tile: &tiles[0], splits: 1, time: f64::INFINITY };
    for tile in tiles {
        for &splits in SPLITS {
            let bytes = outputs.saturating_mul(splits * work.size);
            if splits > 1 && (splits * STEP > work.depth || bytes > WORKSPACE) {
                break;
            }
            let time = time(tile, work, splits, card);
            if time < best.time {
                best = Choice { tile, splits, time };
            }
        }
    }
    best
}

fn time(tile: &Tile, work: &Work, splits: usize, card: &Card) -> f64 {
    let terms = work.depth.div_ceil(STEP).div_ceil(splits) * STEP;
    let blocks = work.rows.div_ceil(tile.rows) * work.columns.div_ceil(tile.columns);
    // Blocks of the multiprocessor that has most of them.
    let share = (blocks * splits).saturating_mul(work.batch).div_ceil(card.multiprocessors as usize);
    let together = share.min(tile.resident) as f64;
    let block = (tile.rows * tile.columns * (terms + PROLOGUE)) as f64 * 1e-6;
    let mut time =
        LAUNCH + share as f64 * block * (together + tile.half) / (tile.peak * card.speed * together);
    if splits > 1 {
        let bytes = (work.rows * work.columns * work.batch * work.size) as f64;
        time += ADDING.0 + ADDING.1 * splits as f64 + (2 * splits + 1) as f64 * bytes / card.bandwidth;
    }
    time
}

/// Terms of each split, and how many splits then remain.
pub fn split_evenly(terms: usize, splits: usize) -> (usize, usize) {
    if splits <= 1 || terms == 0 {
        return (terms.max(1), 1);
    }
    let each = terms.div_ceil(splits);
    (each, terms.div_ceil(each))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILES: &[Tile] = &[
        Tile { name: "large", rows: 128, columns: 128, threads: 256, resident: 2, peak: 0.2, half: 0.5 },
        Tile { name: "small", rows: 32, columns: 32, threads: 64, resident: 8, peak: 0.14, half: 2.0 },
    ];

    fn chosen(rows: usize, columns: usize, depth: usize, batch: usize) -> Choice {
        choose(TILES, &Work { rows, columns, depth, batch, size: 4 }, &Card::H200)
    }

    #[test]
    fn large_results_take_large_tiles_and_few_outputs_split_their_sums() {
        assert_eq!((chosen(8192, 8192, 1024, 1).tile.name, chosen(8192, 8192, 1024, 1).splits), ("large", 1));
        assert_eq!((chosen(20, 20, 20, 1).tile.name, chosen(20, 20, 20, 1).splits), ("small", 1));
        assert_eq!((chosen(32, 32, 64, 5000).tile.name, chosen(32, 32, 64, 5000).splits), ("small", 1));
        assert!(chosen(64, 64, 65536, 1).splits >= 32);
        assert!(chosen(8192, 8192, 1 << 20, 64).time.is_finite());
    }

    #[test]
    fn splits_cover_all_terms_and_none_is_empty() {
        for (terms, splits) in [(0, 4), (1, 1), (5, 4), (100, 7), (256, 256), (9, 8)] {
            let (each, count) = split_evenly(terms, splits);
            assert!(each >= 1 && (1..=splits).contains(&count), "{terms} {splits}");
            assert!(each * count >= terms && (terms == 0 || each * (count - 1) < terms), "{terms} {splits}");
        }
    }
}
