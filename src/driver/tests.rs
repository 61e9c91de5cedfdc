//! The driver layer against the emulator.

use super::fake::{Config, FakeDriver, Live, map_of};
use super::load::{candidates, lacks, open};
use super::table::{Address, OPTIONAL, REQUIRED, Table};
use super::*;
use std::ptr::NonNull;
use std::sync::Arc;

const PTX: &str = "// a comment\n.version 7.0\n.target sm_75\n.visible .entry scale_f32(\n.param .u64 x,\n.param .u32 n,\n.param .f32 by,\n.param .align 4 .b8 shape[12]\n)\n{ ret; }\n";

fn context(driver: &FakeDriver) -> Arc<Context> {
    driver.join();
    Context::new(0).unwrap()
}

fn module(context: &Arc<Context>) -> Arc<Module> {
    Arc::new(Module::from_ptx(context, "scale", PTX).unwrap())
}

fn launch(module: &Arc<Module>, stream: &Stream) -> crate::Result<()> {
    let mut arguments = PackedArguments::default();
    arguments.push(&0x1234_5678_9abc_u64.to_ne_bytes());
    arguments.push(&7u32.to_ne_bytes());
    arguments.push(&2.5f32.to_ne_bytes());
    arguments.push(&[9; 12]);
    let grid = Grid::along_x(70_000, 128, 16);
    module.function("scale_f32")?.launch(stream, grid, &mut arguments)
}

#[test]
fn a_missing_library_is_named_with_every_attempt() {
    let names = candidates(Some("/nowhere/libcuda.so.9".into()));
    assert_eq!(names, ["/nowhere/libcuda.so.9"]);
    let error = open(names).err().unwrap();
    assert_eq!(error.code(), "GPU_UNAVAILABLE");
    assert!(error.to_string().contains("/nowhere/libcuda.so.9 ("), "{error}");
    let error = open(vec!["/nowhere/a".into(), "/nowhere/b".into()]).err().unwrap().to_string();
    assert!(
        error.contains("/nowhere/a (") && error.contains("/nowhere/b (") && error.contains("525"),
        "{error}"
    );
    assert_eq!(open(Vec::new()).err().unwrap().code(), "GPU_UNAVAILABLE");
    assert_eq!(candidates(Some("".into())), candidates(None));
}

#[test]
#[cfg(target_os = "linux")]
fn a_library_that_is_no_driver_is_too_old() {
    let error = open(vec!["libm.so.6".into()]).err().unwrap();
    assert_eq!(error.code(), "DRIVER_TOO_OLD");
    assert!(error.to_string().starts_with("libm.so.6 lacks cuInit;"), "{error}");
}

#[test]
fn each_absent_symbol_is_named() {
    let address: Address = NonNull::from(&()).cast();
    let resolve = |absent: &str| {
        // SAFETY: the table is dropped without a call.
        unsafe { Table::resolve(&|symbol| (symbol != absent).then_some(address)) }
    };
    for symbol in REQUIRED {
        assert_eq!(resolve(symbol).err(), Some(*symbol));
    }
    for symbol in OPTIONAL {
        assert!(resolve(symbol).is_ok(), "{symbol}");
    }
    let error = lacks("libcuda.so.1", "cuMemAlloc_v2", Some((10, 2)));
    assert_eq!(error.code(), "DRIVER_TOO_OLD");
    assert!(error.to_string().contains("lacks cuMemAlloc_v2 and offers CUDA 10.2; driver 450"), "{error}");
}

#[test]
fn a_driver_that_does_not_start_says_why() {
    let refused = |config: Config| {
        let _driver = FakeDriver::install(config);
        (api().err(), device_count().err().unwrap())
    };
    let (first, later) = refused(Config { init: 803, ..Config::default() });
    assert_eq!(first.unwrap().to_string(), later.to_string());
    assert_eq!(later.code(), "GPU_UNAVAILABLE");
    assert!(later.to_string().starts_with("cuInit failed: error 803 (system has unsupported"), "{later}");
    let (_, old) = refused(Config { version: 10020, ..Config::default() });
    assert_eq!(old.code(), "DRIVER_TOO_OLD");
    assert!(old.to_string().contains("CUDA 10.2; CUDA 11.0 (driver 450)"), "{old}");
    let (_, none) = refused(Config { devices: 0, ..Config::default() });
    assert_eq!(none.code(), "GPU_UNAVAILABLE");
    assert!(none.to_string().starts_with("cuInit failed: error 100 (no CUDA-capable device"), "{none}");
}

