//! Networks: as data (nodes over values, in an order in which they can run), as plans for inputs of given dims, and as
//! sessions that run them.

mod host;
mod node;
pub mod operators;
mod order;
mod plan;
mod session;
#[cfg(test)]
mod tests;

pub use order::sort;
pub use session::{Feed, Options, Placed, Port, Request, Session, Timing};

use crate::tensor::Tensor;
use crate::{DType, Result};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Index of a value within its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The position in [`Graph::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One dim of a declared shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dim {
    /// A number.
    Fixed(usize),
    /// A named dim.
    Named(String),
    /// Anything.
    Free,
}

/// What a model says of an input or output. The type is checked against what comes; dims are too where they are fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Element type.
    pub dtype: DType,
    /// Dims; `None` where even the rank is open.
    pub dims: Option<Vec<Dim>>,
}

/// A value: written by one node, or an input, a constant or a capture.
#[derive(Debug, Clone, Default)]
pub struct Value {
    /// Name in the model, for messages and for feeds.
    pub name: String,
    /// Type and dims of inputs and outputs, where the model gives them.
    pub declared: Option<Declared>,
}

/// An attribute of a node.
#[derive(Clone)]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// Integers.
    Ints(Vec<i64>),
    /// A number.
    Float(f32),
    /// Numbers.
    Floats(Vec<f32>),
    /// A word.
    String(String),
    /// Words.
    Strings(Vec<String>),
    /// A tensor.
    Tensor(Tensor),
    /// A graph that the node may run, such as a branch of `If`.
    Graph(Arc<Graph>),
}

impl Attribute {
    /// The kind, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Attribute::Int(_) => "an integer",
            Attribute::Ints(_) => "integers",
            Attribute::Float(_) => "a number",
            Attribute::Floats(_) => "numbers",
            Attribute::String(_) => "a string",
            Attribute::Strings(_) => "strings",
            Attribute::Tensor(_) => "a tensor",
            Attribute::Graph(_) => "a graph",
        }
    }
}

/// An application of an operator.
#[derive(Clone)]
pub struct Node {
    /// Name in the model, possibly empty.
    pub name: String,
    /// Operator.
    pub op: String,
    /// Operator set that it belongs to; empty for ONNX's own.
    pub domain: String,
    /// Version of that set.
    pub version: i64,
    /// Operands; `None` for an optional one left out.
    pub inputs: Vec<Option<ValueId>>,
    /// Results; `None` for an optional one that nobody wants.
    pub outputs: Vec<Option<ValueId>>,
    /// Attributes by name.
    pub attributes: BTreeMap<String, Attribute>,
}

impl Node {
    /// Graphs among the attributes.
    pub fn graphs(&self) -> impl Iterator<Item = &Graph> {
        self.attributes.values().filter_map(|attribute| match attribute {
            Attribute::Graph(graph) => Some(&**graph),
            _ => None,
        })
    }

    /// Values of the surrounding graph that the node reads, itself or through the graphs among its attributes.
    pub fn reads(&self) -> impl Iterator<Item = ValueId> + '_ {
        let captured = self.graphs().flat_map(|graph| graph.captures.iter().map(|capture| capture.outer));
        self.inputs.iter().flatten().copied().chain(captured)
    }
}

/// A value of the surrounding graph under its own index in an inner one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    /// Index in the surrounding graph.
    pub outer: ValueId,
    /// Index in this graph.
    pub inner: ValueId,
}

/// A network, or a branch or body within one.
#[derive(Clone, Default)]
pub struct Graph {
    /// Name in the model.
    pub name: String,
    /// All values.
    pub values: Vec<Value>,
    /// Nodes; each after those whose results it reads.
    pub nodes: Vec<Node>,
    /// Values known from the start: initialisers and the results of Constant nodes.
    pub constants: HashMap<ValueId, Tensor>,
    /// Values that a run must give, in the model's order.
    pub inputs: Vec<ValueId>,
    /// Results, in the model's order.
    pub outputs: Vec<ValueId>,
    /// Values read from the surrounding graph; empty in the outermost one.
    pub captures: Vec<Capture>,
}

impl Graph {
    /// Adds a value.
    pub fn add_value(&mut self, name: &str) -> ValueId {
        let id =
            ValueId(u32::try_from(self.values.len()).expect("limits keep the number of values below 2^32"));
        self.values.push(Value { name: name.to_string(), declared: None });
        id
    }

    /// The value's name.
    pub fn name_of(&self, id: ValueId) -> &str {
        &self.values[id.index()].name
    }

    /// Puts nodes in an order in which they can run, here; inner graphs are sorted when they are made.
    pub fn sort(&mut self) -> Result<()> {
        sort(self)
    }

    /// Nodes here and in all inner graphs, without recursion.
    pub fn all_nodes(&self) -> Vec<&Node> {
        let mut found = Vec::new();
        let mut graphs = vec![self];
        while let Some(graph) = graphs.pop() {
            for node in &graph.nodes {
                found.push(node);
                graphs.extend(node.graphs());
            }
        }
        found
    }
}
