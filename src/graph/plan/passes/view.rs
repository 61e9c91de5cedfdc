//! Views: the same elements in the same order under other dims.

use super::super::Operand;
use crate::shape::{Dims, size_of};

/// Dims under which an operand that broadcasts to `from` broadcasts alike to `to`, a view of it; `None` where there are none.
pub fn regrouped(operand: &[usize], from: &[usize], to: &[usize]) -> Option<Dims> {
    if from == to {
        return Some(operand.to_vec());
    }
    if operand.len() > from.len() || size_of(from) != size_of(to) || from.contains(&0) {
        return None;
    }
    if size_of(operand) == 1 {
        return Some(Dims::new());
    }
    let mut own = vec![1; from.len() - operand.len()];
    own.extend(operand);
    let (mut i, mut j, mut dims) = (0, 0, Dims::new());
    while i < from.len() || j < to.len() {
        let (start_i, start_j) = (i, j);
        let (mut left, mut right) = (1, 1);
        // The fewest axes of both that hold the same elements.
        loop {
            match (left < right || j == to.len()) && i < from.len() {
                true => {
                    left *= from[i];
                    i += 1;
                }
                false => {
                    right *= to[j];
                    j += 1;
                }
            }
            if left == right {
                break;
            }
        }
        let axes = start_i..i;
        let whole = axes.clone().all(|axis| own[axis] == from[axis]);
        let single = axes.clone().all(|axis| own[axis] == 1);
        match (whole, single) {
            (true, _) => dims.extend(&to[start_j..j]),
            (false, true) => dims.extend((start_j..j).map(|_| 1)),
            (false, false) => return None,
        }
    }
    Some(dims)
}

/// The operand of a call with results of dims `from` as one of a call with results of dims `to`.
pub fn under(operand: &Operand, from: &[usize], to: &[usize]) -> Option<Operand> {
    operand.reshape(regrouped(operand.dims(), from, to)?).ok()
}

/// The axis of a view that holds `size` indices, each of `inner` elements side by side.
pub fn axis_of(dims: &[usize], size: usize, inner: usize) -> Option<usize> {
    (0..dims.len()).find(|&axis| dims[axis] == size && size_of(&dims[axis + 1..]) == inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_goes_along_where_axes_stay_together() {
        type Case = (&'static [usize], &'static [usize], &'static [usize], Option<&'static [usize]>);
        let cases: &[Case] = &[
            (&[4], &[2, 3, 4], &[6, 4], Some(&[1, 4])),
            (&[2, 3, 4], &[2, 3, 4], &[24], Some(&[24])),
            (&[2, 3, 1], &[2, 3, 4], &[6, 4], Some(&[6, 1])),
            (&[2, 1, 1], &[2, 3, 4], &[6, 4], None),
            (&[2, 1, 1], &[2, 3, 4], &[2, 12], Some(&[2, 1])),
            (&[1], &[2, 3, 4], &[24], Some(&[])),
            (&[3, 1], &[2, 3, 4], &[2, 3, 2, 2], Some(&[1, 3, 1, 1])),
            (&[4], &[2, 3, 4], &[2, 3, 2, 2], Some(&[1, 1, 2, 2])),
            (&[4, 1], &[4, 6], &[2, 12], None),
            (&[4, 6], &[4, 6], &[2, 12], Some(&[2, 12])),
            (&[6], &[4, 6], &[4, 1, 6, 1], Some(&[1, 1, 6, 1])),
            (&[0], &[0], &[0, 1], None),
            (&[3], &[4, 3], &[11], None),
        ];
        for (operand, from, to, wanted) in cases {
            let found = regrouped(operand, from, to);
            match wanted {
                // Axes of one element may stand anywhere.
                Some(wanted) => {
                    let strip = |dims: &[usize]| -> Vec<usize> {
                        let lead = to.len() - dims.len();
                        vec![1; lead].into_iter().chain(dims.iter().copied()).collect()
                    };
                    let found = found.unwrap_or_else(|| panic!("{operand:?} of {from:?} as {to:?}"));
                    assert_eq!(strip(&found), strip(wanted), "{operand:?} of {from:?} as {to:?}");
                }
                None => assert_eq!(found, None, "{operand:?} of {from:?} as {to:?}"),
            }
        }
    }

    #[test]
    fn an_axis_is_found_again() {
        assert_eq!(axis_of(&[2, 3, 4, 5], 3, 20), Some(1));
        assert_eq!(axis_of(&[6, 4], 3, 4), None);
        assert_eq!(axis_of(&[1, 6, 4], 4, 1), Some(2));
    }
}
