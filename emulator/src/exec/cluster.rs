//! Clusters: their barrier, and addresses of shared memory in their blocks.
//!
//! An address in `shared::cluster` has one more than a block's rank above the bits of a block's own addresses; without
//! it, it means the block's own memory. What other blocks do to a block's shared memory is the work of one more agent:
//! its accesses in a phase of the cluster's barrier are ordered after those that the phases before it brought.

use super::access::Bad;
use super::cx::{Cx, lanes};
use super::inst::{Flow, Inst, Reason};
use super::race::{Actor, FOREIGN, Known};
use super::{SHARED_WINDOW, WINDOW_MASK};
use crate::FaultKind;

/// The least address that names a rank.
pub const RANKED: u64 = 1 << SHIFT;
const SHIFT: u32 = 24;

/// barrier.cluster, as one block of the cluster sees it: all threads arrive, then wait.
#[derive(Default)]
pub struct Barrier {
    arrived: u32,
    phase: u32,
    gathering: Known,
    done: Known,
}

impl Barrier {
    pub fn start(&mut self) {
        *self = Barrier::default();
        self.done.seen.resize(FOREIGN as usize + 1, 0);
    }

    pub fn is_used(&self) -> bool {
        self.arrived > 0
    }

    /// Whether all threads that are left have come.
    pub fn is_complete(&self, threads: u32, exited: u32) -> bool {
        self.arrived + exited >= threads
    }

    /// Goes on to the next phase.
    pub fn turn(&mut self) {
        self.arrived = 0;
        self.phase += 1;
        self.done.join(&self.gathering);
        self.done.seen[FOREIGN as usize] = self.phase + 1;
    }

    /// Who makes the accesses of other blocks.
    pub fn foreign(&self, atomic: bool, check: bool) -> Actor<'_> {
        Actor { warp: FOREIGN, count: self.phase + 1, seen: &self.done.seen, atomic, check }
    }
}

impl Cx<'_> {
    /// An address without this block's own rank.
    pub fn own_shared(&self, addr: u64) -> u64 {
        let addr = if addr & WINDOW_MASK == SHARED_WINDOW { addr - SHARED_WINDOW } else { addr };
        if addr >> SHIFT == u64::from(self.block.rank) + 1 { addr & (RANKED - 1) } else { addr }
    }

    /// Does something in the block that an address with a rank means.
    pub fn in_block<T>(
        &mut self,
        addr: u64,
        act: impl FnOnce(&mut Self, u64) -> Result<T, Bad>,
    ) -> Result<T, Bad> {
        let own = self.own_shared(addr);
        if own < RANKED {
            return act(self, own);
        }
        let rank = (addr >> SHIFT) as usize - 1;
        let wrong = |kind, detail: String| Err(Bad { kind, detail });
        match self.peers.get(rank) {
            None => {
                return wrong(
                    FaultKind::OutOfBounds,
                    format!("block {rank} of a cluster of {}", self.peers.len().max(1)),
                );
            }
            Some(peer) if peer.ended => {
                return wrong(FaultKind::UseAfterFree, format!("block {rank} of the cluster has ended"));
            }
            Some(_) => {}
        }
        let checked = self.launch.checks.shared_races;
        if checked && self.warp.known.seen.get(FOREIGN as usize).is_none_or(|&seen| seen == 0) {
            let detail = "no barrier.cluster before this access tells that the other block has started";
            return wrong(FaultKind::Race, detail.into());
        }
        std::mem::swap(&mut self.block, &mut self.peers[rank]);
        self.foreign = true;
        let result = act(self, addr & (RANKED - 1));
        self.foreign = false;
        std::mem::swap(&mut self.block, &mut self.peers[rank]);
        result
    }
}

/// `Inst::mode`: the arrival releases, or the wait acquires, nothing.
pub const RELAXED: u32 = 1;

pub fn arrive(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let phase = cx.block.cluster.phase;
    for lane in lanes(m) {
        if cx.warp.cluster_arrivals[lane] > phase {
            let detail = "a second barrier.cluster.arrive without a wait";
            return cx.fail(i, lane, FaultKind::Undefined, None, detail);
        }
        cx.warp.cluster_arrivals[lane] = phase + 1;
    }
    if i.mode & RELAXED == 0 {
        cx.warp.release(&mut cx.block.cluster.gathering);
    }
    cx.block.cluster.arrived += m.count_ones();
    Flow::Next
}

pub fn wait(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let phase = cx.block.cluster.phase;
    for lane in lanes(m) {
        match cx.warp.cluster_arrivals[lane] {
            0 => {
                return cx.fail(
                    i,
                    lane,
                    FaultKind::Undefined,
                    None,
                    "barrier.cluster.wait without an arrival",
                );
            }
            arrival if arrival > phase => return Flow::Sleep(Reason::Cluster),
            _ => {}
        }
    }
    if i.mode & RELAXED == 0 {
        cx.warp.known.join(&cx.block.cluster.done);
    }
    Flow::Next
}

/// mapa: the same place in the block of a rank; s[0] the address, s[1] the rank.
pub fn map(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let ranks = *cx.get::<u32>(i.s[1]);
    for lane in lanes(m) {
        if ranks[lane] >= cx.block.ranks {
            let detail = format!("block {} of a cluster of {}", ranks[lane], cx.block.ranks);
            return cx.fail(i, lane, FaultKind::Undefined, None, detail);
        }
    }
    let mapped = |addr: u64, rank: u32| addr & (RANKED - 1) | (u64::from(rank) + 1) << SHIFT;
    if i.mode == 64 {
        let from = *cx.get::<u64>(i.s[0]);
        let out = std::array::from_fn(|lane| mapped(from[lane], ranks[lane]) | from[lane] & WINDOW_MASK);
        cx.put::<u64>(i.d[0], m, &out);
    } else {
        let from = *cx.get::<u32>(i.s[0]);
        let out = std::array::from_fn(|lane| mapped(from[lane].into(), ranks[lane]) as u32);
        cx.put::<u32>(i.d[0], m, &out);
    }
    Flow::Next
}

/// getctarank: the rank of the block that an address s[0] lies in.
pub fn rank(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let wide = i.mode == 64;
    let own = cx.block.rank;
    let of = |addr: u64| ((addr & !WINDOW_MASK) >> SHIFT).checked_sub(1).map_or(own, |rank| rank as u32);
    let out =
        if wide { cx.get::<u64>(i.s[0]).map(of) } else { cx.get::<u32>(i.s[0]).map(|addr| of(addr.into())) };
    cx.put::<u32>(i.d[0], m, &out);
    Flow::Next
}
