//! mma.sync with fragments of random numbers; each block multiplies one pair of tiles.

use super::inputs::{BF16, F16, F32, F64, Format, Random};
use super::{Promise, Test};

const TILES: usize = 64;

/// A form of mma.sync: its words, the format of the factors (none for integers), that of the sums, registers of
/// A, B and C.
struct Shape {
    name: &'static str,
    factor: Option<Format>,
    sum: Format,
    registers: [usize; 3],
}

const fn shape(name: &'static str, factor: Option<Format>, sum: Format, registers: [usize; 3]) -> Shape {
    Shape { name, factor, sum, registers }
}

const SHAPES: &[Shape] = &[
    shape("m16n8k16.row.col.f32.f16.f16.f32", Some(F16), F32, [4, 2, 4]),
    shape("m16n8k8.row.col.f32.f16.f16.f32", Some(F16), F32, [2, 1, 4]),
    shape("m16n8k16.row.col.f16.f16.f16.f16", Some(F16), F16, [4, 2, 2]),
    shape("m16n8k8.row.col.f16.f16.f16.f16", Some(F16), F16, [2, 1, 2]),
    shape("m16n8k16.row.col.f32.bf16.bf16.f32", Some(BF16), F32, [4, 2, 4]),
    shape("m16n8k8.row.col.f32.bf16.bf16.f32", Some(BF16), F32, [2, 1, 4]),
    shape("m16n8k8.row.col.f32.tf32.tf32.f32", Some(F32), F32, [4, 2, 4]),
    shape("m16n8k4.row.col.f32.tf32.tf32.f32", Some(F32), F32, [2, 1, 4]),
    shape("m8n8k4.row.col.f64.f64.f64.f64", Some(F64), F64, [1, 1, 2]),
    shape("m16n8k4.row.col.f64.f64.f64.f64", Some(F64), F64, [2, 1, 4]),
    shape("m16n8k8.row.col.f64.f64.f64.f64", Some(F64), F64, [4, 2, 4]),
    shape("m16n8k16.row.col.f64.f64.f64.f64", Some(F64), F64, [8, 4, 4]),
    shape("m16n8k32.row.col.s32.s8.s8.s32", None, F32, [4, 2, 4]),
    shape("m16n8k16.row.col.s32.s8.s8.s32", None, F32, [2, 1, 4]),
    shape("m8n8k16.row.col.s32.s8.s8.s32", None, F32, [1, 1, 2]),
    shape("m16n8k32.row.col.s32.u8.u8.s32", None, F32, [4, 2, 4]),
    shape("m16n8k16.row.col.s32.s8.u8.s32", None, F32, [2, 1, 4]),
    shape("m16n8k32.row.col.satfinite.s32.u8.s8.s32", None, F32, [4, 2, 4]),
];

/// What the numbers are like.
const KINDS: &[&str] = &[
    "near",
    "spread",
    "large addend",
    "cancelling",
    "subnormal",
    "zeros",
    "any finite",
    "any bits",
    "low bits",
];

fn kinds(shape: &Shape) -> &'static [&'static str] {
    match shape.factor {
        None => &KINDS[7..8],
        Some(F32) => KINDS,
        _ => &KINDS[..8],
    }
}

fn index(shape: usize, kind: &str) -> String {
    format!("mma{shape}_{}", kind.replace(' ', "_"))
}

fn factor(format: Format, kind: &str, random: &mut Random) -> u64 {
    let bits = random.bits();
    let negative = bits >> 63 != 0;
    let near = |random: &mut Random, width: u64| random.below(2 * width + 1) as i64 - width as i64;
    let top = (1 << format.exponent) - 1;
    match kind {
        "near" | "large addend" => format.number(near(random, 2), bits, negative),
        "spread" | "low bits" => format.number(near(random, 12), bits, negative),
        "cancelling" => format.number(near(random, 3), bits & !0 << (format.fraction - 3), negative),
        "zeros" if random.below(8) == 0 => format.number(0, 0, negative),
        "zeros" => format.raw(0, 0, negative),
        "subnormal" if random.below(2) == 0 => format.raw(0, bits, negative),
        "subnormal" => format.number(near(random, format.bias() as u64), bits, negative),
        "any finite" => format.raw(random.below(top), bits, negative),
        _ => format.raw(
            if random.below(12) == 0 { top } else { random.below(top) },
            bits & !0 << random.below(11),
            negative,
        ),
    }
}

