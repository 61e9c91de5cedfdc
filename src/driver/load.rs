//! Finds and opens the driver library, once for the life of the process.

use super::table::{Address, Table};
use crate::{Error, Result};
use std::ffi::{OsStr, OsString, c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};

/// Oldest CUDA version of a driver that loads the baseline kernels (driver 450).
pub const MINIMUM_CUDA: (i32, i32) = (11, 0);
/// The driver release that first offered [`MINIMUM_CUDA`].
pub const MINIMUM_DRIVER: u32 = 450;
/// The driver release recommended: it loads every kernel level.
pub const RECOMMENDED_DRIVER: u32 = 525;

/// Environment variable that names another driver library.
pub const DRIVER_VARIABLE: &str = "WARPWRIGHT_DRIVER";

/// The opened driver.
pub struct Api {
    /// The resolved functions.
    pub table: Table,
    /// Name or path that the library was opened by.
    pub library: String,
    /// CUDA version of the driver as (major, minor).
    pub cuda: (i32, i32),
}

/// The driver, opened at the first call. A failure is kept too, so later calls repeat it at no cost.
pub fn api() -> Result<&'static Api> {
    #[cfg(test)]
    if let Some(answer) = super::fake::installed() {
        return answer;
    }
    static API: OnceLock<Result<Api>> = OnceLock::new();
    API.get_or_init(|| open(candidates(std::env::var_os(DRIVER_VARIABLE)))).as_ref().map_err(Clone::clone)
}

/// Opens the first of these libraries that there is.
pub(super) fn open(names: Vec<OsString>) -> Result<Api> {
    if names.is_empty() {
        return Err(Error::GpuUnavailable("there is no NVIDIA driver for this operating system".into()));
    }
    let mut tried = Vec::new();
    for name in names {
        let shown = name.to_string_lossy().into_owned();
        match open_library(&name) {
            Ok(library) => return resolve(library, shown),
            Err(reason) => tried.push(format!("{shown} ({reason})")),
        }
    }
    Err(Error::GpuUnavailable(format!(
        "the NVIDIA driver library could not be opened; tried {}. Install the NVIDIA driver ({RECOMMENDED_DRIVER} or newer); no CUDA toolkit is needed",
        tried.join(", ")
    )))
}

/// The names to try: the one that the user gave, or the platform's.
pub(super) fn candidates(variable: Option<OsString>) -> Vec<OsString> {
    if let Some(path) = variable.filter(|value| !value.is_empty()) {
        return vec![path];
    }
    let names: &[&str] = if cfg!(windows) {
        &["nvcuda.dll"]
    } else if cfg!(target_os = "linux") {
        &["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"]
    } else {
        &[]
    };
    names.iter().map(OsString::from).collect()
}

/// The system's own text, which libloading keeps as the source of its error.
fn cause_of(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn open_library(name: &OsStr) -> std::result::Result<libloading::Library, String> {
    // SAFETY: opening runs the library's initialisers. It is the vendor's driver, or the file that the user named
    // in WARPWRIGHT_DRIVER to stand in for it; both are trusted like any shared library of the process.
    unsafe { libloading::Library::new(name) }.map_err(|error| cause_of(&error))
}

fn symbol(library: &libloading::Library, name: &str) -> Option<Address> {
    // SAFETY: only the address is taken; what it may be called as is the business of `Table::resolve`.
    let found = unsafe { library.get::<*mut c_void>(name.as_bytes()) }.ok()?;
    NonNull::new(*found)
}

fn resolve(library: libloading::Library, name: String) -> Result<Api> {
    // SAFETY: the library is the driver or the user's stand-in for it, whose functions have the driver's prototypes; it
    // is never closed, see below.
    let table = unsafe { Table::resolve(&|wanted| symbol(&library, wanted)) };
    let version = symbol(&library, "cuDriverGetVersion").and_then(version_of);
    // The library is never closed: function pointers and driver threads outlive every owner we could name.
    std::mem::forget(library);
    start(table.map_err(|missing| lacks(&name, missing, version))?, name)
}

/// CUDA version as (major, minor), asked before the rest of the table is known to be there.
fn version_of(address: Address) -> Option<(i32, i32)> {
    // SAFETY: cuda.h declares `CUresult cuDriverGetVersion(int *)`, callable before cuInit.
    let get =
        unsafe { std::mem::transmute::<Address, unsafe extern "system" fn(*mut c_int) -> c_int>(address) };
    let mut version = 0;
    // SAFETY: `version` is a live c_int that the call writes once.
    let status = unsafe { get(&mut version) };
    (status == 0).then_some((version / 1000, version % 1000 / 10))
}

pub(super) fn lacks(library: &str, symbol: &str, version: Option<(i32, i32)>) -> Error {
    let found =
        version.map_or_else(String::new, |(major, minor)| format!(" and offers CUDA {major}.{minor}"));
    Error::DriverTooOld(format!(
        "{library} lacks {symbol}{found}; driver {MINIMUM_DRIVER} or newer is needed, {RECOMMENDED_DRIVER} or newer is recommended"
    ))
}

/// Initialises a resolved table: cuInit, then the version.
pub(super) fn start(table: Table, library: String) -> Result<Api> {
    let mut api = Api { table, library, cuda: (0, 0) };
    // SAFETY: cuInit takes only the flags word, which must be 0.
    let status = unsafe { (api.table.init)(0) };
    if status != 0 {
        let text = super::status::describe(&api, "cuInit", status);
        return Err(Error::GpuUnavailable(format!("{text} ({})", api.library)));
    }
    let mut version = 0;
    // SAFETY: `version` is a live c_int that the call writes once.
    let status = unsafe { (api.table.driver_get_version)(&mut version) };
    super::status::check(&api, "cuDriverGetVersion", status)?;
    api.cuda = (version / 1000, version % 1000 / 10);
    if api.cuda < MINIMUM_CUDA {
        return Err(Error::DriverTooOld(format!(
            "the driver offers CUDA {}.{}; CUDA {}.{} (driver {MINIMUM_DRIVER}) or newer is needed",
            api.cuda.0, api.cuda.1, MINIMUM_CUDA.0, MINIMUM_CUDA.1
        )));
    }
    Ok(api)
}

/// Version of the installed driver as NVML reports it ("550.54.14"); a report only, absent where NVML is.
pub fn driver_version() -> Option<String> {
    static VERSION: Mutex<Option<Option<String>>> = Mutex::new(None);
    let mut cached = VERSION.lock().ok()?;
    cached.get_or_insert_with(super::nvml::driver_version).clone()
}
