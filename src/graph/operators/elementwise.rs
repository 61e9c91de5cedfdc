//! Elementwise operators.

use super::{Operator, row, shared};
use crate::DType;
use crate::Error;
use crate::graph::plan::{Lowered, Operand, Rule, Site};
use crate::ops::Raw;

const fn numbers(name: &'static str, op: &'static str, attributes: &'static [&'static str]) -> Operator {
    Operator { attributes, ..shared(name, op, unary) }
}

#[rustfmt::skip]
pub const ROWS: &[Operator] = &[
    shared("Abs", "abs", unary), shared("Acos", "acos", unary), shared("Acosh", "acosh", unary),
    shared("Asin", "asin", unary), shared("Asinh", "asinh", unary), shared("Atan", "atan", unary),
    shared("Atanh", "atanh", unary), shared("Ceil", "ceil", unary), shared("Cos", "cos", unary),
    shared("Cosh", "cosh", unary), shared("Erf", "erf", unary), shared("Exp", "exp", unary),
    shared("Floor", "floor", unary), shared("HardSwish", "hardSwish", unary), shared("Log", "log", unary),
    shared("Mish", "mish", unary), shared("Neg", "neg", unary), shared("Reciprocal", "reciprocal", unary),
    shared("Relu", "relu", unary), shared("Round", "round", unary), shared("Sigmoid", "sigmoid", unary),
    shared("Sign", "sign", unary), shared("Sin", "sin", unary), shared("Sinh", "sinh", unary),
    shared("Softplus", "softplus", unary), shared("Softsign", "softsign", unary), shared("Sqrt", "sqrt", unary),
    shared("Tan", "tan", unary), shared("Tanh", "tanh", unary), shared("Not", "not", unary),
    shared("IsNaN", "isNaN", unary), shared("BitwiseNot", "bitwiseNot", unary),
    numbers("LeakyRelu", "leakyRelu", &["alpha"]), numbers("Elu", "elu", &["alpha"]),
    numbers("Celu", "celu", &["alpha"]), numbers("Selu", "selu", &["alpha", "gamma"]),
    numbers("HardSigmoid", "hardSigmoid", &["alpha", "beta"]),
    numbers("ThresholdedRelu", "thresholdedRelu", &["alpha"]), numbers("Shrink", "shrink", &["bias", "lambd"]),
    shared("Gelu", "gelu", gelu), shared("Swish", "silu", swish), shared("Clip", "clip", clip), shared("IsInf", "isInf", is_infinite),
    shared("Add", "add", binary), shared("Sub", "sub", binary), shared("Mul", "mul", binary),
    shared("Div", "div", binary), shared("Pow", "pow", pow), shared("Mod", "mod", modulo), shared("PRelu", "prelu", binary),
    shared("Max", "max", join), shared("Min", "min", join), shared("Sum", "add", join), shared("Mean", "add", join),
    shared("Less", "less", binary), shared("LessOrEqual", "lessOrEqual", binary),
    shared("Greater", "greater", binary), shared("GreaterOrEqual", "greaterOrEqual", binary),
    shared("Equal", "equal", binary), shared("And", "and", binary), shared("Or", "or", binary),
    shared("Xor", "xor", binary), shared("BitwiseAnd", "bitwiseAnd", binary), shared("BitwiseOr", "bitwiseOr", binary),
    shared("BitwiseXor", "bitwiseXor", binary), shared("BitShift", "bitShift", bit_shift), shared("Where", "where", choose),
    shared("Cast", "cast", cast), shared("CastLike", "cast", cast_like), row("Identity", identity), row("Dropout", dropout),
];

fn unary(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let mut options = Vec::new();
    for &name in site.row.attributes {
        if let Some(value) = site.node.maybe_float(name)? {
            options.push((name, Raw::Number(value)));
        }
    }
    Ok(site.one(site.row.op, &[x], &options)?.into())
}

fn binary(site: &mut Site) -> Rule {
    let (a, b) = (site.input(0)?, site.input(1)?);
    Ok(site.one(site.row.op, &[a, b], &[])?.into())
}

/// Any number of operands, two at a time.
fn join(site: &mut Site) -> Rule {
    let count = site.operands().len();
    let mut result = site.input(0)?;
    for index in 1..count {
        let next = site.input(index)?;
        result = site.one(site.row.op, &[result, next], &[])?;
    }
    if site.node.op == "Mean" && count > 1 {
        let divisor = site.scalar(result.dtype(), count as f64)?;
        result = site.one("div", &[result, divisor], &[])?;
    }
    Ok(result.into())
}

fn gelu(site: &mut Site) -> Rule {
    let (x, approximate) = (site.input(0)?, site.node.word("approximate", "none")?);
    Ok(site.one("gelu", &[x], &[("approximate", Raw::Text(approximate))])?.into())
}

/// x * sigmoid(alpha * x).
fn swish(site: &mut Site) -> Rule {
    let (x, alpha) = (site.input(0)?, site.node.float("alpha", 1.0)?);
    if alpha == 1.0 {
        return Ok(site.one("silu", &[x], &[])?.into());
    }
    let factor = site.scalar(x.dtype(), alpha)?;
    let scaled = site.one("mul", &[x.clone(), factor], &[])?;
    let gate = site.one("sigmoid", &[scaled], &[])?;
    Ok(site.one("mul", &[x, gate], &[])?.into())
}

