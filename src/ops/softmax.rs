//! softmax and logSoftmax over one axis.

use super::operands::{device_operand, divisor, host_operand};
use super::rows::RowCall;
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::cpu::math::{fold_max, sum_f64};
use crate::cpu::{Math, for_pieces, simd};
use crate::kernels::{Arg, Launcher, linear};
use crate::shape::{normalize_axis, size_of};
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, for_float};

const X: &[Operand] = &[required("x")];
const AXIS: Attribute = attribute("axis", Kind::Int(Some(-1)), "Axis that sums to one; the last by default.");

const fn row(name: &'static str, cpu: CpuForm, doc: &'static str) -> OpSpec {
    let (tolerance, dtypes) = (Tolerance::Normalized, FLOATS);
    OpSpec {
        name,
        operands: X,
        attributes: &[AXIS],
        dtypes,
        results: Results::One,
        shape,
        cpu,
        cuda,
        tolerance,
        doc,
    }
}

/// The family's rows.
pub const OPS: &[OpSpec] = &[
    row(
        "softmax",
        |call, inputs, outputs| for_float!(call.dtype(), softmax(call, inputs, outputs)),
        "Exponentials over their sum along one axis (ONNX Softmax).",
    ),
    row(
        "logSoftmax",
        |call, inputs, outputs| for_float!(call.dtype(), log_softmax(call, inputs, outputs)),
        "Logarithm of softmax along one axis (ONNX LogSoftmax).",
    ),
];

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    extents(spec, attrs, &x.dims)?;
    Ok(vec![x.clone()])
}

/// The input as [outer, length, inner]; a scalar is a row of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extents {
    outer: usize,
    length: usize,
    inner: usize,
}

fn extents(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<Extents> {
    let axis = normalize_axis(spec.name, attrs.int(AXIS.name), dims.len().max(1))?;
    if dims.is_empty() {
        return Ok(Extents { outer: 1, length: 1, inner: 1 });
    }
    Ok(Extents { outer: size_of(&dims[..axis]), length: dims[axis], inner: size_of(&dims[axis + 1..]) })
}

fn softmax<T: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    normalize::<T>(call, inputs, outputs, |x, most, sum| T::from_f64((x - most).exp().to_f64() / sum))
}

fn log_softmax<T: Math>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    normalize::<T>(call, inputs, outputs, |x, most, log| T::from_f64((x - most).to_f64() - log))
}

/// NaN is no maximum: it reaches the row through the sum.
#[inline(always)]
fn larger<T: Math>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// Writes `finish(x, maximum, factor)`, where factor is the sum of exponentials or, for logSoftmax, its logarithm.
fn normalize<T: Math>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    finish: impl Fn(T, T, f64) -> T + Send + Sync,
) -> Result<()> {
    let x = host_operand::<T>(call, inputs, 0)?;
    let y = outputs[0].as_slice_mut::<T>();
    let Extents { outer, length, inner } = extents(call.spec, &call.attrs, &call.input(0).dims)?;
    let log = is_log(call);
    let factor = |sum: f64| if log { sum.ln() } else { sum };
    if y.is_empty() {
        return Ok(());
    }
    if inner == 1 {
        for_pieces(y, length, 6, |start, piece| {
            let mut rows = x[start..].chunks(length).zip(piece.chunks_mut(length));
            simd::vectorize(
                #[inline(always)]
                || {
                    rows.by_ref().for_each(|(row, y)| {
                        let most = fold_max(row, larger);
                        let factor = factor(sum_f64(row, |value| (value - most).exp().to_f64()));
                        y.iter_mut().zip(row).for_each(|(y, &x)| *y = finish(x, most, factor));
                    });
                },
            );
        });
        return Ok(());
    }
    let mut columns = vec![(-T::INFINITY, 0.0); outer * inner];
    for_pieces(&mut columns, 1, 10 * length, |start, piece| {
        for_column_runs(start, piece, inner, |outer, column, run| {
            column_statistics(&x[outer * length * inner + column..], length, inner, run);
            run.iter_mut().for_each(|(_, sum)| *sum = factor(*sum));
        });
    });
    for_pieces(y, inner, 10, |start, piece| {
        for (index, y) in piece.chunks_mut(inner).enumerate() {
            let row = start / inner + index;
            let columns = &columns[row / length * inner..][..inner];
            for ((y, &x), &(most, factor)) in y.iter_mut().zip(&x[row * inner..]).zip(columns) {
                *y = finish(x, most, factor);
            }
        }
    });
    Ok(())
}

/// Splits a piece of the columns of all outer indices into runs of one outer index.
fn for_column_runs<C>(
    start: usize,
    piece: &mut [C],
    inner: usize,
    mut work: impl FnMut(usize, usize, &mut [C]),
) {
    let (mut index, mut rest) = (start, piece);
    while !rest.is_empty() {
        let length = (inner - index % inner).min(rest.len());
        let (run, tail) = rest.split_at_mut(length);
        work(index / inner, index % inner, run);
        index += length;
        rest = tail;
    }
}

/// Maximum and sum of exponentials relative to it of neighbouring columns of a [length, inner] matrix.
fn column_statistics<T: Math>(x: &[T], length: usize, inner: usize, columns: &mut [(T, f64)]) {
    for row in 0..length {
        for ((most, _), &value) in columns.iter_mut().zip(&x[row * inner..]) {
            *most = larger(*most, value);
        }
    }
    for row in 0..length {
        for ((most, sum), &value) in columns.iter_mut().zip(&x[row * inner..]) {
            *sum += (value - *most).exp().to_f64();
        }
    }
}

