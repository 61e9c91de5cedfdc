//! Each family of instructions against values worked out by hand.

mod rig;

use rig::Arg::U64;
use rig::Rig;

/// Runs one thread. `%w0..`, `%x0..`, `%h0..` hold the inputs' low 32, 64 and 16 bits; the body leaves
/// its result in `%ow` (32 bits), `%ox` (64), `%oh` (16) or `%op` (a predicate).
fn run(body: &str, input: &[u64]) -> u64 {
    let mut text = String::from(
        ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n\
         .reg .b64 %x<8>, %in, %out, %ox, %t<8>, %sum;\n.reg .b32 %w<8>, %ow, %v<8>;\n.reg .b16 %h<8>, %oh, %g<8>;\n\
         .reg .pred %op, %p<4>;\n.reg .b32 %pw;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         mov.u64 %ox, 0;\nmov.u32 %ow, 0;\nmov.u16 %oh, 0;\nsetp.ne.u32 %op, %ow, 0;\n",
    );
    for n in 0..input.len() {
        text += &format!(
            "ld.global.u64 %x{n}, [%in+{}];\ncvt.u32.u64 %w{n}, %x{n};\ncvt.u16.u64 %h{n}, %x{n};\n",
            8 * n
        );
    }
    text += body;
    text += "\nselp.u32 %pw, 1, 0, %op;\ncvt.u64.u32 %sum, %pw;\nxor.b64 %ox, %ox, %sum;\ncvt.u64.u32 %sum, %ow;\n\
             xor.b64 %ox, %ox, %sum;\ncvt.u64.u16 %sum, %oh;\nxor.b64 %ox, %ox, %sum;\nst.global.u64 [%out], %ox;\nret;\n}\n";
    let rig = Rig::text(&text, 90);
    let mut padded = input.to_vec();
    padded.push(0);
    let (a, y) = (rig.put(&padded), rig.empty(8));
    let result = rig.try_launch("k", [1, 1, 1], [1, 1, 1], 0, &[U64(a), U64(y)]);
    result.unwrap_or_else(|fault| panic!("{body}: {fault}"));
    rig.get::<u64>(y, 1)[0]
}

#[track_caller]
fn table(cases: &[(&str, &[u64], u64)]) {
    for (body, input, want) in cases {
        let got = run(body, input);
        assert_eq!(got, *want, "{body} of {input:x?}: 0x{got:x} instead of 0x{want:x}");
    }
}

const fn f(x: f32) -> u64 {
    x.to_bits() as u64
}

const fn d(x: f64) -> u64 {
    x.to_bits()
}

const NAN: u64 = 0x7fff_ffff;

#[test]
fn integer_arithmetic() {
    table(&[
        ("add.s32 %ow, %w0, %w1;", &[0xffff_ffff, 2], 1),
        ("add.u64 %ox, %x0, -1;", &[0], u64::MAX),
        ("add.u16 %oh, %h0, %h1;", &[0xffff, 3], 2),
        ("add.sat.s32 %ow, %w0, %w1;", &[0x7fff_ffff, 1], 0x7fff_ffff),
        ("sub.s32 %ow, %w0, %w1;", &[1, 2], 0xffff_ffff),
        ("mul.lo.s32 %ow, %w0, %w1;", &[0x1_0001, 0x1_0001], 0x2_0001),
        ("mul.hi.u32 %ow, %w0, %w1;", &[0xffff_ffff, 0xffff_ffff], 0xffff_fffe),
        ("mul.hi.s32 %ow, %w0, %w1;", &[0xffff_ffff, 2], 0xffff_ffff),
        ("mul.hi.u64 %ox, %x0, %x1;", &[u64::MAX, u64::MAX], u64::MAX - 1),
        ("mul.wide.s32 %ox, %w0, %w1;", &[0xffff_ffff, 3], (-3i64) as u64),
        ("mul.wide.u32 %ox, %w0, %w1;", &[0xffff_ffff, 3], 0x2_ffff_fffd),
        ("mul.wide.u16 %ow, %h0, %h1;", &[0xffff, 0xffff], 0xfffe_0001),
        ("mad.lo.s32 %ow, %w0, %w1, %w2;", &[7, 6, 0xffff_ffff], 41),
        ("mad.wide.u32 %ox, %w0, %w1, %x2;", &[0xffff_ffff, 2, 5], 0x2_0000_0003),
        ("mad.hi.u32 %ow, %w0, %w1, %w2;", &[0x8000_0000, 4, 1], 3),
        ("div.u32 %ow, %w0, %w1;", &[100, 7], 14),
        ("div.s32 %ow, %w0, %w1;", &[(-7i32) as u32 as u64, 2], (-3i32) as u32 as u64),
        ("rem.s32 %ow, %w0, %w1;", &[(-7i32) as u32 as u64, 2], 0xffff_ffff),
        ("rem.u64 %ox, %x0, %x1;", &[1 << 40, 1000], (1 << 40) % 1000),
        ("abs.s32 %ow, %w0;", &[0x8000_0000], 0x8000_0000),
        ("neg.s64 %ox, %x0;", &[5], (-5i64) as u64),
        ("min.s32 %ow, %w0, %w1;", &[0xffff_ffff, 1], 0xffff_ffff),
        ("min.u32 %ow, %w0, %w1;", &[0xffff_ffff, 1], 1),
        ("max.s64 %ox, %x0, %x1;", &[u64::MAX, 1], 1),
        ("sad.s32 %ow, %w0, %w1, %w2;", &[0xffff_ffff, 4, 10], 15),
        ("dp4a.s32.s32 %ow, %w0, %w1, %w2;", &[0x01ff_0203, 0x0101_0101, 10], 15),
    ]);
}

