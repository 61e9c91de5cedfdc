//! Reductions over any axes: sums, means, products, extremes and norms.

mod cpu;
mod cuda;
mod log_sum_exp;
mod whole;

use self::cpu::run as on_cpu;
pub(super) use self::whole::code;
use super::spec::*;
use super::{Attrs, Call, FLOATS, halves};
use crate::dtype::DType;
use crate::kernels::Launcher;
use crate::shape::normalize_axis;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, for_float, invalid, mismatch};

const X: &[Operand] = &[required("x")];
const AXES: Attribute = attribute(
    "axes",
    Kind::Ints,
    "Axes to reduce, negative ones counted from the end; all of them by default or for an empty list.",
);
const KEEP_DIMS: Attribute =
    attribute("keepDims", Kind::Bool(true), "Whether reduced axes stay in the result with size 1.");
const EMPTY: Attribute = attribute(
    "empty",
    Kind::Choice(&["error", "identity"]),
    "What there is of no elements: an error, or what changes no other element: the least number of the type for \
     reduceMax, the largest for reduceMin.",
);

/// Element types of the sums, products and norms.
#[rustfmt::skip]
pub(super) const SUMMED: &[DType] = &[
    DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I64, DType::I32, DType::U64, DType::U32,
];
/// Element types of the extremes.
#[rustfmt::skip]
const ORDERED: &[DType] = &[
    DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I64, DType::I32, DType::I8, DType::U64, DType::U32,
    DType::U8, DType::Bool,
];

/// What happens to each element before it is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Map {
    Identity,
    Abs,
    Square,
}

/// How elements are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fold {
    Sum,
    Product,
    Max,
    Min,
}

/// What happens to the folded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finish {
    Nothing,
    Mean,
    Root,
    Log,
}

/// What one op reduces by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rule {
    name: &'static str,
    map: Map,
    fold: Fold,
    finish: Finish,
}

const fn rule(name: &'static str, map: Map, fold: Fold, finish: Finish) -> Rule {
    Rule { name, map, fold, finish }
}

#[rustfmt::skip]
const RULES: &[Rule] = &[
    rule("reduceSum", Map::Identity, Fold::Sum, Finish::Nothing),
    rule("reduceMean", Map::Identity, Fold::Sum, Finish::Mean),
    rule("reduceMax", Map::Identity, Fold::Max, Finish::Nothing),
    rule("reduceMin", Map::Identity, Fold::Min, Finish::Nothing),
    rule("reduceProd", Map::Identity, Fold::Product, Finish::Nothing),
    rule("reduceL1", Map::Abs, Fold::Sum, Finish::Nothing),
    rule("reduceL2", Map::Square, Fold::Sum, Finish::Root),
    rule("reduceSumSquare", Map::Square, Fold::Sum, Finish::Nothing),
    rule("reduceLogSum", Map::Identity, Fold::Sum, Finish::Log),
];

const fn row(name: &'static str, tolerance: Tolerance, doc: &'static str) -> OpSpec {
    OpSpec {
        name,
        operands: X,
        attributes: &[AXES, KEEP_DIMS],
        dtypes: SUMMED,
        results: Results::One,
        shape,
        cpu,
        cuda,
        tolerance,
        doc,
    }
}

const fn extreme(name: &'static str, doc: &'static str) -> OpSpec {
    OpSpec { attributes: &[AXES, KEEP_DIMS, EMPTY], dtypes: ORDERED, ..row(name, Tolerance::Exact, doc) }
}

const fn floats(name: &'static str, cpu: CpuForm, cuda: CudaForm, doc: &'static str) -> OpSpec {
    OpSpec { dtypes: FLOATS, cpu, cuda, ..row(name, Tolerance::Accumulate, doc) }
}

fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => on_cpu::<f64>(call, inputs, outputs),
        DType::F32 => on_cpu::<f32>(call, inputs, outputs),
        DType::F16 | DType::Bf16 => halves::around(call, inputs, outputs, cpu),
        _ => whole::cpu(call, inputs, outputs),
    }
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let form = if call.dtype().is_float() { cuda::run } else { whole::cuda };
    form(call, launcher, inputs, outputs)
}

