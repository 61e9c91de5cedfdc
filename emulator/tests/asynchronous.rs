//! mbarriers, bulk copies, wgmma and setmaxnreg: what they do, and that each misuse is found.

mod rig;

use rig::Arg::{U64, Words};
use rig::Rig;
use warpwright_emulator::exec::tensor_map::{MOST_DIMS, SWIZZLES, TensorMap, element};
use warpwright_emulator::{Fault, FaultKind};

/// A kernel over `%rd0` (a pointer) and `map`, with `%r0` the thread; 4,096 bytes of shared memory at `mem`, which `%r1`
/// holds, and an mbarrier's place at `bar`, which `%r2` holds.
fn text(body: &str, bounds: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p, .param .align 64 .b8 map[128])\n{bounds}\n{{\n\
         .reg .b64 %rd<16>;\n.reg .b32 %r<32>;\n.reg .pred %p<8>;\n.reg .f32 %f<64>;\n.shared .align 1024 .b8 mem[4096];\n\
         .shared .align 8 .b64 bar[4];\nld.param.u64 %rd0, [p];\nmov.b64 %rd9, map;\ncvta.param.u64 %rd9, %rd9;\nmov.u32 %r0, %tid.x;\n\
         mov.u32 %r1, mem;\nmov.u32 %r2, bar;\nsetp.ne.u32 %p7, %r0, 0;\n{body}\nret;\n}}\n"
    )
}

struct Run {
    rig: Rig,
    at: u64,
}

const WORDS: usize = 512;

fn run(body: &str, threads: u32, map: Option<TensorMap>) -> (Run, Result<(), Fault>) {
    let rig = Rig::text(&text(body, ".maxntid 384, 1, 1\n.minnctapersm 1"), 90);
    let counts: Vec<u32> = (0..WORDS as u32).collect();
    let at = rig.put(&counts);
    let words = map.map_or(vec![0; 32], |map| {
        let map = TensorMap { address: if map.address == 0 { at } else { map.address }, ..map };
        map.words().iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect()
    });
    let result = rig.try_launch("k", [1; 3], [threads, 1, 1], 0, &[U64(at), Words(words)]);
    (Run { rig, at }, result.map(|_| ()))
}

#[track_caller]
fn finds(body: &str, threads: u32, map: Option<TensorMap>, kind: FaultKind, part: &str) {
    let (_, result) = run(body, threads, map);
    let fault = result.expect_err("no fault found");
    assert!(fault.kind == kind && fault.to_string().contains(part), "{fault}");
}

#[track_caller]
fn sound(body: &str, threads: u32, map: Option<TensorMap>) -> Vec<u32> {
    let (run, result) = run(body, threads, map);
    result.unwrap_or_else(|fault| panic!("{fault}"));
    run.rig.get(run.at, WORDS)
}

/// A map over the words of `%rd0`.
fn map(dims: &[u64], strides: &[u64], boxed: &[u32], swizzle: usize) -> TensorMap {
    let mut map = TensorMap {
        address: 0,
        element: element(2).unwrap(),
        rank: dims.len(),
        dims: [1; MOST_DIMS],
        strides: [0; MOST_DIMS - 1],
        boxed: [1; MOST_DIMS],
        steps: [1; MOST_DIMS],
        swizzle: SWIZZLES[swizzle],
        fills_nan: false,
        pixels: None,
    };
    map.dims[..dims.len()].copy_from_slice(dims);
    map.strides[..strides.len()].copy_from_slice(strides);
    map.boxed[..boxed.len()].copy_from_slice(boxed);
    map
}

const INIT: &str = "@%p7 bra INIT;\nmbarrier.init.shared::cta.b64 [%r2], COUNT;\nfence.mbarrier_init.release.cluster;\nINIT:\nbar.sync 0;\n";
const WAIT: &str = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%r2], 0;\n@!%p0 bra WAIT;\n";
/// Thread n stores word n of shared memory to word n of memory.
const SHOW: &str = "shl.b32 %r3, %r0, 2;\nadd.u32 %r4, %r3, %r1;\nld.shared.u32 %r5, [%r4];\ncvt.u64.u32 %rd1, %r3;\nadd.s64 %rd1, %rd1, %rd0;\nst.global.u32 [%rd1], %r5;\n";

fn init(count: u32) -> String {
    INIT.replace("COUNT", &count.to_string())
}

/// Threads write a word each, and read that of the other warp.
fn exchange(count: u32, arrive: &str, wait: &str) -> String {
    format!(
        "{}shl.b32 %r3, %r0, 2;\nadd.u32 %r4, %r3, %r1;\nst.shared.u32 [%r4], %r0;\n{arrive}\n{wait}\nxor.b32 %r3, %r3, 128;\nadd.u32 %r4, %r3, %r1;\n\
         ld.shared.u32 %r5, [%r4];\nmul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd1, %rd1, %rd0;\nst.global.u32 [%rd1], %r5;",
        init(count)
    )
}

