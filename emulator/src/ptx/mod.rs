//! PTX text to decoded kernels.

mod accesses;
mod allocate;
pub(crate) mod ast;
mod asynchronous;
mod conversions;
mod declarations;
mod decode;
mod lexer;
mod lower;
mod matrices;
mod names;
mod parser;
mod warpgroup;

use crate::exec::inst::Code;
use crate::{DeviceMemory, Target};
use ast::{Source, Space};
use lexer::Problem;
use lower::Lower;
use std::sync::{Arc, Mutex};

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

/// A variable in device memory.
struct Global {
    name: String,
    bytes: u64,
    init: Vec<u8>,
}

/// Addresses of a module's variables; 0 before they are placed.
type Symbols = Arc<Mutex<Vec<u64>>>;

/// A loaded module.
pub struct Module {
    kernels: Vec<Arc<Kernel>>,
    globals: Vec<Global>,
    symbols: Symbols,
}

/// A decoded kernel.
pub struct Kernel {
    pub name: String,
    pub params: Vec<Param>,
    /// Registers per thread, an estimate from the text's liveness.
    pub registers: u32,
    pub local_bytes: u32,
    pub static_shared: u32,
    /// Where dynamic shared memory starts.
    pub dynamic_start: u32,
    /// From .maxntid; 1,024 without it.
    pub max_threads: u32,
    /// Registers of a thread at the start where the module bounds them, else 0; setmaxnreg needs it.
    pub registers_at_start: u32,
    /// Blocks of a cluster along each axis, where the module says so.
    pub cluster: Option<[u32; 3]>,
    pub(crate) code: Code,
    symbols: Symbols,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel({})", self.name)
    }
}

impl Kernel {
    pub(crate) fn symbols(&self) -> Vec<u64> {
        self.symbols.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Instructions after decoding, calls inlined.
    pub fn instructions(&self) -> usize {
        self.code.insts.len()
    }
}

/// The number in sm_75 or sm_90a.
pub(crate) fn target_number(name: &str) -> Option<u32> {
    name.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()
}

/// Instructions of sm_90a alone.
pub(crate) fn needs_exact(opcode: &str) -> bool {
    opcode.starts_with("wgmma") || opcode.starts_with("setmaxnreg")
}

/// The least .target that has an instruction.
pub(crate) fn needed_target(opcode: &str) -> u32 {
    let has = |part: &str| opcode.split('.').any(|word| word == part);
    let starts = |part: &str| opcode.starts_with(part);
    let any = |parts: &[&str]| parts.iter().any(|part| starts(part));
    let (half, brain) = (has("f16") || has("f16x2"), has("bf16") || has("bf16x2"));
    let packs = starts("cvt.r") && (opcode.ends_with("bf16.f32") || opcode.ends_with("bf16x2.f32"));
    if starts("mma") {
        return match opcode {
            _ if has("f64") && !has("m8n8k4") => 90,
            _ if half && has("m16n8k8") || has("m8n8k16") => 75,
            _ => 80,
        };
    }
    let words = ["bulk", "cluster", "shared::cluster", "try_wait", "expect_tx", "complete_tx", "tensormap"];
    if words.iter().any(|word| has(word))
        || any(&["wgmma", "stmatrix", "setmaxnreg", "elect", "mapa", "getctarank", "griddepcontrol"])
        || has("async") && starts("fence")
        || brain && any(&["add", "sub", "mul", "set", "atom", "red", "ex2", "tanh"])
        || brain && starts("cvt") && !(packs && (has("rn") || has("rz")))
    {
        90
    } else if any(&["cp.async", "redux", "mbarrier"])
        || half && any(&["min", "max"])
        || brain
        || has("NaN")
        || has("relu")
        || has("tf32")
    {
        80
    } else if any(&["ldmatrix", "movmatrix", "tanh"]) || half && starts("ex2") {
        75
    } else {
        0
    }
}

fn refused(problem: Problem) -> LoadError {
    let kind = if problem.unknown { LoadErrorKind::Unknown } else { LoadErrorKind::Syntax };
    let log = format!(
        "ptxas application ptx input, line {}; error   : {}\nptxas fatal   : Ptx assembly aborted due to errors",
        problem.line, problem.message
    );
    LoadError { kind, log }
}

fn check_header(source: &Source<'_>, target: &Target) -> Result<(), LoadError> {
    if source.version > target.max_version {
        let (major, minor) = source.version;
        let (most, least) = target.max_version;
        let log = format!(
            "ptxas application ptx input, line {}; fatal   : Unsupported .version {major}.{minor}; current version is '{most}.{least}'",
            source.version_line
        );
        return Err(LoadError { kind: LoadErrorKind::Version, log });
    }
    let Some(number) = target_number(source.target) else {
        let message = format!("Unknown .target '{}'", source.target);
        return Err(refused(Problem::syntax(source.target_line, message)));
    };
    let exact = source.target.ends_with(['a', 'f']);
    if number > target.cc || exact && number != target.cc {
        let log = format!(
            "ptxas fatal   : SM version specified by .target is higher than default SM version assumed ('{}' on 'sm_{}')",
            source.target, target.cc
        );
        return Err(LoadError { kind: LoadErrorKind::Target, log });
    }
    Ok(())
}

/// As many as .maxnreg says, or as fit the blocks that .minnctapersm asks for.
fn registers_at_start(function: &ast::Function<'_>) -> u32 {
    match (function.max_registers, function.blocks) {
        (0, 0) => 0,
        (0, blocks) => (65536 / function.max_threads.max(1) / blocks / 8 * 8).min(255),
        (most, _) => most,
    }
}

fn kernel<'a>(
    source: &'a Source<'a>,
    function: &'a ast::Function<'a>,
    text: &Arc<str>,
    symbols: &Symbols,
) -> Result<Kernel, Problem> {
    let mut lower = Lower::new(source);
    lower.line = function.line;
    let params = lower.kernel(function)?;
    let watched = lower.watch();
    let mut insts = lower.insts;
    let found = allocate::allocate(&mut insts, &lower.signatures, &lower.words, &lower.doubles, lower.preds);
    let file = |number: u32| source.files.iter().find(|(n, _)| *n == number).map_or("", |(_, name)| name);
    let sources =
        lower.locations.iter().map(|&(line, number, at)| (line, format!("{}:{at}", file(number)))).collect();
    let code = Code {
        insts,
        words: found.words,
        doubles: found.doubles,
        predicates: found.predicates,
        word_presets: found.word_presets,
        double_presets: found.double_presets,
        narrow_shared: lower.narrow_shared,
        asynchronous: lower.asynchronous,
        watched,
        text: text.clone(),
        sources,
    };
    Ok(Kernel {
        name: function.name.to_string(),
        params,
        registers: (found.pressure + 8).next_multiple_of(8).min(255),
        local_bytes: lower.local_bytes.next_multiple_of(16) as u32,
        static_shared: lower.shared_bytes as u32,
        dynamic_start: lower.shared_bytes.next_multiple_of(lower.dynamic_align.into()) as u32,
        max_threads: function.max_threads,
        registers_at_start: registers_at_start(function),
        cluster: function.cluster,
        code,
        symbols: symbols.clone(),
    })
}

