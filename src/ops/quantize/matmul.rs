//! matMulInteger. Products of bytes are summed by float32 products, which are exact as long as sums stay below 2^24; longer
//! sums are cut.

use super::super::Call;
use super::super::spec::*;
use super::blocks::Blocks;
use super::linear::shift;
use super::{BYTES, cuda, expect_like, for_whole};
use crate::cpu::{Matrix, MatrixMut, for_pieces, matmul as multiply};
use crate::shape::{Dims, broadcast, broadcast_strides, size_of};
use crate::tensor::{HostView, HostViewMut};
use crate::{DType, Error, Result, mismatch};

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "matMulInteger",
    operands: &[
        required("a"),
        Operand { dtypes: BYTES, ..required("b") },
        optional("aZeroPoint"),
        Operand { dtypes: BYTES, ..optional("bZeroPoint") },
    ],
    attributes: &[],
    dtypes: BYTES,
    results: Results::Of(DType::I32),
    shape: |spec, inputs, _| Ok(vec![Meta::new(DType::I32, Product::new(spec, inputs)?.dims)]),
    cpu: run,
    cuda: cuda::matmul,
    tolerance: Tolerance::Exact,
    doc: "(a - aZeroPoint) (b - bZeroPoint) for a [..., m, k] and b [..., k, n], leading dims broadcast, with exact sums; a \
          zero point is one number, or aZeroPoint one for each row, [m] or [..., m, 1], and bZeroPoint one for each column, \
          [n] or [..., 1, n] (ONNX MatMulInteger).",
}];

/// The product in numbers.
pub struct Product {
    pub dims: Dims,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Places of the zero points of a and b.
    pub zeros: [Blocks; 2],
    /// Elements of a and b before each matrix of the batch.
    batch: Vec<(usize, usize)>,
}

/// The largest sum that float32 surely holds exactly, and so does each step towards it.
const EXACT: u32 = 1 << 24;

/// Terms of a sum of any bytes less any zero points that float32 products sum exactly.
pub const SHORT: usize = (EXACT / (255 * 255)) as usize;

impl Product {
    pub fn of(call: &Call) -> Result<Product> {
        Product::new(call.spec, &call.inputs)
    }

    fn new(spec: &OpSpec, inputs: Metas) -> Result<Product> {
        let (a, b) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
        for (index, meta) in [a, b].into_iter().enumerate() {
            spec.expect_rank(index, meta, 2..=usize::MAX)?;
        }
        let (batch_a, matrix_a) = a.dims.split_at(a.dims.len() - 2);
        let (batch_b, matrix_b) = b.dims.split_at(b.dims.len() - 2);
        let ([m, k], [inner, n]) = ([matrix_a[0], matrix_a[1]], [matrix_b[0], matrix_b[1]]);
        if k != inner {
            return mismatch!(
                "{}: 'a' has {k} columns and 'b' has {inner} rows, which must be equal (dims {:?} and {:?})",
                spec.name,
                a.dims,
                b.dims
            );
        }
        let Ok(batch) = broadcast(spec.name, batch_a, batch_b) else {
            let (a, b) = (&a.dims, &b.dims);
            return mismatch!("{}: the leading dims of 'a' {a:?} and 'b' {b:?} do not broadcast", spec.name);
        };
        let zeros = [row_zeros(spec, a, inputs[2].as_ref())?, column_zeros(spec, b, inputs[3].as_ref())?];
        let starts = starts(&batch, batch_a, batch_b, [m * k, k * n]);
        let mut dims = batch;
        dims.extend([m, n]);
        Ok(Product { dims, m, n, k, zeros, batch: starts }.folded(batch_a.is_empty(), batch_b.is_empty()))
    }

    /// A batch that shares b is one product of more rows.
    fn folded(mut self, plain_a: bool, plain_b: bool) -> Product {
        if plain_b && !plain_a {
            self.m *= self.batch.len();
            self.batch.truncate(1);
        }
        self
    }
}

