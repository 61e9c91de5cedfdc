//! Operators of images: grids, regions, windows and columns.

use super::conv::check_kernel;
use super::norm::signed;
use super::{Operator, row, shared};
use crate::graph::host::{self, Fold, Regions, Window};
use crate::graph::plan::{Operand, Rule, Site, ints};
use crate::ops::{Meta, Raw};
use crate::tensor::Tensor;
use crate::{DType, Error, Result};

pub const ROWS: &[Operator] = &[
    shared("AffineGrid", "matmul", affine_grid),
    shared("CenterCropPad", "pad", center),
    row("Col2Im", columns_to_image).on_host(""),
    shared("DeformConv", "matmul", deform_conv).on_host(""),
    shared("MaxUnpool", "scatterElements", unpool),
    row("RoiAlign", regions).on_host(""),
];

/// Places of an image's pixels between -1 and 1, with a 1 behind them, times the transposed matrices.
fn affine_grid(site: &mut Site) -> Rule {
    let (theta, size) = (site.input(0)?, site.integers(1)?);
    let corners = site.node.flag("align_corners", false)?;
    let image = dims_of("size", size.get(2..).unwrap_or_default())?;
    let axes = image.len();
    let count = theta.dims().first().copied().unwrap_or(0);
    if !(2..=3).contains(&axes) || theta.dims() != [count, axes, axes + 1] || size[0] != count as i64 {
        let text = format!("matrices with dims {:?} do not fit size {size:?}", theta.dims());
        return Err(Error::ShapeMismatch(text).into());
    }
    let pixels = crate::shape::element_count("AffineGrid", &image)?;
    let strides = crate::shape::strides_of(&image);
    let mut places = Vec::with_capacity(pixels * (axes + 1));
    for pixel in 0..pixels {
        // x comes first.
        for axis in (0..axes).rev() {
            let (dim, at) = (image[axis] as f64, (pixel / strides[axis] % image[axis]) as f64);
            places.push(match (corners, dim == 1.0) {
                (_, true) => 0.0,
                (true, _) => 2.0 * at / (dim - 1.0) - 1.0,
                (false, _) => (2.0 * at + 1.0) / dim - 1.0,
            });
        }
        places.push(1.0);
    }
    let places = site.constant(Tensor::from_slice(DType::F64, [1, pixels, axes + 1], &places)?);
    let wide = site.cast(&theta, theta.dtype().arithmetic())?;
    let places = site.cast(&places, wide.dtype())?;
    let grid = site.one("matmul", &[places, wide], &[("transB", Raw::Bool(true))])?;
    let grid = grid.reshape([&[count], &image[..], &[axes]].concat())?;
    Ok(site.cast(&grid, theta.dtype())?.into())
}

fn dims_of(name: &str, values: &[i64]) -> Result<Vec<usize>> {
    let dim = |&value: &i64| {
        usize::try_from(value)
            .map_err(|_| Error::InvalidModel(format!("{name} must be 0 or more, got {values:?}")))
    };
    values.iter().map(dim).collect()
}

/// Cut about the middle where an axis is too long, zeros around it where it is too short.
fn center(site: &mut Site) -> Rule {
    let (x, wanted) = (site.input(0)?, dims_of("shape", &site.integers(1)?)?);
    let axes = match site.node.ints("axes")? {
        Some(axes) => super::shape::positions(&axes, x.rank())?,
        None => (0..x.rank()).collect(),
    };
    if axes.len() != wanted.len() {
        let text = format!("shape {wanted:?} does not fit axes {axes:?}");
        return Err(Error::ShapeMismatch(text).into());
    }
    let (mut starts, mut ends, mut pads) = (Vec::new(), Vec::new(), Vec::new());
    for (&axis, &wanted) in axes.iter().zip(&wanted) {
        let dim = x.dims()[axis];
        let (start, before) = (dim.saturating_sub(wanted) / 2, wanted.saturating_sub(dim) / 2);
        starts.push(start);
        ends.push(start + wanted.min(dim));
        pads.push((before, wanted.saturating_sub(dim) - before));
    }
    let axes = ("axes", ints(&signed(&axes)));
    let cut = [axes.clone(), ("starts", ints(&signed(&starts))), ("ends", ints(&signed(&ends)))];
    let result = site.one("slice", &[x], &cut)?;
    if pads.iter().all(|&pad| pad == (0, 0)) {
        return Ok(result.into());
    }
    let (before, behind): (Vec<usize>, Vec<usize>) = pads.into_iter().unzip();
    let pads = ("pads", ints(&signed(&[before, behind].concat())));
    Ok(site.one("pad", &[result], &[axes, pads])?.into())
}

/// Windows of an image, from attributes.
pub(super) struct Spatial {
    /// Elements of a window.
    pub kernel: Vec<usize>,
    /// Steps between windows.
    pub strides: Vec<usize>,
    /// Steps between elements.
    pub dilations: Vec<usize>,
    /// Padding before each axis.
    pub before: Vec<usize>,
    /// Padding behind each axis.
    pub behind: Vec<usize>,
}

