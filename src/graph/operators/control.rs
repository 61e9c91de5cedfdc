//! Operators that run graphs.

use super::{Operator, row};
use crate::graph::plan::{Lowered, Repeat, Rule, Site, is_true};
use crate::graph::{Attribute, Capture, Graph, Node, ValueId};
use crate::shape::normalize_axis;
use crate::{Error, Result};
use std::sync::Arc;

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
        return scan_batches(site);
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

/// Version 8 has a batch as the first axis of everything: a scan of each of its members, as a body around the body.
fn scan_batches(site: &mut Site) -> Rule {
    let operands = (1..site.operands().len()).map(|index| site.input(index)).collect::<Result<Vec<_>>>()?;
    let batch = operands.first().and_then(|operand| operand.dims().first().copied()).unwrap_or(0);
    if let Some(odd) = operands.iter().find(|operand| operand.dims().first() != Some(&batch)) {
        let text = format!("a batch of {batch} is wanted, got dims {:?}", odd.dims());
        return Err(Error::ShapeMismatch(text).into());
    }
    if let Some(lengths) = site.maybe_integers(0)? {
        let whole = operands.last().and_then(|operand| operand.dims().get(1)).map(|&length| length as i64);
        if lengths.iter().any(|&length| Some(length) != whole) {
            return Err(
                Error::UnsupportedOp("sequence_lens of different lengths are not supported".into()).into()
            );
        }
    }
    let body = Arc::new(around(site.node)?);
    let stacked = body.outputs.len();
    Ok(Lowered::Repeat(Box::new(Repeat {
        body,
        conditional: false,
        trips: Some(batch as u64),
        going: true,
        done: 0,
        carried: Vec::new(),
        sliced: operands.into_iter().map(|operand| (operand, 0, false)).collect(),
        stacked: vec![(0, false); stacked],
        slices: vec![Vec::new(); stacked],
    })))
}

/// A graph of one node: the scan without a batch.
fn around(node: &Node) -> Result<Graph> {
    let mut body = (*node.graph("body")?).clone();
    let mut graph = Graph { name: body.name.clone(), ..Graph::default() };
    let same = |ids: &[ValueId], graph: &mut Graph| -> Vec<ValueId> {
        ids.iter().map(|id| graph.add_value(body.name_of(*id))).collect()
    };
    graph.inputs = same(&body.inputs, &mut graph);
    graph.outputs = same(&body.outputs, &mut graph);
    for capture in &mut body.captures {
        let inner = graph.add_value("");
        graph.captures.push(Capture { outer: capture.outer, inner });
        capture.outer = inner;
    }
    let mut attributes = node.attributes.clone();
    if let Some(directions) = attributes.remove("directions") {
        attributes.insert("scan_input_directions".into(), directions);
    }
    attributes.insert("body".into(), Attribute::Graph(Arc::new(body)));
    graph.nodes.push(Node {
        version: 9,
        inputs: graph.inputs.iter().copied().map(Some).collect(),
        outputs: graph.outputs.iter().copied().map(Some).collect(),
        attributes,
        ..node.clone()
    });
    Ok(graph)
}
