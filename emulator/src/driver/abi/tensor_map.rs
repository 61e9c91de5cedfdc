//! Tensor maps.

use super::super::card;
use super::super::state::state;
use super::super::status::*;
use super::super::tensor_maps::{self, Request};
use super::plain;
use super::types::*;
use crate::exec::tensor_map::{Pixels, TensorMap};
use std::ffi::{c_int, c_uint};

/// Makes a map where the card has them, and writes it to the caller's 128 bytes.
fn encode(
    symbol: &'static str,
    to: Array<u8>,
    request: &Request,
    make: impl FnOnce(usize) -> Outcome<TensorMap>,
) -> Status {
    plain(symbol, || {
        if !card::has_clusters(&state().config) {
            return Err(NOT_SUPPORTED);
        }
        let map = make(request.rank.min(5) as usize)?;
        map.words()
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .enumerate()
            .for_each(|(n, byte)| to.set(n, byte));
        Ok(())
    })
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the driver's prototype")]
pub extern "C" fn cuTensorMapEncodeTiled(
    map: Array<u8>,
    data_type: c_int,
    rank: c_uint,
    address: Handle,
    dims: Array<u64>,
    strides: Array<u64>,
    boxed: Array<c_uint>,
    steps: Array<c_uint>,
    interleave: c_int,
    swizzle: c_int,
    promotion: c_int,
    fill: c_int,
) -> Status {
    let address = address as u64;
    let request =
        Request { map: map.address(), data_type, rank, address, interleave, swizzle, promotion, fill };
    encode("cuTensorMapEncodeTiled", map, &request, |rank| {
        let strides = strides.list(rank.saturating_sub(1))?;
        tensor_maps::tiled(&request, &dims.list(rank)?, &strides, &boxed.list(rank)?, &steps.list(rank)?)
    })
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the driver's prototype")]
pub extern "C" fn cuTensorMapEncodeIm2col(
    map: Array<u8>,
    data_type: c_int,
    rank: c_uint,
    address: Handle,
    dims: Array<u64>,
    strides: Array<u64>,
    lower: Array<c_int>,
    upper: Array<c_int>,
    channels: c_uint,
    count: c_uint,
    steps: Array<c_uint>,
    interleave: c_int,
    swizzle: c_int,
    promotion: c_int,
    fill: c_int,
) -> Status {
    let address = address as u64;
    let request =
        Request { map: map.address(), data_type, rank, address, interleave, swizzle, promotion, fill };
    encode("cuTensorMapEncodeIm2col", map, &request, |rank| {
        let corner = |values: Array<c_int>| -> Outcome<[i32; 3]> {
            let values = values.list(rank.saturating_sub(2))?;
            Ok(std::array::from_fn(|n| values.get(n).copied().unwrap_or(0)))
        };
        let pixels = Pixels { lower: corner(lower)?, upper: corner(upper)?, channels, count };
        let strides = strides.list(rank.saturating_sub(1))?;
        tensor_maps::im2col(&request, &dims.list(rank)?, &strides, pixels, &steps.list(rank)?)
    })
}
