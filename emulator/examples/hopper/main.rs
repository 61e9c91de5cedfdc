//! As the example `validate`, for what compute capability 9.0 alone has: wgmma, bulk tensor copies, tensor maps.
//!
//!     node scripts/emulator.mjs run --release --example hopper -- <folder>
//!     python3 emulator/examples/hopper/check.py <folder> <result.json>

mod products;
#[path = "../../tests/rig/mod.rs"]
mod rig;
mod tensors;

use rig::Arg::{U64, Words};
use rig::Rig;
use std::path::Path;
use tensors::Map;

/// A kernel `(in, out, map)` in one block.
pub struct Test {
    pub name: String,
    /// Its parts between the braces.
    pub body: String,
    pub threads: u32,
    /// Bytes of dynamic shared memory, at `mem`.
    pub shared: u32,
    /// Bytes that it writes.
    pub output: usize,
    pub map: Option<Map>,
}

const HEAD: &str = ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 mem[];\n";
/// Bytes of `in`, whose 32-bit words count up.
pub const INPUT: usize = 1 << 16;

impl Test {
    fn entry(&self, name: &str) -> String {
        format!(
            ".visible .entry {name}(.param .u64 in, .param .u64 out, .param .align 64 .b8 map[128])\n.maxntid {}, 1, 1\n\
             {{\n{}\n}}\n",
            self.threads, self.body
        )
    }
}

fn join(rows: impl IntoIterator<Item = String>) -> String {
    rows.into_iter().collect::<Vec<_>>().join(",\n")
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let tests: Vec<Test> = products::tests().into_iter().chain(tensors::tests()).collect();
    let (mut outputs, mut rows, mut text) = (Vec::new(), Vec::new(), HEAD.to_string());
    for (n, test) in tests.iter().enumerate() {
        let entry = test.entry(&format!("k{n}"));
        let rig = Rig::text(&format!("{HEAD}{entry}"), 90);
        let counts: Vec<u32> = (0..INPUT as u32 / 4).collect();
        let (input, out) = (rig.put(&counts), rig.put(&vec![0u8; test.output]));
        let words = test.map.as_ref().map_or(vec![0; 32], |map| map.words(input, out));
        let arguments = [U64(input), U64(out), Words(words)];
        let result = rig.try_launch(&format!("k{n}"), [1; 3], [test.threads, 1, 1], test.shared, &arguments);
        result.unwrap_or_else(|fault| panic!("{}: {fault}", test.name));
        let map = test.map.as_ref().map_or("null".into(), Map::json);
        let (name, threads, shared, bytes, offset) =
            (&test.name, test.threads, test.shared, test.output, outputs.len());
        rows.push(format!(
            "{{\"entry\":\"k{n}\",\"name\":{name:?},\"threads\":{threads},\"shared\":{shared},\"bytes\":{bytes},\"offset\":{offset},\"map\":{map}}}"
        ));
        outputs.extend(rig.get::<u8>(out, test.output));
        text += &entry;
    }
    std::fs::write(folder.join("hopper.ptx"), text)?;
    std::fs::write(folder.join("hopper.bin"), &outputs)?;
    let maps = tensors::refused()
        .iter()
        .map(|(map, status)| format!("[{},{status}]", map.json()))
        .collect::<Vec<_>>();
    let manifest = format!("{{\"input\":{INPUT},\"tests\":[{}],\"maps\":[{}]}}\n", join(rows), join(maps));
    std::fs::write(folder.join("hopper.json"), manifest)?;
    println!("{} kernels, {} bytes of output", tests.len(), outputs.len());
    Ok(())
}
