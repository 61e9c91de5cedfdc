//! Integer, logic and data movement.

use super::{Row, row};
use crate::exec::cx::{Cx, LANES, Value};
use crate::exec::inst::{Flow, Inst};

/// The same operation for several types: names, form and Rust type each.
macro_rules! rows {
    ($($names:literal $form:literal $run:expr;)*) => { &[$(row($names, $form, $run),)*] };
}

fn shl32(a: u32, n: u32) -> u32 {
    a.checked_shl(n).unwrap_or(0)
}

/// Of 32 bits; `pos` and `len` count by their low eight bits.
fn bfe32(a: u64, pos: u32, len: u32, signed: bool) -> u32 {
    bfe(a, pos & 0xff, len & 0xff, 31, signed) as u32
}

/// The sign is the field's top bit, or the value's (bit `msb`) where the field reaches past it.
fn bfe(a: u64, pos: u32, len: u32, msb: u32, signed: bool) -> u64 {
    if len == 0 {
        return 0;
    }
    let sign = signed && a >> pos.saturating_add(len - 1).min(msb) & 1 == 1;
    let field = a.checked_shr(pos).unwrap_or(0);
    let valid = len.min((msb + 1).saturating_sub(pos));
    let mask = if valid >= 64 { u64::MAX } else { (1 << valid) - 1 };
    if sign { field & mask | !mask } else { field & mask }
}

fn bfi32(a: u32, b: u32, pos: u32, len: u32) -> u32 {
    if pos & 0xff > 31 { b } else { bfi64(a.into(), b.into(), pos & 0xff, len & 0xff) as u32 }
}

fn bfi64(a: u64, b: u64, pos: u32, len: u32) -> u64 {
    let mask = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    let Some(place) = mask.checked_shl(pos) else { return b };
    b & !place | a << pos & place
}

fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let mut out = [0; 4];
    for (n, to) in out.iter_mut().enumerate() {
        let pick = selector >> (4 * n) & 15;
        let byte = bytes[(pick & 7) as usize];
        *to = if pick & 8 != 0 { if byte & 0x80 != 0 { 0xff } else { 0 } } else { byte };
    }
    u32::from_le_bytes(out)
}

/// Byte `at(k)` of the eight, modulo 8, as byte k of the result.
fn pick(a: u32, b: u32, at: impl Fn(u32) -> u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    u32::from_le_bytes([0, 1, 2, 3].map(|k| bytes[(at(k) & 7) as usize]))
}

fn lop3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let mut out = 0;
    for k in 0..8 {
        if table >> k & 1 != 0 {
            let x = if k & 4 != 0 { a } else { !a };
            let y = if k & 2 != 0 { b } else { !b };
            let z = if k & 1 != 0 { c } else { !c };
            out |= x & y & z;
        }
    }
    out
}

fn funnel(lo: u32, hi: u32) -> u64 {
    u64::from(hi) << 32 | u64::from(lo)
}

fn bfind(a: u64) -> u32 {
    a.checked_ilog2().unwrap_or(u32::MAX)
}

fn shift_amount(a: u64, msb: u32) -> u32 {
    a.checked_ilog2().map_or(u32::MAX, |bit| msb - bit)
}

fn low24(a: u32) -> u64 {
    u64::from(a & 0xff_ffff)
}

fn signed24(a: i32) -> i64 {
    i64::from(a << 8 >> 8)
}

fn select<T: Value>(c: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let p = c.pred(i.s[2]);
    let (a, b) = (c.get::<T>(i.s[0]), c.get::<T>(i.s[1]));
    let mut out = [T::Raw::default(); LANES];
    for lane in 0..LANES {
        out[lane] = if p >> lane & 1 != 0 { a[lane] } else { b[lane] };
    }
    c.put::<T>(i.d[0], m, &out);
    Flow::Next
}

fn dot4(a: u32, b: u32, signed: (bool, bool)) -> u32 {
    let part = |x: u8, signed: bool| if signed { i32::from(x as i8) } else { i32::from(x) };
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs.map(|(x, y)| part(x, signed.0) * part(y, signed.1)).fold(0i32, i32::wrapping_add) as u32
}

