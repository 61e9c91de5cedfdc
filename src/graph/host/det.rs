//! Determinants.

use super::{filled, widened};
use crate::Result;
use crate::cpu::{Float, for_pieces};
use crate::for_float;
use crate::ops::Meta;
use crate::tensor::Tensor;

/// The determinant of each matrix `[..., n, n]`, by elimination in float64.
pub fn det(inputs: &[Option<Tensor>], output: &Meta) -> Result<Vec<Tensor>> {
    let x = widened(inputs, 0)?;
    Ok(vec![for_float!(x.meta().dtype, dets(&x, output))?])
}

fn dets<F: Float>(x: &Tensor, output: &Meta) -> Result<Tensor> {
    let order = x.meta().dims.last().copied().unwrap_or(0);
    let values = x.host_view()?.as_slice::<F>();
    filled::<F>(output, |out| {
        for_pieces(out, 1, order * order * order, |start, piece| {
            for (offset, slot) in piece.iter_mut().enumerate() {
                let matrix = &values[(start + offset) * order * order..][..order * order];
                *slot = F::from_f64(eliminate(matrix.iter().map(|value| value.to_f64()).collect(), order));
            }
        });
    })
}

/// Gaussian elimination with the largest pivot of each column.
fn eliminate(mut a: Vec<f64>, order: usize) -> f64 {
    let mut result = 1.0;
    for step in 0..order {
        let size = |row: usize| a[row * order + step].abs();
        let pivot = (step..order).fold(step, |best, row| if size(row) > size(best) { row } else { best });
        if pivot != step {
            (0..order).for_each(|column| a.swap(step * order + column, pivot * order + column));
            result = -result;
        }
        let diagonal = a[step * order + step];
        result *= diagonal;
        if diagonal == 0.0 {
            return result;
        }
        for row in step + 1..order {
            let factor = a[row * order + step] / diagonal;
            for column in step + 1..order {
                a[row * order + column] -= factor * a[step * order + column];
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn determinants() {
        assert_eq!(eliminate(vec![], 0), 1.0);
        assert_eq!(eliminate(vec![0.0, 1.0, 1.0, 0.0], 2), -1.0);
        assert_eq!(eliminate(vec![2.0, 4.0, 1.0, 2.0], 2), 0.0);
        assert_eq!(eliminate(vec![0.0, 2.0, 1.0, 3.0, 0.0, 0.0, 1.0, 1.0, 4.0], 3), -21.0);
        assert!(eliminate(vec![f64::NAN], 1).is_nan());
        let x =
            Tensor::from_slice(DType::F32, [2, 2, 2], &[1f32, 2.0, 3.0, 4.0, 1.0, 2.0, 2.0, 1.0]).unwrap();
        let y = det(&[Some(x)], &Meta::new(DType::F32, [2])).unwrap().swap_remove(0);
        assert_eq!(y.host_view().unwrap().as_slice::<f32>(), [-2.0, -3.0]);
    }
}
