//! float32 products by a constant on the CPU: b is packed once for tiles of sums in registers and kept with its tensor.

use super::Product;
use super::cpu::Epilogue;
use crate::Result;
use crate::cpu::tile::{self, BLOCK, WIDEST, for_tile};
use crate::cpu::{for_pieces, simd, thread_count};
use crate::tensor::{HostForms, Scratch};
use pulp::{Simd, WithSimd};
use std::ops::Range;
use std::sync::Arc;

/// Multiply-adds in a nanosecond.
const RATE: usize = 48;

/// Columns of b side by side, in panels of a tile's width; the last one is padded with zeros.
struct Packed {
    panels: Vec<Line>,
    width: usize,
}

/// Part of a panel that lies in one line of the cache, so that no vector of it lies in two.
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([f32; WIDEST]);

/// A product that this form takes.
pub struct Tiles<'a> {
    product: &'a Product,
    packed: Arc<Packed>,
}

impl<'a> Tiles<'a> {
    /// The form, where b is kept and there is one product.
    pub fn new(product: &'a Product, b: &[f32], forms: Option<&HostForms>) -> Option<Tiles<'a>> {
        let Product { n, k, transposed_b, .. } = *product;
        let forms = forms.filter(|_| product.batch.is_empty() && k > 0)?;
        let key = ("matmul tiles", [n as u64, k as u64, u64::from(transposed_b), 0, 0, 0]);
        Some(Tiles { product, packed: forms.get(key, || pack(product, b)) })
    }

    /// y = alpha * a * b and what follows.
    pub fn run(&self, a: &[f32], alpha: f32, epilogue: &Epilogue<f32>, y: &mut [f32]) -> Result<()> {
        let Product { m, n, k, .. } = *self.product;
        let [most, _] = simd::largest_tile();
        let rows = pack_rows(self.product, a, alpha, most)?;
        let width = self.packed.width;
        let panels: &[f32] = bytemuck::cast_slice(&self.packed.panels);
        let count = n.div_ceil(width);
        let work = m * n * k / RATE + m * n * epilogue.cost();
        let columns = count.div_ceil((work / 20_000).clamp(1, 4 * thread_count())) * width;
        let mut units: Vec<Vec<&mut [f32]>> =
            (0..n.div_ceil(columns)).map(|_| Vec::with_capacity(m)).collect();
        for row in y.chunks_exact_mut(n) {
            units.iter_mut().zip(row.chunks_mut(columns)).for_each(|(unit, part)| unit.push(part));
        }
        let cost = (work / units.len()).max(1);
        for_pieces(&mut units, 1, cost, |start, units| {
            for (index, y) in units.iter_mut().enumerate() {
                let first = (start + index) * columns / width;
                simd::dispatch(Run { rows: &rows, panels: &panels[first * width * k..], width, depth: k, y });
                y.iter_mut().enumerate().for_each(|(row, y)| epilogue.apply(row, first * width, y));
            }
        });
        Ok(())
    }
}

/// The columns of b, panel by panel.
fn pack(product: &Product, b: &[f32]) -> Packed {
    let Product { n, k, transposed_b, pitch_b, .. } = *product;
    let width = simd::lanes() * simd::largest_tile()[1];
    let (row, column) = if transposed_b { (1, pitch_b) } else { (pitch_b, 1) };
    let size = n.div_ceil(width) * width * k;
    let mut panels = vec![Line::default(); size.div_ceil(WIDEST)];
    let elements = &mut bytemuck::cast_slice_mut(&mut panels)[..size];
    for_pieces(elements, width * k, 1, |start, piece| {
        for (index, panel) in piece.chunks_exact_mut(width * k).enumerate() {
            let first = start / k + index * width;
            for (at, line) in panel.chunks_exact_mut(width).enumerate() {
                let from = at * row + first * column;
                line.iter_mut().take(n - first).enumerate().for_each(|(j, to)| *to = b[from + j * column]);
            }
        }
    });
    Packed { panels, width }
}

/// Rows of a tile for as many rows as are left: a few more than there are cost less than another tile.
fn height(left: usize, most: usize) -> usize {
    if left > 4 { most } else { 4 }
}

/// The rows of alpha * a, tile by tile, the terms' factors side by side; zeros below the last row.
fn pack_rows(product: &Product, a: &[f32], alpha: f32, most: usize) -> Result<Scratch<f32>> {
    let Product { m, k, transposed_a, pitch_a, .. } = *product;
    let last = m % most;
    let padded = m - last + if last > 0 { height(last, most) } else { 0 };
    let mut packed = Scratch::for_overwrite(padded * k)?;
    for_pieces(&mut packed, most * k, 1, |start, piece| {
        for (index, panel) in piece.chunks_mut(most * k).enumerate() {
            let (first, height) = (start / k + index * most, panel.len() / k);
            if first + height > m {
                panel.fill(0.0);
            }
            for row in first..(first + height).min(m) {
                let to = panel[row - first..].iter_mut().step_by(height);
                if transposed_a {
                    to.enumerate().for_each(|(at, to)| *to = alpha * a[at * pitch_a + row]);
                } else {
                    to.zip(&a[row * pitch_a..][..k]).for_each(|(to, a)| *to = alpha * a);
                }
            }
        }
    });
    Ok(packed)
}

/// Some columns of the result.
struct Run<'a, 'y> {
    rows: &'a [f32],
    panels: &'a [f32],
    width: usize,
    depth: usize,
    y: &'a mut [&'y mut [f32]],
}

