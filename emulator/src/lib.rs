//! A CUDA driver on the CPU: the driver API's functions and an interpreter for PTX.

pub mod driver;
pub mod exec;
pub mod memory;
pub mod ptx;

pub use exec::{Checks, launch};
pub use memory::DeviceMemory;
pub use ptx::{Kernel, LoadError, LoadErrorKind, Module, Param};

/// The card that is emulated.
#[derive(Clone, Debug)]
pub struct Target {
    /// Compute capability times ten: 75, 80, 90.
    pub cc: u32,
    /// The newest PTX version that the driver takes.
    pub max_version: (u32, u32),
    pub multiprocessors: u32,
    /// Multiply-adds of float16 that mma.sync does while the plain cores do one of float32.
    pub tensor: u32,
    /// Bytes of shared memory that one block may have, the opt-in maximum.
    pub shared_per_block: u32,
    pub registers_per_block: u32,
    pub max_threads_per_block: u32,
}

impl Target {
    /// A card of a compute capability with the limits that NVIDIA documents for it.
    pub fn new(cc: u32) -> Target {
        let (multiprocessors, shared_per_block) = match cc {
            0..=75 => (40, 64 << 10),
            80 => (108, 163 << 10),
            86 | 89 => (84, 99 << 10),
            _ => (132, 227 << 10),
        };
        let max_version = (8, 8);
        Target {
            cc,
            max_version,
            multiprocessors,
            tensor: if cc < 80 { 8 } else { 16 },
            shared_per_block,
            registers_per_block: 65536,
            max_threads_per_block: 1024,
        }
    }
}

/// What went wrong in a kernel or a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    OutOfBounds,
    Misaligned,
    Uninitialized,
    UseAfterFree,
    Race,
    BarrierDivergence,
    Trap,
    Timeout,
    /// A launch that the card does not take: too many threads, too much shared memory.
    Launch,
    /// An instruction used in a way that PTX leaves undefined.
    Undefined,
}

/// A finding of the checkers, with the place where it happened.
#[derive(Clone, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    pub kernel: String,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// The address, where one is at fault; of shared and local memory the offset in it.
    pub address: Option<u64>,
    pub instruction: String,
    /// Line in the PTX text; 0 where there is none.
    pub line: u32,
    /// The place in the CUDA source where the PTX has .loc lines.
    pub source: Option<String>,
    pub detail: String,
}

impl Fault {
    /// A fault outside any kernel.
    pub fn plain(kind: FaultKind, address: Option<u64>, detail: impl Into<String>) -> Fault {
        Fault {
            kind,
            kernel: String::new(),
            block: [0; 3],
            thread: [0; 3],
            address,
            instruction: String::new(),
            line: 0,
            source: None,
            detail: detail.into(),
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.detail)?;
        if let Some(address) = self.address {
            write!(f, " at 0x{address:x}")?;
        }
        if !self.kernel.is_empty() {
            let ([bx, by, bz], [tx, ty, tz]) = (self.block, self.thread);
            write!(f, " in {} block ({bx},{by},{bz}) thread ({tx},{ty},{tz})", self.kernel)?;
        }
        if self.line > 0 {
            write!(f, ", line {}: {}", self.line, self.instruction)?;
        }
        if let Some(source) = &self.source {
            write!(f, " ({source})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
