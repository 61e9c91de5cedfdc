//! Floating point as the card rounds it.
//!
//! Approximate instructions (ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh .approx) are computed in
//! float64 and rounded to nearest, which is within the bound that PTX documents for each; with
//! `Checks::perturb_approximate` the float32 on the other side of the true value is taken, an
//! error below one unit in the last place.

/// The NaN that float32 arithmetic gives.
pub const NAN32: u32 = 0x7fff_ffff;

/// The NaN that float64 arithmetic makes of numbers.
const NAN64: u64 = 0xfff8 << 48;

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

/// A float64 result with the card's bits where it is NaN: the last of the operands that is NaN, made quiet.
#[inline(always)]
pub fn nan64<const N: usize>(result: f64, operands: [f64; N]) -> f64 {
    let mut bits = NAN64;
    for x in operands {
        bits = if x.is_nan() { x.to_bits() | 1 << 51 } else { bits };
    }
    f64::from_bits(if result.is_nan() { bits } else { result.to_bits() })
}

pub fn add64(a: f64, b: f64) -> f64 {
    nan64(a + b, [a, b])
}

#[inline(always)]
pub fn fma64(a: f64, b: f64, c: f64) -> f64 {
    nan64(a.mul_add(b, c), [a, c, b])
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
    if round == Round::Nearest { canon(a + b) } else { fma32_round(a, 1.0, b, round) }
}

pub fn mul32(a: f32, b: f32, round: Round) -> f32 {
    if round == Round::Nearest {
        return canon(a * b);
    }
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

/// The upper 32 bits of a float64, all that rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 see and keep.
pub fn upper(x: f64) -> f64 {
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
    let least = if a.is_nan() || b < a || b == a && b.is_sign_negative() { b } else { a };
    nan64(least, [b])
}

pub fn max64(a: f64, b: f64) -> f64 {
    let most = if a.is_nan() || b > a || b == a && a.is_sign_negative() { b } else { a };
    nan64(most, [b])
}

/// The float64 rounded to odd, so that a later rounding to fewer digits is the only one.
pub fn odd32(x: f64) -> f32 {
    let near = x as f32;
    let (bits, wide) = (near.to_bits(), f64::from(near));
    if wide == x || bits & 1 == 1 || !near.is_finite() {
        return near;
    }
    f32::from_bits(if x.abs() > wide.abs() { bits + 1 } else { bits - 1 })
}

pub fn half_to_f32(bits: u16) -> f32 {
    let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    let magnitude = match rest {
        0x7c01.. => return f32::from_bits(NAN32),
        0x7c00 => f32::INFINITY,
        _ => f32::from_bits(rest << 13) * 2f32.powi(112),
    };
    f32::from_bits(sign | magnitude.to_bits())
}

/// Subnormals to zero of the same sign.
pub fn flush16(bits: u16) -> u16 {
    if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

/// To nearest.
pub fn f32_to_half(x: f32) -> u16 {
    let (sign, rest) = ((x.to_bits() >> 16) as u16 & 0x8000, x.to_bits() & 0x7fff_ffff);
    sign | match rest {
        0x7f80_0001.. => return 0x7fff,
        0x4780_0000.. => 0x7c00,
        0x3880_0000.. => ((rest - 0x3800_0000 + 0xfff + (rest >> 13 & 1)) >> 13) as u16,
        // A unit in the last place of 0.5 is the least subnormal.
        _ => (f32::from_bits(rest) + 0.5).to_bits() as u16,
    }
}

pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// To nearest.
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() { 0x7fff } else { (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16 }
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
        use crate::exec::exact::{BF16, F16, F64};
        for bits in 0..=u16::MAX {
            let (half, brain) = (half_to_f32(bits), bf16_to_f32(bits));
            assert_eq!(f32_to_half(half), if half.is_nan() { 0x7fff } else { bits });
            assert_eq!(f32_to_bf16(brain), if brain.is_nan() { 0x7fff } else { bits });
            // Between this number and the next, and just beside the middle.
            let next = half_to_f32(bits.wrapping_add(1));
            let middle = (f64::from(half) + f64::from(next)) / 2.0;
            for x in [middle.next_down(), middle, middle.next_up(), f64::from(half) * 1.2] {
                if let Some(exact) = F64.split(x.to_bits()) {
                    assert_eq!(u64::from(f32_to_half(odd32(x))), F16.round(exact, Round::Nearest), "{x:e}");
                    assert_eq!(u64::from(f32_to_bf16(odd32(x))), BF16.round(exact, Round::Nearest), "{x:e}");
                }
            }
        }
    }
}
