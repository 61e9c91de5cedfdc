//! pad: axes made longer, or shorter, at their ends.

use super::cpu::for_unit;
use crate::cpu::for_pieces;
use crate::kernels::{Arg, Launcher, linear};
use crate::ops::cast::bits_of;
use crate::ops::operands::{device_operand, divisor};
use crate::ops::spec::*;
use crate::ops::{Attrs, Call, TYPES};
use crate::shape::normalize_axis;
use crate::tensor::{DeviceView, HostView, HostViewMut};
use crate::{Error, Result, invalid, mismatch};
use bytemuck::Pod;

const PADS: Attribute = attribute(
    "pads",
    Kind::Ints,
    "Elements added before each axis of `axes`, then after each; negative ones take away.",
);
const AXES: Attribute =
    attribute("axes", Kind::Ints, "Axes to pad, negative ones counted from the end; all by default.");
const MODE: Attribute = attribute(
    "mode",
    Kind::Choice(&["constant", "reflect", "edge", "wrap"]),
    "What is added: `value`, x mirrored about its ends, its ends, or x from its other end on.",
);
const VALUE: Attribute = attribute("value", Kind::Float(0.0), "The constant, converted as cast does.");

/// The family's row.
pub const PAD: OpSpec = OpSpec {
    name: "pad",
    operands: &[required("x")],
    attributes: &[PADS, AXES, MODE, VALUE],
    dtypes: TYPES,
    results: Results::One,
    shape,
    cpu,
    cuda,
    tolerance: Tolerance::Exact,
    doc: "Elements added to, or taken from, the ends of axes (ONNX Pad).",
};

/// Axes that a call has at most, where neighbours that nothing is added to are one.
const MOST_AXES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Constant,
    Reflect,
    Edge,
    Wrap,
}

fn mode_of(attrs: &Attrs) -> Mode {
    match attrs.choice(MODE.name) {
        "reflect" => Mode::Reflect,
        "edge" => Mode::Edge,
        "wrap" => Mode::Wrap,
        _ => Mode::Constant,
    }
}

/// One axis: `size` elements from `dim`, the first of which is number `before` of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    dim: usize,
    before: i64,
}

impl Axis {
    fn is_plain(&self) -> bool {
        self.before == 0 && self.size == self.dim
    }

    /// The index of x behind an index of the result, `None` for the constant.
    fn source(&self, index: usize, mode: Mode) -> Option<usize> {
        let (at, dim) = (index as i64 - self.before, self.dim as i64);
        let inside = (0..dim).contains(&at);
        match mode {
            _ if inside => Some(at as usize),
            Mode::Constant => None,
            Mode::Reflect => Some(if at < 0 { -at } else { 2 * (dim - 1) - at } as usize),
            Mode::Edge => Some(at.clamp(0, dim - 1) as usize),
            Mode::Wrap => Some(at.rem_euclid(dim) as usize),
        }
    }
}

/// Every axis, outermost first.
fn padded(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<Vec<Axis>> {
    let Some(pads) = attrs.ints(PADS.name) else {
        return invalid!("{}: option 'pads' is required", spec.name);
    };
    let all: Vec<i64> = (0..dims.len() as i64).collect();
    let chosen = attrs.ints(AXES.name).unwrap_or(&all);
    if pads.len() != 2 * chosen.len() {
        let (wanted, got) = (2 * chosen.len(), pads.len());
        return mismatch!("{}: 'pads' must hold {wanted} numbers, two for each axis, got {got}", spec.name);
    }
    let mode = mode_of(attrs);
    let mut axes: Vec<Axis> = dims.iter().map(|&dim| Axis { size: dim, dim, before: 0 }).collect();
    let mut seen = vec![false; dims.len()];
    for (index, &given) in chosen.iter().enumerate() {
        let at = normalize_axis(spec.name, given, dims.len())?;
        if std::mem::replace(&mut seen[at], true) {
            return invalid!("{}: 'axes' {chosen:?} name axis {at} twice", spec.name);
        }
        axes[at] = pad_axis(spec, at, dims[at], mode, pads[index], pads[index + chosen.len()])?;
    }
    Ok(axes)
}

fn pad_axis(spec: &OpSpec, at: usize, dim: usize, mode: Mode, before: i64, after: i64) -> Result<Axis> {
    let size = dim as i128 + i128::from(before) + i128::from(after);
    let Some(size) = usize::try_from(size).ok().filter(|size| *size <= isize::MAX as usize) else {
        return mismatch!("{}: pads {before} and {after} leave axis {at} of {dim} with {size}", spec.name);
    };
    let most = before.max(after);
    if mode == Mode::Reflect && most > 0 && most >= dim as i64 {
        return mismatch!("{}: 'reflect' takes pads below the {dim} of axis {at}, got {most}", spec.name);
    }
    if dim == 0 && size > 0 && mode != Mode::Constant {
        return mismatch!(
            "{}: axis {at} has no elements to pad with, got pads {before} and {after}",
            spec.name
        );
    }
    Ok(Axis { size, dim, before })
}

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    let axes = padded(spec, attrs, &x.dims)?;
    if collapse(&axes, mode_of(attrs)).len() > MOST_AXES {
        let rank = x.dims.len();
        return Err(Error::UnsupportedOp(format!(
            "{}: too many axes apart are padded, of {rank}",
            spec.name
        )));
    }
    Ok(vec![Meta::new(x.dtype, axes.iter().map(|axis| axis.size).collect::<Vec<_>>())])
}

