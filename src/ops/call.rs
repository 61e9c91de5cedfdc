//! A call: an op, its operands' types and dims and its attributes, checked as a whole before any work.

use super::spec::{Meta, OpSpec};
use super::{Attrs, Precision, Raw, find, halves, indices};
use crate::kernels::Launcher;
use crate::tensor::Tensor;
use crate::{DType, Error, Result, invalid};

/// Ops that networks spend time on whose CPU forms write every element of their results.
#[rustfmt::skip]
const WRITES_ALL: &[&str] = &[
    "conv1d", "conv2d", "conv3d", "convTranspose1d", "convTranspose2d", "convTranspose3d", "matmul", "evaluate", "resize",
    "softmax", "layerNorm", "add", "sub", "mul", "div", "relu", "hardSwish", "hardSigmoid", "sigmoid", "clip", "gelu", "silu",
    "maxPool2d", "averagePool2d", "globalAveragePool", "transpose", "concat",
];

/// A checked call. Making one allocates nothing and touches no device.
#[derive(Debug, Clone)]
pub struct Call {
    /// The op.
    pub spec: &'static OpSpec,
    /// Operands' types and dims, `None` for optional ones left out; as long as the op's list, or the items of its list.
    pub inputs: Vec<Option<Meta>>,
    /// Attributes with defaults filled in.
    pub attrs: Attrs,
    /// How exact float32 products are.
    pub precision: Precision,
    /// Results' types and dims.
    pub outputs: Vec<Meta>,
}

impl Call {
    /// Checks a call. Errors name the op, the argument, what was expected and what came.
    pub fn new(op: &str, inputs: Vec<Option<Meta>>, options: &[(String, Raw)]) -> Result<Call> {
        let spec = find(op)?;
        let inputs = check_operands(spec, inputs, options)?;
        let precision = Precision::of(spec.name, options)?;
        let attrs = Attrs::parse(spec, options)?;
        let outputs = (spec.shape)(spec, &inputs, &attrs)?;
        for meta in &outputs {
            crate::shape::element_count(spec.name, &meta.dims)?;
        }
        Ok(Call { spec, inputs, attrs, precision, outputs })
    }

    /// The operand at that position; the call was checked, so required ones are there.
    pub fn input(&self, index: usize) -> &Meta {
        self.inputs[index].as_ref().expect("required operand was checked")
    }

    /// The first result.
    pub fn output(&self) -> &Meta {
        &self.outputs[0]
    }

    /// Element type that the call computes in: that of its first operand without types of its own. Where all operands are of
    /// types that the op does not compute in, as bool in expressions, that of the result, if not the op's first.
    pub fn dtype(&self) -> DType {
        let operands = self.spec.operands;
        let own = |index: usize| !operands[index.min(operands.len() - 1)].dtypes.is_empty();
        let shared = self.inputs.iter().enumerate().filter(|(index, _)| !own(*index));
        let mut types =
            shared.filter_map(|(_, input)| Some(input.as_ref()?.dtype)).chain([self.output().dtype]);
        let known = types.find(|dtype| self.spec.dtypes.contains(dtype));
        known.unwrap_or(self.spec.dtypes[0])
    }

    /// Whether the values of that operand are checked while the host has them: whether it holds indices or lengths.
    pub fn is_checked(&self, index: usize) -> bool {
        self.spec.operands.get(index).is_some_and(|operand| operand.range.is_some())
    }

    /// An error for an index or a length out of range in an operand on the host. What lies on a GPU is not looked at.
    pub fn check_values(&self, inputs: &[Option<Tensor>]) -> Result<()> {
        indices::check(self, inputs)
    }

    /// Runs the CPU form on host tensors. Blocks until done; use on a compute thread.
    pub fn run_cpu(&self, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
        self.check_values(inputs)?;
        let Some(wide) = self.widened() else { return self.run_stored(inputs) };
        let inputs = inputs.iter().map(|input| input.as_ref().map(halves::widen).transpose());
        let outputs = wide.run_stored(&inputs.collect::<Result<Vec<_>>>()?)?;
        outputs.into_iter().zip(&self.outputs).map(|(output, meta)| halves::narrow(output, meta)).collect()
    }

