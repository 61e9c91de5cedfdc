//! Per-size choices of the generated kernels, as data. Measured on an H200; sweep again before changing a row.

use super::{NanPolicy, Plan, Statistic};
use crate::dtype::DType;

/// How a kernel finds and replaces NaN before its network, which would lose values to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NanMethod {
    /// The values are known to be finite.
    None,
    /// Every value is counted and replaced: time does not depend on the data.
    Map,
    /// A sum of v * 0 finds columns with NaN or Inf; only those are counted and replaced.
    Flag,
}

/// How to build one kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// Share of the full comparators whose larger value comes from the multiply pipe as a + b - min.
    pub mix: f64,
    /// Coordinates per thread, a block apart, so that pointers need no vector alignment.
    pub coords_per_thread: usize,
    /// Treatment of NaN.
    pub nan: NanMethod,
    /// Threads per block.
    pub block: usize,
}

/// Up to `rows` rows: mix share, coordinates per thread, NaN method.
type Row = (usize, f64, usize, NanMethod);

const F32: &[Row] = &[
    (4, 0.67, 4, NanMethod::Map),
    (64, 0.67, 1, NanMethod::Map),
    (80, 0.6, 1, NanMethod::Flag),
    (100, 0.5, 1, NanMethod::Flag),
];

const F64: &[Row] =
    &[(4, 0.0, 2, NanMethod::Flag), (32, 0.0, 1, NanMethod::Flag), (64, 0.4, 1, NanMethod::Flag)];

/// Sorted columns: more comparators are whole than in a selection, and the sums leave less of the multiply pipe.
const F32_SORTED: &[Row] = &[
    (4, 0.67, 4, NanMethod::Map),
    (32, 0.67, 1, NanMethod::Map),
    (64, 0.58, 1, NanMethod::Map),
    (100, 0.5, 1, NanMethod::Flag),
];

fn rows(dtype: DType) -> &'static [Row] {
    match dtype {
        DType::F32 => F32,
        DType::F64 => F64,
        other => unreachable!("median of {other}"),
    }
}

/// The largest number of rows that a network kernel takes.
pub fn largest(dtype: DType) -> usize {
    rows(dtype).last().map_or(0, |row| row.0)
}

/// The choices for a plan; beyond the table the last row serves.
pub fn recipe(plan: Plan) -> Recipe {
    let sorted = plan.dtype == DType::F32 && !matches!(plan.statistic, Statistic::Median(_));
    let table = if sorted { F32_SORTED } else { rows(plan.dtype) };
    let &(_, mix, coords_per_thread, method) =
        table.iter().find(|row| plan.n <= row.0).unwrap_or(&table[table.len() - 1]);
    let nan = match plan.nan {
        NanPolicy::Drop | NanPolicy::Reject => NanMethod::None,
        // The replacement depends on the count, so it takes two walks over the column.
        NanPolicy::Omit => NanMethod::Flag,
        NanPolicy::Last | NanPolicy::Propagate => method,
    };
    Recipe { mix, coords_per_thread, nan, block: 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_order() {
        for table in [F32, F32_SORTED, F64] {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        assert_eq!((largest(DType::F32), largest(DType::F64)), (100, 64));
    }

    #[test]
    fn checked_rows_need_no_nan_method() {
        let statistic = Statistic::Median(crate::kernels::columns::Even::Upper);
        let method = |nan| recipe(Plan { n: 9, dtype: DType::F32, statistic, nan, listed: false }).nan;
        assert_eq!(method(NanPolicy::Drop), NanMethod::None);
        assert_eq!(method(NanPolicy::Last), NanMethod::Map);
        assert_eq!(method(NanPolicy::Omit), NanMethod::Flag);
    }
}
