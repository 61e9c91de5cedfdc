//! The kinds of work that a stream holds, and how each runs.

use super::abi::pages;
use super::host::{checksum, is_mapped};
use super::queue::Goal;
use super::report;
use super::state::{Driver, Id, state};
use super::status::*;
use crate::{Checks, DeviceMemory, Fault, FaultKind, Kernel, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where a copy to the device reads from.
#[derive(Clone)]
pub enum Source {
    /// Page-locked memory, read when the copy runs. The checksum is that of its bytes at submission.
    Locked { address: usize, size: usize, checksum: Option<u64> },
    /// Bytes taken at submission, as the driver stages pageable memory.
    Taken(Arc<[u8]>),
}

/// A kernel with all that it needs to run.
#[derive(Clone)]
pub struct Launch {
    pub kernel: Arc<Kernel>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Blocks of a cluster along each axis.
    pub cluster: [u32; 3],
    pub shared: u32,
    /// Packed at the kernel's own offsets.
    pub parameters: Vec<u8>,
}

/// One item of a stream.
#[derive(Clone)]
pub enum Work {
    ToDevice { target: u64, source: Source },
    ToHost { target: usize, source: u64, size: usize },
    Copy { target: u64, source: u64, size: usize },
    Fill { target: u64, byte: u8, size: usize },
    Launch(Arc<Launch>),
    Record { event: Id },
    Wait { goal: Goal },
    Free { address: u64 },
}

/// An item that is about to run, with what it needs of the machine.
pub struct Job {
    work: Work,
    target: Target,
    checks: Checks,
    check_source: bool,
    /// Memory of the stream's card, and of the cards that the addresses belong to.
    here: Arc<DeviceMemory>,
    to: Arc<DeviceMemory>,
    from: Arc<DeviceMemory>,
    delay: u64,
    planned: Option<Status>,
    run: bool,
}

impl Driver {
    /// The memory that an address lies in; that of the stream's card where it lies in none.
    fn memory_at(&self, address: u64, ordinal: usize) -> Arc<DeviceMemory> {
        let owner = self.block_at(address).map_or(ordinal, |(_, block)| block.ordinal);
        self.cards[owner].memory.clone()
    }

    /// Makes an item ready to run outside the lock.
    pub fn job(&self, ordinal: usize, work: &Work) -> Job {
        let (to, from) = match work {
            Work::ToDevice { target, .. } | Work::Fill { target, .. } => (*target, *target),
            Work::ToHost { source, .. } => (*source, *source),
            Work::Copy { target, source, .. } => (*target, *source),
            _ => (0, 0),
        };
        let name = match work {
            Work::Launch(launch) => launch.kernel.name.as_str(),
            _ => "",
        };
        let number = self.attempts.get(name).copied().unwrap_or(0) + 1;
        let planned = self.config.faults.iter().find(|plan| match plan.kernel.as_str() {
            "*" => !name.is_empty() && plan.turn.is(self.attempts.values().sum::<u64>() + 1),
            kernel => kernel == name && plan.turn.is(number),
        });
        Job {
            work: work.clone(),
            target: self.target(),
            checks: self.checks(),
            check_source: self.config.checks("source"),
            here: self.cards[ordinal].memory.clone(),
            to: self.memory_at(to, ordinal),
            from: self.memory_at(from, ordinal),
            delay: if name.is_empty() { 0 } else { self.config.delay(name) },
            planned: planned.map(|plan| plan.status),
            run: self.config.run,
        }
    }

    /// What is left to do once an item has run.
    pub fn settle(&mut self, ticket: u64, work: Work) {
        match work {
            Work::Record { event } => {
                if let Some(mark) = self.events.get_mut(&event)
                    && mark.recorded.is_some_and(|(_, recorded)| recorded == ticket)
                {
                    mark.time = Some(Instant::now());
                }
            }
            Work::Free { address } => self.release(address),
            Work::Launch(launch) => *self.launches.entry(launch.kernel.name.clone()).or_insert(0) += 1,
            _ => {}
        }
    }
}

/// The driver's code for what a kernel did.
fn code(kind: FaultKind) -> Status {
    match kind {
        FaultKind::OutOfBounds | FaultKind::UseAfterFree => ILLEGAL_ADDRESS,
        FaultKind::Misaligned => MISALIGNED_ADDRESS,
        FaultKind::Timeout => LAUNCH_TIMEOUT,
        FaultKind::Undefined => ILLEGAL_INSTRUCTION,
        FaultKind::Launch => LAUNCH_OUT_OF_RESOURCES,
        FaultKind::Trap | FaultKind::Uninitialized | FaultKind::Race | FaultKind::BarrierDivergence => {
            LAUNCH_FAILED
        }
    }
}

/// A copy's fault ends the context, but bytes that nothing wrote are only noted: a card copies them.
fn copied(outcome: Result<(), Fault>) -> Outcome {
    match outcome {
        Ok(()) => Ok(()),
        Err(fault) => {
            report::fault(&fault);
            if fault.kind == FaultKind::Uninitialized { Ok(()) } else { Err(code(fault.kind)) }
        }
    }
}

impl Job {
    /// Runs the item. The error is the one that ends the context.
    pub fn run(self) -> Outcome {
        catch_unwind(AssertUnwindSafe(|| self.execute())).unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            report::find("emulator", format!("the emulator panicked: {}", words.unwrap_or_default()));
            Err(LAUNCH_FAILED)
        })
    }

    fn execute(self) -> Outcome {
        match &self.work {
            Work::ToDevice { target, source: Source::Taken(bytes) } => copied(self.to.write(*target, bytes)),
            Work::ToDevice { target, source: Source::Locked { address, size, checksum: before } } => {
                let bytes = read_host(*address, *size)?;
                if self.check_source && before.is_some_and(|before| before != checksum(&bytes)) {
                    report::find(
                        "source",
                        format!(
                            "the {size} bytes at host address {address:#x} changed between the submission of an asynchronous copy from them and its run"
                        ),
                    );
                }
                copied(self.to.write(*target, &bytes))
            }
            Work::ToHost { target, source, size } => {
                let mut bytes = vec![0; *size];
                let outcome = copied(self.from.read(*source, &mut bytes));
                outcome.and_then(|()| write_host(*target, &bytes))
            }
            Work::Copy { target, source, size } if Arc::ptr_eq(&self.to, &self.from) => {
                copied(self.to.copy(*target, *source, *size as u64))
            }
            Work::Copy { target, source, size } => {
                let mut bytes = vec![0; *size];
                copied(self.from.read(*source, &mut bytes))?;
                copied(self.to.write(*target, &bytes))
            }
            Work::Fill { target, byte, size } => copied(self.to.fill(*target, *byte, *size as u64)),
            Work::Launch(launch) => self.launch(launch),
            Work::Free { address } => {
                self.here.free(*address);
                Ok(())
            }
            Work::Record { .. } | Work::Wait { .. } => Ok(()),
        }
    }

    fn launch(&self, launch: &Launch) -> Outcome {
        let name = &launch.kernel.name;
        *state().attempts.entry(name.clone()).or_insert(0) += 1;
        std::thread::sleep(Duration::from_millis(self.delay));
        if let Some(status) = self.planned {
            return Err(status);
        }
        if !self.run {
            return Ok(());
        }
        let outcome = crate::exec::launch_clusters(
            &launch.kernel,
            launch.grid,
            launch.block,
            launch.cluster,
            launch.shared,
            &launch.parameters,
            &self.here,
            &self.target,
            &self.checks,
        );
        outcome.map(|_| ()).map_err(|fault| {
            report::fault(&fault);
            code(fault.kind)
        })
    }
}

/// Bytes of host memory that an asynchronous copy reads.
fn read_host(address: usize, size: usize) -> Outcome<Vec<u8>> {
    if !is_mapped(address, size) {
        return unmapped(address, size);
    }
    Ok(pages::copy_out(address, size))
}

fn write_host(address: usize, bytes: &[u8]) -> Outcome {
    if !is_mapped(address, bytes.len()) {
        return unmapped(address, bytes.len());
    }
    pages::copy_in(address, bytes);
    Ok(())
}

fn unmapped<T>(address: usize, size: usize) -> Outcome<T> {
    report::find(
        "host",
        format!(
            "the {size} bytes at host address {address:#x} were given back to the system before an asynchronous copy that uses them ran"
        ),
    );
    Err(ILLEGAL_ADDRESS)
}
