//! Driver status codes to errors.

use super::load::Api;
use super::table::Status;
use crate::{Error, Result};
use std::ffi::{CStr, c_char};

const OUT_OF_MEMORY: Status = 2;
const NO_DEVICE: Status = 100;
const INVALID_DEVICE: Status = 101;
const INVALID_PTX: Status = 218;
const UNSUPPORTED_PTX: Status = 222;
/// `CUDA_ERROR_NOT_READY`, the normal answer of a query for work that still runs.
pub(super) const NOT_READY: Status = 600;

/// Codes after which every later call on the context fails too: the context is lost.
pub(super) const STICKY: &[Status] = &[214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721];

/// Whether the code means that the context is lost.
pub(super) fn is_sticky(status: Status) -> bool {
    STICKY.contains(&status)
}

/// "cuMemAlloc_v2 failed: error 2 (out of memory)".
pub(super) fn describe(api: &Api, call: &str, status: Status) -> String {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: `text` is a live pointer slot; on success the driver stores a pointer to a static string in it.
    let known = unsafe { (api.table.get_error_string)(status, &mut text) } == 0 && !text.is_null();
    let words = if known {
        // SAFETY: the driver answered 0, so `text` points to one of its static, zero-terminated strings.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    } else {
        "unknown error".to_string()
    };
    format!("{call} failed: error {status} ({words})")
}

/// `Ok` for 0, else the error that the code stands for.
pub(super) fn check(api: &Api, call: &str, status: Status) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let text = describe(api, call, status);
    Err(match status {
        OUT_OF_MEMORY => Error::OutOfMemory(text),
        NO_DEVICE => Error::GpuUnavailable(text),
        INVALID_DEVICE => Error::DeviceNotFound(text),
        INVALID_PTX | UNSUPPORTED_PTX => Error::DriverTooOld(format!(
            "{text}; the driver offers CUDA {}.{} and does not take this kernel's PTX, install driver {} or newer",
            api.cuda.0,
            api.cuda.1,
            super::load::RECOMMENDED_DRIVER
        )),
        lost if is_sticky(lost) => Error::DeviceLost(text),
        _ => Error::Driver(text),
    })
}
