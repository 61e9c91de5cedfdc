//! Whole numbers that stand for floats: quantisation, and sums of products of small whole numbers.

mod blocks;
mod cuda;
mod dynamic;
mod linear;
mod matmul;
mod windows;

use super::spec::{Meta, OpSpec};
use crate::DType;
use crate::Result;

pub use self::linear::OPS as LINEAR;
pub use self::matmul::OPS as MATMUL;
pub use self::windows::OPS as WINDOWS;
pub use dynamic::OPS as DYNAMIC;

/// Element types of quantised tensors.
const SMALL: &[DType] = &[DType::U8, DType::I8, DType::U16, DType::I16];
/// Element types of the products.
const BYTES: &[DType] = &[DType::U8, DType::I8];

/// A whole number of at most 32 bits.
trait Whole: bytemuck::Pod + Send + Sync {
    fn wide(self) -> i64;
    /// The nearest of the type's range.
    fn nearest(value: f64) -> Self;
}

macro_rules! wholes {
    ($($type:ty)*) => {$(
        impl Whole for $type {
            fn wide(self) -> i64 {
                self as i64
            }
            fn nearest(value: f64) -> Self {
                value as $type
            }
        }
    )*};
}

wholes! { u8 i8 u16 i16 i32 }

/// Calls a generic function with the Rust type of whole numbers of a type.
macro_rules! for_whole {
    ($dtype:expr, $function:ident $(::<$first:ty>)? ($($argument:expr),* $(,)?)) => {
        match $dtype {
            DType::U8 => $function::<$($first,)? u8>($($argument),*),
            DType::I8 => $function::<$($first,)? i8>($($argument),*),
            DType::U16 => $function::<$($first,)? u16>($($argument),*),
            DType::I16 => $function::<$($first,)? i16>($($argument),*),
            _ => $function::<$($first,)? i32>($($argument),*),
        }
    };
}
use for_whole;

/// An error unless the operand, where it is given, has the type and the dims of another.
fn expect_like(
    spec: &OpSpec,
    index: usize,
    meta: Option<&Meta>,
    dtype: DType,
    dims: Option<&[usize]>,
) -> Result<()> {
    let Some(meta) = meta else { return Ok(()) };
    let name = spec.operands[index].name;
    if meta.dtype != dtype {
        return crate::invalid!("{}: '{name}' must be {dtype}, got {}", spec.name, meta.dtype);
    }
    let Some(dims) = dims else { return Ok(()) };
    if dims == meta.dims || (dims.len() < 2 && meta.dims.len() < 2 && meta.size() == dims.iter().product()) {
        return Ok(());
    }
    spec.expect_dims(index, meta, dims)
}
