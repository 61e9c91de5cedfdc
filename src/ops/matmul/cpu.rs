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
    run::<f32>(call, inputs, outputs, |operands, epilogue, y| {
        match Tiles::new(epilogue.product, operands.b, forms) {
            Some(tiles) => tiles.run(operands.a, operands.alpha, epilogue, y),
            None => multiply(operands, epilogue, y),
        }
    })
}

/// What is multiplied.
pub struct Operands<'a, T> {
    a: &'a [T],
    b: &'a [T],
    alpha: T,
}

/// The form with that product, which applies the epilogue too.
pub fn run<T: Math>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    multiply: impl FnOnce(&Operands<T>, &Epilogue<T>, &mut [T]) -> Result<()>,
) -> Result<()> {
    let product = Product::of(call)?;
    let y = outputs[0].as_slice_mut::<T>();
    if y.is_empty() {
        return Ok(());
    }
    let beta = T::from_f64(call.attrs.float("beta"));
    let epilogue = Epilogue {
        product: &product,
        c: host_optional::<T>(inputs, 2).zip(product.c).map(|(c, steps)| (c, beta, steps)),
        bias: host_optional::<T>(inputs, 3),
        activation: Activation::new(&call.attrs),
    };
    let alpha = T::from_f64(call.attrs.float("alpha"));
    if alpha == T::ZERO || product.k == 0 {
        y.fill(T::ZERO);
        epilogue.apply_to_all(y);
        return Ok(());
    }
    let (a, b) = (host_operand::<T>(call, inputs, 0)?, host_operand::<T>(call, inputs, 1)?);
    multiply(&Operands { a, b, alpha }, &epilogue, y)
}

/// y = alpha * a * b, product by product.
pub fn multiply<T: Math>(operands: &Operands<T>, epilogue: &Epilogue<T>, y: &mut [T]) -> Result<()> {
    let (product, &Operands { a, b, alpha }) = (epilogue.product, operands);
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
    epilogue.apply_to_all(y);
    Ok(())
}

/// What follows the product: beta * c and the bias are added and the activation is applied.
pub struct Epilogue<'a, T> {
    /// The product.
    pub product: &'a Product,
    /// c, beta and the steps of c by row and column.
    c: Option<(&'a [T], T, (usize, usize))>,
    bias: Option<&'a [T]>,
    activation: Activation,
}

impl<T: Math> Epilogue<'_, T> {
    fn is_none(&self) -> bool {
        self.c.is_none() && self.bias.is_none() && self.activation.is_none()
    }

    /// Nanoseconds for one element, about.
    pub fn cost(&self) -> usize {
        if self.is_none() { 0 } else { 1 + self.activation.cost() }
    }

    fn apply_to_all(&self, y: &mut [T]) {
        if self.is_none() {
            return;
        }
        let n = self.product.n;
        for_pieces(y, n, self.cost(), |start, piece| {
            for (index, row) in piece.chunks_mut(n).enumerate() {
                self.apply(start / n + index, 0, row);
            }
        });
    }

    /// On part of a row, counted over all products, from that column on.
    pub fn apply(&self, row: usize, column: usize, y: &mut [T]) {
        let m = self.product.m;
        if let Some((c, beta, (row_step, column_step))) = self.c {
            let from = self.product.offsets(row / m).c + row % m * row_step + column * column_step;
            match column_step {
                0 => y.iter_mut().for_each(|y| *y = *y + beta * c[from]),
                _ => y.iter_mut().zip(&c[from..]).for_each(|(y, &c)| *y = *y + beta * c),
            }
        }
        match (self.bias, self.product.bias) {
            (None, _) => {}
            (Some(bias), (0, _)) => y.iter_mut().zip(&bias[column..]).for_each(|(y, &bias)| *y = *y + bias),
            (Some(bias), _) => {
                let bias = bias[row % m];
                y.iter_mut().for_each(|y| *y = *y + bias);
            }
        }
        self.activation.apply(y);
    }
}
