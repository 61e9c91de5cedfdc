//! mbarrier: phases that end when so many arrivals and so many bytes of bulk copies have come.

use super::access::{Bad, Touch};
use super::bulk;
use super::cx::{Cx, LANES, lanes};
use super::inst::{Flow, Inst, NONE, Reason};
use super::race::{Known, PROXY};
use crate::FaultKind;
use crate::ptx::ast::Space;

/// The largest count of arrivals, and of bytes in either direction.
const MOST: u32 = (1 << 20) - 1;

/// One mbarrier object.
pub struct Mbarrier {
    /// Its address in shared memory.
    pub at: u64,
    /// The line that made it.
    pub line: u32,
    /// The warp that made it, and its count then.
    made_by: (u32, u32),
    /// A fence has shown it to the asynchronous proxy.
    announced: bool,
    expected: u32,
    pending: u32,
    bytes: i64,
    phase: u32,
    /// What has come in this phase, and what came in those that are over.
    gathering: Known,
    done: Known,
}

impl Mbarrier {
    fn arrive(&mut self, count: u32, complete: bool) -> Result<(), String> {
        if count > self.pending {
            let state = format!("phase {} expects {} more", self.phase, self.pending);
            return Err(format!("{count} arrivals at an mbarrier of {}, whose {state}", self.expected));
        }
        if !complete && count == self.pending {
            return Err("mbarrier.arrive.noComplete that completes the phase".into());
        }
        self.pending -= count;
        Ok(())
    }

    fn transact(&mut self, bytes: i64) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes.unsigned_abs() > u64::from(MOST) {
            return Err(format!("{} bytes are more than an mbarrier can count", self.bytes));
        }
        Ok(())
    }

    /// Goes on to the next phase where this one is complete.
    fn turn(&mut self) -> bool {
        let over = self.pending == 0 && self.bytes == 0;
        if over {
            self.phase = self.phase.wrapping_add(1);
            self.pending = self.expected;
            self.done.join(&self.gathering);
        }
        over
    }

    /// Whether the phase of that parity, or with that number, is over.
    fn is_over(&self, word: u64, parity: bool) -> bool {
        if parity { u64::from(self.phase & 1) != word & 1 } else { self.phase != (word >> 32) as u32 }
    }

    fn state(&self) -> u64 {
        u64::from(self.phase) << 32 | u64::from(self.pending)
    }

    /// What the current phase lacks.
    fn lacks(&self) -> String {
        format!("phase {} lacks {} arrivals and {} bytes", self.phase, self.pending, self.bytes)
    }
}

/// What `Inst::option` says.
pub const GENERIC: u32 = 1;
pub const PARITY: u32 = 2;
/// The waits: without it they only ask.
pub const TRY: u32 = 4;
pub const EXPECT: u32 = 8;
pub const DROP: u32 = 16;
pub const INCOMPLETE: u32 = 32;
pub const RELAXED: u32 = 64;
/// mbarrier.complete_tx in place of expect_tx.
pub const COMPLETE: u32 = 128;

fn undefined(detail: impl Into<String>) -> Bad {
    Bad { kind: FaultKind::Undefined, detail: detail.into() }
}

