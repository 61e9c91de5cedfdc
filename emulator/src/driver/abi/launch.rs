//! Launches and occupancy.

use super::super::card;
use super::super::modules::{self as inner, Shape};
use super::super::state::state;
use super::super::status::*;
use super::bound;
use super::types::*;
use std::ffi::{c_int, c_uint};

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub stream: Handle,
    pub attributes: Array<LaunchAttribute>,
    pub count: c_uint,
}

/// `CUlaunchAttribute`: its number and a value of 64 bytes.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct LaunchAttribute {
    pub id: c_int,
    pub pad: [u8; 4],
    pub value: [u32; 16],
}

const ATTRIBUTE_COOPERATIVE: c_int = 2;
const ATTRIBUTE_CLUSTER: c_int = 4;
const ATTRIBUTE_EARLY: c_int = 6;
const ATTRIBUTE_LAST: c_int = 16;

/// Marks in `extra`.
const EXTRA_END: usize = 0;
const EXTRA_POINTER: usize = 1;
const EXTRA_SIZE: usize = 2;

/// A launch's parameters packed at the kernel's own offsets, from an address for each or from one packed block.
pub(super) fn parameters(
    ordinal: usize,
    function: Handle,
    addresses: Array<usize>,
    extra: Array<usize>,
) -> Outcome<Vec<u8>> {
    let kernel = inner::kernel(ordinal, function)?;
    let size = kernel.params.iter().map(|one| (one.offset + one.size) as usize).max().unwrap_or(0);
    let mut packed = vec![0u8; size];
    if !extra.is_null() {
        let block = packed_block(extra)?;
        if block.len() < size || !addresses.is_null() {
            return Err(INVALID_VALUE);
        }
        packed.copy_from_slice(&block[..size]);
        return Ok(packed);
    }
    for (parameter, address) in kernel.params.iter().zip(addresses.list(kernel.params.len())?) {
        let bytes = Bytes::from_address(address).list(parameter.size as usize)?;
        let start = parameter.offset as usize;
        packed[start..start + bytes.len()].copy_from_slice(&bytes);
    }
    Ok(packed)
}

fn packed_block(extra: Array<usize>) -> Outcome<Vec<u8>> {
    let (mut block, mut size) = (0, 0);
    // Pairs of a mark and an address, up to the end mark.
    for pair in 0..3 {
        let mark = extra.list(2 * pair + 1)?[2 * pair];
        if mark == EXTRA_END {
            break;
        }
        let value = extra.list(2 * pair + 2)?[2 * pair + 1];
        match mark {
            EXTRA_POINTER => block = value,
            EXTRA_SIZE => {
                let bytes = Bytes::from_address(value).list(size_of::<usize>())?;
                size = bytes.try_into().map(usize::from_ne_bytes).map_err(|_| INVALID_VALUE)?;
            }
            _ => return Err(INVALID_VALUE),
        }
    }
    Bytes::from_address(block).list(size)
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the driver's prototype")]
pub extern "C" fn cuLaunchKernel(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: Handle,
    addresses: Array<usize>,
    extra: Array<usize>,
) -> Status {
    bound("cuLaunchKernel", |ordinal| {
        let packed = parameters(ordinal, function, addresses, extra)?;
        let shape = Shape {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared,
            cluster: None,
            early: false,
        };
        inner::launch(ordinal, function, shape, stream, packed)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernelEx(
    config: Struct<LaunchConfig>,
    function: Handle,
    addresses: Array<usize>,
    extra: Array<usize>,
) -> Status {
    bound("cuLaunchKernelEx", |ordinal| {
        let config = config.list(1)?[0];
        let (mut cluster, mut early) = (None, false);
        for attribute in config.attributes.list(config.count as usize)? {
            check_attribute(&attribute)?;
            match attribute.id {
                ATTRIBUTE_CLUSTER => cluster = attribute.value.first_chunk().copied(),
                ATTRIBUTE_EARLY => early = attribute.value[0] == 1,
                _ => {}
            }
        }
        let packed = parameters(ordinal, function, addresses, extra)?;
        let shape = Shape { grid: config.grid, block: config.block, shared: config.shared, cluster, early };
        inner::launch(ordinal, function, shape, config.stream, packed)
    })
}

/// Cooperative launches are not emulated; attributes but that of clusters change only the speed.
fn check_attribute(attribute: &LaunchAttribute) -> Outcome {
    match attribute.id {
        ATTRIBUTE_CLUSTER if attribute.value[..3].contains(&0) => Err(INVALID_CLUSTER_SIZE),
        ATTRIBUTE_CLUSTER if attribute.value[..3] != [1; 3] && !card::has_clusters(&state().config) => {
            Err(NOT_SUPPORTED)
        }
        ATTRIBUTE_COOPERATIVE if attribute.value[0] != 0 => Err(NOT_SUPPORTED),
        0..=ATTRIBUTE_LAST => Ok(()),
        _ => Err(INVALID_VALUE),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: Slot<c_int>,
    function: Handle,
    threads: c_int,
    shared: usize,
) -> Status {
    bound("cuOccupancyMaxActiveBlocksPerMultiprocessor", |ordinal| {
        blocks.put(inner::occupancy(ordinal, function, threads, shared)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuOccupancyMaxActiveClusters(
    clusters: Slot<c_int>,
    function: Handle,
    config: Struct<LaunchConfig>,
) -> Status {
    bound("cuOccupancyMaxActiveClusters", |ordinal| {
        let config = config.list(1)?[0];
        if !card::has_clusters(&state().config) {
            return Err(NOT_SUPPORTED);
        }
        let attributes = config.attributes.list(config.count as usize)?;
        let size = attributes
            .iter()
            .find(|one| one.id == ATTRIBUTE_CLUSTER)
            .map_or(1, |one| one.value[..3].iter().product::<u32>().max(1));
        let threads = config.block.iter().product::<u32>();
        let blocks = inner::occupancy(ordinal, function, threads as c_int, config.shared as usize)? as u32;
        clusters.put((blocks * state().config.multiprocessors / size) as c_int)
    })
}
