//! Runs conformance cases of ONNX:
//! `cargo run --example conformance --no-default-features -- CASES [--device cpu|cuda|cuda:N] [part of a name ...]`
//!
//! CASES holds cases, or folders of them. A case is a folder with `model.onnx` and `test_data_set_0/{input,output}_N.pb`. An input without a file is the ramp
//! from 0 to 1. Prints a line for each case and the counts: PASS, HOST where it passes with steps on the host although the device
//! is a GPU, FAIL. A case that loses the device is the last of its process; another one goes on behind it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use warpwright::graph::{Dim, Options, Port, Session};
use warpwright::onnx::{Limits, load_file, read_tensor};
use warpwright::runtime::{DeviceName, Gpu, choose};
use warpwright::{DType, Error, Tensor};

/// What the command line says.
struct Arguments {
    folder: String,
    device: String,
    after: Option<String>,
    parts: Vec<String>,
}

impl Arguments {
    fn read() -> Arguments {
        let mut read =
            Arguments { folder: String::new(), device: "cpu".into(), after: None, parts: Vec::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--device" => read.device = words.next().expect("--device wants a name"),
                "--after" => read.after = words.next(),
                _ if read.folder.is_empty() => read.folder = word,
                _ => read.parts.push(word),
            }
        }
        read
    }

    /// Cases in the order of their names, with their folders.
    fn cases(&self) -> Vec<(String, PathBuf)> {
        let wanted = |name: &String| {
            self.parts.is_empty() || self.parts.iter().any(|part| name.contains(part.as_str()))
        };
        let folders =
            entries(Path::new(&self.folder)).into_iter().flat_map(|folder| match is_case(&folder) {
                true => vec![folder],
                false => entries(&folder).into_iter().filter(|folder| is_case(folder)).collect(),
            });
        let mut cases: Vec<_> = folders
            .filter_map(|folder| Some((folder.file_name()?.to_string_lossy().into_owned(), folder)))
            .filter(|(name, _)| wanted(name) && self.after.as_ref().is_none_or(|after| name > after))
            .collect();
        cases.sort();
        cases
    }
}

fn is_case(folder: &Path) -> bool {
    folder.join("model.onnx").exists()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let device = match choose(&arguments.device, None) {
        Ok(choice) => choice.device,
        Err(error) => {
            eprintln!("{}", text(error));
            return ExitCode::FAILURE;
        }
    };
    let mut counts = [0; 3];
    for (name, folder) in arguments.cases() {
        let run = || run(&folder, device);
        let outcome = std::panic::catch_unwind(run).unwrap_or_else(|_| Err("panicked".into()));
        match &outcome {
            Ok(None) => println!("PASS {name}"),
            Ok(Some(why)) => println!("HOST {name}: {why}"),
            Err(why) => println!("FAIL {name}: {why}"),
        }
        counts[match &outcome {
            Ok(None) => 0,
            Ok(Some(_)) => 1,
            Err(_) => 2,
        }] += 1;
        if outcome.is_err_and(|why| why.contains("DEVICE_LOST")) {
            return go_on(&arguments, &name);
        }
    }
    let [passed, host, failed] = counts;
    println!(
        "{} of {} passed, {host} of them not wholly on {}",
        passed + host,
        passed + host + failed,
        arguments.device
    );
    ExitCode::SUCCESS
}

/// The remaining cases in a process of their own.
fn go_on(arguments: &Arguments, after: &str) -> ExitCode {
    let program = std::env::current_exe().expect("a program knows its path");
    let mut command = Command::new(program);
    command
        .arg(&arguments.folder)
        .args(["--device", &arguments.device, "--after", after])
        .args(&arguments.parts);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn text(error: Error) -> String {
    format!("{}: {error}", error.code())
}

/// On a GPU first with every step there, then with those on the host that have no other form: what these are.
fn run(case: &Path, device: DeviceName) -> Result<Option<String>, String> {
    match attempt(case, device, true) {
        Err(why) if why.contains("has no GPU form") => {
            attempt(case, device, false).map(|()| Some(step_of(&why)))
        }
        outcome => outcome.map(|()| None),
    }
}

/// The name of the step in the error.
fn step_of(why: &str) -> String {
    let name = why.split("' has no GPU form").next().and_then(|head| head.rsplit('\'').next());
    name.unwrap_or(why).to_string()
}

fn attempt(case: &Path, device: DeviceName, strict: bool) -> Result<(), String> {
    let limits = Limits::default();
    let model = load_file(&case.join("model.onnx"), &limits).map_err(text)?;
    let launcher = match device {
        DeviceName::Cpu => None,
        DeviceName::Cuda(ordinal) => Some(Gpu::get(ordinal).and_then(|gpu| gpu.launcher()).map_err(text)?),
    };
    let session =
        Session::new(model.graph, launcher, Options { strict, ..Options::default() }).map_err(text)?;
    let mut feeds = Vec::new();
    for (index, port) in session.inputs().iter().enumerate() {
        let path = case.join(format!("test_data_set_0/input_{index}.pb"));
        let tensor = if path.exists() { read(&path, &limits)? } else { ramp(port)? };
        feeds.push((port.name.clone(), tensor));
    }
    let feeds = session.check_feeds(feeds).map_err(text)?;
    let results = session.run(feeds, &|| Ok(())).map_err(text)?;
    for (index, (got, port)) in results.iter().zip(session.outputs()).enumerate() {
        let wanted = read(&case.join(format!("test_data_set_0/output_{index}.pb")), &limits)?;
        let got = got.to_host().map_err(text)?;
        compare(&got, &wanted).map_err(|why| format!("{}: {why}", port.name))?;
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
