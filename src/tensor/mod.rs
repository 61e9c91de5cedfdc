//! Tensors: an element type, dims and a shared buffer on the host or on a device.

mod device;
mod forms;
mod host;
mod pool;
mod results;
mod staging;
#[cfg(test)]
mod tests;

pub use device::{DeviceBuffer, DeviceCore, DeviceView, Download, PinnedSlice, Staged};
pub use forms::{Form, FormKey};
pub use host::{HostBuffer, HostForms, HostView, HostViewMut, Scratch, host_memory_stats, trim_host_memory};
pub use pool::MemoryStats;
pub use staging::copy_bytes;

use crate::ops::Meta;
use crate::shape::{self, Dims, element_count};
use crate::{Error, Result, invalid, mismatch};
use std::sync::Arc;

#[derive(Clone)]
enum Data {
    Host(Arc<HostBuffer>),
    Device(Arc<DeviceBuffer>),
}

/// A contiguous row-major tensor. Clones share the buffer.
#[derive(Clone)]
pub struct Tensor {
    meta: Meta,
    data: Data,
}

impl Tensor {
    /// A host tensor from elements.
    pub fn from_slice<T: bytemuck::Pod>(
        dtype: crate::DType,
        dims: impl Into<Dims>,
        data: &[T],
    ) -> Result<Tensor> {
        let meta = Meta::new(dtype, dims);
        let bytes: &[u8] = bytemuck::cast_slice(data);
        if size_of::<T>() != dtype.size() {
            return invalid!("tensor: elements of {} bytes were given for {dtype}", size_of::<T>());
        }
        if element_count("tensor", &meta.dims)? * dtype.size() != bytes.len() {
            return mismatch!("tensor: dims {:?} of {dtype} do not hold {} bytes", meta.dims, bytes.len());
        }
        let mut buffer = HostBuffer::for_overwrite(bytes.len())?;
        buffer.bytes_mut().copy_from_slice(bytes);
        Ok(Tensor::from_host(buffer, &meta))
    }

    /// Zeroed host memory for a tensor of that description.
    pub fn host_buffer(meta: &Meta) -> Result<HostBuffer> {
        HostBuffer::zeroed(element_count("result", &meta.dims)? * meta.dtype.size())
    }

    /// Host memory with any content for a tensor of that description, which the caller writes whole.
    pub fn host_buffer_for_overwrite(meta: &Meta) -> Result<HostBuffer> {
        HostBuffer::for_overwrite(element_count("result", &meta.dims)? * meta.dtype.size())
    }

    /// A host tensor over a buffer of the right size.
    pub fn from_host(buffer: HostBuffer, meta: &Meta) -> Tensor {
        debug_assert_eq!(buffer.bytes().len(), shape::size_of(&meta.dims) * meta.dtype.size());
        Tensor { meta: meta.clone(), data: Data::Host(Arc::new(buffer)) }
    }

    /// A device tensor with undefined content.
    pub fn device(core: &Arc<DeviceCore>, meta: &Meta) -> Result<Tensor> {
        let size = element_count("result", &meta.dims)? * meta.dtype.size();
        Ok(Tensor { meta: meta.clone(), data: Data::Device(Arc::new(core.allocate(size)?)) })
    }

    /// Element type and dims.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// A number that tensors which live at the same time share only where they share their memory.
    pub fn identity(&self) -> usize {
        match &self.data {
            Data::Host(buffer) => Arc::as_ptr(buffer) as usize,
            Data::Device(buffer) => Arc::as_ptr(buffer) as usize,
        }
    }

    /// Size of the elements in bytes.
    pub fn byte_size(&self) -> usize {
        self.meta.size() * self.meta.dtype.size()
    }

    /// The same elements under other dims of the same product.
    pub fn reshape(&self, dims: impl Into<Dims>) -> Result<Tensor> {
        let meta = Meta::new(self.meta.dtype, dims);
        if element_count("reshape", &meta.dims)? != self.meta.size() {
            return mismatch!(
                "reshape: dims {:?} hold {} elements, got {:?}",
                self.meta.dims,
                self.meta.size(),
                meta.dims
            );
        }
        Ok(Tensor { meta, data: self.data.clone() })
    }