#[test]
fn mbarriers_order_what_threads_write() {
    let want: Vec<u32> = (0..64).map(|n| n ^ 32).collect();
    let arrive = "mbarrier.arrive.shared::cta.b64 _, [%r2];";
    assert_eq!(sound(&exchange(64, arrive, WAIT), 64, None)[..64], want);
    // By state, by generic address, several arrivals at once.
    let state = "mbarrier.arrive.release.cta.shared::cta.b64 %rd2, [%r2], 2;";
    let ask = "WAIT:\nmbarrier.test_wait.acquire.cta.shared::cta.b64 %p0, [%r2], %rd2;\n@!%p0 bra WAIT;\n";
    assert_eq!(sound(&exchange(128, state, ask), 64, None)[..64], want);
    let generic = "cvt.u64.u32 %rd3, %r2;\ncvta.shared.u64 %rd3, %rd3;\nmbarrier.arrive.b64 %rd2, [%rd3];";
    let ask = "WAIT:\nmbarrier.try_wait.b64 %p0, [%rd3], %rd2, 1000;\n@!%p0 bra WAIT;\n";
    assert_eq!(sound(&exchange(64, generic, ask), 64, None)[..64], want);
    // One lane of each warp, after the warp has met.
    let one = "bar.warp.sync -1;\nelect.sync _|%p1, -1;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [%r2];";
    assert_eq!(sound(&exchange(2, one, WAIT), 64, None)[..64], want);
    finds(&exchange(64, arrive, ""), 64, None, FaultKind::Uninitialized, "nothing wrote");
    let first = "st.shared.u32 [%r4], %r0;\nbar.sync 0;\n";
    finds(
        &exchange(64, &format!("{first}st.shared.u32 [%r4], %r0;\n{arrive}"), ""),
        64,
        None,
        FaultKind::Race,
        "no barrier orders",
    );
    let relaxed = "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r2];";
    finds(
        &exchange(64, &format!("{first}st.shared.u32 [%r4], %r0;\n{relaxed}"), WAIT),
        64,
        None,
        FaultKind::Race,
        "no barrier orders",
    );
}

#[test]
fn phases_of_an_mbarrier() {
    let body = format!(
        "{}@%p7 ret;\nmbarrier.arrive.noComplete.shared::cta.b64 %rd1, [%r2], 2;\nmbarrier.pending_count.b64 %r3, %rd1;\nst.global.u32 [%rd0], %r3;\n\
         mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r2], 0;\nselp.u32 %r3, 1, 0, %p0;\nst.global.u32 [%rd0+4], %r3;\n\
         mbarrier.arrive_drop.shared::cta.b64 %rd1, [%r2];\nmbarrier.pending_count.b64 %r3, %rd1;\nst.global.u32 [%rd0+8], %r3;\n\
         mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r2], 0;\nselp.u32 %r3, 1, 0, %p0;\nst.global.u32 [%rd0+12], %r3;\n\
         mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r2], 1;\nselp.u32 %r3, 1, 0, %p0;\nst.global.u32 [%rd0+16], %r3;\n\
         mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r2], 48;\nmbarrier.pending_count.b64 %r3, %rd1;\nst.global.u32 [%rd0+20], %r3;\n\
         mbarrier.arrive.shared::cta.b64 _, [%r2];\nmbarrier.test_wait.shared::cta.b64 %p0, [%r2], %rd1;\nselp.u32 %r3, 1, 0, %p0;\nst.global.u32 [%rd0+24], %r3;\n\
         mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 48;\nmbarrier.test_wait.shared::cta.b64 %p0, [%r2], %rd1;\nselp.u32 %r3, 1, 0, %p0;\nst.global.u32 [%rd0+28], %r3;\n\
         mbarrier.inval.shared::cta.b64 [%r2];\nst.shared.u32 [%r2], 5;\nmbarrier.init.shared::cta.b64 [%r2+8], 1;",
        init(3)
    );
    assert_eq!(sound(&body, 64, None)[..8], [3, 0, 1, 1, 0, 2, 0, 1]);
}

#[test]
fn mbarriers_that_are_used_wrongly() {
    let alone = |body: &str| format!("@%p7 ret;\n{body}");
    let finds = |body: &str, kind, part: &str| finds(body, 64, None, kind, part);
    finds(&alone("mbarrier.arrive.shared::cta.b64 _, [%r2];"), FaultKind::Undefined, "no mbarrier lies here");
    finds(&alone("mbarrier.init.shared::cta.b64 [%r2+4], 1;"), FaultKind::Misaligned, "");
    finds(&alone("mbarrier.init.shared::cta.b64 [%r2+32], 1;"), FaultKind::OutOfBounds, "");
    finds(&alone("mbarrier.init.shared::cta.b64 [%r2], 0;"), FaultKind::Undefined, "for 0 arrivals");
    let twice = "mbarrier.init.shared::cta.b64 [%r2], 1;\n".repeat(2);
    finds(&alone(&twice), FaultKind::Undefined, "lies here already");
    let made = "mbarrier.init.shared::cta.b64 [%r2], 2;\n";
    finds(&alone(&format!("{made}ld.shared.u32 %r3, [%r2];")), FaultKind::Race, "only mbarrier instructions");
    finds(&alone(&format!("{made}st.shared.u32 [%r2+4], 3;")), FaultKind::Race, "only mbarrier instructions");
    finds(
        &alone(&format!("{made}mbarrier.inval.shared::cta.b64 [%r2];\nld.shared.u32 %r3, [%r2];")),
        FaultKind::Uninitialized,
        "",
    );
    finds(
        &alone(&format!("{made}mbarrier.arrive.shared::cta.b64 _, [%r2], 3;")),
        FaultKind::Undefined,
        "expects 2 more",
    );
    finds(
        &alone(&format!("{made}mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 0x100000;")),
        FaultKind::Undefined,
        "more than an mbarrier can count",
    );
    let unordered = "@%p7 bra INIT;\nmbarrier.init.shared::cta.b64 [%r2], 64;\nINIT:\nmbarrier.arrive.shared::cta.b64 _, [%r2];";
    finds(unordered, FaultKind::Race, "after its initialisation");
}

