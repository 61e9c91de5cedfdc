//! A look at all values.

use super::Cuda;
use super::rows::Rows;
use super::tables;
use crate::Result;
use crate::aggregate::engine::RowState;
use crate::kernels::{Arg, grid_x};

/// Words of a piece of a row: its lowest column that is not finite, whether one is NaN, its largest magnitude.
const WORDS: usize = 3;

/// What is known of a row after it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// Where it is not finite.
    pub state: RowState,
    /// The largest magnitude of finite values.
    pub largest: f64,
}

/// What is known of each row after it.
pub fn run(cuda: &Cuda) -> Result<Vec<RowState>> {
    Ok(look(cuda, &cuda.rows)?.into_iter().map(|seen| seen.state).collect())
}

/// A look at all values of those rows.
pub fn look(cuda: &Cuda, rows: &Rows) -> Result<Vec<Seen>> {
    let (launcher, all) = (cuda.launcher, rows.all());
    let n = all.len();
    let kernel = format!("rows_scan_{}", cuda.result.dtype.suffix());
    let mut chunks = Vec::new();
    rows.pass(launcher, &all, &cuda.watch, |chunk| {
        let pieces = tables::pieces(launcher, n as u64, chunk.width() as u64);
        let blocks = n as u64 * pieces;
        let out = launcher.scratch(blocks as usize * WORDS * 8)?;
        let table = tables::addresses(launcher, &chunk.pointers, &vec![false; n])?;
        let arguments = [
            Arg::Ptr(table.ptr()),
            Arg::Ptr(out.ptr()),
            Arg::U64(chunk.width() as u64),
            Arg::U64(chunk.columns.start as u64),
            Arg::U32(pieces as u32),
        ];
        launcher.launch(&kernel, grid_x(blocks, 256, 0)?, &arguments)?;
        chunks.push((out, pieces as usize));
        Ok(())
    })?;
    let mut seen = vec![Seen::default(); n];
    for (out, pieces) in chunks {
        let mut words = vec![0u64; n * pieces * WORDS];
        launcher.core().read(out.ptr(), bytemuck::cast_slice_mut(&mut words))?;
        for (piece, words) in words.as_chunks::<WORDS>().0.iter().enumerate() {
            note(&mut seen[piece / pieces], words);
        }
    }
    Ok(seen)
}

/// Pieces come from low columns to high ones.
fn note(seen: &mut Seen, &[first, nan, largest]: &[u64; WORDS]) {
    if first != u64::MAX && seen.state.first.is_none() {
        seen.state.first = Some(first as usize);
    }
    seen.state.nan |= nan != 0;
    seen.largest = seen.largest.max(f64::from_bits(largest));
}
