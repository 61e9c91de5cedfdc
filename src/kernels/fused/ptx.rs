//! PTX text of a plan (ISA 7.0, sm_75 or sm_80).

use super::functions::{inline, module_text, parameters_of, register};
use super::memory::held;
use super::{Access, Plan, Step, THREADS};
use crate::Error;
use crate::Result;
use crate::kernels::extract::Index;
use crate::kernels::{Generated, Parameter};
use std::fmt::Write;

const ENTRY: &str = "evaluate";

/// Appends lines.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => { writeln!($text, $($arg)*).expect("writing to a String") };
}
pub(super) use line;

/// The kernel of a plan.
pub fn generate(plan: &Plan) -> Result<Generated> {
    let mut writer = Writer::new(plan);
    writer.positions();
    writer.inputs();
    writer.steps()?;
    writer.result();
    let (entry, parameters) = writer.entry();
    let level = if plan.paired { ".target sm_80" } else { ".target sm_75" };
    let text = format!("{}\n{entry}", module_text(writer.suffix)?.replacen(".target sm_75", level, 1));
    let ptx = Index::new(&text)
        .extract(ENTRY)
        .ok_or_else(|| Error::Internal("an expression's kernel was lost".into()))?;
    Ok(Generated { ptx, entry: ENTRY.into(), parameters })
}

pub(super) struct Writer<'a> {
    pub plan: &'a Plan<'a>,
    /// Elements of a thread.
    pub lanes: usize,
    /// Suffix of the type that is computed in.
    pub suffix: &'static str,
    /// Type of its registers.
    pub kind: &'static str,
    /// Type of a position: u32 or u64.
    pub word: &'static str,
    pub body: String,
    /// Whether a step's result is the same for all of a thread's elements.
    pub same: Vec<bool>,
}

