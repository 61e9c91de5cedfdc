//! What the network kernels make of the ranks that the network has brought to their places. Means are sums in float64 in the order of
//! the values, as on the CPU.

use std::fmt::Write;

use super::ptx::{Words, Writer, line};
use super::table::NanMethod;
use super::{Centre, Even, NanPolicy, Statistic};
use crate::dtype::DType;

/// How a value is copied, by words that the assembler cannot see.
#[derive(Clone, Copy)]
enum Way {
    /// Times one.
    Product,
    /// Plus zero.
    Sum,
}

impl Writer {
    /// The register that holds the statistic, given those of the ranks that count.
    pub fn finish(&mut self, picks: &[usize]) -> usize {
        let n = self.n;
        match self.plan.statistic {
            Statistic::Median(even) => {
                let result = self.median(picks);
                let most = if self.plan.nan == NanPolicy::Omit { n - 1 } else { n - 1 - even.rank(n) };
                self.lose(result, most);
                result
            }
            Statistic::Trimmed(cut) => {
                self.mean(picks, false);
                let result = self.rounded();
                self.lose(result, cut);
                result
            }
            Statistic::Nearest { centre, leave } => {
                self.nearest(picks, centre, leave);
                let result = self.rounded();
                self.lose(result, leave.min(centre.most_nans(n)));
                result
            }
        }
    }

    /// NaN where more than `most` NaN were counted.
    fn lose(&mut self, result: usize, most: usize) {
        if self.recipe.nan == NanMethod::None {
            return;
        }
        let Words { bits, nan, .. } = *self.words;
        let most = if self.plan.nan == NanPolicy::Propagate { 0 } else { most };
        line!(self.body, "setp.gt.f32 %p1, %count, 0f{:08X};", (most as f32).to_bits());
        line!(self.body, "selp.{bits} %v{result}, {nan}, %v{result}, %p1;");
    }

    /// The pick, or the mean of two; the canonical NaN of -Inf and +Inf.
    fn median(&mut self, picks: &[usize]) -> usize {
        let result = self.value();
        let Words { float, bits, half, nan, .. } = *self.words;
        let upper = picks[picks.len() - 1];
        let [lower, upper] = *picks else {
            line!(self.body, "mov.{bits} %v{result}, %v{upper};");
            return result;
        };
        let (n, below) = (self.n, self.value());
        let body = &mut self.body;
        line!(
            body,
            "mul.rn.{float} %v{below}, %v{lower}, {half};\nmul.rn.{float} %v{result}, %v{upper}, {half};"
        );
        line!(body, "add.rn.{float} %v{result}, %v{below}, %v{result};");
        if self.plan.nan == NanPolicy::Omit {
            // An odd number of values is left: the pick alone.
            line!(body, "cvt.rzi.s32.f32 %r2, %count;\nsub.s32 %r2, {n}, %r2;\nand.b32 %r2, %r2, 1;");
            line!(body, "setp.ne.s32 %p1, %r2, 0;\nselp.{bits} %v{result}, %v{upper}, %v{result}, %p1;");
        }
        line!(body, "setp.nan.{float} %p1, %v{result}, %v{result};");
        line!(body, "selp.{bits} %v{result}, {nan}, %v{result}, %p1;");
        result
    }

    /// A value in float64 by a way that the assembler cannot tell to give what another gives. It would keep all values in float64 from
    /// one walk over the column to the next, which takes three times the registers.
    fn wide_anew(&mut self, to: &str, value: usize, way: Way) {
        if self.plan.dtype == DType::F64 {
            return self.wide(to, value);
        }
        match way {
            Way::Product => line!(self.body, "mul.lo.u32 %r5, %v{value}, %one;"),
            Way::Sum => line!(self.body, "add.u32 %r5, %v{value}, %zero;"),
        }
        line!(self.body, "cvt.f64.f32 {to}, %r5;");
    }

    /// A value in float64.
    fn wide(&mut self, to: &str, value: usize) {
        if self.plan.dtype == DType::F64 {
            line!(self.body, "mov.f64 {to}, %v{value};");
        } else {
            line!(self.body, "cvt.f64.f32 {to}, %v{value};");
        }
    }

    /// %f0: the mean of those values, summed in their order; `anew` where another walk follows.
    fn mean(&mut self, values: &[usize], anew: bool) {
        line!(self.body, "mov.f64 %f0, 0d0000000000000000;");
        for &value in values {
            if anew {
                self.wide_anew("%f1", value, Way::Product);
            } else {
                self.wide("%f1", value);
            }
            line!(self.body, "add.rn.f64 %f0, %f0, %f1;");
        }
        self.divide(values.len());
    }

    fn divide(&mut self, count: usize) {
        line!(self.body, "div.rn.f64 %f0, %f0, 0d{:016X};", (count as f64).to_bits());
    }

