//! Tensor maps: what a bulk tensor copy knows of a tensor, as the 128 bytes that kernels get.
//!
//! The bytes are the emulator's own: a mark, a sum over the rest, then the fields.

/// The map's size in memory, and the multiple that its address must be.
pub const BYTES: u64 = 128;
pub const ALIGN: u64 = 64;
pub const MOST_DIMS: usize = 5;

const MARK: u64 = 0x7061_6d72_6f73_6e74;

/// How the 16-byte parts of shared memory change places: bits 4 and up of an address, with bits 7 and up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Swizzle {
    #[default]
    None,
    B32,
    B64,
    B128,
}

pub const SWIZZLES: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

impl Swizzle {
    /// Bytes along which parts change places.
    pub fn span(self) -> u64 {
        [16, 32, 64, 128][self as usize]
    }

    /// Where the byte of an address lies, the pattern starting `base` rows of 128 bytes after a multiple of 1,024.
    pub fn place(self, addr: u64, base: u64) -> u64 {
        let row = (addr >> 7).wrapping_sub(base);
        addr ^ (row & (self.span() / 16 - 1)) << 4
    }
}

/// `CUtensorMapDataType`: bytes of an element, and the bits that fill what lies outside where NaN are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub number: u8,
    pub bytes: u64,
    pub nan: Option<u64>,
}

/// What an H200 fills with.
const NAN: Option<u64> = Some(0x7ff7_7ff7_7ff7_7ff7);

pub fn element(number: i32) -> Option<Element> {
    let (bytes, nan) = match number {
        0 => (1, None),
        1 => (2, None),
        2 | 3 => (4, None),
        4 | 5 => (8, None),
        6 | 9 => (2, NAN),
        7 => (4, NAN),
        8 => (8, NAN),
        _ => return None,
    };
    Some(Element { number: number as u8, bytes, nan })
}

/// The pixels of an im2col map: corners of the box of base pixels, along W, H and D.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pixels {
    /// From the first pixel.
    pub lower: [i32; 3],
    /// From the last pixel.
    pub upper: [i32; 3],
    pub channels: u32,
    pub count: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    pub address: u64,
    pub element: Element,
    pub rank: usize,
    /// Elements along each dimension, innermost first.
    pub dims: [u64; MOST_DIMS],
    /// Bytes from one element to the next along all dimensions but the innermost.
    pub strides: [u64; MOST_DIMS - 1],
    /// Elements of a box.
    pub boxed: [u32; MOST_DIMS],
    /// Elements from one of a box to the next.
    pub steps: [u32; MOST_DIMS],
    pub swizzle: Swizzle,
    /// NaN rather than zeros outside the tensor.
    pub fills_nan: bool,
    pub pixels: Option<Pixels>,
}

/// A row of a box: where those of its bytes lie that are inside the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub address: u64,
    /// Bytes of the row before them.
    pub skip: u64,
    pub bytes: u64,
}

