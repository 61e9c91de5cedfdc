//! What cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col take, as their documentation says.

use super::status::*;
use crate::exec::tensor_map::{Element, MOST_DIMS, Pixels, SWIZZLES, Swizzle, TensorMap, element};

/// The parameters that both functions have.
pub struct Request {
    /// Address of the result on the host.
    pub map: usize,
    pub data_type: i32,
    pub rank: u32,
    pub address: u64,
    pub interleave: i32,
    pub swizzle: i32,
    pub promotion: i32,
    pub fill: i32,
}

fn require(holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(INVALID_VALUE) }
}

/// The first elements of some values, the rest being `rest`.
fn padded<T: Copy, const N: usize>(values: &[T], rest: T) -> [T; N] {
    std::array::from_fn(|n| values.get(n).copied().unwrap_or(rest))
}

impl Request {
    /// What does not depend on the kind of the map.
    fn check(&self, dims: &[u64], strides: &[u64], steps: &[u32]) -> Outcome<(Element, Swizzle)> {
        require(self.map != 0 && self.map.is_multiple_of(64))?;
        require(self.address != 0 && self.address.is_multiple_of(16))?;
        require((0..=12).contains(&self.data_type))?;
        require((0..=2).contains(&self.interleave) && (0..=3).contains(&self.promotion))?;
        require((0..=1).contains(&self.fill))?;
        let swizzle =
            usize::try_from(self.swizzle).ok().and_then(|n| SWIZZLES.get(n)).ok_or(INVALID_VALUE)?;
        require(dims.iter().all(|dim| (1..=1 << 32).contains(dim)))?;
        require(strides.iter().all(|stride| stride.is_multiple_of(16) && *stride < 1 << 40))?;
        require(steps.iter().all(|step| (1..=8).contains(step)))?;
        // Interleaved layouts, and types that change values on the way, are not emulated.
        let element = element(self.data_type).filter(|_| self.interleave == 0).ok_or(NOT_SUPPORTED)?;
        require(self.fill == 0 || element.nan.is_some())?;
        Ok((element, *swizzle))
    }

    fn map(&self, dims: &[u64], strides: &[u64], steps: &[u32]) -> Outcome<TensorMap> {
        let (element, swizzle) = self.check(dims, strides, steps)?;
        Ok(TensorMap {
            address: self.address,
            element,
            rank: self.rank as usize,
            dims: padded(dims, 1),
            strides: padded(strides, 0),
            boxed: [1; MOST_DIMS],
            steps: padded(steps, 1),
            swizzle,
            fills_nan: self.fill == 1,
            pixels: None,
        })
    }
}

/// Rows of a box are whole multiples of 16 bytes, and no longer than the swizzle's pattern.
fn check_row(map: &TensorMap) -> Outcome {
    let bytes = map.row_bytes();
    require(bytes.is_multiple_of(16))?;
    require(map.swizzle == Swizzle::None || bytes <= map.swizzle.span())
}

pub fn tiled(
    request: &Request,
    dims: &[u64],
    strides: &[u64],
    boxed: &[u32],
    steps: &[u32],
) -> Outcome<TensorMap> {
    require((1..=MOST_DIMS).contains(&(request.rank as usize)))?;
    let map = request.map(dims, strides, steps)?;
    require(boxed.iter().all(|count| (1..=256).contains(count)))?;
    let map = TensorMap { boxed: padded(boxed, 1), ..map };
    check_row(&map)?;
    // An H200 takes a box of a multiprocessor's whole shared memory, and none of 512 KiB.
    let elements = boxed.iter().map(|&count| u64::from(count)).product::<u64>();
    require(elements * map.element.bytes <= 228 << 10)?;
    Ok(map)
}

pub fn im2col(
    request: &Request,
    dims: &[u64],
    strides: &[u64],
    pixels: Pixels,
    steps: &[u32],
) -> Outcome<TensorMap> {
    require((3..=MOST_DIMS).contains(&(request.rank as usize)))?;
    let map = request.map(dims, strides, steps)?;
    require((1..=256).contains(&pixels.channels) && (1..=1024).contains(&pixels.count))?;
    // Corners have 16 bits for one dimension of pixels, 8 for two and 4 for three.
    let most = 1 << [15, 7, 3][request.rank as usize - 3];
    let corners = pixels.lower.iter().chain(&pixels.upper);
    require(corners.clone().all(|corner| (-most..most).contains(corner)))?;
    let map = TensorMap { pixels: Some(pixels), ..map };
    check_row(&map)?;
    Ok(map)
}
