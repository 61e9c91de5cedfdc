//! The table of element types: name, size, kernel suffix, JavaScript array.

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DType {
    F32,
    F64,
    F16,
    Bf16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct DTypeInfo {
    /// The type itself.
    pub dtype: DType,
    /// ONNX name in lower case, as `Tensor.type` gives it.
    pub name: &'static str,
    /// Bytes of one element.
    pub size: usize,
    /// Suffix in kernel names.
    pub suffix: &'static str,
    /// JavaScript class that holds the elements.
    pub array: &'static str,
    /// Number in ONNX files.
    pub onnx: i32,
}

const fn row(
    dtype: DType,
    name: &'static str,
    size: usize,
    suffix: &'static str,
    array: &'static str,
    onnx: i32,
) -> DTypeInfo {
    DTypeInfo { dtype, name, size, suffix, array, onnx }
}

/// Every element type, in the order of [`DType`].
pub const DTYPES: &[DTypeInfo] = &[
    row(DType::F32, "float32", 4, "f32", "Float32Array", 1),
    row(DType::F64, "float64", 8, "f64", "Float64Array", 11),
    row(DType::F16, "float16", 2, "f16", "Uint16Array", 10),
    row(DType::Bf16, "bfloat16", 2, "bf16", "Uint16Array", 16),
    row(DType::I64, "int64", 8, "i64", "BigInt64Array", 7),
    row(DType::I32, "int32", 4, "i32", "Int32Array", 6),
    row(DType::I16, "int16", 2, "i16", "Int16Array", 5),
    row(DType::I8, "int8", 1, "i8", "Int8Array", 3),
    row(DType::U64, "uint64", 8, "u64", "BigUint64Array", 13),
    row(DType::U32, "uint32", 4, "u32", "Uint32Array", 12),
    row(DType::U16, "uint16", 2, "u16", "Uint16Array", 4),
    row(DType::U8, "uint8", 1, "u8", "Uint8Array", 2),
    row(DType::Bool, "bool", 1, "bool", "Uint8Array", 9),
];

impl DType {
    /// The row of this type.
    pub fn info(self) -> &'static DTypeInfo {
        &DTYPES[self as usize]
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        self.info().size
    }

    /// ONNX name in lower case.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Suffix in kernel names.
    pub fn suffix(self) -> &'static str {
        self.info().suffix
    }

    /// Whether elements are floats of 16 bits: stored and moved as they are, computed with in float32.
    pub fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::Bf16)
    }

    /// The type that floats of this one are computed with in.
    pub fn arithmetic(self) -> DType {
        if self.is_half() { DType::F32 } else { self }
    }

    /// The type that kernels hold elements of this one in while they compute: whole numbers have 32 or 64 bits, truth is
    /// one without a sign.
    pub fn promoted(self) -> DType {
        match self {
            DType::I8 | DType::I16 => DType::I32,
            DType::U8 | DType::U16 | DType::Bool => DType::U32,
            _ => self.arithmetic(),
        }
    }

    /// Whether elements are floats.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::Bf16)
    }

    /// Whether elements are whole numbers below 0 too.
    pub fn is_signed(self) -> bool {
        matches!(self, DType::I64 | DType::I32 | DType::I16 | DType::I8)
    }

    /// The type without a sign that has as many bytes.
    pub fn of_bits(self) -> DType {
        match self.size() {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<DType> {
        DTYPES.iter().find(|row| row.name == name).map(|row| row.dtype)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_names_are_unique() {
        for (index, row) in DTYPES.iter().enumerate() {
            assert_eq!(row.dtype as usize, index);
            assert_eq!(DType::from_name(row.name), Some(row.dtype));
        }
    }
}
