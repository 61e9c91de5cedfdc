//! Device memory in size classes, kept for reuse, with a limit and statistics.
//!
//! All work of a device runs on one stream, so a block that goes back to the pool may be handed out at once: whatever
//! still uses it runs before whatever its next owner submits.

use crate::driver::{Context, DeviceMemory};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Bytes of a device's pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// In tensors and scratch memory.
    pub used: u64,
    /// Kept for reuse.
    pub cached: u64,
    /// Highest `used` so far.
    pub peak: u64,
    /// The limit, 0 for none.
    pub limit: u64,
    /// Number of blocks in use.
    pub allocations: u64,
    /// Part of `used`: forms kept with tensors that were operands more than once, which go where memory runs short.
    pub prepared: u64,
}

#[derive(Default)]
struct State {
    free: BTreeMap<usize, Vec<DeviceMemory>>,
    stats: MemoryStats,
    /// How many hold what is kept.
    holders: usize,
}

/// While it lives the pool gives nothing back to the driver.
pub struct Held<'a>(&'a Pool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.holders -= 1);
    }
}

/// The pool of one device.
pub struct Pool {
    context: Arc<Context>,
    state: Mutex<State>,
}

const SMALL: usize = 1 << 20;
const GRAIN: usize = 2 << 20;

/// Size of the block that serves a request: powers of two up to 1 MiB, then multiples of 2 MiB. `None` for sizes that no
/// memory has.
fn class_of(size: usize) -> Option<usize> {
    match size {
        0..=SMALL => Some(size.next_power_of_two().max(512)),
        _ if size > isize::MAX as usize / 2 => None,
        _ => size.checked_next_multiple_of(GRAIN),
    }
}

impl Pool {
    /// An empty pool.
    pub fn new(context: Arc<Context>) -> Pool {
        Pool { context, state: Mutex::default() }
    }

    /// A block of at least `size` bytes.
    pub fn take(&self, size: usize) -> Result<DeviceMemory> {
        let class = class_of(size).ok_or_else(|| {
            Error::OutOfMemory(format!("device memory: {size} bytes could not be allocated"))
        })?;
        if let Some(block) = self.reuse(class, size)? {
            return Ok(block);
        }
        if self
            .with(|state| state.stats.limit != 0 && state.stats.used + state.stats.cached > state.stats.limit)
        {
            self.trim();
        }
        let block = match DeviceMemory::new(&self.context, class) {
            Err(Error::OutOfMemory(_)) => {
                self.trim();
                DeviceMemory::new(&self.context, class).map_err(|error| self.explain(error, size))
            }
            other => other,
        };
        match block {
            Ok(block) => Ok(block),
            Err(error) => {
                self.with(|state| {
                    state.stats.used -= class as u64;
                    state.stats.allocations -= 1;
                });
                Err(error)
            }
        }
    }

    fn explain(&self, error: Error, size: usize) -> Error {
        let used = self.stats().used;
        match error {
            Error::OutOfMemory(text) => Error::OutOfMemory(format!(
                "{text}: {size} bytes wanted, {used} bytes in use by tensors of this process"
            )),
            other => other,
        }
    }

    /// Accounts for the request and gives a kept block that fits without wasting more than a quarter or passing the
    /// limit.
    fn reuse(&self, class: usize, size: usize) -> Result<Option<DeviceMemory>> {
        let mut state =
            self.state.lock().map_err(|_| Error::Internal("the pool's lock is poisoned".into()))?;
        let room = match state.stats.limit {
            0 => usize::MAX,
            limit => usize::try_from(limit.saturating_sub(state.stats.used)).unwrap_or(usize::MAX),
        };
        let found = state
            .free
            .range(class..=(class + class / 4).min(room).max(class))
            .find(|(_, list)| !list.is_empty())
            .map(|(key, _)| *key);
        let taken = found.unwrap_or(class) as u64;
        let stats = &mut state.stats;
        if stats.limit != 0 && stats.used + taken > stats.limit {
            return Err(Error::MemoryLimit(format!(
                "{size} bytes wanted, {} of the limit of {} bytes are in use",
                stats.used, stats.limit
            )));
        }
        stats.used += taken;
        stats.peak = stats.peak.max(stats.used);
        stats.allocations += 1;
        let Some(key) = found else { return Ok(None) };
        state.stats.cached -= key as u64;
        Ok(state.free.get_mut(&key).and_then(Vec::pop))
    }

    /// Takes a block back.
    pub fn give(&self, block: DeviceMemory) {
        self.with(|state| {
            let size = block.size();
            state.stats.used -= size as u64;
            state.stats.allocations -= 1;
            state.stats.cached += size as u64;
            state.free.entry(size).or_default().push(block);
        });
    }

    /// Keeps [`Pool::trim`] from doing anything as long as the answer lives.
    pub fn hold(&self) -> Held<'_> {
        self.with(|state| state.holders += 1);
        Held(self)
    }

    /// Returns all kept blocks to the driver.
    pub fn trim(&self) {
        let free = self.with(|state| {
            if state.holders > 0 {
                return BTreeMap::new();
            }
            state.stats.cached = 0;
            std::mem::take(&mut state.free)
        });
        drop(free);
    }

    /// Sets the limit in bytes; 0 lifts it. Blocks in use stay.
    pub fn set_limit(&self, limit: u64) {
        self.with(|state| state.stats.limit = limit);
    }

    /// Current figures.
    pub fn stats(&self) -> MemoryStats {
        self.with(|state| state.stats)
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

#[cfg(test)]
mod tests {
    use super::{GRAIN, SMALL, class_of};

    #[test]
    fn classes_cover_requests() {
        assert_eq!(class_of(0), Some(512));
        assert_eq!(class_of(513), Some(1024));
        assert_eq!(class_of(SMALL + 1), Some(GRAIN));
        assert_eq!(class_of(3 * GRAIN), Some(3 * GRAIN));
        assert_eq!(class_of(usize::MAX), None);
    }
}