fn addend(sum: Format, kind: &str, random: &mut Random) -> u64 {
    let bits = random.bits();
    let width = |random: &mut Random, width: u64| random.below(2 * width + 1) as i64 - width as i64;
    match kind {
        "large addend" => sum.number(8 + width(random, 2), bits, bits >> 63 != 0),
        "subnormal" => sum.raw(0, bits, bits >> 63 != 0),
        "any bits" | "any finite" | "zeros" => factor(sum, kind, random),
        _ if random.below(4) == 0 => 0,
        _ => sum.number(width(random, 6), bits, bits >> 63 != 0),
    }
}

fn fragment(shape: &Shape, kind: &str, random: &mut Random) -> u64 {
    let Some(format) = shape.factor else { return random.bits() & 0xffff_ffff };
    match format {
        F16 | BF16 => factor(format, kind, random) | factor(format, kind, random) << 16,
        F32 if kind != "low bits" => factor(format, kind, random) & 0xffff_e000,
        _ => factor(format, kind, random),
    }
}

/// Registers of A, B and C lane after lane, one 64-bit word each.
pub fn inputs() -> Vec<(String, Vec<u64>)> {
    let mut all = Vec::new();
    for (n, shape) in SHAPES.iter().enumerate() {
        for (m, kind) in kinds(shape).iter().enumerate() {
            let mut random = Random::new(1000 + 10 * n as u64 + m as u64);
            let [a, b, c] = shape.registers;
            let mut words = Vec::new();
            for _ in 0..TILES * 32 {
                words.extend((0..a + b).map(|_| fragment(shape, kind, &mut random)));
                words.extend((0..c).map(|_| match (shape.factor, shape.sum) {
                    (None, _) => random.bits() & 0xffff_ffff,
                    (_, F16) => addend(F16, kind, &mut random) | addend(F16, kind, &mut random) << 16,
                    (_, sum) => addend(sum, kind, &mut random),
                }));
            }
            all.push((index(n, kind), words));
        }
    }
    all
}

fn body(shape: &Shape) -> String {
    let [a, b, c] = shape.registers;
    let (wide, register) = if shape.sum == F64 { (true, "%t") } else { (false, "%r") };
    let list = |from: usize, count: usize| {
        let names: Vec<String> = (from..from + count).map(|n| format!("{register}{n}")).collect();
        format!("{{{}}}", names.join(","))
    };
    let count = a + b + c;
    let mut text = format!(
        ".reg .b64 %in, %out, %at, %x<16>;\n.reg .f64 %t<20>;\n.reg .b32 %r<20>, %id;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         mov.u32 %id, %ctaid.x;\nshl.b32 %id, %id, 5;\nmov.u32 %r0, %tid.x;\nadd.u32 %id, %id, %r0;\n\
         mul.wide.u32 %at, %id, {};\nadd.s64 %in, %in, %at;\nmul.wide.u32 %at, %id, {};\nadd.s64 %out, %out, %at;\n",
        8 * count,
        8 * c
    );
    for n in 0..count {
        text += &format!("ld.global.u64 %x{n}, [%in+{}];\n", 8 * n);
        text +=
            &if wide { format!("mov.b64 %t{n}, %x{n};\n") } else { format!("cvt.u32.u64 %r{n}, %x{n};\n") };
    }
    let outputs = list(count, c);
    text += &format!(
        "mma.sync.aligned.{} {outputs}, {}, {}, {};\n",
        shape.name,
        list(0, a),
        list(a, b),
        list(a + b, c)
    );
    for n in 0..c {
        let from = count + n;
        text +=
            &if wide { format!("mov.b64 %x0, %t{from};\n") } else { format!("cvt.u64.u32 %x0, %r{from};\n") };
        text += &format!("st.global.u64 [%out+{}], %x0;\n", 8 * n);
    }
    text + "ret;"
}

pub fn tests() -> Vec<Test> {
    let tests = SHAPES.iter().enumerate().flat_map(|(n, shape)| {
        kinds(shape).iter().map(move |kind| Test {
            name: format!("mma.sync.aligned.{} of {kind}", shape.name),
            body: body(shape),
            promise: if shape.factor.is_none() || shape.sum == F64 {
                Promise::Exact
            } else {
                Promise::Undocumented
            },
            inputs: index(n, kind),
            blocks: TILES as u32,
            threads: 32,
            outputs: TILES * 32 * shape.registers[2],
        })
    });
    tests.collect()
}
