//! Start, errors, devices and contexts.

use super::super::queue::drain;
use super::super::state::{set_current, state};
use super::super::status::{self, *};
use super::super::{card, exit, queue};
use super::types::*;
use super::{bound, early, on_card, plain};
use std::ffi::{c_char, c_int, c_uint};

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> Status {
    early("cuInit", || {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        exit::prepare();
        let mut driver = state();
        driver.reload();
        if driver.cards.is_empty() {
            return Err(NO_DEVICE);
        }
        driver.initialised = true;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDriverGetVersion(version: Slot<c_int>) -> Status {
    early("cuDriverGetVersion", || version.put(state().config.driver))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(error: Status, name: Slot<*const c_char>) -> Status {
    early("cuGetErrorName", || {
        let known = status::describe(error);
        name.put(known.map_or(std::ptr::null(), |(name, _)| name.as_ptr()))?;
        known.map(|_| ()).ok_or(INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(error: Status, words: Slot<*const c_char>) -> Status {
    early("cuGetErrorString", || {
        let known = status::describe(error);
        words.put(known.map_or(std::ptr::null(), |(_, words)| words.as_ptr()))?;
        known.map(|_| ()).ok_or(INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetCount(count: Slot<c_int>) -> Status {
    plain("cuDeviceGetCount", || count.put(state().cards.len() as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGet(device: Slot<c_int>, ordinal: c_int) -> Status {
    on_card("cuDeviceGet", ordinal, |_| device.put(ordinal))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetName(name: Array<u8>, length: c_int, device: c_int) -> Status {
    on_card("cuDeviceGetName", device, |_| {
        let room = usize::try_from(length).ok().filter(|length| *length > 0).ok_or(INVALID_VALUE)?;
        if name.is_null() {
            return Err(INVALID_VALUE);
        }
        let words = card::name(&state().config);
        let shown = words.bytes().take(room - 1).chain([0]);
        shown.enumerate().for_each(|(index, byte)| name.set(index, byte));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetAttribute(value: Slot<c_int>, attribute: c_int, device: c_int) -> Status {
    on_card("cuDeviceGetAttribute", device, |ordinal| {
        let found = card::attribute(&state().config, ordinal, attribute);
        value.put(found.ok_or(INVALID_VALUE)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceTotalMem_v2(bytes: Slot<usize>, device: c_int) -> Status {
    on_card("cuDeviceTotalMem_v2", device, |_| bytes.put(state().config.memory))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetUuid(uuid: Slot<[u8; 16]>, device: c_int) -> Status {
    on_card("cuDeviceGetUuid", device, |ordinal| {
        let mut bytes = *b"emulated card \0\0";
        bytes[15] = ordinal as u8;
        uuid.put(bytes)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRetain(context: Slot<Handle>, device: c_int) -> Status {
    on_card("cuDevicePrimaryCtxRetain", device, |ordinal| {
        if context.is_null() {
            return Err(INVALID_VALUE);
        }
        let handle = state().retain(ordinal)?;
        context.put(handle)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> Status {
    on_card("cuDevicePrimaryCtxRelease_v2", device, |ordinal| {
        let retained = state().cards[ordinal].retained;
        if retained == 0 {
            return state().stale::<()>("a primary context").map_err(|_| INVALID_CONTEXT);
        }
        if retained == 1 {
            // A fault is no news to a context that ends.
            let _ = drain(ordinal);
            end_context(ordinal);
        }
        state().cards[ordinal].retained -= 1;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> Status {
    on_card("cuDevicePrimaryCtxReset_v2", device, |ordinal| {
        end_context(ordinal);
        Ok(())
    })
}

/// Ends a context. What is still queued never runs.
fn end_context(ordinal: usize) {
    let _engine = queue::engine();
    let mut driver = state();
    if driver.cards[ordinal].active {
        driver.destroy(ordinal);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: Handle) -> Status {
    let status = plain("cuCtxSetCurrent", || {
        let driver = state();
        if context != 0 && driver.card_of(context).is_none() {
            return driver.stale::<()>("a context").map_err(|_| INVALID_CONTEXT);
        }
        set_current(context);
        Ok(())
    });
    // A lasting failure on demand is the context's.
    if is_sticky(status) {
        let mut driver = state();
        if let Some(ordinal) = driver.card_of(context) {
            driver.poison(ordinal, status);
        }
    }
    status
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Status {
    bound("cuCtxSynchronize", |ordinal| {
        state().refuse_unsafe_call()?;
        drain(ordinal)?;
        super::super::memory::settle_pool(ordinal);
        Ok(())
    })
}
