//! Strided copies on a GPU: by units of up to 16 bytes, as runs of 16 bytes where the rows lie anywhere, or through shared
//! memory where the innermost axes differ.

use super::walk::{Axis, LAUNCH_AXES, Walk, pack};
use crate::Result;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, grid_x, linear};
use crate::ops::operands::divisor;

/// A transpose goes through tiles where both of its sides have at least so many elements; with fewer, most of a tile
/// would stand idle.
const LEAST_SIDE: usize = 32;

/// Rows are copied as runs of 16 bytes from so many runs on; in shorter ones most runs would cross an end.
const LEAST_RUNS: usize = 2;

/// Enqueues a copy of elements of `bytes` bytes.
pub fn copy(launcher: &Launcher, walk: &Walk, bytes: usize, x: DevicePtr, y: DevicePtr) -> Result<()> {
    if walk.size() == 0 {
        return Ok(());
    }
    let at = |ptr: DevicePtr, element: usize| ptr.offset((element * bytes) as u64);
    let (x, y) = (at(x, walk.x), at(y, walk.y));
    let walk = Walk { x: 0, y: 0, axes: walk.axes.clone() };
    let (walk, bytes) = walk.widest(bytes, x.0, y.0);
    launch(launcher, &walk.axes, bytes, x, y)
}

/// An address so many elements on, or back.
fn moved(ptr: DevicePtr, elements: isize, bytes: usize) -> DevicePtr {
    DevicePtr(ptr.0.wrapping_add_signed((elements * bytes as isize) as i64))
}

fn launch(launcher: &Launcher, axes: &[Axis], bytes: usize, x: DevicePtr, y: DevicePtr) -> Result<()> {
    if axes.len() > LAUNCH_AXES {
        let (outer, inner) = (axes[axes.len() - 1], &axes[..axes.len() - 1]);
        for index in 0..outer.size as isize {
            let (x, y) = (moved(x, index * outer.x, bytes), moved(y, index * outer.y, bytes));
            launch(launcher, inner, bytes, x, y)?;
        }
        return Ok(());
    }
    if let Some((columns, rows)) = matrix(axes, bytes) {
        return transpose(launcher, axes, (columns, rows), bytes, x, y);
    }
    if let Some(channels) = Channels::of(axes, bytes, [x, y]) {
        return channels.launch(launcher, bytes, x, y);
    }
    let walk = Walk { x: 0, y: 0, axes: axes.to_vec() };
    let n = walk.size() as u64;
    let words = pack(axes, walk.is_contiguous());
    let arguments = [Arg::Ptr(x), Arg::Ptr(y), Arg::U64(n), Arg::Block(&words)];
    let run = 16 / bytes;
    if run > 1 && walk.is_contiguous() && axes[0].x == 1 && axes[0].size >= LEAST_RUNS * run {
        return launcher.launch(&format!("runs_u{}", 8 * bytes), linear(n, 256, run as u32)?, &arguments);
    }
    let grid = linear(n, 256, if bytes == 16 { 1 } else { 4 })?;
    launcher.launch(&format!("copy_u{}", 8 * bytes), grid, &arguments)
}

/// The axes along which x and y lie side by side, where they are two and both long.
fn matrix(axes: &[Axis], bytes: usize) -> Option<(usize, usize)> {
    let long =
        |step: fn(&Axis) -> isize| axes.iter().position(|axis| step(axis) == 1 && axis.size >= LEAST_SIDE);
    let (columns, rows) = (long(|axis| axis.x)?, long(|axis| axis.y)?);
    (columns != rows && bytes <= 8).then_some((columns, rows))
}

fn transpose(
    launcher: &Launcher,
    axes: &[Axis],
    (columns, rows): (usize, usize),
    bytes: usize,
    x: DevicePtr,
    y: DevicePtr,
) -> Result<()> {
    let outer: Vec<Axis> = axes
        .iter()
        .enumerate()
        .filter(|(index, _)| ![columns, rows].contains(index))
        .map(|(_, &axis)| axis)
        .collect();
    let matrices: usize = outer.iter().map(|axis| axis.size).product();
    let run = match bytes {
        2 => 8,
        8 => 2,
        _ => 4,
    };
    let (columns, rows) = (axes[columns], axes[rows]);
    let (across, down) = (columns.size.div_ceil(16 * run), rows.size.div_ceil(16 * run));
    let words = matrix_words(columns, rows, run, vectors(columns, rows, &outer, run, [x, y], bytes));
    let walk = pack(&outer, false);
    let arguments =
        [Arg::Ptr(x), Arg::Ptr(y), Arg::U64(matrices as u64), Arg::Block(&words), Arg::Block(&walk)];
    let grid = grid_x((across * down * matrices) as u64, 256, 0)?;
    launcher.launch(&format!("transpose_u{}", 8 * bytes), grid, &arguments)
}

