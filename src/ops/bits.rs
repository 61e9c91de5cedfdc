//! Elementwise ops on the bits of whole numbers.

use super::elements::{self, enqueue_named, join_of_wholes, map_wholes};
use super::spec::*;
use super::unary::same;
use super::{Call, UNSIGNED, WHOLES, binary};
use crate::cpu::scalar::Named;
use crate::cpu::whole::*;

const DIRECTION: Attribute = attribute("direction", Kind::Choice(&["left", "right"]), "Where bits move to.");

const fn row<F: WholeScalar>(doc: &'static str) -> OpSpec {
    let cpu = join_of_wholes::<F> as CpuForm;
    OpSpec {
        name: F::NAME,
        operands: binary::AB,
        attributes: &[],
        dtypes: WHOLES,
        results: Results::One,
        shape: binary::shape,
        cpu,
        cuda: enqueue_named,
        tolerance: Tolerance::Exact,
        doc,
    }
}

/// The family's rows.
pub const OPS: &[OpSpec] = &[
    row::<BitwiseAnd>("The bits that a and b have, with broadcasting (ONNX BitwiseAnd)."),
    row::<BitwiseOr>("The bits that a or b has, with broadcasting (ONNX BitwiseOr)."),
    row::<BitwiseXor>("The bits that one of a and b has, with broadcasting (ONNX BitwiseXor)."),
    OpSpec {
        operands: &[required("x")],
        shape: same,
        cpu: |call, inputs, outputs| {
            for_whole!(call.dtype(), map_wholes::<BitwiseNot>(call, inputs, outputs, [0.0; 2]))
        },
        ..row::<BitwiseNot>("The bits that x has not (ONNX BitwiseNot).")
    },
    OpSpec {
        name: "bitShift",
        attributes: &[DIRECTION],
        dtypes: UNSIGNED,
        cpu: |call, inputs, outputs| match function(call) {
            ShiftLeft::NAME => join_of_wholes::<ShiftLeft>(call, inputs, outputs),
            _ => join_of_wholes::<ShiftRight>(call, inputs, outputs),
        },
        cuda: |call, launcher, inputs, outputs| {
            elements::enqueue(call, (function(call), &[]), launcher, inputs, outputs)
        },
        ..row::<ShiftLeft>(
            "a with its bits moved by b places, with broadcasting; 0 from as many places on as it has bits (ONNX BitShift).",
        )
    },
];

fn function(call: &Call) -> &'static str {
    if call.attrs.choice(DIRECTION.name) == "left" { ShiftLeft::NAME } else { ShiftRight::NAME }
}
