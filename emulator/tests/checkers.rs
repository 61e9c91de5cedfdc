//! Each checker finds its planted fault, and leaves the sound variant alone.

mod rig;

use rig::Arg::{self, U64};
use rig::Rig;
use warpwright_emulator::exec::Statistics;
use warpwright_emulator::{Fault, FaultKind};

/// A kernel over `%rd0` (a pointer), with `%r0` the thread and 1,024 bytes of shared memory at `mem`.
fn rig(body: &str) -> Rig {
    Rig::text(
        &format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
             .reg .b64 %rd<16>;\n.reg .b32 %r<32>;\n.reg .pred %p<8>;\n.reg .f32 %f<4>;\n\
             .shared .align 16 .b8 mem[1024];\nld.param.u64 %rd0, [p];\nmov.u32 %r0, %tid.x;\n{body}\nret;\n}}\n"
        ),
        80,
    )
}

fn go(rig: &Rig, blocks: u32, threads: u32, at: u64) -> Result<Statistics, Fault> {
    let arguments: [Arg; 1] = [U64(at)];
    rig.try_launch("k", [blocks, 1, 1], [threads, 1, 1], 0, &arguments)
}

#[track_caller]
fn finds(body: &str, blocks: u32, threads: u32, kind: FaultKind) -> Fault {
    let rig = rig(body);
    let at = rig.put(&[0u32; 64]);
    let fault = go(&rig, blocks, threads, at).expect_err("no fault found");
    assert_eq!(fault.kind, kind, "{fault}");
    fault
}

#[track_caller]
fn sound(body: &str, blocks: u32, threads: u32) -> Vec<u32> {
    let rig = rig(body);
    let at = rig.put(&[0u32; 64]);
    go(&rig, blocks, threads, at).unwrap_or_else(|fault| panic!("{fault}"));
    rig.get(at, 64)
}

#[test]
fn out_of_bounds_names_kernel_thread_address_and_line() {
    let fault = finds(
        "mul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd2, %rd0, %rd1;\nst.global.u32 [%rd2], %r0;",
        1,
        96,
        FaultKind::OutOfBounds,
    );
    assert_eq!((fault.kernel.as_str(), fault.thread), ("k", [64, 0, 0]));
    assert_eq!(fault.address.unwrap() % 512, 256);
    assert!(fault.line == 15 && fault.instruction == "st.global.u32 [%rd2], %r0;", "{fault}");
    finds("ld.global.u32 %r1, [%rd0+-4];", 1, 1, FaultKind::OutOfBounds);
    finds("mov.u64 %rd1, 0;\nld.global.u32 %r1, [%rd1];", 1, 1, FaultKind::OutOfBounds);
    finds("st.shared.u32 [mem+1024], %r0;", 1, 1, FaultKind::OutOfBounds);
    finds(".local .align 4 .b8 l[16];\nst.local.u32 [l+16], %r0;", 1, 1, FaultKind::OutOfBounds);
    finds("ld.param.u32 %r1, [p+8];", 1, 1, FaultKind::OutOfBounds);
}

#[test]
fn misaligned_access() {
    finds("ld.global.u32 %r1, [%rd0+2];", 1, 1, FaultKind::Misaligned);
    finds("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd0+8];", 1, 1, FaultKind::Misaligned);
    finds("st.shared.u64 [mem+4], %rd0;", 1, 1, FaultKind::Misaligned);
    sound("ld.global.v2.u32 {%r1,%r2}, [%rd0+8];", 1, 1);
}

#[test]
fn memory_that_nothing_wrote() {
    let rig = rig("ld.global.u32 %r1, [%rd0];");
    let at = rig.empty(64);
    assert_eq!(go(&rig, 1, 1, at).unwrap_err().kind, FaultKind::Uninitialized);
    finds("ld.shared.u32 %r1, [mem];", 1, 1, FaultKind::Uninitialized);
    finds(".local .align 4 .b8 l[16];\nld.local.u32 %r1, [l];", 1, 1, FaultKind::Uninitialized);
    finds("st.shared.u16 [mem], %r0;\nld.shared.u32 %r1, [mem];", 1, 1, FaultKind::Uninitialized);
}

