//! Decoding of mma.sync and of the exchange of matrices with shared memory.

use super::ast::{Operand, Space};
use super::lower::{Lower, Lowered};
use crate::exec::inst::{Class, Handler, Inst, Signature, mode};
use crate::exec::table::matrix::{self, Kind, Shape, Sum};

/// The types of D, A, B and C, and the sizes that they come in.
fn shape(size: &str, types: [&str; 4], clamped: bool) -> Option<Shape> {
    let kind = |name: &str| match name {
        "s8" => Kind::S8,
        _ => Kind::U8,
    };
    let (a, b, sum, sizes): (_, _, _, &[&str]) = match types {
        ["f32", "f16", "f16", "f32"] => (Kind::F16, Kind::F16, Sum::F32, &["m16n8k16", "m16n8k8"]),
        ["f16", "f16", "f16", "f16"] => (Kind::F16, Kind::F16, Sum::F16, &["m16n8k16", "m16n8k8"]),
        ["f32", "bf16", "bf16", "f32"] => (Kind::Bf16, Kind::Bf16, Sum::F32, &["m16n8k16", "m16n8k8"]),
        ["f32", "tf32", "tf32", "f32"] => (Kind::Tf32, Kind::Tf32, Sum::F32, &["m16n8k8", "m16n8k4"]),
        ["f64", "f64", "f64", "f64"] => {
            (Kind::F64, Kind::F64, Sum::F64, &["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"])
        }
        ["s32", a @ ("s8" | "u8"), b @ ("s8" | "u8"), "s32"] => {
            let sum = if clamped { Sum::Clamped } else { Sum::S32 };
            (kind(a), kind(b), sum, &["m16n8k32", "m16n8k16", "m8n8k16"])
        }
        _ => return None,
    };
    let fits = sizes.contains(&size) && (!clamped || sum == Sum::Clamped);
    let (rows, depth) = size.strip_prefix('m')?.split_once("n8k")?;
    fits.then_some(Shape { a, b, sum, rows: rows.parse().ok()?, depth: depth.parse().ok()? })
}

impl<'a> Lower<'a> {
    pub fn multiply(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let words: Vec<&str> = rest.split('.').collect();
        let found = match words[..] {
            ["sync", "aligned", size, "row", "col", d, a, b, c] => shape(size, [d, a, b, c], false),
            ["sync", "aligned", size, "row", "col", "satfinite", d, a, b, c] => {
                shape(size, [d, a, b, c], true)
            }
            _ => None,
        };
        let Some(shape) = found else { return self.unknown(format!("'mma.{rest}' of this form")) };
        let (letter, class) = if shape.is_wide() { (b'd', Class::D) } else { (b'w', Class::W) };
        let [a, b, outputs] = shape.registers();
        let [Operand::Vector(to), sources @ ..] = operands else {
            return self.error("expected vectors");
        };
        let mut inst = self.blank(matrix::multiply);
        let mut signature = Signature { extra: class, ..Signature::default() };
        let mut extra = Vec::new();
        for (operand, wanted) in sources.iter().zip([a, b, outputs]) {
            let Operand::Vector(parts) = operand else { return self.error("expected vectors") };
            if parts.len() != wanted {
                return self.error("Unexpected number of registers of a fragment");
            }
            for part in parts {
                extra.push(self.source(part, letter)?);
            }
        }
        if to.len() != outputs || sources.len() != 3 {
            return self.error("Unexpected number of arguments for instruction 'mma'");
        }
        for (n, part) in to.iter().enumerate() {
            inst.d[n] = self.result(part, letter)?;
            signature.d[n] = class;
        }
        inst.extra = extra.into();
        inst.mode = shape.pack();
        self.emit(inst, signature);
        Ok(())
    }

    /// ldmatrix and stmatrix: the number of matrices, the options and the operand of the address.
    fn exchange(
        &mut self,
        name: &str,
        rest: &str,
        address: &Operand<'a>,
        run: Handler,
    ) -> Lowered<(usize, Inst, Signature)> {
        let words: Vec<&str> = rest.split('.').collect();
        let ["sync", "aligned", "m8n8", count @ ("x1" | "x2" | "x4"), more @ .., "b16"] = &words[..] else {
            return self.unknown(format!("'{name}.{rest}' of this form"));
        };
        let (mut space, mut option) = (Space::Generic, matrix::GENERIC);
        for word in more {
            match *word {
                "trans" => option |= matrix::TRANSPOSED,
                "shared" | "shared::cta" => {
                    space = Space::Shared;
                    option &= !matrix::GENERIC;
                }
                _ => return self.unknown(format!("'{name}.{rest}' of this form")),
            }
        }
        let count = usize::from(count.as_bytes()[1] - b'0');
        let (base, wide, offset) = self.address(address, &mut space)?;
        let mut inst = self.blank(run);
        let mut signature = Signature::default();
        (inst.s[0], signature.s[0]) = (base, if wide { Class::D } else { Class::W });
        inst.imm = offset;
        inst.mode = (option | count as u32) << mode::FREE_SHIFT | if wide { mode::WIDE } else { 0 };
        Ok((count, inst, signature))
    }

    pub fn load_matrix(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let [Operand::Vector(to), from] = operands else { return self.error("Unexpected arguments") };
        let (count, mut inst, mut signature) = self.exchange("ldmatrix", rest, from, matrix::load)?;
        if to.len() != count {
            return self.error("Unexpected number of registers");
        }
        for (n, part) in to.iter().enumerate() {
            (inst.d[n], signature.d[n]) = (self.result(part, b'w')?, Class::W);
        }
        self.emit(inst, signature);
        Ok(())
    }

    pub fn store_matrix(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let [to, Operand::Vector(from)] = operands else { return self.error("Unexpected arguments") };
        let (count, mut inst, mut signature) = self.exchange("stmatrix", rest, to, matrix::store)?;
        if from.len() != count {
            return self.error("Unexpected number of registers");
        }
        for (n, part) in from.iter().enumerate() {
            (inst.s[n + 1], signature.s[n + 1]) = (self.source(part, b'w')?, Class::W);
        }
        self.emit(inst, signature);
        Ok(())
    }
}
