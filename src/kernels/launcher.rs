//! Launches: kernels by name, modules loaded at first use, arguments checked against the kernel's signature.

use super::raised::Raised;
use super::rates::Rates;
use super::registry::{self, Parameter};
use super::rehearsal::{Missing, Text};
use crate::driver::{DeviceMemory, DevicePtr, Function, Graph, Grid, Module, PackedArguments};
use crate::tensor::{DeviceBuffer, DeviceCore};
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Number of words that [`Launcher::tickets`] gives.
pub const TICKETS: usize = 1 << 14;

/// Dynamic shared memory that needs no leave: with what kernels declare beside it it stays below 48 KiB.
const PLAIN_SHARED: u32 = 24 * 1024;

/// A kernel argument.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum Arg<'a> {
    Ptr(DevicePtr),
    U64(u64),
    I64(i64),
    U32(u32),
    I32(i32),
    F32(f32),
    F64(f64),
    /// A struct of 32-bit words by value.
    Block(&'a [u32]),
}

impl Arg<'_> {
    fn kind(&self) -> Parameter {
        match self {
            Arg::Ptr(_) | Arg::U64(_) | Arg::I64(_) => Parameter::Word64,
            Arg::U32(_) | Arg::I32(_) => Parameter::Word32,
            Arg::F32(_) => Parameter::F32,
            Arg::F64(_) => Parameter::F64,
            Arg::Block(words) => Parameter::Block(words.len() * 4),
        }
    }

    fn pack(&self, packed: &mut PackedArguments) {
        match self {
            Arg::Ptr(ptr) => packed.push(&ptr.0.to_ne_bytes()),
            Arg::U64(value) => packed.push(&value.to_ne_bytes()),
            Arg::I64(value) => packed.push(&value.to_ne_bytes()),
            Arg::U32(value) => packed.push(&value.to_ne_bytes()),
            Arg::I32(value) => packed.push(&value.to_ne_bytes()),
            Arg::F32(value) => packed.push(&value.to_ne_bytes()),
            Arg::F64(value) => packed.push(&value.to_ne_bytes()),
            Arg::Block(words) => packed.push(bytemuck::cast_slice(words)),
        }
    }
}

/// A scalar of the call's float type, as kernels take `alpha` and the like.
pub fn float_arg(dtype: crate::DType, value: f64) -> Arg<'static> {
    if dtype == crate::DType::F64 { Arg::F64(value) } else { Arg::F32(value as f32) }
}

/// A number in the type that elements of that one are computed with in; the nearest of a whole number's range.
pub fn number_arg(dtype: crate::DType, value: f64) -> Arg<'static> {
    use crate::DType::*;
    match dtype {
        I8 => Arg::I32(i32::from(value as i8)),
        I16 => Arg::I32(i32::from(value as i16)),
        I32 => Arg::I32(value as i32),
        I64 => Arg::I64(value as i64),
        U8 | Bool => Arg::U32(u32::from(value as u8)),
        U16 => Arg::U32(u32::from(value as u16)),
        U32 => Arg::U32(value as u32),
        U64 => Arg::U64(value as u64),
        F32 | F64 | F16 | Bf16 => float_arg(dtype, value),
    }
}

/// A grid along x: enough blocks of `threads` for `items`, each thread taking `per_thread`.
pub fn linear(items: u64, threads: u32, per_thread: u32) -> Result<Grid> {
    let blocks = items.div_ceil(u64::from(threads) * u64::from(per_thread));
    grid_x(blocks, threads, 0)
}

/// A grid of that many blocks along x, which the driver takes up to 2^31 - 1.
pub fn grid_x(blocks: u64, threads: u32, shared: u32) -> Result<Grid> {
    let blocks = u32::try_from(blocks).ok().filter(|count| *count <= i32::MAX as u32).ok_or_else(|| {
        Error::ShapeMismatch(format!("the work needs {blocks} blocks, more than one launch takes"))
    })?;
    Ok(Grid::along_x(blocks.max(1), threads, shared))
}

/// PTX text made at run time.
pub struct Generated {
    /// The text.
    pub ptx: String,
    /// Its entry.
    pub entry: String,
    /// The entry's parameters.
    pub parameters: Vec<Parameter>,
}

#[derive(Clone)]
pub(super) struct Loaded {
    function: Function,
    parameters: Arc<[Parameter]>,
    shared: u32,
}

