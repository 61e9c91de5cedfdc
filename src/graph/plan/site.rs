//! What an operator's row sees of the node that it turns into steps.

use super::builder::{Builder, HostForm};
use super::flow::Repeat;
use super::{Operand, Source};
use crate::graph::operators::Operator;
use crate::graph::{Graph, Node};
use crate::ops::{Meta, Raw};
use crate::tensor::Tensor;
use crate::{DType, Error, Result};
use std::sync::Arc;

/// Why a node cannot become steps yet, or ever.
#[derive(Debug)]
pub enum Stop {
    /// The value in that slot must be told first.
    Ask(usize),
    /// The node is wrong.
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

/// What a node became.
pub enum Lowered {
    /// Its results, in order.
    Values(Vec<Operand>),
    /// A form on the host with results whose dims only a run can tell.
    Open {
        /// What it does, for profiles.
        name: &'static str,
        /// Operands.
        operands: Vec<Option<Operand>>,
        /// Number of results.
        results: usize,
        /// The form.
        form: Arc<HostForm>,
    },
    /// A graph in the node's place.
    Branch(Arc<Graph>),
    /// A graph again and again.
    Repeat(Box<Repeat>),
}

impl From<Vec<Operand>> for Lowered {
    fn from(values: Vec<Operand>) -> Lowered {
        Lowered::Values(values)
    }
}

impl From<Operand> for Lowered {
    fn from(value: Operand) -> Lowered {
        Lowered::Values(vec![value])
    }
}

/// A node with its operands, and the plan that it goes into.
pub struct Site<'p> {
    /// The node.
    pub node: &'p Node,
    /// Its row of the operator table.
    pub row: &'static Operator,
    pub(super) inputs: Vec<Option<Operand>>,
    pub(super) builder: &'p mut Builder,
}

/// Outcome of a rule.
pub type Rule<T = Lowered> = std::result::Result<T, Stop>;

impl Site<'_> {
    /// Version of the node's operator set.
    pub fn version(&self) -> i64 {
        self.node.version
    }

    /// Operands as they stand in the node.
    pub fn operands(&self) -> &[Option<Operand>] {
        &self.inputs
    }

    /// The operand at that position, which must be there.
    pub fn input(&self, index: usize) -> Result<Operand> {
        match self.inputs.get(index).cloned().flatten() {
            Some(operand) => Ok(operand),
            None => Err(Error::InvalidModel(format!("input {index} is missing"))),
        }
    }

    /// The operand at that position, if it is there.
    pub fn optional(&self, index: usize) -> Option<Operand> {
        self.inputs.get(index).cloned().flatten()
    }

    /// Whether somebody wants that result.
    pub fn wants(&self, output: usize) -> bool {
        self.node.outputs.get(output).copied().flatten().is_some()
    }

    /// The elements of an operand. Where they are not known the plan stops until they are told.
    pub fn value_of(&self, operand: &Operand) -> Rule<Tensor> {
        match &operand.source {
            Source::Constant { tensor, .. } => Ok(tensor.clone()),
            Source::Slot(slot) => Err(Stop::Ask(*slot)),
        }
    }

    /// The elements of the operand at that position.
    pub fn value(&self, index: usize) -> Rule<Tensor> {
        self.value_of(&self.input(index)?)
    }

    /// The elements of an operand of integers.
    pub fn integers(&self, index: usize) -> Rule<Vec<i64>> {
        Ok(integers(&self.value(index)?)?)
    }

    /// The same, if the operand is there.
    pub fn maybe_integers(&self, index: usize) -> Rule<Option<Vec<i64>>> {
        if self.optional(index).is_none() { Ok(None) } else { self.integers(index).map(Some) }
    }

    /// The single integer that an operand holds.
    pub fn integer(&self, index: usize) -> Rule<i64> {
        match self.integers(index)?[..] {
            [value] => Ok(value),
            ref values => {
                Err(Error::InvalidModel(format!("input {index} must hold one element, got {}", values.len()))
                    .into())
            }
        }
    }

    /// The elements of an operand of any numbers, as float64.
    pub fn numbers(&self, index: usize) -> Rule<Vec<f64>> {
        Ok(numbers(&self.value(index)?)?)
    }

    /// A call of the op table; what is known is worked out at once.
    pub fn call(
        &mut self,
        op: &'static str,
        operands: &[Operand],
        options: &[(&str, Raw)],
    ) -> Result<Vec<Operand>> {
        let operands: Vec<_> = operands.iter().cloned().map(Some).collect();
        self.call_with(op, &operands, options)
    }

    /// The same with operands that may be left out.
    pub fn call_with(
        &mut self,
        op: &'static str,
        operands: &[Option<Operand>],
        options: &[(&str, Raw)],
    ) -> Result<Vec<Operand>> {
        let options: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        self.builder.call(op, operands, &options)
    }

    /// A call with one result.
    pub fn one(
        &mut self,
        op: &'static str,
        operands: &[Operand],
        options: &[(&str, Raw)],
    ) -> Result<Operand> {
        Ok(self.call(op, operands, options)?.swap_remove(0))
    }

    /// A form on the host with results of these types and dims; it does not run on a GPU.
    pub fn host(
        &mut self,
        name: &'static str,
        operands: &[Operand],
        outputs: Vec<Meta>,
        form: impl Fn(&[Option<Tensor>]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    ) -> Result<Vec<Operand>> {
        let operands: Vec<_> = operands.iter().cloned().map(Some).collect();
        self.builder.host(name, &operands, outputs, Arc::new(form))
    }

    /// The value in another element type.
    pub fn cast(&mut self, x: &Operand, to: DType) -> Result<Operand> {
        if x.dtype() == to {
            return Ok(x.clone());
        }
        self.one("cast", std::slice::from_ref(x), &[("to", Raw::Text(to.name().into()))])
    }

    /// A known value.
    pub fn constant(&self, tensor: Tensor) -> Operand {
        Operand::constant(tensor, false)
    }

    /// A number in that element type.
    pub fn scalar(&mut self, dtype: DType, value: f64) -> Result<Operand> {
        let number = self.constant(Tensor::from_slice(DType::F64, [], &[value])?);
        self.cast(&number, dtype)
    }

    /// Integers as a list of int64.
    pub fn list(&self, values: &[i64]) -> Result<Operand> {
        Ok(self.constant(Tensor::from_slice(DType::I64, [values.len()], values)?))
    }
}

/// Integers as an option.
pub fn ints(values: &[i64]) -> Raw {
    Raw::List(values.iter().map(|&value| value as f64).collect())
}

/// Elements of a host tensor of whole numbers or truths.
pub fn integers(tensor: &Tensor) -> Result<Vec<i64>> {
    let dtype = tensor.meta().dtype;
    if matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::Bf16) {
        return Err(Error::InvalidModel(format!("integers are wanted, got {dtype}")));
    }
    let wide = convert(tensor, DType::I64)?;
    Ok(wide.host_view()?.as_slice::<i64>().to_vec())
}

/// Elements of a host tensor as float64.
pub fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    let wide = convert(tensor, DType::F64)?;
    Ok(wide.host_view()?.as_slice::<f64>().to_vec())
}

/// A host tensor in another element type.
pub fn convert(tensor: &Tensor, to: DType) -> Result<Tensor> {
    if tensor.meta().dtype == to {
        return Ok(tensor.clone());
    }
    let options = [("to".to_string(), Raw::Text(to.name().into()))];
    let call = crate::ops::Call::new("cast", vec![Some(tensor.meta().clone())], &options)?;
    Ok(call.run_cpu(&[Some(tensor.clone())])?.swap_remove(0))
}
