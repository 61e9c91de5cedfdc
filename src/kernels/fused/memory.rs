//! Elements from memory to registers and back: the loads of operands in their own types, the results' stores.

use super::THREADS;
use super::ptx::{Writer, line};
use crate::dtype::DType;
use std::fmt::Write;

/// The type of registers that hold elements as they are stored; whole numbers of fewer than 32 bits are extended.
pub fn held(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::F16 | DType::Bf16 => "b16",
        DType::I64 | DType::U64 => "b64",
        _ => "b32",
    }
}

/// The type that one element is loaded and stored as.
fn stored_as(dtype: DType) -> &'static str {
    match dtype {
        DType::I8 => "s8",
        DType::U8 | DType::Bool => "u8",
        DType::I16 => "s16",
        DType::U16 => "u16",
        _ => held(dtype),
    }
}

/// Fields of whole numbers in words of 32 bits: how many bits they have and whether they are signed.
fn field(dtype: DType) -> Option<(usize, &'static str)> {
    let sign = if dtype.is_signed() { "s32" } else { "u32" };
    (dtype.size() < 4 && !dtype.is_half()).then(|| (8 * dtype.size(), sign))
}

/// How that many bytes are accessed at once as words of 32 bits, and those.
fn words(bytes: usize) -> (&'static str, &'static str) {
    match bytes {
        16 => ("v4.b32", "{%h0, %h1, %h2, %h3}"),
        8 => ("v2.b32", "{%h0, %h1}"),
        4 => ("b32", "%h0"),
        2 => ("u16", "%h0"),
        _ => ("u8", "%h0"),
    }
}

