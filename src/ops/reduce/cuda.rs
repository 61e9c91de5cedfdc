//! The GPU form: launches of kernels/reduce.cu, each a step or a step's stretches.

use super::super::Call;
use super::super::operands::device_operand;
use super::{Finish, Fold, Map, Rule, Step, count, reduced, rule_of, steps};
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, float_arg, grid_x};
use crate::tensor::DeviceView;
use crate::{DType, Result};

// Flags of kernels/common/reduce.cuh.
const ROOT: u32 = 1;
const LOG: u32 = 2;
pub const F16: u32 = 4;
pub const BF16: u32 = 8;

/// Vectors that a thread loads before it folds them.
const LOADS: usize = 4;
/// Vectors of a row that one warp takes at most where there are rows enough.
const WARP_VECTORS: usize = 512;

/// One launch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Launch {
    step: Step,
    /// Stretches along the length, and elements of one.
    parts: usize,
    chunk: usize,
    /// The kernel's suffix, its grid and its threads of one stretch of a row or side by side along inner.
    form: &'static str,
    blocks: usize,
    width: usize,
}

/// The launches of one step; the result of each is the operand of the next. `aligned`: x begins at 16 bytes.
fn launches(step: Step, dtype: DType, aligned: bool, multiprocessors: usize) -> Vec<Launch> {
    let size = dtype.size();
    let first = if step.inner == 1 {
        along_rows(step, size, aligned, multiprocessors)
    } else {
        along_columns(step, size, aligned, multiprocessors)
    };
    let rest = Step { length: first.parts, ..step };
    let more = first.parts > 1;
    let mut all = vec![first];
    if more {
        all.extend(launches(rest, dtype.arithmetic(), true, multiprocessors));
    }
    all
}

fn along_rows(step: Step, size: usize, aligned: bool, multiprocessors: usize) -> Launch {
    let Step { outer, length, .. } = step;
    let vector = 16 / size;
    let vectors = length.div_ceil(vector);
    // Stretches of whole strides of a block, as many as keep the card busy.
    let wanted = if outer < 2 * multiprocessors { (8 * multiprocessors).div_ceil(outer) } else { 1 };
    let (parts, chunk) = cut(length, wanted, 256 * LOADS * vector);
    if aligned && parts == 1 && (1..=32).contains(&vectors) && length.is_multiple_of(vector) {
        let width = vectors.next_power_of_two();
        let blocks = (outer * width).div_ceil(256 * LOADS);
        return Launch { step, parts, chunk, form: "short", blocks, width };
    }
    let width = match vectors {
        _ if parts > 1 => 256,
        0..=128 => vectors.div_ceil(LOADS).next_power_of_two(),
        ..=WARP_VECTORS if outer >= 32 * multiprocessors => 32,
        _ => 256,
    };
    Launch { step, parts, chunk, form: "rows", blocks: (outer * parts * width).div_ceil(256), width }
}

fn along_columns(step: Step, size: usize, aligned: bool, multiprocessors: usize) -> Launch {
    let Step { outer, length, inner } = step;
    let vector = 16 / size;
    let (form, lanes) =
        if aligned && inner.is_multiple_of(vector) { ("vectors", vector) } else { ("scalars", 1) };
    let width = inner.div_ceil(lanes).next_power_of_two().min(32);
    let tiles = inner.div_ceil(width * lanes);
    let stride = 256 / width * LOADS;
    // A stretch worth a launch of its own has a few strides.
    let wanted = (8 * multiprocessors).div_ceil(tiles * outer).min(length.div_ceil(4 * stride));
    let (parts, chunk) = cut(length, wanted, stride);
    Launch { step, parts, chunk, form, blocks: tiles * outer * parts, width }
}

/// At most `wanted` stretches of whole strides.
fn cut(length: usize, wanted: usize, stride: usize) -> (usize, usize) {
    let chunk = length.div_ceil(wanted.max(1)).next_multiple_of(stride).max(1);
    let parts = length.div_ceil(chunk).max(1);
    (parts, chunk)
}

/// The kernel of a step that folds the operand itself or, later on, folded values.
fn kernel(rule: Rule, first: bool) -> &'static str {
    match (rule.fold, rule.map) {
        (Fold::Product, _) => "product",
        (Fold::Max, _) => "max",
        (Fold::Min, _) => "min",
        (Fold::Sum, Map::Abs) if first => "abs",
        (Fold::Sum, Map::Square) if first => "square",
        (Fold::Sum, _) => "sum",
    }
}

