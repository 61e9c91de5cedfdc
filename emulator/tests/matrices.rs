//! mma.sync, ldmatrix, stmatrix and movmatrix.

mod rig;

use rig::Arg::U64;
use rig::Rig;

const BODY: &str = "
.shared .align 16 .b8 mem[1024];
ld.param.u64 %rd0, [a];
ld.param.u64 %rd1, [b];
ld.param.u64 %rd2, [d];
mov.u32 %r0, %tid.x;
shl.b32 %r1, %r0, 4;
cvt.u64.u32 %rd3, %r1;
add.s64 %rd4, %rd0, %rd3;
ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%rd4];
mov.u32 %r6, mem;
add.u32 %r7, %r6, %r1;
st.shared.v4.u32 [%r7], {%r2,%r3,%r4,%r5};
setp.lt.u32 %p0, %r0, 16;
add.s64 %rd4, %rd1, %rd3;
@%p0 ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%rd4];
@%p0 st.shared.v4.u32 [%r7+512], {%r2,%r3,%r4,%r5};
bar.warp.sync -1;
and.b32 %r8, %r0, 15;
shl.b32 %r8, %r8, 5;
shr.u32 %r9, %r0, 4;
shl.b32 %r9, %r9, 4;
add.u32 %r8, %r8, %r9;
add.u32 %r8, %r8, %r6;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r8];
and.b32 %r8, %r0, 7;
shl.b32 %r8, %r8, 5;
shr.u32 %r9, %r0, 3;
and.b32 %r9, %r9, 1;
shl.b32 %r9, %r9, 4;
add.u32 %r8, %r8, %r9;
add.u32 %r8, %r8, %r6;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r14,%r15}, [%r8+512];
mov.f32 %f0, START;
mma.sync.aligned.m16n8k16.row.col.f32.TYPE.TYPE.f32 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, {%r14,%r15}, {%f0,%f0,%f0,%f0};
shr.u32 %r16, %r0, 2;
and.b32 %r17, %r0, 3;
mad.lo.u32 %r16, %r16, 4, %r17;
mul.wide.u32 %rd5, %r16, 8;
add.s64 %rd5, %rd2, %rd5;
st.global.v2.f32 [%rd5], {%f1,%f2};
st.global.v2.f32 [%rd5+256], {%f3,%f4};
ret;";

fn product(ty: &str, start: f32, a: &[u16], b: &[u16]) -> Vec<f32> {
    let text = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)\n{{\n\
         .reg .b64 %rd<8>;\n.reg .b32 %r<20>;\n.reg .f32 %f<5>;\n.reg .pred %p<1>;\n{}\n}}\n",
        BODY.replace("TYPE", ty).replace("START", &format!("0f{:08X}", start.to_bits()))
    );
    let rig = Rig::text(&text, 80);
    let pack = |x: &[u16]| x.chunks(2).map(|p| u32::from(p[0]) | u32::from(p[1]) << 16).collect::<Vec<u32>>();
    let (pa, pb, d) = (rig.put(&pack(a)), rig.put(&pack(b)), rig.empty(512));
    rig.launch("k", 1, 32, 0, &[U64(pa), U64(pb), U64(d)]);
    rig.get(d, 128)
}

/// Small integers as bfloat16.
fn bf16(x: i32) -> u16 {
    ((x as f32).to_bits() >> 16) as u16
}

#[test]
fn product_of_small_integers_is_exact() {
    let a: Vec<i32> = (0..256).map(|i| i * 7 % 13 - 6).collect();
    let b: Vec<i32> = (0..128).map(|i| i * 5 % 11 - 5).collect();
    let narrow = |x: &[i32]| x.iter().map(|&x| bf16(x)).collect::<Vec<u16>>();
    let got = product("bf16", 3.0, &narrow(&a), &narrow(&b));
    for row in 0..16 {
        for column in 0..8 {
            let want: i32 = (0..16).map(|k| a[row * 16 + k] * b[column * 16 + k]).sum();
            assert_eq!(got[row * 8 + column], (want + 3) as f32, "{row} {column}");
        }
    }
}

/// The ladder that was measured on an H200 for wgmma.
#[test]
fn sums_are_truncated_two_bits_below_the_significand() {
    let one = |addend: f32, factor: u16| {
        let mut a = vec![0u16; 256];
        let mut b = vec![0u16; 128];
        (a[0], b[0]) = (0x3c00, factor);
        product("f16", addend, &a, &b)[0]
    };
    // 2^-23 * 1.5 and 2^-24 * 1.5 beside 1, as float16 factors times one.
    assert_eq!(one(1.5 * 2f32.powi(-23), 0x3c00), 1.0 + 2f32.powi(-23));
    assert_eq!(one(1.5 * 2f32.powi(-24), 0x3c00), 1.0);
    assert_eq!(one(-(2f32.powi(-25)), 0x3c00), 1.0 - 2f32.powi(-24));
    assert_eq!(one(-(2f32.powi(-26)), 0x3c00), 1.0);
    assert_eq!(one(0.0, 0x0001), 2f32.powi(-24));
    assert!(one(0.0, 0x7c00).is_infinite());
}

