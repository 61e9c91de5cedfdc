//! Kernels: the table derived from the embedded PTX, lazy loading and checked launches.

pub mod columns;
mod extract;
pub mod fused;
mod launcher;
mod raised;
mod rates;
mod registry;
mod rehearsal;

pub use launcher::{Arg, Generated, Launcher, Recording, TICKETS, float_arg, grid_x, linear, number_arg};
pub use rates::Rates;
#[cfg(feature = "node")]
pub use registry::MODULES;
pub use registry::Parameter;
#[cfg(test)]
pub use registry::find;
