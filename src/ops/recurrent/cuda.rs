//! The GPU form: one product for the input gates of all steps, then a product and a launch of gates for each step.

use super::super::halves::run_all_widened;
use super::super::operands::{device_optional, device_view};
use super::super::{Call, Meta, Raw};
use super::{Cell, Problem, at};
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, float_arg, linear};
use crate::tensor::{DeviceBuffer, DeviceView};
use crate::{DType, Result};

/// Functions of a direction in the kernels' struct, and directions.
const FUNCTIONS: usize = 3;
const DIRECTIONS: usize = 2;

pub fn run(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let problem = Problem::of(call)?;
    if problem.batch * problem.hidden == 0 {
        return Ok(());
    }
    run_all_widened(launcher, inputs, outputs, |inputs, outputs| {
        let walk = Walk {
            launcher,
            problem: &problem,
            dtype: call.dtype().arithmetic(),
            passing: launcher.scratch(1)?,
            x: device_view(call, inputs, at::X)?,
            w: device_view(call, inputs, at::W)?,
            r: device_view(call, inputs, at::R)?,
            inputs,
            y: outputs[0].ptr,
        };
        walk.run(outputs)
    })
}

/// A layer on its way; its states are [directions, batch, hidden].
struct Walk<'a> {
    launcher: &'a Launcher,
    problem: &'a Problem,
    dtype: DType,
    /// Stands for memory that changes, or of which a part is taken: no form of it may be kept.
    passing: DeviceBuffer,
    x: DeviceView<'a>,
    w: DeviceView<'a>,
    r: DeviceView<'a>,
    inputs: &'a [Option<DeviceView<'a>>],
    y: DevicePtr,
}

/// Memory of the steps.
struct States {
    h: DeviceBuffer,
    c: DeviceBuffer,
    reset: DeviceBuffer,
    from_input: DeviceBuffer,
    from_state: DeviceBuffer,
}

