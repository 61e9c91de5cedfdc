//! What is written when the process ends: launches, calls and what was left.

use super::abi::pages::at_exit;
use super::report::{append, find_with, quote};
use super::state::{Driver, try_state};
use std::fmt::Display;
use std::sync::Once;
use std::time::Duration;

/// Has the report written at the end of the process.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| at_exit(end));
}

extern "C" fn end() {
    // A thread that the end of the process has stopped may hold the lock for ever.
    for _ in 0..100 {
        if let Some(driver) = try_state() {
            return driver.report_end();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn object<K: Display, V: Display>(pairs: impl Iterator<Item = (K, V)>) -> String {
    let members: Vec<String> =
        pairs.map(|(name, value)| format!("{}:{value}", quote(&name.to_string()))).collect();
    format!("{{{}}}", members.join(","))
}

impl Driver {
    fn report_end(&self) {
        let live: Vec<_> = (0..self.cards.len()).map(|ordinal| self.live(ordinal)).collect();
        let list = |of: &[super::Live]| {
            format!("[{}]", of.iter().map(|live| live.to_json()).collect::<Vec<_>>().join(","))
        };
        append(&[
            ("type".to_string(), quote("exit")),
            ("process".to_string(), std::process::id().to_string()),
            ("compute_capability".to_string(), self.config.compute_capability.to_string()),
            ("launches".to_string(), object(self.launches.iter())),
            ("calls".to_string(), object(self.calls.iter())),
            ("live".to_string(), list(&live)),
        ]);
        for (ordinal, live) in live.iter().enumerate() {
            if self.config.exit_leaks && live.allocations > 0 && self.cards[ordinal].fault.is_none() {
                let message = format!(
                    "the process ended with {} allocations of {} bytes on device {ordinal}",
                    live.allocations, live.bytes
                );
                find_with("leaks", message, vec![("live".to_string(), live.to_json())]);
            }
        }
    }
}
