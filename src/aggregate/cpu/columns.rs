//! Statistics of columns: blocks of columns in cache, sorted by a network of compare-exchanges on whole lines for few rows
//! and column by column beyond.

use super::sums::canonical;
use crate::aggregate::engine::{Centre, ColumnRule, Cut, Watch};
use crate::aggregate::nan::counted;
use crate::cpu::{Float, for_pieces};
use crate::kernels::columns::network::Network;
use crate::kernels::columns::{Even, NanPolicy};
use crate::ops::median::Options;
use crate::ops::median::cpu::{NETWORK_ROWS, block_width, cached_network, halves, medians, run_network};
use std::cmp::Ordering;

/// The statistic of every column of the rows.
pub fn run<T: Float>(rows: &[&[T]], rule: &ColumnRule, nan: NanPolicy, out: &mut [T], watch: &Watch) {
    match rule {
        ColumnRule::Mean(weights) => mean(rows, weights.as_deref(), nan, out, watch),
        ColumnRule::Median(even) => {
            medians(rows, Options { even: *even, nan }, out, &|columns| watch.advance(columns));
        }
        ColumnRule::WeightedMedian(weights, even) => weighted_median(rows, weights, *even, nan, out, watch),
        ColumnRule::Trimmed(_) | ColumnRule::Nearest { .. } => {
            let n = rows.len();
            let network = (n <= NETWORK_ROWS).then(|| cached_network(n, (0..n).collect()));
            let sorted = Sorted { rows, rule, nan, network: network.as_deref() };
            let width = block_width::<T>(n);
            for_pieces(out, width, 2 * n, |start, piece| {
                let mut block = vec![T::ZERO; n * width];
                for (index, out) in piece.chunks_mut(width).enumerate() {
                    sorted.block(start + index * width, out, &mut block);
                    if !watch.advance(out.len()) {
                        return;
                    }
                }
            });
        }
    }
}

/// Means; under `omit` of the values that are no NaN. Rows of weight 0 have no part.
fn mean<T: Float>(rows: &[&[T]], weights: Option<&[f64]>, nan: NanPolicy, out: &mut [T], watch: &Watch) {
    const WIDTH: usize = 512;
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let terms: Vec<(&[T], f64)> = rows
        .iter()
        .enumerate()
        .map(|(row, values)| (*values, weight(row)))
        .filter(|term| term.1 != 0.0)
        .collect();
    let whole: f64 = terms.iter().map(|term| term.1).sum();
    for_pieces(out, WIDTH, rows.len(), |start, piece| {
        let (mut sums, mut totals) = ([0.0f64; WIDTH], [0.0f64; WIDTH]);
        for (index, out) in piece.chunks_mut(WIDTH).enumerate() {
            let at = start + index * WIDTH;
            let (sums, totals) = (&mut sums[..out.len()], &mut totals[..out.len()]);
            sums.fill(0.0);
            totals.fill(if nan == NanPolicy::Omit { 0.0 } else { whole });
            for (row, weight) in &terms {
                let line = &row[at..at + out.len()];
                if nan == NanPolicy::Omit {
                    let slots = sums.iter_mut().zip(totals.iter_mut());
                    slots.zip(line).filter(|(_, value)| !value.is_nan()).for_each(|((sum, total), value)| {
                        *sum += weight * value.to_f64();
                        *total += weight;
                    });
                } else {
                    sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += weight * value.to_f64());
                }
            }
            let means = sums.iter().zip(&*totals).map(|(sum, total)| canonical(sum / total));
            out.iter_mut().zip(means).for_each(|(out, mean)| *out = mean);
            if !watch.advance(out.len()) {
                return;
            }
        }
    });
}

fn weighted_median<T: Float>(
    rows: &[&[T]],
    weights: &[f64],
    even: Even,
    nan: NanPolicy,
    out: &mut [T],
    watch: &Watch,
) {
    for_pieces(out, 64, 16 * rows.len(), |start, piece| {
        let mut column: Vec<(T, f64)> = Vec::with_capacity(rows.len());
        for (offset, out) in piece.iter_mut().enumerate() {
            let pairs = rows.iter().zip(weights).map(|(row, &weight)| (row[start + offset], weight));
            column.clear();
            column.extend(pairs.filter(|pair| pair.1 > 0.0));
            *out = weighted_middle(&mut column, even, nan);
        }
        watch.advance(piece.len());
    });
}

/// The weighted median of one column. Ties are ordered by weight, so that sums do not depend on the order of rows.
fn weighted_middle<T: Float>(column: &mut Vec<(T, f64)>, even: Even, nan: NanPolicy) -> T {
    let nans = column.iter().filter(|pair| pair.0.is_nan()).count();
    if counted(nan, column.len(), nans).is_none() || column.is_empty() {
        return T::NAN;
    }
    if nan == NanPolicy::Omit {
        column.retain(|pair| !pair.0.is_nan());
    }
    column.sort_unstable_by(|a, b| {
        let values = a.0.is_nan().cmp(&b.0.is_nan()).then(a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
        values.then(a.1.total_cmp(&b.1))
    });
    let total: f64 = column.iter().map(|pair| pair.1).sum();
    let mut running = 0.0;
    let reached = column.iter().position(|pair| {
        running += pair.1;
        2.0 * running >= total
    });
    let lower = reached.unwrap_or(column.len() - 1);
    let upper = if 2.0 * running == total { (lower + 1).min(column.len() - 1) } else { lower };
    let value = match even {
        Even::Lower => column[lower].0,
        Even::Upper => column[upper].0,
        Even::Mean if lower == upper => column[lower].0,
        Even::Mean => halves(column[lower].0, column[upper].0),
    };
    if value.is_nan() { T::NAN } else { value }
}

/// Rules that look at sorted columns.
struct Sorted<'a, T> {
    rows: &'a [&'a [T]],
    rule: &'a ColumnRule,
    nan: NanPolicy,
    network: Option<&'a Network>,
}