    /// The device that holds the tensor, `None` for the host.
    pub fn core(&self) -> Option<&Arc<DeviceCore>> {
        match &self.data {
            Data::Host(_) => None,
            Data::Device(buffer) => Some(buffer.core()),
        }
    }

    /// A view of a host tensor.
    pub fn host_view(&self) -> Result<HostView<'_>> {
        match &self.data {
            Data::Host(buffer) => Ok(HostView {
                dims: &self.meta.dims,
                dtype: self.meta.dtype,
                bytes: &buffer.bytes()[..self.byte_size()],
                forms: buffer.forms.get(),
            }),
            Data::Device(buffer) => {
                invalid!("a tensor on cuda:{} was given where host data is needed", buffer.core().ordinal())
            }
        }
    }

    /// A view of a tensor whose memory `core`'s work takes.
    pub fn device_view(&self, core: &Arc<DeviceCore>) -> Result<DeviceView<'_>> {
        match &self.data {
            Data::Device(buffer) if core.takes(buffer.core()) => {
                Ok(DeviceView { dims: &self.meta.dims, dtype: self.meta.dtype, ptr: buffer.ptr(), buffer })
            }
            Data::Device(buffer) if buffer.core().context().is_lost() => Err(Error::DeviceLost(format!(
                "the tensor was on cuda:{}, whose context was lost",
                buffer.core().ordinal()
            ))),
            Data::Device(buffer) => {
                invalid!(
                    "the call runs on cuda:{}, but a tensor is on cuda:{}",
                    core.ordinal(),
                    buffer.core().ordinal()
                )
            }
            Data::Host(_) => invalid!("a host tensor was given where device data is needed"),
        }
    }

    /// Has the device keep what products and convolutions make of these weights, from the first use on and as long as the tensor.
    pub fn keep_forms(&self) {
        match &self.data {
            Data::Host(buffer) => {
                buffer.forms.get_or_init(HostForms::default);
            }
            Data::Device(buffer) => buffer.keep_forms(),
        }
    }

    /// A copy on that device, in stream order. A tensor already there is shared.
    pub fn to_device(&self, core: &Arc<DeviceCore>) -> Result<Tensor> {
        match &self.data {
            Data::Device(buffer) if Arc::ptr_eq(buffer.core(), core) => Ok(self.clone()),
            Data::Device(_) => self.to_host()?.to_device(core),
            Data::Host(buffer) => {
                let tensor = Tensor::device(core, &self.meta)?;
                core.upload(tensor.device_view(core)?.ptr, &buffer.bytes()[..self.byte_size()])?;
                Ok(tensor)
            }
        }
    }

    /// A copy on the host. Blocks until the work that makes the tensor is done.
    pub fn to_host(&self) -> Result<Tensor> {
        self.downloaded(self.begin_download(None)?)
    }

    /// The tensor on the host once a copy that [`Tensor::begin_download`] began is done.
    pub fn downloaded(&self, download: Option<Download>) -> Result<Tensor> {
        let Some(download) = download else { return Ok(self.clone()) };
        Ok(Tensor::from_host(download.into_buffer()?, &self.meta))
    }

    /// Begins a copy to the host, into pinned memory when given; `None` when the tensor is there already.
    pub fn begin_download(&self, into: Option<PinnedSlice>) -> Result<Option<Download>> {
        match &self.data {
            Data::Host(_) => Ok(None),
            Data::Device(buffer) => {
                let (core, size) = (buffer.core(), self.byte_size());
                match into {
                    None => core.begin_result(buffer.clone(), 0, size),
                    into => core.begin_download(buffer.clone(), 0, size, into),
                }
                .map(Some)
            }
        }
    }

    /// The only owner's host buffer, for handing the memory on without a copy.
    pub fn into_host_buffer(self) -> Result<HostBuffer> {
        match self.data {
            Data::Host(buffer) => match Arc::try_unwrap(buffer) {
                Ok(buffer) => Ok(buffer),
                Err(shared) => {
                    let mut copy = HostBuffer::for_overwrite(shared.bytes().len())?;
                    copy.bytes_mut().copy_from_slice(shared.bytes());
                    Ok(copy)
                }
            },
            Data::Device(buffer) => {
                invalid!("a tensor on cuda:{} has no host buffer", buffer.core().ordinal())
            }
        }
    }
}
