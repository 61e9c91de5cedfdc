//! Bulk copies through tensor maps, and which maps the driver makes.

use crate::{INPUT, Test};
use warpwright_emulator::exec::tensor_map::{MOST_DIMS, Pixels, SWIZZLES, TensorMap, element};

/// The arguments of cuTensorMapEncodeTiled, or of Im2col where there are pixels.
#[derive(Clone, Debug)]
pub struct Map {
    pub data_type: i32,
    pub dims: Vec<u64>,
    pub strides: Vec<u64>,
    pub boxed: Vec<u32>,
    pub steps: Vec<u32>,
    pub swizzle: usize,
    pub fill: i32,
    pub interleave: i32,
    pub promotion: i32,
    pub pixels: Option<Pixels>,
    /// The tensor is `out` rather than `in`.
    pub over_output: bool,
    /// Bytes from there to the tensor.
    pub offset: u64,
}

impl Map {
    fn new(data_type: i32, dims: &[u64], strides: &[u64], boxed: &[u32]) -> Map {
        Map {
            data_type,
            dims: dims.to_vec(),
            strides: strides.to_vec(),
            boxed: boxed.to_vec(),
            steps: vec![1; dims.len()],
            swizzle: 0,
            fill: 0,
            interleave: 0,
            promotion: 0,
            pixels: None,
            over_output: false,
            offset: 0,
        }
    }

    pub fn words(&self, input: u64, output: u64) -> Vec<u32> {
        let mut map = TensorMap {
            address: self.offset + if self.over_output { output } else { input },
            element: element(self.data_type).expect("a known type"),
            rank: self.dims.len(),
            dims: [1; MOST_DIMS],
            strides: [0; MOST_DIMS - 1],
            boxed: [1; MOST_DIMS],
            steps: [1; MOST_DIMS],
            swizzle: SWIZZLES[self.swizzle],
            fills_nan: self.fill == 1,
            pixels: self.pixels,
        };
        map.dims[..self.dims.len()].copy_from_slice(&self.dims);
        map.strides[..self.strides.len()].copy_from_slice(&self.strides);
        map.boxed[..self.boxed.len()].copy_from_slice(&self.boxed);
        map.steps[..self.steps.len()].copy_from_slice(&self.steps);
        map.words().iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect()
    }

    pub fn json(&self) -> String {
        let Map {
            data_type,
            dims,
            strides,
            boxed,
            steps,
            swizzle,
            fill,
            interleave,
            promotion,
            over_output,
            offset,
            ..
        } = self;
        let pixels = self.pixels.map_or("null".into(), |p| {
            let n = dims.len().saturating_sub(2).min(3);
            format!(
                "{{\"lower\":{:?},\"upper\":{:?},\"channels\":{},\"count\":{}}}",
                &p.lower[..n],
                &p.upper[..n],
                p.channels,
                p.count
            )
        });
        format!(
            "{{\"type\":{data_type},\"dims\":{dims:?},\"strides\":{strides:?},\"box\":{boxed:?},\"steps\":{steps:?},\"swizzle\":{swizzle},\
             \"fill\":{fill},\"interleave\":{interleave},\"promotion\":{promotion},\"pixels\":{pixels},\"over_output\":{over_output},\"offset\":{offset}}}"
        )
    }

    fn coordinates(&self, at: &[i32]) -> String {
        at.iter().map(|x| x.to_string()).collect::<Vec<_>>().join(", ")
    }
}

/// Bytes of shared memory that a test shows.
const SHOWN: u32 = 8192;

