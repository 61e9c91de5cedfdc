//! A block: its shared memory, its barriers and its warps in turn.

use super::bulk::{self, BulkStore, Flight};
use super::cx::{Cx, lanes};
use super::inst::{Code, Inst, Reason};
use super::mbarrier::{self, Mbarrier};
use super::proxy::Reader;
use super::race::Cell;
use super::warp::{Wait, Warp, run};
use super::{Launch, barrier, cluster, registers};
use crate::{Fault, FaultKind};

#[derive(Default)]
pub struct Block {
    pub index: [u32; 3],
    pub shared: Vec<u32>,
    pub shared_bytes: u64,
    pub cells: Vec<Cell>,
    /// Bytes of a cell, as a power of two.
    pub cell_shift: u32,
    pub barriers: [barrier::Barrier; 16],
    pub threads: u32,
    pub exited: u32,
    pub linear: u64,
    /// Of its cluster, and how many blocks that has.
    pub rank: u32,
    pub ranks: u32,
    pub ended: bool,
    pub mbarriers: Vec<Mbarrier>,
    /// Bulk copies to shared memory on their way.
    pub flights: Vec<Flight>,
    /// Bulk stores that have not ended.
    pub stores: Vec<BulkStore>,
    pub readers: Vec<Reader>,
    /// How many copies have landed.
    pub landed: u32,
    pub tickets: u64,
    /// Counts what may end a thread's wait.
    pub events: u64,
    /// Nothing else is left to do: waits with a time limit end without success.
    pub expired: bool,
    pub cluster: cluster::Barrier,
    pub registers: registers::Pool,
}

/// A block in execution, with its warps.
#[derive(Default)]
pub struct Running {
    pub block: Block,
    pub warps: Vec<Warp>,
    pub executed: u64,
    /// Rounds in which nothing changed that a thread may wait for.
    idle: u32,
}

/// How far a slice of a block went.
#[derive(PartialEq, Eq)]
pub enum Progress {
    Done,
    More,
    /// Nothing changed, and others of the cluster may have to.
    Idle,
}

const WARP_SLICE: u64 = 20_000;
/// Rounds without a change after which a block counts as dead, and after which other blocks have their turn.
pub const MOST_IDLE: u32 = 1000;
const IDLE_SLICE: u32 = 50;

impl Block {
    /// Opens the barrier of a cluster of one block where all threads have come.
    fn turn_cluster(&mut self) -> bool {
        let over =
            self.ranks == 1 && self.cluster.is_used() && self.cluster.is_complete(self.threads, self.exited);
        if over {
            self.cluster.turn();
            self.events += 1;
        }
        over
    }

    /// Forgets what the block before left of asynchronous work.
    fn forget(&mut self, launch: &Launch<'_>) {
        self.mbarriers.clear();
        self.flights.clear();
        self.stores.clear();
        self.readers.clear();
        (self.landed, self.tickets, self.events, self.expired) = (0, 0, 0, false);
        self.cluster.start();
        self.ended = false;
        self.registers = registers::Pool::of(launch);
    }
}

impl Running {
    /// Makes this the block at an index of the grid, of that rank in its cluster.
    pub fn start(&mut self, launch: &Launch<'_>, index: [u32; 3], rank: u32) {
        let [gx, gy, _] = launch.grid.map(u64::from);
        let [x, y, z] = index.map(u64::from);
        let threads = launch.block.iter().product::<u32>();
        let block = &mut self.block;
        block.index = index;
        block.linear = x + gx * (y + gy * z);
        block.rank = rank;
        block.ranks = launch.cluster.iter().product();
        block.threads = threads;
        block.exited = 0;
        block.barriers = Default::default();
        block.shared_bytes = launch.dynamic_start + u64::from(launch.dynamic_shared);
        let words = block.shared_bytes.div_ceil(4) as usize;
        block.shared.resize(words, 0);
        block.cells.clear();
        block.cell_shift = if launch.kernel.code.narrow_shared { 0 } else { 2 };
        block.cells.resize((words * 4) >> block.cell_shift, Cell::default());
        block.forget(launch);
        let count = threads.div_ceil(32);
        self.warps.resize_with(count as usize, Warp::default);
        for (n, warp) in self.warps.iter_mut().enumerate() {
            warp.start(launch, n as u32, index, rank);
        }
        self.executed = 0;
        self.idle = 0;
    }

    /// Runs about `budget` instructions.
    pub fn advance(&mut self, cx: &mut Cx<'_>, budget: u64) -> Result<Progress, Box<Fault>> {
        std::mem::swap(&mut cx.block, &mut self.block);
        let result = self.turns(cx, budget);
        std::mem::swap(&mut cx.block, &mut self.block);
        result
    }

