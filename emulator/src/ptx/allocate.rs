//! Registers of the text to the fewest lane vectors, so that a warp's state stays in the cache.

use crate::exec::inst::{Class, Inst, NONE, NOT, Preset, Signature, Slot};

/// How many lane vectors of each class the code needs, presets included.
pub struct Allocation {
    pub words: usize,
    pub doubles: usize,
    pub predicates: usize,
    pub word_presets: Vec<(Slot, Preset)>,
    pub double_presets: Vec<(Slot, Preset)>,
    /// Registers of 32 bits that live at once, presets left out.
    pub pressure: u32,
}

/// All registers of a function in one numbering: words, doubles, predicates.
struct Numbering {
    words: usize,
    doubles: usize,
    total: usize,
}

impl Numbering {
    fn number(&self, class: Class, slot: Slot) -> Option<usize> {
        if slot == NONE {
            return None;
        }
        match class {
            Class::None => None,
            Class::W => Some(slot as usize),
            Class::D => Some(self.words + slot as usize),
            Class::P => Some(self.words + self.doubles + (slot & !NOT) as usize),
        }
    }

    fn class(&self, number: usize) -> Class {
        if number < self.words {
            Class::W
        } else if number < self.words + self.doubles {
            Class::D
        } else {
            Class::P
        }
    }
}

fn sources<'a>(inst: &'a Inst, signature: &'a Signature) -> impl Iterator<Item = (Class, Slot)> + 'a {
    let guard = std::iter::once((Class::P, inst.guard));
    let plain = signature.s.iter().copied().zip(inst.s.iter().copied());
    plain.chain(guard).chain(inst.extra.iter().map(|&slot| (signature.extra, slot)))
}

#[derive(Clone, Copy)]
struct Interval {
    start: u32,
    end: u32,
}

struct Blocks {
    /// First instruction of each block, and the end of the code.
    starts: Vec<usize>,
    next: Vec<Vec<usize>>,
}

fn blocks(insts: &[Inst]) -> Blocks {
    let mut leads = vec![false; insts.len() + 1];
    leads[0] = true;
    for (at, inst) in insts.iter().enumerate() {
        if inst.jumps {
            leads[(inst.target as usize).min(insts.len())] = true;
            leads[at + 1] = true;
        }
    }
    leads[insts.len()] = true;
    let starts: Vec<usize> = (0..=insts.len()).filter(|&at| leads[at]).collect();
    let next = (0..starts.len().saturating_sub(1))
        .map(|block| {
            let last = &insts[starts[block + 1] - 1];
            let mut next = Vec::new();
            if !last.jumps || last.guard != NONE {
                next.push(block + 1);
            }
            if last.jumps {
                next.extend(starts.binary_search(&(last.target as usize)));
            }
            next.retain(|&block| block + 1 < starts.len());
            next
        })
        .collect();
    Blocks { starts, next }
}

/// Registers live at each block's start, as bits.
fn live_in(
    insts: &[Inst],
    signatures: &[Signature],
    numbering: &Numbering,
    blocks: &Blocks,
) -> Vec<Vec<u64>> {
    let size = numbering.total.div_ceil(64);
    let count = blocks.next.len();
    let mut uses = vec![vec![0u64; size]; count];
    let mut kills = vec![vec![0u64; size]; count];
    for block in 0..count {
        for at in blocks.starts[block]..blocks.starts[block + 1] {
            let (inst, signature) = (&insts[at], &signatures[at]);
            for (class, slot) in sources(inst, signature) {
                if let Some(n) = numbering.number(class, slot)
                    && kills[block][n / 64] >> (n % 64) & 1 == 0
                {
                    uses[block][n / 64] |= 1 << (n % 64);
                }
            }
            for (&class, &slot) in signature.d.iter().zip(&inst.d) {
                if let Some(n) = numbering.number(class, slot) {
                    let bit = 1 << (n % 64);
                    if inst.guard == NONE {
                        kills[block][n / 64] |= bit;
                    } else if kills[block][n / 64] & bit == 0 {
                        // A guarded result keeps the old value in some lanes.
                        uses[block][n / 64] |= bit;
                    }
                }
            }
        }
    }
    let mut live = uses;
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..count).rev() {
            for &next in &blocks.next[block] {
                for word in 0..size {
                    let new = live[block][word] | live[next][word] & !kills[block][word];
                    changed |= new != live[block][word];
                    live[block][word] = new;
                }
            }
        }
    }
    live
}

