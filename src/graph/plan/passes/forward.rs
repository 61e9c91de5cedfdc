//! A number that every element of a convolution's operand is scaled or shifted by goes into the weights after it. Shifts do
//! where nothing is padded, since padding is not shifted.

use super::super::Operand;
use super::super::builder::Builder;
use super::super::stage::Step;
use super::affine::lasting;
use super::{List, number};
use crate::Result;
use crate::ops::Raw;
use crate::tensor::Tensor;

/// Convolutions whose weights are [filters, channels, window].
const CONVOLUTIONS: &[&str] = &["conv1d", "conv2d", "conv3d"];

pub fn run(builder: &mut Builder, list: &mut List) -> Result<()> {
    for index in 0..list.steps.len() {
        while fold(builder, list, index)? {}
    }
    Ok(())
}

/// What a step does to each element of a value.
enum Change {
    Scale(f64),
    Shift(f64),
}

/// Takes the step that writes the operand of the convolution at that place in, if it is such a step.
fn fold(builder: &mut Builder, list: &mut List, index: usize) -> Result<bool> {
    let Some(step) = list.steps[index].as_ref().filter(|step| CONVOLUTIONS.contains(&step.name)) else {
        return Ok(false);
    };
    let (Some(Some(x)), Some(Some(weights))) = (step.inputs.first(), step.inputs.get(1)) else {
        return Ok(false);
    };
    let Some(before) = list.writer(x).filter(|&before| list.only_reader(before) == Some(index)) else {
        return Ok(false);
    };
    let Some((inner, change)) = list.steps[before].as_ref().and_then(change) else { return Ok(false) };
    if lasting(weights).is_none() || inner.dtype() != x.dtype() || inner.meta().size() != x.meta().size() {
        return Ok(false);
    }
    let mut inputs = step.inputs.clone();
    match change {
        Change::Shift(_) if !is_unpadded(step) => return Ok(false),
        Change::Shift(value) => {
            if inputs.get(2).is_some_and(|bias| bias.as_ref().is_some_and(|bias| lasting(bias).is_none())) {
                return Ok(false);
            }
            inputs.resize(3, None);
            inputs[2] = Some(shifted(builder, weights, inputs[2].as_ref(), value)?);
        }
        Change::Scale(value) => {
            let factor = constant(builder, value, weights)?;
            inputs[1] = Some(call(builder, "mul", &[weights.clone(), factor], &[])?);
        }
    }
    inputs[0] = Some(inner.reshape(x.dims())?);
    let folded = step.rebuilt(inputs, &[])?;
    list.take(index);
    list.take(before);
    list.put(index, folded);
    Ok(true)
}

/// The operand and what the step does to it, with a finite number.
fn change(step: &Step) -> Option<(Operand, Change)> {
    let [Some(a), Some(b)] = &step.inputs[..] else { return None };
    let (value, first, x) = match (number(a), number(b)) {
        (None, Some(value)) => (value, true, a),
        (Some(value), None) => (value, false, b),
        _ => return None,
    };
    let change = match step.name {
        "mul" => Change::Scale(value),
        "div" if first => Change::Scale(1.0 / value),
        "add" => Change::Shift(value),
        "sub" if first => Change::Shift(-value),
        _ => return None,
    };
    let is_finite = matches!(change, Change::Scale(it) | Change::Shift(it) if it.is_finite());
    is_finite.then(|| (x.clone(), change))
}

fn is_unpadded(step: &Step) -> bool {
    let Some(call) = step.call() else { return false };
    !call.attrs.choice("autoPad").starts_with("SAME")
        && call.attrs.ints("pads").is_none_or(|pads| pads.iter().all(|&pad| pad == 0))
}

/// The bias with the shift's share: that times the sum of each filter's weights.
fn shifted(builder: &mut Builder, weights: &Operand, bias: Option<&Operand>, value: f64) -> Result<Operand> {
    let filters = weights.dims()[0];
    let axes = Raw::List((1..weights.rank()).map(|axis| axis as f64).collect());
    let sums = call(
        builder,
        "reduceSum",
        std::slice::from_ref(weights),
        &[("axes", axes), ("keepDims", Raw::Bool(false))],
    )?;
    let factor = constant(builder, value, weights)?;
    let share = call(builder, "mul", &[sums.reshape([filters])?, factor], &[])?;
    match bias {
        Some(bias) => call(builder, "add", &[bias.clone(), share], &[]),
        None => Ok(share),
    }
}

/// The number in the type of the weights.
fn constant(builder: &mut Builder, value: f64, weights: &Operand) -> Result<Operand> {
    let number = Operand::constant(Tensor::from_slice(crate::DType::F64, [], &[value])?, true);
    call(builder, "cast", &[number], &[("to", Raw::Text(weights.dtype().name().into()))])
}

fn call(
    builder: &mut Builder,
    op: &'static str,
    operands: &[Operand],
    options: &[(&str, Raw)],
) -> Result<Operand> {
    let operands: Vec<_> = operands.iter().cloned().map(Some).collect();
    let options: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    Ok(builder.call(op, &operands, &options)?.swap_remove(0))
}
