//! The rules: each asks its engines, decides on the host and names what it did.

use super::engine::{Centre, ColumnRule, Combination, Cut, Engine};
use super::options::Options;
use super::weights::{Weiszfeld, centered_clipping as clip};
use super::{decide, weights};
use crate::kernels::columns::NanPolicy;
use crate::{Result, Tensor, invalid};

/// A round as a rule sees it: rows are numbered anew among those that take part.
pub struct Context<'a> {
    /// The call's options.
    pub options: &'a Options,
    /// Rows that may be hostile.
    pub f: usize,
    /// Rows that hold NaN or infinities.
    pub bad: Vec<bool>,
    /// Numbers of the rows as they came; those of buckets are their own.
    pub names: Vec<usize>,
}

impl Context<'_> {
    /// Number of rows.
    pub fn n(&self) -> usize {
        self.bad.len()
    }

    fn weights(&self) -> Vec<f64> {
        let all = self.options.weights().unwrap_or(&[]);
        self.names.iter().map(|&row| all.get(row).copied().unwrap_or(1.0)).collect()
    }

    fn everyone(&self) -> Vec<usize> {
        (0..self.n()).collect()
    }

    /// What a NaN does in columns; rows were chosen before.
    fn nan(&self) -> NanPolicy {
        match self.options.nan {
            NanPolicy::Omit => NanPolicy::Omit,
            NanPolicy::Propagate => NanPolicy::Propagate,
            _ => NanPolicy::Last,
        }
    }

    fn columns(&self, engine: &dyn Engine, rule: ColumnRule) -> Result<Verdict> {
        Ok(Verdict::of(engine.columns(&self.everyone(), &rule, self.nan())?))
    }
}

/// What a rule found.
pub struct Verdict {
    /// One value for each column.
    pub result: Tensor,
    /// Rows chosen, in the order of choice.
    pub chosen: Option<Vec<usize>>,
    /// A score of each row, the lower the better.
    pub scores: Option<Vec<f64>>,
    /// Weight of each row in the result.
    pub weights: Option<Vec<f64>>,
    /// Steps taken.
    pub steps: Option<usize>,
    /// What the caller should know.
    pub notes: Vec<String>,
}

impl Verdict {
    fn of(result: Tensor) -> Verdict {
        Verdict { result, chosen: None, scores: None, weights: None, steps: None, notes: Vec::new() }
    }

    /// The mean of the rows chosen.
    fn mean(engine: &dyn Engine, chosen: Vec<usize>, scores: Option<Vec<f64>>) -> Result<Verdict> {
        let mut rows = chosen.clone();
        rows.sort_unstable();
        let result = engine.sum(&Combination::mean(&rows))?;
        Ok(Verdict { chosen: Some(chosen), scores, ..Verdict::of(result) })
    }
}

/// mean and weightedMean.
pub fn mean(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let weights = context.options.weights().map(|_| context.weights());
    check_left(weights.as_deref())?;
    context.columns(engine, ColumnRule::Mean(weights))
}

/// An error where the rows that are left weigh nothing.
fn check_left(weights: Option<&[f64]>) -> Result<()> {
    match weights {
        Some(weights) if weights.iter().all(|&weight| weight == 0.0) => {
            invalid!("aggregate: 'weights' are 0 for all rows that are left")
        }
        _ => Ok(()),
    }
}

/// median.
pub fn median(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    context.columns(engine, ColumnRule::Median(context.options.even()))
}

/// weightedMedian.
pub fn weighted_median(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let weights = context.weights();
    check_left(Some(&weights))?;
    context.columns(engine, ColumnRule::WeightedMedian(weights, context.options.even()))
}

/// trimmedMean.
pub fn trimmed_mean(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let cut = context.options.fraction().map_or(Cut::Count(context.f), Cut::Share);
    context.columns(engine, ColumnRule::Trimmed(cut))
}

/// meamed.
pub fn meamed(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let centre = Centre::Median(context.options.even());
    let least = 2 * context.f + 1;
    context.columns(engine, ColumnRule::Nearest { centre, leave: context.f, least })
}

/// phocas.
pub fn phocas(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let (centre, least) = (Centre::Trimmed(context.f), 2 * context.f + 1);
    context.columns(engine, ColumnRule::Nearest { centre, leave: context.f, least })
}