#[test]
fn devices_are_described_without_a_context() {
    let driver = FakeDriver::install(Config { devices: 3, ..Config::default() });
    assert_eq!(api().unwrap().cuda, (12, 4));
    assert_eq!(device_count().unwrap(), 3);
    let properties = device_properties(2).unwrap();
    assert_eq!((properties.name.as_str(), properties.compute_capability), ("Emulated sm_90", (9, 0)));
    assert_eq!(properties.uuid.len(), 32);
    assert_ne!(properties.uuid, device_properties(1).unwrap().uuid);
    assert!(properties.memory_pools);
    let error = device_properties(3).err().unwrap();
    assert_eq!(error.code(), "DEVICE_NOT_FOUND");
    assert!(error.to_string().contains("'cuda:3': 3 present"), "{error}");
    assert_eq!(driver.calls("cuDevicePrimaryCtxRetain"), 0);
    drop(driver);
    let _driver = FakeDriver::install(Config { absent: &["cuMemAllocAsync"], ..Config::default() });
    assert!(!device_properties(0).unwrap().memory_pools);
}

#[test]
fn statuses_become_coded_errors_with_call_number_and_text() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    for (status, code, text) in [
        (2, "OUT_OF_MEMORY", "cuMemGetInfo_v2 failed: error 2 (out of memory)"),
        (100, "GPU_UNAVAILABLE", "cuMemGetInfo_v2 failed: error 100 (no CUDA-capable device is detected)"),
        (101, "DEVICE_NOT_FOUND", "cuMemGetInfo_v2 failed: error 101 (invalid device ordinal)"),
        (1, "DRIVER_ERROR", "cuMemGetInfo_v2 failed: error 1 (invalid argument)"),
        (4242, "DRIVER_ERROR", "cuMemGetInfo_v2 failed: error 4242 (unknown error)"),
    ] {
        driver.fail("cuMemGetInfo_v2", 1, status);
        let error = context.memory_info().err().unwrap();
        assert_eq!((error.code(), error.to_string().as_str()), (code, text));
        assert!(context.memory_info().is_ok());
    }
    driver.fail("cuMemGetInfo_v2", 1, 2);
    driver.fail("cuGetErrorString", 1, 3);
    let error = context.memory_info().err().unwrap().to_string();
    assert_eq!(error, "cuMemGetInfo_v2 failed: error 2 (unknown error)");
}

#[test]
fn refused_ptx_carries_the_log() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    let newer = PTX.replace("7.0", "9.9");
    let unknown = PTX.replace("ret;", "nothing.u32 %r1;");
    for (ptx, status, log) in [(newer, 222, "9.9"), (unknown, 218, "nothing.u32")] {
        let error = Module::from_ptx(&context, "unary", &ptx).err().unwrap();
        assert_eq!(error.code(), "DRIVER_TOO_OLD");
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("module 'unary': cuModuleLoadDataEx failed: error {status} (")),
            "{text}"
        );
        assert!(text.contains("CUDA 12.4") && text.contains("driver 525 or newer"), "{text}");
        assert!(text.split_once('\n').unwrap().1.contains(log), "{text}");
    }
    assert_eq!(Module::from_ptx(&context, "bad", "not ptx").err().unwrap().code(), "DRIVER_TOO_OLD");
    assert_eq!(Module::from_ptx(&context, "zero", "a\0b").err().unwrap().code(), "INTERNAL");
    let error = module(&context).function("other").err().unwrap();
    assert_eq!(error.code(), "DRIVER_ERROR");
    let expected = "kernel 'other': cuModuleGetFunction failed: error 500 (named symbol not found)";
    assert_eq!(error.to_string(), expected);
    assert_eq!((context.live_handles(), driver.live()), (0, Live::default()));
}

