//! Results rounded in a direction, where float64 arithmetic does not give them at once.

use super::{Row, row};
use crate::exec::exact::{Exact, F32, F64};
use crate::exec::soft::{Round, canon, flush, fma64, nan64};

fn split(x: f64) -> Option<Exact> {
    F64.split(x.to_bits())
}

fn rounded(exact: Exact, round: Round) -> f64 {
    f64::from_bits(F64.round(exact, round))
}

fn add(a: f64, b: f64, round: Round) -> f64 {
    match (split(a), split(b)) {
        (Some(x), Some(y)) => rounded(x.plus(y, round), round),
        _ => nan64(a + b, [a, b]),
    }
}

fn sub(a: f64, b: f64, round: Round) -> f64 {
    if b.is_nan() { nan64(b, [a, b]) } else { add(a, -b, round) }
}

fn mul(a: f64, b: f64, round: Round) -> f64 {
    match (split(a), split(b)) {
        (Some(x), Some(y)) => rounded(x.times(y), round),
        _ => nan64(a * b, [a, b]),
    }
}

fn fma(a: f64, b: f64, c: f64, round: Round) -> f64 {
    match (split(a), split(b), split(c)) {
        (Some(x), Some(y), Some(z)) => rounded(x.times(y).plus(z, round), round),
        _ => fma64(a, b, c),
    }
}

fn div(a: f64, b: f64, round: Round) -> f64 {
    match (split(a), split(b)) {
        (Some(x), Some(y)) if b != 0.0 => rounded(x.over(y), round),
        _ => nan64(a / b, [b, a]),
    }
}

fn sqrt(a: f64, round: Round) -> f64 {
    match split(a) {
        Some(x) if a >= 0.0 => rounded(x.root(), round),
        _ => nan64(a.sqrt(), [a]),
    }
}

fn rcp32(a: f32, round: Round) -> f32 {
    match (F32.split(1f32.to_bits().into()), F32.split(a.to_bits().into())) {
        (Some(one), Some(x)) if a != 0.0 => f32::from_bits(F32.round(one.over(x), round) as u32),
        _ => canon(1.0 / a),
    }
}

fn sqrt32(a: f32, round: Round) -> f32 {
    match F32.split(a.to_bits().into()) {
        Some(x) if a >= 0.0 => f32::from_bits(F32.round(x.root(), round) as u32),
        _ => canon(a.sqrt()),
    }
}

macro_rules! double {
    ($($word:literal $round:expr;)*) => {
        &[$(
            row(concat!("add.", $word, ".f64"), "d:dd", |c, i, m| c.op2(i, m, |a: f64, b: f64| add(a, b, $round))),
            row(concat!("sub.", $word, ".f64"), "d:dd", |c, i, m| c.op2(i, m, |a: f64, b: f64| sub(a, b, $round))),
            row(concat!("mul.", $word, ".f64"), "d:dd", |c, i, m| c.op2(i, m, |a: f64, b: f64| mul(a, b, $round))),
            row(concat!("div.", $word, ".f64"), "d:dd", |c, i, m| c.op2(i, m, |a: f64, b: f64| div(a, b, $round))),
            row(concat!("fma.", $word, ".f64"), "d:ddd", |c, i, m| {
                c.op3(i, m, |a: f64, b: f64, d: f64| fma(a, b, d, $round))
            }),
            row(concat!("rcp.", $word, ".f64"), "d:d", |c, i, m| c.op1(i, m, |a: f64| div(1.0, a, $round))),
            row(concat!("sqrt.", $word, ".f64"), "d:d", |c, i, m| c.op1(i, m, |a: f64| sqrt(a, $round))),
        )*]
    };
}

macro_rules! single {
    ($($word:literal $round:expr;)*) => {
        &[$(
            row(concat!("rcp.", $word, ".f32"), "w:w", |c, i, m| c.op1(i, m, |a: f32| rcp32(a, $round))),
            row(concat!("rcp.", $word, ".ftz.f32"), "w:w", |c, i, m| {
                c.op1(i, m, |a: f32| flush(rcp32(flush(a), $round)))
            }),
            row(concat!("sqrt.", $word, ".f32"), "w:w", |c, i, m| c.op1(i, m, |a: f32| sqrt32(a, $round))),
            row(concat!("sqrt.", $word, ".ftz.f32"), "w:w", |c, i, m| {
                c.op1(i, m, |a: f32| sqrt32(flush(a), $round))
            }),
        )*]
    };
}

pub const DOUBLE: &[Row] = double! {
    "rz" Round::Zero;
    "rm" Round::Down;
    "rp" Round::Up;
};

pub const SINGLE: &[Row] = single! {
    "rz" Round::Zero;
    "rm" Round::Down;
    "rp" Round::Up;
};
