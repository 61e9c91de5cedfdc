//! layerNorm and batchNorm.

use super::operands::{device_operand, device_optional, divisor, host_operand, host_optional};
use super::rows::RowCall;
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::cpu::math::sum_f64;
use crate::cpu::{Float, for_pieces, simd};
use crate::kernels::{Arg, Launcher, float_arg, linear};
use crate::shape::{normalize_axis, size_of as product};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, for_float};

pub(super) const EPSILON: Attribute =
    attribute("epsilon", Kind::Float(1e-5), "Added to the variance before the square root.");

pub(super) const AXIS: Attribute =
    attribute("axis", Kind::Int(Some(-1)), "First axis of those normalised over; the last by default.");

/// The family's rows.
pub const OPS: &[OpSpec] = &[
    OpSpec {
        name: "layerNorm",
        operands: &[required("x"), optional("scale"), optional("bias")],
        attributes: &[AXIS, EPSILON],
        dtypes: FLOATS,
        results: Results::One,
        shape: layer_shape,
        cpu: |call, inputs, outputs| for_float!(call.dtype(), layer_norm(call, inputs, outputs)),
        cuda: layer_norm_cuda,
        tolerance: Tolerance::Normalized,
        doc: "(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on, whose dims scale and \
              bias have (ONNX LayerNormalization).",
    },
    OpSpec {
        name: "batchNorm",
        operands: &[
            required("x"),
            required("scale"),
            required("bias"),
            required("mean"),
            required("variance"),
        ],
        attributes: &[EPSILON],
        dtypes: FLOATS,
        results: Results::One,
        shape: batch_shape,
        cpu: |call, inputs, outputs| for_float!(call.dtype(), batch_norm(call, inputs, outputs)),
        cuda: batch_norm_cuda,
        tolerance: Tolerance::Normalized,
        doc: "(x - mean) / sqrt(variance + epsilon) * scale + bias with one of each per channel of [N, C, ...] (ONNX \
              BatchNormalization, inference).",
    },
];

/// First normalised axis; a scalar is a row of one.
fn layer_axis(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<usize> {
    Ok(normalize_axis(spec.name, attrs.int("axis"), dims.len().max(1))?.min(dims.len()))
}

/// The input's own dims; scale and bias have those from the axis on.
pub(super) fn layer_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    let axis = layer_axis(spec, attrs, &x.dims)?;
    for (index, input) in inputs.iter().enumerate().skip(1) {
        if let Some(meta) = input {
            spec.expect_dims(index, meta, &x.dims[axis..])?;
        }
    }
    Ok(vec![x.clone()])
}

/// Rows and elements of a row.
pub(super) fn layer_extents(call: &Call) -> Result<(usize, usize)> {
    let dims = &call.input(0).dims;
    let axis = layer_axis(call.spec, &call.attrs, dims)?;
    Ok((product(&dims[..axis]), product(&dims[axis..])))
}

fn layer_norm<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let (scale, bias) = (host_optional::<T>(inputs, 1), host_optional::<T>(inputs, 2));
    let epsilon = call.attrs.float(EPSILON.name);
    let (_, columns) = layer_extents(call)?;
    for_pieces(outputs[0].as_slice_mut::<T>(), columns, 2, |start, piece| {
        let mut rows = x[start..].chunks(columns).zip(piece.chunks_mut(columns));
        simd::vectorize(
            #[inline(always)]
            || rows.by_ref().for_each(|(row, y)| normalize_row(row, (scale, bias), epsilon, y)),
        );
    });
    Ok(())
}

#[inline(always)]
fn normalize_row<T: Float>(
    row: &[T],
    (scale, bias): (Option<&[T]>, Option<&[T]>),
    epsilon: f64,
    y: &mut [T],
) {
    let count = row.len() as f64;
    let mean = sum_f64(row, T::to_f64) / count;
    let squares = sum_f64(row, |value| (value.to_f64() - mean) * (value.to_f64() - mean));
    let factor = 1.0 / (squares / count + epsilon).sqrt();
    let normal = row.iter().map(|value| (value.to_f64() - mean) * factor);
    match (scale, bias) {
        (None, None) => y.iter_mut().zip(normal).for_each(|(y, value)| *y = T::from_f64(value)),
        (Some(scale), None) => affine(y, normal, scale, std::iter::repeat(&T::ZERO)),
        (None, Some(bias)) => affine(y, normal, std::iter::repeat(&T::ONE), bias),
        (Some(scale), Some(bias)) => affine(y, normal, scale, bias),
    }
}

