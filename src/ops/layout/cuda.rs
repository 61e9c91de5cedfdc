//! Strided copies on a GPU: by units of up to 16 bytes, or through tiles of shared memory where the innermost axes differ.

use super::walk::{Axis, LAUNCH_AXES, Walk, pack};
use crate::Result;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, grid_x, linear};

/// A transpose goes through tiles where both of its sides have at least so many elements; with fewer, most of a tile
/// would stand idle.
const LEAST_SIDE: usize = 32;

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
    let walk = Walk { x: 0, y: 0, axes: axes.to_vec() };
    let n = walk.size() as u64;
    let words = pack(axes, walk.is_contiguous());
    let grid = linear(n, 256, if bytes == 16 { 1 } else { 4 })?;
    let arguments = [Arg::Ptr(x), Arg::Ptr(y), Arg::U64(n), Arg::Block(&words)];
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
    let run = if bytes == 8 { 2 } else { 4 };
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
        for bits in [8, 16, 32, 64] {
            let (_, entry) = kernel(&format!("transpose_u{bits}"), 75).unwrap();
            assert_eq!(entry.parameters, [Word64, Word64, Word64, sides, walk]);
        }
    }
}
