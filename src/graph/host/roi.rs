//! Pooling over regions of interest by samples between pixels.

use super::{filled, operand, widened};
use crate::cpu::{Float, for_pieces};
use crate::for_float;
use crate::graph::plan::{integers, numbers};
use crate::ops::Meta;
use crate::tensor::Tensor;
use crate::{Error, Result};

/// How regions are pooled.
#[derive(Clone, Copy)]
pub struct Regions {
    /// The largest sample rather than the mean.
    pub max: bool,
    /// Whether pixels' centres lie at halves.
    pub half_pixel: bool,
    /// Samples of a bin along each axis; 0 for one a pixel.
    pub samples: usize,
    /// Factor from a region's numbers to pixels.
    pub scale: f64,
}

/// The four pixels around a sample and their weights.
type Sample<F> = [(usize, F); 4];

/// Most samples of one region.
const MOST: f64 = (1u64 << 26) as f64;

/// Operands: images `[n, channels, height, width]`, regions `[count, 4]` as x1, y1, x2, y2, and the image of each.
pub fn roi_align(inputs: &[Option<Tensor>], how: Regions, output: &Meta) -> Result<Vec<Tensor>> {
    let x = widened(inputs, 0)?;
    let (regions, images) = (numbers(operand(inputs, 1)?)?, integers(operand(inputs, 2)?)?);
    let count = x.meta().dims[0];
    if let Some(image) =
        images.iter().find(|&&image| usize::try_from(image).is_ok_and(|it| it < count).eq(&false))
    {
        return Err(Error::OutOfRange(format!(
            "batch_indices: {image} does not lie in 0 to {count} (excluded)"
        )));
    }
    Ok(vec![for_float!(x.meta().dtype, align(&x, &regions, &images, how, output))?])
}

fn align<F: Float>(
    x: &Tensor,
    regions: &[f64],
    images: &[i64],
    how: Regions,
    output: &Meta,
) -> Result<Tensor> {
    let [_, channels, height, width] = x.meta().dims[..] else {
        return Err(Error::Internal("images have four dims".into()));
    };
    let bins = output.dims[2] * output.dims[3];
    let values = x.host_view()?.as_slice::<F>();
    let grids = regions.chunks_exact(4).map(|region| Grid::new(region, how, &output.dims[2..]));
    let grids = grids.collect::<Result<Vec<_>>>()?;
    filled::<F>(output, |out| {
        for_pieces(out, channels * bins, 64, |start, piece| {
            for (index, results) in piece.chunks_exact_mut((channels * bins).max(1)).enumerate() {
                let region = start / (channels * bins) + index;
                let samples = grids[region].samples::<F>(height, width);
                for (channel, results) in results.chunks_exact_mut(bins).enumerate() {
                    let plane = images[region] as usize * channels + channel;
                    let pixels = &values[plane * height * width..][..height * width];
                    for (bin, slot) in results.iter_mut().enumerate() {
                        let each = grids[region].each();
                        *slot = pool(pixels, &samples[bin * each..][..each], how.max);
                    }
                }
            }
        });
    })
}

fn pool<F: Float>(pixels: &[F], samples: &[Sample<F>], max: bool) -> F {
    let terms = |sample: &Sample<F>| {
        sample.map(|(at, weight)| if weight == F::ZERO { F::ZERO } else { weight * pixels[at] })
    };
    let larger = |a: F, b: F| if a.is_nan() || a > b { a } else { b };
    if max {
        return samples.iter().flat_map(terms).reduce(larger).unwrap_or(F::ZERO);
    }
    let sum = samples.iter().map(terms).fold(F::ZERO, |sum, [a, b, c, d]| sum + (a + b + c + d));
    sum / F::from_f64(samples.len().max(1) as f64)
}

/// Samples of a region along its two axes, y first.
struct Grid {
    start: [f64; 2],
    /// Size of a bin.
    size: [f64; 2],
    bins: [usize; 2],
    /// Samples of a bin.
    samples: [usize; 2],
}

impl Grid {
    fn new(region: &[f64], how: Regions, bins: &[usize]) -> Result<Grid> {
        let shift = if how.half_pixel { 0.5 } else { 0.0 };
        let [x1, y1, x2, y2] = [0, 1, 2, 3].map(|index| region[index] * how.scale - shift);
        let least = if how.half_pixel { f64::NEG_INFINITY } else { 1.0 };
        let (height, width) = ((y2 - y1).max(least), (x2 - x1).max(least));
        let bins = [bins[0], bins[1]];
        let size = [height / bins[0] as f64, width / bins[1] as f64];
        let count = |size: f64| if how.samples > 0 { how.samples as f64 } else { size.ceil().max(0.0) };
        let wanted = [count(size[0]), count(size[1])];
        let total = wanted[0] * wanted[1] * (bins[0] * bins[1]) as f64;
        if total.is_nan() || total > MOST {
            return Err(Error::OutOfRange(format!(
                "rois: a region of {height} by {width} pixels is too large"
            )));
        }
        Ok(Grid { start: [y1, x1], size, bins, samples: wanted.map(|it| it as usize) })
    }