impl Walk<'_> {
    fn run(&self, outputs: &[DeviceView]) -> Result<()> {
        let Problem { steps, batch, hidden, directions, inputs, .. } = *self.problem;
        let (gates, rows) = (self.problem.gates(), steps * batch);
        let room = |count: usize| self.launcher.scratch((directions * count).max(1) * self.dtype.size());
        let states = States {
            h: room(batch * hidden)?,
            c: room(batch * hidden)?,
            reset: room(batch * hidden)?,
            from_input: room(rows * gates)?,
            from_state: room(batch * gates)?,
        };
        let (inner, outer) = ([batch * hidden, hidden], self.problem.state_strides());
        for (memory, index) in [(&states.h, at::INITIAL_H), (&states.c, at::INITIAL_C)] {
            self.copy_state((device_optional(self.inputs, index), outer), (memory.ptr(), inner))?;
        }
        if rows > 0 {
            let x = DeviceView { dims: &[1, rows, inputs], ..self.x };
            self.product(x, self.w, (states.from_input.ptr(), &[directions, rows, gates]))?;
        }
        for step in 0..steps {
            self.step(step, &states)?;
        }
        for (output, memory) in outputs[1..].iter().zip([&states.h, &states.c]) {
            self.copy_state((memory.ptr(), inner), (output.ptr, outer))?;
        }
        Ok(())
    }

    fn step(&self, step: usize, states: &States) -> Result<()> {
        let Problem { batch, hidden, directions, cell, variant, .. } = *self.problem;
        let width = self.problem.gates();
        let gates = states.from_state.ptr();
        if cell != Cell::Gru || variant {
            let dims = [directions, batch, hidden];
            let h = self.view(states.h.ptr(), &dims);
            self.product(h, self.r, (gates, &[directions, batch, width]))?;
            return self.gates("", step, states);
        }
        // The last gate takes the state after its reset; its products lie behind those of the others.
        let parts = [(&states.h, 0, 2 * hidden, "_reset"), (&states.reset, 2 * hidden, hidden, "_update")];
        for (state, first, count, form) in parts {
            for d in 0..directions {
                let to = directions * batch * first + d * batch * count;
                self.product(
                    self.view(self.at(state.ptr(), d * batch * hidden), &[batch, hidden]),
                    self.view(self.at(self.r.ptr, (d * width + first) * hidden), &[count, hidden]),
                    (self.at(gates, to), &[batch, count]),
                )?;
            }
            self.gates(form, step, states)?;
        }
        Ok(())
    }

    fn at(&self, base: DevicePtr, elements: usize) -> DevicePtr {
        base.offset((elements * self.dtype.size()) as u64)
    }

    fn view<'v>(&'v self, ptr: DevicePtr, dims: &'v [usize]) -> DeviceView<'v> {
        DeviceView { dims, dtype: self.dtype, ptr, buffer: &self.passing }
    }

    /// d = a b^T.
    fn product(&self, a: DeviceView, b: DeviceView, (d, dims): (DevicePtr, &[usize])) -> Result<()> {
        let metas = [a, b].map(|view| Some(Meta::new(self.dtype, view.dims))).to_vec();
        let call = Call::new("matmul", metas, &[("transB".into(), Raw::Bool(true))])?;
        (call.spec.cuda)(&call, self.launcher, &[Some(a), Some(b)], &[self.view(d, dims)])
    }

    /// Copies a state between memories of other strides, zeros where there is none.
    fn copy_state(&self, from: (DevicePtr, [usize; 2]), to: (DevicePtr, [usize; 2])) -> Result<()> {
        let Problem { batch, hidden, directions, .. } = *self.problem;
        let n = (directions * batch * hidden) as u64;
        let wide = |value: usize| Arg::U64(value as u64);
        let arguments = [
            Arg::Ptr(from.0),
            Arg::Ptr(to.0),
            Arg::U64(n),
            wide(hidden),
            wide(batch),
            wide(from.1[0]),
            wide(from.1[1]),
            wide(to.1[0]),
            wide(to.1[1]),
        ];
        let kernel = format!("rnn_{}_state", self.dtype.suffix());
        self.launcher.launch(&kernel, linear(n, 256, 1)?, &arguments)
    }

    fn gates(&self, form: &str, step: usize, states: &States) -> Result<()> {
        let Problem { batch, hidden, directions, cell, .. } = *self.problem;
        let name = match cell {
            Cell::Lstm => "lstm",
            Cell::Gru => "gru",
            Cell::Rnn => "rnn",
        };
        let kernel = format!("{name}_{}{form}", self.dtype.suffix());
        let pointers = [
            states.from_input.ptr(),
            states.from_state.ptr(),
            states.h.ptr(),
            states.c.ptr(),
            states.reset.ptr(),
            self.y,
            device_optional(self.inputs, at::BIAS),
            device_optional(self.inputs, at::PEEPHOLES),
            device_optional(self.inputs, at::LENGTHS),
        ];
        let clip = self.problem.clip.unwrap_or(f64::INFINITY);
        let words = self.words(step);
        let mut arguments: Vec<_> = pointers.into_iter().map(Arg::Ptr).collect();
        arguments.extend([float_arg(self.dtype, clip), Arg::Block(&words)]);
        self.launcher.launch(&kernel, linear((directions * batch * hidden) as u64, 256, 1)?, &arguments)
    }

    /// `struct Step` of kernels/recurrent.cu.
    fn words(&self, step: usize) -> Vec<u32> {
        let Problem { steps, batch, hidden, directions, .. } = *self.problem;
        let wide = |value: usize| [value as u32, (value as u64 >> 32) as u32];
        let sizes = [step, steps, batch, hidden];
        let strides = [&self.problem.input_strides()[..], &self.problem.result_strides()].concat();
        let mut words: Vec<u32> = sizes.into_iter().chain(strides).flat_map(wide).collect();
        let backwards = |d| u32::from(d < directions && self.problem.is_reverse(d)) << d;
        words.extend([directions as u32, backwards(0) | backwards(1), u32::from(self.problem.variant)]);
        // Without clipping the bound is infinite, which lets everything pass.
        let mut codes = vec![0; DIRECTIONS * FUNCTIONS];
        let mut parameters = vec![[0.0; 2]; DIRECTIONS * FUNCTIONS];
        for d in 0..directions {
            for (index, function) in self.problem.functions(d).iter().enumerate() {
                codes[d * FUNCTIONS + index] = function.code;
                parameters[d * FUNCTIONS + index] = function.parameters;
            }
        }
        words.extend(codes);
        words.push(0);
        let bits = parameters.into_iter().flatten().map(f64::to_bits);
        words.extend(bits.flat_map(|bits| [bits as u32, (bits >> 32) as u32]));
        words
    }
}