#[test]
fn use_after_free() {
    let rig = rig("ld.global.u32 %r1, [%rd0];");
    let at = rig.put(&[1u32; 4]);
    go(&rig, 1, 1, at).unwrap();
    rig.memory.free(at);
    assert_eq!(go(&rig, 1, 1, at).unwrap_err().kind, FaultKind::UseAfterFree);
}

const EXCHANGE: &str = "mov.u32 %r1, mem;\nshl.b32 %r2, %r0, 2;\nadd.u32 %r3, %r1, %r2;\nst.shared.u32 [%r3], %r0;\nSYNC\n\
    xor.b32 %r4, %r0, LANE;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r4, %r1, %r4;\nld.shared.u32 %r5, [%r4];\n\
    and.b32 %r6, %r0, 63;\nmul.wide.u32 %rd1, %r6, 4;\nadd.s64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r5;";

fn exchange(sync: &str, lane: u32) -> String {
    EXCHANGE.replace("SYNC", sync).replace("LANE", &lane.to_string())
}

#[test]
fn races_in_shared_memory() {
    finds(&exchange("", 32), 1, 64, FaultKind::Uninitialized);
    // Zeroed first, so that only the order is at fault.
    let zero = |sync: &str, lane| {
        let zero = "mov.u32 %r7, 0;\nshl.b32 %r8, %r0, 2;\nmov.u32 %r9, mem;\nadd.u32 %r8, %r8, %r9;\nst.shared.u32 [%r8], %r7;\nbar.sync 0;\n";
        format!("{zero}{}", exchange(sync, lane))
    };
    finds(&zero("", 32), 1, 64, FaultKind::Race);
    finds(&zero("", 1), 1, 64, FaultKind::Race);
    finds(&zero("bar.warp.sync -1;", 32), 1, 64, FaultKind::Race);
    let want: Vec<u32> = (0..64).map(|n| n ^ 32).collect();
    assert_eq!(sound(&zero("bar.sync 0;", 32), 1, 64), want);
    let want: Vec<u32> = (0..64).map(|n| n ^ 1).collect();
    assert_eq!(sound(&zero("bar.warp.sync -1;", 1), 1, 64), want);
    // A read that a later write overtakes: the second barrier is missing.
    let again = format!("{}\nst.shared.u32 [%r3], %r5;", zero("bar.sync 0;", 32));
    finds(&again, 1, 64, FaultKind::Race);
    let again = format!("{}\nbar.sync 0;\nst.shared.u32 [%r3], %r5;", zero("bar.sync 0;", 32));
    sound(&again, 1, 64);
    // All threads write one word.
    finds("st.shared.u32 [mem], %r0;", 1, 2, FaultKind::Race);
    sound(
        "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.shared.u32 [mem], 0;\nbar.sync 0;\natom.shared.add.u32 %r1, [mem], 1;",
        1,
        64,
    );
}

#[test]
fn races_in_global_memory() {
    let run = |body: &str, blocks, threads| {
        let mut rig = rig(body);
        rig.checks.global_races = true;
        let at = rig.put(&[0u32; 64]);
        go(&rig, blocks, threads, at).map_err(|fault| fault.kind)
    };
    assert_eq!(run("mov.u32 %r1, %ctaid.x;\nst.global.u32 [%rd0], %r1;", 2, 1).err(), Some(FaultKind::Race));
    assert!(run("mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd1, %r1, 4;\nadd.s64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r1;", 2, 1).is_ok());
    assert!(run("red.global.add.u32 [%rd0], 1;", 4, 64).is_ok());
    let neighbour = "mul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r0;\nSYNC\n\
        xor.b32 %r1, %r0, 32;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd0, %rd2;\nld.global.u32 %r2, [%rd2];";
    assert_eq!(run(&neighbour.replace("SYNC", ""), 1, 64).err(), Some(FaultKind::Race));
    assert!(run(&neighbour.replace("SYNC", "bar.sync 0;"), 1, 64).is_ok());
    // The last block reads what the others wrote, ordered by fence and atomic.
    let last = "mov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd1, %r1, 4;\nadd.s64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1+4], %r1;\nFENCE\n\
        atom.global.add.u32 %r2, [%rd0], 1;\nsetp.ne.u32 %p0, %r2, 3;\n@%p0 ret;\nmembar.gl;\nld.global.u32 %r3, [%rd0+4];\n\
        ld.global.u32 %r3, [%rd0+8];\nld.global.u32 %r3, [%rd0+12];\nld.global.u32 %r3, [%rd0+16];";
    assert!(run(&last.replace("FENCE", "membar.gl;"), 4, 1).is_ok());
    assert_eq!(run(&last.replace("FENCE", ""), 4, 1).err(), Some(FaultKind::Race));
}

