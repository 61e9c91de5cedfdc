//! GPU inference and numerics that need nothing but the NVIDIA driver.
//!
//! The modules stand in layers, each using only those below it: `node` and [`capi`], then [`runtime`], [`onnx`], [`graph`], [`ops`],
//! [`kernels`] and [`cpu`], [`tensor`], [`driver`].

#![deny(unsafe_code)]

pub mod aggregate;
pub mod capi;
mod cpu;
mod driver;
mod dtype;
mod error;
pub mod graph;
mod kernels;
#[cfg(feature = "node")]
mod node;
pub mod onnx;
pub mod ops;
pub mod runtime;
pub mod shape;
pub mod tensor;

pub use capi::column_median as median;
pub use dtype::{DTYPES, DType, DTypeInfo};
pub use error::{CODES, Error, ErrorCode, Result};
pub use tensor::Tensor;
