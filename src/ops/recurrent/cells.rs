//! The gates of one step of one sequence.

use super::functions::Function;
use super::{Cell, Problem};
use crate::cpu::Math;
use crate::cpu::math::clip;

/// Operands of one direction.
pub struct Weights<'a, T> {
    pub w: &'a [T],
    pub r: &'a [T],
    /// Biases of the inputs, then of the state.
    pub bias: Option<(&'a [T], &'a [T])>,
    pub peepholes: Option<&'a [T]>,
}

/// One direction of a layer.
pub struct Layer<'a, T> {
    pub problem: &'a Problem,
    pub functions: &'a [Function],
    pub reverse: bool,
    pub lengths: Option<&'a [i32]>,
    pub weights: Weights<'a, T>,
}

/// A sequence in one step.
pub struct Row<'a, T> {
    /// What the input and the biases give to all gates.
    pub input: &'a [T],
    /// What the state gives to them.
    pub gates: &'a mut [T],
    pub h: &'a mut [T],
    pub c: &'a mut [T],
    pub reset: &'a mut [T],
    pub y: &'a mut [T],
}

impl<T: Math> Layer<'_, T> {
    /// Whether the last gate takes the state after its reset, so that its product waits for the reset gate.
    pub fn waits(&self) -> bool {
        self.problem.cell == Cell::Gru && !self.problem.variant
    }

    /// The biases that are added to the input's products: the state's too, but for the one that the reset gate multiplies.
    pub fn input_bias(&self) -> Option<Vec<T>> {
        let (from_input, from_state) = self.weights.bias?;
        let mut bias: Vec<T> = from_input.iter().zip(from_state).map(|(&a, &b)| a + b).collect();
        if self.problem.cell == Cell::Gru && self.problem.variant {
            let last = 2 * self.problem.hidden;
            bias[last..].copy_from_slice(&from_input[last..]);
        }
        Some(bias)
    }

    /// The time of a sequence's step, `None` beyond its end.
    pub fn time(&self, sequence: usize, step: usize) -> Option<usize> {
        let length = self.lengths.map_or(self.problem.steps, |lengths| lengths[sequence].max(0) as usize);
        (step < length).then(|| if self.reverse { length - 1 - step } else { step })
    }

    /// The new states of a sequence.
    pub fn update(&self, row: Row<T>) {
        match self.problem.cell {
            Cell::Lstm => self.lstm(row),
            Cell::Gru => self.gru(row),
            Cell::Rnn => self.rnn(row),
        }
    }

    fn function(&self, index: usize, values: &mut [T]) {
        if let Some(most) = self.problem.clip.map(T::from_f64) {
            values.iter_mut().for_each(|value| *value = clip(*value, -most, most));
        }
        self.functions[index].apply(values);
    }

    fn peep(&self, index: usize, gate: &mut [T], c: &[T]) {
        if let Some(all) = self.weights.peepholes {
            let weights = &all[index * self.problem.hidden..];
            gate.iter_mut().zip(weights).zip(c).for_each(|((gate, &weight), &c)| *gate = *gate + weight * c);
        }
    }

    fn lstm(&self, Row { input, gates, h, c, y, .. }: Row<T>) {
        let hidden = self.problem.hidden;
        add(gates, input);
        let (i, rest) = gates.split_at_mut(hidden);
        let (f, g) = rest[hidden..].split_at_mut(hidden);
        self.peep(0, i, c);
        self.function(0, i);
        if self.problem.variant {
            f.iter_mut().zip(&*i).for_each(|(f, &i)| *f = T::ONE - i);
        } else {
            self.peep(2, f, c);
            self.function(0, f);
        }
        self.function(1, g);
        for (((c, &f), &i), g) in c.iter_mut().zip(&*f).zip(&*i).zip(g) {
            *c = f * *c + i * *g;
            // The gate is used up; the cell's way out begins in its place.
            *g = *c;
        }
        let out = &mut gates[hidden..];
        let (o, rest) = out.split_at_mut(hidden);
        let cell = &mut rest[hidden..];
        self.peep(1, o, c);
        self.function(0, o);
        self.function(2, cell);
        for (((h, y), &o), &cell) in h.iter_mut().zip(y).zip(&*o).zip(&*cell) {
            *h = o * cell;
            *y = *h;
        }
    }

    /// The update and reset gates, and the state after its reset.
    pub fn reset(&self, Row { input, gates, h, reset, .. }: Row<T>) {
        let hidden = self.problem.hidden;
        let gates = &mut gates[..2 * hidden];
        add(gates, input);
        self.function(0, gates);
        let r = &gates[hidden..];
        reset.iter_mut().zip(r).zip(&*h).for_each(|((reset, &r), &h)| *reset = r * h);
    }

    fn gru(&self, Row { input, gates, h, c, reset, y }: Row<T>) {
        let hidden = self.problem.hidden;
        if !self.waits() {
            self.reset(Row { input, gates, h, c, reset, y: &mut [] });
        }
        let (first, g) = gates.split_at_mut(2 * hidden);
        let (z, r) = first.split_at(hidden);
        if !self.waits() {
            if let Some((_, bias)) = self.weights.bias {
                add(g, &bias[2 * hidden..]);
            }
            g.iter_mut().zip(r).for_each(|(g, &r)| *g = *g * r);
        }
        add(g, &input[2 * hidden..]);
        self.function(1, g);
        for (((h, y), &z), &g) in h.iter_mut().zip(y).zip(z).zip(&*g) {
            *h = (T::ONE - z) * g + z * *h;
            *y = *h;
        }
    }

    fn rnn(&self, Row { input, gates, h, y, .. }: Row<T>) {
        add(gates, input);
        self.function(0, gates);
        h.copy_from_slice(gates);
        y.copy_from_slice(gates);
    }
}

fn add<T: Math>(sums: &mut [T], terms: &[T]) {
    sums.iter_mut().zip(terms).for_each(|(sum, &term)| *sum = *sum + term);
}
