//! The crate's tables and device reports as plain objects.

use super::Result;
use crate::dtype::DType;
use crate::graph::operators;
use crate::kernels::MODULES;
use crate::ops::{self, Attribute, Kind, Results};
use crate::runtime::{self, Gpu};
use napi_derive::napi;

/// A tensor argument of an op.
#[napi(object)]
pub struct OperandRow {
    /// Name in messages and, for optional ones, the option's name.
    pub name: String,
    /// Whether the call must give it.
    pub required: bool,
    /// Whether it is a list of tensors.
    pub list: bool,
    /// Whether that list has names: an object.
    pub named: bool,
    /// Element types of its own; none where it shares the op's type.
    pub dtypes: Vec<String>,
}

/// An option of an op.
#[napi(object)]
pub struct AttributeRow {
    /// Name of the option.
    pub name: String,
    /// TypeScript type.
    pub kind: String,
    /// The default, written as JavaScript; absent when there is none.
    pub default_value: Option<String>,
    /// Whether the option must be given.
    pub required: bool,
    /// What it means.
    pub doc: String,
}

/// One of several results of an op.
#[napi(object)]
pub struct ResultRow {
    /// Its name.
    pub name: String,
    /// Its element type; the op's where there is none.
    pub dtype: Option<String>,
}

/// One op of the op table.
#[napi(object)]
pub struct OpRow {
    /// JavaScript name.
    pub name: String,
    /// Tensor arguments, required ones first.
    pub operands: Vec<OperandRow>,
    /// Other options.
    pub attributes: Vec<AttributeRow>,
    /// Element types taken.
    pub dtypes: Vec<String>,
    /// Whether a call gives a list.
    pub gives_list: bool,
    /// Element type of the result where it is always the same.
    pub result_type: Option<String>,
    /// The results of a list that always holds the same ones.
    pub results: Vec<ResultRow>,
    /// Options that ask for more results than one.
    pub more_by: Vec<String>,
    /// Accuracy level.
    pub tolerance: String,
    /// What it computes.
    pub doc: String,
}

fn kind_text(kind: Kind) -> (String, Option<String>, bool) {
    match kind {
        Kind::Bool(default) => ("boolean".into(), Some(default.to_string()), false),
        Kind::Int(default) => ("number".into(), default.map(|value| value.to_string()), default.is_none()),
        Kind::Ints | Kind::Floats => ("number[]".into(), None, false),
        Kind::Float(default) => ("number".into(), (!default.is_nan()).then(|| number_text(default)), false),
        Kind::Choice(words) => {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            (quoted.join(" | "), Some(quoted[0].clone()), false)
        }
        Kind::Words(words) => {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            (format!("({})[]", quoted.join(" | ")), None, false)
        }
        Kind::Text => ("string".into(), None, true),
        Kind::Names => ("string[]".into(), None, true),
        Kind::Type { required } => ("DataType".into(), None, required),
    }
}

fn number_text(value: f64) -> String {
    if value.is_infinite() {
        format!("{}Infinity", if value < 0.0 { "-" } else { "" })
    } else {
        value.to_string()
    }
}

fn names(dtypes: &[DType]) -> Vec<String> {
    dtypes.iter().map(|dtype| dtype.name().into()).collect()
}

fn results(results: Results) -> Vec<ResultRow> {
    let Results::These(outputs) = results else { return Vec::new() };
    let row = |output: &ops::Output| ResultRow {
        name: output.name.into(),
        dtype: output.dtype.map(|dtype| dtype.name().into()),
    };
    outputs.iter().map(row).collect()
}

pub(super) fn attribute_row(attribute: &Attribute) -> AttributeRow {
    let (kind, default_value, required) = kind_text(attribute.kind);
    AttributeRow { name: attribute.name.into(), kind, default_value, required, doc: attribute.doc.into() }
}

