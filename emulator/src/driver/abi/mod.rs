//! The exported functions: prototypes as cuda.h has them, pointers turned into values, panics into codes.

#![allow(unsafe_code)]
#![allow(non_snake_case, reason = "the driver's names")]

mod device;
mod graph;
mod launch;
mod lookup;
mod memory;
mod module;
pub mod pages;
mod stream;
mod tensor_map;
pub mod types;

pub use device::*;
pub use graph::*;
pub use launch::*;
pub use lookup::{SYMBOLS, address, cuGetProcAddress_v2};
pub use memory::*;
pub use module::*;
pub use stream::*;
pub use tensor_map::*;

use super::report;
use super::state::state;
use super::status::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a call's body; a panic becomes a code and a finding, for it must not cross into C.
fn guarded(symbol: &'static str, body: impl FnOnce() -> Outcome) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(outcome) => outcome.err().unwrap_or(0),
        Err(_) => {
            report::find("emulator", format!("{symbol} panicked"));
            UNKNOWN
        }
    }
}

/// A call that may come before cuInit.
fn early(symbol: &'static str, body: impl FnOnce() -> Outcome) -> Status {
    guarded(symbol, || {
        state().enter(symbol)?;
        body()
    })
}

/// A call that needs no context.
fn plain(symbol: &'static str, body: impl FnOnce() -> Outcome) -> Status {
    early(symbol, || if state().initialised { body() } else { Err(NOT_INITIALIZED) })
}

/// A call about a card.
fn on_card(symbol: &'static str, device: i32, body: impl FnOnce(usize) -> Outcome) -> Status {
    plain(symbol, || {
        let ordinal = usize::try_from(device).map_err(|_| INVALID_DEVICE)?;
        if ordinal < state().cards.len() { body(ordinal) } else { Err(INVALID_DEVICE) }
    })
}

/// A call on the thread's current context, whose card's number goes to the body.
fn bound(symbol: &'static str, body: impl FnOnce(usize) -> Outcome) -> Status {
    guarded(symbol, || {
        let planned = state().enter(symbol);
        let outcome = planned.and_then(|()| {
            let ordinal = state().current()?;
            body(ordinal)
        });
        // A failure on demand ends the context like one of the card's own.
        if let Err(status) = outcome
            && is_sticky(status)
        {
            let mut driver = state();
            if let Some(ordinal) = driver.current_card() {
                driver.poison(ordinal, status);
            }
        }
        outcome
    })
}
