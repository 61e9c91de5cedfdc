//! Chains of elementwise calls become one pass over memory each.

use super::super::stage::{Step, Work};
use super::super::{Operand, Source};
use super::{List, number};
use crate::cpu::scalar::Function;
use crate::ops::evaluate::{self, Expression, MOST_INPUTS, Term};
use crate::ops::{Call, binary, choose, compare, unary};
use crate::shape::Dims;
use crate::{DType, Result};
use std::collections::HashMap;

/// Calls in one expression at most: kernels grow with it, and what it saves does not.
const MOST_CALLS: usize = 48;

pub fn run(list: &mut List) -> Result<()> {
    let groups = groups(list);
    for members in groups {
        if members.len() > 1 {
            fuse(list, &members)?;
        }
    }
    Ok(())
}

/// Groups of places in ascending order; all but the last of each are read within the group alone, and all have one shape.
fn groups(list: &List) -> Vec<Vec<usize>> {
    let mut group_of: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut shapes: Vec<Shape> = Vec::new();
    for index in (0..list.steps.len()).rev() {
        let Some(shape) = list.steps[index].as_ref().and_then(shape_of) else { continue };
        let joined = group_of_readers(list, index, &group_of)
            .filter(|&group| shapes[group].fits(&shape) && groups[group].len() < MOST_CALLS);
        let group = joined.unwrap_or_else(|| {
            groups.push(Vec::new());
            shapes.push(Shape { float: None, ..shape.clone() });
            groups.len() - 1
        });
        shapes[group].float = shapes[group].float.or(shape.float);
        groups[group].push(index);
        group_of.insert(index, group);
    }
    groups.iter_mut().for_each(|members| members.reverse());
    groups
}

/// The group that all readers of a step's result are in, if it is one and nobody else reads it.
fn group_of_readers(list: &List, index: usize, group_of: &HashMap<usize, usize>) -> Option<usize> {
    let step = list.steps[index].as_ref()?;
    let [slot] = step.outputs[..] else { return None };
    let (first, rest) = list.readers(slot).split_first().filter(|_| !list.is_live(slot))?;
    let group = *group_of.get(first)?;
    let own = step.call()?.output();
    let under_own_dims = list.readers(slot).iter().all(|&reader| {
        let operands = list.steps[reader].iter().flat_map(|step| step.inputs.iter().flatten());
        let mut read =
            operands.filter(|operand| matches!(operand.source(), Source::Slot(other) if *other == slot));
        read.all(|operand| operand.meta() == own)
    });
    (under_own_dims && rest.iter().all(|reader| group_of.get(reader) == Some(&group))).then_some(group)
}

/// What the calls of a group have in common.
#[derive(Clone)]
struct Shape {
    /// The type that is computed in; none where all operands are bool, which any may join.
    float: Option<DType>,
    /// Dims of the results.
    dims: Dims,
}

impl Shape {
    fn fits(&self, other: &Shape) -> bool {
        let same = self.float.is_none() || other.float.is_none() || self.float == other.float;
        same && self.dims == other.dims
    }
}

/// That of a call that expressions know: of floats, or of bool.
fn shape_of(step: &Step) -> Option<Shape> {
    let call = step.call()?;
    let mut families = [unary::OPS, binary::OPS, compare::OPS, choose::OPS].into_iter().flatten();
    let listed = families.any(|spec| spec.name == step.name);
    let (dtype, output) = (call.dtype(), call.output());
    let computed = dtype.is_float() || (dtype == DType::Bool && output.dtype == DType::Bool);
    let float = dtype.is_float().then_some(dtype);
    (listed && known(call) && computed && output.size() > 0)
        .then(|| Shape { float, dims: output.dims.clone() })
}

fn known(call: &Call) -> bool {
    Function::find(unary::function_of(call.spec, &call.attrs)).is_some()
}

fn fuse(list: &mut List, members: &[usize]) -> Result<()> {
    let mut made = Making { expression: Expression::default(), inputs: Vec::new(), terms: HashMap::new() };
    let mut result = None;
    for &index in members {
        let Some(step) = list.steps[index].as_ref() else { return Ok(()) };
        // An expression that would be too large stays as single calls.
        let Ok(term) = made.add(step) else { return Ok(()) };
        if let [slot] = step.outputs[..] {
            made.terms.insert(slot, term);
        }
        result = Some(term);
    }
    let Some((&last, term)) = members.last().zip(result) else { return Ok(()) };
    let Making { expression, inputs, .. } = made;
    let Ok(expression) = expression.finish(term) else { return Ok(()) };
    let Some(step) = list.steps[last].clone() else { return Ok(()) };
    let metas = inputs.iter().map(|operand| operand.meta().clone()).collect();
    let Some(output) = step.call().map(|call| call.output().clone()) else { return Ok(()) };
    if inputs.is_empty() {
        return Ok(());
    }
    let call = evaluate::fused(expression, metas, output)?;
    members.iter().for_each(|&index| {
        list.take(index);
    });
    let (work, inputs) = (Work::Call(Box::new(call)), inputs.into_iter().map(Some).collect());
    list.put(last, Step { name: "evaluate", work, inputs, options: Vec::new(), ..step });
    Ok(())
}

struct Making {
    expression: Expression,
    inputs: Vec<Operand>,
    terms: HashMap<usize, Term>,
}

impl Making {
    fn add(&mut self, step: &Step) -> Result<Term> {
        let operands =
            step.inputs.iter().flatten().map(|operand| self.term(operand)).collect::<Result<Vec<_>>>()?;
        match (&operands[..], step.call()) {
            ([x], _) if unary::OPS.iter().any(|spec| spec.name == step.name) => {
                self.expression.unary(step.name, *x, &step.options)
            }
            (all, Some(call)) => {
                let numbers: Vec<f64> = unary::numbers_of(call.spec, &call.attrs).collect();
                self.expression.apply(step.name, all, &numbers)
            }
            (all, None) => self.expression.apply(step.name, all, &[]),
        }
    }

    fn term(&mut self, operand: &Operand) -> Result<Term> {
        if let Some(value) = number(operand) {
            return Ok(Term::Number(value));
        }
        if let Source::Slot(slot) = operand.source()
            && let Some(term) = self.terms.get(slot)
        {
            return Ok(*term);
        }
        let known = self.inputs.iter().position(|input| is_same(input, operand));
        let index = known.unwrap_or(self.inputs.len());
        if index == MOST_INPUTS {
            return crate::invalid!("an expression takes at most {MOST_INPUTS} operands");
        }
        if known.is_none() {
            self.inputs.push(operand.clone());
        }
        self.expression.input(index)
    }
}

fn is_same(a: &Operand, b: &Operand) -> bool {
    let memory = match (a.source(), b.source()) {
        (Source::Slot(a), Source::Slot(b)) => a == b,
        (Source::Constant { tensor: a, .. }, Source::Constant { tensor: b, .. }) => {
            a.identity() == b.identity()
        }
        _ => false,
    };
    memory && a.meta() == b.meta()
}
