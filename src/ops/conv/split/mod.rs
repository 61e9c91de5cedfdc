//! The route over Hopper's tensor cores: float32 operands as scaled float16 planes (kernels/common/conv_split.cuh).

mod launch;
mod layer;

pub use self::launch::{Pointers, run};
pub use self::layer::{Input, Layer, Output, Planar};
pub use super::super::planes::Planes;

use super::super::geometry::WindowAxis;
use super::super::tile::BANDWIDTH;
use super::super::{Precision, planes};
use super::{Extra, Problem, Setting};
use crate::driver::{DevicePtr, Halves, ImageAxis, Images};
use crate::kernels::Launcher;
use crate::tensor::{DeviceView, Form, FormKey};

/// One of the kernels of kernels/conv_split.cu. The times are those of an H200.
#[derive(Debug, PartialEq)]
struct Tile {
    name: &'static str,
    /// Output pixels, each 64 of which a warpgroup multiplies.
    pixels: usize,
    filters: usize,
    /// Planes of each operand that are multiplied.
    planes: usize,
    /// Blocks of pixels and weights that shared memory holds.
    units: usize,
    /// Blocks that a multiprocessor holds.
    resident: usize,
    /// Most blocks of a cluster, which share the k of a tile.
    ranks: usize,
    /// Bytes of shared memory in which results of one pixel wait.
    staged: usize,
    /// Microseconds for 64 channels of one tap, and for the rest of a tile.
    times: (f64, f64),
}

#[rustfmt::skip]
static THREE_PRODUCTS: [Tile; 3] = [
    Tile { name: "split_192x64", pixels: 192, filters: 64, planes: 2, units: 3, resident: 1, ranks: 1, staged: 136, times: (0.88, 1.8) },
    Tile { name: "split_128x64", pixels: 128, filters: 64, planes: 2, units: 4, resident: 1, ranks: 1, staged: 136, times: (0.57, 1.8) },
    Tile { name: "split_64x64", pixels: 64, filters: 64, planes: 2, units: 3, resident: 2, ranks: 8, staged: 160, times: (0.38, 1.8) },
];
#[rustfmt::skip]
static ONE_PRODUCT: [Tile; 3] = [
    Tile { name: "half_192x64", pixels: 192, filters: 64, planes: 1, units: 6, resident: 1, ranks: 1, staged: 136, times: (0.41, 1.5) },
    Tile { name: "half_128x64", pixels: 128, filters: 64, planes: 1, units: 8, resident: 1, ranks: 1, staged: 136, times: (0.30, 1.3) },
    Tile { name: "half_64x64", pixels: 64, filters: 64, planes: 1, units: 6, resident: 2, ranks: 8, staged: 160, times: (0.20, 1.3) },
];

/// Clusters of that many blocks, and the microseconds in which they add up their sums.
const CLUSTERS: [(usize, f64); 4] = [(1, 0.0), (2, 1.1), (4, 1.9), (8, 3.5)];
/// Channels of a pixel in planes are multiples of this.
const PIXEL: usize = 8;
/// Channels of a block.
const CHANNELS: usize = 64;
/// Most channels and width of a kernel that are taken line by line.
const LINE: usize = 8;
/// Pixels of a block of the splitting kernel.
const SPLIT_PIXELS: usize = 64;

// Flags of kernels/conv_split.cu.
const VECTOR_D: u32 = 2;
const VOLUME: u32 = 4;
// Flag of kernels/conv_planes.cu.
const HI_ONLY: u32 = 1;

/// Most elements of anything that the kernels count in 32 bits.
const MOST: usize = i32::MAX as usize;

impl Tile {
    fn count(&self, pixels: usize, filters: usize) -> usize {
        pixels.div_ceil(self.pixels).saturating_mul(filters.div_ceil(self.filters))
    }

    fn threads(&self) -> u32 {
        (self.pixels / 64 + 1) as u32 * 128
    }

    /// How many blocks of threads best share the `blocks` blocks of k of that many tiles, and the microseconds.
    fn shared_by(&self, tiles: usize, blocks: usize, multiprocessors: usize) -> (usize, f64) {
        let most = self.ranks.min(blocks).min(multiprocessors / tiles.max(1)).max(1);
        let timed = CLUSTERS.into_iter().filter(|(ranks, _)| *ranks <= most).map(|(ranks, gathering)| {
            let waves = (tiles * ranks).div_ceil(multiprocessors);
            let ends = waves.div_ceil(self.resident) as f64 * self.times.1;
            (ranks, waves as f64 * self.times.0 * blocks.div_ceil(ranks) as f64 + ends + gathering)
        });
        timed.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((1, f64::INFINITY))
    }

