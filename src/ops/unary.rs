//! Elementwise functions of one operand: a table row each.

use super::operands::{device_operand, host_operand};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::Result;
use crate::cpu::scalar::*;
use crate::cpu::{Math, for_pieces};
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, float_arg, linear};
use crate::tensor::{DeviceView, HostView, HostViewMut};

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

use Tolerance::{Exact, Function, Rounded};

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    row::<Relu>(&[], Exact, "max(x, 0); NaN stays NaN (ONNX Relu)."),
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
    row::<Clip>(&[attribute("min", Kind::Float(f64::NEG_INFINITY), "Lower limit."),
                  attribute("max", Kind::Float(f64::INFINITY), "Upper limit; taken where it lies below the lower one.")],
        Exact, "min(max(x, min), max); NaN stays NaN (ONNX Clip)."),
    row::<Exp>(&[], Function, "Exponential (ONNX Exp)."),
    row::<Log>(&[], Function, "Natural logarithm (ONNX Log)."),
    row::<Sqrt>(&[], Rounded, "Square root (ONNX Sqrt)."),
    row::<Erf>(&[], Function, "Error function (ONNX Erf)."),
    row::<Abs>(&[], Exact, "Absolute value (ONNX Abs)."),
    row::<Neg>(&[], Exact, "-x (ONNX Neg)."),
    row::<Sin>(&[], Function, "Sine of an angle in radians (ONNX Sin)."),
    row::<Cos>(&[], Function, "Cosine of an angle in radians (ONNX Cos)."),
    row::<Floor>(&[], Exact, "Largest whole number not above x (ONNX Floor)."),
    row::<Ceil>(&[], Exact, "Smallest whole number not below x (ONNX Ceil)."),
    row::<Round>(&[], Exact, "Nearest whole number, halves to the even one (ONNX Round)."),
    row::<Sign>(&[], Exact, "-1, 0 or 1 by the sign of x; NaN stays NaN (ONNX Sign)."),
    row::<Reciprocal>(&[], Rounded, "1 / x (ONNX Reciprocal)."),
];

fn same(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    Ok(vec![spec.operand(inputs, 0)?.clone()])
}

/// The number attributes in the order of the op's table.
pub fn numbers_of(spec: &OpSpec, attrs: &Attrs) -> impl Iterator<Item = f64> {
    let numbers = spec.attributes.iter().filter(|attribute| matches!(attribute.kind, Kind::Float(_)));
    numbers.map(|attribute| attrs.float(attribute.name))
}

/// The same with 0 for absent ones.
fn parameters(call: &Call) -> [f64; 2] {
    let mut values = [0.0; 2];
    values.iter_mut().zip(numbers_of(call.spec, &call.attrs)).for_each(|(slot, value)| *slot = value);
    values
}

fn map<F: Scalar>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => map_slice::<F, f64>(call, inputs, outputs),
        _ => map_slice::<F, f32>(call, inputs, outputs),
    }
}

fn map_slice<F: Scalar, T: Math>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let parameters = parameters(call).map(T::from_f64);
    for_pieces(outputs[0].as_slice_mut::<T>(), 1, F::COST, |start, piece| {
        for (y, &x) in piece.iter_mut().zip(&x[start..]) {
            *y = F::of([x, T::ZERO, T::ZERO], parameters);
        }
    });
    Ok(())
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
    let n = call.output().size() as u64;
    if n == 0 {
        return Ok(());
    }
    let dtype = call.dtype();
    let function = function_of(call.spec, &call.attrs);
    let [first, second] = parameters(call).map(|value| float_arg(dtype, value));
    let grid = linear(n, THREADS, 16 / dtype.size() as u32)?;
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
