//! wgmma: a warpgroup's products. Each warp makes its 16 rows when it issues an instruction; the registers get the sums
//! when it waits for the group. Until then they hold a mark, and shared memory counts as being read.

use super::access::Bad;
use super::cx::{Cx, LANES, Words};
use super::exact::{F16, F64};
use super::inst::{Code, Flow, Inst, NONE, Slot};
use super::operand::{Major, Operand};
use super::products::{self, Factors, Kind};
use super::proxy::Reader;
use super::soft::{Round, half_to_f32};
use crate::FaultKind;

const WARPS: u32 = 4;
const ROWS: usize = 16;
/// What a register holds while its sum is being made: a NaN that tells so.
const UNFINISHED: u32 = 0xffda_da5a;

/// Types of factors and sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Floating point with float32 sums.
    Single(Kind),
    /// float16 with float16 sums.
    Half,
    /// 8-bit integers: whether A and B are signed, and whether sums are clamped.
    Integer(bool, bool, bool),
}

/// An instruction's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub form: Form,
    pub columns: usize,
    /// A comes in registers.
    pub registers: bool,
    pub negative: [bool; 2],
    pub transposed: [bool; 2],
}

impl Shape {
    pub fn pack(self) -> u32 {
        let form = match self.form {
            Form::Single(kind) => kind as u32,
            Form::Half => 3,
            Form::Integer(a, b, clamped) => {
                4 | u32::from(a) << 4 | u32::from(b) << 5 | u32::from(clamped) << 3
            }
        };
        let flags =
            [self.registers, self.negative[0], self.negative[1], self.transposed[0], self.transposed[1]];
        let flags = flags.iter().enumerate().fold(0, |all, (n, &flag)| all | u32::from(flag) << n);
        form | flags << 8 | (self.columns as u32) << 16
    }

    fn unpack(mode: u32) -> Shape {
        let bit = |n: u32| mode >> n & 1 != 0;
        let form = match mode & 7 {
            0 => Form::Single(Kind::F16),
            1 => Form::Single(Kind::Bf16),
            2 => Form::Single(Kind::Tf32),
            3 => Form::Half,
            _ => Form::Integer(bit(4), bit(5), bit(3)),
        };
        Shape {
            form,
            columns: (mode >> 16) as usize,
            registers: bit(8),
            negative: [bit(9), bit(10)],
            transposed: [bit(11), bit(12)],
        }
    }

    /// Bytes of a factor.
    fn width(self) -> usize {
        match self.form {
            Form::Single(Kind::Tf32) => 4,
            Form::Integer(..) => 1,
            _ => 2,
        }
    }

    /// Products of a sum.
    fn depth(self) -> usize {
        32 / self.width()
    }

    /// Registers that hold a warp's sums.
    pub fn sums(self) -> usize {
        self.columns / if self.form == Form::Half { 4 } else { 2 }
    }
}

/// A sum that is not yet in its register.
struct Pending {
    slot: Slot,
    group: u32,
    /// Sums of different shapes must not follow each other in one register.
    mode: u32,
    values: Words,
}

/// A warp's part in its warpgroup's products.
#[derive(Default)]
pub struct Part {
    /// Of each register, one more than the place of its sum in `pending`.
    places: Vec<u16>,
    pending: Vec<Pending>,
    /// Registers that hold A of unfinished products.
    fragments: Vec<(Slot, u32)>,
    /// The number of the open group.
    group: u32,
    readers: Vec<(u32, u64)>,
    /// Registers that were touched since the last wgmma.fence; all of them before the first.
    touched: Vec<bool>,
    /// Over all instructions so far; the same in all warps of a warpgroup.
    digest: u64,
    factors: [Factors; 2],
    raw: [Vec<u32>; 2],
}

impl Part {
    pub fn start(&mut self, code: &Code) {
        let registers = if code.watched.is_empty() { 0 } else { code.words };
        self.places.clear();
        self.places.resize(registers, 0);
        self.pending.clear();
        self.fragments.clear();
        self.group = 0;
        self.readers.clear();
        self.touched.clear();
        self.touched.resize(registers, true);
        self.digest = 0;
    }

    fn pending(&self, slot: Slot) -> Option<&Pending> {
        let place = *self.places.get(slot as usize)?;
        self.pending.get((place as usize).checked_sub(1)?)
    }

