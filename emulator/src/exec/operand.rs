//! The operands of wgmma in shared memory, as their descriptors say.
//!
//! An operand is lines (rows of A, columns of B) of 32 bytes along the sum. It lies in parts of 16 bytes: along the sum,
//! or with 8 lines side by side where it is transposed. Parts form cores of 8; strides lead from core to core, and in
//! the swizzled layouts parts change places by the bits of their address.

use super::access::Bad;
use super::cx::Cx;
use super::tensor_map::Swizzle;

/// What lies side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    /// Elements along the sum ("K-major").
    Sum,
    /// Lines, of 16-bit elements ("MN-major").
    Line,
}

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    start: u64,
    leading: u64,
    stride: u64,
    base: u64,
    swizzle: Swizzle,
    major: Major,
    /// Bytes of an element.
    width: usize,
}

impl Operand {
    pub fn new(word: u64, major: Major, width: usize) -> Operand {
        let field = |at: u32| (word >> at & 0x3fff) << 4;
        let swizzle = [Swizzle::None, Swizzle::B128, Swizzle::B64, Swizzle::B32][(word >> 62) as usize];
        Operand {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: word >> 49 & 7,
            swizzle,
            major,
            width,
        }
    }

    /// The address of the part that holds (line, byte along the sum).
    fn part(&self, line: u64, byte: u64) -> u64 {
        let span = self.swizzle.span();
        let plain = self.swizzle == Swizzle::None;
        let offset = match self.major {
            Major::Sum if plain => line / 8 * self.stride + line % 8 * 16 + byte / 16 * self.leading,
            Major::Sum => line / 8 * self.stride + line % 8 * span + byte / 16 * 16,
            Major::Line => {
                let (group, k) = (line / 8, byte / self.width as u64);
                if plain {
                    group * self.stride + k % 8 * 16 + k / 8 * self.leading
                } else {
                    let across = span / 16;
                    group % across * 16 + group / across * self.leading + k % 8 * span + k / 8 * self.stride
                }
            }
        };
        self.swizzle.place(self.start + offset, self.base)
    }

    /// Raw elements of some lines, [place along the sum][line]; notes the parts for a reader.
    pub fn load(
        &self,
        cx: &mut Cx<'_>,
        reader: u64,
        lines: std::ops::Range<usize>,
        raw: &mut Vec<u32>,
    ) -> Result<(), (u64, Bad)> {
        let (count, depth) = (lines.len(), 32 / self.width);
        let per_part = 16 / self.width;
        raw.clear();
        raw.resize(count * depth, 0);
        let (outer, inner) = match self.major {
            Major::Sum => (1, per_part),
            Major::Line => (per_part, 1),
        };
        for first in (0..count).step_by(outer) {
            for k in (0..depth).step_by(inner) {
                let addr = self.part((lines.start + first) as u64, (k * self.width) as u64);
                let elements = take(cx, reader, addr, self.width).map_err(|bad| (addr, bad))?;
                for (n, &element) in elements.iter().enumerate().take(per_part) {
                    let (line, k) = if outer == 1 { (first, k + n) } else { (first + n, k) };
                    raw[k * count + line] = element;
                }
            }
        }
        Ok(())
    }
}

/// The elements of a part, behind the checks.
fn take(cx: &mut Cx<'_>, reader: u64, addr: u64, width: usize) -> Result<[u32; 16], Bad> {
    cx.shared_range(addr, 16, 16)?;
    cx.proxy_reads(addr, 16)?;
    if let Some(reader) = cx.block.readers.iter_mut().rev().find(|one| one.id == reader) {
        reader.add(addr);
    }
    let mut elements = [0; 16];
    let words = &cx.block.shared[(addr / 4) as usize..][..4];
    let (packed, bits) = (4 / width, 8 * width as u32);
    for (n, element) in elements.iter_mut().enumerate().take(4 * packed) {
        let word = words[n / packed];
        *element = if bits == 32 { word } else { word >> (bits * (n % packed) as u32) & ((1 << bits) - 1) };
    }
    Ok(elements)
}