fn each(bits: &[u64], mut f: impl FnMut(usize)) {
    for (word, &value) in bits.iter().enumerate() {
        let mut left = value;
        while left != 0 {
            f(word * 64 + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

fn intervals(insts: &[Inst], signatures: &[Signature], numbering: &Numbering) -> Vec<Option<Interval>> {
    let blocks = blocks(insts);
    let live = live_in(insts, signatures, numbering, &blocks);
    let mut found: Vec<Option<Interval>> = vec![None; numbering.total];
    let mut extend = |n: usize, at: u32| {
        let interval = found[n].get_or_insert(Interval { start: at, end: at });
        interval.start = interval.start.min(at);
        interval.end = interval.end.max(at);
    };
    for block in 0..blocks.next.len() {
        each(&live[block], |n| extend(n, 2 * blocks.starts[block] as u32));
        for &next in &blocks.next[block] {
            each(&live[next], |n| extend(n, 2 * blocks.starts[block + 1] as u32));
        }
        for at in blocks.starts[block]..blocks.starts[block + 1] {
            for (class, slot) in sources(&insts[at], &signatures[at]) {
                if let Some(n) = numbering.number(class, slot) {
                    extend(n, 2 * at as u32);
                }
            }
            for (&class, &slot) in signatures[at].d.iter().zip(&insts[at].d) {
                if let Some(n) = numbering.number(class, slot) {
                    extend(n, 2 * at as u32 + 1);
                }
            }
        }
    }
    found
}

/// Renames all registers of the code.
pub fn allocate(
    insts: &mut [Inst],
    signatures: &[Signature],
    words: &[Option<Preset>],
    doubles: &[Option<Preset>],
    predicates: usize,
) -> Allocation {
    let numbering = Numbering {
        words: words.len(),
        doubles: doubles.len(),
        total: words.len() + doubles.len() + predicates,
    };
    let preset = |n: usize| words.iter().chain(doubles).nth(n).copied().flatten();
    let is_preset: Vec<bool> = words.iter().chain(doubles).map(Option::is_some).collect();
    let first_pred = words.len() + doubles.len();
    let mut order: Vec<(usize, Interval)> = intervals(insts, signatures, &numbering)
        .into_iter()
        .enumerate()
        .filter(|&(n, _)| n != first_pred && !is_preset.get(n).copied().unwrap_or(false))
        .filter_map(|(n, interval)| Some((n, interval?)))
        .collect();
    order.sort_by_key(|(_, interval)| interval.start);
    let mut names = vec![NONE; numbering.total];
    names[first_pred] = 0;
    // Predicate 0 is the one that is always true.
    let mut used = [0usize, 0, 1];
    let mut free: [Vec<Slot>; 3] = Default::default();
    let mut active: std::collections::BinaryHeap<std::cmp::Reverse<(u32, usize)>> = Default::default();
    let index = |n: usize| match numbering.class(n) {
        Class::D => 1,
        Class::P => 2,
        _ => 0,
    };
    for (n, interval) in order {
        while let Some(&std::cmp::Reverse((end, old))) = active.peek() {
            if end >= interval.start {
                break;
            }
            active.pop();
            free[index(old)].push(names[old]);
        }
        let class = index(n);
        names[n] = free[class].pop().unwrap_or_else(|| {
            used[class] += 1;
            (used[class] - 1) as Slot
        });
        active.push(std::cmp::Reverse((interval.end, n)));
    }
    let pressure = (used[0] + 2 * used[1]) as u32;
    let mut presets = [Vec::new(), Vec::new()];
    for n in (0..first_pred).filter(|&n| is_preset[n]) {
        let class = index(n);
        names[n] = used[class] as Slot;
        used[class] += 1;
        if let Some(preset) = preset(n) {
            presets[class].push((names[n], preset));
        }
    }
    rename(insts, signatures, &numbering, &names);
    let [word_presets, double_presets] = presets;
    Allocation {
        words: used[0],
        doubles: used[1],
        predicates: used[2],
        word_presets,
        double_presets,
        pressure,
    }
}

fn rename(insts: &mut [Inst], signatures: &[Signature], numbering: &Numbering, names: &[Slot]) {
    let new = |class: Class, slot: Slot| match numbering.number(class, slot) {
        Some(n) if class == Class::P => names[n] | slot & NOT,
        Some(n) => names[n],
        None => slot,
    };
    for (inst, signature) in insts.iter_mut().zip(signatures) {
        for (slot, &class) in inst.d.iter_mut().zip(&signature.d) {
            *slot = new(class, *slot);
        }
        for (slot, &class) in inst.s.iter_mut().zip(&signature.s) {
            *slot = new(class, *slot);
        }
        for slot in inst.extra.iter_mut() {
            *slot = new(signature.extra, *slot);
        }
        inst.guard = new(Class::P, inst.guard);
    }
}
