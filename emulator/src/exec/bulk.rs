//! Bulk copies. Those to shared memory land when a thread waits for their mbarrier, and not before; those from shared
//! memory read it when their thread waits for its groups, and write when that wait is for more than reading.

use super::access::Bad;
use super::block::Block;
use super::cx::{Cx, lanes};
use super::inst::{Flow, Inst, Slot};
use super::proxy::Reader;
use super::reduce::Reduction;
use super::tensor_map::{self, Row, Swizzle, TensorMap};
use crate::FaultKind;
use crate::ptx::ast::Space;

/// Bytes that copies move as a whole.
const PART: u64 = 16;

/// Where the rows of a copy lie in shared memory.
#[derive(Clone, Copy)]
pub struct Layout {
    at: u64,
    /// Bytes of all rows.
    bytes: u64,
    /// Bytes of a row, and from one to the next.
    row: u64,
    pitch: u64,
    swizzle: Swizzle,
}

impl Layout {
    fn plain(at: u64, bytes: u64) -> Layout {
        Layout { at, bytes, row: bytes, pitch: bytes, swizzle: Swizzle::None }
    }

    fn of(map: &TensorMap, at: u64, rows: usize) -> Layout {
        let row = map.row_bytes();
        let pitch = if map.swizzle == Swizzle::None { row } else { map.swizzle.span() };
        Layout { at, bytes: row * rows as u64, row, pitch, swizzle: map.swizzle }
    }

    /// Bytes of shared memory from the first to the last.
    fn extent(&self) -> u64 {
        let rows = self.bytes / self.row.max(1);
        if self.swizzle == Swizzle::None { self.bytes } else { rows * self.pitch }
    }

    /// The addresses of its parts of 16 bytes, in order.
    fn parts(self) -> impl Iterator<Item = u64> {
        (0..self.bytes)
            .step_by(PART as usize)
            .map(move |byte| self.swizzle.place(self.at + byte / self.row * self.pitch + byte % self.row, 0))
    }
}

/// A copy to shared memory on its way.
pub struct Flight {
    pub line: u32,
    thread: (u32, usize),
    barrier: u64,
    layout: Layout,
    data: Vec<u8>,
}

impl Flight {
    pub fn writes(&self, addr: u64, bytes: u64) -> bool {
        self.layout.parts().any(|part| part < addr + bytes && addr < part + PART)
    }
}

/// A copy from shared memory on its way.
pub struct BulkStore {
    /// Of its `Reader`.
    id: u64,
    line: u32,
    thread: (u32, usize),
    /// None before its commit.
    group: Option<u32>,
    layout: Layout,
    rows: Vec<Row>,
    /// What was read.
    data: Option<Vec<u8>>,
    reduction: Option<Reduction>,
}

/// What `Inst::option` says: which of s[0..3] have 64 bits, whether the map is an im2col map, how many of the
/// extra registers are coordinates.
pub const WIDE: u32 = 1;
pub const IM2COL: u32 = 8;
pub const READ: u32 = 16;
const RANK_SHIFT: u32 = 5;
const REDUCTION_SHIFT: u32 = 8;

pub fn option(rank: usize, reduction: Option<Reduction>) -> u32 {
    (rank as u32) << RANK_SHIFT | Reduction::pack(reduction) << REDUCTION_SHIFT
}

fn rank(i: &Inst) -> usize {
    (i.option() >> RANK_SHIFT & 7) as usize
}

fn undefined(detail: impl Into<String>) -> Bad {
    Bad { kind: FaultKind::Undefined, detail: detail.into() }
}

/// The value of s[n] in a lane.
fn source(cx: &Cx<'_>, i: &Inst, n: usize, lane: usize) -> u64 {
    if i.option() & WIDE << n != 0 { cx.get::<u64>(i.s[n])[lane] } else { cx.get::<u32>(i.s[n])[lane].into() }
}

fn shared(cx: &Cx<'_>, i: &Inst, n: usize, lane: usize) -> u64 {
    cx.own_shared(source(cx, i, n, lane))
}

fn extra<T>(cx: &Cx<'_>, slots: &[Slot], lane: usize, f: impl Fn(u32) -> T) -> Vec<T> {
    slots.iter().map(|&slot| f(cx.get::<u32>(slot)[lane])).collect()
}