impl Module {
    /// Parses and decodes a module; its variables stay without memory until `place`.
    pub fn load(text: &str, target: &Target) -> Result<Module, LoadError> {
        let text: Arc<str> = Arc::from(text);
        let source = parser::parse(&text).map_err(refused)?;
        check_header(&source, target)?;
        let symbols: Symbols = Arc::new(Mutex::new(vec![0; source.variables.len()]));
        let mut kernels = Vec::new();
        for function in source.functions.iter().filter(|function| function.entry && function.body.is_some()) {
            kernels.push(Arc::new(kernel(&source, function, &text, &symbols).map_err(refused)?));
        }
        let globals = source
            .variables
            .iter()
            .map(|variable| Global {
                name: variable.name.to_string(),
                // Shared variables have their place in each kernel.
                bytes: if variable.space == Space::Shared { 0 } else { variable.bytes },
                init: variable.init.clone(),
            })
            .collect();
        Ok(Module { kernels, globals, symbols })
    }

    /// Gives the module's .global and .const variables memory and their initial values.
    /// `launch` of a kernel that uses them before this is a fault.
    pub fn place(&self, memory: &DeviceMemory) -> Result<(), LoadError> {
        let mut symbols = self.symbols.lock().unwrap_or_else(|e| e.into_inner());
        for (global, address) in self.globals.iter().zip(symbols.iter_mut()) {
            if global.bytes == 0 || *address != 0 {
                continue;
            }
            let place = memory.alloc(global.bytes).filter(|&place| {
                memory.fill(place, 0, global.bytes).and_then(|()| memory.write(place, &global.init)).is_ok()
            });
            let log = || format!("no memory for variable '{}' of {} bytes", global.name, global.bytes);
            *address = place.ok_or_else(|| LoadError { kind: LoadErrorKind::Memory, log: log() })?;
        }
        Ok(())
    }

    /// Frees what `place` took.
    pub fn unload(&self, memory: &DeviceMemory) {
        let mut symbols = self.symbols.lock().unwrap_or_else(|e| e.into_inner());
        for address in symbols.iter_mut().filter(|address| **address != 0) {
            memory.free(std::mem::take(address));
        }
    }

    pub fn kernel(&self, name: &str) -> Option<Arc<Kernel>> {
        self.kernels.iter().find(|kernel| kernel.name == name).cloned()
    }

    pub fn kernels(&self) -> &[Arc<Kernel>] {
        &self.kernels
    }

    /// Address and size of a module variable (cuModuleGetGlobal).
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let index = self.globals.iter().position(|global| global.name == name)?;
        let symbols = self.symbols.lock().unwrap_or_else(|e| e.into_inner());
        Some((symbols[index], self.globals[index].bytes)).filter(|&(address, _)| address != 0)
    }
}