/// How a form's factors are written: bits of an element, and a small integer as one.
struct Factor {
    bits: usize,
    make: fn(i32) -> u64,
}

const HALF: Factor = Factor { bits: 16, make: |x| u64::from(half(x)) };
const BRAIN: Factor = Factor { bits: 16, make: |x| u64::from(bf16(x)) };
const TF32: Factor = Factor { bits: 32, make: |x| u64::from((x as f32).to_bits()) };
const DOUBLE: Factor = Factor { bits: 64, make: |x| f64::from(x).to_bits() };
const BYTE: Factor = Factor { bits: 8, make: |x| u64::from(x as u8) };

/// Integers up to 2,048 as float16.
fn half(x: i32) -> u16 {
    let magnitude = x.unsigned_abs() as u16;
    if magnitude == 0 {
        return 0;
    }
    let exponent = magnitude.ilog2() as u16;
    let sign = if x < 0 { 0x8000 } else { 0 };
    sign | (exponent + 15) << 10 | (magnitude << (10 - exponent) & 0x3ff)
}

/// `mma.sync` of one warp whose lanes hold these registers.
fn multiply(form: &str, wide: bool, a: &[Vec<u64>], b: &[Vec<u64>], c: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let (ty, load) = if wide { ("b64", "mov.b64") } else { ("b32", "cvt.u32.u64") };
    let counts = [a.len(), b.len(), c.len()];
    let total: usize = counts.iter().sum();
    let list = |from: usize, count: usize| {
        let names: Vec<String> = (from..from + count).map(|n| format!("%v{n}")).collect();
        format!("{{{}}}", names.join(","))
    };
    let mut text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n\
         .reg .{ty} %v<{}>;\n.reg .b64 %x, %in, %out;\n.reg .b32 %t;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         mov.u32 %t, %tid.x;\nmul.wide.u32 %x, %t, 8;\nadd.u64 %in, %in, %x;\nadd.u64 %out, %out, %x;\n",
        total + counts[2]
    );
    for n in 0..total {
        text += &format!("ld.global.u64 %x, [%in+{}];\n{load} %v{n}, %x;\n", 256 * n);
    }
    let sources = [list(0, counts[0]), list(counts[0], counts[1]), list(counts[0] + counts[1], counts[2])];
    text += &format!("mma.sync.aligned.{form} {}, {};\n", list(total, counts[2]), sources.join(", "));
    for n in 0..counts[2] {
        let back = if wide { "mov.b64" } else { "cvt.u64.u32" };
        text += &format!("{back} %x, %v{};\nst.global.u64 [%out+{}], %x;\n", total + n, 256 * n);
    }
    let rig = Rig::text(&(text + "ret;\n}\n"), 90);
    let (given, out) = (rig.put(&[a, b, c].concat().concat()), rig.empty(256 * counts[2]));
    rig.launch("k", 1, 32, 0, &[U64(given), U64(out)]);
    rig.get::<u64>(out, 32 * counts[2]).chunks(32).map(<[u64]>::to_vec).collect()
}

/// Registers of A (or of B, whose columns stand for rows): element k of a row lies in lane 4 row + k / packed % 4.
fn fragment(factor: &Factor, rows: usize, depth: usize, at: impl Fn(usize, usize) -> i32) -> Vec<Vec<u64>> {
    let packed = (32 / factor.bits).max(1);
    let mut registers = vec![vec![0u64; 32]; depth / packed / 4 * (rows / 8)];
    for row in 0..rows {
        for k in 0..depth {
            let register = k / (4 * packed) * (rows / 8) + row / 8;
            let lane = row % 8 * 4 + k / packed % 4;
            registers[register][lane] |= (factor.make)(at(row, k)) << (factor.bits * (k % packed));
        }
    }
    registers
}

