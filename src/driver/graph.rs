//! Work that was recorded from a stream, to be launched as a whole.

use super::context::Context;
use super::stream::Stream;
use super::table::RawGraphExec;
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Calls of other threads, and those that allocate, go on meanwhile.
const CAPTURE_RELAXED: i32 = 2;

/// A recorded sequence. What it refers to must live until its last launch has run.
pub struct Graph {
    context: Arc<Context>,
    raw: RawGraphExec,
}

// SAFETY: the driver API may be used from any thread; the handle is only passed to it.
unsafe impl Send for Graph {}

impl Graph {
    /// Records what `submit` sends to the stream instead of running it; `None` where the driver cannot record. Nothing else
    /// may be sent to that stream meanwhile.
    pub fn record(stream: &Stream, submit: impl FnOnce() -> Result<()>) -> Result<Option<Graph>> {
        let context = &stream.context;
        let table = &context.api.table;
        let (Some(begin), Some(end), Some(instantiate), Some(destroy)) = (
            table.stream_begin_capture,
            table.stream_end_capture,
            table.graph_instantiate,
            table.graph_destroy,
        ) else {
            return Ok(None);
        };
        if table.graph_launch.is_none() || table.graph_exec_destroy.is_none() {
            return Ok(None);
        }
        let _bound = context.bind()?;
        // SAFETY: the stream is live and of this context.
        let answer = unsafe { begin(stream.raw, CAPTURE_RELAXED) };
        context.check("cuStreamBeginCapture_v2", answer)?;
        let submitted = submit();
        let mut graph = std::ptr::null_mut();
        // SAFETY: as above, and the stream is being captured; `graph` is a live slot. An end that fails leaves it null.
        let ended = context.check("cuStreamEndCapture", unsafe { end(stream.raw, &mut graph) });
        if graph.is_null() {
            return submitted.and(ended).and(Err(Error::Internal("a capture gave no graph".into())));
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a live slot and the graph was just made.
        let made = context.check("cuGraphInstantiateWithFlags", unsafe { instantiate(&mut raw, graph, 0) });
        // SAFETY: made above and destroyed once; its executable form does not need it.
        let _ = context.check("cuGraphDestroy", unsafe { destroy(graph) });
        made?;
        context.handles.fetch_add(1, Ordering::AcqRel);
        let graph = Graph { context: context.clone(), raw };
        submitted.and(ended).map(|()| Some(graph))
    }

    /// Enqueues it.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        self.context.same(&stream.context)?;
        let _bound = self.context.bind()?;
        let Some(launch) = self.context.api.table.graph_launch else {
            return Err(Error::DriverTooOld("the driver launches no graphs (cuGraphLaunch)".into()));
        };
        // SAFETY: graph and stream are live and of this context.
        self.context.check("cuGraphLaunch", unsafe { launch(self.raw, stream.raw) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        self.context.handles.fetch_sub(1, Ordering::AcqRel);
        if let (Ok(_bound), Some(destroy)) = (self.context.bind(), self.context.api.table.graph_exec_destroy)
        {
            // SAFETY: instantiated in `record`, destroyed once; the driver finishes launches under way.
            let _ = self.context.check("cuGraphExecDestroy", unsafe { destroy(self.raw) });
        }
    }
}
