//! Aggregations on their way through the compute threads, or through threads that wait for a GPU.

use super::devices::DeviceName;
use super::gpu::Gpu;
use super::task::{Source, guarded};
use crate::aggregate::{Aggregation, Given, Report, Watch};
use crate::tensor::DeviceCore;
use crate::{Error, Result, Tensor};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

type Done = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// One call: how far it has come and, at its end, what it did.
#[derive(Default)]
pub struct Round {
    watch: OnceLock<Watch>,
    report: Mutex<Option<Report>>,
}

impl Round {
    /// Queues a checked call on the compute threads, or on a thread that waits for its GPU. The result stays there when `keep`,
    /// else it comes to the host.
    pub fn submit(
        self: &Arc<Self>,
        call: Aggregation,
        (rows, start): (Vec<Source>, Option<Source>),
        (device, keep): (DeviceName, bool),
        cancelled: Arc<AtomicBool>,
        done: Done,
    ) -> Result<()> {
        let watch = Watch::over(cancelled);
        self.watch
            .set(watch.clone())
            .map_err(|_| Error::Internal("an aggregation was submitted twice".into()))?;
        let round = self.clone();
        let work = move || {
            let outcome = guarded("aggregate", || {
                watch.check()?;
                match device {
                    DeviceName::Cpu => on_cpu(&call, rows, start, &watch),
                    DeviceName::Cuda(ordinal) => on_gpu(ordinal, &call, rows, start, &watch, keep),
                }
            });
            done(outcome.map(|(result, report)| {
                *round.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
                vec![result]
            }));
        };
        match device {
            DeviceName::Cpu => {
                crate::cpu::spawn(work);
                Ok(())
            }
            DeviceName::Cuda(ordinal) => Gpu::get(ordinal)?.crew().queue(Box::new(work)),
        }
    }

    /// The part that is done, 0 to 1.
    pub fn progress(&self) -> f64 {
        self.watch.get().map_or(0.0, Watch::progress)
    }

    /// What the call did, once it is done.
    pub fn report(&self) -> Option<Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn on_cpu(
    call: &Aggregation,
    rows: Vec<Source>,
    start: Option<Source>,
    watch: &Watch,
) -> Result<(Tensor, Report)> {
    let rows = rows.into_iter().map(Source::into_tensor).collect::<Result<Vec<_>>>()?;
    let start = start.map(Source::into_tensor).transpose()?;
    call.run_cpu(&rows, start.as_ref(), watch)
}

fn on_gpu(
    ordinal: usize,
    call: &Aggregation,
    rows: Vec<Source>,
    start: Option<Source>,
    watch: &Watch,
    keep: bool,
) -> Result<(Tensor, Report)> {
    let gpu = Gpu::get(ordinal)?;
    let launcher = gpu.launcher()?;
    let _submitting = gpu.submitting();
    let core = launcher.core();
    let run = || {
        // Asking the driver for its free memory takes longer than a small call.
        let staged = rows.iter().any(|row| matches!(row, Source::Staged { .. }));
        let whole = !staged || call.fits(core)?;
        let rows = rows.into_iter().map(|row| given(row, core, whole)).collect::<Result<Vec<_>>>()?;
        let start = start.map(|start| given(start, core, true)).transpose()?;
        let (result, report) = call.run_cuda(&launcher, rows, start, watch)?;
        let result = if keep { result } else { result.to_host()? };
        watch.check()?;
        Ok((result, report))
    };
    run().map_err(|error| core.context().blame("aggregate", error))
}

/// What was copied to page-locked blocks goes to the device now where all rows are there as a `whole`.
fn given(source: Source, core: &Arc<DeviceCore>, whole: bool) -> Result<Given> {
    Ok(match source {
        Source::Pinned { slice, meta } => Given::Pinned(slice, meta),
        Source::Staged { staged, meta } if whole && staged.is_on(core) => {
            let tensor = Tensor::device(core, &meta)?;
            staged.upload(core, tensor.device_view(core)?.ptr)?;
            Given::Tensor(tensor)
        }
        other => Given::Tensor(other.into_tensor()?),
    })
}
