//! Memory, staging and tensors against the emulator.

mod matrix;
mod results;

use super::pool::Pool;
use super::staging::{CHUNK, Staging};
use super::*;
use crate::DType;
use crate::driver::fake::{Config, FakeDriver, Live};
use crate::driver::{Context, Event, PinnedMemory, Stream};

const MB: usize = 1 << 20;

fn pattern(size: usize) -> Vec<u8> {
    let words = (0..size.div_ceil(8) as u64).map(|index| (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bytemuck::cast_slice(&words.collect::<Vec<u64>>())[..size].to_vec()
}

fn bytes_of(tensor: &Tensor) -> Vec<u8> {
    tensor.host_view().unwrap().as_slice::<u8>().to_vec()
}

fn host(bytes: &[u8]) -> Tensor {
    Tensor::from_slice(DType::U8, [bytes.len()], bytes).unwrap()
}

/// Drops the core and checks that nothing is left of it.
fn close(driver: &FakeDriver, core: Arc<DeviceCore>) {
    let context = core.context().clone();
    drop(core);
    assert_eq!(context.live_handles(), 0);
    assert_eq!(driver.live(), Live::default());
}

#[test]
fn blocks_are_reused_and_counted() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let first = core.allocate(3 * MB).unwrap();
    let address = first.ptr();
    let stats = core.memory_stats();
    assert_eq!((stats.used, stats.cached, stats.peak, stats.allocations), (4 << 20, 0, 4 << 20, 1));
    drop(first);
    let stats = core.memory_stats();
    assert_eq!((stats.used, stats.cached, stats.peak, stats.allocations), (0, 4 << 20, 4 << 20, 0));
    let second = core.allocate(4 * MB).unwrap();
    assert_eq!(second.ptr(), address);
    assert_eq!(driver.calls("cuMemAlloc_v2"), 1);
    // A kept block serves a request up to a quarter smaller, and is counted whole.
    let large = core.allocate(20 * MB).unwrap();
    drop(large);
    let close_fit = core.allocate(17 * MB).unwrap();
    assert_eq!((driver.calls("cuMemAlloc_v2"), core.memory_stats().used), (2, 24 << 20));
    drop(close_fit);
    let loose_fit = core.allocate(9 * MB).unwrap();
    assert_eq!((driver.calls("cuMemAlloc_v2"), core.memory_stats().cached), (3, 20 << 20));
    drop((second, loose_fit));
    core.trim_memory();
    let stats = core.memory_stats();
    assert_eq!((stats.used, stats.cached, stats.peak), (0, 0, 24 << 20));
    assert_eq!(driver.live().allocations, 0);
    close(&driver, core);
}

#[test]
fn memory_of_no_size_is_an_allocation_too() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let empty = Tensor::from_slice::<f32>(DType::F32, [0, 7], &[]).unwrap().to_device(&core).unwrap();
    assert_eq!(empty.to_host().unwrap().meta().dims, [0, 7]);
    assert!(core.memory_stats().used > 0);
    drop(empty);
    assert_eq!(core.memory_stats().used, 0);
    close(&driver, core);
}

#[test]
fn the_limit_holds_and_the_next_request_works() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    core.set_memory_limit(256 << 20);
    let error = core.allocate(300 * MB).err().unwrap();
    assert_eq!(error.code(), "MEMORY_LIMIT");
    assert!(error.to_string().contains("314572800 bytes wanted, 0 of the limit of 268435456"), "{error}");
    assert_eq!(driver.calls("cuMemAlloc_v2"), 0);
    let held = core.allocate(200 * MB).unwrap();
    assert_eq!(core.allocate(57 * MB).err().unwrap().code(), "MEMORY_LIMIT");
    let stats = core.memory_stats();
    assert_eq!((stats.used, stats.allocations, stats.limit), (200 << 20, 1, 256 << 20));
    let rest = core.allocate(56 * MB).unwrap();
    drop((held, rest));
    core.set_memory_limit(0);
    assert!(core.allocate(300 * MB).is_ok());
    close(&driver, core);
}

#[test]
fn kept_blocks_never_pass_the_limit() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let held = core.allocate(44 * MB).unwrap();
    drop(core.allocate(60 * MB).unwrap());
    core.set_memory_limit(100 << 20);
    // The kept 60 MB would serve 50 MB, but only 56 MB are left.
    let exact = core.allocate(50 * MB).unwrap();
    assert_eq!(core.memory_stats().used, 94 << 20);
    // Together with what is in use the kept block would pass the limit, so it went back to the driver.
    assert_eq!((core.memory_stats().cached, driver.live().allocations), (0, 2));
    drop((held, exact));
    close(&driver, core);
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    for size in [usize::MAX, usize::MAX - MB, isize::MAX as usize, 1 << 50] {
        assert_eq!(core.allocate(size).err().unwrap().code(), "OUT_OF_MEMORY", "{size}");
    }
    assert_eq!(core.memory_stats(), MemoryStats::default().with_peak(core.memory_stats().peak));
    close(&driver, core);
}

