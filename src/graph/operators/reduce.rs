//! Reductions.

use super::elementwise::is_float;
use super::layout::{reduced_axes, transposed};
use super::norm::signed;
use super::{OTHER_TYPES, Operator, shared};
use crate::graph::host;
use crate::graph::plan::{Operand, Rule, Site, ints};
use crate::ops::{Meta, Raw};
use crate::tensor::Tensor;
use crate::{DType, Result};

#[rustfmt::skip]
pub const ROWS: &[Operator] = &[
    shared("ReduceSum", "reduceSum", reduce).on_host(OTHER_TYPES), shared("ReduceMean", "reduceMean", reduce).on_host(OTHER_TYPES),
    shared("ReduceMax", "reduceMax", reduce).on_host(OTHER_TYPES), shared("ReduceMin", "reduceMin", reduce).on_host(OTHER_TYPES),
    shared("ReduceProd", "reduceProd", reduce).on_host(OTHER_TYPES), shared("ReduceL1", "reduceL1", reduce).on_host(OTHER_TYPES),
    shared("ReduceL2", "reduceL2", reduce).on_host(OTHER_TYPES), shared("ReduceSumSquare", "reduceSumSquare", reduce).on_host(OTHER_TYPES),
    shared("ReduceLogSum", "reduceLogSum", reduce).on_host(OTHER_TYPES), shared("ReduceLogSumExp", "reduceLogSumExp", log_sum_exp),
    shared("ArgMax", "argMax", index), shared("ArgMin", "argMin", index),
];

/// Axes are an attribute up to version 17, of ReduceSum up to 12.
fn reduce(site: &mut Site) -> Rule {
    reduced(site, site.row.op)
}

fn reduced(site: &mut Site, op: &'static str) -> Rule {
    let x = site.input(0)?;
    let last = if site.node.op == "ReduceSum" { 12 } else { 17 };
    let axes = reduced_axes(site, &x, last)?.filter(|axes| !axes.is_empty());
    if axes.is_none() && site.node.flag("noop_with_empty_axes", false)? {
        return nothing_reduced(site, op);
    }
    let keeps = site.node.flag("keepdims", true)?;
    let places = match &axes {
        Some(axes) => super::shape::positions(axes, x.rank())?,
        None => (0..x.rank()).collect(),
    };
    let empty = places.iter().any(|&axis| x.dims()[axis] == 0);
    if empty && is_float(x.dtype()) && ["reduceMax", "reduceMin"].contains(&op) {
        let least = if op == "reduceMax" { f64::NEG_INFINITY } else { f64::INFINITY };
        let value = site.scalar(x.dtype(), least)?;
        return Ok(super::layout::expand_to(site, &value, &signed(&remaining(&x, &places, keeps)))?.into());
    }
    if !crate::ops::find(op)?.dtypes.contains(&x.dtype()) {
        return Ok(whole(site, op, &x, &places, keeps)?.into());
    }
    let mut options = vec![("keepDims", Raw::Bool(keeps))];
    options.extend(axes.map(|axes| ("axes", ints(&axes))));
    if matches!(op, "reduceMax" | "reduceMin") {
        options.push(("empty", Raw::Text("identity".into())));
    }
    Ok(site.one(op, &[x], &options)?.into())
}

/// Dims of a result.
fn remaining(x: &Operand, places: &[usize], keeps: bool) -> Vec<usize> {
    let dims = x.dims().iter().enumerate();
    let kept = dims.filter(|(axis, _)| keeps || !places.contains(axis));
    kept.map(|(axis, &dim)| if places.contains(&axis) { 1 } else { dim }).collect()
}

/// Sums over axes, which go, of any numbers.
pub(super) fn sums(site: &mut Site, x: &Operand, places: &[usize]) -> Result<Operand> {
    if crate::ops::find("reduceSum")?.dtypes.contains(&x.dtype()) {
        let options = [("axes", ints(&signed(places))), ("keepDims", Raw::Bool(false))];
        return site.one("reduceSum", std::slice::from_ref(x), &options);
    }
    whole(site, "reduceSum", x, places, false)
}

/// Whole numbers and truths, as rows, by a form on the host.
fn whole(site: &mut Site, op: &'static str, x: &Operand, places: &[usize], keeps: bool) -> Result<Operand> {
    let others = (0..x.rank()).filter(|axis| !places.contains(axis));
    let order: Vec<i64> = others.chain(places.iter().copied()).map(|axis| axis as i64).collect();
    let dims = remaining(x, places, keeps);
    let (rows, length) =
        (dims.iter().product::<usize>(), places.iter().map(|&axis| x.dims()[axis]).product::<usize>());
    let moved = transposed(site, x, &order)?.reshape([rows, length])?;
    let output = Meta::new(x.dtype(), dims);
    let meta = output.clone();
    let form = move |inputs: &[Option<Tensor>]| host::reduce_rows(inputs, op, &meta);
    Ok(site.host(op, &[moved], vec![output], form)?.swap_remove(0))
}

/// What the functions do to single elements, which is nothing but for some.
fn nothing_reduced(site: &mut Site, op: &'static str) -> Rule {
    let x = site.input(0)?;
    Ok(match op {
        "reduceL1" | "reduceL2" => site.one("abs", &[x], &[])?.into(),
        "reduceSumSquare" => site.one("mul", &[x.clone(), x], &[])?.into(),
        "reduceLogSum" => site.one("log", &[x], &[])?.into(),
        _ => x.into(),
    })
}

fn log_sum_exp(site: &mut Site) -> Rule {
    reduced(site, "reduceLogSumExp")
}

/// float64 numbers that are largest (or smallest) along an axis where integers of 64 bits are: those that have the
/// extreme upper half by their lower half.
fn scores(site: &mut Site, x: &Operand, axis: i64) -> Result<Operand> {
    let half = site.list(&[1 << 32])?.reshape([])?;
    let half = site.cast(&half, x.dtype())?;
    let lower = site.one("mod", &[x.clone(), half.clone()], &[("fmod", Raw::Bool(false))])?;
    let rest = site.one("sub", &[x.clone(), lower.clone()], &[])?;
    let upper = site.one("div", &[rest, half], &[])?;
    let (lower, upper) = (site.cast(&lower, DType::F64)?, site.cast(&upper, DType::F64)?);
    let (op, worst) =
        if site.row.op == "argMax" { ("reduceMax", -1.0) } else { ("reduceMin", f64::INFINITY) };
    let extreme = site.one(op, std::slice::from_ref(&upper), &[("axes", ints(&[axis]))])?;
    let holds = site.one("equal", &[upper, extreme], &[])?;
    let worst = site.scalar(DType::F64, worst)?;
    site.one("where", &[holds, lower, worst], &[])
}

fn index(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let axis = site.node.int("axis", 0)?;
    let x = match x.dtype() {
        dtype if is_float(dtype) => x,
        DType::I64 | DType::U64 => scores(site, &x, axis)?,
        _ => site.cast(&x, DType::F64)?,
    };
    let options = [
        ("axis", Raw::Number(axis as f64)),
        ("keepDims", Raw::Bool(site.node.flag("keepdims", true)?)),
        ("selectLastIndex", Raw::Bool(site.node.flag("select_last_index", false)?)),
    ];
    Ok(site.one(site.row.op, &[x], &options)?.into())
}
