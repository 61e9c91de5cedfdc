//! Elementwise functions of one operand: a table row each.

use super::elements::{self, map_floats, map_wholes};
use super::operands::device_operand;
use super::spec::*;
use super::{Attrs, Call, FLOATS, NUMBERS, SIGNED, halves};
use crate::cpu::scalar::*;
use crate::cpu::whole::{WholeScalar, for_whole};
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, float_arg, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, invalid};

/// ONNX's Selu constants, the float32 values of its definition.
pub const SELU: [f64; 2] = [1.673_263_192_176_818_8, 1.050_701_022_148_132_3];

/// Threads of a block of kernels/elementwise.cu.
pub const THREADS: u32 = 128;

const X: &[Operand] = &[required("x")];

const fn alpha(default: f64, doc: &'static str) -> Attribute {
    attribute("alpha", Kind::Float(default), doc)
}

const fn row<F: Scalar>(attributes: &'static [Attribute], tolerance: Tolerance, doc: &'static str) -> OpSpec {
    let cpu = map::<F>;
    OpSpec {
        name: F::NAME,
        operands: X,
        attributes,
        dtypes: FLOATS,
        results: Results::One,
        shape: same,
        cpu,
        cuda,
        tolerance,
        doc,
    }
}

/// A row of whole numbers too.
const fn numbers<F: Scalar + WholeScalar>(
    dtypes: &'static [DType],
    attributes: &'static [Attribute],
    doc: &'static str,
) -> OpSpec {
    let cpu = map_numbers::<F> as CpuForm;
    OpSpec { dtypes, cpu, ..row::<F>(attributes, Exact, doc) }
}

/// A row without kernels of its own.
const fn fused<F: Scalar>(
    attributes: &'static [Attribute],
    tolerance: Tolerance,
    doc: &'static str,
) -> OpSpec {
    OpSpec { cuda: fused_cuda, ..row::<F>(attributes, tolerance, doc) }
}

