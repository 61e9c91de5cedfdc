//! Device memory in size classes, kept for reuse, with a limit and statistics.
//!
//! All work on a pool's blocks runs on one stream, so a block that goes back may be handed out at once: whatever still uses it
//! runs before whatever its next owner submits. Other streams of the device have pools of their own, whose blocks count as
//! used in the pool that they branch from.

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

impl State {
    /// Counts memory as used, unless that would pass the limit.
    fn account(&mut self, bytes: u64, wanted: usize) -> Result<()> {
        let stats = &mut self.stats;
        if stats.limit != 0 && stats.used + bytes > stats.limit {
            return Err(Error::MemoryLimit(format!(
                "{wanted} bytes wanted, {} of the limit of {} bytes are in use",
                stats.used, stats.limit
            )));
        }
        stats.used += bytes;
        stats.peak = stats.peak.max(stats.used);
        stats.allocations += 1;
        Ok(())
    }
}

/// While it lives the pool gives nothing back to the driver.
pub struct Held<'a>(&'a Pool);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.with(|state| state.holders -= 1);
    }
}

/// The pool of one stream.
pub struct Pool {
    context: Arc<Context>,
    state: Mutex<State>,
    parent: Option<Arc<Pool>>,
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
        Pool { context, state: Mutex::default(), parent: None }
    }

    /// An empty pool whose memory counts as used in `parent`. It keeps what it has taken until it ends, so that recorded
    /// work may refer to it.
    pub fn branch(parent: Arc<Pool>) -> Pool {
        let state = State { holders: 1, ..State::default() };
        Pool { context: parent.context.clone(), state: Mutex::new(state), parent: Some(parent) }
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
        self.fresh(class, size).inspect_err(|_| self.refund(class as u64, 1))
    }

    /// A block from the driver.
    fn fresh(&self, class: usize, size: usize) -> Result<DeviceMemory> {
        if let Some(parent) = &self.parent {
            parent.charge(class as u64, size)?;
        }
        let block = DeviceMemory::new(&self.context, class).or_else(|error| match error {
            Error::OutOfMemory(_) => {
                self.make_room();
                DeviceMemory::new(&self.context, class).map_err(|error| self.explain(error, size))
            }
            other => Err(other),
        });
        block.inspect_err(|_| self.refund_parent(class as u64, 1))
    }

    /// Counts memory that a branch takes from the driver, unless it would pass a limit.
    fn charge(&self, bytes: u64, size: usize) -> Result<()> {
        if let Some(parent) = &self.parent {
            parent.charge(bytes, size)?;
        }
        let fits = self.with(|state| state.account(bytes, size));
        fits.inspect_err(|_| self.refund_parent(bytes, 1))
    }

    fn refund(&self, bytes: u64, allocations: u64) {
        self.with(|state| {
            state.stats.used -= bytes;
            state.stats.allocations -= allocations;
        });
    }

    fn refund_parent(&self, bytes: u64, allocations: u64) {
        let mut next = self.parent.as_ref();
        while let Some(pool) = next {
            pool.refund(bytes, allocations);
            next = pool.parent.as_ref();
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
        state.account(found.unwrap_or(class) as u64, size)?;
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

    fn make_room(&self) {
        self.trim();
        if let Some(parent) = &self.parent {
            parent.make_room();
        }
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

impl Drop for Pool {
    fn drop(&mut self) {
        let (bytes, blocks) = self.with(|state| {
            let blocks: usize = state.free.values().map(Vec::len).sum();
            (state.stats.cached, blocks as u64)
        });
        self.refund_parent(bytes, blocks);
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