/// krum.
pub fn krum(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    krum_of(context, engine, 1)
}

/// multiKrum.
pub fn multi_krum(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    krum_of(context, engine, context.options.m(context.n(), context.f)?)
}

fn krum_of(context: &Context, engine: &dyn Engine, m: usize) -> Result<Verdict> {
    let (n, f) = (context.n(), context.f);
    let distances = engine.distances(&context.bad)?;
    let scores = decide::krum_scores(&distances, context.options.neighbours(n, f));
    let mut chosen = decide::order(&scores, &context.bad);
    chosen.truncate(m);
    let unit = distances.scale * distances.scale;
    let scores = scores.into_iter().map(|score| score / unit).collect();
    let mut verdict = Verdict::mean(engine, chosen, Some(scores))?;
    if n < 2 * f + 3 {
        verdict
            .notes
            .push(format!("n = {n} is below 2f + 3 = {}, from which on Krum's proof holds", 2 * f + 3));
    }
    Ok(verdict)
}

/// bulyan.
pub fn bulyan(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let (n, f) = (context.n(), context.f);
    let distances = engine.distances(&context.bad)?;
    let picked = decide::bulyan(&distances, &context.bad, f, n - 2 * f);
    let rule = ColumnRule::Nearest {
        centre: Centre::Median(context.options.even()),
        leave: 2 * f,
        least: 2 * f + 1,
    };
    let result = engine.columns(&picked, &rule, NanPolicy::Last)?;
    Ok(Verdict { chosen: Some(picked), ..Verdict::of(result) })
}

/// mda.
pub fn mda(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let distances = engine.distances(&context.bad)?;
    let chosen = decide::least_diameter(&distances, &context.bad, context.n() - context.f);
    Verdict::mean(engine, chosen, None)
}

/// geometricMedian.
pub fn geometric_median(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let options = context.options;
    let search = Weiszfeld {
        nu: options.float("nu"),
        iterations: options.iterations()?,
        tolerance: options.float("tolerance"),
    };
    let found = search.median(&engine.products(&context.bad)?, &context.bad);
    weighted(context, engine, found)
}

/// centeredClipping.
pub fn centered_clipping(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let products = engine.products(&context.bad)?;
    let found = clip(&products, &context.bad, context.options.float("tau"), context.options.iterations()?);
    weighted(context, engine, found)
}

fn weighted(context: &Context, engine: &dyn Engine, found: weights::Found) -> Result<Verdict> {
    let weights::Found { mut weights, steps } = found;
    let start = weights.pop().unwrap_or(0.0);
    // Where no row is finite there is no point between them: NaN, as the sum of those rows gives it.
    let nothing = start == 0.0 && weights.iter().all(|&weight| weight == 0.0);
    let terms = weights.iter().copied().enumerate().filter(|term| term.1 != 0.0).collect();
    let divisor = if nothing { 0.0 } else { 1.0 };
    let result = engine.sum(&Combination { terms, start, divisor })?;
    let steps = Some(steps);
    let mut verdict = Verdict { weights: Some(weights), steps, ..Verdict::of(result) };
    if context.bad.iter().any(|&bad| bad) {
        verdict.notes.push("rows with NaN or infinities have the weight 0".into());
    }
    Ok(verdict)
}

/// cge.
pub fn cge(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    nearest(context, engine, None)
}

/// monna.
pub fn monna(context: &Context, engine: &dyn Engine) -> Result<Verdict> {
    let named = context.options.trusted(usize::MAX)?;
    let Some(trusted) = context.names.iter().position(|&row| row == named).filter(|&row| !context.bad[row])
    else {
        return invalid!("aggregate: row {named}, which 'trusted' names, holds NaN or an infinity");
    };
    nearest(context, engine, Some(trusted))
}

/// The mean of the rows nearest to a row or to zero.
fn nearest(context: &Context, engine: &dyn Engine, from: Option<usize>) -> Result<Verdict> {
    let lengths = engine.lengths(from, &context.bad)?;
    let mut chosen = decide::order(&lengths, &context.bad);
    chosen.truncate(context.n() - context.f);
    Verdict::mean(engine, chosen, Some(lengths))
}