impl Spatial {
    /// Reads `strides`, `dilations` and `pads` for windows of that size.
    pub fn new(site: &Site, kernel: Vec<usize>) -> Result<Spatial> {
        let axes = kernel.len();
        let list = |name: &str, count: usize, least: i64| {
            let values = site.node.ints(name)?.unwrap_or_else(|| vec![least; count]);
            if values.len() == count && values.iter().all(|&value| (least..1 << 31).contains(&value)) {
                return Ok(values.into_iter().map(|value| value as usize).collect::<Vec<_>>());
            }
            Err(Error::InvalidModel(format!(
                "'{name}' must hold {count} numbers from {least} on, got {values:?}"
            )))
        };
        let pads = list("pads", 2 * axes, 0)?;
        if kernel.contains(&0) {
            return Err(Error::InvalidModel(format!("a window must have elements, got {kernel:?}")));
        }
        Ok(Spatial {
            kernel,
            strides: list("strides", axes, 1)?,
            dilations: list("dilations", axes, 1)?,
            before: pads[..axes].to_vec(),
            behind: pads[axes..].to_vec(),
        })
    }

    /// Elements that a window spans along an axis.
    pub fn span(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1) * self.dilations[axis] + 1
    }

    /// The windows of an image of those dims.
    fn windows(&self, image: &[usize]) -> Result<Window> {
        let count = |axis: usize| {
            let padded = self.before[axis] + image[axis] + self.behind[axis];
            Some(padded.checked_sub(self.span(axis))? / self.strides[axis] + 1)
        };
        let counts = (0..image.len()).map(count).collect::<Option<Vec<_>>>();
        let too_large = || {
            Error::ShapeMismatch(format!(
                "windows of {:?} do not fit the padded image {image:?}",
                self.kernel
            ))
        };
        Ok(Window {
            kernel: self.kernel.clone(),
            strides: self.strides.clone(),
            before: self.before.clone(),
            dilations: self.dilations.clone(),
            counts: counts.ok_or_else(too_large)?,
        })
    }
}

fn columns_to_image(site: &mut Site) -> Rule {
    let (x, image) = (site.input(0)?, dims_of("image_shape", &site.integers(1)?)?);
    let kernel = dims_of("block_shape", &site.integers(2)?)?;
    let (axes, elements) = (kernel.len(), crate::shape::element_count("block_shape", &kernel)?);
    let unfit = || {
        let text = format!("columns with dims {:?} do not fit an image {image:?} and blocks", x.dims());
        Error::ShapeMismatch(format!("{text} {kernel:?}"))
    };
    let (&[n, rows, columns], true) = (x.dims(), axes == image.len()) else { return Err(unfit().into()) };
    let window = Spatial::new(site, kernel.clone())?.windows(&image)?;
    if rows % elements != 0 || columns != window.counts.iter().product::<usize>() {
        return Err(unfit().into());
    }
    let output = Meta::new(x.dtype(), [&[n, rows / elements], &image[..]].concat());
    let (how, meta) = (Fold { window, image }, output.clone());
    Ok(site.host("col2im", &[x], vec![output], move |inputs| host::fold(inputs, &how, &meta))?.into())
}

/// Columns of what each element of the kernel meets, by a form on the host, then a product of matrices.
fn deform_conv(site: &mut Site) -> Rule {
    let (x, w, offsets) = (site.input(0)?, site.input(1)?, site.input(2)?);
    let (bias, mask) = (site.optional(3), site.optional(4));
    check_kernel(site, &w)?;
    let (group, offset_group) = (site.node.int("group", 1)?, site.node.int("offset_group", 1)?);
    let unfit = |what: &str, operand: &Operand| {
        let text = format!("{what} with dims {:?} do not fit the image {:?}", operand.dims(), x.dims());
        Error::ShapeMismatch(text)
    };
    let parts =
        |count: i64, of: usize| usize::try_from(count).ok().filter(|it| *it > 0 && of.is_multiple_of(*it));
    let ([n, channels, image @ ..], [filters, depth, kernel @ ..]) = (x.dims(), w.dims()) else {
        return Err(unfit("weights", &w).into());
    };
    let (n, channels, filters) = (*n, *channels, *filters);
    let (Some(group), Some(offset_group)) =
        (parts(group, channels).filter(|it| filters.is_multiple_of(*it)), parts(offset_group, channels))
    else {
        return Err(unfit("groups of weights", &w).into());
    };
    if image.len() != kernel.len() || !(1..=4).contains(&image.len()) || depth * group != channels {
        return Err(unfit("weights", &w).into());
    }
    let window = Spatial::new(site, kernel.to_vec())?.windows(image)?;
    let (elements, windows): (usize, usize) = (kernel.iter().product(), window.counts.iter().product());
    let counts = window.counts.clone();
    let wanted = |factor: usize| [&[n, offset_group * elements * factor], &counts[..]].concat();
    if offsets.dims() != wanted(image.len()) {
        return Err(unfit("offsets", &offsets).into());
    }
    if let Some(other) =
        [Some(&offsets), mask.as_ref()].into_iter().flatten().find(|it| it.dtype() != x.dtype())
    {
        let text = format!("offsets and masks must be {} as the image is, got {}", x.dtype(), other.dtype());
        return Err(Error::UnsupportedDtype(text).into());
    }
    let mut operands = vec![x.clone(), offsets];
    if let Some(mask) = mask {
        if mask.dims() != wanted(1) {
            return Err(unfit("masks", &mask).into());
        }
        operands.push(mask);
    }
    let meta = Meta::new(x.dtype(), [n, channels * elements, windows]);
    let output = meta.clone();
    let form = move |inputs: &[Option<Tensor>]| host::deform_columns(inputs, &window, offset_group, &meta);
    let columns = site.host("deformColumns", &operands, vec![output], form)?.swap_remove(0);
    let columns = columns.reshape([n, group, depth * elements, windows])?;
    let weights = w.reshape([group, filters / group, depth * elements])?;
    let mut y = site.one("matmul", &[weights, columns], &[])?;
    if let Some(bias) = bias {
        let bias = bias.reshape([group, filters / group, 1])?;
        y = site.one("add", &[y, bias], &[])?;
    }
    Ok(y.reshape([&[n, filters], &counts[..]].concat())?.into())
}

