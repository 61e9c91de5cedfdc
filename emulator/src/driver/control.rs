//! What tests that have the machine in their own process do with it.

use super::config::{Failure, KernelFault, Turn};
use super::modules::Shape;
use super::state::{Live, state};
use super::status::Status;
use super::work;
use std::collections::BTreeMap;

/// A launch as the driver was asked for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Launch {
    pub kernel: String,
    pub blocks: (u32, u32, u32),
    pub threads: (u32, u32, u32),
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Blocks of a cluster; 0 where the launch says nothing of them.
    pub cluster: u32,
    /// Whether it may begin before the launch before it has ended.
    pub early: bool,
    /// The bytes of each parameter.
    pub arguments: Vec<Vec<u8>>,
}

impl Launch {
    pub(super) fn of(launch: &work::Launch, shape: &Shape) -> Launch {
        let bytes = |offset, size| launch.parameters[offset as usize..][..size as usize].to_vec();
        Launch {
            kernel: launch.kernel.name.clone(),
            blocks: launch.grid.into(),
            threads: launch.block.into(),
            shared: launch.shared,
            cluster: shape.cluster.map_or(0, |size| size.iter().product()),
            early: shape.early,
            arguments: launch.kernel.params.iter().map(|one| bytes(one.offset, one.size)).collect(),
        }
    }
}

/// Makes the `nth` call of a function from now on, counted from 1, answer with the code.
pub fn fail(symbol: &str, nth: u64, status: Status) {
    let turn = Turn::Nth(calls(symbol) + nth);
    state().config.failures.push(Failure { symbol: symbol.into(), turn, status });
}

/// Makes each launch of a kernel from now on fault when it runs.
pub fn fault_in(kernel: &str, status: Status) {
    state().config.faults.push(KernelFault { kernel: kernel.into(), status, turn: Turn::From(1) });
}

/// Forgets all failures and faults.
pub fn heal() {
    let mut driver = state();
    driver.config.failures.clear();
    driver.config.faults.clear();
}

/// How often a function was called.
pub fn calls(symbol: &str) -> u64 {
    state().calls.get(symbol).copied().unwrap_or(0)
}

/// Every function called and how often.
pub fn called() -> BTreeMap<&'static str, u64> {
    state().calls.clone()
}

/// Launches that were taken and, by `run=off`, do not run.
pub fn launches() -> Vec<Launch> {
    state().noted.clone()
}

/// What callers hold of the contexts of all cards.
pub fn live() -> Live {
    let driver = state();
    (0..driver.cards.len()).fold(Live::default(), |all, ordinal| all + driver.live(ordinal))
}

/// How often primary contexts are retained now.
pub fn retained() -> usize {
    state().cards.iter().map(|card| card.retained).sum()
}
