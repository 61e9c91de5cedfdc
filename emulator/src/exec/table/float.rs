//! Floating-point arithmetic.

use super::{Row, row};
use crate::exec::cx::{Cx, LANES, Value};
use crate::exec::exact::{Exact, F32, ftz};
use crate::exec::inst::{Flow, Inst};
use crate::exec::soft::{
    Round, add32, add64, approximate, canon, flush, fma32, fma32_round, fma64, max32, max64, min32, min64,
    mul32, nan64, saturate, upper,
};

/// A float32 operation plain, with .ftz, with .sat and with both; the second function is the one with .ftz, of operands
/// that are flushed.
macro_rules! binary {
    ($($plain:literal $ftz:literal $sat:literal $both:literal $f:expr, $g:expr;)*) => {
        &[$(
            row($plain, "w:ww", |c, i, m| c.op2(i, m, $f)),
            row($ftz, "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| $g(flush(a), flush(b)))),
            row($sat, "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| saturate($f(a, b)))),
            row($both, "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| saturate($g(flush(a), flush(b))))),
        )*]
    };
}

macro_rules! ternary {
    ($($plain:literal $ftz:literal $sat:literal $both:literal $f:expr, $g:expr;)*) => {
        &[$(
            row($plain, "w:www", |c, i, m| c.op3(i, m, $f)),
            row($ftz, "w:www", |c, i, m| c.op3(i, m, |a: f32, b: f32, d: f32| $g(flush(a), flush(b), flush(d)))),
            row($sat, "w:www", |c, i, m| c.op3(i, m, |a: f32, b: f32, d: f32| saturate($f(a, b, d)))),
            row($both, "w:www", |c, i, m| {
                c.op3(i, m, |a: f32, b: f32, d: f32| saturate($g(flush(a), flush(b), flush(d))))
            }),
        )*]
    };
}

fn split(x: f32) -> Option<Exact> {
    F32.split(x.to_bits().into())
}

fn add_ftz(a: f32, b: f32, round: Round) -> f32 {
    // A sum below the normal range is exact.
    flush(add32(a, b, round))
}

fn mul_ftz(a: f32, b: f32, round: Round) -> f32 {
    ftz(mul32(a, b, round), round, || Some(split(a)?.times(split(b)?)))
}

fn fma_ftz(a: f32, b: f32, c: f32, round: Round) -> f32 {
    ftz(fma32_round(a, b, c, round), round, || Some(split(a)?.times(split(b)?).plus(split(c)?, round)))
}

fn div_ftz(a: f32, b: f32) -> f32 {
    ftz(canon(a / b), Round::Nearest, || Some(split(a)?.over(split(b)?)))
}

pub const BINARY: &[Row] = binary! {
    "add.f32 add.rn.f32" "add.ftz.f32 add.rn.ftz.f32" "add.sat.f32 add.rn.sat.f32" "add.ftz.sat.f32 add.rn.ftz.sat.f32" |a: f32, b: f32| canon(a + b), |a, b| add_ftz(a, b, Round::Nearest);
    "add.rz.f32" "add.rz.ftz.f32" "add.rz.sat.f32" "add.rz.ftz.sat.f32" |a, b| add32(a, b, Round::Zero), |a, b| add_ftz(a, b, Round::Zero);
    "add.rm.f32" "add.rm.ftz.f32" "add.rm.sat.f32" "add.rm.ftz.sat.f32" |a, b| add32(a, b, Round::Down), |a, b| add_ftz(a, b, Round::Down);
    "add.rp.f32" "add.rp.ftz.f32" "add.rp.sat.f32" "add.rp.ftz.sat.f32" |a, b| add32(a, b, Round::Up), |a, b| add_ftz(a, b, Round::Up);
    "sub.f32 sub.rn.f32" "sub.ftz.f32 sub.rn.ftz.f32" "sub.sat.f32 sub.rn.sat.f32" "sub.ftz.sat.f32 sub.rn.ftz.sat.f32" |a: f32, b: f32| canon(a - b), |a, b: f32| add_ftz(a, -b, Round::Nearest);
    "sub.rz.f32" "sub.rz.ftz.f32" "sub.rz.sat.f32" "sub.rz.ftz.sat.f32" |a, b: f32| add32(a, -b, Round::Zero), |a, b: f32| add_ftz(a, -b, Round::Zero);
    "sub.rm.f32" "sub.rm.ftz.f32" "sub.rm.sat.f32" "sub.rm.ftz.sat.f32" |a, b: f32| add32(a, -b, Round::Down), |a, b: f32| add_ftz(a, -b, Round::Down);
    "sub.rp.f32" "sub.rp.ftz.f32" "sub.rp.sat.f32" "sub.rp.ftz.sat.f32" |a, b: f32| add32(a, -b, Round::Up), |a, b: f32| add_ftz(a, -b, Round::Up);
    "mul.f32 mul.rn.f32" "mul.ftz.f32 mul.rn.ftz.f32" "mul.sat.f32 mul.rn.sat.f32" "mul.ftz.sat.f32 mul.rn.ftz.sat.f32" |a: f32, b: f32| canon(a * b), |a, b| mul_ftz(a, b, Round::Nearest);
    "mul.rz.f32" "mul.rz.ftz.f32" "mul.rz.sat.f32" "mul.rz.ftz.sat.f32" |a, b| mul32(a, b, Round::Zero), |a, b| mul_ftz(a, b, Round::Zero);
    "mul.rm.f32" "mul.rm.ftz.f32" "mul.rm.sat.f32" "mul.rm.ftz.sat.f32" |a, b| mul32(a, b, Round::Down), |a, b| mul_ftz(a, b, Round::Down);
    "mul.rp.f32" "mul.rp.ftz.f32" "mul.rp.sat.f32" "mul.rp.ftz.sat.f32" |a, b| mul32(a, b, Round::Up), |a, b| mul_ftz(a, b, Round::Up);
};

pub const TERNARY: &[Row] = ternary! {
    "fma.rn.f32" "fma.rn.ftz.f32" "fma.rn.sat.f32" "fma.rn.ftz.sat.f32" fma32, |a, b, d| fma_ftz(a, b, d, Round::Nearest);
    "fma.rz.f32" "fma.rz.ftz.f32" "fma.rz.sat.f32" "fma.rz.ftz.sat.f32" |a, b, d| fma32_round(a, b, d, Round::Zero), |a, b, d| fma_ftz(a, b, d, Round::Zero);
    "fma.rm.f32" "fma.rm.ftz.f32" "fma.rm.sat.f32" "fma.rm.ftz.sat.f32" |a, b, d| fma32_round(a, b, d, Round::Down), |a, b, d| fma_ftz(a, b, d, Round::Down);
    "fma.rp.f32" "fma.rp.ftz.f32" "fma.rp.sat.f32" "fma.rp.ftz.sat.f32" |a, b, d| fma32_round(a, b, d, Round::Up), |a, b, d| fma_ftz(a, b, d, Round::Up);
};

/// An approximate float32 function, without and with .ftz.
macro_rules! unary {
    ($($plain:literal $ftz:literal $f:expr;)*) => {
        &[$(
            row($plain, "w:w", |c, i, m| approximation(c, i, m, false, $f)),
            row($ftz, "w:w", |c, i, m| approximation(c, i, m, true, $f)),
        )*]
    };
}

fn approximation(c: &mut Cx<'_>, i: &Inst, m: u32, ftz: bool, f: impl Fn(f64) -> f64) -> Flow {
    let perturb = c.launch.checks.perturb_approximate;
    c.op1(i, m, |a: f32| {
        let a = if ftz { flush(a) } else { a };
        let r = approximate(f(f64::from(a)), perturb);
        if ftz { flush(r) } else { r }
    })
}

/// div.approx: the inverse of a divisor above 2^126 is zero, as documented.
fn divide(a: f32, b: f32) -> f32 {
    let huge = b.abs() > 2f32.powi(126) && b.is_finite();
    canon(if huge { a * 0f32.copysign(b) } else { a / b })
}

/// Quarters of a turn, and the angle beyond them: the card multiplies by 1/(2 pi) in float32 first.
fn turn(x: f64) -> (i64, f64) {
    let turns = f64::from(flush(mul32(x as f32, std::f32::consts::FRAC_1_PI / 2.0, Round::Zero)));
    let quarters = 4.0 * (turns - turns.round());
    let angle = (quarters - quarters.round()) * std::f64::consts::FRAC_PI_2;
    (quarters.round() as i64 & 3, if angle == 0.0 { angle.copysign(x) } else { angle })
}

fn sine(x: f64, ahead: i64) -> f64 {
    let (quarter, angle) = turn(x);
    match (quarter + ahead) & 3 {
        _ if !x.is_finite() => f64::NAN,
        0 => angle.sin(),
        1 => angle.cos(),
        2 => -angle.sin(),
        _ => -angle.cos(),
    }
}

fn min_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { canon(f32::NAN) } else { min32(a, b) }
}

fn max_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { canon(f32::NAN) } else { max32(a, b) }
}

pub const APPROXIMATE: &[Row] = unary! {
    "ex2.approx.f32" "ex2.approx.ftz.f32" f64::exp2;
    "lg2.approx.f32" "lg2.approx.ftz.f32" f64::log2;
    "sin.approx.f32" "sin.approx.ftz.f32" |x| sine(x, 0);
    "cos.approx.f32" "cos.approx.ftz.f32" |x| sine(x, 1);
    "rcp.approx.f32" "rcp.approx.ftz.f32" |x| 1.0 / x;
    "rsqrt.approx.f32" "rsqrt.approx.ftz.f32" |x: f64| 1.0 / x.sqrt();
    "sqrt.approx.f32" "sqrt.approx.ftz.f32" f64::sqrt;
};

pub const EXACT: &[Row] = &[
    row("tanh.approx.f32", "w:w", |c, i, m| approximation(c, i, m, false, f64::tanh)),
    row("min.f32", "w:ww", |c, i, m| c.op2(i, m, min32)),
    row("max.f32", "w:ww", |c, i, m| c.op2(i, m, max32)),
    row("min.ftz.f32", "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| min32(flush(a), flush(b)))),
    row("max.ftz.f32", "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| max32(flush(a), flush(b)))),
    row("min.NaN.f32", "w:ww", |c, i, m| c.op2(i, m, min_nan)),
    row("max.NaN.f32", "w:ww", |c, i, m| c.op2(i, m, max_nan)),
    row("min.ftz.NaN.f32", "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| min_nan(flush(a), flush(b)))),
    row("max.ftz.NaN.f32", "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| max_nan(flush(a), flush(b)))),
    row("abs.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(a.abs()))),
    row("neg.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(-a))),
    row("abs.ftz.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(flush(a).abs()))),
    row("neg.ftz.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(-flush(a)))),
    row("copysign.f32", "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| b.copysign(a))),
    row("div.rn.f32", "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| canon(a / b))),
    row("div.rn.ftz.f32", "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| div_ftz(flush(a), flush(b)))),
    row("div.full.f32", "w:ww", |c, i, m| c.op2(i, m, |a: f32, b: f32| canon(a / b))),
    row("div.full.ftz.f32", "w:ww", |c, i, m| {
        c.op2(i, m, |a: f32, b: f32| flush(canon(flush(a) / flush(b))))
    }),
    row("div.approx.f32", "w:ww", |c, i, m| c.op2(i, m, divide)),
    row("div.approx.ftz.f32", "w:ww", |c, i, m| {
        c.op2(i, m, |a: f32, b: f32| flush(divide(flush(a), flush(b))))
    }),
    row("rcp.rn.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(1.0 / a))),
    row("rcp.rn.ftz.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| flush(canon(1.0 / flush(a))))),
    row("sqrt.rn.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(a.sqrt()))),
    row("sqrt.rn.ftz.f32", "w:w", |c, i, m| c.op1(i, m, |a: f32| canon(flush(a).sqrt()))),
];

fn tested<T: Value>(c: &mut Cx<'_>, i: &Inst, m: u32, f: impl Fn(T) -> bool) -> Flow {
    let a = c.get::<T>(i.s[0]);
    let hits = (0..LANES).fold(0, |all, l| all | u32::from(f(T::of(a[l]))) << l);
    c.put_pred(i.d[0], m, hits);
    Flow::Next
}

macro_rules! classes {
    ($($name:literal $ty:ty, $form:literal;)*) => {
        &[$(
            row(concat!("testp.finite.", $name), $form, |c, i, m| tested(c, i, m, |a: $ty| a.is_finite())),
            row(concat!("testp.infinite.", $name), $form, |c, i, m| tested(c, i, m, |a: $ty| a.is_infinite())),
            row(concat!("testp.number.", $name), $form, |c, i, m| tested(c, i, m, |a: $ty| !a.is_nan())),
            row(concat!("testp.notanumber.", $name), $form, |c, i, m| tested(c, i, m, |a: $ty| a.is_nan())),
            row(concat!("testp.normal.", $name), $form, |c, i, m| {
                // Zero counts as normal.
                tested(c, i, m, |a: $ty| a.is_finite() && !a.is_subnormal())
            }),
            row(concat!("testp.subnormal.", $name), $form, |c, i, m| tested(c, i, m, |a: $ty| a.is_subnormal())),
        )*]
    };
}

pub const CLASSES: &[Row] = classes! {
    "f32" f32, "p:w";
    "f64" f64, "p:d";
};

pub const DOUBLE: &[Row] = &[
    row("add.f64 add.rn.f64", "d:dd", |c, i, m| c.op2(i, m, add64)),
    row("sub.f64 sub.rn.f64", "d:dd", |c, i, m| c.op2(i, m, |a: f64, b: f64| nan64(a - b, [a, b]))),
    row("mul.f64 mul.rn.f64", "d:dd", |c, i, m| c.op2(i, m, |a: f64, b: f64| nan64(a * b, [a, b]))),
    row("fma.rn.f64", "d:ddd", |c, i, m| c.op3(i, m, fma64)),
    row("div.rn.f64", "d:dd", |c, i, m| c.op2(i, m, |a: f64, b: f64| nan64(a / b, [b, a]))),
    row("rcp.rn.f64", "d:d", |c, i, m| c.op1(i, m, |a: f64| nan64(1.0 / a, [a]))),
    row("sqrt.rn.f64", "d:d", |c, i, m| c.op1(i, m, |a: f64| nan64(a.sqrt(), [a]))),
    row("rsqrt.approx.f64", "d:d", |c, i, m| c.op1(i, m, |a: f64| nan64(1.0 / a.sqrt(), [a]))),
    row("rcp.approx.ftz.f64", "d:d", |c, i, m| c.op1(i, m, |a: f64| upper(1.0 / upper(a)))),
    row("rsqrt.approx.ftz.f64", "d:d", |c, i, m| c.op1(i, m, |a: f64| upper(1.0 / upper(a).sqrt()))),
    row("min.f64", "d:dd", |c, i, m| c.op2(i, m, min64)),
    row("max.f64", "d:dd", |c, i, m| c.op2(i, m, max64)),
    row("abs.f64", "d:d", |c, i, m| c.op1(i, m, |a: f64| nan64(a.abs(), [a]))),
    row("neg.f64", "d:d", |c, i, m| c.op1(i, m, |a: f64| nan64(-a, [a]))),
    row("copysign.f64", "d:dd", |c, i, m| c.op2(i, m, |a: f64, b: f64| b.copysign(a))),
];
