//! Any bytes as a model: they are read, become a session, a plan and a run on the CPU, within limits. Nothing may panic, and
//! nothing may take more time or memory than the limits and the fuzzer's own allow.
#![no_main]

mod tree;

use bytes::Bytes;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::time::{Duration, Instant};
use warpwright::graph::{Dim, Options, Port, Session};
use warpwright::onnx::{External, Limits, load};
use warpwright::ops::Raw;
use warpwright::{DType, Error, Result, Tensor, runtime};

/// Small enough for thousands of models a second, large enough for every conformance case.
const LIMITS: Limits = Limits { model_bytes: 1 << 20, tensor_bytes: 1 << 16, nodes: 1_000 };
const PLAN_NODES: u64 = 2_000;
/// Size of dims that a model leaves open.
const OPEN: usize = 3;
const TIME: Duration = Duration::from_secs(2);

fuzz_target!(|bytes: &[u8]| {
    // An error is a right answer, unless it says that we are wrong.
    if let Err(Error::Internal(why)) = attempt(bytes) {
        panic!("{why}");
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match mutated(data, size, seed).filter(|bytes| bytes.len() <= max_size) {
        Some(bytes) => {
            data[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});

/// The model with some changes of its messages; `None` now and then, and for what is no message.
fn mutated(data: &[u8], size: usize, seed: u32) -> Option<Vec<u8>> {
    let mut state = u64::from(seed) << 1 | 1;
    let mut random = move |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound.max(1)
    };
    if random(16) == 0 {
        return None;
    }
    let mut fields = tree::parse(&data[..size], 0)?;
    for _ in 0..=random(3) {
        tree::change(&mut fields, &mut random, &mut |bytes| {
            let length = bytes.len();
            bytes.resize(length + 16, 0);
            let changed = fuzzer_mutate(bytes, length, length + 16);
            bytes.truncate(changed);
        });
    }
    let mut bytes = Vec::new();
    tree::encode(&fields, &mut bytes);
    Some(bytes)
}

fn attempt(bytes: &[u8]) -> Result<()> {
    let model = load(Bytes::copy_from_slice(bytes), &External::default(), &LIMITS)?;
    let options = Options { tensor_bytes: LIMITS.tensor_bytes, plan_nodes: PLAN_NODES, ..Options::default() };
    let session = Session::new(model.graph, None, options)?;
    let feeds = session.inputs().iter().map(|port| Ok((port.name.clone(), feed(port)?))).collect::<Result<_>>()?;
    let feeds = session.check_feeds(feeds)?;
    let start = Instant::now();
    let check = || if start.elapsed() > TIME { Err(Error::Aborted("out of time".into())) } else { Ok(()) };
    session.run(feeds, &check).map(|_| ())
}

/// Small numbers that differ, in the dims and of the type that the model declares.
fn feed(port: &Port) -> Result<Tensor> {
    let declared = port.declared.as_ref().ok_or_else(|| Error::InvalidModel("an input has no type".into()))?;
    let size = |dim: &Dim| if let Dim::Fixed(size) = dim { *size as i64 } else { OPEN as i64 };
    let dims: Vec<i64> = declared.dims.iter().flatten().map(size).collect();
    let (dims, bytes) = LIMITS.dims("feed", &dims, size_of::<f64>())?;
    let values: Vec<f64> = (0..bytes / size_of::<f64>()).map(|index| (index % 7) as f64 - 2.0).collect();
    let wide = Tensor::from_slice(DType::F64, dims, &values)?;
    let options = [("to".to_string(), Raw::Text(declared.dtype.name().into()))];
    Ok(runtime::run("cast", &[Some(wide)], &options, "cpu")?.swap_remove(0))
}
