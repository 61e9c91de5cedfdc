//! Control, barriers and exchange between the lanes of a warp.

use super::{Row, row};
use crate::FaultKind;
use crate::exec::cx::{Cx, LANES, lanes};
use crate::exec::inst::{Flow, Inst, NONE, Slot};
use crate::exec::sync;

/// Whether all lanes that the member masks name are here.
fn together(cx: &mut Cx<'_>, i: &Inst, m: u32, members: Slot) -> Option<Flow> {
    let masks = cx.get::<u32>(members);
    let (mut wanted, mut absent) = (0, 0);
    for lane in lanes(m) {
        wanted |= masks[lane];
        absent |= !masks[lane] & 1 << lane;
    }
    if let Some(lane) = lanes(absent).next() {
        let detail = format!("a lane that its own member mask 0x{:08x} leaves out", masks[lane]);
        return Some(cx.fail(i, lane, FaultKind::Undefined, None, detail));
    }
    (wanted & cx.warp.live & !m != 0).then_some(Flow::Converge)
}

/// shfl.sync: value s[0], lane s[1], clamp s[2], members s[3]; mode 0 up, 1 down, 2 bfly, 3 idx.
pub fn shuffle(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = together(cx, i, m, i.s[3]) {
        return flow;
    }
    let value = *cx.get::<u32>(i.s[0]);
    let mut out = value;
    let mut hits = 0;
    for lane in lanes(m) {
        let (b, c) = (cx.get::<u32>(i.s[1])[lane] & 31, cx.get::<u32>(i.s[2])[lane]);
        let (clamp, segment) = (c & 31, c >> 8 & 31);
        let own = lane as u32;
        let most = own & segment | clamp & !segment;
        let (from, hit) = match i.mode {
            0 => (own.wrapping_sub(b), own as i32 - b as i32 >= most as i32),
            1 => (own + b, own + b <= most),
            2 => (own ^ b, own ^ b <= most),
            _ => {
                let from = own & segment | b & !segment;
                (from, from <= most)
            }
        };
        let from = if hit { from } else { own };
        if m >> from & 1 == 0 {
            let detail = format!("shfl.sync from lane {from}, which takes no part");
            return cx.fail(i, lane, FaultKind::Undefined, None, detail);
        }
        out[lane] = value[from as usize];
        hits |= u32::from(hit) << lane;
    }
    cx.put::<u32>(i.d[0], m, &out);
    cx.put_pred(i.d[1], m, hits);
    Flow::Next
}

fn vote(cx: &mut Cx<'_>, i: &Inst, m: u32, f: impl Fn(u32, u32) -> u32) -> Flow {
    if let Some(flow) = together(cx, i, m, i.s[1]) {
        return flow;
    }
    let values = cx.pred(i.s[0]) & m;
    let mut hits = 0;
    let mut ballots = [0; LANES];
    for lane in lanes(m) {
        let members = cx.get::<u32>(i.s[1])[lane] & cx.warp.live;
        let all = f(values & members, members);
        ballots[lane] = all;
        hits |= u32::from(all != 0) << lane;
    }
    if i.mode == 1 {
        cx.put::<u32>(i.d[0], m, &ballots);
    } else {
        cx.put_pred(i.d[0], m, hits);
    }
    Flow::Next
}

pub fn ballot(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    vote(cx, i, m, |v, _| v)
}

/// match.any and match.all on 32 or 64 bits: value s[0], members s[1].
fn matching(cx: &mut Cx<'_>, i: &Inst, m: u32, wide: bool, all: bool) -> Flow {
    if let Some(flow) = together(cx, i, m, i.s[1]) {
        return flow;
    }
    let value = if wide { *cx.get::<u64>(i.s[0]) } else { cx.get::<u32>(i.s[0]).map(u64::from) };
    let mut out = [0; LANES];
    let mut hits = 0;
    for lane in lanes(m) {
        let members = cx.get::<u32>(i.s[1])[lane] & m;
        let same = lanes(members).filter(|&other| value[other] == value[lane]).fold(0, |s, l| s | 1 << l);
        let full = same == members;
        out[lane] = if !all || full { same } else { 0 };
        hits |= u32::from(full) << lane;
    }
    cx.put::<u32>(i.d[0], m, &out);
    cx.put_pred(i.d[1], m, hits);
    Flow::Next
}

pub fn match_all32(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    matching(cx, i, m, false, true)
}

pub fn match_all64(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    matching(cx, i, m, true, true)
}

fn reduce(cx: &mut Cx<'_>, i: &Inst, m: u32, f: impl Fn(u32, u32) -> u32) -> Flow {
    if let Some(flow) = together(cx, i, m, i.s[1]) {
        return flow;
    }
    let value = *cx.get::<u32>(i.s[0]);
    let mut out = [0; LANES];
    for lane in lanes(m) {
        let members = cx.get::<u32>(i.s[1])[lane] & m;
        out[lane] = lanes(members).map(|l| value[l]).reduce(&f).unwrap_or(0);
    }
    cx.put::<u32>(i.d[0], m, &out);
    Flow::Next
}

