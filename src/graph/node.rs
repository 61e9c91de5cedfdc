//! Attributes of a node, checked for their kind.

use super::{Attribute, Graph, Node};
use crate::error::quoted;
use crate::tensor::Tensor;
use crate::{Error, Result};
use std::sync::Arc;

impl Node {
    fn attribute<T>(
        &self,
        name: &str,
        kind: &str,
        take: impl Fn(&Attribute) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(attribute) = self.attributes.get(name) else { return Ok(None) };
        match take(attribute) {
            Some(value) => Ok(Some(value)),
            None => {
                let got = attribute.kind();
                Err(Error::InvalidModel(format!("attribute '{name}' must be {kind}, got {got}")))
            }
        }
    }

    /// An integer, if it is there.
    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>> {
        self.attribute(name, "an integer", |value| match value {
            Attribute::Int(value) => Some(*value),
            _ => None,
        })
    }

    /// An integer with its default.
    pub fn int(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.maybe_int(name)?.unwrap_or(default))
    }

    /// Whether an integer is not 0.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool> {
        Ok(self.int(name, default.into())? != 0)
    }

    /// Integers, if they are there.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        self.attribute(name, "integers", |value| match value {
            Attribute::Ints(values) => Some(values.clone()),
            // Writers leave the kind of an empty list open.
            Attribute::Floats(values) if values.is_empty() => Some(Vec::new()),
            _ => None,
        })
    }

    /// A number with its default.
    pub fn float(&self, name: &str, default: f64) -> Result<f64> {
        Ok(self.maybe_float(name)?.unwrap_or(default))
    }

    /// A number, if it is there.
    pub fn maybe_float(&self, name: &str) -> Result<Option<f64>> {
        self.attribute(name, "a number", |value| match value {
            Attribute::Float(value) => Some(f64::from(*value)),
            _ => None,
        })
    }

    /// Numbers, if they are there.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f64>>> {
        self.attribute(name, "numbers", |value| match value {
            Attribute::Floats(values) => Some(values.iter().map(|&value| value.into()).collect()),
            Attribute::Ints(values) if values.is_empty() => Some(Vec::new()),
            _ => None,
        })
    }

    /// A word with its default.
    pub fn word(&self, name: &str, default: &str) -> Result<String> {
        let word = self.attribute(name, "a string", |value| match value {
            Attribute::String(value) => Some(value.clone()),
            _ => None,
        })?;
        Ok(word.unwrap_or_else(|| default.to_string()))
    }

    /// Words, if they are there.
    pub fn words(&self, name: &str) -> Result<Option<Vec<String>>> {
        self.attribute(name, "strings", |value| match value {
            Attribute::Strings(values) => Some(values.clone()),
            Attribute::Ints(values) if values.is_empty() => Some(Vec::new()),
            _ => None,
        })
    }

    /// A tensor, if it is there.
    pub fn tensor(&self, name: &str) -> Result<Option<Tensor>> {
        self.attribute(name, "a tensor", |value| match value {
            Attribute::Tensor(value) => Some(value.clone()),
            _ => None,
        })
    }

    /// A graph that must be there.
    pub fn graph(&self, name: &str) -> Result<Arc<Graph>> {
        let graph = self.attribute(name, "a graph", |value| match value {
            Attribute::Graph(graph) => Some(graph.clone()),
            _ => None,
        })?;
        graph.ok_or_else(|| Error::InvalidModel(format!("attribute '{name}' is missing")))
    }

    /// The node for messages.
    pub fn label(&self) -> String {
        let set = if self.domain.is_empty() { String::new() } else { format!("{}.", self.domain) };
        format!("node {} ({set}{})", quoted(&self.name), self.op)
    }

    /// The error with the node that it is about; errors of inner nodes name the innermost alone.
    pub fn located(&self, error: Error) -> Error {
        error.reworded(|text| match text.strip_prefix("model: ").unwrap_or(text) {
            rest if rest.starts_with("node ") => format!("model: {rest}"),
            rest => format!("model: {}: {rest}", self.label()),
        })
    }
}
