//! Shapes: dims, checked sizes, row-major strides and broadcasting. Pure, no device.

use crate::{Result, mismatch};

/// Dims of a tensor, outermost first. An empty list is a scalar.
pub type Dims = Vec<usize>;

/// Product of the dims; an error where it passes what a 64-bit byte count can hold. A 0 counts as 1 in that, so that products
/// of some of the dims are in range too.
pub fn element_count(name: &str, dims: &[usize]) -> Result<usize> {
    // 16 bytes is more than the largest element, so byte counts of any type stay in range.
    let limit = (isize::MAX as usize) / 16;
    let mut count = 1usize;
    for &dim in dims {
        match count.checked_mul(dim.max(1)) {
            Some(next) if next <= limit => count = next,
            _ => return mismatch!("{name}: the product of dims {dims:?} is too large"),
        }
    }
    Ok(if dims.contains(&0) { 0 } else { count })
}

/// Product of dims that passed [`element_count`].
pub fn size_of(dims: &[usize]) -> usize {
    if dims.contains(&0) { 0 } else { dims.iter().product() }
}

/// Row-major strides in elements; of no meaning, but in range, where a dim is 0.
pub fn strides_of(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; dims.len()];
    for axis in (0..dims.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1].saturating_mul(dims[axis + 1].max(1));
    }
    strides
}

/// Dims that both operands broadcast to, by NumPy's rule.
pub fn broadcast(op: &str, a: &[usize], b: &[usize]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let mut out = vec![0; rank];
    for (axis, slot) in out.iter_mut().enumerate() {
        let left = dim_from_right(a, rank - axis);
        let right = dim_from_right(b, rank - axis);
        *slot = match (left, right) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return mismatch!("{op}: dims {a:?} and {b:?} do not broadcast"),
        };
    }
    Ok(out)
}

/// Strides in elements for reading `dims` as if it had the dims `out`; 0 along broadcast axes.
pub fn broadcast_strides(dims: &[usize], out: &[usize]) -> Vec<usize> {
    let own = strides_of(dims);
    let offset = out.len() - dims.len();
    (0..out.len())
        .map(|axis| if axis < offset || dims[axis - offset] == 1 { 0 } else { own[axis - offset] })
        .collect()
}

/// Axis given from the front or, when negative, from the end.
pub fn normalize_axis(op: &str, axis: i64, rank: usize) -> Result<usize> {
    let signed = if axis < 0 { axis + rank as i64 } else { axis };
    if signed < 0 || signed >= rank as i64 {
        return crate::invalid!("{op}: axis must lie in [-{rank}, {}], got {axis}", rank as i64 - 1);
    }
    Ok(signed as usize)
}

fn dim_from_right(dims: &[usize], from_right: usize) -> usize {
    if from_right > dims.len() { 1 } else { dims[dims.len() - from_right] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        assert_eq!(broadcast("add", &[3, 1], &[4]).unwrap(), [3, 4]);
        assert_eq!(broadcast("add", &[], &[2, 0]).unwrap(), [2, 0]);
        assert_eq!(broadcast("add", &[1, 0], &[5, 1]).unwrap(), [5, 0]);
        assert_eq!(broadcast("add", &[3], &[4]).unwrap_err().code(), "SHAPE_MISMATCH");
        assert_eq!(broadcast_strides(&[3, 1], &[2, 3, 4]), [0, 1, 0]);
    }

    #[test]
    fn counts_are_checked() {
        assert_eq!(element_count("x", &[]).unwrap(), 1);
        assert_eq!(element_count("x", &[usize::MAX >> 8, 0]).unwrap(), 0);
        assert!(element_count("x", &[usize::MAX, 2, 0]).is_err());
        assert_eq!(size_of(&[usize::MAX, 2, 0]), 0);
        assert_eq!(strides_of(&[0, usize::MAX, 2]).len(), 3);
        assert_eq!(element_count("x", &[usize::MAX / 2, 3]).unwrap_err().code(), "SHAPE_MISMATCH");
    }

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(normalize_axis("softmax", -1, 3).unwrap(), 2);
        assert!(normalize_axis("softmax", 3, 3).is_err());
        assert!(normalize_axis("softmax", 0, 0).is_err());
    }
}