/// Fills shared memory with a mark, has one thread start and wait for a copy, and shows the memory.
fn load(name: &str, map: Map, at: &[i32], offsets: &[u32], start: u32, bytes: u32) -> Test {
    let mode = if map.pixels.is_some() { ".im2col" } else { "" };
    let offsets: Vec<String> = offsets.iter().map(|x| format!("%h{x}")).collect();
    let extra = if offsets.is_empty() { String::new() } else { format!(", {{{}}}", offsets.join(", ")) };
    let body = format!(
        ".reg .b64 %rd<8>;\n.reg .b32 %r<16>;\n.reg .b16 %h<8>;\n.reg .pred %p<4>;\n\n\
         ld.param.u64 %rd0, [out];\nmov.b64 %rd1, map;\ncvta.param.u64 %rd1, %rd1;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, mem;\nmov.u32 %r2, %r0;\n\
         FILL:\nshl.b32 %r3, %r2, 2;\nadd.u32 %r3, %r3, %r1;\nst.shared.u32 [%r3], 0xeeeeeeee;\nadd.u32 %r2, %r2, 32;\nsetp.lt.u32 %p0, %r2, {words};\n@%p0 bra FILL;\n\
         {moves}setp.ne.u32 %p1, %r0, 0;\nadd.u32 %r4, %r1, {SHOWN};\n@%p1 bra WAIT;\nmbarrier.init.shared::cta.b64 [%r4], 1;\nfence.mbarrier_init.release.cluster;\nWAIT:\n\
         fence.proxy.async;\nbar.sync 0;\n@%p1 bra READY;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], {bytes};\nadd.u32 %r5, %r1, {start};\n\
         cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes [%r5], [%rd1, {{{at}}}], [%r4]{extra};\n\
         READY:\nmov.u32 %r7, 0;\nASK:\nadd.u32 %r7, %r7, 1;\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;\nsetp.lt.and.u32 %p2, %r7, 100000, !%p2;\n@%p2 bra ASK;\nmov.u32 %r2, %r0;\nSHOW:\nshl.b32 %r3, %r2, 2;\n\
         cvt.u64.u32 %rd2, %r3;\nadd.s64 %rd2, %rd2, %rd0;\nadd.u32 %r3, %r3, %r1;\nld.shared.u32 %r6, [%r3];\nst.global.u32 [%rd2], %r6;\n\
         add.u32 %r2, %r2, 32;\nsetp.lt.u32 %p0, %r2, {words};\n@%p0 bra SHOW;\nret;",
        words = SHOWN / 4,
        moves = (0..8).map(|n| format!("mov.u16 %h{n}, {n};\n")).collect::<String>(),
        rank = map.dims.len(),
        at = map.coordinates(at),
    );
    Test {
        name: format!("load {name}"),
        body,
        threads: 32,
        shared: SHOWN + 16,
        output: SHOWN as usize,
        map: Some(map),
    }
}

/// Counts words of shared memory up and stores a box of them.
fn store(name: &str, map: Map, at: &[i32], start: u32, reduce: &str) -> Test {
    let head = if reduce.is_empty() { "cp.async" } else { "cp.reduce.async" };
    let body = format!(
        ".reg .b64 %rd<8>;\n.reg .b32 %r<16>;\n.reg .pred %p<4>;\nmov.b64 %rd1, map;\ncvta.param.u64 %rd1, %rd1;\nmov.u32 %r0, %tid.x;\n\
         mov.u32 %r1, mem;\nmov.u32 %r2, %r0;\nFILL:\nshl.b32 %r3, %r2, 2;\nadd.u32 %r3, %r3, %r1;\nadd.u32 %r4, %r2, 0x3f800000;\nst.shared.u32 [%r3], %r4;\n\
         add.u32 %r2, %r2, 32;\nsetp.lt.u32 %p0, %r2, {words};\n@%p0 bra FILL;\nfence.proxy.async;\nbar.sync 0;\nsetp.ne.u32 %p1, %r0, 0;\n@%p1 ret;\n\
         add.u32 %r5, %r1, {start};\n{head}.bulk.tensor.{rank}d.global.shared::cta{reduce}.bulk_group [%rd1, {{{at}}}], [%r5];\n\
         cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;",
        words = SHOWN / 4,
        rank = map.dims.len(),
        at = map.coordinates(at),
    );
    Test {
        name: format!("store {name}"),
        body,
        threads: 32,
        shared: SHOWN,
        output: SHOWN as usize,
        map: Some(Map { over_output: true, ..map }),
    }
}

