//! A GPU's two threads: one submits work in order, one waits for it and settles calls.

use super::crew::Crew;
use super::task::{Source, Task, Work, guarded, times_tensor};
use crate::driver::{Event, Graph, device_count};
use crate::kernels::Launcher;
use crate::ops::Call;
use crate::tensor::{DeviceCore, Download, PinnedSlice};
use crate::{Error, Result, Tensor, invalid};
use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

type Job = Box<dyn FnOnce() + Send>;

/// One GPU of the process. Lives until the process ends; its context is rebuilt after a fault.
pub struct Gpu {
    ordinal: usize,
    launcher: Mutex<Option<Arc<Launcher>>>,
    /// Why the device cannot be opened again in this process.
    gone: Mutex<Option<Error>>,
    submitter: Sender<Job>,
    waiter: Sender<Job>,
    /// Threads of calls that decide on the host between their launches.
    crew: Crew,
    /// Held by those while they submit: what is recorded to be timed must hold nothing of theirs.
    submitting: RwLock<()>,
}

fn gpus() -> MutexGuard<'static, BTreeMap<usize, Arc<Gpu>>> {
    static GPUS: Mutex<BTreeMap<usize, Arc<Gpu>>> = Mutex::new(BTreeMap::new());
    GPUS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A thread that does jobs in order, until the sender is gone.
fn worker(name: String) -> Result<Sender<Job>> {
    let (sender, receiver) = channel::<Job>();
    std::thread::Builder::new()
        .name(name)
        .spawn(move || receiver.into_iter().for_each(|job| job()))
        .map_err(|error| Error::OutOfMemory(format!("a thread could not be started: {error}")))?;
    Ok(sender)
}

impl Gpu {
    /// The GPU of that number; its threads start at the first call.
    pub fn get(ordinal: usize) -> Result<Arc<Gpu>> {
        let mut gpus = gpus();
        if let Some(gpu) = gpus.get(&ordinal) {
            return Ok(gpu.clone());
        }
        let count = device_count()?;
        if ordinal >= count {
            return Err(Error::DeviceNotFound(format!(
                "no device 'cuda:{ordinal}': {count} present, numbered from 0"
            )));
        }
        let gpu = Arc::new(Gpu {
            ordinal,
            launcher: Mutex::new(None),
            gone: Mutex::new(None),
            submitter: worker(format!("ww-submit-{ordinal}"))?,
            waiter: worker(format!("ww-wait-{ordinal}"))?,
            crew: Crew::default(),
            submitting: RwLock::default(),
        });
        gpus.insert(ordinal, gpu.clone());
        Ok(gpu)
    }

    /// Free device memory in bytes, when the device is in use already.
    pub fn free_memory_if_open(ordinal: usize) -> Option<u64> {
        let gpu = gpus().get(&ordinal)?.clone();
        let launcher = gpu.launcher.lock().ok()?.clone()?;
        launcher.core().context().memory_info().ok().map(|(free, _)| free)
    }

    /// The core, when the device is in use already.
    pub fn core_if_open(ordinal: usize) -> Option<Arc<DeviceCore>> {
        let gpu = gpus().get(&ordinal)?.clone();
        let launcher = gpu.launcher.lock().ok()?.clone()?;
        Some(launcher.core().clone())
    }

    /// The launcher, opening the device at the first call and again after its context was lost.
    pub fn launcher(&self) -> Result<Arc<Launcher>> {
        let mut slot =
            self.launcher.lock().map_err(|_| Error::Internal("a GPU's lock is poisoned".into()))?;
        if let Some(launcher) = slot.as_ref().filter(|launcher| !launcher.core().context().is_lost()) {
            return Ok(launcher.clone());
        }
        let lost = slot.take();
        if let Some(launcher) = &lost {
            launcher.core().context().reset_lost();
        }
        let opened = DeviceCore::open(self.ordinal);
        let core = opened.map_err(|error| if lost.is_some() { self.give_up(error) } else { error })?;
        Ok(slot.insert(Arc::new(Launcher::new(core))).clone())
    }

    /// Drivers may refuse every new context of a process after a fault (580 does); that is remembered and told.
    fn give_up(&self, error: Error) -> Error {
        let Error::DeviceLost(text) = error else { return error };
        let ordinal = self.ordinal;
        let told = format!("cuda:{ordinal} stays lost, restart the process to use it again: {text}");
        if let Ok(mut gone) = self.gone.lock() {
            *gone = Some(Error::DeviceLost(told.clone()));
        }
        Error::DeviceLost(told)
    }

