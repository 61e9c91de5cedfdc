//! The GPU form: a plan found from sizes and alignments alone, then its launches.

use super::product::product;
use super::{Extra, Problem, Setting, half, run_in_parts, split};
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, grid_x, linear};
use crate::ops::activation::Activation;
use crate::ops::matmul::EachJob;
use crate::ops::operands::{device_optional, device_view};
use crate::ops::planes::Planes;
use crate::ops::tile::{Card, Choice, STEP, Tile, Work, choose, split_evenly};
use crate::ops::{Call, Precision, halves};
use crate::tensor::{DeviceBuffer, DeviceView, Form, FormKey};
use crate::{DType, Result};
use std::sync::Arc;

#[rustfmt::skip]
const TILES_F32: &[Tile] = &[
    Tile { name: "64x128", rows: 64, columns: 128, threads: 128, resident: 3, peak: 0.160, half: 0.186 },
    Tile { name: "64x64", rows: 64, columns: 64, threads: 128, resident: 4, peak: 0.1537, half: 0.283 },
    Tile { name: "32x128", rows: 32, columns: 128, threads: 128, resident: 4, peak: 0.180, half: 1.03 },
    Tile { name: "32x32", rows: 32, columns: 32, threads: 64, resident: 8, peak: 0.147, half: 2.07 },
];

#[rustfmt::skip]
const TABLES_F32: &[Tile] = &[
    Tile { name: "table_64x128", rows: 64, columns: 128, threads: 128, resident: 3, peak: 0.181, half: 1.69 },
    Tile { name: "table_64x64", rows: 64, columns: 64, threads: 128, resident: 4, peak: 0.110, half: 0.16 },
    Tile { name: "table_32x32", rows: 32, columns: 32, threads: 64, resident: 8, peak: 0.096, half: 0.98 },
];

#[rustfmt::skip]
const TILES_F64: &[Tile] = &[
    Tile { name: "64x64", rows: 64, columns: 64, threads: 128, resident: 3, peak: 0.085, half: 0.43 },
    Tile { name: "32x32", rows: 32, columns: 32, threads: 64, resident: 6, peak: 0.080, half: 1.7 },
];

#[rustfmt::skip]
const TABLES_F64: &[Tile] = &[
    Tile { name: "table_32x32", rows: 32, columns: 32, threads: 64, resident: 5, peak: 0.055, half: 1.0 },
];

// Flags of kernels/common/conv_tile.cuh.
const POINTWISE_VECTORS: u32 = 1;
const VECTOR_D: u32 = 2;

/// Microseconds that packing the weights takes beside moving them.
const PACKING: f64 = 2.8;
/// Rows and columns of the weights that a block packs.
const PACK: usize = 32;
/// Most output channels for which the depthwise kernels read the input again.
const DEPTHWISE_OUT: usize = 8;

#[derive(Debug, Clone, PartialEq)]
struct Plan {
    /// The kernel's suffix.
    kernel: String,
    blocks: u64,
    threads: u32,
    splits: usize,
    /// Elements of the packed weights and blocks that pack them, where the kernel reads such.
    packed: Option<(usize, u64)>,
    words: Vec<u32>,
}

/// Whether kernels for one channel a group take this window.
fn is_depthwise(problem: &Problem) -> bool {
    let [depth, height, width] = problem.axes;
    let flat = depth.input == 1 && depth.output == 1 && depth.kernel == 1;
    let square = height.kernel == width.kernel && height.stride == width.stride;
    let known = [3, 5].contains(&width.kernel) && [1, 2].contains(&width.stride);
    let narrow = problem.group_in == 1 && problem.group_out <= DEPTHWISE_OUT;
    flat && square && known && narrow && height.dilation <= height.output.max(1)
}

