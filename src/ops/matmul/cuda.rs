//! The GPU form: a plan found from sizes and alignments alone, then its launches.

use super::super::activation::Activation;
use super::super::halves;
use super::super::operands::{device_optional, device_view};
use super::super::tile::{Card, Choice, STEP, Tile, Work, choose, split_evenly};
use super::super::{Call, Meta, OpSpec, Precision};
use super::route::{Asked, Way, ways};
use super::{BatchAxis, LARGEST, Product, direct, double, factor, half, split};
use crate::driver::DevicePtr;
use crate::dtype::DType;
use crate::kernels::{Arg, Launcher, float_arg, grid_x, linear};
use crate::shape::size_of;
use crate::tensor::DeviceView;
use crate::{Error, Result};

#[rustfmt::skip]
const TILES_F32: &[Tile] = &[
    Tile { name: "128x256", rows: 128, columns: 256, threads: 256, resident: 1, peak: 0.281, half: 0.648 },
    Tile { name: "128x64", rows: 128, columns: 64, threads: 128, resident: 3, peak: 0.201, half: 0.676 },
    Tile { name: "64x64", rows: 64, columns: 64, threads: 128, resident: 4, peak: 0.1705, half: 0.595 },
    Tile { name: "32x32", rows: 32, columns: 32, threads: 64, resident: 8, peak: 0.139, half: 2.03 },
];

#[rustfmt::skip]
const TILES_F64: &[Tile] = &[
    Tile { name: "64x64", rows: 64, columns: 64, threads: 128, resident: 2, peak: 0.092, half: 0.43 },
    Tile { name: "32x32", rows: 32, columns: 32, threads: 64, resident: 6, peak: 0.085, half: 1.7 },
];

// Flags of kernels/gemm.cu.
const TRANS_A: u32 = 1;
const TRANS_B: u32 = 2;
const VECTOR_A: u32 = 4;
const VECTOR_B: u32 = 8;
const VECTOR_D: u32 = 16;
const LARGE_B: u32 = 32;
const BIAS_ROWS: u32 = 64;

/// Axes of a batch that the kernels take.
pub const BATCH_AXES: usize = 6;

/// What a plan depends on besides the product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Bytes of an element.
    pub size: usize,
    /// Whether a, b and the result begin at multiples of 16 bytes.
    pub aligned: [bool; 3],
    pub activation: u32,
    pub card: Card,
}

/// Launches of chains.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The kernel's suffix.
    kernel: String,
    blocks: u64,
    threads: u32,
    splits: usize,
    words: Vec<u32>,
}

/// The kernel, its grid but for splits and batch, and how sums are split.
pub struct Form {
    pub kernel: String,
    pub blocks: usize,
    pub threads: u32,
    pub splits: usize,
    /// Whether vectors are read in whichever order an operand lies, or across k alone.
    pub either_way: bool,
    pub large_b: bool,
}

/// One side has at most as many rows as the narrow kernels take.
fn skinny(product: &Product, setting: Setting) -> Option<Form> {
    let Product { m, n, k, .. } = *product;
    let most = if setting.size == 4 { 8 } else { 4 };
    if m.min(n) > most {
        return None;
    }
    let large_b = n > m;
    let (count, rows) = (m.min(n), m.max(n));
    let along_k = if large_b { product.transposed_b } else { !product.transposed_a };
    let wide = [1, 4, 8].into_iter().find(|&wide| wide >= count).unwrap_or(8);
    let (name, per_block, least) = match (along_k, wide) {
        (true, 1) => ("dot", 16, 512),
        (true, _) => ("dot", 32, 512),
        (false, _) => ("axpy", 32 * 16 / setting.size, 128),
    };
    let blocks = rows.div_ceil(per_block);
    let room = 4 * setting.card.multiprocessors as usize / (blocks * product.batch_count());
    let splits = room.min(k / least).clamp(1, 256);
    Some(Form { kernel: format!("{name}{wide}"), blocks, threads: 256, splits, either_way: true, large_b })
}