/// The launches of a whole call, each with the type of its operand.
fn plan(call: &Call, chosen: &[bool], aligned: bool, multiprocessors: usize) -> Vec<(DType, Launch)> {
    let mut all: Vec<(DType, Launch)> = Vec::new();
    for step in steps(&call.input(0).dims, chosen) {
        let first = all.is_empty();
        let dtype = if first { call.dtype() } else { call.dtype().arithmetic() };
        for launch in launches(step, dtype, aligned || !first, multiprocessors) {
            all.push((if all.is_empty() { dtype } else { dtype.arithmetic() }, launch));
        }
    }
    all
}

/// The divisor and the flags of the last launch.
fn finish(rule: Rule, dtype: DType, count: usize) -> (f64, u32) {
    let kept = match dtype {
        DType::F16 => F16,
        DType::Bf16 => BF16,
        _ => 0,
    };
    match rule.finish {
        Finish::Mean => (count as f64, kept),
        Finish::Root => (1.0, kept | ROOT),
        Finish::Log => (1.0, kept | LOG),
        Finish::Nothing => (1.0, kept),
    }
}

pub fn run(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let (dims, rule) = (&call.input(0).dims, rule_of(call.spec));
    let chosen = reduced(call.spec, &call.attrs, dims.len())?;
    let mut from = device_operand(call, inputs, 0)?;
    let all = plan(call, &chosen, from.0.is_multiple_of(16), launcher.multiprocessors() as usize);
    let compute = call.dtype().arithmetic();
    let mut held = None;
    for (index, (dtype, launch)) in all.iter().enumerate() {
        let Step { outer, length, inner } = launch.step;
        let rows = outer * launch.parts;
        let last = index + 1 == all.len();
        let next = if last { None } else { Some(launcher.scratch(rows * inner * compute.size())?) };
        let to: DevicePtr = next.as_ref().map_or(outputs[0].ptr, |buffer| buffer.ptr());
        let (divisor, flags) = if last { finish(rule, call.dtype(), count(dims, &chosen)) } else { (1.0, 0) };
        let arguments = [
            Arg::Ptr(from),
            Arg::Ptr(to),
            Arg::U64(rows as u64),
            Arg::U32(launch.parts as u32),
            Arg::U64(length as u64),
            Arg::U64(launch.chunk as u64),
            Arg::U64(inner as u64),
            Arg::U32(launch.width as u32),
            float_arg(compute, divisor),
            Arg::U32(flags),
        ];
        let name = format!("reduce_{}_{}_{}", kernel(rule, index == 0), dtype.suffix(), launch.form);
        launcher.launch(&name, grid_x(launch.blocks as u64, 256, 0)?, &arguments)?;
        held = next;
        from = to;
    }
    drop(held);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::FLOATS;
    use super::*;
    use crate::kernels::find;

    const CARD: usize = 132;

    fn forms(outer: usize, length: usize, inner: usize) -> Vec<(&'static str, usize, usize)> {
        let all = launches(Step { outer, length, inner }, DType::F32, true, CARD);
        all.iter().map(|launch| (launch.form, launch.width, launch.parts)).collect()
    }

    #[test]
    fn forms_follow_the_shape() {
        assert_eq!(forms(1 << 22, 32, 1), [("short", 8, 1)]);
        assert_eq!(forms(1 << 20, 128, 1), [("short", 32, 1)]);
        assert_eq!(forms(1 << 20, 33, 1), [("rows", 4, 1)]);
        assert_eq!(forms(1 << 17, 1024, 1), [("rows", 32, 1)]);
        assert_eq!(forms(1 << 14, 8192, 1), [("rows", 256, 1)]);
        assert_eq!(forms(32, 1 << 22, 1), [("rows", 256, 32), ("short", 8, 1)]);
        assert_eq!(forms(1, 1 << 27, 1)[0].1, 256);
        assert_eq!(forms(1, 32768, 4096), [("vectors", 32, 32), ("vectors", 32, 1)]);
        assert_eq!(forms(64, 512, 4096), [("vectors", 32, 1)]);
        assert_eq!(forms(64, 512, 3)[0], ("scalars", 4, 1));
    }

    #[test]
    fn stretches_cover_the_length_and_kernels_exist() {
        for (outer, length, inner) in
            [(1, 0, 1), (3, 1, 1), (5, 1001, 7), (1, 1 << 31, 1), (2, 70_001, 33), (9, 5, 1 << 20)]
        {
            for dtype in FLOATS {
                let all = launches(Step { outer, length, inner }, *dtype, true, CARD);
                assert_eq!(all.last().unwrap().parts, 1);
                for Launch { step, parts, chunk, form, width, .. } in all {
                    assert!(parts * chunk >= step.length && (parts - 1) * chunk <= step.length);
                    assert!(width.is_power_of_two() && width <= if form == "rows" { 256 } else { 32 });
                    for rule in super::super::RULES {
                        let name = format!("reduce_{}_{}_{form}", kernel(*rule, true), dtype.suffix());
                        assert!(find(&name, 75).is_ok());
                    }
                }
            }
        }
    }
}
