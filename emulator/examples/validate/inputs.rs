//! Inputs: for each class of operands, `COUNT` triples of 64-bit words.

/// Triples of a class: 16 blocks of 256 threads take one each.
pub const COUNT: usize = 4096;

/// A generator of its own for each use.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x2545_F491_4F6C_DD1D)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }
}

/// A floating-point format: bits of the exponent and of the fraction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Format {
    pub exponent: u32,
    pub fraction: u32,
}

pub const F16: Format = Format { exponent: 5, fraction: 10 };
pub const BF16: Format = Format { exponent: 8, fraction: 7 };
pub const F32: Format = Format { exponent: 8, fraction: 23 };
pub const F64: Format = Format { exponent: 11, fraction: 52 };

impl Format {
    pub fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The number with that exponent (clamped to normal ones), those fraction bits and that sign.
    pub fn number(self, exponent: i64, fraction: u64, negative: bool) -> u64 {
        let biased = (exponent + self.bias()).clamp(1, (1 << self.exponent) - 2) as u64;
        self.raw(biased, fraction, negative)
    }

    pub fn raw(self, biased: u64, fraction: u64, negative: bool) -> u64 {
        let sign = u64::from(negative) << (self.exponent + self.fraction);
        sign | biased << self.fraction | fraction & ((1 << self.fraction) - 1)
    }

    /// Zeros, subnormals, the ends of the range, infinity, NaNs, integers and halves; of both signs.
    fn specials(self) -> Vec<u64> {
        let top = (1 << self.exponent) - 1;
        let ones = (1u64 << self.fraction) - 1;
        let positive = [
            (0, 0),
            (0, 1),
            (0, ones),
            (0, ones / 2 + 1),
            (1, 0),
            (top - 1, ones),
            (top, 0),
            (top, ones / 2 + 1),
            (top, 1),
            // NaNs whose bits tell what becomes of them, the first one signalling.
            (top, ones / 3),
            (top, ones / 7 * 5),
        ];
        let mut values: Vec<u64> = positive.iter().map(|&(e, f)| self.raw(e, f, false)).collect();
        values.extend(
            [(0, 0), (0, 1), (0, ones), (-1, 0), (1, ones / 2 + 1), (5, 7 << (self.fraction - 6))]
                .map(|(e, f)| self.number(e, f, false)),
        );
        let sign = 1 << (self.exponent + self.fraction);
        values.iter().flat_map(|&value| [value, value | sign]).collect()
    }

    fn random(self, random: &mut Random, centre: i64) -> u64 {
        let (kind, bits) = (random.below(8), random.bits());
        let spread =
            |random: &mut Random, width: u64| centre + random.below(2 * width + 1) as i64 - width as i64;
        match kind {
            // Zero for float64.
            0 => bits & (1u64.wrapping_shl(1 + self.exponent + self.fraction) - 1),
            1 => self.raw(0, bits, bits >> 63 != 0),
            2 => self.number(spread(random, 3), 0, bits >> 63 != 0),
            3 => self.number(spread(random, 1), bits, bits >> 63 != 0),
            4 | 5 => self.number(spread(random, 6), bits, bits >> 63 != 0),
            6 => self.number(spread(random, u64::from(self.fraction) + 3), bits, bits >> 63 != 0),
            // Few bits set: ties of rounding.
            _ => self.number(spread(random, 4), bits & bits >> 7 & bits >> 13 | bits & 1, bits >> 63 != 0),
        }
    }

    /// Pairs of specials with a third in turn, then random numbers whose exponents lie near each other.
    fn triples(self, seed: u64) -> Vec<[u64; 3]> {
        let specials = self.specials();
        let mut random = Random::new(seed);
        let count = specials.len();
        let mut triples: Vec<[u64; 3]> = (0..count * count)
            .map(|n| {
                [specials[n % count], specials[n / count], specials[random.below(count as u64) as usize]]
            })
            .collect();
        while triples.len() < COUNT {
            let centre = if random.below(4) == 0 {
                random.below(2 * self.bias() as u64) as i64 - self.bias()
            } else {
                0
            };
            triples.push([0, 0, 0].map(|_: i32| self.random(&mut random, centre)));
        }
        triples
    }
}

/// Two numbers of a format in a word, the upper ones from a sequence of their own.
fn pairs(format: Format, seed: u64) -> Vec<[u64; 3]> {
    let (low, mut high) = (format.triples(seed), format.triples(seed + 1));
    high.reverse();
    let both = |n: usize, k: usize| low[n][k] | high[n][k] << 16;
    (0..COUNT).map(|n| [both(n, 0), both(n, 1), both(n, 2)]).collect()
}

fn integers() -> Vec<[u64; 3]> {
    let specials: [u64; 16] = [
        0,
        1,
        2,
        7,
        31,
        32,
        63,
        0x7f,
        0x80,
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        1 << 32,
        1 << 63,
        u64::MAX,
    ];
    let mut random = Random::new(5);
    let one = |random: &mut Random| match random.below(4) {
        0 => specials[random.below(16) as usize],
        1 => random.below(300).wrapping_sub(150),
        2 => random.bits() >> random.below(64),
        _ => random.bits(),
    };
    let fixed = (0..256).map(|n| [specials[n % 16], specials[n / 16], n as u64]).collect::<Vec<_>>();
    let rest = (256..COUNT).map(|_| [0, 0, 0].map(|_: i32| one(&mut random)));
    fixed.into_iter().chain(rest.collect::<Vec<_>>()).collect()
}

/// Every class by name.
pub fn classes() -> Vec<(String, Vec<u64>)> {
    [
        ("f32", F32.triples(1)),
        ("f64", F64.triples(2)),
        ("f16", pairs(F16, 3)),
        ("bf16", pairs(BF16, 7)),
        ("integers", integers()),
    ]
    .into_iter()
    .map(|(name, triples)| (name.to_string(), triples.concat()))
    .collect()
}
