//! Pooling over one to three spatial axes, and over all of them.

use super::geometry::*;
use super::operands::{device_operand, divisor, host_operand};
use super::pool_places::{self, POOLED};
use super::spec::*;
use super::{Attrs, Call, FLOATS, halves};
use crate::DType;
use crate::cpu::math::{fold_max, max, sum_f64};
use crate::cpu::{Float, for_pieces, simd};
use crate::kernels::{Arg, Launcher, grid_x, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, for_float, mismatch};

const X: &[Operand] = &[required("x")];
pub(super) const KERNEL: Attribute =
    attribute("kernel", Kind::Ints, "Elements of a window, one number per spatial axis; required.");
const COUNT_INCLUDE_PAD: Attribute =
    attribute("countIncludePad", Kind::Bool(false), "Whether the divisor counts elements of the padding.");
const LARGEST: &[Attribute] = &[KERNEL, STRIDES, PADS, DILATIONS, AUTO_PAD, CEIL_MODE];
const MEAN: &[Attribute] = &[KERNEL, STRIDES, PADS, DILATIONS, AUTO_PAD, CEIL_MODE, COUNT_INCLUDE_PAD];

const fn largest(name: &'static str, shape: ShapeRule, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: X,
        attributes: LARGEST,
        dtypes: POOLED,
        results: Results::One,
        shape,
        cpu: largest_cpu,
        cuda: |call, launcher, inputs, outputs| {
            if !call.dtype().is_float() {
                return pool_places::cuda(call, launcher, inputs, outputs);
            }
            pool_cuda(call, launcher, inputs, outputs, "maxPool")
        },
        tolerance: Tolerance::Exact,
        doc,
    }
}

const fn mean(name: &'static str, shape: ShapeRule, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: X,
        attributes: MEAN,
        dtypes: FLOATS,
        results: Results::One,
        shape,
        cpu: |call, inputs, outputs| for_float!(call.dtype(), pool_mean(call, inputs, outputs)),
        cuda: |call, launcher, inputs, outputs| pool_cuda(call, launcher, inputs, outputs, "averagePool"),
        tolerance: Tolerance::Accumulate,
        doc,
    }
}

const fn global(name: &'static str, cpu: CpuForm, tolerance: Tolerance, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: X,
        attributes: &[],
        dtypes: FLOATS,
        results: Results::One,
        shape: global_shape,
        cpu,
        cuda: global_cuda,
        tolerance,
        doc,
    }
}

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    largest("maxPool1d", shape::<1>, "Largest element of each window of [N, C, L]; padding never counts (ONNX MaxPool)."),
    largest("maxPool2d", shape::<2>, "Largest element of each window of [N, C, H, W]; padding never counts (ONNX MaxPool)."),
    largest("maxPool3d", shape::<3>, "Largest element of each window of [N, C, D, H, W]; padding never counts (ONNX MaxPool)."),
    mean("averagePool1d", shape::<1>, "Mean of each window of [N, C, L] (ONNX AveragePool)."),
    mean("averagePool2d", shape::<2>, "Mean of each window of [N, C, H, W] (ONNX AveragePool)."),
    mean("averagePool3d", shape::<3>, "Mean of each window of [N, C, D, H, W] (ONNX AveragePool)."),
    global("globalMaxPool", |call, inputs, outputs| for_float!(call.dtype(), global_largest(call, inputs, outputs)),
        Tolerance::Exact, "Largest element over all spatial axes of [N, C, ...] (ONNX GlobalMaxPool)."),
    global("globalAveragePool", |call, inputs, outputs| for_float!(call.dtype(), global_mean(call, inputs, outputs)),
        Tolerance::Accumulate, "Mean over all spatial axes of [N, C, ...], NaN where there are no elements (ONNX GlobalAveragePool)."),
];

pub(super) fn shape<const AXES: usize>(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    spec.expect_rank(0, x, AXES + 2..=AXES + 2)?;
    let mut dims = x.dims[..2].to_vec();
    dims.extend(axes(spec, attrs, &x.dims)?.iter().map(|axis| axis.output));
    Ok(vec![Meta::new(x.dtype, dims)])
}