#[test]
fn carries() {
    let sum = "add.cc.u32 %v0, %w0, %w1;\naddc.u32 %v1, %w2, %w3;\nmov.b64 %ox, {%v0, %v1};";
    let less = "sub.cc.u32 %v0, %w0, %w1;\nsubc.u32 %v1, %w2, %w3;\nmov.b64 %ox, {%v0, %v1};";
    let product =
        "mad.lo.cc.u32 %v0, %w0, %w1, %w2;\nmadc.hi.u32 %v1, %w0, %w1, %w3;\nmov.b64 %ox, {%v0, %v1};";
    table(&[
        (sum, &[0xffff_ffff, 1, 1, 2], 0x4_0000_0000),
        (less, &[0, 1, 5, 2], 0x2_ffff_ffff),
        (product, &[0xffff_ffff, 0xffff_ffff, 0xffff_ffff, 0], 0xffff_ffff_0000_0000),
        ("add.cc.u64 %t0, %x0, %x1;\naddc.u64 %ox, %x2, 0;", &[u64::MAX, 1, 6], 7),
    ]);
}

#[test]
fn bits() {
    table(&[
        ("and.b32 %ow, %w0, %w1;", &[0xf0f0, 0xff00], 0xf000),
        ("xor.b64 %ox, %x0, %x1;", &[0xff, 0x0f], 0xf0),
        ("not.b32 %ow, %w0;", &[0], 0xffff_ffff),
        ("shl.b32 %ow, %w0, %w1;", &[1, 31], 1 << 31),
        ("shl.b32 %ow, %w0, %w1;", &[1, 32], 0),
        ("shr.s32 %ow, %w0, %w1;", &[0x8000_0000, 40], 0xffff_ffff),
        ("shr.u64 %ox, %x0, %w1;", &[1 << 63, 63], 1),
        ("shf.l.wrap.b32 %ow, %w0, %w1, %w2;", &[0x8000_0000, 1, 1], 3),
        ("shf.r.clamp.b32 %ow, %w0, %w1, %w2;", &[5, 7, 99], 7),
        ("popc.b64 %ow, %x0;", &[0xff00_0000_0000_0001], 9),
        ("clz.b32 %ow, %w0;", &[1], 31),
        ("clz.b64 %ow, %x0;", &[0], 64),
        ("brev.b32 %ow, %w0;", &[1], 1 << 31),
        ("bfind.u32 %ow, %w0;", &[0x100], 8),
        ("bfind.s32 %ow, %w0;", &[0xffff_ffff], 0xffff_ffff),
        ("bfe.u32 %ow, %w0, 4, 8;", &[0xabcd], 0xbc),
        ("bfe.s32 %ow, %w0, 4, 8;", &[0xabcd], 0xffff_ffbc),
        ("bfe.s32 %ow, %w0, 28, 8;", &[0x9000_0000], 0xffff_fff9),
        ("bfe.u64 %ox, %x0, 60, 10;", &[0xa << 60], 0xa),
        ("bfi.b32 %ow, %w0, %w1, 8, 4;", &[0xf, 0], 0xf00),
        ("bfi.b64 %ox, %x0, %x1, 32, 32;", &[7, 9], 0x7_0000_0009),
        ("prmt.b32 %ow, %w0, %w1, 0x7531;", &[0x3322_1100, 0x7766_5544], 0x7755_3311),
        ("prmt.b32 %ow, %w0, %w1, 0x000b;", &[0x8000_0001, 0], 0x0101_01ff),
        ("lop3.b32 %ow, %w0, %w1, %w2, 0x96;", &[0xf0, 0xcc, 0xaa], 0x96),
        ("lop3.b32 %ow, %w0, %w1, %w2, 0xca;", &[0xff00, 0x1234, 0x5678], 0x1278),
        ("mov.b64 {%v0, %v1}, %x0;\nmov.u32 %ow, %v1;", &[0x1234_5678_9abc_def0], 0x1234_5678),
        ("mov.b32 {%g0, %g1}, %w0;\nmov.b32 %ow, {%g1, %g0};", &[0x1234_5678], 0x5678_1234),
        ("mov.b64 {_, %ow}, %x0;", &[0x9_0000_0001], 9),
    ]);
}