/// The axes innermost first, joined where that changes nothing; there is always one.
fn collapse(axes: &[Axis], mode: Mode) -> Vec<Axis> {
    let mut joined: Vec<Axis> = Vec::new();
    for &next in axes.iter().rev().filter(|axis| !(axis.is_plain() && axis.dim == 1)) {
        match joined.last_mut() {
            Some(last) if last.is_plain() && (next.is_plain() || mode == Mode::Constant) => {
                let inner = last.dim;
                let before = next.before.saturating_mul(inner as i64);
                *last = Axis {
                    size: next.size.saturating_mul(inner),
                    dim: next.dim.saturating_mul(inner),
                    before,
                };
            }
            _ => joined.push(next),
        }
    }
    if joined.is_empty() {
        joined.push(Axis { size: 1, dim: 1, before: 0 });
    }
    joined
}

/// The axes innermost first, and the mode.
fn plan(call: &Call) -> Result<(Vec<Axis>, Mode)> {
    let mode = mode_of(&call.attrs);
    Ok((collapse(&padded(call.spec, &call.attrs, &call.input(0).dims)?, mode), mode))
}

/// The constant's bits, repeated over 64.
fn fill_of(call: &Call) -> u64 {
    let bits = bits_of(call.dtype(), call.attrs.float(VALUE.name));
    match call.dtype().size() {
        1 => bits * 0x0101_0101_0101_0101,
        2 => bits * 0x0001_0001_0001_0001,
        4 => bits * 0x0000_0001_0000_0001,
        _ => bits,
    }
}

fn cpu(call: &Call, inputs: &[Option<HostView>], outputs: &mut [HostViewMut]) -> Result<()> {
    let Some(Some(x)) = inputs.first() else { return Ok(()) };
    let (axes, mode) = plan(call)?;
    for_unit!(x.dtype.size(), pad_units(&axes, mode, fill_of(call), x, &mut outputs[0]));
    Ok(())
}

fn pad_units<T: Pod + Send + Sync>(axes: &[Axis], mode: Mode, fill: u64, x: &HostView, y: &mut HostViewMut) {
    let x = x.as_slice::<T>();
    let fill: T = bytemuck::pod_read_unaligned(&fill.to_ne_bytes()[..size_of::<T>()]);
    let inner = axes[0];
    for_pieces(y.as_slice_mut::<T>(), inner.size, 2, |start, piece| {
        for (index, row) in piece.chunks_mut(inner.size).enumerate() {
            let Some(base) = row_source(&axes[1..], start / inner.size + index, mode) else {
                row.fill(fill);
                continue;
            };
            for (index, y) in row.iter_mut().enumerate() {
                *y = inner.source(index, mode).map_or(fill, |at| x[base * inner.dim + at]);
            }
        }
    });
}

/// The row of x behind a row of the result.
fn row_source(outer: &[Axis], mut row: usize, mode: Mode) -> Option<usize> {
    let (mut at, mut stride) = (0, 1);
    for axis in outer {
        at += axis.source(row % axis.size, mode)? * stride;
        row /= axis.size;
        stride *= axis.dim;
    }
    Some(at)
}

fn cuda(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    if call.output().size() == 0 {
        return Ok(());
    }
    let (axes, mode) = plan(call)?;
    let (x, n, bytes) = (device_operand(call, inputs, 0)?, call.output().size() as u64, call.dtype().size());
    let words = pack(&axes, mode, fill_of(call));
    let arguments = [Arg::Ptr(x), Arg::Ptr(outputs[0].ptr), Arg::U64(n), Arg::Block(&words)];
    launcher.launch(&format!("pad_u{}", 8 * bytes), linear(n, 256, 16 / bytes as u32)?, &arguments)
}

