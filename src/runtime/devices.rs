//! Device names, the list of devices and the choice that `auto` makes.

use crate::driver::{self, DeviceProperties};
use crate::{Error, Result};

/// Environment variable that says what `auto` means.
pub const DEVICE_VARIABLE: &str = "WARPWRIGHT_DEVICE";

/// A device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceName {
    /// The CPU.
    Cpu,
    /// The GPU of that number.
    Cuda(usize),
}

impl std::fmt::Display for DeviceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceName::Cpu => f.write_str("cpu"),
            DeviceName::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

/// A device and, where `auto` fell back to the CPU, why.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The device to use.
    pub device: DeviceName,
    /// Why a GPU was not chosen.
    pub reason: Option<Error>,
}

/// Resolves "cpu", "cuda", "cuda:N" or "auto". `held` is the GPU that an operand already lies on: it decides for
/// `auto`, and any other choice is an error.
pub fn choose(name: &str, held: Option<usize>) -> Result<Choice> {
    let wanted = match parse(name)? {
        None => match held {
            Some(ordinal) => return Ok(Choice { device: DeviceName::Cuda(ordinal), reason: None }),
            None => return automatic(),
        },
        Some(device) => device,
    };
    if let Some(ordinal) = held
        && wanted != DeviceName::Cuda(ordinal)
    {
        let text = format!(
            "device '{wanted}' was asked for, but an operand is on 'cuda:{ordinal}'; move it with to('{wanted}')"
        );
        return Err(Error::InvalidArgument(text));
    }
    if let DeviceName::Cuda(ordinal) = wanted {
        usable(ordinal)?;
    }
    Ok(Choice { device: wanted, reason: None })
}

fn automatic() -> Result<Choice> {
    let variable = std::env::var(DEVICE_VARIABLE).unwrap_or_default();
    if !variable.is_empty() && variable != "auto" {
        return match parse(&variable) {
            Ok(Some(_)) => choose(&variable, None),
            _ => crate::invalid!(
                "{DEVICE_VARIABLE} must be 'cpu', 'cuda', 'cuda:N' or 'auto', got '{variable}'"
            ),
        };
    }
    Ok(match usable(0) {
        Ok(()) => Choice { device: DeviceName::Cuda(0), reason: None },
        Err(reason) => Choice { device: DeviceName::Cpu, reason: Some(reason) },
    })
}

/// `None` stands for `auto`.
fn parse(name: &str) -> Result<Option<DeviceName>> {
    match name {
        "auto" => Ok(None),
        "cpu" => Ok(Some(DeviceName::Cpu)),
        "cuda" => Ok(Some(DeviceName::Cuda(0))),
        other => match other.strip_prefix("cuda:").and_then(|digits| digits.parse().ok()) {
            Some(ordinal) => Ok(Some(DeviceName::Cuda(ordinal))),
            None => Err(Error::DeviceNotFound(format!(
                "device must be 'cpu', 'cuda', 'cuda:N' or 'auto', got '{other}'"
            ))),
        },
    }
}

/// Oldest compute capability that the kernels run on.
const MINIMUM_CAPABILITY: (u32, u32) = (7, 5);

fn usable(ordinal: usize) -> Result<()> {
    if let Some(error) = super::Gpu::gone(ordinal) {
        return Err(error);
    }
    // A device in use was found usable before; asking the driver again would cost every call some ten driver calls.
    if super::Gpu::core_if_open(ordinal).is_some() {
        return Ok(());
    }
    let properties = driver::device_properties(ordinal)?;
    if properties.compute_capability < MINIMUM_CAPABILITY {
        let (major, minor) = properties.compute_capability;
        return Err(Error::GpuUnavailable(format!(
            "cuda:{ordinal} ({}) has compute capability {major}.{minor}; 7.5 or newer is needed",
            properties.name
        )));
    }
    Ok(())
}