#[test]
fn comparisons_and_selection() {
    table(&[
        ("setp.lt.s32 %op, %w0, %w1;", &[0xffff_ffff, 0], 1),
        ("setp.lt.u32 %op, %w0, %w1;", &[0xffff_ffff, 0], 0),
        ("setp.hi.u32 %op, %w0, %w1;", &[2, 1], 1),
        ("setp.eq.s16 %op, %h0, %h1;", &[0x1_0005, 5], 1),
        ("setp.lt.f32 %op, %w0, %w1;", &[NAN, f(1.0)], 0),
        ("setp.ltu.f32 %op, %w0, %w1;", &[NAN, f(1.0)], 1),
        ("setp.ne.f32 %op, %w0, %w1;", &[NAN, f(1.0)], 0),
        ("setp.neu.f32 %op, %w0, %w1;", &[NAN, f(1.0)], 1),
        ("setp.equ.f64 %op, %x0, %x1;", &[d(0.0), d(-0.0)], 1),
        ("setp.nan.f64 %op, %x0, %x1;", &[d(f64::NAN), d(1.0)], 1),
        ("setp.num.f64 %op, %x0, %x1;", &[d(2.0), d(1.0)], 1),
        ("setp.eq.ftz.f32 %op, %w0, %w1;", &[1, 0], 1),
        ("setp.ne.s32 %p0, %w0, 0;\nsetp.lt.and.s32 %op, %w1, %w2, %p0;", &[0, 1, 2], 0),
        ("setp.ne.s32 %p0, %w0, 0;\nsetp.lt.and.s32 %op, %w1, %w2, !%p0;", &[0, 1, 2], 1),
        ("setp.ne.s32 %p0, %w0, 0;\nsetp.lt.xor.s32 %p1|%op, %w1, %w2, %p0;", &[1, 1, 2], 1),
        ("setp.lt.s32 %p1|%op, %w0, %w1;", &[1, 2], 0),
        ("set.lt.u32.s32 %ow, %w0, %w1;", &[1, 2], 0xffff_ffff),
        ("set.ge.f32.f32 %ow, %w0, %w1;", &[f(1.0), f(2.0)], 0),
        ("setp.ne.s32 %p0, %w0, 0;\nselp.b32 %ow, %w1, %w2, %p0;", &[0, 1, 2], 2),
        ("setp.ne.s32 %p0, %w0, 0;\nselp.f64 %ox, %x1, %x2, %p0;", &[1, 8, 9], 8),
        ("slct.b32.s32 %ow, %w0, %w1, %w2;", &[1, 2, 0xffff_ffff], 2),
        ("setp.ne.s32 %p0, %w0, 0;\nnot.pred %p1, %p0;\nor.pred %op, %p0, %p1;", &[1], 1),
        ("setp.ne.s32 %p0, %w0, 0;\n@!%p0 mov.u32 %ow, 7;", &[0], 7),
        ("setp.ne.s32 %p0, %w0, 0;\n@%p0 mov.u32 %ow, 7;", &[0], 0),
    ]);
}

#[test]
fn float32_rounding_and_specials() {
    let tiny = f(f32::MIN_POSITIVE) - 1;
    table(&[
        ("add.f32 %ow, %w0, %w1;", &[f(f32::INFINITY), f(f32::NEG_INFINITY)], NAN),
        ("add.rn.f32 %ow, %w0, %w1;", &[f(16777216.0), f(1.0)], f(16777216.0)),
        ("add.rp.f32 %ow, %w0, %w1;", &[f(16777216.0), f(1.0)], f(16777218.0)),
        ("add.rz.f32 %ow, %w0, %w1;", &[f(-16777216.0), f(-1.0)], f(-16777216.0)),
        ("add.rm.f32 %ow, %w0, %w1;", &[f(-16777216.0), f(-1.0)], f(-16777218.0)),
        ("add.f32 %ow, %w0, %w1;", &[tiny, 0], tiny),
        ("add.ftz.f32 %ow, %w0, %w1;", &[tiny | 1 << 31, 1 << 31], 1 << 31),
        ("add.sat.f32 %ow, %w0, %w1;", &[NAN, 0], 0),
        ("sub.f32 %ow, %w0, %w1;", &[f(1.0), f(3.0)], f(-2.0)),
        ("mul.f32 %ow, %w0, %w1;", &[f(0.0), f(f32::INFINITY)], NAN),
        ("mul.rp.f32 %ow, %w0, %w1;", &[f(1.0 / 3.0), f(3.0)], f(1.0000001)),
        ("mul.rz.f32 %ow, %w0, %w1;", &[f(1.0 / 3.0), f(3.0)], f(1.0)),
        // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46: only one rounding keeps it.
        ("fma.rn.f32 %ow, %w0, %w0, %w1;", &[0x3f80_0001, 0xbf80_0002], f(1.421_085_5e-14)),
        ("fma.rm.f32 %ow, %w0, %w1, %w2;", &[f(0.5), f(3.0), f(12582912.0)], f(12582913.0)),
        ("fma.rp.f32 %ow, %w0, %w1, %w2;", &[f(0.5), f(3.0), f(12582912.0)], f(12582914.0)),
        ("min.f32 %ow, %w0, %w1;", &[NAN, f(1.0)], f(1.0)),
        ("min.NaN.f32 %ow, %w0, %w1;", &[NAN, f(1.0)], NAN),
        ("min.f32 %ow, %w0, %w1;", &[f(0.0), f(-0.0)], f(-0.0)),
        ("max.f32 %ow, %w0, %w1;", &[f(-0.0), f(0.0)], f(0.0)),
        ("max.f32 %ow, %w0, %w1;", &[0xffc0_0001, 0x7fc0_0002], NAN),
        ("abs.f32 %ow, %w0;", &[f(-2.0)], f(2.0)),
        ("neg.f32 %ow, %w0;", &[f(0.0)], f(-0.0)),
        ("copysign.f32 %ow, %w0, %w1;", &[f(-1.0), f(3.0)], f(-3.0)),
        ("div.rn.f32 %ow, %w0, %w1;", &[f(1.0), f(3.0)], f(1.0 / 3.0)),
        ("rcp.rn.f32 %ow, %w0;", &[f(0.0)], f(f32::INFINITY)),
        ("sqrt.rn.f32 %ow, %w0;", &[f(-1.0)], NAN),
        ("testp.finite.f32 %op, %w0;", &[NAN], 0),
        ("mov.f32 %ow, 0f3F800000;", &[], f(1.0)),
        ("add.f32 %ow, %w0, 0d3FF0000000000000;", &[f(1.0)], f(2.0)),
    ]);
}

