//! Kernels of the emulator's own and how they are launched.
#![allow(dead_code)]

use crate::rig::Arg::{self, F32, U32, U64, Words};
use crate::rig::Rig;
use warpwright_emulator::Fault;
use warpwright_emulator::exec::Statistics;

pub const SCALE: &str = include_str!("scale.ptx");
pub const PRODUCT: &str = include_str!("product.ptx");
pub const SOFTMAX: &str = include_str!("softmax.ptx");

/// Bytes of dynamic shared memory that the product needs.
pub const TILES: u32 = 2048;

pub struct Launch {
    pub kernel: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    pub shared: u32,
    arguments: Vec<Arg>,
}

impl Launch {
    pub fn run(&self, rig: &Rig) -> Result<Statistics, Fault> {
        rig.try_launch(self.kernel, self.grid, self.block, self.shared, &self.arguments)
    }
}

/// y = factor x + term.
pub fn scale(x: u64, y: u64, count: usize, [factor, term]: [f32; 2]) -> Launch {
    Launch {
        kernel: "scale",
        grid: [count.div_ceil(512) as u32, 1, 1],
        block: [128, 1, 1],
        shared: 0,
        arguments: vec![U64(x), U64(y), U64(count as u64), F32(factor), F32(term)],
    }
}

/// Matrices a, b and c, which are m x k, k x n and m x n.
pub fn product([a, b, c]: [u64; 3], [m, n, k]: [usize; 3]) -> Launch {
    let mut words: Vec<u32> = [a, b, c].into_iter().flat_map(|at| [at as u32, (at >> 32) as u32]).collect();
    words.extend([m as u32, n as u32, k as u32]);
    Launch {
        kernel: "product",
        grid: [n.div_ceil(16) as u32, m.div_ceil(16) as u32, 1],
        block: [16, 16, 1],
        shared: TILES,
        arguments: vec![Words(words)],
    }
}

pub fn softmax([x, lengths, y]: [u64; 3], rows: usize, pitch: usize) -> Launch {
    Launch {
        kernel: "softmax",
        grid: [rows.div_ceil(8) as u32, 1, 1],
        block: [256, 1, 1],
        shared: 0,
        arguments: vec![U64(x), U64(lengths), U64(y), U32(rows as u32), U32(pitch as u32)],
    }
}
