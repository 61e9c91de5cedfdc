//! Embeds the committed PTX and derives the kernel table from it: the PTX text is the one source of each kernel's
//! name and parameter list.

#[path = "src/kernels/extract.rs"]
mod extract;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    #[cfg(feature = "node")]
    napi_build::setup();
    println!("cargo::rerun-if-changed=kernels/ptx");
    println!("cargo::rerun-if-changed=src/kernels/extract.rs");
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
    let digits: String = level.chars().filter(char::is_ascii_digit).collect();
    let exact = level.ends_with('a');
    let entries = entries(&text);
    let (packs, places) = packs(&text, &entries);
    let _ =
        write!(table, "    ModuleSource {{ family: {family:?}, level: {digits}, exact: {exact}, packs: &[");
    for (index, pack) in packs.iter().enumerate() {
        let path = out.join(format!("{stem}.{index}.zst"));
        std::fs::write(&path, compress(pack)).expect("OUT_DIR is writable");
        let _ = write!(table, "include_bytes!({:?}), ", path.display().to_string());
    }
    table.push_str("], entries: &[\n");
    for ((name, parameters), (pack, place)) in entries.iter().zip(places) {
        let parameters = parameters.join(", ");
        let _ = writeln!(
            table,
            "        Entry {{ name: {name:?}, parameters: &[{parameters}], pack: {pack}, place: {place:?} }},"
        );
    }
    table.push_str("    ] },\n");
}

/// Bytes of a pack beyond which the next kernel starts another: a kernel is unpacked in about a millisecond, and kernels that are
/// alike share most of their text.
const PACK: usize = 192 << 10;

/// Where a kernel's text is: number of its pack, and from where to where in it.
type Place = (usize, (usize, usize));

/// Texts of the kernels, each with what it refers to, one after another; the whole text where there is no kernel.
fn packs(text: &str, entries: &[(String, Vec<String>)]) -> (Vec<String>, Vec<Place>) {
    if entries.is_empty() {
        return (vec![text.to_string()], Vec::new());
    }
    let index = extract::Index::new(text);
    let (mut packs, mut places) = (vec![String::new()], Vec::new());
    for (name, _) in entries {
        let kernel = index.extract(name).expect("an entry is declared");
        if packs.last().is_some_and(|pack| !pack.is_empty() && pack.len() + kernel.len() > PACK) {
            packs.push(String::new());
        }
        let at = packs.len() - 1;
        let start = packs[at].len();
        packs[at].push_str(&kernel);
        places.push((at, (start, packs[at].len())));
    }
    (packs, places)
}

/// PTX shrinks to an eighth: kernels repeat each other at distances that a window of 32 KiB does not reach.
fn compress(text: &str) -> Vec<u8> {
    const LEVEL: i32 = 16;
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
