//! Page-locked blocks that results are handed out in: the device writes them, the caller reads them where they are.
//!
//! Copying a result out of a staging block costs more than its way over the bus does. A block comes back when the caller lets
//! go of the result; what is out or kept is bounded, and results beyond that are copied.

use super::host::class_of;
use crate::Result;
use crate::driver::{Context, PinnedMemory};
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

/// Bytes below which a result is copied: it costs a few microseconds.
const LEAST: usize = 256 << 10;
/// Bytes out and kept at most.
const MOST: usize = 256 << 20;
/// So many results in a row that found no room make kept blocks of other sizes go.
const PATIENCE: usize = 16;

#[derive(Default)]
struct State {
    free: Vec<PinnedMemory>,
    /// Bytes of all blocks, out or kept.
    bytes: usize,
    /// Sizes asked for so far: locking pages is slow, so that a block is made for the second result of a size.
    met: HashSet<usize>,
    misses: usize,
}

/// The blocks of one device.
pub struct ResultBlocks {
    context: Arc<Context>,
    state: Mutex<State>,
}

impl ResultBlocks {
    /// No blocks yet.
    pub fn new(context: Arc<Context>) -> ResultBlocks {
        ResultBlocks { context, state: Mutex::default() }
    }

    /// A block for a result of that many bytes, unless it is to be copied.
    pub fn take(self: &Arc<Self>, size: usize) -> Option<ResultBlock> {
        if size < LEAST {
            return None;
        }
        let class = class_of(size);
        let kept = self.with(|state| {
            let fits = |block: &PinnedMemory| block.size() >= class && block.size() / 2 <= class;
            let fitting = state.free.iter().enumerate().filter(|(_, block)| fits(block));
            let (index, _) = fitting.min_by_key(|(_, block)| block.size())?;
            state.misses = 0;
            Some(state.free.swap_remove(index))
        });
        let memory = kept.or_else(|| self.make(class))?;
        Some(ResultBlock { memory: Some(memory), home: self.clone(), written: false })
    }

    fn make(&self, class: usize) -> Option<PinnedMemory> {
        let (room, outdated) = self.with(|state| {
            if state.met.insert(class) || class > MOST {
                return (false, Vec::new());
            }
            let mut outdated = Vec::new();
            if state.bytes + class > MOST {
                state.misses += 1;
                if state.misses > PATIENCE {
                    state.misses = 0;
                    outdated = std::mem::take(&mut state.free);
                    state.bytes -= outdated.iter().map(PinnedMemory::size).sum::<usize>();
                }
            }
            let room = state.bytes + class <= MOST;
            state.bytes += if room { class } else { 0 };
            (room, outdated)
        });
        drop(outdated);
        if !room {
            return None;
        }
        let made = PinnedMemory::new(&self.context, class).ok();
        if made.is_none() {
            self.with(|state| state.bytes -= class);
        }
        made
    }

    /// Frees the blocks that are not out.
    pub fn trim(&self) {
        let freed = self.with(|state| {
            let freed = std::mem::take(&mut state.free);
            state.bytes -= freed.iter().map(PinnedMemory::size).sum::<usize>();
            state.met.clear();
            freed
        });
        drop(freed);
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// A block that is out. It goes back when it is dropped, or to the driver if the device may still write it.
pub struct ResultBlock {
    memory: Option<PinnedMemory>,
    home: Arc<ResultBlocks>,
    written: bool,
}

impl ResultBlock {
    /// The memory, for a copy that is enqueued.
    pub fn memory(&self) -> Result<&PinnedMemory> {
        self.memory.as_ref().ok_or_else(|| crate::Error::Internal("a result's block is gone".into()))
    }

    /// Notes that the device has written it.
    pub fn written(mut self) -> ResultBlock {
        self.written = true;
        self
    }
}

impl Deref for ResultBlock {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], PinnedMemory::bytes)
    }
}

impl DerefMut for ResultBlock {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], PinnedMemory::bytes_mut)
    }
}

impl Drop for ResultBlock {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let written = self.written;
        self.home.with(|state| {
            if written {
                state.free.push(memory);
                return None;
            }
            state.bytes -= memory.size();
            Some(memory)
        });
    }
}
