//! Elements as a call gives them.

use crate::driver::DevicePtr;
use crate::ops::Meta;
use crate::tensor::{DeviceCore, PinnedSlice};
use crate::{Result, Tensor};
use std::sync::Arc;

/// Elements as a call gives them.
#[derive(Clone)]
pub enum Given {
    /// A tensor on the host or a device.
    Tensor(Tensor),
    /// Elements in page-locked memory.
    Pinned(PinnedSlice, Meta),
}

impl Given {
    pub(super) fn meta(&self) -> &Meta {
        match self {
            Given::Tensor(tensor) => tensor.meta(),
            Given::Pinned(_, meta) => meta,
        }
    }

    pub(super) fn byte_size(&self) -> usize {
        self.meta().size() * self.meta().dtype.size()
    }

    pub(super) fn is_on_host(&self) -> bool {
        !matches!(self, Given::Tensor(tensor) if tensor.core().is_some())
    }

    /// The elements on the device. Returns when the source may be changed.
    pub fn on(&self, core: &Arc<DeviceCore>) -> Result<Tensor> {
        let Given::Tensor(tensor) = self else {
            let tensor = Tensor::device(core, self.meta())?;
            self.upload(core, tensor.device_view(core)?.ptr, 0, self.byte_size())?;
            return Ok(tensor);
        };
        tensor.to_device(core)
    }

    /// The same on the host.
    pub(super) fn hosted(self) -> Result<Given> {
        match self {
            Given::Tensor(tensor) => tensor.to_host().map(Given::Tensor),
            pinned => Ok(pinned),
        }
    }

    /// Enqueues a copy of some bytes on a core's stream. Pinned memory must stay until it has run.
    pub(super) fn upload(
        &self,
        core: &Arc<DeviceCore>,
        target: DevicePtr,
        start: usize,
        size: usize,
    ) -> Result<()> {
        match self {
            Given::Pinned(slice, _) => {
                core.stream().upload(target, &slice.memory, slice.offset + start, size)
            }
            Given::Tensor(tensor) => core.upload(target, &tensor.host_view()?.bytes()[start..start + size]),
        }
    }
}
