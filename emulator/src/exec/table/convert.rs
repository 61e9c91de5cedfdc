//! cvt: the common pairs by rows of their own, every other one by way of a wide number.

use super::{Row, row};
use crate::exec::cx::{Cx, LANES};
use crate::exec::inst::{Flow, Inst};
use crate::exec::soft::{
    Round, bf16_to_f32, canon, f32_to_bf16, f64_to_half, flush, half_to_f64, round32, saturate, saturate64,
};
use crate::ptx::ast::Type;

pub const ROWS: &[Row] = &[
    row("cvt.u64.u32 cvt.s64.u32", "d:w", |c, i, m| c.op1(i, m, |a: u32| u64::from(a))),
    row("cvt.s64.s32 cvt.u64.s32", "d:w", |c, i, m| c.op1(i, m, |a: i32| i64::from(a))),
    row("cvt.u32.u64 cvt.s32.s64 cvt.u32.s64 cvt.s32.u64", "w:d", |c, i, m| c.op1(i, m, |a: u64| a as u32)),
    row("cvt.f64.f32", "d:w", |c, i, m| c.op1(i, m, |a: f32| f64::from(a))),
    row("cvt.rn.f32.f64", "w:d", |c, i, m| c.op1(i, m, |a: f64| canon(a as f32))),
    row("cvt.sat.f32.f32", "w:w", |c, i, m| c.op1(i, m, saturate)),
    row("cvt.rni.f32.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(a.round_ties_even()))),
    row("cvt.rn.f32.u32", "w:w", |c, i, m| c.op1(i, m, |a: u32| a as f32)),
    row("cvt.rn.f32.s32", "w:w", |c, i, m| c.op1(i, m, |a: i32| a as f32)),
    row("cvt.rn.f64.u32", "d:w", |c, i, m| c.op1(i, m, |a: u32| f64::from(a))),
    row("cvt.rn.f64.s32", "d:w", |c, i, m| c.op1(i, m, |a: i32| f64::from(a))),
];

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
        match self.from {
            Type::F(64) => self.float(f64::from_bits(raw)),
            Type::F(32) => {
                let x = f32::from_bits(raw as u32);
                self.float(f64::from(if self.ftz { flush(x) } else { x }))
            }
            Type::F(_) => self.float(half_to_f64(raw as u16)),
            Type::Bf16 => self.float(f64::from(bf16_to_f32(raw as u16))),
            Type::S(n) => self.integer(i128::from((raw as i64) << (64 - n) >> (64 - n))),
            other => self.integer(i128::from(raw & (u64::MAX >> (64 - other.bits())))),
        }
    }

    fn integer(self, x: i128) -> u64 {
        let round = self.round.unwrap_or(Round::Nearest);
        let s = x as f64;
        let e = (x - s as i128) as f64;
        match self.to {
            Type::F(64) => {
                let exact = match round {
                    Round::Nearest => s,
                    Round::Up if e > 0.0 => s.next_up(),
                    Round::Down if e < 0.0 => s.next_down(),
                    Round::Zero if s > 0.0 && e < 0.0 => s.next_down(),
                    Round::Zero if s < 0.0 && e > 0.0 => s.next_up(),
                    _ => s,
                };
                exact.to_bits()
            }
            Type::F(32) if round == Round::Nearest => u64::from((x as f32).to_bits()),
            Type::F(32) => u64::from(round32(s, e, round).to_bits()),
            Type::F(_) => u64::from(f64_to_half(s, round)),
            Type::Bf16 => u64::from(f32_to_bf16(x as f32, round)),
            to => {
                let x = if self.sat { x.clamp(least(to), most(to)) } else { x };
                x as u64
            }
        }
    }

    fn float(self, x: f64) -> u64 {
        let round = self.round.unwrap_or(Round::Zero);
        let mut y = x;
        if self.integral || !matches!(self.to, Type::F(_) | Type::Bf16) {
            y = match round {
                Round::Nearest => x.round_ties_even(),
                Round::Zero => x.trunc(),
                Round::Down => x.floor(),
                Round::Up => x.ceil(),
            };
        }
        match self.to {
            Type::F(64) => (if self.sat { saturate64(y) } else { y }).to_bits(),
            Type::F(32) => {
                let near = match self.round {
                    Some(round) if !self.integral && round != Round::Nearest => round32(y, 0.0, round),
                    _ => canon(y as f32),
                };
                let near = if self.sat { saturate(near) } else { near };
                u64::from((if self.ftz { flush(near) } else { near }).to_bits())
            }
            Type::F(_) => {
                let y = if self.sat {
                    saturate64(y)
                } else if self.relu && y <= 0.0 {
                    0.0
                } else {
                    y
                };
                u64::from(f64_to_half(y, round))
            }
            Type::Bf16 => {
                let y = if self.relu && y <= 0.0 { 0.0 } else { y };
                u64::from(f32_to_bf16(y as f32, round))
            }
            to if y.is_nan() => {
                let zero = self.from != Type::F(64) && to.bits() < 64;
                if zero { 0 } else { 1 << (to.bits() - 1) }
            }
            // `as` saturates, as the card does.
            to => (y as i128).clamp(least(to), most(to)) as u64,
        }
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
