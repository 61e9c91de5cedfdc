//! The table of scalar functions: what the elementwise ops apply to each element, one by one or fused.

use super::math::{self, *};
use super::{Float, Math, simd};
use pulp::{Simd, WithSimd};
use std::marker::PhantomData;

/// What is known of a function, whatever it is of.
pub trait Named: 'static {
    /// The op's name, or that of its variant.
    const NAME: &'static str;
    /// How many numbers it takes.
    const OPERANDS: usize;
    /// Nanoseconds for one element, about.
    const COST: usize;
}

/// A function of up to three floats, and of up to two more that stay the same for a whole call.
pub trait Scalar: Named {
    /// The result.
    fn of<T: Math>(operands: [T; 3], parameters: [T; 2]) -> T;
}

/// Applies a function to blocks: the result, as many operands as it takes (the others are not looked at), parameters.
pub type Block<T> = fn(&mut [T], [&[T]; 3], [T; 2]);

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// As [`Named::NAME`].
    pub name: &'static str,
    /// As [`Named::OPERANDS`].
    pub operands: usize,
    /// As [`Named::COST`].
    pub cost: usize,
    single: Block<f32>,
    double: Block<f64>,
}

impl Function {
    const fn of<F: Scalar>() -> Function {
        let (single, double) = (block::<F, f32> as Block<f32>, block::<F, f64> as Block<f64>);
        Function { name: F::NAME, operands: F::OPERANDS, cost: F::COST, single, double }
    }

    /// The function of that name.
    pub fn find(name: &str) -> Option<&'static Function> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }
}

/// Element types that blocks have.
pub trait Blocks: Math {
    /// The function over blocks of this type.
    fn block(function: &Function) -> Block<Self>;
}

impl Blocks for f32 {
    fn block(function: &Function) -> Block<f32> {
        function.single
    }
}

impl Blocks for f64 {
    fn block(function: &Function) -> Block<f64> {
        function.double
    }
}

/// Applies a function to blocks, compiled for the processor's vectors. Nothing is contracted, so that results are the same.
pub fn block<F: Scalar, T: Math>(out: &mut [T], operands: [&[T]; 3], parameters: [T; 2]) {
    simd::dispatch(Apply::<F, T> { out, operands, parameters, function: PhantomData });
}

/// Applies a function of one operand in place.
pub fn in_place<F: Scalar, T: Math>(values: &mut [T], parameters: [T; 2]) {
    simd::dispatch(InPlace::<F, T> { values, parameters, function: PhantomData });
}

struct InPlace<'a, F, T> {
    values: &'a mut [T],
    parameters: [T; 2],
    function: PhantomData<F>,
}

impl<F: Scalar, T: Math> WithSimd for InPlace<'_, F, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (zero, parameters) = (T::ZERO, self.parameters);
        self.values.iter_mut().for_each(|value| *value = F::of([*value, zero, zero], parameters));
    }
}

struct Apply<'a, F, T> {
    out: &'a mut [T],
    operands: [&'a [T]; 3],
    parameters: [T; 2],
    function: PhantomData<F>,
}

impl<F: Scalar, T: Math> WithSimd for Apply<'_, F, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        each::<F, T>(self.out, self.operands, self.parameters);
    }
}

#[inline(always)]
fn each<F: Scalar, T: Math>(out: &mut [T], [a, b, c]: [&[T]; 3], parameters: [T; 2]) {
    let zero = T::ZERO;
    match F::OPERANDS {
        1 => out.iter_mut().zip(a).for_each(|(y, &a)| *y = F::of([a, zero, zero], parameters)),
        2 => out.iter_mut().zip(a).zip(b).for_each(|((y, &a), &b)| *y = F::of([a, b, zero], parameters)),
        _ => {
            let numbers = a.iter().zip(b).zip(c);
            out.iter_mut().zip(numbers).for_each(|(y, ((&a, &b), &c))| *y = F::of([a, b, c], parameters));
        }
    }
}

/// A type that stands for a function.
macro_rules! named {
    ($type:ident $name:literal $count:literal $cost:literal) => {
        #[doc = concat!("`", $name, "`.")]
        pub struct $type;
        impl Named for $type {
            const NAME: &'static str = $name;
            const OPERANDS: usize = $count;
            const COST: usize = $cost;
        }
    };
}
pub(super) use named;

/// `Type "name" operands cost |operands, parameters| result;`
macro_rules! scalars {
    ($($type:ident $name:literal $count:literal $cost:literal
        |$operands:pat_param, $parameters:pat_param| $body:expr;)*) => {
        $(
            named! { $type $name $count $cost }
            impl Scalar for $type {
                #[inline(always)]
                fn of<T: Math>($operands: [T; 3], $parameters: [T; 2]) -> T {
                    $body
                }
            }
        )*
        /// Every function.
        pub static FUNCTIONS: &[Function] = &[$(Function::of::<$type>()),*];
    };
}