impl<'a> Writer<'a> {
    fn new(plan: &'a Plan<'a>) -> Writer<'a> {
        let mut same: Vec<bool> = Vec::with_capacity(plan.steps.len());
        for step in plan.steps {
            same.push(match step {
                Step::Input(index) => matches!(plan.inputs[*index], Access::Single | Access::Columns(_)),
                Step::Number(_) => true,
                Step::Apply(_, operands) => operands.iter().all(|&operand| same[operand]),
            });
        }
        let suffix = plan.element.promoted().suffix();
        Writer {
            plan,
            lanes: plan.lanes,
            suffix,
            kind: register(suffix).0,
            word: if plan.wide { "u64" } else { "u32" },
            body: String::new(),
            same,
        }
    }

    /// The register of a step's result for one of the thread's elements.
    pub fn value(&self, step: usize, lane: usize) -> String {
        match self.plan.steps[step] {
            Step::Number(index) => format!("%n{index}"),
            _ => format!("%v{}", step * self.lanes + if self.same[step] { 0 } else { lane }),
        }
    }

    fn has(&self, wanted: fn(&Access) -> bool) -> bool {
        self.plan.inputs.iter().any(wanted)
    }

    /// Whether the last thread may have fewer elements than the others.
    pub fn ragged(&self) -> bool {
        !self.has(|input| matches!(input, Access::Rows(_) | Access::Columns(_)))
    }

    /// `%i0..` are the positions of the thread's elements; beyond the end, the last one. Neighbours have the first one
    /// alone, until [`Writer::scatter`].
    fn positions(&mut self) {
        let (word, lanes) = (self.word, self.lanes);
        let body = &mut self.body;
        line!(body, "mov.u32 %t0, %ctaid.x;\nmov.u32 %t1, %tid.x;");
        if self.plan.vectors {
            line!(body, "mul.lo.u32 %t1, %t1, {lanes};");
        }
        if self.plan.wide {
            line!(body, "mul.wide.u32 %base, %t0, {};", THREADS as usize * lanes);
            line!(body, "cvt.u64.u32 %w0, %t1;\nadd.u64 %base, %base, %w0;");
            line!(body, "mov.u64 %n, %size;");
        } else {
            line!(body, "mad.lo.u32 %base, %t0, {}, %t1;\ncvt.u32.u64 %n, %size;", THREADS as usize * lanes);
        }
        line!(body, "setp.ge.{word} %p0, %base, %n;\n@%p0 bra EXIT;\nsub.{word} %last, %n, 1;");
        line!(body, "mov.{word} %i0, %base;");
        if !self.plan.vectors || self.has(|input| matches!(input, Access::Scattered(_))) {
            self.scatter();
        }
    }

    /// Positions of the elements after the first.
    fn scatter(&mut self) {
        let word = self.word;
        let step = if self.plan.vectors { 1 } else { THREADS as usize };
        for lane in 1..self.lanes {
            line!(
                self.body,
                "add.{word} %i{lane}, %base, {};\nmin.{word} %i{lane}, %i{lane}, %last;",
                lane * step
            );
        }
    }

    /// Loads of all operands, then their numbers.
    fn inputs(&mut self) {
        let whole: Vec<usize> =
            (0..self.plan.inputs.len()).filter(|&index| self.plan.inputs[index] == Access::Whole).collect();
        self.scattered();
        self.rows();
        if !self.plan.vectors {
            for &index in &whole {
                self.one_by_one(index);
            }
        } else if self.ragged() {
            let (word, lanes) = (self.word, self.lanes);
            line!(
                self.body,
                "add.{word} %e, %base, {lanes};\nsetp.gt.{word} %ragged, %e, %n;\n@%ragged bra RAGGED;"
            );
            whole.iter().for_each(|&index| self.at_once(index, "%base"));
            line!(self.body, "bra.uni LOADED;\nRAGGED:");
            self.scatter();
            whole.iter().for_each(|&index| self.one_by_one(index));
            line!(self.body, "LOADED:");
        } else {
            whole.iter().for_each(|&index| self.at_once(index, "%base"));
        }
        for step in 0..self.plan.steps.len() {
            if let Step::Input(index) = self.plan.steps[step] {
                self.widen(step, index);
            }
        }
    }

    fn one_by_one(&mut self, index: usize) {
        for lane in 0..self.lanes {
            self.element(index, lane, &format!("%i{lane}"));
        }
    }

    /// Loads operands that change along axes, but for whole rows.
    fn scattered(&mut self) {
        if !self.has(|input| matches!(input, Access::Scattered(_))) {
            return;
        }
        for lane in 0..self.lanes {
            self.coordinates(&format!("%i{lane}"));
            for index in 0..self.plan.inputs.len() {
                if let Access::Scattered(_) = self.plan.inputs[index] {
                    self.offset(index);
                    self.element(index, lane, "%o");
                }
            }
        }
    }

    /// Loads what needs one position for a thread.
    fn rows(&mut self) {
        if self.has(|input| matches!(input, Access::Rows(_) | Access::Columns(_))) {
            self.coordinates("%base");
        }
        for index in 0..self.plan.inputs.len() {
            match self.plan.inputs[index] {
                Access::Rows(_) => {
                    self.offset(index);
                    self.at_once(index, "%o");
                }
                Access::Columns(_) => {
                    self.offset(index);
                    self.element(index, 0, "%o");
                }
                Access::Single => {
                    line!(self.body, "mov.{} %o, 0;", self.word);
                    self.element(index, 0, "%o");
                }
                _ => {}
            }
        }
    }

    /// `%c0..` are the coordinates of a position. One multiply-high divides, off by at most one (kernels/common/divide.cuh).
    fn coordinates(&mut self, position: &str) {
        let (word, divided, walked) = (self.word, self.plan.divided(), self.plan.walked());
        let body = &mut self.body;
        line!(body, "mov.{word} %q, {position};");
        for axis in 0..divided {
            line!(body, "mul.hi.{word} %e, %q, %magic{axis};\nmul.lo.{word} %c{axis}, %e, %extent{axis};");
            line!(body, "sub.{word} %c{axis}, %q, %c{axis};\nsetp.ge.{word} %p0, %c{axis}, %extent{axis};");
            line!(
                body,
                "@%p0 sub.{word} %c{axis}, %c{axis}, %extent{axis};\n@%p0 add.{word} %e, %e, 1;\nmov.{word} %q, %e;"
            );
        }
        if walked > divided {
            line!(body, "mov.{word} %c{divided}, %q;");
        }
    }

    /// `%o` is where an operand's element at these coordinates lies.
    fn offset(&mut self, index: usize) {
        let word = self.word;
        let input = self.plan.inputs[index];
        let start = if let Access::Rows(mask) = input
            && mask & 1 == 1
        {
            "%c0"
        } else {
            "0"
        };
        line!(self.body, "mov.{word} %o, {start};");
        for axis in self.plan.strided(input) {
            line!(self.body, "mad.lo.{word} %o, %c{axis}, %stride{index}_{axis}, %o;");
        }
    }

    fn steps(&mut self) -> Result<()> {
        for (step, row) in self.plan.steps.iter().enumerate() {
            let Step::Apply(function, operands) = row else { continue };
            let wanted = parameters_of(function, self.suffix)?;
            if operands.len() > wanted {
                return Err(Error::Internal(format!(
                    "'{function}' takes {wanted} numbers, not {}",
                    operands.len()
                )));
            }
            let count = if self.same[step] { 1 } else { self.lanes };
            for lane in 0..count {
                let arguments: Vec<String> =
                    operands.iter().map(|&operand| self.value(operand, lane)).collect();
                let (out, serial) = (self.value(step, lane), step * self.lanes + lane);
                inline(&mut self.body, function, self.suffix, &out, &arguments, serial)?;
                self.wrap(&out);
            }
        }
        Ok(())
    }

    /// The whole entry, and its parameters.
    fn entry(&self) -> (String, Vec<Parameter>) {
        let mut head = Head { word: self.word, ..Head::default() };
        head.take("%out", "u64");
        head.take("%size", "u64");
        for axis in 0..self.plan.divided() {
            head.take_word(&format!("%extent{axis}"));
            head.take_magic(&format!("%magic{axis}"));
        }
        for (index, &input) in self.plan.inputs.iter().enumerate() {
            head.take(&format!("%in{index}"), "u64");
            for axis in self.plan.strided(input) {
                head.take_word(&format!("%stride{index}_{axis}"));
            }
        }
        for number in 0..self.plan.numbers {
            head.take(&format!("%n{number}"), &self.kind.replace('b', "u"));
        }
        let (word, kind, lanes) = (self.word, self.kind, self.lanes);
        let mut text = format!(".visible .entry {ENTRY}(\n{}\n)\n", head.list.join(",\n"));
        line!(text, ".maxntid {THREADS}, 1, 1\n{{\n.reg .pred %p<2>;\n.reg .pred %ragged;\n.reg .b32 %t<2>;");
        line!(text, ".reg .b32 %h<4>;\n.reg .b16 %zero, %low;\n.reg .b64 %a, %w<2>;");
        line!(text, ".reg .{word} %base, %n, %last, %e, %q, %o;\n.reg .{word} %i<{lanes}>;");
        line!(text, ".reg .{word} %c<{}>;", self.plan.axes);
        for (index, &dtype) in self.plan.types.iter().enumerate() {
            line!(text, ".reg .{} %x{index}_<{lanes}>;", held(dtype));
        }
        line!(text, ".reg .{} %y<{lanes}>;", held(self.plan.result));
        line!(text, ".reg .{kind} %v<{}>;", self.plan.steps.len() * lanes);
        text.push_str(&head.loads);
        for index in 0..self.plan.inputs.len() {
            line!(text, "cvta.to.global.u64 %in{index}, %in{index};");
        }
        line!(text, "cvta.to.global.u64 %out, %out;\nmov.u16 %zero, 0;");
        text.push_str(&self.body);
        line!(text, "EXIT:\nret;\n}}");
        (text, head.parameters)
    }
}

