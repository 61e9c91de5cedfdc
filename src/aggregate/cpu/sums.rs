//! Sums of weighted rows, in float64.

use crate::aggregate::engine::{Combination, Watch};
use crate::cpu::{Float, for_pieces};

/// Columns summed at a time.
const WIDTH: usize = 1024;

/// The combination of rows, and of `start` where its weight is not 0.
pub fn sum<T: Float>(
    rows: &[&[T]],
    start: Option<&[T]>,
    combination: &Combination,
    out: &mut [T],
    watch: &Watch,
) {
    let Combination { terms, start: first, divisor } = combination;
    if let ([(row, weight)], true) = (&terms[..], *first == 0.0)
        && weight == divisor
    {
        out.copy_from_slice(rows[*row]);
        watch.advance(out.len());
        return;
    }
    let start = start.filter(|_| *first != 0.0).map(|start| (start, *first));
    let terms: Vec<(&[T], f64)> =
        start.into_iter().chain(terms.iter().map(|&(row, weight)| (rows[row], weight))).collect();
    for_pieces(out, WIDTH, terms.len(), |at, piece| {
        let mut total = [0.0f64; WIDTH];
        for (index, out) in piece.chunks_mut(WIDTH).enumerate() {
            let (at, total) = (at + index * WIDTH, &mut total[..out.len()]);
            total.fill(0.0);
            for (row, weight) in &terms {
                let line = &row[at..at + out.len()];
                total.iter_mut().zip(line).for_each(|(total, value)| *total += weight * value.to_f64());
            }
            out.iter_mut().zip(&*total).for_each(|(out, total)| *out = canonical(total / divisor));
            if !watch.advance(out.len()) {
                return;
            }
        }
    });
}

/// The nearest value of the type; every NaN is the same one.
pub fn canonical<T: Float>(value: f64) -> T {
    if value.is_nan() { T::NAN } else { T::from_f64(value) }
}