pub const ROWS: &[Row] = rows! {
    "add.u32 add.s32" "w:ww" |c, i, m| c.op2(i, m, u32::wrapping_add);
    "add.u64 add.s64" "d:dd" |c, i, m| c.op2(i, m, u64::wrapping_add);
    "add.u16 add.s16" "h:hh" |c, i, m| c.op2(i, m, u16::wrapping_add);
    "add.sat.s32" "w:ww" |c, i, m| c.op2(i, m, i32::saturating_add);
    "sub.u32 sub.s32" "w:ww" |c, i, m| c.op2(i, m, u32::wrapping_sub);
    "sub.u64 sub.s64" "d:dd" |c, i, m| c.op2(i, m, u64::wrapping_sub);
    "sub.u16 sub.s16" "h:hh" |c, i, m| c.op2(i, m, u16::wrapping_sub);
    "sub.sat.s32" "w:ww" |c, i, m| c.op2(i, m, i32::saturating_sub);
    "mul.lo.u32 mul.lo.s32" "w:ww" |c, i, m| c.op2(i, m, u32::wrapping_mul);
    "mul.lo.u64 mul.lo.s64" "d:dd" |c, i, m| c.op2(i, m, u64::wrapping_mul);
    "mul.lo.u16 mul.lo.s16" "h:hh" |c, i, m| c.op2(i, m, u16::wrapping_mul);
    "mul.hi.u32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32);
    "mul.hi.s32" "w:ww" |c, i, m| c.op2(i, m, |a: i32, b: i32| ((i64::from(a) * i64::from(b)) >> 32) as i32);
    "mul.hi.u64" "d:dd" |c, i, m| c.op2(i, m, |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64);
    "mul.hi.s64" "d:dd" |c, i, m| c.op2(i, m, |a: i64, b: i64| ((i128::from(a) * i128::from(b)) >> 64) as i64);
    "mul.hi.u16" "h:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| ((u32::from(a) * u32::from(b)) >> 16) as u16);
    "mul.hi.s16" "h:hh" |c, i, m| c.op2(i, m, |a: i16, b: i16| ((i32::from(a) * i32::from(b)) >> 16) as i16);
    "mul.wide.u32" "d:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| u64::from(a) * u64::from(b));
    "mul.wide.s32" "d:ww" |c, i, m| c.op2(i, m, |a: i32, b: i32| i64::from(a) * i64::from(b));
    "mul.wide.u16" "w:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| u32::from(a) * u32::from(b));
    "mul.wide.s16" "w:hh" |c, i, m| c.op2(i, m, |a: i16, b: i16| i32::from(a) * i32::from(b));
    "mul24.lo.u32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| (low24(a) * low24(b)) as u32);
    "mul24.hi.u32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| ((low24(a) * low24(b)) >> 16) as u32);
    "mul24.lo.s32" "w:ww" |c, i, m| c.op2(i, m, |a: i32, b: i32| (signed24(a) * signed24(b)) as u32);
    "mul24.hi.s32" "w:ww" |c, i, m| c.op2(i, m, |a: i32, b: i32| ((signed24(a) * signed24(b)) >> 16) as u32);
    "mad24.lo.u32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| ((low24(a) * low24(b)) as u32).wrapping_add(d));
    "mad24.lo.s32" "w:www" |c, i, m| c.op3(i, m, |a: i32, b: i32, d: u32| ((signed24(a) * signed24(b)) as u32).wrapping_add(d));
    "mad24.hi.u32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| (((low24(a) * low24(b)) >> 16) as u32).wrapping_add(d));
    "mad24.hi.s32" "w:www" |c, i, m| c.op3(i, m, |a: i32, b: i32, d: u32| (((signed24(a) * signed24(b)) >> 16) as u32).wrapping_add(d));
    "mad.lo.u32 mad.lo.s32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| a.wrapping_mul(b).wrapping_add(d));
    "mad.lo.u64 mad.lo.s64" "d:ddd" |c, i, m| c.op3(i, m, |a: u64, b: u64, d: u64| a.wrapping_mul(b).wrapping_add(d));
    "mad.lo.u16 mad.lo.s16" "h:hhh" |c, i, m| c.op3(i, m, |a: u16, b: u16, d: u16| a.wrapping_mul(b).wrapping_add(d));
    "mad.hi.u32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(d));
    "mad.hi.s32" "w:www" |c, i, m| c.op3(i, m, |a: i32, b: i32, d: i32| (((i64::from(a) * i64::from(b)) >> 32) as i32).wrapping_add(d));
    "mad.hi.u64" "d:ddd" |c, i, m| c.op3(i, m, |a: u64, b: u64, d: u64| (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(d));
    "mad.hi.s64" "d:ddd" |c, i, m| c.op3(i, m, |a: i64, b: i64, d: i64| (((i128::from(a) * i128::from(b)) >> 64) as i64).wrapping_add(d));
    "mad.hi.u16" "h:hhh" |c, i, m| c.op3(i, m, |a: u16, b: u16, d: u16| (((u32::from(a) * u32::from(b)) >> 16) as u16).wrapping_add(d));
    "mad.hi.s16" "h:hhh" |c, i, m| c.op3(i, m, |a: i16, b: i16, d: i16| (((i32::from(a) * i32::from(b)) >> 16) as i16).wrapping_add(d));
    "mad.wide.u32" "d:wwd" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u64| (u64::from(a) * u64::from(b)).wrapping_add(d));
    "mad.wide.s32" "d:wwd" |c, i, m| c.op3(i, m, |a: i32, b: i32, d: i64| (i64::from(a) * i64::from(b)).wrapping_add(d));
    "mad.wide.u16" "w:hhw" |c, i, m| c.op3(i, m, |a: u16, b: u16, d: u32| (u32::from(a) * u32::from(b)).wrapping_add(d));
    "mad.wide.s16" "w:hhw" |c, i, m| c.op3(i, m, |a: i16, b: i16, d: i32| (i32::from(a) * i32::from(b)).wrapping_add(d));
    "div.u32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| a.checked_div(b).unwrap_or(u32::MAX));
    "div.s32" "w:ww" |c, i, m| c.op2(i, m, |a: i32, b: i32| if b == 0 { -1 } else { a.wrapping_div(b) });
    "div.u64" "d:dd" |c, i, m| c.op2(i, m, |a: u64, b: u64| a.checked_div(b).unwrap_or(u64::MAX));
    "div.s64" "d:dd" |c, i, m| c.op2(i, m, |a: i64, b: i64| if b == 0 { -1 } else { a.wrapping_div(b) });
    "div.u16" "h:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| a.checked_div(b).unwrap_or(u16::MAX));
    "div.s16" "h:hh" |c, i, m| c.op2(i, m, |a: i16, b: i16| if b == 0 { -1 } else { a.wrapping_div(b) });
    "rem.u32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| a.checked_rem(b).unwrap_or(a));
    "rem.s32" "w:ww" |c, i, m| c.op2(i, m, |a: i32, b: i32| if b == 0 { a } else { a.wrapping_rem(b) });
    "rem.u64" "d:dd" |c, i, m| c.op2(i, m, |a: u64, b: u64| a.checked_rem(b).unwrap_or(a));
    "rem.s64" "d:dd" |c, i, m| c.op2(i, m, |a: i64, b: i64| if b == 0 { a } else { a.wrapping_rem(b) });
    "rem.u16" "h:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| a.checked_rem(b).unwrap_or(a));
    "rem.s16" "h:hh" |c, i, m| c.op2(i, m, |a: i16, b: i16| if b == 0 { a } else { a.wrapping_rem(b) });
    "abs.s32" "w:w" |c, i, m| c.op1(i, m, i32::wrapping_abs);
    "abs.s64" "d:d" |c, i, m| c.op1(i, m, i64::wrapping_abs);
    "abs.s16" "h:h" |c, i, m| c.op1(i, m, i16::wrapping_abs);
    "neg.s32" "w:w" |c, i, m| c.op1(i, m, i32::wrapping_neg);
    "neg.s64" "d:d" |c, i, m| c.op1(i, m, i64::wrapping_neg);
    "neg.s16" "h:h" |c, i, m| c.op1(i, m, i16::wrapping_neg);
    "min.u32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| a.min(b));
    "min.s32" "w:ww" |c, i, m| c.op2(i, m, |a: i32, b: i32| a.min(b));
    "min.u64" "d:dd" |c, i, m| c.op2(i, m, |a: u64, b: u64| a.min(b));
    "min.s64" "d:dd" |c, i, m| c.op2(i, m, |a: i64, b: i64| a.min(b));
    "min.u16" "h:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| a.min(b));
    "min.s16" "h:hh" |c, i, m| c.op2(i, m, |a: i16, b: i16| a.min(b));
    "max.u32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| a.max(b));
    "max.s32" "w:ww" |c, i, m| c.op2(i, m, |a: i32, b: i32| a.max(b));
    "max.u64" "d:dd" |c, i, m| c.op2(i, m, |a: u64, b: u64| a.max(b));
    "max.s64" "d:dd" |c, i, m| c.op2(i, m, |a: i64, b: i64| a.max(b));
    "max.u16" "h:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| a.max(b));
    "max.s16" "h:hh" |c, i, m| c.op2(i, m, |a: i16, b: i16| a.max(b));
    "sad.u32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| d.wrapping_add(a.abs_diff(b)));
    "sad.s32" "w:www" |c, i, m| c.op3(i, m, |a: i32, b: i32, d: u32| d.wrapping_add(a.abs_diff(b)));
    "sad.u16" "h:hhh" |c, i, m| c.op3(i, m, |a: u16, b: u16, d: u16| d.wrapping_add(a.abs_diff(b)));
    "sad.s16" "h:hhh" |c, i, m| c.op3(i, m, |a: i16, b: i16, d: u16| d.wrapping_add(a.abs_diff(b)));
    "sad.u64" "d:ddd" |c, i, m| c.op3(i, m, |a: u64, b: u64, d: u64| d.wrapping_add(a.abs_diff(b)));
    "sad.s64" "d:ddd" |c, i, m| c.op3(i, m, |a: i64, b: i64, d: u64| d.wrapping_add(a.abs_diff(b)));
    "and.b32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| a & b);
    "and.b64" "d:dd" |c, i, m| c.op2(i, m, |a: u64, b: u64| a & b);
    "and.b16" "h:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| a & b);
    "or.b32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| a | b);
    "or.b64" "d:dd" |c, i, m| c.op2(i, m, |a: u64, b: u64| a | b);
    "or.b16" "h:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| a | b);
    "xor.b32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, b: u32| a ^ b);
    "xor.b64" "d:dd" |c, i, m| c.op2(i, m, |a: u64, b: u64| a ^ b);
    "xor.b16" "h:hh" |c, i, m| c.op2(i, m, |a: u16, b: u16| a ^ b);
    "not.b32" "w:w" |c, i, m| c.op1(i, m, |a: u32| !a);
    "not.b64" "d:d" |c, i, m| c.op1(i, m, |a: u64| !a);
    "not.b16" "h:h" |c, i, m| c.op1(i, m, |a: u16| !a);
    "cnot.b32" "w:w" |c, i, m| c.op1(i, m, |a: u32| u32::from(a == 0));
    "cnot.b16" "h:h" |c, i, m| c.op1(i, m, |a: u16| u16::from(a == 0));
    "cnot.b64" "d:d" |c, i, m| c.op1(i, m, |a: u64| u64::from(a == 0));
    "and.pred" "p:pp" |c, i, m| { let v = c.pred(i.s[0]) & c.pred(i.s[1]); c.put_pred(i.d[0], m, v); Flow::Next };
    "or.pred" "p:pp" |c, i, m| { let v = c.pred(i.s[0]) | c.pred(i.s[1]); c.put_pred(i.d[0], m, v); Flow::Next };
    "xor.pred" "p:pp" |c, i, m| { let v = c.pred(i.s[0]) ^ c.pred(i.s[1]); c.put_pred(i.d[0], m, v); Flow::Next };
    "not.pred" "p:p" |c, i, m| { let v = !c.pred(i.s[0]); c.put_pred(i.d[0], m, v); Flow::Next };
    "mov.pred" "p:p" |c, i, m| { let v = c.pred(i.s[0]); c.put_pred(i.d[0], m, v); Flow::Next };
    "shl.b32" "w:ww" |c, i, m| c.op2(i, m, shl32);
    "shl.b64" "d:dw" |c, i, m| c.op2(i, m, |a: u64, n: u32| if n > 63 { 0 } else { a << n });
    "shl.b16" "h:hw" |c, i, m| c.op2(i, m, |a: u16, n: u32| a.checked_shl(n).unwrap_or(0));
    "shr.u32 shr.b32" "w:ww" |c, i, m| c.op2(i, m, |a: u32, n: u32| if n > 31 { 0 } else { a >> n });
    "shr.u64 shr.b64" "d:dw" |c, i, m| c.op2(i, m, |a: u64, n: u32| if n > 63 { 0 } else { a >> n });
    "shr.u16 shr.b16" "h:hw" |c, i, m| c.op2(i, m, |a: u16, n: u32| a.checked_shr(n).unwrap_or(0));
    "shr.s32" "w:ww" |c, i, m| c.op2(i, m, |a: i32, n: u32| a >> n.min(31));
    "shr.s64" "d:dw" |c, i, m| c.op2(i, m, |a: i64, n: u32| a >> n.min(63));
    "shr.s16" "h:hw" |c, i, m| c.op2(i, m, |a: i16, n: u32| a >> n.min(15));
    "shf.l.clamp.b32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| (funnel(a, b) << n.min(32) >> 32) as u32);
    "shf.l.wrap.b32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| (funnel(a, b) << (n & 31) >> 32) as u32);
    "shf.r.clamp.b32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| (funnel(a, b) >> n.min(32)) as u32);
    "shf.r.wrap.b32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| (funnel(a, b) >> (n & 31)) as u32);
    "popc.b32" "w:w" |c, i, m| c.op1(i, m, u32::count_ones);
    "popc.b64" "w:d" |c, i, m| c.op1(i, m, u64::count_ones);
    "clz.b32" "w:w" |c, i, m| c.op1(i, m, u32::leading_zeros);
    "clz.b64" "w:d" |c, i, m| c.op1(i, m, u64::leading_zeros);
    "brev.b32" "w:w" |c, i, m| c.op1(i, m, u32::reverse_bits);
    "brev.b64" "d:d" |c, i, m| c.op1(i, m, u64::reverse_bits);
    "bfind.u32" "w:w" |c, i, m| c.op1(i, m, |a: u32| bfind(a.into()));
    "bfind.s32" "w:w" |c, i, m| c.op1(i, m, |a: i32| bfind((a ^ a >> 31) as u64));
    "bfind.u64" "w:d" |c, i, m| c.op1(i, m, bfind);
    "bfind.s64" "w:d" |c, i, m| c.op1(i, m, |a: i64| bfind((a ^ a >> 63) as u64));
    "bfind.shiftamt.u32" "w:w" |c, i, m| c.op1(i, m, |a: u32| shift_amount(a.into(), 31));
    "bfind.shiftamt.s32" "w:w" |c, i, m| c.op1(i, m, |a: i32| shift_amount((a ^ a >> 31) as u64, 31));
    "bfind.shiftamt.u64" "w:d" |c, i, m| c.op1(i, m, |a: u64| shift_amount(a, 63));
    "bfind.shiftamt.s64" "w:d" |c, i, m| c.op1(i, m, |a: i64| shift_amount((a ^ a >> 63) as u64, 63));
    "bfe.u32" "w:www" |c, i, m| c.op3(i, m, |a: u32, p: u32, n: u32| bfe32(a.into(), p, n, false));
    "bfe.s32" "w:www" |c, i, m| c.op3(i, m, |a: u32, p: u32, n: u32| bfe32(a.into(), p, n, true));
    "bfe.u64" "d:dww" |c, i, m| c.op3(i, m, |a: u64, p: u32, n: u32| bfe(a, p, n, 63, false));
    "bfe.s64" "d:dww" |c, i, m| c.op3(i, m, |a: u64, p: u32, n: u32| bfe(a, p, n, 63, true));
    "bfi.b32" "w:wwww" |c, i, m| insert(c, i, m, bfi32);
    "bfi.b64" "d:ddww" |c, i, m| insert(c, i, m, bfi64);
    "prmt.b32" "w:www" |c, i, m| c.op3(i, m, prmt);
    "prmt.b32.f4e" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| pick(a, b, |k| (n & 3) + k));
    "prmt.b32.b4e" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| pick(a, b, |k| (n & 3) + 8 - k));
    "prmt.b32.rc8" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| pick(a, b, |_| n & 3));
    "prmt.b32.ecl" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| pick(a, b, |k| k.max(n & 3)));
    "prmt.b32.ecr" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| pick(a, b, |k| k.min(n & 3)));
    "prmt.b32.rc16" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, n: u32| pick(a, b, |k| (n & 1) * 2 + k % 2));
    "lop3.b32" "w:wwww" |c, i, m| { let t = c.get::<u32>(i.s[3])[0]; c.op3(i, m, |x: u32, y: u32, z: u32| lop3(x, y, z, t)) };
    "dp4a.u32.u32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| d.wrapping_add(dot4(a, b, (false, false))));
    "dp4a.s32.s32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| d.wrapping_add(dot4(a, b, (true, true))));
    "dp4a.s32.u32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| d.wrapping_add(dot4(a, b, (true, false))));
    "dp4a.u32.s32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: u32| d.wrapping_add(dot4(a, b, (false, true))));
    "mov.b32 mov.u32 mov.s32 mov.f32" "w:w" |c, i, m| c.op1(i, m, |a: u32| a);
    "mov.b64 mov.u64 mov.s64 mov.f64" "d:d" |c, i, m| c.op1(i, m, |a: u64| a);
    "mov.b16 mov.u16 mov.s16 mov.f16" "h:h" |c, i, m| c.op1(i, m, |a: u16| a);
    "selp.b32 selp.u32 selp.s32 selp.f32" "w:wwp" select::<u32>;
    "selp.b64 selp.u64 selp.s64 selp.f64" "d:ddp" select::<u64>;
    "selp.b16 selp.u16 selp.s16" "h:hhp" select::<u16>;
    "slct.b32.s32 slct.u32.s32 slct.s32.s32 slct.f32.s32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: i32| if d >= 0 { a } else { b });
    "slct.b64.s32 slct.u64.s32 slct.s64.s32 slct.f64.s32" "d:ddw" |c, i, m| c.op3(i, m, |a: u64, b: u64, d: i32| if d >= 0 { a } else { b });
    "slct.b32.f32 slct.u32.f32 slct.s32.f32 slct.f32.f32" "w:www" |c, i, m| c.op3(i, m, |a: u32, b: u32, d: f32| if d >= 0.0 { a } else { b });
};