impl Cx<'_> {
    /// The object at an address that a lane uses.
    pub fn mbarrier(&mut self, addr: u64) -> Result<&mut Mbarrier, Bad> {
        self.shared_range(addr, 8, 8)?;
        let Some(at) = self.block.mbarriers.iter().position(|one| one.at == addr) else {
            return Err(undefined("no mbarrier lies here: it was never initialised, or is no longer valid"));
        };
        let (warp, count) = self.block.mbarriers[at].made_by;
        if self.launch.checks.shared_races
            && warp != self.warp.index
            && count >= self.warp.known.seen[warp as usize]
        {
            let detail = "no barrier orders this use of an mbarrier after its initialisation".into();
            return Err(Bad { kind: FaultKind::Race, detail });
        }
        Ok(&mut self.block.mbarriers[at])
    }

    /// The same for a bulk copy, to which a fence must have shown it.
    pub fn announced_mbarrier(&mut self, addr: u64) -> Result<(), Bad> {
        let checked = self.launch.checks.shared_races;
        if self.mbarrier(addr)?.announced || !checked {
            return Ok(());
        }
        let detail = "a bulk copy uses an mbarrier whose initialisation no fence.mbarrier_init or fence.proxy.async follows";
        Err(Bad { kind: FaultKind::Race, detail: detail.into() })
    }

    /// A fence of this warp shows the mbarriers that it made to the asynchronous proxy.
    pub fn announce(&mut self) {
        let own = self.warp.index;
        self.block
            .mbarriers
            .iter_mut()
            .filter(|one| one.made_by.0 == own)
            .for_each(|one| one.announced = true);
    }

    /// A bulk copy has brought its bytes, as the `count`th to land.
    pub fn complete_bytes(&mut self, addr: u64, bytes: u32, count: u32) -> Result<(), Bad> {
        let Some(barrier) = self.block.mbarriers.iter_mut().find(|one| one.at == addr) else {
            return Err(undefined("the mbarrier of a bulk copy was made invalid before the copy's end"));
        };
        barrier.transact(-i64::from(bytes)).map_err(undefined)?;
        let seen = &mut barrier.gathering.seen;
        seen.resize(seen.len().max(PROXY as usize + 1), 0);
        seen[PROXY as usize] = seen[PROXY as usize].max(count + 1);
        if barrier.turn() {
            self.block.events += 1;
        }
        Ok(())
    }
}

/// The address in shared memory that each lane means.
fn places(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Result<[u64; LANES], Flow> {
    let mut addresses = cx.addresses(i);
    if i.option() & GENERIC != 0 {
        for lane in lanes(m) {
            let (space, addr) = Cx::resolve(Space::Generic, addresses[lane]);
            if space != Space::Shared {
                return Err(cx.blame(i, lane, addr, undefined("an mbarrier outside shared memory")));
            }
            addresses[lane] = addr;
        }
    }
    for addr in &mut addresses {
        *addr = cx.own_shared(*addr);
    }
    Ok(addresses)
}

/// Does something at the address of each lane.
fn each(
    cx: &mut Cx<'_>,
    i: &Inst,
    m: u32,
    mut act: impl FnMut(&mut Cx<'_>, usize, u64) -> Result<(), Bad>,
) -> Flow {
    let addresses = match places(cx, i, m) {
        Ok(addresses) => addresses,
        Err(flow) => return flow,
    };
    for lane in lanes(m) {
        if let Err(bad) = act(cx, lane, addresses[lane]) {
            return cx.blame(i, lane, addresses[lane], bad);
        }
    }
    Flow::Next
}

fn word(cx: &Cx<'_>, slot: u16, lane: usize, absent: u32) -> u32 {
    if slot == NONE { absent } else { cx.get::<u32>(slot)[lane] }
}

/// s[1]: the count.
pub fn init(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, lane, addr| {
        let expected = word(cx, i.s[1], lane, 0);
        if expected == 0 || expected > MOST {
            return Err(undefined(format!("an mbarrier for {expected} arrivals")));
        }
        if cx.block.mbarriers.iter().any(|one| one.at < addr + 8 && addr < one.at + 8) {
            return Err(undefined("an mbarrier lies here already"));
        }
        cx.touch_shared(lane, addr, 8, Touch::Write, false)?;
        cx.block.cells(addr, 8).iter_mut().for_each(super::race::Cell::hold);
        cx.block.mbarriers.push(Mbarrier {
            at: addr,
            line: i.line,
            made_by: (cx.warp.index, cx.warp.count),
            announced: false,
            expected,
            pending: expected,
            bytes: 0,
            phase: 0,
            gathering: Known::default(),
            done: Known::default(),
        });
        Ok(())
    })
}

/// mbarrier.inval: the bytes hold nothing afterwards.
pub fn invalidate(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, _, addr| {
        cx.mbarrier(addr)?;
        cx.block.mbarriers.retain(|one| one.at != addr);
        cx.block.cells(addr, 8).fill(Default::default());
        Ok(())
    })
}

/// mbarrier.expect_tx and complete_tx; s[1]: bytes.
pub fn transact(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, lane, addr| {
        let bytes = i64::from(word(cx, i.s[1], lane, 0));
        let barrier = cx.mbarrier(addr)?;
        barrier.transact(if i.option() & COMPLETE != 0 { -bytes } else { bytes }).map_err(undefined)?;
        if barrier.turn() {
            cx.block.events += 1;
        }
        Ok(())
    })
}

