//! GPU forms. Sums of products of whole numbers are products of floats that hold them exactly.

use super::super::halves::run_widened;
use super::super::operands::{device_operand, device_optional, device_view};
use super::super::{Call, Meta, Precision, cast, find};
use super::blocks::Blocks;
use super::linear::blocks;
use super::matmul::{Product, SHORT};
use super::windows;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, linear as grid};
use crate::shape::size_of;
use crate::tensor::{DeviceBuffer, DeviceView};
use crate::{DType, Result};

/// quantizeLinear and requantizeLinear.
pub fn linear(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    output: &DeviceView,
) -> Result<()> {
    let n = call.output().size() as u64;
    if n == 0 {
        return Ok(());
    }
    let words = blocks(call)?.words();
    let arguments = [
        Arg::Ptr(device_operand(call, inputs, 0)?),
        Arg::Ptr(device_operand(call, inputs, 1)?),
        Arg::Ptr(device_optional(inputs, 2)),
        Arg::Ptr(output.ptr),
        Arg::U64(n),
        Arg::U32(output.dtype as u32),
        Arg::Block(&words),
    ];
    launcher.launch(&format!("{}_{}", call.spec.name, call.dtype().suffix()), grid(n, 256, 1)?, &arguments)
}

/// dequantizeLinear.
pub fn dequantize(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    output: &DeviceView,
) -> Result<()> {
    let blocks = blocks(call)?;
    run_widened(launcher, inputs, output, |inputs, output| {
        let (x, scale) = (device_view(call, inputs, 0)?, device_operand(call, inputs, 1)?);
        shift(launcher, x, device_optional(inputs, 2), scale, blocks, (output.ptr, output.dtype))
    })
}

/// Elements less their zero points, times their scales where there are some.
fn shift(
    launcher: &Launcher,
    x: DeviceView,
    zero: DevicePtr,
    scale: DevicePtr,
    blocks: Blocks,
    (y, dtype): (DevicePtr, DType),
) -> Result<()> {
    let n = size_of(x.dims) as u64;
    if n == 0 {
        return Ok(());
    }
    let words = blocks.words();
    let arguments = [
        Arg::Ptr(x.ptr),
        Arg::Ptr(scale),
        Arg::Ptr(zero),
        Arg::Ptr(y),
        Arg::U64(n),
        Arg::U32(x.dtype as u32),
        Arg::Block(&words),
    ];
    launcher.launch(&format!("dequantizeLinear_{}", dtype.suffix()), grid(n, 256, 1)?, &arguments)
}

/// dynamicQuantizeLinear.
pub fn dynamic(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let (x, n) = (device_view(call, inputs, 0)?, call.output().size());
    let ends = launcher.scratch(2 * DType::F32.size())?;
    if n > 0 {
        for (index, op) in ["reduceMin", "reduceMax"].into_iter().enumerate() {
            let reduce = Call::new(op, vec![Some(Meta::new(DType::F32, [n]))], &[])?;
            let flat = DeviceView { dims: &[n], ..x };
            let end = DeviceView { dims: &[], ptr: ends.ptr().offset(4 * index as u64), buffer: &ends, ..x };
            (reduce.spec.cuda)(&reduce, launcher, &[Some(flat)], &[end])?;
        }
    }
    let arguments = [
        Arg::Ptr(x.ptr),
        Arg::Ptr(if n > 0 { ends.ptr() } else { DevicePtr::NULL }),
        Arg::Ptr(outputs[0].ptr),
        Arg::Ptr(outputs[1].ptr),
        Arg::Ptr(outputs[2].ptr),
        Arg::U64(n as u64),
    ];
    launcher.launch("dynamicQuantizeLinear_f32", grid((n as u64).max(1), 256, 1)?, &arguments)
}

/// An operand less its zero points as floats.
fn shifted(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    (index, zeros): (usize, Blocks),
    dtype: DType,
) -> Result<DeviceBuffer> {
    let x = device_view(call, inputs, index)?;
    let memory = launcher.scratch(size_of(x.dims).max(1) * dtype.size())?;
    let zero = device_optional(inputs, index + 2);
    shift(launcher, x, zero, DevicePtr::NULL, zeros, (memory.ptr(), dtype))?;
    Ok(memory)
}

/// matMulInteger.
pub fn matmul(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let product = Product::of(call)?;
    let dtype = if product.k <= SHORT { DType::F32 } else { DType::F64 };
    let metas = [0, 1].map(|index| Some(Meta::new(dtype, call.input(index).dims.clone())));
    let floats = Call { precision: Precision::Strict, ..Call::new("matmul", metas.to_vec(), &[])? };
    by_floats(call, launcher, &floats, inputs, &outputs[0], product.zeros)
}

/// convInteger.
pub fn conv(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    by_floats(call, launcher, &windows::of_floats(call)?, inputs, &outputs[0], windows::zeros(call))
}

/// Runs a call of floats in the place of one of whole numbers.
fn by_floats(
    call: &Call,
    launcher: &Launcher,
    floats: &Call,
    inputs: &[Option<DeviceView>],
    output: &DeviceView,
    zeros: [Blocks; 2],
) -> Result<()> {
    let n = floats.output().size();
    if n == 0 {
        return Ok(());
    }
    let dtype = floats.dtype();
    let a = shifted(call, launcher, inputs, (0, zeros[0]), dtype)?;
    let b = shifted(call, launcher, inputs, (1, zeros[1]), dtype)?;
    let sums = launcher.scratch(n * dtype.size())?;
    let mut views = [(&a, 0), (&b, 1)]
        .map(|(buffer, index)| {
            Some(DeviceView { dims: &floats.input(index).dims, dtype, ptr: buffer.ptr(), buffer })
        })
        .to_vec();
    views.resize(find(floats.spec.name)?.operands.len(), None);
    let out = DeviceView { dims: &floats.output().dims, dtype, ptr: sums.ptr(), buffer: &sums };
    (floats.spec.cuda)(floats, launcher, &views, &[out])?;
    cast::launch(launcher, (sums.ptr(), dtype), (output.ptr, DType::I32), n)
}
