//! The Node-API surface: translate in, call, translate out.

// The test build of the library has no one who calls the exported functions.
#![cfg_attr(test, allow(dead_code))]

mod aggregate;
mod bridge;
mod input;
mod pinned;
mod session;
mod tables;
mod tensor;

/// Error code as JavaScript's `error.code`.
#[derive(Debug)]
pub struct Code(&'static str);

impl AsRef<str> for Code {
    fn as_ref(&self) -> &str {
        self.0
    }
}

impl From<napi::Status> for Code {
    fn from(_: napi::Status) -> Code {
        Code("INVALID_ARGUMENT")
    }
}

type Result<T> = napi::Result<T, Code>;

impl From<crate::Error> for napi::Error<Code> {
    fn from(error: crate::Error) -> Self {
        napi::Error::new(Code(error.code()), error.to_string())
    }
}
