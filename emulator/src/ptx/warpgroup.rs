//! Decoding of wgmma, and of the instructions beside it that touch its registers.

use super::ast::Operand;
use super::lower::{Lower, Lowered};
use crate::exec::inst::{Class, NONE, Signature, Slot, Watched};
use crate::exec::products::Kind;
use crate::exec::warpgroup::{self, Form, Shape};
use std::collections::HashSet;

impl<'a> Lower<'a> {
    pub fn warpgroup(&mut self, rest: &'a str, operands: &[Operand<'a>]) -> Lowered<()> {
        self.asynchronous = true;
        match (rest, operands) {
            ("fence.sync.aligned", []) => self.special(warpgroup::fence, 0, &[], b"", &[], b""),
            ("commit_group.sync.aligned", []) => self.special(warpgroup::commit, 0, &[], b"", &[], b""),
            ("wait_group.sync.aligned", [Operand::Int(count)]) => {
                let mut inst = self.blank(warpgroup::wait);
                inst.imm = *count as i64;
                // The registers of all sums become live here, so that none is used for something else before.
                self.waits.push(self.insts.len());
                self.emit(inst, Signature { extra: Class::W, ..Signature::default() });
                Ok(())
            }
            _ => match rest.strip_prefix("mma_async.sync.aligned.") {
                Some(rest) => self.warpgroup_multiply(rest, operands),
                None => self.unknown(format!("'wgmma.{rest}'")),
            },
        }
    }

    fn warpgroup_multiply(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let unknown =
            |lower: &Self| lower.unknown(format!("'wgmma.mma_async.sync.aligned.{rest}' of this form"));
        let Some((size, types)) = rest.split_once('.') else { return unknown(self) };
        let numbers = size.strip_prefix("m64n").and_then(|size| size.split_once('k'));
        let Some((columns, depth)) = numbers else { return unknown(self) };
        let columns = columns.parse::<usize>().unwrap_or(0);
        let (form, wanted) = match types {
            "f32.f16.f16" => (Form::Single(Kind::F16), "16"),
            "f32.bf16.bf16" => (Form::Single(Kind::Bf16), "16"),
            "f32.tf32.tf32" => (Form::Single(Kind::Tf32), "8"),
            "f16.f16.f16" => (Form::Half, "16"),
            "s32.s8.s8" => (Form::Integer(true, true, false), "32"),
            "s32.s8.u8" => (Form::Integer(true, false, false), "32"),
            "s32.u8.s8" => (Form::Integer(false, true, false), "32"),
            "s32.u8.u8" => (Form::Integer(false, false, false), "32"),
            "satfinite.s32.s8.s8" => (Form::Integer(true, true, true), "32"),
            "satfinite.s32.s8.u8" => (Form::Integer(true, false, true), "32"),
            "satfinite.s32.u8.s8" => (Form::Integer(false, true, true), "32"),
            "satfinite.s32.u8.u8" => (Form::Integer(false, false, true), "32"),
            _ => return unknown(self),
        };
        let integer = matches!(form, Form::Integer(..));
        let fits = columns.is_multiple_of(8) && (8..=256).contains(&columns);
        if depth != wanted || !fits || integer && columns > 32 && !columns.is_multiple_of(16) {
            return unknown(self);
        }
        let (Some(Operand::Vector(sums)), [a, b, adds, flags @ ..]) =
            (operands.first(), operands.get(1..).unwrap_or(&[]))
        else {
            return self.error("Unexpected number of arguments for 'wgmma.mma_async'");
        };
        let registers = matches!(a, Operand::Vector(_));
        let mut shape = Shape { form, columns, registers, negative: [false; 2], transposed: [false; 2] };
        self.flags(&mut shape, flags)?;
        let mut extra = self.fragment(sums, shape.sums())?;
        let mut inst = self.blank(warpgroup::multiply);
        let mut signature = Signature { extra: Class::W, ..Signature::default() };
        if let Operand::Vector(parts) = a {
            extra.extend(self.fragment(parts, 4)?);
        } else {
            (inst.s[0], signature.s[0]) = (self.source(a, b'd')?, Class::D);
        }
        (inst.s[1], signature.s[1]) = (self.source(b, b'd')?, Class::D);
        (inst.s[2], signature.s[2]) = (self.source(adds, b'p')?, Class::P);
        self.sums.extend(&extra);
        inst.extra = extra.into();
        inst.mode = shape.pack();
        self.emit(inst, signature);
        Ok(())
    }

    /// imm-scale-a, imm-scale-b, then which operands are transposed.
    fn flags(&self, shape: &mut Shape, flags: &[Operand<'a>]) -> Lowered<()> {
        let halves = matches!(shape.form, Form::Half | Form::Single(Kind::F16 | Kind::Bf16));
        let wanted = match shape.form {
            Form::Integer(..) => 0,
            _ if halves => 4 - usize::from(shape.registers),
            _ => 2,
        };
        if flags.len() != wanted {
            return self.error("Unexpected number of arguments for 'wgmma.mma_async'");
        }
        for (n, flag) in flags.iter().enumerate() {
            match (n, flag) {
                (0 | 1, Operand::Int(1)) | (2 | 3, Operand::Int(0)) => {}
                (0 | 1, Operand::Int(-1)) => shape.negative[n] = true,
                // A in registers has no bit of its own.
                (2 | 3, Operand::Int(1)) => shape.transposed[n - 2 + usize::from(shape.registers)] = true,
                _ => return self.error("Illegal immediate of 'wgmma.mma_async'"),
            }
        }
        Ok(())
    }

    fn fragment(&mut self, parts: &[Operand<'a>], count: usize) -> Lowered<Vec<Slot>> {
        if parts.len() != count {
            return self.error("Unexpected number of registers of a fragment");
        }
        parts.iter().map(|part| self.result(part, b'w')).collect()
    }

    /// Puts a check before each instruction that touches registers of wgmma, or of moves from there.
    pub fn watch(&mut self) -> Vec<Watched> {
        let mut slots: HashSet<Slot> = self.sums.iter().copied().filter(|&slot| slot != NONE).collect();
        if slots.is_empty() {
            return Vec::new();
        }
        loop {
            let before = slots.len();
            for (inst, signature) in self.insts.iter().zip(&self.signatures) {
                if signature.moves
                    && signature.s[0] == Class::W
                    && signature.d[0] == Class::W
                    && slots.contains(&inst.s[0])
                {
                    slots.insert(inst.d[0]);
                }
            }
            if slots.len() == before {
                break;
            }
        }
        let mut all: Vec<Slot> = slots.iter().copied().collect();
        all.sort_unstable();
        for &wait in &self.waits {
            self.insts[wait].extra = all.clone().into();
        }
        let mut watched = Vec::new();
        for (inst, signature) in self.insts.iter_mut().zip(&self.signatures) {
            let is = |class: Class, slot: Slot| class == Class::W && slots.contains(&slot);
            let s = std::array::from_fn(|n| is(signature.s[n], inst.s[n]));
            let d = std::array::from_fn(|n| is(signature.d[n], inst.d[n]));
            if inst.jumps || !(s.contains(&true) || d.contains(&true)) {
                continue;
            }
            watched.push(Watched { run: inst.run, d, s, moves: signature.moves });
            inst.run = warpgroup::watched;
            inst.target = (watched.len() - 1) as u32;
        }
        watched
    }
}