/// Whether runs of `run` elements are whole and aligned on both sides.
fn vectors(
    columns: Axis,
    rows: Axis,
    outer: &[Axis],
    run: usize,
    pointers: [DevicePtr; 2],
    bytes: usize,
) -> bool {
    let whole = |step: isize| step.unsigned_abs().is_multiple_of(run);
    pointers.iter().all(|ptr| ptr.0.is_multiple_of((run * bytes) as u64))
        && columns.size.is_multiple_of(run)
        && rows.size.is_multiple_of(run)
        && whole(rows.x)
        && whole(columns.y)
        && outer.iter().all(|axis| whole(axis.x) && whole(axis.y))
}

/// Pixels of two to four channels, all of one after the other on one side and channel after channel on the other.
struct Channels {
    kernel: &'static str,
    channels: usize,
    groups: usize,
    pitch: isize,
    outer: Vec<Axis>,
}

impl Channels {
    fn of(axes: &[Axis], bytes: usize, pointers: [DevicePtr; 2]) -> Option<Channels> {
        type Step = fn(&Axis) -> isize;
        let side = |step: Step, other: Step| {
            let few = axes.iter().position(|axis| step(axis) == 1 && (2..=4).contains(&axis.size))?;
            let next = axes[few].size as isize;
            let pixels = axes.iter().position(|axis| step(axis) == next && other(axis) == 1)?;
            Some((few, pixels, other(&axes[few])))
        };
        let (of_x, of_y): (Step, Step) = (|axis| axis.x, |axis| axis.y);
        let joined = side(of_x, of_y).map(|found| ("deinterleave", found));
        let apart = || side(of_y, of_x).map(|found| ("interleave", found));
        let (kernel, (few, pixels, pitch)) = joined.or_else(apart)?;
        let (channels, run) = (axes[few].size, 16 / bytes);
        let places = 0..axes.len();
        let outer: Vec<Axis> =
            places.filter(|place| ![few, pixels].contains(place)).map(|place| axes[place]).collect();
        let whole = |step: isize| step.unsigned_abs().is_multiple_of(run);
        let fits = run > 1
            && pointers.iter().all(|ptr| ptr.0.is_multiple_of(16))
            && axes[pixels].size.is_multiple_of(run)
            && axes[pixels].size >= LEAST_SIDE * run
            && whole(pitch)
            && outer.iter().all(|axis| whole(axis.x) && whole(axis.y));
        fits.then_some(Channels { kernel, channels, groups: axes[pixels].size / run, pitch, outer })
    }

    fn launch(&self, launcher: &Launcher, bytes: usize, x: DevicePtr, y: DevicePtr) -> Result<()> {
        let matrices: usize = self.outer.iter().map(|axis| axis.size).product();
        let walk = pack(&self.outer, false);
        let arguments = [
            Arg::Ptr(x),
            Arg::Ptr(y),
            Arg::U64(matrices as u64),
            Arg::U64(self.groups as u64),
            Arg::U64(self.pitch as u64),
            Arg::Block(&walk),
        ];
        let grid = grid_x((matrices * self.groups.div_ceil(256)) as u64, 256, 0)?;
        launcher.launch(&format!("{}_u{}_{}", self.kernel, 8 * bytes, self.channels), grid, &arguments)
    }
}

/// Inputs that one launch of concat takes.
pub const MOST_PARTS: usize = 128;

/// Enqueues rows of several arrays, given with the elements of each one's rows, one after the other; none is empty, and
/// there are at most [`MOST_PARTS`].
pub fn join(
    launcher: &Launcher,
    parts: &[(DevicePtr, usize)],
    n: usize,
    bytes: usize,
    y: DevicePtr,
) -> Result<()> {
    let total: usize = parts.iter().map(|(_, length)| length).sum();
    let words = pack_parts(parts);
    let arguments = [
        Arg::Ptr(y),
        Arg::U64(n as u64),
        Arg::U64(total as u64),
        Arg::U64(divisor(total)),
        Arg::Block(&words),
    ];
    launcher.launch(&format!("concat_u{}", 8 * bytes), linear(n as u64, 256, 16 / bytes as u32)?, &arguments)
}

