//! Results in page-locked blocks that are handed out.

use super::{close, host, pattern};
use crate::DType;
use crate::driver::fake::{Config, FakeDriver};
use crate::ops::Meta;
use crate::tensor::{DeviceCore, Tensor};
use std::sync::Arc;

const MB: usize = 1 << 20;

fn filled(core: &Arc<DeviceCore>, size: usize) -> Tensor {
    let tensor = Tensor::device(core, &Meta::new(DType::U8, [size])).unwrap();
    core.stream().fill(tensor.device_view(core).unwrap().ptr, 7, size).unwrap();
    tensor
}

#[test]
fn a_size_met_before_comes_in_a_block_of_its_own_that_returns() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let bytes = pattern(3 * MB);
    let tensor = host(&bytes).to_device(&core).unwrap();
    assert!(tensor.to_host().unwrap().host_view().unwrap().bytes() == bytes);
    let before = driver.live().pinned;
    let second = tensor.to_host().unwrap();
    assert!(second.host_view().unwrap().bytes() == bytes);
    assert_eq!(driver.live().pinned, before + 1, "a block for the second result");
    let place = second.host_view().unwrap().bytes().as_ptr();
    let third = tensor.to_host().unwrap();
    assert_eq!(driver.live().pinned, before + 2, "both are out");
    drop(second);
    let fourth = tensor.to_host().unwrap();
    assert_eq!(driver.live().pinned, before + 2);
    assert_eq!(fourth.host_view().unwrap().bytes().as_ptr(), place, "the block came back");
    assert!(third.host_view().unwrap().bytes() == bytes && fourth.host_view().unwrap().bytes() == bytes);
    drop((third, fourth));
    core.trim_memory();
    assert_eq!(driver.live().pinned, 0);
    drop(tensor);
    close(&driver, core);
}

#[test]
fn small_results_are_copied() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let tensor = host(&pattern(100_000)).to_device(&core).unwrap();
    drop(tensor.to_host().unwrap());
    let blocks = driver.calls("cuMemHostRegister_v2");
    drop([tensor.to_host().unwrap(), tensor.to_host().unwrap()]);
    assert_eq!(driver.calls("cuMemHostRegister_v2"), blocks);
    drop(tensor);
    close(&driver, core);
}

#[test]
fn a_result_that_nobody_finishes_frees_its_block_after_the_copy() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let tensor = host(&pattern(MB)).to_device(&core).unwrap();
    core.stream().synchronize().unwrap();
    core.trim_memory();
    drop((tensor.begin_download(None).unwrap(), tensor.begin_download(None).unwrap()));
    assert_eq!(driver.live().pinned, 0);
    drop(tensor);
    close(&driver, core);
}

#[test]
fn results_outlive_their_device() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let bytes = pattern(MB);
    let tensor = host(&bytes).to_device(&core).unwrap();
    let results = [tensor.to_host().unwrap(), tensor.to_host().unwrap()];
    drop((tensor, core));
    assert!(results.iter().all(|result| result.host_view().unwrap().bytes() == bytes));
    drop(results);
    assert_eq!(driver.live().pinned, 0);
}

#[test]
fn what_is_out_is_bounded_and_blocks_of_other_sizes_go_in_the_end() {
    let driver = FakeDriver::install(Config::default());
    let core = DeviceCore::open(0).unwrap();
    let large = filled(&core, 80 * MB);
    let out: Vec<_> = (0..6).map(|_| large.to_host().unwrap()).collect();
    core.trim_memory();
    assert_eq!(driver.live().pinned, 3, "256 MiB hold three of 80");
    drop(out);
    let other = filled(&core, 30 * MB);
    let held: Vec<_> = (0..16).map(|_| other.to_host().unwrap()).collect();
    core.trim_memory();
    assert_eq!(
        driver.live().pinned,
        1,
        "two and fifteen found no room: those of 80 went, the last has a block"
    );
    drop((large, other, held));
    core.trim_memory();
    close(&driver, core);
}