/// Such a kernel and its threads (kernels/depthwise.cu).
fn depthwise(problem: &Problem, setting: &Setting) -> (String, usize) {
    let [_, height, width] = problem.axes;
    let plain = setting.aligned == [true; 2] && width.begin == width.kernel / 2 && width.dilation == 1;
    let columns = [8, 4].into_iter().find(|columns| {
        let whole = [width.input, width.output].iter().all(|size| size.is_multiple_of(*columns));
        plain && whole && columns * setting.size <= 16 && (*columns == 4 || width.kernel == 3)
    });
    let form = columns.map(|columns| format!("x{columns}")).unwrap_or_default();
    let columns = columns.unwrap_or(1);
    let rows = match (height.stride, columns, height.kernel) {
        (2, ..) => 2,
        (_, 4, 5) if setting.size == 4 => 7,
        _ => 4,
    };
    let strips = height.output.div_ceil(rows * height.dilation) * height.dilation;
    let planes = problem.images * problem.groups * problem.group_out;
    let kernel = format!("depthwise_k{}s{}{form}", width.kernel, width.stride);
    (kernel, planes * strips * (width.output / columns))
}

/// The fastest tile, `true` for one that reads packed weights, `None` where one thread an output is faster; and
/// microseconds.
pub(super) fn tile(problem: &Problem, setting: &Setting) -> (Option<(Choice, bool)>, f64) {
    let float32 = setting.size == 4;
    let columns = problem.images * problem.windows();
    let terms = problem.group_in * problem.taps();
    let work =
        |depth| Work { rows: problem.group_out, columns, depth, batch: problem.groups, size: setting.size };
    let direct = problem.direct_time(columns * problem.groups * problem.group_out, terms, setting);
    let mut best = None;
    let mut fastest = if terms == 0 { 0.0 } else { direct };
    let tables = if float32 { TABLES_F32 } else { TABLES_F64 };
    let packed = problem.packed(setting.size);
    // Where blocks of channels are full, packing pays: measured tables end there.
    if packed.is_none() || problem.channel_blocks() * STEP * 7 > problem.group_in * 8 {
        let choice = choose(tables, &work(terms), &setting.card);
        if choice.time < fastest {
            (fastest, best) = (choice.time, Some((choice, false)));
        }
    }
    if let Some(elements) = packed {
        let tiles = if float32 { TILES_F32 } else { TILES_F64 };
        let depth = problem.channel_blocks() * STEP * problem.taps();
        let choice = choose(tiles, &work(depth), &setting.card);
        let packing = PACKING + 2.0 * (elements * setting.size) as f64 / setting.card.bandwidth;
        if choice.time + packing < fastest {
            (fastest, best) = (choice.time + packing, Some((choice, true)));
        }
    }
    (best, fastest)
}

/// The launch of a normalized problem that has outputs.
fn plan(problem: &Problem, setting: &Setting) -> Plan {
    let pixels = problem.images * problem.windows();
    let outputs = pixels * problem.groups * problem.group_out;
    let mut extra = Extra { transposed: false, flags: 0, splits: 1, split_tiles: 1, pixels, residues: 1 };
    let plain = |kernel: String, threads: usize| Plan {
        kernel,
        blocks: threads.div_ceil(256) as u64,
        threads: 256,
        splits: 1,
        packed: None,
        words: problem.pack(setting, &extra),
    };
    if is_depthwise(problem) {
        let (kernel, threads) = depthwise(problem, setting);
        return plain(kernel, threads);
    }
    let (Some((Choice { tile, splits, .. }, packs)), _) = tile(problem, setting) else {
        return plain("direct".into(), outputs);
    };
    let taps = problem.taps();
    let tiles =
        if packs { problem.channel_blocks() * taps } else { (problem.group_in * taps).div_ceil(STEP) };
    (extra.split_tiles, extra.splits) = split_evenly(tiles, splits);
    extra.flags = flags(problem, setting, extra.splits);
    let blocks = problem.group_out.div_ceil(tile.rows) * pixels.div_ceil(tile.columns);
    let padded = problem.padded_out(setting.size);
    let pack_blocks = padded.div_ceil(PACK) * (problem.channel_blocks() * STEP * taps).div_ceil(PACK);
    let packed = problem.packed(setting.size).filter(|_| packs);
    Plan {
        kernel: tile.name.into(),
        blocks: (blocks * extra.splits) as u64 * problem.groups as u64,
        threads: tile.threads,
        splits: extra.splits,
        packed: packed.map(|elements| (elements, (pack_blocks * problem.groups) as u64)),
        words: problem.pack(setting, &extra),
    }
}

