//! Operators whose results' dims depend on elements.

use super::{Operator, row};
use crate::graph::host::{self, Suppression};
use crate::graph::plan::{Lowered, Rule, Site};
use crate::shape::normalize_axis;
use crate::{DType, Error, Result};
use std::sync::Arc;

pub const ROWS: &[Operator] = &[
    row("NonZero", nonzero).on_host(""),
    row("Unique", unique).on_host(""),
    row("Compress", compress).on_host("where the condition is computed"),
    row("NonMaxSuppression", suppression).on_host(""),
];

fn nonzero(site: &mut Site) -> Rule {
    let operands = vec![Some(site.input(0)?)];
    Ok(Lowered::Open { name: "nonZero", operands, results: 1, form: Arc::new(host::nonzero) })
}

/// The axis, or 0 of the elements as a list where none is given.
fn listed(site: &Site) -> Result<(crate::graph::plan::Operand, usize)> {
    let x = site.input(0)?;
    match site.node.maybe_int("axis")? {
        Some(axis) => Ok((x.clone(), normalize_axis(&site.node.op, axis, x.rank())?)),
        None => Ok((x.reshape([x.meta().size()])?, 0)),
    }
}

fn unique(site: &mut Site) -> Rule {
    let (x, axis) = listed(site)?;
    let sorted = site.node.flag("sorted", true)?;
    let count = site.node.outputs.len();
    if count > 4 {
        return Err(Error::InvalidModel(format!("Unique gives 4 results, {count} are wanted")).into());
    }
    let form = move |inputs: &[Option<crate::tensor::Tensor>]| {
        let mut results = host::unique(inputs, axis, sorted)?;
        results.truncate(count);
        Ok(results)
    };
    Ok(Lowered::Open { name: "unique", operands: vec![Some(x)], results: count, form: Arc::new(form) })
}

/// A known condition is a list of indices; any other makes the dims depend on it.
fn compress(site: &mut Site) -> Rule {
    let (x, axis) = listed(site)?;
    let condition = site.input(1)?;
    if condition.rank() != 1 || condition.dims()[0] > x.dims()[axis] {
        return Err(Error::ShapeMismatch(format!(
            "a condition with dims {:?} does not fit axis {axis} of dims {:?}",
            condition.dims(),
            x.dims()
        ))
        .into());
    }
    if condition.known().is_some() {
        let kept = site.list(&host::holding(&site.integers(1)?))?;
        let axis = [("axis", crate::ops::Raw::Number(axis as f64))];
        return Ok(site.one("gather", &[x, kept], &axis)?.into());
    }
    let operands = vec![Some(x), Some(condition)];
    let form = move |inputs: &[Option<crate::tensor::Tensor>]| host::compress(inputs, axis);
    Ok(Lowered::Open { name: "compress", operands, results: 1, form: Arc::new(form) })
}

fn suppression(site: &mut Site) -> Rule {
    let (boxes, scores) = (site.input(0)?, site.input(1)?);
    let fit = match (boxes.dims(), scores.dims()) {
        (&[images, count, 4], &[other, _, scored]) => images == other && count == scored,
        _ => false,
    };
    if !fit {
        return Err(Error::ShapeMismatch(format!(
            "boxes must have dims [images, boxes, 4] and scores [images, classes, boxes], got {:?} and {:?}",
            boxes.dims(),
            scores.dims()
        ))
        .into());
    }
    let mut operands = vec![Some(site.cast(&boxes, DType::F32)?), Some(site.cast(&scores, DType::F32)?)];
    operands.push(site.optional(2));
    for index in [3, 4] {
        operands.push(match site.optional(index) {
            Some(threshold) => Some(site.cast(&threshold, DType::F32)?),
            None => None,
        });
    }
    let how = Suppression { centred: site.node.flag("center_point_box", false)? };
    let form = move |inputs: &[Option<crate::tensor::Tensor>]| host::suppress(inputs, how);
    Ok(Lowered::Open { name: "nonMaxSuppression", operands, results: 1, form: Arc::new(form) })
}
