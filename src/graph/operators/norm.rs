//! Normalisations and softmax.

use super::{Operator, shared};
use crate::graph::plan::{Lowered, Operand, Rule, Site, ints};
use crate::ops::Raw;
use crate::shape::normalize_axis;
use crate::{DType, Error, Result};

#[rustfmt::skip]
pub const ROWS: &[Operator] = &[
    shared("Softmax", "softmax", softmax), shared("LogSoftmax", "logSoftmax", softmax), shared("LayerNormalization", "layerNorm", layer),
    shared("RMSNormalization", "rmsNorm", rms), shared("BatchNormalization", "batchNorm", batch), shared("InstanceNormalization", "groupNorm", instance),
    shared("GroupNormalization", "groupNorm", group), shared("MeanVarianceNormalization", "reduceMean", mean_variance),
    shared("LpNormalization", "div", lp_norm), shared("LRN", "averagePool2d", local_response), shared("Hardmax", "argMax", hardmax),
];

/// Before version 13 all axes from `axis` on are one.
fn softmax(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let early = site.version() < 13;
    let axis = site.node.int("axis", if early { 1 } else { -1 })?;
    if !early {
        return Ok(site.one(site.row.op, &[x], &[("axis", Raw::Number(axis as f64))])?.into());
    }
    let y = site.one(site.row.op, &[matrix(&x, axis)?], &[("axis", Raw::Number(-1.0))])?;
    Ok(y.reshape(x.dims())?.into())
}

/// Axes before `axis` as one and those from it on as another.
fn matrix(x: &Operand, axis: i64) -> Result<Operand> {
    let axis = if axis == x.rank() as i64 { x.rank() } else { normalize_axis("axis", axis, x.rank())? };
    let count = |dims: &[usize]| dims.iter().product::<usize>();
    x.reshape([count(&x.dims()[..axis]), count(&x.dims()[axis..])])
}

/// The result, and for whom wants them the mean and the inverse deviation of each row.
fn layer(site: &mut Site) -> Rule {
    let (x, scale, bias) = (site.input(0)?, site.optional(1), site.optional(2));
    let (axis, epsilon) = (site.node.int("axis", -1)?, site.node.float("epsilon", 1e-5)?);
    let first = normalize_axis("LayerNormalization", axis, x.rank())?;
    let parameter = |site: &mut Site, operand: Option<Operand>| match operand {
        Some(operand) => super::layout::expand_to(site, &operand, &signed(&x.dims()[first..])).map(Some),
        None => Ok(None),
    };
    let (scale, bias) = (parameter(site, scale)?, parameter(site, bias)?);
    let options = [("axis", Raw::Number(axis as f64)), ("epsilon", Raw::Number(epsilon))];
    let mut results = site.call_with("layerNorm", &[Some(x.clone()), scale, bias], &options)?;
    if site.wants(1) || site.wants(2) {
        let wide = site.cast(&x, if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 })?;
        let axes = [("axes", ints(&(first as i64..x.rank() as i64).collect::<Vec<_>>()))];
        let mean = site.one("reduceMean", std::slice::from_ref(&wide), &axes)?;
        let centred = site.one("sub", &[wide.clone(), mean.clone()], &[])?;
        let squares = site.one("mul", &[centred.clone(), centred], &[])?;
        let variance = site.one("reduceMean", &[squares], &axes)?;
        let epsilon = site.scalar(wide.dtype(), epsilon)?;
        let shifted = site.one("add", &[variance, epsilon], &[])?;
        let deviation = site.one("sqrt", &[shifted], &[])?;
        results.push(mean);
        results.push(site.one("reciprocal", &[deviation], &[])?);
    }
    Ok(Lowered::Values(results))
}

pub(super) fn signed(dims: &[usize]) -> Vec<i64> {
    dims.iter().map(|&dim| dim as i64).collect()
}

fn rms(site: &mut Site) -> Rule {
    let (x, scale) = (site.input(0)?, site.input(1)?);
    let axis = site.node.int("axis", -1)?;
    let first = normalize_axis("RMSNormalization", axis, x.rank())?;
    let options =
        [("axis", Raw::Number(axis as f64)), ("epsilon", Raw::Number(site.node.float("epsilon", 1e-5)?))];
    if scale.dtype() != x.dtype() {
        let normed = site.one("rmsNorm", &[x], &options)?;
        let normed = site.cast(&normed, scale.dtype())?;
        return Ok(site.one("mul", &[normed, scale], &[])?.into());
    }
    let scale = super::layout::expand_to(site, &scale, &signed(&x.dims()[first..]))?;
    Ok(site.one("rmsNorm", &[x, scale], &options)?.into())
}

/// In inference, with the statistics given.
fn batch(site: &mut Site) -> Rule {
    if site.node.flag("training_mode", false)? {
        return Err(Error::UnsupportedOp("training mode is not supported".into()).into());
    }
    let x = site.input(0)?;
    let mut operands = vec![x.clone()];
    for index in 1..5 {
        // Versions from 15 on let the parameters have another type.
        let parameter = site.input(index)?;
        operands.push(site.cast(&parameter, x.dtype())?);
    }
    let epsilon = site.node.float("epsilon", 1e-5)?;
    if x.rank() < 2 {
        // One channel for each element of the only axis that there is.
        operands[0] = x.reshape(if x.rank() == 1 { vec![x.dims()[0], 1] } else { vec![1, 1] })?;
    }
    let y = site.one("batchNorm", &operands, &[("epsilon", Raw::Number(epsilon))])?;
    Ok(y.reshape(x.dims())?.into())
}

