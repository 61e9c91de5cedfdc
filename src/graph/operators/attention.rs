//! Attention.

use super::{Operator, shared};
use crate::graph::plan::{Lowered, Operand, Rule, Site};
use crate::ops::Raw;
use crate::{Error, Result};

pub const ROWS: &[Operator] =
    &[shared("Attention", "attention", attention), shared("RotaryEmbedding", "rotaryEmbedding", rotary)];

/// Numbers of heads by their options.
fn heads(site: &Site, names: &[(&'static str, &str)]) -> Result<Vec<(&'static str, Raw)>> {
    names.iter().map(|&(option, name)| Ok((option, Raw::Number(site.node.int(name, 0)? as f64)))).collect()
}

/// The result, then all keys and values, then the scores, as the node has them.
fn attention(site: &mut Site) -> Rule {
    let mut operands: Vec<Option<Operand>> = (0..7).map(|index| site.optional(index)).collect();
    let q = site.input(0)?;
    if let Some(mask) = &operands[3]
        && super::elementwise::is_float(mask.dtype())
    {
        operands[3] = Some(site.cast(&mask.clone(), q.dtype())?);
    }
    let mut options = heads(site, &[("qNumHeads", "q_num_heads"), ("kvNumHeads", "kv_num_heads")])?;
    options.push(("causal", Raw::Bool(site.node.flag("is_causal", false)?)));
    options.push(("softcap", Raw::Number(site.node.float("softcap", 0.0)?)));
    if let Some(scale) = site.node.maybe_float("scale")? {
        options.push(("scale", Raw::Number(scale)));
    }
    let present = site.wants(1) || site.wants(2) || site.wants(3);
    options.push(("present", Raw::Bool(present)));
    if site.wants(3) {
        let word = match site.node.int("qk_matmul_output_mode", 0)? {
            0 => "products",
            1 => "masked",
            2 => "capped",
            3 => "weights",
            mode => return Err(Error::InvalidModel(format!("'qk_matmul_output_mode' is {mode}")).into()),
        };
        options.push(("scores", Raw::Text(word.into())));
    }
    Ok(Lowered::Values(site.call_with("attention", &operands, &options)?))
}

fn rotary(site: &mut Site) -> Rule {
    let operands: Vec<Option<Operand>> = (0..4).map(|index| site.optional(index)).collect();
    let mut options =
        heads(site, &[("numHeads", "num_heads"), ("rotaryEmbeddingDim", "rotary_embedding_dim")])?;
    options.push(("interleaved", Raw::Bool(site.node.flag("interleaved", false)?)));
    Ok(Lowered::Values(site.call_with("rotaryEmbedding", &operands, &options)?))
}