/// Elements before the matrices of each product.
fn starts(batch: &[usize], a: &[usize], b: &[usize], sizes: [usize; 2]) -> Vec<(usize, usize)> {
    let steps = [broadcast_strides(a, batch), broadcast_strides(b, batch)];
    let place = |index: usize, steps: &[usize]| {
        let mut rest = index;
        let axes = batch.iter().zip(steps).rev();
        axes.map(|(&size, step)| {
            let at = rest % size;
            rest /= size;
            at * step
        })
        .sum::<usize>()
    };
    (0..size_of(batch)).map(|i| (place(i, &steps[0]) * sizes[0], place(i, &steps[1]) * sizes[1])).collect()
}

fn row_zeros(spec: &OpSpec, a: &Meta, zero: Option<&Meta>) -> Result<Blocks> {
    let Some(zero) = zero.filter(|zero| zero.size() != 1 || zero.dims.len() > 1) else {
        return Ok(Blocks::WHOLE);
    };
    let rank = a.dims.len();
    let [m, k] = [a.dims[rank - 2], a.dims[rank - 1]];
    let rows = Blocks { length: m, inner: k, block: 1, outer_step: 0, step: 1, inner_step: 0 };
    if zero.dims == [m] {
        return Ok(rows);
    }
    let mut dims = a.dims.clone();
    dims[rank - 1] = 1;
    spec.expect_dims(2, zero, &dims)?;
    Ok(Blocks { outer_step: m, ..rows })
}

fn column_zeros(spec: &OpSpec, b: &Meta, zero: Option<&Meta>) -> Result<Blocks> {
    expect_like(spec, 3, zero, b.dtype, None)?;
    let Some(zero) = zero.filter(|zero| zero.size() != 1 || zero.dims.len() > 1) else {
        return Ok(Blocks::WHOLE);
    };
    let rank = b.dims.len();
    let [k, n] = [b.dims[rank - 2], b.dims[rank - 1]];
    let columns = Blocks { length: k, inner: n, block: 1, outer_step: 0, step: 0, inner_step: 1 };
    if zero.dims == [n] {
        return Ok(columns);
    }
    let mut dims = b.dims.clone();
    dims[rank - 2] = 1;
    spec.expect_dims(3, zero, &dims)?;
    Ok(Blocks { outer_step: n, ..columns })
}

/// An operand less its zero points, with the largest magnitude.
fn shifted(call: &Call, inputs: &[Option<HostView>], index: usize, zeros: Blocks) -> Result<(Vec<f32>, u32)> {
    let x = inputs[index].as_ref();
    let x = x.ok_or_else(|| Error::Internal(format!("{}: operand {index} is missing", call.spec.name)))?;
    let mut y = vec![0.0f32; size_of(x.dims)];
    let zero = inputs.get(index + 2).and_then(Option::as_ref);
    for_whole!(x.dtype, shift::<f32>(x, zero, None, zeros, &mut y));
    let most = y.iter().fold(0.0f32, |most, y| if y.abs() > most { y.abs() } else { most });
    Ok((y, most as u32))
}

/// The op's CPU form.
fn run(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let product = Product::of(call)?;
    let y = outputs[0].as_slice_mut::<i32>();
    y.fill(0);
    if y.is_empty() || product.k == 0 {
        return Ok(());
    }
    let (a, most_a) = shifted(call, inputs, 0, product.zeros[0])?;
    let (b, most_b) = shifted(call, inputs, 1, product.zeros[1])?;
    let terms = (EXACT / (most_a * most_b).max(1)) as usize;
    let Product { m, n, k, .. } = product;
    let mut part = vec![0.0; m * n];
    for (&(at_a, at_b), y) in product.batch.iter().zip(y.chunks_mut(m * n)) {
        for first in (0..k).step_by(terms) {
            let columns = terms.min(k - first);
            let left = Matrix { data: &a[at_a + first..], rows: m, columns, row_stride: k, column_stride: 1 };
            let right = Matrix {
                data: &b[at_b + first * n..],
                rows: columns,
                columns: n,
                row_stride: n,
                column_stride: 1,
            };
            multiply(
                &mut MatrixMut { data: &mut part, rows: m, columns: n, row_stride: n },
                &left,
                &right,
                1.0,
                false,
            );
            for_pieces(y, 1, 1, |start, piece| {
                piece.iter_mut().zip(&part[start..]).for_each(|(sum, &part)| *sum += part as i32);
            });
        }
    }
    Ok(())
}
