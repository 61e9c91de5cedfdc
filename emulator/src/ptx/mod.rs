//! PTX text to decoded kernels.

use crate::{DeviceMemory, Target};
use std::sync::Arc;

/// Why a module does not load, as the driver's error codes tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadErrorKind {
    /// CUDA_ERROR_INVALID_PTX.
    Syntax,
    /// CUDA_ERROR_UNSUPPORTED_PTX_VERSION.
    Version,
    /// CUDA_ERROR_NO_BINARY_FOR_GPU or INVALID_PTX: made for a newer card.
    Target,
    /// An instruction that the emulator does not know.
    Unknown,
    /// No device memory for the module's variables.
    Memory,
}

/// A module that does not load, with a log as ptxas writes it.
#[derive(Clone, Debug)]
pub struct LoadError {
    pub kind: LoadErrorKind,
    pub log: String,
}

/// One kernel parameter's place in the packed parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    pub offset: u32,
    pub size: u32,
    pub align: u32,
}

/// A loaded module.
pub struct Module {
    kernels: Vec<Arc<Kernel>>,
}

impl Module {
    /// Parses and decodes a module; its variables stay without memory until `place`.
    pub fn load(text: &str, target: &Target) -> Result<Module, LoadError> {
        let _ = (text, target);
        Ok(Module { kernels: Vec::new() })
    }

    /// Gives the module's .global and .const variables memory and their initial values.
    /// `launch` of a kernel that uses them before this is a fault.
    pub fn place(&self, memory: &DeviceMemory) -> Result<(), LoadError> {
        let _ = memory;
        Ok(())
    }

    /// Frees what `place` took.
    pub fn unload(&self, memory: &DeviceMemory) {
        let _ = memory;
    }

    pub fn kernel(&self, name: &str) -> Option<Arc<Kernel>> {
        self.kernels.iter().find(|kernel| kernel.name == name).cloned()
    }

    pub fn kernels(&self) -> &[Arc<Kernel>] {
        &self.kernels
    }

    /// Address and size of a module variable (cuModuleGetGlobal).
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let _ = name;
        None
    }
}

/// A decoded kernel.
pub struct Kernel {
    pub name: String,
    pub params: Vec<Param>,
    /// Registers per thread, an estimate from the text's liveness.
    pub registers: u32,
    pub local_bytes: u32,
    pub static_shared: u32,
    /// From .maxntid; 1,024 without it.
    pub max_threads: u32,
}
