//! What a handler sees: the warp that runs, its block and the launch.

use super::Launch;
use super::block::Block;
use super::inst::{Flow, Inst, NOT, Slot, mode};
use super::warp::Warp;
use crate::{Fault, FaultKind};

pub const LANES: usize = 32;
pub type Words = [u32; LANES];
pub type Doubles = [u64; LANES];

pub(crate) struct Cx<'a> {
    pub launch: &'a Launch<'a>,
    pub block: Block,
    pub warp: Warp,
    pub fault: Option<Box<Fault>>,
    /// The allocation that the last access hit.
    pub hint: usize,
    /// The other blocks of the cluster by rank, while one of several runs.
    pub peers: Vec<Block>,
    /// `block` is one of them: this access comes from another block.
    pub foreign: bool,
}

/// A type that lives in one lane of a register.
pub trait Value: Copy {
    type Raw: Copy + Default;
    fn of(raw: Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;
    fn file(warp: &Warp) -> &[[Self::Raw; LANES]];
    fn file_mut(warp: &mut Warp) -> &mut [[Self::Raw; LANES]];
}

macro_rules! value {
    ($($ty:ty, $raw:ty, $file:ident, |$x:ident| $of:expr, |$y:ident| $to:expr;)*) => {
        $(impl Value for $ty {
            type Raw = $raw;
            #[inline(always)]
            fn of($x: $raw) -> Self {
                $of
            }
            #[inline(always)]
            fn raw(self) -> $raw {
                let $y = self;
                $to
            }
            #[inline(always)]
            fn file(warp: &Warp) -> &[[$raw; LANES]] {
                &warp.$file
            }
            #[inline(always)]
            fn file_mut(warp: &mut Warp) -> &mut [[$raw; LANES]] {
                &mut warp.$file
            }
        })*
    };
}

value! {
    u32, u32, words, |x| x, |y| y;
    i32, u32, words, |x| x as i32, |y| y as u32;
    u16, u32, words, |x| x as u16, |y| u32::from(y);
    i16, u32, words, |x| x as i16, |y| u32::from(y as u16);
    f32, u32, words, |x| f32::from_bits(x), |y| y.to_bits();
    u64, u64, doubles, |x| x, |y| y;
    i64, u64, doubles, |x| x as i64, |y| y as u64;
    f64, u64, doubles, |x| f64::from_bits(x), |y| y.to_bits();
}

/// Iterates the lanes of a mask.
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

impl Cx<'_> {
    #[inline(always)]
    pub fn get<T: Value>(&self, slot: Slot) -> &[T::Raw; LANES] {
        &T::file(&self.warp)[slot as usize]
    }

    #[inline(always)]
    pub fn put<T: Value>(&mut self, slot: Slot, mask: u32, out: &[T::Raw; LANES]) {
        let to = &mut T::file_mut(&mut self.warp)[slot as usize];
        if mask == u32::MAX {
            *to = *out;
        } else {
            for lane in 0..LANES {
                if mask >> lane & 1 != 0 {
                    to[lane] = out[lane];
                }
            }
        }
    }

    #[inline(always)]
    pub fn op1<A: Value, R: Value>(&mut self, i: &Inst, mask: u32, f: impl Fn(A) -> R) -> Flow {
        let a = self.get::<A>(i.s[0]);
        let mut out = [R::Raw::default(); LANES];
        for lane in 0..LANES {
            out[lane] = f(A::of(a[lane])).raw();
        }
        self.put::<R>(i.d[0], mask, &out);
        Flow::Next
    }

    #[inline(always)]
    pub fn op2<A: Value, B: Value, R: Value>(&mut self, i: &Inst, mask: u32, f: impl Fn(A, B) -> R) -> Flow {
        let (a, b) = (self.get::<A>(i.s[0]), self.get::<B>(i.s[1]));
        let mut out = [R::Raw::default(); LANES];
        for lane in 0..LANES {
            out[lane] = f(A::of(a[lane]), B::of(b[lane])).raw();
        }
        self.put::<R>(i.d[0], mask, &out);
        Flow::Next
    }

    #[inline(always)]
    pub fn op3<A: Value, B: Value, C: Value, R: Value>(
        &mut self,
        i: &Inst,
        mask: u32,
        f: impl Fn(A, B, C) -> R,
    ) -> Flow {
        let (a, b, c) = (self.get::<A>(i.s[0]), self.get::<B>(i.s[1]), self.get::<C>(i.s[2]));
        let mut out = [R::Raw::default(); LANES];
        for lane in 0..LANES {
            out[lane] = f(A::of(a[lane]), B::of(b[lane]), C::of(c[lane])).raw();
        }
        self.put::<R>(i.d[0], mask, &out);
        Flow::Next
    }