    fn shared(&self) -> u32 {
        (self.units * self.planes * (self.pixels + self.filters) * 128 + self.pixels * self.staged + 1024)
            as u32
    }
}

/// The input or the weights as planes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Side {
    /// Elements of a plane.
    plane: usize,
    /// Scales or exponents.
    scales: usize,
    /// Float32 elements read.
    elements: usize,
    /// Blocks of kernels/conv_planes.cu.
    blocks: usize,
    hi_only: bool,
    key: FormKey,
}

impl Side {
    fn planes(&self) -> usize {
        if self.hi_only { 1 } else { 2 }
    }
}

impl planes::Side for Side {
    fn planes_size(&self) -> usize {
        2 * self.planes() * self.plane
    }

    fn scales(&self) -> usize {
        self.scales
    }

    fn moved(&self) -> usize {
        4 * self.elements + self.planes_size()
    }

    fn key(&self) -> FormKey {
        self.key
    }
}

/// The launches of one convolution.
#[derive(Debug)]
pub struct Plan {
    tile: &'static Tile,
    /// Blocks of threads that share a tile.
    ranks: usize,
    /// The problem, and as the planes hold it.
    own: Problem,
    seen: Problem,
    lines: Option<Lines>,
    /// Axes of the images for the copy engine, width first.
    axes: Vec<ImageAxis>,
    x: Side,
    w: Side,
    /// Microseconds that the tiles take.
    time: f64,
}

/// Starting pixels along an axis; `None` where the copy engine does not go. Corners have that many bits, as have offsets.
fn image_axis(axis: &WindowAxis, bits: u32) -> Option<ImageAxis> {
    let (low, high) = (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1);
    let lower = -(axis.begin as i64);
    let upper = lower + (axis.output as i64 - 1) * axis.stride as i64 + 1 - axis.input as i64;
    let reach = (axis.kernel - 1).saturating_mul(axis.dilation);
    let fits = (low..=high).contains(&lower)
        && (low..=high).contains(&upper)
        && reach < 1 << bits
        && axis.stride <= 8;
    fits.then_some(ImageAxis {
        size: axis.input,
        lower: lower as i32,
        upper: upper as i32,
        step: axis.stride as u32,
    })
}

pub fn image_axes(problem: &Problem) -> Option<Vec<ImageAxis>> {
    let [depth, height, width] = &problem.axes;
    let flat = depth.input == 1 && depth.output == 1 && depth.kernel == 1 && depth.begin == 0;
    if flat {
        return Some(vec![image_axis(width, 8)?, image_axis(height, 8)?]);
    }
    Some(vec![image_axis(width, 4)?, image_axis(height, 4)?, image_axis(depth, 4)?])
}

/// Few channels: a line of the planes, whose windows take the place of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lines {
    /// Pixels with all padding.
    padded: usize,
    stride: usize,
    /// Lines of an image in the planes.
    count: usize,
    /// Whether each holds two lines of the image, of half as many channels.
    paired: bool,
}

impl Lines {
    /// The problem as the planes hold it; `None` where it has not few channels.
    fn of(problem: &Problem) -> Option<(Problem, Lines)> {
        let [depth, height, width] = problem.axes;
        if problem.group_in > LINE || width.kernel > LINE || width.dilation > 1 {
            return None;
        }
        let padded = (width.begin + width.input).max((width.output - 1) * width.stride + LINE);
        let windows = WindowAxis { input: width.output, kernel: 1, stride: 1, begin: 0, end: 0, ..width };
        let flat = depth.input == 1 && depth.output == 1 && depth.kernel == 1 && depth.begin == 0;
        let even = height.stride.is_multiple_of(2) && height.dilation == 1 && height.kernel > 1;
        let paired = flat && even && 2 * problem.group_in <= LINE;
        let (rows, count) = match paired {
            false => (height, depth.input * height.input),
            true => {
                let (kernel, stride) = (height.kernel.div_ceil(2), height.stride / 2);
                let input = (height.output - 1) * stride + kernel;
                (WindowAxis { input, kernel, stride, begin: 0, end: 0, ..height }, input)
            }
        };
        let padded = padded.next_multiple_of(width.stride);
        let lines = Lines { padded, stride: width.stride, count, paired };
        Some((Problem { group_in: CHANNELS, axes: [depth, rows, windows], ..*problem }, lines))
    }
}

