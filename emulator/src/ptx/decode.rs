//! Opcodes whose operands or modifiers need more than a row of the tables.

use super::ast::{Operand, Space, Type};
use super::lower::{Entry, Lower, Lowered, class_of, shifted};
use crate::exec::inst::{Class, NONE, Preset, Signature, Slot, mode};
use crate::exec::soft::Round;
use crate::exec::table::{self, Conversion, memory, warp};
use crate::exec::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, barrier, sync};

/// What a load's or store's modifiers say.
struct Access {
    space: Space,
    ty: Type,
    lanes: u32,
    strong: bool,
}

impl<'a> Lower<'a> {
    pub fn decode(&mut self, opcode: &'a str, operands: &[Operand<'a>]) -> Lowered<()> {
        let (head, rest) = opcode.split_once('.').unwrap_or((opcode, ""));
        match head {
            "bra" => match (rest, operands) {
                ("" | "uni", [Operand::Name(label)]) => {
                    self.jump(label);
                    Ok(())
                }
                _ => self.unknown(format!("'{opcode}' of this form")),
            },
            "ret" if rest.is_empty() || rest == "uni" => self.leave(),
            "call" if rest.is_empty() || rest == "uni" => self.call(operands),
            "ld" | "ldu" => self.load(rest, operands),
            "st" => self.store(rest, operands),
            "atom" | "red" => self.atomic(head, rest, operands),
            "cvta" => self.convert_address(rest, operands),
            "cvt" if table::find(opcode).is_none() || !self.matches(opcode, operands) => {
                self.convert(opcode, rest, operands)
            }
            "mov" => self.mov(opcode, rest, operands),
            "setp" | "set" => self.compare(head, rest, operands),
            "shfl" => self.shuffle(rest, operands),
            "vote" if rest == "sync.ballot.b32" => {
                self.special(warp::ballot, 1, &operands[..1], b"w", &operands[1..], b"pw")
            }
            "match" if rest == "all.sync.b32" || rest == "all.sync.b64" => self.match_all(rest, operands),
            "bar" | "barrier" if rest != "warp.sync" => self.barrier(rest, operands),
            "prefetch" | "prefetchu" | "discard" | "applypriority" => Ok(()),
            "cp" if rest.starts_with("async.ca.") || rest.starts_with("async.cg.") => {
                self.copy_async(rest, operands)
            }
            "cp" if rest == "async.wait_group" => match operands {
                [Operand::Int(n)] => {
                    let mut inst = self.blank(sync::wait_group);
                    inst.imm = *n as i64;
                    self.emit(inst, Signature::default());
                    Ok(())
                }
                _ => self.error("expected a number"),
            },
            _ => self.plain(opcode, operands),
        }
    }

    /// An instruction given by its handler: results and sources with their letters.
    pub fn special(
        &mut self,
        run: crate::exec::inst::Handler,
        mode: u32,
        results: &[Operand<'a>],
        d: &[u8],
        sources: &[Operand<'a>],
        s: &[u8],
    ) -> Lowered<()> {
        if results.len() != d.len() || sources.len() != s.len() {
            return self.error("Unexpected number of arguments");
        }
        let mut inst = self.blank(run);
        let mut signature = Signature::default();
        inst.mode = mode;
        for (n, (operand, &letter)) in results.iter().zip(d).enumerate() {
            inst.d[n] = self.result(operand, letter)?;
            signature.d[n] = table::class(letter);
        }
        for (n, (operand, &letter)) in sources.iter().zip(s).enumerate() {
            inst.s[n] = self.source(operand, letter)?;
            signature.s[n] = table::class(letter);
        }
        self.emit(inst, signature);
        Ok(())
    }

    fn access(&self, rest: &str) -> Lowered<Access> {
        let mut found = Access { space: Space::Generic, ty: Type::Pred, lanes: 1, strong: false };
        for word in rest.split('.') {
            match word {
                "global" => found.space = Space::Global,
                "shared" | "shared::cta" => found.space = Space::Shared,
                "local" => found.space = Space::Local,
                "param" | "param::entry" | "param::func" => found.space = Space::Param,
                "const" => found.space = Space::Const,
                "volatile" | "relaxed" | "acquire" | "release" => found.strong = true,
                "weak" | "nc" | "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" => {}
                "cta" | "cluster" | "gpu" | "sys" => {}
                "L1::evict_normal" | "L1::evict_first" | "L1::evict_last" | "L1::no_allocate"
                | "L1::evict_unchanged" | "L2::64B" | "L2::128B" | "L2::256B" => {}
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
    fn address(&mut self, operand: &Operand<'a>, space: &mut Space) -> Lowered<(Slot, bool, i64)> {
        let Operand::Address(base, offset) = operand else {
            return self.error("expected an address");
        };
        let Some(name) = base else {
            return Ok((self.preset(Class::D, Preset::Value(*offset as u64)), true, 0));
        };
        match self.lookup(name) {
            Some(Entry::Registers(ty, slot, _)) => match class_of(ty) {
                Class::D => Ok((slot, true, *offset)),
                Class::W if ty.bits() == 32 && matches!(space, Space::Shared | Space::Local | Space::Const) => {
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
        self.narrow_shared |=
            access.ty.bytes() < 4 && matches!(access.space, Space::Shared | Space::Generic);
        Ok((flags, letter))
    }

    fn load(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
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

    fn store(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
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

    fn atomic(&mut self, head: &str, rest: &'a str, operands: &[Operand<'a>]) -> Lowered<()> {
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

    fn convert_address(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let (back, rest) = match rest.strip_prefix("to.") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let window = match rest.split_once('.') {
            Some(("global" | "const", "u64")) => 0,
            Some(("shared" | "shared::cta", "u64")) => SHARED_WINDOW,
            Some(("local", "u64")) => LOCAL_WINDOW,
            Some(("param" | "param::entry", "u64")) => PARAM_WINDOW,
            _ => return self.unknown(format!("cvta.{rest}")),
        };
        let [to, from] = operands else { return self.error("Unexpected number of arguments") };
        let mut inst = self.blank(|c, i, m| {
            let by = i.imm as u64;
            c.op1(i, m, |a: u64| a.wrapping_add(by))
        });
        inst.imm = if back { (window as i64).wrapping_neg() } else { window as i64 };
        inst.d[0] = self.result(to, b'd')?;
        inst.s[0] = self.source(from, b'd')?;
        self.emit(inst, table::signature("d:d"));
        Ok(())
    }

    /// Whether the registers have the widths that a row of the tables wants.
    fn matches(&mut self, opcode: &str, operands: &[Operand<'a>]) -> bool {
        let Some(row) = table::find(opcode) else { return false };
        let (d, s) = table::letters(row.form);
        let letters: Vec<u8> = d.iter().chain(s).copied().collect();
        letters.len() == operands.len()
            && operands.iter().zip(letters).all(|(operand, letter)| match self.type_of(operand) {
                Some(ty) => ty.bits() == if letter == b'd' { 64 } else { 32 },
                None => true,
            })
    }

    fn convert(&mut self, opcode: &str, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
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

    fn mov(&mut self, opcode: &str, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let bits = Type::parse(rest).map(Type::bits);
        match operands {
            [result, Operand::Vector(parts)] => {
                let part = bits.unwrap_or(0) / parts.len().max(1) as u32;
                let ((Some(64), 16 | 32) | (Some(32), 16)) = (bits, part) else {
                    return self.unknown(format!("'{opcode}' of this form"));
                };
                let s = vec![if part == 32 { b'w' } else { b'h' }; parts.len()];
                let d = [if bits == Some(64) { b'd' } else { b'w' }];
                self.special(memory::pack, part, std::slice::from_ref(result), &d, parts, &s)
            }
            [Operand::Vector(parts), source] => {
                let part = bits.unwrap_or(0) / parts.len().max(1) as u32;
                let ((Some(64), 16 | 32) | (Some(32), 16)) = (bits, part) else {
                    return self.unknown(format!("'{opcode}' of this form"));
                };
                let d = vec![if part == 32 { b'w' } else { b'h' }; parts.len()];
                let s = [if bits == Some(64) { b'd' } else { b'w' }];
                self.special(memory::unpack, part, parts, &d, std::slice::from_ref(source), &s)?;
                if let Some(inst) = self.insts.last_mut() {
                    inst.imm = i64::from(bits == Some(64));
                }
                Ok(())
            }
            [_, Operand::Name("%clock64" | "%globaltimer")] => {
                self.special(warp::clock64, 0, &operands[..1], b"d", &[], b"")
            }
            [_, Operand::Name("%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi")] => {
                self.special(warp::clock32, 0, &operands[..1], b"w", &[], b"")
            }
            _ => self.plain(opcode, operands),
        }
    }

    fn compare(&mut self, head: &str, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let mut words: Vec<&str> = rest.split('.').collect();
        let mut combine = 0;
        words.retain(|word| {
            combine = match *word {
                "and" => 1,
                "or" => 2,
                "xor" => 3,
                _ => return true,
            };
            false
        });
        let mut ones = u32::MAX;
        if head == "set" {
            // set.CMP.result.source: the row is named without the result's type.
            let at = words.len().saturating_sub(2);
            match words.get(at) {
                Some(&"u32" | &"s32") if combine == 0 => {}
                Some(&"f32") if combine == 0 => ones = 1f32.to_bits(),
                _ => return self.unknown(format!("'{head}.{rest}'")),
            }
            words.remove(at);
        }
        let name = format!("{head}.{}", words.join("."));
        let Some(row) = table::find(&name) else {
            return self.unknown(format!("Not a name of any known instruction: '{head}.{rest}'"));
        };
        let (_, s) = table::letters(row.form);
        if operands.len() != 3 + usize::from(combine > 0) {
            return self.error(format!("Unexpected number of arguments for '{head}.{rest}'"));
        }
        let mut inst = self.blank(row.run);
        let mut signature = table::signature(row.form);
        match &operands[0] {
            Operand::Pair(p, q) => {
                inst.d[0] = self.result(&Operand::Name(p), b'p')?;
                inst.d[1] = self.result(&Operand::Name(q), b'p')?;
                signature.d[1] = Class::P;
            }
            other => inst.d[0] = self.result(other, table::letters(row.form).0[0])?,
        }
        inst.s[0] = self.source(&operands[1], s[0])?;
        inst.s[1] = self.source(&operands[2], s[1])?;
        if combine > 0 {
            inst.s[2] = self.source(&operands[3], b'p')?;
            signature.s[2] = Class::P;
        }
        inst.mode = combine;
        inst.imm = i64::from(ones);
        self.emit(inst, signature);
        Ok(())
    }

    /// Splits `d|p` of shfl and match.all.
    fn paired(&mut self, operand: &Operand<'a>) -> (Vec<Operand<'a>>, &'static [u8]) {
        match operand {
            Operand::Pair(d, p) => (vec![Operand::Name(d), Operand::Name(p)], b"wp"),
            other => (vec![other.clone()], b"w"),
        }
    }

    fn shuffle(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let mode = match rest {
            "sync.up.b32" => 0,
            "sync.down.b32" => 1,
            "sync.bfly.b32" => 2,
            "sync.idx.b32" => 3,
            _ => return self.unknown(format!("Not a name of any known instruction: 'shfl.{rest}'")),
        };
        let Some((first, sources)) = operands.split_first() else { return self.error("no operands") };
        let (results, d) = self.paired(first);
        self.special(warp::shuffle, mode, &results, d, sources, b"wwww")
    }

    fn match_all(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let Some((first, sources)) = operands.split_first() else { return self.error("no operands") };
        let (results, d) = self.paired(first);
        if rest.ends_with("64") {
            self.special(warp::match_all64, 0, &results, d, sources, b"dw")
        } else {
            self.special(warp::match_all32, 0, &results, d, sources, b"ww")
        }
    }

    fn barrier(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let name = rest.trim_start_matches("cta.").replace(".aligned", "");
        let (flags, results) = match &name[..] {
            "sync" => (barrier::ALIGNED, 0),
            "arrive" => (barrier::ARRIVE, 0),
            "red.popc.u32" => (barrier::RED_POPC, 1),
            "red.and.pred" => (barrier::RED_AND, 1),
            "red.or.pred" => (barrier::RED_OR, 1),
            _ => return self.unknown(format!("barrier '.{rest}'")),
        };
        if operands.len() < results + 1 {
            return self.error("Unexpected number of arguments");
        }
        let mut inst = self.blank(barrier::arrive);
        let mut signature = Signature::default();
        inst.mode = flags;
        if results == 1 {
            let letter = if flags == barrier::RED_POPC { b'w' } else { b'p' };
            inst.d[0] = self.result(&operands[0], letter)?;
            signature.d[0] = table::class(letter);
        }
        let mut sources = &operands[results..];
        if results == 1 {
            let Some((last, others)) = sources.split_last() else { return self.error("no predicate") };
            inst.s[2] = self.source(last, b'p')?;
            signature.s[2] = Class::P;
            sources = others;
        }
        for (n, operand) in sources.iter().enumerate().take(2) {
            inst.s[n] = self.source(operand, b'w')?;
            signature.s[n] = Class::W;
        }
        if inst.s[0] == NONE || flags == barrier::ARRIVE && inst.s[1] == NONE {
            return self.error("Unexpected number of arguments");
        }
        self.emit(inst, signature);
        Ok(())
    }

    fn copy_async(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let cached = rest.starts_with("async.ca.");
        let tail = &rest["async.ca.".len()..];
        let tail = tail.strip_prefix("shared::cta.").or_else(|| tail.strip_prefix("shared."));
        let spaces = match tail {
            Some("global" | "global.L2::64B" | "global.L2::128B" | "global.L2::256B") => true,
            _ => false,
        };
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
        inst.mode = size << mode::SIZE_SHIFT
            | if from_wide { mode::WIDE } else { 0 }
            | option << mode::FREE_SHIFT;
        self.emit(inst, signature);
        Ok(())
    }
}