fn sum(words: &[u64; 16]) -> u64 {
    let rest = words.iter().enumerate().filter(|(n, _)| *n != 1);
    rest.fold(0xcbf2_9ce4_8422_2325, |sum, (_, &word)| {
        (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
    })
}

fn packed<const N: usize>(values: [u64; N], bits: u32) -> u64 {
    values
        .iter()
        .enumerate()
        .fold(0, |all, (n, value)| all | (value & ((1 << bits) - 1)) << (n as u32 * bits))
}

fn part(word: u64, n: usize, bits: u32) -> u64 {
    word >> (n as u32 * bits) & ((1 << bits) - 1)
}

impl TensorMap {
    pub fn words(&self) -> [u64; 16] {
        let mut words = [0; 16];
        words[0] = MARK;
        words[2] = self.address;
        let flags = u64::from(self.fills_nan) | u64::from(self.pixels.is_some()) << 1;
        words[3] = packed([self.element.number.into(), self.rank as u64, self.swizzle as u64, flags], 8);
        for (n, dim) in self.dims.iter().enumerate() {
            words[4 + n / 2] |= (dim.wrapping_sub(1) & 0xffff_ffff) << (n % 2 * 32);
        }
        words[7..11].copy_from_slice(&self.strides);
        words[11] = packed(self.boxed.map(u64::from), 12);
        words[12] = packed(self.steps.map(u64::from), 12);
        if let Some(pixels) = self.pixels {
            words[13] = packed(pixels.lower.map(|x| x as u64), 20);
            words[14] = packed(pixels.upper.map(|x| x as u64), 20);
            words[15] = packed([pixels.channels.into(), pixels.count.into()], 20);
        }
        words[1] = sum(&words);
        words
    }

    /// None where the words are no map's.
    pub fn of(words: &[u64; 16]) -> Option<TensorMap> {
        if words[0] != MARK || words[1] != sum(words) {
            return None;
        }
        let signed = |word: u64, n: usize| (part(word, n, 20) as i32) << 12 >> 12;
        let flags = part(words[3], 3, 8);
        Some(TensorMap {
            address: words[2],
            element: element(part(words[3], 0, 8) as i32)?,
            rank: part(words[3], 1, 8) as usize,
            dims: std::array::from_fn(|n| (words[4 + n / 2] >> (n % 2 * 32) & 0xffff_ffff) + 1),
            strides: [words[7], words[8], words[9], words[10]],
            boxed: std::array::from_fn(|n| part(words[11], n, 12) as u32),
            steps: std::array::from_fn(|n| part(words[12], n, 12) as u32),
            swizzle: SWIZZLES[part(words[3], 2, 8) as usize % 4],
            fills_nan: flags & 1 != 0,
            pixels: (flags & 2 != 0).then(|| Pixels {
                lower: std::array::from_fn(|n| signed(words[13], n)),
                upper: std::array::from_fn(|n| signed(words[14], n)),
                channels: part(words[15], 0, 20) as u32,
                count: part(words[15], 1, 20) as u32,
            }),
        })
    }

    /// Bytes of a row of a box.
    pub fn row_bytes(&self) -> u64 {
        let elements = self.pixels.map_or(self.boxed[0], |pixels| pixels.channels);
        u64::from(elements) * self.element.bytes
    }

    /// The row at a place, whose innermost coordinate is that of its first element.
    fn row(&self, at: &[i64; MOST_DIMS]) -> Row {
        let outer = 1..self.rank;
        if outer.clone().any(|n| at[n] < 0 || at[n] as u64 >= self.dims[n]) {
            return Row::default();
        }
        let start = outer.fold(self.address, |sum, n| sum.wrapping_add(at[n] as u64 * self.strides[n - 1]));
        let (size, count) = (self.element.bytes, (self.row_bytes() / self.element.bytes) as i64);
        let first = at[0].clamp(0, self.dims[0] as i64);
        let end = (at[0] + count).clamp(0, self.dims[0] as i64);
        let bytes = (end - first).max(0) as u64 * size;
        let skip = if bytes > 0 { (first - at[0]) as u64 * size } else { 0 };
        Row { address: start.wrapping_add(first as u64 * size), skip, bytes }
    }

    /// The rows of the box at these coordinates, as they follow each other in shared memory.
    pub fn rows(&self, at: &[i32]) -> Vec<Row> {
        let mut here = [0; MOST_DIMS];
        for (to, &from) in here.iter_mut().zip(at) {
            *to = i64::from(from);
        }
        let counts: [u64; MOST_DIMS] = std::array::from_fn(|n| match n {
            0 => 1,
            _ if n < self.rank => u64::from(self.boxed[n].div_ceil(self.steps[n])),
            _ => 1,
        });
        let total = counts.iter().product::<u64>();
        let place = |mut index: u64| {
            let mut row = here;
            for n in 1..self.rank {
                row[n] += (index % counts[n]) as i64 * i64::from(self.steps[n]);
                index /= counts[n];
            }
            self.row(&row)
        };
        (0..total).map(place).collect()
    }

    /// Whether a base pixel lies in the map's box of them.
    pub fn holds(&self, pixels: &Pixels, at: &[i32]) -> bool {
        (1..self.rank - 1).all(|n| {
            let end = self.dims[n] as i64 + i64::from(pixels.upper[n - 1]);
            at[n] >= pixels.lower[n - 1] && i64::from(at[n]) < end
        })
    }

    /// The pixels of an im2col map from a base pixel on, each moved by the offsets.
    pub fn column(&self, pixels: &Pixels, at: &[i32], offsets: &[u32]) -> Vec<Row> {
        let mut base = [0; MOST_DIMS];
        for (to, &from) in base.iter_mut().zip(at) {
            *to = i64::from(from);
        }
        let mut rows = Vec::new();
        for _ in 0..pixels.count {
            let mut here = base;
            for (n, &offset) in offsets.iter().enumerate() {
                here[n + 1] += i64::from(offset);
            }
            rows.push(self.row(&here));
            self.next_pixel(pixels, &mut base);
        }
        rows
    }

    /// On to the next base pixel of the box, or to the first one of the next image.
    fn next_pixel(&self, pixels: &Pixels, base: &mut [i64; MOST_DIMS]) {
        for (n, place) in base.iter_mut().enumerate().take(self.rank - 1).skip(1) {
            *place += i64::from(self.steps[n]);
            if *place < self.dims[n] as i64 + i64::from(pixels.upper[n - 1]) {
                return;
            }
            *place = i64::from(pixels.lower[n - 1]);
        }
        base[self.rank - 1] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 0x7000_0000_1000,
            element: element(6).unwrap(),
            rank: 3,
            dims: [100, 7, 1 << 32, 1, 1],
            strides: [208, 208 * 7, 0, 0],
            boxed: [64, 4, 2, 1, 1],
            steps: [1, 2, 1, 1, 1],
            swizzle: Swizzle::B128,
            fills_nan: true,
            pixels: Some(Pixels { lower: [-1, -7, 0], upper: [-1, 3, 0], channels: 64, count: 700 }),
        }
    }

    #[test]
    fn words_keep_every_field_and_any_change_shows() {
        let map = map();
        let words = map.words();
        assert_eq!(TensorMap::of(&words), Some(map));
        for bit in 0..1024 {
            let mut wrong = words;
            wrong[bit / 64] ^= 1 << (bit % 64);
            assert_eq!(TensorMap::of(&wrong), None, "bit {bit}");
        }
        assert_eq!(TensorMap::of(&[0; 16]), None);
    }

    #[test]
    fn rows_end_where_the_tensor_does() {
        let map = TensorMap { pixels: None, ..map() };
        let rows = map.rows(&[60, 5, -1]);
        assert_eq!(rows.len(), 4);
        // The first matrix lies before the tensor; of the other the second row passes its end.
        assert_eq!(rows[..2], [Row::default(); 2]);
        let start = map.address + 5 * 208 + 60 * 2;
        assert_eq!(rows[2], Row { address: start, skip: 0, bytes: 80 });
        assert_eq!(rows[3], Row::default());
        let left = map.rows(&[-10, 0, 0])[0];
        assert_eq!(left, Row { address: map.address, skip: 20, bytes: 108 });
        assert_eq!(map.rows(&[100, 0, 0])[0].bytes, 0);
        assert_eq!(map.rows(&[i32::MIN, 0, 0])[0].bytes, 0);
    }

    #[test]
    fn swizzles_exchange_parts_of_sixteen_bytes() {
        assert_eq!(Swizzle::None.place(0x3f4, 0), 0x3f4);
        assert_eq!(Swizzle::B128.place(0x384, 0), 0x3f4);
        assert_eq!(Swizzle::B64.place(0x384, 0), 0x3b4);
        assert_eq!(Swizzle::B32.place(0x384, 0), 0x394);
        assert_eq!(Swizzle::B128.place(0x384, 2), 0x3d4);
    }
}
