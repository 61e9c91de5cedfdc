//! Operands that hold indices: both types alike, and their check where the host has them.

use super::{Call, Range};
use crate::dtype::DType;
use crate::tensor::{HostView, Tensor};
use crate::{Error, Result};

/// Indices of either type.
pub enum Indices<'a> {
    Wide(&'a [i64]),
    Narrow(&'a [i32]),
}

impl<'a> Indices<'a> {
    /// The elements of an operand made by `indices`.
    pub fn of(view: &HostView<'a>) -> Indices<'a> {
        match view.dtype {
            DType::I32 => Indices::Narrow(view.as_slice()),
            _ => Indices::Wide(view.as_slice()),
        }
    }

    /// The number at a position.
    pub fn value(&self, position: usize) -> i64 {
        match self {
            Indices::Wide(values) => values[position],
            Indices::Narrow(values) => i64::from(values[position]),
        }
    }

    /// The index at a position, counted from the start of an axis of that length, which it lies within.
    pub fn at(&self, position: usize, length: usize) -> usize {
        let index = self.value(position);
        (if index < 0 { index.wrapping_add(length as i64) } else { index }) as usize
    }

    /// Position and value of the first number that lies outside a range.
    fn outside(&self, low: i64, high: i64) -> Option<(usize, i64)> {
        match self {
            Indices::Wide(values) => first(values, |value| value, low, high),
            Indices::Narrow(values) => first(values, i64::from, low, high),
        }
    }
}

/// Indices looked at without a branch for each.
const STRETCH: usize = 1024;

fn first<T: Copy>(values: &[T], wide: fn(T) -> i64, low: i64, high: i64) -> Option<(usize, i64)> {
    let is_outside = |value: &T| !(low..=high).contains(&wide(*value));
    let any_outside = |values: &[T]| values.iter().fold(false, |any, value| any | is_outside(value));
    let stretch = values.chunks(STRETCH).position(any_outside)?;
    let start = stretch * STRETCH;
    let position = start + values[start..].iter().position(is_outside)?;
    Some((position, wide(values[position])))
}

/// The range of indices along the axis of the first operand that the attribute `axis` names.
pub fn along_axis(call: &Call) -> Result<Range> {
    let x = call.input(0);
    let axis = crate::shape::normalize_axis(call.spec.name, call.attrs.int("axis"), x.dims.len())?;
    let length = x.dims[axis];
    Ok(Range { low: -(length as i64), high: length as i64 - 1, of: format!("for axis {axis} of {length}") })
}

/// An error for the first whole number that lies outside its range. Operands on a GPU are not looked at: their call would
/// have to wait for all work before it.
pub fn check(call: &Call, inputs: &[Option<Tensor>]) -> Result<()> {
    for (operand, tensor) in call.spec.operands.iter().zip(inputs) {
        let (Some(rule), Some(tensor)) = (operand.range, tensor) else { continue };
        if tensor.core().is_some() {
            continue;
        }
        let Range { low, high, of } = rule(call)?;
        if let Some((position, value)) = Indices::of(&tensor.host_view()?).outside(low, high) {
            return Err(Error::OutOfRange(format!(
                "{}: '{}' must lie from {low} to {high} {of}, got {value} at position {position}",
                call.spec.name, operand.name,
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_index_outside_is_found() {
        let outside = |values: &[i32], length: i64| Indices::Narrow(values).outside(-length, length - 1);
        assert_eq!(outside(&[0, 2, -3, 1], 3), None);
        assert_eq!(outside(&[0, 3, -4], 3), Some((1, 3)));
        assert_eq!(outside(&[0, -4, 3], 3), Some((1, -4)));
        assert_eq!(outside(&[0], 0), Some((0, 0)));
        assert_eq!(outside(&[], 0), None);
        assert_eq!(Indices::Wide(&[0, i64::MIN]).outside(-i64::MAX, i64::MAX), Some((1, i64::MIN)));
        let mut many = vec![0; 3 * STRETCH];
        (many[2 * STRETCH + 5], many[STRETCH + 1]) = (7, 9);
        assert_eq!(outside(&many, 3), Some((STRETCH + 1, 9)));
    }

    #[test]
    fn negative_indices_count_from_the_end() {
        assert_eq!(Indices::Wide(&[1, -1]).at(1, 5), 4);
        assert_eq!(Indices::Narrow(&[1, -5]).at(1, 5), 0);
    }
}
