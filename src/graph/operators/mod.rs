//! The operator table: what each ONNX operator becomes. A row's rule reads the node's attributes and operands, in the meaning
//! of the node's version, and makes calls of the op table; what has no call there has a form on the host.

mod attention;
mod control;
mod conv;
mod einsum;
mod elementwise;
mod equation;
mod layout;
mod loss;
mod matmul;
mod norm;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod select;
mod sequence;
mod shape;
mod signal;
mod vision;

use super::plan::{Rule, Site};
use super::{Graph, Node};
use crate::error::quoted;
use crate::{DType, Error, Result};
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

/// A row of the table.
pub struct Operator {
    /// Name in ONNX.
    pub name: &'static str,
    /// Operator set; empty for ONNX's own.
    pub domain: &'static str,
    /// The call that the rule makes above all others: rules of several rows read it here, and it says which types are taken.
    pub op: &'static str,
    /// Number attributes that such a rule hands on.
    pub attributes: &'static [&'static str],
    /// What has a form on the host alone: `None` for nothing, empty for everything.
    pub host: Option<&'static str>,
    /// The rule.
    pub lower: fn(&mut Site) -> Rule,
}

impl Operator {
    /// The row of an operator that runs on the host where the words say so; always if they are empty.
    const fn on_host(self, what: &'static str) -> Operator {
        Operator { host: Some(what), ..self }
    }
}

/// A row with a rule of its own.
pub(super) const fn row(name: &'static str, lower: fn(&mut Site) -> Rule) -> Operator {
    Operator { name, domain: "", op: "", attributes: &[], host: None, lower }
}

/// A row with its call.
pub(super) const fn shared(name: &'static str, op: &'static str, lower: fn(&mut Site) -> Rule) -> Operator {
    Operator { op, ..row(name, lower) }
}

/// The element type of that number in ONNX.
pub(super) fn element_type(number: i64) -> Result<DType> {
    let row = crate::DTYPES.iter().find(|row| i64::from(row.onnx) == number);
    let unknown = || Error::UnsupportedDtype(format!("element type {number} is not supported"));
    Ok(row.ok_or_else(unknown)?.dtype)
}

/// Whole numbers for which sums and the like have no call.
const OTHER_TYPES: &str = "for other whole numbers";

const FAMILIES: &[&[Operator]] = &[
    attention::ROWS,
    control::ROWS,
    conv::ROWS,
    einsum::ROWS,
    elementwise::ROWS,
    layout::ROWS,
    loss::ROWS,
    matmul::ROWS,
    norm::ROWS,
    pool::ROWS,
    quantize::ROWS,
    recurrent::ROWS,
    reduce::ROWS,
    select::ROWS,
    sequence::ROWS,
    shape::ROWS,
    signal::ROWS,
    vision::ROWS,
];

/// Every row.
pub fn all() -> impl Iterator<Item = &'static Operator> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

fn table() -> &'static HashMap<(&'static str, &'static str), &'static Operator> {
    static TABLE: OnceLock<HashMap<(&'static str, &'static str), &'static Operator>> = OnceLock::new();
    TABLE.get_or_init(|| all().map(|row| ((row.domain, row.name), row)).collect())
}

/// The row of a node's operator.
pub fn find(node: &Node) -> Result<&'static Operator> {
    let row = table().get(&(node.domain.as_str(), node.op.as_str()));
    row.copied()
        .ok_or_else(|| Error::UnsupportedOp(format!("operator {} is not supported", quoted(&node.op))))
}

/// One error that names every operator of the model that has no row.
pub fn check(graph: &Graph) -> Result<()> {
    let mut unknown = BTreeSet::new();
    for node in graph.all_nodes().into_iter().filter(|node| find(node).is_err()) {
        let domain = if node.domain.is_empty() { String::new() } else { format!("{}.", node.domain) };
        unknown.insert(format!("{domain}{} (version {})", node.op, node.version));
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = unknown.into_iter().collect();
    Err(Error::UnsupportedOp(format!("model: operators that are not supported: {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_calls_exist() {
        let mut names = std::collections::HashSet::new();
        for row in all() {
            assert!(names.insert((row.domain, row.name)), "{} appears twice", row.name);
            assert!(
                row.op.is_empty() || crate::ops::find(row.op).is_ok(),
                "{}: no op '{}'",
                row.name,
                row.op
            );
        }
    }
}
