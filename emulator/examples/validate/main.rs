//! Writes test kernels, their inputs and the bits that the emulator gives, for check.py to run on a card.
//!
//!     node scripts/emulator.mjs run --release --example validate -- <folder>

#[path = "kernels.rs"]
mod kernels;
#[path = "../../tests/rig/mod.rs"]
mod rig;

use kernels::{Test, suite};
use std::fmt::Write as _;
use std::path::Path;

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let suite = suite();
    std::fs::write(folder.join("kernels.ptx"), suite.text())?;
    for (name, words) in &suite.inputs {
        std::fs::write(folder.join(format!("{name}.bin")), bytes(words))?;
    }
    let (mut outputs, mut rows) = (Vec::new(), Vec::new());
    suite.run(|n, Test { name, inputs, promise, blocks, threads, .. }, words| {
        let promise = format!("{promise:?}").to_lowercase();
        let mut row = String::new();
        let _ = write!(
            row,
            "\n{{\"entry\":\"k{n}\",\"name\":{name:?},\"promise\":\"{promise}\",\"inputs\":\"{inputs}\",\
             \"blocks\":{blocks},\"threads\":{threads},\"offset\":{},\"words\":{}}}",
            outputs.len(),
            words.len()
        );
        rows.push(row);
        outputs.extend(words);
    });
    std::fs::write(folder.join("outputs.bin"), bytes(&outputs))?;
    let manifest = format!("{{\"unknown\":{:?},\"tests\":[{}\n]}}\n", suite.unknown, rows.join(","));
    std::fs::write(folder.join("tests.json"), manifest)?;
    let (kernels, words) = (rows.len(), outputs.len());
    println!("{kernels} kernels, {words} words of output, not in the emulator: {}", suite.unknown.join(", "));
    Ok(())
}
