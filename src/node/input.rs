//! Operands and options from JavaScript. Plain arrays are copied before the call returns: nothing reads a JavaScript
//! buffer afterwards, except a transferred one, which no script can reach any more.

#![allow(unsafe_code)]

use super::tensor::DeviceTensor;
use crate::ops::{Meta, Raw};
use crate::runtime::{DeviceName, Gpu, Source, find_pinned};
use crate::shape::element_count;
use crate::tensor::{HostBuffer, copy_bytes};
use crate::{DType, Error, Result, Tensor, invalid, mismatch};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

/// One operand: bytes of a typed array or a device tensor, with its type and dims.
#[napi(object, object_to_js = false)]
pub struct InputArg<'a> {
    /// Name in messages.
    pub name: String,
    /// Element type.
    pub dtype: String,
    /// Dims.
    pub dims: Vec<f64>,
    /// The elements' bytes.
    pub bytes: Option<Uint8ArraySlice<'a>>,
    /// The device tensor instead.
    pub handle: Option<ClassInstance<'a, DeviceTensor>>,
}

/// Dims from JavaScript numbers.
pub(super) fn dims_of(name: &str, dims: &[f64]) -> Result<Vec<usize>> {
    let whole = |dim: &f64| *dim >= 0.0 && dim.fract() == 0.0 && *dim <= 9_007_199_254_740_991.0;
    match dims.iter().find(|dim| !whole(dim)) {
        Some(bad) => invalid!("{name}: dims must be whole numbers from 0 on, got {bad}"),
        None => Ok(dims.iter().map(|dim| *dim as usize).collect()),
    }
}

impl InputArg<'_> {
    /// The operand's description, checked against the data's size.
    pub(super) fn meta(&self) -> Result<Meta> {
        if let Some(handle) = &self.handle {
            let tensor = handle.get()?;
            return Ok(tensor.meta().clone());
        }
        let Some(dtype) = DType::from_name(&self.dtype) else {
            return Err(Error::UnsupportedDtype(format!(
                "{}: unknown element type '{}'",
                self.name, self.dtype
            )));
        };
        let dims = dims_of(&self.name, &self.dims)?;
        let count = element_count(&self.name, &dims)?;
        let held = self.bytes.as_ref().map_or(0, |bytes| bytes.len()) / dtype.size();
        if held != count {
            return mismatch!("{}: dims {dims:?} need {count} elements, the data has {held}", self.name);
        }
        Ok(Meta { dtype, dims })
    }

    /// Whether both are the same elements of the same buffer, under whatever dims.
    pub(super) fn is_same_data(&self, other: &InputArg) -> bool {
        let range = |input: &InputArg| input.bytes.as_ref().map(|bytes| (bytes.as_ptr(), bytes.len()));
        self.dtype == other.dtype && range(self).is_some() && range(self) == range(other)
    }

    /// The operand's data for a queue. `transfer` says that no script can reach the buffer any more.
    pub(super) fn source(
        &self,
        meta: &Meta,
        device: DeviceName,
        transfer: bool,
        gate: &Arc<Gate>,
    ) -> Result<Source> {
        if let Some(handle) = &self.handle {
            return Ok(Source::Tensor(handle.get()?));
        }
        let bytes: &[u8] = self.bytes.as_ref().map_or(&[], |bytes| bytes);
        if !bytes.is_empty()
            && let Some(slice) = find_pinned(bytes.as_ptr() as usize, bytes.len())
        {
            return Ok(Source::Pinned { slice, meta: meta.clone() });
        }
        if transfer && bytes.len() > SMALL {
            return copy_elsewhere(bytes, HostBuffer::for_overwrite(bytes.len())?, meta, gate);
        }
        if let DeviceName::Cuda(ordinal) = device
            && let Some(core) = Gpu::core_if_open(ordinal)
            && let Some(staged) = core.stage(bytes)
        {
            return Ok(Source::Staged { staged, meta: meta.clone() });
        }
        let mut buffer = HostBuffer::for_overwrite(bytes.len())?;
        copy_bytes(buffer.bytes_mut(), bytes)?;
        Ok(Source::Tensor(Tensor::from_host(buffer, meta)))
    }
}

