//! Convolution over one to three spatial axes.

mod cpu;
mod cuda;
mod half;
mod launch;
mod problem;
mod product;
mod split;
mod tiles;

pub(super) use self::launch::*;
pub(super) use self::problem::*;
pub use self::split::{Input, Layer, Output, Planar};

use self::cpu::{run as on_cpu, run_single};
use super::activation::{ACTIVATION, ACTIVATION_ALPHA, ACTIVATION_BETA};
use super::geometry::{AUTO_PAD, DILATIONS, PADS, STRIDES, window_axes};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::{DType, Result, mismatch};

/// The option `group`.
pub const GROUP: Attribute = attribute(
    "group",
    Kind::Int(Some(1)),
    "Number of groups that channels are split into; each has weights of its own.",
);

const OPERANDS: &[Operand] = &[required("x"), required("w"), optional("bias")];
const ATTRIBUTES: &[Attribute] =
    &[STRIDES, PADS, DILATIONS, GROUP, AUTO_PAD, ACTIVATION, ACTIVATION_ALPHA, ACTIVATION_BETA];

const fn row(name: &'static str, shape: ShapeRule, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: OPERANDS,
        attributes: ATTRIBUTES,
        dtypes: FLOATS,
        results: Results::One,
        shape,
        cpu: |call, inputs, outputs| match call.dtype() {
            DType::F64 => on_cpu::<f64>(call, inputs, outputs),
            _ => run_single(call, inputs, outputs),
        },
        cuda: cuda::run,
        tolerance: Tolerance::Accumulate,
        doc,
    }
}

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    row("conv1d", shape::<1>, "activation(x * w + bias) for x [N, C, L] and w [M, C / group, kernel]; padding counts as zeros (ONNX Conv)."),
    row("conv2d", shape::<2>, "activation(x * w + bias) for x [N, C, H, W] and w [M, C / group, kernel...]; padding counts as zeros (ONNX Conv)."),
    row("conv3d", shape::<3>, "activation(x * w + bias) for x [N, C, D, H, W] and w [M, C / group, kernel...]; padding counts as zeros (ONNX Conv)."),
];

fn shape<const AXES: usize>(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let (x, w) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    spec.expect_rank(0, x, AXES + 2..=AXES + 2)?;
    let dims = result_dims(spec, [x, w], attrs)?;
    expect_bias(spec, inputs, w.dims[0])?;
    Ok(vec![Meta::new(x.dtype, dims)])
}

/// The result's dims for x [N, C, ...] and w of the same rank.
pub(super) fn result_dims(spec: &OpSpec, [x, w]: [&Meta; 2], attrs: &Attrs) -> Result<Vec<usize>> {
    spec.expect_rank(1, w, x.dims.len()..=x.dims.len())?;
    let group = groups(spec, attrs)?;
    let (channels, filters) = (x.dims[1], w.dims[0]);
    if w.dims[1].checked_mul(group) != Some(channels) {
        return mismatch!(
            "{}: 'x' has {channels} channels, but 'w' takes {} in each of {group} groups (dims {:?} and {:?})",
            spec.name,
            w.dims[1],
            x.dims,
            w.dims
        );
    }
    if !filters.is_multiple_of(group) {
        return mismatch!("{}: the {filters} filters of 'w' must divide by 'group', {group}", spec.name);
    }
    let mut dims = vec![x.dims[0], filters];
    dims.extend(window_axes(spec, attrs, &x.dims[2..], &w.dims[2..])?.iter().map(|axis| axis.output));
    Ok(dims)
}

