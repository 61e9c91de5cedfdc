//! Operands as the CPU and GPU forms take them.

use super::Call;
use crate::driver::DevicePtr;
use crate::tensor::{DeviceView, HostView};
use crate::{Error, Result};
use bytemuck::Pod;

/// Elements of an operand that the call was checked to have.
pub fn host_operand<'a, T: Pod>(
    call: &Call,
    inputs: &[Option<HostView<'a>>],
    index: usize,
) -> Result<&'a [T]> {
    host_optional(inputs, index).ok_or_else(|| missing(call, index))
}

/// Elements of an optional operand.
pub fn host_optional<'a, T: Pod>(inputs: &[Option<HostView<'a>>], index: usize) -> Option<&'a [T]> {
    inputs.get(index).and_then(Option::as_ref).map(HostView::as_slice::<T>)
}

/// Address of an operand that the call was checked to have.
pub fn device_operand(call: &Call, inputs: &[Option<DeviceView>], index: usize) -> Result<DevicePtr> {
    device_view(call, inputs, index).map(|view| view.ptr)
}

/// An operand that the call was checked to have.
pub fn device_view<'a>(
    call: &Call,
    inputs: &[Option<DeviceView<'a>>],
    index: usize,
) -> Result<DeviceView<'a>> {
    inputs.get(index).copied().flatten().ok_or_else(|| missing(call, index))
}

/// Address of an optional operand, null when it was left out.
pub fn device_optional(inputs: &[Option<DeviceView>], index: usize) -> DevicePtr {
    inputs.get(index).and_then(Option::as_ref).map_or(DevicePtr::NULL, |view| view.ptr)
}

/// The multiplier that kernels/common/divide.cuh divides by `size` with.
pub fn divisor(size: usize) -> u64 {
    u64::MAX / (size as u64).max(1)
}

fn missing(call: &Call, index: usize) -> Error {
    Error::Internal(format!("{}: operand {index} is missing", call.spec.name))
}
