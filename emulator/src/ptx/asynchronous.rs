//! Decoding of mbarrier, the bulk copies, fences between proxies and clusters of one block.

use super::ast::{Operand, Space, Type};
use super::lower::{Lower, Lowered};
use super::names::Entry;
use crate::exec::inst::{Class, Handler, NONE, Preset, Signature, Slot, mode};
use crate::exec::reduce::Reduction;
use crate::exec::table::{self, warp};
use crate::exec::{PARAM_WINDOW, bulk, cluster, mbarrier, registers};

/// A pointer operand as a register without an offset, and whether it has 64 bits.
type Pointer = (Slot, bool);

impl<'a> Lower<'a> {
    /// The register that holds an address; one of a parameter is generic.
    fn pointer(&mut self, base: &'a str, offset: i64, space: Space) -> Lowered<Pointer> {
        let mut space = space;
        if let Some(Entry::Place(Space::Param, Preset::Value(at))) = self.lookup(base) {
            let at = PARAM_WINDOW.wrapping_add(at).wrapping_add(offset as u64);
            return Ok((self.preset(Class::D, Preset::Value(at)), true));
        }
        let (slot, wide, offset) = self.address(&Operand::Address(Some(base), offset), &mut space)?;
        if offset == 0 {
            return Ok((slot, wide));
        }
        let (name, form, class) =
            if wide { ("add.u64", "d:dd", Class::D) } else { ("add.u32", "w:ww", Class::W) };
        let Some(row) = table::find(name) else { return self.unknown(name) };
        let file = if wide { &mut self.doubles } else { &mut self.words };
        file.push(None);
        let to = (file.len() - 1) as Slot;
        let mut inst = self.blank(row.run);
        inst.guard = NONE;
        inst.d[0] = to;
        inst.s[0] = slot;
        inst.s[1] =
            self.preset(class, Preset::Value(if wide { offset as u64 } else { u64::from(offset as u32) }));
        self.emit(inst, table::signature(form));
        Ok((to, wide))
    }

    fn place(&mut self, operand: &Operand<'a>, space: Space) -> Lowered<Pointer> {
        match operand {
            Operand::Address(Some(base), offset) => self.pointer(base, *offset, space),
            _ => self.error("expected an address"),
        }
    }

