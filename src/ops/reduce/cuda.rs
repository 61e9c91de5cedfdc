//! The GPU form: launches of kernels/reduce.cu, each a step or a step's stretches.

use super::super::Call;
use super::super::operands::device_operand;
use super::{Finish, Fold, Map, Rule, Step, reduced, rule_of, steps};
use crate::Result;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, float_arg, grid_x};
use crate::tensor::DeviceView;

// Flags of kernels/common/reduce.cuh.
const ROOT: u32 = 1;
const LOG: u32 = 2;

/// Elements that a thread loads before it folds, in vectors.
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
    /// The kernel's suffix, its grid and threads side by side along inner.
    form: &'static str,
    blocks: usize,
    width: usize,
}

/// The launches of one step; the result of each is the operand of the next. `aligned`: x begins at 16 bytes.
fn launches(step: Step, size: usize, aligned: bool, multiprocessors: usize) -> Vec<Launch> {
    let first = if step.inner == 1 {
        along_rows(step, size, multiprocessors)
    } else {
        along_columns(step, size, aligned, multiprocessors)
    };
    let rest = Step { length: first.parts, ..step };
    let more = first.parts > 1;
    let mut all = vec![first];
    if more {
        all.extend(launches(rest, size, true, multiprocessors));
    }
    all
}

fn along_rows(step: Step, size: usize, multiprocessors: usize) -> Launch {
    let Step { outer, length, .. } = step;
    let vector = 16 / size;
    let vectors = length.div_ceil(vector);
    // Stretches of whole strides of a block, as many as keep the card busy.
    let stride = 256 * LOADS * vector;
    let wanted = if outer < 2 * multiprocessors { (4 * multiprocessors).div_ceil(outer) } else { 1 };
    let (parts, chunk) = cut(length, wanted, stride);
    let (form, rows) = match vectors {
        _ if parts > 1 => ("block", 1),
        0..=8 => ("lanes", 32),
        ..=WARP_VECTORS if outer >= 32 * multiprocessors || vectors <= 64 => ("warp", 8),
        _ => ("block", 1),
    };
    Launch { step, parts, chunk, form, blocks: (outer * parts).div_ceil(rows), width: 1 }
}

fn along_columns(step: Step, size: usize, aligned: bool, multiprocessors: usize) -> Launch {
    let Step { outer, length, inner } = step;
    let vector = 16 / size;
    let (form, lanes) = if aligned && inner.is_multiple_of(vector) { ("vectors", vector) } else { ("scalars", 1) };
    let width = inner.div_ceil(lanes).next_power_of_two().min(32);
    let tiles = inner.div_ceil(width * lanes);
    let stride = 256 / width * LOADS;
    let (parts, chunk) = cut(length, (8 * multiprocessors).div_ceil(tiles * outer), stride);
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

pub fn run(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let (dtype, dims, rule) = (call.dtype(), &call.input(0).dims, rule_of(call.spec));
    let chosen = reduced(call.spec, &call.attrs, dims.len())?;
    let count = dims.iter().zip(&chosen).filter(|(_, chosen)| **chosen).map(|(&dim, _)| dim).product::<usize>();
    let divisor = if rule.finish == Finish::Mean { count as f64 } else { 1.0 };
    let flags = match rule.finish {
        Finish::Root => ROOT,
        Finish::Log => LOG,
        Finish::Nothing | Finish::Mean => 0,
    };
    let x = device_operand(call, inputs, 0)?;
    let mut all = Vec::new();
    for (index, step) in steps(dims, &chosen).into_iter().enumerate() {
        let aligned = index > 0 || x.0.is_multiple_of(16);
        all.extend(launches(step, dtype.size(), aligned, launcher.multiprocessors() as usize));
    }
    let last = all.len() - 1;
    let (mut from, mut held) = (x, None);
    for (index, launch) in all.iter().enumerate() {
        let Step { outer, length, inner } = launch.step;
        let rows = outer * launch.parts;
        let next = if index == last { None } else { Some(launcher.scratch(rows * inner * dtype.size())?) };
        let to: DevicePtr = next.as_ref().map_or(outputs[0].ptr, |buffer| buffer.ptr());
        let (divisor, flags) = if index == last { (divisor, flags) } else { (1.0, 0) };
        let arguments = [
            Arg::Ptr(from),
            Arg::Ptr(to),
            Arg::U64(rows as u64),
            Arg::U32(launch.parts as u32),
            Arg::U64(length as u64),
            Arg::U64(launch.chunk as u64),
            Arg::U64(inner as u64),
            Arg::U32(launch.width as u32),
            float_arg(dtype, divisor),
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
    use super::*;
    use crate::kernels::find;

    const CARD: usize = 132;

    fn forms(outer: usize, length: usize, inner: usize) -> Vec<(&'static str, usize)> {
        let all = launches(Step { outer, length, inner }, 4, true, CARD);
        all.iter().map(|launch| (launch.form, launch.parts)).collect()
    }

    #[test]
    fn forms_follow_the_shape() {
        assert_eq!(forms(1 << 22, 32, 1), [("lanes", 1)]);
        assert_eq!(forms(1 << 20, 128, 1), [("warp", 1)]);
        assert_eq!(forms(1 << 17, 1024, 1), [("warp", 1)]);
        assert_eq!(forms(1 << 14, 8192, 1), [("block", 1)]);
        assert_eq!(forms(32, 1 << 22, 1), [("block", 17), ("lanes", 1)]);
        assert_eq!(forms(1, 1 << 27, 1)[0].0, "block");
        assert_eq!(forms(1, 32768, 4096), [("vectors", 33), ("vectors", 2), ("vectors", 1)]);
        assert_eq!(forms(64, 512, 4096), [("vectors", 1)]);
        assert_eq!(forms(64, 512, 3)[0].0, "scalars");
    }

    #[test]
    fn stretches_cover_the_length_and_kernels_exist() {
        for (outer, length, inner) in [(1, 0, 1), (3, 1, 1), (5, 1001, 7), (1, 1 << 31, 1), (2, 70_001, 33), (9, 5, 1 << 20)] {
            for size in [4, 8] {
                let all = launches(Step { outer, length, inner }, size, true, CARD);
                assert_eq!(all.last().unwrap().parts, 1);
                for Launch { step, parts, chunk, form, width, .. } in all {
                    assert!(parts * chunk >= step.length && (parts - 1) * chunk <= step.length);
                    assert!(width.is_power_of_two() && width <= 32);
                    for rule in super::super::RULES {
                        let dtype = if size == 4 { "f32" } else { "f64" };
                        assert!(find(&format!("reduce_{}_{dtype}_{form}", kernel(*rule, true)), 75).is_ok());
                    }
                }
            }
        }
    }
}
