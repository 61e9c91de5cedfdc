//! Modules, functions and launches.

use super::context::Context;
use super::stream::Stream;
use super::table::{RawFunction, RawModule, RawStream};
use crate::{Error, Result};
use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const JIT_INFO_LOG_BUFFER: c_int = 3;
const JIT_INFO_LOG_SIZE: c_int = 4;
const JIT_ERROR_LOG_BUFFER: c_int = 5;
const JIT_ERROR_LOG_SIZE: c_int = 6;
const FUNC_MAX_DYNAMIC_SHARED: c_int = 8;
const FUNC_LOCAL_BYTES: c_int = 3;
const FUNC_REGISTERS: c_int = 4;
const LAUNCH_CLUSTER: c_int = 4;
const LAUNCH_EARLY: c_int = 6;
const LOG_SIZE: usize = 16 * 1024;

/// A loaded module.
pub struct Module {
    context: Arc<Context>,
    raw: RawModule,
}

// SAFETY: the driver API may be used from any thread; the handle is only passed to it.
unsafe impl Send for Module {}
// SAFETY: as for Send.
unsafe impl Sync for Module {}

impl Module {
    /// Compiles PTX text for the device. A refusal carries the driver's log.
    pub fn from_ptx(context: &Arc<Context>, name: &str, ptx: &str) -> Result<Module> {
        let _bound = context.bind()?;
        let text =
            CString::new(ptx).map_err(|_| Error::Internal(format!("module '{name}' holds a zero byte")))?;
        let (mut info, mut error) = (vec![0u8; LOG_SIZE], vec![0u8; LOG_SIZE]);
        let mut options = [JIT_INFO_LOG_BUFFER, JIT_INFO_LOG_SIZE, JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_SIZE];
        let mut values = [
            info.as_mut_ptr().cast::<c_void>(),
            LOG_SIZE as *mut c_void,
            error.as_mut_ptr().cast::<c_void>(),
            LOG_SIZE as *mut c_void,
        ];
        let mut raw = std::ptr::null_mut();
        // SAFETY: the text is zero-terminated; the option and value arrays have the length passed, and the log buffers
        // they point to are live and as large as stated.
        let answer = unsafe {
            (context.api.table.module_load_data_ex)(
                &mut raw,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if answer != 0 {
            let log = log_text(&error);
            let failed = context.check("cuModuleLoadDataEx", answer);
            return Err(with_log(failed.err(), &format!("module '{name}'"), &log));
        }
        context.handles.fetch_add(1, Ordering::AcqRel);
        Ok(Module { context: context.clone(), raw })
    }

    /// The entry of that name.
    pub fn function(self: &Arc<Self>, name: &str) -> Result<Function> {
        let _bound = self.context.bind()?;
        let text = CString::new(name).map_err(|_| Error::Internal(format!("kernel name '{name}'")))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a live slot, the module is loaded and the name zero-terminated.
        let answer =
            unsafe { (self.context.api.table.module_get_function)(&mut raw, self.raw, text.as_ptr()) };
        self.context
            .check("cuModuleGetFunction", answer)
            .map_err(|error| with_log(Some(error), &format!("kernel '{name}'"), ""))?;
        Ok(Function { module: self.clone(), raw })
    }
}

fn log_text(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).trim().to_string()
}

fn with_log(error: Option<Error>, what: &str, log: &str) -> Error {
    let tail = if log.is_empty() { String::new() } else { format!("\n{log}") };
    match error {
        Some(Error::DriverTooOld(text)) => Error::DriverTooOld(format!("{what}: {text}{tail}")),
        Some(Error::OutOfMemory(text)) => Error::OutOfMemory(format!("{what}: {text}{tail}")),
        Some(lost @ Error::DeviceLost(_)) => lost,
        Some(other) => Error::Driver(format!("{what}: {other}{tail}")),
        None => Error::Internal(format!("{what} failed without a reason{tail}")),
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.context.handles.fetch_sub(1, Ordering::AcqRel);
        if let Ok(_bound) = self.context.bind() {
            // SAFETY: loaded in `from_ptx`, unloaded once; functions hold an Arc of the module.
            let answer = unsafe { (self.context.api.table.module_unload)(self.raw) };
            let _ = self.context.check("cuModuleUnload", answer);
        }
    }
}

/// A kernel. Keeps its module loaded.
#[derive(Clone)]
pub struct Function {
    module: Arc<Module>,
    raw: RawFunction,
}

// SAFETY: the driver API may be used from any thread; the handle is only passed to it.
unsafe impl Send for Function {}
// SAFETY: as for Send.
unsafe impl Sync for Function {}

/// Grid and block of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Blocks along x, y, z. Size-dependent counts belong on x: y and z stop at 65,535.
    pub blocks: (u32, u32, u32),
    /// Threads per block along x.
    pub threads: u32,
    /// Dynamic shared memory per block in bytes.
    pub shared: u32,
    /// Blocks along x that run together and see each other's shared memory.
    pub cluster: u32,
    /// Whether blocks may start while the launch before still runs; the kernel waits for it itself.
    pub early: bool,
}

