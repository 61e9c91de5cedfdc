//! Networks on a device, with threads of their own where that is a GPU.

use super::crew::Crew;
use super::devices::DeviceName;
use super::gpu::Gpu;
use super::task::{Source, Task, guarded};
use crate::graph::{Feed, Options, Port, Request, Session, Timing};
use crate::onnx::{External, Limits, Model};
use crate::{Error, Result, Tensor};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Where a model's file is.
pub enum ModelSource {
    /// In the file system; its external data lies beside it.
    Path(PathBuf),
    /// In memory; nothing is opened.
    Bytes(Vec<u8>),
}

/// How a session is made.
pub struct SessionOptions {
    /// Bounds that the model is held to.
    pub limits: Limits,
    /// Contents of external files by the names that the model calls them by.
    pub external: Vec<(String, Vec<u8>)>,
    /// Whether files with several hard links are taken.
    pub links: bool,
    /// Whether an operator without a GPU form is an error.
    pub strict: bool,
    /// Bytes of device memory that the session takes at most; 0 for no bound.
    pub memory_limit: u64,
}

type Done = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// A session on its device. The model is read and planned on our own threads.
#[derive(Default)]
pub struct Network {
    session: OnceLock<(Arc<Session>, DeviceName)>,
    /// What the steps of the latest profile took.
    times: Mutex<Vec<Timing>>,
    crew: Crew,
}

impl Network {
    /// Reads the model; blocks, so use it on a thread of ours.
    pub fn open(&self, source: ModelSource, options: SessionOptions, device: DeviceName) -> Result<()> {
        let session = guarded("InferenceSession.create", || load(source, options, device))?;
        self.session
            .set((Arc::new(session), device))
            .map_err(|_| Error::Internal("a session was opened twice".into()))
    }

    /// The session, once it is open.
    pub fn session(&self) -> Result<&Arc<Session>> {
        match self.session.get() {
            Some((session, _)) => Ok(session),
            None => Err(Error::Disposed("the session is not open".into())),
        }
    }

    /// Device that the session runs on.
    pub fn device(&self) -> Result<DeviceName> {
        self.session().map(|_| self.session.get().map_or(DeviceName::Cpu, |(_, device)| *device))
    }

    /// Values that a run must give.
    pub fn inputs(&self) -> Result<&[Port]> {
        Ok(self.session()?.inputs())
    }

    /// Queues a run: results of those positions, on the device that they were made on when `keep`, else on the host.
    pub fn submit(
        &self,
        feeds: Vec<(String, Source)>,
        fetches: Vec<usize>,
        keep: bool,
        cancelled: Arc<AtomicBool>,
        done: Done,
    ) -> Result<()> {
        let session = self.session()?.clone();
        self.queue(move || {
            let outcome = guarded("run", || run(&session, feeds, &fetches, keep, &cancelled));
            done(blamed(&session, outcome));
        })
    }

    /// Queues a run whose steps are timed; [`Network::times`] has them once it is done.
    pub fn submit_profile(
        self: &Arc<Self>,
        feeds: Vec<(String, Source)>,
        cancelled: Arc<AtomicBool>,
        done: Done,
    ) -> Result<()> {
        let (session, network) = (self.session()?.clone(), self.clone());
        self.queue(move || {
            let check = || Task::check_cancelled(&cancelled);
            let outcome = guarded("profile", || session.profile(checked(&session, feeds)?, &check));
            done(blamed(&session, outcome).map(|times| {
                *network.times.lock().unwrap_or_else(PoisonError::into_inner) = times;
                Vec::new()
            }));
        })
    }

    /// What the steps of the latest profile took.
    pub fn times(&self) -> Vec<Timing> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// On the compute pool, or on one of the session's own threads where it waits for a GPU.
    fn queue(&self, work: impl FnOnce() + Send + 'static) -> Result<()> {
        if self.device()? == DeviceName::Cpu {
            crate::cpu::spawn(work);
            return Ok(());
        }
        self.crew.queue(Box::new(work))
    }
}

fn load(source: ModelSource, options: SessionOptions, device: DeviceName) -> Result<Session> {
    let with_entries = |external: External| {
        let external = if options.links { external.with_links() } else { external };
        options
            .external
            .iter()
            .fold(external, |external, (name, content)| external.with_entry(name, content.clone().into()))
    };
    let model: Model = match source {
        ModelSource::Bytes(bytes) => {
            crate::onnx::load(bytes.into(), &with_entries(External::default()), &options.limits)?
        }
        ModelSource::Path(path) => crate::onnx::load_file_with(&path, with_entries, &options.limits)?,
    };
    let launcher = match device {
        DeviceName::Cpu => None,
        DeviceName::Cuda(ordinal) => Some(Gpu::get(ordinal)?.launcher()?),
    };
    let graph = Options {
        tensor_bytes: options.limits.tensor_bytes,
        strict: options.strict,
        memory_limit: options.memory_limit,
        ..Options::default()
    };
    Session::new(model.graph, launcher, graph)
}

/// The error with the operation to blame for a lost context.
fn blamed<T>(session: &Session, outcome: Result<T>) -> Result<T> {
    outcome.map_err(|error| match session.launcher() {
        Some(launcher) => launcher.core().context().blame("run", error),
        None => error,
    })
}

/// What a run is given, in the order of the inputs.
fn checked(session: &Session, feeds: Vec<(String, Source)>) -> Result<Vec<Feed>> {
    let feeds = feeds.into_iter().map(|(name, source)| {
        let feed = match source {
            Source::Staged { staged, meta } => Feed::Staged(staged, meta),
            Source::Pinned { slice, meta } => Feed::Pinned(slice, meta),
            other => Feed::Tensor(other.into_tensor()?),
        };
        Ok((name, feed))
    });
    session.check_feeds(feeds.collect::<Result<_>>()?)
}

fn run(
    session: &Session,
    feeds: Vec<(String, Source)>,
    fetches: &[usize],
    keep: bool,
    cancelled: &AtomicBool,
) -> Result<Vec<Tensor>> {
    let check = || Task::check_cancelled(cancelled);
    check()?;
    session.run_for(checked(session, feeds)?, Request { outputs: fetches, keep }, &check)
}
