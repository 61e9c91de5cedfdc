//! Handlers of loads, stores and atomics; the decoder picks them by space.

use super::half::{add_bf16, add_f16};
use crate::exec::access::{Bad, Touch, load, store};
use crate::exec::cx::{Cx, LANES, lanes};
use crate::exec::inst::{Flow, Handler, Inst, NONE, mode};
use crate::exec::soft::{add64, flush, nan64};
use crate::ptx::ast::{Space, Type};

pub fn loader(space: Space) -> Handler {
    match space {
        Space::Global | Space::Const => |c, i, m| load(c, i, m, Space::Global),
        Space::Shared => crate::exec::shared::load_shared,
        Space::Local => |c, i, m| load(c, i, m, Space::Local),
        Space::Param => |c, i, m| load(c, i, m, Space::Param),
        Space::Generic => |c, i, m| load(c, i, m, Space::Generic),
    }
}

pub fn storer(space: Space) -> Handler {
    match space {
        Space::Shared => |c, i, m| store(c, i, m, Space::Shared),
        Space::Local => |c, i, m| store(c, i, m, Space::Local),
        Space::Generic => |c, i, m| store(c, i, m, Space::Generic),
        _ => |c, i, m| store(c, i, m, Space::Global),
    }
}

pub const OPERATIONS: [&str; 10] = ["add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"];
const TYPES: [Type; 13] = [
    Type::U(32),
    Type::S(32),
    Type::B(32),
    Type::U(64),
    Type::S(64),
    Type::B(64),
    Type::F(32),
    Type::F(64),
    Type::B(16),
    Type::F(16),
    Type::F16x2,
    Type::Bf16,
    Type::Bf16x2,
];

/// Packs operation, type and space for `Inst::option`; None for a pair that PTX does not have.
pub fn atomic_option(operation: &str, ty: Type, space: Space) -> Option<u32> {
    let number = OPERATIONS.iter().position(|&name| name == operation)?;
    let kind = TYPES.iter().position(|&known| known == ty)?;
    let fits = match operation {
        "add" => !matches!(ty, Type::B(_)),
        "min" | "max" => matches!(ty, Type::U(_) | Type::S(_)),
        "inc" | "dec" => ty == Type::U(32),
        "and" | "or" | "xor" | "exch" => matches!(ty, Type::B(32 | 64)),
        "cas" => matches!(ty, Type::B(_)),
        _ => false,
    };
    let space = match space {
        Space::Global => 0,
        Space::Shared => 1,
        Space::Generic => 2,
        _ => return None,
    };
    fits.then_some(number as u32 | (kind as u32) << 4 | space << 8)
}

/// What an atomic operation makes of the old value, in device memory or in shared memory.
fn apply(operation: &str, ty: Type, old: u64, b: u64, c: u64, device: bool) -> u64 {
    let wide = ty.bits() == 64;
    match (operation, ty) {
        ("add", Type::F(64)) => {
            let (x, y) = (f64::from_bits(old), f64::from_bits(b));
            match (x.is_nan(), y.is_nan()) {
                // The sum in shared memory is made by a loop around an addition.
                _ if !device => nan64(x + y, [y, x]).to_bits(),
                (_, true) => b,
                (true, _) => old,
                _ => add64(x, y).to_bits(),
            }
        }
        ("add", Type::F(16)) => add_f16(old as u16, b as u16).into(),
        ("add", Type::Bf16) => add_bf16(old as u16, b as u16).into(),
        ("add", Type::F(_)) => {
            // Float32 atomics in global memory flush subnormals; those in shared memory do not.
            let part = |x: u64| {
                let x = f32::from_bits(x as u32);
                if device { flush(x) } else { x }
            };
            let sum = crate::exec::soft::canon(part(old) + part(b));
            u64::from((if device { flush(sum) } else { sum }).to_bits())
        }
        ("add", Type::F16x2 | Type::Bf16x2) => {
            let one = if ty == Type::F16x2 { Type::F(16) } else { Type::Bf16 };
            let half = |at: u32| apply(operation, one, old >> at & 0xffff, b >> at & 0xffff, c, device) << at;
            half(0) | half(16)
        }
        ("add", _) => old.wrapping_add(b),
        ("min", Type::S(_)) if wide => (old as i64).min(b as i64) as u64,
        ("max", Type::S(_)) if wide => (old as i64).max(b as i64) as u64,
        ("min", Type::S(_)) => u64::from((old as i32).min(b as i32) as u32),
        ("max", Type::S(_)) => u64::from((old as i32).max(b as i32) as u32),
        ("min", _) => old.min(b),
        ("max", _) => old.max(b),
        ("and", _) => old & b,
        ("or", _) => old | b,
        ("xor", _) => old ^ b,
        ("exch", _) => b,
        ("cas", _) => {
            if old == b {
                c
            } else {
                old
            }
        }
        ("inc", _) => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        _ => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
    }
}

