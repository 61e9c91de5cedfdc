//! Losses.

use super::{Operator, shared};
use crate::graph::plan::{Lowered, Operand, Rule, Site, ints};
use crate::ops::Raw;
use crate::{Error, Result};

pub const ROWS: &[Operator] = &[
    shared("NegativeLogLikelihoodLoss", "gatherElements", likelihood),
    shared("SoftmaxCrossEntropyLoss", "logSoftmax", cross_entropy),
];

fn likelihood(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    Ok(loss(site, &x)?.into())
}

/// The likelihood loss of the logarithms of probabilities, which are the second result.
fn cross_entropy(site: &mut Site) -> Rule {
    let scores = site.input(0)?;
    let logs = site.one("logSoftmax", &[scores], &[("axis", Raw::Number(1.0))])?;
    Ok(Lowered::Values(vec![loss(site, &logs)?, logs]))
}

/// -x at each target's class, times the class's weight, and their mean or sum.
fn loss(site: &mut Site, x: &Operand) -> Result<Operand> {
    let (targets, weights) = (site.input(1)?, site.optional(2));
    check(x, &targets)?;
    let ignored = match site.node.maybe_int("ignore_index")? {
        Some(class) => Some(equals(site, &targets, class)?),
        None => None,
    };
    let targets = match &ignored {
        Some(ignored) => {
            let none = site.scalar(targets.dtype(), 0.0)?;
            site.one("where", &[ignored.clone(), none, targets], &[])?
        }
        None => targets,
    };
    let mut dims = targets.dims().to_vec();
    dims.insert(1, 1);
    let picked = [x.clone(), targets.reshape(dims)?];
    let picked =
        site.one("gatherElements", &picked, &[("axis", Raw::Number(1.0))])?.reshape(targets.dims())?;
    let mut losses = site.one("neg", &[picked], &[])?;
    let mut factors = match weights {
        Some(weights) => Some(site.one("gather", &[weights, targets.clone()], &[])?),
        None => None,
    };
    if let Some(factors) = &factors {
        losses = site.one("mul", &[losses, factors.clone()], &[])?;
    }
    if let Some(ignored) = &ignored {
        let zero = site.scalar(x.dtype(), 0.0)?;
        losses = site.one("where", &[ignored.clone(), zero.clone(), losses], &[])?;
        let ones = match factors {
            Some(factors) => factors,
            None => site.scalar(x.dtype(), 1.0)?,
        };
        factors = Some(site.one("where", &[ignored.clone(), zero, ones], &[])?);
    }
    reduced(site, losses, factors)
}

fn check(x: &Operand, targets: &Operand) -> Result<()> {
    let dims = x.dims();
    if dims.len() >= 2 && targets.dims() == [&dims[..1], &dims[2..]].concat() {
        return Ok(());
    }
    Err(Error::ShapeMismatch(format!("targets with dims {:?} do not fit {dims:?}", targets.dims())))
}

fn equals(site: &mut Site, targets: &Operand, class: i64) -> Result<Operand> {
    let class = site.list(&[class])?.reshape([])?;
    let class = site.cast(&class, targets.dtype())?;
    site.one("equal", &[targets.clone(), class], &[])
}

fn reduced(site: &mut Site, losses: Operand, factors: Option<Operand>) -> Result<Operand> {
    let all =
        [("axes", ints(&(0..losses.rank() as i64).collect::<Vec<_>>())), ("keepDims", Raw::Bool(false))];
    match (site.node.word("reduction", "mean")?.as_str(), factors) {
        ("none", _) => Ok(losses),
        ("sum", _) => site.one("reduceSum", &[losses], &all),
        ("mean", None) => site.one("reduceMean", &[losses], &all),
        ("mean", Some(factors)) => {
            let factors = super::layout::expand_to(site, &factors, &super::norm::signed(losses.dims()))?;
            let sum = site.one("reduceSum", &[losses], &all)?;
            let weight = site.one("reduceSum", &[factors], &all)?;
            site.one("div", &[sum, weight], &[])
        }
        (word, _) => Err(Error::InvalidModel(format!("'reduction' must be none, sum or mean, got '{word}'"))),
    }
}