/// `struct Pad` of kernels/pad.cu.
fn pack(axes: &[Axis], mode: Mode, fill: u64) -> Vec<u32> {
    let shift = |axis: &Axis| match mode {
        Mode::Wrap => (-axis.before).rem_euclid(axis.dim.max(1) as i64),
        _ => -axis.before,
    };
    let mut words = vec![axes.len() as u32, mode as u32, fill as u32, (fill >> 32) as u32];
    for field in 0..5 {
        for index in 0..MOST_AXES {
            let value = axes.get(index).map_or(0, |axis| match field {
                0 => axis.size as u64,
                1 => divisor(axis.size),
                2 => axis.dim as u64,
                3 => divisor(axis.dim),
                _ => shift(axis) as u64,
            });
            words.extend([value as u32, (value >> 32) as u32]);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Parameter, find as kernel};
    use crate::ops::Raw;
    use crate::{DType, Tensor};

    fn run(dims: &[usize], x: &[i16], pads: &[f64], mode: &str, value: f64) -> Result<Vec<i16>> {
        let input = Tensor::from_slice(DType::I16, dims, x)?;
        let options = [
            ("pads".to_string(), Raw::List(pads.to_vec())),
            ("mode".to_string(), Raw::Text(mode.into())),
            ("value".to_string(), Raw::Number(value)),
        ];
        let call = Call::new("pad", vec![Some(input.meta().clone())], &options)?;
        let outputs = call.run_cpu(&[Some(input)])?;
        Ok(outputs[0].host_view()?.as_slice::<i16>().to_vec())
    }

    #[test]
    fn every_mode_adds_what_its_name_says() {
        let of = |mode| run(&[3], &[1, 2, 3], &[2.0, 1.0], mode, 7.0).unwrap();
        assert_eq!(of("constant"), [7, 7, 1, 2, 3, 7]);
        assert_eq!(of("reflect"), [3, 2, 1, 2, 3, 2]);
        assert_eq!(of("edge"), [1, 1, 1, 2, 3, 3]);
        assert_eq!(of("wrap"), [2, 3, 1, 2, 3, 1]);
        assert_eq!(run(&[2], &[1, 2], &[5.0, 4.0], "wrap", 0.0).unwrap(), [2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2]);
        assert_eq!(run(&[4], &[1, 2, 3, 4], &[-1.0, -2.0], "edge", 0.0).unwrap(), [2]);
        assert_eq!(
            run(&[2, 1], &[1, 2], &[0.0, 1.0, 1.0, 0.0], "constant", -1.0).unwrap(),
            [-1, 1, -1, 2, -1, -1]
        );
    }

    #[test]
    fn what_cannot_be_padded_is_refused() {
        let code = |dims: &[usize], pads: &[f64], mode| {
            let x = vec![0; dims.iter().product()];
            run(dims, &x, pads, mode, 0.0).map(|y| y.len()).map_err(|error| error.code())
        };
        assert_eq!(code(&[3], &[3.0, 0.0], "reflect"), Err("SHAPE_MISMATCH"));
        assert_eq!(code(&[3], &[2.0, 2.0], "reflect"), Ok(7));
        assert_eq!(code(&[0], &[1.0, 0.0], "edge"), Err("SHAPE_MISMATCH"));
        assert_eq!(code(&[0], &[1.0, 0.0], "constant"), Ok(1));
        assert_eq!(code(&[3], &[-2.0, -2.0], "constant"), Err("SHAPE_MISMATCH"));
        assert_eq!(code(&[3], &[1.0], "constant"), Err("SHAPE_MISMATCH"));
    }

    #[test]
    fn axes_are_joined_where_that_changes_nothing() {
        let plain = |dim| Axis { size: dim, dim, before: 0 };
        let more = Axis { size: 7, dim: 4, before: 2 };
        let axes = [plain(5), more, plain(1), plain(2), plain(3)];
        assert_eq!(collapse(&axes, Mode::Constant), [Axis { size: 42, dim: 24, before: 12 }, plain(5)]);
        assert_eq!(collapse(&axes, Mode::Edge), [plain(6), more, plain(5)]);
        assert_eq!(collapse(&[], Mode::Wrap), [plain(1)]);
    }

    #[test]
    fn every_width_has_its_kernel() {
        use Parameter::{Block, Word64};
        let block = Block(pack(&[Axis { size: 1, dim: 1, before: 0 }], Mode::Wrap, 0).len() * 4);
        for bits in [8, 16, 32, 64] {
            assert_eq!(
                kernel(&format!("pad_u{bits}"), 75).unwrap().1.parameters,
                [Word64, Word64, Word64, block]
            );
        }
    }
}
