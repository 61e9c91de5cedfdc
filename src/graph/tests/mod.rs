//! Small networks, run on the CPU.

mod gpu;
mod hostile;
mod launches;
mod operators;
mod patterns;
mod plans;
mod sessions;

use super::plan::numbers;
use super::{Attribute, Capture, Declared, Dim, Graph, Node, Options, Session, ValueId};
use crate::tensor::Tensor;
use crate::{DType, Result};
use std::sync::Arc;

/// A graph under way; values are made when they are first named.
#[derive(Default)]
struct Net {
    graph: Graph,
    version: i64,
}

impl Net {
    fn new() -> Net {
        Net { version: 21, ..Net::default() }
    }

    fn of_version(version: i64) -> Net {
        Net { version, ..Net::default() }
    }

    fn id(&mut self, name: &str) -> ValueId {
        let known = self.graph.values.iter().position(|value| value.name == name);
        known.map_or_else(|| self.graph.add_value(name), |index| ValueId(index as u32))
    }

    /// An input; its dims are free where they are -1.
    fn input(mut self, name: &str, dtype: DType, dims: &[i64]) -> Net {
        let id = self.id(name);
        let dim = |&dim: &i64| usize::try_from(dim).map_or(Dim::Free, Dim::Fixed);
        let declared = Declared { dtype, dims: Some(dims.iter().map(dim).collect()) };
        self.graph.values[id.index()].declared = Some(declared);
        self.graph.inputs.push(id);
        self
    }

    fn constant(mut self, name: &str, tensor: Tensor) -> Net {
        let id = self.id(name);
        self.graph.constants.insert(id, tensor);
        self
    }

    /// A node; empty names are operands left out or results that nobody wants.
    fn node(self, op: &str, inputs: &[&str], outputs: &[&str]) -> Net {
        self.node_with(op, inputs, outputs, &[])
    }

    fn node_with(
        mut self,
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) -> Net {
        let mut ids = |names: &[&str]| {
            names.iter().map(|name| (!name.is_empty()).then(|| self.id(name))).collect::<Vec<_>>()
        };
        let (inputs, outputs) = (ids(inputs), ids(outputs));
        self.graph.nodes.push(Node {
            name: format!("{op}_{}", self.graph.nodes.len()),
            op: op.to_string(),
            domain: String::new(),
            version: self.version,
            inputs,
            outputs,
            attributes: attributes.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        });
        self
    }

    /// A value of the surrounding graph, which has it as its `outer`-th.
    fn capture(mut self, name: &str, outer: usize) -> Net {
        let inner = self.id(name);
        self.graph.captures.push(Capture { outer: ValueId(outer as u32), inner });
        self
    }

    fn outputs(mut self, names: &[&str]) -> Net {
        self.graph.outputs = names.iter().map(|name| self.id(name)).collect();
        self
    }

    /// The result, and whatever leads to it: values that are asked for are not fused away.
    fn all_outputs(mut self, result: &str) -> Net {
        self = self.outputs(&[result]);
        let others = self.graph.nodes.iter().flat_map(|node| node.outputs.iter().copied().flatten());
        let others: Vec<ValueId> = others.filter(|id| *id != self.graph.outputs[0]).collect();
        self.graph.outputs.extend(others);
        self
    }

    fn into_attribute(self) -> Attribute {
        Attribute::Graph(Arc::new(self.graph))
    }

    fn session(self) -> Session {
        Session::new(self.graph, None, Options::default()).unwrap()
    }
}

fn floats(dims: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(DType::F32, dims, values).unwrap()
}

fn longs(dims: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_slice(DType::I64, dims, values).unwrap()
}

fn truth(value: bool) -> Tensor {
    Tensor::from_slice(DType::Bool, [], &[u8::from(value)]).unwrap()
}

fn run(session: &Session, feeds: &[Tensor]) -> Result<Vec<Tensor>> {
    session.run(feeds.to_vec(), &|| Ok(()))
}

/// Dims and elements.
fn told(tensor: &Tensor) -> (Vec<usize>, Vec<f64>) {
    (tensor.meta().dims.clone(), numbers(tensor).unwrap())
}
