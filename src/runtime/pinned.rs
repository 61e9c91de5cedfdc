//! Page-locked arrays that callers hold, found again by address when they come as operands.

use super::devices::{DeviceName, choose};
use super::gpu::Gpu;
use crate::Result;
use crate::driver::PinnedMemory;
use crate::tensor::{HostBuffer, PinnedSlice};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Memory of `allocPinned`: page-locked where there is a GPU, plain memory elsewhere.
pub enum HostBlock {
    /// Page-locked.
    Pinned(Arc<PinnedMemory>),
    /// Plain.
    Plain(HostBuffer),
}

impl HostBlock {
    /// Start of the memory and its size in bytes.
    pub fn parts(&mut self) -> (*mut u8, usize) {
        match self {
            HostBlock::Pinned(memory) => (memory.as_ptr(), memory.size()),
            HostBlock::Plain(buffer) => {
                let bytes = buffer.bytes_mut();
                (bytes.as_mut_ptr(), bytes.len())
            }
        }
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        if let HostBlock::Pinned(memory) = self {
            let memory = memory.clone();
            registry().remove(&(memory.as_ptr() as usize));
            // Unlocking pages is a driver call that may wait; the last owner makes it on a thread of ours.
            crate::cpu::spawn(move || drop(memory));
        }
    }
}

type Registry = BTreeMap<usize, Arc<PinnedMemory>>;

fn registry() -> std::sync::MutexGuard<'static, Registry> {
    static REGISTRY: Mutex<Registry> = Mutex::new(BTreeMap::new());
    REGISTRY.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Zeroed memory of `size` bytes for `allocPinned`.
pub fn allocate_pinned(size: usize) -> Result<HostBlock> {
    match choose("auto", None)?.device {
        DeviceName::Cpu => Ok(HostBlock::Plain(HostBuffer::zeroed(size)?)),
        DeviceName::Cuda(ordinal) => {
            let launcher = Gpu::get(ordinal)?.launcher()?;
            let memory = Arc::new(PinnedMemory::new(launcher.core().context(), size)?);
            registry().insert(memory.as_ptr() as usize, memory.clone());
            Ok(HostBlock::Pinned(memory))
        }
    }
}

/// The page-locked block that holds this whole range of addresses.
pub fn find_pinned(address: usize, size: usize) -> Option<PinnedSlice> {
    let registry = registry();
    let (start, memory) = registry.range(..=address).next_back()?;
    let offset = address - start;
    (offset + size <= memory.size()).then(|| PinnedSlice { memory: memory.clone(), offset })
}
