//! GPU form: networks in registers for few rows, selection beyond.

use super::Options;
use crate::driver::DevicePtr;
use crate::kernels::columns::{At, Columns, NanPolicy, Statistic};
use crate::kernels::{Arg, Launcher, grid_x};
use crate::ops::Call;
use crate::ops::operands::device_operand;
use crate::tensor::DeviceView;
use crate::{DType, Result};

/// Coordinates that a block of the scan looks at, as kernels/nonfinite.cu has it.
const SCAN_CHUNK: u64 = 8192;

/// The rows of a call on the device.
#[derive(Clone, Copy)]
struct Rows {
    ptr: DevicePtr,
    n: usize,
    d: u64,
    dtype: DType,
}

pub fn run(
    call: &Call,
    launcher: &Launcher,
    inputs: &[Option<DeviceView>],
    outputs: &[DeviceView],
) -> Result<()> {
    let dims = &call.input(0).dims;
    let mut rows =
        Rows { ptr: device_operand(call, inputs, 0)?, n: dims[0], d: dims[1] as u64, dtype: call.dtype() };
    let mut options = Options::of(call);
    if rows.d == 0 {
        return Ok(());
    }
    let mut list = None;
    if options.searches() {
        let address = |row: &u32| rows.ptr.offset(u64::from(*row) * rows.d * rows.dtype.size() as u64);
        list = options
            .surviving(&scan(launcher, rows)?)?
            .map(|left| left.iter().map(address).collect::<Vec<_>>());
        rows.n = list.as_ref().map_or(rows.n, Vec::len);
        options.nan = if list.is_some() { NanPolicy::Drop } else { NanPolicy::Last };
    }
    let at = list.as_deref().map_or(At::Strided(rows.ptr, rows.d), At::Listed);
    let columns = Columns { at, n: rows.n, d: rows.d, dtype: rows.dtype, out: outputs[0].ptr };
    columns.launch(launcher, Statistic::Median(options.even), options.nan)
}

/// Each row's lowest coordinate that is not finite. Blocks.
fn scan(launcher: &Launcher, rows: Rows) -> Result<Vec<u64>> {
    let mut first = vec![u64::MAX; rows.n];
    let size = size_of_val(&first[..]);
    let buffer = launcher.scratch(size)?;
    launcher.core().stream().fill(buffer.ptr(), 0xff, size)?;
    let chunks = rows.d.div_ceil(SCAN_CHUNK);
    let grid = grid_x(rows.n as u64 * chunks, 256, 0)?;
    let kernel = format!("nonfinite_{}", rows.dtype.suffix());
    let arguments = [
        Arg::Ptr(rows.ptr),
        Arg::Ptr(buffer.ptr()),
        Arg::U64(rows.d),
        Arg::U64(rows.d),
        Arg::U32(chunks as u32),
    ];
    launcher.launch(&kernel, grid, &arguments)?;
    launcher.core().read(buffer.ptr(), bytemuck::cast_slice_mut(&mut first))?;
    Ok(first)
}
