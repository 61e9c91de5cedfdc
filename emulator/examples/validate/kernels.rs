//! Kernels of one instruction each, their inputs, and what the emulator makes of them.

mod forms;
mod inputs;
mod matrices;

use super::rig::Arg::U64;
use super::rig::Rig;
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
    /// The kernel's parts between its braces; `frame` of forms.rs or all of it.
    pub body: String,
    pub promise: Promise,
    /// Name of the inputs.
    pub inputs: String,
    pub blocks: u32,
    pub threads: u32,
    /// 64-bit words that the kernel writes.
    pub outputs: usize,
}

const CAPABILITY: u32 = 90;
const HEAD: &str = ".version 7.8\n.target sm_90\n.address_size 64\n";

impl Test {
    fn entry(&self, name: &str) -> String {
        format!(".visible .entry {name}(.param .u64 in, .param .u64 out)\n{{\n{}\n}}\n", self.body)
    }

    fn is_known(&self) -> bool {
        Module::load(&format!("{HEAD}{}", self.entry("k")), &Target::new(CAPABILITY)).is_ok()
    }
}

/// All tests that the emulator can run, the names of the others, and the inputs by name.
pub struct Suite {
    pub tests: Vec<Test>,
    pub unknown: Vec<String>,
    pub inputs: Vec<(String, Vec<u64>)>,
}

pub fn suite() -> Suite {
    let all: Vec<Test> = forms::tests().into_iter().chain(matrices::tests()).collect();
    let (tests, unknown): (Vec<Test>, Vec<Test>) = all.into_iter().partition(Test::is_known);
    let inputs = inputs::classes().into_iter().chain(matrices::inputs()).collect();
    Suite { tests, unknown: unknown.into_iter().map(|test| test.name).collect(), inputs }
}

impl Suite {
    /// One module with the kernels k0, k1, ...
    pub fn text(&self) -> String {
        let kernels = self.tests.iter().enumerate().map(|(n, test)| test.entry(&format!("k{n}")));
        HEAD.to_string() + &kernels.collect::<String>()
    }

    /// Hands out each test with the words that its kernel writes on the emulator.
    pub fn run(&self, mut each: impl FnMut(usize, &Test, Vec<u64>)) {
        let rig = Rig::text(&self.text(), CAPABILITY);
        let places: Vec<u64> = self.inputs.iter().map(|(_, words)| rig.put(words)).collect();
        for (n, test) in self.tests.iter().enumerate() {
            let place =
                self.inputs.iter().position(|(name, _)| *name == test.inputs).expect("inputs of that name");
            let out = rig.put(&vec![0u64; test.outputs]);
            rig.launch(&format!("k{n}"), test.blocks, test.threads, 0, &[U64(places[place]), U64(out)]);
            each(n, test, rig.get::<u64>(out, test.outputs));
            rig.memory.free(out);
        }
    }
}
