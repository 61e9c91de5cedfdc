//! A call with its data on its way to a device, and what is done with the results.

use super::devices::DeviceName;
use super::gpu::Gpu;
use crate::ops::{Call, Meta};
use crate::tensor::{HostBuffer, PinnedSlice, Staged};
use crate::{Error, Result, Tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

/// An operand's data.
pub enum Source {
    /// A tensor on the host or a device.
    Tensor(Tensor),
    /// Elements in page-locked memory, read in place by a GPU.
    Pinned {
        /// The memory.
        slice: PinnedSlice,
        /// Element type and dims.
        meta: Meta,
    },
    /// Elements copied to page-locked blocks of the GPU that they go to.
    Staged {
        /// The blocks.
        staged: Staged,
        /// Element type and dims.
        meta: Meta,
    },
    /// Data that another thread is copying.
    Coming {
        /// Gives the copy.
        receiver: Receiver<Result<HostBuffer>>,
        /// Element type and dims.
        meta: Meta,
    },
}

/// What to do.
pub enum Work {
    /// Run the op. Results stay on the GPU when `keep`, else they come to the host.
    Run {
        /// The call.
        call: Call,
        /// Whether results stay where they are made.
        keep: bool,
    },
    /// Time the op `repeats` times; the result is a float64 tensor of milliseconds of one run.
    Time {
        /// The call.
        call: Call,
        /// How often.
        repeats: usize,
        /// Runs that follow each other each time.
        runs: usize,
    },
    /// Copy the first source to the device.
    Upload,
    /// Copy the first source to the host, or into pinned memory when given.
    Download {
        /// Pinned target.
        into: Option<PinnedSlice>,
    },
    /// Wait for everything submitted to the device.
    Synchronize,
}

type Done = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// Work for a device with its data and the callback that gets the outcome, on one of our threads.
pub struct Task {
    /// What to do.
    pub work: Work,
    /// Operands.
    pub sources: Vec<Option<Source>>,
    /// Set by the caller to give up; checked before the work starts and when it ends.
    pub cancelled: Arc<AtomicBool>,
    /// Gets the outcome.
    pub done: Done,
}

impl Task {
    /// Queues the task on the device and returns at once.
    pub fn submit(self, device: DeviceName) -> Result<()> {
        match device {
            DeviceName::Cuda(ordinal) => Gpu::get(ordinal)?.submit(self),
            DeviceName::Cpu => {
                crate::cpu::spawn(move || self.run_on_cpu());
                Ok(())
            }
        }
    }

    /// The error for a cancelled task.
    pub(super) fn check_cancelled(cancelled: &AtomicBool) -> Result<()> {
        if cancelled.load(Ordering::Acquire) {
            return Err(Error::Aborted("the call was aborted by its signal".into()));
        }
        Ok(())
    }

    fn run_on_cpu(self) {
        let Task { work, sources, cancelled, done } = self;
        let outcome = Task::check_cancelled(&cancelled).and_then(|()| match work {
            Work::Run { call, .. } => super::cpu::run(&call, sources),
            Work::Time { call, repeats, runs } => {
                super::cpu::time(&call, sources, (repeats, runs)).and_then(times_tensor)
            }
            Work::Upload | Work::Download { .. } => {
                sources.into_iter().flatten().map(|source| source.into_tensor()?.to_host()).collect()
            }
            Work::Synchronize => Ok(Vec::new()),
        });
        done(outcome.and_then(|tensors| Task::check_cancelled(&cancelled).map(|()| tensors)));
    }
}

/// Times as a float64 tensor.
pub(super) fn times_tensor(times: Vec<f64>) -> Result<Vec<Tensor>> {
    Ok(vec![Tensor::from_slice(crate::DType::F64, [times.len()], &times)?])
}

/// Runs `work` and turns a panic into an error, so that none leaves the thread.
pub(super) fn guarded<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(Error::Internal(format!("{name}: {text}")))
    })
}
