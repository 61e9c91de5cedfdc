//! cvt: the common pairs by rows of their own, every other one by way of a wide number.

use super::{Row, row};
use crate::exec::cx::{Cx, LANES};
use crate::exec::exact::{BF16, Exact, F16, F32, F64, Format, ftz};
use crate::exec::inst::{Flow, Inst};
use crate::exec::soft::{
    Round, bf16_to_f32, canon, f32_to_bf16, f32_to_half, flush, half_to_f32, saturate, saturate64,
};
use crate::ptx::ast::Type;

pub const ROWS: &[Row] = &[
    row("cvt.u64.u32 cvt.s64.u32", "d:w", |c, i, m| c.op1(i, m, |a: u32| u64::from(a))),
    row("cvt.s64.s32 cvt.u64.s32", "d:w", |c, i, m| c.op1(i, m, |a: i32| i64::from(a))),
    row("cvt.u32.u64 cvt.s32.s64 cvt.u32.s64 cvt.s32.u64", "w:d", |c, i, m| c.op1(i, m, |a: u64| a as u32)),
    row("cvt.f64.f32", "d:w", |c, i, m| c.op1(i, m, widen)),
    row("cvt.rn.f32.f64", "w:d", |c, i, m| c.op1(i, m, narrow)),
    row("cvt.f32.f16", "w:h", |c, i, m| c.op1(i, m, half_to_f32)),
    row("cvt.f32.bf16", "w:h", |c, i, m| c.op1(i, m, bf16_to_f32)),
    row("cvt.rn.f16.f32", "h:w", |c, i, m| c.op1(i, m, f32_to_half)),
    row("cvt.rn.bf16.f32", "h:w", |c, i, m| c.op1(i, m, f32_to_bf16)),
    row("cvt.sat.f32.f32", "w:w", |c, i, m| c.op1(i, m, saturate)),
    row("cvt.rni.f32.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(a.round_ties_even()))),
    row("cvt.rn.f32.u32", "w:w", |c, i, m| c.op1(i, m, |a: u32| a as f32)),
    row("cvt.rn.f32.s32", "w:w", |c, i, m| c.op1(i, m, |a: i32| a as f32)),
    row("cvt.rn.f64.u32", "d:w", |c, i, m| c.op1(i, m, |a: u32| f64::from(a))),
    row("cvt.rn.f64.s32", "d:w", |c, i, m| c.op1(i, m, |a: i32| f64::from(a))),
];

fn widen(a: f32) -> u64 {
    let bits = a.to_bits().into();
    if a.is_nan() { F32.quiet(F64, bits) } else { f64::from(a).to_bits() }
}

fn narrow(a: f64) -> u32 {
    if a.is_nan() { F64.quiet(F32, a.to_bits()) as u32 } else { (a as f32).to_bits() }
}

/// A conversion that the decoder found well formed.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    pub to: Type,
    pub from: Type,
    /// None for the exact conversions, which need no rounding.
    pub round: Option<Round>,
    /// .rni, .rzi, .rmi, .rpi
    pub integral: bool,
    pub sat: bool,
    pub ftz: bool,
    pub relu: bool,
}

fn code(ty: Type) -> u32 {
    let size = ty.bits().trailing_zeros();
    match ty {
        Type::U(_) | Type::B(_) => size,
        Type::S(_) => 8 + size,
        Type::F(_) => 16 + size,
        _ => 24 + size,
    }
}

fn uncode(code: u32) -> Type {
    let bits = 1 << (code & 7);
    match code >> 3 {
        0 => Type::U(bits),
        1 => Type::S(bits),
        2 => Type::F(bits),
        _ => Type::Bf16,
    }
}

impl Conversion {
    pub fn pack(self) -> i64 {
        let round = match self.round {
            None => 0,
            Some(Round::Nearest) => 1,
            Some(Round::Zero) => 2,
            Some(Round::Down) => 3,
            Some(Round::Up) => 4,
        };
        let flag = |on: bool, bit: u32| u32::from(on) << bit;
        let flags = flag(self.integral, 16) | flag(self.sat, 17) | flag(self.ftz, 18) | flag(self.relu, 19);
        i64::from(code(self.to) | code(self.from) << 5 | round << 10 | flags)
    }

