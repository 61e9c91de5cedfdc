//! CPU form: blocks of columns in cache, through the same networks for few rows and by quickselect beyond.

use super::Options;
use crate::cpu::{Float, for_pieces, install, simd};
use crate::kernels::columns::network::Network;
use crate::kernels::columns::{Even, NanPolicy};
use crate::ops::Call;
use crate::ops::operands::host_operand;
use crate::tensor::{HostView, HostViewMut};
use crate::{Result, for_float};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Row counts up to which a network is quicker than quickselect.
pub(crate) const NETWORK_ROWS: usize = 128;
/// Bytes of a block of columns: half of a common first-level cache, or a line's width of columns where that is more.
const BLOCK_BYTES: usize = 16 * 1024;

pub fn run(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    for_float!(call.dtype(), typed(call, inputs, outputs))
}

fn typed<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let rows = host_operand::<T>(call, inputs, 0)?;
    let (n, d) = (call.input(0).dims[0], call.input(0).dims[1]);
    let options = Options::of(call);
    let list = if options.searches() { options.surviving(&scan(rows, n, d))? } else { None };
    let row = |index: usize| &rows[index * d..(index + 1) * d];
    let rows: Vec<&[T]> = match list {
        Some(list) => list.iter().map(|&index| row(index as usize)).collect(),
        None => (0..n).map(row).collect(),
    };
    medians(&rows, options, outputs[0].as_slice_mut::<T>(), &|_| true);
    Ok(())
}

/// Columns of a block of `count` rows of `T`.
pub(crate) fn block_width<T>(count: usize) -> usize {
    (BLOCK_BYTES / (count * size_of::<T>())).clamp(64 / size_of::<T>(), 512) & !7
}

/// Medians of the columns of rows as long as `out`; under `drop` and `reject` they are known to be finite. `more` is told the
/// columns of each block that is done and says whether to go on.
pub(crate) fn medians<T: Float>(
    rows: &[&[T]],
    options: Options,
    out: &mut [T],
    more: &(dyn Fn(usize) -> bool + Sync),
) {
    let count = rows.len();
    let width = block_width::<T>(count);
    let network = (count <= NETWORK_ROWS).then(|| cached_network(count, ranks(count, options)));
    let columns = Columns { rows, options, network: network.as_deref() };
    for_pieces(out, width, count, |start, piece| {
        let mut block = vec![T::ZERO; count * width];
        for (index, out) in piece.chunks_mut(width).enumerate() {
            columns.medians(start + index * width, out, &mut block);
            if !more(out.len()) {
                return;
            }
        }
    });
}

/// Whether a value is neither NaN nor infinite.
pub(crate) fn finite<T: Float>(value: T) -> bool {
    value * T::ZERO == T::ZERO
}

/// Each row's lowest coordinate that is not finite.
fn scan<T: Float>(rows: &[T], n: usize, d: usize) -> Vec<u64> {
    if d == 0 {
        return vec![u64::MAX; n];
    }
    let first = |row: &[T]| {
        // Whole chunks are tested without leaving early, which the compiler turns into vector code.
        for (index, chunk) in row.chunks(1024).enumerate() {
            if !chunk.iter().fold(true, |all, &value| all & finite(value)) {
                let at = chunk.iter().position(|&value| !finite(value)).unwrap_or(0);
                return (index * 1024 + at) as u64;
            }
        }
        u64::MAX
    };
    install(|| rows.par_chunks(d).map(first).collect())
}

/// Ranks that a network leaves on its outputs, ascending.
fn ranks(n: usize, options: Options) -> Vec<usize> {
    let upper = options.even.rank(n);
    let both = match options.nan {
        NanPolicy::Omit => options.even == Even::Mean && n > 1,
        _ => options.even.averages(n),
    };
    if both { vec![upper - 1, upper] } else { vec![upper] }
}

type Networks = HashMap<(usize, Vec<usize>), Arc<Network>>;

/// The network of `n` rows for those ranks, ascending; with more than one of them each ends on the wire of its number.
pub(crate) fn cached_network(n: usize, ranks: Vec<usize>) -> Arc<Network> {
    static NETWORKS: LazyLock<Mutex<Networks>> = LazyLock::new(Mutex::default);
    let mut networks = NETWORKS.lock().unwrap_or_else(PoisonError::into_inner);
    networks.entry((n, ranks.clone())).or_insert_with(|| Arc::new(Network::select(n, &ranks))).clone()
}

/// Columns of the rows that take part.
struct Columns<'a, T> {
    rows: &'a [&'a [T]],
    options: Options,
    network: Option<&'a Network>,
}

