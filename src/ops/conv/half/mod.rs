//! The route of 16-bit operands over Hopper's tensor cores (kernels/conv_half.cu), which read the channels of a pixel side by
//! side: the input is transposed first, the weights are packed once and kept.

mod launch;

pub use self::launch::{Pointers, run, run_product};

use super::super::Precision;
use super::super::geometry::WindowAxis;
use super::super::planes;
use super::split::image_axes;
use super::{Extra, Problem, Setting};
use crate::DType;
use crate::driver::{DevicePtr, Halves, ImageAxis, Images};
use crate::tensor::FormKey;

/// One of the kernels of kernels/conv_half.cu. The times are those of an H200.
#[derive(Debug, PartialEq)]
struct Tile {
    name: &'static str,
    filters: usize,
    pixels: usize,
    /// Microseconds for 64 channels of one tap, and for the rest of a tile.
    times: (f64, f64),
}

#[rustfmt::skip]
static TILES: [Tile; 5] = [
    Tile { name: "filters_256", filters: 128, pixels: 256, times: (0.57, 2.2) },
    Tile { name: "filters_192", filters: 128, pixels: 192, times: (0.44, 1.65) },
    Tile { name: "turns_192", filters: 64, pixels: 192, times: (0.28, 1.9) },
    Tile { name: "turns_128", filters: 64, pixels: 128, times: (0.195, 1.1) },
    Tile { name: "turns_64", filters: 64, pixels: 64, times: (0.163, 0.6) },
];

/// Channels of a block.
const CHANNELS: usize = 64;
/// Pixels of a block of the transposing kernel, and threads of one.
const NHWC_PIXELS: usize = 64;
const THREADS: usize = 256;

// Flags of kernels/common/conv_images.cuh and of kernels/conv_nhwc.cu.
const VOLUME: u32 = 4;
const EIGHTS: u32 = 8;
const FOURS: u32 = 16;
const NHWC_EIGHTS: u32 = 1;
const NHWC_FOURS: u32 = 2;

/// Most elements of anything that the kernels count in 32 bits, and positions in a padded line.
const MOST: usize = i32::MAX as usize;
const LONGEST: usize = 1 << 30;

impl Tile {
    /// Whether two warpgroups take turns along k rather than share the filters.
    fn takes_turns(&self) -> bool {
        self.filters == 64
    }

    fn count(&self, pixels: usize, filters: usize) -> usize {
        pixels.div_ceil(self.pixels).saturating_mul(filters.div_ceil(self.filters))
    }

    /// `ConvHalfTile::SHARED`.
    fn shared(&self) -> u32 {
        let rest = if self.takes_turns() { 24 << 10 } else { 8 << 10 };
        let slot = (self.filters + self.pixels) * 128;
        let fit = ((225 << 10) - rest) / slot;
        let slots = if self.takes_turns() { fit & !1 } else { fit };
        (slots * slot + rest + 1024) as u32
    }
}

/// The input or the weights as the kernels read them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Side {
    /// Elements of the copy.
    copy: usize,
    /// Elements of the operand.
    elements: usize,
    /// Blocks of kernels/conv_nhwc.cu.
    blocks: usize,
    key: FormKey,
}

impl planes::Side for Side {
    fn planes_size(&self) -> usize {
        2 * self.copy
    }

    fn scales(&self) -> usize {
        0
    }

    fn moved(&self) -> usize {
        2 * (self.copy + self.elements)
    }

    fn key(&self) -> FormKey {
        self.key
    }
}

/// The launches of one convolution.
#[derive(Debug)]
pub struct Plan {
    tile: &'static Tile,
    dtype: DType,
    /// The problem, and as the copies hold it.
    own: Problem,
    seen: Problem,
    /// Whether a window's line takes the place of a pixel.
    windows: bool,
    /// Axes of the images for the copy engine, width first.
    axes: Vec<ImageAxis>,
    x: Side,
    w: Side,
}

