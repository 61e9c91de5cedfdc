//! setp and set. The decoder takes out a combination (.and, .or, .xor) and the type of set's result.

use super::{Row, row};
use crate::exec::soft::flush;

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

macro_rules! float {
    ($($ty:ident $form:literal $set:literal $name:literal |$x:ident| $pre:expr;)*) => {
        &[$(
            float!(@row $ty $form $set $name |$x| $pre, "eq", |a, b| a == b),
            float!(@row $ty $form $set $name |$x| $pre, "ne", |a, b| a < b || a > b),
            float!(@row $ty $form $set $name |$x| $pre, "lt", |a, b| a < b),
            float!(@row $ty $form $set $name |$x| $pre, "le", |a, b| a <= b),
            float!(@row $ty $form $set $name |$x| $pre, "gt", |a, b| a > b),
            float!(@row $ty $form $set $name |$x| $pre, "ge", |a, b| a >= b),
            float!(@row $ty $form $set $name |$x| $pre, "equ", |a, b| !(a < b || a > b)),
            float!(@row $ty $form $set $name |$x| $pre, "neu", |a, b| a != b),
            float!(@row $ty $form $set $name |$x| $pre, "ltu", |a, b| !(a >= b)),
            float!(@row $ty $form $set $name |$x| $pre, "leu", |a, b| !(a > b)),
            float!(@row $ty $form $set $name |$x| $pre, "gtu", |a, b| !(a <= b)),
            float!(@row $ty $form $set $name |$x| $pre, "geu", |a, b| !(a < b)),
            float!(@row $ty $form $set $name |$x| $pre, "num", |a, b| a.partial_cmp(&b).is_some()),
            float!(@row $ty $form $set $name |$x| $pre, "nan", |a, b| a.partial_cmp(&b).is_none()),
            float!(@set $ty $form $set $name |$x| $pre, "eq", |a, b| a == b),
            float!(@set $ty $form $set $name |$x| $pre, "lt", |a, b| a < b),
            float!(@set $ty $form $set $name |$x| $pre, "le", |a, b| a <= b),
            float!(@set $ty $form $set $name |$x| $pre, "gt", |a, b| a > b),
            float!(@set $ty $form $set $name |$x| $pre, "ge", |a, b| a >= b),
            float!(@set $ty $form $set $name |$x| $pre, "neu", |a, b| a != b),
            float!(@set $ty $form $set $name |$x| $pre, "nan", |a, b| a.partial_cmp(&b).is_none()),
        )*]
    };
    (@row $ty:ident $form:literal $set:literal $name:literal |$x:ident| $pre:expr, $cmp:literal, |$a:ident, $b:ident| $test:expr) => {
        row(concat!("setp.", $cmp, ".", $name), $form, |c, i, m| {
            c.test(i, m, |$a: $ty, $b: $ty| {
                let pre = |$x: $ty| $pre;
                let ($a, $b) = (pre($a), pre($b));
                $test
            })
        })
    };
    (@set $ty:ident $form:literal $set:literal $name:literal |$x:ident| $pre:expr, $cmp:literal, |$a:ident, $b:ident| $test:expr) => {
        row(concat!("set.", $cmp, ".", $name), $set, |c, i, m| {
            c.set(i, m, |$a: $ty, $b: $ty| {
                let pre = |$x: $ty| $pre;
                let ($a, $b) = (pre($a), pre($b));
                $test
            })
        })
    };
}

#[allow(clippy::neg_cmp_op_on_partial_ord, clippy::double_comparisons, reason = "NaN makes the difference")]
pub const FLOAT: &[Row] = float! {
    f32 "p:ww" "w:ww" "f32" |x| x;
    f32 "p:ww" "w:ww" "ftz.f32" |x| flush(x);
    f64 "p:dd" "w:dd" "f64" |x| x;
};