#[test]
fn waits_without_end_are_named() {
    let wait = |arrivals: &str| format!("{}{arrivals}\n{WAIT}", init(64));
    let all = "mbarrier.arrive.shared::cta.b64 _, [%r2];";
    finds(
        &wait(&format!("@%p7 {all}")),
        64,
        None,
        FaultKind::BarrierDivergence,
        "phase 0 lacks 1 arrivals and 0 bytes at line",
    );
    let more = format!("{all}\n@!%p7 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 96;");
    let (_, result) = run(&wait(&more.lines().rev().collect::<Vec<_>>().join("\n")), 64, None);
    assert!(result.unwrap_err().detail.contains("lacks 0 arrivals and 96 bytes"));
    // Threads that ask and ask again, and some that wait at a barrier of another kind.
    let ask = format!(
        "{}setp.lt.u32 %p1, %r0, 32;\n@%p1 bra ASK;\nbar.sync 1;\nASK:\nmbarrier.test_wait.parity.shared::cta.b64 %p0, [%r2], 0;\n@!%p0 bra ASK;",
        init(64)
    );
    finds(&ask, 64, None, FaultKind::BarrierDivergence, "barrier 1 at line");
    finds(&ask, 32, None, FaultKind::BarrierDivergence, "phase 0 lacks 64 arrivals");
    // A wait that gives up is no wait without end.
    let bounded = format!(
        "{}mov.u32 %r3, 0;\nASK:\nadd.u32 %r3, %r3, 1;\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%r2], 0, 100;\nsetp.lt.u32 %p1, %r3, 20;\n@%p1 bra ASK;\n\
         @!%p7 st.global.u32 [%rd0], %r3;",
        init(64)
    );
    assert_eq!(sound(&bounded, 64, None)[0], 20);
}

#[test]
fn named_barriers_order_what_those_that_arrive_wrote() {
    let body = |arrive: &str| {
        format!(
            "setp.lt.u32 %p0, %r0, 32;\nshl.b32 %r3, %r0, 2;\nadd.u32 %r4, %r3, %r1;\nst.shared.u32 [%r4], 0;\nbar.sync 0;\n@!%p0 bra READ;\n\
             st.shared.u32 [%r4], %r0;\n{arrive}\nret;\nREAD:\nbar.sync 1, 64;\nld.shared.u32 %r5, [%r4+-128];\nmul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd1, %rd1, %rd0;\nst.global.u32 [%rd1], %r5;"
        )
    };
    assert_eq!(
        sound(&body("barrier.cta.arrive.aligned 1, 64;"), 64, None)[32..64],
        (0..32).collect::<Vec<u32>>()
    );
    finds(&body("bar.arrive 2, 64;"), 64, None, FaultKind::BarrierDivergence, "barrier 1");
}

#[test]
fn clusters_of_one_block() {
    let body = "shl.b32 %r3, %r0, 2;\nadd.u32 %r4, %r3, %r1;\nst.shared.u32 [%r4], %r0;\nbarrier.cluster.arrive.release.aligned;\nWAIT\n\
        xor.b32 %r3, %r3, 128;\nadd.u32 %r4, %r3, %r1;\nmapa.shared::cluster.u32 %r6, %r4, RANK;\nld.shared::cluster.u32 %r5, [%r6];\n\
        mul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd1, %rd1, %rd0;\nst.global.u32 [%rd1], %r5;";
    let of = |wait: &str, rank: &str| body.replace("WAIT", wait).replace("RANK", rank);
    let wait = "barrier.cluster.wait.acquire.aligned;";
    assert_eq!(sound(&of(wait, "0"), 64, None)[..64], (0..64).map(|n| n ^ 32).collect::<Vec<u32>>());
    finds(&of("", "0"), 64, None, FaultKind::Uninitialized, "");
    finds(&of(wait, "1"), 64, None, FaultKind::Undefined, "block 1 of a cluster of 1");
    finds("barrier.cluster.wait;", 32, None, FaultKind::Undefined, "without an arrival");
    let alone = "@%p7 bra END;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nEND:\nbar.sync 0;";
    finds(alone, 64, None, FaultKind::BarrierDivergence, "other threads of the cluster");
}