    fn set(&mut self, pending: Pending) {
        let place = &mut self.places[pending.slot as usize];
        if *place == 0 {
            self.pending.push(pending);
            *place = self.pending.len() as u16;
        } else {
            self.pending[*place as usize - 1] = pending;
        }
    }

    fn is_busy(&self, slot: Slot) -> bool {
        self.pending(slot).is_some() || self.fragments.iter().any(|&(one, _)| one == slot)
    }

    fn touch(&mut self, slot: Slot) {
        if let Some(touched) = self.touched.get_mut(slot as usize) {
            *touched = true;
        }
    }

    /// Whether products were not waited for.
    pub fn is_unfinished(&self) -> bool {
        !self.pending.is_empty()
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }
}

fn undefined(detail: impl Into<String>) -> Bad {
    Bad { kind: FaultKind::Undefined, detail: detail.into() }
}

/// None where a whole warp of a whole warpgroup is here.
fn parted(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Option<Flow> {
    let lane = m.trailing_zeros() as usize;
    if m != u32::MAX {
        return Some(if cx.warp.live == u32::MAX {
            Flow::Converge
        } else {
            cx.fail(i, lane, FaultKind::Undefined, None, "wgmma by less than a whole warp")
        });
    }
    let whole = (cx.warp.index / WARPS + 1) * WARPS * LANES as u32 <= cx.block.threads;
    (!whole).then(|| cx.fail(i, lane, FaultKind::Undefined, None, "wgmma by less than four warps"))
}

pub fn fence(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = parted(cx, i, m) {
        return flow;
    }
    cx.warp.part.touched.fill(false);
    Flow::Next
}

pub fn commit(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = parted(cx, i, m) {
        return flow;
    }
    cx.warp.part.group += 1;
    Flow::Next
}

/// Delivers the sums of all groups but the latest imm.
pub fn wait(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = parted(cx, i, m) {
        return flow;
    }
    let open = i64::from(cx.warp.part.group) - i.imm;
    let over = |group: u32| i64::from(group) < open;
    let part = &mut cx.warp.part;
    let (done, left): (Vec<Pending>, _) =
        std::mem::take(&mut part.pending).into_iter().partition(|one| over(one.group));
    part.pending = left;
    part.places.fill(0);
    for (n, one) in part.pending.iter().enumerate() {
        part.places[one.slot as usize] = n as u16 + 1;
    }
    part.fragments.retain(|&(_, group)| !over(group));
    let (read, left) = std::mem::take(&mut part.readers).into_iter().partition(|&(group, _)| over(group));
    part.readers = left;
    for one in done {
        cx.put::<u32>(one.slot, m, &one.values);
    }
    let read: Vec<(u32, u64)> = read;
    for (_, id) in read {
        cx.end_reading(id);
    }
    cx.warp.settle();
    Flow::Next
}

/// An instruction that touches registers of wgmma, behind the check that it may.
pub fn watched(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    let watched = &cx.launch.kernel.code.watched[i.target as usize];
    let lane = m.trailing_zeros() as usize;
    let mut moved = None;
    for (&slot, _) in i.s.iter().zip(&watched.s).filter(|(_, is)| **is) {
        if let Some(one) = cx.warp.part.pending(slot) {
            if !watched.moves || m != u32::MAX {
                let detail = "reads a sum of wgmma before wgmma.wait_group";
                return cx.fail(i, lane, FaultKind::Undefined, None, detail);
            }
            // A compiler may name a register anew before the sum is there.
            moved = Some(Pending { slot: i.d[0], ..*one });
        } else {
            cx.warp.part.touch(slot);
        }
    }
    for (&slot, _) in i.d.iter().zip(&watched.d).filter(|(_, is)| **is) {
        if cx.warp.part.is_busy(slot) {
            let detail = "writes a register of an unfinished wgmma";
            return cx.fail(i, lane, FaultKind::Undefined, None, detail);
        }
        if moved.is_none() {
            cx.warp.part.touch(slot);
        }
    }
    let flow = (watched.run)(cx, i, m);
    if let Some(moved) = moved.filter(|one| one.slot != NONE) {
        cx.warp.part.set(moved);
    }
    flow
}

/// wgmma.mma_async: sums, then A in registers in `extra`; s[0] describes A, s[1] B, s[2] whether to add.
pub fn multiply(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = parted(cx, i, m) {
        return flow;
    }
    let shape = Shape::unpack(i.mode);
    match issue(cx, i, shape) {
        Ok(()) => Flow::Next,
        Err((addr, bad)) => cx.fail(i, 0, bad.kind, addr, bad.detail),
    }
}

type Failed = (Option<u64>, Bad);

fn failed(bad: Bad) -> Failed {
    (None, bad)
}

/// A value that all lanes must agree on.
fn uniform(values: &[u64; LANES], name: &str) -> Result<u64, Failed> {
    if values.iter().any(|&value| value != values[0]) {
        return Err(failed(undefined(format!("lanes with different {name}"))));
    }
    Ok(values[0])
}

fn issue(cx: &mut Cx<'_>, i: &Inst, shape: Shape) -> Result<(), Failed> {
    let (sums, fragments) = i.extra.split_at(shape.sums());
    check_registers(cx, i, shape)?;
    let described =
        |slot: Slot| if slot == NONE { Ok(0) } else { uniform(cx.get::<u64>(slot), "descriptors") };
    let words = [described(i.s[0])?, described(i.s[1])?];
    let adds = cx.pred(i.s[2]);
    if adds != 0 && adds != u32::MAX {
        return Err(failed(undefined("lanes with different scale-d")));
    }
    let part = &mut cx.warp.part;
    for word in [i.line.into(), words[0], words[1], adds.into()] {
        part.digest = (part.digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    let mut raw = std::mem::take(&mut part.raw);
    let loaded = load(cx, i, shape, words, fragments, &mut raw);
    if loaded.is_ok() {
        sum(cx, i, shape, sums, adds != 0, &raw);
    }
    cx.warp.part.raw = raw;
    loaded
}

/// Registers must have passed a fence, and unfinished sums must be of this shape.
fn check_registers(cx: &Cx<'_>, i: &Inst, shape: Shape) -> Result<(), Failed> {
    let part = &cx.warp.part;
    for (n, &slot) in i.extra.iter().enumerate() {
        let is_sum = n < shape.sums();
        match part.pending(slot) {
            Some(one) if is_sum && one.mode == i.mode & !0x1f00 => {}
            Some(_) => return Err(failed(undefined("a register of an unfinished wgmma of another shape"))),
            None if part.touched[slot as usize] => {
                let detail = "no wgmma.fence between this and the last access to one of its registers";
                return Err(failed(Bad { kind: FaultKind::Race, detail: detail.into() }));
            }
            None => {}
        }
    }
    Ok(())
}

/// The raw factors: of A [place][row] of this warp, of B [place][column].
fn load(
    cx: &mut Cx<'_>,
    i: &Inst,
    shape: Shape,
    words: [u64; 2],
    fragments: &[Slot],
    raw: &mut [Vec<u32>; 2],
) -> Result<(), Failed> {
    let group = cx.warp.part.group;
    if cx.warp.part.readers.last().is_none_or(|&(of, _)| of != group) {
        let id = cx.block.ticket();
        let reader = Reader::new(id, i.line, cx.block.shared_bytes);
        cx.block.readers.push(reader);
        cx.warp.part.readers.push((group, id));
    }
    let id = cx.warp.part.readers.last().map_or(0, |&(_, id)| id);
    for (n, raw) in raw.iter_mut().enumerate() {
        if n == 0 && shape.registers {
            fragment(cx, shape, fragments, raw);
            let used = fragments.iter().map(|&slot| (slot, group));
            cx.warp.part.fragments.extend(used);
            continue;
        }
        let major = if shape.transposed[n] { Major::Line } else { Major::Sum };
        let first = if n == 0 { cx.warp.index % WARPS * ROWS as u32 } else { 0 } as usize;
        let lines = if n == 0 { ROWS } else { shape.columns };
        let operand = Operand::new(words[n], major, shape.width());
        operand.load(cx, id, first..first + lines, raw).map_err(|(addr, bad)| (Some(addr), bad))?;
    }
    Ok(())
}

/// A's fragment: a register holds 4 bytes of a row, the lanes of a row 16.
fn fragment(cx: &Cx<'_>, shape: Shape, slots: &[Slot], raw: &mut Vec<u32>) {
    let width = shape.width();
    let (packed, bits) = (4 / width, 8 * width as u32);
    raw.clear();
    raw.resize(shape.depth() * ROWS, 0);
    for (r, &slot) in slots.iter().enumerate() {
        for (lane, word) in cx.get::<u32>(slot).iter().enumerate() {
            let row = lane / 4 + 8 * (r % 2);
            for part in 0..packed {
                let k = 4 * packed * (r / 2) + lane % 4 * packed + part;
                let element =
                    if bits == 32 { *word } else { word >> (bits * part as u32) & ((1 << bits) - 1) };
                raw[k * ROWS + row] = element;
            }
        }
    }
}

/// Register, lane and half of the sum at a row and a column.
fn place(shape: Shape, row: usize, column: usize) -> (usize, usize, usize) {
    let lane = row % 8 * 4 + column % 8 / 2;
    if shape.form == Form::Half {
        (column / 8 * 2 + row / 8, lane, column % 2)
    } else {
        (column / 8 * 4 + row / 8 * 2 + column % 2, lane, 0)
    }
}

fn sum(cx: &mut Cx<'_>, i: &Inst, shape: Shape, slots: &[Slot], adds: bool, raw: &[Vec<u32>; 2]) {
    let mut sums: Vec<Words> = slots.iter().map(|&slot| addend(cx, slot, adds)).collect();
    match shape.form {
        Form::Single(kind) => floats(cx, shape, kind, raw, &mut sums),
        Form::Half => floats(cx, shape, Kind::F16, raw, &mut sums),
        Form::Integer(a, b, clamped) => integers(shape, [a, b], clamped, raw, &mut sums),
    }
    let (group, mode) = (cx.warp.part.group, i.mode & !0x1f00);
    for (&slot, values) in slots.iter().zip(sums) {
        cx.warp.part.set(Pending { slot, group, mode, values });
        cx.put::<u32>(slot, u32::MAX, &[UNFINISHED; LANES]);
    }
}

fn addend(cx: &Cx<'_>, slot: Slot, adds: bool) -> Words {
    match cx.warp.part.pending(slot) {
        _ if !adds => [0; LANES],
        Some(one) => one.values,
        None => *cx.get::<u32>(slot),
    }
}

fn floats(cx: &mut Cx<'_>, shape: Shape, kind: Kind, raw: &[Vec<u32>; 2], sums: &mut [Words]) {
    let mut factors = std::mem::take(&mut cx.warp.part.factors);
    let counts = [ROWS, shape.columns];
    for n in 0..2 {
        factors[n].fill(kind, counts[n], &raw[n], shape.negative[n]);
    }
    let half = shape.form == Form::Half;
    let (mut addends, mut out) = (vec![0f32; shape.columns], vec![0u32; shape.columns]);
    for row in 0..ROWS {
        for (column, c) in addends.iter_mut().enumerate() {
            let (register, lane, part) = place(shape, row, column);
            let word = sums[register][lane];
            *c = if half { half_to_f32((word >> (16 * part)) as u16) } else { f32::from_bits(word) };
        }
        let (a, b) = ((&factors[0], row), &factors[1]);
        if half {
            products::row(kind, shape.depth(), a, b, &addends, half_of, &mut out);
        } else {
            products::row(kind, shape.depth(), a, b, &addends, |x| products::single(x).to_bits(), &mut out);
        }
        for (column, &bits) in out.iter().enumerate() {
            let (register, lane, part) = place(shape, row, column);
            let word = &mut sums[register][lane];
            *word = if half { *word & !(0xffff << (16 * part)) | bits << (16 * part) } else { bits };
        }
    }
    cx.warp.part.factors = factors;
}

/// A sum as float16.
pub fn half_of(x: f64) -> u32 {
    match F64.split(x.to_bits()) {
        // A sum that is rounded to nothing loses its sign.
        Some(exact) => match F16.round(exact, Round::Nearest) as u32 {
            0x8000 => 0,
            bits => bits,
        },
        None if x.is_nan() => F16.nan() as u32,
        None => (F16.infinity() | if x < 0.0 { F16.sign() } else { 0 }) as u32,
    }
}

fn integers(shape: Shape, signed: [bool; 2], clamped: bool, raw: &[Vec<u32>; 2], sums: &mut [Words]) {
    let value =
        |n: usize, raw: u32| if signed[n] { i64::from(raw as u8 as i8) } else { i64::from(raw as u8) };
    for row in 0..ROWS {
        for column in 0..shape.columns {
            let terms = (0..shape.depth())
                .map(|k| value(0, raw[0][k * ROWS + row]) * value(1, raw[1][k * shape.columns + column]));
            let (register, lane, _) = place(shape, row, column);
            let word = &mut sums[register][lane];
            let total = i64::from(*word as i32) + terms.sum::<i64>();
            *word = if clamped { total.clamp(i32::MIN.into(), i32::MAX.into()) as u32 } else { total as u32 };
        }
    }
}
