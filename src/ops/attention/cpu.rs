//! The CPU form: blocks of queries, each with its products, its softmax and its sums.

use super::super::Call;
use super::super::indices::Indices;
use super::super::operands::{host_operand, host_optional};
use super::problem::{GUARDED, HIDE};
use super::{Problem, at};
use crate::cpu::math::{fold_max, max, sum_f64};
use crate::cpu::{Math, Matrix, MatrixMut, install, matmul, simd};
use crate::tensor::{HostView, HostViewMut, Scratch};
use crate::{DType, Result};
use rayon::prelude::*;

/// Queries of a block.
const BLOCK: usize = 64;
/// Multiplications that are worth several threads.
const MANY: usize = 1 << 16;

/// Heads of an operand: [batch, heads, places, size] by any strides.
#[derive(Clone, Copy)]
struct Heads<'a, T> {
    data: &'a [T],
    batch_step: usize,
    head_step: usize,
    row_step: usize,
}

impl<'a, T> Heads<'a, T> {
    fn new(data: &'a [T], [heads, places, size]: [usize; 3], flat: bool) -> Heads<'a, T> {
        let batch_step = heads * places * size;
        let (head_step, row_step) = if flat { (size, heads * size) } else { (places * size, size) };
        Heads { data, batch_step, head_step, row_step }
    }

    fn head(&self, batch: usize, head: usize) -> &'a [T] {
        self.data.get(batch * self.batch_step + head * self.head_step..).unwrap_or_default()
    }
}

enum MaskOf<'a, T> {
    Truth(&'a [u8]),
    Same(&'a [T]),
    Single(&'a [f32]),
    Double(&'a [f64]),
}

/// Results of a block of queries.
struct Part<'a, T> {
    /// Position among the heads of all batches.
    head: usize,
    /// The first query.
    first: usize,
    y: &'a mut [T],
    scores: Option<&'a mut [T]>,
}

struct Work<'a, T> {
    problem: &'a Problem,
    q: Heads<'a, T>,
    k: Heads<'a, T>,
    v: Heads<'a, T>,
    mask: Option<MaskOf<'a, T>>,
    lengths: Option<Indices<'a>>,
}

pub fn run<T: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let problem = Problem::of(call)?;
    let Problem { heads, key_heads, queries, past, keys, size, value_size, flat, .. } = problem;
    let new_keys = keys - past;
    let operand = |index| host_operand::<T>(call, inputs, index);
    let (new_k, new_v) = (
        Heads::new(operand(at::K)?, [key_heads, new_keys, size], flat),
        Heads::new(operand(at::V)?, [key_heads, new_keys, value_size], flat),
    );
    let whole = past > 0 || problem.present;
    let joined =
        [(at::PAST_KEY, new_k, size), (at::PAST_VALUE, new_v, value_size)].map(|(index, new, size)| {
            if whole { join(&problem, host_optional::<T>(inputs, index), new, size) } else { Vec::new() }
        });
    let work = Work {
        problem: &problem,
        q: Heads::new(operand(at::Q)?, [heads, queries, size], flat),
        k: if whole { Heads::new(&joined[0], [key_heads, keys, size], false) } else { new_k },
        v: if whole { Heads::new(&joined[1], [key_heads, keys, value_size], false) } else { new_v },
        mask: inputs[at::MASK].as_ref().map(mask_of::<T>),
        lengths: inputs[at::LENGTHS].as_ref().map(Indices::of),
    };
    let (first, others) = outputs.split_at_mut(1);
    let scores =
        if problem.scores > 0 { others.last_mut().map(|view| view.as_slice_mut::<T>()) } else { None };
    let y = first[0].as_slice_mut::<T>();
    if flat && heads > 1 {
        let mut apart = Scratch::for_overwrite(y.len())?;
        work.run(&mut apart, scores);
        weave(&problem, &apart, y);
    } else {
        work.run(y, scores);
    }
    if problem.present {
        others[0].as_slice_mut::<T>().copy_from_slice(&joined[0]);
        others[1].as_slice_mut::<T>().copy_from_slice(&joined[1]);
    }
    Ok(())
}

