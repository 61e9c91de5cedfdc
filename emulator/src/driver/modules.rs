//! Modules, their functions and launches.

use super::card::{self, Footprint, SHARED_DEFAULT};
use super::memory::enqueue;
use super::queue::drain;
use super::state::{Driver, Id, state};
use super::status::*;
use super::work::{Launch, Work};
use super::{control, link};
use crate::{DeviceMemory, Kernel, LoadError, LoadErrorKind, Module};
use std::sync::Arc;

/// A module in a card's context.
pub struct LoadedModule {
    pub ordinal: usize,
    module: Module,
    /// Memory that its variables lie in.
    memory: Arc<DeviceMemory>,
}

/// A kernel that was asked for.
pub struct Function {
    pub ordinal: usize,
    module: Id,
    pub kernel: Arc<Kernel>,
    /// Bytes of dynamic shared memory that launches may ask for.
    dynamic_shared: u32,
    carveout: i32,
}

/// A module's image as it came in.
pub enum Image {
    /// PTX text.
    Ptx(String),
    /// What `cuLinkComplete` gave: the compute capability it is for and the text.
    Cubin(u32, String),
    /// Neither.
    Unknown,
}

/// Why a module was refused: the code and the compiler's log.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: Status,
    pub log: String,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal { status, log: String::new() }
    }
}

impl From<LoadError> for Refusal {
    fn from(error: LoadError) -> Refusal {
        let status = match error.kind {
            LoadErrorKind::Syntax | LoadErrorKind::Target | LoadErrorKind::Unknown => INVALID_PTX,
            LoadErrorKind::Version => UNSUPPORTED_PTX_VERSION,
            LoadErrorKind::Memory => OUT_OF_MEMORY,
        };
        Refusal { status, log: error.log }
    }
}

/// Loads an image into the card's context.
pub fn load(ordinal: usize, image: Image) -> Result<Id, Refusal> {
    let (target, memory) = {
        let mut driver = state();
        driver.refuse_unsafe_call()?;
        (driver.target(), driver.cards[ordinal].memory.clone())
    };
    let text = match image {
        Image::Ptx(text) => text,
        Image::Cubin(made_for, text) if link::runs_on(made_for, target.cc) => text,
        Image::Cubin(..) => return Err(NO_BINARY_FOR_GPU.into()),
        Image::Unknown => return Err(INVALID_IMAGE.into()),
    };
    let module = Module::load(&text, &target)?;
    module.place(&memory)?;
    let mut driver = state();
    let id = driver.fresh();
    driver.modules.insert(id, LoadedModule { ordinal, module, memory });
    Ok(id)
}

/// Unloads a module once the work of its card is done, as the driver does.
pub fn unload(ordinal: usize, id: Id) -> Outcome {
    {
        let mut driver = state();
        driver.refuse_unsafe_call()?;
        if driver.modules.get(&id).is_none_or(|module| module.ordinal != ordinal) {
            return driver.stale("a module");
        }
    }
    drain(ordinal)?;
    let _engine = super::queue::engine();
    let mut driver = state();
    if let Some(loaded) = driver.modules.remove(&id) {
        loaded.module.unload(&loaded.memory);
    }
    driver.functions.retain(|_, function| function.module != id);
    Ok(())
}

pub fn function(ordinal: usize, module: Id, name: &str) -> Outcome<Id> {
    let mut driver = state();
    let Some(loaded) = driver.modules.get(&module).filter(|loaded| loaded.ordinal == ordinal) else {
        return driver.stale("a module");
    };
    let kernel = loaded.module.kernel(name).ok_or(NOT_FOUND)?;
    let known = driver.functions.iter().find(|(_, one)| one.module == module && one.kernel.name == name);
    if let Some((id, _)) = known {
        return Ok(*id);
    }
    let id = driver.fresh();
    let dynamic_shared = SHARED_DEFAULT.saturating_sub(kernel.static_shared);
    driver.functions.insert(id, Function { ordinal, module, kernel, dynamic_shared, carveout: -1 });
    Ok(id)
}

impl Driver {
    pub fn function(&self, ordinal: usize, id: Id) -> Outcome<&Function> {
        match self.functions.get(&id).filter(|function| function.ordinal == ordinal) {
            Some(function) => Ok(function),
            None => self.stale("a function"),
        }
    }
}

/// Registers of a thread: the interpreter's estimate, and no more than a compiler may take for blocks of that size.
fn registers(kernel: &Kernel) -> u32 {
    let most = 65536 / kernel.max_threads.next_multiple_of(32).max(32) / 8 * 8;
    kernel.registers.min(most).min(255)
}

