//! The state of the emulated machine: cards, contexts, and every object that a handle stands for.

use super::config::Config;
use super::graphs::{Capture, Exec, Graph};
use super::host::HostPages;
use super::link::Link;
use super::memory::{Block, Pool};
use super::modules::{Function, LoadedModule};
use super::queue::{Event, Stream};
use super::report;
use super::status::*;
use crate::{Checks, DeviceMemory, Target};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The value of a handle. Never given twice, so that a stale handle is always told.
pub type Id = usize;

/// One emulated card with its primary context.
pub struct Card {
    /// Handle of the primary context.
    pub context: Id,
    pub retained: usize,
    /// Whether the context has state: from the first retain to the last release or a reset.
    pub active: bool,
    /// The error that every call on the context gives.
    pub fault: Option<Status>,
    /// The error that every later retain gives, where a card does not recover from a fault.
    pub gone: Option<Status>,
    /// The legacy default stream and the one that stands for per-thread default streams.
    pub defaults: [Id; 2],
    pub memory: Arc<DeviceMemory>,
    pub pool: Pool,
}

/// The emulated machine.
pub struct Driver {
    pub config: Config,
    pub initialised: bool,
    pub cards: Vec<Card>,
    pub blocks: BTreeMap<u64, Block>,
    pub host: HostPages,
    pub streams: BTreeMap<Id, Stream>,
    pub events: BTreeMap<Id, Event>,
    pub modules: BTreeMap<Id, LoadedModule>,
    pub functions: BTreeMap<Id, Function>,
    pub captures: BTreeMap<Id, Capture>,
    pub graphs: BTreeMap<Id, Graph>,
    pub execs: BTreeMap<Id, Exec>,
    pub links: BTreeMap<Id, Link>,
    /// Calls of each function.
    pub calls: BTreeMap<&'static str, u64>,
    /// Launches of each kernel that have begun, and that have ended well.
    pub attempts: BTreeMap<String, u64>,
    pub launches: BTreeMap<String, u64>,
    /// What was launched while kernels do not run.
    pub noted: Vec<super::control::Launch>,
    /// Whether the configuration came from the environment, which is read anew at cuInit.
    from_environment: bool,
    next: Id,
}

static DRIVER: LazyLock<Mutex<Driver>> = LazyLock::new(|| Mutex::new(Driver::from_environment()));

thread_local! {
    /// Handle of the context that is current on the thread.
    static CURRENT: Cell<Id> = const { Cell::new(0) };
}

/// The machine, locked. Never held while a kernel runs or a copy touches host memory.
pub fn state() -> MutexGuard<'static, Driver> {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The machine, unless another thread is at it.
pub fn try_state() -> Option<MutexGuard<'static, Driver>> {
    DRIVER.try_lock().ok()
}

/// Starts the machine anew, as a fresh process would find it: handles and memory of before are stale.
pub fn restart(config: Config) {
    let _engine = super::queue::engine();
    let mut driver = state();
    let next = driver.next;
    *driver = Driver::new(config, next);
}

/// The environment's configuration; one in which nothing works where that cannot be read.
fn environment() -> Config {
    Config::from_environment().unwrap_or_else(|error| {
        report::find("configuration", error);
        Config { failures: vec![super::config::failure_of_start()], ..Config::default() }
    })
}

/// Makes a context current on the thread; 0 for none.
pub fn set_current(context: Id) {
    CURRENT.set(context);
}

impl Driver {
    fn from_environment() -> Driver {
        Driver { from_environment: true, ..Driver::new(environment(), 0x1000) }
    }

    /// Reads the configuration again where it comes from the environment. The cards stay once a context is in use.
    pub fn reload(&mut self) {
        if !self.from_environment {
            return;
        }
        let config = environment();
        if self.cards.iter().any(|card| card.retained > 0) {
            let Config { failures, faults, slow, off, .. } = config;
            self.config = Config { failures, faults, slow, off, ..self.config.clone() };
            return;
        }
        let calls = std::mem::take(&mut self.calls);
        *self = Driver { from_environment: true, calls, ..Driver::new(config, self.next) };
    }