/// One entry of `devices()`.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct DeviceInfo {
    pub id: String,
    pub kind: &'static str,
    pub name: String,
    pub compute_capability: Option<String>,
    pub multiprocessors: Option<u32>,
    pub uuid: Option<String>,
    /// Bytes.
    pub total_memory: u64,
    /// Bytes; known once the device is in use.
    pub free_memory: Option<u64>,
    /// Compute threads of the CPU.
    pub threads: Option<u32>,
}

/// Every GPU, then the CPU. Never fails: without a driver the CPU stands alone.
pub fn device_list() -> Vec<DeviceInfo> {
    let count = driver::device_count().unwrap_or(0);
    let mut list: Vec<DeviceInfo> =
        (0..count).filter_map(|ordinal| driver::device_properties(ordinal).ok()).map(gpu_info).collect();
    list.push(cpu_info());
    list
}

fn gpu_info(properties: DeviceProperties) -> DeviceInfo {
    let (major, minor) = properties.compute_capability;
    DeviceInfo {
        id: format!("cuda:{}", properties.ordinal),
        kind: "cuda",
        free_memory: super::Gpu::free_memory_if_open(properties.ordinal),
        name: properties.name,
        compute_capability: Some(format!("{major}.{minor}")),
        multiprocessors: Some(properties.multiprocessors),
        uuid: Some(properties.uuid),
        total_memory: properties.total_memory,
        threads: None,
    }
}

fn cpu_info() -> DeviceInfo {
    let (total_memory, free_memory) = host_memory();
    DeviceInfo {
        id: "cpu".into(),
        kind: "cpu",
        name: cpu_name(),
        compute_capability: None,
        multiprocessors: None,
        uuid: None,
        total_memory,
        free_memory,
        threads: Some(crate::cpu::thread_count() as u32),
    }
}

fn proc_value(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

fn cpu_name() -> String {
    proc_value("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_string())
}

fn host_memory() -> (u64, Option<u64>) {
    let bytes = |key| {
        let kilobytes: u64 = proc_value("/proc/meminfo", key)?.split_whitespace().next()?.parse().ok()?;
        Some(kilobytes * 1024)
    };
    (bytes("MemTotal").unwrap_or(0), bytes("MemAvailable"))
}

/// What `gpuStatus()` answers.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct GpuStatus {
    pub available: bool,
    pub code: Option<&'static str>,
    pub reason: Option<String>,
    pub library: Option<String>,
    pub driver_version: Option<String>,
    pub cuda_version: Option<String>,
}

/// Whether a GPU can be used, and if not why. Never fails and creates no context.
pub fn gpu_status() -> GpuStatus {
    let mut status = GpuStatus { driver_version: driver::driver_version(), ..GpuStatus::default() };
    if let Ok(api) = driver::api() {
        status.library = Some(api.library.clone());
        status.cuda_version = Some(format!("{}.{}", api.cuda.0, api.cuda.1));
    }
    match usable(0) {
        Ok(()) => status.available = true,
        Err(error) => {
            status.code = Some(error.code());
            status.reason = Some(error.to_string());
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse() {
        assert_eq!(parse("cuda").unwrap(), Some(DeviceName::Cuda(0)));
        assert_eq!(parse("cuda:3").unwrap(), Some(DeviceName::Cuda(3)));
        assert_eq!(parse("auto").unwrap(), None);
        for bad in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU"] {
            assert_eq!(parse(bad).unwrap_err().code(), "DEVICE_NOT_FOUND", "{bad}");
        }
    }

    #[test]
    fn an_operand_on_a_gpu_decides() {
        assert_eq!(choose("auto", Some(2)).unwrap().device, DeviceName::Cuda(2));
        assert_eq!(choose("cpu", Some(2)).unwrap_err().code(), "INVALID_ARGUMENT");
        assert_eq!(choose("cpu", None).unwrap().device, DeviceName::Cpu);
    }
}
