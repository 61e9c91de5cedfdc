//! The options of a call, checked against the tables before any work.

use super::names::{check_names, find, quoted_words, shown, words};
use super::table::{Bound, COMMON, MOST_SUBSET_ROWS, PRES, Pre, RULES, Rule};
use crate::kernels::columns::{Even, NanPolicy};
use crate::ops::{Attrs, Raw};
use crate::{Result, invalid};

/// Checked options.
pub struct Options {
    /// The rule.
    pub rule: &'static Rule,
    /// Pre-aggregations in order.
    pub pre: Vec<&'static Pre>,
    /// Rows that may be hostile.
    pub f: usize,
    /// The NaN policy.
    pub nan: NanPolicy,
    attrs: Attrs,
    given: Vec<String>,
}

impl Options {
    /// Checks the caller's options for `n` rows. Errors name the option, what was expected and what came.
    pub fn new(raw: &[(String, Raw)], n: usize) -> Result<Options> {
        let text = |name: &str| raw.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let rule = find(text("rule"), "rule", RULES, |rule| rule.name)?;
        let mut pre = Vec::new();
        for word in words(text("pre"))? {
            pre.push(find(Some(&Raw::Text(word)), "pre", PRES, |pre| pre.name)?);
        }
        let own = || COMMON.iter().chain(rule.parameters).chain(pre.iter().flat_map(|pre| pre.parameters));
        check_names(raw, rule, own())?;
        let attrs = Attrs::of("aggregate", own(), raw)?;
        let needs = pre.iter().map(|pre| (pre.name, pre.required));
        for (name, required) in std::iter::once((rule.name, rule.required)).chain(needs) {
            for need in required {
                if !need.split(" or ").any(|word| text(word).is_some()) {
                    return invalid!("aggregate: '{name}' needs the option {}", quoted_words(need));
                }
            }
        }
        let nan = NanPolicy::from_word(attrs.choice("nan")).unwrap_or(NanPolicy::Last);
        let given = raw.iter().map(|(name, _)| name.clone()).collect();
        let mut options = Options { rule, pre, f: 0, nan, attrs, given };
        options.f = options.whole("f", 0.0, u32::MAX.into())?.unwrap_or(0);
        options.check(n)?;
        Ok(options)
    }

    /// Everything that can be wrong with the values for `n` rows.
    fn check(&self, n: usize) -> Result<()> {
        self.check_fraction()?;
        self.check_weights(n)?;
        self.trusted(n)?;
        self.iterations()?;
        for (name, least_above_zero) in [("tau", true), ("clip", true), ("nu", false), ("tolerance", false)] {
            self.positive(name, least_above_zero)?;
        }
        self.bucket_size()?;
        self.seed()?;
        if self.pre.iter().any(|pre| pre.name == "bucketing") {
            for name in ["weights", "trusted"] {
                if self.rule.required.contains(&name) {
                    return invalid!(
                        "aggregate: '{}' needs rows as they came, 'bucketing' puts means in their place",
                        self.rule.name
                    );
                }
            }
        }
        let mut left = n;
        for pre in &self.pre {
            if n <= self.f.saturating_mul(2) {
                return invalid!("aggregate: '{}' needs n > 2f, got n = {n}, f = {}", pre.name, self.f);
            }
            if pre.name == "bucketing" {
                left = left.div_ceil(self.bucket_size()?);
            }
        }
        self.check_bound(left, self.f)?;
        self.m(left, self.f).map(|_| ())
    }

    /// An error where the rule's bound does not hold for those numbers of rows and hostile rows.
    pub fn check_bound(&self, n: usize, f: usize) -> Result<()> {
        let Rule { name, bound, .. } = self.rule;
        if bound.holds(n, f) {
            return Ok(());
        }
        if *bound == Bound::Subsets && n > MOST_SUBSET_ROWS {
            return invalid!(
                "aggregate: '{name}' tries all subsets of up to {MOST_SUBSET_ROWS} rows, got n = {n}; 'krum' and 'multiKrum' take more"
            );
        }
        invalid!("aggregate: '{name}' needs {}, got n = {n}, f = {f}", bound.text())
    }

