//! The stand-in functions for memory, copies, streams and events.

use super::super::table::{RawEvent, RawPtr, RawStream, Status};
use super::calls::{bound, handle, put};
use super::device::{INVALID_HANDLE, INVALID_VALUE, Mark, NOT_READY, Outcome, Queue, State, Work};
use std::ffi::{c_uint, c_void};

pub(super) fn enqueue(state: &mut State, stream: RawStream, work: Work) -> Outcome {
    match state.streams.get_mut(&(stream as usize)).filter(|queue| !queue.destroyed) {
        Some(queue) => {
            queue.work.push_back(work);
            Ok(())
        }
        None => state.wrong("work was given to a stale stream".into(), INVALID_HANDLE),
    }
}

pub(super) extern "system" fn mem_alloc(address: *mut RawPtr, size: usize) -> Status {
    bound("cuMemAlloc_v2", |state, ordinal| {
        put(address, state.allocate(ordinal, size)?);
        Ok(())
    })
}

pub(super) extern "system" fn mem_free(address: RawPtr) -> Status {
    bound("cuMemFree_v2", |state, ordinal| state.free(ordinal, address))
}

pub(super) extern "system" fn mem_get_info(free: *mut usize, total: *mut usize) -> Status {
    bound("cuMemGetInfo_v2", |state, ordinal| {
        put(free, state.config.memory - state.devices[ordinal].used);
        put(total, state.config.memory);
        Ok(())
    })
}

pub(super) extern "system" fn mem_host_register(address: *mut c_void, size: usize, _: c_uint) -> Status {
    bound("cuMemHostRegister_v2", |state, ordinal| {
        if !state.config.locks_pages {
            return Err(801);
        }
        state.pinned.insert(address as usize, (size, ordinal));
        Ok(())
    })
}

pub(super) extern "system" fn mem_host_unregister(address: *mut c_void) -> Status {
    bound("cuMemHostUnregister", |state, _| {
        let Some((size, _)) = state.pinned.remove(&(address as usize)) else {
            return state.wrong("pages that are not locked were unlocked".into(), 713);
        };
        if state.is_in_flight(address as usize, size) {
            return state.wrong("pages were unlocked under a copy".into(), INVALID_VALUE);
        }
        Ok(())
    })
}

pub(super) extern "system" fn memcpy_htod_async(
    target: RawPtr,
    source: *const c_void,
    size: usize,
    stream: RawStream,
) -> Status {
    bound("cuMemcpyHtoDAsync_v2", |state, _| {
        let source = source as usize;
        let locked = state.is_locked(source, size);
        enqueue(state, stream, Work::ToDevice { target, source, size })?;
        if locked { Ok(()) } else { state.run(stream as usize, None) }
    })
}

pub(super) extern "system" fn memcpy_dtoh_async(
    target: *mut c_void,
    source: RawPtr,
    size: usize,
    stream: RawStream,
) -> Status {
    bound("cuMemcpyDtoHAsync_v2", |state, _| {
        let target = target as usize;
        let locked = state.is_locked(target, size);
        enqueue(state, stream, Work::ToHost { target, source, size })?;
        if locked { Ok(()) } else { state.run(stream as usize, None) }
    })
}

pub(super) extern "system" fn memcpy_dtod_async(
    target: RawPtr,
    source: RawPtr,
    size: usize,
    stream: RawStream,
) -> Status {
    bound("cuMemcpyDtoDAsync_v2", |state, _| enqueue(state, stream, Work::Copy { target, source, size }))
}

pub(super) extern "system" fn memset_d8_async(
    target: RawPtr,
    byte: u8,
    size: usize,
    stream: RawStream,
) -> Status {
    bound("cuMemsetD8Async", |state, _| enqueue(state, stream, Work::Fill { target, byte, size }))
}

pub(super) extern "system" fn stream_create(stream: *mut RawStream, _: c_uint) -> Status {
    bound("cuStreamCreate", |state, ordinal| {
        let id = state.fresh();
        state.streams.insert(id, Queue { ordinal, work: Default::default(), destroyed: false });
        put(stream, handle(id));
        Ok(())
    })
}

