//! Convolutions.

use super::layout::transposed;
use super::norm::signed;
use super::vision::Spatial;
use super::{Operator, row};
use crate::graph::plan::{Operand, Rule, Site, ints};
use crate::ops::Raw;
use crate::{Error, Result};

pub const ROWS: &[Operator] = &[row("Conv", conv), row("ConvTranspose", conv_transpose)];

/// Attributes of windows by their option's name.
pub(super) fn window(
    site: &Site,
    names: &[(&'static str, &'static str)],
) -> Result<Vec<(&'static str, Raw)>> {
    let mut options = Vec::new();
    for &(option, attribute) in names {
        if let Some(values) = site.node.ints(attribute)? {
            options.push((option, ints(&values)));
        }
    }
    let auto = site.node.word("auto_pad", "NOTSET")?;
    if auto != "NOTSET" {
        options.retain(|(option, _)| *option != "pads");
        options.push(("autoPad", Raw::Text(auto)));
    }
    Ok(options)
}

/// An error unless `kernel_shape` says what the weights say.
pub(super) fn check_kernel(site: &Site, w: &Operand) -> Result<()> {
    let Some(kernel) = site.node.ints("kernel_shape")? else { return Ok(()) };
    let own: Vec<i64> = w.dims().iter().skip(2).map(|&dim| dim as i64).collect();
    if kernel == own {
        return Ok(());
    }
    Err(Error::ShapeMismatch(format!(
        "'kernel_shape' is {kernel:?}, but the weights have dims {:?}",
        w.dims()
    )))
}

fn operands(site: &Site) -> Result<[Option<Operand>; 3]> {
    let bias = site.optional(2);
    Ok([Some(site.input(0)?), Some(site.input(1)?), bias])
}

fn conv(site: &mut Site) -> Rule {
    let operands = operands(site)?;
    let (x, w) = (site.input(0)?, site.input(1)?);
    check_kernel(site, &w)?;
    let mut options = window(site, &[("strides", "strides"), ("pads", "pads"), ("dilations", "dilations")])?;
    options.push(("group", Raw::Number(site.node.int("group", 1)? as f64)));
    let op = match x.rank() {
        3 => "conv1d",
        4 => "conv2d",
        5 => "conv3d",
        _ => {
            return Err(
                Error::ShapeMismatch(format!("ranks 3 to 5 are taken, got dims {:?}", x.dims())).into()
            );
        }
    };
    Ok(site.call_with(op, &operands, &options)?.into())
}

fn conv_transpose(site: &mut Site) -> Rule {
    let operands = operands(site)?;
    let (x, w) = (site.input(0)?, site.input(1)?);
    check_kernel(site, &w)?;
    let names = [
        ("strides", "strides"),
        ("pads", "pads"),
        ("dilations", "dilations"),
        ("outputPads", "output_padding"),
        ("outputShape", "output_shape"),
    ];
    let mut options = window(site, &names)?;
    if let Some((_, Raw::List(shape))) = options.iter_mut().find(|(name, _)| *name == "outputShape") {
        // Some writers give batch and channels as well.
        let extra = shape.len().saturating_sub(x.rank().saturating_sub(2));
        shape.drain(..extra);
    }
    options.push(("group", Raw::Number(site.node.int("group", 1)? as f64)));
    match x.rank() {
        4 => Ok(site.call_with("convTranspose2d", &operands, &options)?.into()),
        3 => line(site, operands, options),
        5 => volume(site, operands),
        _ => Err(Error::ShapeMismatch(format!("ranks 3 to 5 are taken, got dims {:?}", x.dims())).into()),
    }
}

