//! What a run does until it is done or must tell something.

use super::builder::HostForm;
use super::{Operand, Planner, Source};
use crate::ops::{Call, Meta, Raw};
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// What a step does.
#[derive(Clone)]
pub enum Work {
    /// A call of the op table.
    Call(Box<Call>),
    /// A form that the host has alone.
    Host(Arc<HostForm>),
}

/// One step.
#[derive(Clone)]
pub struct Step {
    /// The node that it comes from, for messages and profiles.
    pub label: Arc<str>,
    /// The op, or what a host form does.
    pub name: &'static str,
    /// What to do.
    pub work: Work,
    /// Options that the call was made with.
    pub options: Vec<(String, Raw)>,
    /// Operands.
    pub inputs: Vec<Option<Operand>>,
    /// Slots of the results.
    pub outputs: Vec<usize>,
}

impl Step {
    /// Slots that it reads.
    pub fn reads(&self) -> impl Iterator<Item = usize> + '_ {
        self.inputs.iter().flatten().filter_map(|operand| match operand.source() {
            Source::Slot(slot) => Some(*slot),
            Source::Constant { .. } => None,
        })
    }
}

/// How a stage ends.
pub enum End {
    /// These are the results.
    Results(Vec<Operand>),
    /// The elements in that slot decide how it goes on.
    Value(usize),
    /// The element types and dims in those slots do.
    Dims(Vec<usize>),
}

/// What a run tells at the end of a stage.
pub enum Told {
    /// Elements.
    Value(usize, Tensor),
    /// Element types and dims.
    Dims(Vec<(usize, Meta)>),
}

impl Told {
    /// What stages that go on are told apart by.
    fn key(&self) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        let mut note = |meta: &Meta| {
            key.push(meta.dtype as u8);
            key.extend(meta.dims.len().to_le_bytes());
            meta.dims.iter().for_each(|dim| key.extend(dim.to_le_bytes()));
        };
        match self {
            Told::Value(_, tensor) => {
                note(tensor.meta());
                key.extend(tensor.host_view()?.bytes());
            }
            Told::Dims(metas) => metas.iter().for_each(|(_, meta)| note(meta)),
        }
        Ok(key)
    }
}

/// A part of a plan.
pub struct Stage {
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Slots that the stages before have filled and nobody reads from here on.
    pub left: Vec<usize>,
    /// For each step the slots that nobody reads after it.
    pub dead: Vec<Vec<usize>>,
    /// How it ends.
    pub end: End,
    /// Slots that this stage and those before it fill.
    pub slots: usize,
    /// Whether the kernels of its steps were loaded.
    pub loaded: AtomicBool,
    /// What goes on from here, unless the stage is the last.
    planner: Option<Planner>,
    next: Stages<Vec<u8>>,
}

impl Stage {
    /// A stage from its parts. A run has the slots `held` before its steps; `live` are read after them.
    pub fn new(
        steps: Vec<Step>,
        held: &[usize],
        live: &[usize],
        end: End,
        slots: usize,
        planner: Option<Planner>,
    ) -> Stage {
        let (dead, needed) = dead_after(&steps, live, slots);
        let mut left: Vec<usize> = held.iter().copied().filter(|&slot| !needed[slot]).collect();
        left.sort_unstable();
        left.dedup();
        let loaded = AtomicBool::new(false);
        Stage { steps, left, dead, end, slots, loaded, planner, next: Stages::default() }
    }

    /// The stage that goes on from what a run tells.
    pub fn next(&self, told: Told) -> Result<Arc<Stage>> {
        let Some(planner) = &self.planner else {
            return Err(Error::Internal("a plan goes on after its results".into()));
        };
        self.next.find(told.key()?, || planner.clone().go_on(told))
    }
}

impl End {
    /// Slots that it reads.
    pub fn reads(&self) -> Vec<usize> {
        match self {
            End::Value(slot) => vec![*slot],
            End::Dims(slots) => slots.clone(),
            End::Results(results) => results
                .iter()
                .filter_map(|operand| match operand.source() {
                    Source::Slot(slot) => Some(*slot),
                    Source::Constant { .. } => None,
                })
                .collect(),
        }
    }
}

/// For each step the slots that it reads or writes last, and for each slot whether somebody reads it or writes it.
fn dead_after(steps: &[Step], live: &[usize], slots: usize) -> (Vec<Vec<usize>>, Vec<bool>) {
    let mut needed = vec![false; slots];
    live.iter().for_each(|&slot| needed[slot] = true);
    let mut dead = vec![Vec::new(); steps.len()];
    for (index, step) in steps.iter().enumerate().rev() {
        for slot in step.outputs.iter().copied().chain(step.reads()) {
            if !std::mem::replace(&mut needed[slot], true) {
                dead[index].push(slot);
            }
        }
    }
    (dead, needed)
}

/// Stages by what led to them; the least recently used ones go.
pub struct Stages<K> {
    kept: Mutex<Vec<(K, Arc<Stage>)>>,
}

/// Stages kept at one place.
const MOST_KEPT: usize = 32;

impl<K> Default for Stages<K> {
    fn default() -> Stages<K> {
        Stages { kept: Mutex::new(Vec::new()) }
    }
}

impl<K: PartialEq> Stages<K> {
    /// The stage of that key, made if it is not there. The lock is not held meanwhile.
    pub fn find(&self, key: K, make: impl FnOnce() -> Result<Stage>) -> Result<Arc<Stage>> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut kept = lock();
            if let Some(index) = kept.iter().position(|(known, _)| *known == key) {
                let found = kept.remove(index);
                let stage = found.1.clone();
                kept.push(found);
                return Ok(stage);
            }
        }
        let stage = Arc::new(make()?);
        let mut kept = lock();
        if kept.len() == MOST_KEPT {
            kept.remove(0);
        }
        kept.push((key, stage.clone()));
        Ok(stage)
    }

    /// Stages kept.
    pub fn len(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
