//! The driver API's functions over emulated cards.
//!
//! `abi` exports the functions with their C prototypes and is the only place with unsafe code; everything else works on
//! handles that are plain numbers, and checks each. Work that is submitted waits in its stream until something waits for
//! it, so that a missing wait shows as a wrong result.

pub mod abi;
mod card;
pub mod config;
pub mod control;
mod exit;
mod graphs;
mod host;
mod link;
mod memory;
mod modules;
mod queue;
pub mod report;
mod state;
pub mod status;
mod tensor_maps;
mod work;

pub use config::Config;
pub use report::Finding;
pub use state::{Live, restart};

/// What callers hold of the context of that device.
pub fn live(ordinal: usize) -> Live {
    state::state().live(ordinal)
}

/// The code of cuTensorMapEncodeTiled, or Im2col where there are pixels, for a map at that device address:
/// interleave, swizzle, promotion and fill; dims and strides; box and steps.
pub fn tensor_map_status(
    data_type: i32,
    address: u64,
    [interleave, swizzle, promotion, fill]: [i32; 4],
    [dims, strides]: [&[u64]; 2],
    [boxed, steps]: [&[u32]; 2],
    pixels: Option<crate::exec::tensor_map::Pixels>,
) -> i32 {
    let rank = dims.len() as u32;
    let request =
        tensor_maps::Request { map: 64, data_type, rank, address, interleave, swizzle, promotion, fill };
    let made = match pixels {
        Some(pixels) => tensor_maps::im2col(&request, dims, strides, pixels, steps),
        None => tensor_maps::tiled(&request, dims, strides, boxed, steps),
    };
    made.err().unwrap_or(0)
}
