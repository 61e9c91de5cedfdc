//! Warp instructions per second of the emulator's own kernels, and what launches and loads take.
//!
//!     node scripts/emulator.mjs run --release --example throughput -- [threads]

#[path = "../tests/kernels/mod.rs"]
mod kernels;
#[path = "../tests/rig/mod.rs"]
mod rig;

use kernels::{Launch, PRODUCT, SCALE, SOFTMAX, product, scale, softmax};
use rig::{Rig, floats};
use std::path::Path;
use std::time::Instant;
use warpwright_emulator::{Module, Target};

fn run(rig: &Rig, launch: &Launch) -> u64 {
    launch.run(rig).unwrap_or_else(|fault| panic!("{fault}")).warp_instructions
}

fn measure(rig: &mut Rig, launch: &Launch) {
    for checks in [true, false] {
        rig.checks.uninitialized = checks;
        rig.checks.shared_races = checks;
        let start = Instant::now();
        let instructions = run(rig, launch);
        let seconds = start.elapsed().as_secs_f64();
        let rate = instructions as f64 / seconds / 1e6;
        println!(
            "{:8} checks {checks:5} {instructions:11} warp instructions, {:8.1} ms, {rate:7.2} million/s",
            launch.kernel,
            seconds * 1e3
        );
    }
}

/// Loads all PTX of the product for a level: files, kernels, seconds.
fn load(level: u32) -> (usize, usize, f64) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/ptx");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let texts: Vec<String> = paths
        .filter(|path| path.to_string_lossy().ends_with(&format!(".sm_{level}.ptx")))
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect();
    let start = Instant::now();
    let target = Target::new(level);
    let modules = texts.iter().filter_map(|text| Module::load(text, &target).ok());
    let kernels = modules.map(|module| module.kernels().len()).sum();
    (texts.len(), kernels, start.elapsed().as_secs_f64())
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(1);
    let open = |text: &str| {
        let mut rig = Rig::text(text, 75);
        rig.checks.threads = threads;
        rig
    };
    let mut rig = open(PRODUCT);
    let n = 256;
    let places = [rig.put(&floats(n * n, 1)), rig.put(&floats(n * n, 2)), rig.empty(n * n * 4)];
    measure(&mut rig, &product(places, [n, n, n]));
    let mut rig = open(SCALE);
    let n = 1 << 22;
    let (x, y) = (rig.put(&floats(n, 1)), rig.empty(n * 4));
    measure(&mut rig, &scale(x, y, n, [2.0, 1.0]));
    let mut rig = open(SOFTMAX);
    let (rows, pitch) = (1024, 1000);
    let lengths: Vec<u32> = (0..rows as u32).map(|row| 1000 - row % 100).collect();
    let places = [rig.put(&floats(rows * pitch, 1)), rig.put(&lengths), rig.empty(rows * pitch * 4)];
    measure(&mut rig, &softmax(places, rows, pitch));

    let rig = open(SCALE);
    let (x, y) = (rig.put(&floats(512, 1)), rig.empty(512 * 4));
    let block = scale(x, y, 512, [2.0, 1.0]);
    let start = Instant::now();
    (0..1000).for_each(|_| {
        run(&rig, &block);
    });
    println!("launch of one block: {:.1} us", start.elapsed().as_secs_f64() * 1e3);
    for level in [75, 80] {
        let (files, kernels, seconds) = load(level);
        println!("load of sm_{level}, {files} files with {kernels} kernels: {:.1} ms", seconds * 1e3);
    }
}