#[inline(always)]
fn affine<'a, T: Float>(
    y: &mut [T],
    normal: impl Iterator<Item = f64>,
    scale: impl IntoIterator<Item = &'a T>,
    bias: impl IntoIterator<Item = &'a T>,
) {
    for (((y, value), scale), bias) in y.iter_mut().zip(normal).zip(scale).zip(bias) {
        *y = T::from_f64(value * scale.to_f64() + bias.to_f64());
    }
}

fn layer_norm_cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let (rows, columns) = layer_extents(call)?;
    NormRows { rows, columns, partial: "layerNorm", whole: true, first: None }
        .launch(call, launcher, inputs, outputs)
}

/// Rows of a norm on the GPU. The kernels of layerNorm, rmsNorm and groupNorm are one template.
pub struct NormRows<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub columns: usize,
    /// The op whose kernel takes in a part of a row.
    pub partial: &'a str,
    /// Whether a row's vectors may be taken whole where all pointers allow it.
    pub whole: bool,
    /// What precedes epsilon in every kernel.
    pub first: Option<Arg<'a>>,
}

impl NormRows<'_> {
    /// Launches the op's kernels.
    pub fn launch(
        self,
        call: &Call,
        launcher: &Launcher,
        inputs: &[Option<DeviceView>],
        outputs: &[DeviceView],
    ) -> Result<()> {
        if call.output().size() == 0 {
            return Ok(());
        }
        let dtype = call.dtype();
        let optional = (1..call.spec.operands.len()).map(|index| device_optional(inputs, index));
        let others: Vec<_> = optional.chain([outputs[0].ptr]).collect();
        let epsilon = float_arg(dtype, call.attrs.float(EPSILON.name));
        let last: Vec<_> = self.first.into_iter().chain([epsilon]).collect();
        RowCall {
            kernel: format!("{}_{}", call.spec.name, dtype.suffix()),
            partial: format!("{}_{}_partial", self.partial, dtype.suffix()),
            rows: self.rows,
            columns: self.columns,
            size: dtype.size(),
            held: [4, 4],
            kept: 2 * size_of::<f64>(),
            x: device_operand(call, inputs, 0)?,
            others: &others,
            whole: self.whole,
            last: &last,
        }
        .launch(launcher)
    }
}

fn batch_shape(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    for index in 1..inputs.len() {
        spec.expect_dims(index, spec.operand(inputs, index)?, &[channels(&x.dims)])?;
    }
    Ok(vec![x.clone()])
}

/// Number of channels: the second dim, or one where there is none.
fn channels(dims: &[usize]) -> usize {
    dims.get(1).copied().unwrap_or(1)
}

/// Elements of one channel that lie together.
fn plane_size(dims: &[usize]) -> usize {
    dims.get(2..).map_or(1, product)
}

fn batch_norm<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let statistic = |index| host_operand::<T>(call, inputs, index);
    let (scale, bias, mean, variance) = (statistic(1)?, statistic(2)?, statistic(3)?, statistic(4)?);
    let epsilon = call.attrs.float(EPSILON.name);
    let dims = &call.input(0).dims;
    let (channels, plane) = (channels(dims), plane_size(dims));
    let factors: Vec<f64> = scale
        .iter()
        .zip(variance)
        .map(|(scale, variance)| scale.to_f64() / (variance.to_f64() + epsilon).sqrt())
        .collect();
    for_pieces(outputs[0].as_slice_mut::<T>(), 1, 2, |start, piece| {
        let (mut index, mut rest) = (start, piece);
        while !rest.is_empty() {
            let length = (plane - index % plane).min(rest.len());
            let (run, tail) = rest.split_at_mut(length);
            let channel = index / plane % channels;
            let (mean, factor, bias) = (mean[channel].to_f64(), factors[channel], bias[channel].to_f64());
            for (y, x) in run.iter_mut().zip(&x[index..]) {
                *y = T::from_f64((x.to_f64() - mean) * factor + bias);
            }
            index += length;
            rest = tail;
        }
    });
    Ok(())
}

