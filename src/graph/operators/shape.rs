//! Operators of dims: results that are known once dims are, and other dims for the same elements.

use super::{Operator, row};
use crate::graph::plan::{Operand, Rule, Site};
use crate::shape::normalize_axis;
use crate::tensor::Tensor;
use crate::{DType, Error, Result};

pub const ROWS: &[Operator] = &[
    row("Shape", shape),
    row("Size", size),
    row("Reshape", reshape),
    row("Flatten", flatten),
    row("Squeeze", squeeze),
    row("Unsqueeze", unsqueeze),
    row("ConstantOfShape", constant_of_shape),
    row("Range", range),
    row("EyeLike", eye_like),
];

fn shape(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let rank = x.rank() as i64;
    let bound = |value: i64| (if value < 0 { value + rank } else { value }).clamp(0, rank) as usize;
    let (start, end) = (bound(site.node.int("start", 0)?), bound(site.node.int("end", rank)?));
    let dims: Vec<i64> = x.dims()[start.min(end)..end].iter().map(|&dim| dim as i64).collect();
    Ok(site.list(&dims)?.into())
}

fn size(site: &mut Site) -> Rule {
    let count = site.input(0)?.meta().size() as i64;
    Ok(site.constant(Tensor::from_slice(DType::I64, [], &[count])?).into())
}

/// 0 keeps a dim unless `allowzero`, -1 is what remains.
fn reshape(site: &mut Site) -> Rule {
    let (x, wanted) = (site.input(0)?, site.integers(1)?);
    let keeps = !site.node.flag("allowzero", false)?;
    let mut dims = Vec::with_capacity(wanted.len());
    for (axis, &dim) in wanted.iter().enumerate() {
        dims.push(match dim {
            -1 => 1,
            0 if keeps => match x.dims().get(axis) {
                Some(&dim) => dim,
                None => return unfit(&x, &wanted),
            },
            dim => match usize::try_from(dim) {
                Ok(dim) => dim,
                Err(_) => return unfit(&x, &wanted),
            },
        });
    }
    let free: Vec<usize> = (0..wanted.len()).filter(|&axis| wanted[axis] == -1).collect();
    let known = crate::shape::element_count("reshape", &dims)?;
    match free[..] {
        [] => {}
        [axis] if known > 0 && x.meta().size().is_multiple_of(known) => dims[axis] = x.meta().size() / known,
        _ => return unfit(&x, &wanted),
    }
    if crate::shape::element_count("reshape", &dims)? != x.meta().size() {
        return unfit(&x, &wanted);
    }
    Ok(x.reshape(dims)?.into())
}

fn unfit<T>(x: &Operand, wanted: &[i64]) -> Rule<T> {
    let text = format!("dims {:?} cannot become {wanted:?}", x.dims());
    Err(Error::ShapeMismatch(text).into())
}

fn flatten(site: &mut Site) -> Rule {
    let (x, axis) = (site.input(0)?, site.node.int("axis", 1)?);
    let rank = x.rank() as i64;
    if axis < -rank || axis > rank {
        return Err(Error::InvalidModel(format!("axis must lie in [-{rank}, {rank}], got {axis}")).into());
    }
    let axis = (if axis < 0 { axis + rank } else { axis }) as usize;
    let count = |dims: &[usize]| dims.iter().product::<usize>();
    let dims = [count(&x.dims()[..axis]), count(&x.dims()[axis..])];
    Ok(x.reshape(dims)?.into())
}

/// Axes as an attribute up to version 12, then as an operand.
pub(super) fn axes(site: &Site, operand: usize, last_attribute: i64) -> Rule<Option<Vec<i64>>> {
    if site.version() <= last_attribute { Ok(site.node.ints("axes")?) } else { site.maybe_integers(operand) }
}

/// Axes as positions within a rank, each once.
pub(super) fn positions(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut seen = Vec::with_capacity(axes.len());
    for &axis in axes {
        let axis = normalize_axis("axes", axis, rank)?;
        if seen.contains(&axis) {
            return Err(Error::InvalidModel(format!("axis {axis} is given twice")));
        }
        seen.push(axis);
    }
    Ok(seen)
}

