//! Floating point as the card rounds it.
//!
//! Approximate instructions (ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh .approx) are computed in
//! float64 and rounded to nearest, which is within the bound that PTX documents for each; with
//! `Checks::perturb_approximate` the float32 on the other side of the true value is taken, an
//! error below one unit in the last place.

/// The NaN that float32 arithmetic gives.
pub const NAN32: u32 = 0x7fff_ffff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Nearest,
    Zero,
    Down,
    Up,
}

/// By bits: the compiler may take a choice between two NaNs of floats for none.
#[inline(always)]
pub fn canon(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { NAN32 } else { bits })
}

/// Subnormals to zero of the same sign.
#[inline(always)]
pub fn flush(x: f32) -> f32 {
    let bits = x.to_bits();
    if bits & 0x7f80_0000 == 0 { f32::from_bits(bits & 0x8000_0000) } else { x }
}

/// To [0, 1]; NaN to 0.
#[inline(always)]
pub fn saturate(x: f32) -> f32 {
    if x > 0.0 { if x < 1.0 { x } else { 1.0 } } else { 0.0 }
}

#[inline(always)]
pub fn saturate64(x: f64) -> f64 {
    if x > 0.0 { if x < 1.0 { x } else { 1.0 } } else { 0.0 }
}

/// Sum and its error.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let bb = s - a;
    (s, (a - (s - bb)) + (b - bb))
}

/// a * b + c rounded once. In float64 the product is exact; the sum is rounded to odd, which
/// makes the second rounding harmless.
#[inline(always)]
pub fn fma32(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_feature = "fma") {
        return canon(a.mul_add(b, c));
    }
    fma32_by_64(a, b, c)
}

#[inline(always)]
pub fn fma32_by_64(a: f32, b: f32, c: f32) -> f32 {
    let (s, e) = two_sum(f64::from(a) * f64::from(b), f64::from(c));
    let bits = s.to_bits();
    let inexact = e.abs() > 0.0 && s.abs() < f64::INFINITY && bits & 1 == 0;
    let outward = (e > 0.0) == (s > 0.0);
    let odd = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    canon(f64::from_bits(if inexact { odd } else { bits }) as f32)
}

/// s + e rounded to float32 in a direction, where s is the float64 nearest to that sum.
pub fn round32(s: f64, e: f64, round: Round) -> f32 {
    let near = s as f32;
    if near.is_nan() || s.is_infinite() {
        return canon(near);
    }
    let wide = f64::from(near);
    let above = wide > s || wide == s && e < 0.0;
    let below = wide < s || wide == s && e > 0.0;
    let round = match round {
        Round::Zero if s > 0.0 || s == 0.0 && e > 0.0 => Round::Down,
        Round::Zero => Round::Up,
        other => other,
    };
    match round {
        Round::Down if above => near.next_down(),
        Round::Up if below => near.next_up(),
        _ => near,
    }
}

pub fn add32(a: f32, b: f32, round: Round) -> f32 {
    fma32_round(a, 1.0, b, round)
}

pub fn mul32(a: f32, b: f32, round: Round) -> f32 {
    let product = f64::from(a) * f64::from(b);
    if product == 0.0 { product as f32 } else { round32(product, 0.0, round) }
}

pub fn fma32_round(a: f32, b: f32, c: f32, round: Round) -> f32 {
    if round == Round::Nearest {
        return fma32(a, b, c);
    }
    let product = f64::from(a) * f64::from(b);
    let (s, e) = two_sum(product, f64::from(c));
    if s == 0.0 && e == 0.0 {
        let opposite = product.is_sign_negative() != c.is_sign_negative();
        return if opposite && round == Round::Down { -0.0 } else { s as f32 };
    }
    round32(s, if e.is_nan() { 0.0 } else { e }, round)
}

/// An approximate result from its float64 value.
pub fn approximate(value: f64, perturb: bool) -> f32 {
    let near = value as f32;
    let wide = f64::from(near);
    if perturb && near.is_finite() && near != 0.0 && wide != value {
        return if wide < value { near.next_up() } else { near.next_down() };
    }
    canon(near)
}

/// The upper 32 bits of a float64, as rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 keep them.
pub fn upper(x: f64) -> f64 {
    if x.is_nan() {
        return f64::from_bits(0x7fff_ffff_0000_0000);
    }
    let bits = x.to_bits() & !0xffff_ffff;
    if bits & 0x7ff0_0000_0000_0000 == 0 {
        return f64::from_bits(bits & (1 << 63));
    }
    f64::from_bits(bits)
}

pub fn min32(a: f32, b: f32) -> f32 {
    if a.is_nan() || b < a || b == a && b.is_sign_negative() { canon(b) } else { canon(a) }
}

