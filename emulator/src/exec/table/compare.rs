//! setp and set. The decoder takes out a combination (.and, .or, .xor) and the type of set's result.

use super::{Row, row};
use crate::exec::cx::{Cx, LANES};
use crate::exec::inst::{Flow, Inst};
use crate::exec::soft::{bf16_to_f32, flush, flush16, half_to_f32};

macro_rules! integer {
    ($($ty:ident $letter:literal $form:literal $set:literal $($name:literal)+;)*) => {
        &[$($(
            row(concat!("setp.eq.", $name), $form, |c, i, m| c.test(i, m, |a: $ty, b: $ty| a == b)),
            row(concat!("setp.ne.", $name), $form, |c, i, m| c.test(i, m, |a: $ty, b: $ty| a != b)),
            row(concat!("setp.lt.", $name, " setp.lo.", $name), $form, |c, i, m| c.test(i, m, |a: $ty, b: $ty| a < b)),
            row(concat!("setp.le.", $name, " setp.ls.", $name), $form, |c, i, m| c.test(i, m, |a: $ty, b: $ty| a <= b)),
            row(concat!("setp.gt.", $name, " setp.hi.", $name), $form, |c, i, m| c.test(i, m, |a: $ty, b: $ty| a > b)),
            row(concat!("setp.ge.", $name, " setp.hs.", $name), $form, |c, i, m| c.test(i, m, |a: $ty, b: $ty| a >= b)),
            row(concat!("set.eq.", $name), $set, |c, i, m| c.set(i, m, |a: $ty, b: $ty| a == b)),
            row(concat!("set.ne.", $name), $set, |c, i, m| c.set(i, m, |a: $ty, b: $ty| a != b)),
            row(concat!("set.lt.", $name), $set, |c, i, m| c.set(i, m, |a: $ty, b: $ty| a < b)),
            row(concat!("set.le.", $name), $set, |c, i, m| c.set(i, m, |a: $ty, b: $ty| a <= b)),
            row(concat!("set.gt.", $name), $set, |c, i, m| c.set(i, m, |a: $ty, b: $ty| a > b)),
            row(concat!("set.ge.", $name), $set, |c, i, m| c.set(i, m, |a: $ty, b: $ty| a >= b)),
        )+)*]
    };
}

pub const INTEGER: &[Row] = integer! {
    u32 "w" "p:ww" "w:ww" "u32" "b32";
    i32 "w" "p:ww" "w:ww" "s32";
    u64 "d" "p:dd" "w:dd" "u64" "b64";
    i64 "d" "p:dd" "w:dd" "s64";
    u16 "h" "p:hh" "w:hh" "u16" "b16";
    i16 "h" "p:hh" "w:hh" "s16";
};

/// A comparison of the lower halves to d[0], of the upper ones to d[1].
fn test_pair(c: &mut Cx<'_>, i: &Inst, m: u32, f: impl Fn(u32, u32) -> bool) -> Flow {
    let (a, b) = (c.get::<u32>(i.s[0]), c.get::<u32>(i.s[1]));
    let hits = [0, 16].map(|at| (0..LANES).fold(0, |all, l| all | u32::from(f(a[l] >> at, b[l] >> at)) << l));
    for (n, hit) in hits.into_iter().enumerate() {
        let combined = c.combine(i, hit);
        c.put_pred(i.d[n], m, combined);
    }
    Flow::Next
}

fn set_pair(c: &mut Cx<'_>, i: &Inst, m: u32, f: impl Fn(u32, u32) -> bool) -> Flow {
    let (a, b) = (c.get::<u32>(i.s[0]), c.get::<u32>(i.s[1]));
    let yes = i.imm as u32 & 0xffff;
    let half = |l: usize, at: u32| if f(a[l] >> at, b[l] >> at) { yes << at } else { 0 };
    let out = std::array::from_fn(|l| half(l, 0) | half(l, 16));
    c.put::<u32>(i.d[0], m, &out);
    Flow::Next
}

