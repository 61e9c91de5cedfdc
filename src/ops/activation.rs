//! Activations that matrix products and convolutions apply to their results.

use super::Attrs;
use super::spec::{Attribute, Kind, attribute};
use super::unary::SELU;
use crate::cpu::Math;
use crate::cpu::scalar::*;
use crate::dtype::DType;
use crate::kernels::{Arg, float_arg};

/// Names in the order of the codes in kernels/common/activation.cuh.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "none", "relu", "leakyRelu", "clip", "sigmoid", "tanh", "gelu", "silu", "elu", "selu", "geluTanh", "hardSigmoid",
    "hardSwish", "softplus", "mish",
];

/// Those of long formulas without parameters that are ops by the same name.
const OPS: &[&str] = &["sigmoid", "tanh", "gelu", "silu"];

/// The first code of a long formula there.
const LENGTHY: u32 = 4;

/// The option `activation`.
pub const ACTIVATION: Attribute =
    attribute("activation", Kind::Choice(NAMES), "Function applied to the result.");
/// The option `activationAlpha`.
pub const ACTIVATION_ALPHA: Attribute = attribute(
    "activationAlpha",
    Kind::Float(f64::NAN),
    "Its first parameter: alpha of leakyRelu (0.01 when left out), elu (1), selu (1.67326) and hardSigmoid (0.2), lower \
     limit of clip (none).",
);
/// The option `activationBeta`.
pub const ACTIVATION_BETA: Attribute = attribute(
    "activationBeta",
    Kind::Float(f64::NAN),
    "Its second parameter: gamma of selu (1.0507 when left out), beta of hardSigmoid (0.5), upper limit of clip (none).",
);

/// An activation with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activation {
    /// Position in the list of names, the kernels' code.
    pub code: u32,
    parameters: [f64; 2],
}

impl Activation {
    /// The call's activation.
    pub fn new(attrs: &Attrs) -> Activation {
        let name = attrs.choice(ACTIVATION.name);
        let or = |value: f64, default| if value.is_nan() { default } else { value };
        let [first, second] = defaults(name);
        Activation {
            code: NAMES.iter().position(|&known| known == name).unwrap_or(0) as u32,
            parameters: [
                or(attrs.float(ACTIVATION_ALPHA.name), first),
                or(attrs.float(ACTIVATION_BETA.name), second),
            ],
        }
    }

    /// Whether results stay as they are.
    pub fn is_none(&self) -> bool {
        self.code == 0
    }

    /// Whether kernels apply it to registers, before they hand results on.
    pub fn is_short(&self) -> bool {
        self.code < LENGTHY
    }

    /// The op that does the same, of a long formula without parameters.
    pub fn op(&self) -> Option<&'static str> {
        NAMES.get(self.code as usize).copied().filter(|name| OPS.contains(name))
    }

    /// The parameters as the kernels take them.
    pub fn arguments(&self, dtype: DType) -> [Arg<'static>; 2] {
        self.parameters.map(|value| float_arg(dtype, value))
    }

    /// Applies the function in place.
    pub fn apply<T: Math>(&self, values: &mut [T]) {
        let parameters = self.parameters.map(T::from_f64);
        match self.code {
            1 => in_place::<Relu, T>(values, parameters),
            2 => in_place::<LeakyRelu, T>(values, parameters),
            3 => in_place::<Clip, T>(values, parameters),
            4 => in_place::<Sigmoid, T>(values, parameters),
            5 => in_place::<Tanh, T>(values, parameters),
            6 => in_place::<Gelu, T>(values, parameters),
            7 => in_place::<Silu, T>(values, parameters),
            8 => in_place::<Elu, T>(values, parameters),
            9 => in_place::<Selu, T>(values, parameters),
            10 => in_place::<GeluTanh, T>(values, parameters),
            11 => in_place::<HardSigmoid, T>(values, parameters),
            12 => in_place::<HardSwish, T>(values, parameters),
            13 => in_place::<Softplus, T>(values, parameters),
            14 => in_place::<Mish, T>(values, parameters),
            _ => {}
        }
    }

    /// Nanoseconds for one element, about.
    pub fn cost(&self) -> usize {
        if self.code < 4 { 1 } else { 12 }
    }
}

/// The functions' own parameters.
fn defaults(name: &str) -> [f64; 2] {
    match name {
        "leakyRelu" => [0.01, 0.0],
        "clip" => [f64::NEG_INFINITY, f64::INFINITY],
        "elu" => [1.0, 0.0],
        "selu" => SELU,
        "hardSigmoid" => [0.2, 0.5],
        _ => [0.0, 0.0],
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Raw, find};
    use super::*;

    fn applied(options: &[(&str, Raw)], x: &[f64]) -> Vec<f64> {
        let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let mut values = x.to_vec();
        Activation::new(&Attrs::parse(find("matmul").unwrap(), &raw).unwrap()).apply(&mut values);
        values
    }

    #[test]
    fn parameters_left_out_take_the_functions_own_defaults() {
        let x = [-200.0, -1.0, 0.5, 300.0];
        let named = |name: &str| ("activation", Raw::Text(name.into()));
        let alpha = |value| ("activationAlpha", Raw::Number(value));
        assert_eq!(applied(&[], &x), x);
        assert_eq!(applied(&[named("relu")], &x), [0.0, 0.0, 0.5, 300.0]);
        assert_eq!(applied(&[named("leakyRelu")], &x), [-2.0, -0.01, 0.5, 300.0]);
        assert_eq!(applied(&[named("leakyRelu"), alpha(0.5)], &x), [-100.0, -0.5, 0.5, 300.0]);
        assert_eq!(applied(&[named("clip")], &x), x);
        assert_eq!(applied(&[named("clip"), alpha(-3.0)], &x), [-3.0, -1.0, 0.5, 300.0]);
        let beta = ("activationBeta", Raw::Number(6.0));
        assert_eq!(applied(&[named("clip"), alpha(0.0), beta], &x), [0.0, 0.0, 0.5, 6.0]);
        assert_eq!(applied(&[named("elu"), alpha(2.0)], &x)[..], [-2.0, 2.0 * (-1f64).exp_m1(), 0.5, 300.0]);
        assert_eq!(applied(&[named("selu")], &[1.0]), [SELU[1]]);
        assert_eq!(applied(&[named("hardSigmoid")], &x), [0.0, 0.3, 0.6, 1.0]);
        let beta = ("activationBeta", Raw::Number(0.25));
        assert_eq!(applied(&[named("hardSigmoid"), beta], &[0.0]), [0.25]);
    }
}
