//! Recurrent layers: lstm, gru and rnn.

mod cells;
mod cpu;
mod cuda;
mod functions;

use self::cpu::run as on_cpu;
pub use self::functions::NAMES as FUNCTIONS;
use self::functions::{Function, NAMES};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::dtype::DType;
use crate::{Result, for_float, invalid};

const LAYOUT: Attribute = attribute(
    "layout",
    Kind::Int(Some(0)),
    "0: x is [steps, batch, inputs], y [steps, directions, batch, hidden] and states [directions, batch, hidden]. 1: x is \
     [batch, steps, inputs], y [batch, steps, directions, hidden] and states [batch, directions, hidden].",
);
const DIRECTION: Attribute = attribute(
    "direction",
    Kind::Choice(&["forward", "reverse", "bidirectional"]),
    "Which way the steps are taken; 'bidirectional' takes both, with weights for each.",
);
const ACTIVATIONS: Attribute = attribute(
    "activations",
    Kind::Words(NAMES),
    "Functions of the gates for each direction: f, g and h of lstm (sigmoid, tanh, tanh when left out), f and g of gru \
     (sigmoid, tanh), f of rnn (tanh).",
);
const ALPHA: Attribute = attribute(
    "activationAlpha",
    Kind::Floats,
    "First parameters of those functions that take some, in order: affine (1 when left out), leakyRelu (0.01), \
     thresholdedRelu (1), scaledTanh (1), hardSigmoid (0.2), elu (1).",
);
const BETA: Attribute = attribute(
    "activationBeta",
    Kind::Floats,
    "Second parameters, in order: affine (0 when left out), scaledTanh (1), hardSigmoid (0.5).",
);
const CLIP: Attribute =
    attribute("clip", Kind::Float(f64::NAN), "What goes into the functions is kept from -clip to clip.");

const SEQUENCE_LENS: Operand = Operand {
    dtypes: &[DType::I32],
    range: Some(|call| {
        let steps = Problem::of(call)?.steps;
        Ok(Range { low: 0, high: steps as i64, of: format!("for {steps} steps") })
    }),
    ..optional("sequenceLens")
};

/// The part of a row that all three share.
const BASE: OpSpec = OpSpec {
    name: "",
    operands: &[],
    attributes: &[],
    dtypes: FLOATS,
    results: Results::These(&[output("y"), output("yH")]),
    shape,
    cpu: |call, inputs, outputs| for_float!(call.dtype(), on_cpu(call, inputs, outputs)),
    cuda: cuda::run,
    tolerance: Tolerance::Normalized,
    doc: "",
};

const X: Operand = required("x");
const W: Operand = required("w");
const R: Operand = required("r");
const BIAS: Operand = optional("bias");
const INITIAL_H: Operand = optional("initialH");

/// The family's rows.
pub const OPS: &[OpSpec] = &[
    OpSpec {
        name: "lstm",
        operands: &[X, W, R, BIAS, SEQUENCE_LENS, INITIAL_H, optional("initialC"), optional("peepholes")],
        attributes: &[
            DIRECTION,
            LAYOUT,
            ACTIVATIONS,
            ALPHA,
            BETA,
            CLIP,
            attribute(
                "inputForget",
                Kind::Bool(false),
                "Whether the forget gate is one less the input gate.",
            ),
        ],
        results: Results::These(&[output("y"), output("yH"), output("yC")]),
        doc: "A long short-term memory over x with weights w [directions, 4 hidden, inputs], r [directions, 4 hidden, \
              hidden], bias [directions, 8 hidden] and peepholes [directions, 3 hidden], gates in the order i, o, f, c: \
              all steps' hidden states, the last hidden state and the last cell state (ONNX LSTM).",
        ..BASE
    },
    OpSpec {
        name: "gru",
        operands: &[X, W, R, BIAS, SEQUENCE_LENS, INITIAL_H],
        attributes: &[
            DIRECTION,
            LAYOUT,
            ACTIVATIONS,
            ALPHA,
            BETA,
            CLIP,
            attribute(
                "linearBeforeReset",
                Kind::Bool(false),
                "Whether the reset gate is applied to the product by r instead of the state before it.",
            ),
        ],
        doc: "A gated recurrent unit over x with weights w [directions, 3 hidden, inputs], r [directions, 3 hidden, hidden] \
              and bias [directions, 6 hidden], gates in the order z, r, h: all steps' hidden states and the last one (ONNX \
              GRU).",
        ..BASE
    },
    OpSpec {
        name: "rnn",
        operands: &[X, W, R, BIAS, SEQUENCE_LENS, INITIAL_H],
        attributes: &[DIRECTION, LAYOUT, ACTIVATIONS, ALPHA, BETA, CLIP],
        doc: "A simple recurrent layer over x with weights w [directions, hidden, inputs], r [directions, hidden, hidden] and \
              bias [directions, 2 hidden]: all steps' hidden states and the last one (ONNX RNN).",
        ..BASE
    },
];

