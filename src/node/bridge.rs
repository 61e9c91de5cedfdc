//! One bridge per environment: starts calls and brings their outcomes back to its JavaScript thread.

#![allow(unsafe_code)]

use super::input::{Gate, InputArg, options_of};
use super::tensor::DeviceTensor;
use super::{Code, Result};
use crate::ops::{Call, Meta};
use crate::runtime::{DeviceName, Source, Task, Work, choose, find_pinned};
use crate::{Error, Tensor};
use napi::bindgen_prelude::*;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode, UnknownReturnValue};
use napi_derive::napi;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Error of a settled call.
#[napi(object)]
pub struct Failure {
    /// Stable code.
    pub code: String,
    /// Text.
    pub message: String,
}

/// A result: bytes on the host or a tensor on a device.
#[napi(object, object_from_js = false)]
pub struct Output {
    /// Element type.
    pub dtype: String,
    /// Dims.
    pub dims: Vec<f64>,
    /// The elements' bytes.
    pub bytes: Option<Uint8Array>,
    /// The device tensor instead.
    pub handle: Option<DeviceTensor>,
}

type Outcome = std::result::Result<Vec<Tensor>, Error>;
/// What settles a call.
pub(super) type Done = Box<dyn FnOnce(Outcome) + Send>;
type Arguments = FnArgs<(u32, Option<Failure>, Option<Vec<Output>>)>;
type Settle = ThreadsafeFunction<(u32, Outcome), UnknownReturnValue, Arguments, napi::Status, false, true>;

/// Starts calls and settles them by calling `settle(id, failure, outputs)`.
#[napi]
pub struct Bridge {
    settle: Arc<Settle>,
    gate: Arc<Gate>,
    cancelled: Arc<Mutex<HashMap<u32, Arc<AtomicBool>>>>,
}

