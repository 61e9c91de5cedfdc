//! What cp.reduce.async.bulk does to each element in global memory.

use super::access::Bad;
use super::soft::{canon, flush};
use super::tensor_map::Element;
use crate::FaultKind;
use crate::memory::Allocation;

const OPERATIONS: [&str; 8] = ["add", "min", "max", "inc", "dec", "and", "or", "xor"];
const TYPES: [&str; 9] = ["u32", "s32", "u64", "s64", "f32", "f64", "b32", "b64", ""];
/// The type is that of a tensor map.
const MAPPED: u8 = 8;

/// An operation and the type of its elements, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    operation: u8,
    ty: u8,
}

impl Reduction {
    /// None for a pair that is not known; `ty` is empty where a tensor map tells it.
    pub fn parse(operation: &str, ty: &str) -> Option<Reduction> {
        let number = |names: &[&str], name: &str| names.iter().position(|one| *one == name).map(|n| n as u8);
        let found = Reduction { operation: number(&OPERATIONS, operation)?, ty: number(&TYPES, ty)? };
        (found.ty == MAPPED || found.fits()).then_some(found)
    }

    fn fits(self) -> bool {
        let ty = TYPES[self.ty as usize];
        match OPERATIONS[self.operation as usize] {
            "add" => !ty.starts_with('b'),
            "min" | "max" => ty.starts_with(['u', 's']),
            "inc" | "dec" => ty == "u32",
            _ => ty.starts_with('b'),
        }
    }

    pub fn pack(one: Option<Reduction>) -> u32 {
        one.map_or(0, |one| 1 + u32::from(one.operation) + 8 * u32::from(one.ty))
    }

    pub fn unpack(packed: u32) -> Option<Reduction> {
        let packed = packed.checked_sub(1)?;
        Some(Reduction { operation: (packed % 8) as u8, ty: (packed / 8) as u8 })
    }

    /// The same on the elements of a tensor map.
    pub fn of(self, element: Element) -> Option<Reduction> {
        let bitwise = self.operation >= 5;
        let ty = match (element.number, element.bytes) {
            (2..=5, 4) if bitwise => "b32",
            (2..=5, 8) if bitwise => "b64",
            (2, _) => "u32",
            (3, _) => "s32",
            (4, _) => "u64",
            (5, _) => "s64",
            (7, _) => "f32",
            (8, _) => "f64",
            _ => return None,
        };
        Reduction::parse(OPERATIONS[self.operation as usize], ty)
    }

    fn apply_one(self, old: u64, new: u64) -> u64 {
        let ty = TYPES[self.ty as usize];
        let single = |x: u64| flush(f32::from_bits(x as u32));
        let signed = |x: u64| if ty == "s32" { i64::from(x as i32) } else { x as i64 };
        match (OPERATIONS[self.operation as usize], ty) {
            ("add", "f32") => flush(canon(single(old) + single(new))).to_bits().into(),
            ("add", "f64") => (f64::from_bits(old) + f64::from_bits(new)).to_bits(),
            ("add", _) => old.wrapping_add(new),
            ("min", "s32" | "s64") => {
                if signed(new) < signed(old) {
                    new
                } else {
                    old
                }
            }
            ("max", "s32" | "s64") => {
                if signed(new) > signed(old) {
                    new
                } else {
                    old
                }
            }
            ("min", _) => old.min(new),
            ("max", _) => old.max(new),
            ("inc", _) => {
                if old >= new {
                    0
                } else {
                    old + 1
                }
            }
            ("dec", _) => {
                if old == 0 || old > new {
                    new
                } else {
                    old - 1
                }
            }
            ("and", _) => old & new,
            ("or", _) => old | new,
            _ => old ^ new,
        }
    }

    /// Changes the elements at an offset by those of `from`.
    pub fn apply(self, to: &Allocation, offset: u64, from: &[u8], checked: bool) -> Result<(), Bad> {
        let size = if TYPES[self.ty as usize].ends_with("64") { 8 } else { 4 };
        if checked && to.first_unwritten(offset, from.len() as u64).is_some() {
            let detail = "bulk reduction on global memory that nothing wrote".into();
            return Err(Bad { kind: FaultKind::Uninitialized, detail });
        }
        for (n, bytes) in from.chunks_exact(size as usize).enumerate() {
            let new = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            to.update(offset + n as u64 * size, size, |old| self.apply_one(old, new));
        }
        Ok(())
    }
}