fn squeeze(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let gone = match axes(site, 1, 12)? {
        Some(axes) => positions(&axes, x.rank())?,
        None => (0..x.rank()).filter(|&axis| x.dims()[axis] == 1).collect(),
    };
    if let Some(axis) = gone.iter().find(|&&axis| x.dims()[axis] != 1) {
        return Err(Error::ShapeMismatch(format!("axis {axis} of dims {:?} is not 1", x.dims())).into());
    }
    let kept = x.dims().iter().enumerate().filter(|(axis, _)| !gone.contains(axis));
    let dims: Vec<usize> = kept.map(|(_, &dim)| dim).collect();
    Ok(x.reshape(dims)?.into())
}

fn unsqueeze(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let axes = axes(site, 1, 12)?.unwrap_or_default();
    let rank = x.rank() + axes.len();
    let new = positions(&axes, rank)?;
    let mut old = x.dims().iter();
    let dims: Vec<usize> = (0..rank)
        .map(|axis| if new.contains(&axis) { 1 } else { old.next().copied().unwrap_or(1) })
        .collect();
    Ok(x.reshape(dims)?.into())
}

fn constant_of_shape(site: &mut Site) -> Rule {
    let dims = site.integers(0)?;
    let value = match site.node.tensor("value")? {
        Some(value) if value.meta().size() == 1 => value,
        Some(value) => {
            return Err(Error::InvalidModel(format!(
                "'value' must hold one element, got {}",
                value.meta().size()
            ))
            .into());
        }
        None => Tensor::from_slice(DType::F32, [], &[0f32])?,
    };
    let value = site.constant(value.reshape([])?);
    Ok(super::layout::expand_to(site, &value, &dims)?.into())
}

/// From `start` in steps of `delta` up to but not including `limit`.
fn range(site: &mut Site) -> Rule {
    let dtype = site.input(0)?.dtype();
    let result = if super::elementwise::is_float(dtype) {
        let at = |index| {
            Ok::<f64, crate::graph::plan::Stop>(site.numbers(index)?.first().copied().unwrap_or(f64::NAN))
        };
        let (start, limit, delta) = (at(0)?, at(1)?, at(2)?);
        let count = steps(((limit - start) / delta).ceil())?;
        let values: Vec<f64> = (0..count).map(|index| start + index as f64 * delta).collect();
        Tensor::from_slice(DType::F64, [count], &values)?
    } else {
        let (start, limit, delta) = (site.integer(0)?, site.integer(1)?, site.integer(2)?);
        let span = i128::from(limit) - i128::from(start);
        let count = steps(if delta == 0 { f64::NAN } else { (span as f64 / delta as f64).ceil() })?;
        let values: Vec<i64> =
            (0..count as i64).map(|index| start.wrapping_add(index.wrapping_mul(delta))).collect();
        Tensor::from_slice(DType::I64, [count], &values)?
    };
    let result = site.constant(result);
    Ok(site.cast(&result, dtype)?.into())
}

fn steps(count: f64) -> Result<usize> {
    match count {
        count if count.is_nan() || count > (1u64 << 34) as f64 => {
            Err(Error::InvalidModel(format!("the range has {count} elements")))
        }
        count => Ok(count.max(0.0) as usize),
    }
}

/// Ones on a diagonal.
fn eye_like(site: &mut Site) -> Rule {
    let (x, shift) = (site.input(0)?, site.node.int("k", 0)?);
    let [rows, columns] = x.dims() else {
        return Err(Error::ShapeMismatch(format!("a matrix is wanted, got dims {:?}", x.dims())).into());
    };
    let dtype = match site.node.maybe_int("dtype")? {
        Some(number) => match crate::DTYPES.iter().find(|row| i64::from(row.onnx) == number) {
            Some(row) => row.dtype,
            None => {
                return Err(Error::UnsupportedDtype(format!("element type {number} is not supported")).into());
            }
        },
        None => x.dtype(),
    };
    let mut values = vec![0u8; rows * columns];
    for row in 0..*rows {
        if let Ok(column) = usize::try_from(row as i64 + shift)
            && column < *columns
        {
            values[row * columns + column] = 1;
        }
    }
    let eye = site.constant(Tensor::from_slice(DType::U8, [*rows, *columns], &values)?);
    Ok(site.cast(&eye, dtype)?.into())
}
