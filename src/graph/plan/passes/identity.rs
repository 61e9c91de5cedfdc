//! Calls that give their operand back go: products with 1, slices of everything.

use super::super::Operand;
use super::super::stage::Step;
use super::{List, number};

pub fn run(list: &mut List) {
    for index in 0..list.steps.len() {
        let Some((x, slot)) = list.steps[index].as_ref().and_then(unchanged) else { continue };
        if !list.is_live(slot) {
            list.take(index);
            list.redirect(slot, x.source());
        }
    }
}

/// The operand that a step's only result equals, element by element, and the result's slot.
fn unchanged(step: &Step) -> Option<(Operand, usize)> {
    let [slot] = step.outputs[..] else { return None };
    let output = step.call()?.output();
    let is = |operand: &Option<Operand>, value| operand.as_ref().and_then(number) == Some(value);
    let x = match (step.name, &step.inputs[..]) {
        ("mul", [one, Some(x)]) if is(one, 1.0) => x,
        ("mul" | "div", [Some(x), one]) if is(one, 1.0) => x,
        ("sub", [Some(x), zero]) if is(zero, 0.0) => x,
        ("slice", [Some(x)])
            if step.call()?.attrs.ints("steps").is_none_or(|all| all.iter().all(|&it| it > 0)) =>
        {
            x
        }
        _ => return None,
    };
    (x.dtype() == output.dtype && x.meta().size() == output.size() && x.known().is_none())
        .then(|| (x.clone(), slot))
}
