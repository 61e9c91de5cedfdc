//! convInteger: the convolution of floats over operands less their zero points.

use super::super::geometry::{AUTO_PAD, DILATIONS, PADS, STRIDES};
use super::super::spec::*;
use super::super::{Call, Precision, conv, find};
use super::blocks::Blocks;
use super::linear::shift;
use super::matmul::SHORT;
use super::{BYTES, cuda, expect_like, for_whole};
use crate::cpu::{Float, for_pieces};
use crate::shape::size_of;
use crate::tensor::{HostBuffer, HostView, HostViewMut};
use crate::{DType, Error, Result, Tensor, for_float};

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "convInteger",
    operands: &[
        required("x"),
        Operand { dtypes: BYTES, ..required("w") },
        optional("xZeroPoint"),
        Operand { dtypes: BYTES, ..optional("wZeroPoint") },
    ],
    attributes: &[STRIDES, PADS, DILATIONS, conv::GROUP, AUTO_PAD],
    dtypes: BYTES,
    results: Results::Of(DType::I32),
    shape: |spec, inputs, attrs| {
        let (x, w) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
        spec.expect_rank(0, x, 3..=5)?;
        let dims = conv::result_dims(spec, [x, w], attrs)?;
        expect_like(spec, 2, inputs[2].as_ref(), x.dtype, Some(&[1]))?;
        let each = inputs[3].as_ref().is_some_and(|zero| zero.size() != 1);
        let filters = [if each { w.dims[0] } else { 1 }];
        expect_like(spec, 3, inputs[3].as_ref(), w.dtype, Some(&filters))?;
        Ok(vec![Meta::new(DType::I32, dims)])
    },
    cpu,
    cuda: cuda::conv,
    tolerance: Tolerance::Exact,
    doc: "(x - xZeroPoint) * (w - wZeroPoint) for x [N, C, ...] with one to three spatial axes and w [M, C / group, \
          kernel...], with exact sums; padding holds xZeroPoint, and wZeroPoint is one number or one for each filter (ONNX \
          ConvInteger).",
}];

/// The convolution of floats that sums the products exactly: of float32 where sums are short.
pub fn of_floats(call: &Call) -> Result<Call> {
    let (x, w) = (call.input(0), call.input(1));
    let dtype = if size_of(&w.dims[1..]) <= SHORT { DType::F32 } else { DType::F64 };
    let meta = |meta: &Meta| Meta::new(dtype, meta.dims.clone());
    Ok(Call {
        spec: find(["conv1d", "conv2d", "conv3d"][x.dims.len() - 3])?,
        inputs: vec![Some(meta(x)), Some(meta(w)), None],
        outputs: vec![meta(call.output())],
        precision: Precision::Strict,
        attrs: call.attrs.clone(),
    })
}

/// Places of the zero points of x and w.
pub fn zeros(call: &Call) -> [Blocks; 2] {
    let w = &call.input(1).dims;
    let each = call.inputs[3].as_ref().is_some_and(|zero| zero.size() != 1);
    let filters =
        Blocks { length: w[0], inner: size_of(&w[1..]), block: 1, outer_step: 0, step: 1, inner_step: 0 };
    [Blocks::WHOLE, if each { filters } else { Blocks::WHOLE }]
}

fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let floats = of_floats(call)?;
    for_float!(floats.dtype(), run(call, &floats, inputs, outputs))
}

fn run<T: Float>(
    call: &Call,
    floats: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let zeros = zeros(call);
    let operand = |index: usize| {
        let x = inputs[index].as_ref();
        let x =
            x.ok_or_else(|| Error::Internal(format!("{}: operand {index} is missing", call.spec.name)))?;
        let meta = floats.input(index);
        let mut buffer = HostBuffer::for_overwrite(meta.size() * meta.dtype.size())?;
        let zero = inputs.get(index + 2).and_then(Option::as_ref);
        for_whole!(x.dtype, shift::<T>(x, zero, None, zeros[index], buffer.view_mut(meta).as_slice_mut()));
        Ok(Tensor::from_host(buffer, meta))
    };
    let (x, w) = (operand(0)?, operand(1)?);
    let meta = floats.output();
    let mut sums = HostBuffer::for_overwrite(meta.size() * meta.dtype.size())?;
    let views = [Some(x.host_view()?), Some(w.host_view()?), None];
    (floats.spec.cpu)(floats, &views, &mut [sums.view_mut(meta)])?;
    let sums = Tensor::from_host(sums, meta);
    let sums = sums.host_view()?.as_slice::<T>();
    for_pieces(outputs[0].as_slice_mut::<i32>(), 1, 1, |start, piece| {
        piece.iter_mut().zip(&sums[start..]).for_each(|(y, sum)| *y = sum.to_f64() as i32);
    });
    Ok(())
}