#[test]
fn every_form_multiplies_the_elements_that_ptx_names() {
    let float = |x: i32| u64::from((x as f32).to_bits());
    let double = |x: i32| f64::from(x).to_bits();
    let plain = |x: i32| u64::from(x as u32);
    type Form<'a> = (&'a str, &'a Factor, &'a dyn Fn(i32) -> u64, (bool, bool));
    let forms: [Form<'_>; 17] = [
        ("m16n8k16.row.col.f32.f16.f16.f32", &HALF, &float, (true, true)),
        ("m16n8k8.row.col.f32.f16.f16.f32", &HALF, &float, (true, true)),
        ("m16n8k16.row.col.f32.bf16.bf16.f32", &BRAIN, &float, (true, true)),
        ("m16n8k8.row.col.f32.bf16.bf16.f32", &BRAIN, &float, (true, true)),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", &TF32, &float, (true, true)),
        ("m16n8k4.row.col.f32.tf32.tf32.f32", &TF32, &float, (true, true)),
        ("m8n8k4.row.col.f64.f64.f64.f64", &DOUBLE, &double, (true, true)),
        ("m16n8k4.row.col.f64.f64.f64.f64", &DOUBLE, &double, (true, true)),
        ("m16n8k8.row.col.f64.f64.f64.f64", &DOUBLE, &double, (true, true)),
        ("m16n8k16.row.col.f64.f64.f64.f64", &DOUBLE, &double, (true, true)),
        ("m16n8k32.row.col.s32.s8.s8.s32", &BYTE, &plain, (true, true)),
        ("m16n8k16.row.col.s32.s8.s8.s32", &BYTE, &plain, (true, true)),
        ("m8n8k16.row.col.s32.s8.s8.s32", &BYTE, &plain, (true, true)),
        ("m16n8k32.row.col.s32.u8.u8.s32", &BYTE, &plain, (false, false)),
        ("m16n8k16.row.col.s32.s8.u8.s32", &BYTE, &plain, (true, false)),
        ("m16n8k32.row.col.satfinite.s32.u8.s8.s32", &BYTE, &plain, (false, true)),
        ("m8n8k16.row.col.s32.u8.u8.s32", &BYTE, &plain, (false, false)),
    ];
    for (form, factor, sum, signed) in forms {
        let size = form.split('.').next().unwrap();
        let (rows, depth) = size[1..].split_once("n8k").unwrap();
        let (rows, depth): (usize, usize) = (rows.parse().unwrap(), depth.parse().unwrap());
        let number = |n: usize, signed: bool| (n * 7 % 13) as i32 - if signed { 6 } else { 0 };
        let a = |row: usize, k: usize| number(row * 31 + k, signed.0);
        let b = |column: usize, k: usize| number(column * 17 + k * 3, signed.1);
        let c = |row: usize, column: usize| (row * 8 + column) as i32 - 50;
        // Sums lie in lane 4 row + column / 2.
        let mut addends = vec![vec![0; 32]; rows / 4];
        for row in 0..rows {
            for column in 0..8 {
                addends[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2] = sum(c(row, column));
            }
        }
        let (fa, fb) = (fragment(factor, rows, depth, a), fragment(factor, 8, depth, b));
        let got = multiply(form, factor.bits == 64, &fa, &fb, &addends);
        for row in 0..rows {
            for column in 0..8 {
                let want: i32 = (0..depth).map(|k| a(row, k) * b(column, k)).sum();
                let found = got[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2];
                assert_eq!(found, sum(want + c(row, column)), "{form} {row} {column}");
            }
        }
    }
}

#[test]
fn float16_sums_come_in_pairs() {
    for (size, depth) in [("m16n8k16", 16), ("m16n8k8", 8)] {
        let (a, b) = (
            |row: usize, k: usize| (row + k) as i32 % 5 - 2,
            |column: usize, k: usize| (column * k) as i32 % 7,
        );
        let pairs = |at: &dyn Fn(usize, usize) -> i32| {
            let pair = |n: usize, lane: usize| {
                let (row, column) = (lane / 4 + 8 * n, lane % 4 * 2);
                u64::from(half(at(row, column))) | u64::from(half(at(row, column + 1))) << 16
            };
            (0..2).map(|n| (0..32).map(|lane| pair(n, lane)).collect()).collect::<Vec<Vec<u64>>>()
        };
        let c = |row: usize, column: usize| (row * column) as i32;
        let form = format!("{size}.row.col.f16.f16.f16.f16");
        let got =
            multiply(&form, false, &fragment(&HALF, 16, depth, a), &fragment(&HALF, 8, depth, b), &pairs(&c));
        let want = |row: usize, column: usize| {
            c(row, column) + (0..depth).map(|k| a(row, k) * b(column, k)).sum::<i32>()
        };
        assert_eq!(got, pairs(&want));
    }
}

