//! The one wrapper of the `gemm` crate: C = alpha * A * B + beta * C over strided matrices.

#![allow(unsafe_code)]

use super::Float;

/// A matrix over a slice: `data[row * row_stride + column * column_stride]`.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    /// Elements.
    pub data: &'a [T],
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Elements from one row to the next.
    pub row_stride: usize,
    /// Elements from one column to the next.
    pub column_stride: usize,
}

/// A writable row-major matrix.
pub struct MatrixMut<'a, T> {
    /// Elements.
    pub data: &'a mut [T],
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Elements from one row to the next; columns are adjacent.
    pub row_stride: usize,
}

/// Number of elements that a matrix of these strides spans.
fn span(rows: usize, columns: usize, row_stride: usize, column_stride: usize) -> usize {
    if rows == 0 || columns == 0 { 0 } else { (rows - 1) * row_stride + (columns - 1) * column_stride + 1 }
}

/// C = alpha * A * B, or C += alpha * A * B when `accumulate`. Uses the compute pool for large products.
pub fn matmul<T: Float>(c: &mut MatrixMut<T>, a: &Matrix<T>, b: &Matrix<T>, alpha: T, accumulate: bool) {
    assert!(a.rows == c.rows && b.columns == c.columns && a.columns == b.rows, "matrix dims agree");
    assert!(span(a.rows, a.columns, a.row_stride, a.column_stride) <= a.data.len(), "A lies in its slice");
    assert!(span(b.rows, b.columns, b.row_stride, b.column_stride) <= b.data.len(), "B lies in its slice");
    assert!(span(c.rows, c.columns, c.row_stride, 1) <= c.data.len(), "C lies in its slice");
    assert!(c.rows <= 1 || c.row_stride >= c.columns, "rows of C do not overlap");
    if c.rows == 0 || c.columns == 0 {
        return;
    }
    let work = c.rows * c.columns * a.columns.max(1);
    let parallelism = if work < 64 * 64 * 64 { gemm::Parallelism::None } else { gemm::Parallelism::Rayon(0) };
    let c_ptr = c.data.as_mut_ptr();
    // SAFETY: the asserts above put every element that the strides reach inside its slice; C is borrowed mutably and
    // so aliases neither A nor B; T is f32 or f64 (the only Float types), which the gemm crate supports.
    unsafe {
        gemm::gemm(
            c.rows,
            c.columns,
            a.columns,
            c_ptr,
            1,
            c.row_stride as isize,
            accumulate,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            T::ONE,
            alpha,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplies_strided_matrices() {
        let a: Vec<f64> = (0..6).map(f64::from).collect();
        let b: Vec<f64> = (0..12).map(f64::from).collect();
        let mut c = vec![1.0; 8];
        let left = Matrix { data: &a, rows: 2, columns: 3, row_stride: 1, column_stride: 2 };
        let right = Matrix { data: &b, rows: 3, columns: 4, row_stride: 4, column_stride: 1 };
        let mut out = MatrixMut { data: &mut c, rows: 2, columns: 4, row_stride: 4 };
        matmul(&mut out, &left, &right, 2.0, true);
        for row in 0..2 {
            for column in 0..4 {
                let sum: f64 = (0..3).map(|k| a[row + 2 * k] * b[4 * k + column]).sum();
                assert_eq!(c[4 * row + column], 1.0 + 2.0 * sum);
            }
        }
    }
}
