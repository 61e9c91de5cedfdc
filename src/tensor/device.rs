//! A device's memory and stream, and tensors' buffers on it.

use super::forms::{Form, FormKey, Forms, KeptForms};
use super::host::HostBuffer;
use super::pool::{Held, MemoryStats, Pool};
use super::results::{ResultBlock, ResultBlocks};
use super::staging::{CHUNK, Staging, copy_bytes};
use crate::driver::{Context, DeviceMemory, DevicePtr, Event, PinnedMemory, Stream};
use crate::{DType, Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Context, streams and memory of one device.
pub struct DeviceCore {
    context: Arc<Context>,
    stream: Stream,
    downloads: Stream,
    pool: Arc<Pool>,
    staging: Arc<Staging>,
    results: Arc<ResultBlocks>,
    forms: KeptForms,
    /// Whose tensors are operands of this stream's work too.
    home: Option<Arc<DeviceCore>>,
}

impl DeviceCore {
    /// Opens the device of that ordinal.
    pub fn open(ordinal: usize) -> Result<Arc<DeviceCore>> {
        let context = Context::new(ordinal)?;
        Ok(Arc::new(DeviceCore {
            stream: Stream::new(&context)?,
            downloads: Stream::new(&context)?,
            pool: Arc::new(Pool::new(context.clone())),
            staging: Arc::new(Staging::new(context.clone())),
            results: Arc::new(ResultBlocks::new(context.clone())),
            forms: KeptForms::default(),
            home: None,
            context,
        }))
    }

    /// Another stream of the device, with memory of its own that counts as used here and goes back when the answer ends. Its
    /// work takes tensors of this core as well; whoever submits it sees to their order.
    pub fn branch(self: &Arc<Self>) -> Result<Arc<DeviceCore>> {
        Ok(Arc::new(DeviceCore {
            stream: Stream::new(&self.context)?,
            downloads: Stream::new(&self.context)?,
            pool: Arc::new(Pool::branch(self.pool.clone())),
            staging: self.staging.clone(),
            results: self.results.clone(),
            forms: KeptForms::default(),
            home: Some(self.clone()),
            context: self.context.clone(),
        }))
    }

    /// Makes work that is submitted from now on wait for all that was submitted to `other`.
    pub fn follow(&self, other: &DeviceCore) -> Result<()> {
        let event = Event::new(&self.context)?;
        event.record(&other.stream)?;
        self.stream.wait(&event)
    }

    /// Whether tensors of `other` may be operands of this core's work.
    pub fn takes(self: &Arc<Self>, other: &Arc<DeviceCore>) -> bool {
        Arc::ptr_eq(self, other) || self.home.as_ref().is_some_and(|home| Arc::ptr_eq(home, other))
    }

    /// The context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The stream that all kernels and uploads run on.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The device's number.
    pub fn ordinal(&self) -> usize {
        self.context.properties().ordinal
    }

    /// Memory figures.
    pub fn memory_stats(&self) -> MemoryStats {
        MemoryStats { prepared: self.forms.bytes(), ..self.pool.stats() }
    }

    /// Sets the limit in bytes on tensors and scratch memory; 0 lifts it.
    pub fn set_memory_limit(&self, limit: u64) {
        self.pool.set_limit(limit);
    }

    /// Returns unused device and pinned memory to the driver.
    pub fn trim_memory(&self) {
        self.forms.clear();
        self.pool.trim();
        self.staging.trim();
        self.results.trim();
    }

    /// Keeps unused memory from going back to the driver as long as the answer lives.
    pub fn hold_memory(&self) -> Held<'_> {
        self.pool.hold()
    }

    /// Device memory of at least `size` bytes; its content is undefined. Forms of tensors go where it does not suffice.
    pub fn allocate(self: &Arc<Self>, size: usize) -> Result<DeviceBuffer> {
        let memory = match self.pool.take(size) {
            Err(Error::OutOfMemory(_) | Error::MemoryLimit(_)) if self.forms.clear() => {
                self.pool.take(size)?
            }
            taken => taken?,
        };
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(DeviceBuffer {
            memory: Some(memory),
            core: self.clone(),
            id,
            forms: OnceLock::new(),
            read: AtomicBool::new(false),
            lasting: AtomicBool::new(false),
        })
    }

    /// Bytes that forms take at most: a quarter of the memory limit, or of the device's memory.
    fn most_forms(&self) -> u64 {
        match self.pool.stats().limit {
            0 => self.context.properties().total_memory / 4,
            limit => limit / 4,
        }
    }

    /// Copies plain bytes to the device in stream order. The source is free when this returns.
    pub(crate) fn upload(&self, target: DevicePtr, source: &[u8]) -> Result<()> {
        for (index, piece) in source.chunks(CHUNK).enumerate() {
            let mut block = self.staging.take(piece.len())?;
            copy_bytes(&mut block.bytes_mut()[..piece.len()], piece)?;
            self.stream.upload(target.offset((index * CHUNK) as u64), &block, 0, piece.len())?;
            self.staging.give_after(&self.stream, block)?;
        }
        Ok(())
    }

    /// Makes room for `stage` to take that many bytes at the next call. May allocate pinned memory, which is slow.
    pub fn reserve_staging(&self, size: usize) -> Result<()> {
        self.staging.reserve(size)
    }

    /// Copies plain bytes into kept pinned blocks; `None` when too few are kept. Makes no slow driver call.
    pub fn stage(self: &Arc<Self>, source: &[u8]) -> Option<Staged> {
        let mut blocks = self.staging.take_kept(source.len())?;
        for (block, piece) in blocks.iter_mut().zip(source.chunks(CHUNK)) {
            copy_bytes(&mut block.bytes_mut()[..piece.len()], piece).ok()?;
        }
        Some(Staged { core: self.clone(), blocks, size: source.len() })
    }

    /// Begins copying device bytes to the host after all work submitted so far.
    pub fn begin_download(
        self: &Arc<Self>,
        source: Arc<DeviceBuffer>,
        offset: u64,
        size: usize,
        into: Option<PinnedSlice>,
    ) -> Result<Download> {
        let place = match into {
            Some(slice) => Place::Pinned(slice),
            None if size > 0 && size <= EARLY => Place::Staged(self.staging.take(size)?),
            None => Place::Pieces,
        };
        self.download(source, offset, size, place)
    }

    /// Begins copying device bytes, after all work submitted so far, to host memory that is handed out.
    pub fn begin_result(
        self: &Arc<Self>,
        source: Arc<DeviceBuffer>,
        offset: u64,
        size: usize,
    ) -> Result<Download> {
        match self.results.take(size) {
            Some(block) => self.download(source, offset, size, Place::Result(block)),
            None => self.begin_download(source, offset, size, None),
        }
    }

    fn download(
        self: &Arc<Self>,
        source: Arc<DeviceBuffer>,
        offset: u64,
        size: usize,
        place: Place,
    ) -> Result<Download> {
        if offset.checked_add(size as u64).is_none_or(|end| end > source.size() as u64) {
            return Err(Error::Internal(format!("{size} bytes at {offset} of a block of {}", source.size())));
        }
        let target = match &place {
            Place::Pinned(slice) => Some((&*slice.memory, slice.offset)),
            Place::Staged(block) => Some((block, 0)),
            Place::Result(block) => Some((block.memory()?, 0)),
            Place::Pieces => None,
        };
        if let Some((target, at)) = target {
            self.stream.download(target, at, source.ptr().offset(offset), size)?;
        }
        let ready = Event::new(&self.context)?;
        ready.record(&self.stream)?;
        Ok(Download { core: self.clone(), source, offset, size, ready, place })
    }

    /// Reads device bytes after all work submitted so far. Blocks.
    pub fn read(self: &Arc<Self>, source: DevicePtr, target: &mut [u8]) -> Result<()> {
        for (index, piece) in target.chunks_mut(CHUNK).enumerate() {
            let block = self.staging.take(piece.len())?;
            self.stream.download(&block, 0, source.offset((index * CHUNK) as u64), piece.len())?;
            self.stream.synchronize()?;
            copy_bytes(piece, &block.bytes()[..piece.len()])?;
            self.staging.give(block);
        }
        Ok(())
    }
}

