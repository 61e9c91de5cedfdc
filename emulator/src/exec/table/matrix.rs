//! ldmatrix and mma.sync.
//!
//! Float32 accumulation of float16, bfloat16 and tf32 follows the rule that was measured for wgmma on
//! an H200: all products and the addend are aligned to the largest exponent (a product's is the sum
//! of its factors'), truncated two bits below the significand, summed exactly, and the sum is
//! truncated. Whether mma.sync does the same on every card is not known; float64 is a chain of FMAs.

use crate::FaultKind;
use crate::exec::cx::{Cx, LANES};
use crate::exec::inst::{Flow, Inst};
use crate::exec::soft::{Round, bf16_to_f32, canon, half_to_f64, round32};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F16,
    Bf16,
    Tf32,
    F64,
    S8,
    U8,
}

const KINDS: [Kind; 6] = [Kind::F16, Kind::Bf16, Kind::Tf32, Kind::F64, Kind::S8, Kind::U8];

/// What the decoder found: the kind and the registers of A and B; C and D follow from it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub kind: Kind,
    pub a: usize,
    pub b: usize,
}

impl Shape {
    pub fn pack(self) -> u32 {
        self.kind as u32 | (self.a as u32) << 4 | (self.b as u32) << 8
    }

    fn unpack(mode: u32) -> Shape {
        let kind = KINDS[(mode & 15) as usize % KINDS.len()];
        Shape { kind, a: (mode >> 4 & 15) as usize, b: (mode >> 8 & 15) as usize }
    }

    /// Elements of one register.
    fn packed(self) -> usize {
        match self.kind {
            Kind::F16 | Kind::Bf16 => 2,
            Kind::Tf32 | Kind::F64 => 1,
            Kind::S8 | Kind::U8 => 4,
        }
    }

    fn rows(self) -> usize {
        if self.kind == Kind::F64 { 8 } else { 16 }
    }

    fn depth(self) -> usize {
        4 * self.packed() * self.b
    }

    fn element(self, raw: u64, part: usize) -> f64 {
        let half = (raw >> (16 * part)) as u16;
        let byte = (raw >> (8 * part)) as u8;
        match self.kind {
            Kind::F16 => half_to_f64(half),
            Kind::Bf16 => f64::from(bf16_to_f32(half)),
            Kind::Tf32 => f64::from(f32::from_bits(raw as u32 & 0xffff_e000)),
            Kind::F64 => f64::from_bits(raw),
            Kind::S8 => f64::from(byte as i8),
            Kind::U8 => f64::from(byte),
        }
    }

    /// The exponent that a factor counts with; subnormals have that of the least normal number.
    fn exponent(self, x: f64) -> i32 {
        let least = if self.kind == Kind::F16 { -14 } else { -126 };
        exponent(x).max(least)
    }
}

