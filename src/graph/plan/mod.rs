//! Plans: what to run for inputs of given types and dims.
//!
//! A plan is made by walking the graph with concrete dims. What depends on dims and constants alone is worked out on the
//! way, on the host; the rest becomes steps. Where the walk needs to know a value that only a run can tell (the condition
//! of an `If`, the dims of a result that depend on elements), the plan ends there for now: a [`Stage`]. A run that gets so
//! far gives the value, and each value seen has the stage that goes on from there.

mod builder;
mod flow;
mod passes;
mod planner;
mod site;
mod stage;

pub use builder::Folds;
pub use flow::{Repeat, is_true};
pub use planner::Planner;
pub use site::{Lowered, Rule, Site, Stop, convert, integers, ints, numbers};
pub use stage::{End, Stage, Stages, Step, Told, Work};

use crate::Result;
use crate::ops::Meta;
use crate::shape::Dims;
use crate::tensor::Tensor;

/// Where a value's elements come from.
#[derive(Clone)]
pub enum Source {
    /// They are known. `lasting` where they are the same in every plan: constants of the model and what follows from them.
    Constant {
        /// The elements, on the host.
        tensor: Tensor,
        /// Whether they last.
        lasting: bool,
    },
    /// A run has them in that place.
    Slot(usize),
}

/// A value while a plan is made: its type and dims, and its elements' source.
#[derive(Clone)]
pub struct Operand {
    meta: Meta,
    source: Source,
}

impl Operand {
    /// A value that a run has in a slot.
    pub fn slot(slot: usize, meta: Meta) -> Operand {
        Operand { meta, source: Source::Slot(slot) }
    }

    /// A known value.
    pub fn constant(tensor: Tensor, lasting: bool) -> Operand {
        Operand { meta: tensor.meta().clone(), source: Source::Constant { tensor, lasting } }
    }

    /// Element type and dims.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Element type.
    pub fn dtype(&self) -> crate::DType {
        self.meta.dtype
    }

    /// Dims.
    pub fn dims(&self) -> &[usize] {
        &self.meta.dims
    }

    /// Number of dims.
    pub fn rank(&self) -> usize {
        self.meta.dims.len()
    }

    /// Where the elements come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The elements, where they are known.
    pub fn known(&self) -> Option<&Tensor> {
        match &self.source {
            Source::Constant { tensor, .. } => Some(tensor),
            Source::Slot(_) => None,
        }
    }

    /// The same elements under other dims of the same product; costs a run nothing.
    pub fn reshape(&self, dims: impl Into<Dims>) -> Result<Operand> {
        let dims = dims.into();
        if let Source::Constant { tensor, lasting } = &self.source {
            return Ok(Operand::constant(tensor.reshape(dims)?, *lasting));
        }
        if crate::shape::element_count("reshape", &dims)? != self.meta.size() {
            return crate::mismatch!(
                "reshape: dims {:?} do not hold the elements of {dims:?}",
                self.meta.dims
            );
        }
        Ok(Operand { meta: Meta::new(self.meta.dtype, dims), source: self.source.clone() })
    }
}
