//! What an operation is: the row type of the op table and the parts it is made of.

use super::{Attrs, Call};
use crate::dtype::DType;
use crate::kernels::Launcher;
use crate::shape::Dims;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Result, mismatch};

/// Element type and dims of one operand or result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// Element type.
    pub dtype: DType,
    /// Dims, outermost first.
    pub dims: Dims,
}

impl Meta {
    /// A description from its parts.
    pub fn new(dtype: DType, dims: impl Into<Dims>) -> Meta {
        Meta { dtype, dims: dims.into() }
    }

    /// Number of elements. The dims were checked when the tensor was made.
    pub fn size(&self) -> usize {
        crate::shape::size_of(&self.dims)
    }
}

/// A named tensor argument. Required ones are positional in JavaScript, optional ones are options.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// Name in messages and, for optional ones, the option's name.
    pub name: &'static str,
    /// Whether the call must give it.
    pub required: bool,
    /// Whether it is a list of tensors: then it is the op's only operand, and the call's inputs are its items.
    pub list: bool,
    /// Whether that list has names: an object in JavaScript.
    pub named: bool,
    /// Whether items may be bool beside the op's type.
    pub truth: bool,
    /// Element types of its own; where there are none it shares the op's type.
    pub dtypes: &'static [DType],
    /// Where its whole numbers must lie, for those that are looked at where the host has them.
    pub range: Option<RangeRule>,
}

/// Where whole numbers of an operand must lie.
pub struct Range {
    /// The least.
    pub low: i64,
    /// The largest.
    pub high: i64,
    /// What they belong to, for the message.
    pub of: String,
}

/// Gives that range for a call.
pub type RangeRule = fn(&Call) -> Result<Range>;

/// A positional operand.
pub const fn required(name: &'static str) -> Operand {
    Operand { name, required: true, list: false, named: false, truth: false, dtypes: &[], range: None }
}

/// An operand given as an option.
pub const fn optional(name: &'static str) -> Operand {
    Operand { required: false, ..required(name) }
}

/// A positional operand that is a list of tensors.
pub const fn list(name: &'static str) -> Operand {
    Operand { list: true, ..required(name) }
}

/// A positional operand that is any number of tensors with names, bool among them.
pub const fn named(name: &'static str) -> Operand {
    Operand { named: true, truth: true, ..list(name) }
}

/// Element types of indices.
pub const INDICES: &[DType] = &[DType::I64, DType::I32];

/// A positional operand of truth.
pub const fn condition(name: &'static str) -> Operand {
    Operand { dtypes: &[DType::Bool], ..required(name) }
}

/// A positional operand of indices along the axis of the first operand that the attribute `axis` names.
pub const fn indices(name: &'static str) -> Operand {
    Operand { dtypes: INDICES, range: Some(super::indices::along_axis), ..required(name) }
}

/// What a call gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// One tensor, of the operands' type or the one that an attribute names.
    One,
    /// One tensor of that type.
    Of(DType),
    /// A list of tensors.
    List,
    /// Just these tensors, as a list.
    These(&'static [Output]),
    /// One tensor, or a list with more behind it where one of these options asks for them.
    OneAnd(&'static [&'static str]),
}

/// One of several results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Name in the documents.
    pub name: &'static str,
    /// Its element type; the op's where there is none.
    pub dtype: Option<DType>,
}

/// A result of the op's type.
pub const fn output(name: &'static str) -> Output {
    Output { name, dtype: None }
}

/// A result that always has that type.
pub const fn output_of(name: &'static str, dtype: DType) -> Output {
    Output { name, dtype: Some(dtype) }
}

/// Kind and default of an attribute.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `true` or `false`.
    Bool(bool),
    /// An integer, with its default; `None` makes it mandatory.
    Int(Option<i64>),
    /// A list of integers that may be left out.
    Ints,
    /// A list of numbers that may be left out.
    Floats,
    /// A number, with its default.
    Float(f64),
    /// One of the words; the first is the default.
    Choice(&'static [&'static str]),
    /// A text that must be given, positional and before the operands in JavaScript.
    Text,
    /// A list of these words that may be left out.
    Words(&'static [&'static str]),
    /// The names of the operands, which JavaScript takes from the object that holds them.
    Names,
    /// The name of an element type, which must be given or may be left out.
    Type {
        /// Whether the call must give it.
        required: bool,
    },
}

/// An option of an op that is not a tensor.
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    /// Name of the option.
    pub name: &'static str,
    /// Kind and default.
    pub kind: Kind,
    /// One sentence for the typings and docs/ops.md.
    pub doc: &'static str,
}

