//! Sessions as JavaScript objects.

use super::Result;
use super::bridge::{Bridge, held_by};
use super::input::InputArg;
use crate::graph::{Dim, Port};
use crate::onnx::Limits;
use crate::runtime::{DeviceName, ModelSource, Network, SessionOptions, Source, choose};
use crate::{Error, invalid};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::sync::{Arc, Mutex};

/// A network that was read, or is being read.
#[napi]
pub struct NativeSession {
    network: Mutex<Option<Arc<Network>>>,
}

/// An input or output.
#[napi(object)]
pub struct PortRow {
    /// Name in the model.
    pub name: String,
    /// Element type; absent where the model does not tell it.
    pub dtype: Option<String>,
    /// Dims as numbers or names, an empty name for a dim without one; absent where the rank is open.
    pub dims: Option<Vec<Either<f64, String>>>,
}

/// A file that a model refers to.
#[napi(object, object_to_js = false)]
pub struct ExternalFile<'a> {
    /// Name that the model calls it by.
    pub path: String,
    /// Its content.
    pub data: Uint8ArraySlice<'a>,
}

/// A step of a plan.
#[napi(object)]
pub struct StepRow {
    /// The node that it comes from; of several that became one, the last.
    pub node: String,
    /// The op.
    pub op: String,
    /// Where it runs.
    pub device: String,
    /// What it took, where that was measured.
    pub milliseconds: Option<f64>,
}

/// How a session is made.
#[napi(object, object_to_js = false)]
pub struct OpenOptions<'a> {
    /// 'cpu', 'cuda', 'cuda:N' or 'auto'.
    pub device: String,
    /// Bytes of the model file.
    pub max_model_bytes: Option<f64>,
    /// Bytes of one tensor.
    pub max_tensor_bytes: Option<f64>,
    /// Nodes.
    pub max_nodes: Option<f64>,
    /// Bytes of device memory.
    pub memory_limit: Option<f64>,
    /// Files that the model refers to.
    pub external_data: Vec<ExternalFile<'a>>,
    /// Whether external files may have several hard links.
    pub allow_links: bool,
}

#[napi]
impl NativeSession {
    /// A session that is not open yet.
    #[napi(constructor)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> NativeSession {
        NativeSession { network: Mutex::new(Some(Arc::default())) }
    }

    /// Values that a run must give.
    #[napi(getter)]
    pub fn inputs(&self) -> Result<Vec<PortRow>> {
        Ok(self.network()?.session()?.inputs().iter().map(port_row).collect())
    }

    /// Values that a run gives.
    #[napi(getter)]
    pub fn outputs(&self) -> Result<Vec<PortRow>> {
        Ok(self.network()?.session()?.outputs().iter().map(port_row).collect())
    }

    /// Where the session runs: 'cpu' or 'cuda:N'.
    #[napi(getter)]
    pub fn device(&self) -> Result<String> {
        Ok(self.network()?.device()?.to_string())
    }

    /// Where the steps of the latest run were placed.
    #[napi(getter)]
    pub fn placement(&self) -> Result<Vec<StepRow>> {
        let network = self.network()?;
        let (session, device) = (network.session()?, network.device()?.to_string());
        let rows = session.placement().into_iter().map(|step| StepRow {
            node: step.label.to_string(),
            op: step.name.into(),
            device: if step.on_gpu { device.clone() } else { "cpu".into() },
            milliseconds: None,
        });
        Ok(rows.collect())
    }

    /// What the steps of the latest profile took.
    #[napi(getter)]
    pub fn times(&self) -> Result<Vec<StepRow>> {
        let network = self.network()?;
        let device = network.device()?.to_string();
        let rows = network.times().into_iter().map(|step| StepRow {
            node: step.label.to_string(),
            op: step.name.into(),
            device: if step.on_gpu { device.clone() } else { "cpu".into() },
            milliseconds: Some(step.milliseconds),
        });
        Ok(rows.collect())
    }

    /// Lets the network go once the runs in flight are done. Twice is nothing.
    #[napi]
    pub fn release(&self) {
        if let Ok(mut slot) = self.network.lock() {
            slot.take();
        }
    }
}

impl NativeSession {
    fn network(&self) -> crate::Result<Arc<Network>> {
        let slot = self.network.lock().map_err(|_| Error::Internal("a session's lock is poisoned".into()))?;
        slot.clone().ok_or_else(|| Error::Disposed("the session was released".into()))
    }
}