/// All forms of mbarrier.arrive and arrive_drop: s[1] the count, s[2] bytes to expect; d[0] the state before.
pub fn arrive(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let option = i.option();
    let mut released = Known::default();
    if option & RELAXED == 0 {
        cx.warp.release(&mut released);
    }
    let mut states = [0; LANES];
    let flow = each(cx, i, m, |cx, lane, addr| {
        let count = word(cx, i.s[1], lane, 1);
        let bytes = i64::from(word(cx, i.s[2], lane, 0));
        let barrier = cx.mbarrier(addr)?;
        if count == 0 {
            return Err(undefined("an arrival of 0"));
        }
        states[lane] = barrier.state();
        barrier.transact(bytes).map_err(undefined)?;
        barrier.gathering.join(&released);
        barrier.arrive(count, option & INCOMPLETE == 0).map_err(undefined)?;
        if option & DROP != 0 {
            barrier.expected -= count;
        }
        if barrier.turn() {
            cx.block.events += 1;
        }
        Ok(())
    });
    if flow == Flow::Next && i.d[0] != NONE {
        cx.put::<u64>(i.d[0], m, &states);
    }
    flow
}

/// mbarrier.test_wait and try_wait: s[1] the state, or s[2] the parity; d[0] whether the phase is over.
pub fn wait(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let addresses = match places(cx, i, m) {
        Ok(addresses) => addresses,
        Err(flow) => return flow,
    };
    let mut over = 0;
    for turn in 0..2 {
        for lane in lanes(m & !over) {
            match ask(cx, i, lane, addresses[lane]) {
                Ok(true) => over |= 1 << lane,
                Ok(false) => {}
                Err(bad) => return cx.blame(i, lane, addresses[lane], bad),
            }
        }
        // Copies come as late as they may: not before somebody waits for them.
        if over == m || turn == 1 {
            break;
        }
        let waited: Vec<u64> = lanes(m & !over).map(|lane| addresses[lane]).collect();
        if let Err((lane, addr, bad)) = bulk::land(cx, &waited) {
            return cx.blame(i, lane, addr, bad);
        }
        if i.option() & TRY == 0 {
            break;
        }
    }
    if over == 0 && i.option() & TRY != 0 && !cx.block.expired {
        return Flow::Sleep(Reason::Mbarrier);
    }
    cx.put_pred(i.d[0], m, over);
    if over == 0 { Flow::Yield } else { Flow::Next }
}

fn ask(cx: &mut Cx<'_>, i: &Inst, lane: usize, addr: u64) -> Result<bool, Bad> {
    let parity = i.option() & PARITY != 0;
    let word = if parity { cx.get::<u32>(i.s[2])[lane].into() } else { cx.get::<u64>(i.s[1])[lane] };
    if parity && word > 1 {
        return Err(undefined(format!("parity {word}")));
    }
    let barrier = cx.mbarrier(addr)?;
    if !barrier.is_over(word, parity) {
        return Ok(false);
    }
    if i.option() & RELAXED == 0 {
        let done = std::mem::take(&mut barrier.done);
        cx.warp.known.join(&done);
        if let Ok(barrier) = cx.mbarrier(addr) {
            barrier.done = done;
        }
    }
    Ok(true)
}

/// mbarrier.pending_count of the state s[0].
pub fn pending_count(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let counts = cx.get::<u64>(i.s[0]).map(|state| state as u32);
    cx.put::<u32>(i.d[0], m, &counts);
    Flow::Next
}

/// What a lane that waits at this instruction waits for.
pub fn describe(cx: &Cx<'_>, i: &Inst, lane: usize) -> String {
    let addr = Cx::resolve(Space::Generic, cx.addresses(i)[lane]).1;
    match cx.block.mbarriers.iter().find(|one| one.at == addr) {
        Some(barrier) => format!("the mbarrier at 0x{addr:x}, whose {}", barrier.lacks()),
        None => format!("no mbarrier at 0x{addr:x}"),
    }
}