/// Positions of the operands.
mod at {
    pub const X: usize = 0;
    pub const W: usize = 1;
    pub const R: usize = 2;
    pub const BIAS: usize = 3;
    pub const LENGTHS: usize = 4;
    pub const INITIAL_H: usize = 5;
    pub const INITIAL_C: usize = 6;
    pub const PEEPHOLES: usize = 7;
}

/// What kind of cell a layer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Lstm,
    Gru,
    Rnn,
}

impl Cell {
    fn of(spec: &OpSpec) -> Cell {
        match spec.name {
            "lstm" => Cell::Lstm,
            "gru" => Cell::Gru,
            _ => Cell::Rnn,
        }
    }

    fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Rnn => 1,
        }
    }

    fn functions(self) -> &'static [&'static str] {
        match self {
            Cell::Lstm => &["sigmoid", "tanh", "tanh"],
            Cell::Gru => &["sigmoid", "tanh"],
            Cell::Rnn => &["tanh"],
        }
    }
}

/// A layer in numbers.
#[derive(Debug)]
struct Problem {
    cell: Cell,
    steps: usize,
    batch: usize,
    inputs: usize,
    hidden: usize,
    directions: usize,
    /// Whether the first direction goes backwards; the second always does.
    reverse: bool,
    batch_first: bool,
    functions: Vec<Function>,
    clip: Option<f64>,
    /// `inputForget` or `linearBeforeReset`.
    variant: bool,
}

impl Problem {
    fn of(call: &Call) -> Result<Problem> {
        Problem::new(call.spec, &call.inputs, &call.attrs)
    }

    fn new(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Problem> {
        let (x, w, r) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?, spec.operand(inputs, 2)?);
        for (index, meta) in [x, w, r].into_iter().enumerate() {
            spec.expect_rank(index, meta, 3..=3)?;
        }
        let batch_first = match attrs.int(LAYOUT.name) {
            0 => false,
            1 => true,
            other => return invalid!("{}: 'layout' must be 0 or 1, got {other}", spec.name),
        };
        let cell = Cell::of(spec);
        let direction = attrs.choice(DIRECTION.name);
        let directions = if direction == "bidirectional" { 2 } else { 1 };
        let clip = Some(attrs.float(CLIP.name)).filter(|clip| !clip.is_nan());
        if clip.is_some_and(|clip| clip < 0.0) {
            return invalid!("{}: 'clip' must be 0 or more, got {}", spec.name, attrs.float(CLIP.name));
        }
        Ok(Problem {
            cell,
            steps: x.dims[usize::from(batch_first)],
            batch: x.dims[usize::from(!batch_first)],
            inputs: x.dims[2],
            hidden: r.dims[2],
            directions,
            reverse: direction == "reverse",
            batch_first,
            functions: Function::list(spec, attrs, cell.functions(), directions)?,
            clip,
            variant: attrs.bool("inputForget") || attrs.bool("linearBeforeReset"),
        })
    }

    fn gates(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    fn is_reverse(&self, direction: usize) -> bool {
        self.reverse || direction == 1
    }

    /// The functions of one direction.
    fn functions(&self, direction: usize) -> &[Function] {
        let count = self.cell.functions().len();
        &self.functions[direction * count..][..count]
    }

    fn state_dims(&self) -> [usize; 3] {
        let Problem { directions, batch, hidden, batch_first, .. } = *self;
        if batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] }
    }

    /// Elements from one direction and one sequence to the next in a state.
    fn state_strides(&self) -> [usize; 2] {
        let Problem { directions, batch, hidden, batch_first, .. } = *self;
        if batch_first { [hidden, directions * hidden] } else { [batch * hidden, hidden] }
    }

    /// Elements from one step, direction and sequence to the next in the result.
    fn result_strides(&self) -> [usize; 3] {
        let Problem { directions, batch, hidden, steps, batch_first, .. } = *self;
        if batch_first {
            [directions * hidden, hidden, steps * directions * hidden]
        } else {
            [directions * batch * hidden, batch * hidden, hidden]
        }
    }

    /// Rows of x from one step and one sequence to the next.
    fn input_strides(&self) -> [usize; 2] {
        if self.batch_first { [1, self.steps] } else { [self.batch, 1] }
    }
}

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let problem = Problem::new(spec, inputs, attrs)?;
    let Problem { steps, batch, hidden, directions, batch_first, .. } = problem;
    let gates = problem.gates();
    let wanted: [&[usize]; 7] = [
        &[directions, gates, problem.inputs],
        &[directions, gates, hidden],
        &[directions, 2 * gates],
        &[batch],
        &problem.state_dims(),
        &problem.state_dims(),
        &[directions, 3 * hidden],
    ];
    for (index, dims) in wanted.iter().enumerate() {
        if let Some(Some(meta)) = inputs.get(index + 1) {
            spec.expect_dims(index + 1, meta, dims)?;
        }
    }
    let dtype = spec.operand(inputs, 0)?.dtype;
    let y = if batch_first { [batch, steps, directions, hidden] } else { [steps, directions, batch, hidden] };
    let states = if problem.cell == Cell::Lstm { 2 } else { 1 };
    let mut results = vec![Meta::new(dtype, y)];
    results.extend((0..states).map(|_| Meta::new(dtype, problem.state_dims())));
    Ok(results)
}