    /// Runs the CPU form on the tensors as they are.
    fn run_stored(&self, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
        let buffer = if WRITES_ALL.contains(&self.spec.name) {
            Tensor::host_buffer_for_overwrite
        } else {
            Tensor::host_buffer
        };
        let mut outputs = self.outputs.iter().map(buffer).collect::<Result<Vec<_>>>()?;
        {
            let views = inputs
                .iter()
                .map(|input| input.as_ref().map(Tensor::host_view).transpose())
                .collect::<Result<Vec<_>>>()?;
            let mut out: Vec<_> =
                outputs.iter_mut().zip(&self.outputs).map(|(buffer, meta)| buffer.view_mut(meta)).collect();
            (self.spec.cpu)(self, &views, &mut out)?;
        }
        Ok(outputs
            .into_iter()
            .zip(&self.outputs)
            .map(|(buffer, meta)| Tensor::from_host(buffer, meta))
            .collect())
    }

    /// Enqueues the GPU form on device tensors of that launcher. Returns before the work is done.
    pub fn run_cuda(&self, launcher: &Launcher, inputs: &[Option<Tensor>]) -> Result<Vec<Tensor>> {
        let outputs = self
            .outputs
            .iter()
            .map(|meta| Tensor::device(launcher.core(), meta))
            .collect::<Result<Vec<_>>>()?;
        let views = inputs
            .iter()
            .map(|input| input.as_ref().map(|tensor| tensor.device_view(launcher.core())).transpose())
            .collect::<Result<Vec<_>>>()?;
        let out =
            outputs.iter().map(|tensor| tensor.device_view(launcher.core())).collect::<Result<Vec<_>>>()?;
        (self.spec.cuda)(self, launcher, &views, &out)?;
        Ok(outputs)
    }
}

fn check_operands(
    spec: &OpSpec,
    mut inputs: Vec<Option<Meta>>,
    options: &[(String, Raw)],
) -> Result<Vec<Option<Meta>>> {
    let listed = spec.operands.iter().any(|operand| operand.list);
    if !listed {
        if inputs.len() > spec.operands.len() {
            return invalid!("{}: takes {} operands, got {}", spec.name, spec.operands.len(), inputs.len());
        }
        inputs.resize(spec.operands.len(), None);
    } else if inputs.is_empty() {
        return invalid!("{}: '{}' holds no tensor", spec.name, spec.operands[0].name);
    }
    let names =
        options.iter().find_map(|(_, value)| if let Raw::Names(names) = value { Some(names) } else { None });
    let mut common = None;
    for (index, input) in inputs.iter().enumerate() {
        let operand = if listed { &spec.operands[0] } else { &spec.operands[index] };
        // Operands that have names are called by them.
        let own = names.filter(|_| operand.named).and_then(|names| names.get(index));
        let name = own.map_or(operand.name, String::as_str);
        let Some(meta) = input else {
            if operand.required {
                return invalid!("{}: operand '{name}' is missing", spec.name);
            }
            continue;
        };
        crate::shape::element_count(&format!("{}: '{name}'", spec.name), &meta.dims)?;
        if operand.truth && meta.dtype == DType::Bool {
            continue;
        }
        let taken = if operand.dtypes.is_empty() { spec.dtypes } else { operand.dtypes };
        if !taken.contains(&meta.dtype) {
            return Err(unsupported(spec, name, taken, meta));
        }
        if !operand.dtypes.is_empty() {
            continue;
        }
        let (first, dtype) = *common.get_or_insert((name, meta.dtype));
        if dtype != meta.dtype {
            let (op, got) = (spec.name, meta.dtype);
            return invalid!("{op}: '{first}' is {dtype}, so '{name}' must be {dtype} too, got {got}");
        }
    }
    Ok(inputs)
}

fn unsupported(spec: &OpSpec, operand: &str, taken: &[DType], meta: &Meta) -> Error {
    let taken = taken.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    Error::UnsupportedDtype(format!("{}: '{operand}' must be one of {taken}, got {}", spec.name, meta.dtype))
}