/// Results up to this size are copied on the compute stream, without a second wait.
const EARLY: usize = CHUNK;
/// Pieces that larger ones are copied in, at least: enough for several threads to copy one out.
const LEAST_PIECE: usize = 4 << 20;

/// Where a copy to the host goes.
enum Place {
    /// To memory that the caller gave.
    Pinned(PinnedSlice),
    /// To a block that is handed out.
    Result(ResultBlock),
    /// To a block that is copied out of.
    Staged(PinnedMemory),
    /// Piece by piece, once the data is there.
    Pieces,
}

/// A copy to the host that is under way.
pub struct Download {
    core: Arc<DeviceCore>,
    source: Arc<DeviceBuffer>,
    offset: u64,
    size: usize,
    ready: Event,
    place: Place,
}

impl Download {
    /// Bytes that are copied.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Waits for the data and writes it to `target`, which has the size asked for.
    pub fn finish(mut self, target: &mut [u8]) -> Result<()> {
        if target.len() != self.size {
            return Err(Error::Internal(format!("a copy of {} bytes into {}", self.size, target.len())));
        }
        self.ready.synchronize_soon()?;
        match std::mem::replace(&mut self.place, Place::Pieces) {
            Place::Pieces => self.pieces(target),
            Place::Staged(block) => {
                copy_bytes(target, &block.bytes()[..self.size])?;
                self.core.staging.give(block);
                Ok(())
            }
            Place::Result(block) => copy_bytes(target, &block.written()[..self.size]),
            Place::Pinned(_) => Err(Error::Internal("a copy to a caller's memory was copied on".into())),
        }
    }

