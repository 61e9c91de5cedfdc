//! ldmatrix and mma.sync together: fragments loaded by one fit the other.

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
