//! mma.sync, and the exchange of 8 x 8 matrices with shared memory and between lanes.

use super::{Row, row};
use crate::FaultKind;
use crate::exec::access::Touch;
use crate::exec::cx::{Cx, LANES};
use crate::exec::exact::{BF16, F16, Format};
use crate::exec::inst::{Flow, Inst};
use crate::exec::soft::fma64;
use crate::exec::tensor::{DEPTH, Factors, TF32, sum16, sum32};
use crate::ptx::ast::Space;

/// The type of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F16,
    Bf16,
    Tf32,
    F64,
    S8,
    U8,
}

/// The type of addend and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    F16,
    F32,
    F64,
    S32,
    /// .satfinite
    Clamped,
}

const KINDS: [Kind; 6] = [Kind::F16, Kind::Bf16, Kind::Tf32, Kind::F64, Kind::S8, Kind::U8];
const SUMS: [Sum; 5] = [Sum::F16, Sum::F32, Sum::F64, Sum::S32, Sum::Clamped];

/// What the decoder found: types, rows of A (8 or 16) and products of each sum.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub a: Kind,
    pub b: Kind,
    pub sum: Sum,
    pub rows: usize,
    pub depth: usize,
}

impl Kind {
    /// Elements of one register.
    fn packed(self) -> usize {
        match self {
            Kind::F16 | Kind::Bf16 => 2,
            Kind::Tf32 | Kind::F64 => 1,
            Kind::S8 | Kind::U8 => 4,
        }
    }

    fn integer(self, raw: u64) -> i32 {
        if self == Kind::S8 { i32::from(raw as i8) } else { i32::from(raw as u8) }
    }
}

impl Shape {
    pub fn pack(self) -> u32 {
        let sizes = (self.rows as u32) << 12 | (self.depth as u32) << 20;
        self.a as u32 | (self.b as u32) << 4 | (self.sum as u32) << 8 | sizes
    }

    fn unpack(mode: u32) -> Shape {
        let kind = |at: u32| KINDS[(mode >> at & 15) as usize % KINDS.len()];
        let sum = SUMS[(mode >> 8 & 15) as usize % SUMS.len()];
        let (rows, depth) = ((mode >> 12 & 255) as usize, (mode >> 20) as usize);
        Shape { a: kind(0), b: kind(4), sum, rows, depth }
    }

    /// Registers of A, B and the sums.
    pub fn registers(self) -> [usize; 3] {
        let each = 4 * self.a.packed();
        let sums = if self.sum == Sum::F16 { 1 } else { 2 };
        [self.depth / each * (self.rows / 8), self.depth / each, self.rows / 8 * sums]
    }

    pub fn is_wide(self) -> bool {
        self.sum == Sum::F64
    }
}

/// What a product takes beyond the clock of any instruction, in which a warp does 32 plain multiply-adds.
fn clocks(shape: Shape, ratio: u32) -> u64 {
    let multiply_adds = (shape.rows * 8 * shape.depth) as u64;
    (multiply_adds / (32 * u64::from(ratio))).saturating_sub(1)
}

/// mma.sync.aligned: A, B and C in `extra`, D in d[0..].
pub fn multiply(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = parted(cx, i, m, "mma.sync") {
        return flow;
    }
    let shape = Shape::unpack(i.mode);
    cx.warp.clock += clocks(shape, cx.launch.target.tensor);
    match shape.a {
        Kind::F16 => floats(cx, i, shape, F16),
        Kind::Bf16 => floats(cx, i, shape, BF16),
        Kind::Tf32 => floats(cx, i, shape, TF32),
        Kind::F64 => doubles(cx, i, shape),
        Kind::S8 | Kind::U8 => integers(cx, i, shape),
    }
    Flow::Next
}

/// What less than a whole warp has to do.
fn parted(cx: &mut Cx<'_>, i: &Inst, m: u32, name: &str) -> Option<Flow> {
    if m == u32::MAX {
        return None;
    }
    if cx.warp.live == u32::MAX {
        return Some(Flow::Converge);
    }
    let detail = format!("{name} by less than a whole warp");
    Some(cx.fail(i, m.trailing_zeros() as usize, FaultKind::Undefined, None, detail))
}

