//! Operators of signals: Fourier transforms, windows and mel filters.

use super::layout::transposed;
use super::{Operator, element_type, row, shared};
use crate::graph::host::{self, Transform};
use crate::graph::plan::{Operand, Rule, Site, ints};
use crate::ops::{Meta, Raw};
use crate::shape::normalize_axis;
use crate::tensor::Tensor;
use crate::{DType, Error, Result};
use std::f64::consts::PI;

pub const ROWS: &[Operator] = &[
    shared("DFT", "matmul", dft).on_host("where it is long"),
    shared("STFT", "matmul", stft).on_host("where frames are long"),
    row("HannWindow", hann),
    row("HammingWindow", hamming),
    row("BlackmanWindow", blackman),
    row("MelWeightMatrix", mel),
];

/// The axis is an attribute up to version 19, then an operand.
fn dft(site: &mut Site) -> Rule {
    let x = site.input(0)?;
    let axis = match site.version() < 20 {
        true => site.node.int("axis", 1)?,
        false if site.optional(2).is_some() => site.integer(2)?,
        false => -2,
    };
    let axis = normalize_axis("DFT", axis, x.rank())?;
    let length = match site.optional(1) {
        Some(_) => site.integer(1)?,
        None => x.dims()[axis] as i64,
    };
    let (inverse, onesided) = (site.node.flag("inverse", false)?, site.node.flag("onesided", false)?);
    Ok(transformed(site, &x, axis, length, inverse, onesided)?.into())
}

/// Frames of the signal times the window, transformed.
fn stft(site: &mut Site) -> Rule {
    let (x, step, window) = (site.input(0)?, site.integer(1)?, site.optional(2));
    let signal = match *x.dims() {
        [batch, length] => x.reshape([batch, length, 1])?,
        [_, _, 1 | 2] => x,
        _ => {
            return Err(Error::ShapeMismatch(format!(
                "a signal must have dims [n, length, 1 or 2], got {:?}",
                x.dims()
            ))
            .into());
        }
    };
    let (total, parts) = (signal.dims()[1] as i64, signal.dims()[2]);
    let length = match (site.optional(3), &window) {
        (Some(_), _) => site.integer(3)?,
        (None, Some(window)) => window.meta().size() as i64,
        (None, None) => total,
    };
    let taken = window.as_ref().map_or(length, |window| window.meta().size() as i64);
    if step < 1 || length < 1 || length > total || taken > length {
        let text = format!(
            "frames of {length} every {step} with a window of {taken} do not fit a signal of {total}"
        );
        return Err(Error::ShapeMismatch(text).into());
    }
    let frames = (total - length) / step + 1;
    let places: Vec<i64> =
        (0..frames).flat_map(|frame| (0..taken).map(move |at| frame * step + at)).collect();
    let places = site.list(&places)?.reshape([frames as usize, taken as usize])?;
    let mut cut = site.one("gather", &[signal, places], &[("axis", Raw::Number(1.0))])?;
    if let Some(window) = window {
        cut = site.one("mul", &[cut, window.reshape([taken as usize, 1])?], &[])?;
    }
    let onesided = site.node.flag("onesided", true)? && parts == 1;
    Ok(transformed(site, &cut, 2, length, false, onesided)?.into())
}

/// Elements of a matrix up to which a transform is a product by it.
const MOST: usize = 1 << 20;

/// The transform along an axis of numbers whose parts are the last axis.
fn transformed(
    site: &mut Site,
    x: &Operand,
    axis: usize,
    length: i64,
    inverse: bool,
    onesided: bool,
) -> Result<Operand> {
    let rank = x.rank();
    let (Some(&parts @ (1 | 2)), true, true) = (x.dims().last(), axis + 1 < rank, length > 0) else {
        return Err(Error::ShapeMismatch(format!(
            "axis {axis} of dims {:?} cannot be transformed with length {length}",
            x.dims()
        )));
    };
    if onesided && parts == 2 && !inverse {
        return Err(Error::InvalidModel("'onesided' needs a real signal, got a complex one".into()));
    }
    let length = length as usize;
    let how = Transform { length, inverse, bins: if onesided { length / 2 + 1 } else { length } };
    let wide = site.cast(x, x.dtype().arithmetic())?;
    let order: Vec<i64> =
        (0..rank as i64 - 1).filter(|&it| it != axis as i64).chain([axis as i64, rank as i64 - 1]).collect();
    let lines = transposed(site, &wide, &order)?;
    let (places, lead) = (x.dims()[axis], lines.dims()[..rank - 2].to_vec());
    let rows = lines.reshape([lead.iter().product(), places, parts])?;
    let used = places.min(length);
    let results = if used.saturating_mul(parts * 2).saturating_mul(how.bins) <= MOST {
        product(site, rows, used, how)?
    } else {
        let output = Meta::new(wide.dtype(), [rows.dims()[0], how.bins, 2]);
        let form = move |inputs: &[Option<Tensor>]| host::transform(inputs, how, &output);
        let outputs = vec![Meta::new(wide.dtype(), [rows.dims()[0], how.bins, 2])];
        site.host("dft", &[rows], outputs, form)?.swap_remove(0)
    };
    let mut back = vec![0; rank];
    order.iter().enumerate().for_each(|(place, &axis)| back[axis as usize] = place as i64);
    let results = transposed(site, &results.reshape([lead, vec![how.bins, 2]].concat())?, &back)?;
    site.cast(&results, x.dtype())
}

