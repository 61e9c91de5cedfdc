//! GPU form: networks in registers for few rows, selection beyond.

use super::Options;
use crate::driver::DevicePtr;
use crate::kernels::median::{NanPolicy, largest, median_ptx, recipe};
use crate::kernels::{Arg, Generated, Launcher, Parameter, grid_x, linear};
use crate::ops::Call;
use crate::ops::operands::device_operand;
use crate::tensor::{DeviceBuffer, DeviceView};
use crate::{DType, Result};

/// Coordinates that a block of the scan looks at, as kernels/nonfinite.cu has it.
const SCAN_CHUNK: u64 = 8192;
/// Static shared memory of the tile kernel and what the driver keeps, rounded up.
const TILE_RESERVE: usize = 12 * 1024;

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
        if let Some(rows_left) = options.surviving(&scan(launcher, rows)?)? {
            let buffer = launcher.scratch(size_of_val(&rows_left[..]))?;
            launcher.core().upload(buffer.ptr(), bytemuck::cast_slice(&rows_left))?;
            rows.n = rows_left.len();
            list = Some(buffer);
        }
        options.nan = if list.is_some() { NanPolicy::Drop } else { NanPolicy::Last };
    }
    if rows.n <= largest(rows.dtype) {
        network(launcher, rows, options, list.as_ref(), outputs[0].ptr)
    } else {
        select(launcher, rows, options, list.as_ref(), outputs[0].ptr)
    }
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

fn network(
    launcher: &Launcher,
    rows: Rows,
    options: Options,
    list: Option<&DeviceBuffer>,
    out: DevicePtr,
) -> Result<()> {
    let Options { even, nan } = options;
    let chosen = recipe(rows.n, rows.dtype, nan);
    let key = format!("median_{}_{}_{}_{}", rows.dtype.suffix(), rows.n, even.word(), nan.word());
    let mut arguments = vec![Arg::Ptr(rows.ptr), Arg::Ptr(out), Arg::U64(rows.d), Arg::U64(rows.d)];
    arguments.extend(list.map(|list| Arg::Ptr(list.ptr())));
    arguments.push(Arg::U32(1));
    let mut parameters = vec![Parameter::Word64; arguments.len() - 1];
    parameters.push(Parameter::Word32);
    let make = || {
        let kernel = median_ptx(rows.n as u32, rows.dtype, even, nan);
        Ok(Generated { ptx: kernel.ptx, entry: kernel.entry, parameters })
    };
    let grid = linear(rows.d, chosen.block as u32, chosen.coords_per_thread as u32)?;
    launcher.launch_generated(&key, make, grid, &arguments)
}

fn select(
    launcher: &Launcher,
    rows: Rows,
    options: Options,
    list: Option<&DeviceBuffer>,
    out: DevicePtr,
) -> Result<()> {
    let available = launcher.core().context().properties().shared_memory_per_block as usize;
    let (form, threads, shared) = form(rows.n, rows.dtype, available);
    let nan = match options.nan {
        NanPolicy::Omit => 1,
        NanPolicy::Propagate => 2,
        NanPolicy::Last | NanPolicy::Drop | NanPolicy::Reject => 0,
    };
    let kernel = format!("median_{}_{form}", rows.dtype.suffix());
    let arguments = [
        Arg::Ptr(rows.ptr),
        Arg::Ptr(out),
        Arg::U64(rows.d),
        Arg::U64(rows.d),
        Arg::Ptr(list.map_or(DevicePtr::NULL, DeviceBuffer::ptr)),
        Arg::U32(rows.n as u32),
        Arg::U32(options.even as u32),
        Arg::U32(nan),
    ];
    launcher.launch(&kernel, grid_x(rows.d.div_ceil(32), threads, shared)?, &arguments)
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
