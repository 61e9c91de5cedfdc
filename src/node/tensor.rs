//! Device tensors as JavaScript objects.

use super::Result;
use crate::{Error, Tensor};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::sync::Mutex;

/// A tensor in device memory. Freed by `dispose` or, as a safety net, by garbage collection.
#[napi(custom_finalize)]
pub struct DeviceTensor {
    tensor: Mutex<Option<Tensor>>,
    bytes: i64,
}

impl DeviceTensor {
    /// Wraps a tensor and tells V8 of its memory, so that collection keeps pace.
    pub(super) fn new(env: &Env, tensor: Tensor) -> DeviceTensor {
        let bytes = tensor.byte_size() as i64;
        let _ = env.adjust_external_memory(bytes);
        DeviceTensor { tensor: Mutex::new(Some(tensor)), bytes }
    }

    /// Wraps a tensor over memory that another object has told V8 of.
    fn sharing(tensor: Tensor) -> DeviceTensor {
        DeviceTensor { tensor: Mutex::new(Some(tensor)), bytes: 0 }
    }

    /// The tensor, unless it was disposed of.
    pub(super) fn get(&self) -> crate::Result<Tensor> {
        let slot = self.tensor.lock().map_err(|_| Error::Internal("a tensor's lock is poisoned".into()))?;
        slot.clone().ok_or_else(|| Error::Disposed("the tensor was disposed of".into()))
    }

    fn take(&self) -> Option<Tensor> {
        self.tensor.lock().ok()?.take()
    }
}

#[napi]
impl DeviceTensor {
    /// Frees the memory. A call in flight keeps it until it is done. Twice is nothing.
    #[napi]
    pub fn dispose(&self, env: Env) {
        if self.take().is_some() {
            let _ = env.adjust_external_memory(-self.bytes);
        }
    }

    /// The same elements under other dims; shares the memory.
    #[napi]
    pub fn reshape(&self, dims: Vec<f64>) -> Result<DeviceTensor> {
        let tensor = self.get()?.reshape(dims.iter().map(|dim| *dim as usize).collect::<Vec<_>>())?;
        Ok(DeviceTensor::sharing(tensor))
    }

    /// Where the tensor is: 'cuda:N'.
    #[napi(getter)]
    pub fn location(&self) -> Result<String> {
        Ok(self.get()?.core().map_or("cpu".into(), |core| format!("cuda:{}", core.ordinal())))
    }

    /// Whether `dispose` was called.
    #[napi(getter)]
    pub fn disposed(&self) -> bool {
        self.tensor.lock().map_or(true, |slot| slot.is_none())
    }
}

impl ObjectFinalize for DeviceTensor {
    fn finalize(self, env: Env) -> napi::Result<()> {
        if self.take().is_some() {
            let _ = env.adjust_external_memory(-self.bytes);
        }
        Ok(())
    }
}
