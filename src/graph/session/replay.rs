//! Stages recorded as a whole: one launch runs all kernels of a stage on fixed memory.

use super::held::Held;
use super::lane::{Gpu, Lane};
use super::run::{Constants, Values};
use crate::graph::plan::{Source, Stage, Work};
use crate::kernels::{Launcher, Recording};
use crate::tensor::Tensor;
use crate::{Error, Result};

/// A recorded stage.
pub struct Replay {
    recording: Recording,
    /// Values that the stage reads and where it reads them.
    inputs: Vec<(usize, Tensor)>,
    /// Values that are read after the stage and where it leaves them, until it is launched again.
    outputs: Vec<(usize, Held)>,
    /// Constants that it reads.
    _constants: Constants,
}

impl Replay {
    /// Whether a stage is of one launch's kind: all its steps have GPU forms.
    pub fn suits(stage: &Stage) -> bool {
        !stage.steps.is_empty() && stage.steps.iter().all(|step| matches!(step.work, Work::Call(_)))
    }

    /// Records a stage that has run on that lane; `None` where that is not possible. `values` tell element types and dims alone.
    pub fn record(gpu: &Gpu, lane: &Lane, stage: &Stage, values: &Values) -> Result<Option<Replay>> {
        let launcher = &lane.launcher;
        let mut inputs = Vec::new();
        for slot in read_before_written(stage) {
            inputs.push((slot, Tensor::device(launcher.core(), values.any(slot)?.meta())?));
        }
        let mut inner = Values::new(stage.slots);
        inputs.iter().for_each(|(slot, tensor)| inner.set(*slot, tensor.clone()));
        let mut constants = Constants::default();
        for operand in stage.steps.iter().flat_map(|step| step.inputs.iter().flatten()) {
            if let Source::Constant { tensor, lasting } = operand.source() {
                constants.find(gpu, launcher, tensor, *lasting)?;
            }
        }
        let recording = launcher.record(|| run_steps(gpu, launcher, stage, &mut inner, &mut constants));
        // Whoever cannot record it can run it: a true error shows there as well.
        let Ok(Some(recording)) = recording else { return Ok(None) };
        let outputs = stage.steps.iter().flat_map(|step| &step.outputs);
        let outputs = outputs.filter_map(|&slot| Some((slot, inner.take(slot)?))).collect();
        Ok(Some(Replay { recording, inputs, outputs, _constants: constants }))
    }

    /// Loads the kernels of a stage that has not run on that lane beside each other. `values` are what it starts from.
    pub fn load(gpu: &Gpu, lane: &Lane, stage: &Stage, values: &Values) -> Result<()> {
        lane.launcher.load_ahead(|launcher| {
            run_steps(gpu, launcher, stage, &mut values.clone(), &mut Constants::default())
        })
    }

    /// Runs the stage. Results lie where the next run of it writes again.
    pub fn run(&self, launcher: &Launcher, stage: &Stage, values: &mut Values) -> Result<()> {
        self.inputs.iter().try_for_each(|(slot, target)| values.copy_to(*slot, target))?;
        launcher.replay(&self.recording)?;
        stage.dead.iter().flatten().for_each(|&slot| drop(values.take(slot)));
        for (slot, held) in &self.outputs {
            values.put(*slot, held.clone());
        }
        Ok(())
    }
}

fn run_steps(
    gpu: &Gpu,
    launcher: &Launcher,
    stage: &Stage,
    values: &mut Values,
    constants: &mut Constants,
) -> Result<()> {
    for (step, dead) in stage.steps.iter().zip(&stage.dead) {
        let Work::Call(call) = &step.work else {
            return Err(Error::Internal("a step on the host was to be recorded".into()));
        };
        let inputs = values.operands(step, gpu, launcher, constants)?;
        values.fill(step, call.run_cuda(launcher, &inputs)?);
        dead.iter().for_each(|&slot| drop(values.take(slot)));
    }
    Ok(())
}

/// Slots that the steps read and that stages before have filled.
fn read_before_written(stage: &Stage) -> Vec<usize> {
    let mut written = vec![false; stage.slots];
    let mut found = Vec::new();
    for step in &stage.steps {
        for slot in step.reads() {
            if !std::mem::replace(&mut written[slot], true) {
                found.push(slot);
            }
        }
        step.outputs.iter().for_each(|&slot| written[slot] = true);
    }
    found
}
