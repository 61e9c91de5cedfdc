//! Tensor maps: what Hopper's copy engine knows of a tensor, passed to kernels by value.

use super::context::Context;
use super::memory::DevicePtr;
use crate::Result;
use std::ffi::c_int;

/// The data type's number and the bytes of an element.
const FLOAT16: (c_int, usize) = (6, 2);
const FLOAT64: (c_int, usize) = (8, 8);
const NO_INTERLEAVE: c_int = 0;
const SWIZZLE_128: c_int = 3;
const PROMOTE_256: c_int = 3;
const ZEROS_OUTSIDE: c_int = 0;
const NOT_SUPPORTED: c_int = 801;

/// Matrices of halves, one after the other, rows along the first dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Halves {
    /// Start, at a multiple of 16 bytes.
    pub ptr: DevicePtr,
    /// Elements of a row; a copy finds zeros beyond them.
    pub columns: usize,
    /// Rows of a matrix.
    pub rows: usize,
    /// Number of matrices.
    pub matrices: usize,
    /// Elements from one row to the next, a multiple of 8.
    pub pitch: usize,
}

/// `CUtensorMap`.
#[repr(C, align(64))]
pub struct TensorMap {
    words: [u32; 32],
}

impl TensorMap {
    /// The map whose boxes are 64 columns by `rows` of one matrix, swizzled by 128 bytes. `None` where the driver makes
    /// none.
    pub fn halves(context: &Context, halves: Halves, rows: u32) -> Result<Option<TensorMap>> {
        let dims = [halves.columns, halves.rows, halves.matrices];
        TensorMap::tiled(context, FLOAT16, halves.ptr, dims, halves.pitch, rows)
    }

    /// The map of float64 matrices, `dims` being columns, rows and matrices, whose boxes are 16 columns by `rows`, swizzled
    /// by 128 bytes; rows lie `pitch` elements apart, a multiple of 2. `None` where the driver makes none.
    pub fn doubles(
        context: &Context,
        ptr: DevicePtr,
        dims: [usize; 3],
        pitch: usize,
        rows: u32,
    ) -> Result<Option<TensorMap>> {
        TensorMap::tiled(context, FLOAT64, ptr, dims, pitch, rows)
    }

    fn tiled(
        context: &Context,
        (data_type, size): (c_int, usize),
        ptr: DevicePtr,
        [columns, lines, matrices]: [usize; 3],
        pitch: usize,
        rows: u32,
    ) -> Result<Option<TensorMap>> {
        let _bound = context.bind()?;
        let Some(encode) = context.api.table.tensor_map_encode_tiled else { return Ok(None) };
        let mut map = TensorMap { words: [0; 32] };
        let dims = [columns as u64, lines as u64, matrices as u64];
        let strides = [(size * pitch) as u64, (size * pitch * lines) as u64];
        let (boxes, steps) = ([(128 / size) as u32, rows, 1], [1u32; 3]);
        // SAFETY: `map` is 128 bytes at a multiple of 64, as cuda.h declares CUtensorMap; dims, box and steps have the
        // rank's 3 entries, strides one fewer. The device address is only written down: what copies through the map
        // may touch is the launch's promise, as for any pointer argument.
        let answer = unsafe {
            encode(
                map.words.as_mut_ptr().cast(),
                data_type,
                3,
                ptr.0 as *mut _,
                dims.as_ptr(),
                strides.as_ptr(),
                boxes.as_ptr(),
                steps.as_ptr(),
                NO_INTERLEAVE,
                SWIZZLE_128,
                PROMOTE_256,
                ZEROS_OUTSIDE,
            )
        };
        if answer == NOT_SUPPORTED {
            return Ok(None);
        }
        context.check("cuTensorMapEncodeTiled", answer).map(|()| Some(map))
    }

    /// The map as a kernel's argument. The driver copies it at launch, from any address.
    pub fn words(&self) -> &[u32; 32] {
        &self.words
    }
}