    /// Waits for the data; the memory that holds it.
    pub fn into_buffer(mut self) -> Result<HostBuffer> {
        if let Place::Result(_) = self.place {
            self.ready.synchronize_soon()?;
            if let Place::Result(block) = std::mem::replace(&mut self.place, Place::Pieces) {
                return HostBuffer::of_result(block.written(), self.size);
            }
        }
        let mut buffer = HostBuffer::for_overwrite(self.size)?;
        self.finish(buffer.bytes_mut())?;
        Ok(buffer)
    }

    /// Two blocks in turn: the device fills one while the other is copied out.
    fn pieces(&self, target: &mut [u8]) -> Result<()> {
        let staging = &self.core.staging;
        let downloads = &self.core.downloads;
        let mut pending: Option<(Event, PinnedMemory, &mut [u8])> = None;
        // Small enough that copying out starts early, large enough that an event per piece does not matter.
        let piece_size = (self.size / 8).next_power_of_two().clamp(LEAST_PIECE, CHUNK);
        for (index, piece) in target.chunks_mut(piece_size).enumerate() {
            let block = staging.take(piece.len())?;
            let from = self.source.ptr().offset(self.offset + (index * piece_size) as u64);
            downloads.download(&block, 0, from, piece.len())?;
            let event = Event::new(&self.core.context)?;
            event.record(downloads)?;
            if let Some(previous) = pending.replace((event, block, piece)) {
                collect(staging, previous)?;
            }
        }
        pending.map_or(Ok(()), |last| collect(staging, last))
    }

    /// Whether the data goes to pinned memory that the caller gave.
    pub fn is_pinned(&self) -> bool {
        matches!(self.place, Place::Pinned(_))
    }

    /// Waits until the data is in the pinned memory that the caller gave.
    pub fn finish_pinned(self) -> Result<()> {
        self.ready.synchronize()
    }
}

fn collect(staging: &Staging, (event, block, piece): (Event, PinnedMemory, &mut [u8])) -> Result<()> {
    event.synchronize_soon()?;
    copy_bytes(piece, &block.bytes()[..piece.len()])?;
    staging.give(block);
    Ok(())
}

/// Page-locked memory of a caller and the first byte to use. Keeps the memory alive.
#[derive(Clone)]
pub struct PinnedSlice {
    /// The block.
    pub memory: Arc<PinnedMemory>,
    /// First byte.
    pub offset: usize,
}

impl PinnedSlice {
    /// The bytes of the slice, if the block holds that many.
    pub fn bytes(&self, size: usize) -> Option<&[u8]> {
        self.memory.bytes().get(self.offset..self.offset.checked_add(size)?)
    }
}

/// Bytes in pinned blocks, on their way to a device.
pub struct Staged {
    core: Arc<DeviceCore>,
    blocks: Vec<PinnedMemory>,
    size: usize,
}

