//! Host memory of tensors and typed views of it.

use super::MemoryStats;
use crate::ops::Meta;
use crate::{DType, Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Owned host memory, aligned for every element type. Large blocks are kept for reuse when dropped: fresh pages cost
/// several times what copying into warm ones does.
pub struct HostBuffer {
    words: Vec<u128>,
    size: usize,
}

impl HostBuffer {
    /// Zeroed memory of `size` bytes.
    pub fn zeroed(size: usize) -> Result<HostBuffer> {
        let (mut buffer, fresh) = HostBuffer::allocate(size)?;
        if !fresh {
            super::staging::fill_zero(buffer.bytes_mut());
        }
        Ok(buffer)
    }

    /// Memory of `size` bytes with any content, for a caller that writes all of it.
    pub fn for_overwrite(size: usize) -> Result<HostBuffer> {
        Ok(HostBuffer::allocate(size)?.0)
    }

    /// The memory, and whether it is fresh and so zeroed.
    fn allocate(size: usize) -> Result<(HostBuffer, bool)> {
        let count = class_of(size).div_ceil(size_of::<u128>());
        let kept = take_kept(count);
        let fresh = kept.is_none();
        let words = match kept {
            Some(words) => words,
            None => zeroed_words(size, count)?,
        };
        let used = USED.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
        PEAK.fetch_max(used, Ordering::Relaxed);
        BUFFERS.fetch_add(1, Ordering::Relaxed);
        Ok((HostBuffer { words, size }, fresh))
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
        keep(std::mem::take(&mut self.words));
    }
}

fn zeroed_words(size: usize, count: usize) -> Result<Vec<u128>> {
    // `vec!` takes zeroed pages from the system without touching them but aborts when there are none, so the room is
    // asked for first.
    if Vec::<u128>::new().try_reserve_exact(count).is_err() {
        return Err(Error::OutOfMemory(format!("host memory: {size} bytes could not be allocated")));
    }
    Ok(vec![0; count])
}

/// Blocks below this many bytes go back to the system's allocator, which keeps them itself.
const LEAST_KEPT: usize = 128 << 10;
/// Bytes kept for reuse at most.
const MOST_KEPT: usize = 256 << 20;

/// Size that serves a request: large ones in steps of an eighth of their power of two, so that kept blocks fit.
fn class_of(size: usize) -> usize {
    if size < LEAST_KEPT {
        return size;
    }
    let step = 1usize << (size.ilog2() - 3);
    size.checked_next_multiple_of(step).unwrap_or(size)
}

#[derive(Default)]
struct Kept {
    blocks: Vec<Vec<u128>>,
    bytes: usize,
}

fn kept() -> MutexGuard<'static, Kept> {
    static KEPT: Mutex<Kept> = Mutex::new(Kept { blocks: Vec::new(), bytes: 0 });
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn take_kept(count: usize) -> Option<Vec<u128>> {
    if count * size_of::<u128>() < LEAST_KEPT {
        return None;
    }
    let mut kept = kept();
    let index = kept.blocks.iter().rposition(|block| block.len() == count)?;
    kept.bytes -= count * size_of::<u128>();
    Some(kept.blocks.swap_remove(index))
}

fn keep(words: Vec<u128>) {
    let bytes = words.len() * size_of::<u128>();
    if bytes < LEAST_KEPT {
        return;
    }
    let mut kept = kept();
    if kept.bytes + bytes <= MOST_KEPT {
        kept.bytes += bytes;
        kept.blocks.push(words);
    }
}

/// Returns host memory kept for reuse to the system.
pub fn trim_host_memory() {
    let blocks = std::mem::take(&mut *kept());
    drop(blocks);
}

static USED: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static BUFFERS: AtomicU64 = AtomicU64::new(0);

/// Host memory in tensors of this package.
pub fn host_memory_stats() -> MemoryStats {
    MemoryStats {
        used: USED.load(Ordering::Relaxed),
        cached: kept().bytes as u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_blocks_come_back_and_zeroed_ones_are_zero() {
        let size = 3 * LEAST_KEPT + 5;
        let mut first = HostBuffer::for_overwrite(size).unwrap();
        first.bytes_mut().fill(7);
        drop(first);
        let second = HostBuffer::zeroed(size + 1).unwrap();
        assert_eq!(second.bytes().len(), size + 1);
        assert!(second.bytes().iter().all(|byte| *byte == 0));
    }

    #[test]
    fn classes_cover_requests_and_waste_little() {
        for size in
            [0, 1, LEAST_KEPT - 1, LEAST_KEPT, LEAST_KEPT + 1, (1 << 30) - 3, (1 << 30) + 1, usize::MAX]
        {
            let class = class_of(size);
            assert!(class >= size && class - size <= size / 8, "{size} {class}");
        }
        assert!(HostBuffer::zeroed(usize::MAX - 64).is_err());
    }
}
