//! A warp: register files of lane vectors, and its groups of lanes that stand at one place.

use super::Launch;
use super::cx::{Cx, Doubles, LANES, Words, lanes};
use super::inst::{Flow, Inst, NONE, Preset, Reason, Special};
use super::race::{AGENTS, Actor, Known};
use super::sync::AsyncCopy;
use super::warpgroup::Part;
use crate::{Fault, FaultKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Ready,
    Barrier(u8),
    Converge,
    /// For something to change in the block.
    Event(Reason),
}

/// Lanes at one instruction.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub pc: u32,
    pub mask: u32,
    pub wait: Wait,
    stamp: u64,
}

/// Backward branches that a group may take while others of its warp wait.
const PATIENCE: u32 = 2000;

#[derive(Default)]
pub struct Warp {
    pub words: Vec<Words>,
    pub doubles: Vec<Doubles>,
    pub preds: Vec<u32>,
    /// The carry flag of each lane.
    pub carry: u32,
    pub local: Vec<u8>,
    pub local_written: Vec<u8>,
    pub groups: Vec<Group>,
    /// Lanes that have not exited.
    pub live: u32,
    pub index: u32,
    /// How often this warp has synchronised with others.
    pub count: u32,
    pub known: Known,
    pub copies: Vec<AsyncCopy>,
    /// The open cp.async group of each lane.
    pub copy_group: Words,
    pub clock: u64,
    /// The block's count of events when the last group went to sleep.
    pub slept: u64,
    /// The last turn ended because the warp has nothing to do but ask again.
    pub yielded: bool,
    /// Where it last asked in vain.
    pub asked: Option<u32>,
    /// The open group of bulk stores of each lane.
    pub bulk_groups: Words,
    /// One more than the phase of the cluster's barrier that each lane arrived in.
    pub cluster_arrivals: Words,
    /// Registers of a thread, as setmaxnreg left them.
    pub registers: u32,
    /// Its part in the products of its warpgroup.
    pub part: Part,
    spins: u32,
    fair: bool,
}

pub fn coordinates(linear: u32, size: [u32; 3]) -> [u32; 3] {
    [linear % size[0], linear / size[0] % size[1], linear / size[0] / size[1]]
}

impl Warp {
    /// Makes this the warp `index` of a block, with all its lanes at the start.
    pub fn start(&mut self, launch: &Launch<'_>, index: u32, block: [u32; 3], rank: u32) {
        let code = &launch.kernel.code;
        let threads = launch.block.iter().product::<u32>();
        let count = (threads - index * 32).min(32);
        self.words.resize(code.words, [0; LANES]);
        self.doubles.resize(code.doubles, [0; LANES]);
        self.preds.resize(code.predicates, 0);
        self.carry = 0;
        self.index = index;
        self.live = if count == 32 { u32::MAX } else { (1 << count) - 1 };
        self.groups.clear();
        self.groups.push(Group { pc: 0, mask: self.live, wait: Wait::Ready, stamp: 0 });
        self.count = 1;
        let Known { seen, fenced } = &mut self.known;
        let agents = if code.asynchronous { AGENTS } else { threads.div_ceil(32) as usize };
        seen.clear();
        seen.resize(agents, 0);
        seen[index as usize] = 1;
        fenced.clear();
        fenced.resize(if code.asynchronous { agents } else { 0 }, 0);
        self.slept = 0;
        self.yielded = false;
        self.asked = None;
        self.bulk_groups = [0; LANES];
        self.cluster_arrivals = [0; LANES];
        self.registers = launch.kernel.registers_at_start;
        self.part.start(code);
        self.copies.clear();
        self.copy_group = [0; LANES];
        self.spins = 0;
        self.fair = false;
        let local = launch.kernel.local_bytes as usize * LANES;
        self.local.resize(local, 0);
        self.local_written.clear();
        self.local_written.resize(local, 0);
        let value = |preset: Preset, lane: u32| match preset {
            Preset::Value(value) => value,
            Preset::Symbol(symbol, offset) => {
                launch.symbols.get(symbol as usize).copied().unwrap_or(0).wrapping_add(offset as u64)
            }
            Preset::DynamicShared(offset) => launch.dynamic_start.wrapping_add(offset as u64),
            Preset::Special(special) => u64::from(special_value(launch, special, index, lane, (block, rank))),
        };
        for &(slot, preset) in &code.word_presets {
            self.words[slot as usize] = std::array::from_fn(|lane| value(preset, lane as u32) as u32);
        }
        for &(slot, preset) in &code.double_presets {
            self.doubles[slot as usize] = std::array::from_fn(|lane| value(preset, lane as u32));
        }
        // Slot 0 is the predicate that is always true.
        self.preds[0] = u32::MAX;
    }

