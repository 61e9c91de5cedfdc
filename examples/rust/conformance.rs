//! Runs conformance cases of ONNX on the CPU:
//! `cargo run --example conformance --no-default-features -- CASES [part of a name ...]`
//!
//! A case is a folder with `model.onnx` and `test_data_set_0/{input,output}_N.pb`. An input without a file is the ramp
//! from 0 to 1. Prints a line for each case and the counts.

use std::path::Path;
use warpwright::graph::{Dim, Options, Port, Session};
use warpwright::onnx::{Limits, load_file, read_tensor};
use warpwright::{DType, Tensor};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().expect("the folder of cases is the first argument");
    let parts: Vec<String> = arguments.collect();
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of cases can be read")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str())))
        .collect();
    names.sort();
    let mut passed = 0;
    for name in &names {
        match run(&Path::new(&folder).join(name)) {
            Ok(()) => {
                println!("PASS {name}");
                passed += 1;
            }
            Err(why) => println!("FAIL {name}: {why}"),
        }
    }
    println!("{passed} of {} passed", names.len());
}

fn text(error: warpwright::Error) -> String {
    format!("{}: {error}", error.code())
}

fn run(case: &Path) -> Result<(), String> {
    let limits = Limits::default();
    let model = load_file(&case.join("model.onnx"), &limits).map_err(text)?;
    let session = Session::new(model.graph, None, Options::default()).map_err(text)?;
    let mut feeds = Vec::new();
    for (index, port) in session.inputs().iter().enumerate() {
        let path = case.join(format!("test_data_set_0/input_{index}.pb"));
        let tensor = if path.exists() { read(&path, &limits)? } else { ramp(port)? };
        feeds.push((port.name.clone(), tensor));
    }
    let run = || session.check_feeds(feeds).and_then(|feeds| session.run(feeds, &|| Ok(()))).map_err(text);
    let results =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|_| "panicked".to_string())??;
    for (index, (got, port)) in results.iter().zip(session.outputs()).enumerate() {
        let wanted = read(&case.join(format!("test_data_set_0/output_{index}.pb")), &limits)?;
        compare(got, &wanted).map_err(|why| format!("{}: {why}", port.name))?;
    }
    Ok(())
}

/// Element i is i / count.
fn ramp(port: &Port) -> Result<Tensor, String> {
    let fixed = |dim: &Dim| if let Dim::Fixed(size) = dim { Some(*size) } else { None };
    let declared = port.declared.as_ref().and_then(|declared| declared.dims.as_ref());
    let dims: Option<Vec<usize>> = declared.and_then(|dims| dims.iter().map(fixed).collect());
    let dims = dims.ok_or_else(|| format!("input {} has no file and its dims are open", port.name))?;
    let count = dims.iter().product::<usize>();
    let values: Vec<f32> = (0..count).map(|index| index as f32 / count as f32).collect();
    Tensor::from_slice(DType::F32, dims, &values).map_err(text)
}

fn read(path: &Path, limits: &Limits) -> Result<Tensor, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    read_tensor(bytes.into(), limits).map_err(text)
}

fn compare(got: &Tensor, wanted: &Tensor) -> Result<(), String> {
    if got.meta() != wanted.meta() {
        return Err(format!("{:?} is wanted, got {:?}", wanted.meta(), got.meta()));
    }
    let (got, wanted) = (wide(got), wide(wanted));
    for (index, (&got, &wanted)) in got.iter().zip(&wanted).enumerate() {
        let close = got == wanted || (got.is_nan() && wanted.is_nan());
        let near = (got - wanted).abs() <= 1e-7 + 1e-3 * wanted.abs();
        if !close && !near {
            return Err(format!("element {index} is {got}, {wanted} is wanted"));
        }
    }
    Ok(())
}

fn wide(tensor: &Tensor) -> Vec<f64> {
    let options = [("to".to_string(), warpwright::ops::Raw::Text(DType::F64.name().into()))];
    let cast = warpwright::runtime::run("cast", &[Some(tensor.clone())], &options, "cpu")
        .expect("every type can be cast");
    cast[0].host_view().expect("it is on the host").as_slice::<f64>().to_vec()
}