#[test]
fn approximate_functions_are_close() {
    let near = |body: &str, x: f32, want: f64, bound: f64| {
        let got = f32::from_bits(run(body, &[f(x)]) as u32);
        assert!((f64::from(got) - want).abs() <= bound * want.abs(), "{body} of {x}: {got}");
    };
    near("ex2.approx.ftz.f32 %ow, %w0;", 0.7, 0.7f32.into_f64().exp2(), 2f64.powi(-22));
    near("lg2.approx.f32 %ow, %w0;", 5.0, 5f64.log2(), 2f64.powi(-22));
    near("rcp.approx.ftz.f32 %ow, %w0;", 3.0, 1.0 / 3.0, 2f64.powi(-23));
    near("rsqrt.approx.f32 %ow, %w0;", 2.0, 0.5f64.sqrt(), 2f64.powi(-22));
    near("sqrt.approx.f32 %ow, %w0;", 2.0, 2f64.sqrt(), 2f64.powi(-23));
    near("sin.approx.f32 %ow, %w0;", 1.0, 1f64.sin(), 2f64.powi(-20));
    near("cos.approx.f32 %ow, %w0;", 1.0, 1f64.cos(), 2f64.powi(-20));
    near("tanh.approx.f32 %ow, %w0;", 0.5, 0.5f64.tanh(), 2f64.powi(-11));
    table(&[
        ("ex2.approx.ftz.f32 %ow, %w0;", &[f(f32::NEG_INFINITY)], 0),
        ("ex2.approx.ftz.f32 %ow, %w0;", &[f(-130.0)], 0),
        ("ex2.approx.f32 %ow, %w0;", &[f(-149.0)], 1),
        ("lg2.approx.f32 %ow, %w0;", &[f(0.0)], f(f32::NEG_INFINITY)),
        ("div.full.f32 %ow, %w0, %w1;", &[f(6.0), f(3.0)], f(2.0)),
        ("div.approx.f32 %ow, %w0, %w1;", &[f(6.0), f(2e38)], 0),
        ("rcp.approx.ftz.f64 %ox, %x0;", &[d(4.0)], d(0.25)),
    ]);
    let gross = f64::from_bits(run("rcp.approx.ftz.f64 %ox, %x0;", &[d(3.0)]));
    assert!(gross.to_bits() as u32 == 0 && (gross * 3.0 - 1.0).abs() < 1e-6, "{gross}");
}

trait Wide {
    fn into_f64(self) -> f64;
}

impl Wide for f32 {
    fn into_f64(self) -> f64 {
        f64::from(self)
    }
}