impl<T: Float> Columns<'_, T> {
    /// Medians of the columns from `start` on, one for each of `out`.
    fn medians(&self, start: usize, out: &mut [T], block: &mut [T]) {
        let width = out.len();
        let block = &mut block[..self.rows.len() * width];
        let mut any = false;
        for (row, line) in self.rows.iter().zip(block.chunks_exact_mut(width)) {
            line.copy_from_slice(&row[start..start + width]);
            any |= line.iter().fold(false, |any, &value| any | value.is_nan());
        }
        let nans = if any { self.replace_nan(block, width) } else { vec![0; width] };
        match self.network {
            Some(network) => self.by_network(network, block, out, &nans),
            None => self.by_selection(block, out, &nans),
        }
        for (value, &nans) in out.iter_mut().zip(&nans) {
            if value.is_nan() || self.lost(nans) {
                *value = T::NAN;
            }
        }
    }

    /// Whether that many NaN in a column make its median NaN.
    fn lost(&self, nans: usize) -> bool {
        match self.options.nan {
            NanPolicy::Propagate => nans > 0,
            NanPolicy::Omit => nans == self.rows.len(),
            _ => self.options.even.rank(self.rows.len()) >= self.rows.len() - nans,
        }
    }

    /// Replaces NaN by infinities and counts them. Under `omit` a network picks a fixed rank, so as many NaN become -Inf as move
    /// the wanted rank of the other values there.
    fn replace_nan(&self, block: &mut [T], width: usize) -> Vec<usize> {
        let mut nans = vec![0; width];
        for line in block.chunks_exact(width) {
            nans.iter_mut().zip(line).for_each(|(nans, value)| *nans += usize::from(value.is_nan()));
        }
        let balanced = self.options.nan == NanPolicy::Omit && self.network.is_some();
        let rank = self.options.even.rank(self.rows.len());
        let low = |&nans: &usize| match self.rows.len() - nans {
            left if balanced && left > 0 => rank - self.options.even.rank(left),
            _ => 0,
        };
        let mut below: Vec<usize> = nans.iter().map(low).collect();
        for line in block.chunks_exact_mut(width) {
            for (value, below) in line.iter_mut().zip(&mut below) {
                if value.is_nan() {
                    *value = if *below > 0 { -T::INFINITY } else { T::INFINITY };
                    *below = below.saturating_sub(1);
                }
            }
        }
        nans
    }

    fn by_network(&self, network: &Network, block: &mut [T], out: &mut [T], nans: &[usize]) {
        let width = out.len();
        let wire = |index: usize| index * width..(index + 1) * width;
        run_network(network, block, width);
        let upper = network.outputs[network.outputs.len() - 1];
        out.copy_from_slice(&block[wire(upper)]);
        if let [lower, _] = network.outputs[..] {
            for ((value, &lower), &nans) in out.iter_mut().zip(&block[wire(lower)]).zip(nans) {
                if self.averages(nans) {
                    *value = halves(lower, *value);
                }
            }
        }
    }

    /// Whether the median of a column with that many NaN is the mean of two values.
    fn averages(&self, nans: usize) -> bool {
        let left = if self.options.nan == NanPolicy::Omit { self.rows.len() - nans } else { self.rows.len() };
        left > 0 && self.options.even.averages(left)
    }

    fn by_selection(&self, block: &[T], out: &mut [T], nans: &[usize]) {
        let width = out.len();
        let mut column = vec![T::ZERO; self.rows.len()];
        for (lane, (value, &nans)) in out.iter_mut().zip(nans).enumerate() {
            column.iter_mut().zip(block[lane..].iter().step_by(width)).for_each(|(to, &from)| *to = from);
            let left =
                if self.options.nan == NanPolicy::Omit { self.rows.len() - nans } else { self.rows.len() };
            if left == 0 {
                continue;
            }
            let order = |a: &T, b: &T| a.partial_cmp(b).unwrap_or(Ordering::Equal);
            let (below, &mut picked, _) = column.select_nth_unstable_by(self.options.even.rank(left), order);
            *value = picked;
            if self.averages(nans) {
                let lower = below
                    .iter()
                    .copied()
                    .fold(-T::INFINITY, |most, value| if value > most { value } else { most });
                *value = halves(lower, picked);
            }
        }
    }
}

/// Runs the network on lines of `width` columns, by the widest vectors of this processor.
pub(crate) fn run_network<T: Float>(network: &Network, block: &mut [T], width: usize) {
    simd::vectorize(
        #[inline(always)]
        || {
            let wire = |index: usize| index * width..(index + 1) * width;
            for step in &network.steps {
                let Ok([low, high]) = block.get_disjoint_mut([wire(step.low), wire(step.high)]) else {
                    unreachable!("a comparator joins two wires");
                };
                exchange(low, high, step.keep_low, step.keep_high);
            }
        },
    );
}

/// 0.5 * lower + 0.5 * upper.
pub(crate) fn halves<T: Float>(lower: T, upper: T) -> T {
    let half = T::from_f64(0.5);
    half * lower + half * upper
}

/// The comparator on whole lines: plain loops that become vector minima and maxima.
#[inline(always)]
fn exchange<T: Float>(low: &mut [T], high: &mut [T], keep_low: bool, keep_high: bool) {
    let pairs = low.iter_mut().zip(high);
    match (keep_low, keep_high) {
        (true, true) => pairs.for_each(|(low, high)| {
            let (a, b) = (*low, *high);
            *low = if b < a { b } else { a };
            *high = if b < a { a } else { b };
        }),
        (true, false) => pairs.for_each(|(low, high)| *low = if *high < *low { *high } else { *low }),
        _ => pairs.for_each(|(low, high)| *high = if *high < *low { *low } else { *high }),
    }
}