impl<T: Float> Sorted<'_, T> {
    fn block(&self, start: usize, out: &mut [T], block: &mut [T]) {
        let (n, width) = (self.rows.len(), out.len());
        let block = &mut block[..n * width];
        let mut nans = vec![0usize; width];
        for (row, line) in self.rows.iter().zip(block.chunks_exact_mut(width)) {
            line.copy_from_slice(&row[start..start + width]);
            if line.iter().fold(false, |any, &value| any | value.is_nan()) {
                // As an infinity it sorts to the end, where the count tells it from one.
                for (value, nans) in line.iter_mut().zip(&mut nans).filter(|pair| pair.0.is_nan()) {
                    *value = T::INFINITY;
                    *nans += 1;
                }
            }
        }
        if let Some(network) = self.network {
            run_network(network, block, width);
            if nans.iter().all(|&nans| nans == 0) && self.trimmed_lines(block, out) {
                return;
            }
        }
        let mut column = vec![T::ZERO; n];
        for (lane, (out, &nans)) in out.iter_mut().zip(&nans).enumerate() {
            column.iter_mut().zip(block[lane..].iter().step_by(width)).for_each(|(to, &from)| *to = from);
            if self.network.is_none() {
                column.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
            }
            *out = canonical(self.finish(&column, nans));
        }
    }

    /// Trimmed means of a block without NaN, line by line; false for other rules.
    fn trimmed_lines(&self, block: &[T], out: &mut [T]) -> bool {
        let ColumnRule::Trimmed(cut) = self.rule else { return false };
        let (n, width) = (self.rows.len(), out.len());
        let cut = cut.of(n);
        let mut sums = vec![0.0f64; width];
        for line in block.chunks_exact(width).take(n - cut).skip(cut) {
            sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += value.to_f64());
        }
        let count = (n - 2 * cut) as f64;
        out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = canonical(sum / count));
        true
    }

    /// The statistic of one sorted column, whose last `nans` values stand for NaN.
    fn finish(&self, sorted: &[T], nans: usize) -> f64 {
        let Some(count) = counted(self.nan, sorted.len(), nans) else { return f64::NAN };
        let column = Column { sorted: &sorted[..count], real: sorted.len() - nans };
        match *self.rule {
            ColumnRule::Trimmed(cut) => column.trimmed(cut),
            ColumnRule::Nearest { centre, leave, least } if count >= least && count > leave => {
                let centre = match centre {
                    Centre::Median(even) => column.median(even),
                    Centre::Trimmed(cut) => column.trimmed(Cut::Count(cut)),
                };
                column.nearest(centre, count - leave)
            }
            _ => f64::NAN,
        }
    }
}

/// The values of a sorted column that count; those from `real` on are NaN.
struct Column<'a, T> {
    sorted: &'a [T],
    real: usize,
}

impl<T: Float> Column<'_, T> {
    fn at(&self, rank: usize) -> f64 {
        if rank < self.real { self.sorted[rank].to_f64() } else { f64::NAN }
    }

    fn median(&self, even: Even) -> f64 {
        let n = self.sorted.len();
        let upper = self.at(even.rank(n));
        if even.averages(n) { 0.5 * self.at(n / 2 - 1) + 0.5 * upper } else { upper }
    }

    fn mean(&self, from: usize, to: usize) -> f64 {
        if to > self.real || to <= from {
            return f64::NAN;
        }
        self.sorted[from..to].iter().map(|value| value.to_f64()).sum::<f64>() / (to - from) as f64
    }

    fn trimmed(&self, cut: Cut) -> f64 {
        let (n, cut) = (self.sorted.len(), cut.of(self.sorted.len()));
        if n <= 2 * cut { f64::NAN } else { self.mean(cut, n - cut) }
    }

    /// The mean of the `keep` values nearest to a centre; of equally near ones the lower count. They lie side by side: a low value
    /// gives way where it lies farther below the centre than the one that would come in for it lies above.
    fn nearest(&self, centre: f64, keep: usize) -> f64 {
        if centre.is_nan() || keep > self.real {
            return f64::NAN;
        }
        if centre == f64::INFINITY {
            // Everything else is equally far.
            let near = (0..self.real).rev().take_while(|&rank| self.at(rank) == centre).count();
            return if keep > near && self.at(0) == -centre { f64::NAN } else { centre };
        }
        let gives_way = |low: usize| {
            let above = self.at(low + keep);
            centre != f64::NEG_INFINITY && centre - self.at(low) > above - centre
        };
        let best = (0..self.sorted.len() - keep).take_while(|&low| gives_way(low)).count();
        self.mean(best, best + keep)
    }
}
