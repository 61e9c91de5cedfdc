//! Decoding of mma.sync and ldmatrix.

use super::ast::{Operand, Space};
use super::lower::{Lower, Lowered};
use crate::exec::inst::{Class, Signature, mode};
use crate::exec::table::matrix::{self, Kind, Shape};

impl<'a> Lower<'a> {
    pub fn multiply(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let (kind, a, b) = match rest {
            "sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" => (Kind::F16, 4, 2),
            "sync.aligned.m16n8k8.row.col.f32.f16.f16.f32" => (Kind::F16, 2, 1),
            "sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" => (Kind::Bf16, 4, 2),
            "sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32" => (Kind::Bf16, 2, 1),
            "sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" => (Kind::Tf32, 4, 2),
            "sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32" => (Kind::Tf32, 2, 1),
            "sync.aligned.m8n8k4.row.col.f64.f64.f64.f64" => (Kind::F64, 1, 1),
            "sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" => (Kind::S8, 4, 2),
            "sync.aligned.m16n8k16.row.col.s32.s8.s8.s32" => (Kind::S8, 2, 1),
            "sync.aligned.m16n8k32.row.col.s32.u8.u8.s32" => (Kind::U8, 4, 2),
            _ => return self.unknown(format!("'mma.{rest}' of this form")),
        };
        let (letter, class, outputs) =
            if kind == Kind::F64 { (b'd', Class::D, 2) } else { (b'w', Class::W, 4) };
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
        inst.mode = Shape { kind, a, b }.pack();
        self.emit(inst, signature);
        Ok(())
    }

    pub fn load_matrix(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let (count, transposed) = match rest.replace("shared::cta", "shared").as_str() {
            "sync.aligned.m8n8.x1.shared.b16" => (1, false),
            "sync.aligned.m8n8.x2.shared.b16" => (2, false),
            "sync.aligned.m8n8.x4.shared.b16" => (4, false),
            "sync.aligned.m8n8.x1.trans.shared.b16" => (1, true),
            "sync.aligned.m8n8.x2.trans.shared.b16" => (2, true),
            "sync.aligned.m8n8.x4.trans.shared.b16" => (4, true),
            _ => return self.unknown(format!("'ldmatrix.{rest}' of this form")),
        };
        let [Operand::Vector(to), from] = operands else { return self.error("Unexpected arguments") };
        if to.len() != count {
            return self.error("Unexpected number of registers");
        }
        let mut space = Space::Shared;
        let (base, wide, offset) = self.address(from, &mut space)?;
        let mut inst = self.blank(matrix::load);
        let mut signature = Signature::default();
        for (n, part) in to.iter().enumerate() {
            inst.d[n] = self.result(part, b'w')?;
            signature.d[n] = Class::W;
        }
        (inst.s[0], signature.s[0]) = (base, if wide { Class::D } else { Class::W });
        inst.imm = offset;
        let option = count as u32 | if transposed { 8 } else { 0 };
        inst.mode = option << mode::FREE_SHIFT | if wide { mode::WIDE } else { 0 };
        self.emit(inst, signature);
        Ok(())
    }
}
