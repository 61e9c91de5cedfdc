//! Operators that move elements.

use super::shape::{axes, positions};
use super::{Operator, shared};
use crate::graph::plan::{Lowered, Operand, Rule, Site, ints, numbers};
use crate::ops::Raw;
use crate::shape::{broadcast, normalize_axis};
use crate::{Error, Result};

#[rustfmt::skip]
pub const ROWS: &[Operator] = &[
    shared("Transpose", "transpose", transpose), shared("Concat", "concat", concat), shared("Split", "split", split), shared("Slice", "slice", slice), shared("Pad", "pad", pad),
    shared("Gather", "gather", gather), shared("GatherElements", "gatherElements", gather), shared("GatherND", "gather", gather_nd),
    shared("ScatterElements", "scatterElements", scatter_elements), shared("Scatter", "scatterElements", scatter_elements), shared("ScatterND", "scatterElements", scatter_nd),
    shared("Expand", "expand", expand), shared("Tile", "tile", tile), shared("Trilu", "where", trilu), shared("CumSum", "cumSum", running),
    shared("CumProd", "cumProd", running), shared("DepthToSpace", "transpose", depth_to_space), shared("SpaceToDepth", "transpose", space_to_depth),
    shared("TopK", "topK", top_k), shared("OneHot", "where", one_hot),
];

/// The operand with its axes in that order; costs nothing where only axes of one element move.
pub(super) fn transposed(site: &mut Site, x: &Operand, perm: &[i64]) -> Result<Operand> {
    let dim = |axis: i64| usize::try_from(axis).ok().and_then(|axis| x.dims().get(axis)).copied();
    if perm.len() == x.rank()
        && perm.iter().all(|&axis| dim(axis).is_some())
        && perm.iter().filter(|&&axis| dim(axis) != Some(1)).is_sorted_by(|a, b| a < b)
    {
        let dims: Vec<usize> = perm.iter().filter_map(|&axis| dim(axis)).collect();
        if dims.iter().product::<usize>() == x.meta().size() {
            return x.reshape(dims);
        }
    }
    site.one("transpose", std::slice::from_ref(x), &[("perm", ints(perm))])
}

fn transpose(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let reversed = || (0..x.rank() as i64).rev().collect();
    let perm = site.node.ints("perm")?.unwrap_or_else(reversed);
    Ok(transposed(site, &x, &perm)?.into())
}

fn concat(site: &mut Site) -> Rule {
    let operands = (0..site.operands().len()).map(|index| site.input(index)).collect::<Result<Vec<_>>>()?;
    let axis = site.node.int("axis", 1)?;
    if let [only] = &operands[..] {
        return Ok(only.clone().into());
    }
    Ok(site.one("concat", &operands, &[("axis", Raw::Number(axis as f64))])?.into())
}

/// Sizes as an attribute up to version 12, then as an operand; else as many parts as there are results.
fn split(site: &mut Site) -> Rule {
    let (x, axis) = (site.input(0)?, site.node.int("axis", 0)?);
    let sizes = if site.version() < 13 { site.node.ints("split")? } else { site.maybe_integers(1)? };
    let count = site.node.int("num_outputs", site.node.outputs.len() as i64)?;
    let how = match sizes {
        Some(sizes) => ("split", ints(&sizes)),
        None => ("numOutputs", Raw::Number(count as f64)),
    };
    Ok(site.call("split", &[x], &[("axis", Raw::Number(axis as f64)), how])?.into())
}

/// Ranges as attributes up to version 9, then as operands.
fn slice(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let (starts, ends, axes, steps) = if site.version() < 10 {
        let list = |name| Ok::<_, Error>(site.node.ints(name)?.unwrap_or_default());
        (list("starts")?, list("ends")?, site.node.ints("axes")?, None)
    } else {
        (site.integers(1)?, site.integers(2)?, site.maybe_integers(3)?, site.maybe_integers(4)?)
    };
    // Options are exact up to 2^53; ends beyond any dim are as good when they are smaller.
    let near = |values: &[i64]| values.iter().map(|&value| value.clamp(-FAR, FAR)).collect::<Vec<_>>();
    let mut options = vec![("starts", ints(&near(&starts))), ("ends", ints(&near(&ends)))];
    options.extend(axes.map(|axes| ("axes", ints(&axes))));
    options.extend(steps.map(|steps| ("steps", ints(&near(&steps)))));
    Ok(site.one("slice", &[x], &options)?.into())
}

