//! From messages to a graph: names become values, functions are written out where they are used, Constant nodes become
//! constants.

use super::scope::Scopes;
use super::{External, Limits, OPSETS, invalid_model, proto, quoted, tensor, versions};
use crate::graph::{Attribute, Graph, Node, ValueId};
use crate::tensor::Tensor;
use crate::{DType, Error, Result};
use std::collections::{BTreeMap, HashMap};

/// What a node's meaning depends on beside itself.
pub(super) struct Context<'m> {
    /// Version of each operator set.
    opsets: HashMap<&'m str, i64>,
    /// Attributes of the function's call, where the nodes are those of a function.
    pub(super) call: Option<BTreeMap<String, Attribute>>,
    /// Functions around.
    depth: usize,
}

/// Reads the messages of one model, whose names it borrows.
pub(super) struct Reader<'m> {
    functions: HashMap<(&'m str, &'m str, &'m str), &'m proto::Function>,
    pub(super) external: &'m External,
    pub(super) limits: &'m Limits,
    scopes: Scopes<'m>,
    nodes_left: u64,
}

/// The graph of a model.
pub fn read(model: &proto::Model, external: &External, limits: &Limits) -> Result<Graph> {
    let Some(graph) = &model.graph else { return invalid_model("the file holds no graph") };
    let mut functions = HashMap::new();
    for function in &model.functions {
        let key = (domain(&function.domain), function.name.as_str(), function.overload.as_str());
        if functions.insert(key, function).is_some() {
            return invalid_model(format!("function {} is defined twice", quoted(&function.name)));
        }
    }
    let context = Context { opsets: opsets(&model.opset_import), call: None, depth: 0 };
    let scopes = Scopes::default();
    Reader { functions, external, limits, scopes, nodes_left: limits.nodes }.graph(graph, &context)
}

fn opsets(imports: &[proto::OperatorSet]) -> HashMap<&str, i64> {
    imports.iter().map(|set| (domain(&set.domain), set.version)).collect()
}

/// ONNX's own set has two names.
fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

impl<'m> Reader<'m> {
    /// A graph and the graphs within; decoding has bounded how deep those go.
    pub(super) fn graph(&mut self, graph: &'m proto::Graph, context: &Context<'m>) -> Result<Graph> {
        if !graph.sparse_initializers.is_empty() {
            return Err(Error::UnsupportedOp("model: sparse initializers are not supported".into()));
        }
        self.scopes.open_graph(&graph.name);
        for initializer in &graph.initializers {
            let what = format!("initializer {}", quoted(&initializer.name));
            let constant = tensor::read(initializer, &what, self.external, self.limits)?;
            let id = self.scopes.declare(&initializer.name)?;
            self.scopes.graph().constants.insert(id, constant);
        }
        self.inputs(graph)?;
        self.nodes(&graph.nodes, context)?;
        self.outputs(graph)?;
        let mut read = self.scopes.close_graph();
        read.sort()?;
        Ok(read)
    }

    /// Inputs that are initializers too, as IR version 3 wants them, are constants.
    fn inputs(&mut self, graph: &'m proto::Graph) -> Result<()> {
        let constants: std::collections::HashSet<_> = graph.initializers.iter().map(|it| &it.name).collect();
        for input in graph.inputs.iter().filter(|input| !constants.contains(&input.name)) {
            let declared = tensor::declared(input, "input", self.limits)?;
            if declared.is_none() && self.scopes.is_outermost() {
                return invalid_model(format!("input {} has no type", quoted(&input.name)));
            }
            let id = self.scopes.declare(&input.name)?;
            let built = self.scopes.graph();
            built.values[id.index()].declared = declared;
            built.inputs.push(id);
        }
        Ok(())
    }

    fn outputs(&mut self, graph: &'m proto::Graph) -> Result<()> {
        for output in &graph.outputs {
            let Some(id) = self.scopes.find(&output.name)? else { continue };
            let declared = tensor::declared(output, "output", self.limits)?;
            let built = self.scopes.graph();
            let value = &mut built.values[id.index()];
            value.declared = value.declared.take().or(declared);
            built.outputs.push(id);
        }
        Ok(())
    }

    /// All results are declared before any operand is looked up, so the order of the nodes does not matter.
    fn nodes(&mut self, nodes: &'m [proto::Node], context: &Context<'m>) -> Result<()> {
        let mut results = Vec::with_capacity(nodes.len());
        for node in nodes {
            let named = |name: &'m String| (!name.is_empty()).then(|| self.scopes.declare(name)).transpose();
            results.push(node.outputs.iter().map(named).collect::<Result<Vec<_>>>()?);
        }
        for (node, outputs) in nodes.iter().zip(results) {
            self.node(node, outputs, context).map_err(|error| located(error, node))?;
        }
        Ok(())
    }