const SYNC: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// Blocks write words into the next one's shared memory and show what they got.
fn neighbours(first: &str, store: &str, then: &str) -> String {
    format!(
        "mov.u32 %r10, %cluster_ctarank;\nmov.u32 %r11, %cluster_nctarank;\nmov.u32 %r12, %clusterid.x;\nshl.b32 %r3, %r0, 2;\nadd.u32 %r4, %r3, %r1;\n\
         st.shared.u32 [%r4], 0;\n{first}add.u32 %r13, %r10, 1;\nrem.u32 %r13, %r13, %r11;\nmapa.shared::cluster.u32 %r5, %r4, %r13;\n\
         mad.lo.u32 %r6, %r10, 1000, %r0;\nmad.lo.u32 %r6, %r12, 10000, %r6;\n{store}\n{then}ld.shared.u32 %r7, [%r4];\nmov.u32 %r8, %ctaid.x;\n\
         mad.lo.u32 %r9, %r8, 32, %r0;\nmul.wide.u32 %rd1, %r9, 4;\nadd.s64 %rd1, %rd1, %rd0;\nst.global.u32 [%rd1], %r7;"
    )
}

fn clusters(body: &str, blocks: u32, size: u32) -> Result<Vec<u32>, Fault> {
    let rig = Rig::text(&text(body, ""), 90);
    let at = rig.put(&vec![0u32; WORDS]);
    rig.try_clusters("k", blocks, size, 32, &[U64(at), Words(vec![0; 32])])?;
    Ok(rig.get(at, WORDS))
}

#[test]
fn clusters_of_several_blocks() {
    let store = "st.shared::cluster.u32 [%r5], %r6;";
    let got = clusters(&neighbours(SYNC, store, SYNC), 8, 4).unwrap();
    for (n, &word) in got.iter().enumerate().take(256) {
        let (block, thread) = (n as u32 / 32, n as u32 % 32);
        assert_eq!(word, block / 4 * 10_000 + (block + 3) % 4 * 1000 + thread);
    }
    // Words that say themselves that they are there; and sums in one place.
    let wait = "ASK:\nld.relaxed.cluster.shared.u32 %r7, [%r4];\nsetp.eq.u32 %p1, %r7, 0;\n@%p1 bra ASK;\n"
        .to_string()
        + SYNC;
    let strong = "add.u32 %r6, %r6, 1;\nst.relaxed.cluster.shared::cluster.u32 [%r5], %r6;";
    assert_eq!(clusters(&neighbours(SYNC, strong, &wait), 2, 2).unwrap()[..3], [1001, 1002, 1003]);
    let add = "mapa.shared::cluster.u32 %r5, %r1, 0;\natom.shared::cluster.add.u32 %r6, [%r5+4], 1;";
    assert_eq!(clusters(&neighbours(SYNC, add, SYNC), 8, 8).unwrap()[1], 256);
    let finds = |body: &str, blocks, size, kind, part: &str| {
        let fault = clusters(body, blocks, size).expect_err("no fault found");
        assert!(fault.kind == kind && fault.to_string().contains(part), "{fault}");
    };
    finds(&neighbours("", store, SYNC), 4, 2, FaultKind::Race, "has started");
    finds(&(neighbours(SYNC, store, "") + SYNC), 4, 2, FaultKind::Race, "no barrier orders");
    // Its reader may be at work still, and the block may be gone.
    let early = format!("ld.shared.u32 %r7, [%r4];\n{store}");
    finds(&neighbours(SYNC, &early, SYNC), 4, 2, FaultKind::Race, "no barrier orders");
    let gone = "setp.eq.u32 %p1, %r10, 1;\n@%p1 ret;\nmov.u32 %r14, 0;\nLATE:\nadd.u32 %r14, %r14, 1;\nsetp.lt.u32 %p2, %r14, 90000;\n@%p2 bra LATE;\n";
    finds(
        &neighbours(SYNC, &format!("{gone}{store}"), ""),
        2,
        2,
        FaultKind::UseAfterFree,
        "block 1 of the cluster has ended",
    );
    finds(
        &neighbours(SYNC, "mapa.shared::cluster.u32 %r5, %r4, 2;", ""),
        2,
        2,
        FaultKind::Undefined,
        "block 2 of a cluster of 2",
    );
    finds(
        &neighbours(
            "setp.eq.u32 %p1, %r10, 1;\n@!%p1 barrier.cluster.arrive;\n@!%p1 barrier.cluster.wait;\nbar.sync 1, 64;\n",
            "",
            "",
        ),
        2,
        2,
        FaultKind::BarrierDivergence,
        "wait for each other for ever",
    );
    let past = store.replace("%r5]", "%r5+8192]");
    finds(&neighbours(SYNC, &past, SYNC), 2, 2, FaultKind::OutOfBounds, "block (0,0,0)");
    let unwritten = "ld.shared::cluster.u32 %r6, [%r5+256];";
    finds(&neighbours(SYNC, unwritten, SYNC), 2, 2, FaultKind::Uninitialized, "nothing wrote");
    finds("", 6, 4, FaultKind::Launch, "clusters of");
    finds("", 16, 16, FaultKind::Launch, "clusters of");
}

