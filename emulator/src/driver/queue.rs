//! Streams and events: work waits in queues and runs when something waits for it.

use super::config::Schedule;
use super::graphs::Position;
use super::state::{Driver, Id, state};
use super::status::*;
use super::work::{Job, Work};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Work at its place in the order of all submissions.
pub struct Item {
    pub ticket: u64,
    pub work: Work,
}

/// A queue of work.
pub struct Stream {
    pub ordinal: usize,
    /// Whether it waits for the legacy default stream and that one for it.
    pub blocking: bool,
    pub items: VecDeque<Item>,
    /// Whether the caller has given it up; what is queued still runs.
    pub destroyed: bool,
    /// The capture that takes the work in place of the queue.
    pub capture: Option<Position>,
}

impl Stream {
    pub fn new(ordinal: usize, blocking: bool) -> Stream {
        Stream { ordinal, blocking, items: VecDeque::new(), destroyed: false, capture: None }
    }
}

/// A point in a stream.
pub struct Event {
    pub ordinal: usize,
    pub timed: bool,
    /// Stream and ticket of the last record.
    pub recorded: Option<(Id, u64)>,
    /// The place in a capture, where the last record was captured.
    pub captured: Option<Position>,
    pub time: Option<Instant>,
    /// Queries since the last record that found it not ready.
    pub queries: u32,
}

static ENGINE: Mutex<()> = Mutex::new(());

/// Held by whoever runs work, so that one item runs at a time.
pub fn engine() -> MutexGuard<'static, ()> {
    ENGINE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ticket() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A stream and the ticket up to which it is to run.
pub type Goal = (Id, u64);

enum Step {
    Done,
    /// Another stream must get there first.
    First(Goal),
    Run(Box<Job>),
}

impl Driver {
    /// The stream that a handle stands for: 0 and 1 are the legacy default stream, 2 the per-thread one.
    pub fn stream_id(&self, ordinal: usize, handle: Id) -> Outcome<Id> {
        let id = match handle {
            0 | 1 => self.cards[ordinal].defaults[0],
            2 => self.cards[ordinal].defaults[1],
            other => other,
        };
        match self.streams.get(&id) {
            Some(stream) if stream.ordinal == ordinal && !stream.destroyed => Ok(id),
            _ => self.stale("a stream"),
        }
    }

    pub fn event(&mut self, ordinal: usize, handle: Id) -> Outcome<&mut Event> {
        if self.events.get(&handle).is_none_or(|event| event.ordinal != ordinal) {
            return self.stale("an event");
        }
        self.events.get_mut(&handle).ok_or(INVALID_HANDLE)
    }

    /// Puts work at the end of a stream and gives its ticket.
    pub fn push(&mut self, stream: Id, work: Work) -> Outcome<u64> {
        let queue = self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)?;
        let ticket = ticket();
        queue.items.push_back(Item { ticket, work });
        Ok(ticket)
    }

    /// Whether work of the stream up to that ticket is still to run.
    pub fn is_pending(&self, (stream, ticket): Goal) -> bool {
        let front = self.streams.get(&stream).and_then(|queue| queue.items.front());
        front.is_some_and(|item| item.ticket <= ticket)
    }

    fn step(&self, (stream, until): Goal) -> Step {
        let Some(queue) = self.streams.get(&stream) else { return Step::Done };
        let Some(item) = queue.items.front().filter(|item| item.ticket <= until) else { return Step::Done };
        if let Work::Wait { goal } = item.work
            && self.is_pending(goal)
        {
            return Step::First(goal);
        }
        let legacy = self.cards[queue.ordinal].defaults[0];
        let before = item.ticket - 1;
        if stream == legacy {
            let earlier = self.streams.iter().find(|(id, other)| {
                **id != stream
                    && other.ordinal == queue.ordinal
                    && other.blocking
                    && self.is_pending((**id, before))
            });
            if let Some((id, _)) = earlier {
                return Step::First((*id, before));
            }
        } else if queue.blocking && self.is_pending((legacy, before)) {
            return Step::First((legacy, before));
        }
        Step::Run(Box::new(self.job(queue.ordinal, &item.work)))
    }

    /// Takes the item that has run off its queue.
    fn finish(&mut self, stream: Id, outcome: Outcome) {
        let Some(queue) = self.streams.get_mut(&stream) else { return };
        let ordinal = queue.ordinal;
        if let Some(item) = queue.items.pop_front()
            && outcome.is_ok()
        {
            self.settle(item.ticket, item.work);
        }
        if let Err(status) = outcome {
            self.poison(ordinal, status);
        }
        if self.streams.get(&stream).is_some_and(|queue| queue.destroyed && queue.items.is_empty()) {
            self.streams.remove(&stream);
        }
    }

    /// Streams of a card with work, each to its end.
    fn pending(&self, ordinal: usize) -> Vec<Goal> {
        let streams = self.streams.iter().filter(|(_, queue)| queue.ordinal == ordinal);
        streams.filter_map(|(id, queue)| Some((*id, queue.items.back()?.ticket))).collect()
    }
}

