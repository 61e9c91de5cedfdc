//! What a device offers to the rules: column order statistics, pairwise distances and sums of weighted rows. Everything
//! between them is decided on the host by pure functions.

pub use crate::kernels::columns::Centre;
use crate::kernels::columns::{Even, NanPolicy};
use crate::{Error, Result, Tensor, invalid, mismatch};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of a row after a look at all of its values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowState {
    /// The lowest coordinate that is NaN or infinite.
    pub first: Option<usize>,
    /// Whether a NaN is among the values.
    pub nan: bool,
}

/// A matrix of `n` by `n` numbers between rows.
#[derive(Debug, Clone)]
pub struct Square {
    /// Number of rows.
    pub n: usize,
    /// Row after row.
    pub values: Vec<f64>,
    /// The power of two that the rows were scaled by first; 1 unless squares of them overflow or vanish.
    pub scale: f64,
}

impl Square {
    /// The number between two rows.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.n + j]
    }

    /// As distances: +Inf where a row is `bad`, 0 on the diagonal.
    pub fn hide(&mut self, bad: &[bool]) {
        for i in 0..self.n {
            for j in (0..self.n).filter(|&j| bad[i] || bad[j]) {
                self.values[i * self.n + j] = f64::INFINITY;
            }
            self.values[i * self.n + i] = 0.0;
        }
    }

    /// The numbers between one row and all.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.n..(i + 1) * self.n]
    }
}

/// Rows between which distances are kept, at most: two gigabytes of them, and as much for sums on the way.
const MOST_PAIRED_ROWS: usize = 16_384;

/// An error for more rows than can be compared with each other.
pub fn check_paired(n: usize) -> Result<()> {
    if n > MOST_PAIRED_ROWS {
        return mismatch!(
            "aggregate: a rule that compares rows with each other takes at most {MOST_PAIRED_ROWS}, got {n}"
        );
    }
    Ok(())
}

/// An error for a starting point that is not finite.
pub fn check_start(state: &RowState) -> Result<()> {
    match state.first {
        None => Ok(()),
        Some(coordinate) => {
            invalid!("aggregate: 'start' holds NaN or an infinity: coordinate {coordinate}")
        }
    }
}

/// A sum of weighted rows over a divisor; rows that are not named have no part in it, whatever they hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Combination {
    /// Rows and their weights.
    pub terms: Vec<(usize, f64)>,
    /// Weight of the starting point.
    pub start: f64,
    /// What the sum is divided by.
    pub divisor: f64,
}

impl Combination {
    /// The mean of those rows.
    pub fn mean(rows: &[usize]) -> Combination {
        let terms = rows.iter().map(|&row| (row, 1.0)).collect();
        Combination { terms, start: 0.0, divisor: rows.len() as f64 }
    }
}

/// How many values a trimmed mean leaves out at each end of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    /// So many.
    Count(usize),
    /// This share of the values that count, rounded down.
    Share(f64),
}

impl Cut {
    /// Values left out at each end of `n`. A product within 1e-9 below a whole number counts as that number, so that 0.29 of
    /// 100 is 29; one value at least is left.
    pub fn of(self, n: usize) -> usize {
        match self {
            Cut::Count(count) => count,
            Cut::Share(share) => ((share * n as f64 + 1e-9).floor() as usize).min(n.saturating_sub(1) / 2),
        }
    }
}

/// A statistic of each column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnRule {
    /// The mean, weighted where weights are given.
    Mean(Option<Vec<f64>>),
    /// The median.
    Median(Even),
    /// The value at which the running weight of the sorted column passes half of the total.
    WeightedMedian(Vec<f64>, Even),
    /// The mean without the ends.
    Trimmed(Cut),
    /// The mean of the values nearest to a centre, all but `leave`; a column with fewer than `least` values gives NaN.
    Nearest {
        /// The centre.
        centre: Centre,
        /// Values left out.
        leave: usize,
        /// Values needed.
        least: usize,
    },
}

/// The rows of a call on a device.
pub trait Engine {
    /// A look at all values.
    fn scan(&self) -> Result<Vec<RowState>>;
    /// Leaves those rows alone in the round, in that order.
    fn keep(&mut self, rows: &[usize]);
    /// Puts combinations of the rows in their place.
    fn replace(&mut self, rows: &[Combination]) -> Result<()>;
    /// Squared distances from differences, +Inf where a row is `bad`, 0 on the diagonal.
    fn distances(&self, bad: &[bool]) -> Result<Square>;
    /// Distances (not squared) from a row, or from zero; +Inf for `bad` rows.
    fn lengths(&self, from: Option<usize>, bad: &[bool]) -> Result<Vec<f64>>;
    /// Products of the rows' differences to a safe centre, the coordinate-wise median of those that are not `bad`. The starting
    /// point takes part as a last row; `bad` rows as the centre itself.
    fn products(&self, bad: &[bool]) -> Result<Square>;
    /// A statistic of each column of those rows.
    fn columns(&self, rows: &[usize], rule: &ColumnRule, nan: NanPolicy) -> Result<Tensor>;
    /// A combination of the rows.
    fn sum(&self, combination: &Combination) -> Result<Tensor>;
}

/// How far a call has come and whether it is still wanted.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    cancelled: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    total: Arc<AtomicU64>,
}

impl Watch {
    /// A watch over a flag that others set.
    pub fn over(cancelled: Arc<AtomicBool>) -> Watch {
        Watch { cancelled, ..Watch::default() }
    }

    /// Says how many columns the passes of the call visit together.
    pub fn expect(&self, columns: u64) {
        self.total.store(columns.max(1), Ordering::Relaxed);
    }

    /// Counts visited columns; says whether to go on.
    pub fn advance(&self, columns: usize) -> bool {
        self.done.fetch_add(columns as u64, Ordering::Relaxed);
        !self.cancelled.load(Ordering::Acquire)
    }

    /// The part that is done, 0 to 1.
    pub fn progress(&self) -> f64 {
        let total = self.total.load(Ordering::Relaxed);
        if total == 0 {
            return 0.0;
        }
        (self.done.load(Ordering::Relaxed) as f64 / total as f64).min(1.0)
    }

    /// An error once the call was given up.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Acquire) {
            return Err(Error::Aborted("the call was aborted by its signal".into()));
        }
        Ok(())
    }
}