#[test]
fn barrier_divergence() {
    // Half a warp leaves the other half alone with its barrier and waits elsewhere.
    finds(
        "setp.lt.u32 %p0, %r0, 16;\n@%p0 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 1;\nB:\n",
        1,
        32,
        FaultKind::BarrierDivergence,
    );
    finds(
        "setp.lt.u32 %p0, %r0, 32;\n@%p0 bra A;\nbar.sync 0;\nbra B;\nA:\nbar.sync 0;\nB:\n",
        1,
        64,
        FaultKind::BarrierDivergence,
    );
    finds("bar.sync 0, 128;", 1, 64, FaultKind::BarrierDivergence);
    finds(
        "setp.lt.u32 %p0, %r0, 16;\n@%p0 bra A;\nbar.warp.sync -1;\nbra B;\nA:\nbar.sync 1, 64;\nB:\n",
        1,
        32,
        FaultKind::BarrierDivergence,
    );
    sound("setp.lt.u32 %p0, %r0, 32;\n@%p0 ret;\nbar.sync 0;", 1, 64);
    sound("setp.lt.u32 %p0, %r0, 32;\n@%p0 bra A;\nbar.sync 1, 32;\nA:\nbar.sync 0;", 1, 64);
    sound(
        "setp.lt.u32 %p0, %r0, 32;\n@%p0 bra A;\nbar.sync 1, 64;\nbra B;\nA:\nbar.arrive 1, 64;\nB:\n",
        1,
        64,
    );
    let odd = "and.b32 %r1, %r0, 1;\nsetp.eq.u32 %p0, %r1, 1;\nbar.red.popc.u32 %r2, 0, %p0;\nmul.wide.u32 %rd1, %r0, 4;\n\
        add.s64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r2;";
    assert_eq!(sound(odd, 1, 64), [32; 64]);
}

#[test]
fn trap_timeout_and_launches_that_the_card_refuses() {
    let fault = finds("setp.eq.u32 %p0, %r0, 5;\n@%p0 trap;", 1, 32, FaultKind::Trap);
    assert_eq!(fault.thread, [5, 0, 0]);
    let mut rig = rig("A:\nbra A;");
    rig.checks.max_instructions = 100_000;
    let at = rig.put(&[0u32]);
    assert_eq!(go(&rig, 1, 1, at).unwrap_err().kind, FaultKind::Timeout);
    assert_eq!(go(&rig, 1, 1025, at).unwrap_err().kind, FaultKind::Launch);
    assert_eq!(go(&rig, 0, 1, at).unwrap_err().kind, FaultKind::Launch);
    let much = rig.try_launch("k", [1; 3], [1; 3], 200 << 10, &[U64(at)]);
    assert_eq!(much.unwrap_err().kind, FaultKind::Launch);
}