impl Writer<'_> {
    /// Register of an operand's element as it is stored.
    fn stored(&self, index: usize, lane: usize) -> String {
        format!("%x{index}_{lane}")
    }

    /// `%a` is the address of the element at that position.
    fn address(&mut self, base: &str, size: usize, position: &str) {
        if self.plan.wide {
            line!(self.body, "mad.lo.u64 %a, {position}, {size}, {base};");
        } else {
            line!(self.body, "mad.wide.u32 %a, {position}, {size}, {base};");
        }
    }

    /// Loads all of a thread's elements, which are neighbours.
    pub fn at_once(&mut self, index: usize, position: &str) {
        let dtype = self.plan.types[index];
        self.address(&format!("%in{index}"), dtype.size(), position);
        let registers: Vec<String> = (0..self.lanes).map(|lane| self.stored(index, lane)).collect();
        let (access, targets) = words(self.lanes * dtype.size());
        if dtype.is_half() {
            line!(self.body, "ld.global.{access} {targets}, [%a];");
            for (word, pair) in registers.chunks(2).enumerate() {
                line!(self.body, "mov.b32 {{{}, {}}}, %h{word};", pair[0], pair[1]);
            }
        } else if let Some((bits, sign)) = field(dtype) {
            line!(self.body, "ld.global.{access} {targets}, [%a];");
            for (lane, register) in registers.iter().enumerate() {
                let (word, at) = (lane * bits / 32, lane * bits % 32);
                line!(self.body, "bfe.{sign} {register}, %h{word}, {at}, {bits};");
            }
        } else {
            line!(self.body, "ld.global.v{}.{} {{{}}}, [%a];", self.lanes, held(dtype), registers.join(", "));
        }
    }

    /// Loads an element.
    pub fn element(&mut self, index: usize, lane: usize, position: &str) {
        let dtype = self.plan.types[index];
        self.address(&format!("%in{index}"), dtype.size(), position);
        line!(self.body, "ld.global.{} {}, [%a];", stored_as(dtype), self.stored(index, lane));
    }

    /// Numbers of the elements of an operand.
    pub fn widen(&mut self, step: usize, index: usize) {
        let count = if self.same[step] { 1 } else { self.lanes };
        for lane in 0..count {
            let (from, to) = (self.stored(index, lane), self.value(step, lane));
            match self.plan.types[index] {
                DType::F16 => line!(self.body, "cvt.f32.f16 {to}, {from};"),
                DType::Bf16 => line!(self.body, "mov.b32 %t0, {{%zero, {from}}};\nmov.b32 {to}, %t0;"),
                DType::Bool => {
                    line!(self.body, "min.u32 %t0, {from}, 1;");
                    match self.kind {
                        "b32" => line!(self.body, "mov.b32 {to}, %t0;"),
                        "b64" => line!(self.body, "cvt.u64.u32 {to}, %t0;"),
                        float => line!(self.body, "cvt.rn.{float}.u32 {to}, %t0;"),
                    }
                }
                _ => line!(self.body, "mov.{} {to}, {from};", self.kind),
            }
        }
    }

    /// Brings a result of 32 bits back to the narrower type of the values.
    pub fn wrap(&mut self, register: &str) {
        if let Some((bits, sign)) = field(self.plan.element).filter(|_| self.plan.element != DType::Bool) {
            line!(self.body, "bfe.{sign} {register}, {register}, 0, {bits};");
        }
    }

    /// `%y0..`: the results as they are stored.
    fn rounded(&mut self) {
        let last = self.plan.steps.len() - 1;
        if self.plan.result.is_half() && self.plan.paired && self.lanes > 1 {
            let suffix = if self.plan.result == DType::F16 { "f16x2" } else { "bf16x2" };
            for word in 0..self.lanes / 2 {
                let [low, high] = [2 * word, 2 * word + 1].map(|lane| self.value(last, lane));
                line!(self.body, "cvt.rn.{suffix}.f32 %h{word}, {high}, {low};");
                line!(self.body, "mov.b32 {{%y{}, %y{}}}, %h{word};", 2 * word, 2 * word + 1);
            }
            return;
        }
        for lane in 0..self.lanes {
            self.round(lane, &self.value(last, lane));
        }
    }

    fn round(&mut self, lane: usize, from: &str) {
        let (body, kind) = (&mut self.body, self.kind);
        match self.plan.result {
            DType::F16 => line!(body, "cvt.rn.f16.f32 %y{lane}, {from};"),
            DType::Bf16 => {
                // To nearest even in integers: sm_75 has no instruction for it.
                line!(body, "mov.b32 %t0, {from};\nbfe.u32 %t1, %t0, 16, 1;\nadd.u32 %t0, %t0, %t1;");
                line!(body, "add.u32 %t0, %t0, 32767;\nsetp.nan.f32 %p0, {from}, {from};");
                line!(body, "selp.b32 %t0, 0x7FFF0000, %t0, %p0;\nmov.b32 {{%low, %y{lane}}}, %t0;");
            }
            DType::Bool => {
                let (test, zero) = match kind {
                    "f32" => ("neu.f32", "0f00000000"),
                    "f64" => ("neu.f64", "0d0000000000000000"),
                    "b32" => ("ne.u32", "0"),
                    _ => ("ne.u64", "0"),
                };
                line!(body, "setp.{test} %p0, {from}, {zero};\nselp.u32 %y{lane}, 1, 0, %p0;");
            }
            _ => line!(body, "mov.{kind} %y{lane}, {from};"),
        }
    }

    /// Rounds and stores the results.
    pub fn result(&mut self) {
        self.rounded();
        let lanes = self.lanes;
        let size = self.plan.result.size();
        if self.plan.vectors {
            if self.ragged() {
                line!(self.body, "@%ragged bra PARTS;");
            }
            self.address("%out", size, "%base");
            self.store_vector();
            line!(self.body, "bra.uni EXIT;");
            if !self.ragged() {
                return;
            }
            line!(self.body, "PARTS:");
        }
        let step = if self.plan.vectors { 1 } else { THREADS as usize };
        self.address("%out", size, "%base");
        let kind = stored_as(self.plan.result).replace('s', "u");
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

    fn store_vector(&mut self) {
        let dtype = self.plan.result;
        let registers: Vec<String> = (0..self.lanes).map(|lane| format!("%y{lane}")).collect();
        let (access, sources) = words(self.lanes * dtype.size());
        if dtype.is_half() {
            for (word, pair) in registers.chunks(2).enumerate() {
                line!(self.body, "mov.b32 %h{word}, {{{}, {}}};", pair[0], pair[1]);
            }
            line!(self.body, "st.global.{access} [%a], {sources};");
        } else if let Some((bits, _)) = field(dtype) {
            for (lane, register) in registers.iter().enumerate() {
                let (word, at) = (lane * bits / 32, lane * bits % 32);
                if at == 0 {
                    line!(self.body, "mov.b32 %h{word}, {register};");
                } else {
                    line!(self.body, "bfi.b32 %h{word}, {register}, %h{word}, {at}, {bits};");
                }
            }
            line!(self.body, "st.global.{access} [%a], {sources};");
        } else {
            let (kind, list) = (held(dtype), registers.join(", "));
            line!(self.body, "st.global.v{}.{kind} [%a], {{{list}}};", self.lanes);
        }
    }
}