fn axes(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<Vec<WindowAxis>> {
    let Some(kernel) = whole_numbers(spec, attrs, KERNEL.name, dims.len() - 2, 1)? else {
        return crate::invalid!("{}: option 'kernel' is required", spec.name);
    };
    window_axes(spec, attrs, &dims[2..], &kernel)
}

/// Depth, height and width; axes that the input does not have are windows of one over one element.
pub(super) fn three_axes(call: &Call) -> Result<[WindowAxis; 3]> {
    let own = axes(call.spec, &call.attrs, &call.input(0).dims)?;
    let one = WindowAxis { input: 1, kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0, output: 1 };
    let mut all = [one; 3];
    all[3 - own.len()..].copy_from_slice(&own);
    Ok(all)
}

/// Calls `join(windows along the width, row of the input, position of the first window's element, tap)` for each row
/// of the input and tap that some window of one output row covers.
fn for_row_taps<T: Float>(
    x: &[T],
    [depth, height, width]: &[WindowAxis; 3],
    row: usize,
    mut join: impl FnMut(std::ops::Range<usize>, &[T]),
) {
    let (rest, h) = (row / height.output, row % height.output);
    let (plane, d) = (rest / depth.output, rest % depth.output);
    for depth_tap in depth.taps(d) {
        let slice = plane * depth.input + depth.position(d, depth_tap);
        for height_tap in height.taps(h) {
            let line = slice * height.input + height.position(h, height_tap);
            let line = &x[line * width.input..][..width.input];
            for tap in 0..width.kernel {
                let windows = width.windows(tap);
                if !windows.is_empty() {
                    join(windows.clone(), &line[width.position(windows.start, tap)..]);
                }
            }
        }
    }
}

/// Joins the elements under one tap, a stride apart, to their windows.
fn join_taps<T: Copy, A: Copy>(windows: &mut [A], line: &[T], stride: usize, join: impl Fn(A, T) -> A) {
    if stride == 1 {
        windows.iter_mut().zip(line).for_each(|(all, &value)| *all = join(*all, value));
    } else {
        windows
            .iter_mut()
            .zip(line.iter().step_by(stride))
            .for_each(|(all, &value)| *all = join(*all, value));
    }
}

fn window_size(axes: &[WindowAxis; 3]) -> usize {
    axes.iter().map(|axis| axis.kernel).fold(1, usize::saturating_mul)
}

fn largest_cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => pool_largest::<f64>(call, inputs, outputs),
        DType::F32 => pool_largest::<f32>(call, inputs, outputs),
        DType::F16 | DType::Bf16 => halves::around(call, inputs, outputs, largest_cpu),
        _ => pool_places::cpu(call, inputs, outputs),
    }
}

fn pool_largest<T: Float>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let axes = three_axes(call)?;
    let width = axes[2];
    for_pieces(outputs[0].as_slice_mut::<T>(), width.output, window_size(&axes), |start, piece| {
        for (index, row) in piece.chunks_mut(width.output).enumerate() {
            row.fill(-T::INFINITY);
            for_row_taps(x, &axes, start / width.output + index, |windows, line| {
                join_taps(&mut row[windows], line, width.stride, max);
            });
        }
    });
    Ok(())
}

fn pool_mean<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let axes = three_axes(call)?;
    let [depth, height, width] = axes;
    let padded = call.attrs.bool(COUNT_INCLUDE_PAD.name);
    let count = |axis: &WindowAxis, index: usize| {
        (if padded { axis.padded_taps(index) } else { axis.taps(index).len() }) as f64
    };
    let columns: Vec<f64> = (0..width.output).map(|index| count(&width, index)).collect();
    for_pieces(outputs[0].as_slice_mut::<T>(), width.output, window_size(&axes), |start, piece| {
        let mut sums = vec![0.0; width.output];
        for (index, row) in piece.chunks_mut(width.output).enumerate() {
            let at = start / width.output + index;
            sums.fill(0.0);
            for_row_taps(x, &axes, at, |windows, line| {
                join_taps(&mut sums[windows], line, width.stride, |sum, value| sum + value.to_f64());
            });
            let rows = count(&height, at % height.output) * count(&depth, at / height.output % depth.output);
            for ((y, sum), column) in row.iter_mut().zip(&sums).zip(&columns) {
                *y = T::from_f64(sum / (rows * column));
            }
        }
    });
    Ok(())
}

fn pool_cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
    kernel: &str,
) -> Result<()> {
    let n = call.output().size() as u64;
    if n == 0 {
        return Ok(());
    }
    let words = pack(call.spec, &three_axes(call)?, n, call.attrs.bool(COUNT_INCLUDE_PAD.name))?;
    let (x, y) = (device_operand(call, inputs, 0)?, outputs[0].ptr);
    let arguments = [Arg::Ptr(x), Arg::Ptr(y), Arg::U64(n), Arg::Block(&words)];
    launcher.launch(&format!("{kernel}_{}", call.dtype().suffix()), linear(n, 256, 1)?, &arguments)
}