    pub fn mbarrier(&mut self, rest: &'a str, operands: &[Operand<'a>]) -> Lowered<()> {
        self.asynchronous = true;
        let (head, modifiers) = rest.split_once('.').unwrap_or((rest, ""));
        if head == "pending_count" {
            return self.special(
                mbarrier::pending_count,
                0,
                &operands[..1.min(operands.len())],
                b"w",
                operands.get(1..).unwrap_or(&[]),
                b"d",
            );
        }
        let mut option = mbarrier::GENERIC;
        for word in modifiers.split('.') {
            option |= match word {
                "b64" | "acquire" | "release" | "cta" | "cluster" => 0,
                "shared" | "shared::cta" | "shared::cluster" => {
                    option &= !mbarrier::GENERIC;
                    0
                }
                "relaxed" => mbarrier::RELAXED,
                "parity" => mbarrier::PARITY,
                "expect_tx" => mbarrier::EXPECT,
                "noComplete" => mbarrier::INCOMPLETE,
                _ => return self.unknown(format!("unknown modifier '.{word}' of mbarrier")),
            };
        }
        // Handler, options, letter of the result, those of the sources after the address.
        let expects = option & mbarrier::EXPECT != 0;
        let parity = option & mbarrier::PARITY != 0;
        let (run, more, result, sources): (Handler, u32, &[u8], &[usize]) = match head {
            "init" => (mbarrier::init, 0, b"", &[1]),
            "inval" => (mbarrier::invalidate, 0, b"", &[]),
            "expect_tx" => (mbarrier::transact, 0, b"", &[1]),
            "complete_tx" => (mbarrier::transact, mbarrier::COMPLETE, b"", &[1]),
            "arrive" if expects => (mbarrier::arrive, 0, b"d", &[2]),
            "arrive_drop" if expects => (mbarrier::arrive, mbarrier::DROP, b"d", &[2]),
            "arrive" => (mbarrier::arrive, 0, b"d", &[1]),
            "arrive_drop" => (mbarrier::arrive, mbarrier::DROP, b"d", &[1]),
            "test_wait" => (mbarrier::wait, 0, b"p", if parity { &[2] } else { &[1] }),
            "try_wait" => (mbarrier::wait, mbarrier::TRY, b"p", if parity { &[2, 3] } else { &[1, 3] }),
            _ => return self.unknown(format!("'mbarrier.{rest}'")),
        };
        let optional = usize::from(head == "try_wait" || head.starts_with("arrive") && !expects);
        let given = operands.len().wrapping_sub(result.len() + 1);
        if given > sources.len() || given + optional < sources.len() {
            return self.error(format!("Unexpected number of arguments for 'mbarrier.{rest}'"));
        }
        let space = if option & mbarrier::GENERIC == 0 { Space::Shared } else { Space::Generic };
        let (base, wide) = self.place(&operands[result.len()], space)?;
        let mut inst = self.blank(run);
        let mut signature = Signature::default();
        if let Some(&letter) = result.first() {
            inst.d[0] = self.result(&operands[0], letter)?;
            signature.d[0] = table::class(letter);
        }
        (inst.s[0], signature.s[0]) = (base, if wide { Class::D } else { Class::W });
        for (operand, &n) in operands[result.len() + 1..].iter().zip(sources) {
            // A state has 64 bits; how long to wait at most does not matter.
            let letter = if n == 1 && head.ends_with("_wait") { b'd' } else { b'w' };
            (inst.s[n], signature.s[n]) = (self.source(operand, letter)?, table::class(letter));
        }
        inst.mode = (option | more) << mode::FREE_SHIFT | if wide { mode::WIDE } else { 0 };
        self.emit(inst, signature);
        Ok(())
    }

    /// cp.async.bulk, cp.reduce.async.bulk and what waits for them.
    pub fn bulk(&mut self, rest: &'a str, operands: &[Operand<'a>]) -> Lowered<()> {
        self.asynchronous = true;
        let words: Vec<&str> = rest.split('.').filter(|word| *word != "async" && *word != "bulk").collect();
        let has = |name: &str| words.contains(&name);
        match (words.as_slice(), operands) {
            (["commit_group"], []) => return self.special(bulk::commit, 0, &[], b"", &[], b""),
            (["wait_group"] | ["wait_group", "read"], [Operand::Int(count)]) => {
                let mut inst = self.blank(bulk::wait_group);
                inst.imm = *count as i64;
                inst.mode = if has("read") { bulk::READ << mode::FREE_SHIFT } else { 0 };
                self.emit(inst, Signature::default());
                return Ok(());
            }
            _ => {}
        }
        if has("multicast::cluster") {
            return self.unknown("a copy to several blocks of a cluster");
        }
        let known = |word: &str| {
            matches!(
                word,
                "tensor"
                    | "1d"
                    | "2d"
                    | "3d"
                    | "4d"
                    | "5d"
                    | "global"
                    | "shared::cta"
                    | "shared::cluster"
                    | "tile"
                    | "im2col"
                    | "im2col_no_offs"
                    | "mbarrier::complete_tx::bytes"
                    | "bulk_group"
                    | "L2::cache_hint"
                    | "prefetch"
                    | "L2"
                    | "reduce"
            )
        };
        let reduces = words.first() == Some(&"reduce");
        let plain: Vec<&str> = words.iter().copied().filter(|word| !known(word)).collect();
        let reduction = match (reduces, plain.as_slice()) {
            (false, []) => None,
            (true, [operation] | [operation, ""]) => Reduction::parse(operation, ""),
            (true, [operation, ty]) => Reduction::parse(operation, ty),
            _ => return self.unknown(format!("'cp.{rest}' of this form")),
        };
        if reduces && reduction.is_none() {
            return self.unknown(format!("'cp.{rest}' is no known reduction"));
        }
        let hint = has("L2::cache_hint");
        let operands = if hint { &operands[..operands.len().saturating_sub(1)] } else { operands };
        let stores = has("bulk_group");
        if has("tensor") {
            let rank = words.iter().find_map(|word| word.strip_suffix('d')?.parse().ok()).unwrap_or(0);
            let option = bulk::option(rank, reduction)
                | if has("im2col") || has("im2col_no_offs") { bulk::IM2COL } else { 0 };
            return match operands {
                [map] if has("prefetch") => self.tensor(bulk::prefetch_tensor, option, &[map], &[]),
                [map, from] if stores => self.tensor(bulk::store_tensor, option, &[map, from], &[]),
                [to, map, barrier] if !stores => {
                    self.tensor(bulk::load_tensor, option, &[to, map, barrier], &[])
                }
                [to, map, barrier, Operand::Vector(offsets)] if has("im2col") => {
                    self.tensor(bulk::load_tensor, option, &[to, map, barrier], offsets)
                }
                _ => self.error(format!("Unexpected arguments for 'cp.{rest}'")),
            };
        }
        let option = bulk::option(0, reduction);
        match operands {
            [from, size] if has("prefetch") => {
                self.linear(bulk::prefetch, option, &[(from, Space::Global)], size)
            }
            [to, from, size] if stores => {
                self.linear(bulk::store, option, &[(to, Space::Global), (from, Space::Shared)], size)
            }
            [to, from, size, barrier] if has("global") => {
                let places = [(to, Space::Shared), (from, Space::Global), (barrier, Space::Shared)];
                self.linear(bulk::load, option, &places, size)
            }
            _ => self.unknown(format!("'cp.{rest}' of this form")),
        }
    }

    fn tensor(
        &mut self,
        run: Handler,
        option: u32,
        places: &[&Operand<'a>],
        offsets: &[Operand<'a>],
    ) -> Lowered<()> {
        let mut option = option;
        let mut slots = Vec::new();
        let mut extra = Vec::new();
        for (n, place) in places.iter().enumerate() {
            let (slot, wide) = match place {
                Operand::Tensor(base, offset, coordinates) => {
                    for coordinate in coordinates {
                        extra.push(self.source(coordinate, b'w')?);
                    }
                    self.pointer(base, *offset, Space::Generic)?
                }
                place => self.place(place, Space::Shared)?,
            };
            slots.push((slot, wide));
            option |= if wide { bulk::WIDE << n } else { 0 };
        }
        for offset in offsets {
            extra.push(self.source(offset, b'h')?);
        }
        let mut inst = self.blank(run);
        let mut signature = Signature { extra: Class::W, ..Signature::default() };
        for (n, &(slot, wide)) in slots.iter().enumerate() {
            (inst.s[n], signature.s[n]) = (slot, if wide { Class::D } else { Class::W });
        }
        inst.extra = extra.into();
        inst.mode = option << mode::FREE_SHIFT;
        self.emit(inst, signature);
        Ok(())
    }

    fn linear(
        &mut self,
        run: Handler,
        option: u32,
        places: &[(&Operand<'a>, Space)],
        size: &Operand<'a>,
    ) -> Lowered<()> {
        let mut option = option;
        let mut slots = Vec::new();
        for (n, &(place, space)) in places.iter().enumerate() {
            let (slot, wide) = self.place(place, space)?;
            slots.push((slot, wide));
            option |= if wide { bulk::WIDE << n } else { 0 };
        }
        let mut inst = self.blank(run);
        let mut signature = Signature::default();
        for (n, &(slot, wide)) in slots.iter().enumerate() {
            (inst.s[n], signature.s[n]) = (slot, if wide { Class::D } else { Class::W });
        }
        (inst.s[3], signature.s[3]) = (self.source(size, b'w')?, Class::W);
        inst.mode = option << mode::FREE_SHIFT;
        self.emit(inst, signature);
        Ok(())
    }

    pub fn prefetch_map(&mut self, operands: &[Operand<'a>]) -> Lowered<()> {
        self.asynchronous = true;
        match operands {
            [map] => {
                let (slot, wide) = self.place(map, Space::Generic)?;
                let mut inst = self.blank(bulk::prefetch_tensor);
                let mut signature = Signature::default();
                (inst.s[0], signature.s[0]) = (slot, if wide { Class::D } else { Class::W });
                inst.mode = if wide { bulk::WIDE << mode::FREE_SHIFT } else { 0 };
                self.emit(inst, signature);
                Ok(())
            }
            _ => self.error("Unexpected number of arguments"),
        }
    }

    /// Fences that the tables do not have: those of mbarriers and between proxies.
    pub fn fence(&mut self, rest: &str) -> Lowered<()> {
        let run: Handler = match rest {
            "mbarrier_init.release.cluster" => warp::fence_mbarriers,
            "proxy.async" | "proxy.async.shared::cta" | "proxy.async.shared::cluster" => warp::fence_proxy,
            "proxy.async.global" | "proxy.alias" => warp::fence,
            _ if rest.starts_with("proxy.tensormap") => warp::fence,
            _ => return self.unknown(format!("Not a name of any known instruction: 'fence.{rest}'")),
        };
        self.asynchronous |= rest != "proxy.alias";
        let inst = self.blank(run);
        self.emit(inst, Signature::default());
        Ok(())
    }

    /// setmaxnreg.
    pub fn set_registers(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        let takes = match rest {
            "inc.sync.aligned.u32" => 1,
            "dec.sync.aligned.u32" => 0,
            _ => return self.unknown(format!("'setmaxnreg.{rest}'")),
        };
        match operands {
            [Operand::Int(count)] if (24..=256).contains(count) && count % 8 == 0 => {
                let mut inst = self.blank(registers::set);
                (inst.imm, inst.mode) = (*count as i64, takes);
                self.emit(inst, Signature::default());
                Ok(())
            }
            _ => self.error("setmaxnreg takes a multiple of 8 from 24 to 256"),
        }
    }

    /// elect.sync d|p, members.
    pub fn elect(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        match operands {
            [Operand::Pair(leader, elected), members] if rest == "sync" => {
                let results = [Operand::Name(leader), Operand::Name(elected)];
                self.special(warp::elect, 0, &results, b"wp", std::slice::from_ref(members), b"w")
            }
            _ => self.unknown(format!("'elect.{rest}' of this form")),
        }
    }

    /// mapa and getctarank.
    pub fn map_address(&mut self, head: &str, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        self.asynchronous = true;
        let bits = match rest {
            "u32" | "shared::cluster.u32" => 32,
            "u64" | "shared::cluster.u64" => 64,
            _ => return self.unknown(format!("'{head}.{rest}'")),
        };
        let operands: Vec<Operand<'a>> = operands
            .iter()
            .map(|operand| match operand {
                Operand::Address(Some(name), 0) => Operand::Name(name),
                other => other.clone(),
            })
            .collect();
        let letter: &[u8] = if bits == 64 { b"d" } else { b"w" };
        match operands.as_slice() {
            [to, from] if head == "getctarank" => self.special(
                cluster::rank,
                bits,
                std::slice::from_ref(to),
                b"w",
                std::slice::from_ref(from),
                letter,
            ),
            [to, rest @ ..] if head == "mapa" => {
                let s = if bits == 64 { b"dw" } else { b"ww" };
                self.special(cluster::map, bits, std::slice::from_ref(to), letter, rest, s)
            }
            _ => self.error("Unexpected number of arguments"),
        }
    }

    pub fn cluster_barrier(&mut self, rest: &str, operands: &[Operand<'a>]) -> Lowered<()> {
        self.asynchronous = true;
        let mut words: Vec<&str> = rest.split('.').skip(1).collect();
        words.retain(|word| !matches!(*word, "aligned" | "acquire" | "release"));
        let run: Handler = match (words.first(), operands) {
            (Some(&"arrive"), []) => cluster::arrive,
            (Some(&"wait"), []) => cluster::wait,
            _ => return self.unknown(format!("'barrier.{rest}'")),
        };
        let mut inst = self.blank(run);
        inst.mode = match words.get(1..) {
            Some([]) => 0,
            Some(["relaxed"]) => cluster::RELAXED,
            _ => return self.unknown(format!("'barrier.{rest}'")),
        };
        self.emit(inst, Signature::default());
        Ok(())
    }

    /// createpolicy: how the cache keeps data changes only the speed; the policy is 0.
    pub fn cache_policy(&mut self, operands: &[Operand<'a>]) -> Lowered<()> {
        let Some(to @ Operand::Name(_)) = operands.first() else {
            return self.error("expected a register for the result");
        };
        if self.type_of(to).map(Type::bits) != Some(64) {
            return self.error("a cache policy has 64 bits");
        }
        let zero: Handler = |cx, i, m| {
            cx.put::<u64>(i.d[0], m, &[0; 32]);
            crate::exec::inst::Flow::Next
        };
        self.special(zero, 0, std::slice::from_ref(to), b"d", &[], b"")
    }
}