/// Runs one item on the way to the goal; whether there was one.
fn run_one(goal: Goal) -> bool {
    let mut goals = vec![goal];
    while let Some(&goal) = goals.last() {
        let step = state().step(goal);
        match step {
            Step::Done => {
                goals.pop();
            }
            Step::First(earlier) => goals.push(earlier),
            Step::Run(job) => {
                let outcome = job.run();
                state().finish(goal.0, outcome);
                return true;
            }
        }
    }
    false
}

/// Runs a stream up to the ticket, and what that waits for. A fault shows as the context's status.
pub fn advance(goal: Goal) {
    let _engine = engine();
    while run_one(goal) {}
}

/// Runs everything of a card.
pub fn drain(ordinal: usize) -> Outcome {
    let goals = state().pending(ordinal);
    goals.into_iter().for_each(advance);
    state().usable(ordinal)
}

/// Submits work to a stream. It runs at once where the configuration wants it or the queue is full.
pub fn submit(stream: Id, work: Work) -> Outcome<Goal> {
    let (goal, due) = {
        let mut driver = state();
        let goal = (stream, driver.push(stream, work)?);
        let length = driver.streams.get(&stream).map_or(0, |queue| queue.items.len());
        (goal, driver.config.schedule == Schedule::Eager || length > driver.config.queue)
    };
    if due {
        // A fault shows at the next call, as it would had the card been quick.
        advance(goal);
    }
    Ok(goal)
}

/// Runs a stream to its end.
pub fn synchronize(ordinal: usize, stream: Id) -> Outcome {
    let last = state().streams.get(&stream).and_then(|queue| Some(queue.items.back()?.ticket));
    if let Some(ticket) = last {
        advance((stream, ticket));
    }
    state().usable(ordinal)
}

pub fn create_stream(ordinal: usize, flags: u32) -> Outcome<Id> {
    if flags > 1 {
        return Err(INVALID_VALUE);
    }
    let mut driver = state();
    let id = driver.fresh();
    driver.streams.insert(id, Stream::new(ordinal, flags == 0));
    Ok(id)
}

pub fn destroy_stream(ordinal: usize, handle: Id) -> Outcome {
    let mut driver = state();
    let id = driver.stream_id(ordinal, handle)?;
    if handle <= 2 {
        return Err(INVALID_HANDLE);
    }
    let Some(queue) = driver.streams.get_mut(&id) else { return Err(INVALID_HANDLE) };
    queue.destroyed = true;
    if queue.items.is_empty() {
        driver.streams.remove(&id);
    }
    Ok(())
}