/// Each comparison of each type: setp by the method `test` or `test_pair`, set by `set` or `set_pair`.
macro_rules! float {
    ($run:path, $op:literal; $($ty:ident $form:literal $name:literal |$x:ident| $pre:expr;)*) => {
        [$([
            float!(@ $run, $op $ty $form $name |$x| $pre, "eq", |a, b| a == b),
            float!(@ $run, $op $ty $form $name |$x| $pre, "ne", |a, b| a < b || a > b),
            float!(@ $run, $op $ty $form $name |$x| $pre, "lt", |a, b| a < b),
            float!(@ $run, $op $ty $form $name |$x| $pre, "le", |a, b| a <= b),
            float!(@ $run, $op $ty $form $name |$x| $pre, "gt", |a, b| a > b),
            float!(@ $run, $op $ty $form $name |$x| $pre, "ge", |a, b| a >= b),
            float!(@ $run, $op $ty $form $name |$x| $pre, "equ", |a, b| !(a < b || a > b)),
            float!(@ $run, $op $ty $form $name |$x| $pre, "neu", |a, b| a != b),
            float!(@ $run, $op $ty $form $name |$x| $pre, "ltu", |a, b| !(a >= b)),
            float!(@ $run, $op $ty $form $name |$x| $pre, "leu", |a, b| !(a > b)),
            float!(@ $run, $op $ty $form $name |$x| $pre, "gtu", |a, b| !(a <= b)),
            float!(@ $run, $op $ty $form $name |$x| $pre, "geu", |a, b| !(a < b)),
            float!(@ $run, $op $ty $form $name |$x| $pre, "num", |a, b| a.partial_cmp(&b).is_some()),
            float!(@ $run, $op $ty $form $name |$x| $pre, "nan", |a, b| a.partial_cmp(&b).is_none()),
        ],)*]
    };
    (@ $run:path, $op:literal $ty:ident $form:literal $name:literal |$x:ident| $pre:expr, $cmp:literal, |$a:ident, $b:ident| $test:expr) => {
        row(concat!($op, ".", $cmp, ".", $name), $form, |c, i, m| {
            $run(c, i, m, |$a: $ty, $b: $ty| {
                let pre = |$x: $ty| $pre;
                let ($a, $b) = (pre($a), pre($b));
                $test
            })
        })
    };
}

#[allow(clippy::neg_cmp_op_on_partial_ord, clippy::double_comparisons, reason = "NaN makes the difference")]
mod floats {
    use super::*;

    pub static TEST: [[Row; 14]; 6] = float! {
        Cx::test, "setp";
        f32 "p:ww" "f32" |x| x;
        f32 "p:ww" "ftz.f32" |x| flush(x);
        f64 "p:dd" "f64" |x| x;
        u16 "p:hh" "f16" |x| half_to_f32(x);
        u16 "p:hh" "ftz.f16" |x| half_to_f32(flush16(x));
        u16 "p:hh" "bf16" |x| bf16_to_f32(x);
    };

    pub static SET: [[Row; 14]; 6] = float! {
        Cx::set, "set";
        f32 "w:ww" "f32" |x| x;
        f32 "w:ww" "ftz.f32" |x| flush(x);
        f64 "w:dd" "f64" |x| x;
        u16 "w:hh" "f16" |x| half_to_f32(x);
        u16 "w:hh" "ftz.f16" |x| half_to_f32(flush16(x));
        u16 "w:hh" "bf16" |x| bf16_to_f32(x);
    };

    pub static TEST_PAIR: [[Row; 14]; 3] = float! {
        test_pair, "setp";
        u32 "p:ww" "f16x2" |x| half_to_f32(x as u16);
        u32 "p:ww" "ftz.f16x2" |x| half_to_f32(flush16(x as u16));
        u32 "p:ww" "bf16x2" |x| bf16_to_f32(x as u16);
    };

    pub static SET_PAIR: [[Row; 14]; 3] = float! {
        set_pair, "set";
        u32 "w:ww" "f16x2" |x| half_to_f32(x as u16);
        u32 "w:ww" "ftz.f16x2" |x| half_to_f32(flush16(x as u16));
        u32 "w:ww" "bf16x2" |x| bf16_to_f32(x as u16);
    };
}

pub fn floats() -> impl Iterator<Item = &'static Row> {
    [&floats::TEST[..], &floats::SET, &floats::TEST_PAIR, &floats::SET_PAIR].into_iter().flatten().flatten()
}