/// Parameters as they are declared and loaded.
#[derive(Default)]
struct Head {
    word: &'static str,
    list: Vec<String>,
    loads: String,
    parameters: Vec<Parameter>,
}

impl Head {
    /// A parameter in a register of that name and type.
    fn take(&mut self, register: &str, kind: &str) {
        let place = self.declare(kind);
        line!(self.loads, ".reg .{kind} {register};\nld.param.{kind} {register}, [{place}];");
    }

    fn declare(&mut self, kind: &str) -> String {
        let place = format!("evaluate_{}", self.list.len());
        self.list.push(format!(".param .{kind} {place}"));
        self.parameters.push(match kind {
            "f32" => Parameter::F32,
            "f64" => Parameter::F64,
            "u32" => Parameter::Word32,
            _ => Parameter::Word64,
        });
        place
    }

    /// A size or stride: the low half where positions have 32 bits.
    fn take_word(&mut self, register: &str) {
        self.take_half(register, 0);
    }

    /// A divisor's multiplier: the high half where positions have 32 bits.
    fn take_magic(&mut self, register: &str) {
        self.take_half(register, 4);
    }

    fn take_half(&mut self, register: &str, offset: u32) {
        let (place, word) = (self.declare("u64"), self.word);
        let offset = if word == "u64" { 0 } else { offset };
        line!(self.loads, ".reg .{word} {register};\nld.param.{word} {register}, [{place}+{offset}];");
    }
}