/// `struct Parts` of kernels/runs.cu.
fn pack_parts(parts: &[(DevicePtr, usize)]) -> Vec<u32> {
    let mut words = vec![parts.len() as u32, 0];
    let mut push = |value: u64| words.extend([value as u32, (value >> 32) as u32]);
    (0..MOST_PARTS).for_each(|index| push(parts.get(index).map_or(0, |(x, _)| x.0)));
    let mut start = 0;
    for index in 0..=MOST_PARTS {
        push(start);
        start += parts.get(index).map_or(0, |(_, length)| *length as u64);
    }
    words
}

/// `struct Matrix` of kernels/copy.cu.
fn matrix_words(columns: Axis, rows: Axis, run: usize, vectors: bool) -> Vec<u32> {
    let tiles = |axis: Axis| axis.size.div_ceil(16 * run) as u32;
    let mut words = vec![tiles(columns), tiles(rows), u32::from(vectors), 0];
    for value in [columns.size as u64, rows.size as u64, rows.x as u64, columns.y as u64] {
        words.extend([value as u32, (value >> 32) as u32]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Parameter, find as kernel};

    fn axis(size: usize, x: isize, y: isize) -> Axis {
        Axis { size, x, y }
    }

    #[test]
    fn tiles_are_for_long_sides_that_differ() {
        assert_eq!(matrix(&[axis(64, 100, 1), axis(100, 1, 64)], 4), Some((1, 0)));
        assert_eq!(matrix(&[axis(3, 100, 1), axis(100, 1, 3)], 4), None);
        assert_eq!(matrix(&[axis(64, 1, 1), axis(100, 640, 64)], 4), None);
        assert_eq!(matrix(&[axis(64, 100, 1), axis(100, 1, 64)], 16), None);
    }

    #[test]
    fn few_channels_are_told_by_both_sides() {
        let of = |axes: &[Axis], pointers| {
            Channels::of(axes, 4, pointers)
                .map(|found| (found.kernel, found.channels, found.groups, found.pitch))
        };
        let aligned = [DevicePtr(256), DevicePtr(512)];
        let apart = [axis(256, 3, 1), axis(3, 1, 256), axis(5, 768, 768)];
        assert_eq!(of(&apart, aligned), Some(("deinterleave", 3, 64, 256)));
        let joined = [axis(3, 256, 1), axis(256, 1, 3), axis(5, 768, 768)];
        assert_eq!(of(&joined, aligned), Some(("interleave", 3, 64, 256)));
        assert_eq!(of(&joined, [DevicePtr(260), DevicePtr(512)]), None);
        assert_eq!(of(&[axis(3, 255, 1), axis(255, 1, 3)], aligned), None);
        assert_eq!(of(&[axis(5, 256, 1), axis(256, 1, 5)], aligned), None);
    }

    #[test]
    fn runs_are_whole_or_elements_go_one_by_one() {
        let aligned = [DevicePtr(256), DevicePtr(512)];
        let fits = |columns, rows, pointers| vectors(columns, rows, &[], 4, pointers, 4);
        assert!(fits(axis(64, 1, 40), axis(40, 64, 1), aligned));
        assert!(!fits(axis(66, 1, 40), axis(40, 66, 1), aligned));
        assert!(!fits(axis(64, 1, 40), axis(40, 64, 1), [DevicePtr(260), DevicePtr(512)]));
    }

    #[test]
    fn every_width_has_its_kernels() {
        use Parameter::{Block, Word64};
        let walk = Block(pack(&[], false).len() * 4);
        let sides = Block(matrix_words(axis(1, 1, 1), axis(1, 1, 1), 4, false).len() * 4);
        for bits in [8, 16, 32, 64, 128] {
            assert_eq!(
                kernel(&format!("copy_u{bits}"), 75).unwrap().1.parameters,
                [Word64, Word64, Word64, walk]
            );
        }
        let parts = Block(pack_parts(&[]).len() * 4);
        for bits in [8, 16, 32, 64] {
            let parameters = |name: String| kernel(&name, 75).unwrap().1.parameters;
            assert_eq!(parameters(format!("transpose_u{bits}")), [Word64, Word64, Word64, sides, walk]);
            assert_eq!(parameters(format!("runs_u{bits}")), [Word64, Word64, Word64, walk]);
            assert_eq!(parameters(format!("concat_u{bits}")), [Word64, Word64, Word64, Word64, parts]);
            for name in ["interleave", "deinterleave"] {
                for channels in 2..=4 {
                    let wanted = [Word64, Word64, Word64, Word64, Word64, walk];
                    assert_eq!(parameters(format!("{name}_u{bits}_{channels}")), wanted);
                }
            }
        }
    }
}