/// The checked call in numbers.
fn problem(call: &Call) -> Result<Problem> {
    let (x, w) = (&call.input(0).dims, &call.input(1).dims);
    let axes = window_axes(call.spec, &call.attrs, &x[2..], &w[2..])?;
    let groups = groups(call.spec, &call.attrs)?;
    Ok(Problem::new(x[0], groups, w[1], w[0] / groups, &axes))
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::Tensor;

    fn run(op: &str, operands: &[(&[usize], &[f64])], options: &[(&str, Raw)]) -> Result<Vec<f64>> {
        let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let tensors: Vec<_> = operands
            .iter()
            .map(|(dims, data)| Some(Tensor::from_slice(DType::F64, *dims, data).unwrap()))
            .collect();
        let metas =
            tensors.iter().map(|tensor| tensor.as_ref().map(|tensor| tensor.meta().clone())).collect();
        let outputs = Call::new(op, metas, &raw)?.run_cpu(&tensors)?;
        Ok(outputs[0].host_view().unwrap().as_slice::<f64>().to_vec())
    }

    fn list(values: &[f64]) -> Raw {
        Raw::List(values.to_vec())
    }

    #[test]
    fn padding_counts_as_zeros() {
        let pads = [("pads", list(&[1.0, 1.0]))];
        let x: (&[usize], &[f64]) = (&[1, 1, 3], &[1.0, 2.0, 3.0]);
        let with = |w: &[f64]| run("conv1d", &[x, (&[1, 1, 3], w)], &pads).unwrap();
        assert_eq!(with(&[1.0, 10.0, 100.0]), [210.0, 321.0, 32.0]);
        let y = with(&[f64::INFINITY, 1.0, 1.0]);
        assert!(y[0].is_nan() && y[1] == f64::INFINITY && y[2] == f64::INFINITY);
        let y = run(
            "conv1d",
            &[(&[1, 2, 1], &[1.0, 2.0]), (&[1, 2, 3], &[1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0])],
            &pads,
        );
        assert!(y.unwrap()[0].is_nan());
    }

    #[test]
    fn im2col_pieces_and_single_channels_agree_with_the_sum() {
        let (c, h, w, m) = (4usize, 37usize, 41usize, 8usize);
        let x: Vec<f64> = (0..2 * c * h * w).map(|i| (i * 37 % 101) as f64 - 50.0).collect();
        for group in [1, 2, 4] {
            let per = c / group;
            let weights: Vec<f64> = (0..m * per * 6).map(|i| (i * 29 % 17) as f64 - 8.0).collect();
            let options = [
                ("pads", list(&[2.0, 1.0, 0.0, 3.0])),
                ("strides", list(&[2.0, 3.0])),
                ("dilations", list(&[3.0, 2.0])),
                ("group", Raw::Number(group as f64)),
            ];
            let y = run("conv2d", &[(&[2, c, h, w], &x), (&[m, per, 2, 3], &weights)], &options).unwrap();
            let (oh, ow) = ((h + 2 - 4) / 2 + 1, (w + 4 - 5) / 3 + 1);
            assert_eq!(y.len(), 2 * m * oh * ow);
            for (index, &got) in y.iter().enumerate() {
                let (j, i, f, n) =
                    (index % ow, index / ow % oh, index / (ow * oh) % m, index / (ow * oh * m));
                let mut sum = 0.0;
                for (tap, k) in (0..per * 6).map(|t| (t % 6, t / 6)) {
                    let (row, column) = (i * 2 + tap / 3 * 3, j * 3 + tap % 3 * 2);
                    if (2..h + 2).contains(&row) && (1..w + 1).contains(&column) {
                        let channel = n * c + f / (m / group) * per + k;
                        sum += x[(channel * h + row - 2) * w + column - 1] * weights[(f * per + k) * 6 + tap];
                    }
                }
                assert_eq!(got, sum, "group {group}, output {index}");
            }
        }
    }

    #[test]
    fn groups_and_channels_must_fit() {
        let code = |x: &[usize], w: &[usize], group: f64| {
            let metas = [x, w].map(|dims| Some(Meta::new(DType::F32, dims))).to_vec();
            let options = [("group".to_string(), Raw::Number(group))];
            Call::new("conv2d", metas, &options)
                .map(|call| call.outputs[0].dims.clone())
                .map_err(|e| e.code())
        };
        assert_eq!(code(&[1, 4, 3, 3], &[6, 2, 1, 1], 2.0), Ok(vec![1, 6, 3, 3]));
        assert_eq!(code(&[1, 4, 3, 3], &[6, 4, 1, 1], 2.0), Err("SHAPE_MISMATCH"));
        assert_eq!(code(&[1, 4, 3, 3], &[5, 2, 1, 1], 2.0), Err("SHAPE_MISMATCH"));
        assert_eq!(code(&[1, 4, 3, 3], &[6, 4, 1, 1], 0.0), Err("INVALID_ARGUMENT"));
        assert_eq!(code(&[2, 0, 8, 8], &[4, 0, 3, 3], 1.0), Ok(vec![2, 4, 6, 6]));
    }
}
