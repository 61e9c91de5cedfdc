//! PTX text of the network kernels (ISA 7.0, sm_75).
//!
//! NaN must be gone before the network: min and max of two NaN with different payloads make up a third value, and the sum form
//! a + b - min would then give bits that no input had. NaN becomes +Inf and is counted; the count tells at the end whether the
//! picked rank falls among the NaN. Under `omit` the first few NaN of a column become -Inf instead, as many as shift the wanted
//! rank of the remaining values onto the rank that the network picks.

use std::fmt::Write;

use super::network::{Network, Step};
use super::table::{NanMethod, Recipe};
use super::{Centre, Even, GeneratedKernel, NanPolicy, Plan, Statistic};
use crate::dtype::DType;

/// How a type is spelt.
pub(super) struct Words {
    pub float: &'static str,
    pub bits: &'static str,
    pub size: usize,
    pub zero: &'static str,
    pub half: &'static str,
    pub infinity: &'static str,
    pub minus_infinity: &'static str,
    pub nan: &'static str,
}

const F32: Words = Words {
    float: "f32",
    bits: "b32",
    size: 4,
    zero: "0f00000000",
    half: "0f3F000000",
    infinity: "0f7F800000",
    minus_infinity: "0fFF800000",
    nan: "0x7FC00000",
};

const F64: Words = Words {
    float: "f64",
    bits: "b64",
    size: 8,
    zero: "0d0000000000000000",
    half: "0d3FE0000000000000",
    infinity: "0d7FF0000000000000",
    minus_infinity: "0dFFF0000000000000",
    nan: "0x7FF8000000000000",
};

/// Appends one instruction line.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => { writeln!($text, $($arg)*).expect("writing to a String") };
}

pub(super) use line;

/// The kernel for a plan by that recipe.
pub fn generate(plan: Plan, recipe: Recipe) -> GeneratedKernel {
    let words = match plan.dtype {
        DType::F32 => &F32,
        DType::F64 => &F64,
        other => unreachable!("columns of {other}"),
    };
    let entry = plan.name();
    let mut writer = Writer { words, n: plan.n, plan, recipe, body: String::new(), values: 0 };
    writer.prologue();
    let columns: Vec<Vec<usize>> = writer.load();
    for (coordinate, mut column) in columns.into_iter().enumerate() {
        writer.replace_nan(coordinate, &column);
        let picks = writer.pick(&mut column);
        let result = writer.finish(&picks);
        writer.store(coordinate, result);
    }
    GeneratedKernel {
        ptx: writer.module(&entry),
        entry,
        block: recipe.block as u32,
        coords_per_thread: recipe.coords_per_thread as u32,
    }
}

pub(super) struct Writer {
    pub words: &'static Words,
    pub n: usize,
    pub plan: Plan,
    pub recipe: Recipe,
    pub body: String,
    /// Value registers in use: each result of the network gets a fresh one.
    values: usize,
}

impl Writer {
    pub fn value(&mut self) -> usize {
        self.values += 1;
        self.values - 1
    }

    /// Ranks that the network brings to their places, ascending.
    fn ranks(&self) -> Vec<usize> {
        let n = self.n;
        match self.plan.statistic {
            Statistic::Median(even) => {
                let upper = even.rank(n);
                let two = match self.plan.nan {
                    NanPolicy::Omit => even == Even::Mean && n > 1,
                    _ => even.averages(n),
                };
                if two { vec![upper - 1, upper] } else { vec![upper] }
            }
            Statistic::Trimmed(cut) => (cut..n - cut).collect(),
            Statistic::Nearest { .. } => (0..n).collect(),
        }
    }

    fn module(&self, entry: &str) -> String {
        let mut text = String::with_capacity(self.body.len() + 2048);
        line!(text, ".version 7.0\n.target sm_75\n.address_size 64\n");
        line!(text, ".visible .entry {entry}(");
        if self.plan.listed {
            line!(text, ".param .align 8 .b8 rows[{}],", self.n * 8);
        } else {
            line!(text, ".param .u64 rows,\n.param .u64 stride,");
        }
        line!(text, ".param .u64 out,\n.param .u64 d,\n.param .u32 one\n)");
        line!(text, ".maxntid {}, 1, 1\n{{", self.recipe.block);
        line!(text, ".reg .{} %v<{}>;\n.reg .{} %acc<2>;", self.words.bits, self.values, self.words.bits);
        line!(
            text,
            ".reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b32 %one, %minus, %zero;\n.reg .f32 %count;"
        );
        line!(text, ".reg .b64 %x<{0}>;\n.reg .b64 %a<{0}>;", self.recipe.coords_per_thread);
        line!(text, ".reg .b64 %rows, %out, %d, %stride, %row, %at;\n.reg .f64 %f<8>;");
        text.push_str(&self.body);
        line!(text, "EXIT:\nret;\n}}");
        text
    }

