//! What the stand-in's devices hold, and the execution of streams.

use super::super::status::is_sticky;
use super::super::table::Status;
use super::Config;
use std::collections::{BTreeMap, VecDeque};

pub(super) const INVALID_VALUE: Status = 1;
pub(super) const OUT_OF_MEMORY: Status = 2;
pub(super) const INVALID_HANDLE: Status = 400;
pub(super) const NOT_READY: Status = 600;
const ILLEGAL_ADDRESS: Status = 700;

pub(super) type Outcome = Result<(), Status>;

/// A launch as the driver was asked for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Launch {
    pub kernel: String,
    pub blocks: (u32, u32, u32),
    pub threads: (u32, u32, u32),
    pub shared: u32,
    /// Blocks of a cluster; 0 where the launch knows nothing of them.
    pub cluster: u32,
    /// Whether it may begin before the launch before it has ended.
    pub early: bool,
    /// The bytes of each parameter.
    pub arguments: Vec<Vec<u8>>,
}

/// Numbers of live objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Live {
    pub memory: usize,
    pub pinned: usize,
    pub streams: usize,
    pub events: usize,
    pub modules: usize,
}

pub(super) enum Work {
    ToDevice { target: u64, source: usize, size: usize },
    ToHost { target: usize, source: u64, size: usize },
    Copy { target: u64, source: u64, size: usize },
    Fill { target: u64, byte: u8, size: usize },
    Launch { kernel: String },
    Record { event: usize, ticket: u64 },
    Wait { event: usize, ticket: u64 },
}

#[derive(Default)]
pub(super) struct Device {
    pub retained: usize,
    pub fault: Option<Status>,
    pub used: usize,
}

pub(super) struct Block {
    pub ordinal: usize,
    pub bytes: Vec<u8>,
}

pub(super) struct Queue {
    pub ordinal: usize,
    pub work: VecDeque<Work>,
    pub destroyed: bool,
}

#[derive(Default)]
pub(super) struct Mark {
    pub ordinal: usize,
    pub timed: bool,
    pub recorded: u64,
    pub done: u64,
    pub time: u64,
}

pub(super) struct Code {
    pub ordinal: usize,
    pub text: String,
}

pub(super) struct State {
    pub config: Config,
    pub devices: Vec<Device>,
    pub memory: BTreeMap<u64, Block>,
    /// Locked pages: size and device by address.
    pub pinned: BTreeMap<usize, (usize, usize)>,
    pub streams: BTreeMap<usize, Queue>,
    pub events: BTreeMap<usize, Mark>,
    pub modules: BTreeMap<usize, Code>,
    /// Module and name of each entry asked for.
    pub functions: BTreeMap<usize, (usize, String)>,
    pub calls: BTreeMap<&'static str, usize>,
    /// Function, number of the call, status.
    pub plans: Vec<(&'static str, usize, Status)>,
    pub faulty: Vec<(String, Status)>,
    pub launches: Vec<Launch>,
    pub misuse: Vec<String>,
    pub leaks: Vec<Live>,
    next: u64,
    clock: u64,
}

impl State {
    pub fn new(config: Config) -> State {
        State {
            devices: (0..config.devices).map(|_| Device::default()).collect(),
            config,
            memory: BTreeMap::new(),
            pinned: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            calls: BTreeMap::new(),
            plans: Vec::new(),
            faulty: Vec::new(),
            launches: Vec::new(),
            misuse: Vec::new(),
            leaks: Vec::new(),
            next: 1,
            clock: 0,
        }
    }

    /// A handle or ticket that was not used before.
    pub fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next as usize
    }

    /// Counts the call; the planned status where its turn has come.
    pub fn enter(&mut self, symbol: &'static str) -> Outcome {
        let call = self.calls.entry(symbol).or_insert(0);
        *call += 1;
        let call = *call;
        let planned = self.plans.iter().position(|(name, number, _)| *name == symbol && *number == call);
        planned.map_or(Ok(()), |index| Err(self.plans.swap_remove(index).2))
    }

    pub fn wrong<T>(&mut self, what: String, status: Status) -> Result<T, Status> {
        self.misuse.push(what);
        Err(status)
    }

    pub fn live(&self) -> Live {
        Live {
            memory: self.memory.len(),
            pinned: self.pinned.len(),
            streams: self.streams.values().filter(|stream| !stream.destroyed).count(),
            events: self.events.len(),
            modules: self.modules.len(),
        }
    }

    /// Ends everything that belongs to a device's primary context.
    pub fn destroy(&mut self, ordinal: usize) {
        self.memory.retain(|_, block| block.ordinal != ordinal);
        self.pinned.retain(|_, (_, owner)| *owner != ordinal);
        self.streams.retain(|_, stream| stream.ordinal != ordinal);
        self.events.retain(|_, event| event.ordinal != ordinal);
        self.modules.retain(|_, module| module.ordinal != ordinal);
        let retained = self.devices[ordinal].retained;
        self.devices[ordinal] = Device { retained, ..Device::default() };
    }