pub fn choice(product: &Product, setting: Setting) -> Choice {
    let Product { m, n, k, .. } = *product;
    let tiles = if setting.size == 4 { TILES_F32 } else { TILES_F64 };
    let work = Work { rows: m, columns: n, depth: k, batch: product.batch_count(), size: setting.size };
    choose(tiles, &work, &setting.card)
}

/// Whether the product is one for the narrow kernels.
pub fn is_narrow(product: &Product, setting: Setting) -> bool {
    skinny(product, setting).is_some()
}

/// The route over planes of halves where it may be the faster one.
pub fn tensor_plan(product: &Product, setting: Setting, precision: Precision) -> Option<split::Plan> {
    split::plan(product, setting, precision).filter(|_| !is_narrow(product, setting))
}

fn tiled(product: &Product, setting: Setting) -> Form {
    let Product { m, n, .. } = *product;
    let choice = choice(product, setting);
    let tile = choice.tile;
    Form {
        kernel: tile.name.into(),
        blocks: m.div_ceil(tile.rows) * n.div_ceil(tile.columns),
        threads: tile.threads,
        splits: choice.splits,
        either_way: false,
        large_b: false,
    }
}

/// The launch of a product that has elements; its sums have `k` terms, none where alpha is 0. `None` for larger ones than
/// the kernels take.
pub fn plan(product: &Product, setting: Setting) -> Option<Plan> {
    let batch = product.batch_count();
    if product.m.max(product.n).max(product.k).max(batch) > LARGEST || product.batch.len() > BATCH_AXES {
        return None;
    }
    let form = skinny(product, setting).unwrap_or_else(|| tiled(product, setting));
    let (steps, splits) = split_evenly(product.k.div_ceil(STEP), form.splits);
    let terms = if splits == 1 { product.k.max(1) } else { steps * STEP };
    let words = pack(product, setting, &form, splits, terms);
    let blocks = (form.blocks * splits) as u64 * batch as u64;
    Some(Plan { kernel: form.kernel, blocks, threads: form.threads, splits, words })
}

fn too_large(spec: &OpSpec, product: &Product) -> Error {
    Error::ShapeMismatch(format!(
        "{}: the GPU form takes up to {LARGEST} rows, columns and products and {BATCH_AXES} leading dims that broadcast \
         apart from each other (result dims {:?})",
        spec.name, product.dims
    ))
}

fn flags(product: &Product, setting: Setting, form: &Form, splits: usize) -> u32 {
    let vector = 16 / setting.size;
    let whole = |pitch: usize, step: fn(&BatchAxis) -> usize| {
        pitch.is_multiple_of(vector) && product.batch.iter().all(|axis| step(axis).is_multiple_of(vector))
    };
    let along_a = form.either_way || product.transposed_a;
    let along_b = form.either_way || !product.transposed_b;
    let vector_a = setting.aligned[0] && along_a && whole(product.pitch_a, |axis| axis.a);
    let vector_b = setting.aligned[1] && along_b && whole(product.pitch_b, |axis| axis.b);
    let vector_d = (setting.aligned[2] || splits > 1) && product.n.is_multiple_of(vector);
    [
        (product.transposed_a, TRANS_A),
        (product.transposed_b, TRANS_B),
        (vector_a, VECTOR_A),
        (vector_b, VECTOR_B),
        (vector_d, VECTOR_D),
        (form.large_b, LARGE_B),
        (product.bias.0 != 0, BIAS_ROWS),
    ]
    .into_iter()
    .map(|(set, flag)| if set { flag } else { 0 })
    .sum()
}

/// `struct Matmul` of kernels/gemm.cu.
pub fn pack(product: &Product, setting: Setting, form: &Form, splits: usize, terms: usize) -> Vec<u32> {
    let Product { m, n, k, .. } = *product;
    let batch = product.batch_count();
    let flags = flags(product, setting, form, splits);
    let mut words = vec![m as u32, n as u32, k as u32, flags, setting.activation];
    words.extend([splits as u32, terms as u32, batch as u32]);
    let wide = |value: usize| [value as u32, (value as u64 >> 32) as u32];
    let (row_c, column_c) = product.c.unwrap_or((0, 0));
    let steps = [product.pitch_a, product.pitch_b, n, row_c, column_c, m * n, batch * m * n];
    words.extend(steps.into_iter().flat_map(wide));
    words.extend(batch_words(product));
    words
}