/// Kernels of a context that were loaded, and what was measured of its device.
#[derive(Default)]
pub(super) struct Known {
    pub functions: Mutex<HashMap<String, Loaded>>,
    rates: OnceLock<Rates>,
}

/// Launches kernels on one stream.
pub struct Launcher {
    core: Arc<DeviceCore>,
    pub(super) known: Arc<Known>,
    raised: Mutex<Option<Raised>>,
    tickets: Mutex<Option<DeviceMemory>>,
    /// Where nothing is launched: the kernels that would have been and are not loaded.
    pub(super) missing: Option<Mutex<Vec<Missing>>>,
}

/// Launches and copies that were recorded, to be launched as a whole on the stream of their launcher.
pub struct Recording {
    graph: Graph,
    /// Words that its kernels raise; it clears them itself.
    _raised: Option<Raised>,
}

impl Launcher {
    /// A launcher without any module loaded.
    pub fn new(core: Arc<DeviceCore>) -> Launcher {
        let known = Arc::default();
        Launcher { core, known, raised: Mutex::default(), tickets: Mutex::default(), missing: None }
    }

    /// A launcher on a stream of its own, with the same kernels. See [`DeviceCore::branch`].
    pub fn branch(&self) -> Result<Launcher> {
        Ok(Launcher { known: self.known.clone(), ..Launcher::new(self.core.branch()?) })
    }

    /// Records what `submit` enqueues instead of running it; `None` where the driver cannot. Nothing else may use the launcher
    /// meanwhile. The memory that `submit` takes must come from a branch, which keeps it.
    pub fn record(&self, submit: impl FnOnce() -> Result<()>) -> Result<Option<Recording>> {
        // Kernels find them cleared, which is no part of what is recorded.
        self.tickets()?;
        let before = self.raised.lock().map_err(poisoned)?.take();
        let graph = Graph::record(self.core.stream(), submit);
        let raised = std::mem::replace(&mut *self.raised.lock().map_err(poisoned)?, before);
        Ok(graph?.map(|graph| Recording { graph, _raised: raised }))
    }

    /// Enqueues what was recorded here.
    pub fn replay(&self, recording: &Recording) -> Result<()> {
        recording.graph.launch(self.core.stream())
    }

    /// The device's context, stream and memory.
    pub fn core(&self) -> &Arc<DeviceCore> {
        &self.core
    }

    /// Compute capability as 75, 80, 90, or the highest level that may be taken, if that is lower.
    pub fn compute_capability(&self) -> u32 {
        let (major, minor) = self.core.context().properties().compute_capability;
        (major * 10 + minor).min(registry::highest_level())
    }

    /// Number of multiprocessors.
    pub fn multiprocessors(&self) -> u32 {
        self.core.context().properties().multiprocessors
    }

    /// What a multiprocessor multiplies in a clock. The first call measures it, but for compute capability 9.0.
    pub fn rates(&self) -> Result<Rates> {
        if self.compute_capability() == 90 {
            return Ok(Rates::HOPPER);
        }
        if let Some(rates) = self.known.rates.get() {
            return Ok(*rates);
        }
        let measured = Rates::measure(self)?;
        Ok(*self.known.rates.get_or_init(|| measured))
    }

    /// Device memory for intermediate values; goes back to the pool when dropped, in stream order.
    pub fn scratch(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.core.allocate(bytes)
    }

    /// Device memory that holds those bytes; as scratch otherwise.
    pub fn scratch_of(&self, bytes: &[u8]) -> Result<DeviceBuffer> {
        let buffer = self.scratch(bytes.len())?;
        self.core.upload(buffer.ptr(), bytes)?;
        Ok(buffer)
    }

    /// 64 bytes of words that kernels only raise, each value tagged in its upper half with the epoch that comes along:
    /// whatever carries another one counts as 0.
    pub fn raised_words(&self) -> Result<(DevicePtr, u32)> {
        if self.missing.is_some() {
            return Ok((DevicePtr::NULL, 0));
        }
        let mut raised = self.raised.lock().map_err(poisoned)?;
        if raised.as_ref().is_none_or(Raised::is_used_up) {
            *raised = Some(Raised::new(&self.core)?);
        }
        raised.as_mut().map(Raised::next).ok_or_else(|| Error::Internal("no raised words".into()))
    }

