//! The CPU form: one product for the input gates of all steps, then a product and the gates for each step.

use super::super::Call;
use super::super::operands::{host_operand, host_optional};
use super::cells::{Layer, Row, Weights};
use super::{Problem, at};
use crate::Result;
use crate::cpu::{Math, Matrix, MatrixMut, install, matmul};
use crate::tensor::{HostView, HostViewMut};
use rayon::prelude::*;

/// Numbers of a step that are worth handing to other threads.
const MANY: usize = 1 << 13;
/// Multiplications of a direction that are worth a thread of their own.
const LONG: usize = 1 << 20;

/// What one direction carries on, a row for each sequence.
struct State<T> {
    h: Vec<T>,
    c: Vec<T>,
    /// The state after its reset, of gru.
    reset: Vec<T>,
    /// What the state gives to all gates.
    gates: Vec<T>,
    /// Hidden states [batch, steps, hidden].
    y: Vec<T>,
}

pub fn run<T: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let problem = Problem::of(call)?;
    if problem.batch * problem.hidden == 0 {
        return Ok(());
    }
    let x = host_operand::<T>(call, inputs, at::X)?;
    let passes =
        (0..problem.directions).map(|d| Ok((layer(call, &problem, inputs, d)?, state(&problem, inputs, d))));
    let mut passes = passes.collect::<Result<Vec<_>>>()?;
    let work = problem.steps * problem.batch * problem.gates() * (problem.inputs + problem.hidden);
    if passes.len() > 1 && work >= LONG {
        install(|| passes.par_iter_mut().for_each(|(layer, state)| walk(layer, state, x)));
    } else {
        passes.iter_mut().for_each(|(layer, state)| walk(layer, state, x));
    }
    for (d, (_, state)) in passes.iter().enumerate() {
        store(&problem, state, d, outputs);
    }
    Ok(())
}

fn layer<'a, T: Math>(
    call: &Call,
    problem: &'a Problem,
    inputs: &[Option<HostView<'a>>],
    d: usize,
) -> Result<Layer<'a, T>> {
    let required = |index| Ok(part(host_operand::<T>(call, inputs, index)?, d, problem.directions));
    let optional = |index| host_optional::<T>(inputs, index).map(|data| part(data, d, problem.directions));
    Ok(Layer {
        problem,
        functions: problem.functions(d),
        reverse: problem.is_reverse(d),
        lengths: inputs.get(at::LENGTHS).and_then(Option::as_ref).map(HostView::as_slice::<i32>),
        weights: Weights {
            w: required(at::W)?,
            r: required(at::R)?,
            bias: optional(at::BIAS).map(|bias| bias.split_at(bias.len() / 2)),
            peepholes: optional(at::PEEPHOLES),
        },
    })
}

/// The part of an operand that belongs to one of `directions`.
fn part<T>(data: &[T], direction: usize, directions: usize) -> &[T] {
    let length = data.len() / directions;
    &data[direction * length..][..length]
}

fn state<T: Math>(problem: &Problem, inputs: &[Option<HostView>], d: usize) -> State<T> {
    let Problem { steps, batch, hidden, .. } = *problem;
    let [by_direction, by_row] = problem.state_strides();
    let zeros = |count: usize| vec![T::ZERO; batch * count];
    let initial = |index| {
        let Some(data) = host_optional::<T>(inputs, index) else { return zeros(hidden) };
        (0..batch).flat_map(|b| &data[d * by_direction + b * by_row..][..hidden]).copied().collect()
    };
    State {
        h: initial(at::INITIAL_H),
        c: initial(at::INITIAL_C),
        reset: zeros(hidden),
        gates: zeros(problem.gates()),
        y: zeros(steps * hidden),
    }
}

/// All steps of one direction.
fn walk<T: Math>(layer: &Layer<T>, state: &mut State<T>, x: &[T]) {
    let hidden = layer.problem.hidden;
    let inputs = input_gates(layer, x);
    for step in 0..layer.problem.steps {
        // The last gate of gru may take the state after its reset.
        let first = if layer.waits() { 2 * hidden } else { layer.problem.gates() };
        by_state(layer, &mut state.gates, &state.h, 0..first);
        if layer.waits() {
            for_rows(layer, state, step, &inputs, |row| layer.reset(row));
            by_state(layer, &mut state.gates, &state.reset, first..layer.problem.gates());
        }
        for_rows(layer, state, step, &inputs, |row| layer.update(row));
    }
}