/// The family's rows.
#[rustfmt::skip]
pub const OPS: &[OpSpec] = &[
    row("reduceSum", Tolerance::Accumulate, "Sum over axes; 0 over none; whole numbers wrap (ONNX ReduceSum)."),
    row("reduceMean", Tolerance::Accumulate, "Mean over axes; NaN over none; of whole numbers truncated, 0 over none (ONNX ReduceMean)."),
    extreme("reduceMax", "Largest element over axes, NaN where there is one (ONNX ReduceMax)."),
    extreme("reduceMin", "Smallest element over axes, NaN where there is one (ONNX ReduceMin)."),
    row("reduceProd", Tolerance::Accumulate, "Product over axes; 1 over none; whole numbers wrap (ONNX ReduceProd)."),
    row("reduceL1", Tolerance::Accumulate, "Sum of magnitudes over axes (ONNX ReduceL1)."),
    row("reduceL2", Tolerance::Accumulate, "Root of the sum of squares over axes, of whole numbers truncated (ONNX ReduceL2)."),
    row("reduceSumSquare", Tolerance::Accumulate, "Sum of squares over axes (ONNX ReduceSumSquare)."),
    floats("reduceLogSum", |call, inputs, outputs| for_float!(call.dtype(), on_cpu(call, inputs, outputs)), cuda::run,
        "Logarithm of the sum over axes (ONNX ReduceLogSum)."),
    floats("reduceLogSumExp", log_sum_exp::CPU, log_sum_exp::cuda,
        "Logarithm of the sum of exponentials over axes, taken relative to the largest element; -Infinity over none (ONNX \
         ReduceLogSumExp)."),
];

fn rule_of(spec: &OpSpec) -> Rule {
    *RULES.iter().find(|rule| rule.name == spec.name).expect("every op of the family has a rule")
}

/// Which axes a call reduces.
fn reduced(spec: &OpSpec, attrs: &Attrs, rank: usize) -> Result<Vec<bool>> {
    let Some(axes) = attrs.ints(AXES.name).filter(|axes| !axes.is_empty()) else {
        return Ok(vec![true; rank]);
    };
    let mut chosen = vec![false; rank];
    for &axis in axes {
        let at = normalize_axis(spec.name, axis, rank)?;
        if std::mem::replace(&mut chosen[at], true) {
            return invalid!("{}: 'axes' {axes:?} name axis {at} twice", spec.name);
        }
    }
    Ok(chosen)
}

/// Elements behind each element of the result.
fn count(dims: &[usize], chosen: &[bool]) -> usize {
    dims.iter().zip(chosen).filter(|(_, chosen)| **chosen).map(|(&dim, _)| dim).product()
}

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    let chosen = reduced(spec, attrs, x.dims.len())?;
    let keep = attrs.bool(KEEP_DIMS.name);
    let dims: Vec<usize> = x
        .dims
        .iter()
        .zip(&chosen)
        .filter(|(_, chosen)| keep || !**chosen)
        .map(|(&dim, &chosen)| if chosen { 1 } else { dim })
        .collect();
    let nothing = x.dims.iter().zip(&chosen).any(|(&dim, &chosen)| chosen && dim == 0);
    if nothing && !dims.contains(&0) && attrs.choice(EMPTY.name) == "error" {
        return mismatch!("{}: 'x' has no elements along the axes reduced (dims {:?})", spec.name, x.dims);
    }
    Ok(vec![Meta::new(x.dtype, dims)])
}

/// Neighbouring axes with one fate: [outer, length, inner], the middle one reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    outer: usize,
    length: usize,
    inner: usize,
}