    fn prologue(&mut self) {
        let Recipe { block, coords_per_thread, .. } = self.recipe;
        let (size, listed) = (self.words.size, self.plan.listed);
        let body = &mut self.body;
        line!(body, "ld.param.u64 %out, [out];\nld.param.u64 %d, [d];\ncvta.to.global.u64 %out, %out;");
        line!(body, "ld.param.u32 %one, [one];\nsub.u32 %minus, 0, %one;\nsub.u32 %zero, %one, 1;");
        if !listed {
            line!(body, "ld.param.u64 %rows, [rows];\nld.param.u64 %stride, [stride];");
            line!(body, "cvta.to.global.u64 %rows, %rows;\nmul.lo.u64 %stride, %stride, {size};");
        }
        line!(body, "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\ncvt.u64.u32 %x0, %r0;");
        line!(body, "mul.wide.u32 %row, %r1, {};\nadd.u64 %x0, %x0, %row;", block * coords_per_thread);
        line!(body, "setp.ge.u64 %p0, %x0, %d;\n@%p0 bra EXIT;");
        for k in 1..coords_per_thread {
            line!(body, "add.u64 %x{k}, %x0, {};", k * block);
        }
        for k in 0..coords_per_thread {
            // A coordinate past the end reads the first one again and is not stored.
            line!(body, "setp.lt.u64 %p0, %x{k}, %d;\nselp.b64 %a{k}, %x{k}, %x0, %p0;");
            if listed {
                line!(body, "mul.lo.u64 %a{k}, %a{k}, {size};");
            } else {
                line!(body, "mad.lo.u64 %a{k}, %a{k}, {size}, %rows;");
            }
        }
    }

    /// Loads every column; returns the registers, coordinate by coordinate.
    fn load(&mut self) -> Vec<Vec<usize>> {
        let coordinates = self.recipe.coords_per_thread;
        let mut columns = vec![Vec::with_capacity(self.n); coordinates];
        for row in 0..self.n {
            if self.plan.listed {
                line!(self.body, "ld.param.u64 %row, [rows+{}];\ncvta.to.global.u64 %row, %row;", row * 8);
            }
            for (k, column) in columns.iter_mut().enumerate() {
                let value = self.value();
                let (body, float) = (&mut self.body, self.words.float);
                if self.plan.listed {
                    line!(body, "add.u64 %at, %a{k}, %row;\nld.global.nc.{float} %v{value}, [%at];");
                } else {
                    line!(body, "ld.global.nc.{float} %v{value}, [%a{k}];");
                    if row + 1 < self.n {
                        line!(body, "add.u64 %a{k}, %a{k}, %stride;");
                    }
                }
                column.push(value);
            }
        }
        columns
    }

    fn replace_nan(&mut self, coordinate: usize, column: &[usize]) {
        let Words { float, zero, .. } = *self.words;
        line!(self.body, "mov.f32 %count, 0f00000000;");
        match self.recipe.nan {
            NanMethod::None => {}
            NanMethod::Map => self.count_and_map(column),
            NanMethod::Flag => {
                line!(self.body, "mov.{float} %acc0, {zero};\nmov.{float} %acc1, {zero};");
                for (at, value) in column.iter().enumerate() {
                    let acc = at % 2;
                    line!(self.body, "fma.rn.{float} %acc{acc}, %v{value}, {zero}, %acc{acc};");
                }
                line!(self.body, "setp.num.{float} %p0, %acc0, %acc1;\n@%p0 bra CLEAN{coordinate};");
                if self.plan.nan == NanPolicy::Omit {
                    self.count_and_balance(column);
                } else {
                    self.count_and_map(column);
                }
                line!(self.body, "CLEAN{coordinate}:");
            }
        }
    }

    fn count_and_map(&mut self, column: &[usize]) {
        let Words { float, infinity, .. } = *self.words;
        for value in column {
            line!(
                self.body,
                "setp.nan.{float} %p1, %v{value}, %v{value};\n@%p1 add.f32 %count, %count, 0f3F800000;"
            );
            if float == "f32" {
                line!(self.body, "min.f32 %v{value}, %v{value}, {infinity};");
            } else {
                line!(self.body, "@%p1 mov.{float} %v{value}, {infinity};");
            }
        }
    }