#[test]
fn float64() {
    table(&[
        ("add.f64 %ox, %x0, %x1;", &[d(0.1), d(0.2)], d(0.1 + 0.2)),
        ("mul.rn.f64 %ox, %x0, %x1;", &[d(0.1), d(0.2)], d(0.1 * 0.2)),
        ("fma.rn.f64 %ox, %x0, %x0, %x1;", &[d(1.0) + 1, d(-1.0) + 2], d(2f64.powi(-104))),
        ("div.rn.f64 %ox, %x0, %x1;", &[d(1.0), d(3.0)], d(1.0 / 3.0)),
        ("sqrt.rn.f64 %ox, %x0;", &[d(2.0)], d(2f64.sqrt())),
        ("rcp.rn.f64 %ox, %x0;", &[d(-0.0)], d(f64::NEG_INFINITY)),
        ("max.f64 %ox, %x0, %x1;", &[d(f64::NAN), d(1.0)], d(1.0)),
        ("min.f64 %ox, %x0, %x1;", &[d(0.0), d(-0.0)], d(-0.0)),
        ("neg.f64 %ox, %x0;", &[d(1.0)], d(-1.0)),
        ("abs.f64 %ox, %x0;", &[d(-1.0)], d(1.0)),
    ]);
}

#[test]
fn conversions() {
    table(&[
        ("cvt.s64.s32 %ox, %w0;", &[0xffff_ffff], u64::MAX),
        ("cvt.u64.u32 %ox, %w0;", &[0xffff_ffff], 0xffff_ffff),
        ("cvt.s32.s8 %ow, %w0;", &[0x180], 0xffff_ff80),
        ("cvt.u32.u8 %ow, %w0;", &[0x180], 0x80),
        ("cvt.u16.u32 %oh, %w0;", &[0x12345], 0x2345),
        ("cvt.sat.u8.s32 %ow, %w0;", &[300], 255),
        ("cvt.sat.s8.s32 %ow, %w0;", &[0xffff_ff00], 0xffff_ff80),
        ("cvt.f64.f32 %ox, %w0;", &[f(1.5)], d(1.5)),
        ("cvt.rn.f32.f64 %ow, %x0;", &[d(1.0 + 2f64.powi(-24))], f(1.0)),
        ("cvt.rp.f32.f64 %ow, %x0;", &[d(1.0 + 2f64.powi(-24))], f(1.0000001)),
        ("cvt.rz.f32.f64 %ow, %x0;", &[d(1e300)], f(f32::MAX)),
        ("cvt.rn.f32.u32 %ow, %w0;", &[0xffff_ffff], f(4294967296.0)),
        ("cvt.rz.f32.u32 %ow, %w0;", &[0xffff_ffff], f(4294967040.0)),
        ("cvt.rn.f32.s64 %ow, %x0;", &[u64::MAX], f(-1.0)),
        ("cvt.rn.f64.u64 %ox, %x0;", &[u64::MAX], d(18446744073709551616.0)),
        ("cvt.rni.f32.f32 %ow, %w0;", &[f(2.5)], f(2.0)),
        ("cvt.rzi.f32.f32 %ow, %w0;", &[f(-2.7)], f(-2.0)),
        ("cvt.rmi.f32.f32 %ow, %w0;", &[f(-2.1)], f(-3.0)),
        ("cvt.rpi.f64.f64 %ox, %x0;", &[d(-2.1)], d(-2.0)),
        ("cvt.rzi.s32.f32 %ow, %w0;", &[f(-2.7)], 0xffff_fffe),
        ("cvt.rni.s32.f64 %ow, %x0;", &[d(3.5)], 4),
        ("cvt.rzi.u32.f32 %ow, %w0;", &[f(-5.0)], 0),
        ("cvt.rzi.s32.f32 %ow, %w0;", &[f(1e20)], 0x7fff_ffff),
        ("cvt.rzi.s32.f32 %ow, %w0;", &[NAN], 0),
        ("cvt.rzi.s64.f64 %ox, %x0;", &[d(f64::NAN)], 1 << 63),
        ("cvt.sat.f32.f32 %ow, %w0;", &[f(-3.0)], 0),
        ("cvt.sat.f32.f32 %ow, %w0;", &[NAN], 0),
        ("cvt.rn.f16.f32 %oh, %w0;", &[f(1.5)], 0x3e00),
        ("cvt.f32.f16 %ow, %h0;", &[0xc000], f(-2.0)),
        ("cvt.rn.bf16.f32 %oh, %w0;", &[f(1.0)], 0x3f80),
    ]);
}

#[test]
fn half_precision() {
    table(&[
        ("add.f16 %oh, %h0, %h1;", &[0x3c00, 0x3c00], 0x4000),
        // 2048 + 1 is a tie, which goes to even.
        ("add.rn.f16 %oh, %h0, %h1;", &[0x6800, 0x3c00], 0x6800),
        ("mul.f16x2 %ow, %w0, %w1;", &[0x4000_3c00, 0x4200_4000], 0x4600_4000),
        ("fma.rn.f16 %oh, %h0, %h1, %h2;", &[0x3c01, 0x3c01, 0xbc02], 0x0010),
        ("fma.rn.relu.f16x2 %ow, %w0, %w1, %w2;", &[0xbc00_3c00, 0x3c00_3c00, 0], 0x3c00),
        ("add.bf16x2 %ow, %w0, %w1;", &[0x3f80_4000, 0x3f80_3f80], 0x4000_4040),
        ("fma.rn.bf16 %oh, %h0, %h1, %h2;", &[0x3f81, 0x3f81, 0xbf82], 0x3880),
        ("max.f16 %oh, %h0, %h1;", &[0x7e00, 0x3c00], 0x3c00),
        ("max.NaN.f16 %oh, %h0, %h1;", &[0x7e00, 0x3c00], 0x7fff),
        ("neg.bf16x2 %ow, %w0;", &[0x3f80_3f80], 0xbf80_bf80),
        ("cvt.rn.f16x2.f32 %ow, %w0, %w1;", &[f(1.0), f(2.0)], 0x3c00_4000),
        ("cvt.rn.bf16x2.f32 %ow, %w0, %w1;", &[f(1.0), f(1.003_906_3)], 0x3f80_3f80),
        ("cvt.rna.tf32.f32 %ow, %w0;", &[0x3f80_1000], 0x3f80_2000),
    ]);
}

