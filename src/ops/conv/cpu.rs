//! The CPU form: a matrix product per image and group over columns of windows, and a direct sum where a group is so
//! narrow that a product would not pay.

use super::super::Call;
use super::super::activation::Activation;
use super::super::geometry::WindowAxis;
use super::super::operands::{host_operand, host_optional};
use super::problem::{Problem, finish};
use super::tiles::Tiles;
use crate::Result;
use crate::cpu::{Math, Matrix, MatrixMut, for_pieces, matmul, try_for_pieces};
use crate::tensor::{HostView, HostViewMut, Scratch};
use std::ops::Range;
use std::sync::Arc;

/// Elements of the column buffer, about.
const COLUMNS: usize = 1 << 18;
/// Fewest windows for which columns are laid out at a time.
const FEWEST: usize = 64;

/// The form for float32.
pub fn run_single(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let problem = super::problem(call)?;
    let Some(tiles) = Tiles::new(&problem) else { return run::<f32>(call, inputs, outputs) };
    let (x, w) = (host_operand(call, inputs, 0)?, host_operand(call, inputs, 1)?);
    let y = outputs[0].as_slice_mut();
    if !y.is_empty() {
        let forms = inputs[1].as_ref().and_then(HostView::forms);
        let packed = match forms {
            Some(forms) => forms.get(tiles.key(), || tiles.pack(w)),
            None => Arc::new(tiles.pack(w)),
        };
        tiles.run(x, &packed, host_optional(inputs, 2), Activation::new(&call.attrs), y);
    }
    Ok(())
}

pub fn run<T: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let problem = super::problem(call)?;
    let (x, w) = (host_operand::<T>(call, inputs, 0)?, host_operand::<T>(call, inputs, 1)?);
    let y = outputs[0].as_slice_mut::<T>();
    if y.is_empty() {
        return Ok(());
    }
    if problem.group_in == 0 {
        y.fill(T::ZERO);
    } else if problem.group_in * problem.group_out <= 4 || problem.group_in == 1 && problem.group_out <= 8 {
        direct(&problem, x, w, y);
    } else {
        multiply(&problem, x, w, y)?;
    }
    finish(call, host_optional::<T>(inputs, 2), problem.windows(), y);
    Ok(())
}

fn multiply<T: Math>(problem: &Problem, x: &[T], w: &[T], y: &mut [T]) -> Result<()> {
    let (plane_in, plane, depth) = (problem.slid(), problem.windows(), problem.group_in * problem.taps());
    let (size_in, size) = (problem.group_in * plane_in, problem.group_out * plane);
    try_for_pieces(y, size, depth, |start, piece| {
        for (index, y) in piece.chunks_mut(size).enumerate() {
            let at = start / size + index;
            let x = &x[at * size_in..][..size_in];
            let weights = Matrix {
                data: &w[at % problem.groups * problem.group_out * depth..],
                rows: problem.group_out,
                columns: depth,
                row_stride: depth,
                column_stride: 1,
            };
            if problem.is_pointwise() {
                product(y, plane, 0..plane, &weights, x, plane);
            } else {
                by_columns(problem, x, &weights, y)?;
            }
        }
        Ok(())
    })
}

/// Windows `range` of all rows of y from as many columns.
fn product<T: Math>(
    y: &mut [T],
    plane: usize,
    range: Range<usize>,
    weights: &Matrix<T>,
    columns: &[T],
    pitch: usize,
) {
    let depth = weights.columns;
    let right =
        Matrix { data: columns, rows: depth, columns: range.len(), row_stride: pitch, column_stride: 1 };
    let rows = weights.rows;
    let mut out = MatrixMut { data: &mut y[range.start..], rows, columns: range.len(), row_stride: plane };
    matmul(&mut out, weights, &right, T::ONE, false);
}

fn by_columns<T: Math>(problem: &Problem, x: &[T], weights: &Matrix<T>, y: &mut [T]) -> Result<()> {
    let (plane, depth) = (problem.windows(), weights.columns);
    let width = (COLUMNS / depth).max(FEWEST).min(plane);
    let mut columns = Scratch::for_overwrite(depth * width)?;
    for first in (0..plane).step_by(width) {
        let range = first..(first + width).min(plane);
        for_pieces(&mut columns, width, 1, |start, piece| {
            for (index, column) in piece.chunks_mut(width).enumerate() {
                lay_out(problem, x, start / width + index, range.clone(), column);
            }
        });
        product(y, plane, range, weights, &columns, width);
    }
    Ok(())
}