impl Staged {
    /// Whether the blocks belong to that device's context.
    pub fn is_on(&self, core: &Arc<DeviceCore>) -> bool {
        Arc::ptr_eq(&self.core.context, &core.context)
    }

    /// Enqueues the copies to memory of that core, in its order.
    pub fn upload(mut self, core: &Arc<DeviceCore>, target: DevicePtr) -> Result<()> {
        for (index, block) in std::mem::take(&mut self.blocks).into_iter().enumerate() {
            let start = index * CHUNK;
            let size = (self.size - start).min(CHUNK);
            core.stream.upload(target.offset(start as u64), &block, 0, size)?;
            self.core.staging.keep_busy(&core.stream, block)?;
        }
        Ok(())
    }

    /// The bytes as plain memory.
    pub fn to_host(&self) -> Result<HostBuffer> {
        let mut buffer = HostBuffer::for_overwrite(self.size)?;
        for (piece, block) in buffer.bytes_mut().chunks_mut(CHUNK).zip(&self.blocks) {
            piece.copy_from_slice(&block.bytes()[..piece.len()]);
        }
        Ok(buffer)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for block in self.blocks.drain(..) {
            self.core.staging.give(block);
        }
    }
}

/// A block of a device's pool; goes back to it when dropped.
pub struct DeviceBuffer {
    memory: Option<DeviceMemory>,
    core: Arc<DeviceCore>,
    /// A number that no other block has.
    id: u64,
    forms: OnceLock<Arc<Forms>>,
    read: AtomicBool,
    lasting: AtomicBool,
}

impl DeviceBuffer {
    /// Start of the block, 256-byte aligned.
    pub fn ptr(&self) -> DevicePtr {
        self.memory.as_ref().map_or(DevicePtr::NULL, DeviceMemory::ptr)
    }

    /// Bytes of the block, at least those asked for.
    pub fn size(&self) -> usize {
        self.memory.as_ref().map_or(0, DeviceMemory::size)
    }

    /// The device that holds it.
    pub fn core(&self) -> &Arc<DeviceCore> {
        &self.core
    }

    fn forms(&self) -> &Arc<Forms> {
        self.forms.get_or_init(|| Arc::new(Forms::new(self.is_lasting())))
    }

    fn is_lasting(&self) -> bool {
        self.lasting.load(Ordering::Acquire)
    }

    /// Has forms made at the first use and kept as long as the block: it holds weights that meet something new each time. To be
    /// called before its first use.
    pub fn keep_forms(&self) {
        self.lasting.store(true, Ordering::Release);
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.core.pool.give(memory);
        }
    }
}

/// A contiguous row-major tensor in device memory.
#[derive(Clone, Copy)]
pub struct DeviceView<'a> {
    /// Dims, outermost first.
    pub dims: &'a [usize],
    /// Element type.
    pub dtype: DType,
    /// Address of the first element.
    pub ptr: DevicePtr,
    /// The memory that holds it, or what it was made from.
    pub buffer: &'a DeviceBuffer,
}

impl DeviceView<'_> {
    /// The tensor's form for a call in which `partner` comes along, and note of this use.
    pub fn form<T: Send + Sync + 'static>(&self, key: FormKey, partner: &DeviceView) -> Form<T> {
        self.buffer.forms().find(key, partner.buffer.id)
    }

    /// What `form` would answer, without note of a use.
    pub fn peek_form<T: Send + Sync + 'static>(&self, key: FormKey, partner: &DeviceView) -> Form<T> {
        self.buffer.forms().peek(key, partner.buffer.id)
    }

    /// Whether a launch has read its memory and noted that.
    pub fn was_read(&self) -> bool {
        self.buffer.read.load(Ordering::Acquire)
    }

    /// Notes that a launch which reads its memory was enqueued.
    pub fn note_read(&self) {
        self.buffer.read.store(true, Ordering::Release);
    }

    /// Keeps a form of so many bytes that was wanted, where memory allows. It has been submitted, though perhaps not yet run.
    pub fn keep_form<T: Send + Sync + 'static>(&self, key: FormKey, form: Arc<T>, bytes: u64) {
        let core = self.buffer.core();
        core.forms.keep(self.buffer.forms(), key, form, bytes, core.most_forms());
    }
}