/// Each channel of each image by itself.
fn instance(site: &mut Site) -> Rule {
    let (x, scale, bias) = (site.input(0)?, site.input(1)?, site.input(2)?);
    let channels = x.dims().get(1).copied().unwrap_or(0);
    let options = [
        ("numGroups", Raw::Number(channels as f64)),
        ("epsilon", Raw::Number(site.node.float("epsilon", 1e-5)?)),
    ];
    Ok(site.one("groupNorm", &[x, scale, bias], &options)?.into())
}

/// Scale and bias are one per group up to version 20, then one per channel.
fn group(site: &mut Site) -> Rule {
    let (x, mut scale, mut bias) = (site.input(0)?, site.input(1)?, site.input(2)?);
    let groups = site.node.int("num_groups", 0)?;
    let channels = x.dims().get(1).copied().unwrap_or(0);
    if site.version() < 21 && groups > 0 && scale.meta().size() as i64 == groups {
        let each = channels as i64 / groups;
        for operand in [&mut scale, &mut bias] {
            let wide =
                super::layout::expand_to(site, &operand.reshape([groups as usize, 1])?, &[groups, each])?;
            *operand = wide.reshape([channels])?;
        }
    }
    let options = [
        ("numGroups", Raw::Number(groups as f64)),
        ("epsilon", Raw::Number(site.node.float("epsilon", 1e-5)?)),
    ];
    Ok(site.one("groupNorm", &[x, scale, bias], &options)?.into())
}

/// (x - mean) / (deviation + 1e-9), as the operator's definition writes it.
fn mean_variance(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let axes = [("axes", ints(&site.node.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3])))];
    let mean = site.one("reduceMean", std::slice::from_ref(&x), &axes)?;
    let centred = site.one("sub", &[x, mean], &[])?;
    let squares = site.one("mul", &[centred.clone(), centred.clone()], &[])?;
    let variance = site.one("reduceMean", &[squares], &axes)?;
    let deviation = site.one("sqrt", &[variance], &[])?;
    let epsilon = site.scalar(centred.dtype(), 1e-9)?;
    let divisor = site.one("add", &[deviation, epsilon], &[])?;
    Ok(site.one("div", &[centred, divisor], &[])?.into())
}

/// 0 where the norm is.
fn lp_norm(site: &mut Site) -> Rule {
    let (x, axis, p) = (site.input(0)?, site.node.int("axis", -1)?, site.node.int("p", 2)?);
    let op = if p == 1 { "reduceL1" } else { "reduceL2" };
    let norm = site.one(op, std::slice::from_ref(&x), &[("axes", ints(&[axis]))])?;
    let zero = site.scalar(x.dtype(), 0.0)?;
    let empty = site.one("equal", &[norm.clone(), zero.clone()], &[])?;
    let ratio = site.one("div", &[x, norm], &[])?;
    Ok(site.one("where", &[empty, zero, ratio], &[])?.into())
}

/// x / (bias + alpha / size * sum of squares over neighbouring channels)^beta.
fn local_response(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let size = site.node.int("size", 0)?;
    if x.rank() < 2 || size < 1 {
        return Err(Error::InvalidModel(format!("size {size} does not fit dims {:?}", x.dims())).into());
    }
    let (n, c) = (x.dims()[0], x.dims()[1]);
    let rest: usize = x.dims()[2..].iter().product();
    let squares = site.one("mul", &[x.clone(), x.clone()], &[])?;
    // A window along channels: an average of the squares over an image of channels by places.
    let before = (size - 1) / 2;
    let image = squares.reshape([n, 1, c, rest])?;
    let options = [
        ("kernel", ints(&[size, 1])),
        ("pads", ints(&[before, 0, size - 1 - before, 0])),
        ("countIncludePad", Raw::Bool(true)),
    ];
    let mean = site.one("averagePool2d", &[image], &options)?.reshape(x.dims())?;
    let alpha = site.scalar(x.dtype(), site.node.float("alpha", 1e-4)?)?;
    let bias = site.scalar(x.dtype(), site.node.float("bias", 1.0)?)?;
    let beta = site.scalar(x.dtype(), site.node.float("beta", 0.75)?)?;
    let scaled = site.one("mul", &[mean, alpha], &[])?;
    let base = site.one("add", &[scaled, bias], &[])?;
    let divisor = site.one("pow", &[base, beta], &[])?;
    Ok(site.one("div", &[x, divisor], &[])?.into())
}

/// 1 at the first largest element of each row, 0 elsewhere.
fn hardmax(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let early = site.version() < 13;
    let axis = site.node.int("axis", if early { 1 } else { -1 })?;
    let (rows, axis) =
        if early { (matrix(&x, axis)?, 1) } else { (x.clone(), normalize_axis("Hardmax", axis, x.rank())?) };
    let largest = site.one("argMax", std::slice::from_ref(&rows), &[("axis", Raw::Number(axis as f64))])?;
    let mut line = vec![1; rows.rank()];
    line[axis] = rows.dims()[axis];
    let numbers = site.list(&(0..rows.dims()[axis] as i64).collect::<Vec<_>>())?.reshape(line)?;
    let hot = site.one("equal", &[largest, numbers], &[])?;
    let y = site.cast(&hot, x.dtype())?;
    Ok(y.reshape(x.dims())?.into())
}
