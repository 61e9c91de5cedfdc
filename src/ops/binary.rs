//! Elementwise arithmetic of two operands with NumPy's broadcasting. On a GPU floats of equal dims have kernels of their own;
//! the rest takes those of expressions.

use super::elements::{self, enqueue_named, join_of_numbers, join_of_wholes};
use super::operands::device_operand;
use super::spec::*;
use super::unary::THREADS;
use super::{Attrs, Call, NUMBERS};
use crate::cpu::scalar::*;
use crate::cpu::whole::{Mod, WholeScalar};
use crate::kernels::{Arg, Launcher, linear};
use crate::shape::broadcast;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, invalid, mismatch};

/// The operands of the families of two.
pub const AB: &[Operand] = &[required("a"), required("b")];

const FMOD: Attribute = attribute(
    "fmod",
    Kind::Bool(false),
    "Whether the result has a's sign, as C's fmod; floats take nothing else.",
);

const fn row<F: Scalar + WholeScalar>(tolerance: Tolerance, doc: &'static str) -> OpSpec {
    let (results, cpu) = (Results::One, join_of_numbers::<F> as CpuForm);
    OpSpec {
        name: F::NAME,
        operands: AB,
        attributes: &[],
        dtypes: NUMBERS,
        results,
        shape,
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
    row::<Add>(Rounded, "a + b with broadcasting; whole numbers wrap (ONNX Add)."),
    row::<Sub>(Rounded, "a - b with broadcasting; whole numbers wrap (ONNX Sub)."),
    row::<Mul>(Rounded, "a * b with broadcasting; whole numbers wrap (ONNX Mul)."),
    row::<Div>(Rounded, "a / b with broadcasting; whole numbers are truncated, and divided by 0 give 0 (ONNX Div)."),
    row::<Pow>(Function, "a to the power b with broadcasting; whole numbers wrap, and truncate where b is below 0 (ONNX Pow with \
        both of one type)."),
    row::<Max>(Exact, "The larger of a and b with broadcasting; NaN where either is (ONNX Max)."),
    row::<Min>(Exact, "The smaller of a and b with broadcasting; NaN where either is (ONNX Min)."),
    OpSpec {
        name: Mod::NAME,
        attributes: &[FMOD],
        shape: |spec, inputs, attrs| {
            let dtype = spec.operand(inputs, 0)?.dtype;
            if dtype.is_float() && !attrs.bool(FMOD.name) {
                return invalid!("mod: 'fmod' must be true for {dtype}, got false");
            }
            shape(spec, inputs, attrs)
        },
        cpu: mod_cpu,
        cuda: |call, launcher, inputs, outputs| {
            let function = if call.attrs.bool(FMOD.name) { Fmod::NAME } else { Mod::NAME };
            elements::enqueue(call, (function, &[]), launcher, inputs, outputs)
        },
        ..row::<Fmod>(Exact, "The remainder of a / b with broadcasting, with b's sign unless fmod says otherwise; whole numbers divided \
            by 0 give 0 (ONNX Mod).")
    },
    OpSpec {
        operands: &[required("x"), required("slope")],
        shape: prelu_shape,
        cuda: enqueue_named,
        ..row::<Prelu>(Rounded, "x, or slope * x below 0; slope is broadcast to x's dims, and whole numbers wrap (ONNX PRelu).")
    },
];

/// Operands of one type that are broadcast; the result's type is the op's own where it has one.
pub fn shape(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    let (a, b) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    let dtype = if let Results::Of(dtype) = spec.results { dtype } else { a.dtype };
    Ok(vec![Meta::new(dtype, broadcast(spec.name, &a.dims, &b.dims)?)])
}

fn prelu_shape(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    let (x, slope) = (spec.operand(inputs, 0)?, spec.operand(inputs, 1)?);
    if broadcast(spec.name, &x.dims, &slope.dims)? != x.dims {
        return mismatch!("prelu: 'slope' must broadcast to {:?}, got dims {:?}", x.dims, slope.dims);
    }
    Ok(vec![x.clone()])
}

fn mod_cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    if call.attrs.bool(FMOD.name) {
        join_of_numbers::<Fmod>(call, inputs, outputs)
    } else {
        join_of_wholes::<Mod>(call, inputs, outputs)
    }
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let (n, dtype) = (call.output().size() as u64, call.dtype());
    if !dtype.is_float() || call.input(0).dims != call.input(1).dims {
        return enqueue_named(call, launcher, inputs, outputs);
    }
    if n == 0 {
        return Ok(());
    }
    let grid = linear(n, THREADS, 16 / dtype.size() as u32)?;
    let [a, b] = [device_operand(call, inputs, 0)?, device_operand(call, inputs, 1)?];
    let arguments = [Arg::Ptr(a), Arg::Ptr(b), Arg::Ptr(outputs[0].ptr), Arg::U64(n)];
    launcher.launch(&format!("{}_{}", call.spec.name, dtype.suffix()), grid, &arguments)
}

#[cfg(test)]
mod tests {
    use super::super::FLOATS;
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::{DType, Tensor};

    fn run(op: &str, a: (&[usize], &[f32]), b: (&[usize], &[f32])) -> (Vec<usize>, Vec<f32>) {
        let tensors = [a, b].map(|(dims, data)| Tensor::from_slice(DType::F32, dims, data).unwrap());
        let metas = tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect();
        let call = Call::new(op, metas, &[]).unwrap();
        let outputs = call.run_cpu(&tensors.map(Some)).unwrap();
        (outputs[0].meta().dims.clone(), outputs[0].host_view().unwrap().as_slice::<f32>().to_vec())
    }

    #[test]
    fn broadcasts_as_numpy() {
        let got = run("sub", (&[3, 1], &[10.0, 20.0, 30.0]), (&[2], &[1.0, 2.0]));
        assert_eq!(got, (vec![3, 2], vec![9.0, 8.0, 19.0, 18.0, 29.0, 28.0]));
        assert_eq!(run("add", (&[0], &[]), (&[1], &[1.0])), (vec![0], vec![]));
        assert_eq!(run("div", (&[], &[1.0]), (&[], &[4.0])), (vec![], vec![0.25]));
        let nan = run("max", (&[2], &[f32::NAN, 1.0]), (&[2], &[1.0, f32::NAN])).1;
        assert!(nan.iter().all(|value| value.is_nan()));
    }

    #[test]
    fn pieces_may_begin_inside_a_run() {
        let rows = 7;
        let columns = 10_007;
        let a: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..rows).map(|i| i as f32).collect();
        let got = run("add", (&[rows, columns], &a), (&[rows, 1], &b)).1;
        assert!(got.iter().enumerate().all(|(i, &y)| y == a[i] + b[i / columns]));
    }

    #[test]
    fn every_row_has_its_kernels() {
        use Parameter::Word64;
        let plain = OPS.iter().filter(|spec| std::ptr::fn_addr_eq(spec.cuda, cuda as CudaForm));
        for (spec, dtype) in plain.flat_map(|spec| FLOATS.iter().map(move |dtype| (spec, dtype))) {
            let plain = format!("{}_{}", spec.name, dtype.suffix());
            assert_eq!(kernel(&plain, 75).unwrap().1.parameters, [Word64; 4]);
        }
    }
}