/// Below this many bytes a copy costs less than handing it to another thread.
const SMALL: usize = 64 * 1024;

/// Counts copies that still read this environment's buffers, so that its end can wait for them.
#[derive(Default)]
pub struct Gate {
    open: Mutex<usize>,
    closed: Condvar,
}

impl Gate {
    fn enter(self: &Arc<Self>) -> Pass {
        *self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += 1;
        Pass(self.clone())
    }

    /// Waits until no copy is under way.
    pub fn wait(&self) {
        let mut open = self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while *open > 0 {
            open = self.closed.wait(open).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

struct Pass(Arc<Gate>);

impl Drop for Pass {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) -= 1;
        self.0.closed.notify_all();
    }
}

struct Borrowed {
    start: *const u8,
    size: usize,
    _pass: Pass,
}

// SAFETY: the memory belongs to a buffer that only the addon's caller in lib/ holds, which keeps it until the call
// settles; if the environment ends before, its clean-up hook waits for the gate that `_pass` holds open.
unsafe impl Send for Borrowed {}

impl Borrowed {
    fn copy_into(&self, buffer: &mut HostBuffer) {
        // SAFETY: `start` and `size` come from a live slice, kept as said at Send; no script can write it any more.
        let bytes = unsafe { std::slice::from_raw_parts(self.start, self.size) };
        buffer.bytes_mut().copy_from_slice(bytes);
    }
}

type Copy = Box<dyn FnOnce() + Send>;

fn copier() -> &'static Sender<Copy> {
    static COPIER: OnceLock<Sender<Copy>> = OnceLock::new();
    COPIER.get_or_init(|| {
        let (sender, receiver) = channel::<Copy>();
        // Without the thread the channel is closed and the sender's error is reported by the call.
        let _ = std::thread::Builder::new()
            .name("ww-copy".into())
            .spawn(move || receiver.into_iter().for_each(|copy| copy()));
        sender
    })
}

fn copy_elsewhere(bytes: &[u8], mut buffer: HostBuffer, meta: &Meta, gate: &Arc<Gate>) -> Result<Source> {
    let (sender, receiver) = channel();
    let borrowed = Borrowed { start: bytes.as_ptr(), size: bytes.len(), _pass: gate.enter() };
    let copy = move || {
        borrowed.copy_into(&mut buffer);
        drop(borrowed);
        let _ = sender.send(Ok(buffer));
    };
    copier().send(Box::new(copy)).map_err(|_| Error::Internal("the copying thread has ended".into()))?;
    Ok(Source::Coming { receiver, meta: meta.clone() })
}

/// Options as raw values.
pub(super) fn options_of(options: &Object) -> napi::Result<Vec<(String, Raw)>> {
    let mut values = Vec::new();
    for name in Object::keys(options)? {
        let value: Unknown = options.get_named_property(&name)?;
        let raw = raw_value(value)?;
        values.extend(raw.map(|raw| (name, raw)));
    }
    Ok(values)
}

/// `None` for undefined and null: the option was left out.
fn raw_value(value: Unknown) -> napi::Result<Option<Raw>> {
    Ok(Some(match value.get_type()? {
        ValueType::Undefined | ValueType::Null => return Ok(None),
        ValueType::Boolean => Raw::Bool(bool::from_unknown(value)?),
        ValueType::Number => Raw::Number(f64::from_unknown(value)?),
        ValueType::String => Raw::Text(String::from_unknown(value)?),
        ValueType::Object if value.is_array()? => match Vec::<f64>::from_unknown(value) {
            Ok(values) => Raw::List(values),
            Err(_) => match Vec::<String>::from_unknown(value) {
                Ok(names) => Raw::Names(names),
                Err(_) => Raw::Other("a list that does not hold only numbers".into()),
            },
        },
        other => Raw::Other(format!("a value of type {other}").to_lowercase()),
    }))
}
