//! What the kernels of rows take: addresses and numbers in device memory, and how many blocks share the columns.

use crate::Result;
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Launcher, linear};
use crate::tensor::DeviceBuffer;

/// Blocks that keep a multiprocessor busy.
const BLOCKS: u64 = 8;
/// Columns that are worth a block of their own.
const LEAST_COLUMNS: u64 = 4096;

/// Addresses of rows, null for those that are `bad`.
pub fn addresses(launcher: &Launcher, pointers: &[DevicePtr], bad: &[bool]) -> Result<DeviceBuffer> {
    let address = |(pointer, &bad): (&DevicePtr, &bool)| if bad { 0 } else { pointer.0 };
    let words: Vec<u64> = pointers.iter().zip(bad).map(address).collect();
    launcher.scratch_of(bytemuck::cast_slice(&words))
}

/// Pieces that the columns are cut into where each piece takes `units` blocks.
pub fn pieces(launcher: &Launcher, units: u64, columns: u64) -> u64 {
    let wanted = (u64::from(launcher.multiprocessors()) * BLOCKS).div_ceil(units.max(1));
    wanted.clamp(1, columns.div_ceil(LEAST_COLUMNS).max(1))
}

/// Sums of float64 that chunks add to.
pub struct Totals {
    memory: DeviceBuffer,
    size: usize,
}

impl Totals {
    /// So many zeros.
    pub fn new(launcher: &Launcher, size: usize) -> Result<Totals> {
        let memory = launcher.scratch((size * 8).max(8))?;
        launcher.core().stream().fill(memory.ptr(), 0, size * 8)?;
        Ok(Totals { memory, size })
    }

    /// Runs `launch`, which writes so many pieces of partial sums where it is told, and adds these.
    pub fn add(
        &self,
        launcher: &Launcher,
        pieces: u64,
        launch: impl FnOnce(DevicePtr) -> Result<()>,
    ) -> Result<()> {
        let parts = launcher.scratch((self.size * 8).max(8) * pieces as usize)?;
        launch(parts.ptr())?;
        let size = self.size as u64;
        let arguments =
            [Arg::Ptr(parts.ptr()), Arg::Ptr(self.memory.ptr()), Arg::U64(size), Arg::U32(pieces as u32)];
        launcher.launch("rows_total_f64", linear(size, 256, 1)?, &arguments)
    }

    /// The sums on the host. Waits for them.
    pub fn read(&self, launcher: &Launcher) -> Result<Vec<f64>> {
        let mut values = vec![0.0f64; self.size];
        launcher.core().read(self.memory.ptr(), bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }
}
