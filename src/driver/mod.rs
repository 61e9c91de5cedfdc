//! The NVIDIA driver through its C API: the only home of unsafe foreign calls.

#![allow(unsafe_code)]

mod context;
#[cfg(test)]
pub(crate) mod fake;
mod graph;
mod load;
mod memory;
mod module;
mod nvml;
mod pages;
mod status;
mod stream;
pub mod table;
mod tensor_map;
#[cfg(test)]
mod tests;

pub use context::{Context, DeviceProperties, device_count, device_properties};
pub use graph::Graph;
pub use load::{api, driver_version};
pub use memory::{DeviceMemory, DevicePtr, PinnedMemory};
pub(crate) use module::PackedArguments;
pub use module::{Function, Grid, Module};
pub use pages::Pages;
pub use stream::{Event, Stream};
pub use tensor_map::{Halves, ImageAxis, Images, TensorMap};
