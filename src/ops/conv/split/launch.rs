//! The launches of a plan.

use super::super::Setting;
use super::{Plan, Side};
use crate::driver::{DevicePtr, TensorMap};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::tensor::{DeviceBuffer, DeviceView, Form};
use crate::{Error, Result};
use std::sync::Arc;

/// Bytes of an operand's range.
const RANGE: usize = 24;
/// What lies beside the planes begins at multiples of this.
const ALIGNMENT: usize = 256;

/// Addresses of operands and result.
#[derive(Debug, Clone, Copy)]
pub struct Pointers {
    pub x: DevicePtr,
    pub w: DevicePtr,
    pub bias: DevicePtr,
    pub y: DevicePtr,
}

/// An operand as the multiplying kernels read it: planes, scales and range, on the device.
pub struct Planes {
    memory: DeviceBuffer,
    scales: DevicePtr,
    range: DevicePtr,
    epoch: u32,
}

impl Planes {
    /// Memory for them. Planes that a tensor keeps have a range of their own, the others one of the launcher's.
    fn new(launcher: &Launcher, side: &Side, passing: Option<(DevicePtr, u32)>) -> Result<Planes> {
        let planes = (2 * side.planes() * side.plane).next_multiple_of(ALIGNMENT);
        let scales = (4 * side.scales).next_multiple_of(ALIGNMENT);
        let memory = launcher.scratch(planes + scales + if passing.is_some() { 0 } else { RANGE })?;
        let at = |offset: usize| memory.ptr().offset(offset as u64);
        let (range, epoch) = passing.unwrap_or((at(planes + scales), 1));
        if passing.is_none() {
            launcher.core().stream().fill(range, 0, RANGE)?;
        }
        Ok(Planes { scales: at(planes), range, epoch, memory })
    }

    fn arguments(&self, operand: DevicePtr) -> [Arg<'static>; 4] {
        [operand, self.memory.ptr(), self.scales, self.range].map(Arg::Ptr)
    }
}

/// One side of a call: its planes, and whether this call makes them and the tensor then keeps them.
struct Prepared<'a> {
    side: &'a Side,
    planes: Arc<Planes>,
    made: bool,
    wanted: bool,
}

impl<'a> Prepared<'a> {
    fn new(
        launcher: &Launcher,
        side: &'a Side,
        form: &Form<Planes>,
        passing: (DevicePtr, u32),
    ) -> Result<Prepared<'a>> {
        let (planes, made, wanted) = match form {
            Form::Kept(planes) => (planes.clone(), false, false),
            Form::Wanted => (Arc::new(Planes::new(launcher, side, None)?), true, true),
            Form::Passing => (Arc::new(Planes::new(launcher, side, Some(passing))?), true, false),
        };
        Ok(Prepared { side, planes, made, wanted })
    }

    fn blocks(&self) -> usize {
        if self.made { self.side.blocks } else { 0 }
    }
}

/// The maps of both sides; `None` where the driver makes none.
fn maps(plan: &Plan, launcher: &Launcher, [x, w]: &[Prepared; 2]) -> Result<Option<[TensorMap; 2]>> {
    let context = launcher.core().context();
    let (images, weights) = (plan.images(x.planes.memory.ptr()), plan.weights(w.planes.memory.ptr()));
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
    let (range, epoch) = launcher.raised_words()?;
    let prepared = (|| -> Result<_> {
        let x = Prepared::new(launcher, &plan.x, &forms[0], (range, epoch))?;
        let w = Prepared::new(launcher, &plan.w, &forms[1], (range.offset(RANGE as u64), epoch))?;
        let sides = [x, w];
        Ok(maps(plan, launcher, &sides)?.map(|maps| (sides, maps)))
    })();
    let (sides, maps) = match prepared {
        Ok(Some(prepared)) => prepared,
        Ok(None) | Err(Error::OutOfMemory(_) | Error::MemoryLimit(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    let epochs = [sides[0].planes.epoch, sides[1].planes.epoch];
    let split = split(plan, launcher, at, &sides)?;
    for (side, view) in sides.iter().zip(views).filter(|(side, _)| side.wanted) {
        view.keep_form(side.side.key, side.planes.clone(), side.planes.memory.size() as u64);
    }
    let [x, w] = &sides;
    let words = plan.words(setting, epochs);
    let mut arguments = maps.each_ref().map(|map| Arg::Block(map.words())).to_vec();
    let pointers =
        [x.planes.scales, w.planes.scales, x.planes.range, w.planes.range, at.x, at.w, at.bias, at.y];
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
fn split(plan: &Plan, launcher: &Launcher, at: Pointers, [x, w]: &[Prepared; 2]) -> Result<bool> {
    let blocks = [x.blocks(), w.blocks()];
    if blocks == [0, 0] {
        return Ok(false);
    }
    let words = plan.planes_words(blocks[0], [x.planes.epoch, w.planes.epoch]);
    let mut arguments = [x.planes.arguments(at.x), w.planes.arguments(at.w)].concat();
    arguments.push(Arg::Block(&words));
    launcher.launch(plan.splitting(), grid_x((blocks[0] + blocks[1]) as u64, 256, 0)?, &arguments)?;
    Ok(true)
}