/// `struct Window` of kernels/pool.cu.
pub(super) fn pack(
    spec: &OpSpec,
    axes: &[WindowAxis; 3],
    n: u64,
    count_include_pad: bool,
) -> Result<Vec<u32>> {
    let mut words = Vec::with_capacity(32);
    let mut wide = n > u64::from(u32::MAX);
    for axis in axes {
        // Strides and dilations that no tap uses may be of any size.
        let stride = if axis.output == 1 { 1 } else { axis.stride };
        let dilation = if axis.kernel == 1 { 1 } else { axis.dilation };
        let reach = axis.input + axis.begin + axis.end + axis.kernel * dilation;
        wide |= reach.max(axis.output.saturating_mul(stride)) >= 1 << 31;
        let sizes = [axis.input, axis.output, axis.kernel, stride, dilation, axis.begin, axis.end, 0];
        if sizes.iter().any(|&size| size > u32::MAX as usize) {
            return mismatch!("{}: a spatial axis on the GPU takes up to {} elements", spec.name, u32::MAX);
        }
        words.extend(sizes.map(|size| size as u32));
        let magic = divisor(axis.output);
        words.extend([magic as u32, (magic >> 32) as u32]);
    }
    words.extend([u32::from(count_include_pad), u32::from(wide)]);
    Ok(words)
}

fn global_shape(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    if x.dims.len() < 2 {
        return mismatch!("{}: 'x' must have rank 2 or more, got dims {:?}", spec.name, x.dims);
    }
    if spec.tolerance == Tolerance::Exact && x.dims[2..].contains(&0) {
        return mismatch!("{}: there is no largest of no elements, got dims {:?}", spec.name, x.dims);
    }
    let mut dims = x.dims.clone();
    dims[2..].fill(1);
    Ok(vec![Meta::new(x.dtype, dims)])
}

fn plane_size(call: &Call) -> usize {
    crate::shape::size_of(&call.input(0).dims[2..])
}

fn global_largest<T: Float>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let size = plane_size(call);
    let largest = |plane: &[T]| {
        simd::vectorize(
            #[inline(always)]
            || fold_max(plane, max),
        )
    };
    reduce_planes(x, size, outputs[0].as_slice_mut::<T>(), largest)
}

fn global_mean<T: Float>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let size = plane_size(call);
    let mean = |plane: &[T]| {
        let sum = simd::vectorize(
            #[inline(always)]
            || sum_f64(plane, T::to_f64),
        );
        T::from_f64(sum / size as f64)
    };
    reduce_planes(x, size, outputs[0].as_slice_mut::<T>(), mean)
}

fn reduce_planes<T: Float>(
    x: &[T],
    size: usize,
    y: &mut [T],
    reduce: impl Fn(&[T]) -> T + Send + Sync,
) -> Result<()> {
    for_pieces(y, 1, size, |start, piece| {
        for (index, y) in piece.iter_mut().enumerate() {
            *y = reduce(&x[(start + index) * size..][..size]);
        }
    });
    Ok(())
}

