//! Page-locked host memory.

use super::abi::pages;
use super::queue::drain;
use super::report;
use super::state::{Driver, state};
use super::status::*;
use super::work::{Source, Work};
use std::collections::BTreeMap;

const PAGE: usize = 4096;

/// One locked range.
struct Range {
    size: usize,
    ordinal: usize,
    /// Memory of cuMemHostAlloc, which goes back to the system with the range.
    owned: Option<pages::Pages>,
}

/// Every locked range, by address.
#[derive(Default)]
pub struct HostPages {
    ranges: BTreeMap<usize, Range>,
}

impl HostPages {
    /// Whether all of a range is locked.
    pub fn holds(&self, address: usize, size: usize) -> bool {
        let found = self.ranges.range(..=address).next_back();
        found.is_some_and(|(start, range)| address + size <= start + range.size)
    }

    fn overlaps(&self, address: usize, size: usize) -> bool {
        let before = self.ranges.range(..address + size).next_back();
        before.is_some_and(|(start, range)| start + range.size > address)
    }

    /// Ranges that were locked in a card's context.
    pub fn count(&self, ordinal: usize) -> usize {
        self.ranges.values().filter(|range| range.ordinal == ordinal).count()
    }

    /// Drops what was locked in a card's context.
    pub fn forget(&mut self, ordinal: usize) {
        self.ranges.retain(|_, range| range.ordinal != ordinal);
    }
}

/// A sum that tells whether bytes have changed.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_ne_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

/// Whether the pages of a range belong to the process.
pub fn is_mapped(address: usize, size: usize) -> bool {
    let first = address / PAGE * PAGE;
    size == 0 || pages::are_mapped(first, (address + size - first).div_ceil(PAGE))
}

impl Driver {
    /// Queued work that still uses a range of host memory.
    fn users(&self, address: usize, size: usize) -> usize {
        let touches = |at: usize, length: usize| at < address + size && address < at + length;
        let items = self.streams.values().flat_map(|stream| &stream.items);
        let uses = items.filter(|item| match &item.work {
            Work::ToDevice { source: Source::Locked { address, size, .. }, .. } => touches(*address, *size),
            Work::ToHost { target, size, .. } => touches(*target, *size),
            _ => false,
        });
        uses.count()
    }
}

pub fn allocate(ordinal: usize, size: usize, flags: u32) -> Outcome<usize> {
    if size == 0 || flags > 7 {
        return Err(INVALID_VALUE);
    }
    let owned = pages::Pages::new(size, PAGE).ok_or(OUT_OF_MEMORY)?;
    let address = owned.address();
    state().host.ranges.insert(address, Range { size, ordinal, owned: Some(owned) });
    Ok(address)
}

pub fn register(ordinal: usize, address: usize, size: usize, flags: u32) -> Outcome {
    if address == 0 || size == 0 || flags > 15 || address.checked_add(size).is_none() {
        return Err(INVALID_VALUE);
    }
    let mut driver = state();
    if driver.host.overlaps(address, size) {
        return Err(HOST_MEMORY_ALREADY_REGISTERED);
    }
    driver.host.ranges.insert(address, Range { size, ordinal, owned: None });
    Ok(())
}

/// Ends the lock on a range that begins there: allocated by the driver or registered.
pub fn release(address: usize, owned: bool) -> Outcome {
    let missing = if owned { INVALID_VALUE } else { HOST_MEMORY_NOT_REGISTERED };
    let (ordinal, size) = {
        let driver = state();
        let found = driver.host.ranges.get(&address).filter(|range| range.owned.is_some() == owned);
        let Some(range) = found else {
            return driver.stale::<()>("page-locked host memory").map_err(|_| missing);
        };
        let users = driver.users(address, range.size);
        if users > 0 && driver.config.checks("host") {
            report::find(
                "host",
                format!(
                    "page-locked memory of {} bytes at {address:#x} was given up before {users} asynchronous copies that use it ran",
                    range.size
                ),
            );
        }
        (range.ordinal, range.size)
    };
    // The driver lets the device finish with the pages first.
    if state().users(address, size) > 0 {
        drain(ordinal)?;
    }
    let range = state().host.ranges.remove(&address);
    drop(range);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_tell_changes() {
        let bytes: Vec<u8> = (0..100).collect();
        for index in 0..bytes.len() {
            let mut other = bytes.clone();
            other[index] ^= 1;
            assert_ne!(checksum(&bytes), checksum(&other), "{index}");
        }
        assert_ne!(checksum(&[0]), checksum(&[0, 0]));
    }

    #[test]
    fn ranges_overlap() {
        let mut pages = HostPages::default();
        pages.ranges.insert(4096, Range { size: 4096, ordinal: 0, owned: None });
        assert!(pages.holds(4096, 4096) && pages.holds(5000, 10) && !pages.holds(8000, 200));
        assert!(pages.overlaps(4000, 97) && !pages.overlaps(4000, 96));
        assert!(pages.overlaps(8191, 1) && !pages.overlaps(8192, 1));
    }
}