/// atom and red: result in d[0] unless NONE, address s[0], operands s[1] and s[2].
pub fn atomic(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let addresses = cx.addresses(i);
    let option = i.option();
    let operation = OPERATIONS[(option & 15) as usize % OPERATIONS.len()];
    let ty = TYPES[(option >> 4 & 15) as usize % TYPES.len()];
    let space = [Space::Global, Space::Shared, Space::Generic][(option >> 8) as usize % 3];
    let wide = i.has(mode::DOUBLE);
    let value = |cx: &Cx<'_>, slot, lane: usize| {
        if slot == NONE {
            0
        } else if wide {
            cx.get::<u64>(slot)[lane]
        } else {
            u64::from(cx.get::<u32>(slot)[lane]) & (u64::MAX >> (64 - ty.bits()))
        }
    };
    let mut out = [0u64; LANES];
    for lane in lanes(m) {
        let (b, c) = (value(cx, i.s[1], lane), value(cx, i.s[2], lane));
        let (space, addr) = Cx::resolve(space, addresses[lane]);
        let result = match space {
            Space::Shared => cx.in_block(addr, |cx, addr| {
                cx.touch_shared(lane, addr, i.size(), Touch::Update, true)?;
                let old = cx.shared_word(addr, i.size());
                cx.set_shared_word(addr, i.size(), apply(operation, ty, old, b, c, false));
                Ok(old)
            }),
            Space::Local | Space::Param => Err(Bad {
                kind: crate::FaultKind::Undefined,
                detail: "atomic outside global and shared".into(),
            }),
            _ => global(cx, i, addr, |old| apply(operation, ty, old, b, c, true)),
        };
        match result {
            Ok(old) => out[lane] = old,
            Err(bad) => return cx.blame(i, lane, addr, bad),
        }
    }
    if cx.launch.checks.global_races {
        cx.launch.global_races.acquire(cx.block.linear);
    }
    if i.d[0] != NONE {
        if wide {
            cx.put::<u64>(i.d[0], m, &out);
        } else {
            let narrow = out.map(|x| x as u32);
            cx.put::<u32>(i.d[0], m, &narrow);
        }
    }
    Flow::Next
}

fn global(cx: &mut Cx<'_>, i: &Inst, addr: u64, change: impl Fn(u64) -> u64) -> Result<u64, Bad> {
    let (a, offset) = cx.global(addr, i.size())?;
    if cx.launch.checks.uninitialized && !a.is_written(offset, i.size()) {
        let detail = "atomic on global memory that nothing wrote".into();
        return Err(Bad { kind: crate::FaultKind::Uninitialized, detail });
    }
    Ok(a.update(offset, i.size(), change))
}

/// mov of a vector to a register: s[0..] to d[0]; mode: bits of a part.
pub fn pack(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let parts = i.s.iter().take_while(|&&slot| slot != NONE).count() as u32;
    let mut out = [0u64; LANES];
    for (n, &slot) in i.s.iter().enumerate().take(parts as usize) {
        let part = cx.get::<u32>(slot);
        for lane in 0..LANES {
            out[lane] |= (u64::from(part[lane]) & (u64::MAX >> (64 - i.mode))) << (n as u32 * i.mode);
        }
    }
    if parts * i.mode == 64 {
        cx.put::<u64>(i.d[0], m, &out);
    } else {
        let narrow = out.map(|x| x as u32);
        cx.put::<u32>(i.d[0], m, &narrow);
    }
    Flow::Next
}

/// mov of a register to a vector; imm: the source has 64 bits.
pub fn unpack(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let from = if i.imm != 0 { *cx.get::<u64>(i.s[0]) } else { cx.get::<u32>(i.s[0]).map(u64::from) };
    for n in 0..4 {
        if i.d[n] != NONE {
            let mask = u64::MAX >> (64 - i.mode);
            let part = from.map(|x| (x >> (n as u32 * i.mode) & mask) as u32);
            cx.put::<u32>(i.d[n], m, &part);
        }
    }
    Flow::Next
}
