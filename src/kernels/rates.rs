//! What a multiprocessor multiplies in a clock, measured once a device. The choice between plain and tensor cores depends
//! on it, and no list of models says it: of two cards of one generation, one sums float16 products in float32 at half rate.

use super::launcher::{Arg, Launcher, grid_x};
use crate::Result;

/// Multiply-adds of one multiprocessor in a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Of float32 on the plain cores.
    pub plain: f64,
    /// Of float16 with float32 sums by mma.sync.
    pub tensor: f64,
}

const THREADS: u32 = 256;
/// Instructions of a warp whose clocks kernels/rates.cu gives.
const INSTRUCTIONS: f64 = 64.0;
/// Multiply-adds of an instruction on plain cores and on tensor cores, 16 by 8 by 16.
const EACH: [f64; 2] = [32.0, 2048.0];
/// Share of a chip's rate that is measured at least.
const MEASURED: f64 = 0.96;

impl Rates {
    /// Those of compute capability 9.0.
    pub const HOPPER: Rates = Rates { plain: 128.0, tensor: 1280.0 };

    /// Runs kernels/rates.cu after all work submitted so far, and waits for it.
    pub fn measure(launcher: &Launcher) -> Result<Rates> {
        let clocks = launcher.scratch(12)?;
        let arguments = [Arg::Ptr(clocks.ptr()), Arg::F32(0.5), Arg::F32(0.25)];
        launcher.launch("rates_f32", grid_x(1, THREADS, 0)?, &arguments)?;
        let mut words = [0u32; 2];
        launcher.core().read(clocks.ptr(), bytemuck::cast_slice_mut(&mut words))?;
        let [plain, tensor] = [0, 1].map(|index| rate(EACH[index], words[index]));
        Ok(Rates { plain, tensor })
    }
}

/// Rounded to three bits, so that measuring again gives the same routes and with them the same bits of results: chips do
/// a power of two or little else.
fn rate(each: f64, clocks: u32) -> f64 {
    let measured = f64::from(THREADS / 32) * INSTRUCTIONS * each / f64::from(clocks.max(1));
    let most = measured / MEASURED;
    let step = most.log2().floor().exp2() / 4.0;
    (most / step).floor() * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_to_rates() {
        // An H200 by its own measure.
        assert_eq!([129, 131, 133].map(|clocks| rate(EACH[0], clocks)), [128.0; 3]);
        assert_eq!([745, 792].map(|clocks| rate(EACH[1], clocks)), [1280.0; 2]);
        assert_eq!([1024, 1060].map(|clocks| rate(EACH[1], clocks)), [1024.0; 2]);
        assert!(rate(EACH[0], 0).is_finite());
    }
}
