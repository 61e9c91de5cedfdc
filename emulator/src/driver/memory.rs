//! Device memory: allocations, the stream-ordered pool, and copies.

use super::host::checksum;
use super::queue::{drain, submit, synchronize};
use super::report;
use super::state::{Driver, Id, state};
use super::status::*;
use super::work::{Source, Work};
use std::sync::Arc;

/// One allocation.
pub struct Block {
    pub ordinal: usize,
    pub size: usize,
    /// Whether it comes from the pool.
    pub pooled: bool,
    /// Whether its free is queued.
    pub freed: bool,
}

/// A card's stream-ordered pool, as far as the driver's figures show it.
#[derive(Default)]
pub struct Pool {
    pub handle: Id,
    /// Bytes that the pool keeps when it is idle.
    pub threshold: u64,
    pub used: u64,
    pub used_high: u64,
    /// Bytes taken of the card, in use or kept.
    pub reserved: u64,
    pub reserved_high: u64,
    /// The three attributes that say what may be used again, on by default.
    pub reuse: [i32; 3],
}

impl Pool {
    fn take(&mut self, size: u64) {
        self.used += size;
        self.used_high = self.used_high.max(self.used);
        self.reserved = self.reserved.max(self.used);
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    /// Gives up what is kept beyond that many bytes.
    pub fn trim(&mut self, keep: u64) {
        self.reserved = self.reserved.min(keep).max(self.used);
    }
}

impl Driver {
    /// The allocation that an address lies in.
    pub fn block_at(&self, address: u64) -> Option<(u64, &Block)> {
        let (start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.size as u64).then_some((*start, block))
    }

    /// An error unless the range lies in one live allocation.
    fn range(&self, what: &str, address: u64, size: usize) -> Outcome {
        let Some((start, block)) = self.block_at(address).filter(|(_, block)| !block.freed) else {
            return self.wrong_range(format!("{what}: {size} bytes at {address:#x} are no device memory"));
        };
        if address - start + size as u64 > block.size as u64 {
            let (offset, whole) = (address - start, block.size);
            return self.wrong_range(format!(
                "{what}: {size} bytes at byte {offset} of an allocation of {whole} bytes at {start:#x}"
            ));
        }
        Ok(())
    }

    fn wrong_range<T>(&self, message: String) -> Outcome<T> {
        if self.config.checks("memory") {
            report::find("memory", message);
        }
        Err(INVALID_VALUE)
    }

    fn take(&mut self, ordinal: usize, size: usize, pooled: bool) -> Outcome<u64> {
        if size == 0 {
            return Err(INVALID_VALUE);
        }
        let address = self.cards[ordinal].memory.alloc(size as u64).ok_or(OUT_OF_MEMORY)?;
        self.blocks.insert(address, Block { ordinal, size, pooled, freed: false });
        if pooled {
            self.cards[ordinal].pool.take(size as u64);
        }
        Ok(address)
    }

    /// Forgets an allocation that was freed.
    pub fn release(&mut self, address: u64) {
        if let Some(block) = self.blocks.remove(&address)
            && block.pooled
        {
            self.cards[block.ordinal].pool.used -= block.size as u64;
        }
    }

