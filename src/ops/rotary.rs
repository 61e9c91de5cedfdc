//! rotaryEmbedding.

use super::indices::Indices;
use super::operands::{device_operand, device_optional, host_operand};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::cpu::{Float, for_pieces};
use crate::kernels::{Arg, Launcher, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result, for_float, invalid, mismatch};

const POSITIONS: Operand = Operand {
    dtypes: INDICES,
    range: Some(|call| {
        let rows = call.input(1).dims[0];
        Ok(Range { low: 0, high: rows as i64 - 1, of: format!("for {rows} rows of 'cos'") })
    }),
    ..optional("positionIds")
};

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "rotaryEmbedding",
    operands: &[required("x"), required("cos"), required("sin"), POSITIONS],
    attributes: &[
        attribute(
            "interleaved",
            Kind::Bool(false),
            "Whether pairs are neighbours instead of half a head apart.",
        ),
        attribute("numHeads", Kind::Int(Some(0)), "Number of heads where x has three axes."),
        attribute(
            "rotaryEmbeddingDim",
            Kind::Int(Some(0)),
            "Elements of a head that are rotated, from its start; 0 for all.",
        ),
    ],
    dtypes: FLOATS,
    results: Results::One,
    shape: |spec, inputs, attrs| {
        Problem::new(spec, inputs, attrs)?;
        Ok(vec![spec.operand(inputs, 0)?.clone()])
    },
    cpu: |call, inputs, outputs| for_float!(call.dtype(), rotate(call, inputs, outputs)),
    cuda,
    tolerance: Tolerance::Accumulate,
    doc: "Pairs (a, b) within the heads of x [batch, heads, places, size] or [batch, places, heads * size] rotated to (cos a - \
          sin b, sin a + cos b); cos and sin are [batch, places, rotated / 2], or [rows, rotated / 2] with the row of each \
          place in positionIds [batch, places] (ONNX RotaryEmbedding).",
}];

/// The call in numbers. Elements of x are [batch, ..., size] with steps for places and heads.
struct Problem {
    heads: usize,
    places: usize,
    size: usize,
    /// Elements of a head that are rotated, by pairs.
    pairs: usize,
    heads_first: bool,
    interleaved: bool,
}

impl Problem {
    fn new(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Problem> {
        let x = spec.operand(inputs, 0)?;
        spec.expect_rank(0, x, 3..=4)?;
        let told = attrs.int("numHeads");
        let (batch, heads, places, size) = match x.dims[..] {
            [batch, heads, places, size] => (batch, heads, places, size),
            _ if told < 1 || !x.dims[2].is_multiple_of(told as usize) => {
                return invalid!(
                    "{}: 'numHeads' must divide the last dim of 'x' {:?}, got {told}",
                    spec.name,
                    x.dims
                );
            }
            _ => (x.dims[0], told as usize, x.dims[1], x.dims[2] / told as usize),
        };
        let rotated = match attrs.int("rotaryEmbeddingDim") {
            0 => size,
            rotated if rotated > 0 && rotated as u64 <= size as u64 => rotated as usize,
            other => {
                return invalid!(
                    "{}: 'rotaryEmbeddingDim' must be 0 to {size}, the size of a head, got {other}",
                    spec.name
                );
            }
        };
        if !rotated.is_multiple_of(2) {
            return mismatch!("{}: an even number of elements is rotated, got {rotated}", spec.name);
        }
        let pairs = rotated / 2;
        let cos = spec.operand(inputs, 1)?;
        let rows = match &inputs[3] {
            Some(positions) => {
                spec.expect_dims(3, positions, &[batch, places])?;
                spec.expect_rank(1, cos, 2..=2)?;
                vec![cos.dims[0], pairs]
            }
            None => vec![batch, places, pairs],
        };
        spec.expect_dims(1, cos, &rows)?;
        spec.expect_dims(2, spec.operand(inputs, 2)?, &rows)?;
        let (heads_first, interleaved) = (x.dims.len() == 4, attrs.bool("interleaved"));
        Ok(Problem { heads, places, size, pairs, heads_first, interleaved })
    }

    /// Batch times places of a head, counted through x.
    fn row_of(&self, head: usize) -> usize {
        let Problem { heads, places, heads_first, .. } = *self;
        if heads_first { head / (heads * places) * places + head % places } else { head / heads }
    }
}

fn rotate<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let problem = Problem::new(call.spec, &call.inputs, &call.attrs)?;
    let Problem { size, pairs, interleaved, .. } = problem;
    let x = host_operand::<T>(call, inputs, 0)?;
    let (cos, sin) = (host_operand::<T>(call, inputs, 1)?, host_operand::<T>(call, inputs, 2)?);
    let positions = inputs.get(3).and_then(Option::as_ref).map(Indices::of);
    for_pieces(outputs[0].as_slice_mut::<T>(), size, 2, |start, piece| {
        for (index, (y, x)) in piece.chunks_mut(size).zip(x[start..].chunks(size)).enumerate() {
            let row = problem.row_of(start / size + index);
            let row = positions.as_ref().map_or(row, |positions| positions.value(row).max(0) as usize);
            let (cos, sin) = (&cos[row * pairs..][..pairs], &sin[row * pairs..][..pairs]);
            y[2 * pairs..].copy_from_slice(&x[2 * pairs..]);
            for (pair, (&cos, &sin)) in cos.iter().zip(sin).enumerate() {
                let (a, b) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + pairs) };
                y[a] = cos * x[a] - sin * x[b];
                y[b] = sin * x[a] + cos * x[b];
            }
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
    let n = call.output().size() as u64;
    if n == 0 {
        return Ok(());
    }
    let problem = Problem::new(call.spec, &call.inputs, &call.attrs)?;
    let Problem { heads, places, size, pairs, heads_first, interleaved } = problem;
    let wide = call.inputs[3].as_ref().is_some_and(|meta| meta.dtype == DType::I64);
    let rows = if call.inputs[3].is_some() { call.input(1).dims[0] } else { 0 };
    let operand = |index| device_operand(call, inputs, index).map(Arg::Ptr);
    let flags = u32::from(heads_first) | u32::from(interleaved) << 1 | u32::from(wide) << 2;
    let mut arguments = vec![operand(0)?, operand(1)?, operand(2)?];
    arguments.extend([Arg::Ptr(device_optional(inputs, 3)), Arg::Ptr(outputs[0].ptr), Arg::U64(n)]);
    arguments.extend([heads, places, size, pairs, rows].map(|size| Arg::U64(size as u64)));
    arguments.push(Arg::U32(flags));
    launcher.launch(&format!("rotaryEmbedding_{}", call.dtype().suffix()), linear(n, 256, 1)?, &arguments)
}
