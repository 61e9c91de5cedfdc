//! Pooling and resampling.

use super::conv::window;
use super::{Operator, row, shared};
use crate::graph::plan::{Operand, Rule, Site, ints};
use crate::ops::Raw;
use crate::{Error, Result};

pub const ROWS: &[Operator] = &[
    row("MaxPool", max_pool),
    row("AveragePool", average_pool),
    shared("GlobalAveragePool", "globalAveragePool", global),
    shared("GlobalMaxPool", "globalMaxPool", global),
    row("GridSample", grid_sample),
    row("Resize", resize),
    row("Upsample", upsample),
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

fn max_pool(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let mut options = window(site, WINDOW)?;
    options.push(("ceilMode", Raw::Bool(site.node.flag("ceil_mode", false)?)));
    if !site.wants(1) {
        let op = pick(&x, ["maxPool1d", "maxPool2d", "maxPool3d"])?;
        return Ok(site.one(op, &[x], &options)?.into());
    }
    let op = pick(&x, ["maxPool1dWithIndices", "maxPool2dWithIndices", "maxPool3dWithIndices"])?;
    options.push(("storageOrder", Raw::Number(site.node.int("storage_order", 0)? as f64)));
    Ok(site.call(op, &[x], &options)?.into())
}

fn average_pool(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let mut options = window(site, WINDOW)?;
    options.push(("ceilMode", Raw::Bool(site.node.flag("ceil_mode", false)?)));
    options.push(("countIncludePad", Raw::Bool(site.node.flag("count_include_pad", false)?)));
    let op = pick(&x, ["averagePool1d", "averagePool2d", "averagePool3d"])?;
    Ok(site.one(op, &[x], &options)?.into())
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

fn resized(site: &mut Site, x: Operand, options: Vec<(&'static str, Raw)>) -> Rule {
    Ok(site.one("resize", &[x], &options)?.into())
}
