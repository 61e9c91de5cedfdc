//! Warp instructions per second of some of the product's kernels.
//!
//!     node scripts/emulator.mjs run --release --example throughput -- [threads]

#[path = "../tests/rig/mod.rs"]
mod rig;

use rig::Arg::{F32, F64, U32, U64, Words};
use rig::{Arg, Rig, floats, noise};
use std::time::Instant;

fn measure(name: &str, rig: &mut Rig, blocks: u32, threads: u32, shared: u32, arguments: &[Arg]) {
    for checks in [true, false] {
        rig.checks.uninitialized = checks;
        rig.checks.shared_races = checks;
        let start = Instant::now();
        let done = rig.launch(name, blocks, threads, shared, arguments);
        let seconds = start.elapsed().as_secs_f64();
        let rate = done.warp_instructions as f64 / seconds / 1e6;
        let registers = rig.module.kernel(name).unwrap().registers;
        println!(
            "{name:32} checks {checks:5} {:11} warp instructions, {:8.1} ms, {rate:7.2} million/s, {registers} registers",
            done.warp_instructions,
            seconds * 1e3
        );
    }
}

fn square(n: usize) -> Vec<u32> {
    let mut words = vec![n as u32, n as u32, n as u32, 8 + 16, 0, 1, n as u32, 1];
    words.extend([n, n, n, 0, 0, n * n, n * n].into_iter().flat_map(|x| [x as u32, 0]));
    words
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(1);
    let open = |family: &str| {
        let mut rig = Rig::family(family);
        rig.checks.threads = threads;
        rig
    };
    let n = 256;
    for level in ["gemm.sm_75", "gemm.sm_80"] {
        let mut rig = open(level);
        let (a, b, y) = (rig.put(&floats(n * n, 1)), rig.put(&floats(n * n, 2)), rig.empty(n * n * 4));
        let pointers = [U64(a), U64(b), U64(0), U64(0), U64(y)];
        let tail = [F32(1.0), F32(0.0), F32(0.0), F32(0.0), Words(square(n))];
        measure("matmul_f32_64x64", &mut rig, 16, 128, 0, &[&pointers[..], &tail].concat());
        let (a, b, y) = (rig.put(&noise(n * n, 1)), rig.put(&noise(n * n, 2)), rig.empty(n * n * 8));
        let pointers = [U64(a), U64(b), U64(0), U64(0), U64(y)];
        let tail = [F64(1.0), F64(0.0), F64(0.0), F64(0.0), Words(square(n))];
        measure("matmul_f64_64x64", &mut rig, 16, 128, 0, &[&pointers[..], &tail].concat());
    }
    let mut rig = open("elementwise.sm_75");
    let n = 1 << 20;
    let (a, y) = (rig.put(&floats(n, 1)), rig.empty(n * 4));
    for name in ["relu_f32", "exp_f32", "tanh_f32"] {
        let arguments = [U64(a), U64(y), U64(n as u64), F32(0.0), F32(0.0)];
        measure(name, &mut rig, (n / 1024) as u32, 256, 0, &arguments);
    }
    let (a, y) = (rig.put(&floats(1000, 1)), rig.empty(4000));
    let arguments = [U64(a), U64(y), U64(1000), F32(0.0), F32(0.0)];
    let start = Instant::now();
    for _ in 0..1000 {
        rig.launch("relu_f32", 1, 256, 0, &arguments);
    }
    println!("launch of one block: {:.1} us", start.elapsed().as_secs_f64() * 1e3);
    let start = Instant::now();
    let text = std::fs::read_to_string("../kernels/ptx/conv.sm_80.ptx").unwrap_or_default();
    let module = warpwright_emulator::Module::load(&text, &warpwright_emulator::Target::new(80));
    let kernels = module.map_or(0, |module| module.kernels().len());
    println!("load of conv.sm_80, {kernels} kernels: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let mut rig = open("softmax.sm_75");
    let (rows, columns) = (1024usize, 1000usize);
    let (a, y) = (rig.put(&floats(rows * columns, 1)), rig.empty(rows * columns * 4));
    let arguments = [U64(a), U64(y), U64(rows as u64), U32(columns as u32)];
    measure("softmax_f32_block", &mut rig, rows as u32, 128, 0, &arguments);
    let mut rig = open("select.sm_75");
    let (n, d) = (400usize, 512usize);
    let (a, y) = (rig.put(&floats(n * d, 1)), rig.empty(d * 4));
    let arguments = [U64(a), U64(y), U64(d as u64), U64(d as u64), U64(0), U32(n as u32), U32(0), U32(0)];
    measure("median_f32_tile", &mut rig, 16, 1024, 32 * 400 * 4, &arguments);
}