/// `struct Batch` of kernels/common/gemm_product.cuh.
pub fn batch_words(product: &Product) -> Vec<u32> {
    let wide = |value: usize| [value as u32, (value as u64 >> 32) as u32];
    let mut words = vec![product.batch.len() as u32];
    let axes = |field: fn(&BatchAxis) -> usize| {
        let mut values: Vec<usize> = product.batch.iter().map(field).collect();
        values.resize(BATCH_AXES, 0);
        values
    };
    words.extend(axes(|axis| axis.size).into_iter().map(|size| size as u32));
    let steps: [fn(&BatchAxis) -> usize; 3] = [|axis| axis.a, |axis| axis.b, |axis| axis.c];
    for field in steps {
        words.extend(axes(field).into_iter().flat_map(wide));
    }
    words
}

/// A product that has elements, with its operands on the device.
pub struct Job<'a> {
    pub launcher: &'a Launcher,
    /// Sums have no terms where alpha is 0.
    pub product: Product,
    /// Null where there is no bias, or c is not read.
    pub at: split::Pointers,
    /// The tensors that a and b are, or were made from.
    pub views: [DeviceView<'a>; 2],
    /// Element type of the operands, and of the result.
    pub types: (DType, DType),
    pub alpha: f64,
    pub beta: f64,
    pub activation: Activation,
    pub precision: Precision,
}

impl<'a> Job<'a> {
    fn new(
        call: &Call,
        launcher: &'a Launcher,
        inputs: &[Option<DeviceView<'a>>],
        output: &DeviceView,
    ) -> Result<Job<'a>> {
        let factor = |name| factor(&call.attrs, name, call.dtype());
        let mut product = Product::of(call)?;
        if factor("alpha") == 0.0 {
            product.k = 0;
        }
        let c = if product.c.is_some() { device_optional(inputs, 2) } else { DevicePtr::NULL };
        let views = [device_view(call, inputs, 0)?, device_view(call, inputs, 1)?];
        let [a, b] = views.map(|view| view.ptr);
        Ok(Job {
            launcher,
            product,
            at: split::Pointers { a, b, c, bias: device_optional(inputs, 3), d: output.ptr },
            views,
            types: (call.dtype(), output.dtype),
            alpha: factor("alpha"),
            beta: factor("beta"),
            activation: Activation::new(&call.attrs),
            precision: call.precision,
        })
    }
}

/// Elements from which a launch of its own applies a long activation sooner than the split route's last steps, which little
/// runs beside: on an H200 GELU took 45 of 85 us at 4096 x 384 x 1536 there.
const APART: usize = 1 << 19;

impl Job<'_> {
    /// Applies an op of one operand to the result.
    fn in_place(&self, op: &str) -> Result<()> {
        let (dims, dtype) = (&self.product.dims, self.types.1);
        let call = Call::new(op, vec![Some(Meta::new(dtype, dims.clone()))], &[])?;
        let view = DeviceView { dims, dtype, ptr: self.at.d, buffer: self.views[0].buffer };
        (call.spec.cuda)(&call, self.launcher, &[Some(view)], &[view])
    }

    fn setting(&self) -> Result<Setting> {
        Ok(Setting {
            size: self.types.0.size(),
            aligned: [self.at.a, self.at.b, self.at.d].map(|ptr| ptr.0 % 16 == 0),
            activation: self.activation.code,
            card: Card::of(self.launcher)?,
        })
    }
}

/// Ways to take operands or results of 16 bits as they are, the fastest first. Each answers whether it took the job.
const HALF_ROUTES: &[fn(&Job) -> Result<bool>] = &[half::run];

