//! Matrix products, batched over leading dims.

mod cpu;
mod cuda;
mod direct;
mod double;
mod each;
mod half;
mod route;
mod split;
mod tiles;

pub(super) use self::each::{Each, EachJob};

use self::cpu::{multiply, run as on_cpu, run_single};
use super::activation::{ACTIVATION, ACTIVATION_ALPHA, ACTIVATION_BETA};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::dtype::DType;
use crate::shape::{Dims, broadcast, broadcast_strides, size_of};
use crate::{Result, invalid, mismatch};

/// The family's rows.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "matmul",
    operands: &[required("a"), required("b"), optional("c"), optional("bias")],
    attributes: &[
        attribute("transA", Kind::Bool(false), "Whether the last two axes of a are swapped."),
        attribute("transB", Kind::Bool(false), "Whether the last two axes of b are swapped."),
        attribute("alpha", Kind::Float(1.0), "Factor of the product; with 0, a and b are never read."),
        attribute("beta", Kind::Float(1.0), "Factor of c; with 0, c is never read."),
        ACTIVATION,
        ACTIVATION_ALPHA,
        ACTIVATION_BETA,
        OUTPUT_TYPE,
    ],
    dtypes: FLOATS,
    results: Results::One,
    shape,
    cpu: |call, inputs, outputs| match call.dtype() {
        DType::F64 => on_cpu::<f64>(call, inputs, outputs, multiply),
        _ => run_single(call, inputs, outputs),
    },
    cuda: cuda::run,
    tolerance: Tolerance::Accumulate,
    doc: "activation(alpha * a b + beta * c + bias) for a [..., m, k] and b [..., k, n], leading dims broadcast as NumPy \
          does; c broadcasts to the result, bias is [n], or [m, 1] for one number a row (ONNX MatMul and Gemm).",
}];

const OUTPUT_TYPE: Attribute = attribute(
    "outputType",
    Kind::Type { required: false },
    "Element type of the result, that of the operands when left out; else float32 for operands of 16 bits, float16 or \
     bfloat16 for float32 ones. Rounded once, at the end.",
);

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let product = Product::new(spec, inputs, attrs)?;
    Ok(vec![Meta::new(output_type(spec, spec.operand(inputs, 0)?.dtype, attrs)?, product.dims)])
}

fn output_type(spec: &OpSpec, operands: DType, attrs: &Attrs) -> Result<DType> {
    let output = attrs.dtype(OUTPUT_TYPE.name).unwrap_or(operands);
    let widens = operands.is_half() && output == DType::F32;
    let narrows = operands == DType::F32 && output.is_half();
    if output == operands || widens || narrows {
        return Ok(output);
    }
    let others = if operands.is_half() { ", float32" } else { ", float16, bfloat16" };
    let others = if operands == DType::F64 { "" } else { others };
    let (op, name) = (spec.name, OUTPUT_TYPE.name);
    invalid!("{op}: '{name}' must be one of {operands}{others} for operands of {operands}, got {output}")
}

/// One axis of the batch: its size and the operands' steps along it, in elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct BatchAxis {
    size: usize,
    a: usize,
    b: usize,
    c: usize,
}

impl BatchAxis {
    /// Whether going once round `inner` is one step along this axis for every operand.
    fn continues(&self, inner: &BatchAxis) -> bool {
        let steps = |outer: usize, step: usize| outer == inner.size * step;
        steps(self.a, inner.a) && steps(self.b, inner.b) && steps(self.c, inner.c)
    }
}

/// The product in numbers. Axes that all operands walk through alike are one, and batches that share b are rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Product {
    dims: Dims,
    m: usize,
    n: usize,
    k: usize,
    transposed_a: bool,
    transposed_b: bool,
    /// Elements from one row of a or b, as they lie in memory, to the next.
    pitch_a: usize,
    pitch_b: usize,
    /// Steps of c along rows and columns of the result; `None` where c is left out or beta is 0.
    c: Option<(usize, usize)>,
    /// Steps of the bias along rows and columns of the result.
    bias: (usize, usize),
    batch: Vec<BatchAxis>,
}

/// Where one product of the batch has its operands, in elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Offsets {
    a: usize,
    b: usize,
    c: usize,
}

/// Sizes of one product on the GPU stay below this.
const LARGEST: usize = i32::MAX as usize;

impl Product {
    fn of(call: &Call) -> Result<Product> {
        Product::new(call.spec, &call.inputs, &call.attrs)
    }

