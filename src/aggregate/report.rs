//! What a call did.

use super::engine::Combination;
use super::rules::Verdict;
use crate::{DType, Result, Tensor};

/// What a call did, in numbers of the rows as they came.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Name of the rule.
    pub rule: &'static str,
    /// Rows given.
    pub n: usize,
    /// Hostile rows reckoned with among those that took part.
    pub f: usize,
    /// Rows with NaN or infinities, each with its lowest such coordinate.
    pub non_finite: Vec<(usize, usize)>,
    /// Rows that the NaN policy took out.
    pub dropped: Vec<usize>,
    /// Rows in each bucket, where there are buckets; then the numbers below are those of buckets.
    pub buckets: Option<Vec<Vec<usize>>>,
    /// Rows chosen, in the order of choice, by rules that choose.
    pub chosen: Option<Vec<usize>>,
    /// Rows that took part and were not chosen.
    pub rejected: Option<Vec<usize>>,
    /// A score for each row, NaN for those that took no part.
    pub scores: Option<Vec<f64>>,
    /// Weight of each row in the result, 0 for those that took no part.
    pub weights: Option<Vec<f64>>,
    /// Steps taken by rules that go step by step.
    pub steps: Option<usize>,
    /// Coordinates of the result that are NaN.
    pub nan_coordinates: usize,
    /// What the caller should know.
    pub notes: Vec<String>,
}

/// Rows as they came in each new row.
pub fn members(
    combinations: &[Combination],
    before: Option<&[Vec<usize>]>,
    names: &[usize],
) -> Vec<Vec<usize>> {
    let of = |row: usize| before.map_or_else(|| vec![names[row]], |buckets| buckets[row].clone());
    combinations.iter().map(|rows| rows.terms.iter().flat_map(|&(row, _)| of(row)).collect()).collect()
}

/// Elements that are NaN.
pub fn nan_count(result: &Tensor) -> Result<usize> {
    let values = result.host_view()?;
    Ok(match result.meta().dtype {
        DType::F64 => values.as_slice::<f64>().iter().filter(|value| value.is_nan()).count(),
        _ => values.as_slice::<f32>().iter().filter(|value| value.is_nan()).count(),
    })
}

/// Writes what the rule found into the report; gives the result.
pub fn fill(report: &mut Report, verdict: Verdict, names: &[usize], count: usize) -> Tensor {
    let spread = |values: Vec<f64>, rest: f64| {
        let mut all = vec![rest; count];
        names.iter().zip(values).for_each(|(&row, value)| all[row] = value);
        all
    };
    if let Some(chosen) = verdict.chosen {
        let rest = (0..names.len()).filter(|row| !chosen.contains(row));
        report.rejected = Some(rest.map(|row| names[row]).collect());
        report.chosen = Some(chosen.iter().map(|&row| names[row]).collect());
    }
    report.scores = verdict.scores.map(|scores| spread(scores, f64::NAN));
    report.weights = verdict.weights.map(|weights| spread(weights, 0.0));
    report.steps = verdict.steps;
    report.notes.extend(verdict.notes);
    verdict.result
}
