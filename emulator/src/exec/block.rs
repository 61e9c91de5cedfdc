//! A block: its shared memory, its barriers and its warps in turn.

use super::cx::{Cx, lanes};
use super::inst::{Code, Inst};
use super::race::Cell;
use super::warp::{Wait, Warp, run};
use super::{Launch, barrier};
use crate::{Fault, FaultKind};

#[derive(Default)]
pub struct Block {
    pub index: [u32; 3],
    pub shared: Vec<u32>,
    pub shared_bytes: u64,
    pub cells: Vec<Cell>,
    pub barriers: [barrier::Barrier; 16],
    pub threads: u32,
    pub exited: u32,
    pub linear: u64,
}

/// A block in execution, with its warps.
#[derive(Default)]
pub struct Running {
    pub block: Block,
    pub warps: Vec<Warp>,
    pub executed: u64,
}

/// How far a slice of a block went.
#[derive(PartialEq, Eq)]
pub enum Progress {
    Done,
    More,
}

const WARP_SLICE: u64 = 20_000;

impl Running {
    pub fn start(&mut self, launch: &Launch<'_>, linear: u64) {
        let [gx, gy, _] = launch.grid.map(u64::from);
        let index = [linear % gx, linear / gx % gy, linear / gx / gy].map(|n| n as u32);
        let threads = launch.block.iter().product::<u32>();
        let block = &mut self.block;
        block.index = index;
        block.linear = linear;
        block.threads = threads;
        block.exited = 0;
        block.barriers = Default::default();
        block.shared_bytes = launch.dynamic_start + u64::from(launch.dynamic_shared);
        let words = block.shared_bytes.div_ceil(4) as usize;
        block.shared.resize(words, 0);
        block.cells.clear();
        let cells = if launch.kernel.code.narrow_shared { words * 4 } else { words };
        block.cells.resize(cells, Cell::default());
        let count = threads.div_ceil(32);
        self.warps.resize_with(count as usize, Warp::default);
        for (n, warp) in self.warps.iter_mut().enumerate() {
            warp.start(launch, n as u32, index);
        }
        self.executed = 0;
    }

    /// Runs about `budget` instructions.
    pub fn advance(&mut self, cx: &mut Cx<'_>, budget: u64) -> Result<Progress, Box<Fault>> {
        std::mem::swap(&mut cx.block, &mut self.block);
        let result = self.turns(cx, budget);
        std::mem::swap(&mut cx.block, &mut self.block);
        result
    }

    fn turns(&mut self, cx: &mut Cx<'_>, budget: u64) -> Result<Progress, Box<Fault>> {
        let mut used = 0;
        loop {
            let (mut alive, mut ran) = (false, 0);
            for warp in &mut self.warps {
                if warp.done() {
                    continue;
                }
                alive = true;
                if !warp.lane_ready() {
                    continue;
                }
                std::mem::swap(&mut cx.warp, warp);
                let result = run(cx, WARP_SLICE);
                std::mem::swap(&mut cx.warp, warp);
                ran += result?;
            }
            if !alive {
                return Ok(Progress::Done);
            }
            let released = barrier::release(cx, &mut self.warps)?;
            if ran == 0 && !released {
                return Err(self.stuck(cx));
            }
            used += ran;
            self.executed += ran;
            if self.executed > cx.launch.checks.max_instructions {
                return Err(self.late(cx));
            }
            if used >= budget {
                return Ok(Progress::More);
            }
        }
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
    fn stuck(&mut self, cx: &mut Cx<'_>) -> Box<Fault> {
        let code = &cx.launch.kernel.code;
        let mut places: Vec<String> = Vec::new();
        for group in self.warps.iter().flat_map(|warp| &warp.groups) {
            let line = code.insts[group.pc as usize].line;
            let what = match group.wait {
                Wait::Barrier(id) => format!("barrier {id} at line {line}"),
                _ => format!("the .sync at line {line}"),
            };
            if !places.contains(&what) {
                places.push(what);
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
