//! Which accesses to shared memory a barrier orders, and which race.
//!
//! Each warp counts the barriers that it passed; at a barrier the participants learn each
//! other's counts. An access is ordered after an earlier one of another warp when it has learnt a
//! count above the one that the earlier access was made at. Lanes of one warp are ordered by what
//! the warp has learnt of itself, at barriers and at bar.warp.sync.
//!
//! The asynchronous proxy (bulk copies, wgmma) is one more agent: a write on its way is ordered
//! before nothing; one that has landed is ordered for the warps that waited for its mbarrier.

/// Kind, warp, count and lanes of an access in one word; 0 for none.
#[derive(Clone, Copy, Default)]
struct Access(u64);

const ATOMIC: u64 = 1 << 63;
const SET: u64 = 1 << 62;

/// The number of the asynchronous proxy among the warps.
pub const PROXY: u32 = 32;
/// That of the cluster's other blocks.
pub const FOREIGN: u32 = 33;
/// How many agents there are.
pub const AGENTS: usize = 34;
const NEVER: u32 = 0xff_ffff;

impl Access {
    fn new(warp: u32, clock: u32, lane: usize, atomic: bool) -> Access {
        let kind = if atomic { SET | ATOMIC } else { SET };
        Access(kind | u64::from(warp) << 56 | u64::from(clock & 0xff_ffff) << 32 | 1 << lane)
    }

    #[inline(always)]
    fn is(self, warp: u32, clock: u32) -> bool {
        self.0 & !ATOMIC & (u64::MAX << 32)
            == SET | u64::from(warp) << 56 | u64::from(clock & 0xff_ffff) << 32
    }

    fn exists(self) -> bool {
        self.0 != 0
    }

    fn warp(self) -> u32 {
        (self.0 >> 56) as u32 & 0x3f
    }

    fn clock(self) -> u32 {
        (self.0 >> 32) as u32 & 0xff_ffff
    }

    /// Whether a lane of a warp that has seen these counts is ordered after this access.
    #[inline(always)]
    fn ordered(self, me: u32, seen: &[u32], lane: usize) -> bool {
        if !self.exists() {
            return true;
        }
        let warp = self.warp();
        if warp == me && self.0 as u32 & !(1 << lane) == 0 {
            return true;
        }
        self.clock() < seen[warp as usize] & 0xff_ffff
    }
}

/// The last accesses to one word (or byte) of shared memory.
#[derive(Clone, Copy, Default)]
pub struct Cell {
    write: Access,
    /// The latest reads by two different warps, the later one first.
    reads: [Access; 2],
}

/// What a warp has learnt, for each warp and the asynchronous proxy.
#[derive(Clone, Default)]
pub struct Known {
    /// Their counts.
    pub seen: Vec<u32>,
    /// The counts up to which their writes have passed a fence towards the asynchronous proxy;
    /// empty in kernels that do not use it.
    pub fenced: Vec<u32>,
}

fn raise(own: &mut Vec<u32>, other: &[u32]) {
    if own.len() < other.len() {
        own.resize(other.len(), 0);
    }
    for (all, &one) in own.iter_mut().zip(other) {
        *all = one.max(*all);
    }
}

impl Known {
    pub fn join(&mut self, other: &Known) {
        raise(&mut self.seen, &other.seen);
        raise(&mut self.fenced, &other.fenced);
    }
}

/// Who makes an access.
pub struct Actor<'a> {
    pub warp: u32,
    /// The warp's own count.
    pub count: u32,
    pub seen: &'a [u32],
    pub atomic: bool,
    pub check: bool,
}

const TAG: u64 = !ATOMIC & (u64::MAX << 32);

impl Actor<'_> {
    /// How this warp's accesses since its last barrier look, but for the lanes.
    pub fn tag(&self) -> u64 {
        Access::new(self.warp, self.count, 0, false).0 & TAG
    }
}

