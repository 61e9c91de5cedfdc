//! Host memory of tensors and typed views of it.

use super::results::ResultBlock;
use super::{FormKey, MemoryStats};
use crate::driver::Pages;
use crate::ops::Meta;
use crate::{DType, Error, Result};
use std::any::Any;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Owned host memory, aligned for every element type. Large blocks are kept for reuse when dropped: fresh pages cost
/// several times what copying into warm ones does.
pub struct HostBuffer {
    memory: Memory,
    size: usize,
    pub(super) forms: OnceLock<HostForms>,
}

/// Forms of a constant on the host that CPU forms read in its place, such as weights in the order of a product's tiles.
/// They go with its memory.
#[derive(Default)]
pub struct HostForms {
    made: Mutex<Vec<(FormKey, Arc<dyn Any + Send + Sync>)>>,
}

impl HostForms {
    /// The form of that key, made if it is not there. The lock is not held meanwhile.
    pub fn get<T: Send + Sync + 'static>(&self, key: FormKey, make: impl FnOnce() -> T) -> Arc<T> {
        let lock = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |made: &[(FormKey, Arc<dyn Any + Send + Sync>)]| {
            made.iter()
                .find(|(known, _)| *known == key)
                .and_then(|(_, form)| form.clone().downcast::<T>().ok())
        };
        if let Some(form) = find(&lock()) {
            return form;
        }
        let form = Arc::new(make());
        let mut made = lock();
        if let Some(form) = find(&made) {
            return form;
        }
        made.push((key, form.clone()));
        form
    }
}

enum Memory {
    /// Small, from the system's allocator, in words so that every element type is aligned.
    Words(Vec<u128>),
    /// Large.
    Pages(Pages),
    /// Page-locked, a result's.
    Result(ResultBlock),
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Words(words) => bytemuck::cast_slice(words),
            Memory::Pages(pages) => pages.bytes(),
            Memory::Result(block) => block,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Words(words) => bytemuck::cast_slice_mut(words),
            Memory::Pages(pages) => pages.bytes_mut(),
            Memory::Result(block) => block,
        }
    }
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
        let (mut buffer, _) = HostBuffer::allocate(size)?;
        if cfg!(debug_assertions) {
            // Whoever leaves elements out is found by tests.
            buffer.bytes_mut().fill(0xa5);
        }
        Ok(buffer)
    }

    /// The memory, and whether it is fresh and so zeroed.
    fn allocate(size: usize) -> Result<(HostBuffer, bool)> {
        let class = class_of(size);
        let kept = take_kept(class);
        let fresh = kept.is_none();
        let memory = match kept {
            Some(pages) => Memory::Pages(pages),
            None => zeroed_memory(size, class)?,
        };
        Ok((HostBuffer::over(memory, size), fresh))
    }

    fn over(memory: Memory, size: usize) -> HostBuffer {
        let used = USED.fetch_add(size as u64, Ordering::Relaxed) + size as u64;
        PEAK.fetch_max(used, Ordering::Relaxed);
        BUFFERS.fetch_add(1, Ordering::Relaxed);
        HostBuffer { memory, size, forms: OnceLock::new() }
    }

    /// The first `size` bytes of a block that the device has written.
    pub(super) fn of_result(block: ResultBlock, size: usize) -> Result<HostBuffer> {
        if block.len() < size {
            return Err(Error::Internal(format!("a result of {size} bytes in a block of {}", block.len())));
        }
        Ok(HostBuffer::over(Memory::Result(block), size))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.size]
    }

    /// The bytes, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.size]
    }

    /// The whole buffer as a writable tensor of that type and dims.
    pub fn view_mut<'a>(&'a mut self, meta: &'a Meta) -> HostViewMut<'a> {
        HostViewMut { dims: &meta.dims, dtype: meta.dtype, bytes: self.bytes_mut() }
    }
}

/// Elements for use within one call, from memory that is kept for reuse.
pub struct Scratch<T>(HostBuffer, PhantomData<T>);

