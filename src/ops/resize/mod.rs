//! resize: axes made longer or shorter, one after the other.

mod cpu;
mod cuda;
mod weights;

use self::cpu::resize as on_cpu;
use self::weights::{Axis, Method, Rounding, Rules, Taps, Transform};
use super::spec::*;
use super::{Attrs, Call, FLOATS};
use crate::shape::{Dims, normalize_axis, size_of};
use crate::{Result, for_float, invalid, mismatch};

const SCALES: Attribute = attribute(
    "scales",
    Kind::Floats,
    "Size of each axis of `axes` in the result, as a factor, rounded down.",
);
const SIZES: Attribute =
    attribute("sizes", Kind::Ints, "Size of each axis of `axes` in the result, instead of `scales`.");
const AXES: Attribute =
    attribute("axes", Kind::Ints, "Axes to resize, negative ones counted from the end; all by default.");
const MODE: Attribute = attribute(
    "mode",
    Kind::Choice(&["nearest", "linear", "cubic"]),
    "What a result is made of: the nearest element, two of each axis, or four.",
);
const TRANSFORM: Attribute = attribute(
    "coordinateTransformationMode",
    Kind::Choice(&[
        "half_pixel",
        "half_pixel_symmetric",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
    ]),
    "How the index of a result becomes a place in x.",
);
const NEAREST: Attribute = attribute(
    "nearestMode",
    Kind::Choice(&["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
    "Which neighbour is the nearest.",
);
const CUBIC: Attribute = attribute("cubicCoeffA", Kind::Float(-0.75), "Coefficient a of the cubic.");
const EXCLUDE: Attribute = attribute(
    "excludeOutside",
    Kind::Bool(false),
    "Whether what is beyond the ends of x weighs nothing; else it is the element at the end. Not for nearest.",
);
const EXTRAPOLATION: Attribute =
    attribute("extrapolationValue", Kind::Float(0.0), "Result for places outside x in tf_crop_and_resize.");
const ANTIALIAS: Attribute = attribute(
    "antialias",
    Kind::Bool(false),
    "Whether an axis that shrinks is smoothed over all the elements that a result stands for. Not for nearest.",
);
const ROI: Attribute = attribute(
    "roi",
    Kind::Floats,
    "For tf_crop_and_resize where the region starts along each axis of `axes`, then where it ends, from 0 to 1.",
);
const POLICY: Attribute = attribute(
    "keepAspectRatioPolicy",
    Kind::Choice(&["stretch", "not_larger", "not_smaller"]),
    "Whether axes are given `sizes` each, or one factor for all that makes none larger, or none smaller, than those.",
);

/// The family's row.
pub const OPS: &[OpSpec] = &[OpSpec {
    name: "resize",
    operands: &[required("x")],
    attributes: &[
        SCALES,
        SIZES,
        AXES,
        MODE,
        TRANSFORM,
        NEAREST,
        CUBIC,
        EXCLUDE,
        EXTRAPOLATION,
        ANTIALIAS,
        ROI,
        POLICY,
    ],
    dtypes: FLOATS,
    results: Results::One,
    shape,
    cpu: |call, inputs, outputs| for_float!(call.dtype(), on_cpu(call, inputs, outputs)),
    cuda: cuda::resize,
    tolerance: Tolerance::Accumulate,
    doc: "Axes resampled to other sizes; elements of weight 0 are not read (ONNX Resize).",
}];

fn rules(spec: &OpSpec, attrs: &Attrs) -> Result<Rules> {
    let rules = Rules {
        method: match attrs.choice(MODE.name) {
            "linear" => Method::Linear,
            "cubic" => Method::Cubic,
            _ => Method::Nearest,
        },
        transform: match attrs.choice(TRANSFORM.name) {
            "half_pixel_symmetric" => Transform::HalfPixelSymmetric,
            "pytorch_half_pixel" => Transform::PytorchHalfPixel,
            "align_corners" => Transform::AlignCorners,
            "asymmetric" => Transform::Asymmetric,
            "tf_crop_and_resize" => Transform::TfCropAndResize,
            _ => Transform::HalfPixel,
        },
        rounding: match attrs.choice(NEAREST.name) {
            "round_prefer_ceil" => Rounding::PreferCeil,
            "floor" => Rounding::Floor,
            "ceil" => Rounding::Ceil,
            _ => Rounding::PreferFloor,
        },
        cubic: attrs.float(CUBIC.name),
        exclude_outside: attrs.bool(EXCLUDE.name),
        antialias: attrs.bool(ANTIALIAS.name),
        extrapolation: attrs.float(EXTRAPOLATION.name),
    };
    if rules.method == Method::Nearest && (rules.antialias || rules.exclude_outside) {
        return invalid!("{}: 'antialias' and 'excludeOutside' are for modes linear and cubic", spec.name);
    }
    Ok(rules)
}

/// The axes named, each once.
fn chosen(spec: &OpSpec, attrs: &Attrs, rank: usize) -> Result<Vec<usize>> {
    let Some(given) = attrs.ints(AXES.name) else { return Ok((0..rank).collect()) };
    let axes = given.iter().map(|&axis| normalize_axis(spec.name, axis, rank)).collect::<Result<Vec<_>>>()?;
    match axes.iter().enumerate().find(|(index, axis)| axes[..*index].contains(axis)) {
        Some((_, axis)) => invalid!("{}: 'axes' {given:?} name axis {axis} twice", spec.name),
        None => Ok(axes),
    }
}

fn as_many<T: std::fmt::Debug>(spec: &OpSpec, name: &str, values: &[T], wanted: usize) -> Result<()> {
    if values.len() == wanted {
        return Ok(());
    }
    mismatch!("{}: '{name}' must hold {wanted} numbers, got {values:?}", spec.name)
}

/// Longest axis: places are computed in float64.
const LONGEST: f64 = (1u64 << 40) as f64;

/// A checked factor.
fn factor(spec: &OpSpec, scale: f64) -> Result<f64> {
    if scale > 0.0 && scale.is_finite() {
        return Ok(scale);
    }
    invalid!("{}: 'scales' must be above 0, got {scale}", spec.name)
}

/// Factor and size of each axis.
fn targets(spec: &OpSpec, attrs: &Attrs, inputs: &[usize]) -> Result<Vec<(f64, f64)>> {
    match (attrs.floats(SCALES.name), attrs.ints(SIZES.name)) {
        (Some(scales), None) => {
            as_many(spec, SCALES.name, scales, inputs.len())?;
            let pairs = scales.iter().zip(inputs);
            pairs.map(|(&scale, &input)| Ok((factor(spec, scale)?, (input as f64 * scale).floor()))).collect()
        }
        (None, Some(sizes)) => {
            as_many(spec, SIZES.name, sizes, inputs.len())?;
            if sizes.iter().any(|&size| size < 0) {
                return invalid!("{}: 'sizes' must be from 0 on, got {sizes:?}", spec.name);
            }
            let scales: Vec<f64> =
                sizes.iter().zip(inputs).map(|(&size, &input)| size as f64 / input as f64).collect();
            let common = match attrs.choice(POLICY.name) {
                "not_larger" => scales.iter().copied().reduce(f64::min),
                "not_smaller" => scales.iter().copied().reduce(f64::max),
                _ => None,
            };
            let target = |(&size, (&input, scale)): (&i64, (&usize, &f64))| match common {
                Some(common) => (common, (input as f64 * common + 0.5).floor()),
                None => (*scale, size as f64),
            };
            Ok(sizes.iter().zip(inputs.iter().zip(&scales)).map(target).collect())
        }
        _ => invalid!("{}: give either 'scales' or 'sizes'", spec.name),
    }
}

/// Every axis that is named, in the order of the names.
fn axes(spec: &OpSpec, attrs: &Attrs, dims: &[usize]) -> Result<Vec<Axis>> {
    let chosen = chosen(spec, attrs, dims.len())?;
    let inputs: Vec<usize> = chosen.iter().map(|&axis| dims[axis]).collect();
    let crops = attrs.choice(TRANSFORM.name) == "tf_crop_and_resize";
    let roi = match attrs.floats(ROI.name) {
        Some(roi) if crops => roi.to_vec(),
        None if crops => return invalid!("{}: tf_crop_and_resize takes option 'roi'", spec.name),
        _ => [vec![0.0; chosen.len()], vec![1.0; chosen.len()]].concat(),
    };
    as_many(spec, ROI.name, &roi, 2 * chosen.len())?;
    let targets = targets(spec, attrs, &inputs)?;
    let mut axes = Vec::with_capacity(chosen.len());
    for (index, (&axis, (scale, output))) in chosen.iter().zip(targets).enumerate() {
        let input = dims[axis];
        if (input == 0 && output > 0.0) || output.is_nan() || output >= LONGEST {
            return mismatch!("{}: axis {axis} of {input} cannot be resized to {output}", spec.name);
        }
        let region = [roi[index], roi[index + chosen.len()]];
        axes.push(Axis { axis, input, output: output as usize, scale, region });
    }
    Ok(axes)
}

fn shape(spec: &OpSpec, inputs: Metas, attrs: &Attrs) -> Result<Vec<Meta>> {
    let x = spec.operand(inputs, 0)?;
    rules(spec, attrs)?;
    let mut dims = x.dims.clone();
    axes(spec, attrs, &x.dims)?.iter().for_each(|axis| dims[axis.axis] = axis.output);
    Ok(vec![Meta::new(x.dtype, dims)])
}

/// One axis resized over an array [outer, axis, inner].
struct Pass {
    axis: Axis,
    outer: usize,
    inner: usize,
}

impl Pass {
    /// Elements of the result.
    fn size(&self) -> usize {
        self.outer * self.axis.output * self.inner
    }
}

/// The dims between which a resize repeats elements in their order: x as [.., input, 1, ..] and the result as [.., input, times,
/// ..] along each axis that grows by a whole factor to the nearest. `None` where it does anything else.
fn repeats(call: &Call, passes: &[Pass], rules: &Rules) -> Option<[Dims; 2]> {
    let in_order = |axis: &Axis| {
        let times = axis.output / axis.input.max(1);
        let is_own = |index| matches!(axis.taps_of(index, rules, &mut [0.0]), Taps::From(at) if at == (index / times) as i64);
        axis.output == axis.input * times && times > 0 && (0..axis.output).all(is_own)
    };
    if rules.method != Method::Nearest || rules.antialias || !passes.iter().all(|pass| in_order(&pass.axis)) {
        return None;
    }
    let mut sides = [Dims::new(), Dims::new()];
    for (index, &dim) in call.input(0).dims.iter().enumerate() {
        sides.iter_mut().for_each(|side| side.push(dim));
        if let Some(pass) = passes.iter().find(|pass| pass.axis.axis == index) {
            sides[0].push(1);
            sides[1].push(pass.axis.output / dim);
        }
    }
    Some(sides)
}

/// The axes one after the other, those first that shrink most; none where x is the result.
fn passes(call: &Call) -> Result<(Vec<Pass>, Rules)> {
    let mut dims = call.input(0).dims.clone();
    let rules = rules(call.spec, &call.attrs)?;
    let mut axes = axes(call.spec, &call.attrs, &dims)?;
    axes.retain(|axis| !axis.is_identity(&rules));
    axes.sort_by(|a, b| a.scale.total_cmp(&b.scale).then(b.axis.cmp(&a.axis)));
    let passes = axes.into_iter().map(|axis| {
        let pass = Pass { axis, outer: size_of(&dims[..axis.axis]), inner: size_of(&dims[axis.axis + 1..]) };
        dims[axis.axis] = axis.output;
        pass
    });
    Ok((passes.collect(), rules))
}