fn mask_of<'a, T: Math>(view: &HostView<'a>) -> MaskOf<'a, T> {
    match view.dtype {
        DType::Bool | DType::U8 => MaskOf::Truth(view.as_slice()),
        DType::F64 if size_of::<T>() != 8 => MaskOf::Double(view.as_slice()),
        DType::F32 if size_of::<T>() != 4 => MaskOf::Single(view.as_slice()),
        _ => MaskOf::Same(view.as_slice()),
    }
}

/// Past and new places as [batch, heads, places, size].
fn join<T: Math>(problem: &Problem, past: Option<&[T]>, new: Heads<T>, size: usize) -> Vec<T> {
    let Problem { batch, key_heads, past: before, keys, .. } = *problem;
    let mut all = Vec::with_capacity(batch * key_heads * keys * size);
    for head in 0..batch * key_heads {
        if let Some(past) = past {
            all.extend_from_slice(&past[head * before * size..][..before * size]);
        }
        let data = new.head(head / key_heads, head % key_heads);
        (0..keys - before).for_each(|row| all.extend_from_slice(&data[row * new.row_step..][..size]));
    }
    all
}

/// [batch, heads, queries, size] to [batch, queries, heads, size].
fn weave<T: Math>(problem: &Problem, apart: &[T], y: &mut [T]) {
    let Problem { heads, queries, value_size: size, .. } = *problem;
    for (index, to) in y.chunks_mut(size.max(1)).enumerate() {
        let (head, row) = (index % heads, index / heads);
        let from = ((row / queries * heads + head) * queries + row % queries) * size;
        to.copy_from_slice(&apart[from..from + size]);
    }
}