/// bar.warp.sync orders the warp's accesses to shared memory before and after it.
fn warp_sync(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = together(cx, i, m, i.s[0]) {
        return flow;
    }
    cx.warp.settle();
    Flow::Next
}

/// elect.sync: s[0] the members; d[0] the lane chosen, d[1] whether it is this one.
pub fn elect(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = together(cx, i, m, i.s[0]) {
        return flow;
    }
    let leader = m.trailing_zeros();
    if i.d[0] != NONE {
        cx.put::<u32>(i.d[0], m, &[leader; LANES]);
    }
    cx.put_pred(i.d[1], m, 1 << leader);
    Flow::Next
}

/// fence.mbarrier_init: shows the mbarriers that this warp made to bulk copies.
pub fn fence_mbarriers(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    cx.announce();
    fence(cx, i, m)
}

/// fence.proxy.async: the asynchronous proxy may use what this warp wrote to shared memory.
pub fn fence_proxy(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    cx.announce();
    let own = cx.warp.index as usize;
    cx.warp.count += 1;
    cx.warp.known.fenced[own] = cx.warp.count;
    fence(cx, i, m)
}

pub fn fence(cx: &mut Cx<'_>, _: &Inst, _: u32) -> Flow {
    if cx.launch.checks.global_races {
        cx.launch.global_races.fence(cx.block.linear);
    }
    Flow::Next
}

pub fn clock64(_: &mut Cx<'_>, _: &Inst, _: u32) -> Flow {
    Flow::Clock { wide: true }
}

pub fn clock32(_: &mut Cx<'_>, _: &Inst, _: u32) -> Flow {
    Flow::Clock { wide: false }
}

fn nothing(_: &mut Cx<'_>, _: &Inst, _: u32) -> Flow {
    Flow::Next
}

pub fn branch(_: &mut Cx<'_>, _: &Inst, _: u32) -> Flow {
    Flow::Branch
}

pub const ROWS: &[Row] = &[
    row("exit", ":", |_, _, _| Flow::Exit),
    row("trap", ":", |c, i, m| {
        let lane = lanes(m).next().unwrap_or(0);
        c.fail(i, lane, FaultKind::Trap, None, "the kernel stopped itself")
    }),
    row("brkpt pmevent", ":", nothing),
    row("nanosleep.u32", ":w", nothing),
    row(
        "membar.gl membar.sys membar.cta fence.sc.cta fence.sc.gpu fence.sc.sys fence.acq_rel.cta",
        ":",
        fence,
    ),
    row(
        "fence.acq_rel.gpu fence.acq_rel.sys fence.acq_rel.cluster fence.sc.cluster fence.cta fence.gpu fence.sys fence.cluster",
        ":",
        fence,
    ),
    row("bar.warp.sync", ":w", warp_sync),
    row("vote.sync.all.pred", "p:pw", |c, i, m| vote(c, i, m, |v, all| u32::from(v == all))),
    row("vote.sync.any.pred", "p:pw", |c, i, m| vote(c, i, m, |v, _| v)),
    row("vote.sync.uni.pred", "p:pw", |c, i, m| vote(c, i, m, |v, all| u32::from(v == all || v == 0))),
    row("match.any.sync.b32", "w:ww", |c, i, m| matching(c, i, m, false, false)),
    row("match.any.sync.b64", "w:dw", |c, i, m| matching(c, i, m, true, false)),
    row("redux.sync.add.u32 redux.sync.add.s32", "w:ww", |c, i, m| reduce(c, i, m, u32::wrapping_add)),
    row("redux.sync.min.u32", "w:ww", |c, i, m| reduce(c, i, m, |a, b| a.min(b))),
    row("redux.sync.max.u32", "w:ww", |c, i, m| reduce(c, i, m, |a, b| a.max(b))),
    row("redux.sync.min.s32", "w:ww", |c, i, m| reduce(c, i, m, |a, b| (a as i32).min(b as i32) as u32)),
    row("redux.sync.max.s32", "w:ww", |c, i, m| reduce(c, i, m, |a, b| (a as i32).max(b as i32) as u32)),
    row("redux.sync.and.b32", "w:ww", |c, i, m| reduce(c, i, m, |a, b| a & b)),
    row("redux.sync.or.b32", "w:ww", |c, i, m| reduce(c, i, m, |a, b| a | b)),
    row("redux.sync.xor.b32", "w:ww", |c, i, m| reduce(c, i, m, |a, b| a ^ b)),
    row("activemask.b32", "w:", |c, i, m| {
        c.put::<u32>(i.d[0], m, &[m; LANES]);
        Flow::Next
    }),
    row("cp.async.commit_group", ":", sync::commit),
    row("cp.async.wait_all", ":", sync::wait_all),
];
