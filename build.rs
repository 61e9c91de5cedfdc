//! Embeds the committed PTX and derives the kernel table from it: the PTX text is the one source of each kernel's
//! name and parameter list.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    #[cfg(feature = "node")]
    napi_build::setup();
    println!("cargo::rerun-if-changed=kernels/ptx");
    let mut files: Vec<PathBuf> = std::fs::read_dir("kernels/ptx")
        .map(|entries| entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
        .unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    let mut table = String::from("/// Every embedded module.\npub static MODULES: &[ModuleSource] = &[\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for path in &files {
        module(&mut table, path, &out);
    }
    table.push_str("];\n");
    std::fs::write(out.join("kernels.rs"), table).expect("OUT_DIR is writable");
}

/// `<family>.sm_<level>.ptx` to one row of the table.
fn module(table: &mut String, path: &Path, out: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let (family, level) = stem.split_once(".sm_").expect("PTX files are named <family>.sm_<level>.ptx");
    let text = std::fs::read_to_string(path).expect("PTX files are readable");
    let packed = out.join(format!("{stem}.zst"));
    std::fs::write(&packed, pack(&text)).expect("OUT_DIR is writable");
    let digits: String = level.chars().filter(char::is_ascii_digit).collect();
    let exact = level.ends_with('a');
    let _ = writeln!(
        table,
        "    ModuleSource {{ family: {family:?}, level: {digits}, exact: {exact}, packed: include_bytes!({:?}), entries: &[",
        packed.display().to_string()
    );
    for (name, parameters) in entries(&text) {
        let _ =
            writeln!(table, "        Entry {{ name: {name:?}, parameters: &[{}] }},", parameters.join(", "));
    }
    table.push_str("    ] },\n");
}

/// PTX shrinks to a seventh: kernels repeat each other at distances that a window of 32 KiB does not reach. Higher levels
/// take ten times as long for another sixth.
fn pack(text: &str) -> Vec<u8> {
    const LEVEL: i32 = 12;
    zstd::bulk::compress(text.as_bytes(), LEVEL).expect("writing to memory")
}

/// Names and parameter kinds of all `.visible .entry` functions.
fn entries(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for part in text.split(".visible .entry ").skip(1) {
        let head = &part[..part.find('{').expect("an entry has a body")];
        let (name, rest) = head.split_once('(').expect("an entry has a parameter list");
        let list = &rest[..rest.find(')').expect("the parameter list is closed")];
        let parameters =
            list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(parameter).collect();
        found.push((name.trim().to_string(), parameters));
    }
    found
}

fn parameter(item: &str) -> String {
    let kind = item
        .split_whitespace()
        .find(|word| [".u64", ".s64", ".b64", ".u32", ".s32", ".b32", ".f32", ".f64", ".b8"].contains(word))
        .unwrap_or_else(|| panic!("unknown parameter: {item}"));
    match kind {
        ".b8" => {
            let size = item.rsplit_once('[').and_then(|(_, tail)| tail.strip_suffix(']')).expect("[size]");
            format!("Parameter::Block({size})")
        }
        ".f32" => "Parameter::F32".into(),
        ".f64" => "Parameter::F64".into(),
        word if word.ends_with("64") => "Parameter::Word64".into(),
        _ => "Parameter::Word32".into(),
    }
}