fn global_cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let rows = call.output().size() as u64;
    if rows == 0 {
        return Ok(());
    }
    let columns = plane_size(call) as u64;
    let (form, rows_per_block) = match columns {
        0..=64 => ("lanes", 32),
        65..=2048 => ("warp", 8),
        _ => ("block", 1),
    };
    let kernel = format!("{}_{}_{form}", call.spec.name, call.dtype().suffix());
    let (x, y) = (device_operand(call, inputs, 0)?, outputs[0].ptr);
    let arguments = [Arg::Ptr(x), Arg::Ptr(y), Arg::U64(rows), Arg::U64(columns)];
    launcher.launch(&kernel, grid_x(rows.div_ceil(rows_per_block), 256, 0)?, &arguments)
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::{DType, Error, Tensor};

    fn list(values: &[f64]) -> Raw {
        Raw::List(values.to_vec())
    }

    fn run(op: &str, dims: &[usize], x: &[f32], options: &[(&str, Raw)]) -> Result<(Vec<usize>, Vec<f32>)> {
        let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let input = Tensor::from_slice(DType::F32, dims, x)?;
        let call = Call::new(op, vec![Some(input.meta().clone())], &raw)?;
        let outputs = call.run_cpu(&[Some(input)])?;
        Ok((outputs[0].meta().dims.clone(), outputs[0].host_view()?.as_slice::<f32>().to_vec()))
    }

    #[test]
    fn padding_never_is_the_largest_and_nan_wins() {
        let options = [("kernel", list(&[2.0])), ("pads", list(&[1.0, 1.0]))];
        let (dims, y) = run("maxPool1d", &[1, 1, 3], &[-3.0, -2.0, f32::NEG_INFINITY], &options).unwrap();
        assert_eq!((dims, y), (vec![1, 1, 4], vec![-3.0, -2.0, -2.0, f32::NEG_INFINITY]));
        let y = run("maxPool1d", &[1, 1, 3], &[1.0, f32::NAN, 2.0], &options).unwrap().1;
        assert!(y[0] == 1.0 && y[1].is_nan() && y[2].is_nan() && y[3] == 2.0);
    }

    #[test]
    fn divisors_follow_count_include_pad_and_ceil_mode() {
        let x = [1.0, 2.0, 3.0, 4.0];
        let options = |count| {
            [
                ("kernel", list(&[3.0])),
                ("strides", list(&[2.0])),
                ("pads", list(&[1.0, 0.0])),
                ("ceilMode", Raw::Bool(true)),
                ("countIncludePad", Raw::Bool(count)),
            ]
        };
        assert_eq!(run("averagePool1d", &[1, 1, 4], &x, &options(false)).unwrap().1, [1.5, 3.0]);
        assert_eq!(run("averagePool1d", &[1, 1, 4], &x, &options(true)).unwrap().1, [1.0, 3.0]);
        // The last window reaches beyond the padded input; only elements within it count.
        let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let got = run("averagePool1d", &[1, 1, 6], &x, &options(true)).unwrap().1;
        assert_eq!(got, [1.0, 3.0, 5.0]);
    }

    #[test]
    fn three_axes_pool_as_one() {
        let x: Vec<f32> = (0..2 * 3 * 4 * 5).map(|i| (i * 37 % 64) as f32).collect();
        let options = [("kernel", list(&[3.0, 2.0, 2.0])), ("dilations", list(&[1.0, 2.0, 3.0]))];
        let (dims, y) = run("maxPool3d", &[1, 2, 3, 4, 5], &x, &options).unwrap();
        assert_eq!(dims, [1, 2, 1, 2, 2]);
        for (index, &got) in y.iter().enumerate() {
            let (c, h, w) = (index / 4, index / 2 % 2, index % 2);
            let at = |d: usize, i: usize, j: usize| x[((c * 3 + d) * 4 + h + 2 * i) * 5 + w + 3 * j];
            let all = (0..12).map(|k| at(k / 4, k / 2 % 2, k % 2));
            assert_eq!(got, all.fold(f32::NEG_INFINITY, f32::max));
        }
    }

    #[test]
    fn global_pools_of_nothing() {
        let code = |error: Error| error.code();
        assert_eq!(run("globalMaxPool", &[1, 2, 0], &[], &[]).map_err(code), Err("SHAPE_MISMATCH"));
        assert!(run("globalAveragePool", &[1, 2, 0], &[], &[]).unwrap().1.iter().all(|y| y.is_nan()));
        let (dims, y) = run("globalAveragePool", &[1, 2, 2, 1], &[1.0, 2.0, 5.0, 9.0], &[]).unwrap();
        assert_eq!((dims, y), (vec![1, 2, 1, 1], vec![1.5, 7.0]));
        assert_eq!(run("maxPool2d", &[1, 1, 2, 2], &[0.0; 4], &[]).map_err(code), Err("INVALID_ARGUMENT"));
    }

    #[test]
    fn every_row_has_its_kernels() {
        use Parameter::{Block, Word64};
        let axis = WindowAxis { input: 5, kernel: 1, stride: 9, dilation: 1, begin: 0, end: 0, output: 1 };
        let block = Block(pack(&OPS[0], &[axis; 3], 1, false).unwrap().len() * 4);
        for suffix in FLOATS.iter().map(|dtype| dtype.suffix()) {
            for name in ["maxPool", "averagePool"] {
                let (_, entry) = kernel(&format!("{name}_{suffix}"), 75).unwrap();
                assert_eq!(entry.parameters, [Word64, Word64, Word64, block], "{name}");
            }
            for (op, form) in [("Max", "lanes"), ("Max", "warp"), ("Average", "block")] {
                let (_, entry) = kernel(&format!("global{op}Pool_{suffix}_{form}"), 75).unwrap();
                assert_eq!(entry.parameters, [Word64; 4]);
            }
        }
    }
}
