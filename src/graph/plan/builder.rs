//! The steps of a plan under way. What is known already is worked out instead of becoming a step.

use super::stage::{Step, Work};
use super::{Operand, Source};
use crate::ops::{Call, Meta, Raw};
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An operator's form on the host: results from operands.
pub type HostForm = dyn Fn(&[Option<Tensor>]) -> Result<Vec<Tensor>> + Send + Sync;

/// Identity of an operand: its memory, its dims.
type FoldKey = (&'static str, String, Vec<Option<(usize, Vec<usize>)>>);

/// Operands and results of a call.
type Folded = (Vec<Option<Tensor>>, Vec<Tensor>);

/// Results of calls on lasting constants, shared by all plans of a session, so that each is worked out and held once.
#[derive(Default)]
pub struct Folds {
    /// The operands stay with the results: a key's addresses must not be used again.
    known: Mutex<HashMap<FoldKey, Folded>>,
}

/// Results below this many bytes are worked out again rather than kept.
const LEAST_KEPT: usize = 1 << 10;

/// Collects steps.
#[derive(Clone)]
pub struct Builder {
    pub(super) folds: Arc<Folds>,
    /// Most bytes of one value.
    pub(super) tensor_bytes: u64,
    /// Slots given out, in this stage and those before.
    pub(super) slots: usize,
    pub(super) steps: Vec<Step>,
    /// Values of slots that a run has told.
    pub(super) told: HashMap<usize, Tensor>,
    /// What the steps are made for.
    pub(super) label: Arc<str>,
}

impl Builder {
    /// The value as it is known now: slots that a run has told are constants.
    pub(super) fn resolve(&self, operand: &Operand) -> Operand {
        let Source::Slot(slot) = operand.source else { return operand.clone() };
        match self.told.get(&slot).map(|tensor| tensor.reshape(operand.meta.dims.clone())) {
            Some(Ok(tensor)) => Operand::constant(tensor, false),
            _ => operand.clone(),
        }
    }

    fn check_size(&self, what: &str, meta: &Meta) -> Result<()> {
        // Of dims beside a 0 memory is asked for, as for a mask of the last two of them, and work done.
        let dims: Vec<usize> = meta.dims.iter().map(|&dim| dim.max(1)).collect();
        let count = crate::shape::element_count(what, &dims)? as u64;
        let bytes = count.saturating_mul(meta.dtype.size() as u64);
        if bytes <= self.tensor_bytes {
            return Ok(());
        }
        Err(Error::MemoryLimit(format!(
            "{what}: a result with dims {:?} takes {bytes} bytes, which passes maxTensorBytes, {}",
            meta.dims, self.tensor_bytes
        )))
    }

    /// A call of the op table.
    pub fn call(
        &mut self,
        op: &'static str,
        operands: &[Option<Operand>],
        options: &[(String, Raw)],
    ) -> Result<Vec<Operand>> {
        let metas =
            operands.iter().map(|operand| operand.as_ref().map(|operand| operand.meta.clone())).collect();
        let call = Call::new(op, metas, options)?;
        for meta in &call.outputs {
            self.check_size(op, meta)?;
        }
        let Some((tensors, lasting)) = constants(operands) else {
            let outputs = call.outputs.clone();
            return Ok(self.push(op, Work::Call(Box::new(call)), operands, outputs, options));
        };
        let large = call.outputs.iter().any(|meta| meta.size() * meta.dtype.size() >= LEAST_KEPT);
        let results = if lasting && large {
            self.folds
                .clone()
                .find((op, format!("{options:?}"), keys(&tensors)), &tensors, || call.run_cpu(&tensors))?
        } else {
            call.run_cpu(&tensors)?
        };
        Ok(results.into_iter().map(|tensor| Operand::constant(tensor, lasting)).collect())
    }

    /// A form on the host with results of known types and dims. `key` tells forms of one name apart.
    pub fn host(
        &mut self,
        name: &'static str,
        operands: &[Option<Operand>],
        outputs: Vec<Meta>,
        form: Arc<HostForm>,
    ) -> Result<Vec<Operand>> {
        for meta in &outputs {
            self.check_size(name, meta)?;
        }
        let Some((tensors, lasting)) = constants(operands) else {
            return Ok(self.push(name, Work::Host(form), operands, outputs, &[]));
        };
        let results = form(&tensors)?;
        Ok(results.into_iter().map(|tensor| Operand::constant(tensor, lasting)).collect())
    }

    /// A form on the host whose results' dims only a run can tell: their slots, or the results where all is known.
    pub(super) fn open(
        &mut self,
        name: &'static str,
        operands: &[Option<Operand>],
        results: usize,
        form: Arc<HostForm>,
    ) -> Result<std::result::Result<Vec<Operand>, Vec<usize>>> {
        if let Some((tensors, lasting)) = constants(operands) {
            return Ok(Ok(form(&tensors)?
                .into_iter()
                .map(|tensor| Operand::constant(tensor, lasting))
                .collect()));
        }
        let unknown = vec![Meta::new(crate::DType::F32, []); results];
        let outputs = self.push(name, Work::Host(form), operands, unknown, &[]);
        let slots = outputs.iter().filter_map(|output| match output.source {
            Source::Slot(slot) => Some(slot),
            Source::Constant { .. } => None,
        });
        Ok(Err(slots.collect()))
    }

    fn push(
        &mut self,
        name: &'static str,
        work: Work,
        operands: &[Option<Operand>],
        outputs: Vec<Meta>,
        options: &[(String, Raw)],
    ) -> Vec<Operand> {
        let first = self.slots;
        self.slots += outputs.len();
        let results: Vec<Operand> =
            outputs.into_iter().enumerate().map(|(index, meta)| Operand::slot(first + index, meta)).collect();
        self.steps.push(Step {
            label: self.label.clone(),
            name,
            work,
            options: options.to_vec(),
            inputs: operands.to_vec(),
            outputs: (first..self.slots).collect(),
        });
        results
    }
}

impl Folds {
    fn find(
        &self,
        key: FoldKey,
        operands: &[Option<Tensor>],
        work_out: impl FnOnce() -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, results)) = lock().get(&key) {
            return Ok(results.clone());
        }
        let results = work_out()?;
        // Another plan may have been as far at the same time: both use what was first.
        Ok(lock().entry(key).or_insert_with(|| (operands.to_vec(), results)).1.clone())
    }
}

/// The elements of all operands where they are known, and whether all of them last.
fn constants(operands: &[Option<Operand>]) -> Option<(Vec<Option<Tensor>>, bool)> {
    let mut all_last = true;
    let mut tensors = Vec::with_capacity(operands.len());
    for operand in operands {
        tensors.push(match operand.as_ref().map(|operand| &operand.source) {
            None => None,
            Some(Source::Constant { tensor, lasting }) => {
                all_last &= *lasting;
                Some(tensor.clone())
            }
            Some(Source::Slot(_)) => return None,
        });
    }
    Some((tensors, all_last))
}

fn keys(tensors: &[Option<Tensor>]) -> Vec<Option<(usize, Vec<usize>)>> {
    tensors.iter().map(|it| it.as_ref().map(|it| (it.identity(), it.meta().dims.clone()))).collect()
}
