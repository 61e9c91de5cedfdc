//! Passes over the steps of a stage. Dims are concrete here and what is constant is known, so that a pattern is a few calls,
//! however the model's writer spelt it.

mod activation;
mod affine;
mod attention;
mod elementwise;
mod forward;
mod identity;
mod norm;
mod residual;
mod trace;
mod view;

use super::builder::Builder;
use super::stage::{Step, Work};
use super::{Operand, Source};
use crate::Result;
use crate::ops::{Call, Raw};
use std::collections::HashMap;

/// The steps once all passes are through. `live` are slots that are read after them.
pub(super) fn run(builder: &mut Builder, steps: Vec<Step>, live: &[usize]) -> Result<Vec<Step>> {
    let mut list = List::new(steps, live);
    unread(&mut list);
    identity::run(&mut list);
    affine::run(builder, &mut list)?;
    norm::run(&mut list)?;
    attention::run(&mut list)?;
    residual::run(&mut list)?;
    activation::spelled(&mut list)?;
    forward::run(builder, &mut list)?;
    activation::attach(&mut list)?;
    elementwise::run(&mut list)?;
    Ok(list.into_steps())
}

/// Removes steps whose results nobody reads.
fn unread(list: &mut List) {
    for index in (0..list.steps.len()).rev() {
        let Some(step) = &list.steps[index] else { continue };
        if step.outputs.iter().all(|&slot| !list.is_live(slot) && list.readers(slot).is_empty()) {
            list.take(index);
        }
    }
}

/// Steps with who writes and who reads each slot. A step that goes leaves a hole.
pub(super) struct List {
    pub steps: Vec<Option<Step>>,
    writers: HashMap<usize, usize>,
    readers: HashMap<usize, Vec<usize>>,
    live: std::collections::HashSet<usize>,
}

impl List {
    fn new(steps: Vec<Step>, live: &[usize]) -> List {
        let mut list = List {
            steps: steps.into_iter().map(Some).collect(),
            writers: HashMap::new(),
            readers: HashMap::new(),
            live: live.iter().copied().collect(),
        };
        for index in 0..list.steps.len() {
            list.note(index);
        }
        list
    }

    fn note(&mut self, index: usize) {
        let Some(step) = &self.steps[index] else { return };
        for &slot in &step.outputs {
            self.writers.insert(slot, index);
        }
        for slot in step.reads() {
            let readers = self.readers.entry(slot).or_default();
            if !readers.contains(&index) {
                readers.push(index);
            }
        }
    }

    /// Removes a step and gives it.
    pub fn take(&mut self, index: usize) -> Option<Step> {
        let step = self.steps[index].take()?;
        for slot in step.reads() {
            if let Some(readers) = self.readers.get_mut(&slot) {
                readers.retain(|&reader| reader != index);
            }
        }
        for slot in &step.outputs {
            self.writers.remove(slot);
        }
        Some(step)
    }

    /// Puts a step in a hole.
    pub fn put(&mut self, index: usize, step: Step) {
        self.steps[index] = Some(step);
        self.note(index);
    }

    /// Makes the readers of a slot read that value instead, as many elements under their own dims.
    pub fn redirect(&mut self, slot: usize, source: &Source) {
        for index in self.readers.remove(&slot).unwrap_or_default() {
            let Some(step) = &mut self.steps[index] else { continue };
            for operand in step.inputs.iter_mut().flatten() {
                if matches!(operand.source(), Source::Slot(read) if *read == slot) {
                    operand.source = source.clone();
                }
            }
            self.note(index);
        }
    }

    /// Replaces steps by one call, which stands where the last of them did and has its result.
    pub fn replace(
        &mut self,
        taken: &[usize],
        name: &'static str,
        inputs: Vec<Option<Operand>>,
        options: &[(&str, Raw)],
    ) -> Result<()> {
        let Some(&last) = taken.iter().max() else { return Ok(()) };
        let options: Vec<(String, Raw)> =
            options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let metas = inputs.iter().map(|input| input.as_ref().map(|operand| operand.meta().clone())).collect();
        let call = Call::new(name, metas, &options)?;
        let mut result = None;
        for &index in taken {
            result = self.take(index).filter(|_| index == last).or(result);
        }
        if let Some(step) = result {
            self.put(last, Step { name, work: Work::Call(Box::new(call)), options, inputs, ..step });
        }
        Ok(())
    }

    /// Steps that read the slot.
    pub fn readers(&self, slot: usize) -> &[usize] {
        self.readers.get(&slot).map_or(&[], Vec::as_slice)
    }

    /// The step that writes the operand's slot.
    pub fn writer(&self, operand: &Operand) -> Option<usize> {
        match operand.source() {
            Source::Slot(slot) => self.writers.get(slot).copied(),
            Source::Constant { .. } => None,
        }
    }

    /// Whether the slot is read after the steps.
    pub fn is_live(&self, slot: usize) -> bool {
        self.live.contains(&slot)
    }

    /// The only reader of a step's only result, if there is one and nobody reads the result later.
    pub fn only_reader(&self, index: usize) -> Option<usize> {
        let [slot] = self.steps[index].as_ref()?.outputs[..] else { return None };
        match self.readers(slot) {
            [reader] if !self.is_live(slot) => Some(*reader),
            _ => None,
        }
    }

    fn into_steps(self) -> Vec<Step> {
        self.steps.into_iter().flatten().collect()
    }
}

impl Step {
    /// The call, unless the host has the step's form alone.
    pub(super) fn call(&self) -> Option<&Call> {
        match &self.work {
            Work::Call(call) => Some(call),
            Work::Host(_) => None,
        }
    }

    /// The step with other operands and those options for its op, in the place of its own of those names.
    pub(super) fn rebuilt(&self, inputs: Vec<Option<Operand>>, more: &[(&str, Raw)]) -> Result<Step> {
        let mut options = self.options.clone();
        options.retain(|(known, _)| more.iter().all(|(name, _)| name != known));
        options.extend(more.iter().map(|(name, value)| (name.to_string(), value.clone())));
        let metas = inputs.iter().map(|input| input.as_ref().map(|operand| operand.meta().clone())).collect();
        let call = Call::new(self.name, metas, &options)?;
        Ok(Step { work: Work::Call(Box::new(call)), inputs, options, ..self.clone() })
    }
}

/// The number that an operand holds throughout: a constant of one element.
pub(super) fn number(operand: &Operand) -> Option<f64> {
    let tensor = operand.known().filter(|tensor| tensor.meta().size() == 1)?;
    super::numbers(tensor).ok()?.first().copied()
}