pub(super) extern "system" fn stream_destroy(stream: RawStream) -> Status {
    bound("cuStreamDestroy_v2", |state, _| {
        match state.streams.get_mut(&(stream as usize)).filter(|queue| !queue.destroyed) {
            Some(queue) => {
                queue.destroyed = true;
                Ok(())
            }
            None => state.wrong("a stale stream was destroyed".into(), INVALID_HANDLE),
        }
    })
}

pub(super) extern "system" fn stream_synchronize(stream: RawStream) -> Status {
    bound("cuStreamSynchronize", |state, _| {
        if !state.streams.contains_key(&(stream as usize)) {
            return state.wrong("a stale stream was waited for".into(), INVALID_HANDLE);
        }
        state.run(stream as usize, None)
    })
}

pub(super) extern "system" fn stream_wait_event(stream: RawStream, event: RawEvent, _: c_uint) -> Status {
    bound("cuStreamWaitEvent", |state, _| {
        let ticket = mark(state, event)?.recorded;
        enqueue(state, stream, Work::Wait { event: event as usize, ticket })
    })
}

fn mark(state: &mut State, event: RawEvent) -> Result<&mut Mark, Status> {
    if !state.events.contains_key(&(event as usize)) {
        return state.wrong("a stale event was used".into(), INVALID_HANDLE);
    }
    state.events.get_mut(&(event as usize)).ok_or(INVALID_HANDLE)
}

pub(super) extern "system" fn event_create(event: *mut RawEvent, flags: c_uint) -> Status {
    bound("cuEventCreate", |state, ordinal| {
        let id = state.fresh();
        state.events.insert(id, Mark { ordinal, timed: flags & 2 == 0, ..Mark::default() });
        put(event, handle(id));
        Ok(())
    })
}

pub(super) extern "system" fn event_record(event: RawEvent, stream: RawStream) -> Status {
    bound("cuEventRecord", |state, _| {
        let ticket = state.fresh() as u64;
        mark(state, event)?.recorded = ticket;
        enqueue(state, stream, Work::Record { event: event as usize, ticket })
    })
}

pub(super) extern "system" fn event_synchronize(event: RawEvent) -> Status {
    bound("cuEventSynchronize", |state, _| {
        let ticket = mark(state, event)?.recorded;
        state.complete(event as usize, ticket)
    })
}

pub(super) extern "system" fn event_query(event: RawEvent) -> Status {
    bound("cuEventQuery", |state, _| {
        let mark = mark(state, event)?;
        if mark.done == mark.recorded { Ok(()) } else { Err(NOT_READY) }
    })
}

pub(super) extern "system" fn event_elapsed_time(time: *mut f32, start: RawEvent, end: RawEvent) -> Status {
    bound("cuEventElapsedTime", |state, _| {
        let mut times = [0u64; 2];
        for (slot, event) in times.iter_mut().zip([start, end]) {
            let mark = mark(state, event)?;
            if !mark.timed || mark.recorded == 0 {
                return Err(INVALID_HANDLE);
            }
            if mark.done != mark.recorded {
                return Err(NOT_READY);
            }
            *slot = mark.time;
        }
        put(time, (times[1] - times[0]) as f32);
        Ok(())
    })
}

pub(super) extern "system" fn event_destroy(event: RawEvent) -> Status {
    bound("cuEventDestroy_v2", |state, _| {
        mark(state, event)?;
        state.events.remove(&(event as usize));
        Ok(())
    })
}

/// A required function that the product does not call yet.
macro_rules! idle {
    ($($name:ident($($arg:ty),*);)*) => {
        $(pub(super) extern "system" fn $name($(_: $arg),*) -> Status {
            801
        })*
    };
}

idle! {
    mem_host_alloc(*mut *mut c_void, usize, c_uint);
    mem_free_host(*mut c_void);
    memcpy_htod(RawPtr, *const c_void, usize);
    memcpy_dtoh(*mut c_void, RawPtr, usize);
    memcpy_dtod(RawPtr, RawPtr, usize);
    mem_alloc_async(*mut RawPtr, usize, RawStream);
}
