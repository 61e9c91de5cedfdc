//! Host memory by address, and the process around it.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{c_int, c_uchar, c_void};
use std::ptr::NonNull;

/// Memory of the process, given back when dropped.
pub struct Pages {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the value only owns the memory; it reads and writes none of it.
unsafe impl Send for Pages {}

impl Pages {
    /// Zeroed memory at a multiple of `align`.
    pub fn new(size: usize, align: usize) -> Option<Pages> {
        let layout = Layout::from_size_align(size.max(1), align).ok()?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Pages { start, layout })
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.start.as_ptr().expose_provenance()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, given back once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// The bytes at an address of the process.
pub fn copy_out(address: usize, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    let from = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: callers have asked `are_mapped`, and the copy's caller promised the driver that the range is its to read
    // until the copy has run.
    unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), size) };
    bytes
}

/// Writes bytes at an address of the process.
pub fn copy_in(address: usize, bytes: &[u8]) {
    let to = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: as for `copy_out`, to write.
    unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn mincore(address: *mut c_void, length: usize, vector: *mut c_uchar) -> c_int;
}

unsafe extern "C" {
    fn atexit(callback: extern "C" fn()) -> c_int;
}

/// Whether pages of 4 KiB from that multiple of 4 KiB on belong to the process.
#[cfg(target_os = "linux")]
pub fn are_mapped(first: usize, count: usize) -> bool {
    let mut vector = vec![0u8; count];
    let start = std::ptr::with_exposed_provenance_mut(first);
    // SAFETY: mincore takes any range and only tells of it; the vector has a byte for each page.
    unsafe { mincore(start, count * 4096, vector.as_mut_ptr()) == 0 }
}

/// Not known on this system.
#[cfg(not(target_os = "linux"))]
pub fn are_mapped(_: usize, _: usize) -> bool {
    true
}

/// Has the function called when the process ends.
pub fn at_exit(callback: extern "C" fn()) {
    // SAFETY: the function lives as long as the library; the C library calls it once.
    unsafe { atexit(callback) };
}