impl WithSimd for Run<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let [most, vectors] = tile::largest::<S>();
        let columns = self.y[0].len();
        for block in (0..self.depth).step_by(BLOCK) {
            for (index, panel) in self.panels.chunks_exact(self.width * self.depth).enumerate() {
                let first = index * self.width;
                if first >= columns {
                    break;
                }
                let range = first..(first + self.width).min(columns);
                for (tile, y) in self.y.chunks_mut(most).enumerate() {
                    let rows = &self.rows[tile * most * self.depth..];
                    let tile = Tile { rows, panel, block, range: range.clone(), depth: self.depth, y };
                    for_tile!(height(tile.y.len(), most), vectors, run_tile(simd, tile));
                }
            }
        }
    }
}

/// A block of terms of some rows by one panel.
struct Tile<'a, 'y> {
    rows: &'a [f32],
    panel: &'a [f32],
    block: usize,
    range: Range<usize>,
    depth: usize,
    y: &'a mut [&'y mut [f32]],
}

/// A tile of M rows by N vectors.
struct Sized<'a, 'y, const M: usize, const N: usize>(Tile<'a, 'y>);

/// Compiled once for each size and kind of vectors.
fn run_tile<S: Simd, const M: usize, const N: usize>(simd: S, tile: Tile) {
    simd.vectorize(Sized::<M, N>(tile));
}

impl<const M: usize, const N: usize> WithSimd for Sized<'_, '_, M, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Tile { rows, panel, block, range, depth, y } = self.0;
        let past = (block + BLOCK).min(depth);
        let factors = &rows[..M * depth].as_chunks::<M>().0[block..past];
        let width = N * S::F32_LANES;
        let panel = &panel[block * width..past * width];
        let line = |term: usize| &panel[term * width..][..width];
        let starts = (block == 0).then_some([0.0; M]);
        if y.len() == M && range.len() == width {
            return tile::join::<S, M, N>(simd, starts, factors, line, range.start, y);
        }
        let mut sums = [[[0.0; WIDEST]; N]; M];
        let mut to = sums.each_mut().map(|row| row.as_flattened_mut());
        if starts.is_none() {
            to.iter_mut().zip(&*y).for_each(|(to, y)| to[..range.len()].copy_from_slice(&y[range.clone()]));
        }
        tile::join::<S, M, N>(simd, starts, factors, line, 0, &mut to);
        to.iter().zip(y).for_each(|(to, y)| y[range.clone()].copy_from_slice(&to[..range.len()]));
    }
}
