//! Statistics of columns: a launch for each chunk.

use super::Cuda;
use super::rows::Chunk;
use crate::aggregate::engine::{ColumnRule, Cut};
use crate::kernels::columns::{At, Columns, NanPolicy, Statistic};
use crate::{Result, Tensor};

/// The statistic of every column of those rows.
pub fn run(cuda: &Cuda, rows: &[usize], rule: &ColumnRule, nan: NanPolicy) -> Result<Tensor> {
    let result = cuda.vector()?;
    let out = result.device_view(cuda.launcher.core())?.ptr;
    let weights = match rule {
        ColumnRule::Mean(weights) => weights.as_deref(),
        ColumnRule::WeightedMedian(weights, _) => Some(&weights[..]),
        _ => None,
    };
    // Rows of weight 0 have no part.
    let taken = |at: &usize| weights.is_none_or(|weights| weights[*at] != 0.0);
    let parts: Vec<usize> = (0..rows.len()).filter(taken).collect();
    let rows: Vec<usize> = parts.iter().map(|&at| rows[at]).collect();
    let weights: Option<Vec<f64>> = weights.map(|weights| parts.iter().map(|&at| weights[at]).collect());
    let size = cuda.result.dtype.size();
    cuda.rows.pass(cuda.launcher, &rows, &cuda.watch, |chunk| {
        let columns = Columns {
            at: at(chunk, size),
            n: rows.len(),
            d: chunk.width() as u64,
            dtype: cuda.result.dtype,
            out: out.offset((chunk.columns.start * size) as u64),
        };
        launch(cuda, &columns, rule, weights.as_deref(), nan)
    })?;
    Ok(result)
}

fn at<'a>(chunk: &'a Chunk, size: usize) -> At<'a> {
    match chunk.stride() {
        Some(stride) if stride.is_multiple_of(size as u64) => {
            At::Strided(chunk.pointers[0], stride / size as u64)
        }
        _ => At::Listed(&chunk.pointers),
    }
}

fn launch(
    cuda: &Cuda,
    columns: &Columns,
    rule: &ColumnRule,
    weights: Option<&[f64]>,
    nan: NanPolicy,
) -> Result<()> {
    let (launcher, n) = (cuda.launcher, columns.n);
    match *rule {
        ColumnRule::Mean(_) => columns.mean(launcher, weights, nan),
        ColumnRule::Median(even) => columns.launch(launcher, Statistic::Median(even), nan),
        ColumnRule::WeightedMedian(_, even) => {
            columns.weighted_median(launcher, weights.unwrap_or(&[]), even, nan)
        }
        ColumnRule::Trimmed(Cut::Share(share)) if nan == NanPolicy::Omit => {
            columns.trimmed(launcher, 0, Some(share), nan)
        }
        ColumnRule::Trimmed(cut) if n <= 2 * cut.of(n) => columns.trimmed(launcher, cut.of(n), None, nan),
        ColumnRule::Trimmed(cut) => columns.launch(launcher, Statistic::Trimmed(cut.of(n)), nan),
        ColumnRule::Nearest { centre, leave, least } if nan == NanPolicy::Omit || n < least || n <= leave => {
            columns.nearest(launcher, centre, (leave, least), nan)
        }
        ColumnRule::Nearest { centre, leave, .. } => {
            columns.launch(launcher, Statistic::Nearest { centre, leave }, nan)
        }
    }
}
