//! resize on the CPU: sums in float64, one axis after the other.

use super::weights::{Rules, Taps};
use super::{Pass, passes};
use crate::Result;
use crate::cpu::{Float, for_pieces};
use crate::ops::Call;
use crate::ops::operands::host_operand;
use crate::tensor::{HostView, HostViewMut};

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
    let mut held: Option<Vec<T>> = None;
    for pass in before {
        let mut next = vec![T::ZERO; pass.size()];
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
            for (column, y) in row.iter_mut().enumerate() {
                let sum: f64 = taken.iter().map(|(weight, line)| weight * line[column].to_f64()).sum();
                *y = T::from_f64(sum);
            }
        }
    });
}
