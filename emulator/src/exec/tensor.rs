//! Sums of products as the tensor cores make them, fitted to an H200 bit for bit.
//!
//! All products and the addend are aligned to the largest exponent (a product's is the sum of its factors'), cut
//! two bits below float32's significand, and summed exactly. A float32 result is cut again, one of float16 rounded
//! to nearest; beyond the range both are infinite.

use super::exact::{Exact, F16, F32, Format};
use super::soft::{Round, half_to_f32};

pub const TF32: Format = Format { exponent: 8, fraction: 10 };

/// The most products of one sum.
pub const DEPTH: usize = 16;

/// Bits that are kept below the largest exponent.
const KEPT: i32 = 25;

/// Far below the exponent of any product.
const NOTHING: i32 = -10_000;

/// Factors of up to 16 products: m * 2^e each, and whether some are infinite or NaN.
#[derive(Clone, Copy)]
pub struct Factors {
    m: [i32; DEPTH],
    e: [i32; DEPTH],
    bits: [u32; DEPTH],
    wild: bool,
}

impl Factors {
    pub const NONE: Factors = Factors { m: [0; DEPTH], e: [NOTHING; DEPTH], bits: [0; DEPTH], wild: false };

    pub fn set(&mut self, at: usize, format: Format, bits: u32) {
        self.bits[at] = bits;
        match format.split(bits.into()) {
            Some(x) => {
                self.m[at] = if x.negative { -(x.m as i32) } else { x.m as i32 };
                self.e[at] = if x.m == 0 { NOTHING } else { x.e };
            }
            None => self.wild = true,
        }
    }

    fn value(&self, at: usize, format: Format) -> f64 {
        let bits = self.bits[at].into();
        if format.is_nan(bits) { f64::NAN } else { format.value(bits) }
    }
}

/// p * 2^by, towards zero.
fn cut(p: i32, by: i32) -> i32 {
    let magnitude = if by < 0 { p.abs() >> (-by).min(31) } else { p.abs() << by.min(31) };
    if p < 0 { -magnitude } else { magnitude }
}

/// The sum of what is kept, exactly.
fn total(factors: Format, a: &Factors, b: &Factors, c: Exact) -> Exact {
    let (mut products, mut exponents) = ([0; DEPTH], [0; DEPTH]);
    let addend = if c.negative { -(c.m as i32) } else { c.m as i32 };
    let mut most = if c.m == 0 { NOTHING } else { c.e + 23 };
    for k in 0..DEPTH {
        products[k] = a.m[k] * b.m[k];
        exponents[k] = a.e[k] + b.e[k];
        most = most.max(exponents[k] + 2 * factors.fraction as i32);
    }
    let unit = most - KEPT;
    let mut sum = i64::from(cut(addend, c.e - unit));
    for k in 0..DEPTH {
        sum += i64::from(cut(products[k], exponents[k] - unit));
    }
    Exact { negative: sum < 0, m: sum.unsigned_abs().into(), e: unit, more: false }
}

/// A sum that an infinity or a NaN takes part in.
fn special(factors: Format, a: &Factors, b: &Factors, c: f32, to: Format) -> u64 {
    let products = (0..DEPTH).map(|k| a.value(k, factors) * b.value(k, factors));
    let sum = products.sum::<f64>() + f64::from(c);
    if sum.is_nan() { to.nan() } else { to.infinity() | if sum < 0.0 { to.sign() } else { 0 } }
}

fn finish(factors: Format, a: &Factors, b: &Factors, c: f32, to: Format) -> u64 {
    let addend = F32.split(c.to_bits().into()).filter(|_| !a.wild && !b.wild);
    let Some(addend) = addend else { return special(factors, a, b, c, to) };
    let sum = total(factors, a, b, addend);
    if to != F32 {
        return to.round(sum, Round::Nearest);
    }
    let beyond = sum.m != 0 && sum.m.ilog2() as i32 + sum.e > 127;
    if beyond { to.infinity() | if sum.negative { to.sign() } else { 0 } } else { to.round(sum, Round::Zero) }
}

pub fn sum32(factors: Format, a: &Factors, b: &Factors, c: f32) -> f32 {
    f32::from_bits(finish(factors, a, b, c, F32) as u32)
}

/// With a float16 as the addend and for the result.
pub fn sum16(factors: Format, a: &Factors, b: &Factors, c: u16) -> u16 {
    finish(factors, a, b, half_to_f32(c), F16) as u16
}