#[napi]
impl Bridge {
    /// A bridge for the calling environment.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        #[napi(ts_arg_type = "(id: number, failure: Failure | null, outputs: Output[] | null) => void")]
        settle: Function<'_, Arguments, UnknownReturnValue>,
    ) -> napi::Result<Bridge> {
        let settle = settle
            .build_threadsafe_function::<(u32, Outcome)>()
            .callee_handled::<false>()
            .weak::<true>()
            .build_callback(|context| {
                let (id, outcome) = context.value;
                let arguments = match outcome.and_then(|tensors| outputs(&context.env, tensors)) {
                    Ok(outputs) => (id, None, Some(outputs)),
                    Err(error) => {
                        (id, Some(Failure { code: error.code().into(), message: error.to_string() }), None)
                    }
                };
                Ok(FnArgs::from(arguments))
            })?;
        let gate = Arc::new(Gate::default());
        let waiting = gate.clone();
        env.add_env_cleanup_hook(waiting, |gate| gate.wait())?;
        Ok(Bridge { settle: Arc::new(settle), gate, cancelled: Arc::default() })
    }

    /// Keeps the process alive while calls are in flight.
    #[napi]
    pub fn refer(&self, env: Env) {
        // SAFETY: the handle lives as long as `settle`, and this runs on the environment's own thread.
        unsafe { napi::sys::napi_ref_threadsafe_function(env.raw(), self.settle.raw()) };
    }

    /// Lets the process end when nothing else keeps it.
    #[napi]
    pub fn unrefer(&self, env: Env) {
        // SAFETY: as for `refer`.
        unsafe { napi::sys::napi_unref_threadsafe_function(env.raw(), self.settle.raw()) };
    }

    /// Checks a call, takes over its data and queues it.
    #[napi]
    pub fn start(
        &self,
        id: u32,
        op: String,
        device: String,
        inputs: Vec<Option<InputArg>>,
        options: Object,
        how: How,
    ) -> Result<()> {
        let (call, held, chosen) = checked(&op, &device, &inputs, &options)?;
        let sources = self.sources(&inputs, &call.inputs, chosen, how.transfer)?;
        let work = match how.repeats {
            Some(repeats) => {
                let runs = how.runs.unwrap_or(1) as usize;
                Work::Time { call, repeats: repeats as usize, runs }
            }
            None => Work::Run { call, keep: held.is_some() },
        };
        self.submit(id, work, sources, chosen)
    }

    /// Checks a call and its device without taking anything over or running it.
    #[napi]
    pub fn check(
        &self,
        op: String,
        device: String,
        inputs: Vec<Option<InputArg>>,
        options: Object,
    ) -> Result<()> {
        checked(&op, &device, &inputs, &options)?;
        Ok(())
    }

    /// Copies a tensor to a device.
    #[napi]
    pub fn upload(&self, id: u32, device: String, input: InputArg, transfer: bool) -> Result<()> {
        let meta = input.meta()?;
        let chosen = choose(&device, None)?.device;
        let source = input.source(&meta, chosen, transfer, &self.gate)?;
        self.submit(id, Work::Upload, vec![Some(source)], chosen)
    }

    /// Copies a device tensor to the host: to a new array, or into `into`, an array of `allocPinned`.
    #[napi]
    pub fn download(
        &self,
        id: u32,
        handle: ClassInstance<DeviceTensor>,
        into: Option<Uint8ArraySlice>,
    ) -> Result<()> {
        let tensor = handle.get()?;
        let Some(core) = tensor.core().cloned() else {
            return Err(Error::Internal("a device tensor without a device".into()).into());
        };
        let into = match into {
            None => None,
            Some(bytes) if bytes.len() != tensor.byte_size() => {
                let text = format!("'into' must hold {} bytes, got {}", tensor.byte_size(), bytes.len());
                return Err(Error::ShapeMismatch(text).into());
            }
            Some(bytes) => Some(find_pinned(bytes.as_ptr() as usize, bytes.len()).ok_or_else(|| {
                Error::InvalidArgument(
                    "'into' must be an array from allocPinned on a machine with a GPU".into(),
                )
            })?),
        };
        let device = DeviceName::Cuda(core.ordinal());
        self.submit(id, Work::Download { into }, vec![Some(Source::Tensor(tensor))], device)
    }

    /// Opens a device, or waits for all that was submitted to it.
    #[napi]
    pub fn synchronize(&self, id: u32, device: String) -> Result<()> {
        let chosen = choose(&device, None)?.device;
        self.submit(id, Work::Synchronize, Vec::new(), chosen)
    }

    /// Gives a call up: if it has not started it never will.
    #[napi]
    pub fn cancel(&self, id: u32) {
        if let Some(flag) = lock(&self.cancelled).get(&id) {
            flag.store(true, Ordering::Release);
        }
    }
}

/// How a call is run.
#[napi(object)]
pub struct How {
    /// Whether plain arrays were taken over and are out of every script's reach.
    pub transfer: bool,
    /// Time the call on the device so often instead of giving the result.
    pub repeats: Option<u32>,
    /// Runs that follow each other each time; 1 when left out.
    pub runs: Option<u32>,
}

impl Bridge {
    fn sources(
        &self,
        inputs: &[Option<InputArg>],
        metas: &[Option<Meta>],
        device: DeviceName,
        transfer: bool,
    ) -> Result<Vec<Option<Source>>> {
        // An operand given twice is copied once.
        let mut copied: Vec<(&InputArg, crate::Tensor)> = Vec::new();
        let mut sources = Vec::with_capacity(inputs.len());
        for (input, meta) in inputs.iter().zip(metas) {
            let (Some(input), Some(meta)) = (input, meta) else {
                sources.push(None);
                continue;
            };
            if let Some((_, tensor)) = copied.iter().find(|(earlier, _)| earlier.is_same_data(input)) {
                sources.push(Some(Source::Tensor(tensor.reshape(meta.dims.clone())?)));
                continue;
            }
            let source = input.source(meta, device, transfer, &self.gate)?;
            if let Source::Tensor(tensor) = &source {
                copied.push((input, tensor.clone()));
            }
            sources.push(Some(source));
        }
        Ok(sources)
    }