pub fn run(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let job = Job::new(call, launcher, inputs, &outputs[0])?;
    let Some(wide) = call.widened() else { return run_wide(call.spec, &job) };
    for route in HALF_ROUTES {
        if route(&job)? {
            return Ok(());
        }
    }
    run_widened(&wide, launcher, inputs, &outputs[0])
}

/// The product in float32. Below compute capability 9.0 the tensor core's sums are short whatever the precision, and one
/// plane holds what 16 bits held, so that a second one would be zeros.
fn run_widened(
    wide: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    output: &DeviceView,
) -> Result<()> {
    let exact = inputs.iter().take(2).flatten().all(|view| view.dtype.is_half());
    halves::run_widened(launcher, inputs, output, |inputs, output| {
        let mut job = Job::new(wide, launcher, inputs, output)?;
        if exact && job.precision == Precision::Highest && launcher.compute_capability() < 90 {
            job.precision = Precision::High;
        }
        run_wide(wide.spec, &job)
    })
}

/// Microseconds that a product of float32 is expected to take; `None` where that is not known.
pub fn expected(job: &Job) -> Result<Option<f64>> {
    if job.types.0 != DType::F32 {
        return Ok(None);
    }
    let ways = ways(&job.product, Asked { setting: job.setting()?, precision: job.precision });
    let split = ways.split.as_ref().map(|plan| plan.time(&plan.forms(job.launcher, &job.views)));
    Ok(ways.time(split))
}

/// The product of float32 or float64.
pub fn run_wide(spec: &OpSpec, job: &Job) -> Result<()> {
    let Job { launcher, product, at, types: (dtype, _), alpha, beta, activation, .. } = job;
    let setting = job.setting()?;
    let [p0, p1] = activation.arguments(*dtype);
    let factors = [float_arg(*dtype, *alpha), float_arg(*dtype, *beta), p0, p1];
    if double::run(job, setting, &factors)? {
        return Ok(());
    }
    let asked = Asked { setting, precision: job.precision };
    let ways = ways(product, asked);
    let forms = ways.split.as_ref().map(|plan| plan.forms(job.launcher, &job.views));
    let expected = ways.split.as_ref().zip(forms.as_ref()).map(|(plan, forms)| plan.time(forms));
    let apart =
        activation.op().filter(|_| size_of(&product.dims) >= APART && job.types == (DType::F32, DType::F32));
    let code = if apart.is_some() { 0 } else { activation.code };
    match (ways.best(expected), &forms) {
        (Way::Direct(plan), _) => return direct::run(plan, job, factors),
        (Way::Split(plan), Some(forms))
            if split::run(plan, launcher, product, *at, (&job.views, forms), code, factors)? =>
        {
            return apart.map_or(Ok(()), |op| job.in_place(op));
        }
        _ => {}
    }
    let plan = ways.chains.as_ref().ok_or_else(|| too_large(spec, product))?;
    add_parts(job, plan.splits, &plan.words, &factors, |d| {
        let pointers = [at.a, at.b, at.c, at.bias, d].map(Arg::Ptr);
        let arguments = [&pointers[..], &factors[..], &[Arg::Block(&plan.words)]].concat();
        let kernel = format!("matmul_{}_{}", dtype.suffix(), plan.kernel);
        launcher.launch(&kernel, grid_x(plan.blocks, plan.threads, 0)?, &arguments)
    })
}

/// A launch to the result's address; to a workspace where sums are split, whose parts another launch adds.
pub fn add_parts(
    job: &Job,
    splits: usize,
    words: &[u32],
    factors: &[Arg],
    launch: impl FnOnce(DevicePtr) -> Result<()>,
) -> Result<()> {
    let Job { launcher, at, types: (dtype, _), .. } = job;
    if splits == 1 {
        return launch(at.d);
    }
    let elements = size_of(&job.product.dims);
    let partial = launcher.scratch(splits * elements * dtype.size())?;
    launch(partial.ptr())?;
    let pointers = [partial.ptr(), at.c, at.bias, at.d].map(Arg::Ptr);
    let arguments = [&pointers[..], factors, &[Arg::Block(words)]].concat();
    let grid = linear(elements as u64, 256, 1)?;
    launcher.launch(&format!("matmul_{}_reduce", dtype.suffix()), grid, &arguments)
}

