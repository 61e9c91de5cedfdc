//! Whole numbers: what generic CPU code needs of the eight types, and the functions that elementwise ops apply to them.
//!
//! Arithmetic wraps. A division by 0 gives 0, so that neither device ends for it.

use super::scalar::*;

/// A type of whole numbers.
#[allow(missing_docs)]
pub trait Whole: bytemuck::Pod + Send + Sync + Ord + std::fmt::Debug {
    const ZERO: Self;
    const ONE: Self;
    const SIGNED: bool;
    const LEAST: Self;
    const MOST: Self;
    /// The number in 64 bits, which are those of an int64 where the type has a sign.
    fn widened(self) -> u64;
    /// The low bits of such a number.
    fn cut(bits: u64) -> Self;
    /// The nearest of the range, towards 0.
    fn from_f64(value: f64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Truncated; 0 where `other` is.
    fn quotient(self, other: Self) -> Self;
    /// Of the truncated quotient, with this number's sign; 0 where `other` is.
    fn remainder(self, other: Self) -> Self;
    fn power(self, exponent: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    /// 0 from as many places on as the type has bits.
    fn left(self, places: Self) -> Self;
    /// 0 from as many places on as the type has bits.
    fn right(self, places: Self) -> Self;
}

macro_rules! wholes {
    ($($type:ty)*) => {$(
        impl Whole for $type {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const SIGNED: bool = <$type>::MIN != 0;
            const LEAST: Self = <$type>::MIN;
            const MOST: Self = <$type>::MAX;
            fn widened(self) -> u64 {
                self as u64
            }
            fn cut(bits: u64) -> Self {
                bits as $type
            }
            #[inline]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline]
            fn quotient(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline]
            fn power(self, exponent: Self) -> Self {
                if exponent < 0 as $type {
                    // 1 / x^n is whole for 1 and -1 alone.
                    let even = exponent & 1 == 0;
                    let minus_one = Self::SIGNED && self == !0;
                    return if self == 1 || (minus_one && even) { 1 } else if minus_one { self } else { 0 };
                }
                let (mut result, mut base, mut rest) = (1 as $type, self, exponent);
                while rest != 0 {
                    if rest & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    rest >>= 1;
                }
                result
            }
            #[inline]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline]
            fn not(self) -> Self {
                !self
            }
            #[inline]
            fn left(self, places: Self) -> Self {
                u32::try_from(places).ok().and_then(|places| self.checked_shl(places)).unwrap_or(0)
            }
            #[inline]
            fn right(self, places: Self) -> Self {
                u32::try_from(places).ok().and_then(|places| self.checked_shr(places)).unwrap_or(0)
            }
        }
    )*};
}

wholes! { i64 i32 i16 i8 u64 u32 u16 u8 }

/// A function of up to three whole numbers, and of up to two more that stay the same for a whole call.
pub trait WholeScalar: Named {
    /// The result.
    fn whole<T: Whole>(operands: [T; 3], parameters: [T; 2]) -> T;
}

/// Calls a generic function with the Rust type of a dtype of whole numbers; bool's bytes are numbers without a sign.
macro_rules! for_whole {
    ($dtype:expr, $function:ident $(::<$first:ty>)? ($($argument:expr),* $(,)?)) => {
        match $dtype {
            $crate::DType::I64 => $function::<$($first,)? i64>($($argument),*),
            $crate::DType::I32 => $function::<$($first,)? i32>($($argument),*),
            $crate::DType::I16 => $function::<$($first,)? i16>($($argument),*),
            $crate::DType::I8 => $function::<$($first,)? i8>($($argument),*),
            $crate::DType::U64 => $function::<$($first,)? u64>($($argument),*),
            $crate::DType::U32 => $function::<$($first,)? u32>($($argument),*),
            $crate::DType::U16 => $function::<$($first,)? u16>($($argument),*),
            _ => $function::<$($first,)? u8>($($argument),*),
        }
    };
}
pub(crate) use for_whole;

/// `Type |operands, parameters| result;`, with `"name" operands cost` where floats have no such function.
macro_rules! functions {
    ($($type:ident $($name:literal $count:literal $cost:literal)?
        |$operands:pat_param, $parameters:pat_param| $body:expr;)*) => {$(
        $(named! { $type $name $count $cost })?
        impl WholeScalar for $type {
            #[inline]
            fn whole<T: Whole>($operands: [T; 3], $parameters: [T; 2]) -> T {
                $body
            }
        }
    )*};
}

#[rustfmt::skip]
functions! {
    Add |[a, b, _], _| a.plus(b);
    Sub |[a, b, _], _| a.minus(b);
    Mul |[a, b, _], _| a.times(b);
    Div |[a, b, _], _| a.quotient(b);
    Pow |[a, b, _], _| a.power(b);
    Max |[a, b, _], _| a.max(b);
    Min |[a, b, _], _| a.min(b);
    Mod "mod" 2 8 |[a, b, _], _| modulo(a, b);
    Fmod |[a, b, _], _| a.remainder(b);
    Prelu |[x, slope, _], _| if x < T::ZERO { x.times(slope) } else { x };
    Less |[a, b, _], _| truth(a < b);
    LessOrEqual |[a, b, _], _| truth(a <= b);
    Greater |[a, b, _], _| truth(a > b);
    GreaterOrEqual |[a, b, _], _| truth(a >= b);
    Equal |[a, b, _], _| truth(a == b);
    NotEqual |[a, b, _], _| truth(a != b);
    And |[a, b, _], _| truth(a != T::ZERO && b != T::ZERO);
    Or |[a, b, _], _| truth(a != T::ZERO || b != T::ZERO);
    Xor |[a, b, _], _| truth((a != T::ZERO) != (b != T::ZERO));
    Not |[x, ..], _| truth(x == T::ZERO);
    BitwiseAnd "bitwiseAnd" 2 1 |[a, b, _], _| a.and(b);
    BitwiseOr "bitwiseOr" 2 1 |[a, b, _], _| a.or(b);
    BitwiseXor "bitwiseXor" 2 1 |[a, b, _], _| a.xor(b);
    BitwiseNot "bitwiseNot" 1 1 |[x, ..], _| x.not();
    ShiftLeft "shiftLeft" 2 1 |[a, b, _], _| a.left(b);
    ShiftRight "shiftRight" 2 1 |[a, b, _], _| a.right(b);
    Relu |[x, ..], _| x.max(T::ZERO);
    Abs |[x, ..], _| if x < T::ZERO { T::ZERO.minus(x) } else { x };
    Neg |[x, ..], _| T::ZERO.minus(x);
    Sign |[x, ..], _| if x < T::ZERO { T::ZERO.not() } else { x.min(T::ONE) };
    Clip |[x, ..], [low, high]| x.max(low).min(high);
}

/// The remainder of the quotient rounded down, with b's sign; 0 where b is.
fn modulo<T: Whole>(a: T, b: T) -> T {
    let rest = a.remainder(b);
    if rest != T::ZERO && (rest < T::ZERO) != (b < T::ZERO) { rest.plus(b) } else { rest }
}

fn truth<T: Whole>(holds: bool) -> T {
    if holds { T::ONE } else { T::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<F: WholeScalar, T: Whole>(a: T, b: T) -> T {
        F::whole([a, b, T::ZERO], [T::ZERO; 2])
    }

    #[test]
    fn arithmetic_wraps_and_nothing_divides_by_zero() {
        assert_eq!(of::<Add, i8>(127, 1), -128);
        assert_eq!(of::<Sub, u16>(0, 1), 65_535);
        assert_eq!(of::<Mul, i32>(1 << 30, 6), i32::MIN);
        assert_eq!(of::<Div, i64>(i64::MIN, -1), i64::MIN);
        assert_eq!((of::<Div, i8>(7, -2), of::<Div, u8>(7, 0), of::<Div, i16>(-7, 0)), (-3, 0, 0));
        assert_eq!((of::<Abs, i8>(-128, 0), of::<Neg, i8>(-128, 0)), (-128, -128));
        assert_eq!((of::<Sign, i64>(-9, 0), of::<Sign, u8>(9, 0), of::<Sign, i8>(0, 0)), (-1, 1, 0));
    }

    #[test]
    fn remainders_take_the_sign_they_should() {
        let signs = [(7, 3), (-7, 3), (7, -3), (-7, -3), (6, -3), (7, 0), (i32::MIN, -1)];
        assert_eq!(signs.map(|(a, b)| of::<Mod, i32>(a, b)), [1, 2, -2, -1, 0, 0, 0]);
        assert_eq!(signs.map(|(a, b)| of::<Fmod, i32>(a, b)), [1, -1, 1, -1, 0, 0, 0]);
    }

    #[test]
    fn powers_square_and_negative_ones_truncate() {
        assert_eq!(
            (of::<Pow, i64>(3, 39), of::<Pow, u8>(3, 5), of::<Pow, i8>(2, 7)),
            (3i64.pow(39), 243, -128)
        );
        assert_eq!([1, -1, -1, 2, 0].map(|a| of::<Pow, i32>(a, -3)), [1, -1, -1, 0, 0]);
        assert_eq!((of::<Pow, i32>(-1, -2), of::<Pow, i32>(0, 0), of::<Pow, i64>(1, i64::MAX)), (1, 1, 1));
    }

    #[test]
    fn shifts_beyond_the_type_leave_nothing() {
        assert_eq!([0, 1, 7, 8, 255].map(|n| of::<ShiftLeft, u8>(0x81, n)), [0x81, 2, 0x80, 0, 0]);
        assert_eq!(
            [0, 1, 63, 64, 1 << 40].map(|n| of::<ShiftRight, u64>(3 << 62, n)),
            [3 << 62, 3 << 61, 1, 0, 0]
        );
    }
}
