//! Quantised tensors.

use super::conv::window;
use super::matmul::of_matrices;
use super::{Operator, shared};
use crate::graph::plan::{Lowered, Operand, Rule, Site};
use crate::ops::Raw;
use crate::{DType, Error, Result};

pub const ROWS: &[Operator] = &[
    shared("QuantizeLinear", "quantizeLinear", quantize),
    shared("DequantizeLinear", "dequantizeLinear", dequantize),
    shared("DynamicQuantizeLinear", "dynamicQuantizeLinear", dynamic),
    shared("MatMulInteger", "matMulInteger", matmul_integer),
    shared("ConvInteger", "convInteger", conv_integer),
    shared("QLinearMatMul", "requantizeLinear", linear_matmul),
    shared("QLinearConv", "requantizeLinear", linear_conv),
];

/// Axis and block, as an op of the table takes them.
fn along(site: &Site) -> Result<Vec<(&'static str, Raw)>> {
    Ok(vec![
        ("axis", Raw::Number(site.node.int("axis", 1)? as f64)),
        ("blockSize", Raw::Number(site.node.int("block_size", 0)? as f64)),
    ])
}

/// The element type that an attribute names by its number; 0 stands for none.
fn named_type(site: &Site, attribute: &str) -> Result<Option<DType>> {
    match site.node.int(attribute, 0)? {
        0 => Ok(None),
        number => match crate::DTYPES.iter().find(|row| i64::from(row.onnx) == number) {
            Some(row) => Ok(Some(row.dtype)),
            None => Err(Error::UnsupportedDtype(format!("element type {number} is not supported"))),
        },
    }
}

/// The result has the type of the zero point, or the one that is named, or uint8.
fn quantize(site: &mut Site) -> Rule {
    let (x, scale, zero) = (site.input(0)?, site.input(1)?, site.optional(2));
    let named = named_type(site, "output_dtype")?;
    let dtype = zero.as_ref().map(Operand::dtype).or(named).unwrap_or(DType::U8);
    let x = site.cast(&x, scale.dtype())?;
    let mut options = along(site)?;
    options.push(("outputType", Raw::Text(dtype.name().into())));
    Ok(Lowered::Values(site.call_with("quantizeLinear", &[Some(x), Some(scale), zero], &options)?))
}

fn dequantize(site: &mut Site) -> Rule {
    let (x, scale, zero) = (site.input(0)?, site.input(1)?, site.optional(2));
    let options = along(site)?;
    let y = site.call_with("dequantizeLinear", &[Some(x), Some(scale), zero], &options)?.swap_remove(0);
    match named_type(site, "output_dtype")? {
        Some(dtype) => Ok(site.cast(&y, dtype)?.into()),
        None => Ok(y.into()),
    }
}

fn dynamic(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    Ok(site.call("dynamicQuantizeLinear", &[x], &[])?.into())
}

fn matmul_integer(site: &mut Site) -> Rule {
    let operands = [Some(site.input(0)?), Some(site.input(1)?), site.optional(2), site.optional(3)];
    Ok(products(site, operands)?.into())
}

fn products(site: &mut Site, operands: [Option<Operand>; 4]) -> Result<Operand> {
    let [Some(a), Some(b), a_zero, b_zero] = operands else {
        return Err(Error::InvalidModel("an operand is missing".into()));
    };
    of_matrices(a, b, |a, b| {
        Ok(site.call_with("matMulInteger", &[Some(a), Some(b), a_zero, b_zero], &[])?.swap_remove(0))
    })
}

const WINDOW: &[(&str, &str)] = &[("strides", "strides"), ("pads", "pads"), ("dilations", "dilations")];

fn conv_sums(site: &mut Site, operands: [Option<Operand>; 4]) -> Result<Operand> {
    let mut options = window(site, WINDOW)?;
    options.push(("group", Raw::Number(site.node.int("group", 1)? as f64)));
    Ok(site.call_with("convInteger", &operands, &options)?.swap_remove(0))
}

fn conv_integer(site: &mut Site) -> Rule {
    let operands = [Some(site.input(0)?), Some(site.input(1)?), site.optional(2), site.optional(3)];
    Ok(conv_sums(site, operands)?.into())
}

/// Sums, whose scale is that of a times that of b, under the scale of the result.
fn requantized(
    site: &mut Site,
    sums: Operand,
    scales: [Operand; 3],
    zero: Operand,
    axis: i64,
) -> Result<Operand> {
    let mut wide = Vec::with_capacity(3);
    for scale in &scales {
        wide.push(site.cast(scale, DType::F32)?);
    }
    let product = site.one("mul", &wide[..2], &[])?;
    let mut scale = site.one("div", &[product, wide[2].clone()], &[])?;
    if scale.meta().size() == 1 {
        scale = scale.reshape([])?;
    }
    let options = [("axis", Raw::Number(axis as f64)), ("outputType", Raw::Text(zero.dtype().name().into()))];
    let zero = if zero.meta().size() == 1 { zero.reshape([])? } else { zero };
    site.one("requantizeLinear", &[sums, scale, zero], &options)
}

fn linear_matmul(site: &mut Site) -> Rule {
    let operand = |index| site.input(index);
    let scales = [operand(1)?, operand(4)?, operand(6)?];
    let (zero, operands) =
        (operand(7)?, [Some(operand(0)?), Some(operand(3)?), Some(operand(2)?), Some(operand(5)?)]);
    let sums = products(site, operands)?;
    Ok(requantized(site, sums, scales, zero, -1)?.into())
}

fn linear_conv(site: &mut Site) -> Rule {
    let operand = |index| site.input(index);
    let scales = [operand(1)?, operand(4)?, operand(6)?];
    let (zero, operands) =
        (operand(7)?, [Some(operand(0)?), Some(operand(3)?), Some(operand(2)?), Some(operand(5)?)]);
    let mut sums = conv_sums(site, operands)?;
    if let Some(bias) = site.optional(8) {
        let mut dims = vec![1; sums.rank() - 1];
        dims[0] = bias.meta().size();
        let bias = bias.reshape(dims)?;
        sums = site.one("add", &[sums, bias], &[])?;
    }
    Ok(requantized(site, sums, scales, zero, 1)?.into())
}