/// The op table.
#[napi]
pub fn op_table() -> Vec<OpRow> {
    ops::all()
        .map(|spec| OpRow {
            name: spec.name.into(),
            operands: spec
                .operands
                .iter()
                .map(|operand| OperandRow {
                    name: operand.name.into(),
                    required: operand.required,
                    list: operand.list,
                    named: operand.named,
                    dtypes: names(operand.dtypes),
                })
                .collect(),
            attributes: spec.attributes.iter().map(attribute_row).collect(),
            dtypes: names(spec.dtypes),
            gives_list: matches!(spec.results, Results::List | Results::These(_)),
            result_type: match spec.results {
                Results::Of(dtype) => Some(dtype.name().into()),
                _ => None,
            },
            results: results(spec.results),
            more_by: match spec.results {
                Results::OneAnd(options) => options.iter().map(|name| name.to_string()).collect(),
                _ => Vec::new(),
            },
            tolerance: spec.tolerance.name().into(),
            doc: spec.doc.into(),
        })
        .collect()
}

/// A row of the table of ONNX operators.
#[napi(object)]
pub struct OperatorRow {
    /// Name in ONNX.
    pub name: String,
    /// Operator set; empty for ONNX's own.
    pub domain: String,
    /// The oldest version of the set in which it is read.
    pub since: u32,
    /// The op that it becomes above all.
    pub op: Option<String>,
    /// What runs on the host alone: nothing if absent, everything if empty.
    pub host: Option<String>,
}

/// The ONNX operators that sessions know.
#[napi]
pub fn operator_table() -> Vec<OperatorRow> {
    let text = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
    operators::all()
        .map(|row| OperatorRow {
            name: row.name.into(),
            domain: row.domain.into(),
            since: crate::onnx::since(row.name) as u32,
            op: text(row.op),
            host: row.host.map(Into::into),
        })
        .collect()
}

/// One error code.
#[napi(object)]
pub struct ErrorRow {
    /// Stable upper-case name.
    pub code: String,
    /// Number in the C ABI.
    pub number: i32,
    /// What it means.
    pub meaning: String,
}

/// The table of error codes.
#[napi]
pub fn error_table() -> Vec<ErrorRow> {
    let rows = crate::CODES.iter();
    rows.map(|row| ErrorRow { code: row.code.into(), number: row.number, meaning: row.meaning.into() })
        .collect()
}

/// One element type.
#[napi(object)]
pub struct DtypeRow {
    /// Name, as `Tensor.type`.
    pub name: String,
    /// Bytes of one element.
    pub size: u32,
    /// JavaScript class of the data.
    pub array: String,
}

/// The table of element types.
#[napi]
pub fn dtype_table() -> Vec<DtypeRow> {
    let rows = crate::DTYPES.iter();
    rows.map(|row| DtypeRow { name: row.name.into(), size: row.size as u32, array: row.array.into() })
        .collect()
}

/// One embedded kernel.
#[napi(object)]
pub struct KernelRow {
    /// `op_dtype[_variant]`.
    pub name: String,
    /// The file under kernels/ that it comes from.
    pub family: String,
    /// Lowest compute capability that takes it, as 75, 80, 90.
    pub level: u32,
    /// Whether only exactly that compute capability takes it.
    pub exact: bool,
}

/// The table of embedded kernels; one that is there for several levels has a row for each.
#[napi]
pub fn kernel_table() -> Vec<KernelRow> {
    let rows = MODULES.iter().flat_map(|module| module.entries.iter().map(move |entry| (module, entry)));
    rows.map(|(module, entry)| KernelRow {
        name: entry.name.into(),
        family: module.family.into(),
        level: module.level,
        exact: module.exact,
    })
    .collect()
}

/// A device of this machine.
#[napi(object)]
pub struct DeviceInfo {
    /// 'cpu' or 'cuda:N'.
    pub id: String,
    /// 'cpu' or 'cuda'.
    pub kind: String,
    /// Product name.
    pub name: String,
    /// "9.0" and the like; GPUs only.
    pub compute_capability: Option<String>,
    /// GPUs only.
    pub multiprocessors: Option<u32>,
    /// 32 hexadecimal digits; GPUs only.
    pub uuid: Option<String>,
    /// Compute threads; the CPU only.
    pub threads: Option<u32>,
    /// Bytes.
    pub total_memory: f64,
    /// Bytes; for a GPU known once it is in use.
    pub free_memory: Option<f64>,
}

