//! The launch of a plan.

use super::super::cuda::Job;
use super::{EARLY, FLAGS, Plan};
use crate::Result;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, grid_x};

/// Enqueues the product.
pub fn run(plan: &Plan, job: &Job, factors: [Arg; 4]) -> Result<()> {
    let launcher = job.launcher;
    // Kernels of compute capability 9.0 wait for the launch before by themselves.
    let waits = launcher.compute_capability() == 90;
    let (operand, view) = if plan.long_is_b { (job.at.b, &job.views[1]) } else { (job.at.a, &job.views[0]) };
    // Whoever has read it in an earlier launch has waited for its elements, and they do not change.
    let settled = operand == view.ptr && view.was_read();
    let mut words = plan.words.clone();
    words[FLAGS] |= if waits && settled { EARLY } else { 0 };
    let (partial, tickets) = match plan.workspace() {
        0 => (None, DevicePtr::NULL),
        bytes => (Some(launcher.scratch(bytes)?), launcher.tickets()?),
    };
    let partial = partial.as_ref().map_or(DevicePtr::NULL, |memory| memory.ptr());
    let at = job.at;
    let mut arguments: Vec<Arg> = [at.a, at.b, at.c, at.bias, at.d].map(Arg::Ptr).into();
    arguments.extend(factors);
    arguments.extend([Arg::Ptr(partial), Arg::Ptr(tickets), Arg::Block(&words)]);
    let grid = grid_x(plan.blocks as u64, plan.tile.threads, plan.shared())?;
    launcher.launch(&plan.kernel, if waits { grid.early() } else { grid }, &arguments)?;
    if operand == view.ptr {
        launcher.note_read(view);
    }
    Ok(())
}