fn exponent(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

fn power(e: i32) -> f64 {
    2f64.powi(e)
}

/// The sum of products and an addend as the tensor cores make it.
fn accumulate(shape: Shape, a: &[f64], b: &[f64], c: f32) -> f32 {
    let plain: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>() + f64::from(c);
    if !plain.is_finite() {
        return canon(plain as f32);
    }
    let products = a.iter().zip(b).filter(|(x, y)| **x != 0.0 && **y != 0.0);
    let largest = products.clone().map(|(&x, &y)| shape.exponent(x) + shape.exponent(y));
    let own = (c != 0.0).then(|| exponent(f64::from(c)).max(-126));
    let Some(most) = largest.chain(own).max() else { return plain as f32 };
    let step = power(most - 25);
    let fixed = |x: f64| (x / step).trunc() as i64;
    let sum: i64 = products.map(|(x, y)| fixed(x * y)).sum::<i64>() + fixed(f64::from(c));
    round32(sum as f64 * step, 0.0, Round::Zero)
}

/// mma.sync.aligned: A, B and C in `extra`, D in d[0..]; lanes hold the fragments that PTX names.
pub fn multiply(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if m != u32::MAX {
        let lane = m.trailing_zeros() as usize;
        return if cx.warp.live == u32::MAX {
            Flow::Converge
        } else {
            cx.fail(i, lane, FaultKind::Undefined, None, "mma.sync by less than a whole warp")
        };
    }
    let shape = Shape::unpack(i.mode);
    let (rows, depth, packed) = (shape.rows(), shape.depth(), shape.packed());
    let double = shape.kind == Kind::F64;
    let raw = |cx: &Cx<'_>, n: usize, lane: usize| {
        let slot = i.extra[n];
        if double { cx.get::<u64>(slot)[lane] } else { u64::from(cx.get::<u32>(slot)[lane]) }
    };
    let mut a = vec![0.0; rows * depth];
    let mut b = vec![0.0; 8 * depth];
    for lane in 0..LANES {
        let (group, within) = (lane / 4, lane % 4);
        for part in 0..packed {
            for r in 0..shape.a {
                let column = within * packed + part + 4 * packed * (r / 2);
                a[(group + 8 * (r % 2)) * depth + column] = shape.element(raw(cx, r, lane), part);
            }
            for r in 0..shape.b {
                let k = within * packed + part + 4 * packed * r;
                b[group * depth + k] = shape.element(raw(cx, shape.a + r, lane), part);
            }
        }
    }
    let outputs = if double { 2 } else { 4 };
    let mut out = [[0u64; LANES]; 4];
    for lane in 0..LANES {
        for (n, to) in out.iter_mut().enumerate().take(outputs) {
            let (row, column) = (lane / 4 + 8 * (n / 2), lane % 4 * 2 + n % 2);
            let c = raw(cx, shape.a + shape.b + n, lane);
            let (x, y) = (&a[row * depth..][..depth], &b[column * depth..][..depth]);
            to[lane] = match shape.kind {
                Kind::F64 => {
                    let start = f64::from_bits(c);
                    x.iter().zip(y).fold(start, |sum, (x, y)| x.mul_add(*y, sum)).to_bits()
                }
                Kind::S8 | Kind::U8 => {
                    let sum: i64 = x.iter().zip(y).map(|(x, y)| (x * y) as i64).sum();
                    (sum as u32).wrapping_add(c as u32).into()
                }
                _ => accumulate(shape, x, y, f32::from_bits(c as u32)).to_bits().into(),
            };
        }
    }
    for (n, values) in out.iter().enumerate().take(outputs) {
        if double {
            cx.put::<u64>(i.d[n], m, values);
        } else {
            cx.put::<u32>(i.d[n], m, &values.map(|x| x as u32));
        }
    }
    Flow::Next
}

/// ldmatrix: mode: matrices, and bit 8 for .trans; rows of 16 bytes by lanes 8 n to 8 n + 7.
pub fn load(cx: &mut Cx<'_>, i: &Inst, m: u32) -> Flow {
    if m != u32::MAX {
        let detail = "ldmatrix by less than a whole warp";
        return if cx.warp.live == u32::MAX {
            Flow::Converge
        } else {
            cx.fail(i, m.trailing_zeros() as usize, FaultKind::Undefined, None, detail)
        };
    }
    let addresses = cx.addresses(i);
    let count = (i.option() & 7) as usize;
    let mut halves = [[0u16; 8]; LANES];
    for lane in 0..8 * count {
        let (_, addr) = Cx::resolve(crate::ptx::ast::Space::Shared, addresses[lane]);
        if let Err(bad) = cx.touch_shared(lane, addr, 16, false, false) {
            return cx.blame(i, lane, addr, bad);
        }
        halves[lane] = std::array::from_fn(|k| cx.shared_word(addr + 2 * k as u64, 2) as u16);
    }
    for n in 0..count {
        let out = std::array::from_fn(|lane| {
            let (row, pair) = (lane / 4, lane % 4 * 2);
            let at = |k: usize| {
                let (row, column) = if i.option() & 8 != 0 { (pair + k, row) } else { (row, pair + k) };
                u32::from(halves[8 * n + row][column])
            };
            at(0) | at(1) << 16
        });
        cx.put::<u32>(i.d[n], m, &out);
    }
    Flow::Next
}