/// Limits are attributes up to version 10, then operands.
fn clip(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let limit = |index, name| match site.version() < 11 {
        true => Ok(site.node.maybe_float(name)?.map(Limit::Number)),
        false => Ok::<_, Error>(site.optional(index).map(Limit::Operand)),
    };
    let (min, max) = (limit(1, "min")?, limit(2, "max")?);
    let (least, most) = (min.as_ref().and_then(Limit::number), max.as_ref().and_then(Limit::number));
    if let (Some(least), Some(most)) = (least, most)
        && is_float(x.dtype())
    {
        return Ok(site
            .one("clip", &[x], &[("min", Raw::Number(least)), ("max", Raw::Number(most))])?
            .into());
    }
    let mut result = x;
    for (limit, name, op) in [(min, "min", "max"), (max, "max", "min")] {
        result = match limit {
            None => result,
            Some(Limit::Operand(operand)) if operand.known().is_none() || !is_float(result.dtype()) => {
                site.one(op, &[result, operand], &[])?
            }
            Some(Limit::Operand(operand)) => {
                let tensor = site.value_of(&operand)?;
                let value = crate::graph::plan::numbers(&tensor)?.first().copied().unwrap_or(f64::NAN);
                site.one("clip", &[result], &[(name, Raw::Number(value))])?
            }
            Some(Limit::Number(value)) => site.one("clip", &[result], &[(name, Raw::Number(value))])?,
        };
    }
    Ok(result.into())
}

enum Limit {
    Number(f64),
    Operand(Operand),
}

impl Limit {
    /// The limit where it is known, unless that is NaN.
    fn number(&self) -> Option<f64> {
        let value = match self {
            Limit::Number(value) => Some(*value),
            Limit::Operand(operand) => crate::graph::plan::numbers(operand.known()?).ok()?.first().copied(),
        };
        value.filter(|value| !value.is_nan())
    }
}

pub(super) fn is_float(dtype: DType) -> bool {
    crate::ops::FLOATS.contains(&dtype)
}

fn is_infinite(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let options = [("detectNegative", "detect_negative"), ("detectPositive", "detect_positive")];
    let read = |(name, attribute)| Ok((name, Raw::Bool(site.node.flag(attribute, true)?)));
    let options = options.into_iter().map(read).collect::<crate::Result<Vec<_>>>()?;
    Ok(site.one("isInf", &[x], &options)?.into())
}

/// The result has the type of the base.
fn pow(site: &mut Site) -> Rule {
    let (base, exponent) = (site.input(0)?, site.input(1)?);
    let dtype = base.dtype();
    if exponent.dtype() == dtype {
        return Ok(site.one("pow", &[base, exponent], &[])?.into());
    }
    // Computed in the wider of the two kinds: a whole base may have a fraction for its exponent.
    let common = if is_float(dtype) {
        dtype
    } else if is_float(exponent.dtype()) {
        DType::F64
    } else {
        DType::I64
    };
    let (base, exponent) = (site.cast(&base, common)?, site.cast(&exponent, common)?);
    let power = site.one("pow", &[base, exponent], &[])?;
    Ok(site.cast(&power, dtype)?.into())
}

fn modulo(site: &mut Site) -> Rule {
    let (a, b) = (site.input(0)?, site.input(1)?);
    let fmod = site.node.flag("fmod", false)?;
    Ok(site.one("mod", &[a, b], &[("fmod", Raw::Bool(fmod))])?.into())
}

fn bit_shift(site: &mut Site) -> Rule {
    let (a, b) = (site.input(0)?, site.input(1)?);
    let direction = site.node.word("direction", "")?.to_lowercase();
    Ok(site.one("bitShift", &[a, b], &[("direction", Raw::Text(direction))])?.into())
}

fn choose(site: &mut Site) -> Rule {
    let operands = [site.input(0)?, site.input(1)?, site.input(2)?];
    Ok(site.one("where", &operands, &[])?.into())
}

fn cast(site: &mut Site) -> Rule {
    let (x, to) = (site.input(0)?, site.node.int("to", 0)?);
    let Some(row) = crate::DTYPES.iter().find(|row| i64::from(row.onnx) == to) else {
        return Err(Error::UnsupportedDtype(format!("element type {to} is not supported")).into());
    };
    Ok(site.cast(&x, row.dtype)?.into())
}

fn cast_like(site: &mut Site) -> Rule {
    let (x, like) = (site.input(0)?, site.input(1)?);
    Ok(site.cast(&x, like.dtype())?.into())
}

fn identity(site: &mut Site) -> Rule {
    Ok(site.input(0)?.into())
}

/// In inference the input as it is, and a mask of ones.
fn dropout(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    if site.optional(2).is_some() && site.integer(2)? != 0 {
        let ratio = if site.optional(1).is_some() { site.numbers(1)?.first().copied() } else { None };
        if ratio != Some(0.0) {
            return Err(Error::UnsupportedOp("Dropout in training mode is not supported".into()).into());
        }
    }
    let mut results = vec![x.clone()];
    if site.wants(1) {
        let dtype = if site.version() < 10 { x.dtype() } else { DType::Bool };
        let one = site.scalar(dtype, 1.0)?;
        let dims: Vec<i64> = x.dims().iter().map(|&dim| dim as i64).collect();
        results.push(super::layout::expand_to(site, &one, &dims)?);
    }
    Ok(Lowered::Values(results))
}