    /// `omit`: rank(n) - rank(n - count) of the NaN become -Inf, the others +Inf.
    fn count_and_balance(&mut self, column: &[usize]) {
        let Words { float, bits, infinity, minus_infinity, .. } = *self.words;
        let (Statistic::Median(even) | Statistic::Nearest { centre: Centre::Median(even), .. }) =
            self.plan.statistic
        else {
            return;
        };
        let body = &mut self.body;
        for value in column {
            line!(
                body,
                "setp.nan.{float} %p1, %v{value}, %v{value};\n@%p1 add.f32 %count, %count, 0f3F800000;"
            );
        }
        line!(body, "cvt.rzi.s32.f32 %r2, %count;\nsub.s32 %r2, {}, %r2;", self.n);
        if even == Even::Lower {
            line!(body, "sub.s32 %r2, %r2, 1;");
        }
        line!(body, "shr.s32 %r2, %r2, 1;\nsub.s32 %r2, {}, %r2;", even.rank(self.n));
        line!(body, "mov.{float} %acc0, {infinity};");
        for value in column {
            line!(body, "setp.nan.{float} %p1, %v{value}, %v{value};\nsetp.gt.s32 %p2, %r2, 0;");
            line!(
                body,
                "@%p1 selp.{bits} %v{value}, {minus_infinity}, %acc0, %p2;\n@%p1 sub.s32 %r2, %r2, 1;"
            );
        }
    }

    /// Runs the network; returns the registers of the picked ranks.
    fn pick(&mut self, column: &mut [usize]) -> Vec<usize> {
        let network = Network::select(self.n, &self.ranks());
        let mut due = 0.0;
        for step in &network.steps {
            let full = step.keep_low && step.keep_high;
            due += if full { self.recipe.mix } else { 0.0 };
            let mixed = full && due >= 1.0;
            due -= if mixed { 1.0 } else { 0.0 };
            self.exchange(column, *step, mixed);
        }
        network.outputs.iter().map(|&wire| column[wire]).collect()
    }

    fn exchange(&mut self, column: &mut [usize], step: Step, mixed: bool) {
        let (a, b) = (column[step.low], column[step.high]);
        let (low, high) = (self.value(), self.value());
        let Words { float, bits, .. } = *self.words;
        let body = &mut self.body;
        if float == "f32" {
            if step.keep_low {
                line!(body, "min.f32 %v{low}, %v{a}, %v{b};");
            }
            if mixed {
                line!(
                    body,
                    "mad.lo.u32 %r0, %v{a}, %one, %v{b};\nmad.lo.u32 %v{high}, %v{low}, %minus, %r0;"
                );
            } else if step.keep_high {
                line!(body, "max.f32 %v{high}, %v{a}, %v{b};");
            }
        } else {
            line!(body, "setp.lt.{float} %p0, %v{b}, %v{a};");
            if step.keep_low {
                line!(body, "selp.{bits} %v{low}, %v{b}, %v{a}, %p0;");
            }
            if mixed {
                line!(
                    body,
                    "mov.b64 {{%r0, %r1}}, %v{a};\nmov.b64 {{%r2, %r3}}, %v{b};\nmov.b64 {{%r4, %r5}}, %v{low};"
                );
                line!(body, "mad.lo.u32 %r6, %r0, %one, %r2;\nmad.lo.u32 %r6, %r4, %minus, %r6;");
                line!(body, "mad.lo.u32 %r7, %r1, %one, %r3;\nmad.lo.u32 %r7, %r5, %minus, %r7;");
                line!(body, "mov.b64 %v{high}, {{%r6, %r7}};");
            } else if step.keep_high {
                line!(body, "selp.{bits} %v{high}, %v{a}, %v{b}, %p0;");
            }
        }
        if step.keep_low {
            column[step.low] = low;
        }
        if step.keep_high {
            column[step.high] = high;
        }
    }

    /// Stores the result where the coordinate is one.
    fn store(&mut self, coordinate: usize, result: usize) {
        let Words { float, size, .. } = *self.words;
        let body = &mut self.body;
        if coordinate > 0 {
            line!(body, "add.u64 %x{coordinate}, %x0, {};", coordinate * self.recipe.block);
        }
        line!(body, "setp.lt.u64 %p2, %x{coordinate}, %d;\nmad.lo.u64 %row, %x{coordinate}, {size}, %out;");
        line!(body, "@%p2 st.global.{float} [%row], %v{result};");
    }
}
