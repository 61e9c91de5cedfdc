//! Loads and stores of a warp in each space, with their checks.

use super::cluster::RANKED;
use super::cx::{Cx, Doubles, LANES, lanes};
use super::inst::{Flow, Inst, mode};
use super::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_MASK};
use crate::FaultKind;
use crate::memory::{Allocation, find};
use crate::ptx::ast::Space;

/// What a vector access moves: up to four elements of each lane.
pub type Values = [[u64; LANES]; 4];

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    Read,
    Write,
    /// Both at once.
    Update,
}

pub struct Bad {
    pub kind: FaultKind,
    pub detail: String,
}

fn bad<T>(kind: FaultKind, detail: impl Into<String>) -> Result<T, Bad> {
    Err(Bad { kind, detail: detail.into() })
}

fn low(size: u64) -> u64 {
    if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 }
}

impl<'a> Cx<'a> {
    /// The allocation of a global access and the offset in it.
    #[inline(always)]
    pub fn global(&mut self, addr: u64, bytes: u64) -> Result<(&'a Allocation, u64), Bad> {
        let found = self.global_span(addr, bytes)?;
        if addr & (bytes - 1) != 0 {
            return bad(FaultKind::Misaligned, format!("{bytes} bytes"));
        }
        Ok(found)
    }

    /// The same for any number of bytes at any address.
    #[inline(always)]
    pub fn global_span(&mut self, addr: u64, bytes: u64) -> Result<(&'a Allocation, u64), Bad> {
        let table = &self.launch.table;
        let mut a = table.get(self.hint);
        if !a.is_some_and(|a| {
            let offset = addr.wrapping_sub(a.addr);
            offset < a.size && bytes <= a.size - offset
        }) {
            match find(table, addr, bytes) {
                Some(index) => {
                    self.hint = index;
                    a = table.get(index);
                }
                None => {
                    let fault = self.launch.memory.explain(addr, bytes);
                    return bad(fault.kind, fault.detail);
                }
            }
        }
        let Some(a) = a else { return bad(FaultKind::OutOfBounds, "") };
        if a.freed.load(std::sync::atomic::Ordering::Relaxed) {
            return bad(FaultKind::UseAfterFree, "memory freed while the kernel runs");
        }
        Ok((a, addr - a.addr))
    }

