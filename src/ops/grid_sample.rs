//! gridSample: elements at places between those of a tensor. Places and weights are found in float64 on both devices.

use super::operands::{device_operand, host_operand};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::cpu::{Float, for_pieces};
use crate::kernels::{Arg, Launcher, linear};
use crate::shape::size_of;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, for_float, mismatch};

const MODE: Attribute = attribute(
    "mode",
    Kind::Choice(&["linear", "nearest", "cubic"]),
    "How elements are joined: by distance along each axis, the nearest one (the even one of two as near), or by cubics.",
);
const PADDING: Attribute = attribute(
    "paddingMode",
    Kind::Choice(&["zeros", "border", "reflection"]),
    "What lies outside: zeros, the nearest element of the border, or the elements mirrored at the border.",
);
const ALIGN: Attribute = attribute(
    "alignCorners",
    Kind::Bool(false),
    "Whether -1 and 1 are the middles of the first and last element instead of their outer edges.",
);

/// The family's rows.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "gridSample",
    operands: &[required("x"), required("grid")],
    attributes: &[MODE, PADDING, ALIGN],
    dtypes: FLOATS,
    results: Results::One,
    shape,
    cpu: |call, inputs, outputs| for_float!(call.dtype(), cpu(call, inputs, outputs)),
    cuda,
    tolerance: Tolerance::Accumulate,
    doc: "For each place of grid [N, H', W', 2] or [N, D', H', W', 3], which names a column, a row and a slice from -1 to 1, what \
          lies there in each channel of x [N, C, H, W] or [N, C, D, H, W] (ONNX GridSample).",
}];

fn shape(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    let (x, grid) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    spec.expect_rank(0, x, 4..=5)?;
    let rank = x.dims.len();
    spec.expect_rank(1, grid, rank..=rank)?;
    if grid.dims[0] != x.dims[0] || grid.dims[rank - 1] != rank - 2 {
        return mismatch!(
            "{}: 'grid' must have dims [{}, ..., {}] for 'x' {:?}, got {:?}",
            spec.name,
            x.dims[0],
            rank - 2,
            x.dims,
            grid.dims
        );
    }
    if x.dims[2..].contains(&0) {
        return mismatch!("{}: 'x' has no elements to sample (dims {:?})", spec.name, x.dims);
    }
    Ok(vec![Meta::new(x.dtype, [&x.dims[..2], &grid.dims[1..rank - 1]].concat())])
}

/// A call in numbers; slices that x does not have are one.
struct Problem {
    channels: usize,
    /// Slices, rows and columns of x.
    sizes: [usize; 3],
    axes: usize,
    points: usize,
    mode: u32,
    padding: u32,
    align: bool,
}

impl Problem {
    fn of(call: &Call) -> Problem {
        let (x, grid) = (&call.input(0).dims, &call.input(1).dims);
        let axes = x.len() - 2;
        let mut sizes = [1; 3];
        sizes[3 - axes..].copy_from_slice(&x[2..]);
        let place = |option: &Attribute, words: &[&str]| {
            let word = call.attrs.choice(option.name);
            words.iter().position(|known| *known == word).unwrap_or(0) as u32
        };
        Problem {
            channels: x[1],
            sizes,
            axes,
            points: size_of(&grid[1..axes + 1]),
            mode: place(&MODE, &["nearest", "linear", "cubic"]),
            padding: place(&PADDING, &["zeros", "border", "reflection"]),
            align: call.attrs.bool(ALIGN.name),
        }
    }

    /// The elements along one axis that a place is between, `None` where there are zeros, with their weights.
    fn taps(&self, size: usize, place: f64) -> ([Option<usize>; 4], [f64; 4], usize) {
        let last = (size - 1) as f64;
        let (low, high) = if self.align { (0.0, last) } else { (-0.5, last + 0.5) };
        let place =
            if self.align { (place + 1.0) / 2.0 * last } else { ((place + 1.0) * size as f64 - 1.0) / 2.0 };
        // NaN is far outside, as infinity is.
        let place = if place > -FAR { place.min(FAR) } else { -FAR };
        let place = if self.mode == 0 { place.round_ties_even() } else { place };
        let place = match self.padding {
            _ if place >= low && place <= high => place,
            1 => place.clamp(0.0, last),
            2 => reflected(place, low, high),
            _ => place,
        };
        let first = place.floor();
        let rest = place - first;
        let (first, count, weights) = match self.mode {
            0 => (place.round_ties_even(), 1, [1.0, 0.0, 0.0, 0.0]),
            1 => (first, 2, [1.0 - rest, rest, 0.0, 0.0]),
            _ => (first - 1.0, 4, cubic(rest)),
        };
        let element = |tap: usize| {
            let at = first + tap as f64;
            match self.padding {
                0 if at < 0.0 || at > last => None,
                2 if at < low || at > high => Some(reflected(at, low, high).clamp(0.0, last) as usize),
                _ => Some(at.clamp(0.0, last) as usize),
            }
        };
        (std::array::from_fn(element), weights, count)
    }
}

/// Further out than any element.
const FAR: f64 = 1e15;

