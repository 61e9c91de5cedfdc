//! resize on the CPU: sums in float64, one axis after the other.

use super::weights::{Rules, Taps};
use super::{Pass, passes};
use crate::Result;
use crate::cpu::{Float, for_pieces};
use crate::ops::Call;
use crate::ops::operands::host_operand;
use crate::tensor::{HostView, HostViewMut, Scratch};

pub fn resize<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let y = outputs[0].as_slice_mut::<T>();
    if y.is_empty() {
        return Ok(());
    }
    let (passes, rules) = passes(call)?;
    let Some((last, before)) = passes.split_last() else {
        y.copy_from_slice(x);
        return Ok(());
    };
    let mut held: Option<Scratch<T>> = None;
    for pass in before {
        let mut next = Scratch::for_overwrite(pass.size())?;
        apply(pass, &rules, held.as_deref().unwrap_or(x), &mut next);
        held = Some(next);
    }
    apply(last, &rules, held.as_deref().unwrap_or(x), y);
    Ok(())
}

fn apply<T: Float>(pass: &Pass, rules: &Rules, x: &[T], y: &mut [T]) {
    let (axis, inner, taps) = (&pass.axis, pass.inner, pass.axis.taps(rules));
    let mut weights = vec![0.0; taps * axis.output];
    let starts: Vec<Taps> = weights
        .chunks_mut(taps)
        .enumerate()
        .map(|(index, weights)| axis.taps_of(index, rules, weights))
        .collect();
    if inner == 1 {
        let lines = Lines::new(&starts, &weights, axis.input);
        for_pieces(y, axis.output, 1, |start, piece| {
            for (y, x) in
                piece.chunks_mut(axis.output).zip(x[start / axis.output * axis.input..].chunks(axis.input))
            {
                lines.apply(x, y, T::from_f64(rules.extrapolation));
            }
        });
        return;
    }
    for_pieces(y, inner, taps, |start, piece| {
        for (index, row) in piece.chunks_mut(inner).enumerate() {
            let at = start / inner + index;
            let (outer, output) = (at / axis.output, at % axis.output);
            let Taps::From(first) = starts[output] else {
                row.fill(T::from_f64(rules.extrapolation));
                continue;
            };
            let line = |tap: usize| {
                let place = (first + tap as i64).clamp(0, axis.input as i64 - 1) as usize;
                &x[(outer * axis.input + place) * inner..][..inner]
            };
            let taken: Vec<(f64, &[T])> = (0..taps)
                .map(|tap| (weights[output * taps + tap], line(tap)))
                .filter(|(weight, _)| *weight != 0.0)
                .collect();
            if let [(1.0, only)] = taken[..] {
                row.copy_from_slice(only);
                continue;
            }
            if let [(first, a), (second, b)] = taken[..] {
                let pairs = a.iter().zip(b);
                row.iter_mut().zip(pairs).for_each(|(y, (a, b))| {
                    *y = T::from_f64(first * a.to_f64() + second * b.to_f64());
                });
                continue;
            }
            for (column, y) in row.iter_mut().enumerate() {
                let sum: f64 = taken.iter().map(|(weight, line)| weight * line[column].to_f64()).sum();
                *y = T::from_f64(sum);
            }
        }
    });
}

/// How the elements of a line are made of those of another.
enum Lines {
    /// Each is repeated so many times.
    Repeated(usize),
    /// Each is a copy of that one.
    Copied(Vec<usize>),
    /// Each is a sum: its taps, one after the other, end there; none of them where it is extrapolated.
    Summed(Vec<(usize, f64)>, Vec<Option<usize>>),
}

impl Lines {
    fn new(starts: &[Taps], weights: &[f64], input: usize) -> Lines {
        let taps = weights.len() / starts.len().max(1);
        let (mut terms, mut ends) = (Vec::with_capacity(weights.len()), Vec::with_capacity(starts.len()));
        for (start, weights) in starts.iter().zip(weights.chunks(taps.max(1))) {
            let Taps::From(first) = start else {
                ends.push(None);
                continue;
            };
            let place = |tap: usize| (first + tap as i64).clamp(0, input as i64 - 1) as usize;
            terms.extend(
                weights
                    .iter()
                    .enumerate()
                    .filter(|(_, weight)| **weight != 0.0)
                    .map(|(tap, &weight)| (place(tap), weight)),
            );
            ends.push(Some(terms.len()));
        }
        let single = ends.iter().enumerate().all(|(index, end)| *end == Some(index + 1));
        if !single || terms.iter().any(|(_, weight)| *weight != 1.0) {
            return Lines::Summed(terms, ends);
        }
        let times = starts.len() / input.max(1);
        let places: Vec<usize> = terms.into_iter().map(|(place, _)| place).collect();
        let repeated = starts.len() == times * input
            && places.iter().enumerate().all(|(index, &place)| place == index / times);
        if repeated { Lines::Repeated(times) } else { Lines::Copied(places) }
    }

    fn apply<T: Float>(&self, x: &[T], y: &mut [T], extrapolation: T) {
        match self {
            Lines::Repeated(2) => repeat::<T, 2>(x, y),
            Lines::Repeated(4) => repeat::<T, 4>(x, y),
            Lines::Repeated(8) => repeat::<T, 8>(x, y),
            Lines::Repeated(times) => y.chunks_exact_mut(*times).zip(x).for_each(|(y, &x)| y.fill(x)),
            Lines::Copied(places) => y.iter_mut().zip(places).for_each(|(y, &place)| *y = x[place]),
            Lines::Summed(terms, ends) => {
                let mut from = 0;
                for (y, end) in y.iter_mut().zip(ends) {
                    *y = end.map_or(extrapolation, |end| {
                        let terms = &terms[std::mem::replace(&mut from, end)..end];
                        match terms {
                            [(place, 1.0)] => x[*place],
                            _ => T::from_f64(
                                terms.iter().map(|&(place, weight)| weight * x[place].to_f64()).sum(),
                            ),
                        }
                    });
                }
            }
        }
    }
}

fn repeat<T: Float, const TIMES: usize>(x: &[T], y: &mut [T]) {
    y.as_chunks_mut::<TIMES>().0.iter_mut().zip(x).for_each(|(y, &x)| *y = [x; TIMES]);
}