    fn new(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Product> {
        let (a, b) = (matrices(spec, inputs, 0)?, matrices(spec, inputs, 1)?);
        let (transposed_a, transposed_b) = (attrs.bool("transA"), attrs.bool("transB"));
        let (batch_a, [rows_a, pitch_a]) = split(a);
        let (batch_b, [rows_b, pitch_b]) = split(b);
        let (m, k) = if transposed_a { (pitch_a, rows_a) } else { (rows_a, pitch_a) };
        let (inner, n) = if transposed_b { (pitch_b, rows_b) } else { (rows_b, pitch_b) };
        if k != inner {
            let form =
                |name, swapped| if swapped { format!("'{name}' transposed") } else { format!("'{name}'") };
            return mismatch!(
                "{}: {} has {k} columns and {} has {inner} rows, which must be equal (dims {a:?} and {b:?})",
                spec.name,
                form("a", transposed_a),
                form("b", transposed_b)
            );
        }
        let Ok(batch) = broadcast(spec.name, batch_a, batch_b) else {
            return mismatch!("{}: the leading dims of 'a' {a:?} and 'b' {b:?} do not broadcast", spec.name);
        };
        let mut dims = batch.clone();
        dims.extend([m, n]);
        let bias = bias_steps(spec, inputs[3].as_ref(), [m, n])?;
        let c = inputs[2].as_ref().map(|c| c_strides(spec, &c.dims, &dims)).transpose()?;
        let beta = factor(attrs, "beta", spec.operand(inputs, 0)?.dtype);
        let c = c.filter(|_| beta != 0.0);
        let mut product = Product {
            dims,
            m,
            n,
            k,
            transposed_a,
            transposed_b,
            pitch_a,
            pitch_b,
            c: c.as_ref().map(|steps| (steps[batch.len()], steps[batch.len() + 1])),
            bias,
            batch: Vec::new(),
        };
        let steps_a = broadcast_strides(batch_a, &batch);
        let steps_b = broadcast_strides(batch_b, &batch);
        // Without elements there is nothing to walk through, and sizes beside a 0 may be any.
        let walked = if product.dims.contains(&0) { 0 } else { batch.len() };
        for (axis, &size) in batch.iter().enumerate().take(walked) {
            let c = c.as_ref().map_or(0, |steps| steps[axis]);
            product.join(BatchAxis { size, a: steps_a[axis] * m * k, b: steps_b[axis] * k * n, c });
        }
        product.fold_rows();
        Ok(product)
    }

    /// Adds the next inner axis of the batch.
    fn join(&mut self, axis: BatchAxis) {
        match self.batch.last_mut() {
            _ if axis.size == 1 => {}
            Some(last) if last.continues(&axis) => *last = BatchAxis { size: last.size * axis.size, ..axis },
            _ => self.batch.push(axis),
        }
    }

    /// Makes a batch of products by one b a product of more rows.
    fn fold_rows(&mut self) {
        let [only] = &self.batch[..] else { return };
        let rows = only.size.saturating_mul(self.m);
        let row_c = self.c.map_or(0, |(row, _)| row);
        let alike = only.a == self.m * self.pitch_a && only.b == 0 && only.c == self.m * row_c;
        if alike && !self.transposed_a && self.bias.0 == 0 && rows <= LARGEST {
            self.m = rows;
            self.batch.clear();
        }
    }

    fn batch_count(&self) -> usize {
        self.batch.iter().map(|axis| axis.size).product()
    }

    fn offsets(&self, mut index: usize) -> Offsets {
        let mut offsets = Offsets::default();
        for axis in self.batch.iter().rev() {
            let at = index % axis.size;
            index /= axis.size;
            offsets.a += at * axis.a;
            offsets.b += at * axis.b;
            offsets.c += at * axis.c;
        }
        offsets
    }
}

/// `alpha` or `beta` as it is multiplied with.
fn factor(attrs: &Attrs, name: &str, dtype: DType) -> f64 {
    let value = attrs.float(name);
    if dtype == DType::F64 { value } else { f64::from(value as f32) }
}

fn matrices<'a>(spec: &OpSpec, inputs: Metas<'a>, index: usize) -> Result<&'a [usize]> {
    let dims = &spec.operand(inputs, index)?.dims;
    if dims.len() < 2 {
        let name = spec.operands[index].name;
        return mismatch!(
            "{}: '{name}' must have rank 2 or more, got dims {dims:?}; give 'dims' for a matrix in a typed array",
            spec.name
        );
    }
    Ok(dims)
}

/// Leading dims, and the last two.
fn split(dims: &[usize]) -> (&[usize], [usize; 2]) {
    let (batch, matrix) = dims.split_at(dims.len() - 2);
    (batch, [matrix[0], matrix[1]])
}

/// Steps of the bias along rows and columns: [n] or [1, n], or [m, 1].
fn bias_steps(spec: &OpSpec, bias: Option<&Meta>, [m, n]: [usize; 2]) -> Result<(usize, usize)> {
    match bias.map(|bias| &bias.dims[..]) {
        None => Ok((0, 1)),
        Some(dims) if dims == [n] || dims == [1, n] => Ok((0, 1)),
        Some(dims) if dims == [m, 1] => Ok((1, 0)),
        Some(dims) => mismatch!("{}: 'bias' must have dims [{n}] or [{m}, 1], got {dims:?}", spec.name),
    }
}