fn tiles(out: &mut Vec<Test>) {
    // Rows of 16 to 128 bytes in every swizzle that takes them, at several starts.
    for swizzle in 0..4usize {
        for inner in [8u32, 16, 32, 64] {
            if swizzle > 0 && inner * 2 > [0, 32, 64, 128][swizzle] {
                continue;
            }
            for start in [0u32, 128, 1024 + 384] {
                let mut map = Map::new(6, &[100, 40], &[208], &[inner, 11]);
                map.swizzle = swizzle;
                out.push(load(
                    &format!("swizzle {swizzle}, {inner} halves, start {start}"),
                    map,
                    &[8, 3],
                    &[],
                    start,
                    inner * 22,
                ));
            }
        }
    }
    let far = |map: &Map| map.clone();
    for (data_type, bytes) in [(0, 1u32), (2, 4), (4, 8), (6, 2), (7, 4), (8, 8), (9, 2)] {
        let size = u64::from(bytes);
        for fill in 0..if matches!(data_type, 6..=9) { 2 } else { 1 } {
            let mut map = Map::new(data_type, &[48 / size, 5, 3], &[64, 320], &[32 / bytes, 4, 2]);
            map.fill = fill;
            for at in [
                [-16 / bytes as i32, 2, -1],
                [16 / bytes as i32, -2, 2],
                [48 / bytes as i32, 0, 0],
                [0, 4, 1],
            ] {
                out.push(load(
                    &format!("type {data_type}, fill {fill}, at {at:?}"),
                    far(&map),
                    &at,
                    &[],
                    0,
                    32 * 8,
                ));
            }
        }
    }
    let mut map = Map::new(6, &[64, 20, 9, 7], &[128, 2560, 23040], &[16, 7, 3, 2]);
    map.steps = vec![1, 2, 1, 3];
    out.push(load("steps", map.clone(), &[8, 3, 1, 1], &[], 256, 32 * 4 * 3));
    map.steps = vec![2, 1, 1, 1];
    out.push(load("a step along the rows", map, &[8, 3, 1, 1], &[], 256, 32 * 7 * 3 * 2));
    out.push(load("one dimension", Map::new(0, &[300], &[], &[256]), &[96], &[], 0, 256));
    out.push(load(
        "five dimensions",
        Map::new(2, &[4, 5, 4, 3, 5], &[16, 80, 320, 960], &[4, 3, 2, 2, 3]),
        &[0, 3, 1, 1, 2],
        &[],
        0,
        16 * 36,
    ));
    let mut shifted = Map::new(2, &[4, 5], &[16], &[4, 3]);
    shifted.offset = 48;
    out.push(load("an offset", shifted, &[0, 1], &[], 0, 48));
}

fn columns(out: &mut Vec<Test>) {
    let pixels = |lower: &[i32], upper: &[i32], count: u32| {
        let three = |values: &[i32]| std::array::from_fn(|n| values.get(n).copied().unwrap_or(0));
        Some(Pixels { lower: three(lower), upper: three(upper), channels: 16, count })
    };
    let image = |dims: &[u64]| {
        let strides: Vec<u64> = (1..dims.len()).map(|n| 2 * dims[..n].iter().product::<u64>()).collect();
        Map::new(6, dims, &strides, &vec![1; dims.len()])
    };
    for (steps, lower, upper) in [
        ([1, 1, 1, 1], [-1, -1], [-1, -1]),
        ([1, 2, 1, 1], [-1, -1], [-1, 0]),
        ([1, 2, 3, 1], [0, -1], [-2, -1]),
        ([1, 1, 1, 1], [0, 0], [0, 0]),
        ([1, 1, 1, 1], [-2, 1], [1, -1]),
    ] {
        for (at, offsets) in [
            ([0, -1, -1, 0], [0, 0]),
            ([0, 2, 1, 0], [1, 2]),
            ([8, 0, 3, 1], [2, 0]),
            ([16, 3, 4, 2], [0, 1]),
        ] {
            let at = [at[0], at[1].max(lower[0]), at[2].max(lower[1]), at[3]];
            let map =
                Map { steps: steps.to_vec(), pixels: pixels(&lower, &upper, 40), ..image(&[24, 7, 6, 3]) };
            out.push(load(
                &format!("im2col {steps:?} {lower:?} {upper:?} at {at:?} by {offsets:?}"),
                map,
                &at,
                &offsets,
                0,
                32 * 40,
            ));
        }
    }
    let map = Map { pixels: pixels(&[-3], &[-2], 50), swizzle: 1, ..image(&[16, 30, 4]) };
    out.push(load("im2col of three dimensions", map, &[0, 20, 1], &[5], 0, 32 * 50));
    let map = Map { pixels: pixels(&[-1, 0, -1], &[0, -1, -1], 60), ..image(&[16, 4, 5, 3, 2]) };
    out.push(load("im2col of five dimensions", map, &[0, 1, 2, 0, 0], &[1, 0, 2], 0, 32 * 60));
}

fn stores(out: &mut Vec<Test>) {
    for swizzle in 0..4usize {
        let mut map = Map::new(6, &[50, 20], &[128], &[[64, 16, 32, 64][swizzle], 8]);
        map.swizzle = swizzle;
        for (at, start) in [([0, 0], 0), ([0, 0], 128), ([8, 3], 1024 + 256), ([24, 15], 0)] {
            out.push(store(
                &format!("swizzle {swizzle} at {at:?}, start {start}"),
                map.clone(),
                &at,
                start,
                "",
            ));
        }
    }
    for (data_type, operations) in [
        (2, &["add", "min", "max", "inc", "dec", "and", "or", "xor"][..]),
        (3, &["add", "min", "max"]),
        (4, &["add", "min", "max"]),
        (7, &["add"]),
    ] {
        for operation in operations {
            let size = if data_type == 4 { 8 } else { 4 };
            let map = Map::new(data_type, &[64 / size, 20], &[128], &[32 / size as u32, 8]);
            out.push(store(
                &format!("{operation} of type {data_type}"),
                map,
                &[if data_type == 4 { 2 } else { 4 }, 3],
                0,
                &format!(".{operation}"),
            ));
        }
    }
}