pub fn attribute(ordinal: usize, id: Id, number: i32) -> Outcome<i32> {
    let driver = state();
    let function = driver.function(ordinal, id)?;
    let kernel = &function.kernel;
    Ok(match number {
        0 => kernel.max_threads as i32,
        1 => kernel.static_shared as i32,
        3 => kernel.local_bytes as i32,
        4 => registers(kernel) as i32,
        5 => (driver.config.ptx.0 * 10 + driver.config.ptx.1) as i32,
        6 => driver.config.compute_capability as i32,
        8 => function.dynamic_shared as i32,
        9 => function.carveout,
        2 | 7 | 10..=15 => 0,
        _ => return Err(INVALID_VALUE),
    })
}

pub fn set_attribute(ordinal: usize, id: Id, number: i32, value: i32) -> Outcome {
    let mut driver = state();
    let limit = card::shared_per_block(&driver.config)
        - driver.function(ordinal, id)?.kernel.static_shared.min(48 << 10);
    let Some(function) = driver.functions.get_mut(&id) else { return Err(INVALID_HANDLE) };
    match number {
        8 if u32::try_from(value).is_ok_and(|bytes| bytes <= limit) => function.dynamic_shared = value as u32,
        9 if (-1..=100).contains(&value) => function.carveout = value,
        _ => return Err(INVALID_VALUE),
    }
    Ok(())
}

/// Blocks of a kernel that one multiprocessor takes.
pub fn occupancy(ordinal: usize, id: Id, threads: i32, shared: usize) -> Outcome<i32> {
    let driver = state();
    let kernel = &driver.function(ordinal, id)?.kernel;
    let threads = u32::try_from(threads).ok().filter(|count| *count > 0).ok_or(INVALID_VALUE)?;
    let shared = u32::try_from(shared).map_err(|_| INVALID_VALUE)? + kernel.static_shared;
    if threads > kernel.max_threads || shared > card::shared_per_block(&driver.config) {
        return Ok(0);
    }
    let footprint = Footprint { threads, registers: registers(kernel), shared };
    Ok(card::blocks_per_multiprocessor(&driver.config, footprint) as i32)
}

/// What a launch asks for beside its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    /// Blocks of a cluster along each axis; none where nothing was asked for.
    pub cluster: Option<[u32; 3]>,
    /// Whether it may begin before the launch before it has ended.
    pub early: bool,
}

impl Shape {
    /// An error unless the card takes a launch of that shape.
    fn check(&self, function: &Function) -> Outcome {
        let kernel = &function.kernel;
        let threads = self.block.iter().map(|count| u64::from(*count)).product::<u64>();
        let limits = [i32::MAX as u32, 65535, 65535];
        let grid_fits = self.grid.iter().zip(limits).all(|(count, limit)| (1..=limit).contains(count));
        if !grid_fits || threads == 0 || threads > 1024 || self.block[2] > 64 {
            return Err(INVALID_VALUE);
        }
        if self.shared > function.dynamic_shared {
            return Err(INVALID_VALUE);
        }
        if threads > u64::from(kernel.max_threads) {
            return Err(LAUNCH_OUT_OF_RESOURCES);
        }
        let cluster = self.cluster(kernel)?;
        let whole = self.grid.iter().zip(cluster).all(|(count, size)| count.is_multiple_of(size));
        let size = cluster.iter().map(|size| u64::from(*size)).product::<u64>();
        if whole && (1..=8).contains(&size) { Ok(()) } else { Err(INVALID_CLUSTER_SIZE) }
    }

    /// What the launch or the kernel asks for; they must not differ.
    fn cluster(&self, kernel: &Kernel) -> Outcome<[u32; 3]> {
        match (self.cluster, kernel.cluster) {
            (Some(asked), Some(fixed)) if asked != fixed => Err(INVALID_CLUSTER_SIZE),
            (asked, fixed) => Ok(asked.or(fixed).unwrap_or([1; 3])),
        }
    }
}

/// A checked launch as work.
pub fn prepare(ordinal: usize, id: Id, shape: Shape, parameters: Vec<u8>) -> Outcome<Work> {
    let driver = state();
    let function = driver.function(ordinal, id)?;
    shape.check(function)?;
    let Shape { grid, block, shared, .. } = shape;
    let kernel = function.kernel.clone();
    let cluster = shape.cluster(&kernel)?;
    Ok(Work::Launch(Arc::new(Launch { kernel, grid, block, cluster, shared, parameters })))
}

pub fn launch(ordinal: usize, id: Id, shape: Shape, handle: Id, parameters: Vec<u8>) -> Outcome {
    let stream = state().stream_id(ordinal, handle)?;
    let work = prepare(ordinal, id, shape, parameters)?;
    let noted = match &work {
        Work::Launch(launch) if !state().config.run => Some(control::Launch::of(launch, &shape)),
        _ => None,
    };
    enqueue(stream, work)?;
    state().noted.extend(noted);
    Ok(())
}

/// The places of a function's parameters.
pub fn kernel(ordinal: usize, id: Id) -> Outcome<Arc<Kernel>> {
    Ok(state().function(ordinal, id)?.kernel.clone())
}