/// The map that s[n] points to.
fn map(cx: &mut Cx<'_>, i: &Inst, n: usize, lane: usize) -> Result<TensorMap, Bad> {
    let generic = source(cx, i, n, lane);
    if !generic.is_multiple_of(tensor_map::ALIGN) {
        return Err(Bad { kind: FaultKind::Misaligned, detail: format!("tensor map at 0x{generic:x}") });
    }
    let mut bytes = [0; tensor_map::BYTES as usize];
    match Cx::resolve(Space::Generic, generic) {
        (Space::Param, at) => {
            let from = cx.launch.params.get(at as usize..at as usize + bytes.len());
            bytes.copy_from_slice(from.ok_or_else(|| undefined("tensor map beyond the parameters"))?);
        }
        (Space::Global, at) => {
            let (a, offset) = cx.global_span(at, tensor_map::BYTES)?;
            a.read(offset, &mut bytes);
        }
        _ => return Err(undefined("a tensor map in shared or local memory")),
    }
    let words = std::array::from_fn(|n| {
        bytes[8 * n..8 * n + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    });
    let map =
        TensorMap::of(&words).ok_or_else(|| undefined(format!("no tensor map lies at 0x{generic:x}")))?;
    let im2col = i.option() & IM2COL != 0;
    if rank(i) != 0 && (map.rank != rank(i) || map.pixels.is_some() != im2col) {
        let kind = if map.pixels.is_some() { "im2col" } else { "tiled" };
        return Err(undefined(format!("a {kind} map of {} dimensions", map.rank)));
    }
    Ok(map)
}

/// The map's rows that a lane's coordinates name. A card takes a start of rows at a multiple of 16 bytes alone.
fn rows(cx: &Cx<'_>, i: &Inst, lane: usize, map: &TensorMap) -> Result<Vec<Row>, Bad> {
    let (at, offsets) = i.extra.split_at(map.rank.min(i.extra.len()));
    let at = extra(cx, at, lane, |x| x as i32);
    let first = at.first().map_or(0, |&first| i64::from(first) * map.element.bytes as i64);
    if first % PART as i64 != 0 {
        return Err(undefined(format!(
            "the innermost coordinate leads to byte {first} of a row, no multiple of 16"
        )));
    }
    Ok(match &map.pixels {
        Some(pixels) if !map.holds(pixels, &at) => {
            return Err(undefined("a base pixel outside the map's box"));
        }
        Some(pixels) => map.column(pixels, &at, &extra(cx, offsets, lane, |x| x & 0xffff)),
        None => map.rows(&at),
    })
}

/// What a box holds: the tensor's elements, and the fill outside of it.
fn gather(cx: &mut Cx<'_>, rows: &[Row], row_bytes: u64, fill: &[u8]) -> Result<Vec<u8>, Bad> {
    let mut data = Vec::with_capacity(rows.len() * row_bytes as usize);
    for row in rows {
        let start = data.len();
        data.extend(fill.iter().cycle().take(row_bytes as usize));
        if row.bytes == 0 {
            continue;
        }
        let (a, offset) = cx.global_span(row.address, row.bytes)?;
        if cx.launch.checks.uninitialized
            && let Some(byte) = a.first_unwritten(offset, row.bytes)
        {
            let detail = format!("bulk copy from global memory that nothing wrote, at 0x{:x}", a.addr + byte);
            return Err(Bad { kind: FaultKind::Uninitialized, detail });
        }
        let to = start + row.skip as usize;
        a.read(offset, &mut data[to..to + row.bytes as usize]);
    }
    Ok(data)
}

/// Starts a copy to shared memory.
fn depart(
    cx: &mut Cx<'_>,
    i: &Inst,
    lane: usize,
    layout: Layout,
    barrier: u64,
    data: Vec<u8>,
) -> Result<(), Bad> {
    cx.announced_mbarrier(barrier)?;
    for part in layout.parts() {
        cx.proxy_writes(lane, part, PART)?;
    }
    let thread = (cx.warp.index, lane);
    cx.block.flights.push(Flight { line: i.line, thread, barrier, layout, data });
    cx.block.events += 1;
    Ok(())
}

/// Does something for each lane; blames the address s[0].
fn each(cx: &mut Cx<'_>, i: &Inst, m: u32, act: impl Fn(&mut Cx<'_>, usize) -> Result<(), Bad>) -> Flow {
    for lane in lanes(m) {
        if let Err(bad) = act(cx, lane) {
            let addr = source(cx, i, 0, lane);
            return cx.blame(i, lane, addr, bad);
        }
    }
    Flow::Next
}

/// cp.async.bulk.tensor to shared memory: s[0] there, s[1] the map, s[2] the mbarrier, extra the coordinates.
pub fn load_tensor(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, lane| {
        let map = map(cx, i, 1, lane)?;
        let rows = rows(cx, i, lane, &map)?;
        let layout = Layout::of(&map, shared(cx, i, 0, lane), rows.len());
        cx.shared_range(layout.at, layout.extent(), 128)?;
        let fill = map.element.nan.filter(|_| map.fills_nan).unwrap_or(0).to_le_bytes();
        let data = gather(cx, &rows, layout.row, &fill[..map.element.bytes as usize])?;
        depart(cx, i, lane, layout, shared(cx, i, 2, lane), data)
    })
}