impl Cell {
    /// Notes a read of a word that another lane of the warp has just read, if it is one: what
    /// ordered that read after the last write orders this one, unless the warp itself wrote.
    #[inline(always)]
    pub fn again(&mut self, tag: u64, lane: usize) -> bool {
        let known = self.reads[0].0 & TAG == tag && self.write.0 & TAG != tag;
        self.reads[0].0 |= u64::from(known) << lane;
        known
    }

    pub fn is_written(&self) -> bool {
        self.write.exists()
    }

    /// Notes a read; false where it races with a write.
    #[inline(always)]
    pub fn read(&mut self, actor: &Actor<'_>, lane: usize) -> bool {
        let clock = actor.count;
        if self.reads[0].is(actor.warp, clock) {
            self.reads[0].0 |= 1 << lane;
        } else {
            self.note_read(actor, clock, lane);
        }
        !actor.check
            || self.write.ordered(actor.warp, actor.seen, lane)
            || actor.atomic && self.write.0 & ATOMIC != 0
    }

    /// The latest reader comes first; of the others, one of another warp is enough to make any
    /// later write race that no barrier orders.
    fn note_read(&mut self, actor: &Actor<'_>, clock: u32, lane: usize) {
        if !self.reads[0].exists() || self.reads[0].warp() != actor.warp {
            self.reads.swap(0, 1);
            if self.reads[0].is(actor.warp, clock) {
                self.reads[0].0 |= 1 << lane;
                return;
            }
        }
        self.reads[0] = Access::new(actor.warp, clock, lane, actor.atomic);
    }

    /// Notes a write; false where it races with a read or with another write.
    #[inline(always)]
    pub fn write(&mut self, actor: &Actor<'_>, lane: usize) -> bool {
        let clock = actor.count;
        let fine = |a: Access| a.ordered(actor.warp, actor.seen, lane) || actor.atomic && a.0 & ATOMIC != 0;
        let good = !actor.check || fine(self.write) && self.reads.iter().all(|&read| fine(read));
        self.write = Access::new(actor.warp, clock, lane, actor.atomic);
        // Later accesses need only be ordered after this one.
        self.reads = Default::default();
        good
    }

    /// Notes that an asynchronous write is on its way, or that these bytes are an mbarrier's: any access by a thread
    /// is at fault until `land`.
    pub fn hold(&mut self) {
        *self = Cell { write: Access::new(PROXY, NEVER, 0, false), reads: Default::default() };
    }

    /// An asynchronous write has landed, as the `count`th.
    pub fn land(&mut self, count: u32) {
        self.write = Access::new(PROXY, count, 0, false);
    }

    /// Notes a read by all lanes of a warp.
    pub fn read_by_warp(&mut self, actor: &Actor<'_>) {
        self.note_read(actor, actor.count, 0);
        self.reads[0].0 |= u64::from(u32::MAX);
    }

    /// Whether the asynchronous proxy, asked by this lane, may read here.
    pub fn is_ready(&self, actor: &Actor<'_>, fenced: &[u32]) -> Order {
        let write = self.write;
        if write.warp() == PROXY {
            return if write.clock() < actor.seen[PROXY as usize] { Order::Fine } else { Order::Race };
        }
        let own = write.warp() == actor.warp;
        if write.exists() && write.clock() >= fenced[write.warp() as usize] {
            let raced = !own && !write.ordered(actor.warp, actor.seen, 0);
            return if raced { Order::Race } else { Order::Unfenced };
        }
        Order::Fine
    }

    /// Whether it may write here.
    pub fn is_free(&self, actor: &Actor<'_>, lane: usize, fenced: &[u32]) -> Order {
        if self.reads.iter().any(|read| !read.ordered(actor.warp, actor.seen, lane)) {
            return Order::Race;
        }
        self.is_ready(actor, fenced)
    }
}

/// How an access of the asynchronous proxy stands to those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    Fine,
    /// Only a fence between the proxies is missing.
    Unfenced,
    Race,
}
