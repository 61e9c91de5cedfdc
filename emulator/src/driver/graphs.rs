//! Stream capture, graphs and their launch.

use super::host::checksum;
use super::modules::{Shape, prepare};
use super::queue::submit;
use super::state::{Driver, Id, state};
use super::status::*;
use super::work::{Source, Work};
use std::collections::BTreeSet;
use std::thread::{ThreadId, current};

/// A node: work, and the nodes that come before it.
#[derive(Clone)]
pub struct Node {
    pub id: Id,
    pub work: Work,
    before: BTreeSet<Id>,
}

/// A graph as captured, nodes in an order that keeps to their dependencies.
pub struct Graph {
    pub ordinal: usize,
    pub nodes: Vec<Node>,
}

/// A graph ready to launch.
pub struct Exec {
    pub ordinal: usize,
    nodes: Vec<Node>,
}

impl Exec {
    /// The clusters of a kernel's node.
    fn cluster(&self, node: Id) -> Option<[u32; 3]> {
        let node = self.nodes.iter().find(|one| one.id == node)?;
        let Work::Launch(launch) = &node.work else { return None };
        Some(launch.cluster)
    }
}

/// A place in a capture: the nodes that what follows depends on.
#[derive(Clone)]
pub struct Position {
    capture: Id,
    after: BTreeSet<Id>,
}

/// Which calls a capture forbids.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Global,
    ThreadLocal,
    Relaxed,
}

/// A capture under way.
pub struct Capture {
    pub ordinal: usize,
    origin: Id,
    mode: Mode,
    thread: ThreadId,
    nodes: Vec<Node>,
    broken: bool,
}

impl Driver {
    /// The stream's place in a capture, where it is in one that still holds.
    pub fn position(&self, stream: Id) -> Outcome<Option<Position>> {
        let Some(position) = self.streams.get(&stream).and_then(|queue| queue.capture.clone()) else {
            return Ok(None);
        };
        match self.captures.get(&position.capture) {
            Some(capture) if !capture.broken => Ok(Some(position)),
            _ => Err(STREAM_CAPTURE_INVALIDATED),
        }
    }