/// Maps with the code that the emulator's driver gives.
pub fn refused() -> Vec<(Map, i32)> {
    let good = || Map::new(6, &[64, 64, 4], &[128, 8192], &[64, 8, 1]);
    let change = |f: &dyn Fn(&mut Map)| {
        let mut map = good();
        f(&mut map);
        map
    };
    let pixels = Pixels { lower: [-1, 0, 0], upper: [-1, 0, 0], channels: 16, count: 64 };
    let maps = vec![
        good(),
        change(&|m| m.offset = 8),
        change(&|m| m.strides[0] = 120),
        change(&|m| m.strides[0] = 64),
        change(&|m| m.strides[0] = 0),
        change(&|m| m.strides[1] = 8192 + 16),
        change(&|m| m.strides[1] = 1 << 40),
        change(&|m| m.strides[1] = (1 << 40) - 16),
        change(&|m| m.dims[0] = 0),
        change(&|m| m.dims[1] = 1 << 32),
        change(&|m| m.dims[1] = (1 << 32) + 1),
        change(&|m| m.boxed[1] = 0),
        change(&|m| m.boxed[1] = 256),
        change(&|m| m.boxed[1] = 257),
        change(&|m| m.boxed[0] = 4),
        change(&|m| m.boxed[0] = 12),
        change(&|m| m.boxed = vec![256, 256, 4]),
        change(&|m| m.boxed = vec![256, 227, 2]),
        change(&|m| m.boxed = vec![256, 228, 2]),
        change(&|m| m.boxed = vec![256, 256, 1]),
        change(&|m| m.steps[1] = 0),
        change(&|m| m.steps[1] = 8),
        change(&|m| m.steps[1] = 9),
        change(&|m| m.steps[0] = 2),
        change(&|m| m.steps[0] = 9),
        change(&|m| (m.swizzle, m.boxed[0]) = (1, 16)),
        change(&|m| (m.swizzle, m.boxed[0]) = (1, 32)),
        change(&|m| (m.swizzle, m.boxed[0]) = (2, 64)),
        change(&|m| (m.swizzle, m.boxed[0]) = (3, 64)),
        change(&|m| (m.swizzle, m.boxed[0]) = (3, 72)),
        change(&|m| m.swizzle = 7),
        change(&|m| m.fill = 1),
        change(&|m| m.fill = 2),
        change(&|m| (m.fill, m.data_type) = (1, 1)),
        change(&|m| m.promotion = 3),
        change(&|m| m.promotion = 4),
        change(&|m| m.interleave = 3),
        change(&|m| m.data_type = 13),
        change(&|m| m.data_type = 40),
        change(&|m| (m.dims, m.strides, m.boxed, m.steps) = (vec![64], vec![], vec![64], vec![1])),
        change(&|m| m.pixels = Some(pixels)),
        change(&|m| m.pixels = Some(Pixels { count: 1025, ..pixels })),
        change(&|m| m.pixels = Some(Pixels { count: 1024, ..pixels })),
        change(&|m| m.pixels = Some(Pixels { count: 0, ..pixels })),
        change(&|m| m.pixels = Some(Pixels { channels: 257, ..pixels })),
        change(&|m| m.pixels = Some(Pixels { channels: 256, ..pixels })),
        change(&|m| m.pixels = Some(Pixels { channels: 4, ..pixels })),
        change(&|m| m.pixels = Some(Pixels { lower: [-32768, 0, 0], upper: [32767, 0, 0], ..pixels })),
        change(&|m| m.pixels = Some(Pixels { lower: [-32769, 0, 0], ..pixels })),
    ];
    maps.into_iter().map(|map| (map.clone(), encoded(&map))).collect()
}

/// The code that the emulator gives for a map.
fn encoded(map: &Map) -> i32 {
    warpwright_emulator::driver::tensor_map_status(
        map.data_type,
        0x7000_0000_0000 + map.offset,
        [map.interleave, map.swizzle as i32, map.promotion, map.fill],
        [&map.dims, &map.strides],
        [&map.boxed, &map.steps],
        map.pixels,
    )
}

pub fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tiles(&mut tests);
    columns(&mut tests);
    stores(&mut tests);
    assert!(tests.iter().all(|test| test.output <= INPUT));
    tests
}