/// What x and the biases give to all gates: a row for each of x.
fn input_gates<T: Math>(layer: &Layer<T>, x: &[T]) -> Vec<T> {
    let Problem { steps, batch, inputs, .. } = *layer.problem;
    let (gates, rows) = (layer.problem.gates(), steps * batch);
    let mut out = vec![T::ZERO; rows * gates];
    if let Some(bias) = layer.input_bias() {
        out.chunks_mut(gates).for_each(|row| row.copy_from_slice(&bias));
    }
    if inputs > 0 {
        let left = Matrix { data: x, rows, columns: inputs, row_stride: inputs, column_stride: 1 };
        let w = layer.weights.w;
        let right = Matrix { data: w, rows: inputs, columns: gates, row_stride: 1, column_stride: inputs };
        let mut result = MatrixMut { data: &mut out, rows, columns: gates, row_stride: gates };
        matmul(&mut result, &left, &right, T::ONE, true);
    }
    out
}

/// What the state gives to some of the gates.
fn by_state<T: Math>(layer: &Layer<T>, gates: &mut [T], h: &[T], columns: std::ops::Range<usize>) {
    let Problem { batch, hidden, .. } = *layer.problem;
    let r = &layer.weights.r[columns.start * hidden..];
    let left = Matrix { data: h, rows: batch, columns: hidden, row_stride: hidden, column_stride: 1 };
    let right =
        Matrix { data: r, rows: hidden, columns: columns.len(), row_stride: 1, column_stride: hidden };
    let (pitch, data) = (layer.problem.gates(), &mut gates[columns.start..]);
    let mut result = MatrixMut { data, rows: batch, columns: columns.len(), row_stride: pitch };
    matmul(&mut result, &left, &right, T::ONE, false);
}

/// A sequence's part of h, c, reset, gates and y.
type Slices<'a, T> = ((((&'a mut [T], &'a mut [T]), &'a mut [T]), &'a mut [T]), &'a mut [T]);

/// Calls `work` for the sequences that have such a step.
fn for_rows<T: Math>(
    layer: &Layer<T>,
    state: &mut State<T>,
    step: usize,
    inputs: &[T],
    work: impl Fn(Row<T>) + Sync,
) {
    let Problem { steps, batch, hidden, .. } = *layer.problem;
    let gates = layer.problem.gates();
    let [by_step, by_row] = layer.problem.input_strides();
    let each = |(b, ((((h, c), reset), sums), y)): (usize, Slices<T>)| {
        let Some(time) = layer.time(b, step) else { return };
        let input = &inputs[(time * by_step + b * by_row) * gates..][..gates];
        work(Row { input, gates: sums, h, c, reset, y: &mut y[time * hidden..][..hidden] });
    };
    let State { h, c, reset, gates: sums, y } = state;
    if batch > 1 && batch * hidden >= MANY {
        let rows = h.par_chunks_mut(hidden).zip(c.par_chunks_mut(hidden)).zip(reset.par_chunks_mut(hidden));
        let rows = rows.zip(sums.par_chunks_mut(gates)).zip(y.par_chunks_mut(steps * hidden));
        install(|| rows.enumerate().for_each(each));
    } else {
        let rows = h.chunks_mut(hidden).zip(c.chunks_mut(hidden)).zip(reset.chunks_mut(hidden));
        rows.zip(sums.chunks_mut(gates)).zip(y.chunks_mut(steps * hidden)).enumerate().for_each(each);
    }
}

fn store<T: Math>(problem: &Problem, state: &State<T>, d: usize, outputs: &mut [HostViewMut]) {
    let Problem { steps, hidden, .. } = *problem;
    let [by_step, by_direction, by_row] = problem.result_strides();
    let y = outputs[0].as_slice_mut::<T>();
    for (index, row) in state.y.chunks(hidden).enumerate() {
        let (b, time) = (index / steps, index % steps);
        y[time * by_step + d * by_direction + b * by_row..][..hidden].copy_from_slice(row);
    }
    let [by_direction, by_row] = problem.state_strides();
    for (output, state) in outputs[1..].iter_mut().zip([&state.h, &state.c]) {
        let output = output.as_slice_mut::<T>();
        for (b, row) in state.chunks(hidden).enumerate() {
            output[d * by_direction + b * by_row..][..hidden].copy_from_slice(row);
        }
    }
}