    /// The machine before cuInit. Handles begin after `next`.
    pub fn new(config: Config, next: Id) -> Driver {
        let mut driver = Driver {
            initialised: false,
            cards: Vec::new(),
            blocks: BTreeMap::new(),
            host: HostPages::default(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            captures: BTreeMap::new(),
            graphs: BTreeMap::new(),
            execs: BTreeMap::new(),
            links: BTreeMap::new(),
            calls: BTreeMap::new(),
            attempts: BTreeMap::new(),
            launches: BTreeMap::new(),
            noted: Vec::new(),
            from_environment: false,
            next,
            config,
        };
        for _ in 0..driver.config.devices {
            let card = Card {
                context: driver.fresh(),
                retained: 0,
                active: false,
                fault: None,
                gone: None,
                defaults: [0; 2],
                memory: driver.new_memory(),
                pool: Pool { handle: driver.fresh(), ..Pool::default() },
            };
            driver.cards.push(card);
        }
        driver
    }

    fn new_memory(&self) -> Arc<DeviceMemory> {
        let memory = DeviceMemory::new(self.config.memory as u64);
        memory.set_check_unwritten(self.config.checks("uninitialised"));
        Arc::new(memory)
    }

    /// A handle that was not given before.
    pub fn fresh(&mut self) -> Id {
        self.next += 16;
        self.next
    }

    /// Counts a call; its planned answer where its turn has come.
    pub fn enter(&mut self, symbol: &'static str) -> Outcome {
        let count = self.calls.entry(symbol).or_insert(0);
        *count += 1;
        if self.config.absent.iter().any(|absent| absent == symbol) {
            return Err(NOT_SUPPORTED);
        }
        let planned = self.config.failures.iter().find(|plan| plan.symbol == symbol && plan.turn.is(*count));
        planned.map_or(Ok(()), |plan| Err(plan.status))
    }

    /// The card whose primary context that is.
    pub fn card_of(&self, context: Id) -> Option<usize> {
        self.cards.iter().position(|card| card.context == context)
    }

    /// The card of the thread's current context, in working order.
    pub fn current(&self) -> Outcome<usize> {
        if !self.initialised {
            return Err(NOT_INITIALIZED);
        }
        let ordinal = self.card_of(CURRENT.get()).ok_or(INVALID_CONTEXT)?;
        self.usable(ordinal).map(|()| ordinal)
    }

    /// The current context's card, working or not.
    pub fn current_card(&self) -> Option<usize> {
        self.card_of(CURRENT.get())
    }

    /// An error unless the card's context can take calls.
    pub fn usable(&self, ordinal: usize) -> Outcome {
        let card = &self.cards[ordinal];
        match card.fault {
            Some(status) => Err(status),
            None if !card.active => Err(CONTEXT_IS_DESTROYED),
            None => Ok(()),
        }
    }

    /// Notes a stale or foreign handle.
    pub fn stale<T>(&self, what: &str) -> Outcome<T> {
        if self.config.checks("handles") {
            report::find("handles", format!("{what} that is none, or no longer one, was used"));
        }
        Err(INVALID_HANDLE)
    }

    /// Ends the work of a context: every later call on it gives the status.
    pub fn poison(&mut self, ordinal: usize, status: Status) {
        if self.cards[ordinal].fault.is_none() {
            self.cards[ordinal].fault = Some(status);
            let streams = self.streams.values_mut().filter(|stream| stream.ordinal == ordinal);
            streams.for_each(|stream| stream.items.clear());
        }
    }

    /// Counts a user of the primary context and gives it its state at the first.
    pub fn retain(&mut self, ordinal: usize) -> Outcome<Id> {
        if let Some(status) = self.cards[ordinal].fault.or(self.cards[ordinal].gone) {
            return Err(status);
        }
        self.cards[ordinal].retained += 1;
        if !self.cards[ordinal].active {
            let defaults = [self.fresh(), self.fresh()];
            for id in defaults {
                self.streams.insert(id, Stream::new(ordinal, true));
            }
            let card = &mut self.cards[ordinal];
            card.active = true;
            card.defaults = defaults;
        }
        Ok(self.cards[ordinal].context)
    }

    /// Ends what belongs to a card's context. What callers have left over is a finding where the context works.
    pub fn destroy(&mut self, ordinal: usize) {
        let live = self.live(ordinal);
        if self.cards[ordinal].fault.is_none() && live != Live::default() && self.config.checks("leaks") {
            let members = vec![("live".to_string(), live.to_json())];
            report::find_with(
                "leaks",
                format!("the context of device {ordinal} ended with {live:?}"),
                members,
            );
        }
        self.blocks.retain(|_, block| block.ordinal != ordinal);
        self.host.forget(ordinal);
        self.streams.retain(|_, stream| stream.ordinal != ordinal);
        self.events.retain(|_, event| event.ordinal != ordinal);
        self.modules.retain(|_, module| module.ordinal != ordinal);
        self.functions.retain(|_, function| function.ordinal != ordinal);
        self.captures.retain(|_, capture| capture.ordinal != ordinal);
        self.graphs.retain(|_, graph| graph.ordinal != ordinal);
        self.execs.retain(|_, exec| exec.ordinal != ordinal);
        self.links.retain(|_, link| link.ordinal != ordinal);
        let memory = self.new_memory();
        let recovers = self.config.recover;
        let card = &mut self.cards[ordinal];
        card.active = false;
        card.gone = if recovers { None } else { card.gone.or(card.fault) };
        card.fault = None;
        card.memory = memory;
        card.pool = Pool { handle: card.pool.handle, ..Pool::default() };
    }

    /// What callers hold of a card's context.
    pub fn live(&self, ordinal: usize) -> Live {
        let defaults = self.cards[ordinal].defaults;
        let blocks = self.blocks.values().filter(|block| block.ordinal == ordinal && !block.freed);
        Live {
            allocations: blocks.clone().count(),
            bytes: blocks.map(|block| block.size).sum(),
            pinned: self.host.count(ordinal),
            streams: (self.streams.iter())
                .filter(|(id, stream)| {
                    stream.ordinal == ordinal && !stream.destroyed && !defaults.contains(id)
                })
                .count(),
            events: self.events.values().filter(|event| event.ordinal == ordinal).count(),
            modules: self.modules.values().filter(|module| module.ordinal == ordinal).count(),
            graphs: self.graphs.values().filter(|graph| graph.ordinal == ordinal).count()
                + self.execs.values().filter(|exec| exec.ordinal == ordinal).count(),
            links: self.links.values().filter(|link| link.ordinal == ordinal).count(),
        }
    }

    /// The card as the interpreter takes it.
    pub fn target(&self) -> Target {
        let mut target = Target::new(self.config.compute_capability);
        target.max_version = self.config.ptx;
        target.multiprocessors = self.config.multiprocessors;
        target.tensor = self.config.tensor.unwrap_or(target.tensor);
        target.shared_per_block = super::card::shared_per_block(&self.config);
        target
    }

    /// The interpreter's checkers that are on.
    pub fn checks(&self) -> Checks {
        Checks {
            uninitialized: self.config.checks("uninitialised"),
            shared_races: self.config.checks("races"),
            global_races: self.config.checks("races") && self.config.global_races,
            barriers: self.config.checks("barriers"),
            ..Checks::default()
        }
    }
}

/// Numbers of objects that callers hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    pub allocations: usize,
    pub bytes: usize,
    pub pinned: usize,
    pub streams: usize,
    pub events: usize,
    pub modules: usize,
    pub graphs: usize,
    pub links: usize,
}

impl std::ops::Add for Live {
    type Output = Live;

    fn add(self, other: Live) -> Live {
        Live {
            allocations: self.allocations + other.allocations,
            bytes: self.bytes + other.bytes,
            pinned: self.pinned + other.pinned,
            streams: self.streams + other.streams,
            events: self.events + other.events,
            modules: self.modules + other.modules,
            graphs: self.graphs + other.graphs,
            links: self.links + other.links,
        }
    }
}

impl Live {
    /// The numbers as a JSON object.
    pub fn to_json(self) -> String {
        format!(
            "{{\"allocations\":{},\"bytes\":{},\"pinned\":{},\"streams\":{},\"events\":{},\"modules\":{},\"graphs\":{},\"links\":{}}}",
            self.allocations,
            self.bytes,
            self.pinned,
            self.streams,
            self.events,
            self.modules,
            self.graphs,
            self.links
        )
    }
}
