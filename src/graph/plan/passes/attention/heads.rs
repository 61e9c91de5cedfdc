//! How queries, keys and values lie.

use super::super::super::Operand;
use super::super::trace::Trace;
use crate::shape::size_of;

/// Queries, keys or values.
pub(super) struct Heads {
    /// [batch, heads, places, size], or [batch, places, heads * size] where they are flat.
    pub operand: Operand,
    pub flat: bool,
}

/// The operand before its last two axes were swapped, and the step that did.
pub(super) fn turned_once(trace: &Trace, operand: &Operand) -> Option<(Operand, usize)> {
    let mut own = Trace { list: trace.list, taken: trace.taken.clone() };
    let step = own.step(operand, "transpose")?;
    let x = step.inputs.first()?.as_ref()?;
    let [.., columns, rows] = *operand.dims() else { return None };
    let lead = x.meta().size() / (rows * columns).max(1);
    if !moves(x.dims(), step.call()?.attrs.ints("perm"), [1, lead, rows, columns], [0, 1, 3, 2]) {
        return None;
    }
    let mut dims = operand.dims().to_vec();
    let rank = dims.len();
    dims.swap(rank - 1, rank - 2);
    Some((x.reshape(dims).ok()?, own.taken.pop()?))
}

/// Keys [batch, heads, size, places] as [batch, heads, places, size], and the step that turned them.
pub(super) fn turned_back(
    trace: &mut Trace,
    operand: &Operand,
    dims: [usize; 4],
) -> Option<(Operand, Vec<usize>)> {
    let [batch, heads, places, size] = dims;
    let mark = trace.taken.len();
    let step = trace.step(operand, "transpose")?;
    let x = step.inputs.first()?.as_ref()?;
    let perm = step.call()?.attrs.ints("perm");
    if !moves(x.dims(), perm, [1, batch * heads, places, size], [0, 1, 3, 2]) {
        return None;
    }
    Some((x.reshape(dims).ok()?, trace.taken.split_off(mark)))
}

/// An operand with heads side by side, before it was made [batch, heads, places, size] (or its last axes swapped).
pub(super) fn untransposed(
    trace: &mut Trace,
    operand: &Operand,
    dims: [usize; 4],
    turned: bool,
) -> Option<(Operand, Vec<usize>)> {
    let [batch, heads, places, size] = dims;
    let mark = trace.taken.len();
    let step = trace.step(operand, "transpose")?;
    let x = step.inputs.first()?.as_ref()?;
    let perm = step.call()?.attrs.ints("perm");
    let flat = [batch, places, heads, size];
    let once = if turned { [0, 2, 3, 1] } else { [0, 2, 1, 3] };
    if moves(x.dims(), perm, flat, once) {
        let operand = x.reshape([batch, places, heads * size]).ok()?;
        return Some((operand, trace.taken.split_off(mark)));
    }
    if turned && moves(x.dims(), perm, [1, batch * heads, places, size], [0, 1, 3, 2]) {
        let (operand, mut steps) = untransposed(trace, x, dims, false)?;
        steps.extend(trace.taken.split_off(mark));
        return Some((operand, steps));
    }
    trace.taken.truncate(mark);
    None
}

/// Whether a transposition of `dims` by `perm` is that of a view with dims `wanted` by `order`.
pub(super) fn moves(dims: &[usize], perm: Option<&[i64]>, wanted: [usize; 4], order: [usize; 4]) -> bool {
    let Some(perm) = perm else { return false };
    // Axes of one element do not matter, nor does where neighbours that stay together are parted.
    let strip = |dims: &[usize], perm: Vec<usize>| {
        let strides = crate::shape::strides_of(dims);
        let mut axes: Vec<(usize, usize)> = Vec::new();
        for axis in perm.into_iter().filter(|&axis| dims[axis] != 1) {
            match axes.last_mut() {
                Some((size, stride)) if *stride == dims[axis] * strides[axis] => {
                    *size *= dims[axis];
                    *stride = strides[axis];
                }
                _ => axes.push((dims[axis], strides[axis])),
            }
        }
        axes
    };
    let perm: Vec<usize> = perm.iter().map(|&axis| axis as usize).collect();
    if perm.len() != dims.len() || perm.iter().any(|&axis| axis >= dims.len()) {
        return false;
    }
    size_of(dims) == size_of(&wanted) && strip(dims, perm) == strip(&wanted, order.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transpositions_of_views_are_known() {
        assert!(moves(&[2, 3, 4, 5], Some(&[0, 2, 1, 3]), [2, 3, 4, 5], [0, 2, 1, 3]));
        assert!(moves(&[3, 4, 5], Some(&[1, 0, 2]), [1, 3, 4, 5], [0, 2, 1, 3]));
        assert!(moves(&[6, 4, 5], Some(&[0, 2, 1]), [1, 6, 4, 5], [0, 1, 3, 2]));
        assert!(moves(&[2, 3, 4, 5], Some(&[0, 1, 3, 2]), [1, 6, 4, 5], [0, 1, 3, 2]));
        assert!(!moves(&[2, 3, 4, 5], Some(&[0, 2, 1, 3]), [2, 3, 2, 10], [0, 2, 1, 3]));
        assert!(!moves(&[2, 3, 4, 5], Some(&[0, 1, 3, 2]), [2, 3, 4, 5], [0, 2, 1, 3]));
    }
}