fn flags(problem: &Problem, setting: &Setting, splits: usize) -> u32 {
    let whole = problem.windows().is_multiple_of(16 / setting.size);
    let mut flags = 0;
    if whole && problem.is_pointwise() && setting.aligned[0] {
        flags |= POINTWISE_VECTORS;
    }
    if whole && (setting.aligned[1] || splits > 1) {
        flags |= VECTOR_D;
    }
    flags
}

pub fn run(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let Some(wide) = call.widened() else { return run_wide(call, launcher, inputs, outputs) };
    if run_half(call, launcher, inputs, outputs)? {
        return Ok(());
    }
    halves::run_widened(launcher, inputs, &outputs[0], |inputs, output| {
        run_wide(&with_one_plane(wide), launcher, inputs, &[*output])
    })
}

/// Runs the convolution on operands of 16 bits as they are, where such a route takes it.
fn run_half(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<bool> {
    let problem = super::problem(call)?.normalized();
    if is_depthwise(&problem) {
        return run_plain(call, launcher, &problem, inputs, outputs).map(|()| true);
    }
    let views = [device_view(call, inputs, 0)?, device_view(call, inputs, 1)?];
    let [x, w] = views.map(|view| view.ptr);
    let at = half::Pointers { x, w, bias: device_optional(inputs, 2), y: outputs[0].ptr };
    let setting = setting(call, launcher, [x, at.y])?;
    if setting.card.level != 90 {
        return Ok(false);
    }
    if half::is_product(&problem, &setting) && half::run_product(call, launcher, &problem, &views, at)? {
        return Ok(true);
    }
    let Some(plan) = half::plan(&problem, &setting, call.dtype(), call.precision) else { return Ok(false) };
    let parameters = Activation::new(&call.attrs).arguments(DType::F32);
    half::run(&plan, launcher, &setting, at, &views, parameters)
}

/// The call on operands that had 16 bits: one plane holds them whole, a second one would be zeros.
fn with_one_plane(wide: Call) -> Call {
    let precision = if wide.precision == Precision::Highest { Precision::High } else { wide.precision };
    Call { precision, ..wide }
}

/// The convolution of float32 or float64.
fn run_wide(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let problem = super::problem(call)?.normalized();
    let product = product(call, launcher, &problem, inputs, &outputs[0])?;
    if let Some(product) = product.as_ref().filter(|_| problem.windows() == 1) {
        return product.run(call.spec);
    }
    let expected = product.as_ref().map(EachJob::time).transpose()?.flatten();
    let ways = Ways::new(call, launcher, &problem, inputs, &outputs[0])?;
    if let Some((product, expected)) = product.zip(expected)
        && expected < ways.time()
    {
        return product.run(call.spec);
    }
    if ways.run_split(call, launcher)? {
        return Ok(());
    }
    run_plain(call, launcher, &problem, inputs, outputs)
}

/// Runs it over the plain cores.
fn run_plain(
    call: &Call,
    launcher: &Launcher,
    problem: &Problem,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let planes = [problem.slid(), problem.windows()];
    let views = [device_view(call, inputs, 0)?, device_view(call, inputs, 1)?];
    run_in_parts(call, problem, planes, (inputs, outputs), |part, at| {
        run_images(call, launcher, part, &views, at)
    })
}

fn setting(call: &Call, launcher: &Launcher, [x, y]: [DevicePtr; 2]) -> Result<Setting> {
    Ok(Setting {
        size: call.dtype().size(),
        aligned: [x, y].map(|ptr| ptr.0 % 16 == 0),
        activation: Activation::new(&call.attrs).code,
        card: Card::of(launcher)?,
    })
}

/// The plan over the tensor cores where the problem may take that route.
pub(super) fn split_plan(problem: &Problem, setting: &Setting, precision: Precision) -> Option<split::Plan> {
    let plan = split::plan(problem, setting, precision)?;
    (!is_depthwise(problem)).then_some(plan)
}

/// What a convolution of float32 or float64 can take that is no product.
struct Ways<'a> {
    setting: Setting,
    at: split::Pointers,
    views: [DeviceView<'a>; 2],
    /// The plan over the tensor cores, if there is one, what is known of its operands' planes, and microseconds.
    split: Option<(split::Plan, [Form<Planes>; 2], f64)>,
    /// Microseconds of the plain cores.
    plain: f64,
}

impl<'a> Ways<'a> {
    fn new(
        call: &Call,
        launcher: &Launcher,
        problem: &Problem,
        inputs: &[Option<DeviceView<'a>>],
        output: &DeviceView,
    ) -> Result<Ways<'a>> {
        let views = [device_view(call, inputs, 0)?, device_view(call, inputs, 1)?];
        let [x, w] = views.map(|view| view.ptr);
        let at = split::Pointers { x, w, bias: device_optional(inputs, 2), y: output.ptr };
        let setting = setting(call, launcher, [x, at.y])?;
        let plan = split_plan(problem, &setting, call.precision).filter(|_| setting.card.level == 90);
        let split = plan.map(|plan| {
            let forms = plan.forms(launcher, &views);
            let time = plan.time(&forms);
            (plan, forms, time)
        });
        let plain = tile(problem, &setting).1;
        Ok(Ways { setting, at, views, split, plain })
    }

    fn time(&self) -> f64 {
        self.split.as_ref().map_or(self.plain, |(.., time)| time.min(self.plain))
    }

    /// Runs it over the tensor cores where that is faster than the plain ones.
    fn run_split(&self, call: &Call, launcher: &Launcher) -> Result<bool> {
        let Some((plan, forms, _)) = self.split.as_ref().filter(|(.., time)| *time < self.plain) else {
            return Ok(false);
        };
        let parameters = Activation::new(&call.attrs).arguments(call.dtype());
        split::run(plan, launcher, &self.setting, self.at, (&self.views, forms), parameters)
    }
}

/// The weights as the tiles read them, where they read packed ones: those kept with the tensor, or packed now.
fn pack(
    launcher: &Launcher,
    problem: &Problem,
    plan: &Plan,
    size: usize,
    [x, w]: &[DeviceView; 2],
    kernel: &str,
) -> Result<Option<Arc<DeviceBuffer>>> {
    let Some((elements, blocks)) = plan.packed else { return Ok(None) };
    let sizes = [size, problem.groups, problem.group_in, problem.group_out, problem.taps(), elements];
    let key: FormKey = ("conv weights packed", sizes.map(|size| size as u64));
    let form = launcher.form(w, key, x);
    if let Form::Kept(packed) = form {
        return Ok(Some(packed));
    }
    let packed = Arc::new(launcher.scratch(elements * size)?);
    let arguments = [Arg::Ptr(w.ptr), Arg::Ptr(packed.ptr()), Arg::Block(&plan.words)];
    launcher.launch(kernel, grid_x(blocks, 256, 0)?, &arguments)?;
    if matches!(form, Form::Wanted) {
        launcher.keep_form(w, key, packed.clone(), packed.size() as u64);
    }
    Ok(Some(packed))
}

fn run_images(
    call: &Call,
    launcher: &Launcher,
    problem: &Problem,
    views: &[DeviceView; 2],
    [x, w, bias, y]: [DevicePtr; 4],
) -> Result<()> {
    let (dtype, activation) = (call.dtype(), Activation::new(&call.attrs));
    let setting = setting(call, launcher, [x, y])?;
    let plan = plan(problem, &setting);
    let name = |kernel: &str| format!("conv_{}_{kernel}", dtype.suffix());
    let [first, second] = activation.arguments(dtype.arithmetic());
    let tail = [first, second, Arg::Block(&plan.words)];
    let packed = pack(launcher, problem, &plan, setting.size, views, &name("pack"))?;
    let weights = packed.as_ref().map_or(w, |packed| packed.ptr());
    let launch = |d: DevicePtr| {
        let arguments = [&[x, weights, bias, d].map(Arg::Ptr)[..], &tail[..]].concat();
        launcher.launch(&name(&plan.kernel), grid_x(plan.blocks, plan.threads, 0)?, &arguments)
    };
    if plan.splits == 1 {
        return launch(y);
    }
    let elements = problem.images * problem.groups * problem.group_out * problem.windows();
    let partial = launcher.scratch(plan.splits * elements * setting.size)?;
    launch(partial.ptr())?;
    let arguments = [&[partial.ptr(), bias, y].map(Arg::Ptr)[..], &tail[..]].concat();
    launcher.launch(&name("reduce"), linear(elements as u64, 256, 1)?, &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::ops::geometry::WindowAxis;

    const H200: Setting = Setting { size: 4, aligned: [true; 2], activation: 0, card: Card::H200 };

    fn square(
        images: usize,
        [groups, channels, filters]: [usize; 3],
        size: usize,
        kernel: usize,
        stride: usize,
    ) -> Problem {
        let pad = kernel / 2;
        let output = (size + 2 * pad - kernel) / stride + 1;
        let axis = WindowAxis { input: size, kernel, stride, dilation: 1, begin: pad, end: pad, output };
        Problem::new(images, groups, channels / groups, filters / groups, &[axis, axis]).normalized()
    }

    #[test]
    fn kernels_follow_the_shape() {
        let chosen = |problem: Problem| {
            let plan = plan(&problem, &H200);
            (plan.kernel, plan.splits)
        };
        let is = |kernel: &str, splits| (kernel.to_string(), splits);
        assert_eq!(chosen(square(32, [1, 64, 64], 56, 3, 1)), is("64x128", 1));
        assert!(chosen(square(32, [1, 512, 512], 7, 3, 1)).1 > 1);
        assert_eq!(chosen(square(1, [1, 512, 512], 7, 3, 1)), is("64x64", 16));
        assert_eq!(chosen(square(32, [1, 3, 64], 224, 7, 2)), is("table_64x128", 1));
        assert_eq!(chosen(square(32, [1, 32, 32], 112, 3, 1)), is("32x128", 1));
        assert_eq!(chosen(square(32, [96, 96, 96], 112, 3, 2)), is("depthwise_k3s2x4", 1));
        assert_eq!(chosen(square(32, [128, 128, 128], 56, 7, 1)), is("direct", 1));
        assert_eq!(chosen(square(1, [1, 0, 4], 5, 3, 1)), is("direct", 1));
    }

    #[test]
    fn vectors_need_whole_planes_and_alignment() {
        let flags = |size, kernel, aligned| {
            plan(&square(32, [1, 64, 256], size, kernel, 1), &Setting { aligned, ..H200 }).words[22]
        };
        assert_eq!(flags(56, 1, [true, true]), POINTWISE_VECTORS | VECTOR_D);
        assert_eq!(flags(56, 1, [false, true]), VECTOR_D);
        assert_eq!(flags(56, 3, [true, true]), VECTOR_D);
        assert_eq!(flags(55, 1, [true, true]), 0);
    }

    #[test]
    fn plans_name_kernels_that_exist() {
        let sizes = [1, 3, 8, 31, 65, 200];
        for size in [4, 8] {
            let setting = Setting { size, ..H200 };
            for (c, m, image) in
                sizes.iter().flat_map(|&c| sizes.iter().map(move |&m| (c, m, 1 + (c + m) % 40)))
            {
                for (kernel_size, images) in [(1, 1), (3, 1), (3, 16), (5, 2)] {
                    let problem = square(images, [1, c, m], image, kernel_size, 1);
                    let plan = plan(&problem, &setting);
                    let name = format!("conv_{}_{}", if size == 4 { "f32" } else { "f64" }, plan.kernel);
                    let (_, entry) = kernel(&name, 80).unwrap();
                    assert_eq!(entry.parameters.last(), Some(&Parameter::Block(plan.words.len() * 4)));
                    assert_eq!(plan.packed.is_some(), plan.kernel.starts_with(|c: char| c.is_ascii_digit()));
                    assert!(plan.splits >= 1 && plan.blocks >= 1);
                }
            }
        }
    }

    #[test]
    fn images_go_in_parts_that_32_bits_can_count() {
        let problem = square(5, [1, 2, 3], 30_000, 1, 1);
        let planes = [problem.slid(), problem.windows()];
        let mut parts = Vec::new();
        let start = [DevicePtr(0), DevicePtr(0)];
        let note = |part: &Problem, x: DevicePtr, y: DevicePtr| {
            parts.push((part.images, x.0, y.0));
            Ok(())
        };
        problem.for_images(planes, 4, start, note).unwrap();
        let plane = 30_000u64 * 30_000 * 4;
        assert_eq!(parts, [(2, 0, 0), (2, 4 * plane, 6 * plane), (1, 8 * plane, 12 * plane)]);
    }
}