use Tolerance::{Exact, Function, Rounded};

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    numbers::<Relu>(SIGNED, &[], "max(x, 0); NaN stays NaN (ONNX Relu)."),
    row::<LeakyRelu>(&[alpha(0.01, "Slope below 0.")], Function,
        "x, or alpha * x below 0 (ONNX LeakyRelu)."),
    row::<Elu>(&[alpha(1.0, "Factor below 0.")], Function,
        "x, or alpha * (exp(x) - 1) below 0 (ONNX Elu)."),
    row::<Selu>(&[alpha(SELU[0], "Factor below 0."), attribute("gamma", Kind::Float(SELU[1]), "Factor of the whole.")],
        Function, "gamma * x, or gamma * alpha * (exp(x) - 1) below 0 (ONNX Selu)."),
    row::<Sigmoid>(&[], Function, "1 / (1 + exp(-x)) (ONNX Sigmoid)."),
    row::<Tanh>(&[], Function, "Hyperbolic tangent (ONNX Tanh)."),
    OpSpec { cpu: gelu_cpu, ..row::<Gelu>(&[attribute("approximate", Kind::Choice(&["none", "tanh"]), "'tanh' for the form by tanh.")], Function,
        "x * Phi(x) for the normal distribution's Phi (ONNX Gelu).") },
    row::<Silu>(&[], Function, "x * sigmoid(x), also called Swish (ONNX Swish)."),
    row::<HardSigmoid>(&[alpha(0.2, "Slope."), attribute("beta", Kind::Float(0.5), "Value at 0.")], Function,
        "alpha * x + beta within 0 and 1 (ONNX HardSigmoid)."),
    row::<HardSwish>(&[], Function, "x * hardSigmoid(x) with alpha 1/6 and beta 1/2 (ONNX HardSwish)."),
    row::<Softplus>(&[], Function, "log(1 + exp(x)) (ONNX Softplus)."),
    row::<Mish>(&[], Function, "x * tanh(softplus(x)) (ONNX Mish)."),
    OpSpec { shape: clip_shape, ..numbers::<Clip>(NUMBERS,
        &[attribute("min", Kind::Float(f64::NEG_INFINITY), "Lower limit."),
          attribute("max", Kind::Float(f64::INFINITY), "Upper limit; taken where it lies below the lower one.")],
        "min(max(x, min), max); NaN stays NaN (ONNX Clip).") },
    row::<Exp>(&[], Function, "Exponential (ONNX Exp)."),
    row::<Log>(&[], Function, "Natural logarithm (ONNX Log)."),
    row::<Sqrt>(&[], Rounded, "Square root (ONNX Sqrt)."),
    row::<Erf>(&[], Function, "Error function (ONNX Erf)."),
    numbers::<Abs>(NUMBERS, &[], "Absolute value; the least whole number stays (ONNX Abs)."),
    numbers::<Neg>(SIGNED, &[], "-x; the least whole number stays (ONNX Neg)."),
    row::<Sin>(&[], Function, "Sine of an angle in radians (ONNX Sin)."),
    row::<Cos>(&[], Function, "Cosine of an angle in radians (ONNX Cos)."),
    row::<Floor>(&[], Exact, "Largest whole number not above x (ONNX Floor)."),
    row::<Ceil>(&[], Exact, "Smallest whole number not below x (ONNX Ceil)."),
    row::<Round>(&[], Exact, "Nearest whole number, halves to the even one (ONNX Round)."),
    numbers::<Sign>(NUMBERS, &[], "-1, 0 or 1 by the sign of x; NaN stays NaN (ONNX Sign)."),
    row::<Reciprocal>(&[], Rounded, "1 / x (ONNX Reciprocal)."),
    fused::<Softsign>(&[], Function, "x / (1 + |x|) (ONNX Softsign)."),
    fused::<Celu>(&[alpha(1.0, "Factor below 0.")], Function, "x, or alpha * (exp(x / alpha) - 1) below 0 (ONNX Celu)."),
    fused::<ThresholdedRelu>(&[alpha(1.0, "The threshold.")], Exact, "x above alpha, else 0; NaN stays NaN (ONNX ThresholdedRelu)."),
    fused::<Shrink>(&[attribute("bias", Kind::Float(0.0), "How much nearer to 0."),
                      attribute("lambd", Kind::Float(0.5), "The magnitude up to which the result is 0.")],
        Rounded, "x nearer to 0 by bias where it lies beyond lambd, else 0; NaN stays NaN (ONNX Shrink)."),
    fused::<Tan>(&[], Function, "Tangent of an angle in radians (ONNX Tan)."),
    fused::<Asin>(&[], Function, "Inverse sine (ONNX Asin)."),
    fused::<Acos>(&[], Function, "Inverse cosine (ONNX Acos)."),
    fused::<Atan>(&[], Function, "Inverse tangent (ONNX Atan)."),
    fused::<Sinh>(&[], Function, "Hyperbolic sine (ONNX Sinh)."),
    fused::<Cosh>(&[], Function, "Hyperbolic cosine (ONNX Cosh)."),
    fused::<Asinh>(&[], Function, "Inverse hyperbolic sine (ONNX Asinh)."),
    fused::<Acosh>(&[], Function, "Inverse hyperbolic cosine (ONNX Acosh)."),
    fused::<Atanh>(&[], Function, "Inverse hyperbolic tangent (ONNX Atanh)."),
];

/// The result is like the operand.
pub fn same(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    Ok(vec![spec.operand(inputs, 0)?.clone()])
}

/// Limits of whole numbers are whole; beyond the type's range they limit nothing.
fn clip_shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    for name in ["min", "max"].into_iter().filter(|_| !x.dtype.is_float()) {
        let limit = attrs.float(name);
        if limit.is_nan() || limit.is_finite() && limit.fract() != 0.0 {
            return invalid!("clip: '{name}' must be a whole number for {}, got {limit}", x.dtype);
        }
    }
    Ok(vec![x.clone()])
}

/// The numbers and the choices of yes (1) or no (0) among the attributes, in the order of the op's table.
pub fn numbers_of(spec: &OpSpec, attrs: &Attrs) -> impl Iterator<Item = f64> {
    spec.attributes.iter().filter_map(|attribute| match attribute.kind {
        Kind::Float(_) => Some(attrs.float(attribute.name)),
        Kind::Bool(_) => Some(f64::from(u8::from(attrs.bool(attribute.name)))),
        _ => None,
    })
}

/// The same with 0 for absent ones.
pub fn parameters(call: &Call) -> [f64; 2] {
    let mut values = [0.0; 2];
    values.iter_mut().zip(numbers_of(call.spec, &call.attrs)).for_each(|(slot, value)| *slot = value);
    values
}

fn map<F: Scalar>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => map_floats::<F, f64>(call, inputs, outputs, parameters(call)),
        _ => map_floats::<F, f32>(call, inputs, outputs, parameters(call)),
    }
}