/// The transform of rows `[lines, places, parts]` as a product by a matrix.
fn product(site: &mut Site, rows: Operand, used: usize, how: Transform) -> Result<Operand> {
    let (lines, parts) = (rows.dims()[0], rows.dims()[2]);
    let cut = [("axes", ints(&[1])), ("starts", ints(&[0])), ("ends", ints(&[used as i64]))];
    let rows = if used < rows.dims()[1] { site.one("slice", &[rows], &cut)? } else { rows };
    let matrix = site.constant(matrix(used, parts, how)?);
    let matrix = site.cast(&matrix, rows.dtype())?;
    let results = site.one("matmul", &[rows.reshape([lines, used * parts])?, matrix], &[])?;
    results.reshape([lines, how.bins, 2])
}

/// Rows of places and parts, columns of bins and parts.
fn matrix(used: usize, parts: usize, how: Transform) -> Result<Tensor> {
    let (sign, scale) = if how.inverse { (1.0, 1.0 / how.length as f64) } else { (-1.0, 1.0) };
    let unit = |turns: usize| {
        let angle = 2.0 * PI * turns as f64 / how.length as f64;
        (angle.cos() * scale, sign * angle.sin() * scale)
    };
    let units: Vec<(f64, f64)> = (0..how.length).map(unit).collect();
    let mut values = Vec::with_capacity(used * parts * how.bins * 2);
    for place in 0..used {
        for part in 0..parts {
            for bin in 0..how.bins {
                let (re, im) = units[place * bin % how.length];
                values.extend(if part == 0 { [re, im] } else { [-im, re] });
            }
        }
    }
    Tensor::from_slice(DType::F64, [used * parts, how.bins * 2], &values)
}

fn hann(site: &mut Site) -> Rule {
    window(site, [0.5, 0.5, 0.0])
}

fn hamming(site: &mut Site) -> Rule {
    window(site, [25.0 / 46.0, 21.0 / 46.0, 0.0])
}

fn blackman(site: &mut Site) -> Rule {
    window(site, [0.42, 0.5, 0.08])
}

/// a - b cos(t) + c cos(2t) over one turn, which the last element ends unless the window is periodic.
fn window(site: &mut Site, [a, b, c]: [f64; 3]) -> Rule {
    let size = count("size", site.integer(0)?)?;
    let turn = if site.node.flag("periodic", true)? { size as f64 } else { size as f64 - 1.0 };
    let value = |index: usize| match 2.0 * PI * index as f64 / turn {
        angle if angle.is_nan() => 1.0,
        angle => a - b * angle.cos() + c * (2.0 * angle).cos(),
    };
    let values: Vec<f64> = (0..size).map(value).collect();
    typed(site, Tensor::from_slice(DType::F64, [size], &values)?)
}

/// A size that is not absurd.
fn count(name: &str, value: i64) -> Result<usize> {
    match usize::try_from(value) {
        Ok(count) if count <= 1 << 30 => Ok(count),
        _ => Err(Error::InvalidModel(format!("{name} must lie in 0 to 2^30, got {value}"))),
    }
}

fn typed(site: &mut Site, values: Tensor) -> Rule {
    let dtype = element_type(site.node.int("output_datatype", 1)?)?;
    let values = site.constant(values);
    Ok(site.cast(&values, dtype)?.into())
}

/// Triangles between neighbouring points that lie evenly on the mel scale.
fn mel(site: &mut Site) -> Rule {
    let (bands, length) = (count("num_mel_bins", site.integer(0)?)?, count("dft_length", site.integer(1)?)?);
    let rate = site.integer(2)? as f64;
    let mut edges = [0.0; 2];
    for (edge, index) in edges.iter_mut().zip(3..) {
        let hertz = site.numbers(index)?.first().copied().unwrap_or(f64::NAN);
        *edge = 2595.0 * (1.0 + hertz / 700.0).log10();
    }
    let step = (edges[1] - edges[0]) / (bands + 2) as f64;
    let point = |index: usize| {
        let hertz = 700.0 * (10f64.powf((edges[0] + index as f64 * step) / 2595.0) - 1.0);
        ((length + 1) as f64 * hertz / rate).floor()
    };
    let points: Vec<i64> = (0..bands + 2).map(|index| point(index) as i64).collect();
    let bins = length / 2 + 1;
    crate::shape::element_count("MelWeightMatrix", &[bins, bands])?;
    let mut values = vec![0.0; bins * bands];
    for (band, points) in points.windows(3).enumerate() {
        let [low, centre, high] = [points[0], points[1], points[2]];
        for bin in low.max(0)..=high.min(bins as i64 - 1) {
            let rising = (bin - low) as f64 / (centre - low) as f64;
            let falling = (high - bin) as f64 / (high - centre) as f64;
            let value = if bin == centre {
                1.0
            } else if bin < centre {
                rising
            } else {
                falling
            };
            values[bin as usize * bands + band] = value;
        }
    }
    typed(site, Tensor::from_slice(DType::F64, [bins, bands], &values)?)
}