    /// %f0 in the type of the rows, every NaN the canonical one.
    fn rounded(&mut self) -> usize {
        let result = self.value();
        let Words { float, bits, nan, .. } = *self.words;
        if float == "f64" {
            line!(self.body, "mov.f64 %v{result}, %f0;");
        } else {
            line!(self.body, "cvt.rn.f32.f64 %v{result}, %f0;");
        }
        line!(self.body, "setp.nan.f64 %p1, %f0, %f0;\nselp.{bits} %v{result}, {nan}, %v{result}, %p1;");
        result
    }

    /// %f2: the centre of a sorted column.
    fn centre(&mut self, sorted: &[usize], centre: Centre) {
        let n = sorted.len();
        match centre {
            Centre::Trimmed(cut) => {
                self.mean(&sorted[cut..n - cut], true);
                line!(self.body, "mov.f64 %f2, %f0;");
            }
            Centre::Median(even) => {
                self.wide("%f2", sorted[even.rank(n)]);
                if even == Even::Mean && even.averages(n) {
                    self.wide("%f1", sorted[n / 2 - 1]);
                    line!(self.body, "mul.rn.f64 %f1, %f1, 0d3FE0000000000000;");
                    line!(self.body, "fma.rn.f64 %f2, %f2, 0d3FE0000000000000, %f1;");
                }
            }
        }
    }

    /// %f0: the mean of the `n - leave` values of a sorted column nearest to a centre, NaN where that is NaN.
    ///
    /// They lie side by side from `best` on: value `i` below `leave` is dropped where it lies farther below the centre than the
    /// value that would come in for it lies above. That holds up to some `i` and no further, so counting is finding. A value that
    /// is NaN, the last `count` of them, comes in for nothing, and nothing is nearer to -Inf than the lowest. About +Inf those are
    /// near that are +Inf themselves, then the lowest, of which -Inf alone makes a difference.
    fn nearest(&mut self, sorted: &[usize], centre: Centre, leave: usize) {
        let keep = sorted.len() - leave;
        self.centre(sorted, centre);
        line!(self.body, "mov.b32 %r2, {leave};\nmov.b32 %r3, 0;");
        if self.recipe.nan != NanMethod::None {
            line!(self.body, "cvt.rzi.s32.f32 %r4, %count;\nsub.s32 %r2, %r2, %r4;");
        }
        line!(self.body, "setp.eq.f64 %p1, %f2, 0dFFF0000000000000;\nselp.b32 %r2, 0, %r2, %p1;");
        for low in 0..leave {
            self.wide("%f3", sorted[low]);
            self.wide("%f4", sorted[low + keep]);
            line!(self.body, "sub.rn.f64 %f3, %f2, %f3;\nsub.rn.f64 %f4, %f4, %f2;");
            line!(self.body, "setp.gt.s32 %p1, %r2, {low};\nsetp.gtu.and.f64 %p2, %f3, %f4, %p1;");
            line!(self.body, "@%p2 add.s32 %r3, %r3, 1;");
        }
        line!(self.body, "mov.f64 %f0, 0d0000000000000000;");
        for (rank, &value) in sorted.iter().enumerate() {
            self.wide_anew("%f1", value, Way::Sum);
            match (rank < leave, rank >= keep) {
                (false, false) => line!(self.body, "add.rn.f64 %f0, %f0, %f1;"),
                (low, high) => {
                    if low {
                        line!(self.body, "setp.le.s32 %p1, %r3, {rank};");
                    }
                    if high {
                        let and = if low { ".and" } else { "" };
                        let with = if low { ", %p1" } else { "" };
                        line!(self.body, "setp.gt{and}.s32 %p1, %r3, {}{with};", rank - keep);
                    }
                    line!(self.body, "@%p1 add.rn.f64 %f0, %f0, %f1;");
                }
            }
        }
        self.divide(keep);
        let Words { float, infinity, minus_infinity, .. } = *self.words;
        let label = self.value();
        line!(self.body, "setp.neu.f64 %p1, %f2, 0d7FF0000000000000;\n@%p1 bra FINITE{label};");
        line!(self.body, "mov.b32 %r3, {keep};");
        if self.recipe.nan != NanMethod::None {
            line!(self.body, "add.s32 %r3, %r3, %r4;");
        }
        for value in sorted {
            line!(self.body, "setp.eq.{float} %p1, %v{value}, {infinity};\n@%p1 sub.s32 %r3, %r3, 1;");
        }
        line!(self.body, "setp.gt.s32 %p1, %r3, 0;");
        line!(self.body, "setp.eq.and.{float} %p1, %v{}, {minus_infinity}, %p1;", sorted[0]);
        line!(self.body, "selp.f64 %f0, 0d7FF8000000000000, %f2, %p1;\nFINITE{label}:");
        line!(self.body, "setp.nan.f64 %p1, %f2, %f2;\nselp.f64 %f0, %f2, %f0, %p1;");
    }
}
