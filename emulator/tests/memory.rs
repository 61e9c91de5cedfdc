//! Allocations, the pool and ranges.

mod common;

use common::*;
use std::ffi::c_void;
use warpwright_emulator::driver::abi::types::{Bytes, Slot};
use warpwright_emulator::driver::abi::*;

fn info() -> (usize, usize) {
    let (mut free, mut total) = (0, 0);
    assert_eq!(cuMemGetInfo_v2(Slot::from(&mut free), Slot::from(&mut total)), 0);
    (free, total)
}

#[test]
fn memory_ends() {
    let _machine = ready("memory=1M");
    let first = alloc(600 << 10);
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 600 << 10)), Err(2));
    assert!(info().0 <= (1 << 20) - (600 << 10) && info().1 == 1 << 20);
    assert_eq!(cuMemFree_v2(first), 0);
    assert_eq!(info(), (1 << 20, 1 << 20));
    assert_eq!(cuMemFree_v2(alloc(600 << 10)), 0);
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 0)), Err(1));
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, usize::MAX)), Err(2));
}

#[test]
fn what_is_freed_is_gone() {
    let machine = ready("");
    let address = alloc(64);
    assert_eq!(cuMemFree_v2(0), 0);
    assert_eq!(cuMemFree_v2(address + 8), 1);
    machine.found("memory", "no allocation");
    assert_eq!(cuMemFree_v2(address), 0);
    assert_eq!(cuMemFree_v2(address), 1);
    machine.found("memory", "freed already");
    assert_eq!(cuMemsetD8Async(address, 0, 64, 0), 1);
    machine.found("memory", "no device memory");
}

#[test]
fn ranges_beyond_an_allocation() {
    let machine = ready("");
    let (address, other) = (alloc(100), alloc(100));
    let mut host = [0u32; 32];
    assert_eq!(cuMemcpyHtoD_v2(address + 4, host.as_ptr() as usize, 100), 1);
    machine.found("memory", "100 bytes at byte 4 of an allocation of 100 bytes");
    assert_eq!(cuMemcpyDtoH_v2(host.as_mut_ptr() as usize, address, 101), 1);
    machine.found("memory", "copy to the host");
    assert_eq!(cuMemcpyDtoD_v2(other, address, 101), 1);
    machine.found("memory", "within the device");
    assert_eq!(cuMemcpyHtoD_v2(address, 0, 4), 1);
    assert_eq!(cuMemFree_v2(address), 0);
    assert_eq!(cuMemFree_v2(other), 0);
}

#[test]
fn memory_that_nothing_wrote_is_found_when_it_is_copied_out() {
    let machine = ready("");
    let address = alloc(64);
    read(address, 1);
    machine.found("copy", "Uninitialized");
    assert_eq!(cuMemsetD8Async(address, 7, 64, 0), 0);
    assert_eq!(read(address, 2), [0x0707_0707; 2]);
}

#[test]
fn two_cards_share_one_address_space() {
    let _machine = ready("devices=2");
    let first = retain(0);
    let source = filled(&[1, 2, 3]);
    let second = retain(1);
    let target = alloc(12);
    assert_ne!(source, target);
    assert_eq!(cuMemcpyPeerAsync(target, second, source, first, 12, 0), 0);
    assert_eq!(read(target, 3), [1, 2, 3]);
    assert_eq!(cuMemcpyPeerAsync(target, second, source, 77, 12, 0), 201);
    assert_eq!(cuStreamSynchronize(stream()), 0);
}

#[test]
fn a_stream_of_another_card_is_refused() {
    let machine = ready("devices=2");
    retain(0);
    let stream = stream();
    retain(1);
    assert_eq!(cuStreamSynchronize(stream), 400);
    machine.found("handles", "a stream");
}

#[test]
fn the_pool_frees_in_stream_order_and_keeps_what_it_may() {
    let machine = ready("memory=1M");
    let stream = stream();
    let pool = got(|slot| cuDeviceGetDefaultMemPool(slot, 0)).unwrap();
    let mut threshold = u64::MAX;
    let value = Bytes::from_address((&raw mut threshold).cast::<c_void>() as usize);
    assert_eq!(cuMemPoolSetAttribute(pool, 4, value), 0);
    assert_eq!(cuMemPoolSetAttribute(pool, 99, value), 1);
    let address = got(|slot| cuMemAllocAsync(slot, 600 << 10, stream)).unwrap();
    assert_eq!(cuMemsetD8Async(address, 1, 4, stream), 0);
    assert_eq!(cuMemFreeAsync(address, stream), 0);
    assert_eq!(cuMemFreeAsync(address, stream), 1);
    machine.found("memory", "freed already");
    let again = got(|slot| cuMemAllocAsync(slot, 600 << 10, stream)).unwrap();
    assert_eq!(cuMemFreeAsync(again, stream), 0);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert!(info().0 < 500 << 10, "the pool keeps its memory: {:?}", info());
    assert_eq!(cuMemPoolTrimTo(pool, 0), 0);
    assert_eq!(info().0, 1 << 20);
    assert_eq!(cuMemPoolTrimTo(12345, 0), 400);
    machine.found("handles", "a memory pool");
}

#[test]
fn a_pool_without_threshold_gives_back_at_a_wait() {
    let _machine = ready("memory=1M");
    let stream = stream();
    let address = got(|slot| cuMemAllocAsync(slot, 600 << 10, stream)).unwrap();
    assert_eq!(cuMemFreeAsync(address, stream), 0);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(info().0, 1 << 20);
}

#[test]
fn a_kernel_that_uses_what_its_stream_has_freed() {
    let machine = ready("");
    let (function, stream) = (adder(), stream());
    let address = got(|slot| cuMemAllocAsync(slot, 64, stream)).unwrap();
    assert_eq!(cuMemsetD8Async(address, 0, 64, stream), 0);
    assert_eq!(cuMemFreeAsync(address, stream), 0);
    assert_eq!(add(function, address, 1, 1, stream), 0, "launches are not looked into");
    assert_eq!(cuStreamSynchronize(stream), 700);
    machine.found("kernel", "add_u32");
    assert_eq!(cuMemsetD8Async(address, 0, 64, stream), 700);
}
