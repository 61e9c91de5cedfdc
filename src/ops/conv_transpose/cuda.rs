//! The GPU form: a plan found from sizes alone, then its launches.

use crate::Result;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, grid_x, linear};
use crate::ops::activation::Activation;
use crate::ops::conv::{Extra, Problem, Setting, run_in_parts};
use crate::ops::tile::{Card, Choice, STEP, Tile, Work, choose};
use crate::ops::{Call, halves};
use crate::tensor::DeviceView;

#[rustfmt::skip]
const TILES_F32: &[Tile] = &[
    Tile { name: "64x64", rows: 64, columns: 64, threads: 128, resident: 4, peak: 0.145, half: 0.283 },
    Tile { name: "32x32", rows: 32, columns: 32, threads: 64, resident: 8, peak: 0.139, half: 2.07 },
];

#[rustfmt::skip]
const TILES_F64: &[Tile] = &[
    Tile { name: "32x32", rows: 32, columns: 32, threads: 64, resident: 6, peak: 0.080, half: 1.7 },
];

/// Most residues modulo the strides for which outputs of each are a product of their own.
const RESIDUES: usize = 64;

#[derive(Debug, Clone, PartialEq)]
struct Plan {
    /// The kernel's suffix.
    kernel: &'static str,
    blocks: u64,
    threads: u32,
    splits: usize,
    /// Elements of the packed weights, where the kernel reads such.
    packed: Option<usize>,
    words: Vec<u32>,
}

/// The tile of the product, `None` where one thread an output is faster.
fn tile(problem: &Problem, setting: &Setting, residues: usize, pixels: usize) -> Option<Choice> {
    problem.packed(setting.size)?;
    let tiles = if setting.size == 4 { TILES_F32 } else { TILES_F64 };
    let work = Work {
        rows: problem.group_out,
        columns: pixels,
        depth: (problem.channel_blocks() * STEP * problem.taps()).div_ceil(residues),
        batch: problem.groups * residues,
        size: setting.size,
    };
    let choice = choose(tiles, &work, &setting.card);
    let outputs = problem.images * problem.groups * problem.group_out * problem.slid();
    let terms = (problem.group_in * problem.taps()).div_ceil(residues);
    (residues <= RESIDUES && choice.time < problem.direct_time(outputs, terms, setting)).then_some(choice)
}

/// The launch of a normalized problem that has outputs.
fn plan(problem: &Problem, setting: &Setting) -> Plan {
    let residues = problem.axes.iter().fold(1, |all: usize, axis| all.saturating_mul(axis.stride));
    let each = |axis: &crate::ops::geometry::WindowAxis| axis.input.div_ceil(axis.stride);
    let pixels = problem.images * problem.axes.iter().map(each).product::<usize>();
    let outputs = problem.images * problem.groups * problem.group_out * problem.slid();
    let extra = |splits| Extra { transposed: true, flags: 0, splits, split_tiles: 0, pixels, residues };
    match tile(problem, setting, residues, pixels) {
        Some(Choice { tile, splits, .. }) => {
            let blocks = problem.group_out.div_ceil(tile.rows) * pixels.div_ceil(tile.columns);
            Plan {
                kernel: tile.name,
                blocks: (blocks * splits) as u64 * (problem.groups * residues) as u64,
                threads: tile.threads,
                splits,
                packed: problem.packed(setting.size),
                words: problem.pack(setting, &extra(splits)),
            }
        }
        None => Plan {
            kernel: "direct",
            blocks: outputs.div_ceil(256) as u64,
            threads: 256,
            splits: 1,
            packed: None,
            words: problem.pack(setting, &extra(1)),
        },
    }
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
    halves::run_widened(launcher, inputs, &outputs[0], |inputs, output| {
        run_wide(&wide, launcher, inputs, &[*output])
    })
}

/// The convolution of float32 or float64.
fn run_wide(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let problem = super::problem(call)?.normalized();
    let planes = [problem.windows(), problem.slid()];
    run_in_parts(call, &problem, planes, (inputs, outputs), |part, at| run_images(call, launcher, part, at))
}

