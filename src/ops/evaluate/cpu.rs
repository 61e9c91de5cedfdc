//! Expressions on the CPU: block by block, so that a block's values stay in the cache from step to step.

use super::expression::Expression;
use super::layout::{Axis, axes, is_single, is_whole, locate};
use crate::Result;
use crate::cpu::for_pieces;
use crate::cpu::scalar::{Block, Blocks, Function};
use crate::kernels::fused::Step;
use crate::ops::Call;
use crate::ops::operands::host_operand;
use crate::tensor::{HostView, HostViewMut};
use crate::{DType, Error};

/// Elements of a block.
const BLOCK: usize = 1024;

pub fn run(
    call: &Call,
    expression: &Expression,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    match call.dtype() {
        DType::F64 => evaluate::<f64>(call, expression, inputs, outputs),
        _ => evaluate::<f32>(call, expression, inputs, outputs),
    }
}

fn evaluate<T: Blocks>(
    call: &Call,
    expression: &Expression,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let operand = |index| match call.input(index).dtype {
        DType::Bool => host_operand(call, inputs, index).map(Data::Truth),
        _ => host_operand(call, inputs, index).map(Data::Numbers),
    };
    let data: Vec<Data<T>> = (0..inputs.len()).map(operand).collect::<Result<_>>()?;
    let dims: Vec<&[usize]> = (0..inputs.len()).map(|index| call.input(index).dims.as_slice()).collect();
    let program = Program::new(expression, data, axes(&dims, &call.output().dims))?;
    let cost = program.cost;
    if call.output().dtype != DType::Bool {
        for_pieces(outputs[0].as_slice_mut::<T>(), 1, cost, |start, piece| program.run(start, piece));
        return Ok(());
    }
    for_pieces(outputs[0].as_slice_mut::<u8>(), 1, cost, |start, piece| {
        let mut values = vec![T::ZERO; piece.len()];
        program.run(start, &mut values);
        piece.iter_mut().zip(&values).for_each(|(y, &value)| *y = u8::from(value != T::ZERO));
    });
    Ok(())
}

/// Elements of an operand.
#[derive(Clone, Copy)]
enum Data<'a, T> {
    Numbers(&'a [T]),
    /// Each stands for 1 where it is not 0.
    Truth(&'a [u8]),
}

impl<T: Blocks> Data<'_, T> {
    fn is_empty(&self) -> bool {
        match self {
            Data::Numbers(elements) => elements.is_empty(),
            Data::Truth(elements) => elements.is_empty(),
        }
    }

    fn at(&self, position: usize) -> T {
        match self {
            Data::Numbers(elements) => elements[position],
            Data::Truth(elements) => number(elements[position]),
        }
    }

    fn copy(&self, start: usize, out: &mut [T]) {
        match self {
            Data::Numbers(elements) => out.copy_from_slice(&elements[start..start + out.len()]),
            Data::Truth(elements) => {
                out.iter_mut().zip(&elements[start..]).for_each(|(y, &element)| *y = number(element));
            }
        }
    }
}

fn number<T: Blocks>(element: u8) -> T {
    if element != 0 { T::ONE } else { T::ZERO }
}

/// Where the values of a step are, for a block.
enum Source<'a, T> {
    /// The operand's own elements.
    Elements(&'a [T]),
    /// An operand's elements, brought to a slot.
    Gathered(usize),
    /// The same value throughout.
    Constant(T),
    /// A function's results: it, its operands, its parameters.
    Applied(Block<T>, Vec<usize>, [T; 2]),
}

struct Program<'a, T> {
    axes: Vec<Axis>,
    data: Vec<Data<'a, T>>,
    steps: Vec<Source<'a, T>>,
    /// The slot of a step's values; that of a step whose values are elsewhere is not used.
    slots: Vec<usize>,
    count: usize,
    cost: usize,
}