impl Grid {
    /// Blocks along x, of so many threads each, with so much dynamic shared memory.
    pub fn along_x(blocks: u32, threads: u32, shared: u32) -> Grid {
        Grid { blocks: (blocks, 1, 1), threads, shared, cluster: 1, early: false }
    }

    /// The same in clusters of that many blocks, which divide their number.
    pub fn clustered(self, cluster: u32) -> Grid {
        Grid { cluster, ..self }
    }

    /// The same, started early.
    pub fn early(self) -> Grid {
        Grid { early: true, ..self }
    }

    fn attributes(&self) -> Vec<LaunchAttribute> {
        let mut attributes = Vec::new();
        if self.cluster > 1 {
            attributes.push(LaunchAttribute::new(LAUNCH_CLUSTER, [self.cluster, 1, 1]));
        }
        if self.early {
            attributes.push(LaunchAttribute::new(LAUNCH_EARLY, [1, 0, 0]));
        }
        attributes
    }
}

/// `CUlaunchAttribute`.
#[repr(C)]
pub(super) struct LaunchAttribute {
    pub(super) id: c_int,
    padding: c_int,
    pub(super) value: [u32; 16],
}

impl LaunchAttribute {
    fn new(id: c_int, words: [u32; 3]) -> LaunchAttribute {
        let mut value = [0; 16];
        value[..3].copy_from_slice(&words);
        LaunchAttribute { id, padding: 0, value }
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(super) struct LaunchConfig {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared: u32,
    pub(super) stream: RawStream,
    pub(super) attributes: *const LaunchAttribute,
    pub(super) count: u32,
}

impl Function {
    /// Allows blocks to ask for that much dynamic shared memory.
    pub fn allow_shared(&self, bytes: u32) -> Result<()> {
        let context = &self.module.context;
        let _bound = context.bind()?;
        // SAFETY: the function belongs to a loaded module; the attribute takes an int.
        let answer = unsafe {
            (context.api.table.func_set_attribute)(self.raw, FUNC_MAX_DYNAMIC_SHARED, bytes as c_int)
        };
        context.check("cuFuncSetAttribute", answer)
    }

    /// (registers per thread, bytes of local memory per thread).
    pub fn resources(&self) -> Result<(u32, u32)> {
        let context = &self.module.context;
        let _bound = context.bind()?;
        let read = |attribute: c_int| -> Result<u32> {
            let mut value = 0;
            // SAFETY: `value` is a live slot and the function belongs to a loaded module.
            let answer = unsafe { (context.api.table.func_get_attribute)(&mut value, attribute, self.raw) };
            context.check("cuFuncGetAttribute", answer).map(|()| value.max(0) as u32)
        };
        Ok((read(FUNC_REGISTERS)?, read(FUNC_LOCAL_BYTES)?))
    }

    /// Enqueues the kernel. `arguments` holds each parameter's value at its own offset in `words`; the caller has
    /// checked count, sizes and order against the kernel's signature.
    pub(crate) fn launch(&self, stream: &Stream, grid: Grid, arguments: &mut PackedArguments) -> Result<()> {
        let context = &self.module.context;
        context.same(&stream.context)?;
        let _bound = context.bind()?;
        let mut pointers = arguments.pointers();
        let attributes = grid.attributes();
        if let Some(launch) = context.api.table.launch_kernel_ex
            && !attributes.is_empty()
        {
            let config = LaunchConfig {
                grid: [grid.blocks.0, grid.blocks.1, grid.blocks.2],
                block: [grid.threads, 1, 1],
                shared: grid.shared,
                stream: stream.raw,
                attributes: attributes.as_ptr(),
                count: attributes.len() as u32,
            };
            // SAFETY: as below; `config` and the attributes that it points to are live and laid out as cuda.h declares.
            let answer = unsafe {
                launch((&raw const config).cast(), self.raw, pointers.as_mut_ptr(), std::ptr::null_mut())
            };
            return context.check("cuLaunchKernelEx", answer);
        }
        if grid.cluster > 1 {
            return Err(Error::DriverTooOld(
                "the driver launches no clusters of blocks (cuLaunchKernelEx)".into(),
            ));
        }
        // SAFETY: function and stream are live and of this context. Each pointer leads to a parameter value in
        // `arguments`, which outlives the call (the driver copies parameters before it returns); their number and
        // sizes were compared with the PTX signature by the only caller, `Launcher::launch`.
        let answer = unsafe {
            (context.api.table.launch_kernel)(
                self.raw,
                grid.blocks.0,
                grid.blocks.1,
                grid.blocks.2,
                grid.threads,
                1,
                1,
                grid.shared,
                stream.raw,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        context.check("cuLaunchKernel", answer)
    }
}

/// Parameter values laid out at aligned offsets.
#[derive(Default)]
pub(crate) struct PackedArguments {
    words: Vec<u64>,
    offsets: Vec<usize>,
}

impl PackedArguments {
    /// Appends one parameter's bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.offsets.push(self.words.len());
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_ne_bytes(word));
        }
    }

    fn pointers(&mut self) -> Vec<*mut c_void> {
        let base = self.words.as_mut_ptr();
        self.offsets.iter().map(|offset| base.wrapping_add(*offset).cast()).collect()
    }
}
