//! The interpreter: blocks over the cores, warps in lockstep, lanes as vectors.

mod access;
pub(crate) mod barrier;
mod block;
pub(crate) mod bulk;
pub(crate) mod cluster;
mod cx;
pub(crate) mod exact;
mod gang;
pub(crate) mod inst;
pub(crate) mod mbarrier;
mod operand;
pub(crate) mod products;
mod proxy;
mod race;
mod race_global;
pub(crate) mod reduce;
pub(crate) mod registers;
mod shared;
pub(crate) mod soft;
pub(crate) mod sync;
pub(crate) mod table;
pub(crate) mod tensor;
pub mod tensor_map;
mod warp;
pub(crate) mod warpgroup;

use crate::memory::Table;
use crate::{DeviceMemory, Fault, FaultKind, Kernel, Target};
use block::{Block, Progress};
use cx::Cx;
use gang::Gang;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Where shared and local memory lie in generic addresses.
pub(crate) const SHARED_WINDOW: u64 = 0x1_0000_0000_0000;
pub(crate) const LOCAL_WINDOW: u64 = 0x2_0000_0000_0000;
pub(crate) const PARAM_WINDOW: u64 = 0x3_0000_0000_0000;
pub(crate) const WINDOW_MASK: u64 = 0xffff_0000_0000_0000;

/// Which checkers a launch runs with.
#[derive(Clone, Debug)]
pub struct Checks {
    /// Reads of global, shared and local memory that nothing wrote.
    pub uninitialized: bool,
    /// Conflicting accesses to shared memory that no barrier orders.
    pub shared_races: bool,
    /// The same for global memory, within and across the blocks of one launch; slow.
    pub global_races: bool,
    /// Threads of a block that wait at different barriers.
    pub barriers: bool,
    /// Changes the last bit of approximate results, as another card might.
    pub perturb_approximate: bool,
    /// Warp instructions that one block may take before the launch is stopped.
    pub max_instructions: u64,
    /// Worker threads; 0 for one per core.
    pub threads: usize,
}

impl Default for Checks {
    fn default() -> Checks {
        Checks {
            uninitialized: true,
            shared_races: true,
            global_races: false,
            barriers: true,
            perturb_approximate: false,
            max_instructions: 20_000_000_000,
            threads: 0,
        }
    }
}

/// One launch, as all its workers see it.
pub(crate) struct Launch<'a> {
    pub kernel: &'a Kernel,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Blocks of a cluster along each axis.
    pub cluster: [u32; 3],
    pub dynamic_shared: u32,
    /// Offset of dynamic shared memory.
    pub dynamic_start: u64,
    pub params: &'a [u8],
    pub memory: &'a DeviceMemory,
    pub table: Table,
    pub target: &'a Target,
    pub checks: &'a Checks,
    /// Addresses of the module's variables.
    pub symbols: Vec<u64>,
    pub global_races: race_global::GlobalRaces,
    next: AtomicU64,
    blocks: u64,
    stop: AtomicBool,
    fault: Mutex<Option<Fault>>,
    executed: AtomicU64,
}

/// What a launch did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Instructions, each counted once for a whole warp.
    pub warp_instructions: u64,
}

/// As `launch`; tells what it did.
#[allow(clippy::too_many_arguments, reason = "the driver's launch has these")]
pub fn launch_counted(
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    params: &[u8],
    memory: &DeviceMemory,
    target: &Target,
    checks: &Checks,
) -> Result<Statistics, Fault> {
    launch_clusters(kernel, grid, block, [1; 3], dynamic_shared, params, memory, target, checks)
}

/// As `launch`, in clusters of that many blocks along each axis.
#[allow(clippy::too_many_arguments, reason = "the driver's launch has these")]
pub fn launch_clusters(
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: [u32; 3],
    dynamic_shared: u32,
    params: &[u8],
    memory: &DeviceMemory,
    target: &Target,
    checks: &Checks,
) -> Result<Statistics, Fault> {
    check_shape(kernel, grid, block, dynamic_shared, params, target)?;
    let cluster = kernel.cluster.filter(|_| cluster == [1; 3]).unwrap_or(cluster);
    check_cluster(kernel, grid, cluster)?;
    let blocks = grid.iter().zip(cluster).map(|(&n, size)| u64::from(n / size)).product::<u64>();
    let launch = Launch {
        kernel,
        grid,
        block,
        cluster,
        dynamic_shared,
        dynamic_start: kernel.dynamic_start.into(),
        params,
        memory,
        table: memory.table(),
        target,
        checks,
        symbols: kernel.symbols(),
        global_races: Default::default(),
        next: AtomicU64::new(0),
        blocks,
        stop: AtomicBool::new(false),
        fault: Mutex::new(None),
        executed: AtomicU64::new(0),
    };
    let cores = if checks.threads == 0 { rayon::current_num_threads() } else { checks.threads };
    let workers = (cores as u64).min(blocks).max(1);
    if workers == 1 {
        work(&launch);
    } else {
        rayon::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|_| work(&launch));
            }
            work(&launch);
        });
    }
    let fault = launch.fault.lock().unwrap_or_else(|e| e.into_inner()).take();
    match fault {
        Some(fault) => Err(fault),
        None => Ok(Statistics { warp_instructions: launch.executed.load(Relaxed) }),
    }
}

