//! The launches of a plan.

use super::super::super::activation::Activation;
use super::super::super::matmul::{Each, EachJob};
use super::super::super::planes;
use super::super::{Problem, Setting};
use super::{Plan, Side};
use crate::Result;
use crate::driver::{DevicePtr, TensorMap};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::ops::Call;
use crate::tensor::DeviceView;

type Prepared<'a> = planes::Prepared<'a, Side>;

/// Addresses of operands and result.
#[derive(Debug, Clone, Copy)]
pub struct Pointers {
    pub x: DevicePtr,
    pub w: DevicePtr,
    pub bias: DevicePtr,
    pub y: DevicePtr,
}

/// Enqueues the convolution. `false` when this device lacks the memory or the driver the tensor maps that it takes.
pub fn run(
    plan: &Plan,
    launcher: &Launcher,
    setting: &Setting,
    at: Pointers,
    views: &[DeviceView; 2],
    parameters: [Arg; 2],
) -> Result<bool> {
    let sides = [&plan.x, &plan.w];
    let forms = planes::forms(launcher, sides, views);
    let Some(sides) = planes::prepare(launcher, sides, [at.x, at.w], &forms)? else { return Ok(false) };
    let Some(maps) = maps(plan, launcher, &sides)? else { return Ok(false) };
    let copied = copy(plan, launcher, setting, &sides, at)?;
    planes::keep(launcher, &sides, views);
    let words = plan.words(setting);
    let mut arguments = maps.each_ref().map(|map| Arg::Block(map.words())).to_vec();
    arguments.extend([at.bias, at.y].map(Arg::Ptr));
    arguments.extend(parameters);
    arguments.push(Arg::Block(&words));
    let blocks = plan.tiles().min(launcher.multiprocessors() as usize);
    let grid = grid_x(blocks as u64, 384, plan.tile.shared())?;
    // Slow copies of many blocks are slowed further by blocks that wait beside them: 21 us instead of 16 at 14 x 14.
    let crowded =
        copied && !plan.copies_eights(setting) && plan.x.blocks > launcher.multiprocessors() as usize;
    let grid = if copied && !crowded { grid.early() } else { grid };
    launcher.launch(&format!("conv_{}_{}", plan.dtype.suffix(), plan.tile.name), grid, &arguments)?;
    Ok(true)
}

/// Enqueues the convolution as products of the weights by each image; `false` where their route does not take it.
pub fn run_product(
    call: &Call,
    launcher: &Launcher,
    problem: &Problem,
    [x, w]: &[DeviceView; 2],
    at: Pointers,
) -> Result<bool> {
    let product = Each::Right {
        rows: problem.group_out,
        terms: problem.group_in,
        columns: problem.windows(),
        count: problem.images,
    };
    let activation = Activation::new(&call.attrs);
    let job = EachJob::new(launcher, product, [*w, *x], at.bias, at.y, activation, call.precision);
    job.map_or(Ok(false), |job| job.run_half())
}

/// The maps of both sides; `None` where the driver makes none.
fn maps(plan: &Plan, launcher: &Launcher, [x, w]: &[Prepared; 2]) -> Result<Option<[TensorMap; 2]>> {
    let context = launcher.core().context();
    let (images, weights) = (plan.images(x.at.planes), plan.weights(w.at.planes));
    let x = TensorMap::images(context, &images, plan.tile.pixels as u32)?;
    let w = TensorMap::halves(context, weights, plan.tile.filters as u32)?;
    Ok(x.zip(w).map(|(x, w)| [x, w]))
}

/// Enqueues the making of the copies that are not there; whether there were such.
fn copy(
    plan: &Plan,
    launcher: &Launcher,
    setting: &Setting,
    [x, w]: &[Prepared; 2],
    at: Pointers,
) -> Result<bool> {
    let blocks = [x, w].map(|side| if side.made { side.side.blocks } else { 0 });
    if blocks == [0, 0] {
        return Ok(false);
    }
    let words = plan.copies_words(blocks[0], setting);
    let pointers = [at.x, x.at.planes, at.w, w.at.planes];
    let arguments = [&pointers.map(Arg::Ptr)[..], &[Arg::Block(&words)]].concat();
    launcher.launch(plan.copying(), grid_x((blocks[0] + blocks[1]) as u64, 256, 0)?, &arguments)?;
    Ok(true)
}