/// Keys' cubic with a of -0.75 for a place that far past the second of four elements, as products that keep their digits.
fn cubic(t: f64) -> [f64; 4] {
    let s = 1.0 - t;
    [-0.75 * t * s * s, s * (1.0 + t - 1.25 * t * t), t * (1.0 + s - 1.25 * s * s), -0.75 * s * t * t]
}

/// The place after mirrors at both ends.
fn reflected(place: f64, low: f64, high: f64) -> f64 {
    let range = high - low;
    if range <= 0.0 {
        return low;
    }
    let beyond = if place < low { low - place } else { place - high };
    let times = (beyond / range).floor();
    let rest = beyond - times * range;
    let even = times % 2.0 == 0.0;
    if (place < low) == even { low + rest } else { high - rest }
}

fn cpu<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let (x, grid) = (host_operand::<T>(call, inputs, 0)?, host_operand::<T>(call, inputs, 1)?);
    let problem = Problem::of(call);
    let Problem { channels, sizes, axes, points, .. } = problem;
    let plane = size_of(&sizes);
    for_pieces(outputs[0].as_slice_mut::<T>(), 1, 60, |start, piece| {
        for (offset, y) in piece.iter_mut().enumerate() {
            let (row, point) = ((start + offset) / points, (start + offset) % points);
            let place = &grid[(row / channels * points + point) * axes..][..axes];
            let along = |axis: usize| {
                // A grid names the last axis first.
                let named = place.get(2 - axis).map_or(0.0, |place| place.to_f64());
                if axis + axes < 3 { ([Some(0); 4], [1.0; 4], 1) } else { problem.taps(sizes[axis], named) }
            };
            let [depth, height, width] = [along(0), along(1), along(2)];
            let x = &x[row * plane..][..plane];
            let mut sum = 0.0;
            for d in 0..depth.2 {
                for h in 0..height.2 {
                    for w in 0..width.2 {
                        let weight = depth.1[d] * height.1[h] * width.1[w];
                        if let (Some(d), Some(h), Some(w)) = (depth.0[d], height.0[h], width.0[w]) {
                            sum += weight * x[(d * sizes[1] + h) * sizes[2] + w].to_f64();
                        }
                    }
                }
            }
            *y = T::from_f64(sum);
        }
    });
    Ok(())
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let n = call.output().size();
    if n == 0 {
        return Ok(());
    }
    let Problem { channels, sizes, axes, points, mode, padding, align } = Problem::of(call);
    let arguments = [
        Arg::Ptr(device_operand(call, inputs, 0)?),
        Arg::Ptr(device_operand(call, inputs, 1)?),
        Arg::Ptr(outputs[0].ptr),
        Arg::U64(n as u64),
        Arg::U64(channels as u64),
        Arg::U64(points as u64),
        Arg::U64(sizes[0] as u64),
        Arg::U64(sizes[1] as u64),
        Arg::U64(sizes[2] as u64),
        Arg::U32(axes as u32),
        Arg::U32(mode),
        Arg::U32(padding),
        Arg::U32(u32::from(align)),
    ];
    launcher.launch(&format!("gridSample_{}", call.dtype().suffix()), linear(n as u64, 256, 1)?, &arguments)
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::kernels::{Parameter, find};
    use crate::{DType, Tensor};

    fn run(mode: &str, padding: &str, align: bool, places: &[f64]) -> Vec<f64> {
        let x = Tensor::from_slice(DType::F64, [1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        let grid: Vec<f64> = places.iter().flat_map(|&place| [place, 0.0]).collect();
        let grid = Tensor::from_slice(DType::F64, [1, 1, places.len(), 2], &grid).unwrap();
        let options = [
            ("mode".to_string(), Raw::Text(mode.into())),
            ("paddingMode".to_string(), Raw::Text(padding.into())),
            ("alignCorners".to_string(), Raw::Bool(align)),
        ];
        let metas = vec![Some(x.meta().clone()), Some(grid.meta().clone())];
        let call = Call::new("gridSample", metas, &options).unwrap();
        let y = call.run_cpu(&[Some(x), Some(grid)]).unwrap();
        y[0].host_view().unwrap().as_slice().to_vec()
    }

    #[test]
    fn places_lie_between_elements() {
        let ends = [-1.0, 1.0, 0.0, -0.75];
        assert_eq!(run("linear", "zeros", true, &[-1.0, 1.0, 0.0]), [1.0, 4.0, 2.5]);
        assert_eq!(run("linear", "zeros", false, &ends), [0.5, 2.0, 2.5, 1.0]);
        assert_eq!(run("linear", "border", false, &ends), [1.0, 4.0, 2.5, 1.0]);
        assert_eq!(run("nearest", "zeros", false, &[-0.8, 0.7, 5.0]), [1.0, 4.0, 0.0]);
        assert_eq!(run("nearest", "reflection", false, &[1.25, 1.75, f64::NAN])[..2], [4.0, 3.0]);
        assert_eq!(run("cubic", "border", true, &[-1.0, 1.0]), [1.0, 4.0]);
    }

    #[test]
    fn every_type_has_its_kernel() {
        use Parameter::{Word32, Word64 as W};
        for dtype in FLOATS {
            let (_, entry) = find(&format!("gridSample_{}", dtype.suffix()), 75).unwrap();
            assert_eq!(entry.parameters, [&[W; 9][..], &[Word32; 4]].concat());
        }
    }
}
