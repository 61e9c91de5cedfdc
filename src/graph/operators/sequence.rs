//! Operators along sequences.

use super::{Operator, shared};
use crate::DType;
use crate::graph::plan::{Operand, Rule, Site};
use crate::ops::Raw;
use crate::shape::normalize_axis;
use crate::{Error, Result};

pub const ROWS: &[Operator] =
    &[shared("ReverseSequence", "gather", reverse), shared("TensorScatter", "scatterElements", scatter)];

/// A gather of rows `[time * batch, ...]`: of the first elements of a sequence the last ones first.
fn reverse(site: &mut Site) -> Rule {
    let (x, lengths) = (site.input(0)?, site.input(1)?);
    let (batch_axis, time_axis) = (site.node.int("batch_axis", 1)?, site.node.int("time_axis", 0)?);
    let swapped = match (batch_axis, time_axis) {
        (1, 0) => false,
        (0, 1) => true,
        _ => {
            let text = format!("batch_axis and time_axis must be 0 and 1, got {batch_axis} and {time_axis}");
            return Err(Error::InvalidModel(text).into());
        }
    };
    let [first, second, rest @ ..] = x.dims() else {
        return Err(Error::ShapeMismatch(format!("rank 2 or more is wanted, got dims {:?}", x.dims())).into());
    };
    let (batch, time) = if swapped { (*first, *second) } else { (*second, *first) };
    if lengths.dims() != [batch] {
        let text = format!("sequence_lens must have dims [{batch}], got {:?}", lengths.dims());
        return Err(Error::ShapeMismatch(text).into());
    }
    let rows = x.reshape([&[first * second], rest].concat())?;
    // Both along [batch, 1] and [1, time] or the other way about.
    let (along_batch, along_time) = if swapped { ([batch, 1], [1, time]) } else { ([1, batch], [time, 1]) };
    let lengths = site.cast(&lengths, DType::I64)?.reshape(along_batch)?;
    let times = counting(site, time)?.reshape(along_time)?;
    let one = site.scalar(DType::I64, 1.0)?;
    let last = site.one("sub", &[lengths.clone(), one], &[])?;
    let mirrored = site.one("sub", &[last, times.clone()], &[])?;
    let inside = site.one("less", &[times.clone(), lengths], &[])?;
    let times = site.one("where", &[inside, mirrored, times], &[])?;
    let batches = counting(site, batch)?.reshape(along_batch)?;
    let (factor, scaled, other) = if swapped { (time, batches, times) } else { (batch, times, batches) };
    let factor = site.scalar(DType::I64, factor as f64)?;
    let scaled = site.one("mul", &[scaled, factor], &[])?;
    let indices = site.one("add", &[scaled, other], &[])?;
    Ok(site.one("gather", &[rows, indices], &[("axis", Raw::Number(0.0))])?.into())
}

fn counting(site: &Site, count: usize) -> Result<Operand> {
    site.list(&(0..count as i64).collect::<Vec<_>>())
}

/// A scatter of rows: the update of a sample goes to places from the sample's index on, in circular mode around the end.
fn scatter(site: &mut Site) -> Rule {
    let (x, update, starts) = (site.input(0)?, site.input(1)?, site.optional(2));
    let axis = normalize_axis("TensorScatter", site.node.int("axis", -2)?, x.rank())?;
    let circular = match site.node.word("mode", "linear")?.as_str() {
        "linear" => false,
        "circular" => true,
        word => {
            let text = format!("'mode' must be linear or circular, got '{word}'");
            return Err(Error::InvalidModel(text).into());
        }
    };
    let mut dims = x.dims().to_vec();
    let most = dims[axis];
    let count = update.dims().get(axis).copied().unwrap_or(0);
    dims[axis] = count;
    if axis == 0 || update.dims() != dims || count > most {
        let text =
            format!("an update with dims {:?} does not fit axis {axis} of {:?}", update.dims(), x.dims());
        return Err(Error::ShapeMismatch(text).into());
    }
    if update.meta().size() == 0 {
        return Ok(x.into());
    }
    let batch = dims[0];
    let (groups, inner) =
        (dims[1..axis].iter().product::<usize>(), dims[axis + 1..].iter().product::<usize>());
    let mut places = counting(site, count)?.reshape([1, 1, count])?;
    if let Some(starts) = starts {
        let starts = site.cast(&starts, DType::I64)?.reshape([batch, 1, 1])?;
        places = site.one("add", &[starts, places], &[])?;
    }
    if circular {
        let length = site.scalar(DType::I64, most as f64)?;
        places = site.one("mod", &[places, length], &[])?;
    }
    let bases: Vec<i64> = (0..batch * groups).map(|row| (row * most) as i64).collect();
    let bases = site.list(&bases)?.reshape([batch, groups, 1])?;
    let rows = site.one("add", &[places, bases], &[])?;
    let written = batch * groups * count;
    let rows = super::layout::expand_to(site, &rows.reshape([written, 1])?, &[written as i64, inner as i64])?;
    let operands = [x.reshape([batch * groups * most, inner])?, rows, update.reshape([written, inner])?];
    Ok(site.one("scatterElements", &operands, &[])?.reshape(x.dims())?.into())
}