    /// A comparison to predicates, with the combination that `mode` names.
    #[inline(always)]
    pub fn test<A: Value, B: Value>(&mut self, i: &Inst, mask: u32, f: impl Fn(A, B) -> bool) -> Flow {
        let (a, b) = (self.get::<A>(i.s[0]), self.get::<B>(i.s[1]));
        let mut hit = 0u32;
        for lane in 0..LANES {
            hit |= u32::from(f(A::of(a[lane]), B::of(b[lane]))) << lane;
        }
        let (yes, no) = (self.combine(i, hit), self.combine(i, !hit));
        self.put_pred(i.d[0], mask, yes);
        self.put_pred(i.d[1], mask, no);
        Flow::Next
    }

    /// The combination of a comparison with the predicate s[2] that `mode` names.
    #[inline(always)]
    pub fn combine(&self, i: &Inst, hit: u32) -> u32 {
        match i.mode {
            1 => hit & self.pred(i.s[2]),
            2 => hit | self.pred(i.s[2]),
            3 => hit ^ self.pred(i.s[2]),
            _ => hit,
        }
    }

    /// `test` with all ones or 1.0 as the result (set); d[0] has 32 bits.
    #[inline(always)]
    pub fn set<A: Value, B: Value>(&mut self, i: &Inst, mask: u32, f: impl Fn(A, B) -> bool) -> Flow {
        let (a, b) = (self.get::<A>(i.s[0]), self.get::<B>(i.s[1]));
        let yes = i.imm as u32;
        let mut out = [0; LANES];
        for lane in 0..LANES {
            out[lane] = if f(A::of(a[lane]), B::of(b[lane])) { yes } else { 0 };
        }
        self.put::<u32>(i.d[0], mask, &out);
        Flow::Next
    }

    #[inline(always)]
    pub fn pred(&self, slot: Slot) -> u32 {
        let value = self.warp.preds[(slot & !NOT) as usize];
        if slot & NOT != 0 { !value } else { value }
    }

    #[inline(always)]
    pub fn put_pred(&mut self, slot: Slot, mask: u32, value: u32) {
        if slot != super::inst::NONE {
            let to = &mut self.warp.preds[slot as usize];
            *to = (*to & !mask) | (value & mask);
        }
    }

    /// Base register plus offset of an access to memory.
    #[inline(always)]
    pub fn addresses(&self, i: &Inst) -> Doubles {
        let mut out = [0; LANES];
        if i.has(mode::WIDE) {
            let base = self.get::<u64>(i.s[0]);
            for lane in 0..LANES {
                out[lane] = base[lane].wrapping_add(i.imm as u64);
            }
        } else {
            let base = self.get::<u32>(i.s[0]);
            for lane in 0..LANES {
                out[lane] = u64::from(base[lane].wrapping_add(i.imm as u32));
            }
        }
        out
    }

    /// Notes a fault of one lane.
    #[cold]
    pub fn fail(
        &mut self,
        i: &Inst,
        lane: usize,
        kind: FaultKind,
        address: Option<u64>,
        detail: impl Into<String>,
    ) -> Flow {
        let mut fault = Fault::plain(kind, address, detail);
        self.place(&mut fault, i, lane);
        self.fault = Some(Box::new(fault));
        Flow::Fault
    }

    /// Gives a fault its kernel, block, thread and instruction.
    #[cold]
    pub fn place(&self, fault: &mut Fault, i: &Inst, lane: usize) {
        let code = &self.launch.kernel.code;
        fault.kernel = self.launch.kernel.name.clone();
        fault.block = self.block.index;
        fault.thread = self.thread(lane);
        fault.line = i.line;
        let text = code.text.lines().nth((i.line as usize).saturating_sub(1)).unwrap_or_default();
        fault.instruction = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let known = code.sources.partition_point(|(line, _)| *line <= i.line);
        fault.source = known.checked_sub(1).map(|n| code.sources[n].1.clone());
    }

    pub fn thread(&self, lane: usize) -> [u32; 3] {
        super::warp::coordinates(self.warp.index * 32 + lane as u32, self.launch.block)
    }
}