    fn submit(&self, id: u32, work: Work, sources: Vec<Option<Source>>, device: DeviceName) -> Result<()> {
        self.begin(id, |cancelled, done| Task { work, sources, cancelled, done }.submit(device))
    }

    /// Registers a call and starts it with its flag for giving up and what settles it.
    pub(super) fn begin(
        &self,
        id: u32,
        start: impl FnOnce(Arc<AtomicBool>, Done) -> crate::Result<()>,
    ) -> Result<()> {
        let cancelled = Arc::new(AtomicBool::new(false));
        lock(&self.cancelled).insert(id, cancelled.clone());
        let flags = self.cancelled.clone();
        let settle = self.settle.clone();
        let done = move |outcome: Outcome| {
            lock(&flags).remove(&id);
            // An environment that has ended answers with `closing`; the outcome is dropped here, on our thread.
            settle.call((id, outcome), ThreadsafeFunctionCallMode::NonBlocking);
        };
        start(cancelled, Box::new(done)).map_err(|error| {
            lock(&self.cancelled).remove(&id);
            napi::Error::<Code>::from(error)
        })
    }

    /// What copies of this environment's buffers pass through.
    pub(super) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The checked call, the GPU that its operands lie on and the device that it runs on.
fn checked(
    op: &str,
    device: &str,
    inputs: &[Option<InputArg>],
    options: &Object,
) -> Result<(Call, Option<usize>, DeviceName)> {
    let raw = options_of(options).map_err(|error| Error::InvalidArgument(error.reason.to_string()))?;
    let call = Call::new(op, metas_of(inputs)?, &raw)?;
    let held = held_by(inputs)?;
    Ok((call, held, choose(device, held)?.device))
}

fn metas_of(inputs: &[Option<InputArg>]) -> Result<Vec<Option<Meta>>> {
    let metas = inputs.iter().map(|input| input.as_ref().map(InputArg::meta).transpose());
    metas.collect::<crate::Result<_>>().map_err(Into::into)
}

/// The GPU that operands lie on; an error when there are two.
pub(super) fn held_by(inputs: &[Option<InputArg>]) -> Result<Option<usize>> {
    let mut held: Option<(usize, &str)> = None;
    for input in inputs.iter().flatten() {
        let Some(handle) = &input.handle else { continue };
        let Some(ordinal) = handle.get()?.core().map(|core| core.ordinal()) else { continue };
        match held {
            Some((first, name)) if first != ordinal => {
                let text = format!(
                    "'{name}' is on cuda:{first} and '{}' on cuda:{ordinal}; move one with to()",
                    input.name
                );
                return Err(Error::InvalidArgument(text).into());
            }
            _ => held = Some((ordinal, &input.name)),
        }
    }
    Ok(held.map(|(ordinal, _)| ordinal))
}

fn dims_to_js(dims: &[usize]) -> Vec<f64> {
    dims.iter().map(|dim| *dim as f64).collect()
}

fn outputs(env: &Env, tensors: Vec<Tensor>) -> crate::Result<Vec<Output>> {
    let outputs = tensors.into_iter().map(|tensor| {
        let dtype = tensor.meta().dtype.name().to_string();
        let dims = dims_to_js(&tensor.meta().dims);
        if tensor.core().is_some() {
            return Ok(Output { dtype, dims, bytes: None, handle: Some(DeviceTensor::new(env, tensor)) });
        }
        let mut buffer = tensor.into_host_buffer()?;
        let bytes = buffer.bytes_mut();
        let (start, size) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the buffer's memory does not move when the buffer does (it is heap memory behind a Vec); the
        // finaliser owns the buffer, so the memory lives exactly as long as the array that V8 was given.
        let bytes = unsafe { Uint8Array::with_external_data(start, size, move |_, _| drop(buffer)) };
        Ok(Output { dtype, dims, bytes: Some(bytes), handle: None })
    });
    outputs.collect()
}
