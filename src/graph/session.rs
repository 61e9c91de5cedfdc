//! Sessions: a network with the plans made for it so far.

mod feeds;
mod held;
mod lane;
mod replay;
mod run;

use super::plan::{Folds, Planner, Stage, Stages, Step, Work};
use super::{Declared, Graph, ValueId, operators};
use crate::kernels::Launcher;
use crate::ops::Meta;
use crate::tensor::Tensor;
use crate::{DType, Error, Result};
pub use feeds::Feed;
use lane::Gpu;
pub use run::{Request, Timing};
use std::sync::{Arc, Mutex, PoisonError};

/// An input or output of a network.
#[derive(Debug, Clone)]
pub struct Port {
    /// Name in the model.
    pub name: String,
    /// Type and dims, where the model gives them.
    pub declared: Option<Declared>,
}

/// Where a step runs.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The node that it comes from.
    pub label: Arc<str>,
    /// The op, or what a host form does.
    pub name: &'static str,
    /// Whether it runs on the GPU.
    pub on_gpu: bool,
}

/// What a session may do.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Most bytes of one value.
    pub tensor_bytes: u64,
    /// Whether a step without a GPU form is an error where the session is on a GPU.
    pub strict: bool,
    /// Bytes of device memory that the session takes at most; 0 for no bound.
    pub memory_limit: u64,
    /// Most nodes of one plan, whatever the model's own limit: bodies of loops count each time.
    pub plan_nodes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { tensor_bytes: 16 << 30, strict: false, memory_limit: 0, plan_nodes: 1 << 22 }
    }
}

/// A network ready to run. Runs may overlap; plans and weights are shared by them.
pub struct Session {
    graph: Arc<Graph>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    options: Options,
    gpu: Option<Gpu>,
    folds: Arc<Folds>,
    stages: Stages<Vec<Meta>>,
    /// The first stage of the latest run.
    latest: Mutex<Option<Arc<Stage>>>,
}

impl Session {
    /// A session on that GPU, or on the CPU. One error names all operators that are not supported.
    pub fn new(graph: Graph, launcher: Option<Arc<Launcher>>, options: Options) -> Result<Session> {
        operators::check(&graph)?;
        let ports = |ids: &[ValueId]| {
            ids.iter()
                .map(|id| &graph.values[id.index()])
                .map(|value| Port { name: value.name.clone(), declared: value.declared.clone() })
                .collect::<Vec<_>>()
        };
        Ok(Session {
            inputs: ports(&graph.inputs),
            outputs: ports(&graph.outputs),
            graph: Arc::new(graph),
            options,
            gpu: launcher.map(|launcher| Gpu::new(launcher, options.memory_limit)).transpose()?,
            folds: Arc::default(),
            stages: Stages::default(),
            latest: Mutex::default(),
        })
    }

    /// Values that a run must give.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// Values that a run gives.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// The GPU that the session runs on, `None` for the CPU.
    pub fn launcher(&self) -> Option<&Arc<Launcher>> {
        self.gpu.as_ref().map(Gpu::device)
    }

    /// Checks what a run is given: names, element types and dims. The same in the order of the inputs.
    pub fn check_feeds<F: Into<Feed>>(&self, feeds: Vec<(String, F)>) -> Result<Vec<Feed>> {
        feeds::check(&self.inputs, feeds)
    }

    /// Runs the network and waits for it. All results, on the host, in the order of the outputs. `check` is called between steps
    /// or before a recorded sequence of them; an error of it ends the run.
    pub fn run<F: Into<Feed>>(&self, feeds: Vec<F>, check: &dyn Fn() -> Result<()>) -> Result<Vec<Tensor>> {
        let outputs: Vec<usize> = (0..self.outputs.len()).collect();
        self.run_for(feeds, Request { outputs: &outputs, keep: false }, check)
    }

    /// Runs the network and waits for it. The results asked for.
    pub fn run_for<F: Into<Feed>>(
        &self,
        feeds: Vec<F>,
        request: Request,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<Tensor>> {
        let feeds: Vec<Feed> = feeds.into_iter().map(Into::into).collect();
        run::run(self, self.begin(&feeds)?, feeds, request, check, None)
    }

    /// Runs the network and tells what each step took.
    pub fn profile<F: Into<Feed>>(
        &self,
        feeds: Vec<F>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<Timing>> {
        let feeds: Vec<Feed> = feeds.into_iter().map(Into::into).collect();
        let mut times = Vec::new();
        let nothing = Request { outputs: &[], keep: false };
        run::run(self, self.begin(&feeds)?, feeds, nothing, check, Some(&mut times))?;
        Ok(times)
    }

    /// Where the steps of the latest run were placed, up to the first value that only a run could tell.
    pub fn placement(&self) -> Vec<Placed> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let place = |step: &Step| Placed {
            label: step.label.clone(),
            name: step.name,
            on_gpu: self.gpu.is_some() && matches!(step.work, Work::Call(_)),
        };
        latest.iter().flat_map(|stage| stage.steps.iter().map(place)).collect()
    }

    /// The first stage of a run with those feeds.
    fn begin(&self, feeds: &[Feed]) -> Result<Arc<Stage>> {
        let metas: Vec<Meta> = feeds.iter().map(|feed| feed.meta().clone()).collect();
        let stage = self.stage(&metas)?;
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(stage.clone());
        Ok(stage)
    }

    /// The first stage for inputs of those types and dims.
    pub(super) fn stage(&self, inputs: &[Meta]) -> Result<Arc<Stage>> {
        self.stages.find(inputs.to_vec(), || self.plan(inputs))
    }

    fn plan(&self, inputs: &[Meta]) -> Result<Stage> {
        Planner::new(&self.graph, inputs, self.folds.clone(), &self.options).start()
    }

    /// Number of plans held.
    pub fn plans(&self) -> usize {
        self.stages.len()
    }
}

/// An error for an element type that is not the one wanted.
fn wrong_type(name: &str, wanted: DType, got: DType) -> Error {
    Error::InvalidArgument(format!("run: input '{name}' must be {wanted}, got {got}"))
}
