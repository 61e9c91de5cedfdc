//! Device memory, page-locked host memory and copies between them.

use super::context::Context;
use super::pages::Pages;
use super::stream::Stream;
use super::table::Status;
use crate::{Error, Result};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
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
        let _bound = context.bind()?;
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
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: allocated in `new`, freed once; the driver itself waits for work that still uses it.
            let answer = unsafe { (self.context.api.table.mem_free)(self.ptr) };
            let _ = self.context.check("cuMemFree_v2", answer);
        }
    }
}

/// Page-locked host memory, page-aligned and usable by every device.
///
/// The pages are the process's own, locked by the driver: memory that the driver allocates goes away with a lost context
/// while callers still hold arrays over it.
pub struct PinnedMemory {
    context: Arc<Context>,
    pages: ManuallyDrop<Pages>,
    size: usize,
    locked: bool,
}

// SAFETY: plain memory owned by this value; access is through methods that borrow it, or raw copies that the caller
// orders by events.
unsafe impl Send for PinnedMemory {}
// SAFETY: shared references only give addresses; reading and writing follow the rules at each use.
unsafe impl Sync for PinnedMemory {}

const HOST_REGISTER_PORTABLE: u32 = 1;
/// Alignment and granularity of blocks, so that no page is shared with other memory.
const PAGE: usize = if cfg!(target_arch = "aarch64") { 64 << 10 } else { 4 << 10 };
/// Answers of systems that cannot lock pages (an operating system error, not permitted, not supported). Copies work
/// from plain pages too, only slower.
const UNLOCKABLE: &[Status] = &[304, 800, 801];

impl PinnedMemory {
    /// Allocates `size` bytes (at least one), zeroed.
    pub fn new(context: &Arc<Context>, size: usize) -> Result<PinnedMemory> {
        let _bound = context.bind()?;
        let exhausted = || Error::OutOfMemory(format!("host memory: {size} bytes could not be allocated"));
        let rounded = size.max(1).checked_next_multiple_of(PAGE).ok_or_else(exhausted)?;
        let pages = Pages::zeroed(rounded).ok_or_else(exhausted)?;
        // SAFETY: the range was just mapped and stays so until it is unlocked in drop; the context is current.
        let answer = unsafe {
            (context.api.table.mem_host_register)(pages.as_ptr().cast(), rounded, HOST_REGISTER_PORTABLE)
        };
        let locked = answer == 0;
        if !locked && !UNLOCKABLE.contains(&answer) {
            context.check("cuMemHostRegister_v2", answer)?;
        }
        context.handles.fetch_add(1, Ordering::AcqRel);
        Ok(PinnedMemory {
            context: context.clone(),
            pages: ManuallyDrop::new(pages),
            size: size.max(1),
            locked,
        })
    }

    /// Start of the block.
    pub fn as_ptr(&self) -> *mut u8 {
        self.pages.as_ptr()
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes, for the only owner.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the pages hold at least `size` bytes, zeroed in `new`; `&mut self` excludes other users.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_ptr(), self.size) }
    }

    /// The bytes, once the device has finished writing them.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the pages hold at least `size` bytes, zeroed in `new`; callers of this crate read after the event that follows the device's last
        // write.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr(), self.size) }
    }

    /// Ends the device's use of the pages: copies that were under way when an error cut a transfer short included.
    fn withdraw(&self) -> Result<()> {
        self.context.synchronize()?;
        if !self.locked {
            return Ok(());
        }
        let _bound = self.context.bind()?;
        // SAFETY: locked in `new`, unlocked once; all work that could use the pages is done.
        let answer = unsafe { (self.context.api.table.mem_host_unregister)(self.pages.as_ptr().cast()) };
        self.context.check("cuMemHostUnregister", answer)
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        self.context.handles.fetch_sub(1, Ordering::AcqRel);
        // Pages that the device may still write to are never given back.
        if self.withdraw().is_ok() || self.context.is_destroyed() {
            // SAFETY: dropped once, here; neither driver nor device use the pages any more.
            unsafe { ManuallyDrop::drop(&mut self.pages) };
        }
    }
}

/// An error unless the range lies within the block.
fn within(block: &PinnedMemory, offset: usize, size: usize) -> Result<()> {
    if offset.checked_add(size).is_some_and(|end| end <= block.size()) {
        return Ok(());
    }
    let whole = block.size();
    Err(Error::Internal(format!(
        "a copy of {size} bytes at {offset} passes the end of a block of {whole} bytes"
    )))
}

impl Stream {
    /// Enqueues a copy from pinned memory. The caller keeps `source` alive until the copy has run.
    pub fn upload(&self, target: DevicePtr, source: &PinnedMemory, offset: usize, size: usize) -> Result<()> {
        within(source, offset, size)?;
        if size == 0 {
            return Ok(());
        }
        let _bound = self.context.bind()?;
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
        within(target, offset, size)?;
        if size == 0 {
            return Ok(());
        }
        let _bound = self.context.bind()?;
        let to = target.as_ptr().wrapping_add(offset).cast::<c_void>();
        // SAFETY: as for `upload`, with the directions swapped.
        let answer = unsafe { (self.context.api.table.memcpy_dtoh_async)(to, source.0, size, self.raw) };
        self.context.check("cuMemcpyDtoHAsync_v2", answer)
    }

    /// Enqueues a copy within the device.
    pub fn copy(&self, target: DevicePtr, source: DevicePtr, size: usize) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        let _bound = self.context.bind()?;
        // SAFETY: both are ranges of live allocations of this context of at least `size` bytes (the pool's promise).
        let answer =
            unsafe { (self.context.api.table.memcpy_dtod_async)(target.0, source.0, size, self.raw) };
        self.context.check("cuMemcpyDtoDAsync_v2", answer)
    }

    /// Enqueues filling a range with one byte.
    pub fn fill(&self, target: DevicePtr, byte: u8, size: usize) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        let _bound = self.context.bind()?;
        // SAFETY: a range of a live allocation of this context of at least `size` bytes.
        let answer = unsafe { (self.context.api.table.memset_d8_async)(target.0, byte, size, self.raw) };
        self.context.check("cuMemsetD8Async", answer)
    }
}