    /// Refuses a call that a captured stream does not take, which ends the capture.
    pub fn refuse_captured(&mut self, stream: Id) -> Outcome {
        let Some(position) = self.position(stream)? else { return Ok(()) };
        if let Some(capture) = self.captures.get_mut(&position.capture) {
            capture.broken = true;
        }
        Err(STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Refuses a call that may wait for the card while a capture forbids it, which ends the capture.
    pub fn refuse_unsafe_call(&mut self) -> Outcome {
        let thread = current().id();
        let forbids = |capture: &&mut Capture| {
            !capture.broken
                && match capture.mode {
                    Mode::Global => true,
                    Mode::ThreadLocal => capture.thread == thread,
                    Mode::Relaxed => false,
                }
        };
        match self.captures.values_mut().find(forbids) {
            Some(capture) => {
                capture.broken = true;
                Err(STREAM_CAPTURE_UNSUPPORTED)
            }
            None => Ok(()),
        }
    }

    /// Hands work to the capture that the stream is in; whether it is in one.
    pub fn capture_work(&mut self, stream: Id, work: &Work) -> Outcome<bool> {
        let Some(position) = self.position(stream)? else {
            let legacy = self.streams.get(&stream).map(|queue| self.cards[queue.ordinal].defaults[0]);
            let blocking = self.streams.values().any(|queue| queue.blocking && queue.capture.is_some());
            return if legacy == Some(stream) && blocking { Err(STREAM_CAPTURE_IMPLICIT) } else { Ok(false) };
        };
        let id = self.fresh();
        if let Some(capture) = self.captures.get_mut(&position.capture) {
            capture.nodes.push(Node { id, work: work.clone(), before: position.after });
        }
        if let Some(place) = self.streams.get_mut(&stream).and_then(|queue| queue.capture.as_mut()) {
            place.after = BTreeSet::from([id]);
        }
        Ok(true)
    }

    /// Makes a stream wait within a capture; `false` where neither stream nor event is in one.
    pub fn wait_in_capture(&mut self, stream: Id, event: Option<Position>) -> Outcome<bool> {
        let here = self.position(stream)?;
        let Some(event) = event else {
            return if here.is_some() { Err(STREAM_CAPTURE_ISOLATION) } else { Ok(false) };
        };
        if self.captures.get(&event.capture).is_none_or(|capture| capture.broken) {
            return Err(STREAM_CAPTURE_INVALIDATED);
        }
        if here.as_ref().is_some_and(|position| position.capture != event.capture) {
            return Err(STREAM_CAPTURE_MERGE);
        }
        let mut after = event.after;
        after.extend(here.into_iter().flat_map(|position| position.after));
        if let Some(queue) = self.streams.get_mut(&stream) {
            queue.capture = Some(Position { capture: event.capture, after });
        }
        Ok(true)
    }
}

pub fn begin(ordinal: usize, handle: Id, mode: i32) -> Outcome {
    let mode = match mode {
        0 => Mode::Global,
        1 => Mode::ThreadLocal,
        2 => Mode::Relaxed,
        _ => return Err(INVALID_VALUE),
    };
    let mut driver = state();
    let origin = driver.stream_id(ordinal, handle)?;
    if origin == driver.cards[ordinal].defaults[0] {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    if driver.position(origin)?.is_some() {
        return Err(ILLEGAL_STATE);
    }
    let id = driver.fresh();
    let thread = current().id();
    let capture = Capture { ordinal, origin, mode, thread, nodes: Vec::new(), broken: false };
    driver.captures.insert(id, capture);
    if let Some(queue) = driver.streams.get_mut(&origin) {
        queue.capture = Some(Position { capture: id, after: BTreeSet::new() });
    }
    Ok(())
}

/// Every node that one of these depends on, and they themselves.
fn reached(nodes: &[Node], from: &BTreeSet<Id>) -> BTreeSet<Id> {
    let mut reached = from.clone();
    for node in nodes.iter().rev() {
        if reached.contains(&node.id) {
            reached.extend(&node.before);
        }
    }
    reached
}

pub fn end(ordinal: usize, handle: Id) -> Outcome<Id> {
    let mut driver = state();
    let stream = driver.stream_id(ordinal, handle)?;
    let place = driver.streams.get(&stream).and_then(|queue| queue.capture.clone()).ok_or(ILLEGAL_STATE)?;
    let capture = driver.captures.get(&place.capture).ok_or(ILLEGAL_STATE)?;
    if capture.origin != stream {
        return Err(STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != Mode::Relaxed && capture.thread != current().id() {
        return Err(STREAM_CAPTURE_WRONG_THREAD);
    }
    let mut tails = BTreeSet::new();
    for queue in driver.streams.values_mut() {
        if let Some(position) = queue.capture.take_if(|position| position.capture == place.capture) {
            tails.extend(position.after);
        }
    }
    let Some(capture) = driver.captures.remove(&place.capture) else { return Err(ILLEGAL_STATE) };
    if capture.broken {
        return Err(STREAM_CAPTURE_INVALIDATED);
    }
    if !tails.is_subset(&reached(&capture.nodes, &place.after)) {
        return Err(STREAM_CAPTURE_UNJOINED);
    }
    let id = driver.fresh();
    driver.graphs.insert(id, Graph { ordinal, nodes: capture.nodes });
    Ok(id)
}

/// Handles of a graph's nodes.
pub fn nodes(ordinal: usize, graph: Id) -> Outcome<Vec<Id>> {
    let driver = state();
    match driver.graphs.get(&graph).filter(|graph| graph.ordinal == ordinal) {
        Some(graph) => Ok(graph.nodes.iter().map(|node| node.id).collect()),
        None => driver.stale("a graph"),
    }
}

/// The `CUgraphNodeType` of a node: kernel 0, copy 1, fill 2, empty 5.
pub fn node_type(node: Id) -> Outcome<i32> {
    let driver = state();
    let found = driver.graphs.values().flat_map(|graph| &graph.nodes).find(|one| one.id == node);
    match found.map(|node| &node.work) {
        Some(Work::Launch(_)) => Ok(0),
        Some(Work::ToDevice { .. } | Work::ToHost { .. } | Work::Copy { .. }) => Ok(1),
        Some(Work::Fill { .. }) => Ok(2),
        Some(_) => Ok(5),
        None => driver.stale("a graph's node"),
    }
}

pub fn instantiate(ordinal: usize, graph: Id, flags: u64) -> Outcome<Id> {
    if flags & !0xf != 0 {
        return Err(INVALID_VALUE);
    }
    let mut driver = state();
    let Some(graph) = driver.graphs.get(&graph).filter(|graph| graph.ordinal == ordinal) else {
        return driver.stale("a graph");
    };
    let exec = Exec { ordinal, nodes: graph.nodes.clone() };
    let id = driver.fresh();
    driver.execs.insert(id, exec);
    Ok(id)
}

/// Work as a launch finds it: copies from locked memory are told by its bytes of now.
fn renewed(work: Work, check: bool) -> Work {
    match work {
        Work::ToDevice { target, source: Source::Locked { address, size, .. } } => {
            let known = check && super::host::is_mapped(address, size);
            let checksum = known.then(|| checksum(&super::abi::pages::copy_out(address, size)));
            Work::ToDevice { target, source: Source::Locked { address, size, checksum } }
        }
        other => other,
    }
}

pub fn launch(ordinal: usize, exec: Id, handle: Id) -> Outcome {
    let (stream, nodes, check) = {
        let mut driver = state();
        let stream = driver.stream_id(ordinal, handle)?;
        driver.refuse_captured(stream)?;
        let Some(exec) = driver.execs.get(&exec).filter(|exec| exec.ordinal == ordinal) else {
            return driver.stale("an instantiated graph");
        };
        (stream, exec.nodes.clone(), driver.config.checks("source"))
    };
    for node in nodes {
        submit(stream, renewed(node.work, check))?;
    }
    Ok(())
}

/// Changes the parameters and the shape of a kernel node of an instantiated graph.
pub fn set_kernel(
    ordinal: usize,
    exec: Id,
    node: Id,
    function: Id,
    shape: Shape,
    parameters: Vec<u8>,
) -> Outcome {
    // The node keeps the attributes that it was captured with.
    let captured = state().execs.get(&exec).and_then(|exec| exec.cluster(node));
    let shape = Shape { cluster: captured, ..shape };
    let work = prepare(ordinal, function, shape, parameters)?;
    let mut driver = state();
    if driver.execs.get(&exec).is_none_or(|exec| exec.ordinal != ordinal) {
        return driver.stale("an instantiated graph");
    }
    let exec = driver.execs.get_mut(&exec).ok_or(INVALID_HANDLE)?;
    match exec.nodes.iter_mut().find(|one| one.id == node) {
        Some(Node { work: slot @ Work::Launch(_), .. }) => {
            *slot = work;
            Ok(())
        }
        _ => Err(INVALID_VALUE),
    }
}

pub fn destroy_graph(ordinal: usize, graph: Id) -> Outcome {
    let mut driver = state();
    match driver.graphs.get(&graph) {
        Some(found) if found.ordinal == ordinal => {
            driver.graphs.remove(&graph);
            Ok(())
        }
        _ => driver.stale("a graph"),
    }
}

pub fn destroy_exec(ordinal: usize, exec: Id) -> Outcome {
    let mut driver = state();
    match driver.execs.get(&exec) {
        Some(found) if found.ordinal == ordinal => {
            driver.execs.remove(&exec);
            Ok(())
        }
        _ => driver.stale("an instantiated graph"),
    }
}
