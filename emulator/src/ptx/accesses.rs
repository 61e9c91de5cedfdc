//! Decoding of loads, stores, atomics and asynchronous copies.

use super::ast::{Operand, Space, Type};
use super::lower::{Lower, Lowered, class_of};
use super::names::{Entry, shifted};
use crate::exec::inst::{Class, Preset, Signature, Slot, mode};
use crate::exec::sync;
use crate::exec::table::{self, memory};

/// What a load's or store's modifiers say.
struct Access {
    space: Space,
    ty: Type,
    lanes: u32,
    strong: bool,
}

impl<'a> Lower<'a> {
    fn access(&self, rest: &str) -> Lowered<Access> {
        let mut found = Access { space: Space::Generic, ty: Type::Pred, lanes: 1, strong: false };
        for word in rest.split('.') {
            match word {
                "global" => found.space = Space::Global,
                "shared" | "shared::cta" | "shared::cluster" => found.space = Space::Shared,
                "local" => found.space = Space::Local,
                "param" | "param::entry" | "param::func" => found.space = Space::Param,
                "const" => found.space = Space::Const,
                "volatile" | "relaxed" | "acquire" | "release" => found.strong = true,
                "weak" | "nc" | "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" => {}
                "cta" | "cluster" | "gpu" | "sys" => {}
                "L1::evict_normal"
                | "L1::evict_first"
                | "L1::evict_last"
                | "L1::no_allocate"
                | "L1::evict_unchanged"
                | "L2::64B"
                | "L2::128B"
                | "L2::256B" => {}
                "v2" => found.lanes = 2,
                "v4" => found.lanes = 4,
                other => match Type::parse(other) {
                    Some(ty) if ty != Type::Pred => found.ty = ty,
                    _ => return self.unknown(format!("unknown modifier '.{other}'")),
                },
            }
        }
        if found.ty == Type::Pred || found.lanes * found.ty.bytes() > 16 {
            return self.error("Illegal type or vector of a memory access");
        }
        Ok(found)
    }

    /// Base register, whether it has 64 bits, offset; the space changes for a function's params.
    pub fn address(&mut self, operand: &Operand<'a>, space: &mut Space) -> Lowered<(Slot, bool, i64)> {
        let Operand::Address(base, offset) = operand else {
            return self.error("expected an address");
        };
        let Some(name) = base else {
            return Ok((self.preset(Class::D, Preset::Value(*offset as u64)), true, 0));
        };
        match self.lookup(name) {
            Some(Entry::Registers(ty, slot, _)) => match class_of(ty) {
                Class::D => Ok((slot, true, *offset)),
                Class::W
                    if ty.bits() == 32 && matches!(space, Space::Shared | Space::Local | Space::Const) =>
                {
                    Ok((slot, false, *offset))
                }
                _ => self.error(format!("'{name}' cannot hold an address")),
            },
            Some(Entry::Place(place, preset)) => {
                match (*space, place) {
                    (Space::Param, Space::Local) => *space = Space::Local,
                    (Space::Generic, _) => *space = place,
                    (a, b) if a == b => {}
                    _ => return self.error(format!("'{name}' is in another state space")),
                }
                Ok((self.preset(Class::D, shifted(preset, *offset)), true, 0))
            }
            None => self.error(format!("Unknown symbol '{name}'")),
        }
    }

