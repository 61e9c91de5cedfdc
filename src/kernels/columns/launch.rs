//! Launches of column statistics: networks in registers for few rows, selection beyond.

use super::{Centre, Even, NanPolicy, Plan, Statistic, columns_ptx, largest, recipe};
use crate::driver::DevicePtr;
use crate::kernels::{Arg, Generated, Launcher, Parameter, grid_x, linear};
use crate::tensor::DeviceBuffer;
use crate::{DType, Result};

/// Static shared memory of the tile kernels and what the driver keeps, rounded up.
const TILE_RESERVE: usize = 12 * 1024;
/// The same with sums over the warps and a second board.
const COLUMNS_RESERVE: usize = 24 * 1024;

/// Where rows are in device memory.
#[derive(Clone, Copy)]
pub enum At<'a> {
    /// The first one and the number of elements from one to the next.
    Strided(DevicePtr, u64),
    /// At those addresses.
    Listed(&'a [DevicePtr]),
}

/// Columns of rows, and where a value for each of them goes.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    /// The rows.
    pub at: At<'a>,
    /// Number of rows, at least one.
    pub n: usize,
    /// Number of columns.
    pub d: u64,
    /// Type of the rows and of the result.
    pub dtype: DType,
    /// The result.
    pub out: DevicePtr,
}

impl Columns<'_> {
    /// Enqueues a statistic.
    pub fn launch(&self, launcher: &Launcher, statistic: Statistic, nan: NanPolicy) -> Result<()> {
        if self.d == 0 {
            return Ok(());
        }
        let sorted = !matches!(statistic, Statistic::Median(_));
        if self.n > largest(self.dtype) || (sorted && nan == NanPolicy::Omit) {
            return match statistic {
                Statistic::Median(even) => self.select(launcher, even, nan),
                Statistic::Trimmed(cut) => self.trimmed(launcher, cut, None, nan),
                Statistic::Nearest { centre, leave } => self.nearest(launcher, centre, (leave, 0), nan),
            };
        }
        let listed = matches!(self.at, At::Listed(_));
        let plan = Plan { n: self.n, dtype: self.dtype, statistic, nan, listed };
        let chosen = recipe(plan);
        let words: Vec<u32>;
        let mut arguments = match self.at {
            At::Strided(first, stride) => vec![Arg::Ptr(first), Arg::U64(stride)],
            At::Listed(rows) => {
                words = rows.iter().flat_map(|row| [row.0 as u32, (row.0 >> 32) as u32]).collect();
                vec![Arg::Block(&words)]
            }
        };
        let mut parameters = match self.at {
            At::Strided(..) => vec![Parameter::Word64; 2],
            At::Listed(rows) => vec![Parameter::Block(rows.len() * 8)],
        };
        arguments.extend([Arg::Ptr(self.out), Arg::U64(self.d), Arg::U32(1)]);
        parameters.extend([Parameter::Word64, Parameter::Word64, Parameter::Word32]);
        let make = || {
            let kernel = columns_ptx(plan);
            Ok(Generated { ptx: kernel.ptx, entry: kernel.entry, parameters })
        };
        let grid = linear(self.d, chosen.block as u32, chosen.coords_per_thread as u32)?;
        launcher.launch_generated(&plan.name(), make, grid, &arguments)
    }

    fn select(&self, launcher: &Launcher, even: Even, nan: NanPolicy) -> Result<()> {
        let (form, threads, shared) = form(self.n, self.dtype, shared_memory(launcher));
        let kernel = format!("median_{}_{form}", self.dtype.suffix());
        let (_table, mut arguments) = self.arguments(launcher)?;
        arguments.extend([Arg::U32(even as u32), nan_word(nan)]);
        launcher.launch(&kernel, grid_x(self.d.div_ceil(32), threads, shared)?, &arguments)
    }

    /// The mean without `cut` values at each end, or without that share of those that count.
    pub fn trimmed(&self, launcher: &Launcher, cut: usize, share: Option<f64>, nan: NanPolicy) -> Result<()> {
        self.columns(launcher, "trimmed", nan, &[Arg::U32(cut as u32), Arg::F64(share.unwrap_or(-1.0))])
    }

    /// The mean of all but so many values, those nearest to a centre; NaN for columns with fewer than so many.
    pub fn nearest(
        &self,
        launcher: &Launcher,
        centre: Centre,
        (leave, least): (usize, usize),
        nan: NanPolicy,
    ) -> Result<()> {
        let (word, cut) = match centre {
            Centre::Median(even) => (even as u32, 0),
            Centre::Trimmed(cut) => (3, cut as u32),
        };
        let more = [Arg::U32(word), Arg::U32(cut), Arg::U32(leave as u32), Arg::U32(least as u32)];
        self.columns(launcher, "nearest", nan, &more)
    }

    /// The weighted median, by weights above 0, one for each row.
    pub fn weighted_median(
        &self,
        launcher: &Launcher,
        weights: &[f64],
        even: Even,
        nan: NanPolicy,
    ) -> Result<()> {
        let weights = launcher.scratch_of(bytemuck::cast_slice(weights))?;
        self.columns(launcher, "weighted_median", nan, &[Arg::Ptr(weights.ptr()), Arg::U32(even as u32)])
    }

    /// The mean, weighted where weights are given, whose sum is `whole`.
    pub fn mean(&self, launcher: &Launcher, weights: Option<&[f64]>, nan: NanPolicy) -> Result<()> {
        if self.d == 0 {
            return Ok(());
        }
        let whole = weights.map_or(self.n as f64, |weights| weights.iter().sum());
        let weights =
            weights.map(|weights| launcher.scratch_of(bytemuck::cast_slice(weights))).transpose()?;
        let form = if nan == NanPolicy::Omit { "omit" } else { "all" };
        let (_table, mut arguments) = self.arguments(launcher)?;
        let weights_at = weights.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr);
        arguments.extend([nan_word(nan), Arg::Ptr(weights_at), Arg::F64(whole)]);
        let kernel = format!("column_mean_{}_{form}", self.dtype.suffix());
        launcher.launch(&kernel, linear(self.d, 256, 1)?, &arguments)
    }

    /// A kernel of columns.cu with what it takes beside the rows.
    fn columns(&self, launcher: &Launcher, name: &str, nan: NanPolicy, more: &[Arg]) -> Result<()> {
        if self.d == 0 {
            return Ok(());
        }
        let threads = if self.dtype == DType::F64 { 256 } else { 512 };
        let bytes = 32 * self.n * self.dtype.size();
        let held = bytes + COLUMNS_RESERVE <= shared_memory(launcher);
        let (form, shared) = if held { ("tile", bytes as u32) } else { ("stream", 0) };
        let kernel = format!("{name}_{}_{form}", self.dtype.suffix());
        let (_table, mut arguments) = self.arguments(launcher)?;
        arguments.push(nan_word(nan));
        arguments.extend_from_slice(more);
        launcher.launch(&kernel, grid_x(self.d.div_ceil(32), threads, shared)?, &arguments)
    }

    /// rows, out, d, stride, table, n, and the memory of the table, to be kept until the launch.
    fn arguments(&self, launcher: &Launcher) -> Result<(Option<DeviceBuffer>, Vec<Arg<'static>>)> {
        let (rows, stride, table) = match self.at {
            At::Strided(first, stride) => (first, stride, None),
            At::Listed(rows) => {
                let words: Vec<u64> = rows.iter().map(|row| row.0).collect();
                (DevicePtr::NULL, 0, Some(launcher.scratch_of(bytemuck::cast_slice(&words))?))
            }
        };
        let at = table.as_ref().map_or(DevicePtr::NULL, DeviceBuffer::ptr);
        let arguments = vec![
            Arg::Ptr(rows),
            Arg::Ptr(self.out),
            Arg::U64(self.d),
            Arg::U64(stride),
            Arg::Ptr(at),
            Arg::U32(self.n as u32),
        ];
        Ok((table, arguments))
    }
}

