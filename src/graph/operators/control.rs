//! Operators that run graphs.

use super::{Operator, row};
use crate::graph::plan::{Lowered, Repeat, Rule, Site, is_true};
use crate::shape::normalize_axis;
use crate::{Error, Result};

pub const ROWS: &[Operator] = &[row("If", branch), row("Loop", repeat), row("Scan", scan)];

fn branch(site: &mut Site) -> Rule {
    let condition = is_true(&site.value(0)?)?;
    Ok(Lowered::Branch(site.node.graph(if condition { "then_branch" } else { "else_branch" })?))
}

fn repeat(site: &mut Site) -> Rule {
    let body = site.node.graph("body")?;
    let trips = match site.optional(0) {
        Some(_) => Some(site.integer(0)?.max(0) as u64),
        None => None,
    };
    let going = match site.optional(1) {
        Some(_) => is_true(&site.value(1)?)?,
        None => true,
    };
    let carried = (2..site.operands().len()).map(|index| site.input(index)).collect::<Result<Vec<_>>>()?;
    let Some(stacked) = body.outputs.len().checked_sub(1 + carried.len()) else {
        return Err(Error::InvalidModel("the body gives fewer values than it is handed".into()).into());
    };
    Ok(Lowered::Repeat(Box::new(Repeat {
        body,
        conditional: true,
        trips,
        going,
        done: 0,
        carried,
        sliced: Vec::new(),
        stacked: vec![(0, false); stacked],
        slices: vec![Vec::new(); stacked],
    })))
}

fn scan(site: &mut Site) -> Rule {
    if site.version() < 9 {
        return Err(Error::UnsupportedOp("versions below 9 are not supported".into()).into());
    }
    let body = site.node.graph("body")?;
    let inputs = (0..site.operands().len()).map(|index| site.input(index)).collect::<Result<Vec<_>>>()?;
    let count = site.node.int("num_scan_inputs", 0)?;
    let split = usize::try_from(count).ok().and_then(|count| inputs.len().checked_sub(count));
    let Some((carried, scanned)) = split.and_then(|at| inputs.split_at_checked(at)) else {
        return Err(
            Error::InvalidModel(format!("{count} of {} operands are to be scanned", inputs.len())).into()
        );
    };
    let list = |name: &str| Ok::<_, Error>(site.node.ints(name)?.unwrap_or_default());
    let (axes, directions) = (list("scan_input_axes")?, list("scan_input_directions")?);
    let mut sliced = Vec::new();
    let mut trips = None;
    for (index, operand) in scanned.iter().enumerate() {
        let axis = normalize_axis("Scan", axes.get(index).copied().unwrap_or(0), operand.rank())?;
        let length = operand.dims()[axis] as u64;
        if *trips.get_or_insert(length) != length {
            return Err(Error::ShapeMismatch("the scanned operands differ in length".into()).into());
        }
        sliced.push((operand.clone(), axis, directions.get(index) == Some(&1)));
    }
    let Some(stacked) = body.outputs.len().checked_sub(carried.len()) else {
        return Err(Error::InvalidModel("the body gives fewer values than it is handed".into()).into());
    };
    let (axes, directions) = (list("scan_output_axes")?, list("scan_output_directions")?);
    let mut outputs = Vec::with_capacity(stacked);
    for index in 0..stacked {
        let declared = body.values[body.outputs[carried.len() + index].index()].declared.as_ref();
        let rank = declared.and_then(|declared| declared.dims.as_ref()).map_or(0, Vec::len) + 1;
        let axis = axes.get(index).copied().unwrap_or(0);
        outputs.push((normalize_axis("Scan", axis, rank)?, directions.get(index) == Some(&1)));
    }
    Ok(Lowered::Repeat(Box::new(Repeat {
        body,
        conditional: false,
        trips,
        going: true,
        done: 0,
        carried: carried.to_vec(),
        sliced,
        slices: vec![Vec::new(); stacked],
        stacked: outputs,
    })))
}
