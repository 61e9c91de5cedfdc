//! Kernels of whole expressions: PTX text made at run time, one kernel for an expression's form, element types and way of
//! broadcasting. Numbers in the expression are parameters, so expressions that differ in them alone share a kernel.
//!
//! A kernel computes in one type, that of its elements; operands and the result are stored as such or as bool, which stands
//! for 1 and 0. A thread makes as many elements as 16 bytes hold, or one of a very long expression. The bodies of the functions
//! are those of `kernels/functions.cu` and `kernels/functions_whole.cu`.

mod functions;
mod memory;
mod ptx;

pub use functions::length;
pub use ptx::generate;

use crate::dtype::DType;

/// Threads of a block.
pub const THREADS: u32 = 256;

/// A step of an expression; steps refer to earlier ones by position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// The element of that operand.
    Input(usize),
    /// That number.
    Number(usize),
    /// A device function applied to the results of steps: its operands, then its parameters.
    Apply(&'static str, Vec<usize>),
}

/// How the elements of an operand lie to those of the result, whose axes are counted from the innermost. Bits of a mask
/// are axes along which the operand changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// As the result's.
    Whole,
    /// There is one.
    Single,
    /// Rows of whole vectors, as the result's, and other axes.
    Rows(u32),
    /// One for a row of whole vectors.
    Columns(u32),
    /// Anyhow: each has its own place.
    Scattered(u32),
}

impl Access {
    fn mask(self) -> u32 {
        match self {
            Access::Whole | Access::Single => 0,
            Access::Rows(mask) | Access::Columns(mask) | Access::Scattered(mask) => mask,
        }
    }
}

/// A kernel to make. Parameters of the entry, all of 64 bits but the last: the result's address and number of elements;
/// sizes of the axes but the outermost and what divides by them, in turn; for each operand its address, then its stride
/// along each axis of its mask but that of its rows; the numbers, in the type that is computed in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan<'a> {
    /// The last one is the result.
    pub steps: &'a [Step],
    /// The type of the values.
    pub element: DType,
    /// Element type of the result: that of the values, or bool.
    pub result: DType,
    /// The operands.
    pub inputs: &'a [Access],
    /// Their element types: that of the values, or bool.
    pub types: &'a [DType],
    /// How many numbers there are.
    pub numbers: usize,
    /// How many axes there are.
    pub axes: usize,
    /// Elements of a thread: those of 16 bytes of the widest type in memory, or one.
    pub lanes: usize,
    /// Whether a thread's elements are neighbours, read and written at once: the addresses of the result and of operands that
    /// are `Whole` or `Rows` are then multiples of their bytes. Else they lie a block apart.
    pub vectors: bool,
    /// Whether positions need 64 bits.
    pub wide: bool,
    /// Whether two numbers are rounded to 16 bits at once: from compute capability 8.0 on.
    pub paired: bool,
}

/// Elements of a thread.
pub fn lanes_of(types: &[DType], result: DType) -> usize {
    16 / types.iter().map(|dtype| dtype.size()).fold(result.size(), usize::max)
}

impl Plan<'_> {
    /// Axes whose positions are needed: up to the outermost that an operand changes along.
    fn walked(&self) -> usize {
        let masks = self.inputs.iter().fold(0, |masks, input| masks | input.mask());
        (u32::BITS - masks.leading_zeros()) as usize
    }

    /// Axes that positions are divided by.
    pub fn divided(&self) -> usize {
        self.walked().min(self.axes - 1)
    }

    /// Axes along which an operand's stride is a parameter.
    pub fn strided(&self, input: Access) -> impl Iterator<Item = usize> {
        let mask = if let Access::Rows(mask) = input { mask & !1 } else { input.mask() };
        (0..self.axes).filter(move |axis| mask >> axis & 1 == 1)
    }

    /// The name that the kernel is kept under.
    pub fn key(&self) -> String {
        use std::fmt::Write;
        let mut key = format!("evaluate_{}_{}", self.element.suffix(), self.result.suffix());
        let mut put = |part: &dyn std::fmt::Display| write!(key, " {part}").expect("writing to a String");
        for step in self.steps {
            match step {
                Step::Input(index) => put(&format_args!("i{index}")),
                Step::Number(index) => put(&format_args!("n{index}")),
                Step::Apply(name, operands) => put(&format_args!("{name}{operands:?}")),
            }
        }
        for (input, dtype) in self.inputs.iter().zip(self.types) {
            put(&format_args!("{input:?}_{}", dtype.suffix()));
        }
        put(&format_args!("{} {} {} {} {}", self.axes, self.lanes, self.vectors, self.wide, self.paired));
        key
    }
}

#[cfg(test)]
mod tests;
