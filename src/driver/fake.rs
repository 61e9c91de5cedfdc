//! The emulator (emulator/) as the driver of tests: a card of compute capability 9.0 whose kernels do nothing, unless a test asks for it.
//!
//! Streams defer their work until something waits for it, so a missing wait shows as wrong data. Every use that the
//! driver does not define (a stale handle, memory released under a running copy) is a finding, and fails the test.

use super::load::{Api, start};
use super::table::{Status, Table};
use crate::Result;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
pub(crate) use warpwright_emulator::driver::Live;
pub(crate) use warpwright_emulator::driver::control::Launch;
use warpwright_emulator::driver::{self as emulator, Finding, abi, control, report};
use warpwright_emulator::exec::tensor_map::TensorMap;

/// The machine that is emulated.
pub(crate) struct Config {
    pub devices: usize,
    /// Bytes of each device.
    pub memory: usize,
    /// As cuDriverGetVersion gives it.
    pub version: c_int,
    /// Optional functions that this driver lacks.
    pub absent: &'static [&'static str],
    /// Answer of cuInit.
    pub init: Status,
    /// Whether pages of the process can be locked.
    pub locks_pages: bool,
    /// Whether kernels run, on few multiprocessors.
    pub runs: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            devices: 1,
            memory: 8 << 30,
            version: 12040,
            absent: &[],
            init: 0,
            locks_pages: true,
            runs: false,
        }
    }
}

impl Config {
    fn machine(&self) -> emulator::Config {
        let run = if self.runs { "multiprocessors=4" } else { "multiprocessors=132,run=off" };
        let mut text = format!("cc=90,{run},devices={},memory={}", self.devices, self.memory);
        if self.init != 0 {
            text += &format!(",fail=cuInit:*:{}", self.init);
        }
        if !self.locks_pages {
            text += ",fail=cuMemHostRegister_v2:*:801";
        }
        let absent = self.absent.iter().map(|symbol| symbol.to_string()).collect();
        emulator::Config { driver: self.version, absent, ..emulator::Config::parse(&text).unwrap() }
    }
}

type Answer = &'static Result<Api>;

thread_local! {
    static HERE: Cell<Option<Answer>> = const { Cell::new(None) };
}

/// The emulator on this thread, as the answer of `api()`.
pub(crate) fn installed() -> Option<Result<&'static Api>> {
    HERE.get().map(|answer| answer.as_ref().map_err(Clone::clone))
}

/// The tensor map that a parameter is.
pub(crate) fn tensor_map(bytes: &[u8]) -> TensorMap {
    TensorMap::of(&bytemuck::pod_read_unaligned(bytes)).expect("a tensor map")
}

/// Address, dims, strides and rows of a box of a tensor map of three dimensions.
pub(crate) fn map_of(bytes: &[u8]) -> [u64; 7] {
    let map = tensor_map(bytes);
    let ([columns, rows, matrices, ..], [row, matrix, ..]) = (map.dims, map.strides);
    [map.address, columns, rows, matrices, row, matrix, map.boxed[1].into()]
}

/// Takes the place of the driver on the thread that installs it, and on those that join, until it is dropped. What was
/// made of it must be dropped before.
pub(crate) struct FakeDriver {
    api: Answer,
    /// The machine is one for the process. Beside it what `api()` gave out, for ever: leak checkers tell it from what is
    /// lost.
    _alone: MutexGuard<'static, Vec<Answer>>,
}

impl FakeDriver {
    pub fn install(config: Config) -> FakeDriver {
        static MACHINE: Mutex<Vec<Answer>> = Mutex::new(Vec::new());
        let mut alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        report::take();
        emulator::restart(config.machine());
        let address = |symbol: &str| match config.absent.contains(&symbol) {
            true => None,
            false => NonNull::new(abi::address(symbol) as *mut _),
        };
        // SAFETY: the emulator's functions have the driver's prototypes and are part of this program.
        let table = unsafe { Table::resolve(&address) }.expect("every required function");
        let api: Answer = Box::leak(Box::new(start(table, "emulator".into())));
        alone.push(api);
        HERE.set(Some(api));
        FakeDriver { api, _alone: alone }
    }

    /// Makes `api()` answer with this driver on the calling thread too.
    pub fn join(&self) {
        HERE.set(Some(self.api));
    }

    /// Makes the `nth` call of that function from now on (from 1) answer with the status.
    pub fn fail(&self, symbol: &str, nth: usize, status: Status) {
        control::fail(symbol, nth as u64, status);
    }

    /// Makes that kernel fault on the device when it runs.
    pub fn fault_in(&self, kernel: &str, status: Status) {
        control::fault_in(kernel, status);
    }

    /// Forgets failures that have not happened yet.
    pub fn heal(&self) {
        control::heal();
    }

    /// How often a function was called.
    pub fn calls(&self, symbol: &str) -> usize {
        control::calls(symbol) as usize
    }

    /// Every function called so far and how often.
    pub fn called(&self) -> BTreeMap<&'static str, usize> {
        control::called().into_iter().map(|(symbol, count)| (symbol, count as usize)).collect()
    }

    /// Launches so far, in order of submission.
    pub fn launches(&self) -> Vec<Launch> {
        control::launches()
    }

    /// Takes the findings so far.
    pub fn misuse(&self) -> Vec<Finding> {
        report::take()
    }

    /// Objects that exist now.
    pub fn live(&self) -> Live {
        control::live()
    }
}

impl Drop for FakeDriver {
    fn drop(&mut self) {
        HERE.set(None);
        // A thread that copied lets go of the context a moment after it has said that it is done.
        let patience = Instant::now() + Duration::from_secs(5);
        while control::retained() > 0 && Instant::now() < patience {
            std::thread::yield_now();
        }
        assert!(control::retained() == 0 || std::thread::panicking(), "a context outlives its driver");
        let left = self.misuse();
        assert!(left.is_empty() || std::thread::panicking(), "{left:?}");
    }
}