/// A transposed convolution along one axis, as one over images of one row.
fn line(site: &mut Site, operands: [Option<Operand>; 3], options: Vec<(&'static str, Raw)>) -> Rule {
    let [x, w, bias] = operands;
    let as_image = |operand: Option<Operand>| {
        operand.map(|operand| {
            let mut dims = operand.dims().to_vec();
            dims.insert(2, 1);
            operand.reshape(dims)
        })
    };
    let operands = [as_image(x).transpose()?, as_image(w).transpose()?, bias];
    let widened = options.into_iter().map(|(name, value)| match (name, value) {
        ("strides" | "dilations" | "outputShape", Raw::List(values)) => {
            (name, Raw::List([vec![1.0], values].concat()))
        }
        ("outputPads", Raw::List(values)) => (name, Raw::List([vec![0.0], values].concat())),
        ("pads", Raw::List(values)) if values.len() == 2 => {
            (name, Raw::List(vec![0.0, values[0], 0.0, values[1]]))
        }
        other => other,
    });
    let options: Vec<_> = widened.collect();
    let y = site.call_with("convTranspose2d", &operands, &options)?.swap_remove(0);
    let mut dims = y.dims().to_vec();
    dims.remove(2);
    Ok(y.reshape(dims)?.into())
}

/// A transposed convolution of volumes: zeros between the elements, then a convolution with the weights turned about.
fn volume(site: &mut Site, operands: [Option<Operand>; 3]) -> Rule {
    let [Some(x), Some(w), bias] = operands else {
        return Err(Error::Internal("operands were checked".into()).into());
    };
    let group = site.node.int("group", 1)?;
    let channels = x.dims()[1];
    let groups = usize::try_from(group).ok().filter(|it| *it > 0 && channels.is_multiple_of(*it));
    let (Some(groups), true) = (groups, w.rank() == 5 && w.dims()[0] == channels) else {
        let text = format!("weights {:?} in {group} groups do not fit dims {:?}", w.dims(), x.dims());
        return Err(Error::ShapeMismatch(text).into());
    };
    let spatial = Spatial::new(site, w.dims()[2..].to_vec())?;
    let crops = crops(site, &x, &spatial)?;
    let mut spread = x.dims()[..2].to_vec();
    let mut stretched = spread.clone();
    let (mut between, mut around) = (vec![0; 2], Vec::new());
    for (axis, (start, end)) in crops.into_iter().enumerate() {
        let (dim, stride) = (x.dims()[axis + 2], spatial.strides[axis]);
        spread.extend([dim, 1]);
        stretched.push(dim * stride);
        between.extend([0, stride as i64 - 1]);
        let reach = spatial.span(axis) as i64 - 1;
        around.push([reach - start, reach - end - (stride as i64 - 1)]);
    }
    let zeros = [vec![0; 8], between].concat();
    let zeros = site.one("pad", &[x.reshape(spread)?], &[("pads", ints(&zeros))])?.reshape(stretched)?;
    let around: Vec<i64> = (0..2).flat_map(|end| around.iter().map(move |pads| pads[end])).collect();
    let padded = site.one("pad", &[zeros], &[("axes", ints(&[2, 3, 4])), ("pads", ints(&around))])?;
    let weights = turned(site, &w, groups)?;
    let options = [("dilations", ints(&signed(&spatial.dilations))), ("group", Raw::Number(group as f64))];
    Ok(site.call_with("conv3d", &[Some(padded), Some(weights), bias], &options)?.into())
}

/// Elements that a result loses at the start and the end of each axis; the end may gain some.
fn crops(site: &Site, x: &Operand, spatial: &Spatial) -> Result<Vec<(i64, i64)>> {
    let auto = site.node.word("auto_pad", "NOTSET")?;
    let list = |name: &str| Ok::<_, Error>(site.node.ints(name)?.filter(|it| it.len() >= 3));
    let (extra, wanted) = (list("output_padding")?, list("output_shape")?);
    let crop = |axis: usize| {
        let input = x.dims()[axis + 2] as i64;
        let more = extra.as_ref().map_or(0, |extra| extra[axis]);
        let whole = (input - 1) * spatial.strides[axis] as i64 + spatial.span(axis) as i64 + more;
        let size = match &wanted {
            Some(wanted) => Some(wanted[wanted.len() - 3 + axis]),
            None if auto.starts_with("SAME") => Some(input * spatial.strides[axis] as i64),
            None => None,
        };
        let (start, end) = match size {
            Some(size) if auto == "SAME_UPPER" => ((whole - size) / 2, (whole - size) - (whole - size) / 2),
            Some(size) => ((whole - size) - (whole - size) / 2, (whole - size) / 2),
            None if auto == "VALID" => (0, 0),
            None => (spatial.before[axis] as i64, spatial.behind[axis] as i64),
        };
        (start, end - more)
    };
    Ok((0..3).map(crop).collect())
}

/// Weights `[channels, filters / groups, ...]` as those of a convolution, with each kernel turned about.
fn turned(site: &mut Site, w: &Operand, groups: usize) -> Result<Operand> {
    let (channels, filters, kernel) = (w.dims()[0], w.dims()[1], &w.dims()[2..]);
    let parted = w.reshape([&[groups, channels / groups, filters], kernel].concat())?;
    let swapped = transposed(site, &parted, &[0, 2, 1, 3, 4, 5])?;
    let swapped = swapped.reshape([&[groups * filters, channels / groups], kernel].concat())?;
    let ends = [-1 - kernel[0] as i64, -1 - kernel[1] as i64, -1 - kernel[2] as i64];
    let back = [
        ("axes", ints(&[2, 3, 4])),
        ("starts", ints(&[-1; 3])),
        ("ends", ints(&ends)),
        ("steps", ints(&[-1; 3])),
    ];
    site.one("slice", &[swapped], &back)
}
