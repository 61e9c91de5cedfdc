//! Elementwise functions of one operand: a table row each.

use super::operands::{device_operand, host_operand};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::Result;
use crate::cpu::math::*;
use crate::cpu::{Float, for_pieces};
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, float_arg, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};

/// ONNX's Selu constants, the float32 values of its definition.
pub const SELU: [f64; 2] = [1.673_263_192_176_818_8, 1.050_701_022_148_132_3];

const X: &[Operand] = &[required("x")];

const fn alpha(default: f64, doc: &'static str) -> Attribute {
    attribute("alpha", Kind::Float(default), doc)
}

const fn row(
    name: &'static str,
    attributes: &'static [Attribute],
    tolerance: Tolerance,
    doc: &'static str,
    cpu: CpuForm,
) -> OpSpec {
    OpSpec {
        name,
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

/// The CPU form that applies a scalar function; its parameters are the op's number attributes, in order.
macro_rules! each {
    (|$x:pat_param, $first:pat_param, $second:pat_param| $body:expr) => {
        |call, inputs, outputs| {
            map(call, inputs, outputs, |$x: f32, $first, $second| $body, |$x: f64, $first, $second| $body)
        }
    };
    ($function:expr) => {
        each!(|x, _, _| $function(x))
    };
}

use Tolerance::{Exact, Function, Rounded};

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    row("relu", &[], Exact, "max(x, 0); NaN stays NaN (ONNX Relu).", each!(relu)),
    row("leakyRelu", &[alpha(0.01, "Slope below 0.")], Function,
        "x, or alpha * x below 0 (ONNX LeakyRelu).", each!(|x, alpha, _| leaky_relu(x, alpha))),
    row("elu", &[alpha(1.0, "Factor below 0.")], Function,
        "x, or alpha * (exp(x) - 1) below 0 (ONNX Elu).", each!(|x, alpha, _| elu(x, alpha))),
    row("selu", &[alpha(SELU[0], "Factor below 0."), attribute("gamma", Kind::Float(SELU[1]), "Factor of the whole.")],
        Function, "gamma * x, or gamma * alpha * (exp(x) - 1) below 0 (ONNX Selu).",
        each!(|x, alpha, gamma| selu(x, alpha, gamma))),
    row("sigmoid", &[], Function, "1 / (1 + exp(-x)) (ONNX Sigmoid).", each!(sigmoid)),
    row("tanh", &[], Function, "Hyperbolic tangent (ONNX Tanh).", each!(Math::tanh)),
    row("gelu", &[attribute("approximate", Kind::Choice(&["none", "tanh"]), "'tanh' for the form by tanh.")], Function,
        "x * Phi(x) for the normal distribution's Phi (ONNX Gelu).", gelu_cpu),
    row("silu", &[], Function, "x * sigmoid(x), also called Swish (ONNX Swish).", each!(silu)),
    row("hardSigmoid", &[alpha(0.2, "Slope."), attribute("beta", Kind::Float(0.5), "Value at 0.")], Function,
        "alpha * x + beta within 0 and 1 (ONNX HardSigmoid).", each!(|x, alpha, beta| hard_sigmoid(x, alpha, beta))),
    row("hardSwish", &[], Function, "x * hardSigmoid(x) with alpha 1/6 and beta 1/2 (ONNX HardSwish).", each!(hard_swish)),
    row("softplus", &[], Function, "log(1 + exp(x)) (ONNX Softplus).", each!(softplus)),
    row("mish", &[], Function, "x * tanh(softplus(x)) (ONNX Mish).", each!(mish)),
    row("clip", &[attribute("min", Kind::Float(f64::NEG_INFINITY), "Lower limit."),
                  attribute("max", Kind::Float(f64::INFINITY), "Upper limit; taken where it lies below the lower one.")],
        Exact, "min(max(x, min), max); NaN stays NaN (ONNX Clip).", each!(|x, low, high| clip(x, low, high))),
    row("exp", &[], Function, "Exponential (ONNX Exp).", each!(Math::exp)),
    row("log", &[], Function, "Natural logarithm (ONNX Log).", each!(Math::ln)),
    row("sqrt", &[], Rounded, "Square root (ONNX Sqrt).", each!(Math::sqrt)),
    row("erf", &[], Function, "Error function (ONNX Erf).", each!(Math::erf)),
    row("abs", &[], Exact, "Absolute value (ONNX Abs).", each!(Math::abs)),
    row("neg", &[], Exact, "-x (ONNX Neg).", each!(std::ops::Neg::neg)),
    row("sin", &[], Function, "Sine of an angle in radians (ONNX Sin).", each!(Math::sin)),
    row("cos", &[], Function, "Cosine of an angle in radians (ONNX Cos).", each!(Math::cos)),
    row("floor", &[], Exact, "Largest whole number not above x (ONNX Floor).", each!(Math::floor)),
    row("ceil", &[], Exact, "Smallest whole number not below x (ONNX Ceil).", each!(Math::ceil)),
    row("round", &[], Exact, "Nearest whole number, halves to the even one (ONNX Round).", each!(Math::round)),
    row("sign", &[], Exact, "-1, 0 or 1 by the sign of x; NaN stays NaN (ONNX Sign).", each!(sign)),
    row("reciprocal", &[], Rounded, "1 / x (ONNX Reciprocal).", each!(reciprocal)),
];

fn reciprocal<T: Float>(x: T) -> T {
    T::ONE / x
}

fn same(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    Ok(vec![spec.operand(inputs, 0)?.clone()])
}

/// The number attributes in the order of the op's table, 0 for absent ones.
fn parameters(call: &Call) -> [f64; 2] {
    let mut values = [0.0; 2];
    let numbers = call.spec.attributes.iter().filter(|attribute| matches!(attribute.kind, Kind::Float(_)));
    for (value, attribute) in values.iter_mut().zip(numbers) {
        *value = call.attrs.float(attribute.name);
    }
    values
}

fn map(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    single: impl Fn(f32, f32, f32) -> f32 + Send + Sync,
    double: impl Fn(f64, f64, f64) -> f64 + Send + Sync,
) -> Result<()> {
    match call.dtype() {
        DType::F64 => map_slice(call, inputs, outputs, double),
        _ => map_slice(call, inputs, outputs, single),
    }
}

fn map_slice<T: Float>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    function: impl Fn(T, T, T) -> T + Send + Sync,
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let [first, second] = parameters(call).map(T::from_f64);
    let cost = if call.spec.tolerance == Function { 8 } else { 1 };
    for_pieces(outputs[0].as_slice_mut::<T>(), 1, cost, |start, piece| {
        for (y, &x) in piece.iter_mut().zip(&x[start..]) {
            *y = function(x, first, second);
        }
    });
    Ok(())
}

