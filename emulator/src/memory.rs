//! The emulated card's memory.

use crate::{Fault, FaultKind};

/// Device memory with a shadow of the bytes that were written. Addresses are never used twice,
/// so that use after free is always told.
pub struct DeviceMemory {
    capacity: u64,
}

impl DeviceMemory {
    pub fn new(capacity: u64) -> DeviceMemory {
        DeviceMemory { capacity }
    }

    /// Turns the check of host reads of unwritten memory on or off.
    pub fn set_check_unwritten(&self, on: bool) {
        let _ = on;
    }

    pub fn alloc(&self, bytes: u64) -> Option<u64> {
        (bytes <= self.capacity).then_some(0x7000_0000_0000)
    }

    pub fn free(&self, addr: u64) -> bool {
        addr != 0
    }

    pub fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let _ = out;
        Err(Fault::plain(FaultKind::OutOfBounds, Some(addr), "stub"))
    }

    pub fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let _ = data;
        Err(Fault::plain(FaultKind::OutOfBounds, Some(addr), "stub"))
    }

    pub fn fill(&self, addr: u64, byte: u8, n: u64) -> Result<(), Fault> {
        let _ = (byte, n);
        Err(Fault::plain(FaultKind::OutOfBounds, Some(addr), "stub"))
    }

    pub fn copy(&self, dst: u64, src: u64, n: u64) -> Result<(), Fault> {
        let _ = (src, n);
        Err(Fault::plain(FaultKind::OutOfBounds, Some(dst), "stub"))
    }

    pub fn used(&self) -> u64 {
        0
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Live allocations: address and size.
    pub fn live(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }
}