impl Side {
    /// An input or a result: images of pixels.
    fn pixels(images: usize, channels: usize, pixels: usize, hi_only: bool) -> Side {
        let parts = channels.div_ceil(CHANNELS);
        Side {
            plane: images * pixels * channels.next_multiple_of(PIXEL),
            scales: images * pixels * parts,
            elements: images * pixels * channels,
            blocks: images * parts * pixels.div_ceil(SPLIT_PIXELS),
            hi_only,
            key: key("conv pixels", [images, channels, pixels, 0, 0], hi_only),
        }
    }

    /// An input of few channels, line by line.
    fn lines(problem: &Problem, lines: &Lines, hi_only: bool) -> Side {
        let Problem { images, group_in: channels, axes: [_, height, width], .. } = *problem;
        let count = images * lines.count;
        let above = if lines.paired { height.begin << 1 | 1 } else { 0 };
        let sizes =
            [count, channels << 32 | width.input, width.begin << 32 | above, lines.padded, width.output];
        Side {
            plane: count * lines.padded * LINE,
            scales: count * width.output,
            elements: images * problem.slid() * channels,
            blocks: count,
            hi_only,
            key: key("conv lines", sizes, hi_only),
        }
    }

    /// The weights of a problem, and of the problem as the planes hold it.
    fn weights(own: &Problem, seen: &Problem, lines: Option<Lines>, hi_only: bool) -> Side {
        let Problem { group_in: channels, group_out: filters, .. } = *own;
        let lined = lines.map_or(0, |lines| own.axes[2].kernel << 1 | usize::from(lines.paired));
        Side {
            plane: filters * seen.taps() * seen.channel_parts() * CHANNELS,
            scales: filters,
            elements: filters * own.taps() * channels,
            blocks: filters,
            hi_only,
            key: key("conv weights", [filters, channels, own.taps(), lined, 0], hi_only),
        }
    }
}

fn key(name: &'static str, [a, b, c, d, e]: [usize; 5], hi_only: bool) -> FormKey {
    (name, [a as u64, b as u64, c as u64, d as u64, e as u64, u64::from(hi_only)])
}

impl Problem {
    /// Blocks of 64 input channels.
    fn channel_parts(&self) -> usize {
        self.group_in.div_ceil(CHANNELS)
    }

    /// Whether the kernels can count everything of it.
    fn is_countable(&self) -> bool {
        let product = |sizes: &[usize]| sizes.iter().fold(1, |all: usize, size| all.saturating_mul(*size));
        let (taps, parts) = (self.taps(), self.channel_parts());
        let counts = [
            product(&[2, self.images, self.slid()]),
            product(&[self.images, self.windows()]),
            product(&[self.images, parts, self.slid().div_ceil(SPLIT_PIXELS)]).saturating_add(self.group_out),
            product(&[taps, parts, CHANNELS]),
            product(&[2, self.group_out, 128]),
            THREE_PRODUCTS[2].count(product(&[self.images, self.windows()]), self.group_out),
        ];
        counts.into_iter().all(|count| count <= MOST)
            && product(&[self.slid(), self.group_in.next_multiple_of(PIXEL)]) < 1 << 38
            && product(&[self.images, self.slid(), parts * CHANNELS]) < 1 << 42
    }
}

/// The plan of a normalized problem that has outputs, on a device of compute capability 9.0; `None` where this route does
/// not take it.
pub fn plan(problem: &Problem, setting: &Setting, precision: Precision) -> Option<Plan> {
    plan_of(problem, setting, precision, Lines::of(problem))
}

/// The plan whose input has that form.
fn plan_of(
    problem: &Problem,
    setting: &Setting,
    precision: Precision,
    lines: Option<(Problem, Lines)>,
) -> Option<Plan> {
    let terms = problem.group_in * problem.taps();
    if setting.size != 4 || problem.groups != 1 || terms == 0 || precision == Precision::Strict {
        return None;
    }
    let (seen, lines) = lines.map_or((*problem, None), |(seen, lines)| (seen, Some(lines)));
    let axes = image_axes(&seen).filter(|_| seen.is_countable() && problem.is_countable())?;
    let highest = precision == Precision::Highest;
    let tiles: &[Tile] = if highest { &THREE_PRODUCTS } else { &ONE_PRODUCT };
    let (pixels, filters) = (problem.images * problem.windows(), problem.group_out);
    let blocks = seen.taps() * seen.channel_parts();
    let multiprocessors = setting.card.multiprocessors.max(1) as usize;
    let timed = tiles.iter().map(|tile| {
        let (ranks, time) = tile.shared_by(tile.count(pixels, filters), blocks, multiprocessors);
        (tile, ranks, time)
    });
    let (tile, ranks, time) = timed.min_by(|one, other| one.2.total_cmp(&other.2))?;
    let x = match &lines {
        Some(lines) => Side::lines(problem, lines, !highest),
        None => Side::pixels(problem.images, problem.group_in, problem.slid(), !highest),
    };
    let w = Side::weights(problem, &seen, lines, !highest);
    Some(Plan { tile, ranks, axes, own: *problem, seen, lines, x, w, time })
}

