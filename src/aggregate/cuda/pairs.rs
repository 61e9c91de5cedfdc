//! Numbers between rows.

use super::Cuda;
use crate::aggregate::engine::Square;
use crate::{Error, Result};

fn missing<T>() -> Result<T> {
    Err(Error::UnsupportedOp("aggregate: distances between rows have no form on a GPU yet".into()))
}

/// Squared distances from differences, +Inf where a row is `bad`, 0 on the diagonal.
pub fn distances(_: &Cuda, _: &[bool]) -> Result<Square> {
    missing()
}

/// Distances from a row, or from zero; +Inf for `bad` rows.
pub fn lengths(_: &Cuda, _: Option<usize>, _: &[bool]) -> Result<Vec<f64>> {
    missing()
}

/// Products of the rows' differences to the median of those that are not `bad`, the starting point last.
pub fn products(_: &Cuda, _: &[bool]) -> Result<Square> {
    missing()
}
