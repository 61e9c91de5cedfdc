//! Which way a product goes on the GPU: from its description alone, nothing is tried at run time.

use super::super::Precision;
use super::cuda::{self, Setting, choice, is_narrow};
use super::{Product, direct, split};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// A way with its plan.
#[derive(Debug, PartialEq)]
pub enum Way<'a> {
    /// Operands straight to the matrix units.
    Direct(&'a direct::Plan),
    /// Operands as planes of halves.
    Split(&'a split::Plan),
    /// Float32 or float64 chains.
    Chains,
}

/// What the ways depend on besides the product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    pub setting: Setting,
    pub precision: Precision,
}

/// The plans of a product.
pub struct Ways {
    direct: Option<direct::Plan>,
    pub split: Option<split::Plan>,
    /// `None` where the product is larger than the kernels take.
    pub chains: Option<cuda::Plan>,
    /// Microseconds expected of chains; `None` where narrow kernels take the product.
    chains_time: Option<f64>,
}

impl Ways {
    /// Finds them.
    pub fn new(product: &Product, Asked { setting, precision }: Asked) -> Ways {
        Ways {
            direct: direct::plan(product, setting, precision),
            split: cuda::tensor_plan(product, setting, precision),
            chains: cuda::plan(product, setting),
            chains_time: if is_narrow(product, setting) { None } else { Some(choice(product, setting).time) },
        }
    }

    /// Microseconds expected of the best way, with those of planes of halves; `None` where narrow kernels take the product.
    pub fn time(&self, split: Option<f64>) -> Option<f64> {
        let times = [self.direct.as_ref().map(|plan| plan.time), split, self.chains_time];
        times.into_iter().flatten().reduce(f64::min)
    }

    /// The way that is expected to take least time. `split`: the microseconds expected of planes of halves, if they take
    /// the product; they depend on which planes are kept.
    pub fn best(&self, split: Option<f64>) -> Way<'_> {
        let split = split.filter(|time| self.chains_time.is_none_or(|chains| *time < chains));
        let other = split.or(self.chains_time).unwrap_or(f64::INFINITY);
        match (&self.direct, split.and(self.split.as_ref())) {
            (Some(plan), _) if plan.time < other => Way::Direct(plan),
            (_, Some(plan)) => Way::Split(plan),
            _ => Way::Chains,
        }
    }
}

/// Products whose plans a thread keeps.
const KEPT: usize = 1024;

type Known = HashMap<Product, Vec<(Asked, Rc<Ways>)>>;

/// The plans of a product, which this thread keeps: finding them takes longer than a launch.
pub fn ways(product: &Product, asked: Asked) -> Rc<Ways> {
    thread_local!(static KNOWN: RefCell<Known> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        let of_product = known.get(product).into_iter().flatten();
        if let Some((_, ways)) = of_product.into_iter().find(|(key, _)| *key == asked) {
            return ways.clone();
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let ways = Rc::new(Ways::new(product, asked));
        known.entry(product.clone()).or_default().push((asked, ways.clone()));
        ways
    })
}