/// Few channels: the problem whose pixels are windows' lines. `None` where a block would not hold one.
fn by_windows(problem: &Problem) -> Option<Problem> {
    let [depth, height, width] = problem.axes;
    let line = problem.group_in.saturating_mul(width.kernel);
    let windows =
        WindowAxis { input: width.output, kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0, ..width };
    (width.kernel > 1 && line <= CHANNELS).then_some(Problem {
        group_in: line,
        axes: [depth, height, windows],
        ..*problem
    })
}

fn product(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |all, size| all.saturating_mul(*size))
}

impl Problem {
    fn parts(&self) -> usize {
        self.group_in.div_ceil(CHANNELS)
    }

    /// Channels of a pixel with those that fill up its last eight.
    fn pitch(&self) -> usize {
        self.group_in.next_multiple_of(8)
    }
}

/// Whether the convolution is a product of the weights by each image as it lies, of lines that the copy engine takes.
pub fn is_product(problem: &Problem, setting: &Setting) -> bool {
    problem.groups == 1
        && problem.group_in > 0
        && problem.is_pointwise()
        && setting.aligned[0]
        && problem.windows().is_multiple_of(8)
}

/// Both sides of a problem, and of the problem as the copies hold it.
fn sides(own: &Problem, seen: &Problem, windows: bool) -> [Side; 2] {
    let Problem { images, group_in: channels, group_out: filters, axes: [_, _, width], .. } = *own;
    let copy = product(&[images, seen.slid(), seen.pitch()]);
    let numbers = |sizes: [usize; 6]| sizes.map(|size| size as u64);
    let (blocks, key) = if windows {
        let line = [width.begin, width.stride, width.dilation, width.kernel].map(|size| size.min(1 << 15));
        let line = line.into_iter().fold(0, |all, size| all << 16 | size);
        let sizes = [images, channels, own.slid(), width.input, width.output, line];
        (copy.div_ceil(8 * THREADS), ("conv windows of halves", numbers(sizes)))
    } else {
        let blocks = product(&[images, seen.parts(), own.slid().div_ceil(NHWC_PIXELS)]);
        (blocks, ("conv pixels of halves", numbers([images, channels, own.slid(), 0, 0, 0])))
    };
    let x = Side { copy, elements: product(&[images, own.slid(), channels]), blocks, key };
    let line = if windows { width.kernel } else { 0 };
    let w = Side {
        copy: product(&[filters, seen.taps(), seen.parts(), CHANNELS]),
        elements: product(&[filters, own.taps(), channels]),
        blocks: filters,
        key: ("conv weights of halves", numbers([filters, channels, own.taps(), line, 0, 0])),
    };
    [x, w]
}

/// Whether the kernels can count everything of a plan.
fn is_countable(plan: &Plan) -> bool {
    let Plan { own, seen, .. } = plan;
    let pixels = product(&[own.images, own.windows()]);
    let reach = |axis: &WindowAxis| {
        let taps = axis.kernel.saturating_mul(axis.dilation);
        (axis.input + axis.begin + axis.end).saturating_add(taps)
    };
    let counts = [
        pixels,
        product(&[own.images, seen.slid()]),
        product(&[own.images, own.group_in]),
        product(&[seen.taps(), seen.parts(), CHANNELS]),
        own.slid(),
        plan.x.blocks.saturating_add(plan.w.blocks),
        TILES[4].count(pixels, own.group_out),
    ];
    counts.into_iter().all(|count| count <= MOST)
        && own.axes.iter().all(|axis| reach(axis) < LONGEST)
        && product(&[seen.slid(), seen.pitch()]) < 1 << 38
        && plan.w.copy < 1 << 38
}

/// Most terms of a sum that stays in the tensor core, which truncates: see the products of halves.
fn longest_sum(dtype: DType) -> usize {
    if dtype == DType::Bf16 { 1 << 17 } else { 1 << 14 }
}

