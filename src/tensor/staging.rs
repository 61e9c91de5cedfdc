//! Page-locked blocks for copies to and from plain host memory.
//!
//! A plain array is copied through blocks of [`CHUNK`] bytes: several threads fill one while the device reads another.

use crate::driver::{Context, Event, PinnedMemory, Stream};
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Largest staged piece in bytes.
pub const CHUNK: usize = 8 << 20;
/// Blocks in flight before the copying thread waits.
const DEPTH: usize = 4;
/// Pinned bytes kept for reuse.
const KEEP: usize = 256 << 20;

#[derive(Default)]
struct State {
    free: Vec<PinnedMemory>,
    kept: usize,
    /// Blocks that the device may still read, oldest first.
    busy: VecDeque<(Event, PinnedMemory)>,
}

/// Page-locked blocks of one device.
pub struct Staging {
    context: Arc<Context>,
    state: Mutex<State>,
}

fn class_of(size: usize) -> usize {
    size.next_power_of_two().clamp(4096, CHUNK)
}

impl Staging {
    /// No blocks yet.
    pub fn new(context: Arc<Context>) -> Staging {
        Staging { context, state: Mutex::default() }
    }

    /// A block of at least `size` bytes, up to [`CHUNK`].
    pub fn take(&self, size: usize) -> Result<PinnedMemory> {
        let class = class_of(size);
        let kept = self.with(|state| {
            let index = state.free.iter().position(|block| block.size() == class)?;
            state.kept -= class;
            Some(state.free.swap_remove(index))
        });
        if let Some(block) = kept {
            return Ok(block);
        }
        match PinnedMemory::new(&self.context, class) {
            Err(Error::OutOfMemory(_)) => {
                self.trim();
                PinnedMemory::new(&self.context, class)
            }
            other => other,
        }
    }

    /// Blocks that hold `size` bytes in pieces of [`CHUNK`], when enough are kept; allocates nothing.
    pub fn take_kept(&self, size: usize) -> Option<Vec<PinnedMemory>> {
        // A fault of the device shows at the next call as well.
        let _ = self.reap(usize::MAX);
        self.with(|state| {
            let mut taken = Vec::with_capacity(size.div_ceil(CHUNK));
            for start in (0..size).step_by(CHUNK) {
                let class = class_of((size - start).min(CHUNK));
                let Some(index) = state.free.iter().position(|block| block.size() == class) else {
                    state.free.append(&mut taken);
                    return None;
                };
                taken.push(state.free.swap_remove(index));
            }
            state.kept -= taken.iter().map(PinnedMemory::size).sum::<usize>();
            Some(taken)
        })
    }

    /// Allocates blocks so that the next `take_kept` of that size, within what is kept at all, finds them.
    pub fn reserve(&self, size: usize) -> Result<()> {
        let size = size.min(KEEP / 2);
        let tail = size % CHUNK;
        for (class, wanted) in [(CHUNK, size / CHUNK), (class_of(tail), usize::from(tail > 0))] {
            let held = self.with(|state| {
                let busy = state.busy.iter().map(|(_, block)| block);
                state.free.iter().chain(busy).filter(|block| block.size() == class).count()
            });
            for _ in held..wanted {
                self.give(PinnedMemory::new(&self.context, class)?);
            }
        }
        Ok(())
    }

    /// Takes back a block that no device work uses any more.
    pub fn give(&self, block: PinnedMemory) {
        self.with(|state| {
            if state.kept + block.size() <= KEEP {
                state.kept += block.size();
                state.free.push(block);
            }
        });
    }

    /// Takes back a block once the work submitted to the stream so far is done; waits while many are in flight.
    pub fn give_after(&self, stream: &Stream, block: PinnedMemory) -> Result<()> {
        self.keep_busy(stream, block)?;
        self.reap(DEPTH)
    }

    /// Takes back a block once the work submitted to the stream so far is done, without waiting.
    pub fn keep_busy(&self, stream: &Stream, block: PinnedMemory) -> Result<()> {
        let event = Event::new(&self.context)?;
        event.record(stream)?;
        self.with(|state| state.busy.push_back((event, block)));
        Ok(())
    }

    /// Collects finished blocks and waits while more than `allowed` are in flight.
    fn reap(&self, allowed: usize) -> Result<()> {
        loop {
            let Some((event, block)) = self.with(|state| state.busy.pop_front()) else { return Ok(()) };
            let others = self.with(|state| state.busy.len());
            if others >= allowed {
                event.synchronize()?;
            } else if !event.is_done()? {
                self.with(|state| state.busy.push_front((event, block)));
                return Ok(());
            }
            self.give(block);
        }
    }

    /// Frees every block that is not in flight.
    pub fn trim(&self) {
        // A fault of the device shows at the next call as well.
        let _ = self.reap(usize::MAX);
        let freed = self.with(|state| {
            state.kept = 0;
            std::mem::take(&mut state.free)
        });
        drop(freed);
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// Share of one thread when several copy.
const PIECE: usize = 512 << 10;

/// The pool for that many bytes: none for few, which one thread copies sooner.
fn pool_for(size: usize) -> Option<&'static rayon::ThreadPool> {
    if size <= 2 * PIECE { None } else { crate::cpu::copy_pool() }
}

/// Zeroes bytes with several threads when there are many.
pub fn fill_zero(target: &mut [u8]) {
    match pool_for(target.len()) {
        None => target.fill(0),
        Some(pool) => pool.install(|| target.par_chunks_mut(PIECE).for_each(|piece| piece.fill(0))),
    }
}

/// Copies bytes with several threads when there are many.
pub fn copy_bytes(target: &mut [u8], source: &[u8]) -> Result<()> {
    if target.len() != source.len() {
        return Err(Error::Internal(format!("copy of {} bytes into {}", source.len(), target.len())));
    }
    match pool_for(source.len()) {
        None => target.copy_from_slice(source),
        Some(pool) => pool.install(|| {
            let pieces = target.par_chunks_mut(PIECE).zip(source.par_chunks(PIECE));
            pieces.for_each(|(to, from)| to.copy_from_slice(from));
        }),
    }
    Ok(())
}
