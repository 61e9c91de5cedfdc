//! The engines on the host: columns in blocks that fit the cache, pairs of rows, weighted sums, over the compute threads.

mod columns;
pub(super) mod pairs;
mod sums;

use super::engine::{ColumnRule, Combination, Engine, RowState, Square, Watch, check_paired, check_start};
use crate::cpu::{Float, install};
use crate::kernels::columns::{Even, NanPolicy};
use crate::ops::Meta;
use crate::ops::median::cpu::finite;
use crate::tensor::HostBuffer;
use crate::{Result, Tensor};
use rayon::prelude::*;
use std::borrow::Cow;

/// Rows in host memory.
pub struct Cpu<'a, T: Float> {
    /// The rows, the caller's or made of them.
    pub rows: Vec<Cow<'a, [T]>>,
    /// The starting point; zero where there is none.
    pub start: Option<&'a [T]>,
    /// Type and dims of a row.
    pub result: Meta,
    /// How far the call has come.
    pub watch: Watch,
}

impl<T: Float> Cpu<'_, T> {
    fn slices(&self) -> Vec<&[T]> {
        self.rows.iter().map(|row| &row[..]).collect()
    }

    fn made(&self, make: impl FnOnce(&mut [T]) -> Result<()>) -> Result<Tensor> {
        let mut buffer: HostBuffer = Tensor::host_buffer_for_overwrite(&self.result)?;
        make(buffer.view_mut(&self.result).as_slice_mut::<T>())?;
        self.watch.check()?;
        Ok(Tensor::from_host(buffer, &self.result))
    }
}

impl<T: Float> Engine for Cpu<'_, T> {
    fn scan(&self) -> Result<Vec<RowState>> {
        let rows = self.slices();
        let share = (self.result.size() / rows.len().max(1)).max(1);
        let state = |row: &&[T]| {
            if !self.watch.advance(share) {
                return RowState::default();
            }
            scan_row(row)
        };
        let states = install(|| rows.par_iter().map(state).collect());
        self.watch.check()?;
        Ok(states)
    }

    fn keep(&mut self, rows: &[usize]) {
        self.rows = rows.iter().map(|&row| self.rows[row].clone()).collect();
    }

    fn replace(&mut self, combinations: &[Combination]) -> Result<()> {
        let rows = self.slices();
        let mut made = Vec::with_capacity(combinations.len());
        for combination in combinations {
            let mut row = vec![T::ZERO; self.result.size()];
            sums::sum(&rows, None, combination, &mut row, &Watch::default());
            if !self.watch.advance(self.result.size() / combinations.len()) {
                break;
            }
            made.push(Cow::Owned(row));
        }
        self.watch.check()?;
        self.rows = made;
        Ok(())
    }

    fn distances(&self, bad: &[bool]) -> Result<Square> {
        check_paired(self.rows.len())?;
        let rows = self.slices();
        let pairs = |scale| pairs::all(&rows, None, scale, bad, &self.watch);
        let mut square = pairs::rescaled(pairs, bad, self.result.size(), || Ok(largest(&rows, bad)))?;
        square.hide(bad);
        Ok(square)
    }

    fn lengths(&self, from: Option<usize>, bad: &[bool]) -> Result<Vec<f64>> {
        let rows = self.slices();
        let from = from.map(|row| rows[row]);
        let share = self.result.size() / rows.len().max(1);
        let length = |(row, &bad): (&&[T], &bool)| {
            if bad || !self.watch.advance(share) { f64::INFINITY } else { pairs::length(row, from) }
        };
        let lengths = install(|| rows.par_iter().zip(bad).map(length).collect());
        self.watch.check()?;
        Ok(lengths)
    }

    fn products(&self, bad: &[bool]) -> Result<Square> {
        check_paired(self.rows.len())?;
        let finite: Vec<usize> = (0..self.rows.len()).filter(|&row| !bad[row]).collect();
        let centre = match finite[..] {
            [] => nothing(self.result.size()),
            _ => self
                .columns(&finite, &ColumnRule::Median(Even::Upper), NanPolicy::Last)?
                .host_view()?
                .as_slice()
                .to_vec(),
        };
        let zero = nothing(if self.start.is_none() { self.result.size() } else { 0 });
        let start = self.start.unwrap_or(&zero);
        check_start(&scan_row(start))?;
        let mut rows = self.slices();
        rows.push(start);
        let mut bad = bad.to_vec();
        bad.push(false);
        let pairs = |scale| pairs::all(&rows, Some(&centre), scale, &bad, &self.watch);
        pairs::rescaled(pairs, &bad, self.result.size(), || Ok(largest(&rows, &bad)))
    }

    fn columns(&self, rows: &[usize], rule: &ColumnRule, nan: NanPolicy) -> Result<Tensor> {
        let rows: Vec<&[T]> = rows.iter().map(|&row| &self.rows[row][..]).collect();
        self.made(|out| {
            columns::run(&rows, rule, nan, out, &self.watch);
            Ok(())
        })
    }

    fn sum(&self, combination: &Combination) -> Result<Tensor> {
        self.made(|out| {
            sums::sum(&self.slices(), self.start, combination, out, &self.watch);
            Ok(())
        })
    }
}

/// The largest magnitude in rows that are not `bad`.
fn largest<T: Float>(rows: &[&[T]], bad: &[bool]) -> f64 {
    let most = |row: &[T]| row.iter().fold(0.0f64, |most, value| most.max(value.to_f64().abs()));
    install(|| {
        let rows = rows.par_iter().zip(bad).filter(|pair| !pair.1);
        rows.map(|pair| most(pair.0)).reduce(|| 0.0, f64::max)
    })
}

fn nothing<T: Float>(size: usize) -> Vec<T> {
    vec![T::ZERO; size]
}

/// Where a row is not finite. Whole chunks are tested without leaving early, which the compiler turns into vector code.
fn scan_row<T: Float>(row: &[T]) -> RowState {
    let mut state = RowState::default();
    for (index, chunk) in row.chunks(1024).enumerate() {
        if chunk.iter().fold(true, |all, &value| all & finite(value)) {
            continue;
        }
        let first = chunk.iter().position(|&value| !finite(value)).unwrap_or(0);
        state.first = state.first.or(Some(index * 1024 + first));
        state.nan |= chunk.iter().any(|value| value.is_nan());
        if state.nan {
            break;
        }
    }
    state
}
