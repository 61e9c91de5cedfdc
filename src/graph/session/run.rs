//! Runs stages step by step, on the host or with what has a GPU form on a GPU.

use super::Session;
use crate::graph::plan::{End, Operand, Source, Stage, Step, Told, Work};
use crate::kernels::Launcher;
use crate::tensor::{DeviceCore, Tensor};
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Copies of constants on a GPU, each made once.
#[derive(Default)]
pub struct Uploads {
    /// By the identity of the host tensor, which stays so that no other takes its address.
    made: Mutex<HashMap<usize, (Tensor, Tensor)>>,
}

impl Uploads {
    fn find(&self, core: &Arc<DeviceCore>, tensor: &Tensor) -> Result<Tensor> {
        let key = tensor.identity();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, copy)) =
            made.get(&key).filter(|(_, copy)| copy.core().is_some_and(|it| Arc::ptr_eq(it, core)))
        {
            return copy.reshape(tensor.meta().dims.clone());
        }
        let copy = tensor.to_device(core)?;
        made.insert(key, (tensor.clone(), copy.clone()));
        Ok(copy)
    }
}

/// A value of a run: on the host, on the GPU or on both.
#[derive(Default, Clone)]
struct Held {
    host: Option<Tensor>,
    device: Option<Tensor>,
}

impl Held {
    fn new(tensor: Tensor) -> Held {
        if tensor.core().is_some() {
            Held { host: None, device: Some(tensor) }
        } else {
            Held { host: Some(tensor), device: None }
        }
    }

    fn any(&self) -> Result<&Tensor> {
        self.device.as_ref().or(self.host.as_ref()).ok_or_else(gone)
    }

    fn host(&mut self) -> Result<Tensor> {
        if self.host.is_none() {
            self.host = Some(self.device.as_ref().ok_or_else(gone)?.to_host()?);
        }
        self.host.clone().ok_or_else(gone)
    }

    fn device(&mut self, core: &Arc<DeviceCore>) -> Result<Tensor> {
        if self.device.is_none() {
            self.device = Some(self.host.as_ref().ok_or_else(gone)?.to_device(core)?);
        }
        self.device.clone().ok_or_else(gone)
    }
}

fn gone() -> Error {
    Error::Internal("a plan reads a value that is gone".into())
}

impl Session {
    /// An error for a step that has no GPU form where it must have one.
    fn check_forms(&self, stage: &Stage) -> Result<()> {
        if !self.options.strict || self.launcher.is_none() {
            return Ok(());
        }
        match stage.steps.iter().find(|step| matches!(step.work, Work::Host(_))) {
            None => Ok(()),
            Some(step) => Err(Error::UnsupportedOp(format!(
                "{}: '{}' has no GPU form; device 'auto' runs it on the CPU",
                step.label, step.name
            ))),
        }
    }
}

struct Run<'a> {
    session: &'a Session,
    values: Vec<Held>,
}

/// What a step took.
#[derive(Debug, Clone)]
pub struct Timing {
    /// The node that it comes from.
    pub label: Arc<str>,
    /// The op, or what a host form does.
    pub name: &'static str,
    /// Whether it ran on the GPU.
    pub on_gpu: bool,
    /// Milliseconds; on a GPU from its start to its end, with the device idle before.
    pub milliseconds: f64,
}

/// Runs from that stage to the results. `times` gets an entry for each step, at the price of waiting for each.
pub fn run(
    session: &Session,
    mut stage: Arc<Stage>,
    feeds: Vec<Tensor>,
    check: &dyn Fn() -> Result<()>,
    mut times: Option<&mut Vec<Timing>>,
) -> Result<Vec<Tensor>> {
    let mut run = Run { session, values: feeds.into_iter().map(Held::new).collect() };
    loop {
        session.check_forms(&stage)?;
        run.values.resize(stage.slots.max(run.values.len()), Held::default());
        stage.left.iter().for_each(|&slot| run.values[slot] = Held::default());
        for (step, dead) in stage.steps.iter().zip(&stage.dead) {
            check()?;
            let step_run = match &mut times {
                None => run.step(step),
                Some(times) => run.timed(step).map(|timing| times.push(timing)),
            };
            step_run.map_err(|error| located(step, error))?;
            dead.iter().for_each(|&slot| run.values[slot] = Held::default());
        }
        let told = match &stage.end {
            End::Results(results) => return results.iter().map(|operand| run.result(operand)).collect(),
            End::Value(slot) => Told::Value(*slot, run.values[*slot].host()?),
            End::Dims(slots) => {
                let metas = slots.iter().map(|&slot| Ok((slot, run.values[slot].any()?.meta().clone())));
                Told::Dims(metas.collect::<Result<_>>()?)
            }
        };
        check()?;
        stage = stage.next(told)?;
    }
}

impl Run<'_> {
    fn timed(&mut self, step: &Step) -> Result<Timing> {
        let launcher = self.session.launcher.clone().filter(|_| matches!(step.work, Work::Call(_)));
        let wait = || launcher.as_ref().map_or(Ok(()), |launcher| launcher.core().stream().synchronize());
        wait()?;
        let start = std::time::Instant::now();
        self.step(step)?;
        wait()?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        Ok(Timing { label: step.label.clone(), name: step.name, on_gpu: launcher.is_some(), milliseconds })
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let outputs = match (&step.work, &self.session.launcher) {
            (Work::Call(call), Some(launcher)) => {
                let inputs = self.inputs(step, Some(launcher))?;
                call.run_cuda(launcher, &inputs)?
            }
            (Work::Call(call), None) => call.run_cpu(&self.inputs(step, None)?)?,
            (Work::Host(form), _) => form(&self.inputs(step, None)?)?,
        };
        for (&slot, output) in step.outputs.iter().zip(outputs) {
            self.values[slot] = Held::new(output);
        }
        Ok(())
    }

    fn inputs(&mut self, step: &Step, launcher: Option<&Arc<Launcher>>) -> Result<Vec<Option<Tensor>>> {
        let inputs = step
            .inputs
            .iter()
            .map(|input| input.as_ref().map(|operand| self.input(operand, launcher)).transpose());
        inputs.collect()
    }

    fn input(&mut self, operand: &Operand, launcher: Option<&Arc<Launcher>>) -> Result<Tensor> {
        match (operand.source(), launcher) {
            (Source::Constant { tensor, .. }, None) => Ok(tensor.clone()),
            (Source::Constant { tensor, lasting: true }, Some(launcher)) => {
                self.session.uploads.find(launcher.core(), tensor)
            }
            (Source::Constant { tensor, .. }, Some(launcher)) => tensor.to_device(launcher.core()),
            (Source::Slot(slot), launcher) => {
                let held = &mut self.values[*slot];
                let tensor = match launcher {
                    Some(launcher) => held.device(launcher.core())?,
                    None => held.host()?,
                };
                tensor.reshape(operand.dims())
            }
        }
    }

    fn result(&mut self, operand: &Operand) -> Result<Tensor> {
        match operand.source() {
            Source::Constant { tensor, .. } => Ok(tensor.clone()),
            Source::Slot(slot) => self.values[*slot].any()?.reshape(operand.dims()),
        }
    }
}

fn located(step: &Step, error: Error) -> Error {
    error.reworded(|text| format!("{}: {text}", step.label))
}
