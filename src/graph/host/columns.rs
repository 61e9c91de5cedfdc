//! Columns of deformable convolutions: what each element of a kernel meets at each place, between pixels.

use super::{filled, widened};
use crate::Result;
use crate::cpu::{Float, for_pieces};
use crate::for_float;
use crate::ops::Meta;
use crate::tensor::Tensor;

/// Windows over the spatial axes of images.
#[derive(Clone)]
pub struct Window {
    /// Elements of a window along each axis.
    pub kernel: Vec<usize>,
    /// Steps between windows.
    pub strides: Vec<usize>,
    /// Padding before each axis.
    pub before: Vec<usize>,
    /// Steps between the elements of a window.
    pub dilations: Vec<usize>,
    /// Windows along each axis.
    pub counts: Vec<usize>,
}

impl Window {
    /// Indices along each axis of an index of the whole.
    fn split(index: usize, dims: &[usize]) -> Vec<usize> {
        let mut rest = index;
        let mut places = vec![0; dims.len()];
        for (axis, &dim) in dims.iter().enumerate().rev() {
            places[axis] = rest % dim;
            rest /= dim;
        }
        places
    }

    /// For each axis where each window meets an element of the kernel, in pixels from the image's first.
    pub fn meets(&self, element: usize) -> Vec<Vec<i64>> {
        let offsets = Window::split(element, &self.kernel);
        let along = |axis: usize| {
            let first = (offsets[axis] * self.dilations[axis]) as i64 - self.before[axis] as i64;
            (0..self.counts[axis]).map(|count| first + (count * self.strides[axis]) as i64).collect()
        };
        (0..self.kernel.len()).map(along).collect()
    }
}

/// Pixels around a place with their weights.
type Corners<F> = Vec<(usize, F)>;

/// Operands: images `[n, channels, ...]`, offsets `[n, groups * elements * axes, ...]` and, if it is there, a mask
/// `[n, groups * elements, ...]`. The result is `[n, channels * elements, windows]`.
pub fn deform_columns(
    inputs: &[Option<Tensor>],
    window: &Window,
    groups: usize,
    output: &Meta,
) -> Result<Vec<Tensor>> {
    let (x, offsets) = (widened(inputs, 0)?, widened(inputs, 1)?);
    let mask = match inputs.get(2) {
        Some(Some(_)) => Some(widened(inputs, 2)?),
        _ => None,
    };
    Ok(vec![for_float!(x.meta().dtype, columns(&x, &offsets, mask.as_ref(), window, groups, output))?])
}

fn columns<F: Float>(
    x: &Tensor,
    offsets: &Tensor,
    mask: Option<&Tensor>,
    window: &Window,
    groups: usize,
    output: &Meta,
) -> Result<Tensor> {
    let dims = &x.meta().dims;
    let (channels, image) = (dims[1] / groups, &dims[2..]);
    let pixels: usize = image.iter().product();
    let (elements, windows): (usize, usize) =
        (window.kernel.iter().product(), window.counts.iter().product());
    let axes = image.len();
    let values = x.host_view()?.as_slice::<F>();
    let offsets = offsets.host_view()?.as_slice::<F>();
    let mask = mask.map(|mask| Ok::<_, crate::Error>(mask.host_view()?.as_slice::<F>())).transpose()?;
    let block = channels * elements * windows;
    filled::<F>(output, |out| {
        for_pieces(out, block, 8, |start, piece| {
            for (index, results) in piece.chunks_exact_mut(block).enumerate() {
                let group = start / block + index;
                for element in 0..elements {
                    let row = (group * elements + element) * windows;
                    let shifts = &offsets[row * axes..][..windows * axes];
                    let factors = mask.map(|mask| &mask[row..][..windows]);
                    let corners = corners(window, element, image, shifts, factors);
                    for channel in 0..channels {
                        let plane = &values[(group * channels + channel) * pixels..][..pixels];
                        let line = &mut results[(channel * elements + element) * windows..][..windows];
                        for (slot, corners) in line.iter_mut().zip(corners.chunks_exact(1 << axes)) {
                            let sum = |sum, &(at, weight): &(usize, F)| sum + weight * plane[at];
                            *slot = corners.iter().filter(|corner| corner.1 != F::ZERO).fold(F::ZERO, sum);
                        }
                    }
                }
            }
        });
    })
}

/// For every window the pixels around the place where that element of the kernel lies after its shift; those outside the
/// image have the weight 0.
fn corners<F: Float>(
    window: &Window,
    element: usize,
    image: &[usize],
    shifts: &[F],
    factors: Option<&[F]>,
) -> Corners<F> {
    let (axes, windows) = (image.len(), shifts.len() / image.len().max(1));
    let meets = window.meets(element);
    let strides = crate::shape::strides_of(image);
    let mut corners = Vec::with_capacity(windows << axes);
    for index in 0..windows {
        let places = Window::split(index, &window.counts);
        let factor = factors.map_or(1.0, |factors| factors[index].to_f64());
        let first = corners.len();
        corners.push((0, factor));
        for axis in 0..axes {
            let at = meets[axis][places[axis]] as f64 + shifts[axis * windows + index].to_f64();
            let (low, part) = (at.floor(), at - at.floor());
            for corner in first..corners.len() {
                let (base, weight) = corners[corner];
                let side = |low: f64, part: f64| {
                    let inside = (0.0..image[axis] as f64).contains(&low);
                    let step = if inside { low as usize * strides[axis] } else { 0 };
                    (
                        base + step,
                        if inside || (low.is_nan() && image[axis] > 0) { weight * part } else { 0.0 },
                    )
                };
                let (before, behind) = (side(low, 1.0 - part), side(low + 1.0, part));
                corners[corner] = before;
                corners.push(behind);
            }
        }
    }
    corners.into_iter().map(|(at, weight)| (at, F::from_f64(weight))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    #[test]
    fn places_between_pixels() {
        let window = Window {
            kernel: vec![2, 1],
            strides: vec![1, 1],
            before: vec![0, 1],
            dilations: vec![1, 1],
            counts: vec![1, 2],
        };
        assert_eq!(window.meets(1), [vec![1], vec![-1, 0]]);
        let x = Tensor::from_slice(DType::F64, [1, 1, 2, 2], &[1.0, 2.0, 3.0, f64::NAN]).unwrap();
        // For each element of the kernel shifts along y for both windows, then along x.
        let shifts = [0.0, 0.0, 1.0, 0.0, -1.0, -0.5, 1.0, 0.0];
        let offsets = Tensor::from_slice(DType::F64, [1, 4, 1, 2], &shifts).unwrap();
        let mask = Tensor::from_slice(DType::F64, [1, 2, 1, 2], &[1.0, 1.0, 2.0, 3.0]).unwrap();
        let output = Meta::new(DType::F64, [1, 2, 2]);
        let y = deform_columns(&[Some(x), Some(offsets), Some(mask)], &window, 1, &output).unwrap();
        assert_eq!(y[0].host_view().unwrap().as_slice::<f64>(), [1.0, 1.0, 2.0, 6.0]);
    }
}