fn gelu_cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    if by_tanh(call) {
        map(call, inputs, outputs, |x, _, _| gelu_tanh(x), |x, _, _| gelu_tanh(x))
    } else {
        map(call, inputs, outputs, |x, _, _| gelu(x), |x, _, _| gelu(x))
    }
}

fn by_tanh(call: &Call) -> bool {
    call.attrs.choice("approximate") == "tanh"
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
    let dtype = call.dtype();
    let function = if by_tanh(call) { "geluTanh" } else { call.spec.name };
    let [first, second] = parameters(call).map(|value| float_arg(dtype, value));
    let grid = linear(n, 256, 16 / dtype.size() as u32)?;
    let x = device_operand(call, inputs, 0)?;
    let arguments = [Arg::Ptr(x), Arg::Ptr(outputs[0].ptr), Arg::U64(n), first, second];
    launcher.launch(&format!("{function}_{}", dtype.suffix()), grid, &arguments)
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
        for spec in OPS {
            for &dtype in FLOATS {
                let scalar = if dtype == DType::F64 { F64 } else { F32 };
                let (_, entry) = kernel(&format!("{}_{}", spec.name, dtype.suffix()), 75).unwrap();
                assert_eq!(entry.parameters, [Word64, Word64, Word64, scalar, scalar], "{}", spec.name);
            }
            assert!(find(spec.name).is_ok());
        }
    }
}