fn register(cx: &Cx<'_>, i: &Inst, n: usize, lane: usize, wide: bool) -> u64 {
    let slot = i.extra[n];
    if wide { cx.get::<u64>(slot)[lane] } else { cx.get::<u32>(slot)[lane].into() }
}

/// Hands out the elements of A by row and place in the sum, then those of B by column and place.
fn factors(cx: &Cx<'_>, i: &Inst, shape: Shape, mut to: impl FnMut(bool, usize, usize, u64)) {
    let ([a, b, _], packed, halves) = (shape.registers(), shape.a.packed(), shape.rows / 8);
    let bits = 32 / packed as u32;
    for lane in 0..LANES {
        for r in 0..a + b {
            let raw = register(cx, i, r, lane, shape.is_wide());
            let (block, line) =
                if r < a { (r / halves, lane / 4 + 8 * (r % halves)) } else { (r - a, lane / 4) };
            for part in 0..packed {
                let k = 4 * packed * block + lane % 4 * packed + part;
                let element = if shape.is_wide() {
                    raw
                } else {
                    raw >> (bits * part as u32) & (u64::MAX >> (64 - bits))
                };
                to(r >= a, line, k, element);
            }
        }
    }
}

/// Makes every sum from its row, its column and its addend.
fn sums(cx: &mut Cx<'_>, i: &Inst, shape: Shape, make: impl Fn(usize, usize, u64) -> u64) {
    let [a, b, count] = shape.registers();
    let (wide, pairs) = (shape.is_wide(), shape.sum == Sum::F16);
    let one = |n: usize, lane: usize| {
        let c = register(cx, i, a + b + n, lane, wide);
        let column = lane % 4 * 2;
        if pairs {
            let row = lane / 4 + 8 * n;
            make(row, column, c & 0xffff) | make(row, column + 1, c >> 16) << 16
        } else {
            make(lane / 4 + 8 * (n / 2), column + n % 2, c)
        }
    };
    // A result may lie where an addend does.
    let out: Vec<[u64; LANES]> = (0..count).map(|n| std::array::from_fn(|lane| one(n, lane))).collect();
    for (n, values) in out.iter().enumerate() {
        if wide {
            cx.put::<u64>(i.d[n], u32::MAX, values);
        } else {
            cx.put::<u32>(i.d[n], u32::MAX, &values.map(|x| x as u32));
        }
    }
}

fn floats(cx: &mut Cx<'_>, i: &Inst, shape: Shape, format: Format) {
    let mut rows = [Factors::NONE; 16];
    let mut columns = [Factors::NONE; 8];
    // The upper bits of a register are those of tf32.
    let shift = if shape.a == Kind::Tf32 { 13 } else { 0 };
    factors(cx, i, shape, |b, line, k, raw| {
        let to = if b { &mut columns[line] } else { &mut rows[line] };
        to.set(k, format, (raw >> shift) as u32);
    });
    sums(cx, i, shape, |row, column, c| match shape.sum {
        Sum::F16 => sum16(format, &rows[row], &columns[column], c as u16).into(),
        _ => sum32(format, &rows[row], &columns[column], f32::from_bits(c as u32)).to_bits().into(),
    });
}

/// A chain of fused multiply-adds in ascending order.
fn doubles(cx: &mut Cx<'_>, i: &Inst, shape: Shape) {
    let mut both = [[[0.0; DEPTH]; 16]; 2];
    factors(cx, i, shape, |b, line, k, raw| both[usize::from(b)][line][k] = f64::from_bits(raw));
    sums(cx, i, shape, |row, column, c| {
        let pairs = both[0][row].iter().zip(&both[1][column]).take(shape.depth);
        pairs.fold(f64::from_bits(c), |sum, (&x, &y)| fma64(x, y, sum)).to_bits()
    });
}

fn integers(cx: &mut Cx<'_>, i: &Inst, shape: Shape) {
    let mut both = [[[0i32; 32]; 16]; 2];
    factors(cx, i, shape, |b, line, k, raw| {
        both[usize::from(b)][line][k] = if b { shape.b } else { shape.a }.integer(raw);
    });
    sums(cx, i, shape, |row, column, c| {
        let sum: i32 = both[0][row].iter().zip(&both[1][column]).map(|(x, y)| x * y).sum();
        let c = c as u32 as i32;
        u64::from(if shape.sum == Sum::Clamped { c.saturating_add(sum) } else { c.wrapping_add(sum) } as u32)
    });
}