/// Values that an H200 gave where they are easily got wrong.
#[test]
fn the_card_rounds_once_and_has_nans_of_its_own() {
    table(&[
        ("abs.f32 %ow, %w0;", &[0x7fc0_0000], 0x7fff_ffff),
        ("neg.f32 %ow, %w0;", &[0x7fc0_0000], 0x7fff_ffff),
        ("sub.rn.f64 %ox, %x0, %x1;", &[0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0001], 0x7ff8_0000_0000_0001),
        (
            "fma.rn.f64 %ox, %x0, %x1, %x2;",
            &[0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0000, 0x7ff0_0000_0000_0001],
            0x7ff8_0000_0000_0001,
        ),
        ("min.f64 %ox, %x0, %x1;", &[0x7ff8_0000_0000_0000, 0xfff0_0000_0000_0001], 0xfff8_0000_0000_0001),
        ("max.f64 %ox, %x0, %x1;", &[0x7ff8_0000_0000_0000, 0xfff0_0000_0000_0001], 0xfff8_0000_0000_0001),
        ("abs.f64 %ox, %x0;", &[0xfff8_0000_0000_0000], 0xfff8_0000_0000_0000),
        ("neg.f64 %ox, %x0;", &[0x7ff8_0000_0000_0000], 0x7ff8_0000_0000_0000),
        ("abs.f16 %oh, %h0;", &[0xfe00], 0x7fff),
        ("neg.f16x2 %ow, %w0;", &[0xfef6_02a4], 0x7fff_82a4),
        ("abs.bf16 %oh, %h0;", &[0x7fc0], 0x7fff),
        ("abs.bf16x2 %ow, %w0;", &[0xc141_ffaa], 0x4141_7fff),
        ("cvt.rm.bf16.s16 %oh, %h0;", &[0x8c24], 0xc6e8),
        ("cvt.rp.bf16.s16 %oh, %h0;", &[0x5964], 0x46b3),
        ("cvt.rp.bf16.u16 %oh, %h0;", &[0xa29a], 0x4723),
        ("cvt.rn.bf16.s32 %oh, %w0;", &[0x71bf_ffeb], 0x4ee3),
        ("cvt.rz.bf16.s32 %oh, %w0;", &[0x7fff_ffff], 0x4eff),
        ("cvt.rm.bf16.s32 %oh, %w0;", &[0xc463_32d6], 0xce6f),
        ("cvt.rp.bf16.s32 %oh, %w0;", &[0xe2_f5d3], 0x4b63),
        ("cvt.rz.bf16.u32 %oh, %w0;", &[0xffff_ffff], 0x4f7f),
        ("cvt.rp.bf16.u32 %oh, %w0;", &[0xa93_f5b3], 0x4d2a),
        ("cvt.rn.bf16.s64 %oh, %x0;", &[0xe_97ff_fbad_aafb], 0x5969),
        ("cvt.rp.bf16.s64 %oh, %x0;", &[0x6146_7945_f762_4509], 0x5ec3),
        ("cvt.rz.bf16.u64 %oh, %x0;", &[0xffff_ffff_ffff_ffff], 0x5f7f),
        ("cvt.rp.bf16.u64 %oh, %x0;", &[0x5fc8_7e9c_d5ba_004e], 0x5ec0),
        ("cvt.f16.bf16 %oh, %h0;", &[0x6d0d], 0x7c00),
        ("cvt.rn.f16.f64 %oh, %x0;", &[0x7ff8_0000_0000_0000], 0x7e00),
        ("cvt.bf16.f16 %oh, %h0;", &[0xe2ef], 0xc45e),
        ("cvt.rm.bf16.f32 %oh, %w0;", &[0xc055_cee2], 0xc056),
        ("cvt.rp.bf16.f32 %oh, %w0;", &[0x3a22_f9f9], 0x3a23),
        ("cvt.rn.bf16.f64 %oh, %x0;", &[0xfff0_0000_0000_0001], 0xffc0),
        ("cvt.rz.bf16.f64 %oh, %x0;", &[0xd8d4_4100_0800_8200], 0xff7f),
        ("cvt.rm.bf16.f64 %oh, %x0;", &[0x8008_22e7_8c51_32a8], 0x8001),
        ("cvt.rp.bf16.f64 %oh, %x0;", &[0xed74_2006_0810_0111], 0xff7f),
        ("cvt.f32.bf16 %ow, %h0;", &[0x7fc0], 0x7fc0_0000),
        ("cvt.rn.f32.f64 %ow, %x0;", &[0x7ff8_0000_0000_0000], 0x7fc0_0000),
        ("cvt.f64.f16 %ox, %h0;", &[0xfc01], 0xfff8_0400_0000_0000),
        ("cvt.rni.f64.f64 %ox, %x0;", &[0x7ff0_0000_0000_0001], 0x7ff8_0000_0000_0001),
        ("cvt.rn.ftz.f32.f64 %ow, %x0;", &[0x7ff8_0000_0000_0000], 0x7fc0_0000),
        ("cvt.ftz.f64.f32 %ox, %w0;", &[0x7fc0_0000], 0x7fff_ffff_e000_0000),
        ("div.rn.f64 %ox, %x0, %x1;", &[0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001], 0xfff8_0000_0000_0000),
        ("cvt.rna.tf32.f32 %ow, %w0;", &[0x7f80_0001], 0x7f80_0000),
        ("bfe.u64 %ox, %x0, %w1, %w2;", &[1, 0x8000_0000, 0xb1], 0),
        ("bfe.u64 %ox, %x0, %w1, %w2;", &[0x2_bd75_8dbb, 0x1e, 0xc1e9_c402], 0xa),
        ("bfe.s64 %ox, %x0, %w1, %w2;", &[0xf795_ebb4_b093_424a, 0x1c68_6ed7, 0x8000_0000], u64::MAX),
        // What .ftz flushes is decided by the digits alone.
        ("mul.rn.ftz.f32 %ow, %w0, %w1;", &[0x3f7f_ffff, 0x80_0000], 0),
        ("mul.rn.ftz.f32 %ow, %w0, %w1;", &[0xbf7f_ffff, 0x80_0000], 0x8000_0000),
        ("mul.rm.ftz.f32 %ow, %w0, %w1;", &[0xbf7f_ffff, 0x80_0000], 0x8000_0000),
        ("mul.rp.ftz.f32 %ow, %w0, %w1;", &[0x3f7f_ffff, 0x80_0000], 0),
        ("fma.rn.ftz.f32 %ow, %w0, %w1, %w2;", &[0x80_0000, 0xbf7f_ffff, 1], 0x8000_0000),
        ("fma.rn.ftz.f16 %oh, %h0, %h1, %h2;", &[0x0b20, 0x066a, 0x8400], 0x8000),
        ("fma.rn.ftz.f16 %oh, %h0, %h1, %h2;", &[0x04bc, 0x85b4, 0x0400], 0x0400),
    ]);
}

