//! Shared memory as the asynchronous proxy (bulk copies, wgmma) uses it, and the checks.
//!
//! A thread's access to bytes that a bulk copy is still writing is a race, and so is a write to bytes that a bulk store
//! or an unfinished wgmma still reads. What threads wrote must have passed `fence.proxy.async` before the proxy uses it;
//! a fence counts for all lanes of its warp.

use super::access::Bad;
use super::block::Block;
use super::cx::Cx;
use super::race::{Cell, Order};
use crate::FaultKind;

/// Bytes that are told apart in what the proxy reads.
const GRAIN: u64 = 16;

/// A read of the proxy that is under way.
pub struct Reader {
    pub id: u64,
    line: u32,
    /// A bit for each 16 bytes of shared memory.
    bits: Vec<u64>,
}

impl Reader {
    pub fn new(id: u64, line: u32, shared_bytes: u64) -> Reader {
        Reader { id, line, bits: vec![0; shared_bytes.div_ceil(GRAIN * 64) as usize] }
    }

    /// Adds the 16 bytes at an address.
    pub fn add(&mut self, addr: u64) {
        let n = addr / GRAIN;
        self.bits[(n / 64) as usize] |= 1 << (n % 64);
    }

    fn has(&self, addr: u64, bytes: u64) -> bool {
        let mut units = addr / GRAIN..(addr + bytes).div_ceil(GRAIN);
        units.any(|n| self.bits.get((n / 64) as usize).is_some_and(|word| word >> (n % 64) & 1 != 0))
    }

    /// The addresses of its parts of 16 bytes.
    fn parts(&self) -> impl Iterator<Item = u64> {
        let set = |word: u64| (0..64).filter(move |bit| word >> bit & 1 != 0);
        let words = self.bits.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(move |(n, &word)| set(word).map(move |bit| (n as u64 * 64 + bit) * GRAIN))
    }
}

impl Block {
    /// A number for something of this block.
    pub fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    pub fn cells(&mut self, addr: u64, bytes: u64) -> &mut [Cell] {
        let (start, end) = (addr >> self.cell_shift, (addr + bytes) >> self.cell_shift);
        &mut self.cells[start as usize..end as usize]
    }

    /// The line of what still reads some of these bytes.
    pub fn read_under_way(&self, addr: u64, bytes: u64) -> Option<u32> {
        self.readers.iter().find(|reader| reader.has(addr, bytes)).map(|reader| reader.line)
    }
}

fn race(detail: String) -> Bad {
    Bad { kind: FaultKind::Race, detail }
}

impl Cx<'_> {
    /// An error where a range of shared memory passes its end or does not start at a multiple of `align`.
    pub fn shared_range(&self, addr: u64, bytes: u64, align: u64) -> Result<(), Bad> {
        let size = self.block.shared_bytes;
        if addr > size || bytes > size - addr {
            let detail = format!("{bytes} bytes of a block's {size} bytes of shared memory");
            return Err(Bad { kind: FaultKind::OutOfBounds, detail });
        }
        if !addr.is_multiple_of(align) {
            let detail = format!("{bytes} bytes of shared memory that must start at a multiple of {align}");
            return Err(Bad { kind: FaultKind::Misaligned, detail });
        }
        Ok(())
    }

    /// Why an access to these bytes is a race.
    #[cold]
    pub fn race(&self, addr: u64, bytes: u64, writes: bool) -> Bad {
        if let Some(barrier) =
            self.block.mbarriers.iter().find(|one| one.at < addr + bytes && addr < one.at + 8)
        {
            return race(format!(
                "the mbarrier of line {} lies here; only mbarrier instructions may touch it",
                barrier.line
            ));
        }
        if let Some(flight) = self.block.flights.iter().find(|flight| flight.writes(addr, bytes)) {
            return race(format!("the bulk copy of line {} still writes here", flight.line));
        }
        if let Some(line) = self.block.read_under_way(addr, bytes).filter(|_| writes) {
            return race(format!("the asynchronous read of line {line} is not over"));
        }
        race("no barrier orders this access to shared memory after another thread's".into())
    }

    fn judge(&self, order: Order, addr: u64, bytes: u64, writes: bool) -> Result<(), Bad> {
        match order {
            Order::Race if self.launch.checks.shared_races => Err(self.race(addr, bytes, writes)),
            Order::Unfenced if self.launch.checks.shared_races => {
                let detail = "threads wrote here without a fence.proxy.async between that and this asynchronous access";
                Err(race(detail.into()))
            }
            _ => Ok(()),
        }
    }

    /// The checks before the proxy reads bytes of shared memory for this warp.
    pub fn proxy_reads(&mut self, addr: u64, bytes: u64) -> Result<(), Bad> {
        let actor = self.warp.actor(false, true);
        let fenced = &self.warp.known.fenced;
        let (mut worst, mut unwritten) = (Order::Fine, false);
        for cell in self.block.cells(addr, bytes) {
            unwritten |= !cell.is_written();
            worst = worst.max(cell.is_ready(&actor, fenced));
        }
        if unwritten && self.launch.checks.uninitialized {
            let detail = "asynchronous read of shared memory that nothing wrote".into();
            return Err(Bad { kind: FaultKind::Uninitialized, detail });
        }
        self.judge(worst, addr, bytes, false)
    }

    /// The same before it writes for this lane. The bytes are held until the write has landed.
    pub fn proxy_writes(&mut self, lane: usize, addr: u64, bytes: u64) -> Result<(), Bad> {
        let actor = self.warp.actor(false, true);
        let fenced = &self.warp.known.fenced;
        let mut worst = Order::Fine;
        for cell in self.block.cells(addr, bytes) {
            worst = worst.max(cell.is_free(&actor, lane, fenced));
        }
        if self.block.read_under_way(addr, bytes).is_some() {
            worst = Order::Race;
        }
        self.judge(worst, addr, bytes, true)?;
        self.block.cells(addr, bytes).iter_mut().for_each(Cell::hold);
        Ok(())
    }

    /// Ends a read of the proxy: from now on it counts as this warp's own.
    pub fn end_reading(&mut self, id: u64) {
        let Some(at) = self.block.readers.iter().position(|reader| reader.id == id) else { return };
        let reader = self.block.readers.swap_remove(at);
        let actor = self.warp.actor(false, true);
        for addr in reader.parts() {
            for cell in self.block.cells(addr, GRAIN) {
                cell.read_by_warp(&actor);
            }
        }
    }
}