#[test]
fn launches_pass_each_argument() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    let stream = Stream::new(&context).unwrap();
    let module = module(&context);
    driver.fail("cuLaunchKernel", 1, 701);
    let error = launch(&module, &stream).err().unwrap();
    assert_eq!(
        error.to_string(),
        "cuLaunchKernel failed: error 701 (too many resources requested for launch)"
    );
    launch(&module, &stream).unwrap();
    let launches = driver.launches();
    assert_eq!(launches.len(), 1);
    let seen = &launches[0];
    assert_eq!((seen.kernel.as_str(), seen.blocks, seen.threads), ("scale_f32", (70_000, 1, 1), (128, 1, 1)));
    assert_eq!(seen.shared, 16);
    assert_eq!(seen.arguments[0], 0x1234_5678_9abc_u64.to_ne_bytes());
    assert_eq!(seen.arguments[1], 7u32.to_ne_bytes());
    assert_eq!(seen.arguments[2], 2.5f32.to_ne_bytes());
    assert_eq!(seen.arguments[3], [9; 12]);
    let function = module.function("scale_f32").unwrap();
    assert_eq!(function.resources().unwrap(), (8, 0));
    assert!(function.allow_shared(64 << 10).is_ok());
    assert_eq!(function.allow_shared(1 << 30).err().unwrap().code(), "DRIVER_ERROR");
}

#[test]
fn a_function_keeps_its_module() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    let function = module(&context).function("scale_f32").unwrap();
    assert_eq!(driver.live().modules, 1);
    assert!(function.resources().is_ok());
    drop(function);
    assert_eq!(driver.live().modules, 0);
}

#[test]
fn streams_keep_order_and_events_tell_when() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    let (first, second) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
    let memory = DeviceMemory::new(&context, 64).unwrap();
    let block = PinnedMemory::new(&context, 64).unwrap();
    let (start, end) = (Event::timed(&context).unwrap(), Event::timed(&context).unwrap());
    start.record(&first).unwrap();
    first.fill(memory.ptr(), 5, 64).unwrap();
    end.record(&first).unwrap();
    second.wait(&end).unwrap();
    second.download(&block, 0, memory.ptr(), 64).unwrap();
    assert_eq!(block.bytes(), [0; 64]);
    assert!(!end.is_done().unwrap());
    assert_eq!(end.milliseconds_since(&start).err().unwrap().code(), "DRIVER_ERROR");
    second.synchronize().unwrap();
    assert_eq!(block.bytes(), [5; 64]);
    assert!(end.is_done().unwrap());
    assert!(end.milliseconds_since(&start).unwrap() > 0.0);
}

#[test]
fn a_copy_past_the_pinned_block_is_refused() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    let stream = Stream::new(&context).unwrap();
    let memory = DeviceMemory::new(&context, 64).unwrap();
    let block = PinnedMemory::new(&context, 64).unwrap();
    for (offset, size) in [(0, 65), (64, 1), (usize::MAX, 2)] {
        assert_eq!(stream.upload(memory.ptr(), &block, offset, size).err().unwrap().code(), "INTERNAL");
        assert_eq!(stream.download(&block, offset, memory.ptr(), size).err().unwrap().code(), "INTERNAL");
    }
    assert_eq!(driver.calls("cuMemcpyHtoDAsync_v2"), 0);
}

#[test]
fn a_device_has_one_context() {
    let driver = FakeDriver::install(Config { devices: 2, ..Config::default() });
    let (first, again) = (Context::new(0).unwrap(), Context::new(0).unwrap());
    let other = Context::new(1).unwrap();
    assert!(Arc::ptr_eq(&first, &again) && !Arc::ptr_eq(&first, &other));
    assert_eq!(driver.calls("cuDevicePrimaryCtxRetain"), 2);
    let stream = Stream::new(&other).unwrap();
    assert_eq!(Event::new(&first).unwrap().record(&stream).err().unwrap().code(), "INTERNAL");
    assert_eq!(launch(&module(&first), &stream).err().unwrap().code(), "INTERNAL");
    drop((first, again, other, stream));
    assert_eq!(driver.calls("cuDevicePrimaryCtxRelease_v2"), 2);
}