    /// The start of an allocation to free.
    fn freeable(&self, address: u64) -> Outcome<&Block> {
        match self.blocks.get(&address).filter(|block| !block.freed) {
            Some(block) => Ok(block),
            None => {
                self.wrong_range(format!("{address:#x} was freed, which is no allocation or freed already"))
            }
        }
    }
}

pub fn allocate(ordinal: usize, size: usize) -> Outcome<u64> {
    let mut driver = state();
    driver.refuse_unsafe_call()?;
    driver.take(ordinal, size, false)
}

/// Frees memory after all work of its card, as the driver does.
pub fn free(address: u64) -> Outcome {
    if address == 0 {
        return Ok(());
    }
    let owner = {
        let mut driver = state();
        driver.refuse_unsafe_call()?;
        driver.freeable(address)?.ordinal
    };
    drain(owner)?;
    // No kernel may run meanwhile: another thread may have submitted more.
    let _engine = super::queue::engine();
    let mut driver = state();
    driver.freeable(address)?;
    driver.cards[owner].memory.free(address);
    driver.release(address);
    Ok(())
}

/// Free and total bytes of the card.
pub fn info(ordinal: usize) -> (usize, usize) {
    let driver = state();
    let card = &driver.cards[ordinal];
    let used = card.memory.used() + (card.pool.reserved - card.pool.used);
    (card.memory.capacity().saturating_sub(used) as usize, card.memory.capacity() as usize)
}

pub fn allocate_async(ordinal: usize, size: usize, handle: Id) -> Outcome<u64> {
    let stream = state().stream_id(ordinal, handle)?;
    state().refuse_captured(stream)?;
    let first = state().take(ordinal, size, true);
    if first != Err(OUT_OF_MEMORY) {
        return first;
    }
    // What the stream frees before this may be used again.
    synchronize(ordinal, stream)?;
    state().take(ordinal, size, true)
}

pub fn free_async(ordinal: usize, address: u64, handle: Id) -> Outcome {
    let stream = {
        let mut driver = state();
        let stream = driver.stream_id(ordinal, handle)?;
        driver.refuse_captured(stream)?;
        driver.freeable(address)?;
        if let Some(block) = driver.blocks.get_mut(&address) {
            block.freed = true;
        }
        stream
    };
    submit(stream, Work::Free { address }).map(|_| ())
}

/// What a pool keeps beyond its threshold goes back at a synchronisation.
pub fn settle_pool(ordinal: usize) {
    let mut driver = state();
    let pool = &mut driver.cards[ordinal].pool;
    let keep = pool.threshold;
    pool.trim(keep);
}

/// The card of a pool.
fn pool_card(driver: &Driver, pool: Id) -> Outcome<usize> {
    match driver.cards.iter().position(|card| card.pool.handle == pool) {
        Some(ordinal) => Ok(ordinal),
        None => driver.stale("a memory pool"),
    }
}

pub fn set_pool_attribute(pool: Id, attribute: i32, value: u64) -> Outcome {
    let mut driver = state();
    let ordinal = pool_card(&driver, pool)?;
    let pool = &mut driver.cards[ordinal].pool;
    match attribute {
        1..=3 => pool.reuse[attribute as usize - 1] = value as i32,
        4 => pool.threshold = value,
        6 if value == 0 => pool.reserved_high = pool.reserved,
        8 if value == 0 => pool.used_high = pool.used,
        _ => return Err(INVALID_VALUE),
    }
    Ok(())
}

/// Gives what the pool keeps beyond that many bytes back, once the card's work is done.
pub fn trim_pool(pool: Id, keep: u64) -> Outcome {
    let ordinal = pool_card(&state(), pool)?;
    drain(ordinal)?;
    state().cards[ordinal].pool.trim(keep);
    Ok(())
}

/// Submits work, or hands it to the capture that the stream is in.
pub fn enqueue(stream: Id, work: Work) -> Outcome {
    if state().capture_work(stream, &work)? {
        return Ok(());
    }
    submit(stream, work).map(|_| ())
}

pub fn to_device(ordinal: usize, target: u64, host: usize, size: usize, handle: Id) -> Outcome {
    let (stream, locked, check) = {
        let driver = state();
        let stream = driver.stream_id(ordinal, handle)?;
        if size == 0 {
            return Ok(());
        }
        driver.range("copy to the device", target, size)?;
        (stream, driver.host.holds(host, size), driver.config.checks("source"))
    };
    if host == 0 || !super::host::is_mapped(host, size) {
        return Err(INVALID_VALUE);
    }
    let bytes = super::abi::pages::copy_out(host, size);
    let source = if locked {
        Source::Locked { address: host, size, checksum: check.then(|| checksum(&bytes)) }
    } else {
        Source::Taken(Arc::from(bytes))
    };
    enqueue(stream, Work::ToDevice { target, source })
}

pub fn to_host(ordinal: usize, host: usize, source: u64, size: usize, handle: Id) -> Outcome {
    let (stream, locked) = {
        let driver = state();
        let stream = driver.stream_id(ordinal, handle)?;
        if size == 0 {
            return Ok(());
        }
        driver.range("copy to the host", source, size)?;
        (stream, driver.host.holds(host, size))
    };
    if host == 0 || !super::host::is_mapped(host, size) {
        return Err(INVALID_VALUE);
    }
    if !locked {
        state().refuse_captured(stream)?;
    }
    enqueue(stream, Work::ToHost { target: host, source, size })?;
    // Pageable memory is written before the call returns.
    if locked { Ok(()) } else { synchronize(ordinal, stream) }
}

pub fn copy(ordinal: usize, target: u64, source: u64, size: usize, handle: Id) -> Outcome {
    let stream = {
        let driver = state();
        let stream = driver.stream_id(ordinal, handle)?;
        if size == 0 {
            return Ok(());
        }
        driver.range("copy within the device, target", target, size)?;
        driver.range("copy within the device, source", source, size)?;
        stream
    };
    enqueue(stream, Work::Copy { target, source, size })
}

pub fn fill(ordinal: usize, target: u64, byte: u8, size: usize, handle: Id) -> Outcome {
    let stream = {
        let driver = state();
        let stream = driver.stream_id(ordinal, handle)?;
        if size == 0 {
            return Ok(());
        }
        driver.range("fill", target, size)?;
        stream
    };
    enqueue(stream, Work::Fill { target, byte, size })
}

/// A synchronous copy: on the legacy default stream, then a wait for it.
pub fn blocking(ordinal: usize, submit: impl FnOnce() -> Outcome) -> Outcome {
    state().refuse_unsafe_call()?;
    submit()?;
    let stream = state().stream_id(ordinal, 0)?;
    synchronize(ordinal, stream)
}
