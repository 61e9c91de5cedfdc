//! What a model may use.

use super::invalid_model;
use crate::Result;

/// Bounds that a model is held to, whatever its file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the model file, external data apart. Default 2 GiB, the largest that protocol buffers allow.
    pub model_bytes: u64,
    /// Bytes of one tensor, stored or computed. Default 16 GiB.
    pub tensor_bytes: u64,
    /// Nodes, those of inner graphs and of functions at each use included. Default 100,000.
    pub nodes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { model_bytes: 2 << 30, tensor_bytes: 16 << 30, nodes: 100_000 }
    }
}

impl Limits {
    /// Graphs within graphs, functions within functions.
    pub const DEPTH: usize = 32;
    /// Most dims of a tensor.
    pub const RANK: usize = 16;

    /// Most messages in the file: a decoded message takes some hundred bytes, however short it was.
    pub fn messages(&self) -> u64 {
        self.nodes.saturating_mul(32)
    }

    /// Dims as sizes, and the bytes that they take with elements of `size` bytes, once both are known to be in bounds: a 0 beside
    /// other dims does not make those any smaller.
    pub fn dims(&self, what: &str, dims: &[i64], size: usize) -> Result<(Vec<usize>, usize)> {
        if dims.len() > Limits::RANK {
            return invalid_model(format!(
                "{what}: at most {} dims are taken, got {}",
                Limits::RANK,
                dims.len()
            ));
        }
        let Ok(sizes) =
            dims.iter().map(|&dim| usize::try_from(dim)).collect::<std::result::Result<Vec<_>, _>>()
        else {
            return invalid_model(format!("{what}: dims must be 0 or more, got {dims:?}"));
        };
        let bytes =
            sizes.iter().try_fold(size as u64, |product, &dim| product.checked_mul(dim.max(1) as u64));
        match bytes.filter(|&bytes| bytes <= self.tensor_bytes) {
            Some(bytes) => {
                let bytes = if sizes.contains(&0) { 0 } else { bytes as usize };
                Ok((sizes, bytes))
            }
            None => invalid_model(format!(
                "{what}: dims {dims:?} pass maxTensorBytes, which is {}",
                self.tensor_bytes
            )),
        }
    }
}
