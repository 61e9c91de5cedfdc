//! Devices and the queues that run calls on them.

mod aggregations;
mod cpu;
mod crew;
mod devices;
mod gpu;
mod pinned;
mod sessions;
mod task;

pub use aggregations::Round;
pub use devices::{Choice, DeviceInfo, DeviceName, GpuStatus, choose, device_list, gpu_status};
pub use gpu::Gpu;
pub use pinned::{HostBlock, allocate_pinned, find_pinned};
pub use sessions::{ModelSource, Network, SessionOptions};
pub use task::{Source, Task, Work};

use crate::ops::{Call, Meta, Raw};
use crate::{Result, Tensor};

/// Runs an op and waits for it: the call of Rust users. Results lie where the op ran: `device` is "cpu", "cuda:N" or
/// "auto", and tensors already on a device decide for "auto".
pub fn run(
    op: &str,
    inputs: &[Option<Tensor>],
    options: &[(String, Raw)],
    device: &str,
) -> Result<Vec<Tensor>> {
    let metas: Vec<Option<Meta>> =
        inputs.iter().map(|input| input.as_ref().map(|tensor| tensor.meta().clone())).collect();
    let call = Call::new(op, metas, options)?;
    let held = inputs.iter().flatten().find_map(|tensor| tensor.core().map(|core| core.ordinal()));
    match choose(device, held)?.device {
        DeviceName::Cpu => crate::cpu::install(|| call.run_cpu(inputs)),
        DeviceName::Cuda(ordinal) => {
            call.check_values(inputs)?;
            let launcher = Gpu::get(ordinal)?.launcher()?;
            let moved = inputs
                .iter()
                .map(|input| input.as_ref().map(|tensor| tensor.to_device(launcher.core())).transpose())
                .collect::<Result<Vec<_>>>()?;
            call.run_cuda(&launcher, &moved)
                .map_err(|error| launcher.core().context().blame(call.spec.name, error))
        }
    }
}
