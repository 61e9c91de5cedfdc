//! Runs one kernel of a PTX file and prints what it writes and what the checkers find.
//!
//!     node scripts/emulator.mjs run --release --example kernel -- \
//!         emulator/tests/kernels/scale.ptx scale 2 128 in:f32:1000 out:f32:1000 u64:1000 f32:2 f32:1
//!
//! After the file and the kernel: blocks, threads of a block, arguments. An argument is `in:TYPE:COUNT` (numbers from a
//! fixed sequence in (-1, 1), or 0, 1, 2, ... of an integer type), `out:TYPE:COUNT` (memory that nothing has written,
//! printed at the end), `TYPE:VALUE` (`null` is `u64:0`) or `words:1,2,3` for a struct. `shared:BYTES` and `cc:80` may
//! stand among them.

#[path = "../tests/rig/mod.rs"]
mod rig;

use rig::{Arg, Rig, floats, noise};

/// A buffer to print: name of the type, address, count.
type Output = (String, u64, usize);

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number of that type"))
}

fn input(rig: &Rig, ty: &str, count: usize, seed: u64) -> u64 {
    match ty {
        "f32" => rig.put(&floats(count, seed)),
        "f64" => rig.put(&noise(count, seed)),
        "u32" => rig.put(&(0..count as u32).collect::<Vec<_>>()),
        "u64" => rig.put(&(0..count as u64).collect::<Vec<_>>()),
        _ => panic!("no type '{ty}'; there are f32, f64, u32, u64"),
    }
}

fn argument(rig: &Rig, text: &str, seed: u64, outputs: &mut Vec<Output>) -> Arg {
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        ["null"] => Arg::U64(0),
        ["in", ty, count] => Arg::U64(input(rig, ty, number(count), seed)),
        ["out", ty, count] => {
            let count = number(count);
            let address = rig.empty(count * if ty.ends_with("64") { 8 } else { 4 });
            outputs.push((ty.to_string(), address, count));
            Arg::U64(address)
        }
        ["f32", value] => Arg::F32(number(value)),
        ["f64", value] => Arg::F64(number(value)),
        ["u32", value] => Arg::U32(number(value)),
        ["u64", value] => Arg::U64(number(value)),
        ["words", list] => Arg::Words(list.split(',').map(number).collect()),
        _ => panic!("argument '{text}'"),
    }
}

fn show(rig: &Rig, (ty, address, count): &Output) {
    let shown = (*count).min(8);
    let values: Vec<String> = match ty.as_str() {
        "f32" => rig.get::<f32>(*address, shown).iter().map(f32::to_string).collect(),
        "f64" => rig.get::<f64>(*address, shown).iter().map(f64::to_string).collect(),
        "u32" => rig.get::<u32>(*address, shown).iter().map(u32::to_string).collect(),
        _ => rig.get::<u64>(*address, shown).iter().map(u64::to_string).collect(),
    };
    println!(
        "{ty} x {count} at {address:#x}: {}{}",
        values.join(" "),
        if *count > shown { " ..." } else { "" }
    );
}

fn main() {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let setting = |name: &str| all.iter().find_map(|text| text.strip_prefix(name)).map(number);
    let (shared, cc) = (setting("shared:").unwrap_or(0), setting("cc:").unwrap_or(80));
    let given: Vec<&String> =
        all.iter().filter(|text| !text.starts_with("shared:") && !text.starts_with("cc:")).collect();
    let [file, kernel, blocks, threads, rest @ ..] = &given[..] else {
        panic!("expected: file.ptx kernel blocks threads arguments...");
    };
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut rig = Rig::text(&text, cc);
    rig.checks.global_races = true;
    let mut outputs = Vec::new();
    let arguments: Vec<Arg> =
        rest.iter().zip(1..).map(|(text, seed)| argument(&rig, text, seed, &mut outputs)).collect();
    match rig.try_launch(kernel, [number(blocks), 1, 1], [number(threads), 1, 1], shared, &arguments) {
        Ok(done) => println!("{kernel}: nothing found, {} warp instructions", done.warp_instructions),
        Err(fault) => {
            println!("{kernel}: {fault}");
            std::process::exit(1);
        }
    }
    outputs.iter().for_each(|output| show(&rig, output));
}
