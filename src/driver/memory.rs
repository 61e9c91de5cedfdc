//! Device memory, page-locked host memory and copies between them.

use super::context::Context;
use super::stream::Stream;
use crate::Result;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An address in device memory with its byte offset applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address `bytes` further on.
    pub fn offset(self, bytes: u64) -> DevicePtr {
        DevicePtr(self.0 + bytes)
    }

    /// The null pointer, for optional kernel arguments.
    pub const NULL: DevicePtr = DevicePtr(0);
}

/// One allocation from the driver, freed when dropped.
pub struct DeviceMemory {
    context: Arc<Context>,
    ptr: u64,
    size: usize,
}

impl DeviceMemory {
    /// Allocates `size` bytes (at least one).
    pub fn new(context: &Arc<Context>, size: usize) -> Result<DeviceMemory> {
        context.bind()?;
        let mut ptr = 0;
        // SAFETY: `ptr` is a live slot; the context is current.
        let answer = unsafe { (context.api.table.mem_alloc)(&mut ptr, size.max(1)) };
        context.check("cuMemAlloc_v2", answer)?;
        context.handles.fetch_add(1, Ordering::AcqRel);
        Ok(DeviceMemory { context: context.clone(), ptr, size: size.max(1) })
    }

    /// Start of the allocation; 256-byte aligned by the driver.
    pub fn ptr(&self) -> DevicePtr {
        DevicePtr(self.ptr)
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.context.handles.fetch_sub(1, Ordering::AcqRel);
        if self.context.bind().is_ok() {
            // SAFETY: allocated in `new`, freed once; the driver itself waits for work that still uses it.
            let answer = unsafe { (self.context.api.table.mem_free)(self.ptr) };
            let _ = self.context.check("cuMemFree_v2", answer);
        }
    }
}

/// Page-locked host memory, page-aligned and usable by every device.
pub struct PinnedMemory {
    context: Arc<Context>,
    ptr: *mut u8,
    size: usize,
}

// SAFETY: plain memory owned by this value; access is through methods that borrow it, or raw copies that the caller
// orders by events.
unsafe impl Send for PinnedMemory {}
// SAFETY: shared references only give addresses; reading and writing follow the rules at each use.
unsafe impl Sync for PinnedMemory {}

const HOST_ALLOC_PORTABLE: u32 = 1;

impl PinnedMemory {
    /// Allocates `size` bytes (at least one), zeroed.
    pub fn new(context: &Arc<Context>, size: usize) -> Result<PinnedMemory> {
        context.bind()?;
        let size = size.max(1);
        let mut ptr: *mut c_void = std::ptr::null_mut();
        // SAFETY: `ptr` is a live slot; the context is current.
        let answer = unsafe { (context.api.table.mem_host_alloc)(&mut ptr, size, HOST_ALLOC_PORTABLE) };
        context.check("cuMemHostAlloc", answer)?;
        context.handles.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the driver gave `size` writable bytes at `ptr`, which nobody else knows yet.
        unsafe { std::ptr::write_bytes(ptr.cast::<u8>(), 0, size) };
        Ok(PinnedMemory { context: context.clone(), ptr: ptr.cast(), size })
    }

    /// Start of the block.
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes, for the only owner.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `size` bytes from `ptr` were allocated and initialised in `new`; `&mut self` excludes other users.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.size) }
    }

    /// The bytes, once the device has finished writing them.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated and initialised in `new`; callers of this crate read after the event that follows the
        // device's last write.
        unsafe { std::slice::from_raw_parts(self.ptr, self.size) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        self.context.handles.fetch_sub(1, Ordering::AcqRel);
        if self.context.bind().is_ok() {
            // SAFETY: allocated in `new`, freed once.
            let answer = unsafe { (self.context.api.table.mem_free_host)(self.ptr.cast()) };
            let _ = self.context.check("cuMemFreeHost", answer);
        }
    }
}

impl Stream {
    /// Enqueues a copy from pinned memory. The caller keeps `source` alive until the copy has run.
    pub fn upload(&self, target: DevicePtr, source: &PinnedMemory, offset: usize, size: usize) -> Result<()> {
        assert!(offset + size <= source.size(), "copy within the pinned block");
        self.context.bind()?;
        let from = source.as_ptr().wrapping_add(offset).cast::<c_void>();
        // SAFETY: the source range was checked and outlives the copy by the caller's promise; the target is a range of
        // an allocation of this context that the pool gave for at least `size` bytes.
        let answer = unsafe { (self.context.api.table.memcpy_htod_async)(target.0, from, size, self.raw) };
        self.context.check("cuMemcpyHtoDAsync_v2", answer)
    }

    /// Enqueues a copy to pinned memory. The caller keeps `target` alive until the copy has run.
    pub fn download(
        &self,
        target: &PinnedMemory,
        offset: usize,
        source: DevicePtr,
        size: usize,
    ) -> Result<()> {
        assert!(offset + size <= target.size(), "copy within the pinned block");
        self.context.bind()?;
        let to = target.as_ptr().wrapping_add(offset).cast::<c_void>();
        // SAFETY: as for `upload`, with the directions swapped.
        let answer = unsafe { (self.context.api.table.memcpy_dtoh_async)(to, source.0, size, self.raw) };
        self.context.check("cuMemcpyDtoHAsync_v2", answer)
    }

    /// Enqueues a copy within the device.
    pub fn copy(&self, target: DevicePtr, source: DevicePtr, size: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: both are ranges of live allocations of this context of at least `size` bytes (the pool's promise).
        let answer =
            unsafe { (self.context.api.table.memcpy_dtod_async)(target.0, source.0, size, self.raw) };
        self.context.check("cuMemcpyDtoDAsync_v2", answer)
    }

    /// Enqueues filling a range with one byte.
    pub fn fill(&self, target: DevicePtr, byte: u8, size: usize) -> Result<()> {
        self.context.bind()?;
        // SAFETY: a range of a live allocation of this context of at least `size` bytes.
        let answer = unsafe { (self.context.api.table.memset_d8_async)(target.0, byte, size, self.raw) };
        self.context.check("cuMemsetD8Async", answer)
    }
}
