//! scatterElements with a reduction: updates that meet are joined in their order along the axis, on both devices, so that
//! results do not depend on threads.

use super::cuda;
use super::elements::elements;
use super::gather::{axis_of, host};
use super::walk::{Axis, Walk, pack};
use crate::cpu::math;
use crate::cpu::whole::{Whole, for_whole};
use crate::kernels::{Arg, Launcher, linear};
use crate::ops::Call;
use crate::ops::indices::Indices;
use crate::ops::operands::device_view;
use crate::ops::spec::*;
use crate::shape::size_of;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{DType, Result};
use bytemuck::Pod;
use half::{bf16, f16};

/// What becomes of an element and an update.
pub(super) const REDUCTION: Attribute = attribute(
    "reduction",
    Kind::Choice(&["none", "add", "mul", "max", "min"]),
    "What an element becomes: the update, or its sum, product, maximum or minimum with all of its updates; of bool, add and \
     max are or, mul and min are and.",
);

/// The place of a reduction among the words, as kernels/scatter.cu has them; truth is joined as its bytes are.
fn reduction(call: &Call) -> u32 {
    let word = match (call.dtype(), call.attrs.choice(REDUCTION.name)) {
        (DType::Bool, "add") => "max",
        (DType::Bool, "mul") => "min",
        (_, word) => word,
    };
    ["add", "mul", "max", "min"].iter().position(|name| *name == word).unwrap_or(0) as u32
}

pub(super) fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    match call.dtype() {
        DType::F64 => run::<f64>(call, inputs, outputs, join),
        DType::F32 => run::<f32>(call, inputs, outputs, join),
        DType::F16 => {
            run::<f16>(call, inputs, outputs, |way, a, b| f16::from_f32(join(way, a.to_f32(), b.to_f32())))
        }
        DType::Bf16 => {
            run::<bf16>(call, inputs, outputs, |way, a, b| bf16::from_f32(join(way, a.to_f32(), b.to_f32())))
        }
        dtype => for_whole!(dtype, wholes(call, inputs, outputs)),
    }
}

fn join<T: math::Math>(way: u32, a: T, b: T) -> T {
    match way {
        0 => a + b,
        1 => a * b,
        2 => math::max(a, b),
        _ => math::min(a, b),
    }
}

fn wholes<T: Whole>(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    run::<T>(call, inputs, outputs, |way, a, b| match way {
        0 => a.plus(b),
        1 => a.times(b),
        2 => a.max(b),
        _ => a.min(b),
    })
}

fn run<T: Pod>(
    call: &Call,
    inputs: &[Option<HostView>],
    outputs: &mut [HostViewMut],
    join: impl Fn(u32, T, T) -> T,
) -> Result<()> {
    let (x, indices, updates) =
        (host(call, inputs, 0)?, Indices::of(host(call, inputs, 1)?), host(call, inputs, 2)?);
    let (walk, length, stride) = elements(call)?;
    let way = reduction(call);
    let y = outputs[0].as_slice_mut::<T>();
    y.copy_from_slice(x.as_slice::<T>());
    for (at, &update) in updates.as_slice::<T>().iter().enumerate() {
        let y = &mut y[walk.source(at) as usize + indices.at(at, length) * stride];
        *y = join(way, *y, update);
    }
    Ok(())
}

pub(super) fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let (x, updates) = (device_view(call, inputs, 0)?.ptr, device_view(call, inputs, 2)?.ptr);
    let all = Walk::new(0, 0, [Axis { size: call.output().size(), x: 1, y: 1 }].into_iter());
    cuda::copy(launcher, &all, call.dtype().size(), x, outputs[0].ptr)?;
    let n = call.input(1).size();
    if n == 0 {
        return Ok(());
    }
    let (walk, length, stride) = elements(call)?;
    let (indices, dims) = (device_view(call, inputs, 1)?, &call.input(1).dims);
    let axis = axis_of(call.spec, &call.attrs, call.input(0))?;
    let lines = n / dims[axis];
    let words = pack(&walk.axes, true);
    let arguments = [
        Arg::Ptr(updates),
        Arg::Ptr(indices.ptr),
        Arg::Ptr(outputs[0].ptr),
        Arg::U64(n as u64),
        Arg::U64(lines as u64),
        Arg::U64(dims[axis] as u64),
        Arg::U64(size_of(&dims[axis + 1..]) as u64),
        Arg::U64(length as u64),
        Arg::U64(stride as u64),
        Arg::U32(u32::from(indices.dtype == DType::I64)),
        Arg::U32(reduction(call)),
        Arg::Block(&words),
    ];
    let kernel = format!("scatterReduce_{}", stored(call.dtype()).suffix());
    launcher.launch(&kernel, linear(lines as u64, 256, 1)?, &arguments)
}

/// Bytes of truth are numbers.
fn stored(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::U8 } else { dtype }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use crate::kernels::{Parameter, find as kernel};
    use crate::ops::{Raw, TYPES};

    fn run<T: Pod>(word: &str, dtype: DType, x: &[T], indices: &[i32], updates: &[T]) -> Vec<T> {
        let tensors = vec![
            Tensor::from_slice(dtype, [x.len()], x).unwrap(),
            Tensor::from_slice(DType::I32, [indices.len()], indices).unwrap(),
            Tensor::from_slice(dtype, [updates.len()], updates).unwrap(),
        ];
        let options = [("reduction".to_string(), Raw::Text(word.into()))];
        let metas = tensors.iter().map(|tensor| Some(tensor.meta().clone())).collect();
        let call = Call::new("scatterElements", metas, &options).unwrap();
        let outputs = call.run_cpu(&tensors.into_iter().map(Some).collect::<Vec<_>>()).unwrap();
        outputs[0].host_view().unwrap().as_slice::<T>().to_vec()
    }

    #[test]
    fn updates_that_meet_are_joined() {
        let (x, indices, updates) = ([1.0f32, 2.0, 3.0], [1, 1, -1], [4.0f32, 5.0, -6.0]);
        let of = |word| run(word, DType::F32, &x, &indices, &updates);
        assert_eq!(of("none"), [1.0, 5.0, -6.0]);
        assert_eq!(of("add"), [1.0, 11.0, -3.0]);
        assert_eq!(of("mul"), [1.0, 40.0, -18.0]);
        assert_eq!(of("max"), [1.0, 5.0, 3.0]);
        assert_eq!(of("min"), [1.0, 2.0, -6.0]);
        assert_eq!(run("add", DType::Bool, &[0u8, 1], &[0, 1], &[1u8, 1]), [1, 1]);
        assert_eq!(run("mul", DType::Bool, &[0u8, 1], &[0, 1], &[1u8, 0]), [0, 0]);
        assert_eq!(run("add", DType::I8, &[127i8], &[0], &[1i8]), [-128]);
        assert!(run("max", DType::F64, &[1.0], &[0], &[f64::NAN])[0].is_nan());
    }

    #[test]
    fn every_type_has_its_kernel() {
        use Parameter::{Block, Word32, Word64 as W};
        let walk = Block(pack(&[], true).len() * 4);
        for dtype in TYPES {
            let (_, entry) = kernel(&format!("scatterReduce_{}", stored(*dtype).suffix()), 75).unwrap();
            assert_eq!(entry.parameters, [W, W, W, W, W, W, W, W, W, Word32, Word32, walk]);
        }
    }
}
