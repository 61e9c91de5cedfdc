//! The emulated card's memory.

use crate::{Fault, FaultKind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};

/// Where the next allocation of any card lies: all cards share one address space.
static NEXT: AtomicU64 = AtomicU64::new(0x7000_0000_0000);
const GUARD: u64 = 4096;
const ALIGN: u64 = 512;

/// One allocation: its bytes in words, and for each byte whether it was ever written.
pub(crate) struct Allocation {
    pub addr: u64,
    pub size: u64,
    words: Box<[AtomicU64]>,
    written: Box<[AtomicU8]>,
    pub freed: AtomicBool,
}

/// `n` low bytes set.
fn byte_mask(n: u64) -> u64 {
    if n >= 8 { u64::MAX } else { (1 << (8 * n)) - 1 }
}

impl Allocation {
    fn new(addr: u64, size: u64) -> Option<Allocation> {
        let words = usize::try_from(size.div_ceil(8)).ok()?;
        Some(Allocation {
            addr,
            size,
            words: bytemuck::allocation::try_zeroed_slice_box(words).ok()?,
            written: bytemuck::allocation::try_zeroed_slice_box(words).ok()?,
            freed: AtomicBool::new(false),
        })
    }

    /// 1, 2, 4 or 8 aligned bytes.
    #[inline]
    pub fn load(&self, offset: u64, n: u64) -> u64 {
        let word = self.words[(offset >> 3) as usize].load(Relaxed);
        (word >> ((offset & 7) * 8)) & byte_mask(n)
    }

    #[inline]
    pub fn store(&self, offset: u64, n: u64, value: u64) {
        let word = &self.words[(offset >> 3) as usize];
        if n == 8 {
            word.store(value, Relaxed);
        } else {
            let shift = (offset & 7) * 8;
            let mask = byte_mask(n) << shift;
            let value = (value << shift) & mask;
            let mut old = word.load(Relaxed);
            while let Err(now) = word.compare_exchange_weak(old, (old & !mask) | value, Relaxed, Relaxed) {
                old = now;
            }
        }
        self.mark(offset, n);
    }

    #[inline]
    fn mark(&self, offset: u64, n: u64) {
        let bits = (((1u32 << n) - 1) << (offset & 7)) as u8;
        let shadow = &self.written[(offset >> 3) as usize];
        if shadow.load(Relaxed) & bits != bits {
            shadow.fetch_or(bits, Relaxed);
        }
    }

    #[inline]
    pub fn is_written(&self, offset: u64, n: u64) -> bool {
        let bits = (((1u32 << n) - 1) << (offset & 7)) as u8;
        self.written[(offset >> 3) as usize].load(Relaxed) & bits == bits
    }

    /// Replaces 4 or 8 aligned bytes by what `change` makes of them; gives the old value.
    pub fn update(&self, offset: u64, n: u64, change: impl Fn(u64) -> u64) -> u64 {
        let word = &self.words[(offset >> 3) as usize];
        let shift = (offset & 7) * 8;
        let mask = byte_mask(n) << shift;
        let mut old = word.load(Relaxed);
        loop {
            let before = (old & mask) >> shift;
            let new = (old & !mask) | ((change(before) << shift) & mask);
            match word.compare_exchange_weak(old, new, Relaxed, Relaxed) {
                Ok(_) => {
                    self.mark(offset, n);
                    return before;
                }
                Err(now) => old = now,
            }
        }
    }

    /// Walks a range in pieces that lie in one word: offset, length, index from the start.
    fn pieces(offset: u64, n: u64, mut each: impl FnMut(u64, u64, usize)) {
        let mut done = 0;
        while done < n {
            let at = offset + done;
            let step = (8 - (at & 7)).min(n - done);
            each(at, step, done as usize);
            done += step;
        }
    }

    pub fn read(&self, offset: u64, out: &mut [u8]) {
        Self::pieces(offset, out.len() as u64, |at, step, index| {
            let word = self.words[(at >> 3) as usize].load(Relaxed) >> ((at & 7) * 8);
            out[index..index + step as usize].copy_from_slice(&word.to_le_bytes()[..step as usize]);
        });
    }

    pub fn write(&self, offset: u64, data: &[u8]) {
        Self::pieces(offset, data.len() as u64, |at, step, index| {
            let mut bytes = [0; 8];
            bytes[..step as usize].copy_from_slice(&data[index..index + step as usize]);
            self.store_any(at, step, u64::from_le_bytes(bytes));
        });
    }

