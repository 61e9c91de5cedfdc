//! layerNorm and rmsNorm that a model spells out as several calls.

use super::super::Operand;
use super::super::stage::Step;
use super::trace::{Trace, exactly, same};
use super::{List, number, view};
use crate::Result;
use crate::ops::{FLOATS, Raw};
use crate::shape::size_of;

pub fn run(list: &mut List) -> Result<()> {
    for index in 0..list.steps.len() {
        spelled(list, index)?;
    }
    for index in 0..list.steps.len() {
        absorb(list, index)?;
    }
    Ok(())
}

/// Rows that are divided by the root of their mean square.
struct Rows {
    /// What is divided.
    x: Operand,
    /// First axis of a row.
    axis: usize,
    epsilon: f64,
    /// What the quotient is multiplied with.
    scale: Option<Operand>,
}

/// Replaces a norm whose last call, but for those that scale and shift, is at that place.
fn spelled(list: &mut List, index: usize) -> Result<()> {
    let Some(step) = list.steps[index].as_ref() else { return Ok(()) };
    if !step.call().is_some_and(|call| FLOATS.contains(&call.dtype()) && call.output().size() > 0) {
        return Ok(());
    }
    let mut trace = Trace { list, taken: vec![index] };
    let Some(rows) = divided(&mut trace, step) else { return Ok(()) };
    let mark = trace.taken.len();
    let centred = mean_taken(&mut trace, &rows);
    if centred.is_none() {
        trace.taken.truncate(mark);
    }
    let name = if centred.is_some() { "layerNorm" } else { "rmsNorm" };
    let taken = trace.taken;
    let dims = rows.x.dims().to_vec();
    let x = centred.unwrap_or(rows.x).reshape(dims)?;
    let options = [("axis", Raw::Number(rows.axis as f64)), ("epsilon", Raw::Number(rows.epsilon))];
    list.replace(&taken, name, vec![Some(x), rows.scale], &options)
}

/// x / sqrt(mean(x x) + epsilon), the quotient as such or as a product with a reciprocal, which may hold the scale.
fn divided(trace: &mut Trace, step: &Step) -> Option<Rows> {
    let dims = &step.call()?.output().dims;
    let [Some(a), Some(b)] = &step.inputs[..] else { return None };
    let orders: &[(&Operand, &Operand)] = match step.name {
        "div" => &[(a, b)],
        "mul" => &[(a, b), (b, a)],
        _ => return None,
    };
    for &(x, other) in orders.iter().filter(|(x, _)| x.dims() == dims) {
        trace.taken.truncate(1);
        let found = match step.name {
            "div" => root(trace, other, 0.5).map(|shifted| (shifted, other.clone(), None)),
            _ => factor(trace, other, x),
        };
        let Some((shifted, factor, scale)) = found else { continue };
        let Some((epsilon, inner)) = mean_square(trace, &shifted, x) else { continue };
        let Some(axis) = row_axis(factor.dims(), dims, inner) else { continue };
        return Some(Rows { x: x.clone(), axis, epsilon, scale });
    }
    None
}

/// What the operand is a power of, with that exponent of 0.5 or -0.5.
fn root(trace: &mut Trace, operand: &Operand, exponent: f64) -> Option<Operand> {
    if let Some(base) = trace.with_number(operand, "pow", false, exactly(exponent)) {
        return Some(base);
    }
    let mark = trace.taken.len();
    let inner = if exponent > 0.0 { Some(operand.clone()) } else { reciprocal(trace, operand) };
    let base = inner.and_then(|inner| trace.step(&inner, "sqrt")?.inputs.first()?.clone());
    if base.is_none() {
        trace.taken.truncate(mark);
    }
    base
}

fn reciprocal(trace: &mut Trace, operand: &Operand) -> Option<Operand> {
    if let Some(step) = trace.step(operand, "reciprocal") {
        return step.inputs.first()?.clone();
    }
    let mark = trace.taken.len();
    if let Some(step) = trace.step(operand, "div")
        && let [Some(one), Some(x)] = &step.inputs[..]
        && number(one) == Some(1.0)
    {
        return Some(x.clone());
    }
    trace.taken.truncate(mark);
    None
}

/// The operand as 1 / sqrt(sum), or as that times a scale: the sum, what stands for the reciprocal, the scale.
fn factor(trace: &mut Trace, operand: &Operand, x: &Operand) -> Option<(Operand, Operand, Option<Operand>)> {
    if let Some(shifted) = root(trace, operand, -0.5) {
        return Some((shifted, operand.clone(), None));
    }
    let mark = trace.taken.len();
    let step = trace.step(operand, "mul")?;
    let own = &step.call()?.output().dims;
    let [Some(a), Some(b)] = &step.inputs[..] else { return None };
    for (reciprocal, scale) in [(a, b), (b, a)] {
        trace.taken.truncate(mark + 1);
        if let Some(shifted) = root(trace, reciprocal, -0.5)
            && own == x.dims()
        {
            let inner = size_of(own) / reciprocal.meta().size().max(1);
            let axis = row_axis(reciprocal.dims(), own, inner)?;
            return Some((shifted, reciprocal.clone(), Some(parameter(scale, own, x, axis)?)));
        }
    }
    None
}

