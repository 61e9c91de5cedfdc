//! Start, errors, devices, contexts and handles.

mod common;

use common::*;
use std::ffi::CStr;
use warpwright_emulator::driver::abi::types::{Array, Slot};
use warpwright_emulator::driver::abi::*;

#[test]
fn every_function_of_the_products_table_is_exported() {
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../src/driver/table.rs")).unwrap();
    let wanted = table
        .split('"')
        .filter(|part| part.starts_with("cu") && part.len() > 2 && !part.contains(char::is_whitespace));
    let missing: Vec<_> = wanted.filter(|name| !SYMBOLS.contains(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn nothing_works_before_the_start_but_the_version_and_the_words() {
    let _machine = machine("driver=12.2");
    assert_eq!(got(|slot| cuDriverGetVersion(slot)), Ok(12020));
    assert_eq!(got(|slot: Slot<i32>| cuDeviceGetCount(slot)), Err(3));
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 4)), Err(3));
    assert_eq!(cuCtxSetCurrent(0), 3);
    assert_eq!(cuInit(1), 1);
    assert_eq!(cuInit(0), 0);
    assert_eq!(got(|slot: Slot<i32>| cuDeviceGetCount(slot)), Ok(1));
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 4)), Err(201), "no context is current");
}

#[test]
fn codes_have_names_and_words() {
    let _machine = machine("");
    let mut text = c"".as_ptr();
    assert_eq!(cuGetErrorName(700, Slot::from(&mut text)), 0);
    // SAFETY: the call gave a static text.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_eq!(cuGetErrorString(2, Slot::from(&mut text)), 0);
    // SAFETY: as above.
    assert_eq!(unsafe { CStr::from_ptr(text) }, c"out of memory");
    assert_eq!(cuGetErrorString(12345, Slot::from(&mut text)), 1);
    assert!(text.is_null());
}

#[test]
fn the_card_is_the_one_configured() {
    let _machine = machine("cc=75,memory=256M,devices=2,multiprocessors=40");
    assert_eq!(cuInit(0), 0);
    assert_eq!(got(|slot| cuDeviceGetCount(slot)), Ok(2));
    assert_eq!(got(|slot| cuDeviceTotalMem_v2(slot, 1)), Ok(256 << 20));
    let attribute = |number| got(|slot| cuDeviceGetAttribute(slot, number, 1));
    assert_eq!((attribute(75), attribute(76), attribute(16)), (Ok(7), Ok(5), Ok(40)));
    assert_eq!(attribute(9999), Err(1));
    let mut name = [1u8; 64];
    assert_eq!(cuDeviceGetName(Array::from(&mut name[..]), 64, 0), 0);
    assert_eq!(CStr::from_bytes_until_nul(&name).unwrap(), c"Emulated sm_75");
    let mut short = [1u8; 4];
    assert_eq!(cuDeviceGetName(Array::from(&mut short[..]), 4, 0), 0);
    assert_eq!(&short, b"Emu\0");
    let uuid = |device| got(|slot| cuDeviceGetUuid(slot, device)).unwrap();
    assert_ne!(uuid(0), uuid(1));
    assert_eq!(got(|slot| cuDeviceGet(slot, 2)), Err(101));
    assert_eq!(got(|slot: Slot<usize>| cuDevicePrimaryCtxRetain(slot, 2)), Err(101));
}

#[test]
fn no_card() {
    let _machine = machine("devices=0");
    assert_eq!(cuInit(0), 100);
    assert_eq!(got(|slot: Slot<i32>| cuDeviceGetCount(slot)), Err(3));
}

#[test]
fn a_context_lives_from_the_first_retain_to_the_last_release() {
    let machine = ready("");
    let context = retain(0);
    let address = alloc(64);
    assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_eq!(cuMemFree_v2(address), 0, "still retained once");
    assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 4)), Err(709));
    assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 201);
    machine.found("handles", "a primary context");
    assert_eq!(retain(0), context, "a card's context keeps its handle");
    assert_eq!(cuMemFree_v2(alloc(64)), 0);
    assert_eq!(cuCtxSetCurrent(12345), 201);
    machine.found("handles", "a context");
}

#[test]
fn the_current_context_is_a_threads_own() {
    let _machine = ready("");
    let context = retain(0);
    let other = std::thread::spawn(move || {
        let before = got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 4));
        cuCtxSetCurrent(context);
        (before, got(|slot| cuMemAlloc_v2(slot, 4)).map(|address| cuMemFree_v2(address)))
    });
    assert_eq!(other.join().unwrap(), (Err(201), Ok(0)));
}

#[test]
fn a_context_that_ends_with_objects_leaks_them() {
    let machine = ready("");
    alloc(1 << 20);
    stream();
    event();
    assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
    machine.found("leaks", "allocations: 1, bytes: 1048576, pinned: 0, streams: 1, events: 1");
    retain(0);
    alloc(64);
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
    machine.found("leaks", "allocations: 1, bytes: 64,");
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 4)), Err(709));
}

#[test]
fn stale_handles_are_refused_and_found() {
    let machine = ready("");
    let module = load(PTX).unwrap();
    let function = function(module, "nothing").unwrap();
    let (stream, event) = (stream(), event());
    assert_eq!(cuStreamDestroy_v2(stream), 0);
    assert_eq!(cuEventDestroy_v2(event), 0);
    assert_eq!(cuModuleUnload(module), 0);
    let calls: [(&str, &dyn Fn() -> i32); 8] = [
        ("a stream", &|| cuStreamSynchronize(stream)),
        ("a stream", &|| cuStreamDestroy_v2(stream)),
        ("an event", &|| cuEventSynchronize(event)),
        ("an event", &|| cuEventRecord(event, 0)),
        ("an event", &|| cuStreamWaitEvent(0, event, 0)),
        ("a module", &|| cuModuleUnload(module)),
        ("a function", &|| cuFuncSetAttribute(function, 8, 0)),
        ("a stream", &|| cuStreamSynchronize(function)),
    ];
    for (what, call) in calls {
        assert_eq!(call(), 400, "{what}");
        machine.found("handles", what);
    }
}

#[test]
fn places_that_are_null() {
    let _machine = ready("");
    assert_eq!(cuMemAlloc_v2(Slot::NULL, 4), 1);
    assert_eq!(cuStreamCreate(Slot::NULL, 0), 1);
    assert_eq!(cuDeviceGetCount(Slot::NULL), 1);
    assert_eq!(cuDevicePrimaryCtxRetain(Slot::NULL, 0), 1);
}
