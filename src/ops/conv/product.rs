//! Pointwise convolutions of one group, which are matrix products.

use super::Problem;
use crate::Result;
use crate::kernels::Launcher;
use crate::ops::Call;
use crate::ops::activation::Activation;
use crate::ops::matmul::{Each, EachJob};
use crate::ops::operands::{device_optional, device_view};
use crate::tensor::DeviceView;

/// The filters times the pixels of each image; images of one pixel times the filters.
fn each(problem: &Problem) -> Option<Each> {
    let Problem { images, group_in: terms, group_out: filters, groups, .. } = *problem;
    if groups != 1 || terms == 0 || !problem.is_pointwise() {
        return None;
    }
    Some(match problem.windows() {
        1 => Each::Rows { rows: images, terms, columns: filters },
        columns => Each::Right { rows: filters, terms, columns, count: images },
    })
}

/// The product that a convolution of float32 or float64 is, if it is one.
pub fn product<'a>(
    call: &Call,
    launcher: &'a Launcher,
    problem: &Problem,
    inputs: &[Option<DeviceView<'a>>],
    output: &DeviceView,
) -> Result<Option<EachJob<'a>>> {
    let Some(each) = each(problem) else { return Ok(None) };
    let (x, w) = (device_view(call, inputs, 0)?, device_view(call, inputs, 1)?);
    let views = match each {
        Each::Right { .. } => [w, x],
        Each::Rows { .. } => [x, w],
    };
    let activation = Activation::new(&call.attrs);
    let bias = device_optional(inputs, 2);
    Ok(EachJob::new(launcher, each, views, bias, output.ptr, activation, call.precision))
}
