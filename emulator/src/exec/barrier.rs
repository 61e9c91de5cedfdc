//! bar and barrier: who has come, and who may go on.

use super::cx::{Cx, lanes};
use super::inst::{Flow, Inst, NONE};
use super::race::Known;
use super::warp::{Wait, Warp};
use crate::{Fault, FaultKind};

#[derive(Default)]
pub struct Barrier {
    /// Threads that wait or have arrived; a whole warp counts 32.
    arrived: u32,
    /// Threads without that rounding.
    threads: u32,
    /// From the instruction; 0 for all threads of the block.
    expected: u32,
    /// Of bar.red: how many predicates were true.
    truths: u32,
    /// The line of the last to come.
    line: u32,
    /// What those that do not wait have done.
    known: Known,
}

/// What `Inst::mode` says for a barrier.
pub const ARRIVE: u32 = 1;
pub const ALIGNED: u32 = 2;
pub const RED_AND: u32 = 4;
pub const RED_OR: u32 = 8;
pub const RED_POPC: u32 = 16;

/// s[0] is the barrier, s[1] the count or NONE, s[2] the predicate of bar.red.
pub fn arrive(cx: &mut Cx<'_>, i: &Inst, mask: u32) -> Flow {
    let first = lanes(mask).next().unwrap_or(0);
    let id = cx.get::<u32>(i.s[0])[first];
    let count = if i.s[1] == NONE { 0 } else { cx.get::<u32>(i.s[1])[first] };
    if id > 15 {
        return cx.fail(i, first, FaultKind::Undefined, None, format!("barrier {id} of 16"));
    }
    if count % 32 != 0 {
        return cx.fail(i, first, FaultKind::Undefined, None, format!("barrier count {count}"));
    }
    let truths = if i.mode & (RED_AND | RED_OR | RED_POPC) != 0 { cx.pred(i.s[2]) & mask } else { 0 };
    let whole = mask == cx.warp.live;
    let barrier = &cx.block.barriers[id as usize];
    if barrier.threads > 0 {
        if barrier.expected != count {
            let detail = format!("barrier {id} expects {} threads, here {count}", barrier.expected);
            return cx.fail(i, first, FaultKind::BarrierDivergence, None, detail);
        }
        if cx.launch.checks.barriers && count == 0 && barrier.line != i.line {
            let detail = format!("other threads of the block wait at line {}", barrier.line);
            return cx.fail(i, first, FaultKind::BarrierDivergence, None, detail);
        }
    }
    let barrier = &mut cx.block.barriers[id as usize];
    barrier.line = i.line;
    barrier.expected = count;
    barrier.threads += mask.count_ones();
    barrier.arrived += if whole { 32 } else { mask.count_ones() };
    barrier.truths += truths.count_ones();
    if i.mode & ARRIVE == 0 {
        return Flow::Barrier(id as u8);
    }
    cx.warp.release(&mut barrier.known);
    Flow::Next
}

/// Lets the threads go whose barrier is complete; true where there were any.
pub fn release(cx: &mut Cx<'_>, warps: &mut [Warp]) -> Result<bool, Box<Fault>> {
    let mut any = false;
    for id in 0..16u8 {
        let barrier = &mut cx.block.barriers[id as usize];
        let complete = match barrier.expected {
            0 => barrier.threads + cx.block.exited >= cx.block.threads,
            count => barrier.arrived >= count,
        };
        if barrier.threads == 0 || !complete {
            continue;
        }
        let barrier = std::mem::take(barrier);
        any = true;
        open(cx, warps, id, &barrier);
    }
    Ok(any)
}

fn open(cx: &mut Cx<'_>, warps: &mut [Warp], id: u8, barrier: &Barrier) {
    let code = &cx.launch.kernel.code.insts;
    let mut joined = barrier.known.clone();
    for warp in warps.iter_mut().filter(|warp| warp.groups.iter().any(|g| g.wait == Wait::Barrier(id))) {
        warp.release(&mut joined);
    }
    for warp in warps.iter_mut() {
        let mut results = Vec::new();
        let mut waits = false;
        for group in &mut warp.groups {
            if group.wait != Wait::Barrier(id) {
                continue;
            }
            waits = true;
            let inst = &code[group.pc as usize];
            if inst.mode & (RED_AND | RED_OR | RED_POPC) != 0 {
                results.push((inst, group.mask));
            }
            group.wait = Wait::Ready;
            group.pc += 1;
        }
        if waits {
            warp.known.join(&joined);
        }
        for (inst, mask) in results {
            std::mem::swap(&mut cx.warp, warp);
            let truths = barrier.truths;
            match inst.mode & (RED_AND | RED_OR | RED_POPC) {
                RED_AND => cx.put_pred(inst.d[0], mask, if truths == barrier.threads { u32::MAX } else { 0 }),
                RED_OR => cx.put_pred(inst.d[0], mask, if truths > 0 { u32::MAX } else { 0 }),
                _ => cx.put::<u32>(inst.d[0], mask, &[truths; 32]),
            }
            std::mem::swap(&mut cx.warp, warp);
        }
    }
}
