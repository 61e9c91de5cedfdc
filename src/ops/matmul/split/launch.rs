//! The launches of a plan.

use super::super::super::planes::{self, Planes};
use super::super::Product;
use super::{Plan, Side};
use crate::Result;
use crate::driver::{DevicePtr, Halves, TensorMap};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::tensor::{DeviceView, Form};

type Prepared<'a> = planes::Prepared<'a, Side>;

/// Addresses of a product's operands and result.
#[derive(Debug, Clone, Copy)]
pub struct Pointers {
    pub a: DevicePtr,
    pub b: DevicePtr,
    pub c: DevicePtr,
    pub bias: DevicePtr,
    pub d: DevicePtr,
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
    let sides = [&plan.a, &plan.b];
    let Some(sides) = planes::prepare(launcher, sides, [at.a, at.b], forms)? else { return Ok(false) };
    let maps = match plan.tile.maps.then(|| maps(launcher, plan, &sides)).transpose()? {
        Some(None) => return Ok(false),
        maps => maps.flatten(),
    };
    let split = split(launcher, plan, &sides)?;
    planes::keep(launcher, &sides, views);
    let [a, b] = &sides;
    let words = plan.words(product, activation, [a.at.epoch, b.at.epoch]);
    let exponents = [a.at.scales, b.at.scales, a.at.range, b.at.range];
    let pointers = [&exponents[..], &[at.a, at.b, at.c, at.bias, at.d]].concat();
    let mut arguments = match &maps {
        Some([a, b]) => vec![Arg::Block(a.words()), Arg::Block(b.words())],
        None => [a, b].map(|side| Arg::Ptr(side.at.planes)).into(),
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
    let map = |prepared: &Prepared, box_rows: usize| {
        let side = prepared.side;
        let halves = Halves {
            ptr: prepared.at.planes,
            columns: side.k,
            rows: side.rows,
            matrices: 2 * side.walk.count,
            pitch: side.plane_pitch(),
        };
        TensorMap::halves(launcher.core().context(), halves, box_rows as u32)
    };
    Ok(map(a, plan.tile.rows)?.zip(map(b, plan.tile.columns)?).map(|(a, b)| [a, b]))
}

/// Enqueues the making of the planes that are not there; whether there were such.
fn split(launcher: &Launcher, plan: &Plan, sides: &[Prepared; 2]) -> Result<bool> {
    let made = || sides.iter().filter(|side| side.made);
    let cluster = made().map(|side| side.side.cluster(&plan.card)).max().unwrap_or(1);
    let blocks = [0, 1].map(|i: usize| if sides[i].made { sides[i].side.blocks(cluster) } else { 0 });
    if blocks == [0, 0] {
        return Ok(false);
    }
    let mut arguments: Vec<Arg> = sides.iter().flat_map(Prepared::arguments).collect();
    let words = [0, 1].map(|i| sides[i].side.words(blocks[i], cluster, sides[i].at.epoch)).concat();
    arguments.push(Arg::Block(&words));
    let kernel = if made().all(|side| side.side.vectors) { "split_f32" } else { "split_f32_unaligned" };
    let grid = grid_x((blocks[0] + blocks[1]) as u64, 256, 0)?.clustered(cluster as u32);
    launcher.launch(kernel, grid, &arguments)?;
    Ok(true)
}