#[test]
fn sums_of_float64_in_memory_keep_a_nan() {
    let sum = |space: &str, place: &str| {
        format!(
            "{place}st.{space}.u64 [%t0], %x0;\natom.{space}.add.f64 %t1, [%t0], %x1;\nld.{space}.u64 %ox, [%t0];"
        )
    };
    let (global, shared) = (
        sum("global", "mov.u64 %t0, %out;\n"),
        sum("shared", ".shared .align 8 .b8 mem[8];\nmov.u64 %t0, mem;\n"),
    );
    let (signalling, quiet) = (0x7ff0_0000_0000_0001, 0x7ff8_0000_0000_0001);
    table(&[
        (&global, &[signalling, d(1.0)], signalling),
        (&global, &[quiet, signalling], signalling),
        (&shared, &[signalling, d(1.0)], quiet),
        (&shared, &[signalling, d(f64::NAN)], quiet),
    ]);
}

#[test]
fn forms_that_few_programs_have() {
    table(&[
        ("mad.hi.s16 %oh, %h0, %h1, %h2;", &[0xffff, 2, 5], 4),
        ("mul24.lo.s32 %ow, %w0, %w1;", &[0xff_ffff, 1], 0xffff_ffff),
        ("mul24.lo.u32 %ow, %w0, %w1;", &[0x1ff_ffff, 1], 0xff_ffff),
        ("mad24.hi.u32 %ow, %w0, %w1, %w2;", &[0x10_0000, 0x10_0000, 1], 0x100_0001),
        ("sad.s64 %ox, %x0, %x1, %x2;", &[u64::MAX, 4, 10], 15),
        ("bfind.shiftamt.s32 %ow, %w0;", &[0xffff_fffe], 31),
        ("bfind.shiftamt.u64 %ow, %x0;", &[1 << 40], 23),
        ("prmt.b32.f4e %ow, %w0, %w1, %w2;", &[0x3322_1100, 0x7766_5544, 2], 0x5544_3322),
        ("prmt.b32.b4e %ow, %w0, %w1, %w2;", &[0x3322_1100, 0x7766_5544, 1], 0x6677_0011),
        ("prmt.b32.rc16 %ow, %w0, %w1, %w2;", &[0x3322_1100, 0, 1], 0x3322_3322),
        ("testp.normal.f32 %op, %w0;", &[0], 1),
        ("testp.subnormal.f64 %op, %x0;", &[1], 1),
        ("add.rp.f64 %ox, %x0, %x1;", &[d(1.0), d(1e-300)], d(1.0) + 1),
        ("fma.rz.f64 %ox, %x0, %x1, %x2;", &[d(1.0), d(1.0), d(-1e-300)], d(1.0) - 1),
        ("sqrt.rm.f64 %ox, %x0;", &[d(2.0)], d(2f64.sqrt()) - 1),
        ("rcp.rp.f32 %ow, %w0;", &[f(3.0)], f(1.0 / 3.0)),
        ("rcp.rz.f32 %ow, %w0;", &[f(3.0)], f(1.0 / 3.0) - 1),
        ("set.ne.u32.f32 %ow, %w0, %w1;", &[NAN, f(1.0)], 0),
        ("setp.gt.f16 %op, %h0, %h1;", &[0x4000, 0x3c00], 1),
        ("set.le.f16.f16 %oh, %h0, %h1;", &[0x3c00, 0x3c00], 0x3c00),
        ("set.lt.u32.f16x2 %ow, %w0, %w1;", &[0x3c00_4000, 0x4000_3c00], 0xffff_0000),
        ("setp.ltu.bf16x2 %p0|%op, %w0, %w1;", &[0x7fff_4000, 0x3f80_3f80], 1),
        ("add.sat.f16 %oh, %h0, %h1;", &[0x3c00, 0x3c00], 0x3c00),
        ("cvt.rz.bf16x2.f32 %ow, %w0, %w1;", &[0x3f80_ffff, 0xbf80_ffff], 0x3f80_bf80),
        ("cvt.rn.relu.f16x2.f32 %ow, %w0, %w1;", &[f(-1.0), f(1.0)], 0x3c00),
        ("ex2.approx.f16 %oh, %h0;", &[0x4000], 0x4400),
        (
            "mov.u64 %t0, %out;\nst.global.u32 [%t0], %w0;\natom.global.add.noftz.f16x2 %ow, [%t0], %w1;\nld.global.u32 %ow, [%t0];",
            &[0x4000_3c00, 0x3c00_3c00],
            0x4200_4000,
        ),
        (
            "mov.u64 %t0, %out;\nst.global.u16 [%t0], %h0;\natom.global.cas.b16 %oh, [%t0], %h1, %h2;\nld.global.u16 %oh, [%t0];",
            &[5, 5, 9],
            9,
        ),
    ]);
}