const FAR: i64 = 1 << 52;

/// Pads and the value as attributes up to version 10, then as operands.
fn pad(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let (pads, axes, value) = if site.version() < 11 {
        (site.node.ints("pads")?.unwrap_or_default(), None, site.node.float("value", 0.0)?)
    } else {
        let value = if site.optional(2).is_some() { site.numbers(2)?.first().copied() } else { None };
        (site.integers(1)?, site.maybe_integers(3)?, value.unwrap_or(0.0))
    };
    let mode = site.node.word("mode", "constant")?;
    let mut options = vec![("pads", ints(&pads)), ("mode", Raw::Text(mode)), ("value", Raw::Number(value))];
    options.extend(axes.map(|axes| ("axes", ints(&axes))));
    if pads.iter().all(|&pad| pad == 0) {
        return Ok(x.into());
    }
    Ok(site.one("pad", &[x], &options)?.into())
}

fn gather(site: &mut Site) -> Rule {
    let (x, indices, axis) = (site.input(0)?, site.input(1)?, site.node.int("axis", 0)?);
    let op = if site.node.op == "Gather" { "gather" } else { "gatherElements" };
    Ok(site.one(op, &[x, indices], &[("axis", Raw::Number(axis as f64))])?.into())
}

/// The operand's elements as one axis of slices, and the number among them that each tuple of the last axis of `indices`
/// names. Tuples are of the axes from `batch` on; those before are the same in both.
fn flattened(
    site: &mut Site,
    x: &Operand,
    indices: &Operand,
    batch: usize,
) -> Rule<(Operand, Operand, Vec<usize>)> {
    let Some((&depth, outer)) = indices.dims().split_last() else {
        return Err(Error::ShapeMismatch("indices must have an axis of tuples".into()).into());
    };
    if batch + depth > x.rank() || outer.len() < batch || x.dims()[..batch] != outer[..batch] {
        let text = format!(
            "tuples of {depth} behind {batch} axes do not fit dims {:?} and {:?}",
            x.dims(),
            indices.dims()
        );
        return Err(Error::ShapeMismatch(text).into());
    }
    let (inner, slice) = (&x.dims()[batch..batch + depth], x.dims()[batch + depth..].to_vec());
    let count: usize = x.dims()[..batch + depth].iter().product();
    let indices = site.cast(indices, crate::DType::I64)?;
    let mut place: Option<Operand> = None;
    for (axis, &dim) in inner.iter().enumerate() {
        let (last, at) = (outer.len() as i64, axis as i64);
        let options = [("axes", ints(&[last])), ("starts", ints(&[at])), ("ends", ints(&[at + 1]))];
        let index = site.one("slice", std::slice::from_ref(&indices), &options)?.reshape(outer)?;
        let (zero, size) =
            (site.scalar(crate::DType::I64, 0.0)?, site.scalar(crate::DType::I64, dim as f64)?);
        let negative = site.one("less", &[index.clone(), zero], &[])?;
        let from_end = site.one("add", &[index.clone(), size.clone()], &[])?;
        let index = site.one("where", &[negative, from_end, index], &[])?;
        place = Some(match place {
            None => index,
            Some(before) => {
                let rows = site.one("mul", &[before, size], &[])?;
                site.one("add", &[rows, index], &[])?
            }
        });
    }
    let within: usize = inner.iter().product();
    let mut place = match place {
        Some(place) => place,
        None => site.list(&[0])?.reshape([])?,
    };
    if batch > 0 {
        let batches: i64 = x.dims()[..batch].iter().product::<usize>() as i64;
        let starts: Vec<i64> = (0..batches).map(|number| number * within as i64).collect();
        let mut dims = x.dims()[..batch].to_vec();
        dims.resize(outer.len(), 1);
        let starts = site.list(&starts)?.reshape(dims)?;
        place = site.one("add", &[place, starts], &[])?;
    }
    let place = expand_to(site, &place, &super::norm::signed(outer))?;
    let mut rows = vec![count];
    rows.extend(&slice);
    Ok((x.reshape(rows)?, place, slice))
}