pub fn create_event(ordinal: usize, flags: u32) -> Outcome<Id> {
    if flags > 7 {
        return Err(INVALID_VALUE);
    }
    let mut driver = state();
    let id = driver.fresh();
    let timed = flags & 2 == 0;
    let event = Event { ordinal, timed, recorded: None, captured: None, time: None, queries: 0 };
    driver.events.insert(id, event);
    Ok(id)
}

pub fn record(ordinal: usize, event: Id, handle: Id) -> Outcome {
    let stream = {
        let mut driver = state();
        let stream = driver.stream_id(ordinal, handle)?;
        driver.event(ordinal, event)?;
        if let Some(position) = driver.position(stream)? {
            let mark = driver.event(ordinal, event)?;
            mark.recorded = None;
            mark.captured = Some(position);
            return Ok(());
        }
        stream
    };
    let mut driver = state();
    let ticket = driver.push(stream, Work::Record { event })?;
    let eager = driver.config.schedule == Schedule::Eager;
    let mark = driver.event(ordinal, event)?;
    mark.recorded = Some((stream, ticket));
    mark.captured = None;
    mark.time = None;
    mark.queries = 0;
    drop(driver);
    if eager {
        advance((stream, ticket));
    }
    Ok(())
}

/// The place that an event was last recorded at, where it is still to be reached.
fn goal_of(ordinal: usize, event: Id) -> Outcome<Option<Goal>> {
    let mut driver = state();
    let mark = driver.event(ordinal, event)?;
    if mark.captured.is_some() {
        return Err(CAPTURED_EVENT);
    }
    let recorded = mark.recorded;
    Ok(recorded.filter(|goal| driver.is_pending(*goal)))
}

pub fn synchronize_event(ordinal: usize, event: Id) -> Outcome {
    if let Some(goal) = goal_of(ordinal, event)? {
        advance(goal);
    }
    state().usable(ordinal)
}

/// Whether the event has happened. Work goes on between queries, an item for each, so that polling ends.
pub fn query_event(ordinal: usize, event: Id) -> Outcome {
    let Some(goal) = goal_of(ordinal, event)? else { return Ok(()) };
    let queries = {
        let mut driver = state();
        let mark = driver.event(ordinal, event)?;
        mark.queries += 1;
        mark.queries
    };
    if queries > 1
        && let Ok(_engine) = ENGINE.try_lock()
    {
        run_one(goal);
    }
    Err(NOT_READY)
}

pub fn wait_event(ordinal: usize, handle: Id, event: Id) -> Outcome {
    let (stream, goal) = {
        let mut driver = state();
        let stream = driver.stream_id(ordinal, handle)?;
        // An event of another card may be waited for.
        let owner = driver.events.get(&event).map_or(ordinal, |mark| mark.ordinal);
        let mark = driver.event(owner, event)?;
        let (recorded, captured) = (mark.recorded, mark.captured.clone());
        if driver.wait_in_capture(stream, captured)? {
            return Ok(());
        }
        (stream, recorded)
    };
    match goal {
        Some(goal) => submit(stream, Work::Wait { goal }).map(|_| ()),
        None => Ok(()),
    }
}

pub fn elapsed(ordinal: usize, start: Id, end: Id) -> Outcome<f32> {
    let mut driver = state();
    let mut times = Vec::new();
    for event in [start, end] {
        let mark = driver.event(ordinal, event)?;
        let (timed, recorded, time) = (mark.timed, mark.recorded, mark.time);
        let goal = recorded.filter(|_| timed).ok_or(INVALID_HANDLE)?;
        if driver.is_pending(goal) {
            return Err(NOT_READY);
        }
        times.push(time.ok_or(NOT_READY)?);
    }
    let (start, end) = (times[0], times[1]);
    let seconds = end.saturating_duration_since(start).as_secs_f32()
        - start.saturating_duration_since(end).as_secs_f32();
    Ok(seconds * 1e3)
}

pub fn destroy_event(ordinal: usize, event: Id) -> Outcome {
    let mut driver = state();
    driver.event(ordinal, event)?;
    driver.events.remove(&event);
    Ok(())
}