#[test]
fn registers_change_hands() {
    let split = |less: u32, more: u32| {
        format!(
            "setp.lt.u32 %p0, %r0, 128;\n@%p0 bra GIVE;\nsetmaxnreg.inc.sync.aligned.u32 {more};\n@!%p7 ret;\nbra END;\nGIVE:\nsetmaxnreg.dec.sync.aligned.u32 {less};\nEND:\n"
        )
    };
    sound(&split(40, 232), 384, None);
    sound(&split(24, 240), 384, None);
    finds(&split(40, 240), 384, None, FaultKind::BarrierDivergence, "2304 registers of which the block has");
    finds("setmaxnreg.dec.sync.aligned.u32 176;", 384, None, FaultKind::Undefined, "dec to more");
    let inc_first = "setmaxnreg.inc.sync.aligned.u32 160;";
    finds(inc_first, 384, None, FaultKind::Undefined, "inc to fewer");
}

const LOAD: &str = "@%p7 bra LOAD;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n\
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0+512], 512, [%r2];\nLOAD:\n";

#[test]
fn bulk_copies_land_when_they_are_waited_for() {
    let want: Vec<u32> = (128..256).collect();
    assert_eq!(sound(&format!("{}{LOAD}{WAIT}{SHOW}", init(1)), 128, None)[..128], want);
    let finds = |body: String, kind, part: &str| finds(&body, 128, None, kind, part);
    finds(format!("{}{LOAD}{SHOW}", init(1)), FaultKind::Race, "the bulk copy of line 28 still writes here");
    finds(
        format!("{}{LOAD}@%p7 st.shared.u32 [%r1+64], 1;\n{WAIT}", init(1)),
        FaultKind::Race,
        "still writes here",
    );
    // Only some warps wait.
    let some = format!(
        "{}{LOAD}setp.lt.u32 %p1, %r0, 32;\n@%p1 bra WAIT;\nbar.sync 1;\nbra GO;\n{WAIT}mov.u32 %r6, 0;\nbar.sync 1;\nGO:\n{SHOW}",
        init(1)
    );
    assert_eq!(sound(&some.replace("bar.sync 1;", "bar.sync 1, 128;"), 128, None)[..128], want);
    let none = some
        .replace("mov.u32 %r6, 0;\nbar.sync 1;", "mov.u32 %r6, 0;")
        .replace("bar.sync 1;\nbra GO", "bra GO");
    finds(none, FaultKind::Race, "");
    // Nobody waits.
    finds(format!("{}{LOAD}", init(1)), FaultKind::Undefined, "ended before this bulk copy had written");
    let unannounced = init(1).replace("fence.mbarrier_init.release.cluster;\n", "");
    finds(format!("{unannounced}{LOAD}{WAIT}{SHOW}"), FaultKind::Race, "no fence.mbarrier_init");
    let fenced = init(1).replace("fence.mbarrier_init.release.cluster;", "fence.proxy.async.shared::cta;");
    sound(&format!("{fenced}{LOAD}{WAIT}{SHOW}"), 128, None);
    finds(
        format!("{}{}{WAIT}", init(1), LOAD.replace("[%r2], 512;", "[%r2], 496;")),
        FaultKind::BarrierDivergence,
        "-16 bytes",
    );
    finds(
        format!("{}{}{WAIT}", init(1), LOAD.replace("512, [%r2]", "500, [%r2]")),
        FaultKind::Undefined,
        "multiple of 16",
    );
    finds(
        format!("{}{}{WAIT}", init(1), LOAD.replace("[%rd0+512]", "[%rd0+504]")),
        FaultKind::Misaligned,
        "",
    );
    finds(
        format!("{}{}{WAIT}", init(1), LOAD.replace("[%rd0+512]", "[%rd0+1600]")),
        FaultKind::OutOfBounds,
        "",
    );
    finds(
        format!("{}{}{WAIT}", init(1), LOAD.replace("[%r1], [", "[%r1+3632], [")),
        FaultKind::OutOfBounds,
        "",
    );
}

/// A ring of one slot: the second load waits for what tells that the slot was read.
fn ring(release: &str, wait: &str) -> String {
    let load = |from: u32, phase: u32| {
        format!(
            "@%p7 bra LOAD{phase};\n{}mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n\
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0+{from}], 512, [%r2];\nLOAD{phase}:\n\
             WAIT{phase}:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [%r2], {phase};\n@!%p0 bra WAIT{phase};\n",
            if phase == 1 { wait } else { "" }
        )
    };
    format!(
        "@%p7 bra INIT;\nmbarrier.init.shared::cta.b64 [%r2], 1;\nmbarrier.init.shared::cta.b64 [%r2+8], 128;\nfence.mbarrier_init.release.cluster;\nINIT:\nbar.sync 0;\n\
         {}shl.b32 %r3, %r0, 2;\nadd.u32 %r4, %r3, %r1;\nld.shared.u32 %r6, [%r4];\n{release}\n{}ld.shared.u32 %r5, [%r4];\nadd.u32 %r5, %r5, %r6;\n\
         cvt.u64.u32 %rd1, %r3;\nadd.s64 %rd1, %rd1, %rd0;\nst.global.u32 [%rd1], %r5;",
        load(512, 0),
        load(1024, 1)
    )
}