impl<T: Math> Work<'_, T> {
    /// Results [batch, heads, queries, value size], and scores where they are asked for.
    fn run(&self, y: &mut [T], scores: Option<&mut [T]>) {
        let Problem { queries, keys, size, value_size, batch, heads, .. } = *self.problem;
        if batch * heads * queries == 0 {
            return;
        }
        let many = batch * heads * queries * keys * (size + value_size) >= MANY;
        let mut parts = Vec::new();
        let (mut y, mut scores) = (y, scores);
        for head in 0..batch * heads {
            for first in (0..queries).step_by(BLOCK) {
                let rows = BLOCK.min(queries - first);
                let (part, rest) = std::mem::take(&mut y).split_at_mut(rows * value_size);
                y = rest;
                let kept = scores.as_mut().map(|all| {
                    let (part, rest) = std::mem::take(all).split_at_mut(rows * keys);
                    *all = rest;
                    part
                });
                parts.push(Part { head, first, y: part, scores: kept });
            }
        }
        if many && parts.len() > 1 {
            install(|| parts.into_par_iter().for_each(|part| self.block(part)));
        } else {
            parts.into_iter().for_each(|part| self.block(part));
        }
    }

    fn block(&self, Part { head, first, y, mut scores }: Part<T>) {
        let Problem { heads, key_heads, queries, keys, size, value_size, .. } = *self.problem;
        let (b, h) = (head / heads, head % heads);
        let shared = h / (heads / key_heads);
        let rows = BLOCK.min(queries - first);
        let length = self.lengths.as_ref().map_or(keys, |lengths| lengths.value(b).max(0) as usize);
        let seen = |row: usize| self.problem.seen(first + row, length);
        // Keys that no query of the block sees take part only where scores are asked for.
        let width = if scores.is_some() { keys } else { seen(rows - 1) };
        let mut products = vec![T::ZERO; rows * width];
        let (q, k, v) = (self.q.head(b, h), self.k.head(b, shared), self.v.head(b, shared));
        let (pitch_q, pitch_k, pitch_v) = (self.q.row_step, self.k.row_step, self.v.row_step);
        let left = Matrix {
            data: &q[first * pitch_q..],
            rows,
            columns: size,
            row_stride: pitch_q,
            column_stride: 1,
        };
        let right = Matrix { data: k, rows: size, columns: width, row_stride: 1, column_stride: pitch_k };
        let mut out = MatrixMut { data: &mut products, rows, columns: width, row_stride: width };
        if size > 0 {
            matmul(&mut out, &left, &right, T::from_f64(self.problem.scale), false);
        }
        simd::vectorize(
            #[inline(always)]
            || {
                for (row, products) in products.chunks_exact_mut(width.max(1)).enumerate() {
                    let kept = scores.as_mut().map(|scores| &mut scores[row * keys..][..keys]);
                    self.weigh([b, h, first + row], seen(row).min(width), products, kept);
                }
            },
        );
        let left = Matrix { data: &products, rows, columns: width, row_stride: width, column_stride: 1 };
        let right =
            Matrix { data: v, rows: width, columns: value_size, row_stride: pitch_v, column_stride: 1 };
        if width == 0 {
            y.fill(T::ZERO);
        } else {
            matmul(
                &mut MatrixMut { data: y, rows, columns: value_size, row_stride: value_size },
                &left,
                &right,
                T::ONE,
                false,
            );
        }
    }

    /// Products of one query become weights.
    #[inline(always)]
    fn weigh(&self, place: [usize; 3], seen: usize, row: &mut [T], mut kept: Option<&mut [T]>) {
        let wanted = self.problem.scores;
        let mut keep = |stage: usize, row: &[T]| {
            if let Some(kept) = kept.as_mut().filter(|_| stage == wanted) {
                kept.copy_from_slice(row);
            }
        };
        keep(1, row);
        let cap = T::from_f64(self.problem.softcap);
        if cap > T::ZERO {
            row.iter_mut().for_each(|x| *x = cap * (*x / cap).tanh());
        }
        keep(2, row);
        self.add_mask(place, row);
        row[seen..].fill(-T::INFINITY);
        keep(3, row);
        let most = fold_max(row, max);
        if most == -T::INFINITY && self.problem.masking == HIDE {
            row.fill(T::ZERO);
        } else {
            row.iter_mut().for_each(|x| *x = (*x - most).exp());
            let factor = 1.0 / sum_f64(row, T::to_f64);
            let rounded = T::from_f64(factor);
            row.iter_mut().for_each(|x| *x = *x * rounded);
            if factor.is_nan() && self.problem.masking == GUARDED {
                // A NaN among the weights is in their sum.
                row.fill(T::ZERO);
            }
        }
        keep(4, row);
    }

    fn add_mask(&self, place: [usize; 3], row: &mut [T]) {
        let (Some(mask), Some(layout)) = (&self.mask, self.problem.mask) else { return };
        let at: usize = place.iter().zip(layout.steps).map(|(&index, step)| index * step).sum();
        let columns = layout.columns.min(row.len());
        let (inside, beyond) = row.split_at_mut(columns);
        beyond.fill(-T::INFINITY);
        match mask {
            MaskOf::Truth(values) => {
                let pairs = inside.iter_mut().zip(&values[at..]);
                pairs.filter(|(_, seen)| **seen == 0).for_each(|(x, _)| *x = -T::INFINITY);
            }
            MaskOf::Same(values) => self.add(inside, values[at..].iter().copied()),
            MaskOf::Single(values) => {
                self.add(inside, values[at..].iter().map(|&value| T::from_f64(f64::from(value))))
            }
            MaskOf::Double(values) => self.add(inside, values[at..].iter().map(|&value| T::from_f64(value))),
        }
    }

    /// Adds numbers; -Infinity may hide whatever was there.
    fn add(&self, row: &mut [T], mask: impl Iterator<Item = T>) {
        let hides = self.problem.masking == HIDE;
        for (x, term) in row.iter_mut().zip(mask) {
            *x = if hides && term == -T::INFINITY { term } else { *x + term };
        }
    }
}
