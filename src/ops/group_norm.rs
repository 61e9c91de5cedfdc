//! groupNorm.

use super::norm::{EPSILON, NormRows};
use super::operands::{divisor, host_operand, host_optional};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::cpu::math::sum_f64;
use crate::cpu::{Float, for_pieces};
use crate::kernels::{Arg, Launcher};
use crate::shape::size_of as product;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, for_float, invalid};

const GROUPS: Attribute =
    attribute("numGroups", Kind::Int(None), "Number of groups; it divides the number of channels.");

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "groupNorm",
    operands: &[required("x"), optional("scale"), optional("bias")],
    attributes: &[GROUPS, EPSILON],
    dtypes: FLOATS,
    results: Results::One,
    shape,
    cpu: |call, inputs, outputs| for_float!(call.dtype(), group_norm(call, inputs, outputs)),
    cuda,
    tolerance: Tolerance::Normalized,
    doc: "(x - mean) / sqrt(variance + epsilon) * scale + bias over groups of channels of [N, C, ...], with one scale and \
          bias per channel (ONNX GroupNormalization).",
}];

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    if x.dims.len() < 2 {
        return crate::mismatch!("{}: 'x' must have rank 2 or more, got dims {:?}", spec.name, x.dims);
    }
    let (channels, groups) = (x.dims[1], attrs.int(GROUPS.name));
    if groups < 1 || channels as i64 % groups != 0 {
        return invalid!("{}: 'numGroups' must divide the {channels} channels, got {groups}", spec.name);
    }
    for (index, input) in inputs.iter().enumerate().skip(1) {
        if let Some(meta) = input {
            spec.expect_dims(index, meta, &[channels])?;
        }
    }
    Ok(vec![x.clone()])
}

/// A row is a group of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extents {
    groups: usize,
    /// Channels of a group.
    channels: usize,
    /// Elements of a channel.
    plane: usize,
}

impl Extents {
    fn of(call: &Call) -> Extents {
        let dims = &call.input(0).dims;
        let groups = call.attrs.int(GROUPS.name) as usize;
        Extents { groups, channels: dims[1] / groups, plane: product(&dims[2..]) }
    }

    fn columns(&self) -> usize {
        self.channels * self.plane
    }
}

fn group_norm<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let (scale, bias) = (host_optional::<T>(inputs, 1), host_optional::<T>(inputs, 2));
    let epsilon = call.attrs.float(EPSILON.name);
    let extents = Extents::of(call);
    let Extents { groups, channels, plane } = extents;
    let columns = extents.columns();
    for_pieces(outputs[0].as_slice_mut::<T>(), columns, 4, |start, piece| {
        for (index, (row, y)) in x[start..].chunks(columns).zip(piece.chunks_mut(columns)).enumerate() {
            let first = (start / columns + index) % groups * channels;
            let mean = sum_f64(row, T::to_f64) / columns as f64;
            let squares = sum_f64(row, |value| (value.to_f64() - mean) * (value.to_f64() - mean));
            let factor = 1.0 / (squares / columns as f64 + epsilon).sqrt();
            for (channel, (row, y)) in row.chunks(plane).zip(y.chunks_mut(plane)).enumerate() {
                let of = |values: Option<&[T]>, none: f64| {
                    values.map_or(none, |values| values[first + channel].to_f64())
                };
                let (scale, bias) = (of(scale, 1.0), of(bias, 0.0));
                y.iter_mut()
                    .zip(row)
                    .for_each(|(y, x)| *y = T::from_f64((x.to_f64() - mean) * factor * scale + bias));
            }
        }
    });
    Ok(())
}

/// `struct Groups` of kernels/group_norm.cu.
fn pack(Extents { groups, channels, plane }: Extents) -> Vec<u32> {
    let values = [plane as u64, divisor(plane), channels as u64, groups as u64, divisor(groups)];
    values.into_iter().flat_map(|value| [value as u32, (value >> 32) as u32]).collect()
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let extents = Extents::of(call);
    let columns = extents.columns();
    let whole = extents.plane.is_multiple_of(16 / call.dtype().size());
    let rows = call.output().size() / columns.max(1);
    let words = pack(extents);
    NormRows { rows, columns, partial: "layerNorm", whole, first: Some(Arg::Block(&words)) }
        .launch(call, launcher, inputs, outputs)
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::{DType, Tensor};

    fn run(dims: &[usize], x: &[f32], affine: Option<[&[f32]; 2]>, groups: f64) -> Result<Vec<f32>> {
        let of = |data: &[f32]| Tensor::from_slice(DType::F32, [data.len()], data).map(Some);
        let mut tensors = vec![Some(Tensor::from_slice(DType::F32, dims, x)?)];
        for &data in affine.iter().flatten() {
            tensors.push(of(data)?);
        }
        let metas =
            tensors.iter().map(|tensor| tensor.as_ref().map(|tensor| tensor.meta().clone())).collect();
        let options =
            [("numGroups".to_string(), Raw::Number(groups)), ("epsilon".to_string(), Raw::Number(1e-30))];
        let outputs = Call::new("groupNorm", metas, &options)?.run_cpu(&tensors)?;
        Ok(outputs[0].host_view()?.as_slice::<f32>().to_vec())
    }

    #[test]
    fn groups_have_their_statistics_and_channels_their_scale() {
        let x = [1.0, 3.0, 1.0, 3.0, -2.0, -2.0, 8.0, 8.0];
        assert_eq!(run(&[1, 4, 2], &x, None, 2.0).unwrap(), [-1.0, 1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0]);
        let affine: [&[f32]; 2] = [&[1.0, 2.0, 3.0, 4.0], &[0.0, 0.0, 0.5, 10.0]];
        let y = run(&[1, 4, 2], &x, Some(affine), 2.0).unwrap();
        assert_eq!(y, [-1.0, 1.0, -2.0, 2.0, -2.5, -2.5, 14.0, 14.0]);
        assert_eq!(run(&[1, 4, 2], &x, None, 3.0).map_err(|error| error.code()), Err("INVALID_ARGUMENT"));
        assert_eq!(run(&[8], &x, None, 2.0).map_err(|error| error.code()), Err("SHAPE_MISMATCH"));
        assert!(run(&[0, 4, 2], &[], None, 2.0).unwrap().is_empty());
    }

    #[test]
    fn every_row_has_its_kernels() {
        use Parameter::{Block, F32, F64, Word32, Word64 as W};
        for &dtype in FLOATS {
            let (suffix, scalar) = (dtype.suffix(), if dtype == DType::F64 { F64 } else { F32 });
            let parameters =
                |form: &str| kernel(&format!("groupNorm_{suffix}_{form}"), 75).unwrap().1.parameters;
            for form in super::super::rows::FORMS {
                assert_eq!(parameters(form), [W, W, W, W, W, Word32, Block(40), scalar]);
            }
            assert_eq!(parameters("finish"), [W, W, W, W, W, W, W, Word32, Block(40), scalar]);
        }
    }
}
