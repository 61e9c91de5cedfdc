//! Scalar functions over float32 and float64, right over the whole range: NaN in gives NaN out, infinities give what
//! the defining formula gives in IEEE arithmetic, small results keep their digits.

use super::{Float, single};

/// Functions of the element type's own precision.
#[allow(missing_docs)]
pub trait Math: Float {
    fn exp(self) -> Self;
    fn exp_m1(self) -> Self;
    fn ln(self) -> Self;
    fn ln_1p(self) -> Self;
    fn sqrt(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    fn abs(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round(self) -> Self;
    fn gelu(self) -> Self;
    fn pow(self, exponent: Self) -> Self;
    /// The exact remainder of the truncated quotient.
    fn fmod(self, divisor: Self) -> Self;
}

/// Functions that std has.
macro_rules! of_std {
    ($type:ty: $($name:ident)*) => {$(
        fn $name(self) -> Self {
            <$type>::$name(self)
        }
    )*};
}

macro_rules! math {
    ($type:ty, $exp:path, $gelu:path, $erf:path, $asinh:path, $acosh:path, $atanh:path) => {
        impl Math for $type {
            of_std! { $type: tan asin acos atan sinh cosh }
            fn asinh(self) -> Self {
                $asinh(self)
            }
            fn acosh(self) -> Self {
                $acosh(self)
            }
            fn atanh(self) -> Self {
                $atanh(self)
            }
            fn fmod(self, divisor: Self) -> Self {
                self % divisor
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline(always)]
            fn gelu(self) -> Self {
                $gelu(self)
            }
            fn exp_m1(self) -> Self {
                <$type>::exp_m1(self)
            }
            fn ln(self) -> Self {
                <$type>::ln(self)
            }
            fn ln_1p(self) -> Self {
                <$type>::ln_1p(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$type>::sqrt(self)
            }
            fn tanh(self) -> Self {
                <$type>::tanh(self)
            }
            fn erf(self) -> Self {
                $erf(self)
            }
            fn sin(self) -> Self {
                <$type>::sin(self)
            }
            fn cos(self) -> Self {
                <$type>::cos(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$type>::abs(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                <$type>::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                <$type>::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                <$type>::round_ties_even(self)
            }
            fn pow(self, exponent: Self) -> Self {
                // The common one, and it is exact.
                if exponent == 2.0 { self * self } else { <$type>::powf(self, exponent) }
            }
        }
    };
}

// The inverse hyperbolic functions of std lose digits where results are small.
math!(f32, single::exp, single::gelu, libm::erff, libm::asinhf, libm::acoshf, libm::atanhf);
math!(f64, f64::exp, gelu, libm::erf, libm::asinh, libm::acosh, libm::atanh);

/// The larger value; NaN where either is NaN.
#[inline(always)]
pub fn max<T: Float>(a: T, b: T) -> T {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller value; NaN where either is NaN.
#[inline(always)]
pub fn min<T: Float>(a: T, b: T) -> T {
    if a < b || a.is_nan() { a } else { b }
}

/// max(x, 0); NaN stays.
#[inline(always)]
pub fn relu<T: Float>(x: T) -> T {
    if x <= T::ZERO { T::ZERO } else { x }
}

/// x, or alpha * x below 0.
#[inline(always)]
pub fn leaky_relu<T: Float>(x: T, alpha: T) -> T {
    if x < T::ZERO { alpha * x } else { x }
}

/// x, or alpha * (exp(x) - 1) below 0.
#[inline(always)]
pub fn elu<T: Math>(x: T, alpha: T) -> T {
    if x > T::ZERO { x } else { alpha * x.exp_m1() }
}

/// x, or alpha * (exp(x / alpha) - 1) below 0.
#[inline(always)]
pub fn celu<T: Math>(x: T, alpha: T) -> T {
    if x > T::ZERO { x } else { alpha * (x / alpha).exp_m1() }
}

/// x nearer to 0 by bias where it lies beyond lambd, else 0; NaN stays.
#[inline(always)]
pub fn shrink<T: Float>(x: T, bias: T, lambd: T) -> T {
    if x < -lambd {
        x + bias
    } else if x > lambd {
        x - bias
    } else if x.is_nan() {
        x
    } else {
        T::ZERO
    }
}

/// gamma * elu(x).
#[inline(always)]
pub fn selu<T: Math>(x: T, alpha: T, gamma: T) -> T {
    gamma * elu(x, alpha)
}

/// 1 / (1 + exp(-x)).
#[inline(always)]
pub fn sigmoid<T: Math>(x: T) -> T {
    let e = (-x.abs()).exp();
    if x >= T::ZERO { T::ONE / (T::ONE + e) } else { e / (T::ONE + e) }
}

/// x * sigmoid(x).
#[inline(always)]
pub fn silu<T: Math>(x: T) -> T {
    x * sigmoid(x)
}

/// x * Phi(x) for the normal distribution's Phi, computed in float64.
pub fn gelu<T: Float>(x: T) -> T {
    const HIGH: f64 = std::f64::consts::FRAC_1_SQRT_2;
    const LOW: f64 = -4.833_646_656_726_457e-17;
    let x = x.to_f64();
    let z = -x * HIGH;
    let mut tail = libm::erfc(z);
    if z > 1.0 && z < 40.0 {
        // The rounding of z, which erfc's slope magnifies where the tail is small.
        let rest = (-x).mul_add(HIGH, -z) - x * LOW;
        tail -= rest * std::f64::consts::FRAC_2_SQRT_PI * (-z * z).exp();
    }
    T::from_f64(0.5 * x * tail)
}

/// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) as x * sigmoid(2 u), computed in float64.
pub fn gelu_tanh<T: Float>(x: T) -> T {
    let x = x.to_f64();
    let twice = x * (x * x).mul_add(0.071_354_816_272_600_25, 1.595_769_121_605_730_8);
    T::from_f64(x * sigmoid(twice))
}

/// log(1 + exp(x)).
#[inline(always)]
pub fn softplus<T: Math>(x: T) -> T {
    let positive = if x > T::ZERO { x } else { T::ZERO };
    positive + (-x.abs()).exp().ln_1p()
}

/// x * tanh(softplus(x)), as a ratio of polynomials in exp(-|x|) so that neither tail cancels.
#[inline(always)]
pub fn mish<T: Math>(x: T) -> T {
    let two = T::ONE + T::ONE;
    let w = (-x.abs()).exp();
    if x >= T::ZERO {
        let above = two * w + T::ONE;
        x * (above / (two * w * w + above))
    } else {
        let below = w * (w + two);
        x * (below / (below + two))
    }
}

/// max(x, low), then min with high: high where low > high; NaN stays.
#[inline(always)]
pub fn clip<T: Float>(x: T, low: T, high: T) -> T {
    let y = if x < low { low } else { x };
    if y > high { high } else { y }
}

/// alpha * x + beta within [0, 1].
#[inline(always)]
pub fn hard_sigmoid<T: Float>(x: T, alpha: T, beta: T) -> T {
    clip(alpha * x + beta, T::ZERO, T::ONE)
}

/// x * clip(x + 3, 0, 6) / 6: x + 3 is exact where it is small.
#[inline(always)]
pub fn hard_swish<T: Float>(x: T) -> T {
    let six = T::from_f64(6.0);
    x * (clip(x + T::from_f64(3.0), T::ZERO, six) / six)
}

/// -1, 0 or 1; NaN stays.
#[inline(always)]
pub fn sign<T: Float>(x: T) -> T {
    if x > T::ZERO {
        T::ONE
    } else if x < T::ZERO {
        -T::ONE
    } else {
        x
    }
}

/// Sum in float64 over 16 lanes, which vectorise and keep the rounding of long sums small.
#[inline(always)]
pub fn sum_f64<T: Float>(values: &[T], term: impl Fn(T) -> f64) -> f64 {
    let mut lanes = [0.0; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += term(value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane += term(value);
    }
    for half in [8, 4, 2, 1] {
        for k in 0..half {
            lanes[k] += lanes[k + half];
        }
    }
    lanes[0]
}

/// Largest element over 16 lanes, -Infinity for none; NaN where `join` passes it on.
#[inline(always)]
pub fn fold_max<T: Float>(values: &[T], join: impl Fn(T, T) -> T) -> T {
    let mut lanes = [-T::INFINITY; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = join(*lane, value);
        }
    }
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = join(*lane, value);
    }
    lanes.into_iter().fold(-T::INFINITY, &join)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_passes_through_the_piecewise_functions() {
        for value in [relu(f32::NAN), leaky_relu(f32::NAN, 0.1), clip(f32::NAN, -1.0, 1.0), sign(f32::NAN)] {
            assert!(value.is_nan());
        }
        for value in [max(f64::NAN, 1.0), max(1.0, f64::NAN), min(f64::NAN, 1.0), min(1.0, f64::NAN)] {
            assert!(value.is_nan());
        }
        assert_eq!(relu(-0.0f32).to_bits(), 0.0f32.to_bits());
        assert_eq!(clip(0.5, 1.0, -1.0), -1.0);
    }

    #[test]
    fn tails_keep_their_digits() {
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 4e-15, "{got} {want}");
        // From 60-digit arithmetic.
        close(gelu(-10.0), -7.619_853_024_160_525e-23);
        close(gelu(-30.0), -1.472_014_178_144_456e-196);
        close(softplus(-700.0), 9.859_676_543_759_77e-305);
        close(mish(-700.0), -700.0 * 9.859_676_543_759_77e-305);
        close(sigmoid(-50.0), 1.928_749_847_963_917_8e-22);
        assert_eq!(mish(500.0), 500.0);
        assert_eq!(softplus(800.0), 800.0);
        assert!(gelu(f64::NEG_INFINITY).is_nan() && gelu(f64::INFINITY) == f64::INFINITY);
    }

    #[test]
    fn lanes_cover_every_length() {
        for n in 0..70 {
            let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
            assert_eq!(sum_f64(&values, f64::from), (n * (n - 1) / 2) as f64);
            let most = if n == 0 { f32::NEG_INFINITY } else { (n - 1) as f32 };
            assert_eq!(fold_max(&values, max), most);
        }
    }
}