    fn turns(&mut self, cx: &mut Cx<'_>, budget: u64) -> Result<Progress, Box<Fault>> {
        let (mut used, mut moved) = (0, false);
        loop {
            let (mut alive, mut ran, mut busy) = (false, 0, false);
            let before = cx.block.events;
            let expired = cx.block.expired;
            for warp in &mut self.warps {
                if warp.done() {
                    continue;
                }
                alive = true;
                if (warp.slept != cx.block.events || expired) && warp.sleeps() {
                    warp.wake();
                }
                if !warp.lane_ready() {
                    continue;
                }
                warp.yielded = false;
                std::mem::swap(&mut cx.warp, warp);
                let result = run(cx, WARP_SLICE);
                std::mem::swap(&mut cx.warp, warp);
                ran += result?;
                // One that sleeps or asks again may have done nothing that another waits for.
                busy |= warp.done() || warp.lane_ready() && !warp.yielded;
            }
            cx.block.expired = false;
            if !alive {
                return self.end(cx).map(|()| Progress::Done);
            }
            let released = barrier::release(cx, &mut self.warps)? || cx.block.turn_cluster();
            let changed = released || cx.block.events != before || busy && !expired;
            used += ran;
            self.executed += ran;
            moved |= changed;
            if changed {
                self.idle = 0;
            } else if cx.block.ranks > 1 {
                cx.block.expired = ran == 0;
                return Ok(if moved { Progress::More } else { Progress::Idle });
            } else if self.waits_no_more(cx, ran) {
                return Err(self.stuck(cx));
            } else if self.idle.is_multiple_of(IDLE_SLICE) {
                return Ok(Progress::More);
            }
            if self.executed > cx.launch.checks.max_instructions {
                return Err(self.late(cx));
            }
            if used >= budget {
                return Ok(Progress::More);
            }
        }
    }

    /// After a round without a change: whether none can come. Waits with a time limit end once before.
    fn waits_no_more(&mut self, cx: &mut Cx<'_>, ran: u64) -> bool {
        self.idle += 1;
        cx.block.expired = ran == 0;
        let asleep = self.warps.iter().any(Warp::sleeps);
        ran == 0 && !asleep || self.idle > MOST_IDLE
    }

    /// What must be over when all threads have ended.
    fn end(&mut self, cx: &mut Cx<'_>) -> Result<(), Box<Fault>> {
        if let Err((line, (warp, lane), bad)) = bulk::finish(cx) {
            let mut fault = Fault::plain(bad.kind, None, bad.detail);
            if let Some(inst) = cx.launch.kernel.code.insts.iter().find(|inst| inst.line == line) {
                cx.warp.index = warp;
                cx.place(&mut fault, inst, lane);
            }
            return Err(Box::new(fault));
        }
        let wrong = |detail: String| {
            let mut fault = Fault::plain(FaultKind::Undefined, None, detail);
            fault.kernel = cx.launch.kernel.name.clone();
            fault.block = cx.block.index;
            Err(Box::new(fault))
        };
        if let Some(warp) = self.warps.iter().find(|warp| warp.part.is_unfinished()) {
            return wrong(format!("warp {} ended before its wgmma did", warp.index));
        }
        for group in self.warps.chunks(4) {
            if group.iter().any(|warp| warp.part.digest() != group[0].part.digest()) {
                let first = group[0].index;
                return wrong(format!("warps {first} to {} did not all issue the same wgmma", first + 3));
            }
        }
        Ok(())
    }

    fn waiting(&self) -> Option<(&Warp, super::warp::Group)> {
        self.warps.iter().find_map(|warp| warp.groups.first().map(|&group| (warp, group)))
    }

    fn at(&mut self, cx: &mut Cx<'_>, kind: FaultKind, detail: String) -> Box<Fault> {
        let mut fault = Fault::plain(kind, None, detail);
        if let Some((warp, group)) = self.waiting() {
            let code: &Code = &cx.launch.kernel.code;
            let inst: &Inst = &code.insts[group.pc as usize];
            let lane = lanes(group.mask).next().unwrap_or(0);
            cx.warp.index = warp.index;
            cx.place(&mut fault, inst, lane);
        }
        Box::new(fault)
    }

    /// No thread can go on: some wait for others that wait elsewhere.
    pub fn stuck(&mut self, cx: &mut Cx<'_>) -> Box<Fault> {
        let code = &cx.launch.kernel.code;
        let mut places: Vec<String> = Vec::new();
        for warp in &mut self.warps {
            for group in warp.groups.clone() {
                // One that asks again and again stands somewhere in its loop.
                let asks = warp.asked.filter(|_| group.wait == Wait::Ready);
                let inst = &code.insts[asks.unwrap_or(group.pc) as usize];
                std::mem::swap(&mut cx.warp, warp);
                let what = awaited(cx, inst, &group);
                std::mem::swap(&mut cx.warp, warp);
                if !places.contains(&what) {
                    places.push(what);
                }
            }
        }
        let detail = format!("threads wait for each other for ever: {}", places.join(", "));
        self.at(cx, FaultKind::BarrierDivergence, detail)
    }

    fn late(&mut self, cx: &mut Cx<'_>) -> Box<Fault> {
        let detail = format!("a block ran more than {} instructions", cx.launch.checks.max_instructions);
        self.at(cx, FaultKind::Timeout, detail)
    }
}

/// What lanes wait for.
fn awaited(cx: &Cx<'_>, inst: &Inst, group: &super::warp::Group) -> String {
    let lane = lanes(group.mask).next().unwrap_or(0);
    let what = match group.wait {
        Wait::Barrier(id) => format!("barrier {id}"),
        Wait::Ready | Wait::Event(Reason::Mbarrier) => mbarrier::describe(cx, inst, lane),
        Wait::Event(Reason::Registers) => registers::describe(cx, inst),
        Wait::Event(Reason::Cluster) => "the other threads of the cluster".into(),
        Wait::Converge => "the .sync".into(),
    };
    format!("{what} at line {}", inst.line)
}
