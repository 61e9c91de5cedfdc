//! The driver's release number from NVML, which ships with the driver. Nothing depends on it.

use std::ffi::{c_char, c_int, c_uint};

type Plain = unsafe extern "C" fn() -> c_int;
type GetVersion = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;

pub(super) fn driver_version() -> Option<String> {
    if std::env::var_os(super::load::DRIVER_VARIABLE).is_some_and(|value| !value.is_empty()) {
        return None;
    }
    let name = if cfg!(windows) { "nvml.dll" } else { "libnvidia-ml.so.1" };
    // SAFETY: NVML is part of the vendor's driver; opening it runs only its own initialisers.
    let library = unsafe { libloading::Library::new(name) }.ok()?;
    // SAFETY: nvml.h declares `nvmlReturn_t nvmlInit_v2(void)`; the library outlives the calls below.
    let init = unsafe { library.get::<Plain>(b"nvmlInit_v2") }.ok()?;
    // SAFETY: nvml.h declares `nvmlReturn_t nvmlShutdown(void)`.
    let shutdown = unsafe { library.get::<Plain>(b"nvmlShutdown") }.ok()?;
    // SAFETY: nvml.h declares `nvmlReturn_t nvmlSystemGetDriverVersion(char *, unsigned int)`.
    let get = unsafe { library.get::<GetVersion>(b"nvmlSystemGetDriverVersion") }.ok()?;
    // SAFETY: nvmlInit_v2 has no arguments and may be called at any time.
    if unsafe { init() } != 0 {
        return None;
    }
    let mut text = [0u8; 96];
    // SAFETY: the buffer is live and its length is passed, so the call writes at most that many bytes.
    let status = unsafe { get(text.as_mut_ptr().cast(), text.len() as c_uint) };
    // SAFETY: pairs with the successful nvmlInit_v2 above.
    unsafe { shutdown() };
    let end = text.iter().position(|byte| *byte == 0)?;
    (status == 0).then(|| String::from_utf8_lossy(&text[..end]).into_owned())
}
