//! Numbers of every format, rounded once: the slow way that is right for all of them.

use super::soft::{Round, flush};

/// Bits of the exponent and of the fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub exponent: u32,
    pub fraction: u32,
}

pub const F16: Format = Format { exponent: 5, fraction: 10 };
pub const BF16: Format = Format { exponent: 8, fraction: 7 };
pub const F32: Format = Format { exponent: 8, fraction: 23 };
pub const F64: Format = Format { exponent: 11, fraction: 52 };

/// The digits of float32, but no lower end near its own.
const UNBOUNDED: Format = Format { exponent: 11, fraction: 23 };

/// (-1)^negative (m + d) 2^e, where d is 0, or within (0, 1) if `more` is set; then m has 60 bits or more.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    pub negative: bool,
    pub m: u128,
    pub e: i32,
    pub more: bool,
}

impl Exact {
    pub fn integer(x: i128) -> Exact {
        Exact { negative: x < 0, m: x.unsigned_abs(), e: 0, more: false }
    }

    /// The same number with bit 125 of m as its highest, so that sums fit.
    fn normal(self) -> Exact {
        let shift = self.m.leading_zeros() as i32 - 2;
        Exact { m: self.m << shift, e: self.e - shift, ..self }
    }

    /// Of numbers without `more`, whose m have up to 106 bits.
    pub fn plus(self, other: Exact, round: Round) -> Exact {
        let zero = |negative| Exact { negative, m: 0, e: 0, more: false };
        match (self.m, other.m) {
            (0, 0) if self.negative == other.negative => return self,
            (0, 0) => return zero(round == Round::Down),
            (0, _) => return other,
            (_, 0) => return self,
            _ => {}
        }
        let (a, b) = (self.normal(), other.normal());
        let (big, small) = if (a.e, a.m) >= (b.e, b.m) { (a, b) } else { (b, a) };
        let apart = (big.e - small.e) as u32;
        let low = small.m.checked_shr(apart).unwrap_or(0);
        let more = low.checked_shl(apart).unwrap_or(0) != small.m;
        let m = if big.negative == small.negative { big.m + low } else { big.m - low - u128::from(more) };
        if m == 0 { zero(round == Round::Down) } else { Exact { m, more, ..big } }
    }

    pub fn times(self, other: Exact) -> Exact {
        let negative = self.negative != other.negative;
        Exact { negative, m: self.m * other.m, e: self.e + other.e, more: false }
    }

    /// By a number that is not 0.
    pub fn over(self, other: Exact) -> Exact {
        let negative = self.negative != other.negative;
        let shift = self.m.leading_zeros().min(127);
        let whole = self.m << shift;
        let (m, rest) = (whole / other.m, whole % other.m);
        Exact { negative, m, e: self.e - other.e - shift as i32, more: rest != 0 }
    }

    /// Of a number that is not negative.
    pub fn root(self) -> Exact {
        if self.m == 0 {
            return self;
        }
        let most = self.m.leading_zeros() as i32;
        let shift = most - ((self.e - most) & 1);
        let whole = self.m << shift;
        let m = whole.isqrt();
        Exact { negative: self.negative, m, e: (self.e - shift) / 2, more: m * m != whole }
    }
}

