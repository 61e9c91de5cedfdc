//! How kernels that keep a contiguous row in registers are launched: by the row's length.

use crate::Result;
use crate::driver::{DevicePtr, Grid};
use crate::kernels::{Arg, Launcher, grid_x};

/// The kernel form for rows of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowForm {
    /// One launch: the kernel's suffix, rows of a block, threads of a block.
    Whole(&'static str, u64, u32),
    /// Two launches, `partial` and `finish`, each over `parts` stretches of `chunk` elements a row.
    Parts {
        /// Elements of a stretch, the last one of a row aside.
        chunk: u64,
        /// Stretches of a row.
        parts: u32,
    },
}

/// Threads of the kernels that take a row in parts.
const PART_THREADS: u32 = 512;

/// Stretches of a row that `finish` merges at most.
const MOST_PARTS: u64 = 1024;

/// The form for rows of `columns` elements of `size` bytes. `lines`: they, and all that is read or written beside them,
/// begin at multiples of 16 bytes. `held`: vectors that a thread of the largest blocks holds, of 16-bit elements and of
/// others; eight are held of rows on lines alone.
fn row_form(columns: u64, size: usize, lines: bool, held: [u64; 2]) -> RowForm {
    let vector = 16 / size as u64;
    // Of 16 bytes; a row that begins inside one touches one more, or a part.
    let vectors = if lines { columns.div_ceil(vector) } else { (columns + vector - 1).div_ceil(vector) };
    let shared = |of_thread: u64| vectors.div_ceil(of_thread).next_multiple_of(32) as u32;
    match vectors {
        0..=8 => RowForm::Whole("lanes", 32, 256),
        9..=16 => RowForm::Whole("pairs", 32, 256),
        17..=32 => RowForm::Whole("half", 16, 256),
        33..=64 => RowForm::Whole("warp", 8, 256),
        65..=1024 if size == 2 => RowForm::Whole("block", 1, shared(held[0])),
        1025..=2048 if size == 2 => RowForm::Whole("wide", 1, shared(held[0])),
        65..=2048 => RowForm::Whole("block", 1, shared(4)),
        2049..=4096 if size > 2 && (lines || held[1] < 8) => RowForm::Whole("wide", 1, shared(held[1])),
        _ => {
            let strip = u64::from(PART_THREADS) * vector * if size == 2 { 1 } else { 2 };
            let parts = vectors.div_ceil(2048).min(MOST_PARTS);
            let chunk = (vectors * vector).div_ceil(parts).next_multiple_of(strip);
            RowForm::Parts { chunk, parts: (vectors * vector).div_ceil(chunk) as u32 }
        }
    }
}

impl RowForm {
    /// The grid of a form over that many rows.
    fn grid(&self, rows: u64) -> Result<Grid> {
        match *self {
            RowForm::Whole(_, of_block, threads) => grid_x(rows.div_ceil(of_block), threads, 0),
            RowForm::Parts { parts, .. } => grid_x(rows * u64::from(parts), PART_THREADS, 0),
        }
    }
}

/// A call over contiguous rows.
pub struct RowCall<'a> {
    /// Kernels without the suffix of a form.
    pub kernel: String,
    /// The one that takes in a part of a row.
    pub partial: String,
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub columns: usize,
    /// Bytes of an element.
    pub size: usize,
    /// Vectors that a thread of the largest blocks holds, of 16-bit elements and of others.
    pub held: [u64; 2],
    /// Bytes of what is kept of a part of a row.
    pub kept: usize,
    /// What is normalised.
    pub x: DevicePtr,
    /// The other operands, null where absent, and the result.
    pub others: &'a [DevicePtr],
    /// Whether a row's vectors may be taken whole where all pointers allow it.
    pub whole: bool,
    /// What follows in every kernel.
    pub last: &'a [Arg<'a>],
}

