//! The driver API's functions over emulated cards.
//!
//! `abi` exports the functions with their C prototypes and is the only place with unsafe code; everything else works on
//! handles that are plain numbers, and checks each. Work that is submitted waits in its stream until something waits for
//! it, so that a missing wait shows as a wrong result.

pub mod abi;
mod card;
pub mod config;
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