#[test]
fn a_slot_that_is_not_yet_read_must_not_be_filled() {
    let release = "mbarrier.arrive.shared::cta.b64 _, [%r2+8];";
    let wait = "FREE:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2+8], 0;\n@!%p1 bra FREE;\n";
    let want: Vec<u32> = (0..128).map(|n| 128 + 256 + 2 * n).collect();
    assert_eq!(sound(&ring(release, wait), 128, None)[..128], want);
    finds(&ring(release, ""), 128, None, FaultKind::Race, "no barrier orders this access");
}

fn load_tensor(coordinates: &str, rank: u32, bytes: u32) -> String {
    format!(
        "{}@%p7 bra LOAD;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {bytes};\n\
         cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd9, {{{coordinates}}}], [%r2];\nLOAD:\n{WAIT}{SHOW}",
        init(1)
    )
}

#[test]
fn boxes_of_tensors() {
    // 8 x 4 words of a matrix of 12 x 30 with rows of 16, two of whose rows lie outside.
    let two = map(&[12, 30], &[64], &[8, 4], 0);
    let got = sound(&load_tensor("8, 28", 2, 128), 32, Some(two.clone()));
    let want: Vec<u32> = (0..32)
        .map(|n| (n / 8, n % 8))
        .map(|(y, x)| if y < 2 && x < 4 { (28 + y) * 16 + 8 + x } else { 0 })
        .collect();
    assert_eq!(got[..32], want);
    let swizzled = map(&[16, 30], &[64], &[8, 8], 1);
    let got = sound(&load_tensor("0, 0", 2, 256), 64, Some(swizzled));
    let want: Vec<u32> =
        (0..64).map(|n| (n / 8, n % 8)).map(|(y, x)| y * 16 + (x ^ if y & 4 != 0 { 4 } else { 0 })).collect();
    assert_eq!(got[..64], want);
    let five = map(&[4, 3, 2, 2, 2], &[16, 48, 96, 192], &[4, 2, 1, 2, 1], 0);
    let got = sound(&load_tensor("0, 2, 1, 0, 1", 5, 64), 16, Some(five));
    assert_eq!(got[..16], [68, 69, 70, 71, 0, 0, 0, 0, 92, 93, 94, 95, 0, 0, 0, 0].map(|x: u32| x));
    let finds = |body: &str, map: Option<TensorMap>, kind, part: &str| finds(body, 32, map, kind, part);
    finds(&load_tensor("6, 28", 2, 128), Some(two.clone()), FaultKind::Undefined, "no multiple of 16");
    finds(&load_tensor("0", 1, 128), Some(two.clone()), FaultKind::Undefined, "a tiled map of 2 dimensions");
    finds(&load_tensor("0, 0", 2, 128), None, FaultKind::Undefined, "no tensor map lies at");
    finds(
        &load_tensor("0, 0", 2, 128).replace("[%rd9,", "[%rd9+8,"),
        Some(two.clone()),
        FaultKind::Misaligned,
        "tensor map",
    );
    finds(
        &load_tensor("0, 0", 2, 128).replace("[%r1], [%rd9", "[%r1+64], [%rd9"),
        Some(two.clone()),
        FaultKind::Misaligned,
        "multiple of 128",
    );
    // The tensor is longer than its memory.
    finds(&load_tensor("0, 30", 2, 128), Some(map(&[12, 40], &[64], &[8, 4], 0)), FaultKind::OutOfBounds, "");
    finds("prefetch.tensormap [%rd9];", None, FaultKind::Undefined, "no tensor map lies at");
    sound(
        "prefetch.tensormap [%rd9];\ncp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd9, {0, 0}];\ncp.async.bulk.prefetch.L2.global [%rd0], 64;",
        32,
        Some(two),
    );
}

const STORE: &str = "shl.b32 %r3, %r0, 2;\nadd.u32 %r4, %r3, %r1;\nadd.u32 %r5, %r0, 1000;\nst.shared.u32 [%r4], %r5;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n\
    @%p7 bra DONE;\ncp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd9, {8, 28}], [%r1];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nDONE:\n";

