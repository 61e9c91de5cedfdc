//! Streams and events.

use super::super::queue as inner;
use super::super::state::state;
use super::super::status::*;
use super::bound;
use super::types::*;
use std::ffi::c_uint;

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamCreate(stream: Slot<Handle>, flags: c_uint) -> Status {
    bound("cuStreamCreate", |ordinal| {
        if stream.is_null() {
            return Err(INVALID_VALUE);
        }
        stream.put(inner::create_stream(ordinal, flags)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: Handle) -> Status {
    bound("cuStreamDestroy_v2", |ordinal| inner::destroy_stream(ordinal, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: Handle) -> Status {
    bound("cuStreamSynchronize", |ordinal| {
        let id = state().stream_id(ordinal, stream)?;
        state().refuse_captured(id)?;
        inner::synchronize(ordinal, id)?;
        super::super::memory::settle_pool(ordinal);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> Status {
    bound("cuStreamWaitEvent", |ordinal| {
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        inner::wait_event(ordinal, stream, event)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventCreate(event: Slot<Handle>, flags: c_uint) -> Status {
    bound("cuEventCreate", |ordinal| {
        if event.is_null() {
            return Err(INVALID_VALUE);
        }
        event.put(inner::create_event(ordinal, flags)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> Status {
    bound("cuEventRecord", |ordinal| inner::record(ordinal, event, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: Handle) -> Status {
    bound("cuEventSynchronize", |ordinal| inner::synchronize_event(ordinal, event))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: Handle) -> Status {
    bound("cuEventQuery", |ordinal| inner::query_event(ordinal, event))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventElapsedTime(milliseconds: Slot<f32>, start: Handle, end: Handle) -> Status {
    bound("cuEventElapsedTime", |ordinal| milliseconds.put(inner::elapsed(ordinal, start, end)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: Handle) -> Status {
    bound("cuEventDestroy_v2", |ordinal| inner::destroy_event(ordinal, event))
}
