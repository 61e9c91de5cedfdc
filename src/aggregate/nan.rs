//! The NaN policies, for every rule in this one place: which rows take part, and how many values of a column count.

use super::engine::RowState;
use crate::kernels::columns::NanPolicy;
use crate::{Result, invalid};

/// What a policy makes of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// Rows that take part.
    pub rows: Vec<usize>,
    /// Rows that the policy took out.
    pub dropped: Vec<usize>,
    /// Hostile rows to be expected among those that are left.
    pub f: usize,
    /// Whether the whole result is NaN.
    pub lost: bool,
}

/// Applies a policy to rows of which `f` may be hostile. `whole` says that the rule looks at rows, not at columns: then a NaN
/// that does not count takes its row with it, and one that is passed on takes the whole result.
pub fn settle(policy: NanPolicy, states: &[RowState], f: usize, whole: bool) -> Result<Round> {
    let stays = |state: &RowState| match policy {
        NanPolicy::Drop | NanPolicy::Reject => state.first.is_none(),
        NanPolicy::Omit => !(whole && state.nan),
        NanPolicy::Last | NanPolicy::Propagate => true,
    };
    let (rows, dropped): (Vec<usize>, Vec<usize>) = (0..states.len()).partition(|&row| stays(&states[row]));
    if policy == NanPolicy::Reject
        && let Some(&row) = dropped.first()
    {
        let coordinate = states[row].first.unwrap_or(0);
        return invalid!("aggregate: 'rows' holds NaN or an infinity: row {row}, coordinate {coordinate}");
    }
    if rows.is_empty() {
        let what = if policy == NanPolicy::Omit { "NaN" } else { "NaN or an infinity" };
        return invalid!("aggregate: nan '{}' leaves no row, every row holds {what}", policy.word());
    }
    let f = if policy == NanPolicy::Drop { f.saturating_sub(dropped.len()) } else { f };
    let lost = policy == NanPolicy::Propagate && whole && states.iter().any(|state| state.nan);
    Ok(Round { rows, dropped, f, lost })
}

/// How many of a column's `n` values count when `nans` of them are NaN; `None` where the result is NaN. The NaN that count stand
/// at the end of the sorted column.
pub fn counted(policy: NanPolicy, n: usize, nans: usize) -> Option<usize> {
    match policy {
        NanPolicy::Propagate if nans > 0 => None,
        NanPolicy::Omit if nans == n => None,
        NanPolicy::Omit => Some(n - nans),
        _ => Some(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(kinds: &str) -> Vec<RowState> {
        let state = |kind| match kind {
            'n' => RowState { first: Some(3), nan: true },
            'i' => RowState { first: Some(1), nan: false },
            _ => RowState::default(),
        };
        kinds.chars().map(state).collect()
    }

    #[test]
    fn policies_choose_the_rows() {
        let round = |policy, whole| settle(policy, &states("finif"), 2, whole).unwrap();
        assert_eq!(round(NanPolicy::Last, true).rows, [0, 1, 2, 3, 4]);
        assert_eq!(round(NanPolicy::Omit, true).rows, [0, 1, 3, 4]);
        assert_eq!(round(NanPolicy::Omit, true).f, 2);
        assert_eq!(round(NanPolicy::Omit, false).rows.len(), 5);
        let drop = round(NanPolicy::Drop, false);
        assert_eq!((drop.rows, drop.dropped, drop.f), (vec![0, 4], vec![1, 2, 3], 0));
        assert!(round(NanPolicy::Propagate, true).lost);
        assert!(!round(NanPolicy::Propagate, false).lost);
        let text = settle(NanPolicy::Reject, &states("finif"), 2, false).unwrap_err().to_string();
        assert!(text.contains("row 1, coordinate 1"), "{text}");
        assert!(settle(NanPolicy::Drop, &states("in"), 0, false).is_err());
    }

    #[test]
    fn counts_of_columns() {
        assert_eq!(counted(NanPolicy::Last, 5, 5), Some(5));
        assert_eq!(counted(NanPolicy::Omit, 5, 2), Some(3));
        assert_eq!(counted(NanPolicy::Omit, 5, 5), None);
        assert_eq!(counted(NanPolicy::Propagate, 5, 1), None);
        assert_eq!(counted(NanPolicy::Propagate, 5, 0), Some(5));
    }
}
