//! Failures on demand, lost contexts and the report.

mod common;

use common::*;
use std::process::Command;
use warpwright_emulator::driver::abi::types::Slot;
use warpwright_emulator::driver::abi::*;

#[test]
fn the_call_that_was_named_fails_and_no_other() {
    let _machine = ready("fail=cuMemAlloc_v2:3:2,fail=cuStreamCreate:2+:999,fail=cuEventCreate:*:1");
    let allocate = || got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 64)).map(|_| ());
    assert_eq!([allocate(), allocate(), allocate(), allocate()], [Ok(()), Ok(()), Err(2), Ok(())]);
    let create = || got(|slot: Slot<usize>| cuStreamCreate(slot, 0)).map(|_| ());
    assert_eq!([create(), create(), create()], [Ok(()), Err(999), Err(999)]);
    assert_eq!(got(|slot: Slot<usize>| cuEventCreate(slot, 0)), Err(1));
}

#[test]
fn every_function_can_fail() {
    for symbol in SYMBOLS {
        let _machine = machine(&format!("fail={symbol}:1:46"));
        if *symbol == "cuInit" {
            assert_eq!(cuInit(0), 46);
            assert_eq!(cuInit(0), 0, "the next call works");
        }
    }
    let _machine = ready("fail=cuLaunchKernel:1:1,fail=cuGetErrorString:1:1,fail=cuMemGetInfo_v2:1:5");
    let (function, device) = (adder(), filled(&[1]));
    assert_eq!(add(function, device, 1, 1, 0), 1);
    assert_eq!(cuMemGetInfo_v2(Slot::NULL, Slot::NULL), 5);
    let mut words = c"".as_ptr();
    assert_eq!(cuGetErrorString(1, Slot::from(&mut words)), 1);
    assert_eq!(cuGetErrorString(1, Slot::from(&mut words)), 0);
}

#[test]
fn a_lasting_error_on_demand_ends_the_context() {
    let _machine = ready("fail=cuMemcpyDtoHAsync_v2:1:700");
    let (device, mut host) = (filled(&[1]), 0u32);
    assert_eq!(cuMemcpyDtoHAsync_v2(&raw mut host as usize, device, 4, 0), 700);
    assert_eq!(cuCtxSynchronize(), 700);
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
    assert_eq!(cuCtxSynchronize(), 709, "a reset context is not there until it is retained");
    retain(0);
    assert_eq!(read(filled(&[5]), 1), [5]);
}

#[test]
fn a_launch_that_faults_shows_at_the_next_wait_and_stays() {
    let _machine = ready("fault=add_u32:719:2");
    let (function, stream, device, event) = (adder(), stream(), filled(&[1]), event());
    assert_eq!(add(function, device, 1, 1, stream), 0);
    assert_eq!(add(function, device, 1, 1, stream), 0, "the launch itself is taken");
    assert_eq!(cuEventRecord(event, stream), 0);
    assert_eq!(cuEventSynchronize(event), 719);
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 64)), Err(719));
    assert_eq!(cuStreamDestroy_v2(stream), 719);
    assert_eq!(got(|slot: Slot<usize>| cuDevicePrimaryCtxRetain(slot, 0)), Err(719));
    assert_eq!(got(|slot: Slot<i32>| cuDeviceGetCount(slot)), Ok(1), "calls without a context work");
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
    assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
    retain(0);
    let (function, device) = (adder(), filled(&[1]));
    assert_eq!(add(function, device, 1, 1, 0), 0);
    assert_eq!(read(device, 1), [2]);
}

#[test]
fn the_last_release_ends_a_lost_context_too() {
    let _machine = ready("fault=*:700");
    let module = load(PTX).unwrap();
    assert_eq!(nothing(module, 0), 0);
    assert_eq!(cuCtxSynchronize(), 700);
    assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
    retain(0);
    assert_eq!(read(filled(&[5]), 1), [5]);
}