#[rustfmt::skip]
scalars! {
    Relu "relu" 1 1 |[x, ..], _| relu(x);
    LeakyRelu "leakyRelu" 1 1 |[x, ..], [alpha, _]| leaky_relu(x, alpha);
    Elu "elu" 1 8 |[x, ..], [alpha, _]| elu(x, alpha);
    Selu "selu" 1 8 |[x, ..], [alpha, gamma]| selu(x, alpha, gamma);
    Sigmoid "sigmoid" 1 8 |[x, ..], _| sigmoid(x);
    Tanh "tanh" 1 8 |[x, ..], _| x.tanh();
    Gelu "gelu" 1 8 |[x, ..], _| x.gelu();
    GeluTanh "geluTanh" 1 8 |[x, ..], _| gelu_tanh(x);
    Silu "silu" 1 8 |[x, ..], _| silu(x);
    HardSigmoid "hardSigmoid" 1 1 |[x, ..], [alpha, beta]| hard_sigmoid(x, alpha, beta);
    HardSwish "hardSwish" 1 1 |[x, ..], _| hard_swish(x);
    Softplus "softplus" 1 8 |[x, ..], _| softplus(x);
    Mish "mish" 1 8 |[x, ..], _| mish(x);
    Clip "clip" 1 1 |[x, ..], [low, high]| clip(x, low, high);
    Exp "exp" 1 8 |[x, ..], _| x.exp();
    Log "log" 1 8 |[x, ..], _| x.ln();
    Sqrt "sqrt" 1 1 |[x, ..], _| x.sqrt();
    Erf "erf" 1 8 |[x, ..], _| x.erf();
    Abs "abs" 1 1 |[x, ..], _| x.abs();
    Neg "neg" 1 1 |[x, ..], _| -x;
    Sin "sin" 1 8 |[x, ..], _| x.sin();
    Cos "cos" 1 8 |[x, ..], _| x.cos();
    Floor "floor" 1 1 |[x, ..], _| x.floor();
    Ceil "ceil" 1 1 |[x, ..], _| x.ceil();
    Round "round" 1 1 |[x, ..], _| x.round();
    Sign "sign" 1 1 |[x, ..], _| sign(x);
    Reciprocal "reciprocal" 1 1 |[x, ..], _| T::ONE / x;
    Softsign "softsign" 1 1 |[x, ..], _| x / (T::ONE + x.abs());
    Celu "celu" 1 8 |[x, ..], [alpha, _]| celu(x, alpha);
    ThresholdedRelu "thresholdedRelu" 1 1 |[x, ..], [alpha, _]| if x <= alpha { T::ZERO } else { x };
    Shrink "shrink" 1 1 |[x, ..], [bias, lambd]| shrink(x, bias, lambd);
    Tan "tan" 1 8 |[x, ..], _| x.tan();
    Asin "asin" 1 8 |[x, ..], _| x.asin();
    Acos "acos" 1 8 |[x, ..], _| x.acos();
    Atan "atan" 1 8 |[x, ..], _| x.atan();
    Sinh "sinh" 1 8 |[x, ..], _| x.sinh();
    Cosh "cosh" 1 8 |[x, ..], _| x.cosh();
    Asinh "asinh" 1 8 |[x, ..], _| x.asinh();
    Acosh "acosh" 1 8 |[x, ..], _| x.acosh();
    Atanh "atanh" 1 8 |[x, ..], _| x.atanh();
    Not "not" 1 1 |[x, ..], _| truth(x == T::ZERO);
    IsNaN "isNaN" 1 1 |[x, ..], _| truth(x.is_nan());
    IsInf "isInf" 1 1 |[x, ..], [negative, positive]| truth(
        (x == T::INFINITY && positive != T::ZERO) || (x == -T::INFINITY && negative != T::ZERO));
    Add "add" 2 1 |[a, b, _], _| a + b;
    Sub "sub" 2 1 |[a, b, _], _| a - b;
    Mul "mul" 2 1 |[a, b, _], _| a * b;
    Div "div" 2 1 |[a, b, _], _| a / b;
    Pow "pow" 2 16 |[a, b, _], _| a.pow(b);
    Max "max" 2 1 |[a, b, _], _| math::max(a, b);
    Min "min" 2 1 |[a, b, _], _| math::min(a, b);
    Fmod "fmod" 2 8 |[a, b, _], _| a.fmod(b);
    Prelu "prelu" 2 1 |[x, slope, _], _| leaky_relu(x, slope);
    Less "less" 2 1 |[a, b, _], _| truth(a < b);
    LessOrEqual "lessOrEqual" 2 1 |[a, b, _], _| truth(a <= b);
    Greater "greater" 2 1 |[a, b, _], _| truth(a > b);
    GreaterOrEqual "greaterOrEqual" 2 1 |[a, b, _], _| truth(a >= b);
    Equal "equal" 2 1 |[a, b, _], _| truth(a == b);
    NotEqual "notEqual" 2 1 |[a, b, _], _| truth(a != b);
    And "and" 2 1 |[a, b, _], _| truth(a != T::ZERO && b != T::ZERO);
    Or "or" 2 1 |[a, b, _], _| truth(a != T::ZERO || b != T::ZERO);
    Xor "xor" 2 1 |[a, b, _], _| truth((a != T::ZERO) != (b != T::ZERO));
    Where "where" 3 1 |[condition, a, b], _| if condition != T::ZERO { a } else { b };
}

/// 1 for true, 0 for false.
fn truth<T: Float>(holds: bool) -> T {
    if holds { T::ONE } else { T::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_apply_the_functions() {
        for function in FUNCTIONS {
            assert_eq!(Function::find(function.name).map(|found| found.name), Some(function.name));
        }
        let (a, b, c) = ([1.0, f64::NAN, -0.0], [2.0, 2.0, 2.0], [3.0, 3.0, 3.0]);
        let apply = |name: &str| {
            let mut out = [0.0; 3];
            f64::block(Function::find(name).unwrap())(&mut out, [&a, &b, &c], [0.5, 0.0]);
            out
        };
        assert_eq!(apply("where"), [2.0, 2.0, 3.0]);
        assert_eq!((apply("less"), apply("notEqual")), ([1.0, 0.0, 1.0], [1.0; 3]));
        assert_eq!((apply("and"), apply("or")), ([1.0, 1.0, 0.0], [1.0; 3]));
        assert_eq!(apply("leakyRelu")[0], 1.0);
        assert!(apply("max")[1].is_nan());
    }
}
