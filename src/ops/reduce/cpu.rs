//! The CPU form: every step in float64, the result rounded once.

use super::super::Call;
use super::super::operands::host_operand;
use super::{Finish, Fold, Map, Rule, Step, count, reduced, rule_of, steps};
use crate::Result;
use crate::cpu::{Math, for_pieces, math};
use crate::tensor::{HostView, HostViewMut};

/// Lines folded one after the other: rounding errors of a long sum grow with their number, and parts of fixed size
/// make the order independent of the threads.
const LINES: usize = 256;
/// Running values of a contiguous row, each with every so many-th element.
const LANES: usize = 16;
/// The map of values that were folded before.
const SAME: fn(f64) -> f64 = |value| value;

fn identity(fold: Fold) -> f64 {
    match fold {
        Fold::Sum => 0.0,
        Fold::Product => 1.0,
        Fold::Max => f64::NEG_INFINITY,
        Fold::Min => f64::INFINITY,
    }
}

/// Calls `body` with the fold as a function of its own, so that inner loops hold no choice.
macro_rules! folded {
    ($fold:expr, |$step:ident| $body:expr) => {
        match $fold {
            Fold::Sum => {
                let $step = |a: f64, b: f64| a + b;
                $body
            }
            Fold::Product => {
                let $step = |a: f64, b: f64| a * b;
                $body
            }
            Fold::Max => {
                let $step = math::max::<f64>;
                $body
            }
            Fold::Min => {
                let $step = math::min::<f64>;
                $body
            }
        }
    };
}

pub fn run<T: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let dims = &call.input(0).dims;
    let rule = rule_of(call.spec);
    let chosen = reduced(call.spec, &call.attrs, dims.len())?;
    let steps = steps(dims, &chosen);
    let y = outputs[0].as_slice_mut::<T>();
    if y.is_empty() {
        return Ok(());
    }
    let map = |value: T| match rule.map {
        Map::Identity => value.to_f64(),
        Map::Abs => value.to_f64().abs(),
        Map::Square => value.to_f64() * value.to_f64(),
    };
    let mut values = step(x, steps[0], rule.fold, map);
    for next in &steps[1..] {
        values = step(&values, *next, rule.fold, SAME);
    }
    let count = count(dims, &chosen);
    y.iter_mut().zip(&values).for_each(|(y, &value)| *y = finished(rule, value, count));
    Ok(())
}

fn finished<T: Math>(rule: Rule, value: f64, count: usize) -> T {
    match rule.finish {
        Finish::Nothing => T::from_f64(value),
        Finish::Mean => T::from_f64(value / count as f64),
        // A sum that overflows its type is infinite on every device.
        Finish::Root => T::from_f64(value).sqrt(),
        Finish::Log => T::from_f64(value.ln()),
    }
}

/// One step: [outer, inner] from [outer, length, inner], in chunks of `length` that are folded in order.
fn step<T: Copy + Sync>(
    x: &[T],
    Step { outer, length, inner }: Step,
    fold: Fold,
    map: impl Fn(T) -> f64 + Send + Sync,
) -> Vec<f64> {
    let rows = if inner == 1 { LANES * LINES } else { LINES }.min(length.max(1));
    let chunks = length.div_ceil(rows).max(1);
    let mut parts = vec![identity(fold); outer * chunks * inner];
    for_pieces(&mut parts, inner, rows, |start, piece| {
        for (index, part) in piece.chunks_mut(inner.max(1)).enumerate() {
            let (at, chunk) = ((start / inner + index) / chunks, (start / inner + index) % chunks);
            let lines = chunk * rows..length.min((chunk + 1) * rows);
            let lines = &x[(at * length + lines.start) * inner..(at * length + lines.end) * inner];
            folded!(fold, |step| {
                if inner == 1 {
                    let mut lanes = [identity(fold); LANES];
                    for line in lines.chunks(LANES) {
                        lanes.iter_mut().zip(line).for_each(|(sum, &value)| *sum = step(*sum, map(value)));
                    }
                    part[0] = lanes.into_iter().fold(part[0], step);
                } else {
                    for line in lines.chunks(inner) {
                        part.iter_mut().zip(line).for_each(|(sum, &value)| *sum = step(*sum, map(value)));
                    }
                }
            });
        }
    });
    if chunks == 1 {
        return parts;
    }
    step(&parts, Step { outer, length: chunks, inner }, fold, SAME)
}