/// The plan of a normalized problem of 16 bits that has outputs, on a device of compute capability 9.0; `None` where this
/// route does not take it.
pub fn plan(problem: &Problem, setting: &Setting, dtype: DType, precision: Precision) -> Option<Plan> {
    let terms = problem.group_in.saturating_mul(problem.taps());
    if problem.groups != 1 || terms == 0 || terms > longest_sum(dtype) || precision == Precision::Strict {
        return None;
    }
    let lines = by_windows(problem);
    let seen = lines.unwrap_or(*problem);
    let windows = lines.is_some();
    let axes = image_axes(&seen)?;
    let (pixels, filters) = (problem.images.saturating_mul(problem.windows()), problem.group_out);
    let blocks = seen.taps() * seen.parts();
    let time = |tile: &Tile| {
        let waves = tile.count(pixels, filters).div_ceil(setting.card.multiprocessors.max(1) as usize);
        waves as f64 * (tile.times.0 * blocks as f64 + tile.times.1)
    };
    let tile = TILES.iter().min_by(|one, other| time(one).total_cmp(&time(other)))?;
    let [x, w] = sides(problem, &seen, windows);
    Some(Plan { tile, dtype, own: *problem, seen, windows, axes, x, w }).filter(is_countable)
}

impl Plan {
    /// The kernel that makes the copies.
    fn copying(&self) -> &'static str {
        if self.windows { "conv_half_windows" } else { "conv_half_nhwc" }
    }

    /// The input's copy at `ptr` as the copy engine walks over it.
    fn images(&self, ptr: DevicePtr) -> Images {
        let pitch = self.seen.pitch();
        Images {
            ptr,
            channels: pitch,
            pixel: pitch,
            line: pitch * self.seen.axes[2].input,
            axes: self.axes.clone(),
            images: self.own.images,
        }
    }

    /// The weights' copy at `ptr`.
    fn weights(&self, ptr: DevicePtr) -> Halves {
        let columns = self.seen.taps() * self.seen.parts() * CHANNELS;
        Halves { ptr, columns, rows: self.own.group_out, matrices: 1, pitch: columns }
    }

    fn tiles(&self) -> usize {
        self.tile.count(self.own.images * self.own.windows(), self.own.group_out)
    }

    /// Whether the input is read in vectors of eight pixels.
    fn copies_eights(&self, setting: &Setting) -> bool {
        setting.aligned[0] && self.own.slid().is_multiple_of(8)
    }

    /// `struct ConvNhwc`.
    fn copies_words(&self, blocks_x: usize, setting: &Setting) -> Vec<u32> {
        let Problem { images, group_in: channels, group_out: filters, axes: [depth, height, width], .. } =
            self.own;
        let plane = self.own.slid();
        let sizes = [images, channels, plane, self.seen.pitch(), filters, self.own.taps(), blocks_x];
        let mut words: Vec<u32> = sizes.map(|size| size as u32).into();
        words.push(match setting.aligned[0] {
            _ if self.copies_eights(setting) => NHWC_EIGHTS,
            true if plane.is_multiple_of(4) => NHWC_FOURS,
            _ => 0,
        });
        let lines = depth.input * height.input;
        let line =
            [lines, width.input, width.begin, width.output, width.stride, width.dilation, width.kernel];
        words.extend(line.map(|size| size as u32));
        words
    }

    /// `struct Conv`.
    fn words(&self, setting: &Setting) -> Vec<u32> {
        let plane = self.own.windows();
        let vectors = |size| setting.aligned[1] && plane.is_multiple_of(size);
        let flags = [(self.axes.len() == 3, VOLUME), (vectors(8), EIGHTS), (vectors(4), FOURS)];
        let flags = flags.into_iter().map(|(set, flag)| if set { flag } else { 0 }).sum();
        let pixels = self.own.images * plane;
        let extra = Extra { transposed: false, flags, splits: 1, split_tiles: 1, pixels, residues: 1 };
        self.seen.pack(setting, &extra)
    }
}

#[cfg(test)]
mod tests;
