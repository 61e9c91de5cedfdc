//! Recurrent layers.

use super::{Operator, shared};
use crate::graph::plan::{Lowered, Operand, Rule, Site};
use crate::ops::Raw;
use crate::ops::recurrent::FUNCTIONS;
use crate::{Error, Result};

pub const ROWS: &[Operator] =
    &[shared("LSTM", "lstm", recurrent), shared("GRU", "gru", recurrent), shared("RNN", "rnn", recurrent)];

fn recurrent(site: &mut Site) -> Rule {
    // Operands stand in ONNX's order, which has the lengths before the initial states and the peepholes last.
    let count = if site.row.op == "lstm" { 8 } else { 6 };
    let mut operands: Vec<Option<Operand>> = (0..count).map(|index| site.optional(index)).collect();
    for operand in operands.iter_mut().take(3) {
        if operand.is_none() {
            return Err(Error::InvalidModel("an operand is missing".into()).into());
        }
    }
    let mut options = vec![
        ("direction", Raw::Text(site.node.word("direction", "forward")?)),
        ("layout", Raw::Number(site.node.int("layout", 0)? as f64)),
    ];
    if let Some(names) = site.node.words("activations")? {
        options.push(("activations", Raw::Names(names.iter().map(|name| function(name)).collect())));
    }
    for (option, attribute) in
        [("activationAlpha", "activation_alpha"), ("activationBeta", "activation_beta")]
    {
        if let Some(values) = site.node.floats(attribute)? {
            options.push((option, Raw::List(values)));
        }
    }
    if let Some(clip) = site.node.maybe_float("clip")? {
        options.push(("clip", Raw::Number(clip)));
    }
    options.extend(flag(site)?);
    Ok(Lowered::Values(site.call_with(site.row.op, &operands, &options)?))
}

/// The option that one kind of layer alone has.
fn flag(site: &Site) -> Result<Option<(&'static str, Raw)>> {
    let (option, attribute) = match site.row.op {
        "lstm" => ("inputForget", "input_forget"),
        "gru" => ("linearBeforeReset", "linear_before_reset"),
        _ => return Ok(None),
    };
    Ok(Some((option, Raw::Bool(site.node.flag(attribute, false)?))))
}

/// A function's name here: ONNX writes them with a capital, some writers as they like.
fn function(name: &str) -> String {
    let found = FUNCTIONS.iter().find(|known| known.eq_ignore_ascii_case(name));
    found.map_or_else(|| name.to_string(), |found| found.to_string())
}