/// The steps that reduce `dims` along the chosen axes, one after the other; each takes the result of the one before.
/// At least one, of length 1 where nothing is reduced.
fn steps(dims: &[usize], chosen: &[bool]) -> Vec<Step> {
    let mut runs: Vec<(usize, bool)> = Vec::new();
    for (&dim, &chosen) in dims.iter().zip(chosen) {
        match runs.last_mut() {
            // An axis of one element is whatever its neighbours are.
            _ if dim == 1 => {}
            Some((size, same)) if *same == chosen => *size *= dim,
            _ => runs.push((dim, chosen)),
        }
    }
    let mut steps = Vec::new();
    // From the end, so that the first pass over all elements reads along memory where it can.
    while let Some(at) = runs.iter().rposition(|(_, chosen)| *chosen) {
        let size = |runs: &[(usize, bool)]| runs.iter().map(|(size, _)| size).product();
        steps.push(Step { outer: size(&runs[..at]), length: runs[at].0, inner: size(&runs[at + 1..]) });
        runs.remove(at);
    }
    if steps.is_empty() {
        steps.push(Step { outer: dims.iter().product(), length: 1, inner: 1 });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::super::{Call, Raw, find};
    use super::*;
    use crate::{DType, Tensor};

    fn call(op: &str, dims: &[usize], axes: &[f64], keep: bool) -> Result<Call> {
        let options =
            [("axes".to_string(), Raw::List(axes.to_vec())), ("keepDims".to_string(), Raw::Bool(keep))];
        Call::new(op, vec![Some(Meta::new(DType::F32, dims))], &options)
    }

    fn run(op: &str, dims: &[usize], axes: &[f64], x: &[f32]) -> Vec<f32> {
        let call = call(op, dims, axes, true).unwrap();
        let outputs = call.run_cpu(&[Some(Tensor::from_slice(DType::F32, dims, x).unwrap())]).unwrap();
        outputs[0].host_view().unwrap().as_slice::<f32>().to_vec()
    }

    #[test]
    fn every_row_has_a_rule() {
        for spec in OPS.iter().filter(|spec| spec.name != "reduceLogSumExp") {
            assert_eq!(rule_of(spec).name, spec.name);
        }
    }

    #[test]
    fn axes_reduced_go_or_become_one() {
        let dims =
            |axes: &[f64], keep| call("reduceSum", &[2, 3, 4], axes, keep).unwrap().output().dims.clone();
        assert_eq!(dims(&[1.0], true), [2, 1, 4]);
        assert_eq!(dims(&[1.0], false), [2, 4]);
        assert_eq!(dims(&[-1.0, 0.0], false), [3]);
        assert_eq!(dims(&[], false), [0usize; 0]);
        let code =
            |axes: &[f64]| call("reduceSum", &[2, 3], axes, true).map(|_| ()).map_err(|error| error.code());
        assert_eq!(code(&[2.0]), Err("INVALID_ARGUMENT"));
        assert_eq!(code(&[0.0, -2.0]), Err("INVALID_ARGUMENT"));
    }

    #[test]
    fn neighbours_with_one_fate_are_one_axis() {
        let step = |outer, length, inner| Step { outer, length, inner };
        assert_eq!(steps(&[2, 3, 4, 5], &[false, true, true, false]), [step(2, 12, 5)]);
        assert_eq!(steps(&[2, 3, 4, 5], &[true, false, true, false]), [step(6, 4, 5), step(1, 2, 15)]);
        assert_eq!(steps(&[2, 1, 4], &[true, false, true]), [step(1, 8, 1)]);
        assert_eq!(steps(&[7, 9], &[false, false]), [step(63, 1, 1)]);
        assert_eq!(steps(&[], &[]), [step(1, 1, 1)]);
    }

    #[test]
    fn values_follow_the_rules() {
        let x = [1.0, -2.0, 3.0, 4.0, 5.0, -6.0];
        assert_eq!(run("reduceSum", &[2, 3], &[0.0], &x), [5.0, 3.0, -3.0]);
        assert_eq!(run("reduceMean", &[2, 3], &[1.0], &x), [2.0 / 3.0, 1.0]);
        assert_eq!(run("reduceMax", &[2, 3], &[], &x), [5.0]);
        assert_eq!(run("reduceMin", &[2, 3], &[1.0], &x), [-2.0, -6.0]);
        assert_eq!(run("reduceProd", &[2, 3], &[1.0], &x), [-6.0, -120.0]);
        assert_eq!(run("reduceL1", &[2, 3], &[1.0], &x), [6.0, 15.0]);
        assert_eq!(run("reduceL2", &[1, 2], &[1.0], &[3.0, 4.0]), [5.0]);
        assert_eq!(run("reduceSumSquare", &[2, 3], &[0.0], &x), [17.0, 29.0, 45.0]);
        assert_eq!(run("reduceLogSum", &[2], &[0.0], &[0.5, 0.5]), [0.0]);
        assert!(run("reduceMax", &[3], &[0.0], &[1.0, f32::NAN, 3.0])[0].is_nan());
    }

    #[test]
    fn nothing_to_reduce_gives_the_identity_or_an_error() {
        assert_eq!(run("reduceSum", &[2, 0], &[1.0], &[]), [0.0, 0.0]);
        assert_eq!(run("reduceProd", &[0, 1], &[0.0], &[]), [1.0]);
        assert!(run("reduceMean", &[0], &[0.0], &[])[0].is_nan());
        let code = call("reduceMax", &[2, 0], &[1.0], true).map(|_| ()).map_err(|error| error.code());
        assert_eq!(code, Err("SHAPE_MISMATCH"));
        assert!(call("reduceMax", &[0, 0], &[1.0], true).is_ok());
        assert!(find("reduceSum").is_ok());
    }
}
