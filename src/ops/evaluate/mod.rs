//! `evaluate`: elementwise expressions as one pass over their operands, as numexpr's.
//!
//! Every function is that of the op of its name, applied in the order written: nothing is contracted, so that in float32 and
//! float64 the result has the bits of the same ops called one by one. Operands of 16 bits are computed with in float32 and
//! the result is rounded once, where single ops round each time.

mod cpu;
mod cuda;
mod expression;
pub(super) mod layout;
mod lexer;
mod parse;

pub use expression::{Expression, MOST_INPUTS, MOST_NUMBERS, MOST_STEPS, Term};
pub use parse::{MOST_BYTES, MOST_DEPTH, parse};

use super::operands::device_operand;
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::kernels::Launcher;
use crate::shape::broadcast;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result, invalid, mismatch};

const EXPRESSION: Attribute = attribute(
    "expression",
    Kind::Text,
    "Names of operands, numbers, + - * / **, comparisons (1 or 0), && || !, and the elementwise ops by name with their attributes.",
);
const NAMES: Attribute = attribute("names", Kind::Names, "The operands' names in order.");

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "evaluate",
    operands: &[named("inputs")],
    attributes: &[EXPRESSION, NAMES],
    dtypes: FLOATS,
    results: Results::One,
    shape,
    cpu: cpu_form,
    cuda: cuda_form,
    tolerance: Tolerance::Function,
    doc: "The expression's value for each element of its operands with broadcasting, in one pass; tensors of type bool among them are 1 \
          or 0; see docs/api.md.",
}];

fn expression_of(attrs: &Attrs) -> Result<std::sync::Arc<Expression>> {
    if let Some(built) = attrs.expression(EXPRESSION.name) {
        return Ok(built.clone());
    }
    parse(attrs.text(EXPRESSION.name), attrs.names(NAMES.name)).map(std::sync::Arc::new)
}

/// The call of an expression that was built rather than written, over operands that broadcast to the result. Its text is
/// not needed, and it is not checked again. Values are floats of one type; operands may be bool, 1 or 0 then, and so may the
/// result, which holds where the value is not 0.
pub fn fused(expression: Expression, inputs: Vec<Meta>, output: Meta) -> Result<Call> {
    let spec = &OPS[0];
    let attrs = Attrs::built(EXPRESSION.name, std::sync::Arc::new(expression));
    let inputs = inputs.into_iter().map(Some).collect();
    Ok(Call { spec, inputs, attrs, precision: super::Precision::default(), outputs: vec![output] })
}

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let names = attrs.names(NAMES.name);
    if inputs.len() > MOST_INPUTS {
        return invalid!("evaluate: 'inputs' must hold at most {MOST_INPUTS} operands, got {}", inputs.len());
    }
    if names.len() != inputs.len() {
        return invalid!("evaluate: 'names' must hold {} names, got {}", inputs.len(), names.len());
    }
    if let Some(name) = names.iter().find(|name| !lexer::is_name(name)) {
        return invalid!(
            "evaluate: the name '{name}' must be of letters, digits and _, and not begin with a digit"
        );
    }
    let expression = expression_of(attrs)?;
    let mut dims = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if !expression.reads(index) {
            return invalid!("evaluate: operand '{name}' does not occur in the expression");
        }
        let own = &spec.operand(inputs, index)?.dims;
        dims = match broadcast(spec.name, &dims, own) {
            Ok(dims) => dims,
            Err(_) => {
                return mismatch!("evaluate: '{name}' with dims {own:?} does not broadcast with {dims:?}");
            }
        };
    }
    let float = inputs.iter().flatten().find(|meta| meta.dtype != DType::Bool);
    let Some(float) = float else {
        return invalid!("evaluate: 'inputs' must hold an operand of floats, got bool alone");
    };
    Ok(vec![Meta::new(float.dtype, dims)])
}

fn cpu_form(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    cpu::run(call, &*expression_of(&call.attrs)?, inputs, outputs)
}

fn cuda_form(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    enqueue(call, &*expression_of(&call.attrs)?, launcher, inputs, outputs)
}

/// Enqueues an expression over the operands of a call.
pub(super) fn enqueue(
    call: &Call,
    expression: &Expression,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let types: Vec<DType> = (0..inputs.len()).map(|index| call.input(index).dtype).collect();
    let (element, result) = (call.dtype(), call.output().dtype);
    enqueue_as(call, (element, &types, result), expression, launcher, inputs, outputs)
}

/// The same with elements taken as those of other types: that of the values, the operands' and the result's.
pub(super) fn enqueue_as(
    call: &Call,
    (element, types, result): (DType, &[DType], DType),
    expression: &Expression,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let operand = |(index, &dtype): (usize, &DType)| {
        Ok((call.input(index).dims.as_slice(), dtype, device_operand(call, inputs, index)?))
    };
    let operands: Vec<_> = types.iter().enumerate().map(operand).collect::<Result<_>>()?;
    let out = (call.output().dims.as_slice(), result, outputs[0].ptr);
    cuda::enqueue(launcher, expression, element, &operands, out)
}

#[cfg(test)]
mod tests;
