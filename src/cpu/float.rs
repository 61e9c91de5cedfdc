//! What generic CPU code needs of float32 and float64.

/// A float element type.
pub trait Float:
    bytemuck::Pod
    + Send
    + Sync
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::fmt::Debug
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// The quiet NaN that results carry.
    const NAN: Self;
    /// Nearest value of this type.
    fn from_f64(value: f64) -> Self;
    /// Exact value as float64.
    fn to_f64(self) -> f64;
    /// Whether the value is NaN.
    fn is_nan(self) -> bool;
}

macro_rules! float {
    ($type:ty) => {
        impl Float for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = <$type>::INFINITY;
            const NAN: Self = <$type>::NAN;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }
        }
    };
}

float!(f32);
float!(f64);
