//! The table of rules and the table of pre-aggregations: what options, typings, documents and tests derive from.

use super::rules::{self, Context, Verdict};
use super::{Engine, pre};
use crate::Result;
use crate::kernels::columns::NanPolicy;
use crate::ops::{Attribute, Kind, attribute};

/// What must hold of n rows, f of them hostile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// More honest rows than hostile ones.
    Majority,
    /// One neighbour to sum at least.
    Krum,
    /// Enough rows to trim what Krum picked.
    Bulyan,
    /// A majority, of few enough rows to try all subsets.
    Subsets,
}

/// Rows of which the least diameter is still searched for exactly.
pub const MOST_SUBSET_ROWS: usize = 20;

impl Bound {
    /// As documents write it.
    pub fn text(self) -> &'static str {
        match self {
            Bound::Majority => "n > 2f",
            Bound::Krum => "n - f - 2 >= 1",
            Bound::Bulyan => "n >= 4f + 3",
            Bound::Subsets => "n > 2f and n <= 20",
        }
    }

    /// Whether it holds.
    pub fn holds(self, n: usize, f: usize) -> bool {
        let majority = n > f.saturating_mul(2);
        match self {
            Bound::Majority => majority,
            Bound::Krum => n >= f.saturating_add(3),
            Bound::Bulyan => n >= f.saturating_mul(4).saturating_add(3),
            Bound::Subsets => majority && n <= MOST_SUBSET_ROWS,
        }
    }
}

/// Decides a round.
pub type Run = fn(&Context, &dyn Engine) -> Result<Verdict>;

/// One rule.
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub doc: &'static str,
    /// What must hold.
    pub bound: Bound,
    /// Whether it looks at rows as wholes, not at columns.
    pub whole: bool,
    /// Options that must be given; of several in one text, one.
    pub required: &'static [&'static str],
    /// Options of its own.
    pub parameters: &'static [Attribute],
    /// How often its engines visit the rows.
    pub passes: u64,
    /// The rule itself.
    pub run: Run,
}

/// One pre-aggregation.
pub struct Pre {
    /// Its name.
    pub name: &'static str,
    /// What it makes of the rows.
    pub doc: &'static str,
    /// Options that must be given.
    pub required: &'static [&'static str],
    /// Options of its own.
    pub parameters: &'static [Attribute],
    /// Combinations of rows that take their place.
    pub run: pre::Run,
}

const EVEN: Attribute = attribute(
    "even",
    Kind::Choice(&["upper", "lower", "mean"]),
    "Which of the two middle values an even count takes, or their mean.",
);
const MIDDLE: Attribute = attribute(
    "even",
    Kind::Choice(&["mean", "upper", "lower"]),
    "The median that values are near to, where their count is even.",
);
const WEIGHTS: Attribute =
    attribute("weights", Kind::Floats, "One weight for each row, from 0 on, as the number of its examples.");
const NEIGHBOURS: Attribute = attribute(
    "neighbours",
    Kind::Choice(&["n-f-2", "n-f-1"]),
    "How many neighbours a score sums: as the paper has it, or one more.",
);

