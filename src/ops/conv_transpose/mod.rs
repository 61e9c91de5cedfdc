//! Transposed convolution over two or three spatial axes.

mod cpu;
mod cuda;

use self::cpu::run as on_cpu;
use super::activation::{ACTIVATION, ACTIVATION_ALPHA, ACTIVATION_BETA};
use super::conv::{GROUP, Problem, expect_bias, groups};
use super::geometry::{AUTO_PAD, DILATIONS, PADS, STRIDES, WindowAxis, WindowOptions, whole_numbers};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::{Result, for_float, invalid, mismatch};

const OUTPUT_PADS: Attribute = attribute(
    "outputPads",
    Kind::Ints,
    "Elements added at the ends of the result's spatial axes, less than the stride or dilation; 0 by default.",
);
const OUTPUT_SHAPE: Attribute = attribute(
    "outputShape",
    Kind::Ints,
    "Spatial dims of the result; the padding follows from them and `pads` is not used.",
);

const OPERANDS: &[Operand] = &[required("x"), required("w"), optional("bias")];

const fn row(name: &'static str, shape: ShapeRule, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: OPERANDS,
        attributes: &[
            STRIDES,
            PADS,
            DILATIONS,
            GROUP,
            AUTO_PAD,
            OUTPUT_PADS,
            OUTPUT_SHAPE,
            ACTIVATION,
            ACTIVATION_ALPHA,
            ACTIVATION_BETA,
        ],
        dtypes: FLOATS,
        results: Results::One,
        shape,
        cpu: |call, inputs, outputs| for_float!(call.dtype(), on_cpu(call, inputs, outputs)),
        cuda: cuda::run,
        tolerance: Tolerance::Accumulate,
        doc,
    }
}

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    row("convTranspose2d", shape::<2>, "activation(y + bias), where each element of x [N, C, H, W] adds its multiple of w [C, M / \
        group, kernel...] to a window of y (ONNX ConvTranspose)."),
    row("convTranspose3d", shape::<3>, "activation(y + bias), where each element of x [N, C, D, H, W] adds its multiple of w [C, M / \
        group, kernel...] to a window of y (ONNX ConvTranspose)."),
];

fn shape<const AXES: usize>(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let (x, w) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    spec.expect_rank(0, x, AXES + 2..=AXES + 2)?;
    spec.expect_rank(1, w, AXES + 2..=AXES + 2)?;
    let group = groups(spec, attrs)?;
    let channels = x.dims[1];
    if w.dims[0] != channels {
        return mismatch!(
            "{}: 'x' has {channels} channels, but 'w' takes {} (dims {:?} and {:?})",
            spec.name,
            w.dims[0],
            x.dims,
            w.dims
        );
    }
    if !channels.is_multiple_of(group) {
        return mismatch!("{}: the {channels} channels of 'x' must divide by 'group', {group}", spec.name);
    }
    let Some(filters) = w.dims[1].checked_mul(group) else {
        return mismatch!("{}: {} filters for each of {group} groups are too many", spec.name, w.dims[1]);
    };
    expect_bias(spec, inputs, filters)?;
    let mut dims = vec![x.dims[0], filters];
    dims.extend(axes(spec, attrs, &x.dims[2..], &w.dims[2..])?.iter().map(|axis| axis.input));
    Ok(vec![Meta::new(x.dtype, dims)])
}

/// The windows of the result that elements of x are added to, one axis each.
fn axes(spec: &OpSpec, attrs: &Attrs, input: &[usize], kernel: &[usize]) -> Result<Vec<WindowAxis>> {
    let count = input.len();
    let options = WindowOptions::new(spec, attrs, count)?;
    let extra = whole_numbers(spec, attrs, OUTPUT_PADS.name, count, 0)?.unwrap_or_else(|| vec![0; count]);
    let shape = whole_numbers(spec, attrs, OUTPUT_SHAPE.name, count, 0)?;
    let same = options.auto_pad.starts_with("SAME");
    if kernel.contains(&0) {
        return mismatch!("{}: the kernel {kernel:?} holds no elements", spec.name);
    }
    (0..count)
        .map(|axis| {
            let (stride, dilation) = (options.strides[axis], options.dilations[axis]);
            if extra[axis] >= stride.max(dilation) {
                return invalid!(
                    "{}: 'outputPads' must be less than the stride or the dilation ({stride} and {dilation} along \
                     axis {}), got {extra:?}",
                    spec.name,
                    axis + 2
                );
            }
            // Products of two numbers below 2^63 and sums of a few fit 128 bits.
            let [size, kernel, stride, dilation, extra] =
                [input[axis], kernel[axis], stride, dilation, extra[axis]].map(|size| size as i128);
            let full = stride * (size - 1) + extra + (kernel - 1) * dilation + 1;
            let wanted = match &shape {
                Some(shape) => Some(shape[axis] as i128),
                None => same.then_some(size * stride),
            };
            let (begin, end, output) = match wanted {
                Some(output) => {
                    let (begin, end) = options.split(in_range(spec, (full - output).max(0))?);
                    (begin, end, output)
                }
                None => {
                    let (begin, end) = (options.begin[axis], options.end[axis]);
                    (begin, end, full - begin as i128 - end as i128)
                }
            };
            Ok(WindowAxis {
                input: in_range(spec, output)?,
                kernel: kernel as usize,
                stride: stride as usize,
                dilation: dilation as usize,
                begin,
                end,
                output: input[axis],
            })
        })
        .collect()
}

