//! The walk through a graph that makes a plan. It can stop at any node and go on later from a copy.

use super::builder::{Builder, Folds};
use super::flow::{Flow, Repeat};
use super::site::{Lowered, Site, Stop};
use super::stage::{End, Stage, Told};
use super::{Operand, Source, passes};
use crate::graph::{Graph, Node, Options, ValueId, operators};
use crate::ops::Meta;
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// A graph on the walk.
#[derive(Clone)]
struct Frame {
    graph: Arc<Graph>,
    /// The node that is next.
    next: usize,
    values: Vec<Option<Operand>>,
    flow: Flow,
}

/// A walk that has come so far.
#[derive(Clone)]
pub struct Planner {
    frames: Vec<Frame>,
    builder: Builder,
    /// Nodes that the plan may still take, those of bodies at each time.
    nodes_left: u64,
    most_nodes: u64,
}

impl Planner {
    /// A walk from the start for inputs of those types and dims, which a run has in the first slots.
    pub fn new(graph: &Arc<Graph>, inputs: &[Meta], folds: Arc<Folds>, options: &Options) -> Planner {
        let operands =
            inputs.iter().enumerate().map(|(slot, meta)| Operand::slot(slot, meta.clone())).collect();
        let builder = Builder {
            folds,
            tensor_bytes: options.tensor_bytes,
            slots: inputs.len(),
            steps: Vec::new(),
            told: HashMap::new(),
            label: "".into(),
        };
        let most_nodes = options.plan_nodes;
        let mut planner = Planner { frames: Vec::new(), builder, nodes_left: most_nodes, most_nodes };
        planner.enter(graph.clone(), operands, Flow::Root);
        planner
    }

    /// The first stage.
    pub fn start(self) -> Result<Stage> {
        self.walk(&[])
    }

    /// The stage that follows what a run told.
    pub(super) fn go_on(mut self, told: Told) -> Result<Stage> {
        let mut held = self.live_slots();
        match told {
            Told::Value(slot, tensor) => {
                held.push(slot);
                self.builder.told.insert(slot, tensor);
            }
            Told::Dims(metas) => {
                held.extend(metas.iter().map(|(slot, _)| *slot));
                let operands = metas.into_iter().map(|(slot, meta)| Operand::slot(slot, meta)).collect();
                self.bind(operands)?;
            }
        }
        self.walk(&held)
    }

    /// Slots that the walk may still read.
    pub(super) fn live_slots(&self) -> Vec<usize> {
        let mut slots = Vec::new();
        let mut note = |operand: &Operand| {
            if let Source::Slot(slot) = operand.source() {
                slots.push(*slot);
            }
        };
        for frame in &self.frames {
            frame.values.iter().flatten().for_each(&mut note);
            if let Flow::Repeat(repeat) = &frame.flow {
                repeat.carried.iter().for_each(&mut note);
                repeat.sliced.iter().for_each(|(operand, ..)| note(operand));
                repeat.slices.iter().flatten().for_each(&mut note);
            }
        }
        slots
    }

    /// Goes on to where a run must tell something, or to the end. A run has the slots `held` then.
    fn walk(mut self, held: &[usize]) -> Result<Stage> {
        let end = loop {
            let Some(frame) = self.frames.last() else {
                return Err(Error::Internal("a plan has no frame left".into()));
            };
            let stop = match frame.graph.nodes.get(frame.next) {
                Some(_) => self.node(),
                None if self.frames.len() == 1 => break End::Results(self.results()?),
                None => self.leave().map(|()| None),
            };
            match stop {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                Err(Stop::Ask(slot)) => break End::Value(slot),
                Err(Stop::Error(error)) => return Err(error),
            }
        };
        self.forget(matches!(end, End::Dims(_)));
        let last = matches!(end, End::Results(_));
        let mut live = end.reads();
        if !last {
            live.extend(self.live_slots());
        }
        let steps = std::mem::take(&mut self.builder.steps);
        let steps = passes::run(&mut self.builder, steps, &live)?;
        let slots = self.builder.slots;
        Ok(Stage::new(steps, held, &live, end, slots, (!last).then_some(self)))
    }

    /// Turns the next node into steps; an end where only a run can tell the results' dims.
    fn node(&mut self) -> std::result::Result<Option<End>, Stop> {
        let Some(frame) = self.frames.last() else { return Ok(None) };
        let (graph, index) = (frame.graph.clone(), frame.next);
        let node = &graph.nodes[index];
        let inputs = node.inputs.iter().map(|id| self.operand(*id)).collect();
        self.nodes_left = match self.nodes_left.checked_sub(1) {
            Some(left) => left,
            None => {
                return Err(
                    Error::InvalidModel(format!("a plan takes at most {} nodes", self.most_nodes)).into()
                );
            }
        };
        let (steps, slots) = (self.builder.steps.len(), self.builder.slots);
        self.builder.label = node.label().into();
        let lowered = self.lower(node, inputs).map_err(|stop| match stop {
            Stop::Error(error) => Stop::Error(node.located(error)),
            ask => {
                self.builder.steps.truncate(steps);
                self.builder.slots = slots;
                ask
            }
        })?;
        match lowered {
            Lowered::Values(values) => self.bind(values)?,
            Lowered::Open { name, operands, results, form } => {
                match self
                    .builder
                    .open(name, &operands, results, form)
                    .map_err(|error| node.located(error))?
                {
                    Ok(values) => self.bind(values)?,
                    Err(slots) => return Ok(Some(End::Dims(slots))),
                }
            }
            Lowered::Branch(branch) => self.enter(branch, Vec::new(), Flow::Branch),
            Lowered::Repeat(repeat) => self.again(*repeat)?,
        }
        Ok(None)
    }

