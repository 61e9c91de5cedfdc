//! Statistics of columns by comparator networks: PTX text made at run time for a given number of rows.
//!
//! One thread owns a coordinate (or a few), keeps its whole column in registers and runs a straight-line network that brings the
//! ranks that count to their places. Larger row counts are the business of `kernels/select.cu`.

#[cfg(test)]
mod dump;
mod finish;
mod launch;
pub mod network;
mod ptx;
mod table;

pub use launch::{At, Columns};
use ptx::generate;
#[cfg(test)]
use table::NanMethod;
use table::{largest, recipe};

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

/// What the values nearest to it are looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Centre {
    /// The median.
    Median(Even),
    /// The mean without so many values at each end.
    Trimmed(usize),
}

impl Centre {
    fn word(self) -> String {
        match self {
            Centre::Median(even) => format!("median_{}", even.word()),
            Centre::Trimmed(cut) => format!("trimmed_{cut}"),
        }
    }

    /// Most NaN among `n` values that leave it a number.
    fn most_nans(self, n: usize) -> usize {
        match self {
            Centre::Median(even) => n - 1 - even.rank(n),
            Centre::Trimmed(cut) => cut,
        }
    }
}

/// What a kernel makes of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// The median.
    Median(Even),
    /// The mean without so many values at each end, fewer than half of all together.
    Trimmed(usize),
    /// The mean of all but `leave` values, those nearest to a centre; of equally near ones the lower.
    Nearest {
        /// The centre.
        centre: Centre,
        /// Values left out, fewer than all.
        leave: usize,
    },
}

impl Statistic {
    /// Word of the kernel's name.
    pub fn word(self) -> String {
        match self {
            Statistic::Median(even) => Centre::Median(even).word(),
            Statistic::Trimmed(cut) => Centre::Trimmed(cut).word(),
            Statistic::Nearest { centre, leave } => format!("nearest_{leave}_{}", centre.word()),
        }
    }
}

/// What a kernel is for. Under `Drop` and `Reject` the rows are known to be finite when it runs; `Omit` goes with medians alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Number of rows, `1 <= n <= largest(dtype)`.
    pub n: usize,
    /// Their type.
    pub dtype: DType,
    /// The statistic.
    pub statistic: Statistic,
    /// What a NaN does.
    pub nan: NanPolicy,
    /// Whether rows come as a list of addresses instead of lying a stride apart.
    pub listed: bool,
}

impl Plan {
    /// Name of the kernel.
    pub fn name(self) -> String {
        let Plan { n, dtype, statistic, nan, listed } = self;
        let list = if listed { "_listed" } else { "" };
        format!("columns_{}_{n}_{}_{}{list}", dtype.suffix(), statistic.word(), nan.word())
    }
}

/// PTX text of one kernel and how to launch it.
///
/// Parameters of the entry: `rows` u64 and `stride` u64 (elements from row to row), or, where they are listed, `rows` as n u64 by
/// value; then `out` u64, `d` u64, and `one` u32, which must be 1 (a value that the assembler cannot see keeps part of the
/// comparators on the multiply pipe).
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

/// The kernel for a plan.
pub fn columns_ptx(plan: Plan) -> GeneratedKernel {
    generate(plan, recipe(plan))
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