fn insert<T: Value>(c: &mut Cx<'_>, i: &Inst, m: u32, f: fn(T, T, u32, u32) -> T) -> Flow {
    let (a, b) = (c.get::<T>(i.s[0]), c.get::<T>(i.s[1]));
    let (pos, len) = (c.get::<u32>(i.s[2]), c.get::<u32>(i.s[3]));
    let out = std::array::from_fn(|l| f(T::of(a[l]), T::of(b[l]), pos[l], len[l]).raw());
    c.put::<T>(i.d[0], m, &out);
    Flow::Next
}

/// An operation that reads the carry flag of each lane, or sets it, or both.
fn carry<T: Value>(
    c: &mut Cx<'_>,
    i: &Inst,
    m: u32,
    sets: bool,
    f: impl Fn(T, T, T, bool) -> (T, bool),
) -> Flow {
    let third = if i.s[2] == super::super::inst::NONE { i.s[1] } else { i.s[2] };
    let (x, y, z) = (c.get::<T>(i.s[0]), c.get::<T>(i.s[1]), c.get::<T>(third));
    let mut out = [T::Raw::default(); LANES];
    let mut flags = 0u32;
    for lane in 0..LANES {
        let (value, flag) = f(T::of(x[lane]), T::of(y[lane]), T::of(z[lane]), c.warp.carry >> lane & 1 != 0);
        out[lane] = value.raw();
        flags |= u32::from(flag) << lane;
    }
    c.put::<T>(i.d[0], m, &out);
    if sets {
        c.warp.carry = c.warp.carry & !m | flags & m;
    }
    Flow::Next
}