#[test]
fn local_memory_and_calls() {
    let text = ".version 7.0\n.target sm_75\n.address_size 64\n\
        .global .align 8 .u64 counter = 5;\n.const .align 4 .b32 table[3] = {10, 20, 30};\n\
        .func (.param .b32 result) twice(.param .b32 x)\n{\n.reg .b32 %r<3>;\n.reg .pred %p<1>;\nld.param.u32 %r0, [x];\n\
        setp.eq.u32 %p0, %r0, 0;\n@%p0 ret;\nadd.u32 %r1, %r0, %r0;\nst.param.b32 [result+0], %r1;\nret;\n}\n\
        .visible .entry k(.param .u64 out)\n{\n.local .align 8 .b8 depot[16];\n.reg .b64 %rd<8>;\n.reg .b32 %r<8>;\n\
        ld.param.u64 %rd0, [out];\nmov.u64 %rd1, depot;\ncvta.local.u64 %rd2, %rd1;\nmov.u32 %r0, 21;\n\
        st.u32 [%rd2+4], %r0;\nld.local.u32 %r1, [%rd1+4];\n\
        {\n.param .b32 p0;\nst.param.b32 [p0+0], %r1;\n.param .b32 r0;\ncall.uni (r0), twice, (p0);\nld.param.b32 %r2, [r0+0];\n}\n\
        st.global.u32 [%rd0], %r2;\nld.const.u32 %r3, [table+8];\nst.global.u32 [%rd0+4], %r3;\n\
        ld.global.u64 %rd3, [counter];\nst.global.u64 [%rd0+8], %rd3;\nret;\n}\n";
    let rig = Rig::text(text, 75);
    let y = rig.empty(16);
    rig.launch("k", 1, 1, 0, &[U64(y)]);
    assert_eq!(rig.get::<u32>(y, 4), [42, 30, 5, 0]);
    let (address, bytes) = rig.module.global("counter").unwrap();
    assert_eq!((bytes, rig.get::<u64>(address, 1)[0]), (8, 5));
    rig.module.unload(&rig.memory);
    assert_eq!(rig.module.global("counter"), None);
}