#[test]
fn a_card_that_does_not_recover() {
    let _machine = ready("recover=off,fault=nothing:719");
    assert_eq!(nothing(load(PTX).unwrap(), 0), 0);
    assert_eq!(cuCtxSynchronize(), 719);
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
    assert_eq!(got(|slot: Slot<usize>| cuDevicePrimaryCtxRetain(slot, 0)), Err(719));
}

#[test]
fn a_fault_of_one_card_leaves_the_other_alone() {
    let _machine = ready("devices=2,fault=nothing:700");
    assert_eq!(nothing(load(PTX).unwrap(), 0), 0);
    assert_eq!(cuCtxSynchronize(), 700);
    retain(1);
    assert_eq!(read(filled(&[5]), 1), [5]);
}

#[test]
fn functions_that_this_driver_lacks() {
    let _machine = ready("absent=cuMemAllocAsync+cuGraphLaunch");
    assert_eq!(got(|slot: Slot<u64>| cuMemAllocAsync(slot, 4, 0)), Err(801));
    assert_eq!(cuGraphLaunch(1, 0), 801);
    assert_eq!(got(|slot| cuDeviceGetAttribute(slot, 115, 0)), Ok(0), "and so it has no pools");
}

#[test]
fn what_is_submitted_to_a_lost_context_is_dropped() {
    let _machine = ready("fault=nothing:700");
    let module = load(PTX).unwrap();
    let (first, second, host, device) = (stream(), stream(), pinned(&[1]), filled(&[2]));
    assert_eq!(cuMemcpyDtoHAsync_v2(host.0, device, 4, second), 0);
    assert_eq!(nothing(module, first), 0);
    assert_eq!(cuStreamSynchronize(first), 700);
    assert_eq!(cuStreamSynchronize(second), 700);
    assert_eq!(host.get(), [1]);
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
}

/// Run as a process of its own by the test below.
#[test]
#[ignore = "ends its process with memory left"]
fn leave_memory() {
    assert_eq!(cuInit(0), 0);
    retain(0);
    let function = adder();
    let device = filled(&[1]);
    assert_eq!(add(function, device, 1, 1, 0), 0);
    assert_eq!(cuCtxSynchronize(), 0);
    assert_eq!(cuMemFree_v2(12345), 1);
}

#[test]
fn the_report_tells_findings_launches_and_what_was_left() {
    let path = std::env::temp_dir().join(format!("warpwright-emulator-{}.jsonl", std::process::id()));
    let run = |config: &str| {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--ignored", "--exact", "leave_memory"]);
        let output =
            command.env("WARPWRIGHT_EMULATOR", config).env("WARPWRIGHT_EMULATOR_REPORT", &path).output();
        let output = output.unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (good, output) = run("cc=75,exit-leaks=on");
    assert!(good, "{output}");
    let report = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(lines.len(), 3, "{report}");
    assert!(lines[0].starts_with(r#"{"type":"finding","checker":"memory""#), "{report}");
    assert!(lines[1].contains(r#""compute_capability":75,"launches":{"add_u32":1}"#), "{report}");
    assert!(
        lines[1].contains(r#""cuMemAlloc_v2":1"#) && lines[1].contains(r#""allocations":1,"bytes":4"#),
        "{report}"
    );
    assert!(lines[2].starts_with(r#"{"type":"finding","checker":"leaks""#), "{report}");
    std::fs::remove_file(&path).unwrap();

    let (good, output) = run("colour=red");
    assert!(!good, "nothing starts with a configuration that cannot be read: {output}");
    let report = std::fs::read_to_string(&path).unwrap();
    assert!(
        report.contains(
            r#""checker":"configuration","message":"WARPWRIGHT_EMULATOR: 'colour=red': unknown key""#
        ),
        "{report}"
    );
    std::fs::remove_file(&path).unwrap();

    let control = std::env::temp_dir().join(format!("warpwright-emulator-{}.conf", std::process::id()));
    std::fs::write(&control, "# a file\ncc = 75\nfail=cuMemAlloc_v2:1:2\n").unwrap();
    let (good, output) = run(control.to_str().unwrap());
    assert!(!good && output.contains("Err` value: 2"), "{output}");
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&control).unwrap();
}