    /// Why that device cannot be used any more in this process, if so.
    pub fn gone(ordinal: usize) -> Option<Error> {
        let gpu = gpus().get(&ordinal)?.clone();
        let gone = gpu.gone.lock().ok()?;
        gone.clone()
    }

    /// Threads of calls that wait for the GPU themselves.
    pub fn crew(&self) -> &Crew {
        &self.crew
    }

    /// To be held where another thread than the submit thread submits to the device's own stream.
    pub fn submitting(&self) -> RwLockReadGuard<'_, ()> {
        self.submitting.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a task.
    pub fn submit(self: Arc<Self>, task: Task) -> Result<()> {
        let gpu = self.clone();
        self.submitter
            .send(Box::new(move || gpu.start(task)))
            .map_err(|_| Error::Internal("a GPU's submit thread has ended".into()))
    }

    /// On the submit thread: enqueues the work and passes what is to be waited for on.
    fn start(&self, task: Task) {
        let Task { work, sources, cancelled, done } = task;
        let name = match &work {
            Work::Run { call, .. } | Work::Time { call, .. } => call.spec.name,
            Work::Upload | Work::Download { .. } => "copy",
            Work::Synchronize => "synchronize",
        };
        let begun = guarded(name, || {
            Task::check_cancelled(&cancelled)?;
            self.begin(work, sources)
        });
        let begun = match begun {
            Ok(begun) => begun,
            // A lost context shows at whatever call comes next: in the waiter's order the operation to blame is first.
            Err(error) => {
                let core =
                    self.launcher.lock().ok().and_then(|slot| slot.as_ref().map(|one| one.core().clone()));
                let _ = self.waiter.send(Box::new(move || {
                    done(Err(match core {
                        Some(core) => core.context().blame(name, error),
                        None => error,
                    }))
                }));
                return;
            }
        };
        let core = begun.core.clone();
        if begun.early {
            // Results that stay on the device can be used in stream order at once; the waiter only looks for faults.
            done(Ok(begun.results.into_iter().filter_map(Outcome::into_tensor).collect()));
            let _ = self.waiter.send(Box::new(move || {
                let _ = begun.ready.synchronize().map_err(|error| core.context().blame(name, error));
                drop(begun.keep);
            }));
            return;
        }
        let _ = self.waiter.send(Box::new(move || {
            let outcome = guarded(name, || {
                begun.ready.synchronize()?;
                drop(begun.keep);
                Task::check_cancelled(&cancelled)?;
                let mut tensors = Vec::new();
                for result in begun.results {
                    tensors.extend(result.finish()?);
                }
                Ok(tensors)
            });
            done(outcome.map_err(|error| core.context().blame(name, error)));
        }));
    }

    fn begin(&self, work: Work, sources: Vec<Option<Source>>) -> Result<Begun> {
        let launcher = self.launcher()?;
        let core = launcher.core().clone();
        let mut keep = Vec::new();
        let mut inputs = Vec::with_capacity(sources.len());
        for source in checked(&work, sources)? {
            inputs.push(match source {
                Some(source) => {
                    Some(source.into_device(&core, &mut keep, !matches!(work, Work::Download { .. }))?)
                }
                None => None,
            });
        }
        let (results, early) = match work {
            Work::Run { call, keep } => (run(&call, &launcher, &inputs, keep)?, keep),
            Work::Time { call, repeats, runs } => {
                let _alone = self.submitting.write().unwrap_or_else(PoisonError::into_inner);
                (time(&call, &launcher, &inputs, (repeats, runs))?, false)
            }
            Work::Upload => (inputs.into_iter().flatten().map(Outcome::Device).collect(), keep.is_empty()),
            Work::Download { into } => {
                let Some(tensor) = inputs.into_iter().flatten().next() else {
                    return invalid!("a copy needs a tensor");
                };
                (vec![Outcome::host(tensor, into)?], false)
            }
            Work::Synchronize => (Vec::new(), false),
        };
        let ready = Event::new(core.context())?;
        ready.record(core.stream())?;
        Ok(Begun { core, ready, results, early, keep })
    }
}

/// The sources of a call once those whose values the call checks are known to hold none that it refuses.
fn checked(work: &Work, mut sources: Vec<Option<Source>>) -> Result<Vec<Option<Source>>> {
    let (Work::Run { call, .. } | Work::Time { call, .. }) = work else { return Ok(sources) };
    let mut known = vec![None; sources.len()];
    for (index, known) in known.iter_mut().enumerate().filter(|(index, _)| call.is_checked(*index)) {
        *known = sources[index].take().map(Source::into_tensor).transpose()?;
        sources[index] = known.clone().map(Source::Tensor);
    }
    call.check_values(&known)?;
    Ok(sources)
}

