//! Opcodes whose operands or modifiers need more than a row of the tables.

use super::ast::{Operand, Type};
use super::lower::{Lower, Lowered};
use crate::exec::inst::{Class, NONE, Signature};
use crate::exec::table::{self, memory, warp};
use crate::exec::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, barrier, sync};

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
            "bar" | "barrier" if rest != "warp.sync" && !rest.starts_with("cluster.") => {
                self.barrier(rest, operands)
            }
            "mma" => self.multiply(rest, operands),
            "ldmatrix" => self.load_matrix(rest, operands),
            "stmatrix" => self.store_matrix(rest, operands),
            "mbarrier" => self.mbarrier(rest, operands),
            "wgmma" => self.warpgroup(rest, operands),
            "setmaxnreg" => self.set_registers(rest, operands),
            "elect" => self.elect(rest, operands),
            "mapa" | "getctarank" => self.map_address(head, rest, operands),
            "fence" if table::find(opcode).is_none() => self.fence(rest),
            "barrier" if rest.starts_with("cluster.") => self.cluster_barrier(rest, operands),
            "cp" if rest.starts_with("async.bulk.") || rest.starts_with("reduce.async.bulk.") => {
                self.bulk(rest, operands)
            }
            "prefetch" if rest == "tensormap" || rest.ends_with(".tensormap") => self.prefetch_map(operands),
            "createpolicy" => self.cache_policy(operands),
            "griddepcontrol" if rest == "wait" || rest == "launch_dependents" => Ok(()),
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

    fn convert_address(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let (back, rest) = match rest.strip_prefix("to.") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let window = match rest.split_once('.') {
            Some(("global" | "const", "u64")) => 0,
            Some(("shared" | "shared::cta" | "shared::cluster", "u64")) => SHARED_WINDOW,
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
            _ => {
                self.plain(opcode, operands)?;
                if let Some(signature) = self.signatures.last_mut() {
                    signature.moves = true;
                }
                Ok(())
            }
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
        let (mut ones, mut letter) = (u32::MAX, b'p');
        if head == "set" {
            // set.CMP.result.source: the row is named without the result's type.
            let at = words.len().saturating_sub(2);
            (ones, letter) = match words.get(at) {
                _ if combine != 0 => return self.unknown(format!("'{head}.{rest}'")),
                Some(&"u32" | &"s32") => (u32::MAX, b'w'),
                Some(&"u16" | &"s16") => (0xffff, b'h'),
                Some(&"f32") => (1f32.to_bits(), b'w'),
                Some(&"f16") => (0x3c00, b'h'),
                Some(&"bf16") => (0x3f80, b'h'),
                Some(&"f16x2") => (0x3c00, b'w'),
                Some(&"bf16x2") => (0x3f80, b'w'),
                _ => return self.unknown(format!("'{head}.{rest}'")),
            };
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
            other => inst.d[0] = self.result(other, letter)?,
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
}
