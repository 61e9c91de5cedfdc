//! Walking from a call back to those that it reads: what patterns are matched with.

use super::super::Operand;
use super::super::stage::Step;
use super::{List, number};

/// A value that is being traced back through calls that nobody else reads.
pub struct Trace<'a> {
    pub list: &'a List,
    /// Steps that a match would replace.
    pub taken: Vec<usize>,
}

impl<'a> Trace<'a> {
    /// The call that makes an operand, if it is that op and all its readers are among the steps taken so far or this is the
    /// first of them.
    pub fn step(&mut self, operand: &Operand, op: &str) -> Option<&'a Step> {
        let index = self.list.writer(operand)?;
        let step = self.list.steps[index].as_ref()?;
        let [slot] = step.outputs[..] else { return None };
        let own = self.list.readers(slot).iter().all(|reader| self.taken.contains(reader));
        if step.name != op || self.list.is_live(slot) || !own || step.call().is_none() {
            return None;
        }
        self.taken.push(index);
        Some(step)
    }

    /// The operand that comes with a number in a call of that op, in either order where `either`.
    pub fn with_number(
        &mut self,
        operand: &Operand,
        op: &str,
        either: bool,
        close: impl Fn(f64) -> bool,
    ) -> Option<Operand> {
        let mark = self.taken.len();
        let found = self.step(operand, op).and_then(|step| {
            let [Some(a), Some(b)] = &step.inputs[..] else { return None };
            if number(b).is_some_and(&close) {
                return Some(a.clone());
            }
            if either && number(a).is_some_and(&close) { Some(b.clone()) } else { None }
        });
        if found.is_none() {
            self.taken.truncate(mark);
        }
        found
    }
}

pub fn near(wanted: f64) -> impl Fn(f64) -> bool {
    move |value| (value - wanted).abs() <= 2e-3 * wanted.abs()
}

pub fn exactly(wanted: f64) -> impl Fn(f64) -> bool {
    move |value| value == wanted
}

/// Both operands of a call of that op that pairs them element by element, the wanted one first, in both orders.
pub fn orders<'a>(step: &'a Step, op: &str) -> Vec<(&'a Operand, &'a Operand)> {
    match &step.inputs[..] {
        [Some(a), Some(b)] if step.name == op && a.dims() == b.dims() => vec![(a, b), (b, a)],
        _ => Vec::new(),
    }
}

/// Whether both hold the same elements in the same order; their dims may differ.
pub fn same(a: &Operand, b: &Operand) -> bool {
    use super::super::Source::Slot;
    matches!((a.source(), b.source()), (Slot(x), Slot(y)) if x == y)
}