fn sum32(a: u32, b: u32, flag: bool) -> (u32, bool) {
    let total = u64::from(a) + u64::from(b) + u64::from(flag);
    (total as u32, total >> 32 != 0)
}

fn sum64(a: u64, b: u64, flag: bool) -> (u64, bool) {
    let total = u128::from(a) + u128::from(b) + u128::from(flag);
    (total as u64, total >> 64 != 0)
}

fn less32(a: u32, b: u32, flag: bool) -> (u32, bool) {
    let total = i64::from(a) - i64::from(b) - i64::from(flag);
    (total as u32, total < 0)
}

fn less64(a: u64, b: u64, flag: bool) -> (u64, bool) {
    let total = i128::from(a) - i128::from(b) - i128::from(flag);
    (total as u64, total < 0)
}

fn hi32(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

fn hi64(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

fn hi32s(a: u32, b: u32) -> u32 {
    ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
}

pub const CARRY: &[Row] = rows! {
    "add.cc.u32 add.cc.s32" "w:ww" |c, i, m| carry(c, i, m, true, |a: u32, b, _, _| sum32(a, b, false));
    "addc.cc.u32 addc.cc.s32" "w:ww" |c, i, m| carry(c, i, m, true, |a: u32, b, _, f| sum32(a, b, f));
    "addc.u32 addc.s32" "w:ww" |c, i, m| carry(c, i, m, false, |a: u32, b, _, f| sum32(a, b, f));
    "sub.cc.u32 sub.cc.s32" "w:ww" |c, i, m| carry(c, i, m, true, |a: u32, b, _, _| less32(a, b, false));
    "subc.cc.u32 subc.cc.s32" "w:ww" |c, i, m| carry(c, i, m, true, |a: u32, b, _, f| less32(a, b, f));
    "subc.u32 subc.s32" "w:ww" |c, i, m| carry(c, i, m, false, |a: u32, b, _, f| less32(a, b, f));
    "mad.lo.cc.u32 mad.lo.cc.s32" "w:www" |c, i, m| carry(c, i, m, true, |a: u32, b, d, _| sum32(a.wrapping_mul(b), d, false));
    "madc.lo.cc.u32 madc.lo.cc.s32" "w:www" |c, i, m| carry(c, i, m, true, |a: u32, b, d, f| sum32(a.wrapping_mul(b), d, f));
    "madc.lo.u32 madc.lo.s32" "w:www" |c, i, m| carry(c, i, m, false, |a: u32, b, d, f| sum32(a.wrapping_mul(b), d, f));
    "mad.hi.cc.u32" "w:www" |c, i, m| carry(c, i, m, true, |a: u32, b, d, _| sum32(hi32(a, b), d, false));
    "madc.hi.cc.u32" "w:www" |c, i, m| carry(c, i, m, true, |a: u32, b, d, f| sum32(hi32(a, b), d, f));
    "madc.hi.u32" "w:www" |c, i, m| carry(c, i, m, false, |a: u32, b, d, f| sum32(hi32(a, b), d, f));
    "madc.hi.s32" "w:www" |c, i, m| carry(c, i, m, false, |a: u32, b, d, f| sum32(hi32s(a, b), d, f));
    "add.cc.u64 add.cc.s64" "d:dd" |c, i, m| carry(c, i, m, true, |a: u64, b, _, _| sum64(a, b, false));
    "addc.cc.u64 addc.cc.s64" "d:dd" |c, i, m| carry(c, i, m, true, |a: u64, b, _, f| sum64(a, b, f));
    "addc.u64 addc.s64" "d:dd" |c, i, m| carry(c, i, m, false, |a: u64, b, _, f| sum64(a, b, f));
    "sub.cc.u64 sub.cc.s64" "d:dd" |c, i, m| carry(c, i, m, true, |a: u64, b, _, _| less64(a, b, false));
    "subc.cc.u64 subc.cc.s64" "d:dd" |c, i, m| carry(c, i, m, true, |a: u64, b, _, f| less64(a, b, f));
    "subc.u64 subc.s64" "d:dd" |c, i, m| carry(c, i, m, false, |a: u64, b, _, f| less64(a, b, f));
    "mad.lo.cc.u64" "d:ddd" |c, i, m| carry(c, i, m, true, |a: u64, b, d, _| sum64(a.wrapping_mul(b), d, false));
    "madc.lo.cc.u64" "d:ddd" |c, i, m| carry(c, i, m, true, |a: u64, b, d, f| sum64(a.wrapping_mul(b), d, f));
    "madc.lo.u64" "d:ddd" |c, i, m| carry(c, i, m, false, |a: u64, b, d, f| sum64(a.wrapping_mul(b), d, f));
    "mad.hi.cc.u64" "d:ddd" |c, i, m| carry(c, i, m, true, |a: u64, b, d, _| sum64(hi64(a, b), d, false));
    "madc.hi.cc.u64" "d:ddd" |c, i, m| carry(c, i, m, true, |a: u64, b, d, f| sum64(hi64(a, b), d, f));
    "madc.hi.u64" "d:ddd" |c, i, m| carry(c, i, m, false, |a: u64, b, d, f| sum64(hi64(a, b), d, f));
};
