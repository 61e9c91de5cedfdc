//! What pre-aggregations make of the rows.

use super::Engine;
use super::decide;
use super::engine::Combination;
use super::rules::Context;
use crate::Result;

/// Combinations of the rows that take their place.
pub type Run = fn(&Context, &dyn Engine) -> Result<Vec<Combination>>;

/// Each row the mean of the rows nearest to it.
pub fn nnm(context: &Context, engine: &dyn Engine) -> Result<Vec<Combination>> {
    let distances = engine.distances(&context.bad)?;
    let near = decide::nearest_rows(&distances, context.n() - context.f);
    Ok(near.iter().map(|rows| Combination::mean(rows)).collect())
}

/// Means of the buckets of a shuffle.
pub fn bucketing(context: &Context, _: &dyn Engine) -> Result<Vec<Combination>> {
    let options = context.options;
    let buckets = decide::buckets(context.n(), options.bucket_size()?, options.seed()?);
    Ok(buckets.iter().map(|rows| Combination::mean(rows)).collect())
}

/// Rows shortened to a bound.
pub fn clipping(context: &Context, engine: &dyn Engine) -> Result<Vec<Combination>> {
    let lengths = engine.lengths(None, &context.bad)?;
    Ok(shortened(&decide::clip_factors(&lengths, &context.bad, context.options.float("clip"))))
}

/// The longest rows shortened to the next one.
pub fn arc(context: &Context, engine: &dyn Engine) -> Result<Vec<Combination>> {
    let lengths = engine.lengths(None, &context.bad)?;
    let most = decide::arc_length(&lengths, context.f).unwrap_or(f64::INFINITY);
    Ok(shortened(&decide::clip_factors(&lengths, &context.bad, most)))
}

fn shortened(factors: &[f64]) -> Vec<Combination> {
    let row =
        |(row, &factor): (usize, &f64)| Combination { terms: vec![(row, factor)], start: 0.0, divisor: 1.0 };
    factors.iter().enumerate().map(row).collect()
}
