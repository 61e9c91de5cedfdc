//! Calls on the CPU backend.

use super::task::{Source, guarded};
use crate::ops::Call;
use crate::tensor::HostBuffer;
use crate::{Error, Result, Tensor, invalid};
use std::time::Instant;

/// Runs the call on the compute pool's thread that this is called on.
pub(super) fn run(call: &Call, sources: Vec<Option<Source>>) -> Result<Vec<Tensor>> {
    guarded(call.spec.name, || call.run_cpu(&tensors(sources)?))
}

/// Milliseconds of one run, `repeats` times over `runs` that follow each other.
pub(super) fn time(
    call: &Call,
    sources: Vec<Option<Source>>,
    (repeats, runs): (usize, usize),
) -> Result<Vec<f64>> {
    guarded(call.spec.name, || {
        let inputs = tensors(sources)?;
        let mut times = Vec::with_capacity(repeats);
        for _ in 0..repeats {
            let start = Instant::now();
            for _ in 0..runs {
                call.run_cpu(&inputs)?;
            }
            times.push(start.elapsed().as_secs_f64() * 1e3 / runs.max(1) as f64);
        }
        Ok(times)
    })
}

fn tensors(sources: Vec<Option<Source>>) -> Result<Vec<Option<Tensor>>> {
    sources.into_iter().map(|source| source.map(Source::into_tensor).transpose()).collect()
}

impl Source {
    /// The tensor itself, or plain data as a host tensor.
    pub(super) fn into_tensor(self) -> Result<Tensor> {
        match self {
            Source::Tensor(tensor) => Ok(tensor),
            Source::Pinned { slice, meta } => {
                let size = meta.size() * meta.dtype.size();
                let mut buffer = HostBuffer::for_overwrite(size)?;
                match slice.bytes(size) {
                    Some(bytes) => buffer.bytes_mut().copy_from_slice(bytes),
                    None => return invalid!("a pinned array is shorter than its dims {:?}", meta.dims),
                }
                Ok(Tensor::from_host(buffer, &meta))
            }
            Source::Staged { staged, meta } => Ok(Tensor::from_host(staged.to_host()?, &meta)),
            Source::Coming { receiver, meta } => {
                let buffer = receiver.recv().map_err(|_| {
                    Error::Internal("the copy of a transferred array did not finish".into())
                })??;
                Ok(Tensor::from_host(buffer, &meta))
            }
        }
    }
}