impl MemoryStats {
    fn with_peak(self, peak: u64) -> MemoryStats {
        MemoryStats { peak, ..self }
    }
}

#[test]
fn exhausted_memory_trims_the_cache_and_tries_again() {
    let driver = FakeDriver::install(Config { memory: 64 * MB, ..Config::default() });
    let core = DeviceCore::open(0).unwrap();
    drop(core.allocate(40 * MB).unwrap());
    let held = core.allocate(30 * MB).unwrap();
    assert_eq!(driver.calls("cuMemAlloc_v2"), 3);
    assert_eq!((core.memory_stats().cached, driver.live().allocations), (0, 1));
    let error = core.allocate(40 * MB).err().unwrap();
    assert_eq!(error.code(), "OUT_OF_MEMORY");
    let expected = "cuMemAlloc_v2 failed: error 2 (out of memory): 41943040 bytes wanted, ";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert_eq!((core.memory_stats().used, core.memory_stats().allocations), (30 << 20, 1));
    let next = core.allocate(30 * MB).unwrap();
    drop((held, next));
    close(&driver, core);
}

#[test]
fn every_allocation_may_be_the_one_that_fails() {
    for nth in 1..=4 {
        let driver = FakeDriver::install(Config::default());
        let core = DeviceCore::open(0).unwrap();
        // Both tries of that allocation.
        driver.fail("cuMemAlloc_v2", nth, 2);
        driver.fail("cuMemAlloc_v2", nth + 1, 2);
        let all: Vec<Result<DeviceBuffer>> = (0..4).map(|_| core.allocate(MB)).collect();
        let failed: Vec<usize> = (0..4).filter(|index| all[*index].is_err()).collect();
        assert_eq!(failed, [nth - 1]);
        assert_eq!(all[nth - 1].as_ref().err().unwrap().code(), "OUT_OF_MEMORY");
        drop(all);
        close(&driver, core);
    }
}

#[test]
fn a_pool_gives_blocks_back_to_the_driver_when_dropped() {
    let driver = FakeDriver::install(Config::default());
    let context = Context::new(0).unwrap();
    let pool = Pool::new(context.clone());
    for size in [1, 600, MB, 5 * MB] {
        pool.give(pool.take(size).unwrap());
    }
    assert_eq!(driver.live().allocations, 4);
    drop(pool);
    assert_eq!((context.live_handles(), driver.live().allocations), (0, 0));
}

#[test]
fn uploads_go_in_pieces_and_arrive_in_order() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    for size in [0, 1, 4095, MB, MB + 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3] {
        let bytes = pattern(size);
        let before = driver.calls("cuMemcpyHtoDAsync_v2");
        let there = host(&bytes).to_device(&core).unwrap();
        assert_eq!(driver.calls("cuMemcpyHtoDAsync_v2") - before, size.div_ceil(CHUNK), "{size}");
        let before = driver.calls("cuMemcpyDtoHAsync_v2");
        let back = there.to_host().unwrap();
        assert!(bytes_of(&back) == bytes, "{size} bytes differ");
        // At once where one piece holds it.
        let piece = if size <= CHUNK { CHUNK } else { (size / 8).next_power_of_two().clamp(4 * MB, CHUNK) };
        assert_eq!(driver.calls("cuMemcpyDtoHAsync_v2") - before, size.div_ceil(piece), "{size}");
    }
    close(&driver, core);
}

#[test]
fn the_source_is_free_when_an_upload_returns() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let memory = Arc::new(core.allocate(7 * CHUNK).unwrap());
    let mut source = pattern(7 * CHUNK);
    core.upload(memory.ptr(), &source).unwrap();
    let expected = source.clone();
    source.fill(0);
    let mut target = vec![0; 7 * CHUNK];
    core.begin_download(memory.clone(), 0, 7 * CHUNK, None).unwrap().finish(&mut target).unwrap();
    assert!(target == expected);
    // Seven pieces, but only so many blocks as may be in flight and one to fill.
    assert!(driver.live().pinned <= 6, "{}", driver.live().pinned);
    let mut part = vec![0; 1000];
    core.begin_download(memory.clone(), 12_345, 1000, None).unwrap().finish(&mut part).unwrap();
    assert!(part == expected[12_345..13_345]);
    let mut read = vec![0; CHUNK + 9];
    core.read(memory.ptr(), &mut read).unwrap();
    assert!(read == expected[..CHUNK + 9]);
    drop(memory);
    close(&driver, core);
}

