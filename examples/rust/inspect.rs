//! Says what an ONNX file holds: `cargo run --example inspect --no-default-features -- MODEL.onnx ...`

use std::collections::BTreeMap;
use warpwright::onnx::{Limits, Model, load_file};

fn main() {
    for path in std::env::args_os().skip(1) {
        match load_file(path.as_ref(), &Limits::default()) {
            Ok(model) => print(&path.to_string_lossy(), &model),
            Err(error) => println!("{}: {}: {error}", path.to_string_lossy(), error.code()),
        }
    }
}

fn print(path: &str, model: &Model) {
    let mut counts = BTreeMap::<_, usize>::new();
    for node in model.graph.all_nodes() {
        *counts.entry((node.domain.as_str(), node.op.as_str(), node.version)).or_default() += 1;
    }
    println!("{path}: {}, {} constants", model.producer, model.graph.constants.len());
    for (what, ids) in [("input", &model.graph.inputs), ("output", &model.graph.outputs)] {
        for id in ids {
            println!("  {what} {}: {:?}", model.graph.name_of(*id), model.graph.values[id.index()].declared);
        }
    }
    for ((domain, op, version), count) in counts {
        println!("  {count:5} {domain}{}{op} (version {version})", if domain.is_empty() { "" } else { "." });
    }
}
