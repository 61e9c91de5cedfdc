//! dynamicQuantizeLinear.

use super::super::operands::host_operand;
use super::super::spec::*;
use super::cuda;
use crate::cpu::math::{fold_max, max};
use crate::cpu::{for_pieces, install};
use crate::ops::Call;
use crate::tensor::{HostView, HostViewMut};
use crate::{DType, Result};
use rayon::prelude::*;

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "dynamicQuantizeLinear",
    operands: &[required("x")],
    attributes: &[],
    dtypes: &[DType::F32],
    results: Results::These(&[
        output_of("y", DType::U8),
        output_of("yScale", DType::F32),
        output_of("yZeroPoint", DType::U8),
    ]),
    shape: |spec, inputs, _| {
        let dims = spec.operand(inputs, 0)?.dims.clone();
        let scalar = |dtype| Meta::new(dtype, Vec::new());
        Ok(vec![Meta::new(DType::U8, dims), scalar(DType::F32), scalar(DType::U8)])
    },
    cpu: run,
    cuda: cuda::dynamic,
    tolerance: Tolerance::Exact,
    doc: "x as uint8, with the scale and the zero point that take the range from its least to its largest number, and 0, to \
          0 to 255 (ONNX DynamicQuantizeLinear).",
}];

/// Scale and zero point of a range that holds 0.
fn parameters(least: f32, most: f32) -> (f32, u8) {
    let scale = if most == least { 1.0 } else { (most - least) / 255.0 };
    (scale, (-least / scale).clamp(0.0, 255.0).round_ties_even() as u8)
}

fn run(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<f32>(call, inputs, 0)?;
    let ends = |part: &[f32]| {
        (fold_max(part, max), part.iter().fold(0.0f32, |least, &x| if x < least { x } else { least }))
    };
    let join = |a: (f32, f32), b: (f32, f32)| (max(a.0, b.0), if b.1 < a.1 { b.1 } else { a.1 });
    const PART: usize = 1 << 15;
    let (most, least) = if x.len() <= PART {
        ends(x)
    } else {
        install(|| x.par_chunks(PART).map(ends).reduce(|| (f32::NEG_INFINITY, 0.0), join))
    };
    let (scale, zero) = parameters(least, max(most, 0.0));
    outputs[1].as_slice_mut::<f32>()[0] = scale;
    outputs[2].as_slice_mut::<u8>()[0] = zero;
    for_pieces(outputs[0].as_slice_mut::<u8>(), 1, 4, |start, piece| {
        for (y, &x) in piece.iter_mut().zip(&x[start..]) {
            let whole = (x / scale).round_ties_even();
            *y = (if whole.is_nan() { 0.0 } else { whole } + f32::from(zero)) as u8;
        }
    });
    Ok(())
}
