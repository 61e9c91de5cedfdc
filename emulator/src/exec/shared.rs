//! Loads of whole words from shared memory, the inner loop of matrix products.

use super::access::load;
use super::cx::{Cx, LANES, lanes};
use super::inst::{Flow, Inst, NONE, mode};
use crate::ptx::ast::Space;

/// ld.shared: words of four bytes here, all else on the general way.
pub fn load_shared(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let bytes = i.size() * i.lanes() as u64;
    let plain = i.size() >= 4 && (i.size() == 8) == i.has(mode::DOUBLE) && !i.has(mode::STRONG);
    if !plain || cx.launch.kernel.code.narrow_shared {
        return load(cx, i, m, Space::Shared);
    }
    match bytes {
        4 => words::<1>(cx, i, m),
        8 => words::<2>(cx, i, m),
        _ => words::<4>(cx, i, m),
    }
}

fn words<const WORDS: usize>(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let addresses = cx.addresses(i);
    let bytes = 4 * WORDS as u64;
    let mut out = [[0u32; LANES]; WORDS];
    let checks = cx.launch.checks;
    let checked = checks.uninitialized || checks.shared_races;
    let actor = cx.warp.actor(false, checks.shared_races);
    let tag = actor.tag();
    let mut fine = true;
    for lane in lanes(m) {
        let addr = addresses[lane];
        let start = (addr >> 2) as usize;
        let Some(from) = cx.block.shared.get(start..start.wrapping_add(WORDS)) else {
            fine = false;
            break;
        };
        if addr & (bytes - 1) != 0 || addr + bytes > cx.block.shared_bytes {
            fine = false;
            break;
        }
        for (to, &word) in out.iter_mut().zip(from) {
            to[lane] = word;
        }
        if checked {
            for cell in &mut cx.block.cells[start..start + WORDS] {
                fine &= cell.again(tag, lane)
                    || (cell.is_written() || !checks.uninitialized) && cell.read(&actor, lane);
            }
        }
    }
    if !fine {
        // Finds and names the fault.
        return load(cx, i, m, Space::Shared);
    }
    if i.size() == 4 {
        for (v, values) in out.iter().enumerate() {
            if i.d[v] != NONE {
                cx.put::<u32>(i.d[v], m, values);
            }
        }
    } else {
        for v in 0..WORDS / 2 {
            if i.d[v] != NONE {
                let (low, high) = (&out[2 * v], &out[2 * v + 1]);
                let both = std::array::from_fn(|l| u64::from(low[l]) | u64::from(high[l]) << 32);
                cx.put::<u64>(i.d[v], m, &both);
            }
        }
    }
    Flow::Next
}
