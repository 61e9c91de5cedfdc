//! Writes kernels to files for measuring on a GPU machine:
//! `COLUMNS_PTX_DIR=dir COLUMNS_PTX_LIST="f32:9:upper:last f32:64:trimmed8:last:mix=0.5 f32:32:meamed8:last" cargo test columns_dump -- --ignored`.

use super::{Centre, Even, NanMethod, NanPolicy, Plan, Statistic, generate, recipe};
use crate::dtype::DType;

/// The statistic that a word names: a word for even, `trimmed<cut>`, `meamed<f>` or `phocas<f>`.
fn statistic(word: &str) -> Statistic {
    let count = |name| word.strip_prefix(name).map(|count: &str| count.parse().expect("a count"));
    let nearest = |centre, leave| Statistic::Nearest { centre, leave };
    count("trimmed")
        .map(Statistic::Trimmed)
        .or(count("meamed").map(|f| nearest(Centre::Median(Even::Mean), f)))
        .or(count("phocas").map(|f| nearest(Centre::Trimmed(f), f)))
        .unwrap_or_else(|| Statistic::Median(Even::from_word(word).expect("a word for even")))
}

/// Writes the kernel that a `dtype:n:statistic:nan[:choice=value]..` words and returns its line of the index.
fn dump(folder: &str, word: &str) -> String {
    let parts: Vec<&str> = word.split(':').collect();
    let dtype = if parts[0] == "f64" { DType::F64 } else { DType::F32 };
    let n: usize = parts[1].parse().expect("a row count");
    let statistic = statistic(parts[2]);
    let nan = NanPolicy::from_word(parts[3]).expect("a word for nan");
    let listed = parts[4..].contains(&"listed");
    let plan = Plan { n, dtype, statistic, nan, listed };
    let mut recipe = recipe(plan);
    for choice in parts[4..].iter().filter(|choice| **choice != "listed") {
        let (name, value) = choice.split_once('=').expect("choice=value");
        match name {
            "mix" => recipe.mix = value.parse().expect("a share"),
            "coords" => recipe.coords_per_thread = value.parse().expect("a count"),
            "block" => recipe.block = value.parse().expect("a count"),
            "method" => recipe.nan = if value == "map" { NanMethod::Map } else { NanMethod::Flag },
            _ => panic!("no choice named {name}"),
        }
    }
    let kernel = generate(plan, recipe);
    let file = format!("{}.ptx", word.replace([':', '='], "_"));
    std::fs::write(format!("{folder}/{file}"), &kernel.ptx).expect("a writable folder");
    format!("{word} {file} {} {} {}\n", kernel.entry, kernel.block, kernel.coords_per_thread)
}

#[test]
#[ignore = "writes files; see the head of this file"]
fn columns_dump() {
    let folder = std::env::var("COLUMNS_PTX_DIR").expect("COLUMNS_PTX_DIR");
    let list = std::env::var("COLUMNS_PTX_LIST").expect("COLUMNS_PTX_LIST");
    let index: String = list.split_whitespace().map(|word| dump(&folder, word)).collect();
    std::fs::write(format!("{folder}/index.txt"), index).expect("a writable folder");
}