/// Every GPU, then the CPU. Never throws.
#[napi]
pub fn devices() -> Vec<DeviceInfo> {
    let list = runtime::device_list().into_iter();
    list.map(|info| DeviceInfo {
        id: info.id,
        kind: info.kind.into(),
        name: info.name,
        compute_capability: info.compute_capability,
        multiprocessors: info.multiprocessors,
        uuid: info.uuid,
        threads: info.threads,
        total_memory: info.total_memory as f64,
        free_memory: info.free_memory.map(|bytes| bytes as f64),
    })
    .collect()
}

/// Whether a GPU can be used, and if not why.
#[napi(object)]
pub struct GpuStatus {
    /// Whether `cuda` works.
    pub available: bool,
    /// Error code when not.
    pub code: Option<String>,
    /// What is missing, in words, when not.
    pub reason: Option<String>,
    /// Driver library that was opened.
    pub library: Option<String>,
    /// Driver release as NVML reports it, like "550.54.14".
    pub driver_version: Option<String>,
    /// CUDA version that the driver offers, like "12.4".
    pub cuda_version: Option<String>,
}

/// Whether a GPU can be used, and if not why. Never throws and creates no context.
#[napi]
pub fn gpu_status() -> GpuStatus {
    let status = runtime::gpu_status();
    GpuStatus {
        available: status.available,
        code: status.code.map(Into::into),
        reason: status.reason,
        library: status.library,
        driver_version: status.driver_version,
        cuda_version: status.cuda_version,
    }
}

/// Memory figures of a device in bytes.
#[napi(object)]
pub struct MemoryStats {
    /// In tensors and intermediate values.
    pub used: f64,
    /// Kept for reuse.
    pub cached: f64,
    /// Highest `used` so far.
    pub peak: f64,
    /// The limit, 0 for none.
    pub limit: f64,
    /// Number of blocks in use.
    pub allocations: f64,
    /// Part of `used`: forms of operands that were used more than once.
    pub prepared: f64,
}

impl From<crate::tensor::MemoryStats> for MemoryStats {
    fn from(stats: crate::tensor::MemoryStats) -> Self {
        MemoryStats {
            used: stats.used as f64,
            cached: stats.cached as f64,
            peak: stats.peak as f64,
            limit: stats.limit as f64,
            allocations: stats.allocations as f64,
            prepared: stats.prepared as f64,
        }
    }
}

/// Memory figures of a device; zeros for a GPU that is not in use yet.
#[napi]
pub fn memory_stats(device: String) -> Result<MemoryStats> {
    Ok(match runtime::choose(&device, None)?.device {
        runtime::DeviceName::Cpu => crate::tensor::host_memory_stats().into(),
        runtime::DeviceName::Cuda(ordinal) => {
            Gpu::core_if_open(ordinal).map(|core| core.memory_stats()).unwrap_or_default().into()
        }
    })
}

/// Returns unused memory of a device to the driver, or of the CPU to the system.
#[napi]
pub fn trim_memory(device: String) -> Result<()> {
    match runtime::choose(&device, None)?.device {
        runtime::DeviceName::Cpu => crate::tensor::trim_host_memory(),
        runtime::DeviceName::Cuda(ordinal) => {
            if let Some(core) = Gpu::core_if_open(ordinal) {
                core.trim_memory();
            }
        }
    }
    Ok(())
}

/// Sets the limit in bytes on a GPU's tensors and intermediate values; 0 lifts it.
#[napi]
pub fn set_memory_limit(device: String, bytes: f64) -> Result<()> {
    if !(bytes.is_finite() && bytes >= 0.0 && bytes.fract() == 0.0) {
        return Err(crate::Error::InvalidArgument(format!(
            "memoryLimit must be a whole number of bytes, got {bytes}"
        ))
        .into());
    }
    match runtime::choose(&device, None)?.device {
        runtime::DeviceName::Cpu => {
            Err(crate::Error::UnsupportedOp("memoryLimit: the CPU has no limit of its own".into()).into())
        }
        runtime::DeviceName::Cuda(ordinal) => {
            Gpu::get(ordinal)?.launcher()?.core().set_memory_limit(bytes as u64);
            Ok(())
        }
    }
}

/// The device that a name stands for now, 'cpu' or 'cuda:N'.
#[napi]
pub fn resolve_device(device: String) -> Result<String> {
    Ok(runtime::choose(&device, None)?.device.to_string())
}

/// The package's version.
#[napi]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}