fn run_images(
    call: &Call,
    launcher: &Launcher,
    problem: &Problem,
    [x, w, bias, y]: [DevicePtr; 4],
) -> Result<()> {
    let (dtype, activation) = (call.dtype(), Activation::new(&call.attrs));
    let setting = Setting {
        size: dtype.size(),
        aligned: [true; 2],
        activation: activation.code,
        card: Card::of(launcher)?,
    };
    let plan = plan(problem, &setting);
    let name = |kernel: &str| format!("conv_transpose_{}_{kernel}", dtype.suffix());
    let grid = grid_x(plan.blocks, plan.threads, 0)?;
    let [first, second] = activation.arguments(dtype);
    let tail = [first, second, Arg::Block(&plan.words)];
    let Some(elements) = plan.packed else {
        let arguments = [&[x, w, bias, y].map(Arg::Ptr)[..], &tail[..]].concat();
        return launcher.launch(&name(plan.kernel), grid, &arguments);
    };
    let packed = launcher.scratch(elements * setting.size)?;
    let flag = launcher.scratch(size_of::<u32>())?;
    launcher.core().stream().fill(flag.ptr(), 0, size_of::<u32>())?;
    let arguments = [Arg::Ptr(w), Arg::Ptr(packed.ptr()), Arg::Ptr(flag.ptr()), Arg::Block(&plan.words)];
    launcher.launch(&name("pack"), linear(elements as u64, 256, 1)?, &arguments)?;
    let launch = |d: DevicePtr| {
        let pointers = [x, w, packed.ptr(), bias, d, flag.ptr()].map(Arg::Ptr);
        launcher.launch(&name(plan.kernel), grid, &[&pointers[..], &tail[..]].concat())
    };
    if plan.splits == 1 {
        return launch(y);
    }
    let outputs = problem.images * problem.groups * problem.group_out * problem.slid();
    let partial = launcher.scratch(plan.splits * outputs * setting.size)?;
    launch(partial.ptr())?;
    let arguments = [&[partial.ptr(), bias, y].map(Arg::Ptr)[..], &tail[..]].concat();
    launcher.launch(&name("reduce"), linear(outputs as u64, 256, 1)?, &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::ops::geometry::WindowAxis;

    const H200: Setting = Setting { size: 4, aligned: [true; 2], activation: 0, card: Card::H200 };

    fn square(
        images: usize,
        groups: usize,
        group_in: usize,
        group_out: usize,
        size: usize,
        stride: usize,
    ) -> Problem {
        let output = (size - 1) * stride + 4 - 2;
        let axis =
            WindowAxis { input: output, kernel: 4, stride, dilation: 1, begin: 1, end: 1, output: size };
        Problem::new(images, groups, group_in, group_out, &[axis, axis]).normalized()
    }

    #[test]
    fn kernels_follow_the_shape() {
        let wide = plan(&square(32, 1, 256, 128, 16, 2), &H200);
        assert_eq!((wide.kernel, wide.splits, wide.packed), ("64x64", 1, Some(256 * 16 * 128)));
        assert_eq!(wide.words[29], 4);
        assert_eq!(wide.words[28], 32 * 16 * 16);
        assert_eq!(plan(&square(1, 64, 1, 1, 16, 2), &H200).kernel, "direct");
        assert_eq!(plan(&square(1, 1, 64, 64, 16, 99), &H200).kernel, "direct");
        assert_eq!(plan(&square(1, 1, 0, 4, 16, 2), &H200).kernel, "direct");
        // One element alone takes no steps, whatever the stride.
        assert_eq!(plan(&square(1, 1, 64, 64, 1, 99), &H200).words[29], 1);
    }

    #[test]
    fn plans_name_kernels_that_exist() {
        for (size, suffix) in [(4, "f32"), (8, "f64")] {
            for (channels, filters) in [(1, 1), (3, 40), (64, 64), (256, 128)] {
                let plan = plan(&square(8, 1, channels, filters, 16, 2), &Setting { size, ..H200 });
                let (_, entry) = kernel(&format!("conv_transpose_{suffix}_{}", plan.kernel), 75).unwrap();
                assert_eq!(entry.parameters.last(), Some(&Parameter::Block(plan.words.len() * 4)));
            }
        }
    }
}
