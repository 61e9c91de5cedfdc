//! Chains of elementwise calls become one pass over memory each.

use super::super::stage::{Step, Work};
use super::super::{Operand, Source};
use super::{List, number, view};
use crate::cpu::scalar::Function;
use crate::ops::evaluate::{self, Expression, MOST_INPUTS, Term};
use crate::ops::{Call, Meta, binary, choose, compare, unary};
use crate::shape::{Dims, size_of};
use crate::{DType, Result};
use std::collections::HashMap;

/// Calls in one expression at most: kernels grow with it, and what it saves does not.
const MOST_CALLS: usize = 48;

pub fn run(list: &mut List) -> Result<()> {
    for group in groups(list) {
        if group.members.len() > 1 {
            fuse(list, &group)?;
        }
    }
    Ok(())
}

/// Calls of which all but the last are read within the group alone, with results that hold as many elements, or one that all
/// elements share.
struct Group {
    /// Places in ascending order.
    members: Vec<usize>,
    /// The type that is computed in; none where all operands are bool, which any may join.
    float: Option<DType>,
    /// Dims of one of the results: those of the others are views of it, and all operands broadcast to it.
    dims: Dims,
}

fn groups(list: &List) -> Vec<Group> {
    let mut group_of: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for index in (0..list.steps.len()).rev() {
        let Some((float, dims)) = list.steps[index].as_ref().and_then(shape_of) else { continue };
        let joined = group_of_readers(list, index, &group_of)
            .filter(|&group| groups[group].float.is_none() || float.is_none() || groups[group].float == float)
            .filter(|&group| groups[group].members.len() < MOST_CALLS)
            .and_then(|group| Some((group, groups[group].dims_with(list, index, &dims)?)));
        let group = match joined {
            Some((group, dims)) => {
                groups[group].dims = dims;
                group
            }
            None => {
                groups.push(Group { members: Vec::new(), float: None, dims });
                groups.len() - 1
            }
        };
        groups[group].float = groups[group].float.or(float);
        groups[group].members.push(index);
        group_of.insert(index, group);
    }
    groups.iter_mut().for_each(|group| group.members.reverse());
    groups
}

/// Calls that may be worked out again for each element where one result is shared by all.
const CHEAP: &[&str] = &["add", "sub", "mul", "div"];

/// The operand of a call with results of dims `own` as one of an expression over `dims`.
fn under(operand: &Operand, own: &[usize], dims: &[usize]) -> Option<Operand> {
    if size_of(own) == 1 { operand.reshape([]).ok() } else { view::under(operand, own, dims) }
}

impl Group {
    /// Dims to which the operands of the group and of one more call with results of dims `own` broadcast.
    fn dims_with(&self, list: &List, index: usize, own: &Dims) -> Option<Dims> {
        let fits = |index: usize, dims: &Dims| {
            let Some(step) = list.steps[index].as_ref() else { return false };
            let Some(own) = step.call().map(|call| &call.output().dims) else { return false };
            step.inputs.iter().flatten().all(|operand| under(operand, own, dims).is_some())
        };
        let shared = size_of(own) == 1 && size_of(&self.dims) != 1;
        if shared && !list.steps[index].as_ref().is_some_and(|step| CHEAP.contains(&step.name)) {
            return None;
        }
        if fits(index, &self.dims) {
            return Some(self.dims.clone());
        }
        self.members.iter().all(|&member| fits(member, own)).then(|| own.clone())
    }
}

/// The group that all readers of a step's result are in, if it is one and nobody else reads it.
fn group_of_readers(list: &List, index: usize, group_of: &HashMap<usize, usize>) -> Option<usize> {
    let step = list.steps[index].as_ref()?;
    let [slot] = step.outputs[..] else { return None };
    let (first, rest) = list.readers(slot).split_first().filter(|_| !list.is_live(slot))?;
    let group = *group_of.get(first)?;
    let is_whole =
        list.readers(slot).iter().filter_map(|&reader| list.steps[reader].as_ref()).all(|reader| {
            let own = reader.call().map(|call| &call.output().dims[..]);
            let mut read = reader
                .inputs
                .iter()
                .flatten()
                .filter(|operand| matches!(operand.source(), Source::Slot(other) if *other == slot));
            read.all(|operand| Some(operand.dims()) == own)
        });
    let is_shared = CHEAP.contains(&step.name) && step.call()?.output().size() == 1;
    ((is_whole || is_shared) && rest.iter().all(|reader| group_of.get(reader) == Some(&group)))
        .then_some(group)
}

/// The type that a call computes in, unless that is bool, and its result's dims, if expressions know the call: of floats, or
/// of bool.
fn shape_of(step: &Step) -> Option<(Option<DType>, Dims)> {
    let call = step.call()?;
    let mut families = [unary::OPS, binary::OPS, compare::OPS, choose::OPS].into_iter().flatten();
    let listed = families.any(|spec| spec.name == step.name);
    let (dtype, output) = (call.dtype(), call.output());
    let computed = dtype.is_float() || (dtype == DType::Bool && output.dtype == DType::Bool);
    let float = dtype.is_float().then_some(dtype);
    (listed && known(call) && computed && output.size() > 0).then(|| (float, output.dims.clone()))
}

fn known(call: &Call) -> bool {
    Function::find(unary::function_of(call.spec, &call.attrs)).is_some()
}

fn fuse(list: &mut List, group: &Group) -> Result<()> {
    let members = &group.members;
    let mut made = Making {
        expression: Expression::default(),
        inputs: Vec::new(),
        terms: HashMap::new(),
        dims: group.dims.clone(),
    };
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
    if inputs.is_empty() {
        return Ok(());
    }
    let Some(dtype) = step.call().map(|call| call.output().dtype) else { return Ok(()) };
    let call = evaluate::fused(expression, metas, Meta::new(dtype, group.dims.clone()))?;
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
    /// Dims of the result.
    dims: Dims,
}

impl Making {
    fn add(&mut self, step: &Step) -> Result<Term> {
        let own = step.call().map_or(&[][..], |call| &call.output().dims);
        let operands = step
            .inputs
            .iter()
            .flatten()
            .map(|operand| self.term(operand, own))
            .collect::<Result<Vec<_>>>()?;
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

    /// The operand of a call with results of those dims.
    fn term(&mut self, operand: &Operand, own: &[usize]) -> Result<Term> {
        if let Some(value) = number(operand) {
            return Ok(Term::Number(value));
        }
        if let Source::Slot(slot) = operand.source()
            && let Some(term) = self.terms.get(slot)
        {
            return Ok(*term);
        }
        let Some(operand) = &under(operand, own, &self.dims) else {
            return crate::invalid!("dims {:?} do not broadcast to {:?}", operand.dims(), self.dims);
        };
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
