//! What a run is given, checked against what the model declares.

use super::{Port, wrong_type};
use crate::error::quoted;
use crate::graph::Dim;
use crate::ops::{Meta, nearest};
use crate::tensor::{DeviceCore, HostBuffer, PinnedSlice, Staged, Tensor};
use crate::{Result, invalid, mismatch};
use std::collections::HashMap;
use std::sync::Arc;

/// A value that a run is given.
pub enum Feed {
    /// On the host or on a device.
    Tensor(Tensor),
    /// In blocks on its way to a device.
    Staged(Staged, Meta),
    /// In page-locked memory of the caller.
    Pinned(PinnedSlice, Meta),
}

impl From<Tensor> for Feed {
    fn from(tensor: Tensor) -> Feed {
        Feed::Tensor(tensor)
    }
}

/// Bytes below which a value stays on the host until the GPU needs it: it may tell how the network goes on.
const SMALL: usize = 4096;

impl Feed {
    /// Element type and dims.
    pub fn meta(&self) -> &Meta {
        match self {
            Feed::Tensor(tensor) => tensor.meta(),
            Feed::Staged(_, meta) | Feed::Pinned(_, meta) => meta,
        }
    }

    /// The core that it lies on.
    pub fn core(&self) -> Option<&Arc<DeviceCore>> {
        match self {
            Feed::Tensor(tensor) => tensor.core(),
            _ => None,
        }
    }

    /// The page-locked memory that it lies in.
    pub fn pinned(&self) -> Option<PinnedSlice> {
        match self {
            Feed::Pinned(slice, _) => Some(slice.clone()),
            _ => None,
        }
    }

    /// The elements on the host, or where they are.
    pub fn into_tensor(self) -> Result<Tensor> {
        match self {
            Feed::Tensor(tensor) => Ok(tensor),
            Feed::Staged(staged, meta) => Ok(Tensor::from_host(staged.to_host()?, &meta)),
            Feed::Pinned(slice, meta) => {
                let mut buffer = HostBuffer::for_overwrite(meta.size() * meta.dtype.size())?;
                buffer.bytes_mut().copy_from_slice(pinned(&slice, &meta)?);
                Ok(Tensor::from_host(buffer, &meta))
            }
        }
    }

    /// The elements for work of that core; copies are enqueued there. Pinned memory must stay until they are done.
    pub fn for_device(self, core: &Arc<DeviceCore>) -> Result<Tensor> {
        let size = self.meta().size() * self.meta().dtype.size();
        match self {
            Feed::Staged(staged, meta) if size > SMALL && staged.is_on(core) => {
                let tensor = Tensor::device(core, &meta)?;
                staged.upload(core, tensor.device_view(core)?.ptr)?;
                Ok(tensor)
            }
            Feed::Pinned(slice, meta) if size > SMALL => {
                pinned(&slice, &meta)?;
                let tensor = Tensor::device(core, &meta)?;
                core.stream().upload(tensor.device_view(core)?.ptr, &slice.memory, slice.offset, size)?;
                Ok(tensor)
            }
            other => {
                let tensor = other.into_tensor()?;
                if tensor.core().is_none() && size > 0 {
                    core.reserve_staging(size)?;
                }
                Ok(tensor)
            }
        }
    }
}

fn pinned<'a>(slice: &'a PinnedSlice, meta: &Meta) -> Result<&'a [u8]> {
    match slice.bytes(meta.size() * meta.dtype.size()) {
        Some(bytes) => Ok(bytes),
        None => invalid!("a pinned array is shorter than its dims {:?}", meta.dims),
    }
}

/// What a run is given, in the order of the inputs.
pub fn check<F: Into<Feed>>(inputs: &[Port], feeds: Vec<(String, F)>) -> Result<Vec<Feed>> {
    let mut given: HashMap<String, Feed> = HashMap::new();
    for (name, feed) in feeds {
        if !inputs.iter().any(|port| port.name == name) {
            return unknown(inputs, &name);
        }
        given.insert(name, feed.into());
    }
    let mut ordered = Vec::with_capacity(inputs.len());
    for port in inputs {
        let Some(feed) = given.remove(&port.name) else {
            return invalid!("run: input {} is missing", quoted(&port.name));
        };
        check_one(port, feed.meta())?;
        ordered.push(feed);
    }
    Ok(ordered)
}

fn unknown<T>(inputs: &[Port], name: &str) -> Result<T> {
    let known: Vec<&str> = inputs.iter().map(|port| port.name.as_str()).collect();
    let hint = match nearest(name, &known) {
        Some(guess) => format!("did you mean '{guess}'?"),
        None => format!("inputs: {}", known.join(", ")),
    };
    invalid!("run: unknown input {}; {hint}", quoted(name))
}

fn check_one(port: &Port, meta: &Meta) -> Result<()> {
    let Some(declared) = &port.declared else { return Ok(()) };
    let name = &port.name;
    if declared.dtype != meta.dtype {
        return Err(wrong_type(name, declared.dtype, meta.dtype));
    }
    let Some(dims) = &declared.dims else { return Ok(()) };
    if dims.len() != meta.dims.len() {
        return mismatch!("run: input '{name}' must have rank {}, got dims {:?}", dims.len(), meta.dims);
    }
    // Names of dims are not held to one size each: writers use one name, such as '?', for many.
    for (axis, (wanted, &got)) in dims.iter().zip(&meta.dims).enumerate() {
        if let Dim::Fixed(size) = wanted
            && *size != got
        {
            return mismatch!("run: dim {axis} of input '{name}' must be {size}, got dims {:?}", meta.dims);
        }
    }
    Ok(())
}
