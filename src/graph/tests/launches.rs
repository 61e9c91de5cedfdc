//! A tool: the kernels that a plan launches on a card of compute capability 9.0, where there is none.
//!
//!     MODEL=model.onnx DIMS=1x3x224x224 cargo test --lib launches -- --ignored --nocapture

use super::*;
use crate::driver::fake::{Config, FakeDriver};
use crate::graph::Request;
use crate::kernels::Launcher;
use crate::onnx::{Limits, load_file};
use crate::tensor::DeviceCore;
use std::cell::RefCell;

/// An input of ones.
fn ones(dtype: DType, dims: &[usize]) -> Tensor {
    let count = dims.iter().product();
    if dtype == DType::I64 { longs(dims, &vec![1; count]) } else { floats(dims, &vec![1.0; count]) }
}

#[test]
#[ignore = "a tool, see its head"]
fn launches_of_a_model() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("set {name}"));
    let dims: Vec<usize> = variable("DIMS").split('x').map(|dim| dim.parse().unwrap()).collect();
    let driver = FakeDriver::install(Config { memory: 64 << 30, ..Config::default() });
    let launcher = Arc::new(Launcher::new(DeviceCore::open(0).unwrap()));
    let model = load_file(variable("MODEL").as_ref(), &Limits::default()).unwrap();
    let session = Session::new(model.graph, Some(launcher), Options::default()).unwrap();
    let dtype = |port: &crate::graph::Port| port.declared.as_ref().map_or(DType::F32, |it| it.dtype);
    let feeds: Vec<Tensor> = session.inputs().iter().map(|port| ones(dtype(port), &dims)).collect();
    // The first run makes forms of weights; what a profile launches three times is told once.
    let nothing = Request { outputs: &[], keep: false };
    session.run_for(feeds.clone(), nothing, &|| Ok(())).unwrap();
    let counts = RefCell::new(Vec::new());
    let note = || {
        counts.borrow_mut().push(driver.launches().len());
        Ok(())
    };
    let metas: Vec<_> = feeds.iter().map(|tensor| tensor.meta().clone()).collect();
    let stage = session.stage(&metas).unwrap();
    session.profile(feeds, &note).unwrap();
    let (counts, launches) = (counts.into_inner(), driver.launches());
    for (index, step) in stage.steps.iter().enumerate() {
        let end = counts.get(index + 2).copied().unwrap_or(launches.len());
        let own = &launches[counts[index + 1]..end];
        let operands: Vec<_> = step.inputs.iter().flatten().map(|operand| operand.dims()).collect();
        println!("{} {operands:?} {:?} {}", step.name, step.options, step.label);
        let shown =
            |launch: &&crate::driver::fake::Launch| println!("      {} {}", launch.kernel, launch.blocks.0);
        own.iter().take(own.len().div_ceil(3)).by_ref().for_each(|launch| shown(&launch));
    }
    drop(session);
    drop(driver.misuse());
}
