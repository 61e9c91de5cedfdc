//! cp.async: the data lands in shared memory only when the thread waits for it.

use super::access::{Bad, Touch};
use super::cx::{Cx, LANES, Words, lanes};
use super::inst::{Flow, Inst, NONE};
use crate::FaultKind;

/// One cp.async of a warp on its way.
pub struct AsyncCopy {
    mask: u32,
    to: Words,
    bytes: u64,
    data: [[u32; 4]; LANES],
    group: Words,
    line: u32,
}

/// s[0] and imm: source; s[1] and target: destination; s[2]: bytes to read, or a predicate.
/// option bit 0: the destination's register is wide; bit 1: s[2] is a predicate to ignore the source.
pub fn copy(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let from = cx.addresses(i);
    let bytes = i.size();
    let to: Words = if i.option() & 1 != 0 {
        std::array::from_fn(|l| (cx.get::<u64>(i.s[1])[l] as u32).wrapping_add(i.target))
    } else {
        cx.get::<u32>(i.s[1]).map(|x| x.wrapping_add(i.target))
    };
    let take: Words = if i.s[2] == NONE {
        [bytes as u32; LANES]
    } else if i.option() & 2 != 0 {
        let p = cx.pred(i.s[2]);
        std::array::from_fn(|l| if p >> l & 1 != 0 { 0 } else { bytes as u32 })
    } else {
        *cx.get::<u32>(i.s[2])
    };
    let group = cx.warp.copy_group;
    let mut copy = AsyncCopy { mask: m, to, bytes, data: [[0; 4]; LANES], group, line: i.line };
    for lane in lanes(m) {
        if let Err(bad) = fetch(cx, from[lane], bytes, take[lane], &mut copy.data[lane]) {
            return cx.blame(i, lane, from[lane], bad);
        }
        let at = u64::from(to[lane]);
        if at + bytes > cx.block.shared_bytes || at & (bytes - 1) != 0 {
            let kind = if at & (bytes - 1) != 0 { FaultKind::Misaligned } else { FaultKind::OutOfBounds };
            return cx.fail(i, lane, kind, Some(at), "destination of cp.async in shared memory");
        }
    }
    cx.warp.copies.push(copy);
    Flow::Next
}

fn fetch(cx: &mut Cx<'_>, from: u64, bytes: u64, take: u32, out: &mut [u32; 4]) -> Result<(), Bad> {
    if u64::from(take) > bytes {
        let detail = format!("cp.async of {take} bytes into {bytes}");
        return Err(Bad { kind: FaultKind::Undefined, detail });
    }
    if from & (bytes - 1) != 0 {
        return Err(Bad { kind: FaultKind::Misaligned, detail: "source of cp.async".into() });
    }
    for k in 0..take.div_ceil(4) {
        let want = u64::from((take - 4 * k).min(4));
        let mut word = 0;
        for byte in 0..want {
            // Whole words at once where they are whole.
            let step = if want == 4 { 4 } else { 1 };
            if byte % step != 0 {
                continue;
            }
            let (a, offset) = cx.global(from + u64::from(4 * k) + byte, step)?;
            if cx.launch.checks.uninitialized && !a.is_written(offset, step) {
                let detail = "cp.async from global memory that nothing wrote".into();
                return Err(Bad { kind: FaultKind::Uninitialized, detail });
            }
            word |= a.load(offset, step) << (8 * byte);
        }
        out[k as usize] = word as u32;
    }
    Ok(())
}

pub fn commit(cx: &mut Cx<'_>, _: &Inst, m: u32) -> Flow {
    for lane in lanes(m) {
        cx.warp.copy_group[lane] += 1;
    }
    Flow::Next
}

/// All but the latest imm groups land.
pub fn wait_group(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    wait(cx, i, m, Some(i.imm))
}

/// Everything lands, committed or not.
pub fn wait_all(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    wait(cx, i, m, None)
}

fn wait(cx: &mut Cx<'_>, i: &Inst, m: u32, keep: Option<i64>) -> Flow {
    let mut copies = std::mem::take(&mut cx.warp.copies);
    let mut failure = None;
    for copy in &mut copies {
        for lane in lanes(copy.mask & m) {
            let open = i64::from(cx.warp.copy_group[lane]);
            if keep.is_some_and(|n| i64::from(copy.group[lane]) >= open - n) {
                continue;
            }
            copy.mask &= !(1 << lane);
            let at = u64::from(copy.to[lane]);
            if let Err(bad) = cx.touch_shared(lane, at, copy.bytes, Touch::Write, false) {
                failure = failure.or(Some((lane, at, bad, copy.line)));
                continue;
            }
            for k in 0..copy.bytes / 4 {
                cx.set_shared_word(at + 4 * k, 4, u64::from(copy.data[lane][k as usize]));
            }
        }
    }
    copies.retain(|copy| copy.mask != 0);
    cx.warp.copies = copies;
    match failure {
        Some((lane, at, mut bad, line)) => {
            bad.detail += &format!(" (the cp.async at line {line} lands)");
            cx.blame(i, lane, at, bad)
        }
        None => Flow::Next,
    }
}