/// A float32 result with .ftz: zero where it is below the normal range when rounded without a lower end.
pub fn ftz(result: f32, round: Round, exact: impl FnOnce() -> Option<Exact>) -> f32 {
    if result.abs() != f32::MIN_POSITIVE {
        return flush(result);
    }
    let digits = exact().map_or(1.0, |x| UNBOUNDED.value(UNBOUNDED.round(x, round)));
    if digits.abs() < f32::MIN_POSITIVE.into() { 0f32.copysign(result) } else { result }
}

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub const fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The NaN that arithmetic gives, but for float64's.
    pub const fn nan(self) -> u64 {
        self.sign() - 1
    }

    pub fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    /// A NaN in another format: sign and the upper bits of the fraction stay, and it is quiet.
    pub const fn quiet(self, to: Format, bits: u64) -> u64 {
        let aligned = (bits & ((1 << self.fraction) - 1)) << (52 - self.fraction) >> (52 - to.fraction);
        let sign = if bits & self.sign() != 0 { to.sign() } else { 0 };
        sign | to.infinity() | 1 << (to.fraction - 1) | aligned
    }

    /// A number or an infinity; every format fits into float64.
    pub fn value(self, bits: u64) -> f64 {
        let sign = if bits & self.sign() != 0 { F64.sign() } else { 0 };
        f64::from_bits(self.split(bits).map_or(sign | F64.infinity(), |x| F64.round(x, Round::Nearest)))
    }

    /// None for infinities and NaN.
    pub fn split(self, bits: u64) -> Option<Exact> {
        let negative = bits & self.sign() != 0;
        let biased = (bits >> self.fraction & ((1 << self.exponent) - 1)) as i32;
        let fraction = bits & ((1 << self.fraction) - 1);
        let m = if biased == 0 { fraction } else { fraction | 1 << self.fraction };
        let e = biased.max(1) - self.bias() - self.fraction as i32;
        (bits & self.infinity() != self.infinity()).then_some(Exact { negative, m: m.into(), e, more: false })
    }

    pub fn round(self, x: Exact, round: Round) -> u64 {
        let sign = if x.negative { self.sign() } else { 0 };
        if x.m == 0 {
            return sign;
        }
        let top = 127 - x.m.leading_zeros() as i32;
        // The unit in the last place of the result is 2^unit.
        let least = 1 - self.bias();
        let unit = (top + x.e).max(least) - self.fraction as i32;
        let shift = unit - x.e;
        let (mut q, rest, half) = if shift <= 0 {
            (x.m << -shift, 0, 1)
        } else if shift > 127 {
            (0, 1, u128::MAX)
        } else {
            (x.m >> shift, x.m & ((1 << shift) - 1), 1 << (shift - 1))
        };
        let inexact = rest != 0 || x.more;
        let up = match round {
            Round::Nearest => rest > half || rest == half && (x.more || q & 1 != 0),
            Round::Zero => false,
            Round::Down => x.negative && inexact,
            Round::Up => !x.negative && inexact,
        };
        q += u128::from(up);
        // The significand's highest bit counts as one of the exponent, so that carries need no case.
        let magnitude = ((unit + self.fraction as i32 - least) as u64) << self.fraction;
        let bits = magnitude + q as u64;
        if bits < self.infinity() {
            return sign | bits;
        }
        let stays =
            round == Round::Zero || round == Round::Down && !x.negative || round == Round::Up && x.negative;
        sign | (self.infinity() - u64::from(stays))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(x: f64) -> Exact {
        F64.split(x.to_bits()).unwrap()
    }

    #[test]
    fn nearest_agrees_with_the_processor() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bits = state ^ state >> 29;
            // Near exponents, now and then any bits at all.
            f64::from_bits(if bits & 7 == 0 {
                bits
            } else {
                bits & 0x83ff_ffff_ffff_ffff | 0x3c00_0000_0000_0000
            })
        };
        for _ in 0..200_000 {
            let [a, b, c] = [next(), next(), next()];
            if [a, b, c].iter().any(|x| !x.is_finite()) || b == 0.0 {
                continue;
            }
            let is = |x: Exact, want: f64, what: &str| {
                assert_eq!(F64.round(x, Round::Nearest), want.to_bits(), "{what} {a:e} {b:e} {c:e}");
            };
            is(split(a).plus(split(b), Round::Nearest), a + b, "sum");
            is(split(a).times(split(b)).plus(split(c), Round::Nearest), a.mul_add(b, c), "fma");
            is(split(a).over(split(b)), a / b, "quotient");
            is(split(a.abs()).root(), a.abs().sqrt(), "root");
            assert_eq!(F32.round(split(a), Round::Nearest), u64::from((a as f32).to_bits()), "{a:e}");
        }
    }

    #[test]
    fn directions_bracket() {
        let third = |round| f64::from_bits(F64.round(split(1.0).over(split(3.0)), round));
        assert_eq!(third(Round::Up), third(Round::Down).next_up());
        assert_eq!(third(Round::Zero), third(Round::Down));
        let sum = |round| f64::from_bits(F64.round(split(1.0).plus(split(-1e-300), round), round));
        assert_eq!((sum(Round::Down), sum(Round::Up)), (1f64.next_down(), 1.0));
        let zero = |round| F64.round(split(1.0).plus(split(-1.0), round), round);
        assert_eq!((zero(Round::Down), zero(Round::Up)), (1 << 63, 0));
        assert_eq!(F16.round(split(65519.9), Round::Nearest), 0x7bff);
        assert_eq!(F16.round(split(65520.0), Round::Nearest), 0x7c00);
        assert_eq!(F16.round(split(-1e9), Round::Zero), 0xfbff);
        assert_eq!(F16.round(split(1e-30), Round::Up), 1);
        assert_eq!(BF16.round(Exact::integer(257), Round::Nearest), 0x4380);
        assert_eq!(BF16.round(Exact::integer(-257), Round::Down), 0xc381);
    }
}
