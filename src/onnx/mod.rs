//! Reads ONNX model files into [`Graph`]s.
//!
//! A file is not trusted: it can use time and memory within [`Limits`], and nothing else. What it may open is decided by
//! [`External`] alone.

mod attributes;
mod census;
mod external;
mod limits;
mod proto;
mod reader;
mod scope;
mod tensor;
#[cfg(test)]
mod tests;
mod versions;

pub use external::External;
pub use limits::Limits;
pub use versions::since;

use crate::error::quoted;
use crate::graph::Graph;
use crate::{Error, Result};
use bytes::Bytes;
use prost::Message;

/// Versions of the file format that are read.
pub const IR_VERSIONS: std::ops::RangeInclusive<i64> = 3..=13;
/// Versions of ONNX's own operator set that are read.
pub const OPSETS: std::ops::RangeInclusive<i64> = 7..=25;

/// A model as it was read.
pub struct Model {
    /// The network.
    pub graph: Graph,
    /// The program that wrote the file, and its version.
    pub producer: String,
    /// The file's metadata, by name.
    pub metadata: Vec<(String, String)>,
}

/// Reads a model from the bytes of its file. External data comes from `external` alone.
pub fn load(file: Bytes, external: &External, limits: &Limits) -> Result<Model> {
    if file.len() as u64 > limits.model_bytes {
        return invalid_model(format!(
            "{} bytes pass maxModelBytes, which is {}",
            file.len(),
            limits.model_bytes
        ));
    }
    census::check(&file, limits)?;
    let model = proto::Model::decode(file).map_err(malformed)?;
    if !IR_VERSIONS.contains(&model.ir_version) {
        return invalid_model(format!("IR versions 3 to 13 are read, got {}", model.ir_version));
    }
    let graph = reader::read(&model, external, limits)?;
    Ok(Model {
        graph,
        producer: [model.producer_name, model.producer_version].join(" ").trim().to_string(),
        metadata: model.metadata.into_iter().map(|entry| (entry.key, entry.value)).collect(),
    })
}

/// Reads a model file and the external data beside it. Nothing outside the file's own folder is opened.
pub fn load_file(path: &std::path::Path, limits: &Limits) -> Result<Model> {
    load_file_with(path, |external| external, limits)
}

/// The same, with what `adapt` makes of the permission to read external data from the file's folder.
pub fn load_file_with(
    path: &std::path::Path,
    adapt: impl FnOnce(External) -> External,
    limits: &Limits,
) -> Result<Model> {
    let file = external::read_model(path, limits)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    load(file, &adapt(External::folder(folder.unwrap_or(std::path::Path::new(".")))), limits)
}

/// A tensor in a file of its own, as the data sets of conformance cases are.
pub fn read_tensor(bytes: Bytes, limits: &Limits) -> Result<crate::tensor::Tensor> {
    tensor::read(&proto::Tensor::decode(bytes).map_err(malformed)?, "tensor", &External::default(), limits)
}

fn malformed(why: impl std::fmt::Display) -> Error {
    Error::InvalidModel(format!("model: not a readable ONNX file: {why}"))
}

fn invalid_model<T>(why: impl std::fmt::Display) -> Result<T> {
    Err(Error::InvalidModel(format!("model: {why}")))
}