/// An attribute from its parts.
pub const fn attribute(name: &'static str, kind: Kind, doc: &'static str) -> Attribute {
    Attribute { name, kind, doc }
}

/// How far a result may lie from the float64 oracle; of 16 bits, half a unit in the last place more than of float32. The
/// tests hold the numbers that belong to each level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    /// Bit for bit, but for the sign of zero and the payload of NaN.
    Exact,
    /// One correctly rounded operation or a picked element's mean: half a unit in the last place.
    Rounded,
    /// A function approximated to a few units in the last place.
    Function,
    /// A sum of products, bounded by its length and the magnitudes summed.
    Accumulate,
    /// A value normalised by sums over its row.
    Normalized,
}

impl Tolerance {
    /// The level's name, as the tests look it up.
    pub fn name(self) -> &'static str {
        match self {
            Tolerance::Exact => "exact",
            Tolerance::Rounded => "rounded",
            Tolerance::Function => "function",
            Tolerance::Accumulate => "accumulate",
            Tolerance::Normalized => "normalized",
        }
    }
}

/// Operands of a call as shape rules see them: `None` for an optional one that was left out.
pub type Metas<'a> = &'a [Option<Meta>];
/// Checks operands and attributes and gives the results' types and dims. Runs before any allocation.
pub type ShapeRule = fn(&OpSpec, Metas, &Attrs) -> Result<Vec<Meta>>;
/// The CPU form. Inputs and outputs are contiguous, row-major and aligned for their type.
pub type CpuForm = fn(&Call, &[Option<HostView>], &mut [HostViewMut]) -> Result<()>;
/// The GPU form: enqueues kernels on the launcher's stream. Pointers are aligned for their element only.
pub type CudaForm = fn(&Call, &Launcher, &[Option<DeviceView>], &[DeviceView]) -> Result<()>;

/// One operation. The op table, the JavaScript functions, the typings and the documents derive from these.
pub struct OpSpec {
    /// JavaScript name.
    pub name: &'static str,
    /// Tensor arguments, required ones first.
    pub operands: &'static [Operand],
    /// Other options.
    pub attributes: &'static [Attribute],
    /// Element types taken; all operands of a call share one, but for those with types of their own.
    pub dtypes: &'static [DType],
    /// What a call gives.
    pub results: Results,
    /// Shape rule.
    pub shape: ShapeRule,
    /// CPU form. Where all types are floats it knows float32 and float64 alone: operands of 16 bits come as float32
    /// and results are rounded.
    pub cpu: CpuForm,
    /// GPU form.
    pub cuda: CudaForm,
    /// Accuracy promised.
    pub tolerance: Tolerance,
    /// One sentence: what it computes, with the ONNX operator that it follows.
    pub doc: &'static str,
}

impl OpSpec {
    /// Whether the op computes with floats, in float32 where they have 16 bits.
    pub fn is_arithmetic(&self) -> bool {
        self.dtypes.iter().all(|dtype| super::FLOATS.contains(dtype))
    }

    /// The operand at that position, which is known to be there because required operands are checked first.
    pub fn operand<'a>(&self, metas: Metas<'a>, index: usize) -> Result<&'a Meta> {
        match metas.get(index).and_then(Option::as_ref) {
            Some(meta) => Ok(meta),
            None => crate::invalid!("{}: operand '{}' is missing", self.name, self.operand_name(index)),
        }
    }

    /// The name of the operand at that position; items of a list share one.
    fn operand_name(&self, index: usize) -> &'static str {
        self.operands[index.min(self.operands.len() - 1)].name
    }

    /// An error unless the operand has a rank within the range.
    pub fn expect_rank(
        &self,
        index: usize,
        meta: &Meta,
        ranks: std::ops::RangeInclusive<usize>,
    ) -> Result<()> {
        if ranks.contains(&meta.dims.len()) {
            return Ok(());
        }
        let wanted = if ranks.start() == ranks.end() {
            format!("{}", ranks.start())
        } else {
            format!("{} to {}", ranks.start(), ranks.end())
        };
        let name = self.operand_name(index);
        mismatch!("{}: '{name}' must have rank {wanted}, got dims {:?}", self.name, meta.dims)
    }

    /// An error unless the operand has exactly these dims.
    pub fn expect_dims(&self, index: usize, meta: &Meta, dims: &[usize]) -> Result<()> {
        if meta.dims == dims {
            return Ok(());
        }
        let name = self.operand_name(index);
        mismatch!("{}: '{name}' must have dims {dims:?}, got {:?}", self.name, meta.dims)
    }
}

impl std::fmt::Debug for OpSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpSpec({})", self.name)
    }
}
