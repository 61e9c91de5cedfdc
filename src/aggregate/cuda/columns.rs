//! Statistics of columns.

use super::Cuda;
use crate::aggregate::engine::ColumnRule;
use crate::kernels::median::NanPolicy;
use crate::{Error, Result, Tensor};

/// The statistic of every column of those rows.
pub fn run(cuda: &Cuda, rows: &[usize], _: &ColumnRule, _: NanPolicy) -> Result<Tensor> {
    let out = cuda.vector()?;
    cuda.rows.pass(cuda.launcher, rows, &cuda.watch, |_| {
        Err(Error::UnsupportedOp("aggregate: statistics of columns have no form on a GPU yet".into()))
    })?;
    Ok(out)
}
