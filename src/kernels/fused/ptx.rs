//! PTX text of a plan (ISA 7.0, sm_75 or sm_80).

use super::functions::{inline, module_text, parameters_of};
use super::{Access, Plan, Step, THREADS};
use crate::Error;
use crate::Result;
use crate::dtype::DType;
use crate::kernels::extract::extract;
use crate::kernels::{Generated, Parameter};
use std::fmt::Write;

const ENTRY: &str = "evaluate";

/// Appends lines.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => { writeln!($text, $($arg)*).expect("writing to a String") };
}

/// The kernel of a plan.
pub fn generate(plan: &Plan) -> Result<Generated> {
    let mut writer = Writer::new(plan);
    writer.positions();
    writer.inputs();
    writer.steps()?;
    writer.result();
    let (entry, parameters) = writer.entry();
    let level = if plan.paired { ".target sm_80" } else { ".target sm_75" };
    let text = format!("{}\n{entry}", module_text()?.replacen(".target sm_75", level, 1));
    let ptx =
        extract(&text, ENTRY).ok_or_else(|| Error::Internal("an expression's kernel was lost".into()))?;
    Ok(Generated { ptx, entry: ENTRY.into(), parameters })
}

struct Writer<'a> {
    plan: &'a Plan<'a>,
    /// Elements of a thread.
    lanes: usize,
    /// Type of the arithmetic.
    float: &'static str,
    /// Type of a position: u32 or u64.
    word: &'static str,
    body: String,
    /// Whether a step's result is the same for all of a thread's elements.
    same: Vec<bool>,
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
        Writer {
            plan,
            lanes: plan.lanes,
            float: plan.dtype.arithmetic().suffix(),
            word: if plan.wide { "u64" } else { "u32" },
            body: String::new(),
            same,
        }
    }

    /// The register of a step's result for one of the thread's elements.
    fn value(&self, step: usize, lane: usize) -> String {
        match self.plan.steps[step] {
            Step::Number(index) => format!("%n{index}"),
            _ => format!("%v{}", step * self.lanes + if self.same[step] { 0 } else { lane }),
        }
    }

    fn has(&self, wanted: fn(&Access) -> bool) -> bool {
        self.plan.inputs.iter().any(wanted)
    }

    /// Whether the last thread may have fewer elements than the others.
    fn ragged(&self) -> bool {
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

    /// Register of an operand's element as it is stored.
    fn stored(&self, index: usize, lane: usize) -> String {
        format!("%x{}", index * self.lanes + lane)
    }

    /// `%a` is the address of the element at that position.
    fn address(&mut self, index: usize, position: &str) {
        let size = self.plan.dtype.size();
        if self.plan.wide {
            line!(self.body, "mad.lo.u64 %a, {position}, {size}, %in{index};");
        } else {
            line!(self.body, "mad.wide.u32 %a, {position}, {size}, %in{index};");
        }
    }

    /// Loads 16 bytes.
    fn at_once(&mut self, index: usize, position: &str) {
        self.address(index, position);
        let registers: Vec<String> = (0..self.lanes).map(|lane| self.stored(index, lane)).collect();
        if self.plan.dtype.is_half() {
            line!(self.body, "ld.global.v4.b32 {{%h0, %h1, %h2, %h3}}, [%a];");
            for (word, pair) in registers.chunks(2).enumerate() {
                line!(self.body, "mov.b32 {{{}, {}}}, %h{word};", pair[0], pair[1]);
            }
        } else {
            let float = self.float;
            line!(self.body, "ld.global.v{}.{float} {{{}}}, [%a];", self.lanes, registers.join(", "));
        }
    }

    /// Loads an element.
    fn element(&mut self, index: usize, lane: usize, position: &str) {
        self.address(index, position);
        let register = self.stored(index, lane);
        let kind = if self.plan.dtype.is_half() { "b16" } else { self.float };
        line!(self.body, "ld.global.{kind} {register}, [%a];");
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

    /// Numbers of the elements of an operand.
    fn widen(&mut self, step: usize, index: usize) {
        let count = if self.same[step] { 1 } else { self.lanes };
        for lane in 0..count {
            let (from, to) = (self.stored(index, lane), self.value(step, lane));
            match self.plan.dtype {
                DType::F16 => line!(self.body, "cvt.f32.f16 {to}, {from};"),
                DType::Bf16 => line!(self.body, "mov.b32 %t0, {{%zero, {from}}};\nmov.b32 {to}, %t0;"),
                _ => line!(self.body, "mov.{} {to}, {from};", self.float),
            }
        }
    }

    fn steps(&mut self) -> Result<()> {
        for (step, row) in self.plan.steps.iter().enumerate() {
            let Step::Apply(function, operands) = row else { continue };
            let wanted = parameters_of(function, self.float)?;
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
                inline(&mut self.body, function, self.float, &out, &arguments, serial)?;
            }
        }
        Ok(())
    }

    /// `%y0..`: the results as they are stored.
    fn rounded(&mut self) {
        let last = self.plan.steps.len() - 1;
        if self.plan.dtype.is_half() && self.plan.paired && self.lanes > 1 {
            let suffix = if self.plan.dtype == DType::F16 { "f16x2" } else { "bf16x2" };
            for word in 0..self.lanes / 2 {
                let [low, high] = [2 * word, 2 * word + 1].map(|lane| self.value(last, lane));
                line!(self.body, "cvt.rn.{suffix}.f32 %h{word}, {high}, {low};");
                line!(self.body, "mov.b32 {{%y{}, %y{}}}, %h{word};", 2 * word, 2 * word + 1);
            }
            return;
        }
        for lane in 0..self.lanes {
            let from = self.value(last, lane);
            let body = &mut self.body;
            match self.plan.dtype {
                DType::F16 => line!(body, "cvt.rn.f16.f32 %y{lane}, {from};"),
                DType::Bf16 => {
                    // To nearest even in integers: sm_75 has no instruction for it.
                    line!(body, "mov.b32 %t0, {from};\nbfe.u32 %t1, %t0, 16, 1;\nadd.u32 %t0, %t0, %t1;");
                    line!(body, "add.u32 %t0, %t0, 32767;\nsetp.nan.f32 %p0, {from}, {from};");
                    line!(body, "selp.b32 %t0, 0x7FFF0000, %t0, %p0;\nmov.b32 {{%low, %y{lane}}}, %t0;");
                }
                _ => line!(body, "mov.{} %y{lane}, {from};", self.float),
            }
        }
    }

    /// Rounds and stores the results.
    fn result(&mut self) {
        self.rounded();
        let lanes = self.lanes;
        let size = self.plan.dtype.size();
        if self.plan.vectors {
            if self.ragged() {
                line!(self.body, "@%ragged bra PARTS;");
            }
            self.result_address("%base");
            self.store_vector();
            line!(self.body, "bra.uni EXIT;");
            if !self.ragged() {
                return;
            }
            line!(self.body, "PARTS:");
        }
        let step = if self.plan.vectors { 1 } else { THREADS as usize };
        self.result_address("%base");
        let kind = if self.plan.dtype.is_half() { "b16" } else { self.float };
        let word = self.word;
        for lane in 0..lanes {
            let body = &mut self.body;
            if lane > 0 {
                // The difference does not overflow where positions are close to 2^32.
                line!(
                    body,
                    "sub.{word} %e, %n, %base;\nsetp.le.{word} %p0, %e, {};\n@%p0 bra EXIT;",
                    lane * step
                );
            }
            line!(body, "st.global.{kind} [%a+{}], %y{lane};", lane * step * size);
        }
    }

    fn result_address(&mut self, position: &str) {
        let size = self.plan.dtype.size();
        if self.plan.wide {
            line!(self.body, "mad.lo.u64 %a, {position}, {size}, %out;");
        } else {
            line!(self.body, "mad.wide.u32 %a, {position}, {size}, %out;");
        }
    }

    fn store_vector(&mut self) {
        let registers: Vec<String> = (0..self.lanes).map(|lane| format!("%y{lane}")).collect();
        if self.plan.dtype.is_half() {
            for (word, pair) in registers.chunks(2).enumerate() {
                line!(self.body, "mov.b32 %h{word}, {{{}, {}}};", pair[0], pair[1]);
            }
            line!(self.body, "st.global.v4.b32 [%a], {{%h0, %h1, %h2, %h3}};");
        } else {
            line!(self.body, "st.global.v{}.{} [%a], {{{}}};", self.lanes, self.float, registers.join(", "));
        }
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
            head.take(&format!("%n{number}"), self.float);
        }
        let (word, float, lanes) = (self.word, self.float, self.lanes);
        let stored = if self.plan.dtype.is_half() { "b16" } else { float };
        let mut text = format!(".visible .entry {ENTRY}(\n{}\n)\n", head.list.join(",\n"));
        line!(text, ".maxntid {THREADS}, 1, 1\n{{\n.reg .pred %p<2>;\n.reg .pred %ragged;\n.reg .b32 %t<2>;");
        line!(text, ".reg .b32 %h<4>;\n.reg .b16 %zero, %low;\n.reg .b64 %a, %w<2>;");
        line!(text, ".reg .{word} %base, %n, %last, %e, %q, %o;\n.reg .{word} %i<{lanes}>;");
        line!(text, ".reg .{word} %c<{}>;", self.plan.axes);
        line!(text, ".reg .{stored} %x<{}>;", (self.plan.inputs.len() * lanes).max(1));
        line!(text, ".reg .{stored} %y<{lanes}>;\n.reg .{float} %v<{}>;", self.plan.steps.len() * lanes);
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
