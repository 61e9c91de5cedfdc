//! Words in device memory that kernels raise and nobody clears between calls.

use crate::Result;
use crate::driver::{DeviceMemory, DevicePtr};
use crate::tensor::DeviceCore;

const SLOT: usize = 64;
/// Calls that may be under way at once on one device.
const SLOTS: u64 = 64;

/// A ring of slots. Each round over it is an epoch.
pub struct Raised {
    memory: DeviceMemory,
    calls: u64,
}

impl Raised {
    pub fn new(core: &DeviceCore) -> Result<Raised> {
        let memory = DeviceMemory::new(core.context(), SLOT * SLOTS as usize)?;
        core.stream().fill(memory.ptr(), 0, memory.size())?;
        Ok(Raised { memory, calls: 0 })
    }

    /// Whether the next epoch would not fit its half of a word.
    pub fn is_used_up(&self) -> bool {
        self.calls / SLOTS >= u64::from(u32::MAX)
    }

    /// The next slot, and the epoch that has not used it yet.
    pub fn next(&mut self) -> (DevicePtr, u32) {
        let slot = self.calls % SLOTS * SLOT as u64;
        let epoch = (self.calls / SLOTS) as u32 + 1;
        self.calls += 1;
        (self.memory.ptr().offset(slot), epoch)
    }
}