#[test]
fn a_lost_device_names_the_operation_and_comes_back() {
    let driver = FakeDriver::install(Config::default());
    let old = context(&driver);
    let stream = Stream::new(&old).unwrap();
    let kept = (DeviceMemory::new(&old, 64).unwrap(), Event::new(&old).unwrap(), module(&old));
    driver.fault_in("scale_f32", 700);
    launch(&kept.2, &stream).unwrap();
    let error = old.blame("softmax", stream.synchronize().err().unwrap());
    assert_eq!(error.code(), "DEVICE_LOST");
    let expected = "cuda:0 was lost while 'softmax' ran: cuStreamSynchronize failed: error 700 (an illegal memory access was encountered)";
    assert_eq!(error.to_string(), expected);
    assert!(old.is_lost());
    let calls = driver.calls("cuMemAlloc_v2");
    let later = old.blame("relu", DeviceMemory::new(&old, 64).err().unwrap());
    assert_eq!(later.to_string(), expected);
    assert_eq!(driver.calls("cuMemAlloc_v2"), calls);
    driver.heal();
    old.reset_lost();
    let new = Context::new(0).unwrap();
    let fresh = DeviceMemory::new(&new, 64).unwrap();
    // A second reset must not strike the new context.
    old.reset_lost();
    drop((stream, kept));
    assert_eq!(old.live_handles(), 0);
    drop(old);
    assert!(new.synchronize().is_ok());
    drop(fresh);
    assert_eq!((new.live_handles(), driver.live()), (0, Live::default()));
    drop(new);
}

#[test]
fn a_fault_that_a_drop_meets_is_told_at_the_next_call() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    driver.fail("cuMemFree_v2", 1, 719);
    drop(DeviceMemory::new(&context, 64).unwrap());
    let error = context.blame("add", context.synchronize().err().unwrap());
    let expected =
        "cuda:0 was lost while 'add' ran: cuMemFree_v2 failed: error 719 (unspecified launch failure)";
    assert_eq!((error.code(), error.to_string().as_str()), ("DEVICE_LOST", expected));
}

#[test]
fn a_context_that_works_is_not_reset() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    context.reset_lost();
    assert_eq!(driver.calls("cuDevicePrimaryCtxReset_v2"), 0);
    assert!(context.synchronize().is_ok());
}

#[test]
fn a_lost_device_comes_back_without_the_reset_function() {
    let absent = &["cuDevicePrimaryCtxReset_v2"];
    let driver = FakeDriver::install(Config { absent, ..Config::default() });
    let old = context(&driver);
    driver.fail("cuCtxSynchronize", 1, 719);
    assert_eq!(old.synchronize().err().unwrap().code(), "DEVICE_LOST");
    let new = Context::new(0).unwrap();
    assert!(!Arc::ptr_eq(&old, &new));
    drop(old);
    assert!(new.synchronize().is_ok());
}

#[test]
fn every_sticky_status_loses_the_context() {
    for &status in super::status::STICKY {
        let driver = FakeDriver::install(Config::default());
        let context = context(&driver);
        driver.fail("cuMemGetInfo_v2", 1, status);
        assert_eq!(context.memory_info().err().unwrap().code(), "DEVICE_LOST", "{status}");
        assert_eq!(context.memory_info().err().unwrap().code(), "DEVICE_LOST", "{status}");
    }
}

#[test]
fn pinned_memory_outlives_its_context() {
    let driver = FakeDriver::install(Config::default());
    let old = context(&driver);
    let mut block = PinnedMemory::new(&old, 100).unwrap();
    assert_eq!(block.as_ptr() as usize % 4096, 0);
    assert_eq!((block.size(), driver.live().pinned), (100, 1));
    block.bytes_mut().fill(3);
    driver.fail("cuCtxSynchronize", 1, 700);
    assert!(old.synchronize().is_err());
    let new = Context::new(0).unwrap();
    assert_eq!(block.bytes(), [3; 100]);
    // It is plain memory to the new context and can still be copied from.
    let (stream, memory) = (Stream::new(&new).unwrap(), DeviceMemory::new(&new, 100).unwrap());
    let target = PinnedMemory::new(&new, 100).unwrap();
    stream.upload(memory.ptr(), &block, 0, 100).unwrap();
    drop(block);
    stream.download(&target, 0, memory.ptr(), 100).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(target.bytes(), [3; 100]);
    assert_eq!(old.live_handles(), 0);
}

