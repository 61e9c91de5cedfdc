//! Column medians by comparator networks: PTX text made at run time for a given number of rows.
//!
//! One thread owns a coordinate (or a few), keeps its whole column in registers and runs a straight-line selection network.
//! Larger row counts are the business of `kernels/select.cu`.

#[cfg(test)]
mod dump;
pub mod network;
mod ptx;
mod table;

pub use ptx::generate;
#[cfg(test)]
use table::NanMethod;
pub use table::{largest, recipe};

use crate::dtype::DType;

/// Which element is the median of an even number of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Even {
    /// Element n/2 of the sorted column.
    Upper,
    /// Element (n-1)/2 of the sorted column.
    Lower,
    /// 0.5 * lower + 0.5 * upper.
    Mean,
}

/// What a NaN does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NanPolicy {
    /// It sorts after +Inf.
    Last,
    /// It does not count; a column of NaN alone gives NaN.
    Omit,
    /// One makes the result NaN.
    Propagate,
    /// Rows with any non-finite value leave the round.
    Drop,
    /// Any non-finite value is an error.
    Reject,
}

impl Even {
    /// Words of the option, in the order of the variants; the first is the default.
    pub const WORDS: &'static [&'static str] = &["upper", "lower", "mean"];

    /// The variant of that word.
    pub fn from_word(word: &str) -> Option<Even> {
        let at = Even::WORDS.iter().position(|known| *known == word)?;
        [Even::Upper, Even::Lower, Even::Mean].get(at).copied()
    }

    /// The rank picked from `n` values; for `Mean` the upper of the two.
    pub fn rank(self, n: usize) -> usize {
        match self {
            Even::Lower => (n - 1) / 2,
            Even::Upper | Even::Mean => n / 2,
        }
    }

    /// Whether two elements are averaged for `n` values.
    pub fn averages(self, n: usize) -> bool {
        self == Even::Mean && n.is_multiple_of(2)
    }

    /// The word of the option.
    pub fn word(self) -> &'static str {
        Even::WORDS[self as usize]
    }
}

impl NanPolicy {
    /// Words of the option, in the order of the variants; the first is the default.
    pub const WORDS: &'static [&'static str] = &["last", "omit", "propagate", "drop", "reject"];

    /// The variant of that word.
    pub fn from_word(word: &str) -> Option<NanPolicy> {
        use NanPolicy::{Drop, Last, Omit, Propagate, Reject};
        let at = NanPolicy::WORDS.iter().position(|known| *known == word)?;
        [Last, Omit, Propagate, Drop, Reject].get(at).copied()
    }

    /// The word of the option.
    pub fn word(self) -> &'static str {
        NanPolicy::WORDS[self as usize]
    }
}

/// PTX text of one kernel and how to launch it.
///
/// Parameters of the entry: `rows` u64, `out` u64, `d` u64, `stride` u64 (elements from row to row), then for
/// [`NanPolicy::Drop`] alone `list` u64 (a pointer to the u32 indices of the rows that take part), then `one` u32, which must
/// be 1 (a value that the assembler cannot see keeps part of the comparators on the multiply pipe).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedKernel {
    /// The module's text.
    pub ptx: String,
    /// Name of its only entry.
    pub entry: String,
    /// Threads per block.
    pub block: u32,
    /// Coordinates per thread: a grid of `ceil(d / (block * coords_per_thread))` blocks covers `d`.
    pub coords_per_thread: u32,
}

/// The kernel for `n` rows, `1 <= n <= largest(dtype)`.
///
/// Under `Drop` and `Reject` the rows are known to be finite when the kernel runs.
pub fn median_ptx(n: u32, dtype: DType, even: Even, nan: NanPolicy) -> GeneratedKernel {
    generate(n as usize, dtype, even, nan, recipe(n as usize, dtype, nan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_their_variants() {
        for word in Even::WORDS {
            assert_eq!(Even::from_word(word).unwrap().word(), *word);
        }
        for word in NanPolicy::WORDS {
            assert_eq!(NanPolicy::from_word(word).unwrap().word(), *word);
        }
        assert_eq!(Even::from_word("middle"), None);
    }

    #[test]
    fn the_median_of_even_counts_follows_the_option() {
        assert_eq!((Even::Upper.rank(4), Even::Lower.rank(4), Even::Mean.rank(4)), (2, 1, 2));
        assert_eq!((Even::Upper.rank(5), Even::Lower.rank(5), Even::Mean.averages(5)), (2, 2, false));
    }
}
