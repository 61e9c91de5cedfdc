//! The interpreter: blocks over the cores, warps in lockstep, lanes as vectors.

use crate::{DeviceMemory, Fault, Kernel, Target};

/// Which checkers a launch runs with.
#[derive(Clone, Debug)]
pub struct Checks {
    /// Reads of global, shared and local memory that nothing wrote.
    pub uninitialized: bool,
    /// Conflicting accesses to shared memory that no barrier orders.
    pub shared_races: bool,
    /// The same for global memory, within and across the blocks of one launch; slow.
    pub global_races: bool,
    /// Threads of a block that wait at different barriers.
    pub barriers: bool,
    /// Changes the last bit of approximate results, as another card might.
    pub perturb_approximate: bool,
    /// Warp instructions that one block may take before the launch is stopped.
    pub max_instructions: u64,
    /// Worker threads; 0 for one per core.
    pub threads: usize,
}

impl Default for Checks {
    fn default() -> Checks {
        Checks {
            uninitialized: true,
            shared_races: true,
            global_races: false,
            barriers: true,
            perturb_approximate: false,
            max_instructions: 20_000_000_000,
            threads: 0,
        }
    }
}

/// Runs a kernel to its end. `params` is packed at the kernel's own offsets.
#[allow(clippy::too_many_arguments, reason = "the driver's launch has these")]
pub fn launch(
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    params: &[u8],
    memory: &DeviceMemory,
    target: &Target,
    checks: &Checks,
) -> Result<(), Fault> {
    let _ = (kernel, grid, block, dynamic_shared, params, memory, target, checks);
    todo!("the interpreter")
}
