//! float16 and bfloat16, single and in pairs. Sums and products are formed in float64, where they are
//! exact or lose too little to change the rounding.

use super::{Row, row};
use crate::exec::cx::Cx;
use crate::exec::exact::{BF16, F16, F32, Format};
use crate::exec::inst::{Flow, Inst};
use crate::exec::soft::{
    Round, bf16_to_f32, f32_to_bf16, f32_to_half, flush, flush16, half_to_f32, max64, min64, odd32,
    saturate64,
};

fn get16(x: u16) -> f64 {
    half_to_f32(x).into()
}

fn put16(x: f64) -> u16 {
    f32_to_half(odd32(x))
}

fn getb(x: u16) -> f64 {
    bf16_to_f32(x).into()
}

fn putb(x: f64) -> u16 {
    f32_to_bf16(odd32(x))
}

fn get16z(x: u16) -> f64 {
    get16(flush16(x))
}

/// Zero for what is below the normal range when rounded without a lower end.
fn put16z(x: f64) -> u16 {
    put16(if x.abs() < 2f64.powi(-14) - 2f64.powi(-26) { 0f64.copysign(x) } else { x })
}

fn put16s(x: f64) -> u16 {
    put16(saturate64(x))
}

fn putbz(x: f64) -> u16 {
    f32_to_bf16(flush(odd32(x)))
}

type Get = fn(u16) -> f64;
type Put = fn(f64) -> u16;

fn each(c: &mut Cx<'_>, i: &Inst, m: u32, pair: bool, f: impl Fn(u16, u16, u16) -> u16) -> Flow {
    let slot = |n: usize| if i.s[n] == crate::exec::inst::NONE { i.s[0] } else { i.s[n] };
    let (a, b, d) = (c.get::<u32>(slot(0)), c.get::<u32>(slot(1)), c.get::<u32>(slot(2)));
    let out = std::array::from_fn(|l| {
        let low = u32::from(f(a[l] as u16, b[l] as u16, d[l] as u16));
        if !pair {
            return low;
        }
        let high = f((a[l] >> 16) as u16, (b[l] >> 16) as u16, (d[l] >> 16) as u16);
        low | u32::from(high) << 16
    });
    c.put::<u32>(i.d[0], m, &out);
    Flow::Next
}

fn binary(c: &mut Cx<'_>, i: &Inst, m: u32, pair: bool, get: Get, put: Put, f: fn(f64, f64) -> f64) -> Flow {
    each(c, i, m, pair, |a, b, _| put(f(get(a), get(b))))
}

fn fused(c: &mut Cx<'_>, i: &Inst, m: u32, pair: bool, get: Get, put: Put, relu: bool) -> Flow {
    each(c, i, m, pair, |a, b, d| {
        let sum = once(get(a) * get(b), get(d));
        put(if relu && sum <= 0.0 { 0.0 } else { sum })
    })
}

/// The sum rounded to odd in float64, so that a later rounding is the only one.
fn once(product: f64, addend: f64) -> f64 {
    let s = product + addend;
    let back = s - product;
    let e = (product - (s - back)) + (addend - back);
    let bits = s.to_bits();
    if e == 0.0 || !e.is_finite() || bits & 1 == 1 {
        return s;
    }
    f64::from_bits(if (e > 0.0) == (s > 0.0) { bits + 1 } else { bits - 1 })
}

fn add(a: f64, b: f64) -> f64 {
    once(a, b)
}

pub fn add_f16(a: u16, b: u16) -> u16 {
    put16(add(get16(a), get16(b)))
}

pub fn add_bf16(a: u16, b: u16) -> u16 {
    putb(add(getb(a), getb(b)))
}

fn sub(a: f64, b: f64) -> f64 {
    once(a, -b)
}

fn mul(a: f64, b: f64) -> f64 {
    a * b
}

fn min_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { min64(a, b) }
}

fn max_nan(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { max64(a, b) }
}

macro_rules! arithmetic {
    ($($name:literal $modifier:literal $pair:expr, $two:literal $three:literal $get:expr, $put:expr;)*) => {
        &[$(
            row(concat!("add", $modifier, ".", $name, " add.rn", $modifier, ".", $name), $two, |c, i, m| binary(c, i, m, $pair, $get, $put, add)),
            row(concat!("sub", $modifier, ".", $name, " sub.rn", $modifier, ".", $name), $two, |c, i, m| binary(c, i, m, $pair, $get, $put, sub)),
            row(concat!("mul", $modifier, ".", $name, " mul.rn", $modifier, ".", $name), $two, |c, i, m| binary(c, i, m, $pair, $get, $put, mul)),
            row(concat!("fma.rn", $modifier, ".", $name), $three, |c, i, m| fused(c, i, m, $pair, $get, $put, false)),
        )*]
    };
}

