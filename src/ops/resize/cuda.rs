//! resize on a GPU: tables of places and weights, then one launch for each axis. Of 16 bits what lies between two axes is
//! float32.

use super::weights::{Axis, Rules};
use super::{Pass, passes, repeats};
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, float_arg, linear};
use crate::ops::operands::{device_operand, device_view, divisor};
use crate::ops::{Call, Meta, Raw};
use crate::tensor::DeviceView;
use crate::{DType, Result};

pub fn resize(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let (mut from, y) = (device_operand(call, inputs, 0)?, outputs[0].ptr);
    let (dtype, size) = (call.dtype(), call.output().size());
    if size == 0 {
        return Ok(());
    }
    let (passes, rules) = passes(call)?;
    if passes.is_empty() {
        return launcher.core().stream().copy(y, from, size * dtype.size());
    }
    if let Some([from, to]) = repeats(call, &passes, &rules) {
        return repeat(launcher, device_view(call, inputs, 0)?, &outputs[0], &from, &to);
    }
    let compute = dtype.arithmetic();
    let mut held = None;
    for (index, pass) in passes.iter().enumerate() {
        let (first, last) = (index == 0, index + 1 == passes.len());
        let next = if last { None } else { Some(launcher.scratch(pass.size() * compute.size())?) };
        let to = next.as_ref().map_or(y, |buffer| buffer.ptr());
        run(launcher, pass, &rules, compute, &kernel(dtype, first, last), [from, to])?;
        held = next;
        from = to;
    }
    drop(held);
    Ok(())
}

/// Repeats elements: an expansion of x under other dims.
fn repeat(launcher: &Launcher, x: DeviceView, y: &DeviceView, from: &[usize], to: &[usize]) -> Result<()> {
    let dims = Raw::List(to.iter().map(|&dim| dim as f64).collect());
    let metas = vec![Some(Meta::new(x.dtype, from))];
    let call = Call::new("expand", metas, &[("shape".to_string(), dims)])?;
    let (x, y) = (DeviceView { dims: from, ..x }, DeviceView { dims: to, ..*y });
    (call.spec.cuda)(&call, launcher, &[Some(x)], &[y])
}

/// The kernel of an axis: the first reads the operand, the last writes the result.
fn kernel(dtype: DType, first: bool, last: bool) -> String {
    let compute = dtype.arithmetic();
    match (first, last) {
        _ if dtype == compute => format!("resize_{}", dtype.suffix()),
        (true, true) => format!("resize_{}", dtype.suffix()),
        (true, false) => format!("resize_{}_widen", dtype.suffix()),
        (false, true) => format!("resize_{}_narrow", dtype.suffix()),
        (false, false) => format!("resize_{}", compute.suffix()),
    }
}

fn run(
    launcher: &Launcher,
    pass: &Pass,
    rules: &Rules,
    compute: DType,
    kernel: &str,
    [from, to]: [DevicePtr; 2],
) -> Result<()> {
    let (axis, taps, n) = (&pass.axis, pass.axis.taps(rules), pass.size() as u64);
    let firsts = launcher.scratch(axis.output * size_of::<i64>())?;
    let weights = launcher.scratch(axis.output * taps * compute.size())?;
    let words = pack(axis, rules, taps);
    launcher.launch(
        &format!("resize_table_{}", compute.suffix()),
        linear(axis.output as u64, 256, 1)?,
        &[Arg::Ptr(firsts.ptr()), Arg::Ptr(weights.ptr()), Arg::Block(&words)],
    )?;
    let arguments = [
        Arg::Ptr(from),
        Arg::Ptr(firsts.ptr()),
        Arg::Ptr(weights.ptr()),
        Arg::Ptr(to),
        Arg::U64(n),
        Arg::U64(pass.inner as u64),
        Arg::U64(divisor(pass.inner)),
        Arg::U64(axis.output as u64),
        Arg::U64(divisor(axis.output)),
        Arg::U64(axis.input as u64),
        Arg::U32(taps as u32),
        float_arg(compute, rules.extrapolation),
    ];
    launcher.launch(kernel, linear(n, 256, 4)?, &arguments)
}

/// `struct Axis` of kernels/resize.cu.
fn pack(axis: &Axis, rules: &Rules, taps: usize) -> Vec<u32> {
    let mut words = Vec::with_capacity(20);
    let mut push = |value: u64| words.extend([value as u32, (value >> 32) as u32]);
    push(axis.input as u64);
    push(axis.output as u64);
    let [start, end] = axis.region;
    [axis.scale, axis.offset(), start, end, rules.cubic].iter().for_each(|value| push(value.to_bits()));
    words.extend([taps as u32, rules.method as u32, rules.transform as u32, rules.rounding as u32]);
    words.extend([u32::from(rules.exclude_outside), u32::from(rules.antialias)]);
    words
}

#[cfg(test)]
mod tests {
    use super::super::weights::{Method, Rounding, Transform};
    use super::*;
    use crate::kernels::{Parameter, find};
    use crate::ops::FLOATS;

    #[test]
    fn every_type_has_its_kernels() {
        use Parameter::{Block, F32, F64, Word32, Word64 as W};
        let axis = Axis { axis: 0, input: 1, output: 1, scale: 1.0, region: [0.0, 1.0] };
        let rules = Rules {
            method: Method::Cubic,
            transform: Transform::HalfPixel,
            rounding: Rounding::Floor,
            cubic: 0.0,
            exclude_outside: false,
            antialias: false,
            extrapolation: 0.0,
        };
        for dtype in FLOATS {
            let compute = dtype.arithmetic();
            let last = if compute == DType::F64 { F64 } else { F32 };
            for (first, end) in [(true, true), (true, false), (false, true), (false, false)] {
                let (_, entry) = find(&kernel(*dtype, first, end), 75).unwrap();
                assert_eq!(entry.parameters, [W, W, W, W, W, W, W, W, W, W, Word32, last]);
            }
            let (_, entry) = find(&format!("resize_table_{}", compute.suffix()), 75).unwrap();
            assert_eq!(entry.parameters, [W, W, Block(4 * pack(&axis, &rules, 4).len())]);
        }
    }
}