/// Bits of `Inst::option` of the exchange with shared memory, above the number of matrices.
pub const TRANSPOSED: u32 = 8;
pub const GENERIC: u32 = 16;

/// A matrix's rows as a lane's register holds them: row lane / 4, columns 2 (lane % 4) and the next.
fn fragment(rows: &[[u16; 8]], lane: usize, transposed: bool) -> u32 {
    let (row, pair) = (lane / 4, lane % 4 * 2);
    let at = |k: usize| u32::from(if transposed { rows[pair + k][row] } else { rows[row][pair + k] });
    at(0) | at(1) << 16
}

/// The opposite of `fragment`.
fn rows(words: &[u32; LANES], transposed: bool) -> [[u16; 8]; 8] {
    let mut rows = [[0; 8]; 8];
    for (lane, word) in words.iter().enumerate() {
        for k in 0..2 {
            let (row, column) = (lane / 4, lane % 4 * 2 + k);
            let to = if transposed { &mut rows[column][row] } else { &mut rows[row][column] };
            *to = (word >> (16 * k)) as u16;
        }
    }
    rows
}

/// The address in shared memory of each row of 16 bytes; lanes 8 n to 8 n + 7 name those of matrix n.
fn row_addresses(cx: &mut Cx<'_>, i: &Inst, write: bool) -> Result<[u64; LANES], Flow> {
    let mut addresses = cx.addresses(i);
    let space = if i.option() & GENERIC != 0 { Space::Generic } else { Space::Shared };
    for (lane, at) in addresses.iter_mut().enumerate().take(8 * (i.option() & 7) as usize) {
        let (space, addr) = Cx::resolve(space, *at);
        if space != Space::Shared {
            let detail = "the address of a row that is not in shared memory";
            return Err(cx.fail(i, lane, FaultKind::Undefined, Some(addr), detail));
        }
        if let Err(bad) =
            cx.touch_shared(lane, addr, 16, if write { Touch::Write } else { Touch::Read }, false)
        {
            return Err(cx.blame(i, lane, addr, bad));
        }
        *at = addr;
    }
    Ok(addresses)
}

/// ldmatrix.
pub fn load(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = parted(cx, i, m, "ldmatrix") {
        return flow;
    }
    let addresses = match row_addresses(cx, i, false) {
        Ok(addresses) => addresses,
        Err(flow) => return flow,
    };
    for n in 0..(i.option() & 7) as usize {
        let row = |row: usize| {
            let from = addresses[8 * n + row];
            std::array::from_fn(|k| cx.shared_word(from + 2 * k as u64, 2) as u16)
        };
        let matrix: [[u16; 8]; 8] = std::array::from_fn(row);
        let out = std::array::from_fn(|lane| fragment(&matrix, lane, i.option() & TRANSPOSED != 0));
        cx.put::<u32>(i.d[n], m, &out);
    }
    Flow::Next
}

/// stmatrix: fragments in s[1..].
pub fn store(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = parted(cx, i, m, "stmatrix") {
        return flow;
    }
    let addresses = match row_addresses(cx, i, true) {
        Ok(addresses) => addresses,
        Err(flow) => return flow,
    };
    for n in 0..(i.option() & 7) as usize {
        let matrix = rows(cx.get::<u32>(i.s[n + 1]), i.option() & TRANSPOSED != 0);
        for (row, values) in matrix.iter().enumerate() {
            for (k, &value) in values.iter().enumerate() {
                cx.set_shared_word(addresses[8 * n + row] + 2 * k as u64, 2, value.into());
            }
        }
    }
    Flow::Next
}

/// movmatrix.trans: s[0] to d[0].
fn transpose(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if let Some(flow) = parted(cx, i, m, "movmatrix") {
        return flow;
    }
    let matrix = rows(cx.get::<u32>(i.s[0]), false);
    let out = std::array::from_fn(|lane| fragment(&matrix, lane, true));
    cx.put::<u32>(i.d[0], m, &out);
    Flow::Next
}

pub const ROWS: &[Row] = &[row("movmatrix.sync.aligned.m8n8.trans.b16", "w:w", transpose)];
