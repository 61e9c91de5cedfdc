//! Convolutions.

use super::{Operator, shared};
use crate::graph::plan::{Operand, Rule, Site, ints};
use crate::ops::Raw;
use crate::{Error, Result};

pub const ROWS: &[Operator] =
    &[shared("Conv", "conv2d", conv), shared("ConvTranspose", "convTranspose2d", conv_transpose)];

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
        5 => Ok(site.call_with("convTranspose3d", &operands, &options)?.into()),
        3 => line(site, operands, options),
        _ => Err(Error::UnsupportedOp(format!("ranks 3 to 5 are taken, got dims {:?}", x.dims())).into()),
    }
}

/// A transposed convolution along one axis, as one over images of one row.
fn line(site: &mut Site, operands: [Option<Operand>; 3], options: Vec<(&'static str, Raw)>) -> Rule {
    let [x, w, bias] = operands;
    if let Some(operand) = [&x, &w].into_iter().flatten().find(|operand| operand.rank() != 3) {
        return Err(Error::ShapeMismatch(format!("rank 3 is wanted, got dims {:?}", operand.dims())).into());
    }
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