macro_rules! others {
    ($($name:literal $ftz:literal $pair:expr, $two:literal $three:literal $one:literal $get:expr, $put:expr;)*) => {
        &[$(
            row(concat!("min", $ftz, ".", $name), $two, |c, i, m| binary(c, i, m, $pair, $get, $put, min64)),
            row(concat!("max", $ftz, ".", $name), $two, |c, i, m| binary(c, i, m, $pair, $get, $put, max64)),
            row(concat!("min", $ftz, ".NaN.", $name), $two, |c, i, m| binary(c, i, m, $pair, $get, $put, min_nan)),
            row(concat!("max", $ftz, ".NaN.", $name), $two, |c, i, m| binary(c, i, m, $pair, $get, $put, max_nan)),
            row(concat!("fma.rn", $ftz, ".relu.", $name), $three, |c, i, m| fused(c, i, m, $pair, $get, $put, true)),
            row(concat!("abs", $ftz, ".", $name), $one, |c, i, m| each(c, i, m, $pair, |a, _, _| $put($get(a).abs()))),
            row(concat!("neg", $ftz, ".", $name), $one, |c, i, m| each(c, i, m, $pair, |a, _, _| $put(-$get(a)))),
        )*]
    };
}

macro_rules! approximate {
    ($($name:literal $pair:expr, $one:literal $get:expr, $put:expr;)*) => {
        &[$(
            row(concat!("ex2.approx.", $name), $one, |c, i, m| each(c, i, m, $pair, |a, _, _| $put($get(a).exp2()))),
            row(concat!("tanh.approx.", $name), $one, |c, i, m| each(c, i, m, $pair, |a, _, _| $put($get(a).tanh()))),
        )*]
    };
}

pub const ARITHMETIC: &[Row] = arithmetic! {
    "f16" "" false, "h:hh" "h:hhh" get16, put16;
    "f16" ".ftz" false, "h:hh" "h:hhh" get16z, put16z;
    "f16" ".sat" false, "h:hh" "h:hhh" get16, put16s;
    "f16" ".ftz.sat" false, "h:hh" "h:hhh" get16z, |x| put16z(saturate64(x));
    "f16x2" "" true, "w:ww" "w:www" get16, put16;
    "f16x2" ".ftz" true, "w:ww" "w:www" get16z, put16z;
    "f16x2" ".sat" true, "w:ww" "w:www" get16, put16s;
    "f16x2" ".ftz.sat" true, "w:ww" "w:www" get16z, |x| put16z(saturate64(x));
    "bf16" "" false, "h:hh" "h:hhh" getb, putb;
    "bf16x2" "" true, "w:ww" "w:www" getb, putb;
};

pub const OTHERS: &[Row] = others! {
    "f16" "" false, "h:hh" "h:hhh" "h:h" get16, put16;
    "f16" ".ftz" false, "h:hh" "h:hhh" "h:h" get16z, put16z;
    "f16x2" "" true, "w:ww" "w:www" "w:w" get16, put16;
    "f16x2" ".ftz" true, "w:ww" "w:www" "w:w" get16z, put16z;
    "bf16" "" false, "h:hh" "h:hhh" "h:h" getb, putb;
    "bf16x2" "" true, "w:ww" "w:www" "w:w" getb, putb;
};

pub const APPROXIMATE: &[Row] = approximate! {
    "f16" false, "h:h" get16, put16;
    "f16x2" true, "w:w" get16, put16;
    "bf16" false, "h:h" getb, putb;
    "bf16x2" true, "w:w" getb, putb;
    "ftz.bf16" false, "h:h" getb, putbz;
    "ftz.bf16x2" true, "w:w" getb, putbz;
};

/// Two float32 to a pair; the first goes to the upper half.
fn join(c: &mut Cx<'_>, i: &Inst, m: u32, put: fn(f32) -> u16) -> Flow {
    c.op2(i, m, |a: f32, b: f32| u32::from(put(a)) << 16 | u32::from(put(b)))
}

fn cut(format: Format, x: f32) -> u16 {
    let bits = x.to_bits().into();
    match F32.split(bits) {
        Some(exact) => format.round(exact, Round::Zero) as u16,
        None if x.is_nan() => format.nan() as u16,
        None => (format.infinity() | if x < 0.0 { format.sign() } else { 0 }) as u16,
    }
}

fn relu(x: f32) -> f32 {
    if x <= 0.0 { 0.0 } else { x }
}

pub const PAIRS: &[Row] = &[
    row("cvt.rn.f16x2.f32", "w:ww", |c, i, m| join(c, i, m, f32_to_half)),
    row("cvt.rn.relu.f16x2.f32", "w:ww", |c, i, m| join(c, i, m, |x| f32_to_half(relu(x)))),
    row("cvt.rz.f16x2.f32", "w:ww", |c, i, m| join(c, i, m, |x| cut(F16, x))),
    row("cvt.rz.relu.f16x2.f32", "w:ww", |c, i, m| join(c, i, m, |x| cut(F16, relu(x)))),
    row("cvt.rn.bf16x2.f32", "w:ww", |c, i, m| join(c, i, m, f32_to_bf16)),
    row("cvt.rn.relu.bf16x2.f32", "w:ww", |c, i, m| join(c, i, m, |x| f32_to_bf16(relu(x)))),
    row("cvt.rz.bf16x2.f32", "w:ww", |c, i, m| join(c, i, m, |x| cut(BF16, x))),
    row("cvt.rz.relu.bf16x2.f32", "w:ww", |c, i, m| join(c, i, m, |x| cut(BF16, relu(x)))),
    row("cvt.rna.tf32.f32", "w:w", |c, i, m| {
        // NaN loses its low bits and may become an infinity.
        let by = |a: u32| if a & 0x7f80_0000 == 0x7f80_0000 { 0 } else { 0x1000 };
        c.op1(i, m, |a: u32| a.wrapping_add(by(a)) & 0xffff_e000)
    }),
];
