//! Memory and copies.

use super::super::memory as inner;
use super::super::state::state;
use super::super::status::*;
use super::super::{host, memory::blocking};
use super::types::*;
use super::{bound, on_card};
use std::ffi::{c_int, c_uint};

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAlloc_v2(address: Slot<u64>, size: usize) -> Status {
    bound("cuMemAlloc_v2", |ordinal| {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        address.put(inner::allocate(ordinal, size)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> Status {
    bound("cuMemFree_v2", |_| inner::free(address))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetInfo_v2(free: Slot<usize>, total: Slot<usize>) -> Status {
    bound("cuMemGetInfo_v2", |ordinal| {
        let (unused, all) = inner::info(ordinal);
        free.put(unused)?;
        total.put(all)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostAlloc(address: Slot<Handle>, size: usize, flags: c_uint) -> Status {
    bound("cuMemHostAlloc", |ordinal| {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        state().refuse_unsafe_call()?;
        address.put(host::allocate(ordinal, size, flags)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(address: Handle) -> Status {
    bound("cuMemFreeHost", |_| {
        state().refuse_unsafe_call()?;
        host::release(address, true)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostRegister_v2(address: Handle, size: usize, flags: c_uint) -> Status {
    bound("cuMemHostRegister_v2", |ordinal| {
        state().refuse_unsafe_call()?;
        host::register(ordinal, address, size, flags)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostUnregister(address: Handle) -> Status {
    bound("cuMemHostUnregister", |_| {
        state().refuse_unsafe_call()?;
        host::release(address, false)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoD_v2(target: u64, source: Handle, size: usize) -> Status {
    bound("cuMemcpyHtoD_v2", |ordinal| {
        blocking(ordinal, || inner::to_device(ordinal, target, source, size, 0))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoH_v2(target: Handle, source: u64, size: usize) -> Status {
    bound("cuMemcpyDtoH_v2", |ordinal| blocking(ordinal, || inner::to_host(ordinal, target, source, size, 0)))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoD_v2(target: u64, source: u64, size: usize) -> Status {
    // The host does not wait for a copy within a device.
    bound("cuMemcpyDtoD_v2", |ordinal| inner::copy(ordinal, target, source, size, 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(target: u64, source: Handle, size: usize, stream: Handle) -> Status {
    bound("cuMemcpyHtoDAsync_v2", |ordinal| inner::to_device(ordinal, target, source, size, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(target: Handle, source: u64, size: usize, stream: Handle) -> Status {
    bound("cuMemcpyDtoHAsync_v2", |ordinal| inner::to_host(ordinal, target, source, size, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(target: u64, source: u64, size: usize, stream: Handle) -> Status {
    bound("cuMemcpyDtoDAsync_v2", |ordinal| inner::copy(ordinal, target, source, size, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    target: u64,
    target_context: Handle,
    source: u64,
    source_context: Handle,
    size: usize,
    stream: Handle,
) -> Status {
    bound("cuMemcpyPeerAsync", |ordinal| {
        for context in [target_context, source_context] {
            let driver = state();
            let card = driver.card_of(context).ok_or(INVALID_CONTEXT)?;
            driver.usable(card)?;
        }
        inner::copy(ordinal, target, source, size, stream)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(target: u64, byte: u8, size: usize, stream: Handle) -> Status {
    bound("cuMemsetD8Async", |ordinal| inner::fill(ordinal, target, byte, size, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAllocAsync(address: Slot<u64>, size: usize, stream: Handle) -> Status {
    bound("cuMemAllocAsync", |ordinal| {
        if address.is_null() {
            return Err(INVALID_VALUE);
        }
        address.put(inner::allocate_async(ordinal, size, stream)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, stream: Handle) -> Status {
    bound("cuMemFreeAsync", |ordinal| inner::free_async(ordinal, address, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetDefaultMemPool(pool: Slot<Handle>, device: c_int) -> Status {
    on_card("cuDeviceGetDefaultMemPool", device, |ordinal| pool.put(state().cards[ordinal].pool.handle))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: Bytes) -> Status {
    super::plain("cuMemPoolSetAttribute", || {
        let size = if (1..=3).contains(&attribute) { 4 } else { 8 };
        let mut word = [0u8; 8];
        word[..size].copy_from_slice(&value.list(size)?);
        inner::set_pool_attribute(pool, attribute, u64::from_le_bytes(word))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolTrimTo(pool: Handle, keep: usize) -> Status {
    super::plain("cuMemPoolTrimTo", || inner::trim_pool(pool, keep as u64))
}