#[cfg(test)]
mod tests {
    use super::super::super::Raw;
    use super::super::super::spec::Meta;
    use super::*;
    use crate::kernels::{Parameter, find as kernel};

    const H200: Setting = Setting { size: 4, aligned: [true; 3], activation: 0, card: Card::H200 };

    fn planned(dims: &[&[usize]], options: &[&str], setting: Setting) -> Plan {
        let metas = dims.iter().map(|dims| Some(Meta::new(DType::F32, *dims))).collect();
        let raw: Vec<_> = options.iter().map(|name| (name.to_string(), Raw::Bool(true))).collect();
        let call = Call::new("matmul", metas, &raw).unwrap();
        plan(&Product::of(&call).unwrap(), setting).unwrap()
    }

    #[test]
    fn tiles_follow_the_size() {
        let choice = |m, k, n| {
            let plan = planned(&[&[m, k], &[k, n]], &[], H200);
            (plan.kernel, plan.splits)
        };
        assert_eq!(choice(4096, 4096, 4096), ("128x256".to_string(), 1));
        assert_eq!(choice(3000, 3000, 3000), ("128x64".to_string(), 1));
        assert_eq!(choice(1024, 256, 1024), ("64x64".to_string(), 1));
        assert_eq!(choice(17, 17, 17), ("32x32".to_string(), 1));
        assert!(choice(64, 65536, 64).1 >= 64);
        assert_eq!(choice(4096, 4096, 1).0, "dot1");
        assert_eq!(choice(3, 4096, 4096), ("axpy4".to_string(), 16));
        assert_eq!(planned(&[&[1, 4096], &[4096, 4096]], &["transB"], H200).kernel, "dot1");
    }

    #[test]
    fn vectors_need_alignment_and_adjacent_elements() {
        let flags = |options: &[&str], n, aligned| {
            let setting = Setting { aligned, ..H200 };
            let b: &[usize] = if options.contains(&"transB") { &[n, 64] } else { &[64, n] };
            planned(&[&[64, 64], b], options, setting).words[3]
        };
        assert_eq!(flags(&[], 64, [true; 3]), VECTOR_B | VECTOR_D);
        assert_eq!(flags(&[], 63, [true; 3]), 0);
        assert_eq!(flags(&["transA", "transB"], 64, [true; 3]), TRANS_A | TRANS_B | VECTOR_A | VECTOR_D);
        assert_eq!(flags(&["transA"], 64, [false, true, true]), TRANS_A | VECTOR_B | VECTOR_D);
        assert_eq!(planned(&[&[64, 64], &[64, 1]], &[], H200).words[3], VECTOR_A);
    }

    #[test]
    fn plans_name_kernels_that_exist_and_cover_all_terms() {
        let sizes = [1, 3, 5, 9, 33, 130, 1000, 5000];
        for size in [4, 8] {
            let setting = Setting { size, ..H200 };
            for (m, n, k) in
                sizes.iter().flat_map(|&m| sizes.iter().map(move |&n| (m, n, (m * 7 + n * 13) % 4100)))
            {
                for options in [&[][..], &["transA", "transB"]] {
                    let (a, b) = if options.is_empty() { ([m, k], [k, n]) } else { ([k, m], [n, k]) };
                    let plan = planned(&[&a, &b], options, setting);
                    let kernel_name =
                        format!("matmul_{}_{}", if size == 4 { "f32" } else { "f64" }, plan.kernel);
                    let (_, entry) = kernel(&kernel_name, 80).unwrap();
                    assert_eq!(entry.parameters.last(), Some(&Parameter::Block(plan.words.len() * 4)));
                    let terms = plan.words[6] as usize;
                    assert!(terms * plan.splits >= k && (plan.splits == 1 || terms * (plan.splits - 1) < k));
                    assert!(plan.splits == 1 || terms.is_multiple_of(STEP));
                }
            }
        }
    }
}
