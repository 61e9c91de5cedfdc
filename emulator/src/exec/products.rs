//! Rows of sums of products as the tensor cores make them, many columns at a time.
//!
//! All products and the addend are aligned to the largest exponent (a product's is the sum of its factors'), cut two
//! bits below float32's significand, and summed exactly; the sum is cut again, and infinite where it leaves the range.
//! That gives the bits of wgmma on an H200 (the example `hopper`); a sum that is cut to nothing is +0 there.

use super::exact::{BF16, F16, Format};
use super::soft::canon;
use super::tensor::TF32;

/// The most products of one sum.
const DEPTH: usize = 16;
/// Columns that are summed together.
const STRIP: usize = 8;

/// The type of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F16,
    Bf16,
    Tf32,
}

/// Far below the exponent of any product.
const NOTHING: i32 = -10_000;
/// Bits that are kept below the largest exponent.
const KEPT: i32 = 25;

impl Kind {
    const fn format(self) -> Format {
        match self {
            Kind::F16 => F16,
            Kind::Bf16 => BF16,
            Kind::Tf32 => TF32,
        }
    }

    /// The bit of an element's sign.
    fn sign(self) -> u32 {
        if self == Kind::Tf32 { 1 << 31 } else { 1 << 15 }
    }

    /// The value of a raw element; those of tf32 are the upper bits of a float32.
    fn value(self, raw: u32) -> f64 {
        let bits = u64::from(if self == Kind::Tf32 { raw >> 13 } else { raw });
        let format = self.format();
        if format.is_nan(bits) { f64::NAN } else { format.value(bits) }
    }
}

/// Elements as m * 2^(e - FRACTION), m an integer; whether they are infinite or NaN. LOST bits are cut off below.
#[inline(always)]
fn split<const EXPONENT: u32, const FRACTION: u32, const LOST: u32>(
    raw: &[u32; STRIP],
) -> ([i32; STRIP], [i32; STRIP], [bool; STRIP]) {
    let (mut m, mut e, mut wild) = ([0; STRIP], [0; STRIP], [false; STRIP]);
    let (top, bias) = ((1 << EXPONENT) - 1, (1 << (EXPONENT - 1)) - 1);
    for j in 0..STRIP {
        let raw = raw[j] >> LOST;
        let biased = (raw >> FRACTION & top) as i32;
        let low = (raw & ((1 << FRACTION) - 1)) as i32;
        let magnitude = if biased == 0 { low } else { low | 1 << FRACTION };
        wild[j] = biased == top as i32;
        let nothing = magnitude == 0 || wild[j];
        let sign = -((raw >> (EXPONENT + FRACTION) & 1) as i32);
        m[j] = if nothing { 0 } else { (magnitude ^ sign) - sign };
        e[j] = if nothing { NOTHING } else { biased.max(1) - bias };
    }
    (m, e, wild)
}

/// The factors of some lines, eight lines side by side: for each eight the places along the sum.
#[derive(Default)]
pub struct Factors {
    m: Vec<[i32; STRIP]>,
    e: Vec<[i32; STRIP]>,
    raw: Vec<[u32; STRIP]>,
    /// Of each line, whether some are infinite or NaN.
    wild: Vec<bool>,
}