/// Any legal program ends: a lane, a warp or a block that waits for another one is not alone.
#[test]
fn spinning_threads_let_the_others_run() {
    let spin = |own: &str| {
        format!(
            "{own}\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra SET;\nWAIT:\nld.volatile.global.u32 %r2, [%rd0];\n\
             setp.eq.u32 %p1, %r2, 0;\n@%p1 bra WAIT;\nbra END;\nSET:\nst.volatile.global.u32 [%rd0], 1;\nEND:\n"
        )
    };
    assert_eq!(sound(&spin("and.b32 %r1, %r0, 1;"), 1, 32)[0], 1);
    assert_eq!(sound(&spin("shr.u32 %r1, %r0, 5;"), 1, 64)[0], 1);
    let rig = rig(&spin("mov.u32 %r1, %ctaid.x;"));
    let at = rig.put(&[0u32; 64]);
    let mut alone = rig;
    alone.checks.threads = 1;
    go(&alone, 2, 1, at).unwrap();
    // A lock that lanes of one warp take in turn.
    let lock = "LOCK:\natom.global.cas.b32 %r1, [%rd0], 0, 1;\nsetp.ne.u32 %p0, %r1, 0;\n@%p0 bra LOCK;\n\
        ld.volatile.global.u32 %r2, [%rd0+4];\nadd.u32 %r2, %r2, 1;\nst.volatile.global.u32 [%rd0+4], %r2;\nmembar.gl;\n\
        atom.global.exch.b32 %r3, [%rd0], 0;";
    assert_eq!(sound(lock, 2, 64)[1], 128);
}

#[test]
fn asynchronous_copies_land_when_they_are_waited_for() {
    let copy = "mov.u32 %r1, mem;\nshl.b32 %r2, %r0, 4;\nadd.u32 %r1, %r1, %r2;\ncvt.u64.u32 %rd1, %r2;\nadd.s64 %rd1, %rd0, %rd1;\n\
        cp.async.cg.shared.global [%r1], [%rd1], 16;\ncp.async.commit_group;\nWAIT\nld.shared.v4.u32 {%r3,%r4,%r5,%r6}, [%r1];\n\
        add.u32 %r3, %r3, 1;\nst.global.u32 [%rd1], %r3;";
    let waited = sound(&copy.replace("WAIT", "cp.async.wait_group 0;"), 1, 8);
    assert_eq!(waited[..5], [1, 0, 0, 0, 1]);
    finds(&copy.replace("WAIT", ""), 1, 8, FaultKind::Uninitialized);
    finds(&copy.replace("WAIT", "cp.async.wait_group 1;"), 1, 8, FaultKind::Uninitialized);
    sound(&copy.replace("WAIT", "cp.async.wait_all;"), 1, 8);
    // Another thread's copy needs a barrier after the wait.
    let other = copy.replace(
        "WAIT",
        "cp.async.wait_all;\nSYNC\nxor.b32 %r7, %r2, 512;\nmov.u32 %r1, mem;\nadd.u32 %r1, %r1, %r7;",
    );
    let rig = |sync: &str| {
        let rig = rig(&other.replace("SYNC", sync));
        let at = rig.put(&[3u32; 256]);
        go(&rig, 1, 64, at).map_err(|fault| fault.kind)
    };
    assert!(matches!(rig("").unwrap_err(), FaultKind::Race | FaultKind::Uninitialized));
    assert!(rig("bar.sync 0;").is_ok());
    // Bytes beyond the source size are zero.
    let short = "cp.async.ca.shared.global [mem], [%rd0], 8, 4;\ncp.async.wait_all;\nld.shared.v2.u32 {%r1,%r2}, [mem];\nst.global.u32 [%rd0], %r2;";
    assert_eq!(sound(short, 1, 1)[0], 0);
}

fn each(body: &str) -> Vec<u32> {
    let store = "mul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd1, %rd0, %rd1;\nst.global.u32 [%rd1], %r1;";
    sound(&format!("{body}\n{store}"), 1, 32)[..32].to_vec()
}