impl<'a, T: Blocks> Program<'a, T> {
    fn new(expression: &Expression, data: Vec<Data<'a, T>>, axes: Vec<Axis>) -> Result<Program<'a, T>> {
        let numbers: Vec<T> = expression.numbers().iter().map(|&number| T::from_f64(number)).collect();
        let (mut cost, mut steps) = (0, Vec::with_capacity(expression.steps().len()));
        for step in expression.steps() {
            steps.push(match step {
                Step::Number(index) => Source::Constant(numbers[*index]),
                Step::Input(index) if is_single(&axes, *index) && !data[*index].is_empty() => {
                    Source::Constant(data[*index].at(0))
                }
                Step::Input(index) => match data[*index] {
                    Data::Numbers(elements) if is_whole(&axes, *index) => Source::Elements(elements),
                    _ => Source::Gathered(*index),
                },
                Step::Apply(name, operands) => {
                    let Some(function) = Function::find(name) else {
                        return Err(Error::Internal(format!("no scalar function '{name}'")));
                    };
                    cost += function.cost;
                    let (operands, rest) = operands.split_at(function.operands.min(operands.len()));
                    let mut parameters = [T::ZERO; 2];
                    for (slot, &step) in parameters.iter_mut().zip(rest) {
                        let Step::Number(index) = &expression.steps()[step] else { continue };
                        *slot = numbers[*index];
                    }
                    Source::Applied(T::block(function), operands.to_vec(), parameters)
                }
            });
        }
        let (slots, count) = slots(&steps);
        Ok(Program { axes, data, steps, slots, count, cost: cost.max(1) })
    }

    fn run(&self, start: usize, piece: &mut [T]) {
        let length = BLOCK.min(piece.len());
        let mut slots = vec![vec![T::ZERO; length]; self.count];
        for (step, source) in self.steps.iter().enumerate() {
            if let Source::Constant(value) = source {
                slots[self.slots[step]].fill(*value);
            }
        }
        for (index, block) in piece.chunks_mut(BLOCK).enumerate() {
            self.run_block(start + index * BLOCK, block, &mut slots);
        }
    }

    fn run_block(&self, start: usize, out: &mut [T], slots: &mut [Vec<T>]) {
        let last = self.steps.len() - 1;
        for (step, source) in self.steps.iter().enumerate() {
            let slot = self.slots[step];
            match source {
                Source::Gathered(input) => self.gather(*input, start, &mut slots[slot][..out.len()]),
                Source::Applied(function, operands, parameters) => {
                    // The result's slot is none of the operands'.
                    let mut target = if step == last { Vec::new() } else { std::mem::take(&mut slots[slot]) };
                    let mut values: [&[T]; 3] = [&[]; 3];
                    for (value, &operand) in values.iter_mut().zip(operands) {
                        *value = self.values(operand, start, out.len(), slots);
                    }
                    if step == last {
                        function(out, values, *parameters);
                    } else {
                        function(&mut target[..out.len()], values, *parameters);
                        slots[slot] = target;
                    }
                }
                _ => {}
            }
        }
        if !matches!(self.steps[last], Source::Applied(..)) {
            out.copy_from_slice(self.values(last, start, out.len(), slots));
        }
    }

    fn values<'b>(&'b self, step: usize, start: usize, length: usize, slots: &'b [Vec<T>]) -> &'b [T] {
        match &self.steps[step] {
            Source::Elements(elements) => &elements[start..start + length],
            _ => &slots[self.slots[step]][..length],
        }
    }

    /// Elements of an operand that is broadcast, run by run of the innermost axis.
    fn gather(&self, input: usize, start: usize, out: &mut [T]) {
        let (inner, data) = (&self.axes[0], &self.data[input]);
        let (mut index, mut rest) = (start, out);
        while !rest.is_empty() {
            let length = (inner.size - index % inner.size).min(rest.len());
            let (run, tail) = rest.split_at_mut(length);
            let at = locate(&self.axes, input, index);
            if inner.strides[input] == 0 {
                run.fill(data.at(at));
            } else {
                data.copy(at, run);
            }
            index += length;
            rest = tail;
        }
    }
}

/// A slot for each step that needs one, shared by steps whose values are not needed at once, and how many there are.
fn slots<T>(steps: &[Source<T>]) -> (Vec<usize>, usize) {
    let mut last_use = vec![0; steps.len()];
    for (step, source) in steps.iter().enumerate() {
        if let Source::Applied(_, operands, _) = source {
            operands.iter().for_each(|&operand| last_use[operand] = step);
        }
    }
    let (mut free, mut count, mut slots) = (Vec::new(), 0, vec![0; steps.len()]);
    for (step, source) in steps.iter().enumerate() {
        if !matches!(source, Source::Elements(_)) {
            // Constants are written once and keep their slots.
            let reused = if matches!(source, Source::Constant(_)) { None } else { free.pop() };
            slots[step] = reused.unwrap_or(count);
            count = count.max(slots[step] + 1);
        }
        if let Source::Applied(_, operands, _) = source {
            let mut done: Vec<usize> = operands.clone();
            done.dedup();
            for operand in done {
                let temporary = matches!(steps[operand], Source::Applied(..) | Source::Gathered(..));
                if temporary && last_use[operand] == step && !free.contains(&slots[operand]) {
                    free.push(slots[operand]);
                }
            }
        }
    }
    (slots, count)
}