    /// Words that the blocks of a launch count themselves in, [`TICKETS`] of them. A kernel finds them 0 and leaves them so.
    pub fn tickets(&self) -> Result<DevicePtr> {
        if self.missing.is_some() {
            return Ok(DevicePtr::NULL);
        }
        let mut tickets = self.tickets.lock().map_err(poisoned)?;
        if let Some(memory) = tickets.as_ref() {
            return Ok(memory.ptr());
        }
        let memory = DeviceMemory::new(self.core.context(), TICKETS * size_of::<u32>())?;
        self.core.stream().fill(memory.ptr(), 0, memory.size())?;
        Ok(tickets.insert(memory).ptr())
    }

    /// Enqueues an embedded kernel.
    pub fn launch(&self, kernel: &str, grid: Grid, arguments: &[Arg]) -> Result<()> {
        if let Some(missing) = &self.missing {
            return self.note(missing, kernel, || Ok(Text::Embedded));
        }
        let loaded = self.lookup(kernel, || self.load(kernel))?;
        self.enqueue(kernel, loaded, grid, arguments)
    }

    /// Enqueues a kernel whose PTX is made by `make` at first use and kept under `key`.
    pub fn launch_generated(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<Generated>,
        grid: Grid,
        arguments: &[Arg],
    ) -> Result<()> {
        if let Some(missing) = &self.missing {
            return self.note(missing, key, || make().map(Text::Generated));
        }
        let loaded = self.lookup(key, || self.load_generated(key, &make()?))?;
        self.enqueue(key, loaded, grid, arguments)
    }

    /// Registers per thread and bytes of local memory of an embedded kernel.
    pub fn resources(&self, kernel: &str) -> Result<(u32, u32)> {
        self.lookup(kernel, || self.load(kernel))?.function.resources()
    }

    /// The loaded kernel. The lock is not held while the driver compiles: two threads may compile the same text, and
    /// the first result stays.
    pub(super) fn lookup(&self, key: &str, load: impl FnOnce() -> Result<Loaded>) -> Result<Loaded> {
        if let Some(loaded) = self.known.functions.lock().map_err(poisoned)?.get(key) {
            return Ok(loaded.clone());
        }
        let loaded = load()?;
        let mut functions = self.known.functions.lock().map_err(poisoned)?;
        Ok(functions.entry(key.to_string()).or_insert(loaded).clone())
    }

    /// A module of its own for each kernel: the driver compiles what is launched and nothing else.
    pub(super) fn load(&self, kernel: &str) -> Result<Loaded> {
        let (source, entry) = registry::find(kernel, self.compute_capability())?;
        let text = source.kernel(entry)?;
        let module = Arc::new(Module::from_ptx(self.core.context(), kernel, &text)?);
        Ok(Loaded { function: module.function(entry.name)?, parameters: entry.parameters.into(), shared: 0 })
    }

    pub(super) fn load_generated(&self, key: &str, generated: &Generated) -> Result<Loaded> {
        let module = Arc::new(Module::from_ptx(self.core.context(), key, &generated.ptx)?);
        let function = module.function(&generated.entry)?;
        Ok(Loaded { function, parameters: generated.parameters.as_slice().into(), shared: 0 })
    }

    fn enqueue(&self, key: &str, loaded: Loaded, grid: Grid, arguments: &[Arg]) -> Result<()> {
        if !arguments.iter().map(Arg::kind).eq(loaded.parameters.iter().copied()) {
            let kinds: Vec<Parameter> = arguments.iter().map(Arg::kind).collect();
            let wanted = &loaded.parameters;
            return Err(Error::Internal(format!(
                "kernel '{key}' takes {wanted:?}, the launch gives {kinds:?}"
            )));
        }
        if grid.shared > PLAIN_SHARED && loaded.shared < grid.shared {
            loaded.function.allow_shared(grid.shared)?;
            if let Some(entry) = self.known.functions.lock().map_err(poisoned)?.get_mut(key) {
                entry.shared = grid.shared;
            }
        }
        let mut packed = PackedArguments::default();
        for argument in arguments {
            argument.pack(&mut packed);
        }
        loaded.function.launch(self.core.stream(), grid, &mut packed)
    }
}

pub(super) fn poisoned<T>(_: T) -> Error {
    Error::Internal("a lock was poisoned by an earlier panic".into())
}
