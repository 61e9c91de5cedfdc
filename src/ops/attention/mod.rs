//! attention: softmax(mask(q k^T)) v over heads.

mod cpu;
mod cuda;
mod fused;
mod problem;

use self::cpu::run as on_cpu;
use self::problem::{MASKING, Problem, SCORES};
use super::spec::*;
use super::{Attrs, FLOATS};
use crate::{DType, Result, for_float};

const MASK: Operand = Operand {
    dtypes: &[DType::Bool, DType::U8, DType::F32, DType::F64, DType::F16, DType::Bf16],
    ..optional("mask")
};
const LENGTHS: Operand = Operand {
    dtypes: INDICES,
    range: Some(|call| {
        let keys = Problem::of(call)?.keys;
        Ok(Range { low: 0, high: keys as i64, of: format!("for {keys} keys") })
    }),
    ..optional("nonpadKvSeqlen")
};

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "attention",
    operands: &[
        required("q"),
        required("k"),
        required("v"),
        MASK,
        optional("pastKey"),
        optional("pastValue"),
        LENGTHS,
    ],
    attributes: &[
        attribute("causal", Kind::Bool(false), "Whether a query sees no keys behind its own place."),
        attribute(
            "scale",
            Kind::Float(f64::NAN),
            "Factor of the products; 1 / sqrt(size of a head) when left out.",
        ),
        attribute(
            "softcap",
            Kind::Float(0.0),
            "Products become softcap * tanh(product / softcap); 0: they stay.",
        ),
        attribute("qNumHeads", Kind::Int(Some(0)), "Number of heads of q where operands have three axes."),
        attribute(
            "kvNumHeads",
            Kind::Int(Some(0)),
            "Number of heads of k and v where operands have three axes.",
        ),
        attribute(
            "present",
            Kind::Bool(false),
            "Whether all keys and values, those of the past first, are results too: a list comes.",
        ),
        attribute(
            "scores",
            Kind::Choice(SCORES),
            "What else is the last result, for each query and key: the products, the same within softcap, with the mask, or \
             the weights that multiply v.",
        ),
        attribute(
            "masking",
            Kind::Choice(MASKING),
            "What -Infinity in a mask of numbers does: hide, it stands for whatever was there, and a query that sees no key \
             gives 0; add, it is a summand like others, and such a query gives NaN, as a softmax that is written out does; \
             guarded, the same with weights of 0 in place of NaN.",
        ),
    ],
    dtypes: FLOATS,
    results: Results::OneAnd(&["present", "scores"]),
    shape,
    cpu: |call, inputs, outputs| for_float!(call.dtype(), on_cpu(call, inputs, outputs)),
    cuda: cuda::run,
    tolerance: Tolerance::Normalized,
    doc: "softmax(scale * q k^T + mask) v for q [batch, heads, queries, size], k [batch, key heads, keys, size] and v [batch, \
          key heads, keys, value size], or [batch, queries or keys, heads * size]; several heads of q may share one of k and \
          v. mask broadcasts to [batch, heads, queries, keys]: numbers that are added, or where it is bool, whether a query \
          sees a key; keys beyond its last axis are not seen, nor are those from nonpadKvSeqlen [batch] on. pastKey and \
          pastValue come before k and v. A query that sees no key gives 0 (ONNX Attention, with softcap before the mask).",
}];

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let problem = Problem::new(spec, inputs, attrs)?;
    let dtype = spec.operand(inputs, 0)?.dtype;
    Ok(problem.results().into_iter().map(|dims| Meta::new(dtype, dims)).collect())
}

/// Positions of the operands.
mod at {
    pub const Q: usize = 0;
    pub const K: usize = 1;
    pub const V: usize = 2;
    pub const MASK: usize = 3;
    pub const PAST_KEY: usize = 4;
    pub const PAST_VALUE: usize = 5;
    pub const LENGTHS: usize = 6;
}
