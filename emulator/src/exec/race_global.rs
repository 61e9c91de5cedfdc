//! Races in global memory, within a block and across the blocks of one launch.
//!
//! Fences and atomics order the accesses of blocks: what a block wrote before a fence is seen by
//! a block that did an atomic operation after that fence.

use super::race::{Actor, Cell};
use std::collections::HashMap;
use std::sync::Mutex;

/// The last accesses to one word; blocks as their number plus one, with the time.
#[derive(Clone, Copy, Default)]
struct Word {
    block: u64,
    cell: Cell,
    writer: (u64, u64),
    writer_atomic: bool,
    reader: (u64, u64),
    /// The last reader of another block than `reader`.
    other_reader: (u64, u64),
}

#[derive(Default)]
struct State {
    words: HashMap<u64, Word>,
    fenced: HashMap<u64, u64>,
    acquired: HashMap<u64, u64>,
    time: u64,
}

#[derive(Default)]
pub struct GlobalRaces {
    state: Mutex<State>,
}

impl State {
    /// Whether what block `from` did at `when` is ordered before what `to` does now.
    fn ordered(&self, (from, when): (u64, u64), to: u64) -> bool {
        if from == 0 || from == to {
            return true;
        }
        let fence = self.fenced.get(&from).copied().unwrap_or(0);
        fence > when && self.acquired.get(&to).copied().unwrap_or(0) > fence
    }
}

impl GlobalRaces {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub fn fence(&self, block: u64) {
        let mut state = self.lock();
        state.time += 1;
        let now = state.time;
        state.fenced.insert(block + 1, now);
    }

    pub fn acquire(&self, block: u64) {
        let mut state = self.lock();
        state.time += 1;
        let now = state.time;
        state.acquired.insert(block + 1, now);
    }

    /// Notes an access; what it races with, if it does.
    pub fn access(
        &self,
        block: u64,
        actor: &Actor<'_>,
        lane: usize,
        addr: u64,
        bytes: u64,
        write: bool,
    ) -> Option<String> {
        let mut state = self.lock();
        state.time += 1;
        let (me, now) = (block + 1, state.time);
        let mut found = None;
        // Bytes have keys of their own, so that neighbours in one word do not meet.
        let keys = if bytes < 4 {
            addr | 1 << 63..(addr | 1 << 63) + bytes
        } else {
            addr >> 2..(addr + bytes).div_ceil(4)
        };
        for word in keys {
            let mut entry = state.words.get(&word).copied().unwrap_or_default();
            if entry.block != me {
                entry.block = me;
                entry.cell = Cell::default();
            }
            let fine = if write { entry.cell.write(actor, lane) } else { entry.cell.read(actor, lane) };
            if !fine {
                found = Some("no barrier orders this access to global memory after another thread's".into());
            }
            let harmless = actor.atomic && entry.writer_atomic;
            if !harmless && !state.ordered(entry.writer, me) {
                found = Some(format!("block {} wrote this word in the same launch", entry.writer.0 - 1));
            }
            if write {
                for reader in [entry.reader, entry.other_reader] {
                    if !actor.atomic && !state.ordered(reader, me) {
                        found = Some(format!("block {} read this word in the same launch", reader.0 - 1));
                    }
                }
                entry.writer = (me, now);
                entry.writer_atomic = actor.atomic;
            } else {
                if entry.reader.0 != me && entry.reader.0 != 0 {
                    entry.other_reader = entry.reader;
                }
                entry.reader = (me, now);
            }
            state.words.insert(word, entry);
        }
        found
    }
}