impl Factors {
    /// Takes raw elements, `lines` of them at each place along the sum; `negative` turns their signs.
    pub fn fill(&mut self, kind: Kind, lines: usize, raw: &[u32], negative: bool) {
        let flip = if negative { kind.sign() } else { 0 };
        let depth = raw.len() / lines.max(1);
        self.m.resize(raw.len() / STRIP, [0; STRIP]);
        self.e.resize(raw.len() / STRIP, [0; STRIP]);
        self.raw.resize(raw.len() / STRIP, [0; STRIP]);
        self.wild.clear();
        self.wild.resize(lines, false);
        let split = match kind {
            Kind::F16 => split::<5, 10, 0>,
            Kind::Bf16 => split::<8, 7, 0>,
            Kind::Tf32 => split::<8, 10, 13>,
        };
        for (k, place) in raw.chunks_exact(lines.max(1)).enumerate() {
            for (strip, from) in place.as_chunks::<STRIP>().0.iter().enumerate() {
                let at = strip * depth + k;
                self.raw[at] = from.map(|raw| raw ^ flip);
                let wild;
                (self.m[at], self.e[at], wild) = split(&self.raw[at]);
                if wild.contains(&true) {
                    self.wild[strip * STRIP..][..STRIP]
                        .iter_mut()
                        .zip(wild)
                        .for_each(|(all, one)| *all |= one);
                }
            }
        }
    }

    fn values(&self, kind: Kind, depth: usize, line: usize) -> impl Iterator<Item = f64> {
        let strip = &self.raw[line / STRIP * depth..][..depth];
        strip.iter().map(move |raw| kind.value(raw[line % STRIP]))
    }
}

