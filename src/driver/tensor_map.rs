//! Tensor maps: what Hopper's copy engine knows of a tensor, passed to kernels by value.

use super::context::Context;
use super::memory::DevicePtr;
use super::table::Status;
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

/// Images of halves, one after the other, the channels of a pixel side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// Start, at a multiple of 16 bytes.
    pub ptr: DevicePtr,
    /// Channels of a pixel, a multiple of 8; a copy finds zeros beyond them.
    pub channels: usize,
    /// Elements from one pixel to the next, a multiple of 8. Pixels may overlap.
    pub pixel: usize,
    /// Elements from one line to the next, a multiple of 8.
    pub line: usize,
    /// Two or three axes of an image, the last one of its memory layout first.
    pub axes: Vec<ImageAxis>,
    /// Number of images.
    pub images: usize,
}

/// Pixels along an axis of an image, and those from which a copy starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageAxis {
    /// Pixels.
    pub size: usize,
    /// First starting pixel, from 0.
    pub lower: i32,
    /// End of the starting pixels, from `size`.
    pub upper: i32,
    /// Pixels from one start to the next, 1 to 8.
    pub step: u32,
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
        map.made(context, "cuTensorMapEncodeTiled", answer)
    }

    /// The map that copies 64 channels of `pixels` pixels, swizzled by 128 bytes: the windows of a convolution seen through one
    /// tap. `None` where the driver makes none.
    pub fn images(context: &Context, images: &Images, pixels: u32) -> Result<Option<TensorMap>> {
        let _bound = context.bind()?;
        let Some(encode) = context.api.table.tensor_map_encode_im2col else { return Ok(None) };
        let mut map = TensorMap { words: [0; 32] };
        let mut dims = vec![images.channels as u64];
        dims.extend(images.axes.iter().map(|axis| axis.size as u64));
        let mut strides = vec![2 * images.pixel as u64, 2 * images.line as u64];
        strides.extend(images.axes[1..].iter().scan(2 * images.line as u64, |bytes, axis| {
            *bytes *= axis.size as u64;
            Some(*bytes)
        }));
        dims.push(images.images as u64);
        let corners = |corner: fn(&ImageAxis) -> i32| images.axes.iter().map(corner).collect::<Vec<c_int>>();
        let (lower, upper) = (corners(|axis| axis.lower), corners(|axis| axis.upper));
        let mut steps = vec![1u32];
        steps.extend(images.axes.iter().map(|axis| axis.step));
        steps.push(1);
        // SAFETY: as for `halves`; the corners have an entry for each axis, which are the rank's less two.
        let answer = unsafe {
            encode(
                map.words.as_mut_ptr().cast(),
                FLOAT16.0,
                dims.len() as u32,
                images.ptr.0 as *mut _,
                dims.as_ptr(),
                strides.as_ptr(),
                lower.as_ptr(),
                upper.as_ptr(),
                64,
                pixels,
                steps.as_ptr(),
                NO_INTERLEAVE,
                SWIZZLE_128,
                PROMOTE_256,
                ZEROS_OUTSIDE,
            )
        };
        map.made(context, "cuTensorMapEncodeIm2col", answer)
    }

    /// The map after the driver's answer; `None` where the device has none.
    fn made(self, context: &Context, function: &str, answer: Status) -> Result<Option<TensorMap>> {
        if answer == NOT_SUPPORTED {
            return Ok(None);
        }
        context.check(function, answer).map(|()| Some(self))
    }

    /// The map as a kernel's argument. The driver copies it at launch, from any address.
    pub fn words(&self) -> &[u32; 32] {
        &self.words
    }
}
