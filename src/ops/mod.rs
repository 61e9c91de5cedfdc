//! The op table. Each family's file holds its specs, shape rules, CPU forms and GPU launches.

mod activation;
mod attrs;
mod call;
mod elements;
mod halves;
mod indices;
mod spec;
mod tile;

pub mod arg;
pub mod attention;
pub mod binary;
pub mod bits;
pub mod cast;
pub mod choose;
pub mod compare;
pub mod conv;
pub mod conv_transpose;
pub mod evaluate;
pub mod geometry;
pub mod grid_sample;
pub mod group_norm;
pub mod layout;
pub mod matmul;
pub mod median;
pub mod norm;
mod operands;
mod planes;
pub mod pool;
pub mod pool_places;
mod precision;
pub mod quantize;
pub mod recurrent;
pub mod reduce;
pub mod resize;
pub mod rms_norm;
pub mod rotary;
mod rows;
pub mod running;
pub mod softmax;
pub mod top_k;
pub mod unary;

pub use attrs::{Attrs, COMMON_OPTIONS, Raw, nearest};
pub use call::Call;
pub use precision::Precision;
pub use spec::*;

use crate::dtype::DType;
use crate::{Error, Result};

/// Element types of the numeric ops.
pub const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::Bf16];
/// Element types of the ops that have no forms for 16 bits yet.
pub const WIDE_FLOATS: &[DType] = &[DType::F32, DType::F64];

/// Floats and whole numbers.
#[rustfmt::skip]
pub const NUMBERS: &[DType] = &[
    DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I64, DType::I32, DType::I16, DType::I8, DType::U64,
    DType::U32, DType::U16, DType::U8,
];
/// Numbers that may be below 0.
#[rustfmt::skip]
pub const SIGNED: &[DType] = &[
    DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I64, DType::I32, DType::I16, DType::I8,
];
/// Whole numbers.
#[rustfmt::skip]
pub const WHOLES: &[DType] = &[
    DType::I64, DType::I32, DType::I16, DType::I8, DType::U64, DType::U32, DType::U16, DType::U8,
];
/// Whole numbers from 0 on.
pub const UNSIGNED: &[DType] = &[DType::U64, DType::U32, DType::U16, DType::U8];

/// Every element type.
#[rustfmt::skip]
pub const TYPES: &[DType] = &[
    DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I64, DType::I32, DType::I16, DType::I8, DType::U64,
    DType::U32, DType::U16, DType::U8, DType::Bool,
];

/// The families' lists, in the order of docs/ops.md.
const FAMILIES: &[&[OpSpec]] = &[
    unary::OPS,
    binary::OPS,
    bits::OPS,
    compare::OPS,
    choose::OPS,
    evaluate::OPS,
    cast::OPS,
    layout::OPS,
    resize::OPS,
    grid_sample::OPS,
    matmul::OPS,
    conv::OPS,
    conv_transpose::OPS,
    pool::OPS,
    pool_places::OPS,
    softmax::OPS,
    norm::OPS,
    rms_norm::OPS,
    group_norm::OPS,
    recurrent::OPS,
    attention::OPS,
    rotary::OPS,
    quantize::LINEAR,
    quantize::DYNAMIC,
    quantize::MATMUL,
    quantize::WINDOWS,
    reduce::OPS,
    arg::OPS,
    running::OPS,
    top_k::OPS,
    median::OPS,
];

/// Every op, family by family.
pub fn all() -> impl Iterator<Item = &'static OpSpec> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The op of that name, or an error with the nearest known name.
pub fn find(name: &str) -> Result<&'static OpSpec> {
    if let Some(spec) = all().find(|spec| spec.name == name) {
        return Ok(spec);
    }
    let known: Vec<&str> = all().map(|spec| spec.name).collect();
    let hint = nearest(name, &known).map(|guess| format!(", did you mean '{guess}'?")).unwrap_or_default();
    Err(Error::UnsupportedOp(format!("unknown op '{name}'{hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_complete_and_names_are_unique() {
        let mut names = std::collections::HashSet::new();
        for spec in all() {
            assert!(names.insert(spec.name), "{} appears twice", spec.name);
            assert!(spec.doc.ends_with('.'), "{}: the doc line is a sentence", spec.name);
            assert!(!spec.dtypes.is_empty(), "{}", spec.name);
            let optional_first = spec.operands.windows(2).any(|pair| !pair[0].required && pair[1].required);
            assert!(!optional_first, "{}: required operands come first", spec.name);
            let alone = spec.operands.len() == 1 || spec.operands.iter().all(|operand| !operand.list);
            assert!(alone, "{}: a list is the only operand", spec.name);
            for attribute in spec.attributes {
                assert!(!COMMON_OPTIONS.contains(&attribute.name), "{}.{}", spec.name, attribute.name);
                assert!(attribute.doc.ends_with('.'), "{}.{}", spec.name, attribute.name);
            }
        }
    }
}