    fn check_fraction(&self) -> Result<()> {
        if !self.given("fraction") {
            return Ok(());
        }
        let share = self.attrs.number("fraction").unwrap_or(f64::NAN);
        if self.given("f") {
            return invalid!("aggregate: give 'f' or 'fraction', not both");
        }
        if !(0.0..0.5).contains(&share) {
            return invalid!(
                "aggregate: 'fraction' must be a number from 0 to below 0.5, got {}",
                shown(share)
            );
        }
        Ok(())
    }

    fn check_weights(&self, n: usize) -> Result<()> {
        let Some(weights) = self.weights() else { return Ok(()) };
        if weights.len() != n {
            return invalid!(
                "aggregate: 'weights' must hold one number for each of {n} rows, got {}",
                weights.len()
            );
        }
        if let Some(row) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
            return invalid!(
                "aggregate: 'weights' must be finite and from 0 on, got {} for row {row}",
                shown(weights[row])
            );
        }
        let total: f64 = weights.iter().sum();
        if !(total > 0.0 && total.is_finite()) {
            return invalid!("aggregate: 'weights' must have a finite sum above 0, got {}", shown(total));
        }
        Ok(())
    }

    /// A number that was given or has a default.
    fn number(&self, name: &str) -> Option<f64> {
        self.attrs.number(name).filter(|value| !value.is_nan())
    }

    fn given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    fn whole(&self, name: &str, least: f64, most: f64) -> Result<Option<usize>> {
        match self.attrs.number(name) {
            Some(value) if value.is_nan() && !self.given(name) => Ok(None),
            Some(value) if value.fract() == 0.0 && (least..=most).contains(&value) => {
                Ok(Some(value as usize))
            }
            Some(value) => {
                invalid!(
                    "aggregate: '{name}' must be a whole number from {least} to {most}, got {}",
                    shown(value)
                )
            }
            None => Ok(None),
        }
    }

    fn positive(&self, name: &str, above: bool) -> Result<f64> {
        match self.attrs.number(name) {
            Some(value) if value.is_nan() && !self.given(name) => Ok(0.0),
            Some(value) if value.is_finite() && (value > 0.0 || !above && value == 0.0) => Ok(value),
            Some(value) => {
                let least = if above { "above 0" } else { "from 0 on" };
                invalid!("aggregate: '{name}' must be a finite number {least}, got {}", shown(value))
            }
            None => Ok(0.0),
        }
    }

    /// The median of even counts.
    pub fn even(&self) -> Even {
        Even::from_word(self.attrs.choice("even")).unwrap_or(Even::Upper)
    }

    /// Weights of the rows as they came.
    pub fn weights(&self) -> Option<&[f64]> {
        self.attrs.floats("weights")
    }

    /// The share that a trimmed mean leaves out.
    pub fn fraction(&self) -> Option<f64> {
        self.number("fraction")
    }

    /// Neighbours that Krum sums for `n` rows, `f` of them hostile.
    pub fn neighbours(&self, n: usize, f: usize) -> usize {
        n - f - if self.attrs.choice("neighbours") == "n-f-1" { 1 } else { 2 }
    }

    /// Rows that multi-Krum averages.
    pub fn m(&self, n: usize, f: usize) -> Result<usize> {
        let most = n.saturating_sub(f);
        Ok(self.whole("m", 1.0, most as f64)?.unwrap_or(most.saturating_sub(2)))
    }

    /// The trusted row.
    pub fn trusted(&self, n: usize) -> Result<usize> {
        Ok(self.whole("trusted", 0.0, n as f64 - 1.0)?.unwrap_or(0))
    }

    /// Steps.
    pub fn iterations(&self) -> Result<usize> {
        Ok(self.whole("iterations", 1.0, 1e9)?.unwrap_or(1))
    }

    /// Rows of a bucket.
    pub fn bucket_size(&self) -> Result<usize> {
        Ok(self.whole("bucketSize", 1.0, 1e9)?.unwrap_or(1))
    }

    /// Seed of the shuffle.
    pub fn seed(&self) -> Result<u64> {
        Ok(self.whole("seed", 0.0, 9_007_199_254_740_991.0)?.unwrap_or(0) as u64)
    }

    /// One of the plain numbers.
    pub fn float(&self, name: &str) -> f64 {
        self.number(name).unwrap_or(0.0)
    }
}
