//! Sums of weighted rows.

use super::Cuda;
use super::rows::Rows;
use crate::aggregate::engine::Combination;
use crate::{Error, Result, Tensor};

/// A combination of the rows.
pub fn sum(_: &Cuda, _: &Combination) -> Result<Tensor> {
    Err(Error::UnsupportedOp("aggregate: sums of rows have no form on a GPU yet".into()))
}

/// Rows made of combinations of the rows.
pub fn replace(_: &Cuda, _: &[Combination]) -> Result<Rows> {
    Err(Error::UnsupportedOp("aggregate: pre-aggregations have no form on a GPU yet".into()))
}
