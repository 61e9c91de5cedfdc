//! The route in one kernel: heads are read where they lie and no matrix of weights is written.

use super::super::operands::{device_optional, device_view};
use super::super::{Call, operands::device_operand};
use super::{Problem, at};
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, grid_x};
use crate::tensor::DeviceView;
use crate::{DType, Result};

/// Sizes of heads that kernels are made for.
const SIZES: [usize; 2] = [32, 64];
/// Queries of a block, and keys that it takes at once.
const QUERIES: usize = 64;
const KEYS: usize = 64;
const THREADS: u32 = 128;
/// Queries below which products that read keys alone are faster, unless the keys are few.
const LEAST_QUERIES: usize = 16;
const FEW_KEYS: usize = 256;

/// The size that the problem's kernel is made for; `None` where it takes another route.
fn size(problem: &Problem, dtype: DType, mask: Option<DType>) -> Option<usize> {
    let plain = problem.past == 0
        && !problem.present
        && problem.scores == 0
        && problem.softcap == 0.0
        && !problem.ragged
        && problem.keys > 0;
    let known = dtype == DType::F32 && mask.is_none_or(|mask| mask != DType::F64);
    let full = problem.queries >= LEAST_QUERIES || problem.keys <= FEW_KEYS;
    let widest = problem.size.max(problem.value_size);
    SIZES.into_iter().find(|&size| size >= widest).filter(|_| plain && known && full)
}

/// Bytes of dynamic shared memory.
fn shared(size: usize) -> u32 {
    let (pitch, weights) = (size + 4, KEYS + 4);
    4 * (QUERIES * pitch + KEYS * pitch.max(weights) + KEYS * size) as u32
}

/// Elements from one batch, head and place to the next.
fn steps(flat: bool, heads: usize, places: usize, size: usize) -> [usize; 3] {
    let all = heads * places * size;
    if flat { [all, size, heads * size] } else { [all, places * size, size] }
}

/// Enqueues it; `false` where this route does not take the call.
pub fn run(
    call: &Call,
    launcher: &Launcher,
    problem: &Problem,
    inputs: &[Option<DeviceView>],
    y: DevicePtr,
) -> Result<bool> {
    let mask = inputs.get(at::MASK).copied().flatten();
    let dtype = device_view(call, inputs, at::Q)?.dtype;
    let Some(made_for) = size(problem, dtype, mask.map(|mask| mask.dtype)) else { return Ok(false) };
    let Problem { batch, heads, key_heads, queries, keys, size, value_size, flat, .. } = *problem;
    let blocks = queries.div_ceil(QUERIES) * heads * batch;
    if blocks == 0 || value_size == 0 {
        return Ok(true);
    }
    let layout = problem.mask;
    let mut sizes = vec![heads, heads / key_heads, queries, keys, size, value_size];
    sizes.extend(steps(flat, heads, queries, size));
    sizes.extend(steps(flat, key_heads, keys, size));
    sizes.extend(steps(flat, key_heads, keys, value_size));
    sizes.extend(steps(flat, heads, queries, value_size));
    sizes.extend(layout.map_or([0; 3], |mask| mask.steps));
    sizes.push(layout.map_or(0, |mask| mask.columns));
    let mut words: Vec<u32> =
        sizes.into_iter().flat_map(|size| [size as u32, (size as u64 >> 32) as u32]).collect();
    let kind = mask.map_or(0, |mask| if mask.dtype == DType::F32 { 2 } else { 1 });
    words.extend([(problem.scale as f32).to_bits(), kind, u32::from(problem.causal), problem.masking as u32]);
    let [q, k, v] = [at::Q, at::K, at::V].map(|index| device_operand(call, inputs, index));
    let pointers = [q?, k?, v?, device_optional(inputs, at::MASK), y].map(Arg::Ptr);
    let arguments = [&pointers[..], &[Arg::Block(&words)]].concat();
    let grid = grid_x(blocks as u64, THREADS, shared(made_for))?;
    launcher.launch(&format!("attention_f32_fused_{made_for}"), grid, &arguments)?;
    Ok(true)
}
