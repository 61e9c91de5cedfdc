//! Functions of float32 without branches or calls, so that loops over them become vectors. Errors are a few units in the
//! last place; nothing is contracted, so results do not depend on the processor.

/// Adding this leaves the nearest whole number in the lowest bits.
const SHIFT: f32 = 12_582_912.0;
const SHIFT_WIDE: f64 = 6_755_399_441_055_744.0;
/// ln 2 in two parts, the first of which is exact times small whole numbers.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
const LN_2_WIDE: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];

/// (e^r - 1 - r) / r^2 for |r| up to ln(2) / 2, and the same for float64, to 2^-40.
const EXP: [f32; 6] = [0.5, 0.166_666_67, 0.041_666_27, 0.008_333_264, 0.001_394_610_5, 0.000_199_183_87];
const EXP_WIDE: [f64; 7] = [
    0.499_999_999_995_184_8,
    0.166_666_667_868_340_17,
    0.041_666_667_054_843_155,
    0.008_333_281_211_461_138,
    0.001_388_879_631_993_312,
    0.000_199_092_825_371_768_43,
    2.488_765_945_045_950_8e-5,
];

/// ln(erfc(z) e^(z^2) / t) for t = 1 / (1 + z / 2), to 2^-26.
const ERFC: [f64; 11] = [
    -1.265_561_911_480_443_7,
    1.001_433_524_737_712_4,
    0.357_144_392_789_474_63,
    0.210_020_578_694_579_2,
    -0.652_470_366_052_429_5,
    1.519_224_835_441_678,
    -3.306_082_358_965_427_6,
    3.969_454_756_057_180_2,
    -2.602_869_969_412_369,
    0.899_061_292_452_310_2,
    -0.129_354_766_594_738_07,
];

/// e^x: from denormal numbers to infinity.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Beyond these the result is 0 or infinity; NaN stays.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let times = shifted - SHIFT;
    let r = (x - times * LN_2[0]) - times * LN_2[1];
    let power = EXP.iter().rev().fold(0.0, |sum, &factor| sum * r + factor) * (r * r) + r + 1.0;
    // In two steps, because 2^128 and 2^-150 are no numbers.
    let exponent = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    let half = exponent >> 1;
    let two_to = |exponent: i32| f32::from_bits((exponent.wrapping_add(127) as u32) << 23);
    power * two_to(half) * two_to(exponent.wrapping_sub(half))
}

/// e^x for x up to 700, to 2^-38.
#[inline(always)]
fn exp_wide(x: f64) -> f64 {
    let x = if x < -700.0 { -700.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + SHIFT_WIDE;
    let times = shifted - SHIFT_WIDE;
    let r = (x - times * LN_2_WIDE[0]) - times * LN_2_WIDE[1];
    let power = EXP_WIDE.iter().rev().fold(0.0, |sum, &factor| sum * r + factor) * (r * r) + r + 1.0;
    let exponent = (shifted.to_bits() as i64).wrapping_sub(SHIFT_WIDE.to_bits() as i64);
    power * f64::from_bits((exponent.wrapping_add(1023) as u64) << 52)
}

/// x * Phi(x) for the normal distribution's Phi; both tails keep their digits.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let x = f64::from(x);
    let z = x.abs() * std::f64::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let logarithm = ERFC.iter().rev().fold(0.0, |sum, &factor| sum * t + factor) - z * z;
    let tail = 0.5 * t * exp_wide(logarithm);
    (x * if x < 0.0 { tail } else { 1.0 - tail }) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::math;

    /// The distance in units in the last place, of the smallest normal numbers below them.
    fn units(got: f32, want: f64) -> f64 {
        let unit = f64::from(f32::EPSILON) * 2f64.powi((want.abs().log2().floor() as i32).max(-126));
        (f64::from(got) - want).abs() / unit
    }

    #[test]
    fn errors_are_a_few_units() {
        for step in -120_000..120_000 {
            let x = step as f32 * 1e-3 + 1e-5;
            let want = f64::from(x).exp();
            if want < f64::from(f32::MAX) {
                assert!(units(exp(x), want) < 2.0, "exp({x}) = {}", exp(x));
            }
            let (got, want) = (gelu(x), math::gelu(f64::from(x)));
            assert!(units(got, want) < 2.0, "gelu({x}) = {got}, not {want}");
        }
    }

    #[test]
    fn ends_are_those_of_the_formulas() {
        assert_eq!(
            [-200.0, f32::NEG_INFINITY, 0.0, 89.0, f32::INFINITY].map(exp),
            [0.0, 0.0, 1.0, f32::INFINITY, f32::INFINITY]
        );
        assert!(exp(f32::NAN).is_nan() && gelu(f32::NAN).is_nan() && gelu(f32::NEG_INFINITY).is_nan());
        assert_eq!([f32::INFINITY, 0.0, -0.0, 200.0].map(gelu), [f32::INFINITY, 0.0, 0.0, 200.0]);
        assert_eq!(exp(-103.0), (-103f64).exp() as f32);
    }
}
