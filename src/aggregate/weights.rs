//! Iterations in the space of weights: every point between rows is a sum of weighted rows, and its distances follow from the
//! products of the rows' differences to a centre near most of them, so that a far row costs no digits.

use super::engine::Square;

/// Weights of the rows of a point, and how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// One for each row of the products.
    pub weights: Vec<f64>,
    /// Steps taken.
    pub steps: usize,
}

/// How a geometric median is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weiszfeld {
    /// Distances below this count as this.
    pub nu: f64,
    /// Most steps.
    pub iterations: usize,
    /// A step shorter than this part of the median distance is the last.
    pub tolerance: f64,
}

/// Squared distances of all rows to the centre plus the weighted rows.
fn squared(products: &Square, weights: &[f64]) -> Vec<f64> {
    let inner: Vec<f64> =
        (0..products.n).map(|row| products.row(row).iter().zip(weights).map(|(g, w)| g * w).sum()).collect();
    let whole: f64 = inner.iter().zip(weights).map(|(g, w)| g * w).sum();
    (0..products.n).map(|row| (products.at(row, row) - 2.0 * inner[row] + whole).max(0.0)).collect()
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

impl Weiszfeld {
    /// The point with the least sum of distances to the rows that are not `bad`, by Weiszfeld's steps. The last row of the
    /// products, the starting point, has no part. The first step weighs rows by their distances to the centre, none of them
    /// more than one at the median distance.
    pub fn median(self, products: &Square, bad: &[bool]) -> Found {
        let rows: Vec<usize> = (0..products.n - 1).filter(|&row| !bad[row]).collect();
        let mut weights = vec![0.0; products.n];
        if rows.is_empty() {
            return Found { weights, steps: 0 };
        }
        let nu = self.nu * products.scale;
        let lengths = |squares: &[f64]| -> Vec<f64> { rows.iter().map(|&row| squares[row].sqrt()).collect() };
        let first = lengths(&(0..products.n).map(|row| products.at(row, row)).collect::<Vec<_>>());
        let typical = middle(&first);
        weigh(&mut weights, &rows, &first, nu.max(typical));
        let least = nu.max(typical * 1e-12);
        for steps in 1..self.iterations {
            let before = weights.clone();
            let distances = lengths(&squared(products, &weights));
            weigh(&mut weights, &rows, &distances, least);
            let step: Vec<f64> = weights.iter().zip(&before).map(|(new, old)| new - old).collect();
            let moved: f64 = (0..products.n)
                .map(|row| step[row] * products.row(row).iter().zip(&step).map(|(g, s)| g * s).sum::<f64>())
                .sum();
            if moved.max(0.0).sqrt() <= self.tolerance * typical {
                return Found { weights, steps };
            }
        }
        Found { weights, steps: self.iterations }
    }
}

/// Weights 1 / max(least, distance), scaled to the sum 1.
fn weigh(weights: &mut [f64], rows: &[usize], distances: &[f64], least: f64) {
    let least = least.max(f64::MIN_POSITIVE);
    // Divided by the smallest distance, so that nothing overflows.
    let nearest = distances.iter().fold(f64::INFINITY, |near, &d| near.min(d.max(least)));
    for (&row, &distance) in rows.iter().zip(distances) {
        weights[row] = nearest / distance.max(least);
    }
    let total: f64 = rows.iter().map(|&row| weights[row]).sum();
    rows.iter().for_each(|&row| weights[row] /= total);
}

/// Centered clipping: `iterations` times the mean of all steps from the point to a row, each cut to the length `tau`, from the
/// starting point, which is the products' last row. A `bad` row counts and moves nothing.
pub fn centered_clipping(products: &Square, bad: &[bool], tau: f64, iterations: usize) -> Found {
    let n = products.n - 1;
    let tau = tau * products.scale;
    let mut weights = vec![0.0; n + 1];
    weights[n] = 1.0;
    for _ in 0..iterations {
        let squares = squared(products, &weights);
        let share = |row: usize| {
            let length = squares[row].sqrt();
            let cut = if length <= tau { 1.0 } else { tau / length };
            if bad[row] { 0.0 } else { cut / n as f64 }
        };
        let shares: Vec<f64> = (0..n).map(share).collect();
        let moved: f64 = shares.iter().sum();
        weights.iter_mut().for_each(|weight| *weight *= 1.0 - moved);
        weights.iter_mut().zip(&shares).for_each(|(weight, share)| *weight += share);
    }
    Found { weights, steps: iterations }
}