/// 8 x 8 matrices of 16 bits that go through shared memory and back, and what is left there.
#[test]
fn matrices_are_stored_and_transposed() {
    let run = |store: &str, load: &str| {
        let text = format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .b64 %x, %out;\n\
             .reg .b32 %r<12>;\n.shared .align 16 .b8 mem[512];\nld.param.u64 %out, [out];\nmov.u32 %r0, %tid.x;\n\
             mul.wide.u32 %x, %r0, 16;\nadd.u64 %out, %out, %x;\nmov.u32 %r1, mem;\nshl.b32 %r2, %r0, 4;\nadd.u32 %r1, %r1, %r2;\n\
             mad.lo.u32 %r3, %r0, 0x20002, 0x10000;\nadd.u32 %r4, %r3, 0x400040;\nadd.u32 %r5, %r4, 0x400040;\nadd.u32 %r6, %r5, 0x400040;\n\
             {store}\nbar.warp.sync -1;\n{load}\nst.global.v4.u32 [%out], {{%r7, %r8, %r9, %r10}};\nret;\n}}\n"
        );
        let rig = Rig::text(&text, 90);
        let out = rig.empty(512);
        rig.launch("k", 1, 32, 0, &[U64(out)]);
        rig.get::<u32>(out, 128)
    };
    // Matrix n holds 64 n + 8 row + column; lane l of register n holds 64 n + 2 l and the next.
    let plain: Vec<u32> = (0..128).map(|n| (n % 4 * 64 + n / 4 * 2) * 0x1_0001 + 0x1_0000).collect();
    let turned: Vec<u32> = (0..128)
        .map(|n| {
            let (base, lane) = (n % 4 * 64, n / 4);
            let at = |k: u32| base + (lane % 4 * 2 + k) * 8 + lane / 4;
            at(0) | at(1) << 16
        })
        .collect();
    let (store, load) = ("stmatrix.sync.aligned.m8n8.x4", "ldmatrix.sync.aligned.m8n8.x4");
    let (from, to) = ("[%r1], {%r3, %r4, %r5, %r6};", "{%r7, %r8, %r9, %r10}, [%r1];");
    for (transposed, back, want) in
        [("", "", &plain), (".trans", "", &turned), ("", ".trans", &turned), (".trans", ".trans", &plain)]
    {
        let got =
            run(&format!("{store}{transposed}.shared.b16 {from}"), &format!("{load}{back}.shared.b16 {to}"));
        assert_eq!(&got, want, "{transposed} {back}");
    }
    let got = run(
        &format!("cvt.u64.u32 %x, %r1;\ncvta.shared.u64 %x, %x;\n{store}.b16 [%x], {{%r3, %r4, %r5, %r6}};"),
        "ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r1];",
    );
    // Row l of the matrices, one after the other, as words.
    let rows: Vec<u32> = (0..128).map(|word| 2 * word * 0x1_0001 + 0x1_0000).collect();
    assert_eq!(got, rows);
    let moves = (7..11).map(|n| format!("movmatrix.sync.aligned.m8n8.trans.b16 %r{n}, %r{};\n", n - 4));
    assert_eq!(run("", &moves.collect::<String>()), turned);
}

/// Clocks of 64 multiply-adds of each thread of a warp, then of 64 products.
fn clocks(cc: u32, product: &str, ratio: Option<u32>) -> [u32; 2] {
    let text = format!(
        ".version 7.0\n.target sm_{cc}\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .b64 %out;\n\
         .reg .b32 %r<4>, %a;\n.reg .f32 %f<8>;\nld.param.u64 %out, [out];\nmov.u32 %a, 0x38003400;\n\
         mov.f32 %f0, 0f3F000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\n\
         mov.u32 %r0, %clock;\n{}mov.u32 %r1, %clock;\n{}mov.u32 %r2, %clock;\n\
         sub.u32 %r0, %r1, %r0;\nsub.u32 %r1, %r2, %r1;\nst.global.u32 [%out], %r0;\nst.global.u32 [%out+4], %r1;\nret;\n}}\n",
        "fma.rn.f32 %f0, %f0, %f1, %f2;\n".repeat(64),
        format!("mma.sync.aligned.{product}, {{%f0, %f1, %f2, %f3}};\n").repeat(64),
    );
    let mut rig = Rig::text(&text, cc);
    rig.target.tensor = ratio.unwrap_or(rig.target.tensor);
    let out = rig.empty(8);
    rig.launch("k", 1, 32, 0, &[U64(out)]);
    [rig.get(out, 2)[0], rig.get(out, 2)[1]]
}

#[test]
fn products_take_as_long_as_the_card_says() {
    let narrow = "m16n8k8.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%a, %a}, {%a}";
    let wide = "m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%a, %a, %a, %a}, {%a, %a}";
    // A product is 1024 multiply-adds or 2048; a warp does 32 plain ones in a clock. Reading the clock takes one more.
    for (cc, product, ratio, each) in
        [(75, narrow, None, 4), (80, wide, None, 4), (80, wide, Some(2), 32), (80, wide, Some(64), 1)]
    {
        assert_eq!(clocks(cc, product, ratio), [64 + 1, 64 * each + 1], "{cc} {ratio:?} {product}");
    }
}
