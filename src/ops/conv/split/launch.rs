//! The launches of a plan.

use super::super::super::planes::{self, Planes};
use super::super::Setting;
use super::{Plan, Side};
use crate::Result;
use crate::driver::{DevicePtr, TensorMap};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::tensor::{DeviceView, Form};

type Prepared<'a> = planes::Prepared<'a, Side>;

/// Addresses of operands and result.
#[derive(Debug, Clone, Copy)]
pub struct Pointers {
    pub x: DevicePtr,
    pub w: DevicePtr,
    pub bias: DevicePtr,
    pub y: DevicePtr,
}

/// The maps of both sides; `None` where the driver makes none.
fn maps(plan: &Plan, launcher: &Launcher, [x, w]: &[Prepared; 2]) -> Result<Option<[TensorMap; 2]>> {
    let context = launcher.core().context();
    let (images, weights) = (plan.images(x.planes.ptr()), plan.weights(w.planes.ptr()));
    let x = TensorMap::images(context, &images, plan.tile.pixels as u32)?;
    let w = TensorMap::halves(context, weights, plan.tile.filters as u32)?;
    Ok(x.zip(w).map(|(x, w)| [x, w]))
}

/// Enqueues the convolution. `false` when this device lacks the memory or the driver the tensor maps that it takes.
pub fn run(
    plan: &Plan,
    launcher: &Launcher,
    setting: &Setting,
    at: Pointers,
    (views, forms): (&[DeviceView; 2], &[Form<Planes>; 2]),
    parameters: [Arg; 2],
) -> Result<bool> {
    let sides = [&plan.x, &plan.w];
    let Some(sides) = planes::prepare(launcher, sides, [at.x, at.w], forms)? else { return Ok(false) };
    let Some(maps) = maps(plan, launcher, &sides)? else { return Ok(false) };
    let epochs = sides.each_ref().map(|side| side.planes.epoch());
    let split = split(plan, launcher, &sides, epochs)?;
    planes::keep(&sides, views);
    let [x, w] = &sides;
    let words = plan.words(setting, epochs);
    let mut arguments = maps.each_ref().map(|map| Arg::Block(map.words())).to_vec();
    let pointers =
        [x.planes.scales(), w.planes.scales(), x.planes.range(), w.planes.range(), at.x, at.w, at.bias, at.y];
    arguments.extend(pointers.map(Arg::Ptr));
    arguments.extend(parameters);
    arguments.push(Arg::Block(&words));
    let blocks = plan.tiles().min(launcher.multiprocessors() as usize);
    let grid = grid_x(blocks as u64, plan.tile.threads(), plan.tile.shared())?;
    let grid = if split { grid.early() } else { grid };
    launcher.launch(&format!("conv_f32_{}", plan.tile.name), grid, &arguments)?;
    Ok(true)
}

/// Enqueues the making of the planes that are not there; whether there were such.
fn split(plan: &Plan, launcher: &Launcher, sides: &[Prepared; 2], epochs: [u32; 2]) -> Result<bool> {
    let blocks = sides.each_ref().map(|side| if side.made { side.side.blocks } else { 0 });
    if blocks == [0, 0] {
        return Ok(false);
    }
    let words = plan.planes_words(blocks[0], epochs);
    let mut arguments: Vec<Arg> = sides.iter().flat_map(Prepared::arguments).collect();
    arguments.push(Arg::Block(&words));
    launcher.launch(plan.splitting(), grid_x((blocks[0] + blocks[1]) as u64, 256, 0)?, &arguments)?;
    Ok(true)
}
