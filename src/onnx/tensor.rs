//! Tensors and declared types of model files.

use super::{External, Limits, invalid_model, proto, quoted};
use crate::graph::{Declared, Dim};
use crate::ops::Meta;
use crate::tensor::{HostBuffer, Tensor};
use crate::{DType, Error, Result};

/// The element type of that number; the error names types that exist but are not read.
fn dtype_of(number: i32, what: &str) -> Result<DType> {
    if let Some(row) = crate::DTYPES.iter().find(|row| row.onnx == number) {
        return Ok(row.dtype);
    }
    let other = match number {
        8 => "string",
        14 | 15 => "complex",
        17..=20 | 24 => "float8",
        21 | 22 | 25 | 26 => "integers below 8 bits",
        23 => "float4",
        _ => return invalid_model(format!("{what}: {number} is no element type")),
    };
    Err(Error::UnsupportedDtype(format!("model: {what}: elements of type {other} are not supported")))
}

/// A stored tensor, from wherever its elements are.
pub fn read(tensor: &proto::Tensor, what: &str, external: &External, limits: &Limits) -> Result<Tensor> {
    let dtype = dtype_of(tensor.data_type, what)?;
    let (dims, size) = limits.dims(what, &tensor.dims, dtype.size())?;
    let mut buffer = HostBuffer::for_overwrite(size)?;
    let bytes = buffer.bytes_mut();
    if tensor.data_location == 1 {
        if typed_length(tensor) > 0 || tensor.raw_data.is_some() {
            return invalid_model(format!("{what}: data both in the file and outside"));
        }
        bytes.copy_from_slice(&external.read(&tensor.external_data, size)?);
    } else {
        stored(tensor, dtype, what, bytes)?;
    }
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte = (*byte != 0).into());
    }
    Ok(Tensor::from_host(buffer, &Meta::new(dtype, dims)))
}

/// Elements in the typed fields together.
fn typed_length(tensor: &proto::Tensor) -> usize {
    let floats = tensor.float_data.len() + tensor.double_data.len();
    floats + tensor.int32_data.len() + tensor.int64_data.len() + tensor.uint64_data.len()
}

/// Elements within the message: raw, little-endian, or in the field that belongs to the type.
fn stored(tensor: &proto::Tensor, dtype: DType, what: &str, bytes: &mut [u8]) -> Result<()> {
    let typed = typed_length(tensor);
    if let Some(raw) = tensor.raw_data.as_ref().filter(|raw| !raw.is_empty() || typed == 0) {
        if typed > 0 || raw.len() != bytes.len() {
            let (got, name) = (raw.len() + typed, dtype.name());
            return invalid_model(format!("{what}: {} bytes of {name} are wanted, got {got}", bytes.len()));
        }
        bytes.copy_from_slice(raw);
        return Ok(());
    }
    match dtype {
        DType::F32 => put(bytes, what, typed, &tensor.float_data, |&x| Some(x.to_le_bytes())),
        DType::F64 => put(bytes, what, typed, &tensor.double_data, |&x| Some(x.to_le_bytes())),
        DType::I64 => put(bytes, what, typed, &tensor.int64_data, |&x| Some(x.to_le_bytes())),
        DType::U64 => put(bytes, what, typed, &tensor.uint64_data, |&x| Some(x.to_le_bytes())),
        DType::U32 => {
            put(bytes, what, typed, &tensor.uint64_data, |&x| Some(u32::try_from(x).ok()?.to_le_bytes()))
        }
        DType::I32 => put(bytes, what, typed, &tensor.int32_data, |&x| Some(x.to_le_bytes())),
        DType::I16 => {
            put(bytes, what, typed, &tensor.int32_data, |&x| Some(i16::try_from(x).ok()?.to_le_bytes()))
        }
        DType::U16 | DType::F16 | DType::Bf16 => {
            put(bytes, what, typed, &tensor.int32_data, |&x| Some(u16::try_from(x).ok()?.to_le_bytes()))
        }
        DType::I8 => {
            put(bytes, what, typed, &tensor.int32_data, |&x| Some(i8::try_from(x).ok()?.to_le_bytes()))
        }
        DType::U8 | DType::Bool => {
            put(bytes, what, typed, &tensor.int32_data, |&x| Some(u8::try_from(x).ok()?.to_le_bytes()))
        }
    }
}

/// Writes the elements of one typed field, which must be all that the message holds.
fn put<T: std::fmt::Debug, const SIZE: usize>(
    bytes: &mut [u8],
    what: &str,
    typed: usize,
    elements: &[T],
    encode: fn(&T) -> Option<[u8; SIZE]>,
) -> Result<()> {
    let wanted = bytes.len() / SIZE;
    if elements.len() != wanted || typed != wanted {
        return invalid_model(format!("{what}: {wanted} elements are wanted, got {typed}"));
    }
    for (slot, element) in bytes.chunks_exact_mut(SIZE).zip(elements) {
        match encode(element) {
            Some(encoded) => slot.copy_from_slice(&encoded),
            None => return invalid_model(format!("{what}: {element:?} does not fit the element type")),
        }
    }
    Ok(())
}

/// The declared type of an input or output, where the model gives one; anything but a tensor is refused.
pub fn declared(info: &proto::ValueInfo, what: &str, limits: &Limits) -> Result<Option<Declared>> {
    let what = format!("{what} {}", quoted(&info.name));
    let Some(kind) = &info.kind else { return Ok(None) };
    if [&kind.sequence, &kind.map, &kind.sparse, &kind.optional].into_iter().any(Option::is_some) {
        return Err(Error::UnsupportedOp(format!("model: {what} is not a tensor")));
    }
    let Some(tensor) = &kind.tensor else { return Ok(None) };
    let dtype = dtype_of(tensor.data_type, &what)?;
    let dims = tensor.shape.as_ref().map(|shape| shape.dims.iter().map(dim).collect::<Vec<_>>());
    let fixed = dims.iter().flatten().map(|dim| if let Dim::Fixed(size) = dim { *size as i64 } else { 1 });
    limits.dims(&what, &fixed.collect::<Vec<_>>(), dtype.size())?;
    Ok(Some(Declared { dtype, dims }))
}

/// Negative and nameless dims are free: exporters write -1, 0-length names and nothing at all for it.
fn dim(dimension: &proto::Dimension) -> Dim {
    match &dimension.extent {
        Some(proto::Extent::Value(value)) => usize::try_from(*value).map_or(Dim::Free, Dim::Fixed),
        Some(proto::Extent::Name(name)) if !name.is_empty() => Dim::Named(name.clone()),
        _ => Dim::Free,
    }
}