/// Work that was enqueued.
struct Begun {
    core: Arc<DeviceCore>,
    ready: Event,
    results: Vec<Outcome>,
    /// Whether the results may be used before `ready`.
    early: bool,
    /// Page-locked memory that the device still reads.
    keep: Vec<PinnedSlice>,
}

enum Outcome {
    Device(Tensor),
    Host { tensor: Tensor, download: Download },
    Times { pairs: Vec<(Event, Event)>, runs: usize, graph: Option<Graph> },
}

impl Outcome {
    fn host(tensor: Tensor, into: Option<PinnedSlice>) -> Result<Outcome> {
        match tensor.begin_download(into)? {
            Some(download) => Ok(Outcome::Host { tensor, download }),
            None => Ok(Outcome::Device(tensor)),
        }
    }

    fn into_tensor(self) -> Option<Tensor> {
        match self {
            Outcome::Device(tensor) => Some(tensor),
            _ => None,
        }
    }

    fn finish(self) -> Result<Vec<Tensor>> {
        match self {
            Outcome::Device(tensor) => Ok(vec![tensor]),
            Outcome::Host { download, .. } if download.is_pinned() => {
                download.finish_pinned().map(|()| Vec::new())
            }
            Outcome::Host { tensor, download } => {
                Ok(vec![Tensor::from_host(download.into_buffer()?, tensor.meta())])
            }
            Outcome::Times { pairs, runs, graph } => {
                drop(graph);
                let one = |milliseconds: f32| f64::from(milliseconds) / runs.max(1) as f64;
                let times = pairs.iter().map(|(start, end)| end.milliseconds_since(start).map(one));
                times_tensor(times.collect::<Result<_>>()?)
            }
        }
    }
}

fn run(call: &Call, launcher: &Launcher, inputs: &[Option<Tensor>], keep: bool) -> Result<Vec<Outcome>> {
    let tensors = call.run_cuda(launcher, inputs)?;
    tensors
        .into_iter()
        .map(|tensor| if keep { Ok(Outcome::Device(tensor)) } else { Outcome::host(tensor, None) })
        .collect()
}

/// Calls in a recorded sequence.
const RECORDED: usize = 20;

/// Times of `runs` calls that follow each other, `repeats` times. Recorded sequences of them are launched where the driver
/// takes such, so that the device's time is seen and not what it costs the host to submit a call.
fn time(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<Tensor>],
    (repeats, runs): (usize, usize),
) -> Result<Vec<Outcome>> {
    let core = launcher.core();
    let (context, stream) = (core.context(), core.stream());
    // Memory that a recorded call took must not go back to the driver before the last launch.
    let _held = core.hold_memory();
    let several = |count: usize| (0..count).try_for_each(|_| call.run_cuda(launcher, inputs).map(drop));
    let graph = if runs < RECORDED {
        None
    } else {
        several(1)?;
        Graph::record(stream, || several(RECORDED))?
    };
    let launches = runs / RECORDED;
    let mut pairs = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let (start, end) = (Event::timed(context)?, Event::timed(context)?);
        start.record(stream)?;
        match &graph {
            Some(graph) => (0..launches).try_for_each(|_| graph.launch(stream))?,
            None => several(runs)?,
        }
        end.record(stream)?;
        pairs.push((start, end));
    }
    let runs = if graph.is_some() { launches * RECORDED } else { runs };
    Ok(vec![Outcome::Times { pairs, runs, graph }])
}

impl Source {
    /// The data on the device, in stream order. Pinned memory is read in place and kept until the copy has run.
    fn into_device(
        self,
        core: &Arc<DeviceCore>,
        keep: &mut Vec<PinnedSlice>,
        upload: bool,
    ) -> Result<Tensor> {
        match self {
            Source::Pinned { slice, meta } => {
                let tensor = Tensor::device(core, &meta)?;
                let target = tensor.device_view(core)?.ptr;
                core.stream().upload(target, &slice.memory, slice.offset, tensor.byte_size())?;
                keep.push(slice);
                Ok(tensor)
            }
            Source::Staged { staged, meta } if staged.is_on(core) => {
                let tensor = Tensor::device(core, &meta)?;
                staged.upload(core, tensor.device_view(core)?.ptr)?;
                Ok(tensor)
            }
            other => {
                let tensor = other.into_tensor()?;
                if !upload {
                    return Ok(tensor);
                }
                let moved = tensor.to_device(core)?;
                if tensor.core().is_none() {
                    core.reserve_staging(tensor.byte_size())?;
                }
                Ok(moved)
            }
        }
    }
}
