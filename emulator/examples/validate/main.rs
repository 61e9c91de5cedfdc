//! Writes test kernels, their inputs and the bits that the emulator gives, for check.py to run on a card.
//!
//!     cargo run --release --manifest-path emulator/Cargo.toml --example validate -- <folder>

mod forms;
mod inputs;
mod matrices;
#[path = "../../tests/rig/mod.rs"]
mod rig;

use rig::Arg::U64;
use rig::Rig;
use std::fmt::Write as _;
use std::path::Path;
use warpwright_emulator::{Module, Target};

/// What a card may do differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The same bits.
    Exact,
    /// An error within the bound that PTX documents.
    Approximate,
    /// The same bits, though nothing documents them.
    Undocumented,
}

/// A kernel `(in, out)` over 64-bit words, and how it is launched.
pub struct Test {
    /// The instruction.
    pub name: String,
    /// The kernel's parts between its braces; `Frame` of forms.rs or all of it.
    pub body: String,
    pub promise: Promise,
    /// Name of the inputs.
    pub inputs: String,
    pub blocks: u32,
    pub threads: u32,
    /// 64-bit words that the kernel writes.
    pub outputs: usize,
}

pub const CAPABILITY: u32 = 90;
pub const HEAD: &str = ".version 7.8\n.target sm_90\n.address_size 64\n";

impl Test {
    fn entry(&self, name: &str) -> String {
        format!(".visible .entry {name}(.param .u64 in, .param .u64 out)\n{{\n{}\n}}\n", self.body)
    }

    fn is_known(&self) -> bool {
        Module::load(&format!("{HEAD}{}", self.entry("k")), &Target::new(CAPABILITY)).is_ok()
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let inputs: Vec<(String, Vec<u64>)> = inputs::classes().into_iter().chain(matrices::inputs()).collect();
    let all: Vec<Test> = forms::tests().into_iter().chain(matrices::tests()).collect();
    let (tests, unknown): (Vec<Test>, Vec<Test>) = all.into_iter().partition(Test::is_known);
    let kernels: Vec<String> =
        tests.iter().enumerate().map(|(n, test)| test.entry(&format!("k{n}"))).collect();
    let text = format!("{HEAD}{}", kernels.concat());
    std::fs::write(folder.join("kernels.ptx"), &text)?;
    let rig = Rig::text(&text, CAPABILITY);
    let places: Vec<u64> = inputs.iter().map(|(_, words)| rig.put(words)).collect();
    for (name, words) in &inputs {
        std::fs::write(folder.join(format!("{name}.bin")), bytes(words))?;
    }
    let (mut outputs, mut rows) = (Vec::new(), String::new());
    for (n, test) in tests.iter().enumerate() {
        let place = inputs.iter().position(|(name, _)| *name == test.inputs).expect("inputs of that name");
        let out = rig.put(&vec![0u64; test.outputs]);
        rig.launch(&format!("k{n}"), test.blocks, test.threads, 0, &[U64(places[place]), U64(out)]);
        let Test { name, inputs, promise, blocks, threads, .. } = test;
        let promise = format!("{promise:?}").to_lowercase();
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(
            rows,
            "{comma}\n{{\"entry\":\"k{n}\",\"name\":{name:?},\"promise\":\"{promise}\",\"inputs\":\"{inputs}\",\
             \"blocks\":{blocks},\"threads\":{threads},\"offset\":{},\"words\":{}}}",
            outputs.len(),
            test.outputs
        );
        outputs.extend(rig.get::<u64>(out, test.outputs));
    }
    std::fs::write(folder.join("outputs.bin"), bytes(&outputs))?;
    let left: Vec<String> = unknown.iter().map(|test| format!("{:?}", test.name)).collect();
    let manifest = format!("{{\"unknown\":[{}],\"tests\":[{rows}\n]}}\n", left.join(","));
    std::fs::write(folder.join("tests.json"), manifest)?;
    println!(
        "{} kernels, {} words of output, not in the emulator: {}",
        tests.len(),
        outputs.len(),
        left.join(", ")
    );
    Ok(())
}