#[test]
fn staged_bytes_wait_in_kept_blocks() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let bytes = pattern(2 * CHUNK + 100);
    assert!(core.stage(&bytes).is_none(), "nothing is kept yet");
    core.reserve_staging(bytes.len()).unwrap();
    assert_eq!(driver.live().pinned, 3);
    core.reserve_staging(bytes.len()).unwrap();
    assert_eq!(driver.live().pinned, 3, "enough is kept already");
    let staged = core.stage(&bytes).unwrap();
    assert!(staged.is_on(&core) && core.stage(&bytes).is_none(), "the blocks are taken");
    assert!(staged.to_host().unwrap().bytes() == bytes);
    let memory = Arc::new(core.allocate(bytes.len()).unwrap());
    staged.upload(&core, memory.ptr()).unwrap();
    let mut target = vec![0; bytes.len()];
    core.begin_download(memory, 0, bytes.len(), None).unwrap().finish(&mut target).unwrap();
    assert!(target == bytes);
    assert!(core.stage(&bytes).is_some(), "the blocks came back");
    close(&driver, core);
}

#[test]
fn small_results_come_early_and_show_the_moment_they_were_asked_for() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let memory = Arc::new(core.allocate(64).unwrap());
    core.stream().fill(memory.ptr(), 1, 64).unwrap();
    let download = core.begin_download(memory.clone(), 0, 64, None).unwrap();
    assert_eq!((download.size(), driver.calls("cuMemcpyDtoHAsync_v2")), (64, 1));
    core.stream().fill(memory.ptr(), 2, 64).unwrap();
    let mut target = [0; 64];
    download.finish(&mut target).unwrap();
    assert_eq!(target, [1; 64]);
    assert_eq!(driver.calls("cuMemcpyDtoHAsync_v2"), 1);
    drop(memory);
    close(&driver, core);
}

#[test]
fn downloads_check_their_range_and_target() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let memory = Arc::new(core.allocate(1024).unwrap());
    core.stream().fill(memory.ptr(), 0, 1024).unwrap();
    for (offset, size) in [(0, 1025), (1024, 1), (u64::MAX, 2)] {
        assert_eq!(core.begin_download(memory.clone(), offset, size, None).err().unwrap().code(), "INTERNAL");
    }
    for wrong in [0, 1023, 1025] {
        let download = core.begin_download(memory.clone(), 0, 1024, None).unwrap();
        assert_eq!(download.finish(&mut vec![0; wrong]).err().unwrap().code(), "INTERNAL");
    }
    let into = PinnedSlice { memory: Arc::new(PinnedMemory::new(core.context(), 100).unwrap()), offset: 50 };
    assert_eq!(core.begin_download(memory.clone(), 0, 64, Some(into)).err().unwrap().code(), "INTERNAL");
    drop(memory);
    close(&driver, core);
}

#[test]
fn downloads_into_pinned_memory_use_no_staging() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let bytes = pattern(3 * MB);
    let tensor = host(&bytes).to_device(&core).unwrap();
    let block = Arc::new(PinnedMemory::new(core.context(), 3 * MB + 8).unwrap());
    let blocks = driver.calls("cuMemHostRegister_v2");
    let into = PinnedSlice { memory: block.clone(), offset: 8 };
    tensor.begin_download(Some(into)).unwrap().unwrap().finish_pinned().unwrap();
    assert!(block.bytes()[8..] == bytes);
    assert_eq!(driver.calls("cuMemHostRegister_v2"), blocks);
    drop((tensor, block));
    close(&driver, core);
}

#[test]
fn a_download_that_nobody_finishes_frees_its_block_after_the_copy() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let tensor = host(&pattern(100)).to_device(&core).unwrap();
    drop(tensor.begin_download(None).unwrap());
    drop(tensor);
    close(&driver, core);
}

#[test]
fn staging_blocks_wait_for_their_copies_and_are_trimmed() {
    let driver = FakeDriver::install(Config::default());
    let context = Context::new(0).unwrap();
    let (stream, staging) = (Stream::new(&context).unwrap(), Staging::new(context.clone()));
    let (event, queries) = (Event::new(&context).unwrap(), driver.calls("cuEventQuery"));
    staging.give_after(&stream, staging.take(100).unwrap()).unwrap();
    assert!(driver.calls("cuEventQuery") > queries);
    staging.trim();
    let other = staging.take(100).unwrap();
    assert_eq!((driver.calls("cuMemHostRegister_v2"), driver.live().pinned), (2, 2));
    event.record(&stream).unwrap();
    event.synchronize().unwrap();
    staging.trim();
    assert_eq!(driver.live().pinned, 1);
    drop(other);
    // Exhausted page-locked memory: what is kept goes first.
    staging.give(staging.take(5000).unwrap());
    driver.fail("cuMemHostRegister_v2", 1, 2);
    assert!(staging.take(100).is_ok());
    assert_eq!(driver.live().pinned, 0);
    drop((stream, staging, event));
    assert_eq!(context.live_handles(), 0);
}

