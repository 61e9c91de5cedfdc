//! Values of a run.

use crate::tensor::{DeviceCore, Tensor};
use crate::{Error, Result};
use std::sync::Arc;

/// A value of a run: on the host, on the GPU or on both.
#[derive(Default, Clone)]
pub struct Held {
    host: Option<Tensor>,
    device: Option<Tensor>,
}

impl Held {
    pub fn new(tensor: Tensor) -> Held {
        if tensor.core().is_some() {
            Held { host: None, device: Some(tensor) }
        } else {
            Held { host: Some(tensor), device: None }
        }
    }

    pub fn any(&self) -> Result<&Tensor> {
        self.device.as_ref().or(self.host.as_ref()).ok_or_else(gone)
    }

    /// On the host.
    pub fn host(&mut self) -> Result<Tensor> {
        if self.host.is_none() {
            self.host = Some(self.device.as_ref().ok_or_else(gone)?.to_host()?);
        }
        self.host.clone().ok_or_else(gone)
    }

    /// In memory that work of that core takes.
    pub fn device(&mut self, core: &Arc<DeviceCore>) -> Result<Tensor> {
        let there = self.device.as_ref().and_then(Tensor::core).is_some_and(|owner| core.takes(owner));
        if !there {
            let copy = Tensor::device(core, self.any()?.meta())?;
            self.copy_to(&copy)?;
            self.device = Some(copy);
        }
        self.device.clone().ok_or_else(gone)
    }

    /// Enqueues a copy of the elements into a tensor of a lane, in its order. Work of other streams that makes them must be done
    /// or waited for by that lane.
    pub fn copy_to(&self, target: &Tensor) -> Result<()> {
        let core = target.core().ok_or_else(gone)?;
        let ptr = target.device_view(core)?.ptr;
        match (&self.host, &self.device) {
            (Some(host), _) => core.upload(ptr, host.host_view()?.bytes()),
            (None, Some(device)) => match device.core() {
                Some(owner) if Arc::ptr_eq(owner.context(), core.context()) => {
                    core.stream().copy(ptr, device.device_view(owner)?.ptr, target.byte_size())
                }
                _ => core.upload(ptr, device.to_host()?.host_view()?.bytes()),
            },
            (None, None) => Err(gone()),
        }
    }
}

fn gone() -> Error {
    Error::Internal("a plan reads a value that is gone".into())
}
