//! Streams and events.

use super::context::Context;
use super::status::NOT_READY;
use super::table::{RawEvent, RawStream};
use crate::Result;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const STREAM_NON_BLOCKING: u32 = 1;
const EVENT_BLOCKING_SYNC: u32 = 1;
const EVENT_DISABLE_TIMING: u32 = 2;
/// How long a wait asks before it sleeps.
const SOON: std::time::Duration = std::time::Duration::from_millis(1);

/// A queue of work on the device, in order.
pub struct Stream {
    pub(super) context: Arc<Context>,
    pub(super) raw: RawStream,
}

// SAFETY: the driver API may be used from any thread; the handle is only passed to it.
unsafe impl Send for Stream {}
// SAFETY: as for Send; submissions from several threads are ordered by the driver.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that does not wait for the legacy default stream.
    pub fn new(context: &Arc<Context>) -> Result<Stream> {
        let _bound = context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a live slot; the context is current.
        let answer = unsafe { (context.api.table.stream_create)(&mut raw, STREAM_NON_BLOCKING) };
        context.check("cuStreamCreate", answer)?;
        context.handles.fetch_add(1, Ordering::AcqRel);
        Ok(Stream { context: context.clone(), raw })
    }

    /// Blocks until everything submitted so far is done.
    pub fn synchronize(&self) -> Result<()> {
        let _bound = self.context.bind()?;
        // SAFETY: the stream lives as long as self.
        let answer = unsafe { (self.context.api.table.stream_synchronize)(self.raw) };
        self.context.check("cuStreamSynchronize", answer)
    }

    /// Makes later work wait for the event.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.context.same(&event.context)?;
        let _bound = self.context.bind()?;
        // SAFETY: stream and event are live and of this context; the flags word must be 0.
        let answer = unsafe { (self.context.api.table.stream_wait_event)(self.raw, event.raw, 0) };
        self.context.check("cuStreamWaitEvent", answer)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.context.handles.fetch_sub(1, Ordering::AcqRel);
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: created in `new`, destroyed once; the driver finishes submitted work by itself.
            let answer = unsafe { (self.context.api.table.stream_destroy)(self.raw) };
            let _ = self.context.check("cuStreamDestroy_v2", answer);
        }
    }
}

/// A point in a stream that can be waited for.
pub struct Event {
    context: Arc<Context>,
    raw: RawEvent,
}

// SAFETY: the driver API may be used from any thread; the handle is only passed to it.
unsafe impl Send for Event {}
// SAFETY: as for Send.
unsafe impl Sync for Event {}

impl Event {
    /// An event whose waiter sleeps rather than spins.
    pub fn new(context: &Arc<Context>) -> Result<Event> {
        Event::with_flags(context, EVENT_BLOCKING_SYNC | EVENT_DISABLE_TIMING)
    }

    /// An event that records the time.
    pub fn timed(context: &Arc<Context>) -> Result<Event> {
        Event::with_flags(context, EVENT_BLOCKING_SYNC)
    }

    fn with_flags(context: &Arc<Context>, flags: u32) -> Result<Event> {
        let _bound = context.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a live slot; the context is current.
        let answer = unsafe { (context.api.table.event_create)(&mut raw, flags) };
        context.check("cuEventCreate", answer)?;
        context.handles.fetch_add(1, Ordering::AcqRel);
        Ok(Event { context: context.clone(), raw })
    }

    /// Records the event after everything submitted to the stream so far.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.context.same(&stream.context)?;
        let _bound = self.context.bind()?;
        // SAFETY: event and stream are live and of this context.
        let answer = unsafe { (self.context.api.table.event_record)(self.raw, stream.raw) };
        self.context.check("cuEventRecord", answer)
    }

    /// Blocks until the event has happened.
    pub fn synchronize(&self) -> Result<()> {
        let _bound = self.context.bind()?;
        // SAFETY: the event lives as long as self.
        let answer = unsafe { (self.context.api.table.event_synchronize)(self.raw) };
        self.context.check("cuEventSynchronize", answer)
    }

    /// The same for an event that is expected within a millisecond: asks for so long before it sleeps, because waking up takes
    /// longer than most that is waited for.
    pub fn synchronize_soon(&self) -> Result<()> {
        let start = std::time::Instant::now();
        while start.elapsed() < SOON {
            if self.is_done()? {
                return Ok(());
            }
            std::thread::yield_now();
        }
        self.synchronize()
    }

    /// Whether the event has happened.
    pub fn is_done(&self) -> Result<bool> {
        let _bound = self.context.bind()?;
        // SAFETY: the event lives as long as self.
        let answer = unsafe { (self.context.api.table.event_query)(self.raw) };
        if answer == NOT_READY {
            return Ok(false);
        }
        self.context.check("cuEventQuery", answer).map(|()| true)
    }

    /// Milliseconds from `earlier` to this event; both made by [`Event::timed`] and done.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f32> {
        self.context.same(&earlier.context)?;
        let _bound = self.context.bind()?;
        let mut milliseconds = 0.0;
        // SAFETY: the slot is live and both events are of this context.
        let answer =
            unsafe { (self.context.api.table.event_elapsed_time)(&mut milliseconds, earlier.raw, self.raw) };
        self.context.check("cuEventElapsedTime", answer).map(|()| milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.context.handles.fetch_sub(1, Ordering::AcqRel);
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: created in `with_flags`, destroyed once.
            let answer = unsafe { (self.context.api.table.event_destroy)(self.raw) };
            let _ = self.context.check("cuEventDestroy_v2", answer);
        }
    }
}