/// cp.async.bulk from global to shared memory: s[0] there, s[1] from, s[2] the mbarrier, s[3] bytes.
pub fn load(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, lane| {
        let bytes = size(cx, i, lane)?;
        let layout = Layout::plain(shared(cx, i, 0, lane), bytes);
        cx.shared_range(layout.at, bytes, PART)?;
        let from = aligned(source(cx, i, 1, lane))?;
        let data = gather(cx, &[Row { address: from, skip: 0, bytes }], bytes, &[0])?;
        depart(cx, i, lane, layout, shared(cx, i, 2, lane), data)
    })
}

fn size(cx: &Cx<'_>, i: &Inst, lane: usize) -> Result<u64, Bad> {
    let bytes = u64::from(cx.get::<u32>(i.s[3])[lane]);
    if bytes == 0 || !bytes.is_multiple_of(PART) {
        return Err(undefined(format!("bulk copy of {bytes} bytes; they must be a multiple of 16")));
    }
    Ok(bytes)
}

fn aligned(addr: u64) -> Result<u64, Bad> {
    if !addr.is_multiple_of(PART) {
        return Err(Bad { kind: FaultKind::Misaligned, detail: "global memory of a bulk copy".into() });
    }
    Ok(addr)
}

/// Starts a copy from shared memory.
fn send(cx: &mut Cx<'_>, i: &Inst, lane: usize, layout: Layout, rows: Vec<Row>) -> Result<(), Bad> {
    for row in rows.iter().filter(|row| row.bytes > 0) {
        cx.global_span(row.address, row.bytes)?;
    }
    let id = cx.block.ticket();
    let mut reader = Reader::new(id, i.line, cx.block.shared_bytes);
    for part in layout.parts() {
        cx.proxy_reads(part, PART)?;
        reader.add(part);
    }
    cx.block.readers.push(reader);
    let reduction = Reduction::unpack(i.option() >> REDUCTION_SHIFT);
    let thread = (cx.warp.index, lane);
    cx.block.stores.push(BulkStore {
        id,
        line: i.line,
        thread,
        group: None,
        layout,
        rows,
        data: None,
        reduction,
    });
    Ok(())
}

/// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor from shared memory: s[0] the map, s[1] from.
pub fn store_tensor(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, lane| {
        let map = map(cx, i, 0, lane)?;
        let outside = |slot: &Slot| (cx.get::<u32>(*slot)[lane] as i32) < 0;
        if i.extra.iter().any(outside) {
            return Err(undefined("a store at a negative coordinate, which an H200 does not take"));
        }
        let mut rows = rows(cx, i, lane, &map)?;
        let layout = Layout::of(&map, shared(cx, i, 1, lane), rows.len());
        cx.shared_range(layout.at, layout.extent(), 128)?;
        // An H200 writes 16 bytes where the tensor ends within them.
        rows.iter_mut().for_each(|row| row.bytes = row.bytes.next_multiple_of(PART));
        send(cx, i, lane, layout, rows)?;
        // The map knows the type that a reduction is of.
        if let Some(store) = cx.block.stores.last_mut()
            && let Some(reduction) = &mut store.reduction
        {
            *reduction = reduction
                .of(map.element)
                .ok_or_else(|| undefined("a reduction that the map's type does not have"))?;
        }
        Ok(())
    })
}

/// cp.async.bulk and cp.reduce.async.bulk from shared to global memory: s[0] there, s[1] from, s[3] bytes.
pub fn store(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, lane| {
        let bytes = size(cx, i, lane)?;
        let layout = Layout::plain(shared(cx, i, 1, lane), bytes);
        cx.shared_range(layout.at, bytes, PART)?;
        let address = aligned(source(cx, i, 0, lane))?;
        send(cx, i, lane, layout, vec![Row { address, skip: 0, bytes }])
    })
}

/// cp.async.bulk.prefetch and prefetch.tensormap: the checks alone.
pub fn prefetch_tensor(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, lane| map(cx, i, 0, lane).map(|_| ()))
}

pub fn prefetch(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    each(cx, i, m, |cx, lane| {
        let (bytes, from) = (size(cx, i, lane)?, aligned(source(cx, i, 0, lane))?);
        cx.global_span(from, bytes).map(|_| ())
    })
}

pub fn commit(cx: &mut Cx<'_>, _: &Inst, m: u32) -> Flow {
    for lane in lanes(m) {
        let (thread, group) = ((cx.warp.index, lane), cx.warp.bulk_groups[lane]);
        cx.warp.bulk_groups[lane] += 1;
        let own = cx.block.stores.iter_mut().filter(|store| store.thread == thread);
        own.for_each(|store| store.group = store.group.or(Some(group)));
    }
    Flow::Next
}