/// Sizes stay below 2^62, so that sums of a few of them cannot overflow.
fn in_range(spec: &OpSpec, size: i128) -> Result<usize> {
    match usize::try_from(size) {
        Ok(size) if size < 1 << 62 => Ok(size),
        _ if size < 0 => mismatch!("{}: the padding leaves {size} elements along one axis", spec.name),
        _ => mismatch!("{}: the result is too large ({size} elements along one axis)", spec.name),
    }
}

/// The checked call in numbers.
fn problem(call: &Call) -> Result<Problem> {
    let (x, w) = (&call.input(0).dims, &call.input(1).dims);
    let axes = axes(call.spec, &call.attrs, &x[2..], &w[2..])?;
    let groups = groups(call.spec, &call.attrs)?;
    Ok(Problem::new(x[0], groups, x[1] / groups, w[1], &axes))
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::{DType, Tensor};

    fn list(values: &[f64]) -> Raw {
        Raw::List(values.to_vec())
    }

    fn call(x: &[usize], w: &[usize], options: &[(&str, Raw)]) -> Result<Call> {
        let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let metas = [x, w].map(|dims| Some(Meta::new(DType::F64, dims))).to_vec();
        Call::new("convTranspose2d", metas, &raw)
    }

    #[test]
    fn shapes_follow_onnx() {
        let dims = |options: &[(&str, Raw)]| {
            let call = call(&[1, 2, 3, 3], &[2, 2, 3, 3], options)?;
            let axes = problem(&call)?.axes;
            Ok::<_, crate::Error>((call.outputs[0].dims[2..].to_vec(), axes[1].begin, axes[2].begin))
        };
        assert_eq!(dims(&[]).unwrap(), (vec![5, 5], 0, 0));
        let strides = ("strides", list(&[3.0, 2.0]));
        let shape = |values: &[f64]| ("outputShape", list(values));
        assert_eq!(dims(&[strides.clone(), shape(&[10.0, 8.0])]).unwrap(), (vec![10, 8], 0, 0));
        assert_eq!(dims(&[strides.clone(), shape(&[6.0, 4.0])]).unwrap(), (vec![6, 4], 2, 2));
        let upper = ("autoPad", Raw::Text("SAME_UPPER".into()));
        assert_eq!(dims(&[strides.clone(), shape(&[6.0, 4.0]), upper.clone()]).unwrap(), (vec![6, 4], 1, 1));
        assert_eq!(dims(&[strides.clone(), upper]).unwrap(), (vec![9, 6], 0, 0));
        let outside = [strides, ("outputPads", list(&[0.0, 2.0]))];
        assert_eq!(dims(&outside).unwrap_err().code(), "INVALID_ARGUMENT");
        let gone = [("pads", list(&[3.0, 3.0, 3.0, 3.0]))];
        assert_eq!(dims(&gone).unwrap_err().code(), "SHAPE_MISMATCH");
    }

    #[test]
    fn elements_reach_their_windows_alone() {
        let call = call(&[1, 1, 1, 2], &[1, 1, 1, 3], &[("strides", list(&[1.0, 4.0]))]).unwrap();
        let tensor = |dims: &[usize], data: &[f64]| Some(Tensor::from_slice(DType::F64, dims, data).unwrap());
        let inputs = [tensor(&[1, 1, 1, 2], &[1.0, 2.0]), tensor(&[1, 1, 1, 3], &[1.0, f64::INFINITY, 3.0])];
        let y = call.run_cpu(&inputs).unwrap();
        let infinity = f64::INFINITY;
        let want = [1.0, infinity, 3.0, 0.0, 2.0, infinity, 6.0];
        assert_eq!(y[0].host_view().unwrap().as_slice::<f64>(), want);
    }
}
