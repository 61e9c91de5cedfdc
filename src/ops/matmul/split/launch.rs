//! The launches of a plan.

use super::super::Product;
use super::super::cuda::Chain;
use super::{Plan, ROWS, Side};
use crate::driver::{DevicePtr, Halves, TensorMap};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::tensor::DeviceBuffer;
use crate::{Error, Result};

/// Bytes of an operand's range.
const RANGE: u64 = 24;

/// Addresses of a product's operands and result.
#[derive(Debug, Clone, Copy)]
pub struct Pointers {
    pub a: DevicePtr,
    pub b: DevicePtr,
    pub c: DevicePtr,
    pub bias: DevicePtr,
    pub d: DevicePtr,
}

/// What the first launches make of an operand.
struct Prepared {
    planes: DeviceBuffer,
    /// Exponents of all rows, then the largest of chunks.
    rows: DeviceBuffer,
    map: TensorMap,
}

impl Prepared {
    /// `None` where the driver makes no tensor maps.
    fn new(launcher: &Launcher, side: &Side, box_rows: usize) -> Result<Option<Prepared>> {
        let matrices = 2 * side.walk.count;
        let planes = launcher.scratch(2 * matrices * side.rows * side.plane_pitch())?;
        let chunks = if side.turned { side.chunks() } else { 0 };
        let rows = launcher.scratch(4 * side.all_rows() * (1 + chunks))?;
        let halves = Halves {
            ptr: planes.ptr(),
            columns: side.k,
            rows: side.rows,
            matrices,
            pitch: side.plane_pitch(),
        };
        let map = TensorMap::halves(launcher.core().context(), halves, box_rows as u32)?;
        Ok(map.map(|map| Prepared { planes, rows, map }))
    }

    fn arguments(&self, side: &Side, operand: DevicePtr, range: DevicePtr) -> [Arg<'static>; 5] {
        let partial = self.rows.ptr().offset(4 * side.all_rows() as u64);
        [operand, self.planes.ptr(), self.rows.ptr(), partial, range].map(Arg::Ptr)
    }
}

/// Enqueues the product. `false` when this device lacks the memory or the driver the tensor maps that it takes.
pub fn run(
    plan: &Plan,
    launcher: &Launcher,
    product: &Product,
    at: Pointers,
    activation: u32,
    factors: [Arg; 4],
    chain: &Chain,
) -> Result<bool> {
    let sides = (|| -> Result<_> {
        let a = Prepared::new(launcher, &plan.a, ROWS)?;
        Ok(a.zip(Prepared::new(launcher, &plan.b, plan.tile.columns)?))
    })();
    let (a, b) = match sides {
        Ok(Some(sides)) => sides,
        Ok(None) | Err(Error::OutOfMemory(_) | Error::MemoryLimit(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    let (range_a, epoch) = launcher.raised_words()?;
    let range_b = range_a.offset(RANGE);
    let operands = [a.arguments(&plan.a, at.a, range_a), b.arguments(&plan.b, at.b, range_b)].concat();
    for (index, kernel) in ["split_f32_first", "split_f32_second"].into_iter().enumerate() {
        let (blocks_a, blocks_b) = (plan.a.blocks()[index], plan.b.blocks()[index]);
        if blocks_a + blocks_b == 0 {
            continue;
        }
        let words = [plan.a.words(blocks_a, epoch), plan.b.words(blocks_b, epoch)].concat();
        let arguments = [&operands[..], &[Arg::Block(&words)]].concat();
        launcher.launch(kernel, grid_x((blocks_a + blocks_b) as u64, 256, 0)?, &arguments)?;
    }
    let words = plan.words(product, activation, epoch);
    let results = [a.rows.ptr(), b.rows.ptr(), range_a, range_b, at.c, at.bias, at.d].map(Arg::Ptr);
    let tail = [&results[..], &factors, &[Arg::Block(&words)]].concat();
    let most = launcher.multiprocessors() as usize;
    let maps = [Arg::Block(a.map.words()), Arg::Block(b.map.words())];
    let main = grid_x(plan.tiles(plan.tile.columns).min(most) as u64, 384, plan.shared())?;
    launcher.launch(&format!("matmul_f32_{}", plan.tile.name), main, &[&maps[..], &tail].concat())?;
    let operands = [at.a, at.b, at.c, at.bias, at.d].map(Arg::Ptr);
    let ranges = [Arg::Block(&chain.words), Arg::Ptr(range_a), Arg::Ptr(range_b), Arg::Block(&words)];
    let arguments = [&operands[..], &factors, &ranges].concat();
    let blocks = chain.blocks.min(3 * most as u64);
    launcher.launch("matmul_f32_chain", grid_x(blocks, chain.threads, 0)?, &arguments)?;
    Ok(true)
}