#[test]
fn bulk_stores_read_and_write_when_they_are_waited_for() {
    let target = || Some(map(&[12, 30], &[64], &[8, 4], 0));
    let want = |got: &[u32]| {
        for (n, &word) in got.iter().enumerate() {
            let (x, y) = (n as u32 % 16, n as u32 / 16);
            let inside = (8..12).contains(&x) && (28..30).contains(&y);
            assert_eq!(word, if inside { 1000 + (y - 28) * 8 + x - 8 } else { n as u32 });
        }
    };
    want(&sound(STORE, 32, target()));
    want(&sound(&STORE.replace(".read", ""), 32, target()));
    want(&sound(&format!("{STORE}bar.sync 0;\nst.shared.u32 [%r4], 0;"), 32, target()));
    let read = "@!%p7 ld.global.u32 %r6, [%rd0+1824];\n@!%p7 st.global.u32 [%rd0], %r6;";
    // Reading is over, writing is not.
    assert_eq!(sound(&format!("{STORE}{read}"), 32, target())[0], 456);
    assert_eq!(sound(&format!("{}{read}", STORE.replace(".read", "")), 32, target())[0], 1000);
    let finds = |body: &str, kind, part: &str| finds(body, 32, target(), kind, part);
    finds(
        &STORE.replace("fence.proxy.async.shared::cta;\n", ""),
        FaultKind::Race,
        "without a fence.proxy.async",
    );
    let late = STORE.replace(
        "fence.proxy.async.shared::cta;\nbar.sync 0;\n",
        "bar.sync 0;\nfence.proxy.async.shared::cta;\n",
    );
    sound(&late, 32, target());
    finds(
        &STORE.replace("wait_group.read 0", "wait_group.read 1"),
        FaultKind::Undefined,
        "ended before this bulk copy had read",
    );
    finds(
        &STORE.replace("cp.async.bulk.commit_group;\n", ""),
        FaultKind::Undefined,
        "ended before this bulk copy had read",
    );
    let over =
        STORE.replace("cp.async.bulk.wait_group", "st.shared.u32 [%r4+8], 7;\ncp.async.bulk.wait_group");
    finds(&over, FaultKind::Race, "the asynchronous read of line");
    let linear = STORE.replace(
        "tensor.2d.global.shared::cta.tile.bulk_group [%rd9, {8, 28}], [%r1]",
        "global.shared::cta.bulk_group [%rd0+64], [%r1], 128",
    );
    let got = sound(&linear, 32, None);
    assert_eq!((got[15], got[16], got[47], got[48]), (15, 1000, 1031, 48));
    let add = linear.replace(
        "cp.async.bulk.global.shared::cta.bulk_group",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
    );
    let got = sound(&add, 32, None);
    assert_eq!((got[15], got[16], got[47], got[48]), (15, 1016, 1078, 48));
}

/// A product of 64 x 8 with sums over 16 halves, all of them 1 and 2: operands without swizzle at the start of `mem`.
fn product(before: &str, after: &str) -> String {
    let all = "%f0,%f1,%f2,%f3";
    format!(
        "mov.u32 %r3, %r0;\nFILL:\nshl.b32 %r4, %r3, 2;\nadd.u32 %r4, %r4, %r1;\nsetp.lt.u32 %p0, %r3, 512;\nselp.b32 %r5, 0x3c003c00, 0x40004000, %p0;\n\
         st.shared.u32 [%r4], %r5;\nadd.u32 %r3, %r3, 128;\nsetp.lt.u32 %p1, %r3, 576;\n@%p1 bra FILL;\n\
         shr.u32 %r6, %r1, 4;\ncvt.u64.u32 %rd1, %r6;\nor.b64 %rd1, %rd1, 0x1000080000;\nadd.u64 %rd2, %rd1, 128;\n\
         mov.f32 %f0, 0f3F800000;\nmov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f3F800000;\nmov.f32 %f3, 0f3F800000;\nsetp.eq.u32 %p2, 0, 0;\nmov.u32 %r10, 0x40004000;\n\
         {before}\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{all}}}, %rd1, %rd2, %p2, 1, 1, 0, 0;\n{after}\n\
         mul.wide.u32 %rd3, %r0, 4;\nadd.s64 %rd3, %rd3, %rd0;\nst.global.f32 [%rd3], %f0;"
    )
}

const BEFORE: &str = "fence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;";
const AFTER: &str = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;";

#[test]
fn products_of_a_warpgroup() {
    let all = |body: &str, want: f32| assert_eq!(sound(body, 128, None)[..128], [want.to_bits(); 128]);
    all(&product(BEFORE, AFTER), 33.0);
    let again =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd1, %rd2, %p2, -1, 1, 0, 0;";
    all(&product(BEFORE, &format!("{again}\n{again}\n{AFTER}")), -31.0);
    let other = again.replace("%f0,%f1,%f2,%f3", "%f4,%f5,%f6,%f7").replace("%p2", "!%p2");
    all(
        &product(
            BEFORE,
            &format!(
                "wgmma.commit_group.sync.aligned;\n{other}\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;\nadd.f32 %f0, %f0, %f0;\nwgmma.wait_group.sync.aligned 0;"
            ),
        ),
        66.0,
    );
    // A compiler gives registers other names while their sums are under way.
    let renamed =
        "mov.f32 %f10, %f0;\nmov.f32 %f11, %f1;\nmov.f32 %f12, %f2;\nmov.f32 %f13, %f3;\nmov.f32 %f14, %f10;";
    all(&product(BEFORE, &format!("{renamed}\n{AFTER}\nmov.f32 %f0, %f14;")), 33.0);
    let chained = again.replace("%f0,%f1,%f2,%f3", "%f10,%f11,%f12,%f13").replace("-1, 1, 0", "1, 1, 0");
    all(&product(BEFORE, &format!("{renamed}\n{chained}\n{AFTER}\nmov.f32 %f0, %f10;")), 65.0);
    let registers = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r10,%r10,%r10,%r10}, %rd2, %p2, 1, 1, 0;";
    all(&product(BEFORE, &format!("{registers}\n{AFTER}")), 33.0 + 64.0);
}

