//! Graphs within graphs: what a frame of the walk does when its graph ends.

use super::builder::Builder;
use super::site::{Rule, Stop, integers, ints};
use super::{Operand, Source};
use crate::graph::{Dim, Graph};
use crate::ops::{Meta, Raw};
use crate::tensor::Tensor;
use crate::{DType, Error, Result};
use std::sync::Arc;

/// A graph that runs again and again: the body of a `Loop` or a `Scan`, written out for each time.
#[derive(Clone)]
pub struct Repeat {
    /// The body.
    pub body: Arc<Graph>,
    /// Whether the body is told its number and a condition and gives the condition for going on, as that of a `Loop`.
    pub conditional: bool,
    /// How often at most; `None` for no bound but the condition.
    pub trips: Option<u64>,
    /// Whether to go on.
    pub going: bool,
    /// Times done.
    pub done: u64,
    /// Values handed from one time to the next.
    pub carried: Vec<Operand>,
    /// Operands of which each time takes a slice: the operand, its axis, whether from its end.
    pub sliced: Vec<(Operand, usize, bool)>,
    /// Results that each time adds a slice to: the axis, whether at its start.
    pub stacked: Vec<(usize, bool)>,
    /// The slices so far, one list per result.
    pub slices: Vec<Vec<Operand>>,
}

/// Times that a body is written out at most.
const MOST_TRIPS: u64 = 100_000;

impl Repeat {
    /// Operands of the body's next time; `None` when there is no next time.
    pub(super) fn operands(&self, builder: &mut Builder) -> Result<Option<Vec<Operand>>> {
        if !self.going || self.trips.is_some_and(|trips| self.done >= trips) {
            return Ok(None);
        }
        if self.done >= MOST_TRIPS {
            return Err(Error::InvalidModel(format!("a body is run at most {MOST_TRIPS} times")));
        }
        let mut operands = Vec::new();
        if self.conditional {
            operands.push(Operand::constant(Tensor::from_slice(DType::I64, [], &[self.done as i64])?, false));
            operands.push(Operand::constant(Tensor::from_slice(DType::Bool, [], &[1u8])?, false));
        }
        operands.extend(self.carried.iter().cloned());
        for (operand, axis, backwards) in &self.sliced {
            let length = operand.dims()[*axis];
            let at = if *backwards { length - 1 - self.done as usize } else { self.done as usize };
            operands.push(slice(builder, operand, *axis, at)?);
        }
        Ok(Some(operands))
    }

    /// Takes the body's results.
    pub(super) fn take(&mut self, results: Vec<Operand>) -> Rule<()> {
        let mut results = results.into_iter();
        if self.conditional {
            let condition = results.next().ok_or_else(|| missing("a condition"))?;
            self.going = match condition.source() {
                Source::Constant { tensor, .. } => is_true(tensor)?,
                Source::Slot(slot) => return Err(Stop::Ask(*slot)),
            };
        }
        for value in &mut self.carried {
            *value = results.next().ok_or_else(|| missing("a carried value"))?;
        }
        for list in &mut self.slices {
            list.push(results.next().ok_or_else(|| missing("a slice"))?);
        }
        self.done += 1;
        Ok(())
    }

    /// The results of the node.
    pub(super) fn results(&self, builder: &mut Builder) -> Result<Vec<Operand>> {
        let mut results = self.carried.clone();
        let first = usize::from(self.conditional) + self.carried.len();
        for (index, (slices, &(axis, at_start))) in self.slices.iter().zip(&self.stacked).enumerate() {
            results.push(if slices.is_empty() {
                nothing(&self.body, first + index, axis)?
            } else {
                stack(builder, slices, axis, at_start)?
            });
        }
        Ok(results)
    }
}

fn missing(what: &str) -> Error {
    Error::InvalidModel(format!("the body gives too few results: {what} is missing"))
}

/// The truth that a tensor of one element holds.
pub fn is_true(tensor: &Tensor) -> Result<bool> {
    match integers(tensor)?[..] {
        [value] => Ok(value != 0),
        ref values => {
            Err(Error::InvalidModel(format!("a condition must hold one element, got {}", values.len())))
        }
    }
}

fn slice(builder: &mut Builder, x: &Operand, axis: usize, at: usize) -> Result<Operand> {
    let at = at as i64;
    let options = [("axes", ints(&[axis as i64])), ("starts", ints(&[at])), ("ends", ints(&[at + 1]))];
    let options: Vec<(String, Raw)> =
        options.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let cut = builder.call("slice", &[Some(x.clone())], &options)?.swap_remove(0);
    let mut dims = x.dims().to_vec();
    dims.remove(axis);
    cut.reshape(dims)
}

/// Slices side by side along a new axis.
fn stack(builder: &mut Builder, slices: &[Operand], axis: usize, at_start: bool) -> Result<Operand> {
    let mut parts = Vec::with_capacity(slices.len());
    for slice in slices {
        let mut dims = slice.dims().to_vec();
        if axis > dims.len() {
            return Err(Error::InvalidModel(format!(
                "axis {axis} does not exist in slices with dims {dims:?}"
            )));
        }
        dims.insert(axis, 1);
        parts.push(Some(slice.reshape(dims)?));
    }
    if at_start {
        parts.reverse();
    }
    let options = [("axis".to_string(), Raw::Number(axis as f64))];
    Ok(builder.call("concat", &parts, &options)?.swap_remove(0))
}

/// The stack of no slices, as the body's declared result tells it.
fn nothing(body: &Graph, result: usize, axis: usize) -> Result<Operand> {
    let declared = body.outputs.get(result).and_then(|id| body.values[id.index()].declared.as_ref());
    let dtype = declared.map_or(DType::F32, |declared| declared.dtype);
    let fixed = |dim: &Dim| if let Dim::Fixed(size) = dim { *size } else { 0 };
    let mut dims: Vec<usize> = declared
        .and_then(|declared| declared.dims.as_ref())
        .map_or(Vec::new(), |dims| dims.iter().map(fixed).collect());
    dims.insert(axis.min(dims.len()), 0);
    let meta = Meta::new(dtype, dims);
    Ok(Operand::constant(Tensor::from_host(Tensor::host_buffer(&meta)?, &meta), false))
}

/// What a frame stands for.
#[derive(Clone)]
pub(super) enum Flow {
    /// The model's graph.
    Root,
    /// A branch of an `If`.
    Branch,
    /// A time of a body.
    Repeat(Box<Repeat>),
}
