//! Splitting of a result among the compute threads.

use super::install;
use crate::Result;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Work of one piece in `cost` units, about a nanosecond each: large against the price of handing it to a thread.
const PIECE: usize = 1 << 15;

/// Calls `work(start, piece)` on pieces of `out`, on the compute pool when there are several. A piece begins at a
/// multiple of `unit` elements; `cost` is the work of one element, 1 for a copy.
pub fn for_pieces<T: Send>(
    out: &mut [T],
    unit: usize,
    cost: usize,
    work: impl Fn(usize, &mut [T]) + Send + Sync,
) {
    let unit = unit.max(1);
    let piece = PIECE.div_ceil(unit.saturating_mul(cost.max(1))).saturating_mul(unit);
    if out.len() <= piece {
        if !out.is_empty() {
            work(0, out);
        }
        return;
    }
    let parts: Vec<_> = out.chunks_mut(piece).map(|part| Mutex::new(Some(part))).collect();
    in_parallel(parts.len(), &|index| {
        let part = parts[index].lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(part) = part {
            work(index * piece, part);
        }
    });
}

/// The same with work that may fail; the other pieces are done nevertheless. Gives one of the errors.
pub fn try_for_pieces<T: Send>(
    out: &mut [T],
    unit: usize,
    cost: usize,
    work: impl Fn(usize, &mut [T]) -> Result<()> + Send + Sync,
) -> Result<()> {
    let failed = Mutex::new(None);
    for_pieces(out, unit, cost, |start, piece| {
        if let Err(error) = work(start, piece) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// The one parallel loop. It is not generic on purpose: what the pool compiles for a closure takes kilobytes, and there are
/// thousands of callers.
fn in_parallel(count: usize, work: &(dyn Fn(usize) + Sync)) {
    install(|| (0..count).into_par_iter().for_each(work));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_result_once_and_keep_units_whole() {
        for (length, unit, cost) in
            [(0, 3, 1), (1, 1, 1), (100_001, 7, 1), (100_000, 40_000, 9), (99, 5, 100_000)]
        {
            let mut out = vec![usize::MAX; length];
            for_pieces(&mut out, unit, cost, |start, piece| {
                assert_eq!(start % unit, 0);
                for (offset, slot) in piece.iter_mut().enumerate() {
                    assert_eq!(*slot, usize::MAX);
                    *slot = start + offset;
                }
            });
            assert!(out.iter().enumerate().all(|(index, &value)| index == value));
        }
    }
}
