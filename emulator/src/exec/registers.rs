//! setmaxnreg: warps give registers back to their block and take them from it.

use super::Launch;
use super::cx::Cx;
use super::inst::{Flow, Inst, Reason};
use crate::FaultKind;

/// Registers that no warp of the block holds, and how many a thread had at its start.
#[derive(Default)]
pub struct Pool {
    free: u32,
    /// 0 where nothing bounds them: then the compiler ignores the instruction.
    pub at_start: u32,
}

impl Pool {
    pub fn of(launch: &Launch<'_>) -> Pool {
        Pool { free: 0, at_start: launch.kernel.registers_at_start }
    }
}

/// What a warp waits for at setmaxnreg.
pub fn describe(cx: &Cx<'_>, i: &Inst) -> String {
    let lacking = (i.imm as u32).saturating_sub(cx.warp.registers) * 32;
    format!("{lacking} registers of which the block has {}", cx.block.registers.free)
}

/// imm: the new number; mode: 1 to take, 0 to give.
pub fn set(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let lane = m.trailing_zeros() as usize;
    if m != cx.warp.live {
        return Flow::Converge;
    }
    if cx.block.registers.at_start == 0 {
        return Flow::Next;
    }
    let (held, wanted) = (cx.warp.registers, i.imm as u32);
    let gives = i.mode == 0;
    if gives && wanted > held || !gives && wanted < held {
        let verb = if gives { "dec to more" } else { "inc to fewer" };
        let detail = format!("setmaxnreg.{verb} registers, {wanted}, than the {held} that threads have");
        return cx.fail(i, lane, FaultKind::Undefined, None, detail);
    }
    let pool = &mut cx.block.registers;
    if gives {
        pool.free += (held - wanted) * 32;
        cx.block.events += 1;
    } else if (wanted - held) * 32 > pool.free {
        return Flow::Sleep(Reason::Registers);
    } else {
        pool.free -= (wanted - held) * 32;
    }
    cx.warp.registers = wanted;
    Flow::Next
}
