//! Runs stages: step by step, on the host or with what has a GPU form on a GPU, or as a whole once they are recorded there.

use super::Session;
use super::feeds::Feed;
use super::held::Held;
use super::lane::{Gpu, Known, Lane};
use super::replay::Replay;
use crate::driver::Event;
use crate::graph::plan::{End, Operand, Source, Stage, Step, Told, Work};
use crate::kernels::Launcher;
use crate::tensor::{PinnedSlice, Tensor};
use crate::{Error, Result};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a run is to give.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Positions of outputs.
    pub outputs: &'a [usize],
    /// Whether results stay on the GPU that they are made on.
    pub keep: bool,
}

/// Constants of a stage on a GPU.
#[derive(Default)]
pub struct Constants {
    /// Those of this stage alone, by the identity of the host tensor, which stays so that no other takes its address.
    own: HashMap<usize, (Tensor, Tensor)>,
}

impl Constants {
    /// That constant on the device. Lasting ones are the session's.
    pub fn find(&mut self, gpu: &Gpu, launcher: &Launcher, tensor: &Tensor, lasting: bool) -> Result<Tensor> {
        if lasting {
            return gpu.weight(launcher, tensor);
        }
        let copy = match self.own.entry(tensor.identity()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert((tensor.clone(), tensor.to_device(launcher.core())?)),
        };
        copy.1.reshape(tensor.meta().dims.clone())
    }
}

/// The values of a run by their slots.
#[derive(Clone)]
pub struct Values(Vec<Held>);

impl Values {
    pub fn new(slots: usize) -> Values {
        Values(vec![Held::default(); slots])
    }

    pub fn any(&self, slot: usize) -> Result<&Tensor> {
        self.0[slot].any()
    }

    pub fn set(&mut self, slot: usize, tensor: Tensor) {
        self.0[slot] = Held::new(tensor);
    }

    pub fn put(&mut self, slot: usize, held: Held) {
        self.0[slot] = held;
    }

    pub fn take(&mut self, slot: usize) -> Option<Held> {
        let held = std::mem::take(&mut self.0[slot]);
        held.any().is_ok().then_some(held)
    }

    pub fn copy_to(&self, slot: usize, target: &Tensor) -> Result<()> {
        self.0[slot].copy_to(target)
    }

    /// Puts a step's results in their slots.
    pub fn fill(&mut self, step: &Step, outputs: Vec<Tensor>) {
        for (&slot, output) in step.outputs.iter().zip(outputs) {
            self.set(slot, output);
        }
    }

    /// A step's operands on the GPU.
    pub fn operands(
        &mut self,
        step: &Step,
        gpu: &Gpu,
        launcher: &Launcher,
        constants: &mut Constants,
    ) -> Result<Vec<Option<Tensor>>> {
        let mut find = |operand: &Operand| match operand.source() {
            Source::Constant { tensor, lasting } => constants.find(gpu, launcher, tensor, *lasting),
            Source::Slot(slot) => self.0[*slot].device(launcher.core())?.reshape(operand.dims()),
        };
        step.inputs.iter().map(|input| input.as_ref().map(&mut find).transpose()).collect()
    }

    /// A step's operands on the host.
    fn host_operands(&mut self, step: &Step) -> Result<Vec<Option<Tensor>>> {
        let mut find = |operand: &Operand| match operand.source() {
            Source::Constant { tensor, lasting } => {
                if *lasting {
                    tensor.keep_forms();
                }
                Ok(tensor.clone())
            }
            Source::Slot(slot) => self.0[*slot].host()?.reshape(operand.dims()),
        };
        step.inputs.iter().map(|input| input.as_ref().map(&mut find).transpose()).collect()
    }
}