    pub fn allocate(&mut self, ordinal: usize, size: usize) -> Result<u64, Status> {
        if self.devices[ordinal].used.saturating_add(size) > self.config.memory {
            return Err(OUT_OF_MEMORY);
        }
        self.devices[ordinal].used += size;
        // A gap follows each block, so that a copy past its end meets nothing.
        let address = (1 << 40) + self.next * 4096;
        self.next += (size as u64).div_ceil(4096) + 1;
        self.memory.insert(address, Block { ordinal, bytes: vec![0; size] });
        Ok(address)
    }

    pub fn free(&mut self, ordinal: usize, address: u64) -> Outcome {
        self.run_all(ordinal)?;
        match self.memory.remove(&address) {
            Some(block) => {
                self.devices[block.ordinal].used -= block.bytes.len();
                Ok(())
            }
            None => self.wrong(format!("freed {address:#x}, which is no allocation"), INVALID_VALUE),
        }
    }

    /// The bytes of a range of device memory.
    pub fn range(&mut self, address: u64, size: usize) -> Result<&mut [u8], Status> {
        let found =
            self.memory.range(..=address).next_back().map(|(start, block)| (*start, block.bytes.len()));
        match found {
            Some((start, length)) if address - start + size as u64 <= length as u64 => {
                let first = (address - start) as usize;
                self.memory
                    .get_mut(&start)
                    .and_then(|block| block.bytes.get_mut(first..first + size))
                    .ok_or(ILLEGAL_ADDRESS)
            }
            _ => self.wrong(
                format!("access to {size} bytes at {address:#x}, which are no memory"),
                ILLEGAL_ADDRESS,
            ),
        }
    }

    pub fn is_locked(&self, address: usize, size: usize) -> bool {
        let held = self.pinned.range(..=address).next_back();
        held.is_some_and(|(start, (length, _))| address + size <= start + length)
    }

    /// Whether queued work still uses host memory of that range.
    pub fn is_in_flight(&self, address: usize, size: usize) -> bool {
        let touches = |at: usize, length: usize| at < address + size && address < at + length;
        self.streams.values().flat_map(|stream| &stream.work).any(|work| match work {
            Work::ToDevice { source, size, .. } => touches(*source, *size),
            Work::ToHost { target, size, .. } => touches(*target, *size),
            _ => false,
        })
    }

    /// Runs every stream of the device to its end.
    pub fn run_all(&mut self, ordinal: usize) -> Outcome {
        let streams: Vec<usize> =
            self.streams.iter().filter(|(_, queue)| queue.ordinal == ordinal).map(|(id, _)| *id).collect();
        for id in streams {
            self.run(id, None)?;
        }
        self.streams.retain(|_, queue| !(queue.destroyed && queue.work.is_empty()));
        Ok(())
    }

    /// Runs a stream to its end, or until the event is recorded. A fault poisons the device and empties its queues.
    pub fn run(&mut self, stream: usize, until: Option<(usize, u64)>) -> Outcome {
        while let Some(queue) = self.streams.get_mut(&stream) {
            let ordinal = queue.ordinal;
            let Some(work) = queue.work.pop_front() else { break };
            let reached = matches!(work, Work::Record { event, ticket } if until == Some((event, ticket)));
            if let Err(status) = self.execute(work) {
                self.poison(ordinal, status);
                return Err(status);
            }
            if reached {
                break;
            }
        }
        Ok(())
    }

    pub fn poison(&mut self, ordinal: usize, status: Status) {
        if is_sticky(status) && self.devices[ordinal].fault.is_none() {
            self.devices[ordinal].fault = Some(status);
            self.streams
                .values_mut()
                .filter(|queue| queue.ordinal == ordinal)
                .for_each(|queue| queue.work.clear());
        }
    }

    /// Runs whatever the event waits for.
    pub fn complete(&mut self, event: usize, ticket: u64) -> Outcome {
        let recorded =
            |work: &Work| matches!(work, Work::Record { event: e, ticket: t } if *e == event && *t == ticket);
        let stream =
            self.streams.iter().find(|(_, queue)| queue.work.iter().any(recorded)).map(|(id, _)| *id);
        stream.map_or(Ok(()), |id| self.run(id, Some((event, ticket))))
    }

    fn execute(&mut self, work: Work) -> Outcome {
        self.clock += 1;
        match work {
            Work::ToDevice { target, source, size } => {
                let bytes = super::calls::host_bytes(source, size).to_vec();
                self.range(target, size)?.copy_from_slice(&bytes);
            }
            Work::ToHost { target, source, size } => {
                super::calls::host_bytes_mut(target, size).copy_from_slice(self.range(source, size)?);
            }
            Work::Copy { target, source, size } => {
                let bytes = self.range(source, size)?.to_vec();
                self.range(target, size)?.copy_from_slice(&bytes);
            }
            Work::Fill { target, byte, size } => self.range(target, size)?.fill(byte),
            Work::Launch { kernel } => {
                let faulty = self.faulty.iter().find(|(name, _)| *name == kernel);
                return faulty.map_or(Ok(()), |(_, status)| Err(*status));
            }
            Work::Record { event, ticket } => {
                let time = self.clock;
                if let Some(mark) = self.events.get_mut(&event) {
                    mark.done = ticket;
                    mark.time = time;
                }
            }
            Work::Wait { event, ticket } => return self.complete(event, ticket),
        }
        Ok(())
    }
}