fn is_log(call: &Call) -> bool {
    call.spec.name == "logSoftmax"
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let Extents { outer, length, inner } = extents(call.spec, &call.attrs, &call.input(0).dims)?;
    let pointers = [device_operand(call, inputs, 0)?, outputs[0].ptr];
    let [x, y] = pointers.map(Arg::Ptr);
    let dtype = call.dtype();
    let kernel = format!("{}_{}", call.spec.name, dtype.suffix());
    if inner > 1 {
        let columns = (outer * inner) as u64;
        let parts = strided_parts(columns, length, dtype.arithmetic().size());
        let grid = linear(columns * u64::from(parts), 256, 1)?;
        let sizes = [Arg::U64(columns), Arg::U64(length as u64), Arg::U64(inner as u64)];
        let [columns, length, width] = sizes;
        let arguments = [x, y, columns, length, width, Arg::U64(divisor(inner)), Arg::U32(parts)];
        return launcher.launch(&format!("{kernel}_strided"), grid, &arguments);
    }
    RowCall {
        kernel,
        partial: format!("softmax_{}_partial", dtype.suffix()),
        rows: outer,
        columns: length,
        size: dtype.size(),
        held: [2, 8],
        kept: 2 * dtype.arithmetic().size(),
        x: pointers[0],
        others: &pointers[1..],
        whole: true,
        last: &[],
    }
    .launch(launcher)
}

/// Columns times threads of a column that keep a device busy.
const BUSY: u64 = 76_800;

/// Threads that share a column: enough to keep it in registers, more than 8 only where columns are few, because a
/// block then reads fewer neighbouring columns at once.
fn strided_parts(columns: u64, length: usize, size: usize) -> u32 {
    let held = 64 / size;
    let mut parts = 1;
    while parts < 256 && parts * held < length && (parts < 8 || columns * (parts as u64) < BUSY) {
        parts *= 2;
    }
    parts as u32
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::{DType, Tensor};

    fn run(op: &str, dims: &[usize], x: &[f32], axis: f64) -> Vec<f32> {
        let input = Tensor::from_slice(DType::F32, dims, x).unwrap();
        let options = [("axis".to_string(), Raw::Number(axis))];
        let call = Call::new(op, vec![Some(input.meta().clone())], &options).unwrap();
        let outputs = call.run_cpu(&[Some(input)]).unwrap();
        outputs[0].host_view().unwrap().as_slice::<f32>().to_vec()
    }

    #[test]
    fn extremes_follow_the_policy() {
        assert_eq!(run("softmax", &[3], &[3.4e38, 3.4e38, 0.0], 0.0), [0.5, 0.5, 0.0]);
        assert!(run("softmax", &[2], &[f32::NEG_INFINITY; 2], -1.0).iter().all(|y| y.is_nan()));
        assert!(run("softmax", &[3], &[1.0, f32::NAN, 2.0], -1.0).iter().all(|y| y.is_nan()));
        assert_eq!(run("logSoftmax", &[2], &[0.0, f32::NEG_INFINITY], -1.0), [0.0, f32::NEG_INFINITY]);
        assert_eq!(run("softmax", &[], &[7.0], -1.0), [1.0]);
    }

    #[test]
    fn any_axis_agrees_with_the_last() {
        let dims = [3, 41, 29];
        let x: Vec<f32> = (0..3 * 41 * 29).map(|i| ((i * 7919) % 1000) as f32 / 100.0).collect();
        for op in ["softmax", "logSoftmax"] {
            let y = run(op, &dims, &x, 1.0);
            for (o, i) in [(0, 0), (1, 28), (2, 13)] {
                let at = |j: usize| (o * 41 + j) * 29 + i;
                let column: Vec<f32> = (0..41).map(|j| x[at(j)]).collect();
                for (j, want) in run(op, &[41], &column, 0.0).into_iter().enumerate() {
                    assert!((y[at(j)] - want).abs() <= 1e-6 * want.abs(), "{op} {o} {j} {i}");
                }
            }
        }
    }

    #[test]
    fn columns_are_shared_by_as_few_threads_as_hold_them() {
        assert_eq!(strided_parts(1 << 20, 16, 4), 1);
        assert_eq!(strided_parts(1 << 20, 17, 4), 2);
        assert_eq!(strided_parts(1 << 20, 1000, 4), 8);
        assert_eq!(strided_parts(64, 1000, 4), 64);
        assert_eq!(strided_parts(2, 1 << 22, 8), 256);
    }

    #[test]
    fn every_row_has_its_kernels() {
        use Parameter::{Word32, Word64};
        for (spec, dtype) in OPS.iter().flat_map(|spec| FLOATS.iter().map(move |dtype| (spec, dtype))) {
            let suffix = dtype.suffix();
            let parameters =
                |form: &str| kernel(&format!("{}_{suffix}_{form}", spec.name), 75).unwrap().1.parameters;
            for form in super::super::rows::FORMS {
                assert_eq!(parameters(form), [Word64, Word64, Word64, Word32]);
            }
            assert_eq!(parameters("finish"), [Word64, Word64, Word64, Word64, Word64, Word32]);
            assert_eq!(parameters("strided"), [Word64, Word64, Word64, Word64, Word64, Word64, Word32]);
            let (_, partial) = kernel(&format!("softmax_{suffix}_partial"), 75).unwrap();
            assert_eq!(partial.parameters, [Word64, Word64, Word64, Word64, Word32]);
        }
    }
}
