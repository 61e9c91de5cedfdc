//! Decoding of cvt.

use super::ast::{Operand, Type};
use super::lower::{Lower, Lowered};
use crate::exec::soft::Round;
use crate::exec::table::{self, Conversion};

impl<'a> Lower<'a> {
    /// Whether the registers have the widths that a row of the tables wants.
    pub fn matches(&mut self, opcode: &str, operands: &[Operand<'a>]) -> bool {
        let Some(row) = table::find(opcode) else { return false };
        let (d, s) = table::letters(row.form);
        let letters: Vec<u8> = d.iter().chain(s).copied().collect();
        letters.len() == operands.len()
            && operands.iter().zip(letters).all(|(operand, letter)| match self.type_of(operand) {
                Some(ty) => ty.bits() == table::bits(letter),
                None => true,
            })
    }

    pub fn convert(&mut self, opcode: &str, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let mut types = Vec::new();
        let (mut round, mut integral, mut sat, mut ftz, mut relu) = (None, false, false, false, false);
        for word in rest.split('.') {
            match word {
                "rn" => round = Some(Round::Nearest),
                "rz" => round = Some(Round::Zero),
                "rm" => round = Some(Round::Down),
                "rp" => round = Some(Round::Up),
                "rni" | "rzi" | "rmi" | "rpi" => {
                    integral = true;
                    round = Some(match word {
                        "rni" => Round::Nearest,
                        "rzi" => Round::Zero,
                        "rmi" => Round::Down,
                        _ => Round::Up,
                    });
                }
                "sat" => sat = true,
                "ftz" => ftz = true,
                "relu" => relu = true,
                other => match Type::parse(other) {
                    Some(ty @ (Type::U(_) | Type::S(_) | Type::F(_) | Type::Bf16)) => types.push(ty),
                    _ => return self.unknown(format!("'{opcode}': modifier '.{other}'")),
                },
            }
        }
        let ([to, from], [result, source]) = (&types[..], operands) else {
            return self.unknown(format!("'{opcode}' of this form"));
        };
        let float = |ty: &Type| matches!(ty, Type::F(_) | Type::Bf16);
        let narrowing = float(to) && (!float(from) || to.bits() < from.bits());
        if narrowing && round.is_none() || float(from) && !float(to) && !integral {
            return self.error(format!("Rounding modifier required for instruction '{opcode}'"));
        }
        let width = |ty: Option<Type>, own: Type| ty.map_or(own.bits(), Type::bits);
        let to_bits = width(self.type_of(result), *to);
        let from_bits = width(self.type_of(source), *from);
        if to_bits < to.bits() || from_bits < from.bits() {
            return self.error("Arguments mismatch for instruction 'cvt'");
        }
        let letter = |bits: u32| match bits {
            64 => b'd',
            32 => b'w',
            _ => b'h',
        };
        let conversion = Conversion { to: *to, from: *from, round, integral, sat, ftz, relu };
        let mode = u32::from(from_bits == 64) | u32::from(to_bits == 64) << 1;
        let (d, s) = ([letter(to_bits)], [letter(from_bits)]);
        self.special(table::generic_convert, mode, &operands[..1], &d, &operands[1..], &s)?;
        if let Some(inst) = self.insts.last_mut() {
            inst.imm = conversion.pack();
        }
        Ok(())
    }
}