    /// Samples of a bin.
    fn each(&self) -> usize {
        self.samples[0] * self.samples[1]
    }

    /// Places along an axis: the pixel before, the one behind and the part of the latter; `None` outside.
    fn places(&self, axis: usize, pixels: usize) -> Vec<Option<(usize, usize, f64)>> {
        let place = |index: usize| {
            let (bin, sample) = (index / self.samples[axis], index % self.samples[axis]);
            let within = (sample as f64 + 0.5) / self.samples[axis] as f64;
            let at = self.start[axis] + (bin as f64 + within) * self.size[axis];
            if !(-1.0..=pixels as f64).contains(&at) || pixels == 0 {
                return None;
            }
            let at = at.clamp(0.0, (pixels - 1) as f64);
            let low = at as usize;
            Some((low, (low + 1).min(pixels - 1), at - low as f64))
        };
        (0..self.bins[axis] * self.samples[axis]).map(place).collect()
    }

    /// Samples of all bins, those of a bin together.
    fn samples<F: Float>(&self, height: usize, width: usize) -> Vec<Sample<F>> {
        let (rows, columns) = (self.places(0, height), self.places(1, width));
        let mut samples = Vec::with_capacity(rows.len() * columns.len());
        for bin in 0..self.bins[0] * self.bins[1] {
            let first = [bin / self.bins[1] * self.samples[0], bin % self.bins[1] * self.samples[1]];
            for index in 0..self.each() {
                let row = rows[first[0] + index / self.samples[1]];
                let column = columns[first[1] + index % self.samples[1]];
                samples.push(match (row, column) {
                    (Some((top, bottom, y)), Some((left, right, x))) => [
                        (top * width + left, F::from_f64((1.0 - y) * (1.0 - x))),
                        (top * width + right, F::from_f64((1.0 - y) * x)),
                        (bottom * width + left, F::from_f64(y * (1.0 - x))),
                        (bottom * width + right, F::from_f64(y * x)),
                    ],
                    _ => [(0, F::ZERO); 4],
                });
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn run(region: [f32; 4], how: Regions, bins: [usize; 2]) -> Result<Vec<f32>> {
        let pixels: Vec<f32> = (0..16).map(|it| it as f32).collect();
        let x = Tensor::from_slice(DType::F32, [1, 1, 4, 4], &pixels)?;
        let rois = Tensor::from_slice(DType::F32, [1, 4], &region)?;
        let image = Tensor::from_slice(DType::I64, [1], &[0i64])?;
        let output = Meta::new(DType::F32, [1, 1, bins[0], bins[1]]);
        let y = roi_align(&[Some(x), Some(rois), Some(image)], how, &output)?;
        Ok(y[0].host_view()?.as_slice::<f32>().to_vec())
    }

    #[test]
    fn regions_of_a_ramp() {
        let how = Regions { max: false, half_pixel: true, samples: 1, scale: 1.0 };
        // Bins of one pixel, sampled at their centres.
        assert_eq!(run([1.0, 1.0, 3.0, 3.0], how, [2, 2]).unwrap(), [5.0, 6.0, 9.0, 10.0]);
        let whole = Regions { half_pixel: false, samples: 0, ..how };
        assert_eq!(run([0.0, 0.0, 2.0, 2.0], whole, [1, 1]).unwrap(), [5.0]);
        // Regions are at least one pixel wide there.
        assert_eq!(run([1.0, 1.0, 1.0, 1.0], whole, [1, 1]).unwrap(), [7.5]);
        assert_eq!(run([90.0, 90.0, 99.0, 99.0], whole, [1, 1]).unwrap(), [0.0]);
        let largest = Regions { max: true, samples: 2, ..whole };
        assert_eq!(run([0.0, 0.0, 2.0, 2.0], largest, [1, 1]).unwrap(), [2.5]);
    }

    #[test]
    fn odd_regions_are_errors_or_nothing() {
        let how = Regions { max: false, half_pixel: true, samples: 0, scale: 1.0 };
        assert_eq!(run([0.0, 0.0, 1e30, 1e30], how, [1, 1]).unwrap_err().code(), "OUT_OF_RANGE");
        assert_eq!(run([3.0, 3.0, 1.0, 1.0], how, [1, 1]).unwrap(), [0.0]);
        assert!(run([f32::NAN; 4], how, [1, 1]).is_ok());
    }
}