/// Elements put where indices of the flat result say, zeros elsewhere.
fn unpool(site: &mut Site) -> Rule {
    let (x, indices) = (site.input(0)?, site.input(1)?);
    let kernel = dims_of("kernel_shape", &site.node.ints("kernel_shape")?.unwrap_or_default())?;
    if x.dims() != indices.dims() || x.rank() != kernel.len() + 2 {
        let text =
            format!("indices {:?} and a window {kernel:?} do not fit dims {:?}", indices.dims(), x.dims());
        return Err(Error::ShapeMismatch(text).into());
    }
    let spatial = Spatial::new(site, kernel)?;
    let inferred = |axis: usize| {
        let span = x.dims()[axis + 2].saturating_sub(1) * spatial.strides[axis] + spatial.kernel[axis];
        span.saturating_sub(spatial.before[axis] + spatial.behind[axis])
    };
    let dims = match site.optional(2) {
        Some(_) => dims_of("output_shape", &site.integers(2)?)?,
        None => [&x.dims()[..2], &(0..spatial.kernel.len()).map(inferred).collect::<Vec<_>>()].concat(),
    };
    if dims.len() != x.rank() || dims[..2] != x.dims()[..2] {
        let text = format!("output_shape {dims:?} does not fit dims {:?}", x.dims());
        return Err(Error::ShapeMismatch(text).into());
    }
    let (count, total) = (x.meta().size(), crate::shape::element_count("output_shape", &dims)?);
    let zero = site.scalar(x.dtype(), 0.0)?;
    let zeros = super::layout::expand_to(site, &zero, &[total as i64])?;
    let operands = [zeros, indices.reshape([count])?, x.reshape([count])?];
    Ok(site.one("scatterElements", &operands, &[])?.reshape(dims)?.into())
}

/// Pixels lie at halves by default from version 16 on.
fn regions(site: &mut Site) -> Rule {
    let (x, rois, images) = (site.input(0)?, site.input(1)?, site.input(2)?);
    let (&[_, channels, _, _], &[count, 4]) = (x.dims(), rois.dims()) else {
        let text = format!("regions with dims {:?} do not fit images {:?}", rois.dims(), x.dims());
        return Err(Error::ShapeMismatch(text).into());
    };
    if images.dims() != [count] {
        let text = format!("batch_indices must have dims [{count}], got {:?}", images.dims());
        return Err(Error::ShapeMismatch(text).into());
    }
    let size = |name: &str| match site.node.int(name, 1)? {
        value @ 1..=0x10000 => Ok(value as usize),
        value => Err(Error::InvalidModel(format!("'{name}' must lie in 1 to 65536, got {value}"))),
    };
    let mode = site.node.word("mode", "avg")?;
    let places = site.node.word("coordinate_transformation_mode", "half_pixel")?;
    let samples = site.node.int("sampling_ratio", 0)?;
    let known = ["avg", "max"].contains(&mode.as_str())
        && ["half_pixel", "output_half_pixel"].contains(&places.as_str());
    if !known || !(0..=1024).contains(&samples) {
        let text = format!("mode '{mode}', places '{places}' and {samples} samples are not supported");
        return Err(Error::UnsupportedOp(text).into());
    }
    let how = Regions {
        max: mode == "max",
        half_pixel: site.version() >= 16 && places == "half_pixel",
        samples: samples as usize,
        scale: site.node.float("spatial_scale", 1.0)?,
    };
    let output = Meta::new(x.dtype(), [count, channels, size("output_height")?, size("output_width")?]);
    let meta = output.clone();
    let form = move |inputs: &[Option<Tensor>]| host::roi_align(inputs, how, &meta);
    Ok(site.host("roiAlign", &[x, rois, images], vec![output], form)?.into())
}
