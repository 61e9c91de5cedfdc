//! A sum of a product and another value is part of the product.

use super::super::stage::Step;
use super::{List, view};
use crate::Result;
use crate::shape::size_of;

pub fn run(list: &mut List) -> Result<()> {
    for index in 0..list.steps.len() {
        attach(list, index)?;
    }
    Ok(())
}

fn attach(list: &mut List, index: usize) -> Result<()> {
    let Some(next) = list.only_reader(index) else { return Ok(()) };
    let (Some(product), Some(sum)) = (&list.steps[index], &list.steps[next]) else { return Ok(()) };
    let Some(joined) = joined(product, sum)? else { return Ok(()) };
    list.take(index);
    list.take(next);
    // The later place, where the other value is there.
    list.put(next, joined);
    Ok(())
}

/// The product with its `c`, if the sum can be that.
fn joined(product: &Step, sum: &Step) -> Result<Option<Step>> {
    let (Some(call), Some(after)) = (product.call(), sum.call()) else { return Ok(None) };
    let free = product.name == "matmul"
        && product.inputs.get(2).is_none_or(Option::is_none)
        && call.attrs.choice("activation") == "none"
        && call.attrs.dtype("outputType").is_none();
    let (true, "add", [Some(a), Some(b)], [slot]) = (free, sum.name, &sum.inputs[..], &product.outputs[..])
    else {
        return Ok(None);
    };
    let (dims, own) = (&after.output().dims, &call.output().dims);
    let is_product = |operand: &super::Operand| {
        matches!(operand.source(), super::Source::Slot(read) if read == slot) && operand.dims() == dims
    };
    let other = match (is_product(a), is_product(b)) {
        (true, false) => b,
        (false, true) => a,
        _ => return Ok(None),
    };
    let Some(c) =
        view::under(other, dims, own).filter(|c| c.known().is_none() && c.meta().size() == size_of(own))
    else {
        return Ok(None);
    };
    let mut inputs = product.inputs.clone();
    inputs.resize(inputs.len().max(3), None);
    inputs[2] = Some(c);
    let mut step = product.rebuilt(inputs, &[("beta", crate::ops::Raw::Number(1.0))])?;
    step.outputs = sum.outputs.clone();
    Ok(Some(step))
}
