//! rmsNorm.

use super::norm::{AXIS, EPSILON, NormRows, layer_extents, layer_shape};
use super::operands::{host_operand, host_optional};
use super::spec::*;
use super::{Call, FLOATS};
use crate::cpu::math::sum_f64;
use crate::cpu::{Float, for_pieces};
use crate::kernels::Launcher;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, for_float};

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "rmsNorm",
    operands: &[required("x"), optional("scale")],
    attributes: &[AXIS, EPSILON],
    dtypes: FLOATS,
    results: Results::One,
    shape: layer_shape,
    cpu: |call, inputs, outputs| for_float!(call.dtype(), rms_norm(call, inputs, outputs)),
    cuda,
    tolerance: Tolerance::Normalized,
    doc: "x / sqrt(mean of squares + epsilon) * scale over the axes from `axis` on, whose dims scale has (ONNX \
          RMSNormalization).",
}];

fn rms_norm<T: Float>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let scale = host_optional::<T>(inputs, 1);
    let epsilon = call.attrs.float(EPSILON.name);
    let (_, columns) = layer_extents(call)?;
    for_pieces(outputs[0].as_slice_mut::<T>(), columns, 3, |start, piece| {
        for (row, y) in x[start..].chunks(columns).zip(piece.chunks_mut(columns)) {
            let squares = sum_f64(row, |value| value.to_f64() * value.to_f64());
            let factor = 1.0 / (squares / columns as f64 + epsilon).sqrt();
            for (index, (y, x)) in y.iter_mut().zip(row).enumerate() {
                let scale = scale.map_or(1.0, |scale| scale[index].to_f64());
                *y = T::from_f64(x.to_f64() * factor * scale);
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
    let (rows, columns) = layer_extents(call)?;
    NormRows { rows, columns, partial: "rmsNorm", whole: true, first: None }
        .launch(call, launcher, inputs, outputs)
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::{DType, Tensor};

    fn run(dims: &[usize], x: &[f32], scale: Option<&[f32]>, epsilon: f64) -> Vec<f32> {
        let x = Tensor::from_slice(DType::F32, dims, x).unwrap();
        let scale = scale.map(|scale| Tensor::from_slice(DType::F32, [scale.len()], scale).unwrap());
        let metas = vec![Some(x.meta().clone()), scale.as_ref().map(|scale| scale.meta().clone())];
        let options = [("epsilon".to_string(), Raw::Number(epsilon))];
        let outputs = Call::new("rmsNorm", metas, &options).unwrap().run_cpu(&[Some(x), scale]).unwrap();
        outputs[0].host_view().unwrap().as_slice::<f32>().to_vec()
    }

    #[test]
    fn rows_are_divided_by_their_root_mean_square() {
        assert_eq!(run(&[2, 2], &[1.0, 7.0, -5.0, 5.0], None, 0.0), [0.2, 1.4, -1.0, 1.0]);
        assert_eq!(run(&[2], &[1.0, -7.0], Some(&[10.0, 5.0]), 0.0), [2.0, -7.0]);
        assert_eq!(run(&[2], &[0.0, 0.0], None, 1e-5), [0.0, 0.0]);
        assert!(run(&[2], &[f32::NAN, 1.0], None, 1e-5).iter().all(|y| y.is_nan()));
        // Squares beyond float32 are none beyond float64.
        assert_eq!(run(&[1, 2], &[1e30, -1e30], None, 1e-5), [1.0, -1.0]);
    }

    #[test]
    fn every_row_has_its_kernels() {
        use Parameter::{F32, F64, Word32, Word64 as W};
        for &dtype in FLOATS {
            let (suffix, scalar) = (dtype.suffix(), if dtype == DType::F64 { F64 } else { F32 });
            let parameters =
                |form: &str| kernel(&format!("rmsNorm_{suffix}_{form}"), 75).unwrap().1.parameters;
            for form in super::super::rows::FORMS {
                assert_eq!(parameters(form), [W, W, W, W, Word32, scalar]);
            }
            assert_eq!(parameters("partial"), [W, W, W, W, Word32]);
            assert_eq!(parameters("finish"), [W, W, W, W, W, W, Word32, scalar]);
        }
    }
}