#[test]
fn pinned_memory_is_released_after_the_copies_that_use_it() {
    let driver = FakeDriver::install(Config::default());
    let context = context(&driver);
    let (stream, memory) = (Stream::new(&context).unwrap(), DeviceMemory::new(&context, 64).unwrap());
    let (mut source, target) =
        (PinnedMemory::new(&context, 64).unwrap(), PinnedMemory::new(&context, 64).unwrap());
    source.bytes_mut().fill(8);
    stream.upload(memory.ptr(), &source, 0, 64).unwrap();
    drop(source);
    stream.download(&target, 0, memory.ptr(), 64).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(target.bytes(), [8; 64]);
}

#[test]
fn pages_that_cannot_be_locked_work_unlocked() {
    let driver = FakeDriver::install(Config { locks_pages: false, ..Config::default() });
    let context = context(&driver);
    let (stream, memory) = (Stream::new(&context).unwrap(), DeviceMemory::new(&context, 64).unwrap());
    let mut block = PinnedMemory::new(&context, 64).unwrap();
    block.bytes_mut().fill(6);
    stream.upload(memory.ptr(), &block, 0, 64).unwrap();
    block.bytes_mut().fill(0);
    stream.download(&block, 0, memory.ptr(), 64).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(block.bytes(), [6; 64]);
    drop(block);
    assert_eq!(driver.calls("cuMemHostUnregister"), 0);
    driver.heal();
    driver.fail("cuMemHostRegister_v2", 1, 2);
    assert_eq!(PinnedMemory::new(&context, 64).err().unwrap().code(), "OUT_OF_MEMORY");
    assert_eq!(PinnedMemory::new(&context, usize::MAX).err().unwrap().code(), "OUT_OF_MEMORY");
}

/// Other threads keep calling while the context is lost, reset and retained again: no call may reach a dead handle.
#[test]
fn no_call_runs_beside_the_reset() {
    let driver = FakeDriver::install(Config::default());
    for _ in 0..20 {
        let old = context(&driver);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let work = || -> crate::Result<()> {
                        let stream = Stream::new(&old)?;
                        let event = Event::new(&old)?;
                        let memory = DeviceMemory::new(&old, 64)?;
                        loop {
                            stream.fill(memory.ptr(), 1, 64)?;
                            event.record(&stream)?;
                            event.synchronize()?;
                        }
                    };
                    assert_eq!(work().err().unwrap().code(), "DEVICE_LOST");
                });
            }
            scope.spawn(|| {
                driver.fail("cuMemGetInfo_v2", 1, 700);
                assert!(old.memory_info().is_err());
                old.reset_lost();
            });
        });
        assert_eq!(old.live_handles(), 0);
        assert!(context(&driver).synchronize().is_ok());
    }
}

#[test]
fn the_emulator_is_seen_by_threads_that_join_it_alone() {
    let driver = FakeDriver::install(Config::default());
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(super::fake::installed().is_none()));
        scope.spawn(|| {
            driver.join();
            assert!(super::fake::installed().is_some());
        });
    });
    drop(driver);
    assert!(super::fake::installed().is_none());
}

#[test]
fn tensor_maps_are_absent_on_drivers_without_them() {
    let halves = Halves { ptr: DevicePtr(4096), columns: 100, rows: 7, matrices: 2, pitch: 128 };
    let driver = FakeDriver::install(Config::default());
    let context_of_now = context(&driver);
    let map = TensorMap::halves(&context_of_now, halves, 128).unwrap().unwrap();
    assert_eq!(map_of(bytemuck::cast_slice(map.words())), [4096, 100, 7, 2, 256, 256 * 7, 128]);
    driver.fail("cuTensorMapEncodeTiled", 1, 801);
    assert!(TensorMap::halves(&context_of_now, halves, 128).unwrap().is_none());
    let wrong = TensorMap::halves(&context_of_now, Halves { pitch: 100, ..halves }, 128);
    assert_eq!(wrong.err().unwrap().code(), "DRIVER_ERROR");
    drop(context_of_now);
    drop(driver);
    let driver = FakeDriver::install(Config { absent: &["cuTensorMapEncodeTiled"], ..Config::default() });
    assert!(TensorMap::halves(&context(&driver), halves, 128).unwrap().is_none());
}
