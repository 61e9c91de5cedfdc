//! How kernels that keep a contiguous row in registers are launched: by the row's length.

use crate::Result;
use crate::driver::Grid;
use crate::kernels::grid_x;

/// The kernel form for rows of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowForm {
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
pub const PART_THREADS: u32 = 512;

/// Stretches of a row that `finish` merges at most.
const MOST_PARTS: u64 = 1024;

/// The form for rows of `columns` elements of `size` bytes.
pub fn row_form(columns: u64, size: usize) -> RowForm {
    let vector = 16 / size as u64;
    let vectors = columns.div_ceil(vector);
    match vectors {
        0..=8 => RowForm::Whole("lanes", 32, 256),
        9..=64 => RowForm::Whole("warp", 8, 256),
        65..=2048 => {
            let threads = (vectors.div_ceil(2) as u32).next_power_of_two().clamp(64, 1024);
            RowForm::Whole("block", 1, threads)
        }
        2049..=4096 if size > 2 => RowForm::Whole("wide", 1, PART_THREADS),
        _ => {
            let strip = u64::from(PART_THREADS) * 4 * vector;
            let parts = columns.div_ceil(strip).min(MOST_PARTS);
            let chunk = columns.div_ceil(parts).next_multiple_of(strip);
            RowForm::Parts { chunk, parts: columns.div_ceil(chunk) as u32 }
        }
    }
}

impl RowForm {
    /// The grid of a form over that many rows.
    pub fn grid(&self, rows: u64) -> Result<Grid> {
        match *self {
            RowForm::Whole(_, of_block, threads) => grid_x(rows.div_ceil(of_block), threads, 0),
            RowForm::Parts { parts, .. } => grid_x(rows * u64::from(parts), PART_THREADS, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_hold_what_their_kernels_take() {
        for size in [2, 4, 8] {
            let vector = 16 / size as u64;
            for columns in
                (1..600).chain([2048 * vector, 2048 * vector + 1, 4096 * vector, 4096 * vector + 1, 1 << 33])
            {
                match row_form(columns, size) {
                    RowForm::Whole("lanes", 32, 256) => assert!(columns <= 8 * vector),
                    RowForm::Whole("warp", 8, 256) => assert!(columns <= 64 * vector),
                    RowForm::Whole("block", 1, threads) => {
                        assert!(threads.is_power_of_two() && (64..=1024).contains(&threads));
                        assert!(columns <= 2 * vector * u64::from(threads));
                    }
                    RowForm::Whole("wide", 1, 512) => assert!(columns <= 4096 * vector),
                    RowForm::Parts { chunk, parts } => {
                        let parts = u64::from(parts);
                        assert!(
                            chunk % vector == 0 && chunk * parts >= columns && chunk * (parts - 1) < columns
                        );
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn long_rows_are_cut_into_whole_strips() {
        assert_eq!(row_form(20_000, 4), RowForm::Parts { chunk: 8192, parts: 3 });
        assert_eq!(row_form(1 << 30, 4), RowForm::Parts { chunk: 1 << 20, parts: 1024 });
    }
}
