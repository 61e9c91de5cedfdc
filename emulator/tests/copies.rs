//! Host memory: page-locked ranges, and copies that run later than they are submitted.

mod common;

use common::*;
use warpwright_emulator::driver::abi::types::Slot;
use warpwright_emulator::driver::abi::*;

#[test]
fn a_copy_from_locked_memory_reads_it_when_it_runs() {
    let machine = ready("");
    let (stream, host, device) = (stream(), pinned(&[1, 2, 3]), alloc(12));
    assert_eq!(cuMemcpyHtoDAsync_v2(device, host.0, 12, stream), 0);
    host.set(&[4, 5, 6]);
    assert_eq!(cuStreamSynchronize(stream), 0);
    machine.found("source", "changed between the submission");
    assert_eq!(read(device, 3), [4, 5, 6]);
    assert_eq!(cuMemcpyHtoDAsync_v2(device, host.0, 12, stream), 0);
    assert_eq!(cuStreamSynchronize(stream), 0);
    host.set(&[7, 8, 9]);
    host.free();
}

#[test]
fn the_source_checker_can_be_off() {
    let _machine = ready("checks=-source");
    let (stream, host, device) = (stream(), pinned(&[1]), alloc(4));
    assert_eq!(cuMemcpyHtoDAsync_v2(device, host.0, 4, stream), 0);
    host.set(&[4]);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(read(device, 1), [4]);
    host.free();
}

#[test]
fn a_copy_from_pageable_memory_has_taken_it() {
    let _machine = ready("");
    let (stream, device) = (stream(), alloc(12));
    let mut host = vec![1u32, 2, 3];
    assert_eq!(cuMemcpyHtoDAsync_v2(device, host.as_ptr() as usize, 12, stream), 0);
    host.fill(9);
    drop(host);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(read(device, 3), [1, 2, 3]);
}

#[test]
fn without_a_wait_the_host_sees_old_bytes() {
    let _machine = ready("");
    let (stream, device, host) = (stream(), filled(&[5, 6]), pinned(&[0, 0]));
    assert_eq!(cuMemcpyDtoHAsync_v2(host.0, device, 8, stream), 0);
    assert_eq!(host.get(), [0, 0]);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(host.get(), [5, 6]);
    host.free();
}

#[test]
fn a_copy_to_pageable_memory_has_ended_when_the_call_returns() {
    let _machine = ready("");
    let (stream, device) = (stream(), filled(&[5, 6]));
    let mut host = [0u32; 2];
    assert_eq!(cuMemcpyDtoHAsync_v2(host.as_mut_ptr() as usize, device, 8, stream), 0);
    assert_eq!(host, [5, 6]);
}

#[test]
fn locked_memory_that_is_freed_under_a_copy() {
    let machine = ready("");
    let (stream, host, device) = (stream(), pinned(&[1, 2]), alloc(8));
    assert_eq!(cuMemcpyHtoDAsync_v2(device, host.0, 8, stream), 0);
    host.free();
    machine.found("host", "before 1 asynchronous copies that use it ran");
    assert_eq!(read(device, 2), [1, 2], "the driver lets the copy end first");
}

#[test]
fn registered_memory_that_is_released_under_a_copy() {
    let machine = ready("");
    let (stream, device) = (stream(), filled(&[1, 2]));
    let mut host = vec![0u32; 1024];
    let address = host.as_mut_ptr() as usize;
    assert_eq!(cuMemHostRegister_v2(address, 4096, 1), 0);
    assert_eq!(cuMemcpyDtoHAsync_v2(address + 8, device, 8, stream), 0);
    assert_eq!(cuMemHostUnregister(address), 0);
    machine.found("host", "asynchronous copies");
    assert_eq!(host[2..4], [1, 2]);
}

#[test]
fn memory_that_the_system_has_back_under_a_copy() {
    let machine = ready("");
    let (stream, device) = (stream(), alloc(64 << 20));
    // Blocks of that size are the system's own pages, which freeing gives back.
    let host = vec![1u8; 64 << 20];
    let address = host.as_ptr() as usize;
    assert_eq!(cuMemHostRegister_v2(address, host.len(), 0), 0);
    assert_eq!(cuMemcpyHtoDAsync_v2(device, address, host.len(), stream), 0);
    drop(host);
    assert_eq!(cuStreamSynchronize(stream), 700);
    machine.found("host", "given back to the system");
}

#[test]
fn ranges_are_locked_once() {
    let machine = ready("");
    let mut host = vec![0u32; 4096];
    let address = host.as_mut_ptr() as usize;
    assert_eq!(cuMemHostRegister_v2(address, 8192, 1), 0);
    assert_eq!(cuMemHostRegister_v2(address + 4096, 8192, 1), 712);
    assert_eq!(cuMemHostUnregister(address + 4096), 713);
    machine.found("handles", "page-locked");
    assert_eq!(cuMemHostUnregister(address), 0);
    assert_eq!(cuMemHostUnregister(address), 713);
    machine.found("handles", "page-locked");
    assert_eq!(cuMemHostRegister_v2(0, 8192, 1), 1);
    assert_eq!(cuMemHostRegister_v2(address, 0, 1), 1);
    assert_eq!(cuMemFreeHost(address), 1);
    machine.found("handles", "page-locked");
    assert_eq!(got(|slot: Slot<usize>| cuMemHostAlloc(slot, 0, 0)), Err(1));
}

#[test]
fn an_eager_machine_copies_at_once() {
    let _machine = ready("schedule=eager");
    let (stream, device, host) = (stream(), filled(&[5, 6]), pinned(&[0, 0]));
    assert_eq!(cuMemcpyDtoHAsync_v2(host.0, device, 8, stream), 0);
    assert_eq!(host.get(), [5, 6]);
    host.free();
}

#[test]
fn a_full_queue_runs_its_oldest_work() {
    let _machine = ready("queue=2");
    let (stream, device, host) = (stream(), filled(&[5]), pinned(&[0]));
    assert_eq!(cuMemcpyDtoHAsync_v2(host.0, device, 4, stream), 0);
    for _ in 0..2 {
        assert_eq!(host.get(), [0]);
        assert_eq!(cuMemsetD8Async(device, 1, 4, stream), 0);
    }
    assert_eq!(host.get(), [5]);
    host.free();
}
