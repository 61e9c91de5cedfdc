//! The launches of a plan.

use super::super::super::planes::{self, Located, Planes};
use super::super::Setting;
use super::Plan;
use crate::Result;
use crate::driver::{DevicePtr, TensorMap};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::tensor::{DeviceView, Form};

/// Addresses of operands and result; null is what there is not. Without x the input exists as planes alone, without y the
/// result does.
#[derive(Debug, Clone, Copy)]
pub struct Pointers {
    pub x: DevicePtr,
    pub w: DevicePtr,
    pub bias: DevicePtr,
    pub y: DevicePtr,
}

/// Planes that a convolution reads and writes. The residual, added before the activation, and the result have the same form.
#[derive(Clone, Copy)]
pub struct Through {
    pub x: Located,
    pub w: Located,
    pub residual: Option<Located>,
    pub y: Option<Located>,
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
    let [x, w] = sides.each_ref().map(|side| side.at);
    let Some(maps) = maps(plan, launcher, x.planes, w.planes)? else { return Ok(false) };
    let blocks = sides.each_ref().map(|side| if side.made { side.side.blocks } else { 0 });
    let made = split(plan, launcher, [x, w], at, blocks)?;
    planes::keep(launcher, &sides, views);
    let through = Through { x, w, residual: None, y: None };
    multiply(plan, launcher, setting, (at, through), &maps, parameters, made)?;
    Ok(true)
}

/// The maps of input and weights; `None` where the driver makes none.
pub fn maps(plan: &Plan, launcher: &Launcher, x: DevicePtr, w: DevicePtr) -> Result<Option<[TensorMap; 2]>> {
    let context = launcher.core().context();
    let x = TensorMap::images(context, &plan.images(x), plan.tile.pixels as u32)?;
    let w = TensorMap::halves(context, plan.weights(w), plan.tile.filters as u32)?;
    Ok(x.zip(w).map(|(x, w)| [x, w]))
}

/// Enqueues the making of planes by that many blocks for each side; whether there are such.
pub fn split(
    plan: &Plan,
    launcher: &Launcher,
    [x, w]: [Located; 2],
    at: Pointers,
    blocks: [usize; 2],
) -> Result<bool> {
    if blocks == [0, 0] {
        return Ok(false);
    }
    let words = plan.planes_words(blocks[0], [x.epoch, w.epoch]);
    let mut arguments = [x.arguments(at.x), w.arguments(at.w)].concat();
    arguments.push(Arg::Block(&words));
    launcher.launch(plan.splitting(), grid_x((blocks[0] + blocks[1]) as u64, 256, 0)?, &arguments)?;
    Ok(true)
}

/// Enqueues the product; `early` lets it begin before the launch ahead of it has ended.
pub fn multiply(
    plan: &Plan,
    launcher: &Launcher,
    setting: &Setting,
    (at, through): (Pointers, Through),
    maps: &[TensorMap; 2],
    parameters: [Arg; 2],
    early: bool,
) -> Result<()> {
    const ABSENT: Located =
        Located { planes: DevicePtr::NULL, scales: DevicePtr::NULL, range: DevicePtr::NULL, epoch: 0 };
    let Through { x, w, .. } = through;
    let [residual, y] = [through.residual, through.y].map(|located| located.unwrap_or(ABSENT));
    let words = plan.words(setting, [x.epoch, w.epoch, y.epoch]);
    let mut arguments = maps.each_ref().map(|map| Arg::Block(map.words())).to_vec();
    arguments.extend([x.scales, w.scales, x.range, w.range, at.x, at.w, at.bias, at.y].map(Arg::Ptr));
    arguments.extend(parameters);
    let planes = [x.planes, residual.planes, residual.scales, y.planes, y.scales, y.range];
    arguments.extend(planes.map(Arg::Ptr));
    arguments.push(Arg::Block(&words));
    let grid = grid_x(plan.blocks(setting) as u64, plan.tile.threads(), plan.tile.shared())?;
    let grid = if early { grid.early() } else { grid };
    let grid = if plan.ranks > 1 { grid.clustered(plan.ranks as u32) } else { grid };
    launcher.launch(&format!("conv_f32_{}", plan.tile.name), grid, &arguments)
}