fn power(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// Towards zero, but to infinity beyond the largest number.
#[inline(always)]
fn cut(x: f64) -> f32 {
    let low = (x * power(149)).trunc() * power(-149);
    let high = f64::from_bits(x.to_bits() & !0x1fff_ffff);
    (if x.abs() < f64::from(f32::MIN_POSITIVE) { low } else { high }) as f32
}

/// A sum as float32; one that is cut to nothing loses its sign.
pub fn single(x: f64) -> f32 {
    canon(cut(x)) + 0.0
}

/// p * 2^(25 - 2 * fraction) >> by, towards zero.
#[inline(always)]
fn aligned(p: i32, left: u32, by: i32) -> i32 {
    let sign = p >> 31;
    let magnitude = (p.unsigned_abs() << left) >> by.clamp(0, 31) as u32;
    (magnitude as i32 ^ sign).wrapping_sub(sign)
}

/// Sums of a row of A with each column of B, on the addends; `finish` makes results of them.
pub fn row<T>(
    kind: Kind,
    depth: usize,
    (a, row): (&Factors, usize),
    b: &Factors,
    addends: &[f32],
    finish: impl Fn(f64) -> T,
    out: &mut [T],
) {
    let left = KEPT as u32 - 2 * kind.format().fraction;
    let own = |values: &[[i32; STRIP]]| -> [i32; DEPTH] {
        let strip = &values[row / STRIP * depth..][..depth];
        std::array::from_fn(|k| strip.get(k).map_or(0, |line| line[row % STRIP]))
    };
    let (am, ae) = (own(&a.m), own(&a.e));
    let strips = b.m.chunks_exact(depth).zip(b.e.chunks_exact(depth));
    let results = addends.as_chunks::<STRIP>().0.iter().zip(out.as_chunks_mut::<STRIP>().0);
    for (strip, ((bm, be), (c, out))) in strips.zip(results).enumerate() {
        let mut most = [NOTHING; STRIP];
        for j in 0..STRIP {
            let biased = (c[j].to_bits() >> 23 & 255) as i32;
            most[j] = if c[j] == 0.0 { NOTHING } else { biased.max(1) - 127 };
        }
        for (e, own) in be.iter().zip(ae) {
            for j in 0..STRIP {
                most[j] = most[j].max(own + e[j]);
            }
        }
        let mut sum = [0i32; STRIP];
        for ((m, e), (own_m, own_e)) in bm.iter().zip(be).zip(am.iter().zip(ae)) {
            for j in 0..STRIP {
                sum[j] += aligned(own_m * m[j], left, most[j] - own_e - e[j]);
            }
        }
        let mut exact = [0.0; STRIP];
        for j in 0..STRIP {
            let unit = most[j].max(-500) - KEPT;
            let total = f64::from(sum[j]) + (f64::from(c[j]) * power(-unit)).trunc();
            exact[j] = total * power(unit);
        }
        let wild = a.wild[row] || b.wild[strip * STRIP..][..STRIP].contains(&true);
        if wild || c.iter().any(|c| !c.is_finite()) {
            for j in 0..STRIP {
                special(kind, depth, (a, row), (b, strip * STRIP + j), c[j], &mut exact[j]);
            }
        }
        for j in 0..STRIP {
            out[j] = finish(exact[j]);
        }
    }
}

/// A sum that an infinity or a NaN takes part in, if one does.
#[cold]
fn special(kind: Kind, depth: usize, a: (&Factors, usize), b: (&Factors, usize), c: f32, to: &mut f64) {
    if !(a.0.wild[a.1] || b.0.wild[b.1]) && c.is_finite() {
        return;
    }
    let products = a.0.values(kind, depth, a.1).zip(b.0.values(kind, depth, b.1)).map(|(x, y)| x * y);
    *to = products.sum::<f64>() + f64::from(c);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::soft::half_to_f32;
    use crate::exec::tensor::{self, sum16, sum32};
    use crate::exec::warpgroup::half_of;

    /// Elements with these bits set and others cut off, some of them any bits.
    fn raw(count: usize, keep: u32, set: u32, state: &mut u64) -> Vec<u32> {
        let mut next = || {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (*state >> 33) as u32 | (*state >> 60) as u32 >> 3 << 31
        };
        let mut one = || if next() % 199 == 0 { next() } else { next() & keep | set };
        (0..count).map(|_| one()).collect()
    }

    #[test]
    fn many_columns_give_what_single_sums_give() {
        let mut state = 1;
        for (kind, depth) in [(Kind::F16, 16), (Kind::Bf16, 16), (Kind::Tf32, 8)] {
            let mask = if kind == Kind::Tf32 { u32::MAX } else { 0xffff };
            for (keep, set) in [(u32::MAX, 0), (0x83ff_83ff, 0x3c00_3c00), (0xbfff_bfff, 0), (0x80ff_80ff, 0)]
            {
                let lines = |state: &mut u64, count| -> Vec<u32> {
                    raw(count, keep, set, state).iter().map(|x| x & mask).collect()
                };
                let (a, b) = (lines(&mut state, 16 * depth), lines(&mut state, 24 * depth));
                let c: Vec<f32> =
                    raw(24, 0xbfff_ffff, 0, &mut state).into_iter().map(f32::from_bits).collect();
                let [mut rows, mut columns] = [Factors::default(), Factors::default()];
                rows.fill(kind, 16, &a, false);
                columns.fill(kind, 24, &b, false);
                let one = |raw: &[u32], lines: usize, line: usize| {
                    let mut factors = tensor::Factors::NONE;
                    for k in 0..depth {
                        let bits = raw[k * lines + line];
                        factors.set(k, kind.format(), if kind == Kind::Tf32 { bits >> 13 } else { bits });
                    }
                    factors
                };
                for line in 0..16 {
                    let (mut out, mut halves) = ([0; 24], [0; 24]);
                    row(kind, depth, (&rows, line), &columns, &c, |x| single(x).to_bits(), &mut out);
                    let short: Vec<f32> = c.iter().map(|c| half_to_f32(c.to_bits() as u16)).collect();
                    row(kind, depth, (&rows, line), &columns, &short, half_of, &mut halves);
                    for column in 0..24 {
                        let (x, y) = (one(&a, 16, line), one(&b, 24, column));
                        let want = sum32(kind.format(), &x, &y, c[column]) + 0.0;
                        assert_eq!(out[column], want.to_bits(), "{kind:?} {keep:x} {line} {column}");
                        let want = sum16(kind.format(), &x, &y, c[column].to_bits() as u16);
                        let want = if want == 0x8000 { 0 } else { want.into() };
                        assert_eq!(halves[column], want, "{kind:?} {keep:x} {line} {column}");
                    }
                }
            }
        }
    }
}
