//! Before the values: products of queries and keys, their scale and mask, softmax.

use super::super::super::Operand;
use super::super::super::stage::Step;
use super::super::trace::{Trace, same};
use super::super::{List, number, view};
use super::heads::turned_once;
use super::plain_product;
use crate::shape::size_of;

/// What comes before the softmax.
pub(super) struct Scores {
    pub q: Operand,
    /// Keys, and whether they are [.., size, keys].
    pub k: (Operand, bool),
    pub scale: f64,
    pub mask: Option<Operand>,
    pub opposite: Option<usize>,
    pub dims: [usize; 4],
}

/// The softmax over the last axis that an operand is, and what is to become of rows without any key: weights of NaN may be
/// replaced by 0.
pub(super) fn softmax<'a>(trace: &mut Trace<'a>, weights: &Operand) -> Option<(&'a Step, &'static str)> {
    let mark = trace.taken.len();
    let mut weights = weights.clone();
    let mut masking = "add";
    if let Some(choice) = trace.step(&weights, "where")
        && let [Some(condition), Some(zero), Some(kept)] = &choice.inputs[..]
        && number(zero) == Some(0.0)
        && condition.dims() == kept.dims()
        && let Some(test) = trace.step(condition, "isNaN")
        && let Some(Some(tested)) = test.inputs.first()
        && same(tested, kept)
    {
        weights = kept.clone();
        masking = "guarded";
    } else {
        trace.taken.truncate(mark);
    }
    let step = trace.step(&weights, "softmax")?;
    let call = step.call()?;
    let axis = call.attrs.int("axis");
    let last = call.output().dims.len() as i64 - 1;
    (axis == -1 || axis == last).then_some((step, masking))
}

/// A mask on its way: added, or what is chosen where a key is seen or where it is not.
pub(super) struct Masking {
    operand: Operand,
    /// Dims of the masked products.
    own: Vec<usize>,
    opposite: Option<usize>,
}

/// The products that an operand is the masked form of, and their mask.
pub(super) fn masked(trace: &mut Trace, rows: &Operand) -> Option<(Operand, Option<Masking>)> {
    let mark = trace.taken.len();
    if let Some(sum) = trace.step(rows, "add")
        && let [Some(a), Some(b)] = &sum.inputs[..]
    {
        let own = sum.call()?.output().dims.clone();
        let whole =
            |(product, _): &(&Operand, &Operand)| product.dims() == own && is_product(trace.list, product);
        let (product, other) = [(a, b), (b, a)].into_iter().find(whole)?;
        return Some((product.clone(), Some(Masking { operand: other.clone(), own, opposite: None })));
    }
    trace.taken.truncate(mark);
    if let Some(choice) = trace.step(rows, "where")
        && let [Some(condition), Some(a), Some(b)] = &choice.inputs[..]
    {
        let own = choice.call()?.output().dims.clone();
        let (product, opposite) = match (number(a), number(b)) {
            (None, Some(f64::NEG_INFINITY)) => (a, None),
            (Some(f64::NEG_INFINITY), None) => (b, trace.taken.last().copied()),
            _ => return None,
        };
        let masking = Masking { operand: condition.clone(), own, opposite };
        return (product.dims() == masking.own).then(|| (product.clone(), Some(masking)));
    }
    trace.taken.truncate(mark);
    Some((rows.clone(), None))
}

/// (q k^T) scale + mask, the scale after the product or on its operands.
pub(super) fn scores(trace: &mut Trace, rows: &Operand) -> Option<Scores> {
    let (operand, masking) = masked(trace, rows)?;
    let mut scale = 1.0;
    let operand = scaled(trace, operand, &mut scale);
    let step = plain_product(trace.step(&operand, "matmul")?)?;
    let call = step.call()?;
    if call.attrs.bool("transA") {
        return None;
    }
    scale *= call.attrs.float("alpha");
    let [Some(q), Some(k), ..] = &step.inputs[..] else { return None };
    let own = masking.as_ref().map(|it| &it.own[..]);
    let dims = heads_dims(&[own.unwrap_or(&[]), rows.dims(), &call.output().dims])?;
    let q = scaled(trace, q.clone(), &mut scale);
    let k = keys(trace, k, call.attrs.bool("transB"), &mut scale);
    let mask = match &masking {
        None => None,
        // A mask of fewer columns would hide the others.
        Some(it) => {
            Some(view::under(&it.operand, &it.own, &dims).filter(|it| it.dims().last() == Some(&dims[3]))?)
        }
    };
    let typed = mask.as_ref().is_none_or(|it| [q.dtype(), crate::DType::Bool].contains(&it.dtype()));
    let usable = scale.is_finite() && scale != 0.0 && rows.dims().last() == Some(&dims[3]);
    let opposite = masking.and_then(|it| it.opposite);
    (typed && usable).then_some(Scores { q, k, scale, mask, opposite, dims })
}

/// Keys without a factor, and whether they are [.., size, keys]; the factor may stand before the transposition.
pub(super) fn keys(trace: &mut Trace, k: &Operand, straight: bool, scale: &mut f64) -> (Operand, bool) {
    let k = scaled(trace, k.clone(), scale);
    let Some((inner, step)) = turned_once(trace, &k).filter(|_| !straight) else { return (k, !straight) };
    let mark = trace.taken.len();
    trace.taken.push(step);
    let bare = scaled(trace, inner.clone(), scale);
    if same(&bare, &inner) {
        trace.taken.truncate(mark);
        return (k, true);
    }
    (bare, false)
}

/// Whether an operand is a product, or that times a number.
pub(super) fn is_product(list: &List, operand: &Operand) -> bool {
    let Some(step) = list.writer(operand).and_then(|index| list.steps[index].as_ref()) else { return false };
    let inner = |operand: &Option<Operand>| {
        let writer = operand.as_ref().and_then(|operand| list.writer(operand));
        writer.and_then(|index| list.steps[index].as_ref()).is_some_and(|step| step.name == "matmul")
    };
    match step.name {
        "matmul" => true,
        "mul" | "div" => step.inputs.iter().any(inner),
        _ => false,
    }
}

/// What an operand is before it is multiplied with a number or divided by one, which goes into the scale.
pub(super) fn scaled(trace: &mut Trace, operand: Operand, scale: &mut f64) -> Operand {
    let mut factor = 1.0;
    let found = std::cell::Cell::new(f64::NAN);
    let keep = |value: f64| {
        found.set(value);
        true
    };
    let inner = match trace.with_number(&operand, "mul", true, keep) {
        Some(inner) => {
            factor *= found.get();
            inner
        }
        None => match trace.with_number(&operand, "div", false, keep) {
            Some(inner) => {
                factor /= found.get();
                inner
            }
            None => return operand,
        },
    };
    *scale *= factor;
    // The dims are those that are read.
    inner.reshape(operand.dims()).unwrap_or(operand)
}

/// Dims of products of heads, [batch, heads, queries, keys], as the first of these tells that has them; else there is one batch.
pub(super) fn heads_dims(all: &[&[usize]]) -> Option<[usize; 4]> {
    let product = *all.last()?;
    let [.., queries, keys] = *product else { return None };
    let told = all.iter().find(|dims| dims.len() == 4 && dims.ends_with(&[queries, keys]));
    match told {
        Some(dims) => dims[..].try_into().ok(),
        None => Some([1, size_of(product) / (queries * keys).max(1), queries, keys]),
    }
}