fn gather_nd(site: &mut Site) -> Rule {
    let (x, indices, batch) = (site.input(0)?, site.input(1)?, site.node.int("batch_dims", 0)?);
    let (rows, place, _) = flattened(site, &x, &indices, batch.max(0) as usize)?;
    Ok(site.one("gather", &[rows, place], &[("axis", Raw::Number(0.0))])?.into())
}

fn scatter_elements(site: &mut Site) -> Rule {
    let operands = [site.input(0)?, site.input(1)?, site.input(2)?];
    let mut options = vec![("axis", Raw::Number(site.node.int("axis", 0)? as f64))];
    options.extend(reduction(site)?);
    Ok(site.one("scatterElements", &operands, &options)?.into())
}

/// A scatter along the one axis that the tuples' axes are together; each tuple's index stands for a whole slice.
fn scatter_nd(site: &mut Site) -> Rule {
    let (x, indices, updates) = (site.input(0)?, site.input(1)?, site.input(2)?);
    let (rows, place, slice) = flattened(site, &x, &indices, 0)?;
    let (tuples, size) = (place.meta().size(), slice.iter().product::<usize>());
    let place = place.reshape([tuples, 1])?;
    let place = expand_to(site, &place, &[tuples as i64, size as i64])?;
    let rows = rows.reshape([x.meta().size().checked_div(size).unwrap_or(0), size])?;
    let updates = updates.reshape([tuples, size])?;
    let mut options = vec![("axis", Raw::Number(0.0))];
    options.extend(reduction(site)?);
    Ok(site.one("scatterElements", &[rows, place, updates], &options)?.reshape(x.dims())?.into())
}

fn reduction(site: &Site) -> Result<Option<(&'static str, Raw)>> {
    let word = site.node.word("reduction", "none")?;
    Ok((word != "none").then_some(("reduction", Raw::Text(word))))
}

/// The operand under dims that it broadcasts to.
pub(super) fn expand_to(site: &mut Site, x: &Operand, dims: &[i64]) -> Result<Operand> {
    if let Some(dim) = dims.iter().find(|&&dim| dim < 0) {
        return Err(Error::InvalidModel(format!("dims must be 0 or more, got {dim}")));
    }
    let wanted: Vec<usize> = dims.iter().map(|&dim| dim as usize).collect();
    let result = broadcast("expand", x.dims(), &wanted)?;
    if result == x.dims() {
        return Ok(x.clone());
    }
    let shape: Vec<i64> = result.iter().map(|&dim| dim as i64).collect();
    site.one("expand", std::slice::from_ref(x), &[("shape", ints(&shape))])
}

fn expand(site: &mut Site) -> Rule {
    let (x, dims) = (site.input(0)?, site.integers(1)?);
    Ok(expand_to(site, &x, &dims)?.into())
}

fn tile(site: &mut Site) -> Rule {
    let (x, repeats) = (site.input(0)?, site.integers(1)?);
    Ok(site.one("tile", &[x], &[("repeats", ints(&repeats))])?.into())
}

/// x where a mask of the last two axes holds, 0 elsewhere.
fn trilu(site: &mut Site) -> Rule {
    let (x, upper) = (site.input(0)?, site.node.flag("upper", true)?);
    let k = if site.optional(1).is_some() { site.integer(1)? } else { 0 };
    let [.., rows, columns] = *x.dims() else {
        return Err(Error::ShapeMismatch(format!("a matrix is wanted, got dims {:?}", x.dims())).into());
    };
    let mut kept = vec![0u8; rows * columns];
    for (place, kept) in kept.iter_mut().enumerate() {
        let distance = (place % columns) as i128 - (place / columns) as i128 - i128::from(k);
        *kept = u8::from(if upper { distance >= 0 } else { distance <= 0 });
    }
    let mask = site.constant(crate::tensor::Tensor::from_slice(crate::DType::Bool, [rows, columns], &kept)?);
    let zero = site.scalar(x.dtype(), 0.0)?;
    Ok(site.one("where", &[mask, x, zero], &[])?.into())
}

