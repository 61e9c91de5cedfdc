//! median: the median of each column, whatever the rows hold.

pub(crate) mod cpu;
mod cuda;

use super::spec::*;
use super::{Attrs, Call, WIDE_FLOATS};
use crate::kernels::columns::{Even, NanPolicy};
use crate::{Result, invalid, mismatch};

/// The family's rows.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "median",
    operands: &[required("rows")],
    attributes: &[
        attribute(
            "even",
            Kind::Choice(Even::WORDS),
            "Which of the two middle values an even count takes, or their mean.",
        ),
        attribute(
            "nan",
            Kind::Choice(NanPolicy::WORDS),
            "NaN sorts last, does not count, passes on, drops its row (as infinities do), or is refused (likewise).",
        ),
    ],
    dtypes: WIDE_FLOATS,
    results: Results::One,
    shape,
    cpu: cpu::run,
    cuda: cuda::run,
    tolerance: Tolerance::Rounded,
    doc: "The median of each column of rows [n, d], n at least 1; picked values are exact.",
}];

fn shape(spec: &OpSpec, inputs: Metas, _: &Attrs) -> Result<Vec<Meta>> {
    let rows = spec.operand(inputs, 0)?;
    spec.expect_rank(0, rows, 2..=2)?;
    if rows.dims[0] == 0 {
        return mismatch!("median: 'rows' must have at least one row, got dims {:?}", rows.dims);
    }
    if u32::try_from(rows.dims[0]).is_err() {
        return mismatch!("median: 'rows' must have fewer than 2^32 rows, got dims {:?}", rows.dims);
    }
    Ok(vec![Meta::new(rows.dtype, [rows.dims[1]])])
}

/// A call's attributes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Which of the two middle values an even count takes.
    pub even: Even,
    /// What a NaN does.
    pub nan: NanPolicy,
}

impl Options {
    fn of(call: &Call) -> Options {
        Options {
            even: Even::from_word(call.attrs.choice("even")).unwrap_or(Even::Upper),
            nan: NanPolicy::from_word(call.attrs.choice("nan")).unwrap_or(NanPolicy::Last),
        }
    }

    /// Whether rows have to be searched for values that are not finite first.
    fn searches(self) -> bool {
        matches!(self.nan, NanPolicy::Drop | NanPolicy::Reject)
    }

    /// The rows that take part, `None` for all; `first[row]` is the row's lowest coordinate that is not finite, `u64::MAX`
    /// where there is none.
    fn surviving(self, first: &[u64]) -> Result<Option<Vec<u32>>> {
        let finite = |row: &usize| first[*row] == u64::MAX;
        let Some(bad) = (0..first.len()).find(|row| !finite(row)) else {
            return Ok(None);
        };
        if self.nan == NanPolicy::Reject {
            return invalid!("median: 'rows' holds NaN or an infinity: row {bad}, coordinate {}", first[bad]);
        }
        let list: Vec<u32> = (0..first.len()).filter(finite).map(|row| row as u32).collect();
        if list.is_empty() {
            return invalid!("median: nan 'drop' leaves no row, every row holds NaN or an infinity");
        }
        Ok(Some(list))
    }
}

#[cfg(test)]
mod tests;
