//! Topological order, by Kahn's method ("Topological sorting of large networks", 1962).

use super::{Graph, ValueId};
use crate::error::quoted;
use crate::{Error, Result};
use std::collections::VecDeque;

/// Sorts the nodes so that each follows those whose results it reads; nodes that are free to choose keep the order they
/// came in. An error names a cycle.
pub fn sort(graph: &mut Graph) -> Result<()> {
    let writers = writers(graph);
    let mut waits = vec![0usize; graph.nodes.len()];
    let mut readers = vec![Vec::new(); graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for writer in node.reads().filter_map(|id| writers[id.index()]) {
            waits[index] += 1;
            readers[writer].push(index);
        }
    }
    let mut ready: VecDeque<usize> = (0..waits.len()).filter(|&index| waits[index] == 0).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some(index) = ready.pop_front() {
        order.push(index);
        for &reader in &readers[index] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.push_back(reader);
            }
        }
    }
    if order.len() < waits.len() {
        return Err(cycle(graph, &writers, &waits));
    }
    let mut nodes: Vec<_> = std::mem::take(&mut graph.nodes).into_iter().map(Some).collect();
    graph.nodes = order.into_iter().filter_map(|index| nodes[index].take()).collect();
    Ok(())
}

/// The node that writes each value.
fn writers(graph: &Graph) -> Vec<Option<usize>> {
    let mut writers = vec![None; graph.values.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for id in node.outputs.iter().flatten() {
            writers[id.index()] = Some(index);
        }
    }
    writers
}

/// Follows a node that still waits back through what it waits for, until a node comes again.
fn cycle(graph: &Graph, writers: &[Option<usize>], waits: &[usize]) -> Error {
    let waiting = |id: ValueId| writers[id.index()].filter(|&writer| waits[writer] > 0);
    let mut seen = vec![usize::MAX; waits.len()];
    let mut path: Vec<usize> = Vec::new();
    let mut at = waits.iter().position(|&count| count > 0);
    while let Some(index) = at {
        if seen[index] != usize::MAX {
            path.drain(..seen[index]);
            break;
        }
        seen[index] = path.len();
        path.push(index);
        at = graph.nodes[index].reads().find_map(waiting);
    }
    let names: Vec<_> = path.iter().rev().take(8).map(|&index| describe(graph, index)).collect();
    let more = if path.len() > names.len() { " and others" } else { "" };
    Error::InvalidModel(format!("model: nodes wait for each other: {}{more}", names.join(", ")))
}

fn describe(graph: &Graph, index: usize) -> String {
    let node = &graph.nodes[index];
    let name = node.outputs.iter().flatten().next().map_or("", |&id| graph.name_of(id));
    format!("{} that gives {}", quoted(&node.op), quoted(name))
}
