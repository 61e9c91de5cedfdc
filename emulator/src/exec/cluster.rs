//! Clusters of one block: their barrier and the addresses of shared memory. Larger ones are not emulated.

use super::cx::{Cx, lanes};
use super::inst::{Flow, Inst, Reason};
use super::race::Known;
use crate::FaultKind;

/// barrier.cluster: all threads arrive, then wait.
#[derive(Default)]
pub struct Barrier {
    arrived: u32,
    phase: u32,
    gathering: Known,
    done: Known,
}

impl Barrier {
    /// Goes on to the next phase once all threads that are left have come.
    pub fn turn(&mut self, threads: u32, exited: u32) -> bool {
        let over = self.arrived > 0 && self.arrived + exited >= threads;
        if over {
            self.arrived = 0;
            self.phase += 1;
            self.done.join(&self.gathering);
        }
        over
    }
}

/// `Inst::mode`: the arrival releases, or the wait acquires, nothing.
pub const RELAXED: u32 = 1;

pub fn arrive(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let phase = cx.block.cluster.phase;
    for lane in lanes(m) {
        if cx.warp.cluster_arrivals[lane] > phase {
            return cx.fail(
                i,
                lane,
                FaultKind::Undefined,
                None,
                "a second barrier.cluster.arrive without a wait",
            );
        }
        cx.warp.cluster_arrivals[lane] = phase + 1;
    }
    if i.mode & RELAXED == 0 {
        cx.warp.release(&mut cx.block.cluster.gathering);
    }
    cx.block.cluster.arrived += m.count_ones();
    if cx.block.cluster.turn(cx.block.threads, cx.block.exited) {
        cx.block.events += 1;
    }
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

/// mapa: the address in the block of that rank, which is this one; s[0] the address, s[1] the rank.
pub fn map(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    for lane in lanes(m) {
        let rank = cx.get::<u32>(i.s[1])[lane];
        if rank != 0 {
            let detail = format!("block {rank} of a cluster of one");
            return cx.fail(i, lane, FaultKind::Undefined, None, detail);
        }
    }
    if i.mode == 64 {
        let values = *cx.get::<u64>(i.s[0]);
        cx.put::<u64>(i.d[0], m, &values);
    } else {
        let values = *cx.get::<u32>(i.s[0]);
        cx.put::<u32>(i.d[0], m, &values);
    }
    Flow::Next
}