    fn unpack(imm: i64) -> Conversion {
        let bits = imm as u32;
        Conversion {
            to: uncode(bits & 31),
            from: uncode(bits >> 5 & 31),
            round: [None, Some(Round::Nearest), Some(Round::Zero), Some(Round::Down), Some(Round::Up)]
                [(bits >> 10 & 7).min(4) as usize],
            integral: bits >> 16 & 1 != 0,
            sat: bits >> 17 & 1 != 0,
            ftz: bits >> 18 & 1 != 0,
            relu: bits >> 19 & 1 != 0,
        }
    }

    fn apply(self, raw: u64) -> u64 {
        let bits = raw & (u64::MAX >> (64 - self.from.bits()));
        match (format(self.from), self.from) {
            (Some(from), _) if from.is_nan(bits) => self.nan(from, bits),
            (Some(_), Type::F(32)) if self.ftz => self.float(flush(f32::from_bits(bits as u32)).into()),
            (Some(from), _) => self.float(from.value(bits)),
            (None, Type::S(n)) => self.integer(((raw as i64) << (64 - n) >> (64 - n)).into()),
            _ => self.integer(bits.into()),
        }
    }

    fn integer(self, x: i128) -> u64 {
        match format(self.to) {
            Some(to) => to.round(Exact::integer(x), self.round.unwrap_or(Round::Nearest)),
            None if self.sat => x.clamp(least(self.to), most(self.to)) as u64,
            None => x as u64,
        }
    }

    fn nan(self, from: Format, bits: u64) -> u64 {
        match format(self.to) {
            None if self.from != Type::F(64) && self.to.bits() < 64 => 0,
            None => 1 << (self.to.bits() - 1),
            Some(_) if self.sat => 0,
            Some(F32) if from == BF16 => bits << 16,
            Some(F64) if self.ftz => F32.quiet(F64, F32.nan()),
            Some(to) if from == F64 || to == F64 => from.quiet(to, bits),
            Some(to) => to.nan(),
        }
    }

    fn float(self, x: f64) -> u64 {
        let round = self.round.unwrap_or(Round::Nearest);
        let to = format(self.to);
        let y = match round {
            _ if to.is_some() && !self.integral => x,
            Round::Nearest => x.round_ties_even(),
            Round::Zero => x.trunc(),
            Round::Down => x.floor(),
            Round::Up => x.ceil(),
        };
        let Some(to) = to else {
            // `as` saturates, as the card does.
            return (y as i128).clamp(least(self.to), most(self.to)) as u64;
        };
        let y = if self.sat {
            saturate64(y)
        } else if self.relu && y <= 0.0 {
            0.0
        } else {
            y
        };
        let bits = match F64.split(y.to_bits()) {
            Some(exact) => to.round(exact, round),
            None => to.infinity() | if y < 0.0 { to.sign() } else { 0 },
        };
        if self.ftz && to == F32 {
            let result = f32::from_bits(bits as u32);
            return ftz(result, round, || F64.split(y.to_bits())).to_bits().into();
        }
        bits
    }
}

fn format(ty: Type) -> Option<Format> {
    match ty {
        Type::F(64) => Some(F64),
        Type::F(32) => Some(F32),
        Type::F(_) => Some(F16),
        Type::Bf16 => Some(BF16),
        _ => None,
    }
}

fn least(ty: Type) -> i128 {
    if let Type::S(n) = ty { -(1 << (n - 1)) } else { 0 }
}

fn most(ty: Type) -> i128 {
    if let Type::S(n) = ty { (1 << (n - 1)) - 1 } else { (1 << ty.bits()) - 1 }
}

/// mode bit 0: the source has 64 bits; bit 1: the result's register has; imm: the conversion.
pub fn generic(c: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let conversion = Conversion::unpack(i.imm);
    let mut out = [0u64; LANES];
    for (lane, to) in out.iter_mut().enumerate() {
        if m >> lane & 1 != 0 {
            let raw = if i.mode & 1 != 0 {
                c.get::<u64>(i.s[0])[lane]
            } else {
                u64::from(c.get::<u32>(i.s[0])[lane])
            };
            *to = conversion.apply(raw);
            // A signed result in a wider register is extended by its sign.
            if let Type::S(n) = conversion.to {
                *to = ((*to as i64) << (64 - n) >> (64 - n)) as u64;
            } else {
                *to &= u64::MAX >> (64 - conversion.to.bits());
            }
        }
    }
    if i.mode & 2 != 0 {
        c.put::<u64>(i.d[0], m, &out);
    } else {
        let narrow = out.map(|x| x as u32);
        c.put::<u32>(i.d[0], m, &narrow);
    }
    Flow::Next
}
