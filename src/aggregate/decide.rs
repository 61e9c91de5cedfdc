//! Choices among rows, from distances alone: pure functions in float64, over the compute threads where rows are many. Rows with values that are not finite come last,
//! then the lower score decides, then the lower row.

use super::engine::Square;
use crate::cpu::install;
use rayon::prelude::*;

/// Rows by score, best first.
pub fn order(scores: &[f64], bad: &[bool]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..scores.len()).collect();
    rows.sort_by(|&a, &b| bad[a].cmp(&bad[b]).then(scores[a].total_cmp(&scores[b])).then(a.cmp(&b)));
    rows
}

/// Each row's score: the sum of its `neighbours` smallest squared distances to other rows.
pub fn krum_scores(distances: &Square, neighbours: usize) -> Vec<f64> {
    let score = |row: usize| {
        let mut others: Vec<f64> =
            (0..distances.n).filter(|&other| other != row).map(|other| distances.at(row, other)).collect();
        others.sort_unstable_by(f64::total_cmp);
        others.iter().take(neighbours).sum()
    };
    each(distances.n, score)
}

/// What a function makes of each of `n` rows.
fn each<R: Send>(n: usize, of: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    install(|| (0..n).into_par_iter().map(of).collect())
}

/// `count` rows by Krum again and again, each time among the rows not picked yet, with `f` hostile ones among them.
pub fn bulyan(distances: &Square, bad: &[bool], f: usize, count: usize) -> Vec<usize> {
    let n = distances.n;
    let near = |row: usize| {
        let mut others: Vec<usize> = (0..n).filter(|&other| other != row).collect();
        others
            .sort_unstable_by(|&a, &b| distances.at(row, a).total_cmp(&distances.at(row, b)).then(a.cmp(&b)));
        others
    };
    let nearest: Vec<Vec<usize>> = each(n, near);
    let mut left = vec![true; n];
    let mut picked = Vec::with_capacity(count);
    while picked.len() < count {
        let neighbours = (n - picked.len()).saturating_sub(f + 2).max(1);
        let score = |row: usize| -> f64 {
            let others = nearest[row].iter().filter(|&&other| left[other]);
            others.take(neighbours).map(|&other| distances.at(row, other)).sum()
        };
        let rows = each(n, |row| left[row].then(|| (bad[row], score(row), row)));
        let best = rows
            .into_iter()
            .flatten()
            .min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        let Some((_, _, row)) = best else { break };
        left[row] = false;
        picked.push(row);
    }
    picked
}

/// The `count` rows whose largest distance from each other is least; of equal ones the first in the order of rows. Where fewer
/// rows than that are finite, all of those and the first of the others.
pub fn least_diameter(distances: &Square, bad: &[bool], count: usize) -> Vec<usize> {
    let finite: Vec<usize> = (0..distances.n).filter(|&row| !bad[row]).collect();
    if finite.len() < count {
        let others = (0..distances.n).filter(|&row| bad[row]);
        let mut rows: Vec<usize> = finite.iter().copied().chain(others).take(count).collect();
        rows.sort_unstable();
        return rows;
    }
    let mut search = Search {
        distances,
        rows: &finite,
        count,
        chosen: Vec::new(),
        best: Vec::new(),
        least: f64::INFINITY,
    };
    search.extend(0, 0.0);
    search.best
}

/// A walk over subsets in the order of their rows, cut short where the diameter is no better already.
struct Search<'a> {
    distances: &'a Square,
    rows: &'a [usize],
    count: usize,
    chosen: Vec<usize>,
    best: Vec<usize>,
    least: f64,
}

impl Search<'_> {
    fn extend(&mut self, from: usize, diameter: f64) {
        if self.chosen.len() == self.count {
            self.best.clone_from(&self.chosen);
            self.least = diameter;
            return;
        }
        let missing = self.count - self.chosen.len();
        for next in from..=self.rows.len() - missing {
            let row = self.rows[next];
            let wider =
                self.chosen.iter().fold(diameter, |most, &other| most.max(self.distances.at(row, other)));
            if wider < self.least || self.best.is_empty() {
                self.chosen.push(row);
                self.extend(next + 1, wider);
                self.chosen.pop();
            }
        }
    }
}

/// For each row the `count` rows nearest to it, itself among them, in the order of rows.
pub fn nearest_rows(distances: &Square, count: usize) -> Vec<Vec<usize>> {
    let near = |row: usize| {
        let mut rows: Vec<usize> = (0..distances.n).collect();
        let own = |other: usize| if other == row { -1.0 } else { distances.at(row, other) };
        rows.sort_by(|&a, &b| own(a).total_cmp(&own(b)).then(a.cmp(&b)));
        rows.truncate(count);
        rows.sort_unstable();
        rows
    };
    each(distances.n, near)
}

/// Groups of `size` rows of a shuffle, the last perhaps smaller. The generator is SplitMix64 from `seed`; the shuffle goes down
/// from the last row and swaps each with one of those up to it, `(state * rows) >> 64`.
pub fn buckets(n: usize, size: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut state = seed;
    let mut below = |count: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        ((u128::from(word) * count as u128) >> 64) as usize
    };
    let mut rows: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        rows.swap(last, below(last + 1));
    }
    rows.chunks(size).map(<[usize]>::to_vec).collect()
}

/// Factors that shorten rows to at most `most`; `bad` rows stay as they are.
pub fn clip_factors(lengths: &[f64], bad: &[bool], most: f64) -> Vec<f64> {
    let factor = |length: f64, bad: bool| if bad || length <= most { 1.0 } else { most / length };
    lengths.iter().zip(bad).map(|(&length, &bad)| factor(length, bad)).collect()
}

/// The length that ARC clips to: the longest but `floor(2 f (n - f) / n)`. `None` where nothing is clipped.
pub fn arc_length(lengths: &[f64], f: usize) -> Option<f64> {
    let n = lengths.len();
    let clipped = 2 * f * (n - f) / n;
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let length = *sorted.get(n.checked_sub(clipped + 1)?)?;
    (clipped > 0 && length.is_finite()).then_some(length)
}