pub fn max32(a: f32, b: f32) -> f32 {
    if a.is_nan() || b > a || b == a && a.is_sign_negative() { canon(b) } else { canon(a) }
}

pub fn min64(a: f64, b: f64) -> f64 {
    if a.is_nan() || b < a || b == a && b.is_sign_negative() { b } else { a }
}

pub fn max64(a: f64, b: f64) -> f64 {
    if a.is_nan() || b > a || b == a && a.is_sign_negative() { b } else { a }
}

/// float16 and bfloat16 by their bits.
pub fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    match exponent {
        31 if fraction != 0.0 => f64::NAN,
        31 => sign * f64::INFINITY,
        0 => sign * fraction * 2f64.powi(-24),
        _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rounds to a format of `digits` significant bits and least exponent `low`; its bits are made by
/// the caller from the value.
fn round_to(x: f64, digits: i32, low: i32, round: Round) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(low);
    let step = 2f64.powi(exponent - digits + 1);
    let scaled = x / step;
    step * match round {
        Round::Nearest => scaled.round_ties_even(),
        Round::Zero => scaled.trunc(),
        Round::Down => scaled.floor(),
        Round::Up => scaled.ceil(),
    }
}

pub fn f64_to_half(x: f64, round: Round) -> u16 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    if x.is_nan() {
        return 0x7fff;
    }
    let y = round_to(x, 11, -14, round).abs();
    if y > 65504.0 {
        let down = round == Round::Zero || round == Round::Down && x > 0.0 || round == Round::Up && x < 0.0;
        return sign | if down && x.is_finite() { 0x7bff } else { 0x7c00 };
    }
    if y < 2f64.powi(-14) {
        return sign | (y * 2f64.powi(24)) as u16;
    }
    let exponent = (y.to_bits() >> 52) as i32 - 1023;
    let fraction = (y * 2f64.powi(10 - exponent)) as u32 - 1024;
    sign | ((exponent + 15) as u16) << 10 | fraction as u16
}

pub fn f32_to_bf16(x: f32, round: Round) -> u16 {
    if x.is_nan() {
        return 0x7fff;
    }
    let bits = x.to_bits();
    let rounded = match round {
        Round::Nearest => bits.wrapping_add(0x7fff + (bits >> 16 & 1)),
        _ => bits,
    };
    (rounded >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fma_is_rounded_once() {
        let mut state = 1u64;
        for _ in 0..2_000_000 {
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let bits = (state >> 32) as u32;
                // Near exponents, so that the parts interact, and now and then any bits at all.
                if bits & 7 == 0 { bits } else { bits & 0x83ff_ffff | 0x3c00_0000 }
            };
            let [a, b, c] = [next(), next(), next()].map(f32::from_bits);
            let (mine, exact) = (fma32_by_64(a, b, c), canon(a.mul_add(b, c)));
            assert_eq!(mine.to_bits(), exact.to_bits(), "{a:e} {b:e} {c:e}");
        }
    }

    #[test]
    fn directed_rounding_brackets_the_exact_sum() {
        let tiny = f32::from_bits(1);
        assert_eq!(add32(1.0, tiny, Round::Up), 1.0f32.next_up());
        assert_eq!(add32(1.0, tiny, Round::Down), 1.0);
        assert_eq!(add32(1.0, -tiny, Round::Zero), 1.0f32.next_down());
        assert_eq!(add32(-1.0, tiny, Round::Zero), (-1.0f32).next_up());
        assert_eq!(add32(1.0, -1.0, Round::Down).to_bits(), 0x8000_0000);
        assert_eq!(mul32(f32::MAX, 2.0, Round::Zero), f32::MAX);
        assert_eq!(mul32(f32::MAX, 2.0, Round::Up), f32::INFINITY);
        assert_eq!(fma32_round(12102203.0 / 252.0, 0.0, 12582913.0, Round::Down), 12582913.0);
    }

    #[test]
    fn halves_round_trip() {
        for bits in 0..=u16::MAX {
            let x = half_to_f64(bits);
            if !x.is_nan() {
                assert_eq!(f64_to_half(x, Round::Nearest), bits);
            }
        }
        assert_eq!(f64_to_half(65519.9, Round::Nearest), 0x7bff);
        assert_eq!(f64_to_half(65520.0, Round::Nearest), 0x7c00);
        assert_eq!(f64_to_half(1.0 + 2f64.powi(-11), Round::Nearest), 0x3c00);
        assert_eq!(f64_to_half(1.0 + 2f64.powi(-11), Round::Up), 0x3c01);
        assert_eq!(f32_to_bf16(1.003_906_3, Round::Nearest), 0x3f80);
    }
}