    /// As `store`, for any length within one word.
    fn store_any(&self, at: u64, n: u64, value: u64) {
        if n == 8 || n == 4 && at & 3 == 0 {
            return self.store(at, n, value);
        }
        for k in 0..n {
            self.store(at + k, 1, value >> (8 * k));
        }
    }

    pub fn first_unwritten(&self, offset: u64, n: u64) -> Option<u64> {
        let mut found = None;
        Self::pieces(offset, n, |at, step, _| {
            if found.is_none() && !self.is_written(at, step) {
                found = (at..at + step).find(|&byte| !self.is_written(byte, 1));
            }
        });
        found
    }
}

pub(crate) type Table = Arc<Vec<Arc<Allocation>>>;

/// Device memory with a shadow of the bytes that were written. Addresses are never used twice,
/// so that use after free is always told.
pub struct DeviceMemory {
    capacity: u64,
    table: RwLock<Table>,
    state: Mutex<State>,
    check_unwritten: AtomicBool,
}

struct State {
    used: u64,
    freed: Vec<(u64, u64)>,
}

/// The allocation that an access of `n` bytes lies in.
pub(crate) fn find(table: &[Arc<Allocation>], addr: u64, n: u64) -> Option<usize> {
    let index = table.partition_point(|a| a.addr <= addr).checked_sub(1)?;
    let a = &table[index];
    (addr - a.addr <= a.size && n <= a.size - (addr - a.addr)).then_some(index)
}

impl DeviceMemory {
    pub fn new(capacity: u64) -> DeviceMemory {
        DeviceMemory {
            capacity,
            table: RwLock::new(Arc::new(Vec::new())),
            state: Mutex::new(State { used: 0, freed: Vec::new() }),
            check_unwritten: AtomicBool::new(true),
        }
    }

    /// Turns the check of host reads of unwritten memory on or off.
    pub fn set_check_unwritten(&self, on: bool) {
        self.check_unwritten.store(on, Relaxed);
    }

    /// None where the capacity does not reach. Zero bytes get an address of their own.
    pub fn alloc(&self, bytes: u64) -> Option<u64> {
        let mut state = self.lock();
        let held = bytes.checked_next_multiple_of(ALIGN)?;
        let used = state.used.checked_add(held).filter(|&used| used <= self.capacity)?;
        let step = held.checked_add(GUARD)?;
        let addr = NEXT.fetch_add(step, Relaxed);
        let allocation = Arc::new(Allocation::new(addr, bytes)?);
        state.used = used;
        let mut table = self.table.write().unwrap_or_else(|e| e.into_inner());
        Arc::make_mut(&mut table).push(allocation);
        Some(addr)
    }

