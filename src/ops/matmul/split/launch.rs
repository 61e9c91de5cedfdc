//! The launches of a plan.

use super::super::Product;
use super::{Plan, Side};
use crate::driver::{DevicePtr, Halves, TensorMap};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::tensor::{DeviceBuffer, DeviceView, Form};
use crate::{Error, Result};
use std::sync::Arc;

/// Bytes of an operand's range.
const RANGE: usize = 24;
/// What lies beside the planes begins at multiples of this.
const ALIGNMENT: usize = 256;

/// Addresses of a product's operands and result.
#[derive(Debug, Clone, Copy)]
pub struct Pointers {
    pub a: DevicePtr,
    pub b: DevicePtr,
    pub c: DevicePtr,
    pub bias: DevicePtr,
    pub d: DevicePtr,
}

/// An operand as the multiplying kernels read it: planes, exponents and range, on the device.
pub struct Planes {
    memory: DeviceBuffer,
    exponents: DevicePtr,
    range: DevicePtr,
    epoch: u32,
}

impl Planes {
    /// Memory for them. Planes that a tensor keeps have a range of their own, the others one of the launcher's.
    fn new(launcher: &Launcher, side: &Side, passing: Option<(DevicePtr, u32)>) -> Result<Planes> {
        let planes = side.planes_size().next_multiple_of(ALIGNMENT);
        let exponents = (4 * side.all_rows()).next_multiple_of(ALIGNMENT);
        let memory = launcher.scratch(planes + exponents + if passing.is_some() { 0 } else { RANGE })?;
        let at = |offset: usize| memory.ptr().offset(offset as u64);
        let (range, epoch) = passing.unwrap_or((at(planes + exponents), 1));
        if passing.is_none() {
            launcher.core().stream().fill(range, 0, RANGE)?;
        }
        Ok(Planes { exponents: at(planes), range, epoch, memory })
    }

    /// `None` where the driver makes no tensor maps.
    fn map(&self, launcher: &Launcher, side: &Side, box_rows: usize) -> Result<Option<TensorMap>> {
        let halves = Halves {
            ptr: self.memory.ptr(),
            columns: side.k,
            rows: side.rows,
            matrices: 2 * side.walk.count,
            pitch: side.plane_pitch(),
        };
        TensorMap::halves(launcher.core().context(), halves, box_rows as u32)
    }

    fn arguments(&self, operand: DevicePtr) -> [Arg<'static>; 4] {
        [operand, self.memory.ptr(), self.exponents, self.range].map(Arg::Ptr)
    }
}

/// One side of a call: its planes, and whether this call makes them and the tensor then keeps them.
struct Prepared<'a> {
    side: &'a Side,
    operand: DevicePtr,
    planes: Arc<Planes>,
    made: bool,
    wanted: bool,
}

impl<'a> Prepared<'a> {
    fn new(
        launcher: &Launcher,
        side: &'a Side,
        operand: DevicePtr,
        form: &Form<Planes>,
        passing: (DevicePtr, u32),
    ) -> Result<Prepared<'a>> {
        let (planes, made, wanted) = match form {
            Form::Kept(planes) => (planes.clone(), false, false),
            Form::Wanted => (Arc::new(Planes::new(launcher, side, None)?), true, true),
            Form::Passing => (Arc::new(Planes::new(launcher, side, Some(passing))?), true, false),
        };
        Ok(Prepared { side, operand, planes, made, wanted })
    }

    fn blocks(&self, cluster: usize) -> usize {
        if self.made { self.side.blocks(cluster) } else { 0 }
    }
}

/// Enqueues the product. `false` when this device lacks the memory or the driver the tensor maps that it takes.
pub fn run(
    plan: &Plan,
    launcher: &Launcher,
    product: &Product,
    at: Pointers,
    (views, forms): (&[DeviceView; 2], &[Form<Planes>; 2]),
    activation: u32,
    factors: [Arg; 4],
) -> Result<bool> {
    let (range, epoch) = launcher.raised_words()?;
    let prepare = |index: usize, side, operand| {
        let range = range.offset((index * RANGE) as u64);
        Prepared::new(launcher, side, operand, &forms[index], (range, epoch))
    };
    let sides = (|| -> Result<_> {
        let sides = [prepare(0, &plan.a, at.a)?, prepare(1, &plan.b, at.b)?];
        let maps = if plan.tile.maps { Some(maps(launcher, plan, &sides)?) } else { None };
        Ok((sides, maps))
    })();
    let (sides, maps) = match sides {
        Ok((_, Some(None))) | Err(Error::OutOfMemory(_) | Error::MemoryLimit(_)) => return Ok(false),
        Ok((sides, maps)) => (sides, maps.flatten()),
        Err(error) => return Err(error),
    };
    let split = split(launcher, plan, &sides)?;
    for (side, view) in sides.iter().zip(views).filter(|(side, _)| side.wanted) {
        view.keep_form(side.side.key(), side.planes.clone(), side.planes.memory.size() as u64);
    }
    let [a, b] = &sides;
    let words = plan.words(product, activation, [a.planes.epoch, b.planes.epoch]);
    let exponents = [a.planes.exponents, b.planes.exponents, a.planes.range, b.planes.range];
    let pointers = [&exponents[..], &[at.a, at.b, at.c, at.bias, at.d]].concat();
    let mut arguments = match &maps {
        Some([a, b]) => vec![Arg::Block(a.words()), Arg::Block(b.words())],
        None => [a, b].map(|side| Arg::Ptr(side.planes.memory.ptr())).into(),
    };
    arguments.extend(pointers.into_iter().map(Arg::Ptr));
    arguments.extend(factors);
    arguments.push(Arg::Block(&words));
    let grid = grid_x(plan.blocks() as u64, plan.tile.threads, plan.shared as u32)?;
    let grid = if split && plan.tile.maps { grid.early() } else { grid };
    launcher.launch(&format!("matmul_f32_{}", plan.tile.name), grid, &arguments)?;
    Ok(true)
}

/// How the copy engine reads the planes; `None` where the driver makes no such maps.
fn maps(launcher: &Launcher, plan: &Plan, [a, b]: &[Prepared; 2]) -> Result<Option<[TensorMap; 2]>> {
    let a = a.planes.map(launcher, a.side, plan.tile.rows)?;
    let b = b.planes.map(launcher, b.side, plan.tile.columns)?;
    Ok(a.zip(b).map(|(a, b)| [a, b]))
}

/// Enqueues the making of the planes that are not there; whether there were such.
fn split(launcher: &Launcher, plan: &Plan, sides: &[Prepared; 2]) -> Result<bool> {
    let made = || sides.iter().filter(|side| side.made);
    let cluster = made().map(|side| side.side.cluster(&plan.card)).max().unwrap_or(1);
    let blocks = [sides[0].blocks(cluster), sides[1].blocks(cluster)];
    if blocks == [0, 0] {
        return Ok(false);
    }
    let mut arguments: Vec<Arg> = sides.iter().flat_map(|side| side.planes.arguments(side.operand)).collect();
    let words = [0, 1].map(|i| sides[i].side.words(blocks[i], cluster, sides[i].planes.epoch)).concat();
    arguments.push(Arg::Block(&words));
    let kernel = if made().all(|side| side.side.vectors) { "split_f32" } else { "split_f32_unaligned" };
    let grid = grid_x((blocks[0] + blocks[1]) as u64, 256, 0)?.clustered(cluster as u32);
    launcher.launch(kernel, grid, &arguments)?;
    Ok(true)
}