impl Plan {
    /// What is known of the operands' planes, and note of this use.
    pub fn forms(&self, launcher: &Launcher, views: &[DeviceView; 2]) -> [Form<Planes>; 2] {
        planes::forms(launcher, [&self.x, &self.w], views)
    }

    /// Microseconds expected.
    pub fn time(&self, forms: &[Form<Planes>; 2]) -> f64 {
        planes::time([&self.x, &self.w], forms, BANDWIDTH) + self.time
    }

    /// The result as planes, which are always both.
    fn result(&self) -> Side {
        Side::pixels(self.own.images, self.own.group_out, self.own.windows(), false)
    }

    /// The kernel that makes planes.
    fn splitting(&self) -> &'static str {
        if self.lines.is_some() { "conv_f32_planes_lines" } else { "conv_f32_planes" }
    }

    /// The input's planes at `ptr` as the copy engine walks over them.
    fn images(&self, ptr: DevicePtr) -> Images {
        let channels = self.seen.group_in.next_multiple_of(PIXEL);
        let (pixel, line) = match self.lines {
            Some(Lines { padded, stride, .. }) => (LINE * stride, LINE * padded),
            None => (channels, channels * self.seen.axes[2].input),
        };
        Images {
            ptr,
            channels,
            pixel,
            line,
            axes: self.axes.clone(),
            images: self.x.planes() * self.own.images,
        }
    }

    /// The weights' planes at `ptr`.
    fn weights(&self, ptr: DevicePtr) -> Halves {
        let columns = self.seen.taps() * self.seen.channel_parts() * CHANNELS;
        Halves { ptr, columns, rows: self.own.group_out, matrices: self.w.planes(), pitch: columns }
    }

    fn tiles(&self) -> usize {
        self.tile.count(self.own.images * self.own.windows(), self.own.group_out)
    }

    /// Blocks of the multiplying kernel.
    fn blocks(&self, setting: &Setting) -> usize {
        let held = self.tile.resident * setting.card.multiprocessors as usize;
        if self.ranks > 1 { self.tiles() * self.ranks } else { self.tiles().min(held) }
    }

    /// `struct ConvPlanes`.
    fn planes_words(&self, blocks_x: usize, epochs: [u32; 2]) -> Vec<u32> {
        let Problem { images, group_in: channels, group_out: filters, axes: [_, height, width], .. } =
            self.own;
        let padded = self.lines.map_or(0, |lines| lines.padded);
        let count = self.lines.map_or(0, |lines| lines.count);
        let pairs =
            if self.lines.is_some_and(|lines| lines.paired) { [height.input, height.begin] } else { [0; 2] };
        let sizes = [
            images,
            channels,
            self.own.slid(),
            channels.next_multiple_of(PIXEL),
            filters,
            self.own.taps(),
            blocks_x,
        ];
        let mut words: Vec<u32> = sizes.map(|size| size as u32).into();
        words.push(if self.x.hi_only { HI_ONLY } else { 0 });
        words.extend(epochs);
        words.extend([width.input, width.begin, padded, width.output, width.kernel].map(|size| size as u32));
        words.extend([count, pairs[0], pairs[1]].map(|size| size as u32));
        words
    }

    /// `struct ConvSplit`.
    fn words(&self, setting: &Setting, epochs: [u32; 3]) -> Vec<u32> {
        let pixels = self.own.images * self.own.windows();
        let vectors = setting.aligned[1] && self.own.windows().is_multiple_of(4);
        let flags = [(vectors, VECTOR_D), (self.axes.len() == 3, VOLUME)];
        let flags = flags.into_iter().map(|(set, flag)| if set { flag } else { 0 }).sum();
        let extra = Extra { transposed: false, flags, splits: 1, split_tiles: 1, pixels, residues: 1 };
        let mut words = [&self.seen, &self.own].map(|problem| problem.pack(setting, &extra)).concat();
        words.extend(epochs);
        words.push(self.own.group_out.next_multiple_of(PIXEL) as u32);
        words
    }
}

#[cfg(test)]
mod layer_tests;
#[cfg(test)]
mod tests;