#[test]
fn products_that_are_used_wrongly() {
    let finds =
        |before: &str, after: &str, kind, part: &str| finds(&product(before, after), 128, None, kind, part);
    let undefined = FaultKind::Undefined;
    finds(BEFORE, "", undefined, "reads a sum of wgmma before wgmma.wait_group");
    finds(BEFORE, "wgmma.commit_group.sync.aligned;", undefined, "before wgmma.wait_group");
    finds(BEFORE, "wgmma.wait_group.sync.aligned 0;", undefined, "before wgmma.wait_group");
    finds(
        BEFORE,
        &AFTER.replace("wait_group.sync.aligned 0", "wait_group.sync.aligned 1"),
        undefined,
        "before wgmma.wait_group",
    );
    finds(BEFORE, "mov.f32 %f0, 0f00000000;", undefined, "writes a register of an unfinished wgmma");
    finds(BEFORE, "mov.f32 %f0, %f20;", undefined, "writes a register of an unfinished wgmma");
    finds(BEFORE, "ret;", undefined, "ended before its wgmma did");
    finds(&BEFORE.replace("wgmma.fence.sync.aligned;", ""), AFTER, FaultKind::Race, "no wgmma.fence");
    finds(&format!("{BEFORE}\nadd.f32 %f3, %f3, %f3;"), AFTER, FaultKind::Race, "no wgmma.fence");
    finds(&BEFORE.replace("fence.proxy.async;", ""), AFTER, FaultKind::Race, "without a fence.proxy.async");
    finds(&BEFORE.replace("bar.sync 0;", ""), AFTER, FaultKind::Uninitialized, "");
    finds(
        BEFORE,
        &format!("@!%p7 st.shared.u32 [%r1], 0;\n{AFTER}"),
        FaultKind::Race,
        "the asynchronous read of line",
    );
    sound(&product(BEFORE, &format!("{AFTER}\nbar.sync 0;\n@!%p7 st.shared.u32 [%r1], 0;")), 128, None);
    // Another warp's read may still be under way.
    finds(BEFORE, &format!("{AFTER}\n@!%p7 st.shared.u32 [%r1+2048], 0;"), FaultKind::Race, "");
    finds(&format!("{BEFORE}\nadd.u64 %rd2, %rd2, 0xf0;"), AFTER, FaultKind::OutOfBounds, "");
    finds(&format!("{BEFORE}\nadd.u64 %rd2, %rd2, 64;"), AFTER, FaultKind::Uninitialized, "");
    finds(
        &format!("{BEFORE}\ncvt.u64.u32 %rd4, %r0;\nadd.u64 %rd1, %rd1, %rd4;"),
        AFTER,
        undefined,
        "different descriptors",
    );
    finds(&format!("{BEFORE}\nsetp.lt.u32 %p2, %r0, 3;"), AFTER, undefined, "different scale-d");
    finds(
        &format!("{BEFORE}\nsetp.lt.u32 %p3, %r0, 32;\n@%p3 ret;"),
        AFTER,
        undefined,
        "did not all issue the same wgmma",
    );
    let fragment = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r10,%r10,%r10,%r10}, %rd2, %p2, 1, 1, 0;";
    finds(
        BEFORE,
        &format!("{fragment}\nmov.u32 %r10, 0;\n{AFTER}"),
        undefined,
        "writes a register of an unfinished wgmma",
    );
    let half = run(&product(BEFORE, AFTER), 64, None).1;
    assert!(half.unwrap_err().detail.contains("less than four warps"));
}

#[test]
fn what_a_card_of_another_capability_refuses() {
    let load = |target: &str, body: &str| {
        let text = text(body, "").replace("sm_90a", target);
        let target = warpwright_emulator::Target::new(90);
        warpwright_emulator::Module::load(&text, &target).map(|_| ()).map_err(|error| error.log)
    };
    for body in ["wgmma.fence.sync.aligned;", "setmaxnreg.dec.sync.aligned.u32 40;"] {
        assert!(load("sm_90a", body).is_ok());
        assert!(load("sm_90", body).unwrap_err().contains("requires .target sm_90a"), "{body}");
    }
    for body in [
        "mbarrier.try_wait.parity.shared.b64 %p0, [%r2], 0;",
        "elect.sync _|%p0, -1;",
        "fence.proxy.async;",
        "griddepcontrol.wait;",
        "barrier.cluster.arrive;",
    ] {
        assert!(load("sm_90", body).is_ok(), "{body}");
        assert!(load("sm_80", body).unwrap_err().contains("requires .target sm_90"), "{body}");
    }
    assert!(load("sm_80", "mbarrier.arrive.shared.b64 %rd1, [%r2];").is_ok());
    let wrong = "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f0}, %rd1, %rd1, %p0, 1, 1, 0, 0;";
    assert!(load("sm_90a", wrong).unwrap_err().contains("of this form"));
    assert!(load("sm_90a", "setmaxnreg.inc.sync.aligned.u32 250;").is_err());
}