    fn node(
        &mut self,
        node: &'m proto::Node,
        outputs: Vec<Option<ValueId>>,
        context: &Context<'m>,
    ) -> Result<()> {
        self.nodes_left = match self.nodes_left.checked_sub(1) {
            Some(left) => left,
            None => {
                return invalid_model(format!("more nodes than maxNodes, which is {}", self.limits.nodes));
            }
        };
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for name in &node.inputs {
            inputs.push(if name.is_empty() { None } else { self.scopes.find(name)? });
        }
        let attributes = self.attributes(&node.attributes, context)?;
        let key = (domain(&node.domain), node.op.as_str(), node.overload.as_str());
        if let Some(function) = self.functions.get(&key).copied() {
            return self.call(function, inputs, outputs, attributes, context);
        }
        let version = version_of(key.0, key.1, context)?;
        if (key.0, key.1) == ("", "Constant") {
            return self.constant(&outputs, &attributes);
        }
        let (name, op, domain) = (node.name.clone(), node.op.clone(), key.0.to_string());
        let node = Node { name, op, domain, version, inputs, outputs, attributes };
        self.scopes.graph().nodes.push(node);
        Ok(())
    }

    /// Writes a function's body out in the place of its call.
    fn call(
        &mut self,
        function: &'m proto::Function,
        inputs: Vec<Option<ValueId>>,
        outputs: Vec<Option<ValueId>>,
        attributes: BTreeMap<String, Attribute>,
        context: &Context<'m>,
    ) -> Result<()> {
        let depth = context.depth + 1;
        if depth > Limits::DEPTH {
            return invalid_model(format!("functions call each other more than {} deep", Limits::DEPTH));
        }
        if inputs.len() > function.inputs.len() || outputs.len() > function.outputs.len() {
            return invalid_model(format!(
                "function {} takes {} operands and gives {} results, the call has {} and {}",
                quoted(&function.name),
                function.inputs.len(),
                function.outputs.len(),
                inputs.len(),
                outputs.len()
            ));
        }
        if attributes.values().any(|attribute| matches!(attribute, Attribute::Graph(_))) {
            return Err(Error::UnsupportedOp(
                "model: graphs as attributes of functions are not supported".into(),
            ));
        }
        let mut given = inputs.into_iter();
        let operands = function.inputs.iter().map(|name| (name.as_str(), given.next().flatten())).collect();
        let wanted = function.outputs.iter().zip(outputs);
        let results = wanted.filter_map(|(name, id)| Some((name.as_str(), id?))).collect();
        let defaults = self.attributes(&function.defaults, context)?;
        let call = Some(defaults.into_iter().chain(attributes).collect());
        let inner = Context { opsets: opsets(&function.opset_import), call, depth };
        self.scopes.open_function(operands, results);
        self.nodes(&function.nodes, &inner)?;
        for (name, operand, result) in self.scopes.close_function() {
            let Some(operand) = operand else {
                let (function, name) = (quoted(&function.name), quoted(name));
                return invalid_model(format!("function {function} never writes its result {name}"));
            };
            self.scopes.graph().nodes.push(identity(operand, result));
        }
        Ok(())
    }

    /// The value of a Constant node becomes a constant of the graph.
    fn constant(
        &mut self,
        outputs: &[Option<ValueId>],
        attributes: &BTreeMap<String, Attribute>,
    ) -> Result<()> {
        let (&[Some(id)], 1) = (outputs, attributes.len()) else {
            return invalid_model("a Constant has one result and one attribute");
        };
        let value = match attributes.first_key_value() {
            Some((_, Attribute::Tensor(tensor))) => tensor.clone(),
            Some((_, Attribute::Int(value))) => Tensor::from_slice(DType::I64, [], &[*value])?,
            Some((_, Attribute::Ints(values))) => Tensor::from_slice(DType::I64, [values.len()], values)?,
            Some((_, Attribute::Float(value))) => Tensor::from_slice(DType::F32, [], &[*value])?,
            Some((_, Attribute::Floats(values))) => Tensor::from_slice(DType::F32, [values.len()], values)?,
            _ => return Err(Error::UnsupportedDtype("model: constants of strings are not supported".into())),
        };
        self.scopes.graph().constants.insert(id, value);
        Ok(())
    }
}

/// A result that a function hands through.
fn identity(operand: ValueId, result: ValueId) -> Node {
    Node {
        name: String::new(),
        op: "Identity".into(),
        domain: String::new(),
        version: *OPSETS.end(),
        inputs: vec![Some(operand)],
        outputs: vec![Some(result)],
        attributes: BTreeMap::new(),
    }
}

/// Version of the operator set of that name, which the model must import.
fn version_of(domain: &str, op: &str, context: &Context) -> Result<i64> {
    match context.opsets.get(domain) {
        Some(version) if !domain.is_empty() || versions::is_read(op, *version) => Ok(*version),
        Some(version) => invalid_model(format!(
            "operator sets {} to {} are read, got {version}",
            OPSETS.start(),
            OPSETS.end()
        )),
        None => invalid_model(format!("operator set {} is used but not imported", quoted(domain))),
    }
}

/// The error with the node that it is about. Errors of inner nodes name the innermost alone.
fn located(error: Error, node: &proto::Node) -> Error {
    let place = |text: String| match text.strip_prefix("model: ") {
        Some(rest) if !rest.starts_with("node ") => {
            format!("model: node {} ({}): {rest}", quoted(&node.name), quoted(&node.op))
        }
        _ => text,
    };
    match error {
        Error::InvalidModel(text) => Error::InvalidModel(place(text)),
        Error::UnsupportedOp(text) => Error::UnsupportedOp(place(text)),
        Error::UnsupportedDtype(text) => Error::UnsupportedDtype(place(text)),
        other => other,
    }
}