/// Steps of c along the axes of the result. A flat c that holds as many elements as one matrix is that matrix.
fn c_strides(spec: &OpSpec, c: &[usize], dims: &[usize]) -> Result<Vec<usize>> {
    if matches!(broadcast(spec.name, c, dims), Ok(all) if all == dims) {
        return Ok(broadcast_strides(c, dims));
    }
    if dims.len() == 2 && c == [size_of(dims)] {
        return Ok(broadcast_strides(dims, dims));
    }
    mismatch!("{}: 'c' has dims {c:?}, which do not broadcast to those of the result, {dims:?}", spec.name)
}

#[cfg(test)]
mod tests {
    use super::super::Raw;
    use super::*;
    use crate::{Error, Tensor};

    fn call(dims: &[&[usize]], options: &[(&str, Raw)]) -> Result<Call> {
        let raw: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        let metas = dims.iter().map(|dims| Some(Meta::new(DType::F64, *dims)));
        Call::new("matmul", metas.collect(), &raw)
    }

    fn run(operands: &[(&[usize], &[f64])], options: &[(&str, Raw)]) -> Vec<f64> {
        let dims: Vec<_> = operands.iter().map(|(dims, _)| *dims).collect();
        let tensors: Vec<_> = operands
            .iter()
            .map(|(dims, data)| Some(Tensor::from_slice(DType::F64, *dims, data).unwrap()))
            .collect();
        let outputs = call(&dims, options).unwrap().run_cpu(&tensors).unwrap();
        outputs[0].host_view().unwrap().as_slice::<f64>().to_vec()
    }

    #[test]
    fn batches_that_share_b_are_rows() {
        let product =
            |dims: &[&[usize]], options: &[(&str, Raw)]| Product::of(&call(dims, options).unwrap()).unwrap();
        let folded = product(&[&[7, 2, 3, 4], &[4, 5]], &[]);
        assert_eq!((folded.m, folded.batch.len()), (42, 0));
        let with_c = product(&[&[7, 3, 4], &[4, 5], &[7, 3, 5]], &[]);
        assert_eq!((with_c.m, with_c.c), (21, Some((5, 1))));
        let with_column = product(&[&[7, 3, 4], &[4, 5], &[3, 1]], &[]);
        assert_eq!((with_column.m, with_column.batch.len(), with_column.c), (3, 1, Some((1, 0))));
        let transposed = product(&[&[7, 4, 3], &[4, 5]], &[("transA", Raw::Bool(true))]);
        assert_eq!((transposed.m, transposed.batch.len()), (3, 1));
    }

    #[test]
    fn axes_walked_through_alike_are_one() {
        let product = Product::of(&call(&[&[2, 3, 1, 5, 4], &[2, 3, 6, 4, 5]], &[]).unwrap()).unwrap();
        let axis = |size, a, b| BatchAxis { size, a, b, c: 0 };
        assert_eq!(product.batch, [axis(6, 20, 120), axis(6, 0, 20)]);
        assert_eq!(product.offsets(6 * 4 + 5), Offsets { a: 80, b: 580, c: 0 });
        assert_eq!(product.dims, [2, 3, 6, 5, 5]);
    }

    #[test]
    fn c_may_be_flat_and_broadcasts() {
        let a: (&[usize], &[f64]) = (&[2, 1], &[1.0, 2.0]);
        let b: (&[usize], &[f64]) = (&[1, 2], &[10.0, 20.0]);
        assert_eq!(run(&[a, b, (&[4], &[1.0, 2.0, 3.0, 4.0])], &[]), [11.0, 22.0, 23.0, 44.0]);
        assert_eq!(run(&[a, b, (&[2], &[1.0, 2.0])], &[]), [11.0, 22.0, 21.0, 42.0]);
        assert_eq!(run(&[a, b, (&[2, 1], &[1.0, 2.0])], &[]), [11.0, 21.0, 22.0, 42.0]);
        let code = |dims: &[&[usize]]| call(dims, &[]).map_err(|error: Error| error.code()).map(|_| ());
        assert_eq!(code(&[&[2, 1], &[1, 2], &[2, 2, 2]]), Err("SHAPE_MISMATCH"));
        assert_eq!(code(&[&[3, 2, 1], &[1, 2], &[12]]), Err("SHAPE_MISMATCH"));
        assert_eq!(code(&[&[2], &[2, 1]]), Err("SHAPE_MISMATCH"));
    }

    #[test]
    fn factors_of_zero_read_nothing() {
        let nan: (&[usize], &[f64]) = (&[1, 1], &[f64::NAN]);
        let c: (&[usize], &[f64]) = (&[1, 1], &[3.0]);
        assert_eq!(run(&[nan, nan, c], &[("alpha", Raw::Number(0.0)), ("beta", Raw::Number(2.0))]), [6.0]);
        let one: (&[usize], &[f64]) = (&[1, 1], &[1.0]);
        assert_eq!(run(&[one, one, nan], &[("beta", Raw::Number(0.0))]), [1.0]);
        assert_eq!(run(&[(&[1, 0], &[]), (&[0, 1], &[]), c], &[]), [3.0]);
    }
}
