//! Functions of the gates.

use super::super::{Attrs, OpSpec};
use crate::cpu::Math;
use crate::cpu::math::*;
use crate::{Result, invalid};

/// Names in the order of the codes in kernels/recurrent.cu.
pub const NAMES: &[&str] = &[
    "sigmoid",
    "tanh",
    "relu",
    "affine",
    "leakyRelu",
    "thresholdedRelu",
    "scaledTanh",
    "hardSigmoid",
    "elu",
    "softsign",
    "softplus",
];

/// A function with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Function {
    /// Position in the list of names, the kernels' code.
    pub code: u32,
    /// Its alpha and beta.
    pub parameters: [f64; 2],
}

/// The parameters that a function takes, with their defaults.
fn defaults(name: &str) -> &'static [f64] {
    match name {
        "affine" => &[1.0, 0.0],
        "leakyRelu" => &[0.01],
        "thresholdedRelu" | "elu" => &[1.0],
        "scaledTanh" => &[1.0, 1.0],
        "hardSigmoid" => &[0.2, 0.5],
        _ => &[],
    }
}

impl Function {
    /// The call's functions, or the op's own once for each direction. Parameters are handed out in order to the functions
    /// that take some.
    pub fn list(spec: &OpSpec, attrs: &Attrs, own: &[&str], directions: usize) -> Result<Vec<Function>> {
        let given = attrs.names("activations");
        let count = own.len() * directions;
        let names: Vec<&str> = match given.len() {
            0 => own.iter().copied().cycle().take(count).collect(),
            length if length == count => given.iter().map(String::as_str).collect(),
            length => return invalid!("{}: 'activations' must hold {count} names, got {length}", spec.name),
        };
        let lists = ["activationAlpha", "activationBeta"];
        let mut values = lists.map(|list| attrs.floats(list).unwrap_or_default().iter());
        let functions = names.iter().map(|name| {
            let mut parameters = [0.0; 2];
            for (index, default) in defaults(name).iter().enumerate() {
                parameters[index] = values[index].next().copied().unwrap_or(*default);
            }
            let code = NAMES.iter().position(|known| known == name).unwrap_or(0) as u32;
            Function { code, parameters }
        });
        let functions = functions.collect();
        for (list, rest) in lists.iter().zip(values) {
            if rest.len() > 0 {
                return invalid!(
                    "{}: '{list}' holds {} numbers more than 'activations' take",
                    spec.name,
                    rest.len()
                );
            }
        }
        Ok(functions)
    }

    /// Applies the function in place.
    pub fn apply<T: Math>(&self, values: &mut [T]) {
        let [alpha, beta] = self.parameters.map(T::from_f64);
        match NAMES[self.code as usize] {
            "sigmoid" => each(values, sigmoid),
            "tanh" => each(values, Math::tanh),
            "relu" => each(values, relu),
            "affine" => each(values, |x| alpha * x + beta),
            "leakyRelu" => each(values, |x| leaky_relu(x, alpha)),
            "thresholdedRelu" => each(values, |x| if x <= alpha { T::ZERO } else { x }),
            "scaledTanh" => each(values, |x| alpha * (beta * x).tanh()),
            "hardSigmoid" => each(values, |x| hard_sigmoid(x, alpha, beta)),
            "elu" => each(values, |x| elu(x, alpha)),
            "softsign" => each(values, |x| x / (T::ONE + x.abs())),
            _ => each(values, softplus),
        }
    }
}

fn each<T: Copy>(values: &mut [T], function: impl Fn(T) -> T) {
    values.iter_mut().for_each(|value| *value = function(*value));
}
