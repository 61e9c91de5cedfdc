//! The emulated card: device attributes by number, and how many blocks a multiprocessor takes.

use super::config::Config;
use std::ffi::c_int;

/// What differs between the cards.
struct Figures {
    name: &'static str,
    threads_per_multiprocessor: u32,
    blocks_per_multiprocessor: u32,
    /// Bytes of shared memory that one block may ask for.
    shared_per_block: u32,
    shared_per_multiprocessor: u32,
    /// Bytes of shared memory that the system takes of each block's.
    shared_reserved: u32,
    l2: u32,
    bus_width: u32,
    clock: u32,
    memory_clock: u32,
    clusters: bool,
}

const CARDS: &[(u32, Figures)] = &[
    (
        75,
        Figures {
            name: "Emulated sm_75",
            threads_per_multiprocessor: 1024,
            blocks_per_multiprocessor: 16,
            shared_per_block: 64 << 10,
            shared_per_multiprocessor: 64 << 10,
            shared_reserved: 0,
            l2: 4 << 20,
            bus_width: 256,
            clock: 1_410_000,
            memory_clock: 5_001_000,
            clusters: false,
        },
    ),
    (
        80,
        Figures {
            name: "Emulated sm_80",
            threads_per_multiprocessor: 2048,
            blocks_per_multiprocessor: 32,
            shared_per_block: 163 << 10,
            shared_per_multiprocessor: 164 << 10,
            shared_reserved: 1 << 10,
            l2: 40 << 20,
            bus_width: 5120,
            clock: 1_410_000,
            memory_clock: 1_215_000,
            clusters: false,
        },
    ),
    (
        90,
        Figures {
            name: "Emulated sm_90",
            threads_per_multiprocessor: 2048,
            blocks_per_multiprocessor: 32,
            shared_per_block: 227 << 10,
            shared_per_multiprocessor: 228 << 10,
            shared_reserved: 1 << 10,
            l2: 50 << 20,
            bus_width: 6016,
            clock: 1_980_000,
            memory_clock: 3_201_000,
            clusters: true,
        },
    ),
];

/// Bytes of shared memory that a block has without asking.
pub const SHARED_DEFAULT: u32 = 48 << 10;
const REGISTERS: u32 = 65536;

fn figures(config: &Config) -> &'static Figures {
    let found = CARDS.iter().find(|(capability, _)| *capability == config.compute_capability);
    &found.unwrap_or(&CARDS[1]).1
}

/// The card's name.
pub fn name(config: &Config) -> &'static str {
    figures(config).name
}

/// Bytes of shared memory that one block may ask for.
pub fn shared_per_block(config: &Config) -> u32 {
    figures(config).shared_per_block
}

/// Whether blocks can form clusters.
pub fn has_clusters(config: &Config) -> bool {
    figures(config).clusters
}

/// The value of a `CUdevice_attribute`; `None` for numbers that cuda.h of 12.4 does not have.
pub fn attribute(config: &Config, ordinal: usize, number: c_int) -> Option<c_int> {
    let card = figures(config);
    let value = match number {
        1..=3 => 1024,
        4 => 64,
        5 => i32::MAX as u32,
        6 | 7 => 65535,
        8 => SHARED_DEFAULT,
        9 => 64 << 10,
        10 => 32,
        11 => i32::MAX as u32,
        12 | 82 => REGISTERS,
        13 => card.clock,
        14 => 512,
        15 | 19 | 31 | 41 | 78 | 79 | 80 | 83 | 85 | 89 | 90 | 95 | 96 | 101 => 1,
        16 => config.multiprocessors,
        33 => ordinal as u32 + 1,
        36 => card.memory_clock,
        37 => card.bus_width,
        38 => card.l2,
        39 => card.threads_per_multiprocessor,
        40 => 3,
        75 => config.compute_capability / 10,
        76 => config.compute_capability % 10,
        81 => card.shared_per_multiprocessor,
        87 => {
            if config.compute_capability == 75 {
                32
            } else {
                2
            }
        }
        97 => card.shared_per_block,
        106 => card.blocks_per_multiprocessor,
        111 => card.shared_reserved,
        115 => u32::from(!config.absent.iter().any(|name| name == "cuMemAllocAsync")),
        120 => u32::from(card.clusters),
        // Textures and surfaces, sharing, mapping and the like: none of it is there.
        17..=147 => 0,
        _ => return None,
    };
    Some(value as c_int)
}

/// What a kernel takes of a multiprocessor.
#[derive(Debug, Clone, Copy)]
pub struct Footprint {
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block, static and dynamic.
    pub shared: u32,
}

/// Blocks that run on one multiprocessor at a time.
pub fn blocks_per_multiprocessor(config: &Config, kernel: Footprint) -> u32 {
    let card = figures(config);
    let warps = kernel.threads.div_ceil(32).max(1);
    let by_threads = card.threads_per_multiprocessor / (warps * 32);
    // A warp's registers come in units of 256.
    let by_registers = REGISTERS / ((kernel.registers.max(1) * 32).next_multiple_of(256) * warps);
    let shared = (kernel.shared + card.shared_reserved).next_multiple_of(128);
    let by_shared = card.shared_per_multiprocessor.checked_div(shared).unwrap_or(u32::MAX);
    card.blocks_per_multiprocessor.min(by_threads).min(by_registers).min(by_shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_follows_the_scarcest_resource() {
        let config = Config::default();
        let blocks = |threads, registers, shared| {
            blocks_per_multiprocessor(&config, Footprint { threads, registers, shared })
        };
        assert_eq!(blocks(256, 32, 0), 8);
        assert_eq!(blocks(32, 16, 0), 32);
        assert_eq!(blocks(256, 255, 0), 1);
        assert_eq!(blocks(256, 32, 100 << 10), 1);
        assert_eq!(blocks(64, 16, 40 << 10), 4);
    }

    #[test]
    fn attributes_of_each_card() {
        for (capability, shared, clusters) in [(75, 65_536, 0), (80, 166_912, 0), (90, 232_448, 1)] {
            let config = Config { compute_capability: capability, ..Config::default() };
            let value = |number| attribute(&config, 0, number).unwrap();
            assert_eq!(
                (value(75) * 10 + value(76), value(97), value(120)),
                (capability as i32, shared, clusters)
            );
        }
        assert_eq!(attribute(&Config::default(), 0, 5000), None);
    }
}