#[test]
fn a_core_dropped_with_work_in_flight_frees_everything() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let memory = core.allocate(3 * CHUNK).unwrap();
    core.upload(memory.ptr(), &pattern(3 * CHUNK)).unwrap();
    drop(memory);
    close(&driver, core);
}

#[test]
fn a_lost_device_loses_its_tensors_and_a_new_core_works() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let tensor = host(&pattern(3 * MB)).to_device(&core).unwrap();
    driver.fail("cuEventSynchronize", 1, 700);
    let error = core.context().blame("conv2d", tensor.to_host().err().unwrap());
    assert_eq!(error.code(), "DEVICE_LOST");
    let text = error.to_string();
    assert!(
        text.starts_with("cuda:0 was lost while 'conv2d' ran: cuEventSynchronize failed: error 700"),
        "{text}"
    );
    assert_eq!(core.allocate(100 * MB).err().unwrap().to_string(), text);
    assert_eq!(host(&[1]).to_device(&core).err().unwrap().code(), "DEVICE_LOST");
    core.context().reset_lost();
    let fresh = DeviceCore::open(0).unwrap();
    assert_eq!(tensor.device_view(&fresh).err().unwrap().code(), "DEVICE_LOST");
    assert_eq!(tensor.to_device(&fresh).err().unwrap().code(), "DEVICE_LOST");
    // An error about the old context is not held against the new one.
    let stale = tensor.device_view(&fresh).err().unwrap().to_string();
    let told = fresh.context().blame("relu", tensor.device_view(&fresh).err().unwrap());
    assert_eq!(told.to_string(), stale);
    let again = host(&[1, 2, 3]).to_device(&fresh).unwrap();
    assert_eq!(bytes_of(&again.to_host().unwrap()), [1, 2, 3]);
    let old = core.context().clone();
    drop((core, tensor, again));
    assert_eq!(old.live_handles(), 0);
    drop(old);
    close(&driver, fresh);
}

#[test]
fn tensors_know_their_device() {
    let driver = FakeDriver::install(Config { devices: 2, ..Config::default() });
    let (first, second) = (DeviceCore::open(0).unwrap(), DeviceCore::open(1).unwrap());
    let there = host(&[4, 5]).to_device(&first).unwrap();
    let error = there.device_view(&second).err().unwrap();
    assert_eq!(error.to_string(), "the call runs on cuda:1, but a tensor is on cuda:0");
    assert_eq!(there.host_view().err().unwrap().code(), "INVALID_ARGUMENT");
    let moved = there.to_device(&second).unwrap();
    assert_eq!(moved.core().unwrap().ordinal(), 1);
    assert_eq!(bytes_of(&moved.to_host().unwrap()), [4, 5]);
    let shared = there.to_device(&first).unwrap();
    assert_eq!(shared.device_view(&first).unwrap().ptr, there.device_view(&first).unwrap().ptr);
    assert_eq!(DeviceCore::open(2).err().unwrap().code(), "DEVICE_NOT_FOUND");
    drop((there, moved, shared, first, second));
    assert_eq!(driver.live(), Live::default());
}

#[test]
fn host_tensors_check_what_they_are_made_of() {
    let mismatch = Tensor::from_slice(DType::F32, [3], &[1f32, 2.0]).err().unwrap();
    assert_eq!(mismatch.code(), "SHAPE_MISMATCH");
    assert_eq!(Tensor::from_slice(DType::F32, [2], &[1f64]).err().unwrap().code(), "INVALID_ARGUMENT");
    let tensor = Tensor::from_slice(DType::F32, [2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!(tensor.reshape([6]).unwrap().host_view().unwrap().as_slice::<f32>()[5], 6.0);
    assert_eq!(tensor.reshape([5]).err().unwrap().code(), "SHAPE_MISMATCH");
    assert_eq!(HostBuffer::zeroed(isize::MAX as usize).err().unwrap().code(), "OUT_OF_MEMORY");
    let copy = tensor.clone();
    assert_eq!(copy.into_host_buffer().unwrap().bytes().len(), 24);
    assert_eq!(tensor.into_host_buffer().unwrap().bytes().len(), 24);
}

#[test]
fn bytes_are_copied_whole_at_every_size() {
    for size in [0, 1, 2 * MB, 2 * MB + 1, 5 * MB + 3] {
        let source = pattern(size);
        let mut target = vec![0; size];
        copy_bytes(&mut target, &source).unwrap();
        assert!(target == source, "{size}");
    }
    assert_eq!(copy_bytes(&mut [0], &[]).err().unwrap().code(), "INTERNAL");
}