    fn lower(&mut self, node: &Node, inputs: Vec<Option<Operand>>) -> std::result::Result<Lowered, Stop> {
        let row = operators::find(node)?;
        (row.lower)(&mut Site { node, row, inputs, builder: &mut self.builder })
    }

    fn operand(&self, id: Option<ValueId>) -> Option<Operand> {
        let frame = self.frames.last()?;
        frame.values[id?.index()].as_ref().map(|operand| self.builder.resolve(operand))
    }

    /// Gives the results to the node of the top frame and passes to the next one.
    fn bind(&mut self, values: Vec<Operand>) -> Result<()> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        let node = &frame.graph.nodes[frame.next];
        let mut values = values.into_iter();
        for output in &node.outputs {
            let value = values.next();
            let Some(id) = output else { continue };
            let Some(value) = value else {
                let error = Error::InvalidModel(format!("gives fewer than {} results", node.outputs.len()));
                return Err(node.located(error));
            };
            frame.values[id.index()] = Some(value);
        }
        frame.next += 1;
        Ok(())
    }

    /// Starts a graph with those values for its inputs.
    fn enter(&mut self, graph: Arc<Graph>, inputs: Vec<Operand>, flow: Flow) {
        let mut values = vec![None; graph.values.len()];
        for (id, tensor) in &graph.constants {
            values[id.index()] = Some(Operand::constant(tensor.clone(), true));
        }
        if let Some(outer) = self.frames.last() {
            for capture in &graph.captures {
                values[capture.inner.index()] = outer.values[capture.outer.index()].clone();
            }
        }
        for (id, operand) in graph.inputs.iter().zip(inputs) {
            values[id.index()] = Some(operand);
        }
        self.frames.push(Frame { graph, next: 0, values, flow });
    }

    /// Starts a body's next time, or gives the node its results.
    fn again(&mut self, repeat: Repeat) -> Result<()> {
        match repeat.operands(&mut self.builder)? {
            Some(operands) => {
                if operands.len() != repeat.body.inputs.len() {
                    let (wanted, got) = (repeat.body.inputs.len(), operands.len());
                    return Err(Error::InvalidModel(format!("the body takes {wanted} values, got {got}")));
                }
                self.enter(repeat.body.clone(), operands, Flow::Repeat(Box::new(repeat)));
                Ok(())
            }
            None => {
                let results = repeat.results(&mut self.builder)?;
                self.bind(results)
            }
        }
    }

    /// Ends the top frame's graph.
    fn leave(&mut self) -> std::result::Result<(), Stop> {
        let results = self.results()?;
        let Some(frame) = self.frames.last() else { return Ok(()) };
        match frame.flow.clone() {
            Flow::Root => Ok(()),
            Flow::Branch => {
                self.frames.pop();
                Ok(self.bind(results)?)
            }
            Flow::Repeat(mut repeat) => {
                repeat.take(results)?;
                self.frames.pop();
                Ok(self.again(*repeat)?)
            }
        }
    }

    fn results(&self) -> Result<Vec<Operand>> {
        let Some(frame) = self.frames.last() else { return Ok(Vec::new()) };
        let result = |id: &ValueId| {
            let missing =
                || Error::InvalidModel(format!("model: output '{}' has no value", frame.graph.name_of(*id)));
            self.operand(Some(*id)).ok_or_else(missing)
        };
        frame.graph.outputs.iter().map(result).collect()
    }

    /// Drops values that no later node reads; the next one has read its own where it is `done`.
    fn forget(&mut self, done: bool) {
        let count = self.frames.len();
        for index in 0..count {
            // A branch took along what it reads when it began, a body does so each time.
            let read = match self.frames.get(index + 1) {
                Some(inner) => matches!(inner.flow, Flow::Branch),
                None => done,
            };
            let frame = &mut self.frames[index];
            let mut wanted = vec![false; frame.values.len()];
            let later = frame.graph.nodes.iter().skip(frame.next + usize::from(read)).flat_map(Node::reads);
            later.chain(frame.graph.outputs.iter().copied()).for_each(|id| wanted[id.index()] = true);
            frame.values.iter_mut().zip(wanted).for_each(|(value, wanted)| {
                if !wanted {
                    *value = None;
                }
            });
        }
    }
}