/// Every rule.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    Rule {
        name: "mean", doc: "The mean of each column. It withstands no hostile row.",
        bound: Bound::Majority, whole: false, required: &[], parameters: &[], passes: 1, run: rules::mean,
    },
    Rule {
        name: "weightedMean", doc: "The weighted mean of each column (FedAvg). It withstands no hostile row.",
        bound: Bound::Majority, whole: false, required: &["weights"], parameters: &[WEIGHTS], passes: 1, run: rules::mean,
    },
    Rule {
        name: "median", doc: "The median of each column.",
        bound: Bound::Majority, whole: false, required: &[], parameters: &[EVEN], passes: 1, run: rules::median,
    },
    Rule {
        name: "weightedMedian",
        doc: "Of each sorted column the value at which the running weight reaches half of the total; where it is exactly half, that value is the lower one and the next the upper.",
        bound: Bound::Majority, whole: false, required: &["weights"], parameters: &[WEIGHTS, EVEN], passes: 1, run: rules::weighted_median,
    },
    Rule {
        name: "trimmedMean", doc: "Of each column the mean without its f smallest and f largest values.",
        bound: Bound::Majority, whole: false, required: &["f or fraction"],
        parameters: &[attribute("fraction", Kind::Float(f64::NAN), "Instead of f: the share of the values that is left out at each end, below 0.5; their count is rounded down, and a product within 1e-9 of the next whole number is that number.")],
        passes: 1, run: rules::trimmed_mean,
    },
    Rule {
        name: "meamed", doc: "Of each column the mean of the n - f values nearest to its median.",
        bound: Bound::Majority, whole: false, required: &["f"], parameters: &[MIDDLE], passes: 1, run: rules::meamed,
    },
    Rule {
        name: "phocas", doc: "Of each column the mean of the n - f values nearest to its trimmed mean.",
        bound: Bound::Majority, whole: false, required: &["f"], parameters: &[], passes: 1, run: rules::phocas,
    },
    Rule {
        name: "krum", doc: "The row with the least sum of squared distances to its n - f - 2 nearest rows.",
        bound: Bound::Krum, whole: true, required: &["f"], parameters: &[NEIGHBOURS], passes: 2, run: rules::krum,
    },
    Rule {
        name: "multiKrum", doc: "The mean of the m rows with the least scores of Krum.",
        bound: Bound::Krum, whole: true, required: &["f"],
        parameters: &[attribute("m", Kind::Float(f64::NAN), "Rows to average, 1 to n - f; n - f - 2 when left out."), NEIGHBOURS],
        passes: 2, run: rules::multi_krum,
    },
    Rule {
        name: "bulyan",
        doc: "n - 2f rows by Krum again and again, each time among the rows not picked yet, then of each column the mean of the n - 4f values nearest to the median of the picked.",
        bound: Bound::Bulyan, whole: true, required: &["f"], parameters: &[MIDDLE], passes: 2, run: rules::bulyan,
    },
    Rule {
        name: "mda", doc: "The mean of the n - f rows whose largest distance from each other is least, found exactly.",
        bound: Bound::Subsets, whole: true, required: &["f"], parameters: &[], passes: 2, run: rules::mda,
    },
    Rule {
        name: "geometricMedian", doc: "The point with the least sum of distances to the rows, by Weiszfeld's steps on the weights of the rows.",
        bound: Bound::Majority, whole: true, required: &[],
        parameters: &[
            attribute("nu", Kind::Float(0.0), "Distances below this count as this. Beneath it they count as 1e-12 of the median distance."),
            attribute("iterations", Kind::Float(1000.0), "Steps at most."),
            attribute("tolerance", Kind::Float(1e-12), "A step shorter than this part of the median distance is the last."),
        ],
        passes: 3, run: rules::geometric_median,
    },
    Rule {
        name: "centeredClipping", doc: "From a starting point, again and again the mean of the steps to all rows, each cut to the length tau.",
        bound: Bound::Majority, whole: true, required: &["tau"],
        parameters: &[
            attribute("tau", Kind::Float(f64::NAN), "Longest step, above 0."),
            attribute("iterations", Kind::Float(1.0), "Steps."),
        ],
        passes: 3, run: rules::centered_clipping,
    },
    Rule {
        name: "cge", doc: "The mean of the n - f rows of least length.",
        bound: Bound::Majority, whole: true, required: &["f"], parameters: &[], passes: 2, run: rules::cge,
    },
    Rule {
        name: "monna", doc: "The mean of the n - f rows nearest to a trusted row, itself among them.",
        bound: Bound::Majority, whole: true, required: &["f", "trusted"],
        parameters: &[attribute("trusted", Kind::Float(f64::NAN), "Number of the trusted row.")],
        passes: 2, run: rules::monna,
    },
];

/// Every pre-aggregation.
#[rustfmt::skip]
pub const PRES: &[Pre] = &[
    Pre {
        name: "nnm", doc: "Each row becomes the mean of the n - f rows nearest to it, itself among them.",
        required: &["f"], parameters: &[], run: pre::nnm,
    },
    Pre {
        name: "bucketing", doc: "Rows are shuffled, and each bucket of them becomes its mean; the last one may be smaller.",
        required: &["bucketSize"],
        parameters: &[
            attribute("bucketSize", Kind::Float(f64::NAN), "Rows of a bucket."),
            attribute("seed", Kind::Float(0.0), "Seed of the shuffle, a whole number from 0 on."),
        ],
        run: pre::bucketing,
    },
    Pre {
        name: "clipping", doc: "Rows longer than a bound are shortened to it.",
        required: &["clip"], parameters: &[attribute("clip", Kind::Float(f64::NAN), "The bound, above 0.")], run: pre::clipping,
    },
    Pre {
        name: "arc", doc: "The floor(2f (n - f) / n) longest rows are shortened to the length of the next one.",
        required: &["f"], parameters: &[], run: pre::arc,
    },
];

/// Options of every rule.
pub const COMMON: &[Attribute] = &[
    attribute(
        "f",
        Kind::Float(f64::NAN),
        "How many rows may be hostile. Where a rule does not need it, it is only held to the rule's bound; 0 when left out.",
    ),
    attribute(
        "nan",
        Kind::Choice(NanPolicy::WORDS),
        "NaN sorts last, does not count, passes on, drops its row (as infinities do), or is refused (likewise).",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_complete_and_names_unique() {
        let rules = RULES.iter().map(|rule| (rule.name, rule.doc, rule.parameters, rule.required));
        let pres = PRES.iter().map(|pre| (pre.name, pre.doc, pre.parameters, pre.required));
        let mut names = std::collections::HashSet::new();
        for (name, doc, parameters, required) in rules.chain(pres) {
            assert!(names.insert(name), "{name} appears twice");
            assert!(doc.ends_with('.'), "{name}: the doc line is a sentence");
            let known = |word: &str| COMMON.iter().chain(parameters).any(|parameter| parameter.name == word);
            assert!(required.iter().flat_map(|text| text.split(" or ")).all(known), "{name}");
            assert!(parameters.iter().all(|parameter| parameter.doc.ends_with('.')), "{name}");
        }
    }

    #[test]
    fn bounds_hold_where_their_texts_say() {
        assert!(Bound::Majority.holds(3, 1) && !Bound::Majority.holds(2, 1));
        assert!(Bound::Krum.holds(3, 0) && Bound::Krum.holds(4, 1) && !Bound::Krum.holds(3, 1));
        assert!(Bound::Bulyan.holds(7, 1) && !Bound::Bulyan.holds(6, 1));
        assert!(Bound::Subsets.holds(20, 9) && !Bound::Subsets.holds(21, 9) && !Bound::Subsets.holds(20, 10));
        assert!(!Bound::Bulyan.holds(7, usize::MAX));
    }
}
