//! wgmma on numbers that the kernels make themselves.

use crate::Test;

/// Which bits of the hashed words stay, and which are set.
#[derive(Clone, Copy)]
struct Bits(&'static str, u32, u32);

const RAW: Bits = Bits("any bits", u32::MAX, 0);

/// Of pairs of float16.
const HALVES: [Bits; 4] = [
    Bits("below 2", 0xbfff_bfff, 0),
    Bits("1 to 2", 0x83ff_83ff, 0x3c00_3c00),
    Bits("mostly subnormal", 0x87ff_87ff, 0),
    Bits("large", 0x87ff_87ff, 0x7000_7000),
];
/// Of pairs of bfloat16.
const BRAINS: [Bits; 4] = [
    Bits("below 2", 0xbfff_bfff, 0),
    Bits("2^-15 to 2", 0x87ff_87ff, 0x3800_3800),
    Bits("mostly subnormal", 0x80ff_80ff, 0),
    Bits("near the end", 0x83ff_83ff, 0x5c00_5c00),
];
/// Of tf32, with bits beyond its significand.
const WORDS: [Bits; 4] = [
    Bits("below 2", 0xbfff_ffff, 0),
    Bits("2^-15 to 2", 0x87ff_ffff, 0x3800_0000),
    Bits("mostly subnormal", 0x80ff_ffff, 0),
    Bits("near the end", 0x83ff_ffff, 0x5c00_0000),
];
/// Of float32 addends.
const ADDENDS: [Bits; 4] = [
    Bits("any", u32::MAX, 0),
    Bits("2^-15 to 2", 0x87ff_ffff, 0x3800_0000),
    Bits("2 to 2^17", 0x87ff_ffff, 0x4000_0000),
    Bits("subnormal", 0x807f_ffff, 0),
];

/// A product: its opcode's types, how its operands lie, and the numbers.
#[derive(Clone)]
struct Case {
    name: String,
    columns: usize,
    depth: usize,
    types: &'static str,
    /// Descriptors of A and B but for their start; A's is None where it is in registers.
    a: Option<u64>,
    b: u64,
    /// Bytes from the start of shared memory.
    starts: [u32; 2],
    /// What stands after scale-d.
    flags: &'static str,
    elements: Bits,
    addends: Option<Bits>,
    /// Every 64th word is any bits.
    wild: bool,
    repeats: usize,
}

const AREA: u32 = 65536;

fn descriptor(swizzle: u64, leading: u64, stride: u64, base: u64) -> u64 {
    swizzle << 62 | base << 49 | (stride >> 4) << 32 | (leading >> 4) << 16
}

/// %r`to` from %r`from`: a hash of it.
fn hash(to: u32, from: u32, seed: u32) -> String {
    format!(
        "mad.lo.u32 %r{to}, %r{from}, 0x9E3779B9, {seed};\nshr.u32 %r30, %r{to}, 16;\nxor.b32 %r{to}, %r{to}, %r30;\n\
         mul.lo.u32 %r{to}, %r{to}, 0x85ebca6b;\nshr.u32 %r30, %r{to}, 13;\nxor.b32 %r{to}, %r{to}, %r30;\n\
         mul.lo.u32 %r{to}, %r{to}, 0xc2b2ae35;\nshr.u32 %r30, %r{to}, 16;\nxor.b32 %r{to}, %r{to}, %r30;\n"
    )
}

impl Case {
    fn registers(&self) -> usize {
        self.columns / if self.types.starts_with("f16") { 4 } else { 2 }
    }

    /// A hashed word of these bits in %r`to`.
    fn word(&self, to: u32, from: u32, seed: u32, bits: Bits) -> String {
        let mut text = hash(to, from, seed);
        let masked =
            |to: u32| format!("and.b32 %r{to}, %r{to}, {};\nor.b32 %r{to}, %r{to}, {};\n", bits.1, bits.2);
        if self.wild {
            text += &hash(31, to, 7);
            text += &format!("and.b32 %r31, %r31, 63;\nsetp.eq.u32 %p1, %r31, 0;\nmov.u32 %r29, %r{to};\n");
            text += &masked(to);
            text += &format!("selp.b32 %r{to}, %r29, %r{to}, %p1;\n");
        } else {
            text += &masked(to);
        }
        text
    }

    fn test(&self) -> Test {
        let count = self.registers();
        let sums = |prefix: &str| (0..count).map(|n| format!("%{prefix}{n}")).collect::<Vec<_>>().join(",");
        let mut body = format!(
            ".reg .b64 %rd<8>;\n.reg .b32 %r<40>;\n.reg .b32 %s<{count}>;\n.reg .b32 %a<4>;\n.reg .pred %p<4>;\n\
             ld.param.u64 %rd0, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, mem;\nmov.u32 %r2, %r0;\nFILL:\n"
        );
        body += &self.word(3, 2, 1, self.elements);
        body += &format!(
            "shl.b32 %r4, %r2, 2;\nadd.u32 %r4, %r4, %r1;\nst.shared.u32 [%r4], %r3;\nadd.u32 %r2, %r2, 128;\n\
             setp.lt.u32 %p0, %r2, {};\n@%p0 bra FILL;\n",
            AREA / 4
        );
        body += &format!("mad.wide.u32 %rd3, %r0, {}, %rd0;\n", 4 * count);
        if let Some(bits) = self.addends {
            // By way of memory, which makes a loop of it.
            body += "mov.u32 %r2, 0;\nmov.u64 %rd4, %rd3;\nADD:\nmad.lo.u32 %r5, %r0, 128, %r2;\n";
            body += &self.word(6, 5, 99, bits);
            body += &format!(
                "st.global.u32 [%rd4], %r6;\nadd.s64 %rd4, %rd4, 4;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p0, %r2, {count};\n@%p0 bra ADD;\n"
            );
        }
        for n in 0..count {
            body += &match self.addends {
                Some(_) => format!("ld.global.b32 %s{n}, [%rd3+{}];\n", 4 * n),
                None => format!("mov.b32 %s{n}, 0x7fc12345;\n"),
            };
        }
        for n in 0..4 {
            body += &format!("mad.lo.u32 %r5, %r0, 4, {n};\n");
            body += &self.word(6, 5, 1234, self.elements);
            body += &format!("mov.b32 %a{n}, %r6;\n");
        }
        for (n, word) in [(1, self.a.unwrap_or(0)), (2, self.b)] {
            body += &format!(
                "add.u32 %r7, %r1, {};\nshr.u32 %r7, %r7, 4;\ncvt.u64.u32 %rd{n}, %r7;\nor.b64 %rd{n}, %rd{n}, 0x{word:x};\n",
                self.starts[n - 1]
            );
        }
        let adds = if self.addends.is_some() { 1 } else { 0 };
        body += &format!("setp.ne.b32 %p2, {adds}, 0;\nsetp.eq.b32 %p3, 0, 0;\n");
        body += "fence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n";
        let a = if self.a.is_some() { "%rd1" } else { "{%a0,%a1,%a2,%a3}" };
        for n in 0..self.repeats {
            let adds = if n == 0 { "%p2" } else { "%p3" };
            let (types, columns, depth, flags) = (self.types, self.columns, self.depth, self.flags);
            // .satfinite stands between shape and types.
            let (middle, types) =
                types.split_once('!').map_or(("", types), |(middle, types)| (middle, types));
            body += &format!(
                "wgmma.mma_async.sync.aligned.m64n{columns}k{depth}{middle}.{types} {{{}}}, {a}, %rd2, {adds}{flags};\n",
                sums("s")
            );
        }
        body += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
        for n in 0..count {
            body += &format!("st.global.b32 [%rd3+{}], %s{n};\n", 4 * n);
        }
        body += "ret;";
        Test { name: self.name.clone(), body, threads: 128, shared: AREA, output: 512 * count, map: None }
    }
}

/// Both operands along the sum, without swizzle: cores of 128 bytes, rows of cores after each other.
fn plain(types: &'static str, depth: usize, flags: &'static str, elements: Bits) -> Case {
    Case {
        name: format!("{types} {}", elements.0),
        columns: 64,
        depth,
        types,
        a: Some(descriptor(0, 128, 256, 0)),
        b: descriptor(0, 128, 256, 0),
        starts: [0, 16384],
        flags,
        elements,
        addends: None,
        wild: false,
        repeats: 1,
    }
}

const HALF: &str = ", 1, 1, 0, 0";
const WORD: &str = ", 1, 1";

/// Every kind of number, with every kind of addend.
fn numbers(out: &mut Vec<Case>) {
    let kinds = [
        ("f32.f16.f16", 16, HALF, HALVES),
        ("f32.bf16.bf16", 16, HALF, BRAINS),
        ("f32.tf32.tf32", 8, WORD, WORDS),
    ];
    for (types, depth, flags, ranges) in kinds {
        out.push(plain(types, depth, flags, RAW));
        for elements in ranges {
            let case = plain(types, depth, flags, elements);
            out.push(case.clone());
            for addends in ADDENDS {
                let name = format!("{} on {}", case.name, addends.0);
                out.push(Case { name, addends: Some(addends), ..case.clone() });
            }
            let name = format!("{} some wild, chained", case.name);
            out.push(Case { name, wild: true, repeats: 3, addends: Some(ADDENDS[1]), ..case });
        }
    }
    for elements in HALVES {
        let case = plain("f16.f16.f16", 16, HALF, elements);
        out.push(case.clone());
        for addends in [HALVES[0], HALVES[3], RAW] {
            let name = format!("{} on {}", case.name, addends.0);
            out.push(Case { name, addends: Some(addends), repeats: 2, ..case.clone() });
        }
    }
    for types in
        ["s32.s8.s8", "s32.s8.u8", "s32.u8.s8", "s32.u8.u8", ".satfinite!s32.s8.s8", ".satfinite!s32.u8.u8"]
    {
        let case = plain(types, 32, "", RAW);
        out.push(Case { addends: Some(RAW), repeats: 2, ..case });
    }
}

/// A in registers, other signs, other numbers of columns.
fn forms(out: &mut Vec<Case>) {
    for (types, depth, flags) in [
        ("f32.f16.f16", 16, ", 1, 1, 0"),
        ("f32.bf16.bf16", 16, ", -1, 1, 0"),
        ("f32.tf32.tf32", 8, ", 1, -1"),
        ("f16.f16.f16", 16, ", 1, 1, 0"),
        ("s32.s8.u8", 32, ""),
    ] {
        let elements = match types {
            "f32.tf32.tf32" => WORDS[1],
            "f32.bf16.bf16" => BRAINS[1],
            "s32.s8.u8" => RAW,
            _ => HALVES[0],
        };
        let case = plain(types, depth, flags, elements);
        out.push(Case { name: format!("{} A in registers{flags}", case.name), a: None, ..case });
    }
    for flags in [", -1, 1, 0, 0", ", 1, -1, 0, 0", ", -1, -1, 0, 0"] {
        let case = plain("f32.f16.f16", 16, flags, HALVES[0]);
        out.push(Case { name: format!("{}{flags}", case.name), addends: Some(ADDENDS[1]), ..case });
    }
    for columns in [8, 24, 96, 128, 192, 256] {
        let case = plain("f32.f16.f16", 16, HALF, HALVES[0]);
        out.push(Case { name: format!("{columns} columns"), columns, ..case });
    }
}

/// How operands may lie in shared memory.
fn layouts(out: &mut Vec<Case>) {
    let case = plain("f32.f16.f16", 16, HALF, HALVES[0]);
    let names = ["none", "128", "64", "32"];
    for swizzle in 0..4u64 {
        let span = [16, 128, 64, 32][swizzle as usize];
        for (leading, stride, starts, base) in [
            (16, 8 * span, [0, 32768], 0),
            (16, 8 * span, [32 % span as u32, 32768 + 64 % span as u32], 0),
            (16, 8 * span + 1024, [1024, 20480], 0),
            (16, 1024, [128 * 3, 32768 + 128 * 5], 0),
            (16, 1024, [128 * 3, 32768 + 128 * 3], 3),
            (2048, 4096, [512, 4096], 0),
        ] {
            let word = descriptor(swizzle, leading, stride, base);
            let name = format!(
                "swizzle {}, along the sum, strides {leading} {stride}, starts {starts:?}, base {base}",
                names[swizzle as usize]
            );
            out.push(Case { name, a: Some(word), b: word, starts, ..case.clone() });
        }
        for (leading, stride, starts, base) in [
            (2048, 8 * span.max(128), [0, 32768], 0),
            (8 * span.max(128), 4096, [1024, 20480], 0),
            (2048, 1024, [128 * 3, 32768 + 128 * 3], 3),
        ] {
            for flags in [", 1, 1, 1, 0", ", 1, 1, 0, 1", ", 1, 1, 1, 1"] {
                let across = descriptor(swizzle, leading, stride, base);
                let along = descriptor(0, 128, 256, 0);
                let a = if flags.ends_with("1, 0") || flags.ends_with("1, 1") { across } else { along };
                let b = if flags.ends_with('1') { across } else { along };
                let name = format!(
                    "swizzle {}, transposed{flags}, strides {leading} {stride}, starts {starts:?}, base {base}",
                    names[swizzle as usize]
                );
                out.push(Case {
                    name,
                    a: Some(if flags == ", 1, 1, 0, 1" { along } else { a }),
                    b,
                    starts,
                    flags,
                    ..case.clone()
                });
            }
        }
        let words = descriptor(swizzle, 128, 8 * span.max(32), 0);
        let tf32 = plain("f32.tf32.tf32", 8, WORD, WORDS[1]);
        out.push(Case {
            name: format!("tf32, swizzle {}", names[swizzle as usize]),
            a: Some(words),
            b: words,
            ..tf32
        });
    }
}

pub fn tests() -> Vec<Test> {
    let mut cases = Vec::new();
    numbers(&mut cases);
    forms(&mut cases);
    layouts(&mut cases);
    cases.iter().map(Case::test).collect()
}