/// All but the latest imm groups of a thread are over: they have been read, and written without .read.
pub fn wait_group(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    for lane in lanes(m) {
        let thread = (cx.warp.index, lane);
        let open = i64::from(cx.warp.bulk_groups[lane]) - i.imm;
        let over = |store: &BulkStore| {
            store.thread == thread && store.group.is_some_and(|group| i64::from(group) < open)
        };
        for n in 0..cx.block.stores.len() {
            if over(&cx.block.stores[n]) {
                read(cx, n);
            }
        }
        if i.option() & READ != 0 {
            continue;
        }
        let (done, left) = std::mem::take(&mut cx.block.stores).into_iter().partition(over);
        cx.block.stores = left;
        if let Err((lane, addr, bad)) = write(cx, done) {
            return cx.blame(i, lane, addr, bad);
        }
    }
    Flow::Next
}

/// Takes what a store moves out of shared memory.
fn read(cx: &mut Cx<'_>, n: usize) {
    let BulkStore { id, layout, data: None, .. } = cx.block.stores[n] else { return };
    let words = layout.parts().flat_map(|part| (0..PART).step_by(4).map(move |byte| part + byte));
    let data = words.flat_map(|at| (cx.shared_word(at, 4) as u32).to_le_bytes()).collect();
    cx.block.stores[n].data = Some(data);
    cx.end_reading(id);
}

/// A fault with the lane and the address.
type Failed = (usize, u64, Bad);

fn write(cx: &mut Cx<'_>, stores: Vec<BulkStore>) -> Result<(), Failed> {
    for store in stores {
        let Some(data) = store.data else { continue };
        for (row, from) in store.rows.iter().zip(data.chunks(store.layout.row as usize)) {
            if row.bytes == 0 {
                continue;
            }
            let failed = |bad| (store.thread.1, row.address, bad);
            let (a, offset) = cx.global_span(row.address, row.bytes).map_err(failed)?;
            let from = &from[row.skip as usize..][..row.bytes as usize];
            match store.reduction {
                None => a.write(offset, from),
                Some(reduction) => {
                    reduction.apply(a, offset, from, cx.launch.checks.uninitialized).map_err(failed)?
                }
            }
            cx.note_bulk(row, store.thread.1, store.reduction.is_some()).map_err(failed)?;
        }
    }
    Ok(())
}

impl Cx<'_> {
    /// Tells the checker of races in global memory of a bulk write.
    fn note_bulk(&mut self, row: &Row, lane: usize, atomic: bool) -> Result<(), Bad> {
        if !self.launch.checks.global_races {
            return Ok(());
        }
        let actor = self.warp.actor(atomic, true);
        let races = &self.launch.global_races;
        match races.access(self.block.linear, &actor, lane, row.address, row.bytes, true) {
            Some(detail) => Err(Bad { kind: FaultKind::Race, detail }),
            None => Ok(()),
        }
    }
}

/// Lands what is on its way to these mbarriers.
pub fn land(cx: &mut Cx<'_>, barriers: &[u64]) -> Result<(), Failed> {
    let flights = std::mem::take(&mut cx.block.flights);
    let (landing, left) = flights.into_iter().partition(|flight| barriers.contains(&flight.barrier));
    cx.block.flights = left;
    for Flight { thread, barrier, layout, data, .. } in landing {
        cx.block.landed += 1;
        let count = cx.block.landed;
        for (part, bytes) in layout.parts().zip(data.as_chunks::<{ PART as usize }>().0) {
            for (n, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
                cx.set_shared_word(part + 4 * n as u64, 4, u32::from_le_bytes(*word).into());
            }
            cx.block.cells(part, PART).iter_mut().for_each(|cell| cell.land(count));
        }
        cx.complete_bytes(barrier, layout.bytes as u32, count).map_err(|bad| (thread.1, barrier, bad))?;
    }
    Ok(())
}

/// Ends what a block has left: a line and a thread, and what is wrong, where something is.
pub fn finish(cx: &mut Cx<'_>) -> Result<(), (u32, (u32, usize), Bad)> {
    let Block { flights, stores, .. } = &cx.block;
    let blame = |line, thread, detail: &str| Err((line, thread, undefined(detail)));
    if let Some(flight) = flights.first() {
        return blame(
            flight.line,
            flight.thread,
            "the block ended before this bulk copy had written its shared memory",
        );
    }
    if let Some(store) = stores.iter().find(|store| store.data.is_none()) {
        return blame(
            store.line,
            store.thread,
            "the block ended before this bulk copy had read its shared memory",
        );
    }
    let stores = std::mem::take(&mut cx.block.stores);
    let line = stores.first().map_or(0, |store| store.line);
    let thread = stores.first().map_or((0, 0), |store| store.thread);
    write(cx, stores).map_err(|(_, _, bad)| (line, thread, bad))
}