fn running(site: &mut Site) -> Rule {
    let (x, axis) = (site.input(0)?, site.integer(1)?);
    let options = [
        ("axis", Raw::Number(axis as f64)),
        ("exclusive", Raw::Bool(site.node.flag("exclusive", false)?)),
        ("reverse", Raw::Bool(site.node.flag("reverse", false)?)),
    ];
    Ok(site.one(site.row.op, &[x], &options)?.into())
}

/// Batch, channels, height, width and the block's edge.
fn blocks(site: &Site, x: &Operand) -> Result<([usize; 4], usize)> {
    let block = site.node.int("blocksize", 0)?;
    match (x.dims(), usize::try_from(block)) {
        (&[n, c, h, w], Ok(block)) if block > 0 => Ok(([n, c, h, w], block)),
        (dims, _) => Err(Error::InvalidModel(format!("blocks of {block} do not fit dims {dims:?}"))),
    }
}

fn depth_to_space(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let ([n, c, h, w], block) = blocks(site, &x)?;
    let depth = c / (block * block);
    let (dims, perm) = if site.node.word("mode", "DCR")? == "DCR" {
        ([n, block, block, depth, h, w], [0, 3, 4, 1, 5, 2])
    } else {
        ([n, depth, block, block, h, w], [0, 1, 4, 2, 5, 3])
    };
    let moved = transposed(site, &x.reshape(dims)?, &perm)?;
    Ok(moved.reshape([n, depth, h * block, w * block])?.into())
}

fn space_to_depth(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let ([n, c, h, w], block) = blocks(site, &x)?;
    let cut = x.reshape([n, c, h / block, block, w / block, block])?;
    let moved = transposed(site, &cut, &[0, 3, 5, 1, 2, 4])?;
    Ok(moved.reshape([n, c * block * block, h / block, w / block])?.into())
}

fn top_k(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let k = if site.version() < 10 { site.node.int("k", 0)? } else { site.integer(1)? };
    let options = [
        ("k", Raw::Number(k as f64)),
        ("axis", Raw::Number(site.node.int("axis", -1)? as f64)),
        ("largest", Raw::Bool(site.node.flag("largest", true)?)),
        ("sorted", Raw::Bool(site.node.flag("sorted", true)?)),
    ];
    Ok(site.call("topK", &[x], &options)?.into())
}

/// `values[1]` where the new axis has the index, `values[0]` elsewhere: a comparison with 0 to depth - 1.
fn one_hot(site: &mut Site) -> Rule {
    let (indices, values) = (site.input(0)?, site.input(2)?);
    let depth = numbers(&site.value(1)?)?.first().map_or(0, |&depth| depth as i64);
    if depth < 0 {
        return Err(Error::InvalidModel(format!("depth must be 0 or more, got {depth}")).into());
    }
    let axis = normalize_axis("OneHot", site.node.int("axis", -1)?, indices.rank() + 1)?;
    let mut dims = indices.dims().to_vec();
    dims.insert(axis, 1);
    let indices = site.cast(&indices, crate::DType::I64)?.reshape(dims.clone())?;
    let (zero, length) =
        (site.scalar(crate::DType::I64, 0.0)?, site.scalar(crate::DType::I64, depth as f64)?);
    let negative = site.one("less", &[indices.clone(), zero], &[])?;
    let moved = site.one("add", &[indices.clone(), length], &[])?;
    let indices = site.one("where", &[negative, moved, indices], &[])?;
    let mut line = vec![1; dims.len()];
    line[axis] = depth as usize;
    let numbers = site.list(&(0..depth).collect::<Vec<_>>())?.reshape(line)?;
    let hot = site.one("equal", &[indices, numbers], &[])?;
    let off =
        site.one("slice", std::slice::from_ref(&values), &[("starts", ints(&[0])), ("ends", ints(&[1]))])?;
    let on = site.one("slice", &[values], &[("starts", ints(&[1])), ("ends", ints(&[2]))])?;
    Ok(Lowered::from(site.one("where", &[hot, on.reshape([])?, off.reshape([])?], &[])?))
}

/// Axes for operators that take them as an operand from version 13 or 18 on.
pub(super) fn reduced_axes(site: &Site, x: &Operand, last_attribute: i64) -> Rule<Option<Vec<i64>>> {
    let Some(given) = axes(site, 1, last_attribute)? else { return Ok(None) };
    positions(&given, x.rank())?;
    Ok(Some(given))
}
