//! The CPU form: products of the weights and x give what each tap adds, which is then added up where it belongs. No
//! term is formed beyond the edges, so that a non-finite weight reaches only the outputs that it touches.

use super::super::Call;
use super::super::conv::{Problem, finish};
use super::super::operands::{host_operand, host_optional};
use crate::Result;
use crate::cpu::{Math, Matrix, MatrixMut, matmul, simd, try_for_pieces};
use crate::tensor::{HostView, HostViewMut, Scratch};

/// Elements of the buffer of products, about.
const PRODUCTS: usize = 1 << 18;

pub fn run<T: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let problem = super::problem(call)?;
    let (x, w) = (host_operand::<T>(call, inputs, 0)?, host_operand::<T>(call, inputs, 1)?);
    let y = outputs[0].as_slice_mut::<T>();
    if y.is_empty() {
        return Ok(());
    }
    let plane = problem.slid();
    let at_once = (PRODUCTS / (problem.taps() * problem.windows()).max(1)).max(1);
    let cost = (problem.group_in * problem.taps() * problem.windows()).div_ceil(plane);
    try_for_pieces(y, plane, cost, |start, piece| {
        let (mut channel, mut rest) = (start / plane, piece);
        while !rest.is_empty() {
            let left = problem.group_out - channel % problem.group_out;
            let count = left.min(at_once).min(rest.len() / plane);
            let (own, others) = rest.split_at_mut(count * plane);
            add_channels(&problem, x, w, channel, own)?;
            channel += count;
            rest = others;
        }
        Ok(())
    })?;
    finish(call, host_optional::<T>(inputs, 2), plane, y);
    Ok(())
}

/// Neighbouring output channels of one image and group, from the first on.
fn add_channels<T: Math>(problem: &Problem, x: &[T], w: &[T], channel: usize, y: &mut [T]) -> Result<()> {
    let Problem { group_in, group_out, .. } = *problem;
    let (taps, plane_in, plane) = (problem.taps(), problem.windows(), problem.slid());
    y.fill(T::ZERO);
    if group_in * plane_in == 0 {
        return Ok(());
    }
    let (all, m) = (channel / group_out, channel % group_out);
    let group = all % problem.groups;
    let count = y.len() / plane;
    let mut products = Scratch::for_overwrite(count * taps * plane_in)?;
    let pitch = group_out * taps;
    let weights = Matrix {
        data: &w[group * group_in * pitch + m * taps..],
        rows: count * taps,
        columns: group_in,
        row_stride: 1,
        column_stride: pitch,
    };
    let x = &x[all * group_in * plane_in..];
    let right = Matrix { data: x, rows: group_in, columns: plane_in, row_stride: plane_in, column_stride: 1 };
    let mut out =
        MatrixMut { data: &mut products, rows: count * taps, columns: plane_in, row_stride: plane_in };
    matmul(&mut out, &weights, &right, T::ONE, false);
    if !is_woven(problem) {
        for (index, values) in products.chunks(plane_in).enumerate() {
            add_tap(problem, values, index % taps, &mut y[index / taps * plane..][..plane]);
        }
        return Ok(());
    }
    for (index, pair) in products.chunks(2 * plane_in).enumerate() {
        let (channel, tap) = (2 * index / taps, 2 * index % taps);
        simd::vectorize(
            #[inline(always)]
            || add_pair(problem, pair.split_at(plane_in), tap, &mut y[channel * plane..][..plane]),
        );
    }
    Ok(())
}

/// Whether the elements of every line are those of two taps in turn.
fn is_woven(problem: &Problem) -> bool {
    let width = &problem.axes[2];
    [width.kernel, width.stride, width.dilation, width.begin] == [2, 2, 1, 0]
        && width.input == 2 * width.output
}

/// Adds the products of two neighbouring taps, which share no element, to a plane of the result.
#[inline(always)]
fn add_pair<T: Math>(problem: &Problem, (even, odd): (&[T], &[T]), tap: usize, y: &mut [T]) {
    let [depth, height, width] = problem.axes;
    let (tap_d, tap_h) = (tap / (height.kernel * 2), tap / 2 % height.kernel);
    for d in depth.windows(tap_d) {
        for h in height.windows(tap_h) {
            let from = (d * height.output + h) * width.output;
            let row = depth.position(d, tap_d) * height.input + height.position(h, tap_h);
            let to = y[row * width.input..][..width.input].as_chunks_mut::<2>().0.iter_mut();
            let pairs = even[from..].iter().zip(&odd[from..]);
            to.zip(pairs).for_each(|(y, (&even, &odd))| *y = [y[0] + even, y[1] + odd]);
        }
    }
}

/// Adds one tap's products to a plane of the result.
fn add_tap<T: Math>(problem: &Problem, values: &[T], tap: usize, y: &mut [T]) {
    let [depth, height, width] = problem.axes;
    let tap_w = tap % width.kernel;
    let (tap_d, tap_h) = (tap / (height.kernel * width.kernel), tap / width.kernel % height.kernel);
    let columns = width.windows(tap_w);
    if columns.is_empty() {
        return;
    }
    let first = width.position(columns.start, tap_w);
    for d in depth.windows(tap_d) {
        for h in height.windows(tap_h) {
            let from = &values[(d * height.output + h) * width.output..][columns.clone()];
            let row = depth.position(d, tap_d) * height.input + height.position(h, tap_h);
            let to = y[row * width.input + first..].iter_mut().step_by(width.stride);
            to.zip(from).for_each(|(y, &value)| *y = *y + value);
        }
    }
}
