//! Host memory of tensors and typed views of it.

use super::MemoryStats;
use crate::ops::Meta;
use crate::{DType, Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Owned, zeroed host memory, aligned for every element type.
pub struct HostBuffer {
    words: Vec<u128>,
    size: usize,
}

impl HostBuffer {
    /// Zeroed memory of `size` bytes.
    pub fn zeroed(size: usize) -> Result<HostBuffer> {
        let count = size.div_ceil(size_of::<u128>());
        // `vec!` takes zeroed pages from the system without touching them but aborts when there are none, so the
        // room is asked for first.
        if Vec::<u128>::new().try_reserve_exact(count).is_err() {
            return Err(Error::OutOfMemory(format!("host memory: {size} bytes could not be allocated")));
        }
        let used = USED.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
        PEAK.fetch_max(used, Ordering::Relaxed);
        BUFFERS.fetch_add(1, Ordering::Relaxed);
        Ok(HostBuffer { words: vec![0; count], size })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.size]
    }

    /// The bytes, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.size]
    }

    /// The whole buffer as a writable tensor of that type and dims.
    pub fn view_mut<'a>(&'a mut self, meta: &'a Meta) -> HostViewMut<'a> {
        HostViewMut { dims: &meta.dims, dtype: meta.dtype, bytes: self.bytes_mut() }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        USED.fetch_sub(self.size as u64, Ordering::Relaxed);
        BUFFERS.fetch_sub(1, Ordering::Relaxed);
    }
}

static USED: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static BUFFERS: AtomicU64 = AtomicU64::new(0);

/// Host memory in tensors of this package.
pub fn host_memory_stats() -> MemoryStats {
    MemoryStats {
        used: USED.load(Ordering::Relaxed),
        peak: PEAK.load(Ordering::Relaxed),
        allocations: BUFFERS.load(Ordering::Relaxed),
        ..MemoryStats::default()
    }
}

/// A contiguous row-major tensor in host memory.
#[derive(Clone, Copy)]
pub struct HostView<'a> {
    /// Dims, outermost first.
    pub dims: &'a [usize],
    /// Element type.
    pub dtype: DType,
    pub(super) bytes: &'a [u8],
}

impl<'a> HostView<'a> {
    /// The elements; `T` must be the Rust type of `dtype`.
    pub fn as_slice<T: bytemuck::Pod>(&self) -> &'a [T] {
        debug_assert_eq!(size_of::<T>(), self.dtype.size());
        bytemuck::cast_slice(self.bytes)
    }
}

/// A writable contiguous row-major tensor in host memory.
pub struct HostViewMut<'a> {
    /// Dims, outermost first.
    pub dims: &'a [usize],
    /// Element type.
    pub dtype: DType,
    pub(super) bytes: &'a mut [u8],
}

impl HostViewMut<'_> {
    /// The elements; `T` must be the Rust type of `dtype`.
    pub fn as_slice_mut<T: bytemuck::Pod>(&mut self) -> &mut [T] {
        debug_assert_eq!(size_of::<T>(), self.dtype.size());
        bytemuck::cast_slice_mut(self.bytes)
    }
}