#[test]
fn exchange_between_lanes() {
    let lanes = |f: fn(u32) -> u32| (0..32).map(f).collect::<Vec<u32>>();
    assert_eq!(each("shfl.sync.bfly.b32 %r1, %r0, 5, 31, -1;"), lanes(|n| n ^ 5));
    assert_eq!(
        each("shfl.sync.up.b32 %r1|%p0, %r0, 3, 0, -1;\n@!%p0 mov.u32 %r1, 99;"),
        lanes(|n| if n < 3 { 99 } else { n - 3 })
    );
    assert_eq!(each("shfl.sync.down.b32 %r1, %r0, 2, 31, -1;"), lanes(|n| if n > 29 { n } else { n + 2 }));
    assert_eq!(each("shfl.sync.idx.b32 %r1, %r0, 1, 0x181f, -1;"), lanes(|n| n / 8 * 8 + 1));
    assert_eq!(each("setp.lt.u32 %p0, %r0, 5;\nvote.sync.ballot.b32 %r1, %p0, -1;"), lanes(|_| 31));
    assert_eq!(
        each("setp.lt.u32 %p0, %r0, 5;\nvote.sync.any.pred %p1, %p0, -1;\nselp.u32 %r1, 1, 0, %p1;"),
        lanes(|_| 1)
    );
    assert_eq!(
        each("setp.lt.u32 %p0, %r0, 5;\nvote.sync.all.pred %p1, %p0, -1;\nselp.u32 %r1, 1, 0, %p1;"),
        lanes(|_| 0)
    );
    assert_eq!(
        each("and.b32 %r2, %r0, 1;\nmatch.any.sync.b32 %r1, %r2, -1;"),
        lanes(|n| 0x5555_5555 << (n & 1))
    );
    assert_eq!(each("redux.sync.add.u32 %r1, %r0, -1;"), lanes(|_| 496));
    assert_eq!(each("redux.sync.min.s32 %r1, %r0, -1;"), lanes(|_| 0));
    assert_eq!(
        each("mov.u32 %r1, 0;\nsetp.lt.u32 %p0, %r0, 4;\n@%p0 activemask.b32 %r1;"),
        lanes(|n| if n < 4 { 15 } else { 0 })
    );
    assert_eq!(each("mov.u32 %r1, %lanemask_lt;"), lanes(|n| (1 << n) - 1));
    // Lanes that come late, from the other side of a branch, are waited for.
    let late = "setp.lt.u32 %p0, %r0, 16;\nmov.u32 %r2, %r0;\n@%p0 bra A;\nadd.u32 %r2, %r2, 100;\nA:\nshfl.sync.bfly.b32 %r1, %r2, 16, 31, -1;";
    assert_eq!(each(late), lanes(|n| if n < 16 { n + 116 } else { n - 16 }));
    finds("shfl.sync.idx.b32 %r1, %r0, 9, 31, 0xff;", 1, 32, FaultKind::Undefined);
    finds(
        "setp.lt.u32 %p0, %r0, 8;\n@%p0 shfl.sync.idx.b32 %r1, %r0, 9, 31, 0xff;",
        1,
        32,
        FaultKind::Undefined,
    );
}

#[test]
fn atomics() {
    let total = sound(
        "atom.global.add.u32 %r1, [%rd0], %r0;\nred.global.max.u32 [%rd0+4], %r0;\nred.global.inc.u32 [%rd0+8], 6;\nred.global.add.f32 [%rd0+12], 0f3F800000;",
        4,
        64,
    );
    assert_eq!(total[..4], [4 * 2016, 63, 256 % 7, 256f32.to_bits()]);
    let wide = "cvt.u64.u32 %rd2, %r0;\nshl.b64 %rd2, %rd2, 40;\natom.global.max.u64 %rd3, [%rd0], %rd2;\nred.global.add.u64 [%rd0+8], %rd2;\nred.global.or.b64 [%rd0+16], %rd2;";
    let wide = sound(wide, 1, 8);
    assert_eq!(wide[..6], [0, 7 << 8, 0, 28 << 8, 0, 7 << 8]);
    let swap = sound(
        "atom.global.cas.b32 %r1, [%rd0], 0, 7;\natom.global.exch.b32 %r2, [%rd0+4], 9;\nst.global.u32 [%rd0+8], %r2;",
        1,
        1,
    );
    assert_eq!(swap[..3], [7, 9, 0]);
}