fn map_numbers<F: Scalar + WholeScalar>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    match call.dtype() {
        DType::F64 | DType::F32 => map::<F>(call, inputs, outputs),
        DType::F16 | DType::Bf16 => halves::around(call, inputs, outputs, map::<F>),
        dtype => for_whole!(dtype, map_wholes::<F>(call, inputs, outputs, parameters(call))),
    }
}

fn gelu_cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    if function_of(call.spec, &call.attrs) == GeluTanh::NAME {
        map::<GeluTanh>(call, inputs, outputs)
    } else {
        map::<Gelu>(call, inputs, outputs)
    }
}

/// The scalar function of an op of this family: its variant where an attribute chooses one.
pub fn function_of(spec: &OpSpec, attrs: &Attrs) -> &'static str {
    if attrs.choice("approximate") == "tanh" { GeluTanh::NAME } else { spec.name }
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let (n, dtype) = (call.output().size() as u64, call.dtype());
    if !dtype.is_float() {
        return fused_cuda(call, launcher, inputs, outputs);
    }
    if n == 0 {
        return Ok(());
    }
    let function = function_of(call.spec, &call.attrs);
    let [first, second] = parameters(call).map(|value| float_arg(dtype, value));
    let grid = linear(n, THREADS, 16 / dtype.size() as u32)?;
    let x = device_operand(call, inputs, 0)?;
    let arguments = [Arg::Ptr(x), Arg::Ptr(outputs[0].ptr), Arg::U64(n), first, second];
    launcher.launch(&format!("{function}_{}", dtype.suffix()), grid, &arguments)
}

/// The form of functions without kernels of their own: a kernel made for the function, with its numbers.
pub fn fused_cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let numbers: Vec<f64> = numbers_of(call.spec, &call.attrs).collect();
    let function = function_of(call.spec, &call.attrs);
    elements::enqueue(call, (function, &numbers), launcher, inputs, outputs)
}

#[cfg(test)]
mod tests {
    use super::super::{Raw, find};
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find as kernel};

    fn run(op: &str, options: &[(&str, Raw)], x: &[f32]) -> Vec<f32> {
        let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let input = Tensor::from_slice(DType::F32, [x.len()], x).unwrap();
        let call = Call::new(op, vec![Some(input.meta().clone())], &raw).unwrap();
        let outputs = call.run_cpu(&[Some(input)]).unwrap();
        outputs[0].host_view().unwrap().as_slice::<f32>().to_vec()
    }

    #[test]
    fn attributes_reach_the_function_in_order() {
        assert_eq!(run("clip", &[("max", Raw::Number(0.5))], &[-9.0, 2.0]), [-9.0, 0.5]);
        assert_eq!(run("clip", &[("min", Raw::Number(0.5))], &[-9.0, 2.0]), [0.5, 2.0]);
        let options = [("alpha", Raw::Number(0.5)), ("beta", Raw::Number(0.25))];
        assert_eq!(run("hardSigmoid", &options, &[-1.0, 0.0, 1.0]), [0.0, 0.25, 0.75]);
        assert_eq!(run("selu", &[], &[1.0]), [1.050_701]);
        let exact = run("gelu", &[], &[1.0])[0];
        let by_tanh = run("gelu", &[("approximate", Raw::Text("tanh".into()))], &[1.0])[0];
        assert!((exact - 0.841_344_7).abs() < 1e-7 && (by_tanh - 0.841_192).abs() < 1e-6);
    }

    #[test]
    fn halves_round_to_even_and_long_arrays_are_whole() {
        assert_eq!(run("round", &[], &[-2.5, -0.5, 0.5, 1.5, 2.5]), [-2.0, -0.0, 0.0, 2.0, 2.0]);
        let x: Vec<f32> = (0..100_003).map(|i| i as f32 - 50_000.0).collect();
        let y = run("abs", &[], &x);
        assert!(x.iter().zip(&y).all(|(x, y)| x.abs() == *y));
    }

    #[test]
    fn every_row_has_its_kernels() {
        use Parameter::{F32, F64, Word64};
        for spec in OPS.iter().filter(|spec| !std::ptr::fn_addr_eq(spec.cuda, fused_cuda as CudaForm)) {
            for &dtype in FLOATS {
                let scalar = if dtype == DType::F64 { F64 } else { F32 };
                let (_, entry) = kernel(&format!("{}_{}", spec.name, dtype.suffix()), 75).unwrap();
                assert_eq!(entry.parameters, [Word64, Word64, Word64, scalar, scalar], "{}", spec.name);
            }
            assert!(find(spec.name).is_ok());
        }
    }
}