    /// Mode bits, with the check that the registers can hold the type.
    fn values(&mut self, access: &Access, operands: &[Operand<'a>]) -> Lowered<(u32, u8)> {
        if operands.len() != access.lanes as usize {
            return self.error("vector of another length than the instruction's");
        }
        let mut bits = access.ty.bits().max(if access.ty.bits() == 64 { 64 } else { 16 });
        if let Some(width) = operands.iter().find_map(|o| self.type_of(o)).map(Type::bits) {
            if width < access.ty.bits() || width == 1 {
                return self.error("register narrower than the access");
            }
            bits = width;
        }
        let letter = match bits {
            64 => b'd',
            32 => b'w',
            _ => b'h',
        };
        let mut flags = access.ty.bytes().trailing_zeros() << mode::SIZE_SHIFT;
        flags |= access.lanes.trailing_zeros() << mode::VECTOR_SHIFT;
        if letter == b'd' {
            flags |= mode::DOUBLE;
        }
        if matches!(access.ty, Type::S(_)) {
            flags |= mode::SIGNED;
        }
        if access.strong {
            flags |= mode::STRONG;
        }
        self.narrow_shared |= access.ty.bytes() < 4 && matches!(access.space, Space::Shared | Space::Generic);
        Ok((flags, letter))
    }

    pub fn load(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let mut access = self.access(rest)?;
        let [to, from] = operands else { return self.error("Unexpected number of arguments") };
        let (base, wide, offset) = self.address(from, &mut access.space)?;
        let single = [to.clone()];
        let results = if let Operand::Vector(parts) = to { &parts[..] } else { &single[..] };
        let (mut flags, letter) = self.values(&access, results)?;
        if wide {
            flags |= mode::WIDE;
        }
        let mut inst = self.blank(memory::loader(access.space));
        let mut signature = Signature::default();
        for (n, result) in results.iter().enumerate() {
            inst.d[n] = self.result(result, letter)?;
            signature.d[n] = table::class(letter);
        }
        inst.s[0] = base;
        signature.s[0] = if wide { Class::D } else { Class::W };
        inst.imm = offset;
        inst.mode = flags;
        self.emit(inst, signature);
        Ok(())
    }

    pub fn store(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let mut access = self.access(rest)?;
        let [to, from] = operands else { return self.error("Unexpected number of arguments") };
        let (base, wide, offset) = self.address(to, &mut access.space)?;
        if matches!(access.space, Space::Param | Space::Const) {
            return self.error("store to a space that is read only");
        }
        let single = [from.clone()];
        let sources = if let Operand::Vector(parts) = from { &parts[..] } else { &single[..] };
        let (mut flags, letter) = self.values(&access, sources)?;
        if wide {
            flags |= mode::WIDE;
        }
        let mut inst = self.blank(memory::storer(access.space));
        let mut signature = Signature::default();
        for (n, source) in sources.iter().enumerate() {
            inst.s[n + 1] = self.source(source, letter)?;
            signature.s[n + 1] = table::class(letter);
        }
        inst.s[0] = base;
        signature.s[0] = if wide { Class::D } else { Class::W };
        inst.imm = offset;
        inst.mode = flags;
        self.emit(inst, signature);
        Ok(())
    }

    pub fn atomic(&mut self, head: &str, rest: &'a str, operands: &[Operand<'a>]) -> Lowered<()> {
        let mut operation = "";
        let mut words: Vec<&str> = rest.split('.').collect();
        words.retain(|&word| {
            let known = memory::OPERATIONS.contains(&word);
            if known {
                operation = memory::OPERATIONS.iter().find(|&&o| o == word).copied().unwrap_or("");
            }
            !known && word != "acq_rel" && word != "noftz"
        });
        let mut access = self.access(&words.join("."))?;
        let (result, operands) = match (head, operands) {
            ("atom", [result, rest @ ..]) => (Some(result), rest),
            (_, rest) => (None, rest),
        };
        let wanted = if operation == "cas" { 3 } else { 2 };
        if operands.len() != wanted {
            return self.error("Unexpected number of arguments");
        }
        let (base, wide, offset) = self.address(&operands[0], &mut access.space)?;
        let Some(option) = memory::atomic_option(operation, access.ty, access.space) else {
            return self.unknown(format!("'{head}.{rest}' is no known atomic"));
        };
        access.strong = true;
        let (mut flags, letter) = self.values(&access, &operands[1..2])?;
        if wide {
            flags |= mode::WIDE;
        }
        let mut inst = self.blank(memory::atomic);
        let mut signature = Signature::default();
        if let Some(result) = result {
            inst.d[0] = self.result(result, letter)?;
            signature.d[0] = table::class(letter);
        }
        for (n, operand) in operands[1..].iter().enumerate() {
            inst.s[n + 1] = self.source(operand, letter)?;
            signature.s[n + 1] = table::class(letter);
        }
        inst.s[0] = base;
        signature.s[0] = if wide { Class::D } else { Class::W };
        inst.imm = offset;
        inst.mode = flags | option << mode::FREE_SHIFT;
        self.emit(inst, signature);
        Ok(())
    }

    pub fn copy_async(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let cached = rest.starts_with("async.ca.");
        let tail = &rest["async.ca.".len()..];
        let tail = tail.strip_prefix("shared::cta.").or_else(|| tail.strip_prefix("shared."));
        let spaces =
            matches!(tail, Some("global" | "global.L2::64B" | "global.L2::128B" | "global.L2::256B"));
        let (true, [to, from, Operand::Int(bytes), more @ ..]) = (spaces, operands) else {
            return self.unknown(format!("'cp.{rest}' of this form"));
        };
        let size = match bytes {
            4 if cached => 2,
            8 if cached => 3,
            16 => 4,
            _ => return self.error(format!("cp.async of {bytes} bytes")),
        };
        let (mut to_space, mut from_space) = (Space::Shared, Space::Global);
        let (to, to_wide, to_offset) = self.address(to, &mut to_space)?;
        let (from, from_wide, from_offset) = self.address(from, &mut from_space)?;
        let mut inst = self.blank(sync::copy);
        let mut signature = Signature::default();
        let class = |wide: bool| if wide { Class::D } else { Class::W };
        (inst.s[0], signature.s[0]) = (from, class(from_wide));
        (inst.s[1], signature.s[1]) = (to, class(to_wide));
        let mut option = u32::from(to_wide);
        match more {
            [] => {}
            [last] if self.type_of(last) == Some(Type::Pred) => {
                (inst.s[2], signature.s[2]) = (self.source(last, b'p')?, Class::P);
                option |= 2;
            }
            [last] => (inst.s[2], signature.s[2]) = (self.source(last, b'w')?, Class::W),
            _ => return self.error("Unexpected number of arguments"),
        }
        inst.imm = from_offset;
        inst.target = to_offset as u32;
        inst.mode =
            size << mode::SIZE_SHIFT | if from_wide { mode::WIDE } else { 0 } | option << mode::FREE_SHIFT;
        self.emit(inst, signature);
        Ok(())
    }
}
