//! Columns added up to images, the way back from windows.

use super::{Window, operand};
use crate::cpu::for_pieces;
use crate::graph::plan::convert;
use crate::ops::Meta;
use crate::tensor::Tensor;
use crate::{DType, Result};
use bytemuck::Pod;

/// How columns are added up.
pub struct Fold {
    /// The windows that the columns were.
    pub window: Window,
    /// Dims of an image.
    pub image: Vec<usize>,
}

/// Sums of columns `[n, channels * elements, windows]` at their places: `[n, channels, image ...]`.
pub fn fold(inputs: &[Option<Tensor>], how: &Fold, output: &Meta) -> Result<Vec<Tensor>> {
    let x = operand(inputs, 0)?;
    let wide = match x.meta().dtype {
        DType::F64 => DType::F64,
        DType::F32 | DType::F16 | DType::Bf16 => DType::F32,
        _ => DType::I64,
    };
    let x = convert(x, wide)?;
    let meta = Meta { dtype: wide, dims: output.dims.clone() };
    let sums = match wide {
        DType::F64 => sums::<f64>(&x, how, &meta, |a, b| a + b)?,
        DType::F32 => sums::<f32>(&x, how, &meta, |a, b| a + b)?,
        _ => sums::<i64>(&x, how, &meta, i64::wrapping_add)?,
    };
    Ok(vec![convert(&sums, output.dtype)?])
}

fn sums<T: Pod + Send + Sync>(
    x: &Tensor,
    how: &Fold,
    output: &Meta,
    add: impl Fn(T, T) -> T + Send + Sync,
) -> Result<Tensor> {
    let columns = x.host_view()?.as_slice::<T>();
    let (pixels, windows): (usize, usize) = (how.image.iter().product(), how.window.counts.iter().product());
    let elements: usize = how.window.kernel.iter().product();
    let places: Vec<_> =
        (0..elements).map(|element| places(&how.window.meets(element), &how.image)).collect();
    let mut buffer = Tensor::host_buffer(output)?;
    let out = &mut buffer.view_mut(output);
    for_pieces(out.as_slice_mut::<T>(), pixels, elements, |start, piece| {
        for (index, image) in piece.chunks_exact_mut(pixels).enumerate() {
            let plane = start / pixels + index;
            for (element, places) in places.iter().enumerate() {
                let line = &columns[(plane * elements + element) * windows..][..windows];
                for (&value, place) in line.iter().zip(places) {
                    if let Some(place) = *place {
                        image[place] = add(image[place], value);
                    }
                }
            }
        }
    });
    Ok(Tensor::from_host(buffer, output))
}

/// The pixel of each window, `None` in the padding.
fn places(meets: &[Vec<i64>], image: &[usize]) -> Vec<Option<usize>> {
    let mut places = vec![Some(0)];
    for (meets, &dim) in meets.iter().zip(image) {
        let inside = |at: i64| usize::try_from(at).ok().filter(|&at| at < dim);
        let along = |base: &Option<usize>| {
            let base = *base;
            meets.iter().map(move |&at| Some(base? * dim + inside(at)?)).collect::<Vec<_>>()
        };
        places = places.iter().flat_map(along).collect();
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_overlap_add_up() {
        let window = Window {
            kernel: vec![2],
            strides: vec![1],
            before: vec![1],
            dilations: vec![1],
            counts: vec![3],
        };
        let how = Fold { window, image: vec![2] };
        let columns = [1i32, 2, 3, 10, 20, 30];
        let x = Tensor::from_slice(DType::I32, [1, 2, 3], &columns).unwrap();
        let y = fold(&[Some(x)], &how, &Meta::new(DType::I32, [1, 1, 2])).unwrap();
        // Windows begin at -1, 0 and 1; their second elements lie at 0, 1 and 2.
        assert_eq!(y[0].host_view().unwrap().as_slice::<i32>(), [12, 23]);
    }
}
