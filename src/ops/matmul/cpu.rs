//! The CPU form.

use super::super::Call;
use super::super::activation::Activation;
use super::super::operands::{host_operand, host_optional};
use super::Product;
use super::tiles::Tiles;
use crate::Result;
use crate::cpu::{Math, Matrix, MatrixMut, for_pieces, matmul};
use crate::tensor::{HostView, HostViewMut};

/// The form for float32.
pub fn run_single(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let forms = inputs[1].as_ref().and_then(HostView::forms);
    run::<f32>(call, inputs, outputs, |product, a, b, alpha, y| match Tiles::new(product, b, forms) {
        Some(tiles) => tiles.run(a, alpha, y),
        None => multiply(product, a, b, alpha, y),
    })
}

/// The form with that product.
pub fn run<T: Math>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    multiply: impl FnOnce(&Product, &[T], &[T], T, &mut [T]) -> Result<()>,
) -> Result<()> {
    let product = Product::of(call)?;
    let y = outputs[0].as_slice_mut::<T>();
    if y.is_empty() {
        return Ok(());
    }
    let alpha = T::from_f64(call.attrs.float("alpha"));
    if alpha == T::ZERO || product.k == 0 {
        y.fill(T::ZERO);
    } else {
        multiply(
            &product,
            host_operand::<T>(call, inputs, 0)?,
            host_operand::<T>(call, inputs, 1)?,
            alpha,
            y,
        )?;
    }
    let beta = T::from_f64(call.attrs.float("beta"));
    let c = host_optional::<T>(inputs, 2).map(|c| (c, beta));
    finish(&product, c, host_optional::<T>(inputs, 3), Activation::new(&call.attrs), y);
    Ok(())
}

/// y = alpha * a * b, product by product.
pub fn multiply<T: Math>(product: &Product, a: &[T], b: &[T], alpha: T, y: &mut [T]) -> Result<()> {
    let Product { m, n, k, pitch_a, pitch_b, .. } = *product;
    let strides = |transposed, pitch| if transposed { (1, pitch) } else { (pitch, 1) };
    let (row_a, column_a) = strides(product.transposed_a, pitch_a);
    let (row_b, column_b) = strides(product.transposed_b, pitch_b);
    for_pieces(y, m * n, k, |start, piece| {
        for (index, y) in piece.chunks_mut(m * n).enumerate() {
            let at = product.offsets(start / (m * n) + index);
            let left =
                Matrix { data: &a[at.a..], rows: m, columns: k, row_stride: row_a, column_stride: column_a };
            let right =
                Matrix { data: &b[at.b..], rows: k, columns: n, row_stride: row_b, column_stride: column_b };
            let mut out = MatrixMut { data: y, rows: m, columns: n, row_stride: n };
            matmul(&mut out, &left, &right, alpha, false);
        }
    });
    Ok(())
}

/// Adds beta * c and the bias and applies the activation.
fn finish<T: Math>(
    product: &Product,
    c: Option<(&[T], T)>,
    bias: Option<&[T]>,
    activation: Activation,
    y: &mut [T],
) {
    let c = c.zip(product.c);
    if c.is_none() && bias.is_none() && activation.is_none() {
        return;
    }
    let Product { m, n, .. } = *product;
    for_pieces(y, n, 1 + activation.cost(), |start, piece| {
        for (index, row) in piece.chunks_mut(n).enumerate() {
            if let Some(((c, beta), (row_step, column_step))) = c {
                let at = start / n + index;
                let from = product.offsets(at / m).c + at % m * row_step;
                match column_step {
                    0 => row.iter_mut().for_each(|y| *y = *y + beta * c[from]),
                    _ => row.iter_mut().zip(&c[from..]).for_each(|(y, &c)| *y = *y + beta * c),
                }
            }
            if let Some(bias) = bias {
                match product.bias {
                    (0, _) => row.iter_mut().zip(bias).for_each(|(y, &bias)| *y = *y + bias),
                    _ => {
                        let bias = bias[(start / n + index) % m];
                        row.iter_mut().for_each(|y| *y = *y + bias);
                    }
                }
            }
            activation.apply(row);
        }
    });
}