    /// False where nothing live starts at the address.
    pub fn free(&self, addr: u64) -> bool {
        let mut state = self.lock();
        let mut table = self.table.write().unwrap_or_else(|e| e.into_inner());
        let Ok(index) = table.binary_search_by_key(&addr, |a| a.addr) else { return false };
        let gone = Arc::make_mut(&mut table).remove(index);
        gone.freed.store(true, Relaxed);
        state.used -= gone.size.next_multiple_of(ALIGN);
        state.freed.push((gone.addr, gone.size));
        true
    }

    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let (a, offset) = self.range(addr, out.len() as u64)?;
        if self.check_unwritten.load(Relaxed)
            && let Some(byte) = a.first_unwritten(offset, out.len() as u64)
        {
            let detail = "a copy to the host reads device memory that nothing wrote";
            return Err(Fault::plain(FaultKind::Uninitialized, Some(a.addr + byte), detail));
        }
        a.read(offset, out);
        Ok(())
    }

    pub fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let (a, offset) = self.range(addr, data.len() as u64)?;
        a.write(offset, data);
        Ok(())
    }

    pub fn fill(&self, addr: u64, byte: u8, n: u64) -> Result<(), Fault> {
        let (a, offset) = self.range(addr, n)?;
        let value = u64::from_le_bytes([byte; 8]);
        Allocation::pieces(offset, n, |at, step, _| a.store_any(at, step, value));
        Ok(())
    }

    /// Copies bytes together with the knowledge whether they were written.
    pub fn copy(&self, dst: u64, src: u64, n: u64) -> Result<(), Fault> {
        let (to, to_offset) = self.range(dst, n)?;
        let (from, from_offset) = self.range(src, n)?;
        let mut bytes = vec![0; usize::try_from(n).unwrap_or(0)];
        from.read(from_offset, &mut bytes);
        if from.first_unwritten(from_offset, n).is_none() {
            to.write(to_offset, &bytes);
            return Ok(());
        }
        let written: Vec<bool> = (0..n).map(|k| from.is_written(from_offset + k, 1)).collect();
        for (k, (&byte, &known)) in bytes.iter().zip(&written).enumerate() {
            let at = to_offset + k as u64;
            to.store(at, 1, u64::from(byte));
            if !known {
                to.written[(at >> 3) as usize].fetch_and(!(1 << (at & 7)), Relaxed);
            }
        }
        Ok(())
    }

    pub fn used(&self) -> u64 {
        self.lock().used
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Live allocations: address and size.
    pub fn live(&self) -> Vec<(u64, u64)> {
        self.table().iter().map(|a| (a.addr, a.size)).collect()
    }

    pub(crate) fn table(&self) -> Table {
        self.table.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn range(&self, addr: u64, n: u64) -> Result<(Arc<Allocation>, u64), Fault> {
        let table = self.table();
        match find(&table, addr, n) {
            Some(index) => Ok((table[index].clone(), addr - table[index].addr)),
            None => Err(self.explain(addr, n)),
        }
    }

    /// Names what is wrong with an access that lies in no live allocation.
    pub(crate) fn explain(&self, addr: u64, n: u64) -> Fault {
        let state = self.lock();
        if let Some((start, size)) = state.freed.iter().find(|(a, size)| addr >= *a && addr < a + size) {
            let detail = format!("{n} bytes in an allocation of {size} bytes at 0x{start:x} that was freed");
            return Fault::plain(FaultKind::UseAfterFree, Some(addr), detail);
        }
        drop(state);
        let table = self.table();
        let near = table.partition_point(|a| a.addr <= addr).checked_sub(1).map(|i| &table[i]);
        let detail = match near {
            Some(a) => format!(
                "{n} bytes at offset {} of an allocation of {} bytes at 0x{:x}",
                addr - a.addr,
                a.size,
                a.addr
            ),
            None => format!("{n} bytes in no allocation"),
        };
        Fault::plain(FaultKind::OutOfBounds, Some(addr), detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_was_written_at_any_offset() {
        let memory = DeviceMemory::new(1 << 20);
        let a = memory.alloc(100).unwrap();
        assert_eq!(a % 512, 0);
        for offset in 0..20 {
            memory.write(a + offset, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]).unwrap();
            let mut out = [0; 11];
            memory.read(a + offset, &mut out).unwrap();
            assert_eq!(out, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        }
    }

    #[test]
    fn tells_unwritten_freed_and_outside_apart() {
        let memory = DeviceMemory::new(4096);
        let a = memory.alloc(64).unwrap();
        let mut out = [0; 8];
        assert_eq!(memory.read(a, &mut out).unwrap_err().kind, FaultKind::Uninitialized);
        memory.fill(a + 1, 7, 5).unwrap();
        assert_eq!(memory.read(a + 1, &mut out).unwrap_err().address, Some(a + 6));
        memory.read(a + 1, &mut out[..5]).unwrap();
        assert_eq!(memory.read(a + 60, &mut out).unwrap_err().kind, FaultKind::OutOfBounds);
        assert!(memory.free(a) && !memory.free(a));
        assert_eq!(memory.write(a, &[1]).unwrap_err().kind, FaultKind::UseAfterFree);
        assert_eq!(memory.used(), 0);
        assert!(memory.alloc(4097).is_none());
    }

    #[test]
    fn copies_carry_the_shadow() {
        let memory = DeviceMemory::new(4096);
        let (a, b) = (memory.alloc(16).unwrap(), memory.alloc(16).unwrap());
        memory.fill(b, 0, 16).unwrap();
        memory.write(a + 4, &[9; 8]).unwrap();
        memory.copy(b, a, 16).unwrap();
        let mut out = [0; 8];
        memory.read(b + 4, &mut out).unwrap();
        assert_eq!(out, [9; 8]);
        assert_eq!(memory.read(b, &mut out).unwrap_err().kind, FaultKind::Uninitialized);
    }
}