impl RowCall<'_> {
    /// Launches it.
    pub fn launch(&self, launcher: &Launcher) -> Result<()> {
        let (rows, columns) = (self.rows as u64, self.columns as u64);
        let vector = 16 / self.size as u64;
        let aligned = |pointer: &DevicePtr| pointer.0.is_multiple_of(16);
        let lines = self.whole
            && columns.is_multiple_of(vector)
            && aligned(&self.x)
            && self.others.iter().all(aligned);
        let form = row_form(columns, self.size, lines, self.held);
        let grid = form.grid(rows)?;
        let x = Arg::Ptr(self.x);
        let others = self.others.iter().map(|&pointer| Arg::Ptr(pointer));
        let last = self.last.iter().copied();
        match form {
            RowForm::Whole(suffix, ..) => {
                let sizes = [Arg::U64(rows), Arg::U32(columns as u32)];
                let arguments: Vec<Arg> = [x].into_iter().chain(others).chain(sizes).chain(last).collect();
                launcher.launch(&format!("{}_{suffix}", self.kernel), grid, &arguments)
            }
            RowForm::Parts { chunk, parts } => {
                let workspace = launcher.scratch(self.rows * parts as usize * self.kept)?;
                let kept = Arg::Ptr(workspace.ptr());
                let sizes = [Arg::U64(columns), Arg::U64(chunk), Arg::U32(parts)];
                let arguments: Vec<Arg> = [x, kept].into_iter().chain(sizes).collect();
                launcher.launch(&self.partial, grid, &arguments)?;
                let arguments: Vec<Arg> =
                    [x, kept].into_iter().chain(others).chain(sizes).chain(last).collect();
                launcher.launch(&format!("{}_finish", self.kernel), grid, &arguments)
            }
        }
    }
}

/// The forms of one launch, by length.
#[cfg(test)]
pub const FORMS: [&str; 6] = ["lanes", "pairs", "half", "warp", "block", "wide"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_hold_what_their_kernels_take() {
        for (size, lines, held) in [2, 4, 8].into_iter().flat_map(|size| {
            [true, false].into_iter().flat_map(move |lines| [[2, 8], [4, 4]].map(|held| (size, lines, held)))
        }) {
            let vector = 16 / size as u64;
            let edges = [1024, 2048, 4096].map(|vectors| vectors * vector);
            for columns in (1..600).chain(edges).chain(edges.map(|edge| edge + 1)).chain([1 << 33]) {
                let reach = if lines { columns } else { columns + vector - 1 };
                let of_threads = |vectors: u64, threads: u32, most: u32| {
                    assert!(threads.is_multiple_of(32) && (32..=most).contains(&threads));
                    assert!(reach <= vectors * vector * u64::from(threads));
                };
                match row_form(columns, size, lines, held) {
                    RowForm::Whole("lanes", 32, 256) => assert!(reach <= 8 * vector),
                    RowForm::Whole("pairs", 32, 256) => assert!(reach <= 16 * vector),
                    RowForm::Whole("half", 16, 256) => assert!(reach <= 32 * vector),
                    RowForm::Whole("warp", 8, 256) => assert!(reach <= 64 * vector),
                    RowForm::Whole("block", 1, threads) if size == 2 => {
                        of_threads(held[0], threads, (1024 / held[0]) as u32)
                    }
                    RowForm::Whole("wide", 1, threads) if size == 2 => {
                        of_threads(held[0], threads, (2048 / held[0]) as u32)
                    }
                    RowForm::Whole("block", 1, threads) => of_threads(4, threads, 512),
                    RowForm::Whole("wide", 1, threads) => {
                        of_threads(held[1], threads, (4096 / held[1]) as u32)
                    }
                    RowForm::Parts { chunk, parts } => {
                        let parts = u64::from(parts);
                        assert!(chunk % (512 * vector) == 0 && chunk * parts >= reach);
                        assert!(chunk * (parts - 1) < reach + vector);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn long_rows_are_cut_into_whole_strips() {
        assert_eq!(row_form(20_000, 4, true, [4, 4]), RowForm::Parts { chunk: 8192, parts: 3 });
        assert_eq!(row_form(1 << 30, 4, true, [4, 4]), RowForm::Parts { chunk: 1 << 20, parts: 1024 });
    }
}
