//! Names of values: which graph or function body sees which, and that each is written once.

use super::{invalid_model, quoted};
use crate::Result;
use crate::graph::{Capture, Graph, ValueId};
use std::collections::HashMap;

/// Names of one graph or of one use of a function.
struct Frame<'m> {
    /// Values by name; `None` for an operand that the call of a function left out.
    names: HashMap<&'m str, Option<ValueId>>,
    /// Values of the caller that the function's results become, until they are declared.
    results: HashMap<&'m str, ValueId>,
    /// Position of the graph that holds the values.
    level: usize,
    /// Whether names of the frame below are seen.
    sees_outer: bool,
}

/// Graphs under construction, outermost first, and what is named in them.
#[derive(Default)]
pub struct Scopes<'m> {
    graphs: Vec<Graph>,
    frames: Vec<Frame<'m>>,
}

impl<'m> Scopes<'m> {
    /// Begins a graph, which sees the names of the one that it stands in.
    pub fn open_graph(&mut self, name: &str) {
        self.graphs.push(Graph { name: name.to_string(), ..Graph::default() });
        self.open_frame(HashMap::new(), HashMap::new(), true);
    }

    /// Ends the innermost graph.
    pub fn close_graph(&mut self) -> Graph {
        self.frames.pop();
        self.graphs.pop().expect("a graph was opened")
    }

    /// Begins the body of a function within the innermost graph. It sees its operands and nothing else.
    pub fn open_function(
        &mut self,
        operands: HashMap<&'m str, Option<ValueId>>,
        results: HashMap<&'m str, ValueId>,
    ) {
        self.open_frame(operands, results, false);
    }

    /// Ends a body. Gives the results that no node wrote, each with the operand of the same name.
    pub fn close_function(&mut self) -> Vec<(&'m str, Option<ValueId>, ValueId)> {
        let Some(frame) = self.frames.pop() else { return Vec::new() };
        let passed = |(name, result)| (name, frame.names.get(name).copied().flatten(), result);
        frame.results.into_iter().map(passed).collect()
    }

    fn open_frame(
        &mut self,
        names: HashMap<&'m str, Option<ValueId>>,
        results: HashMap<&'m str, ValueId>,
        sees_outer: bool,
    ) {
        self.frames.push(Frame { names, results, level: self.graphs.len() - 1, sees_outer });
    }

    /// The innermost graph.
    pub fn graph(&mut self) -> &mut Graph {
        self.graphs.last_mut().expect("a graph is open")
    }

    /// Whether the innermost graph is the model's own.
    pub fn is_outermost(&self) -> bool {
        self.graphs.len() == 1
    }

    /// A new value of that name; an error where the name is taken, here or in a graph around.
    pub fn declare(&mut self, name: &'m str) -> Result<ValueId> {
        let top = self.frames.len() - 1;
        if self.is_known(top, name) {
            return invalid_model(format!("value {} is written twice", quoted(name)));
        }
        let frame = &mut self.frames[top];
        let id = match frame.results.remove(name) {
            Some(id) => id,
            None => self.graphs[frame.level].add_value(name),
        };
        self.frames[top].names.insert(name, Some(id));
        Ok(id)
    }

    fn is_known(&self, top: usize, name: &str) -> bool {
        for frame in self.frames[..=top].iter().rev() {
            if frame.names.contains_key(name) {
                return true;
            }
            if !frame.sees_outer {
                return false;
            }
        }
        false
    }

    /// The value of that name in the innermost frame; `None` for an operand that a call left out.
    pub fn find(&mut self, name: &str) -> Result<Option<ValueId>> {
        match self.find_in(self.frames.len() - 1, name) {
            Some(found) => Ok(found),
            None => invalid_model(format!("value {} is read but never written", quoted(name))),
        }
    }

    /// Looks outward; a value of a surrounding graph becomes a capture of each graph on the way.
    fn find_in(&mut self, top: usize, name: &str) -> Option<Option<ValueId>> {
        let at = (0..=top)
            .rev()
            .take_while(|&index| index == top || self.frames[index + 1].sees_outer)
            .find(|&index| self.frames[index].names.contains_key(name))?;
        let mut found = self.frames[at].names[name];
        for index in at + 1..=top {
            let level = self.frames[index].level;
            if let Some(outer) = found {
                let inner = self.graphs[level].add_value(name);
                self.graphs[level].captures.push(Capture { outer, inner });
                found = Some(inner);
            }
            // The key lives as long as the model: it is the one that the outer frame holds.
            let key = self.frames[at].names.get_key_value(name).map(|(key, _)| *key)?;
            self.frames[index].names.insert(key, found);
        }
        Some(found)
    }
}
