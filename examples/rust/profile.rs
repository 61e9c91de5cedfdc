//! Times a model on the CPU step by step:
//! `cargo run --release --example profile --no-default-features -- MODEL.onnx 1x3x320x320 ...`, dims of each input in order.

use std::collections::BTreeMap;
use std::time::Instant;
use warpwright::graph::{Options, Session};
use warpwright::onnx::{Limits, load_file};
use warpwright::{DType, Tensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("the model's path is missing")?;
    let model = load_file(path.as_ref(), &Limits::default())?;
    let session = Session::new(model.graph, None, Options::default())?;
    let mut feeds = Vec::new();
    for port in session.inputs() {
        let dims = arguments.next().ok_or_else(|| format!("the dims of {} are missing", port.name))?;
        let dims = dims
            .split('x')
            .filter(|dim| !dim.is_empty())
            .map(str::parse)
            .collect::<Result<Vec<usize>, _>>()?;
        let dtype = port.declared.as_ref().map_or(DType::F32, |declared| declared.dtype);
        let values: Vec<f64> = (0..dims.iter().product())
            .map(|i: usize| if dtype == DType::F32 { (i % 97) as f64 / 97.0 } else { 1.0 + (i % 7) as f64 })
            .collect();
        let tensor = Tensor::from_slice(DType::F64, dims, &values)?;
        let options = [("to".to_string(), warpwright::ops::Raw::Text(dtype.name().into()))];
        feeds.push(warpwright::runtime::run("cast", &[Some(tensor)], &options, "cpu")?.swap_remove(0));
    }
    let nothing = || Ok(());
    let mut times = Vec::new();
    for _ in 0..12 {
        let start = Instant::now();
        session.run(feeds.clone(), &nothing)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let first = times.remove(0);
    println!("first run {first:.1} ms, then {:.1} ms (median of 11)", median(&mut times));
    let mut totals = BTreeMap::<&str, (usize, f64)>::new();
    let mut steps = session.profile(feeds, &nothing)?;
    for step in &steps {
        let total = totals.entry(step.name).or_default();
        *total = (total.0 + 1, total.1 + step.milliseconds);
    }
    let mut totals: Vec<_> = totals.into_iter().collect();
    totals.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for (name, (count, milliseconds)) in totals {
        println!("{milliseconds:9.2} ms {count:4} x {name}");
    }
    steps.sort_by(|a, b| b.milliseconds.total_cmp(&a.milliseconds));
    for step in steps.iter().take(12) {
        println!("{:9.2} ms {} of {}", step.milliseconds, step.name, step.label);
    }
    Ok(())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