/// What one tap of one channel sees in the windows of a range, zeros in the padding.
fn lay_out<T: Math>(problem: &Problem, x: &[T], row: usize, range: Range<usize>, to: &mut [T]) {
    let taps = problem.taps();
    let [depth, height, width] = problem.axes;
    let (channel, tap) = (row / taps, row % taps);
    let (tap_d, tap_h, tap_w) =
        (tap / (height.kernel * width.kernel), tap / width.kernel % height.kernel, tap % width.kernel);
    let inside = width.windows(tap_w);
    let mut done = 0;
    while done < range.len() {
        let (line, from) = ((range.start + done) / width.output, (range.start + done) % width.output);
        let count = (width.output - from).min(range.len() - done);
        let to = &mut to[done..done + count];
        done += count;
        let (d, h) = (line / height.output, line % height.output);
        let first = inside.start.clamp(from, from + count);
        let past = inside.end.clamp(first, from + count);
        if !depth.windows(tap_d).contains(&d) || !height.windows(tap_h).contains(&h) || first == past {
            to.fill(T::ZERO);
            continue;
        }
        let plane = channel * depth.input + depth.position(d, tap_d);
        let x = &x[(plane * height.input + height.position(h, tap_h)) * width.input
            + width.position(first, tap_w)..];
        to[..first - from].fill(T::ZERO);
        to[past - from..].fill(T::ZERO);
        let middle = &mut to[first - from..past - from];
        if width.stride == 1 {
            middle.copy_from_slice(&x[..past - first]);
        } else {
            middle.iter_mut().zip(x.iter().step_by(width.stride)).for_each(|(to, &x)| *to = x);
        }
    }
}

fn direct<T: Math>(problem: &Problem, x: &[T], w: &[T], y: &mut [T]) {
    let (taps, plane_in) = (problem.taps(), problem.slid());
    let [depth, height, width] = problem.axes;
    let (lines, channels) = (depth.output * height.output, problem.groups * problem.group_out);
    for_pieces(y, width.output, problem.group_in * taps, |start, piece| {
        for (index, row) in piece.chunks_mut(width.output).enumerate() {
            let (line, all) =
                ((start / width.output + index) % lines, (start / width.output + index) / lines);
            let (d, h, channel) = (line / height.output, line % height.output, all % channels);
            let first = (all / channels * problem.groups + channel / problem.group_out) * problem.group_in;
            row.fill(T::ZERO);
            for (k, &weight) in
                w[channel * problem.group_in * taps..][..problem.group_in * taps].iter().enumerate()
            {
                let (plane, tap) = (&x[(first + k / taps) * plane_in..][..plane_in], k % taps);
                let (tap_d, tap_h) =
                    (tap / (height.kernel * width.kernel), tap / width.kernel % height.kernel);
                let line = if depth.windows(tap_d).contains(&d) && height.windows(tap_h).contains(&h) {
                    let at = depth.position(d, tap_d) * height.input + height.position(h, tap_h);
                    &plane[at * width.input..][..width.input]
                } else {
                    &[]
                };
                add_tap(row, line, &width, tap % width.kernel, weight);
            }
        }
    });
}

/// Adds what one tap sees of a line, `weight` times; an empty line is padding throughout.
fn add_tap<T: Math>(row: &mut [T], line: &[T], width: &WindowAxis, tap: usize, weight: T) {
    let inside = if line.is_empty() { 0..0 } else { width.windows(tap) };
    // Padding adds 0 * weight, which is not 0 for infinities and NaN.
    let padding = T::ZERO * weight;
    if padding.is_nan() {
        row[..inside.start].fill(padding);
        row[inside.end..].fill(padding);
    }
    if inside.is_empty() {
        return;
    }
    let line = &line[width.position(inside.start, tap)..];
    let sums = row[inside].iter_mut();
    if width.stride == 1 {
        sums.zip(line).for_each(|(sum, &x)| *sum = *sum + x * weight);
    } else {
        sums.zip(line.iter().step_by(width.stride)).for_each(|(sum, &x)| *sum = *sum + x * weight);
    }
}