/// Runs a kernel to its end. `params` is packed at the kernel's own offsets.
#[allow(clippy::too_many_arguments, reason = "the driver's launch has these")]
pub fn launch(
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    params: &[u8],
    memory: &DeviceMemory,
    target: &Target,
    checks: &Checks,
) -> Result<(), Fault> {
    launch_counted(kernel, grid, block, dynamic_shared, params, memory, target, checks).map(|_| ())
}

fn check_shape(
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    params: &[u8],
    target: &Target,
) -> Result<(), Fault> {
    let bad = |detail: String| {
        let mut fault = Fault::plain(FaultKind::Launch, None, detail);
        fault.kernel = kernel.name.clone();
        Err(fault)
    };
    if grid.contains(&0)
        || block.contains(&0)
        || grid[0] > i32::MAX as u32
        || grid[1] > 65535
        || grid[2] > 65535
    {
        return bad(format!("grid {grid:?} of blocks {block:?}"));
    }
    let threads = block.iter().map(|&n| u64::from(n)).product::<u64>();
    if threads > u64::from(kernel.max_threads.min(target.max_threads_per_block)) || block[2] > 64 {
        return bad(format!("{threads} threads in a block of a kernel for {}", kernel.max_threads));
    }
    let shared = u64::from(kernel.dynamic_start) + u64::from(dynamic_shared);
    if shared > u64::from(target.shared_per_block) {
        return bad(format!("{shared} bytes of shared memory"));
    }
    let needed = kernel.params.iter().map(|p| p.offset + p.size).max().unwrap_or(0);
    if params.len() < needed as usize {
        return bad(format!("{} bytes of parameters instead of {needed}", params.len()));
    }
    Ok(())
}

fn check_cluster(kernel: &Kernel, grid: [u32; 3], cluster: [u32; 3]) -> Result<(), Fault> {
    let fits = grid.iter().zip(cluster).all(|(&blocks, size)| size > 0 && blocks % size == 0);
    if fits && cluster.iter().map(|&n| u64::from(n)).product::<u64>() <= 8 {
        return Ok(());
    }
    let mut fault =
        Fault::plain(FaultKind::Launch, None, format!("clusters of {cluster:?} in a grid of {grid:?}"));
    fault.kernel = kernel.name.clone();
    Err(fault)
}

/// Instructions after which a worker takes a further block beside one that does not end.
const PATIENCE: u64 = 4_000_000;
const RESIDENT: usize = 64;

/// Takes blocks until none is left. A block that runs long may wait for a later one, so others
/// run beside it in turn.
fn work(launch: &Launch<'_>) {
    let (block, warp) = (Block::default(), Default::default());
    let mut cx = Cx { launch, block, warp, fault: None, hint: 0, peers: Vec::new(), foreign: false };
    let mut running: VecDeque<Box<Gang>> = VecDeque::new();
    let mut spare: Vec<Box<Gang>> = Vec::new();
    let mut more = true;
    while !launch.stop.load(Relaxed) {
        if more && running.len() < RESIDENT {
            let linear = launch.next.fetch_add(1, Relaxed);
            more = linear < launch.blocks;
            if more {
                let mut block = spare.pop().unwrap_or_default();
                block.start(launch, linear);
                running.push_front(block);
            }
        }
        let Some(mut block) = running.pop_front() else { break };
        match block.advance(&mut cx, PATIENCE) {
            Ok(Progress::Done) => {
                launch.executed.fetch_add(block.executed(), Relaxed);
                spare.push(block);
            }
            Ok(Progress::More | Progress::Idle) => running.push_back(block),
            Err(fault) => {
                launch.stop.store(true, Relaxed);
                let mut first = launch.fault.lock().unwrap_or_else(|e| e.into_inner());
                first.get_or_insert(*fault);
            }
        }
    }
}