fn batch_norm_cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let n = call.output().size() as u64;
    if n == 0 {
        return Ok(());
    }
    let dims = &call.input(0).dims;
    let dtype = call.dtype();
    let operand = |index| device_operand(call, inputs, index).map(Arg::Ptr);
    let (plane, channels) = (plane_size(dims), channels(dims));
    let arguments = [
        operand(0)?,
        operand(1)?,
        operand(2)?,
        operand(3)?,
        operand(4)?,
        Arg::Ptr(outputs[0].ptr),
        Arg::U64(n),
        Arg::U64(plane as u64),
        Arg::U64(divisor(plane)),
        Arg::U64(channels as u64),
        Arg::U64(divisor(channels)),
        float_arg(dtype, call.attrs.float(EPSILON.name)),
    ];
    let grid = linear(n, 256, 16 / dtype.size() as u32)?;
    launcher.launch(&format!("{}_{}", call.spec.name, dtype.suffix()), grid, &arguments)
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::{DType, Error, Tensor};

    type Given<'a> = Option<(&'a [usize], &'a [f32])>;

    fn run(op: &str, operands: &[Given], options: &[(&str, Raw)]) -> Result<Vec<f32>> {
        let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let tensors: Vec<Option<Tensor>> = operands
            .iter()
            .map(|given| given.map(|(dims, data)| Tensor::from_slice(DType::F32, dims, data)).transpose())
            .collect::<Result<_>>()?;
        let metas =
            tensors.iter().map(|tensor| tensor.as_ref().map(|tensor| tensor.meta().clone())).collect();
        let outputs = Call::new(op, metas, &raw)?.run_cpu(&tensors)?;
        Ok(outputs[0].host_view()?.as_slice::<f32>().to_vec())
    }

    #[test]
    fn layer_norm_takes_any_of_scale_and_bias() {
        let x: Given = Some((&[2, 2], &[1.0, 3.0, -5.0, -5.0]));
        let scale: Given = Some((&[2], &[2.0, 4.0]));
        let bias: Given = Some((&[2], &[0.5, -0.5]));
        let options = [("epsilon", Raw::Number(0.0))];
        let tiny = [("epsilon", Raw::Number(1e-30))];
        assert_eq!(run("layerNorm", &[x], &tiny).unwrap(), [-1.0, 1.0, 0.0, 0.0]);
        assert_eq!(run("layerNorm", &[x, scale], &tiny).unwrap(), [-2.0, 4.0, 0.0, 0.0]);
        assert_eq!(run("layerNorm", &[x, None, bias], &tiny).unwrap(), [-0.5, 0.5, 0.5, -0.5]);
        assert_eq!(run("layerNorm", &[x, scale, bias], &tiny).unwrap(), [-1.5, 3.5, 0.5, -0.5]);
        assert!(run("layerNorm", &[x], &options).unwrap()[2].is_nan());
        let wrong = run("layerNorm", &[x, Some((&[1], &[1.0]))], &[]);
        assert_eq!(wrong.map_err(|error: Error| error.code()), Err("SHAPE_MISMATCH"));
    }

    #[test]
    fn variance_survives_a_mean_far_from_zero() {
        let x: Vec<f32> = (0..256).map(|i| 1e6 + (i % 2) as f32).collect();
        let y = run("layerNorm", &[Some((&[1, 256], &x))], &[("epsilon", Raw::Number(0.0))]).unwrap();
        assert!(y.iter().enumerate().all(|(i, &y)| y == if i % 2 == 0 { -1.0 } else { 1.0 }));
        assert_eq!(run("layerNorm", &[Some((&[], &[3.0]))], &[]).unwrap(), [0.0]);
        assert!(run("layerNorm", &[Some((&[3, 0], &[]))], &[]).unwrap().is_empty());
    }

    #[test]
    fn batch_norm_goes_by_channel() {
        let channel = |data: &'static [f32]| Some((&[2usize] as &[usize], data));
        let statistics =
            [channel(&[2.0, 3.0]), channel(&[1.0, -1.0]), channel(&[1.0, 0.0]), channel(&[4.0, 0.25])];
        let mut operands = vec![Some((&[2usize, 2, 1] as &[usize], &[3.0f32, 1.0, 1.0, -1.0] as &[f32]))];
        operands.extend(statistics);
        let y = run("batchNorm", &operands, &[("epsilon", Raw::Number(0.0))]).unwrap();
        assert_eq!(y, [3.0, 5.0, 1.0, -7.0]);
        operands[0] = Some((&[4], &[3.0, 1.0, 1.0, -1.0]));
        assert!(run("batchNorm", &operands, &[]).is_err());
    }

    #[test]
    fn every_row_has_its_kernels() {
        use Parameter::{F32, F64, Word32, Word64 as W};
        for &dtype in FLOATS {
            let (suffix, scalar) = (dtype.suffix(), if dtype == DType::F64 { F64 } else { F32 });
            let parameters = |name: &str| kernel(name, 75).unwrap().1.parameters;
            for form in super::super::rows::FORMS {
                let got = parameters(&format!("layerNorm_{suffix}_{form}"));
                assert_eq!(got, [W, W, W, W, W, Word32, scalar]);
            }
            assert_eq!(parameters(&format!("layerNorm_{suffix}_partial")), [W, W, W, W, Word32]);
            let finish = parameters(&format!("layerNorm_{suffix}_finish"));
            assert_eq!(finish, [W, W, W, W, W, W, W, Word32, scalar]);
            let batch = parameters(&format!("batchNorm_{suffix}"));
            assert_eq!(batch, [W, W, W, W, W, W, W, W, W, W, W, scalar]);
        }
    }
}