fn shared_memory(launcher: &Launcher) -> usize {
    launcher.core().context().properties().shared_memory_per_block as usize
}

/// How the kernels call a policy; rows that are dropped or refused are gone.
fn nan_word(nan: NanPolicy) -> Arg<'static> {
    Arg::U32(match nan {
        NanPolicy::Omit => 1,
        NanPolicy::Propagate => 2,
        NanPolicy::Last | NanPolicy::Drop | NanPolicy::Reject => 0,
    })
}

/// Kernel form, threads and dynamic shared memory for `n` rows, as kernels/select.cu lists them.
fn form(n: usize, dtype: DType, shared_memory: usize) -> (&'static str, u32, u32) {
    let (held, tile, stream) = if dtype == DType::F64 { (256, 256, 256) } else { (512, 1024, 512) };
    let bytes = 32 * n * dtype.size();
    if n <= held {
        ("held", n.div_ceil(16) as u32 * 32, 0)
    } else if bytes + TILE_RESERVE <= shared_memory {
        ("tile", tile, bytes as u32)
    } else {
        ("stream", stream, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_the_rows_and_the_shared_memory() {
        assert_eq!(form(101, DType::F32, 227 << 10), ("held", 224, 0));
        assert_eq!(form(512, DType::F32, 227 << 10), ("held", 1024, 0));
        assert_eq!(form(1000, DType::F32, 227 << 10), ("tile", 1024, 128_000));
        assert_eq!(form(1000, DType::F32, 64 << 10), ("stream", 512, 0));
        assert_eq!(form(257, DType::F64, 227 << 10), ("tile", 256, 65_792));
        assert_eq!(form(100_000, DType::F64, 227 << 10), ("stream", 256, 0));
    }
}
