//! A stand-in for the driver: its function table over buffers and queues in host memory (tests).
//!
//! Streams defer their work until something waits for it, so a missing wait shows as wrong data. Every use that the
//! driver does not define (a stale handle, memory released under a running copy) is written down as misuse.

mod calls;
mod device;
mod work;

use super::load::{Api, start};
use super::table::Status;
use crate::Result;
use device::State;
pub(crate) use device::{Launch, Live};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The machine that the stand-in pretends to be.
pub(crate) struct Config {
    pub devices: usize,
    /// Bytes of each device.
    pub memory: usize,
    /// As cuDriverGetVersion gives it.
    pub version: c_int,
    /// Optional functions that this driver lacks.
    pub absent: &'static [&'static str],
    /// What the compiler says of PTX that it refuses.
    pub log: &'static str,
    /// Answer of cuInit.
    pub init: Status,
    /// Whether pages of the process can be locked.
    pub locks_pages: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            devices: 1,
            memory: 8 << 30,
            version: 12040,
            absent: &[],
            log: "ptxas fatal : Unsupported .version 9.9",
            init: 0,
            locks_pages: true,
        }
    }
}

static INSTANCES: Mutex<BTreeMap<usize, Arc<Mutex<State>>>> = Mutex::new(BTreeMap::new());
/// What `api()` gave out, for ever; kept here so that leak checkers tell it from what is lost.
static STARTED: Mutex<Vec<&'static Result<Api>>> = Mutex::new(Vec::new());

/// A stand-in's number and what `api()` answers, once it has been started.
type Here = (usize, Option<&'static Result<Api>>);

thread_local! {
    static HERE: Cell<Option<Here>> = const { Cell::new(None) };
    /// The context that is current on the thread.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The stand-in of this thread, as the answer of `api()`.
pub(crate) fn installed() -> Option<Result<&'static Api>> {
    HERE.get()?.1.map(|answer| answer.as_ref().map_err(Clone::clone))
}

fn instance(id: usize) -> Option<Arc<Mutex<State>>> {
    INSTANCES.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
}

/// Takes the place of the driver on the thread that installs it, and on those that join, until it is dropped.
pub(crate) struct FakeDriver {
    id: usize,
    api: &'static Result<Api>,
}

impl FakeDriver {
    pub fn install(config: Config) -> FakeDriver {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let table = calls::table(config.absent);
        let state = Arc::new(Mutex::new(State::new(config)));
        INSTANCES.lock().unwrap_or_else(PoisonError::into_inner).insert(id, state);
        HERE.set(Some((id, None)));
        let driver = FakeDriver { id, api: Box::leak(Box::new(start(table, "stand-in".into()))) };
        STARTED.lock().unwrap_or_else(PoisonError::into_inner).push(driver.api);
        driver.join();
        driver
    }

    /// Makes `api()` answer with this driver on the calling thread too.
    pub fn join(&self) {
        HERE.set(Some((self.id, Some(self.api))));
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        let state = instance(self.id).expect("installed");
        let mut state: MutexGuard<'_, State> = state.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut state)
    }

    /// Makes the `nth` call of that function from now on (from 1) answer with the status.
    pub fn fail(&self, symbol: &'static str, nth: usize, status: Status) {
        self.state(|state| {
            let call = state.calls.get(symbol).copied().unwrap_or(0) + nth;
            state.plans.push((symbol, call, status));
        });
    }

    /// Makes that kernel fault on the device when it runs.
    pub fn fault_in(&self, kernel: &str, status: Status) {
        self.state(|state| state.faulty.push((kernel.to_string(), status)));
    }

    /// Forgets failures that have not happened yet.
    pub fn heal(&self) {
        self.state(|state| {
            state.plans.clear();
            state.faulty.clear();
        });
    }

    /// How often a function was called.
    pub fn calls(&self, symbol: &str) -> usize {
        self.state(|state| state.calls.get(symbol).copied().unwrap_or(0))
    }

    /// Every function called so far and how often.
    pub fn called(&self) -> BTreeMap<&'static str, usize> {
        self.state(|state| state.calls.clone())
    }

    /// Launches so far, in order of submission.
    pub fn launches(&self) -> Vec<Launch> {
        self.state(|state| state.launches.clone())
    }

    /// Uses that the driver does not define.
    pub fn misuse(&self) -> Vec<String> {
        self.state(|state| state.misuse.clone())
    }

    /// Objects that exist now.
    pub fn live(&self) -> Live {
        self.state(|state| state.live())
    }

    /// Objects that were left over when a working context was given back.
    pub fn leaks(&self) -> Vec<Live> {
        self.state(|state| state.leaks.clone())
    }
}

impl Drop for FakeDriver {
    fn drop(&mut self) {
        HERE.set(None);
        INSTANCES.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}