impl<T: bytemuck::Pod> Scratch<T> {
    /// That many elements with any content, for a caller that writes all of them before it reads any.
    pub fn for_overwrite(length: usize) -> Result<Scratch<T>> {
        let size = length.checked_mul(size_of::<T>());
        let size = size.ok_or_else(|| Error::OutOfMemory(format!("host memory: {length} elements")))?;
        Ok(Scratch(HostBuffer::for_overwrite(size)?, PhantomData))
    }
}

impl<T: bytemuck::Pod> Deref for Scratch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(self.0.bytes())
    }
}

impl<T: bytemuck::Pod> DerefMut for Scratch<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.0.bytes_mut())
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        USED.fetch_sub(self.size as u64, Ordering::Relaxed);
        BUFFERS.fetch_sub(1, Ordering::Relaxed);
        if let Memory::Pages(pages) = std::mem::replace(&mut self.memory, Memory::Words(Vec::new())) {
            keep(pages);
        }
    }
}

fn zeroed_memory(size: usize, class: usize) -> Result<Memory> {
    let exhausted = || Error::OutOfMemory(format!("host memory: {size} bytes could not be allocated"));
    if class < LEAST_KEPT {
        return Ok(Memory::Words(vec![0; class.div_ceil(size_of::<u128>())]));
    }
    // Lengths beyond this are no slices; the system would refuse them only later.
    if class > isize::MAX as usize {
        return Err(exhausted());
    }
    Pages::zeroed(class).map(Memory::Pages).ok_or_else(exhausted)
}

/// Blocks below this many bytes come from the system's allocator, which keeps them itself.
const LEAST_KEPT: usize = 128 << 10;
/// Bytes kept for reuse at most.
const MOST_KEPT: usize = 256 << 20;

/// Size that serves a request: large ones in steps of an eighth of their power of two, so that kept blocks fit. A kept block
/// of up to twice the size serves it too.
pub(super) fn class_of(size: usize) -> usize {
    if size < LEAST_KEPT {
        return size;
    }
    let step = 1usize << (size.ilog2() - 3);
    size.checked_next_multiple_of(step).unwrap_or(size)
}

#[derive(Default)]
struct Kept {
    blocks: Vec<Pages>,
    bytes: usize,
}

fn kept() -> MutexGuard<'static, Kept> {
    static KEPT: Mutex<Kept> = Mutex::new(Kept { blocks: Vec::new(), bytes: 0 });
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn take_kept(class: usize) -> Option<Pages> {
    if class < LEAST_KEPT {
        return None;
    }
    let mut kept = kept();
    let sizes = kept.blocks.iter().map(|block| block.bytes().len()).enumerate();
    // Of blocks of one size the one kept last, which may still be in a cache.
    let fitting = sizes.rev().filter(|&(_, size)| size >= class && size / 2 <= class);
    let (index, size) = fitting.min_by_key(|&(_, size)| size)?;
    kept.bytes -= size;
    Some(kept.blocks.swap_remove(index))
}

fn keep(pages: Pages) {
    let bytes = pages.bytes().len();
    let mut kept = kept();
    if kept.bytes + bytes <= MOST_KEPT {
        kept.bytes += bytes;
        kept.blocks.push(pages);
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
    pub(super) forms: Option<&'a HostForms>,
}

impl<'a> HostView<'a> {
    /// Where forms of the elements are kept, for constants.
    pub fn forms(&self) -> Option<&'a HostForms> {
        self.forms
    }

    /// The elements' bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

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
    fn larger_blocks_serve_too() {
        // Sizes that no other test has.
        let large = HostBuffer::for_overwrite(41 << 20).unwrap();
        let place = large.bytes().as_ptr();
        drop(large);
        let small = HostBuffer::for_overwrite(23 << 20).unwrap();
        assert_eq!((small.bytes().as_ptr(), small.bytes().len()), (place, 23 << 20));
        assert_ne!(HostBuffer::for_overwrite(41 << 20).unwrap().bytes().as_ptr(), place);
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
