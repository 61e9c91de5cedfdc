//! Comparisons, what is true of floats, and logic: elementwise ops whose results are bool.

use super::elements::{enqueue_named, map, test};
use super::spec::*;
use super::unary::{fused_cuda, parameters, same};
use super::{Call, FLOATS, NUMBERS, TYPES, binary, halves};
use crate::cpu::Math;
use crate::cpu::scalar::*;
use crate::cpu::whole::WholeScalar;
use crate::tensor::{HostView, HostViewMut};
use crate::{DType, Result};

const BOOLS: &[DType] = &[DType::Bool];

const fn row<F: Scalar + WholeScalar>(dtypes: &'static [DType], doc: &'static str) -> OpSpec {
    let cpu = test::<F> as CpuForm;
    OpSpec {
        name: F::NAME,
        operands: binary::AB,
        attributes: &[],
        dtypes,
        results: Results::Of(DType::Bool),
        shape: binary::shape,
        cpu,
        cuda: enqueue_named,
        tolerance: Tolerance::Exact,
        doc,
    }
}

/// The family's rows.
pub const OPS: &[OpSpec] = &[
    row::<Less>(NUMBERS, "Whether a < b, with broadcasting (ONNX Less)."),
    row::<LessOrEqual>(NUMBERS, "Whether a <= b, with broadcasting (ONNX LessOrEqual)."),
    row::<Greater>(NUMBERS, "Whether a > b, with broadcasting (ONNX Greater)."),
    row::<GreaterOrEqual>(NUMBERS, "Whether a >= b, with broadcasting (ONNX GreaterOrEqual)."),
    row::<Equal>(
        TYPES,
        "Whether a and b are equal, with broadcasting; NaN is equal to nothing (ONNX Equal).",
    ),
    row::<NotEqual>(TYPES, "Whether a and b differ, with broadcasting; NaN differs from everything."),
    row::<And>(BOOLS, "Whether a and b hold, with broadcasting (ONNX And)."),
    row::<Or>(BOOLS, "Whether a or b holds, with broadcasting (ONNX Or)."),
    row::<Xor>(BOOLS, "Whether one of a and b holds and not the other, with broadcasting (ONNX Xor)."),
    OpSpec {
        operands: X,
        shape: same,
        cpu: |call, inputs, outputs| map(call, inputs, outputs, 1, |x: u8| u8::from(x == 0)),
        ..row::<Not>(BOOLS, "Whether x does not hold (ONNX Not).")
    },
    property::<IsNaN>(&[], "Whether x is NaN (ONNX IsNaN)."),
    property::<IsInf>(
        &[
            attribute("detectNegative", Kind::Bool(true), "Whether -Infinity counts."),
            attribute("detectPositive", Kind::Bool(true), "Whether Infinity counts."),
        ],
        "Whether x is infinite (ONNX IsInf).",
    ),
];

const X: &[Operand] = &[required("x")];

const fn property<F: Scalar>(attributes: &'static [Attribute], doc: &'static str) -> OpSpec {
    let cpu = property_of::<F> as CpuForm;
    OpSpec {
        name: F::NAME,
        operands: X,
        attributes,
        dtypes: FLOATS,
        results: Results::Of(DType::Bool),
        shape: |spec, inputs, _| Ok(vec![Meta::new(DType::Bool, spec.operand(inputs, 0)?.dims.clone())]),
        cpu,
        cuda: fused_cuda,
        tolerance: Tolerance::Exact,
        doc,
    }
}

fn property_of<F: Scalar>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    match call.dtype() {
        DType::F64 => property_floats::<F, f64>(call, inputs, outputs),
        DType::F32 => property_floats::<F, f32>(call, inputs, outputs),
        _ => halves::around(call, inputs, outputs, property_of::<F>),
    }
}

fn property_floats<F: Scalar, T: Math>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let numbers = parameters(call).map(T::from_f64);
    map(call, inputs, outputs, 1, |x: T| u8::from(F::of([x, T::ZERO, T::ZERO], numbers) != T::ZERO))
}
