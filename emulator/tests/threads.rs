//! Calls from several threads at once.

mod common;

use common::*;
use warpwright_emulator::driver::abi::*;

#[test]
fn threads_submit_wait_and_allocate_beside_each_other() {
    let _machine = ready("devices=2,queue=8");
    let contexts = [retain(0), retain(1)];
    let work = |thread: usize| {
        assert_eq!(cuCtxSetCurrent(contexts[thread % 2]), 0);
        let (function, stream, done) = (adder(), stream(), event());
        for round in 0..20u32 {
            let device = filled(&[round; 64]);
            for _ in 0..5 {
                assert_eq!(add(function, device, 1, 64, stream), 0);
            }
            assert_eq!(cuEventRecord(done, stream), 0);
            match round % 3 {
                0 => while cuEventQuery(done) == 600 {},
                1 => assert_eq!(cuEventSynchronize(done), 0),
                _ => assert_eq!(cuStreamSynchronize(stream), 0),
            }
            assert_eq!(read(device, 64), [round + 5; 64]);
            assert_eq!(cuMemFree_v2(device), 0);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || work(thread));
        }
    });
}

#[test]
fn a_wait_in_one_thread_runs_what_another_submitted() {
    let _machine = ready("slow=nothing:50");
    let (module, stream, done) = (load(PTX).unwrap(), stream(), event());
    assert_eq!(nothing(module, stream), 0);
    assert_eq!(cuEventRecord(done, stream), 0);
    let waited = std::thread::spawn(move || {
        retain(0);
        cuEventSynchronize(done)
    });
    // Submission goes on while the other thread runs the kernel.
    let device = filled(&[1]);
    assert_eq!(cuMemsetD8Async(device, 7, 4, stream), 0);
    assert_eq!(waited.join().unwrap(), 0);
    assert_eq!(read(device, 1), [1]);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(read(device, 1), [0x0707_0707]);
}

#[test]
fn a_reset_beside_running_work() {
    let _machine = ready("slow=nothing:30");
    let context = retain(0);
    let module = load(PTX).unwrap();
    assert_eq!(nothing(module, 0), 0);
    let waiter = std::thread::spawn(move || {
        cuCtxSetCurrent(context);
        cuCtxSynchronize()
    });
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
    assert!([0, 709].contains(&waiter.join().unwrap()));
    let found = warpwright_emulator::driver::report::take();
    assert_eq!(found.len(), 1, "the module was left: {found:?}");
}