impl Session {
    /// An error for a step that has no GPU form where it must have one.
    fn check_forms(&self, stage: &Stage) -> Result<()> {
        if !self.options.strict || self.gpu.is_none() {
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
    values: Values,
    lane: Option<Lane>,
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
    /// Milliseconds; on a GPU those of the device, of several launches in a row where the step can be recorded.
    pub milliseconds: f64,
}

/// Runs from that stage to the results. `times` gets an entry for each step, at the price of waiting for each.
pub fn run(
    session: &Session,
    stage: Arc<Stage>,
    feeds: Vec<Feed>,
    request: Request,
    check: &dyn Fn() -> Result<()>,
    times: Option<&mut Vec<Timing>>,
) -> Result<Vec<Tensor>> {
    let lane = session.gpu.as_ref().map(Gpu::lane).transpose()?;
    // Copies from page-locked memory run until the results are there.
    let pinned: Vec<PinnedSlice> = feeds.iter().filter_map(Feed::pinned).collect();
    let mut run = Run { session, values: Values(Vec::new()), lane };
    let outcome = run.begin(feeds).and_then(|()| run.finish(stage, request, check, times));
    if let (Some(gpu), Some(lane)) = (&session.gpu, run.lane.take()) {
        if outcome.is_err() {
            // What was enqueued may still read memory that is the callers'.
            let _ = lane.launcher.core().stream().synchronize();
        }
        gpu.give(lane);
    }
    drop(pinned);
    outcome
}

impl Run<'_> {
    /// Takes the feeds. The lane waits for what makes those that lie on its device.
    fn begin(&mut self, feeds: Vec<Feed>) -> Result<()> {
        let lane = self.lane.as_ref().map(|lane| lane.launcher.core());
        if let (Some(gpu), Some(lane)) = (&self.session.gpu, lane) {
            let device = gpu.device().core();
            if feeds.iter().filter_map(Feed::core).any(|core| Arc::ptr_eq(core, device)) {
                lane.follow(device)?;
            }
        }
        for feed in feeds {
            let tensor = match lane {
                Some(lane) => feed.for_device(lane)?,
                None => feed.into_tensor()?,
            };
            self.values.0.push(Held::new(tensor));
        }
        Ok(())
    }

    fn finish(
        &mut self,
        mut stage: Arc<Stage>,
        request: Request,
        check: &dyn Fn() -> Result<()>,
        mut times: Option<&mut Vec<Timing>>,
    ) -> Result<Vec<Tensor>> {
        loop {
            self.session.check_forms(&stage)?;
            let slots = stage.slots.max(self.values.0.len());
            self.values.0.resize(slots, Held::default());
            stage.left.iter().for_each(|&slot| drop(self.values.take(slot)));
            check()?;
            match &mut times {
                Some(times) => self.steps(&stage, check, Some(times))?,
                None => self.stage(&stage, check)?,
            }
            let told = match &stage.end {
                End::Results(results) => return self.results(results, request),
                End::Value(slot) => Told::Value(*slot, self.values.0[*slot].host()?),
                End::Dims(slots) => {
                    let metas = slots.iter().map(|&slot| Ok((slot, self.values.any(slot)?.meta().clone())));
                    Told::Dims(metas.collect::<Result<_>>()?)
                }
            };
            check()?;
            stage = stage.next(told)?;
        }
    }

    /// Runs a stage, recorded from the second time on.
    fn stage(&mut self, stage: &Arc<Stage>, check: &dyn Fn() -> Result<()>) -> Result<()> {
        let (Some(gpu), Some(mut lane)) = (&self.session.gpu, self.lane.take()) else {
            return self.steps(stage, check, None);
        };
        if let Some(Known::Ran) = lane.known(stage) {
            let recorded = Replay::record(gpu, &lane, stage, &self.values);
            let known =
                recorded.map(|replay| replay.map_or(Known::Never, |it| Known::Recorded(Box::new(it))));
            lane.note(stage, known.unwrap_or(Known::Never));
        }
        let outcome = match lane.known(stage) {
            Some(Known::Recorded(replay)) => Some(replay.run(&lane.launcher, stage, &mut self.values)),
            _ => None,
        };
        let fresh = lane.known(stage).is_none();
        if !stage.loaded.swap(true, Ordering::AcqRel) && Replay::suits(stage) {
            // What fails here fails in the run itself, which can tell why.
            let _ = Replay::load(gpu, &lane, stage, &self.values);
        }
        let lane = self.lane.insert(lane);
        if let Some(outcome) = outcome {
            return outcome;
        }
        let core = lane.launcher.core().clone();
        let first = gpu.first();
        self.steps(stage, check, None)?;
        core.stream().synchronize()?;
        drop(first);
        if let Some(lane) = self.lane.as_mut().filter(|_| fresh) {
            lane.note(stage, if Replay::suits(stage) { Known::Ran } else { Known::Never });
        }
        Ok(())
    }

    /// Runs a stage step by step.
    fn steps(
        &mut self,
        stage: &Stage,
        check: &dyn Fn() -> Result<()>,
        mut times: Option<&mut Vec<Timing>>,
    ) -> Result<()> {
        let mut constants = Constants::default();
        for (step, dead) in stage.steps.iter().zip(&stage.dead) {
            check()?;
            let outcome = match &mut times {
                None => self.step(step, &mut constants),
                Some(times) => self.timed(step, &mut constants).map(|timing| times.push(timing)),
            };
            outcome.map_err(|error| error.reworded(|text| format!("{}: {text}", step.label)))?;
            dead.iter().for_each(|&slot| drop(self.values.take(slot)));
        }
        Ok(())
    }

    fn timed(&mut self, step: &Step, constants: &mut Constants) -> Result<Timing> {
        let start = std::time::Instant::now();
        let on_gpu = match (&step.work, &self.session.gpu, &self.lane) {
            (Work::Call(call), Some(gpu), Some(lane)) => {
                let inputs = self.values.operands(step, gpu, &lane.launcher, constants)?;
                Some(time(&lane.launcher, || call.run_cuda(&lane.launcher, &inputs).map(drop))?)
            }
            _ => None,
        };
        self.step(step, constants)?;
        let milliseconds = on_gpu.unwrap_or_else(|| start.elapsed().as_secs_f64() * 1e3);
        Ok(Timing { label: step.label.clone(), name: step.name, on_gpu: on_gpu.is_some(), milliseconds })
    }

    fn step(&mut self, step: &Step, constants: &mut Constants) -> Result<()> {
        let outputs = match (&step.work, &self.session.gpu, &self.lane) {
            (Work::Call(call), Some(gpu), Some(lane)) => {
                let inputs = self.values.operands(step, gpu, &lane.launcher, constants)?;
                call.run_cuda(&lane.launcher, &inputs)?
            }
            (Work::Call(call), ..) => call.run_cpu(&self.values.host_operands(step)?)?,
            (Work::Host(form), ..) => form(&self.values.host_operands(step)?)?,
        };
        self.values.fill(step, outputs);
        Ok(())
    }

    /// The results wanted, where they are wanted; the lane's memory is free for the next run when this returns.
    fn results(&mut self, results: &[Operand], request: Request) -> Result<Vec<Tensor>> {
        let picked = request.outputs.iter().map(|&index| match results.get(index).map(Operand::source) {
            Some(Source::Constant { tensor, .. }) => Ok(tensor.clone()),
            Some(Source::Slot(slot)) => self.values.any(*slot)?.reshape(results[index].dims()),
            None => Err(Error::Internal("a result is missing".into())),
        });
        let picked = picked.collect::<Result<Vec<_>>>()?;
        match (&self.session.gpu, &self.lane) {
            (Some(gpu), Some(lane)) if request.keep => keep(gpu, lane, picked),
            _ => to_host(picked),
        }
    }
}

/// Launches of a recorded step that are timed together.
const TIMED: usize = 5;

/// Milliseconds that work takes on the device: of several launches of it as recorded, where it can be.
fn time(launcher: &Launcher, work: impl Fn() -> Result<()>) -> Result<f64> {
    let core = launcher.core();
    work()?;
    let recording = launcher.record(&work).ok().flatten();
    let (start, end) = (Event::timed(core.context())?, Event::timed(core.context())?);
    core.stream().synchronize()?;
    start.record(core.stream())?;
    let launches = match &recording {
        Some(recording) => {
            (0..TIMED).try_for_each(|_| launcher.replay(recording))?;
            TIMED
        }
        None => {
            work()?;
            1
        }
    };
    end.record(core.stream())?;
    end.synchronize()?;
    Ok(f64::from(end.milliseconds_since(&start)?) / launches as f64)
}

/// Copies all to the host. The copies run beside each other.
fn to_host(tensors: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let downloads = tensors.iter().map(|tensor| tensor.begin_download(None)).collect::<Result<Vec<_>>>()?;
    tensors.into_iter().zip(downloads).map(|(tensor, download)| tensor.downloaded(download)).collect()
}

/// Copies what lies in a lane's memory to memory of the device's own.
fn keep(gpu: &Gpu, lane: &Lane, tensors: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let (device, stream) = (gpu.device().core(), lane.launcher.core().stream());
    let copies = tensors.into_iter().map(|tensor| {
        let Some(owner) = tensor.core().filter(|owner| !Arc::ptr_eq(owner, device)) else {
            return Ok(tensor);
        };
        let copy = Tensor::device(device, tensor.meta())?;
        // Work on the memory that the copy was given may be under way there.
        lane.launcher.core().follow(device)?;
        let (to, from) = (copy.device_view(device)?.ptr, tensor.device_view(owner)?.ptr);
        stream.copy(to, from, tensor.byte_size())?;
        Ok(copy)
    });
    let copies = copies.collect::<Result<Vec<_>>>()?;
    stream.synchronize()?;
    Ok(copies)
}