    pub fn done(&self) -> bool {
        self.live == 0
    }

    /// Who makes this warp's accesses.
    #[inline(always)]
    pub fn actor(&self, atomic: bool, check: bool) -> Actor<'_> {
        Actor { warp: self.index, count: self.count, seen: &self.known.seen, atomic, check }
    }

    /// Lets whoever joins `to` know what this warp has done so far.
    pub fn release(&mut self, to: &mut Known) {
        self.count += 1;
        to.join(&self.known);
        to.seen[self.index as usize] = self.count;
    }

    /// Orders the lanes' accesses from now on after those so far.
    pub fn settle(&mut self) {
        self.count += 1;
        self.known.seen[self.index as usize] = self.count;
    }

    /// Wakes the groups that wait for an event.
    pub fn wake(&mut self) {
        for group in &mut self.groups {
            if matches!(group.wait, Wait::Event(_)) {
                group.wait = Wait::Ready;
            }
        }
    }

    pub fn sleeps(&self) -> bool {
        self.groups.iter().any(|g| matches!(g.wait, Wait::Event(_)))
    }

    pub fn lane_ready(&self) -> bool {
        self.groups.iter().any(|g| g.wait == Wait::Ready)
    }

    pub fn push(&mut self, pc: u32, mask: u32, wait: Wait) {
        let stamp = self.clock;
        self.groups.push(Group { pc, mask, wait, stamp });
    }

    /// Takes the group to run: the lowest in the code, or the longest waiting where lanes spin.
    fn pick(&mut self) -> Option<Group> {
        let ready = self.groups.iter().filter(|g| g.wait == Wait::Ready);
        let pc = if self.fair { ready.min_by_key(|g| g.stamp) } else { ready.min_by_key(|g| g.pc) }?.pc;
        let mut now = Group { pc, mask: 0, wait: Wait::Ready, stamp: 0 };
        self.gather(&mut now);
        Some(now)
    }

    /// Takes the other groups at the same instruction into this one; true where there were any.
    fn gather(&mut self, now: &mut Group) -> bool {
        let before = now.mask;
        self.groups.retain(|g| {
            let here = g.pc == now.pc && !matches!(g.wait, Wait::Barrier(_));
            if here {
                now.mask |= g.mask;
            }
            !here
        });
        now.mask != before
    }

    /// Where the running group has to look for others.
    fn limit(&self) -> u32 {
        if self.fair {
            return u32::MAX;
        }
        let ready = self.groups.iter().filter(|g| g.wait == Wait::Ready);
        ready.map(|g| g.pc).min().unwrap_or(u32::MAX)
    }

    fn wake_converging(&mut self) {
        for group in &mut self.groups {
            if group.wait == Wait::Converge {
                group.wait = Wait::Ready;
            }
        }
    }
}

fn special_value(
    launch: &Launch<'_>,
    special: Special,
    warp: u32,
    lane: u32,
    (block, rank): ([u32; 3], u32),
) -> u32 {
    let thread = warp * 32 + lane;
    let threads = launch.block.iter().product::<u32>();
    match special {
        Special::Tid(axis) => coordinates(thread, launch.block)[axis as usize],
        Special::Ntid(axis) => launch.block[axis as usize],
        Special::Ctaid(axis) => block[axis as usize],
        Special::Nctaid(axis) => launch.grid[axis as usize],
        Special::Laneid => lane,
        Special::Warpid => warp,
        Special::Nwarpid => threads.div_ceil(32),
        Special::ClusterCtaid(axis) => block[axis as usize] % launch.cluster[axis as usize],
        Special::ClusterNctaid(axis) => launch.cluster[axis as usize],
        Special::Clusterid(axis) => block[axis as usize] / launch.cluster[axis as usize],
        Special::Nclusterid(axis) => launch.grid[axis as usize] / launch.cluster[axis as usize],
        Special::ClusterRank => rank,
        Special::ClusterSize => launch.cluster.iter().product(),
        Special::Smid => {
            (block[0].wrapping_add(block[1]).wrapping_add(block[2])) % launch.target.multiprocessors.max(1)
        }
        Special::Nsmid => launch.target.multiprocessors,
        Special::Gridid => 1,
        Special::LanemaskEq => 1 << lane,
        Special::LanemaskLt => (1 << lane) - 1,
        Special::LanemaskLe => u32::MAX >> (31 - lane),
        Special::LanemaskGt => !(u32::MAX >> (31 - lane)),
        Special::LanemaskGe => !((1 << lane) - 1),
        Special::DynamicSize => launch.dynamic_shared,
        Special::TotalSize => launch.dynamic_shared + launch.kernel.static_shared,
    }
}

