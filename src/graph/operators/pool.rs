//! Pooling and resampling.

use super::conv::window;
use super::elementwise::is_float;
use super::vision::Spatial;
use super::{Operator, shared};
use crate::graph::Attribute;
use crate::graph::plan::{Operand, Rule, Site, ints};
use crate::ops::Raw;
use crate::{DType, Error, Result};

pub const ROWS: &[Operator] = &[
    shared("MaxPool", "maxPool2d", max_pool),
    shared("AveragePool", "averagePool2d", average_pool),
    shared("GlobalAveragePool", "globalAveragePool", global),
    shared("GlobalMaxPool", "globalMaxPool", global),
    shared("LpPool", "averagePool2d", lp_pool),
    shared("GlobalLpPool", "reduceSum", global_lp),
    shared("GridSample", "gridSample", grid_sample),
    shared("Resize", "resize", resize),
    shared("Upsample", "resize", upsample),
];

fn global(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    Ok(site.one(site.row.op, &[x], &[])?.into())
}

fn pick(x: &Operand, names: [&'static str; 3]) -> Result<&'static str> {
    match x.rank() {
        rank @ 3..=5 => Ok(names[rank - 3]),
        _ => Err(Error::ShapeMismatch(format!("ranks 3 to 5 are taken, got dims {:?}", x.dims()))),
    }
}

const WINDOW: &[(&str, &str)] =
    &[("kernel", "kernel_shape"), ("strides", "strides"), ("pads", "pads"), ("dilations", "dilations")];

/// Bytes are pooled as float32, which holds them exactly.
fn max_pool(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    if matches!(x.dtype(), DType::I8 | DType::U8) {
        let wide = site.cast(&x, DType::F32)?;
        let mut results = max_pooled(site, wide)?;
        results[0] = site.cast(&results[0], x.dtype())?;
        return Ok(results.into());
    }
    Ok(max_pooled(site, x)?.into())
}

fn max_pooled(site: &mut Site, x: Operand) -> Result<Vec<Operand>> {
    let mut options = window(site, WINDOW)?;
    options.push(("ceilMode", Raw::Bool(site.node.flag("ceil_mode", false)?)));
    if !site.wants(1) {
        let op = pick(&x, ["maxPool1d", "maxPool2d", "maxPool3d"])?;
        return site.call(op, &[x], &options);
    }
    let op = pick(&x, ["maxPool1dWithIndices", "maxPool2dWithIndices", "maxPool3dWithIndices"])?;
    options.push(("storageOrder", Raw::Number(site.node.int("storage_order", 0)? as f64)));
    site.call(op, &[x], &options)
}

fn average_pool(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let mut options = window(site, WINDOW)?;
    options.push(("ceilMode", Raw::Bool(site.node.flag("ceil_mode", false)?)));
    options.push(("countIncludePad", Raw::Bool(site.node.flag("count_include_pad", false)?)));
    let op = pick(&x, ["averagePool1d", "averagePool2d", "averagePool3d"])?;
    Ok(site.one(op, &[x], &options)?.into())
}

/// |x|^p in float32 where it is float16: powers leave its range.
fn powers(site: &mut Site, x: &Operand, p: f64) -> Result<Operand> {
    let wide = site.cast(x, x.dtype().arithmetic())?;
    if p == 2.0 {
        return site.one("mul", &[wide.clone(), wide], &[]);
    }
    let size = site.one("abs", &[wide], &[])?;
    if p == 1.0 {
        return Ok(size);
    }
    let exponent = site.scalar(size.dtype(), p)?;
    site.one("pow", &[size, exponent], &[])
}

/// The p-th roots of sums of powers, in the type of `x`.
fn roots(site: &mut Site, x: &Operand, sums: Operand, p: f64) -> Result<Operand> {
    let roots = if p == 2.0 {
        site.one("sqrt", &[sums], &[])?
    } else if p == 1.0 {
        sums
    } else {
        let exponent = site.scalar(sums.dtype(), 1.0 / p)?;
        site.one("pow", &[sums, exponent], &[])?
    };
    site.cast(&roots, x.dtype())
}

/// The exponent, a number in version 1 and whole later on.
fn exponent(site: &Site) -> Result<f64> {
    if matches!(site.node.attributes.get("p"), Some(Attribute::Float(_))) {
        return site.node.float("p", 2.0);
    }
    Ok(site.node.int("p", 2)? as f64)
}

fn global_lp(site: &mut Site) -> Rule {
    let (x, p) = (site.input(0)?, exponent(site)?);
    let powers = powers(site, &x, p)?;
    let axes: Vec<i64> = (2..x.rank() as i64).collect();
    let sums =
        if axes.is_empty() { powers } else { site.one("reduceSum", &[powers], &[("axes", ints(&axes))])? };
    Ok(roots(site, &x, sums, p)?.into())
}

/// Sums of powers by a convolution with ones, each channel by itself.
fn lp_pool(site: &mut Site) -> Rule {
    let (x, p) = (site.input(0)?, exponent(site)?);
    let op = pick(&x, ["conv1d", "conv2d", "conv3d"])?;
    let kernel = site.node.ints("kernel_shape")?.unwrap_or_default();
    if kernel.len() + 2 != x.rank() || kernel.iter().any(|&size| size < 1) {
        let text = format!("a window {kernel:?} does not fit dims {:?}", x.dims());
        return Err(Error::ShapeMismatch(text).into());
    }
    let spatial = Spatial::new(site, kernel.iter().map(|&size| size as usize).collect())?;
    let pads = summed_pads(site, &x, &spatial)?;
    let channels = x.dims()[1];
    let powers = powers(site, &x, p)?;
    let one = site.scalar(powers.dtype(), 1.0)?;
    let ones = super::layout::expand_to(site, &one, &[&[channels as i64, 1], &kernel[..]].concat())?;
    let options = [
        ("strides", ints(&super::norm::signed(&spatial.strides))),
        ("dilations", ints(&super::norm::signed(&spatial.dilations))),
        ("pads", ints(&super::norm::signed(&pads))),
        ("group", Raw::Number(channels as f64)),
    ];
    let sums = site.one(op, &[powers, ones], &options)?;
    Ok(roots(site, &x, sums, p)?.into())
}

/// Padding at all starts, then at all ends, with which whole windows are just those that are wanted.
fn summed_pads(site: &Site, x: &Operand, spatial: &Spatial) -> Result<Vec<usize>> {
    let (auto, ceil) = (site.node.word("auto_pad", "NOTSET")?, site.node.flag("ceil_mode", false)?);
    let axes = spatial.kernel.len();
    let mut pads = vec![0; 2 * axes];
    for axis in 0..axes {
        let (input, span, stride) = (x.dims()[axis + 2], spatial.span(axis), spatial.strides[axis]);
        let (before, count) = if auto.starts_with("SAME") {
            let count = input.div_ceil(stride);
            let total = (count.saturating_sub(1) * stride + span).saturating_sub(input);
            (if auto == "SAME_LOWER" { total.div_ceil(2) } else { total / 2 }, count)
        } else {
            let (before, behind) =
                if auto == "VALID" { (0, 0) } else { (spatial.before[axis], spatial.behind[axis]) };
            let Some(room) = (before + input + behind).checked_sub(span) else {
                let text = format!("a window {:?} passes the padded dims {:?}", spatial.kernel, x.dims());
                return Err(Error::ShapeMismatch(text));
            };
            let count = if ceil { room.div_ceil(stride) } else { room / stride } + 1;
            // A last window that begins behind the input does not count.
            (before, if ceil && (count - 1) * stride >= before + input { count - 1 } else { count })
        };
        pads[axis] = before;
        pads[axes + axis] = (count.saturating_sub(1) * stride + span).saturating_sub(before + input);
    }
    Ok(pads)
}

/// Modes had names of images up to version 19.
fn grid_sample(site: &mut Site) -> Rule {
    let (x, grid) = (site.input(0)?, site.input(1)?);
    let mode = match site.node.word("mode", "linear")?.as_str() {
        "bilinear" => "linear".to_string(),
        "bicubic" => "cubic".to_string(),
        mode => mode.to_string(),
    };
    let options = [
        ("mode", Raw::Text(mode)),
        ("paddingMode", Raw::Text(site.node.word("padding_mode", "zeros")?)),
        ("alignCorners", Raw::Bool(site.node.flag("align_corners", false)?)),
    ];
    let grid = site.cast(&grid, x.dtype())?;
    Ok(site.one("gridSample", &[x, grid], &options)?.into())
}

/// Version 10 has scales alone, in the way of Upsample.
fn resize(site: &mut Site) -> Rule {
    if site.version() < 11 {
        return upsample(site);
    }
    let x = site.input(0)?;
    let mut options = vec![
        ("mode", Raw::Text(site.node.word("mode", "nearest")?)),
        ("nearestMode", Raw::Text(site.node.word("nearest_mode", "round_prefer_floor")?)),
        ("cubicCoeffA", Raw::Number(site.node.float("cubic_coeff_a", -0.75)?)),
        ("excludeOutside", Raw::Bool(site.node.flag("exclude_outside", false)?)),
        ("extrapolationValue", Raw::Number(site.node.float("extrapolation_value", 0.0)?)),
        ("antialias", Raw::Bool(site.node.flag("antialias", false)?)),
        ("keepAspectRatioPolicy", Raw::Text(site.node.word("keep_aspect_ratio_policy", "stretch")?)),
    ];
    let coordinates = site.node.word("coordinate_transformation_mode", "half_pixel")?;
    if coordinates == "tf_crop_and_resize" {
        options.push(("roi", Raw::List(site.numbers(1)?)));
    }
    options.push(("coordinateTransformationMode", Raw::Text(coordinates)));
    if let Some(axes) = site.node.ints("axes")? {
        options.push(("axes", ints(&axes)));
    }
    match sizes(site)? {
        Some(sizes) => options.push(("sizes", ints(&sizes))),
        None => options.push(("scales", Raw::List(site.numbers(2)?))),
    }
    resized(site, x, options)
}

fn sizes(site: &Site) -> Rule<Option<Vec<i64>>> {
    Ok(site.maybe_integers(3)?.filter(|sizes| !sizes.is_empty()))
}

fn upsample(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let scales =
        if site.version() < 9 { site.node.floats("scales")?.unwrap_or_default() } else { site.numbers(1)? };
    let mode = site.node.word("mode", "nearest")?;
    let mode = if mode == "bilinear" { "linear".to_string() } else { mode };
    let options = vec![
        ("mode", Raw::Text(mode)),
        ("coordinateTransformationMode", Raw::Text("asymmetric".into())),
        ("nearestMode", Raw::Text("floor".into())),
        ("scales", Raw::List(scales)),
    ];
    resized(site, x, options)
}

/// Whole numbers are resampled in float64 and cut.
fn resized(site: &mut Site, x: Operand, options: Vec<(&'static str, Raw)>) -> Rule {
    let wide = if is_float(x.dtype()) { x.clone() } else { site.cast(&x, DType::F64)? };
    let y = site.one("resize", &[wide], &options)?;
    Ok(site.cast(&y, x.dtype())?.into())
}
