//! Forms that the host has alone, and what they share: typed access to their operands, results that a function fills.

mod columns;
mod det;
mod fft;
mod fold;
mod nms;
mod reduce;
mod roi;
mod unique;

pub use columns::{Window, deform_columns};
pub use det::det;
pub use fft::{Transform, transform};
pub use fold::{Fold, fold};
pub use nms::{Suppression, suppress};
pub use reduce::reduce_rows;
pub use roi::{Regions, roi_align};
pub use unique::unique;

use super::plan::{convert, integers};
use crate::ops::{Call, Meta, Raw};
use crate::tensor::Tensor;
use crate::{DType, Error, Result};
use bytemuck::Pod;

/// An operand that must be there.
pub fn operand(inputs: &[Option<Tensor>], index: usize) -> Result<&Tensor> {
    let missing = || Error::Internal(format!("a form on the host reads operand {index}, which is missing"));
    inputs.get(index).and_then(Option::as_ref).ok_or_else(missing)
}

/// The operand in the type that its floats are computed with in.
pub fn widened(inputs: &[Option<Tensor>], index: usize) -> Result<Tensor> {
    let tensor = operand(inputs, index)?;
    convert(tensor, tensor.meta().dtype.arithmetic())
}

/// A result that `work` fills, zeros at first: in the type that floats are computed with in, rounded once at the end.
pub fn filled<T: Pod>(meta: &Meta, work: impl FnOnce(&mut [T])) -> Result<Tensor> {
    let wide = Meta { dtype: meta.dtype.arithmetic(), dims: meta.dims.clone() };
    let mut buffer = Tensor::host_buffer(&wide)?;
    work(buffer.view_mut(&wide).as_slice_mut());
    convert(&Tensor::from_host(buffer, &wide), meta.dtype)
}

/// A list of int64.
pub fn list(values: &[i64]) -> Result<Tensor> {
    Tensor::from_slice(DType::I64, [values.len()], values)
}

/// The slices of `x` along an axis that indices name.
pub fn take(x: &Tensor, indices: &[i64], axis: usize) -> Result<Tensor> {
    let indices = list(indices)?;
    let metas = vec![Some(x.meta().clone()), Some(indices.meta().clone())];
    let call = Call::new("gather", metas, &[("axis".to_string(), Raw::Number(axis as f64))])?;
    Ok(call.run_cpu(&[Some(x.clone()), Some(indices)])?.swap_remove(0))
}

/// Places of the elements that are not 0, one row per axis.
pub fn nonzero(inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
    let x = operand(inputs, 0)?;
    // Every type's 0, and only that, becomes 0 in float64.
    let wide = convert(x, DType::F64)?;
    let values = wide.host_view()?.as_slice::<f64>();
    let found: Vec<usize> = (0..values.len()).filter(|&index| values[index] != 0.0).collect();
    let (dims, strides) = (&x.meta().dims, crate::shape::strides_of(&x.meta().dims));
    let mut places = Vec::with_capacity(dims.len() * found.len());
    for (dim, stride) in dims.iter().zip(strides) {
        places.extend(found.iter().map(|index| (index / stride % dim) as i64));
    }
    Ok(vec![Tensor::from_slice(DType::I64, [dims.len(), found.len()], &places)?])
}

/// The slices along an axis whose condition holds.
pub fn compress(inputs: &[Option<Tensor>], axis: usize) -> Result<Vec<Tensor>> {
    let kept = holding(&integers(operand(inputs, 1)?)?);
    Ok(vec![take(operand(inputs, 0)?, &kept, axis)?])
}

/// Indices of what is not 0.
pub fn holding(condition: &[i64]) -> Vec<i64> {
    (0..condition.len() as i64).filter(|&index| condition[index as usize] != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_what_is_not_zero() {
        let x = Tensor::from_slice(DType::F32, [2, 3], &[0.0f32, -0.0, f32::NAN, 1e-45, 0.0, 2.0]).unwrap();
        let places = nonzero(&[Some(x)]).unwrap().swap_remove(0);
        assert_eq!(places.meta().dims, [2, 3]);
        assert_eq!(integers(&places).unwrap(), [0, 1, 1, 2, 0, 2]);
        let scalar = Tensor::from_slice(DType::U64, [], &[u64::MAX]).unwrap();
        assert_eq!(nonzero(&[Some(scalar)]).unwrap()[0].meta().dims, [0, 1]);
        let empty = Tensor::from_slice::<u8>(DType::U8, [4, 0], &[]).unwrap();
        assert_eq!(nonzero(&[Some(empty)]).unwrap()[0].meta().dims, [2, 0]);
    }

    #[test]
    fn halves_are_rounded_once() {
        let meta = Meta::new(DType::F16, [2]);
        let halves = filled::<f32>(&meta, |out| out.copy_from_slice(&[1.0, 2049.0])).unwrap();
        assert_eq!(halves.host_view().unwrap().as_slice::<u16>(), [0x3c00, 0x6800]);
    }
}