fn port_row(port: &Port) -> PortRow {
    let declared = port.declared.as_ref();
    let dim = |dim: &Dim| match dim {
        Dim::Fixed(size) => Either::A(*size as f64),
        Dim::Named(name) => Either::B(name.clone()),
        Dim::Free => Either::B(String::new()),
    };
    PortRow {
        name: port.name.clone(),
        dtype: declared.map(|declared| declared.dtype.name().to_string()),
        dims: declared.and_then(|declared| declared.dims.as_ref()).map(|dims| dims.iter().map(dim).collect()),
    }
}

fn limit(name: &str, given: Option<f64>, default: u64) -> crate::Result<u64> {
    match given {
        None => Ok(default),
        Some(value) if value >= 0.0 && value.fract() == 0.0 => Ok(value as u64),
        Some(value) => {
            invalid!("InferenceSession.create: '{name}' must be a whole number from 0 on, got {value}")
        }
    }
}

impl OpenOptions<'_> {
    fn read(&self, device: DeviceName) -> crate::Result<SessionOptions> {
        let standard = Limits::default();
        let limits = Limits {
            model_bytes: limit("maxModelBytes", self.max_model_bytes, standard.model_bytes)?,
            tensor_bytes: limit("maxTensorBytes", self.max_tensor_bytes, standard.tensor_bytes)?,
            nodes: limit("maxNodes", self.max_nodes, standard.nodes)?,
        };
        let external = self.external_data.iter().map(|file| (file.path.clone(), file.data.to_vec()));
        let strict = device != DeviceName::Cpu && self.device != "auto";
        let memory_limit = limit("memoryLimit", self.memory_limit, 0)?;
        let (external, links) = (external.collect(), self.allow_links);
        Ok(SessionOptions { limits, external, links, strict, memory_limit })
    }
}

#[napi]
impl Bridge {
    /// Reads a model from a path or from bytes, off the JavaScript thread.
    #[napi]
    pub fn open_session(
        &self,
        id: u32,
        session: ClassInstance<NativeSession>,
        source: Either<String, Uint8ArraySlice>,
        options: OpenOptions,
    ) -> Result<()> {
        let network = session.network()?;
        let device = choose(&options.device, None)?.device;
        let options = options.read(device)?;
        let source = match source {
            Either::A(path) => ModelSource::Path(path.into()),
            Either::B(bytes) => ModelSource::Bytes(bytes.to_vec()),
        };
        self.begin(id, |_, done| {
            crate::cpu::spawn(move || done(network.open(source, options, device).map(|()| Vec::new())));
            Ok(())
        })
    }

    /// Queues a run. Inputs carry the names of feeds. Results stay on the GPU when `keep`.
    #[napi]
    pub fn run_session(
        &self,
        id: u32,
        session: ClassInstance<NativeSession>,
        inputs: Vec<InputArg>,
        fetches: Vec<u32>,
        keep: bool,
        transfer: bool,
    ) -> Result<()> {
        let network = session.network()?;
        let feeds = self.feeds(&network, inputs, transfer)?;
        let fetches = fetches.into_iter().map(|index| index as usize).collect();
        self.begin(id, move |cancelled, done| network.submit(feeds, fetches, keep, cancelled, done))
    }

    /// Queues a run whose steps are timed; `session.times` has them once it is settled.
    #[napi]
    pub fn profile_session(
        &self,
        id: u32,
        session: ClassInstance<NativeSession>,
        inputs: Vec<InputArg>,
    ) -> Result<()> {
        let network = session.network()?;
        let feeds = self.feeds(&network, inputs, false)?;
        self.begin(id, move |cancelled, done| network.submit_profile(feeds, cancelled, done))
    }
}

impl Bridge {
    /// The feeds with their data taken over.
    fn feeds(
        &self,
        network: &Network,
        inputs: Vec<InputArg>,
        transfer: bool,
    ) -> Result<Vec<(String, Source)>> {
        let device = network.device()?;
        let inputs: Vec<Option<InputArg>> = inputs.into_iter().map(Some).collect();
        held_by(&inputs)?;
        let mut feeds = Vec::with_capacity(inputs.len());
        for input in inputs.iter().flatten() {
            let meta = input.meta()?;
            feeds.push((input.name.clone(), input.source(&meta, device, transfer, self.gate())?));
        }
        Ok(feeds)
    }
}
