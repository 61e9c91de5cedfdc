//! Every driver function that the product calls, failing at its first and second call.

use super::*;
use crate::driver::{Grid, Module, PackedArguments};
use std::collections::BTreeMap;

/// More than is copied early.
const LARGE: usize = MB + 4096;

const PTX: &str =
    ".version 7.0\n.target sm_75\n.visible .entry scale_f32(\n.param .u64 x,\n.param .u32 n\n)\n{ ret; }\n";

/// Functions that end an object: their failure has nobody to tell, and the driver keeps the object.
const ENDINGS: &[&str] = &[
    "cuMemFree_v2",
    "cuMemHostUnregister",
    "cuStreamDestroy_v2",
    "cuEventDestroy_v2",
    "cuModuleUnload",
    "cuDevicePrimaryCtxRelease_v2",
];

/// What the product must be seen to call for the matrix to mean anything.
const EXPECTED: &[&str] = &[
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetUuid",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuMemGetInfo_v2",
    "cuLaunchKernel",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventQuery",
    "cuEventElapsedTime",
    "cuEventDestroy_v2",
];

fn launches(core: &Arc<DeviceCore>, tensor: &Tensor) -> Result<f32> {
    let module = Arc::new(Module::from_ptx(core.context(), "scale", PTX)?);
    let function = module.function("scale_f32")?;
    module.function("scale_f32")?.resources()?;
    function.allow_shared(64 << 10)?;
    function.allow_shared(96 << 10)?;
    let (start, end) = (Event::timed(core.context())?, Event::timed(core.context())?);
    start.record(core.stream())?;
    for count in [1u32, 2] {
        let mut arguments = PackedArguments::default();
        arguments.push(&tensor.device_view(core)?.ptr.0.to_ne_bytes());
        arguments.push(&count.to_ne_bytes());
        let grid = Grid::along_x(4, 256, 0);
        function.launch(core.stream(), grid, &mut arguments)?;
    }
    end.record(core.stream())?;
    core.stream().wait(&end)?;
    core.stream().wait(&start)?;
    end.synchronize()?;
    end.milliseconds_since(&start)?;
    end.milliseconds_since(&start)
}

/// A little of everything that the product does with a device.
fn everything(seen: &mut Option<Arc<Context>>) -> Result<()> {
    let core = DeviceCore::open(0)?;
    *seen = Some(core.context().clone());
    core.context().memory_info()?;
    core.context().memory_info()?;
    let (large, small) = (pattern(LARGE), pattern(1000));
    let (first, second) = (host(&large).to_device(&core)?, host(&small).to_device(&core)?);
    assert!(launches(&core, &first)? > 0.0);
    assert!(bytes_of(&first.to_host()?) == large);
    assert!(bytes_of(&second.to_host()?) == small);
    let copy = Arc::new(core.allocate(LARGE)?);
    core.stream().copy(copy.ptr(), first.device_view(&core)?.ptr, LARGE)?;
    core.stream().copy(copy.ptr(), second.device_view(&core)?.ptr, 1000)?;
    core.stream().fill(copy.ptr().offset(1000), 9, 24)?;
    core.stream().fill(copy.ptr().offset(1000), 7, 24)?;
    let block = Arc::new(PinnedMemory::new(core.context(), LARGE)?);
    let into = PinnedSlice { memory: block.clone(), offset: 0 };
    core.begin_download(copy.clone(), 0, LARGE, Some(into))?.finish_pinned()?;
    let expected = [&small, &[7; 24][..], &large[1024..]].concat();
    assert!(block.bytes() == expected);
    let mut read = vec![0; 1024];
    core.read(copy.ptr(), &mut read)?;
    assert!(read == expected[..1024]);
    core.trim_memory();
    core.context().synchronize()?;
    core.context().synchronize()
}

/// Each function called in a good run, and how often.
fn survey() -> BTreeMap<&'static str, usize> {
    let driver = FakeDriver::install(Config::default());
    everything(&mut None).unwrap();
    assert_eq!(driver.live(), Live::default());
    driver.called()
}

fn one(symbol: &'static str, nth: usize, status: i32, code: &str) -> std::result::Result<(), String> {
    let driver = FakeDriver::install(Config::default());
    driver.fail(symbol, nth, status);
    let mut seen = None;
    let outcome = everything(&mut seen);
    driver.heal();
    let expected = format!("{symbol} failed: error {status} (");
    let untold = ENDINGS.contains(&symbol) || symbol == "cuCtxSynchronize";
    match &outcome {
        Err(error) if error.code() == code && error.to_string().contains(&expected) => {}
        Ok(()) if untold => {}
        other => return Err(format!("ended in {other:?}")),
    }
    let handles = seen.as_ref().map_or(0, |context| context.live_handles());
    if handles != 0 {
        return Err(format!("left {handles} handles"));
    }
    let lost = seen.as_ref().is_some_and(|context| context.is_lost());
    let live = driver.live();
    if outcome.is_err() && !lost && !ENDINGS.contains(&symbol) && live != Live::default() {
        return Err(format!("left {live:?}"));
    }
    // What a lost context held goes when the next core is opened, with the old context still referred to.
    let mut fresh = None;
    everything(&mut fresh).map_err(|error| format!("the next call failed: {error}"))?;
    drop((seen, fresh));
    // What was not ended is left over.
    let misuse = driver.misuse().into_iter().find(|one| !(untold && one.checker == "leaks"));
    misuse.map_or(Ok(()), |misuse| Err(misuse.message))
}

fn matrix(status: i32, code: &str) {
    let called = survey();
    for symbol in EXPECTED {
        assert!(called.contains_key(symbol), "{symbol} is never called");
    }
    let mut failures = Vec::new();
    for (symbol, count) in called {
        // The version was asked for when the driver was installed; the context alone is lost by a fault.
        let context_free =
            symbol.starts_with("cuDevice") || ["cuInit", "cuDriverGetVersion"].contains(&symbol);
        if ["cuInit", "cuDriverGetVersion"].contains(&symbol) || (code == "DEVICE_LOST" && context_free) {
            continue;
        }
        for nth in 1..=count.min(2) {
            if let Err(text) = one(symbol, nth, status, code) {
                failures.push(format!("{symbol}, call {nth}: {text}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn each_function_may_fail() {
    matrix(999, "DRIVER_ERROR");
}

#[test]
fn each_function_may_find_the_context_lost() {
    matrix(700, "DEVICE_LOST");
}

#[test]
fn each_kernel_may_fault_when_it_runs() {
    for status in [700, 719] {
        let driver = FakeDriver::install(Config::default());
        driver.fault_in("scale_f32", status);
        let mut seen = None;
        let error = everything(&mut seen).err().unwrap();
        assert_eq!(error.code(), "DEVICE_LOST");
        assert!(error.to_string().contains(&format!("cuEventSynchronize failed: error {status}")), "{error}");
        assert_eq!(seen.as_ref().unwrap().live_handles(), 0);
        driver.heal();
        everything(&mut None).unwrap();
        drop(seen);
    }
}
