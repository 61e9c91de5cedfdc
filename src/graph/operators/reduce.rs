//! Reductions.

use super::layout::reduced_axes;
use super::{Operator, row, shared};
use crate::graph::plan::{Rule, Site, ints};
use crate::ops::Raw;

#[rustfmt::skip]
pub const ROWS: &[Operator] = &[
    shared("ReduceSum", "reduceSum", reduce), shared("ReduceMean", "reduceMean", reduce),
    shared("ReduceMax", "reduceMax", reduce), shared("ReduceMin", "reduceMin", reduce),
    shared("ReduceProd", "reduceProd", reduce), shared("ReduceL1", "reduceL1", reduce),
    shared("ReduceL2", "reduceL2", reduce), shared("ReduceSumSquare", "reduceSumSquare", reduce),
    shared("ReduceLogSum", "reduceLogSum", reduce), row("ReduceLogSumExp", log_sum_exp),
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
    let mut options = vec![("keepDims", Raw::Bool(site.node.flag("keepdims", true)?))];
    options.extend(axes.map(|axes| ("axes", ints(&axes))));
    if matches!(op, "reduceMax" | "reduceMin") {
        options.push(("empty", Raw::Text("identity".into())));
    }
    Ok(site.one(op, &[x], &options)?.into())
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

fn index(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let options = [
        ("axis", Raw::Number(site.node.int("axis", 0)? as f64)),
        ("keepDims", Raw::Bool(site.node.flag("keepdims", true)?)),
        ("selectLastIndex", Raw::Bool(site.node.flag("select_last_index", false)?)),
    ];
    Ok(site.one(site.row.op, &[x], &options)?.into())
}