/// Runs a warp until it ends, waits or has used `slice` instructions; gives how many it ran.
pub fn run(cx: &mut Cx<'_>, slice: u64) -> Result<u64, Box<Fault>> {
    let launch = cx.launch;
    let code = &launch.kernel.code.insts[..];
    let mut left = slice;
    while left > 0 {
        let Some(mut now) = cx.warp.pick() else { break };
        let mut limit = cx.warp.limit();
        cx.warp.fair = false;
        loop {
            if left == 0 {
                cx.warp.push(now.pc, now.mask, Wait::Ready);
                break;
            }
            left -= 1;
            let inst = &code[now.pc as usize];
            let mask = if inst.guard == NONE { now.mask } else { now.mask & cx.pred(inst.guard) };
            let flow = if mask == 0 { Flow::Next } else { (inst.run)(cx, inst, mask) };
            if flow == Flow::Next {
                now.pc += 1;
            } else if let Flow::Clock { wide } = flow {
                read_clock(cx, inst, mask, slice - left, wide);
                now.pc += 1;
            } else if !turn(cx, inst, &mut now, &mut limit, mask, flow)? {
                break;
            }
            if now.pc >= limit {
                cx.warp.push(now.pc, now.mask, Wait::Ready);
                break;
            }
        }
        cx.warp.clock += 1;
        if cx.warp.yielded {
            break;
        }
    }
    cx.warp.clock += slice - left;
    Ok(slice - left)
}

/// A clock for each instruction; `ran` of the slice have run. Products take as long as their card says.
fn read_clock(cx: &mut Cx<'_>, inst: &Inst, mask: u32, ran: u64, wide: bool) {
    let now = cx.warp.clock + ran;
    if wide {
        cx.put::<u64>(inst.d[0], mask, &[now; LANES]);
    } else {
        cx.put::<u32>(inst.d[0], mask, &[now as u32; LANES]);
    }
}

/// A change of control: false where the group no longer runs.
fn turn(
    cx: &mut Cx<'_>,
    inst: &Inst,
    now: &mut Group,
    limit: &mut u32,
    mask: u32,
    flow: Flow,
) -> Result<bool, Box<Fault>> {
    match flow {
        Flow::Next | Flow::Clock { .. } => now.pc += 1,
        Flow::Branch => {
            let back = inst.target <= now.pc;
            if mask != now.mask {
                cx.warp.push(now.pc + 1, now.mask & !mask, Wait::Ready);
                *limit = (*limit).min(now.pc + 1);
                now.mask = mask;
            }
            now.pc = inst.target;
            if back && !cx.warp.groups.is_empty() {
                cx.warp.spins += 1;
                if cx.warp.spins >= PATIENCE {
                    cx.warp.spins = 0;
                    cx.warp.clock += 1;
                    cx.warp.push(now.pc, now.mask, Wait::Ready);
                    cx.warp.fair = true;
                    return Ok(false);
                }
            }
        }
        Flow::Exit => {
            cx.warp.live &= !mask;
            cx.block.exited += mask.count_ones();
            cx.warp.wake_converging();
            *limit = cx.warp.limit();
            now.mask &= !mask;
            now.pc += 1;
            return Ok(now.mask != 0);
        }
        Flow::Barrier(id) => {
            if mask != now.mask {
                cx.warp.push(now.pc + 1, now.mask & !mask, Wait::Ready);
            }
            cx.warp.push(now.pc, mask, Wait::Barrier(id));
            return Ok(false);
        }
        Flow::Sleep(reason) => {
            if mask != now.mask {
                cx.warp.push(now.pc + 1, now.mask & !mask, Wait::Ready);
            }
            cx.warp.push(now.pc, mask, Wait::Event(reason));
            cx.warp.slept = cx.block.events;
            return Ok(false);
        }
        Flow::Yield => {
            cx.warp.push(now.pc + 1, now.mask, Wait::Ready);
            cx.warp.yielded = true;
            cx.warp.asked = Some(now.pc);
            return Ok(false);
        }
        Flow::Converge => {
            if !cx.warp.gather(now) {
                cx.warp.push(now.pc, now.mask, Wait::Converge);
                return Ok(false);
            }
        }
        Flow::Fault => {
            let fault = cx.fault.take();
            return Err(fault.unwrap_or_else(|| {
                let lane = lanes(mask).next().unwrap_or(0);
                let mut fault = Fault::plain(FaultKind::Undefined, None, "");
                cx.place(&mut fault, inst, lane);
                Box::new(fault)
            }));
        }
    }
    Ok(true)
}