    #[inline(always)]
    fn load_global(&mut self, i: &Inst, lane: usize, addr: u64, out: &mut Values) -> Result<(), Bad> {
        let (size, count) = (i.size(), i.lanes());
        let (a, offset) = self.global(addr, size * count as u64)?;
        for (v, to) in out.iter_mut().enumerate().take(count) {
            let at = offset + v as u64 * size;
            if self.launch.checks.uninitialized && !a.is_written(at, size) {
                return bad(FaultKind::Uninitialized, "global memory that nothing wrote");
            }
            to[lane] = a.load(at, size);
        }
        if self.launch.checks.global_races {
            self.global_race(i, lane, addr, size * count as u64, false)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn store_global(&mut self, i: &Inst, lane: usize, addr: u64, from: &Values) -> Result<(), Bad> {
        let (size, count) = (i.size(), i.lanes());
        let (a, offset) = self.global(addr, size * count as u64)?;
        if size == 4 && count % 2 == 0 {
            for v in (0..count).step_by(2) {
                let both = from[v][lane] & low(4) | from[v + 1][lane] << 32;
                a.store(offset + v as u64 * 4, 8, both);
            }
        } else {
            for (v, from) in from.iter().enumerate().take(count) {
                a.store(offset + v as u64 * size, size, from[lane]);
            }
        }
        if self.launch.checks.global_races {
            self.global_race(i, lane, addr, size * count as u64, true)?;
        }
        Ok(())
    }

    fn global_race(&mut self, i: &Inst, lane: usize, addr: u64, bytes: u64, write: bool) -> Result<(), Bad> {
        let actor = self.warp.actor(i.has(mode::STRONG), true);
        match self.launch.global_races.access(self.block.linear, &actor, lane, addr, bytes, write) {
            Some(other) => bad(FaultKind::Race, other),
            None => Ok(()),
        }
    }

    /// The checks of an access to shared memory, and its notes for later ones. Strong accesses do not race with each
    /// other.
    #[inline(always)]
    pub fn touch_shared(
        &mut self,
        lane: usize,
        addr: u64,
        bytes: u64,
        touch: Touch,
        strong: bool,
    ) -> Result<(), Bad> {
        let write = touch != Touch::Read;
        if addr + bytes > self.block.shared_bytes {
            return bad(
                FaultKind::OutOfBounds,
                format!("{bytes} bytes of a block's {} bytes of shared memory", self.block.shared_bytes),
            );
        }
        if addr & (bytes - 1) != 0 {
            return bad(FaultKind::Misaligned, format!("{bytes} bytes of shared memory"));
        }
        let checks = self.launch.checks;
        let actor = if self.foreign {
            self.block.cluster.foreign(strong, checks.shared_races)
        } else {
            self.warp.actor(strong, checks.shared_races)
        };
        let (start, count) = if self.launch.kernel.code.narrow_shared {
            (addr as usize, bytes as usize)
        } else {
            ((addr >> 2) as usize, (bytes >> 2) as usize)
        };
        let mut race =
            write && !self.block.readers.is_empty() && self.block.read_under_way(addr, bytes).is_some();
        for cell in &mut self.block.cells[start..start + count] {
            if touch != Touch::Write {
                if checks.uninitialized && !cell.is_written() {
                    return bad(FaultKind::Uninitialized, "shared memory that nothing wrote");
                }
                race |= !cell.read(&actor, lane);
            }
            if write {
                race |= !cell.write(&actor, lane);
            }
        }
        if race && checks.shared_races {
            return Err(self.race(addr, bytes, write));
        }
        Ok(())
    }

    #[inline(always)]
    pub fn shared_word(&self, addr: u64, size: u64) -> u64 {
        let word = (addr >> 2) as usize;
        match size {
            4 => u64::from(self.block.shared[word]),
            8 => u64::from(self.block.shared[word]) | u64::from(self.block.shared[word + 1]) << 32,
            _ => u64::from(self.block.shared[word]) >> ((addr & 3) * 8) & low(size),
        }
    }

    #[inline(always)]
    pub fn set_shared_word(&mut self, addr: u64, size: u64, value: u64) {
        let word = (addr >> 2) as usize;
        match size {
            4 => self.block.shared[word] = value as u32,
            8 => {
                self.block.shared[word] = value as u32;
                self.block.shared[word + 1] = (value >> 32) as u32;
            }
            _ => {
                let shift = (addr & 3) * 8;
                let mask = (low(size) << shift) as u32;
                let to = &mut self.block.shared[word];
                *to = *to & !mask | (value << shift) as u32 & mask;
            }
        }
    }

    #[inline(always)]
    fn load_shared(&mut self, i: &Inst, lane: usize, addr: u64, out: &mut Values) -> Result<(), Bad> {
        if addr >= RANKED {
            return self.load_elsewhere(i, lane, addr, out);
        }
        self.load_own(i, lane, addr, out)
    }

    #[cold]
    fn load_elsewhere(&mut self, i: &Inst, lane: usize, addr: u64, out: &mut Values) -> Result<(), Bad> {
        self.in_block(addr, |cx, at| cx.load_own(i, lane, at, out))
    }

    #[inline(always)]
    fn load_own(&mut self, i: &Inst, lane: usize, addr: u64, out: &mut Values) -> Result<(), Bad> {
        let (size, count) = (i.size(), i.lanes());
        self.touch_shared(lane, addr, size * count as u64, Touch::Read, i.has(mode::STRONG))?;
        for (v, to) in out.iter_mut().enumerate().take(count) {
            to[lane] = self.shared_word(addr + v as u64 * size, size);
        }
        Ok(())
    }

    #[inline(always)]
    fn store_shared(&mut self, i: &Inst, lane: usize, addr: u64, from: &Values) -> Result<(), Bad> {
        if addr >= RANKED {
            return self.store_elsewhere(i, lane, addr, from);
        }
        self.store_own(i, lane, addr, from)
    }

    #[cold]
    fn store_elsewhere(&mut self, i: &Inst, lane: usize, addr: u64, from: &Values) -> Result<(), Bad> {
        self.in_block(addr, |cx, at| cx.store_own(i, lane, at, from))
    }

    #[inline(always)]
    fn store_own(&mut self, i: &Inst, lane: usize, addr: u64, from: &Values) -> Result<(), Bad> {
        let (size, count) = (i.size(), i.lanes());
        self.touch_shared(lane, addr, size * count as u64, Touch::Write, i.has(mode::STRONG))?;
        for (v, from) in from.iter().enumerate().take(count) {
            self.set_shared_word(addr + v as u64 * size, size, from[lane]);
        }
        Ok(())
    }

    fn local_range(&self, lane: usize, addr: u64, bytes: u64) -> Result<std::ops::Range<usize>, Bad> {
        let size = u64::from(self.launch.kernel.local_bytes);
        if addr >= size || bytes > size - addr {
            return bad(FaultKind::OutOfBounds, format!("{bytes} bytes of {size} bytes of local memory"));
        }
        if addr & (bytes - 1) != 0 {
            return bad(FaultKind::Misaligned, format!("{bytes} bytes of local memory"));
        }
        let start = (lane as u64 * size + addr) as usize;
        Ok(start..start + bytes as usize)
    }

    fn load_local(&mut self, i: &Inst, lane: usize, addr: u64, out: &mut Values) -> Result<(), Bad> {
        let (size, count) = (i.size(), i.lanes());
        let range = self.local_range(lane, addr, size * count as u64)?;
        if self.launch.checks.uninitialized && self.warp.local_written[range.clone()].contains(&0) {
            return bad(FaultKind::Uninitialized, "local memory that nothing wrote");
        }
        for (v, to) in out.iter_mut().enumerate().take(count) {
            let at = range.start + v * size as usize;
            let mut bytes = [0; 8];
            bytes[..size as usize].copy_from_slice(&self.warp.local[at..at + size as usize]);
            to[lane] = u64::from_le_bytes(bytes);
        }
        Ok(())
    }

    fn store_local(&mut self, i: &Inst, lane: usize, addr: u64, from: &Values) -> Result<(), Bad> {
        let (size, count) = (i.size(), i.lanes());
        let range = self.local_range(lane, addr, size * count as u64)?;
        for (v, from) in from.iter().enumerate().take(count) {
            let at = range.start + v * size as usize;
            let bytes = from[lane].to_le_bytes();
            self.warp.local[at..at + size as usize].copy_from_slice(&bytes[..size as usize]);
        }
        self.warp.local_written[range].fill(1);
        Ok(())
    }

    fn load_param(&mut self, i: &Inst, lane: usize, addr: u64, out: &mut Values) -> Result<(), Bad> {
        let (size, count) = (i.size(), i.lanes());
        let bytes = size * count as u64;
        let end = addr.checked_add(bytes).filter(|&end| end <= self.launch.params.len() as u64);
        if end.is_none() {
            return bad(FaultKind::OutOfBounds, format!("{bytes} bytes of the parameters"));
        }
        for (v, to) in out.iter_mut().enumerate().take(count) {
            let at = addr as usize + v * size as usize;
            let mut word = [0; 8];
            word[..size as usize].copy_from_slice(&self.launch.params[at..at + size as usize]);
            to[lane] = u64::from_le_bytes(word);
        }
        Ok(())
    }

    /// The space of a generic address, and the address in it.
    pub fn resolve(space: Space, addr: u64) -> (Space, u64) {
        if space != Space::Generic {
            return (space, addr);
        }
        match addr & WINDOW_MASK {
            SHARED_WINDOW => (Space::Shared, addr - SHARED_WINDOW),
            LOCAL_WINDOW => (Space::Local, addr - LOCAL_WINDOW),
            PARAM_WINDOW => (Space::Param, addr - PARAM_WINDOW),
            _ => (Space::Global, addr),
        }
    }

    pub fn blame(&mut self, i: &Inst, lane: usize, addr: u64, bad: Bad) -> Flow {
        self.fail(i, lane, bad.kind, Some(addr), bad.detail)
    }
}

/// ld: results in d[0..], address in s[0].
#[inline(always)]
pub fn load(cx: &mut Cx<'_>, i: &Inst, m: u32, space: Space) -> Flow {
    let addresses = cx.addresses(i);
    let mut out: Values = [[0; LANES]; 4];
    if space == Space::Param && addresses == [addresses[0]; LANES] {
        if let Err(bad) = cx.load_param(i, 0, addresses[0], &mut out) {
            return cx.blame(i, m.trailing_zeros() as usize, addresses[0], bad);
        }
        for values in &mut out {
            *values = [values[0]; LANES];
        }
        return deliver(cx, i, m, &mut out);
    }
    for lane in lanes(m) {
        let (space, addr) = Cx::resolve(space, addresses[lane]);
        let result = match space {
            Space::Shared => cx.load_shared(i, lane, addr, &mut out),
            Space::Local => cx.load_local(i, lane, addr, &mut out),
            Space::Param => cx.load_param(i, lane, addr, &mut out),
            _ => cx.load_global(i, lane, addr, &mut out),
        };
        if let Err(bad) = result {
            return cx.blame(i, lane, addr, bad);
        }
    }
    deliver(cx, i, m, &mut out)
}

#[inline(always)]
fn deliver(cx: &mut Cx<'_>, i: &Inst, m: u32, out: &mut Values) -> Flow {
    for (v, values) in out.iter_mut().enumerate().take(i.lanes()) {
        if i.has(mode::SIGNED) && i.size() < 8 {
            let shift = 64 - 8 * i.size();
            for value in values.iter_mut() {
                *value = ((*value as i64) << shift >> shift) as u64;
            }
        }
        if i.d[v] == super::inst::NONE {
            continue;
        }
        if i.has(mode::DOUBLE) {
            cx.put::<u64>(i.d[v], m, values);
        } else {
            let narrow = values.map(|x| x as u32);
            cx.put::<u32>(i.d[v], m, &narrow);
        }
    }
    Flow::Next
}

/// st: address in s[0], values in s[1..].
#[inline(always)]
pub fn store(cx: &mut Cx<'_>, i: &Inst, m: u32, space: Space) -> Flow {
    let addresses: Doubles = cx.addresses(i);
    let mut from: Values = [[0; LANES]; 4];
    for (v, to) in from.iter_mut().enumerate().take(i.lanes()) {
        if i.has(mode::DOUBLE) {
            *to = *cx.get::<u64>(i.s[v + 1]);
        } else {
            let narrow = cx.get::<u32>(i.s[v + 1]);
            for lane in 0..LANES {
                to[lane] = u64::from(narrow[lane]);
            }
        }
    }
    let mut skip = false;
    for lane in lanes(m) {
        if std::mem::take(&mut skip) {
            continue;
        }
        let (space, addr) = Cx::resolve(space, addresses[lane]);
        let result = match space {
            Space::Shared => cx.store_shared(i, lane, addr, &from),
            Space::Local => cx.store_local(i, lane, addr, &from),
            Space::Param => bad(FaultKind::OutOfBounds, "store to the parameters"),
            _ => {
                skip = pair(cx, i, m, lane, &addresses, &from);
                if skip { Ok(()) } else { cx.store_global(i, lane, addr, &from) }
            }
        };
        if let Err(bad) = result {
            return cx.blame(i, lane, addr, bad);
        }
    }
    Flow::Next
}

/// Stores two neighbouring 4-byte values at once; halves the cost of the common row-wise store.
#[inline(always)]
fn pair(cx: &mut Cx<'_>, i: &Inst, m: u32, lane: usize, addresses: &Doubles, from: &Values) -> bool {
    if i.size() != 4 || i.lanes() != 1 || lane == LANES - 1 || m >> (lane + 1) & 1 == 0 {
        return false;
    }
    let addr = addresses[lane];
    if addr & 7 != 0 || addresses[lane + 1] != addr + 4 || cx.launch.checks.global_races {
        return false;
    }
    let Ok((a, offset)) = cx.global(addr, 8) else { return false };
    a.store(offset, 8, from[0][lane] & low(4) | from[0][lane + 1] << 32);
    true
}