/// Epsilon and the length of rows where the operand is mean(x x) + epsilon.
fn mean_square(trace: &mut Trace, operand: &Operand, x: &Operand) -> Option<(f64, usize)> {
    let sum = trace.step(operand, "add")?;
    let [Some(a), Some(b)] = &sum.inputs[..] else { return None };
    let (mean, epsilon) = match (number(a), number(b)) {
        (_, Some(epsilon)) => (a, epsilon),
        (Some(epsilon), _) => (b, epsilon),
        _ => return None,
    };
    let step = trace.step(mean, "reduceMean")?;
    let inner = row_length(step)?;
    let square = step.inputs.first()?.as_ref()?;
    if let Some(base) = trace.with_number(square, "pow", false, exactly(2.0)) {
        return same(&base, x).then_some((epsilon, inner));
    }
    let step = trace.step(square, "mul")?;
    let [Some(a), Some(b)] = &step.inputs[..] else { return None };
    (same(a, x) && same(b, x) && a.dims() == b.dims()).then_some((epsilon, inner))
}

/// What the rows are without their means taken off, if that is where they come from.
fn mean_taken(trace: &mut Trace, rows: &Rows) -> Option<Operand> {
    let step = trace.step(&rows.x, "sub")?;
    let dims = &step.call()?.output().dims;
    let [Some(x), Some(mean)] = &step.inputs[..] else { return None };
    let inner = size_of(&rows.x.dims()[rows.axis..]);
    let reduced = trace.step(mean, "reduceMean")?;
    let fits = x.dims() == dims
        && row_length(reduced) == Some(inner)
        && row_axis(mean.dims(), dims, inner).is_some()
        && same(reduced.inputs.first()?.as_ref()?, x);
    fits.then(|| x.clone())
}

/// The number of elements that each result of a reduction is made of, if they lie side by side.
fn row_length(step: &Step) -> Option<usize> {
    let call = step.call()?;
    let rank = call.input(0).dims.len();
    let inner = call.input(0).size() / call.output().size().max(1);
    let first = match call.attrs.ints("axes") {
        None | Some([]) => 0,
        Some(axes) => {
            let mut axes: Vec<i64> =
                axes.iter().map(|&axis| if axis < 0 { axis + rank as i64 } else { axis }).collect();
            axes.sort_unstable();
            let first = *axes.first()? as usize;
            // Axes of one element may be left out.
            let whole =
                (first..rank).all(|axis| axes.contains(&(axis as i64)) || call.input(0).dims[axis] == 1);
            whole.then_some(first)?
        }
    };
    (size_of(&call.input(0).dims[first..]) == inner).then_some(inner)
}

/// The axis from which on `dims` hold rows of `inner` elements, each of which meets one element of an operand with dims `own`.
fn row_axis(own: &[usize], dims: &[usize], inner: usize) -> Option<usize> {
    let axis = (0..dims.len()).rev().find(|&axis| size_of(&dims[axis..]) == inner)?;
    let lead = dims.len().checked_sub(own.len())?;
    let at = |index: usize| if index < lead { 1 } else { own[index - lead] };
    let fits = (0..dims.len()).all(|index| at(index) == if index < axis { dims[index] } else { 1 });
    fits.then_some(axis)
}

/// A norm without scale or bias takes in the products and sums that follow with what fits a row.
fn absorb(list: &mut List, index: usize) -> Result<()> {
    let mut at = index;
    while let Some(step) = list.steps[at].as_ref().filter(|step| matches!(step.name, "layerNorm" | "rmsNorm"))
    {
        let Some(next) = list.only_reader(at) else { return Ok(()) };
        let Some(inputs) = list.steps[next].as_ref().and_then(|next| taken_in(step, next)) else {
            return Ok(());
        };
        let joined = step.rebuilt(inputs, &[])?;
        let Some(after) = list.take(next) else { return Ok(()) };
        list.take(at);
        list.put(next, Step { outputs: after.outputs, ..joined });
        at = next;
    }
    Ok(())
}

/// Operands of the norm that includes the next step.
fn taken_in(norm: &Step, next: &Step) -> Option<Vec<Option<Operand>>> {
    let [slot] = norm.outputs[..] else { return None };
    let mut inputs = norm.inputs.clone();
    inputs.resize(if norm.name == "layerNorm" { 3 } else { 2 }, None);
    let place = match next.name {
        "mul" if inputs[1].is_none() && inputs.get(2).is_none_or(Option::is_none) => 1,
        "add" if norm.name == "layerNorm" && inputs[2].is_none() => 2,
        _ => return None,
    };
    let dims = &next.call()?.output().dims;
    let [Some(a), Some(b)] = &next.inputs[..] else { return None };
    let is_norm = |operand: &Operand| matches!(operand.source(), super::Source::Slot(read) if *read == slot);
    let other = match (is_norm(a) && a.dims() == dims, is_norm(b) && b.dims() == dims) {
        (true, false) => b,
        (false, true) => a,
        _ => return None,
    };
    let x = norm.inputs[0].as_ref()?;
    let axis = norm.call()?.attrs.int("axis");
    let axis = if axis < 0 { axis + x.rank() as i64 } else { axis } as usize;
    inputs[place] = Some(parameter(other, dims, x, axis)?);
    Some(inputs)
}

/// An operand of a call with results of dims `from` as scale or bias of rows of x.
fn parameter(operand: &Operand, from: &[usize], x: &Operand, axis: usize) -> Option<Operand> {
    let row = x.dims().get(axis..)?;
    let wide = view::regrouped(operand.dims(), from, x.dims())?;
    let lead = x.rank().checked_sub(wide.len())?;
    let at = |index: usize| if index < lead { 1 } else { wide[index - lead] };
    let fits = (0..x.rank()).all(|index| at(index) == if index < axis { 1 } else { x.dims()[index] });
    if !fits || operand.dtype() != x.dtype() {
        return None;
    }
    operand.reshape(row).ok()
}
