//! Finds and opens the driver library, once for the life of the process.

use super::table::Table;
use crate::{Error, Result};
use std::ffi::OsString;
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
    if let Some(api) = super::fake::installed() {
        return Ok(api);
    }
    static API: OnceLock<Result<Api>> = OnceLock::new();
    API.get_or_init(open).as_ref().map_err(Clone::clone)
}

fn open() -> Result<Api> {
    let mut tried = Vec::new();
    for name in candidates() {
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

fn candidates() -> Vec<OsString> {
    if let Some(path) = std::env::var_os(DRIVER_VARIABLE).filter(|value| !value.is_empty()) {
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

fn open_library(name: &OsString) -> std::result::Result<libloading::Library, String> {
    // SAFETY: opening runs the library's initialisers. It is the vendor's driver, or the file that the user named
    // in WARPWRIGHT_DRIVER to stand in for it; both are trusted like any shared library of the process.
    unsafe { libloading::Library::new(name) }.map_err(|error| error.to_string())
}

/// One exported function as the table's type, or `None` where the library lacks it.
pub(super) fn symbol<F: Copy>(library: &libloading::Library, name: &str) -> Option<F> {
    // SAFETY: the macro in table.rs pairs every symbol with the prototype that cuda.h declares for it, which is
    // what F is, and `Api` keeps the library open for the life of the process, so the copied pointer stays valid.
    unsafe { library.get::<F>(name.as_bytes()) }.ok().map(|found| *found)
}

fn resolve(library: libloading::Library, name: String) -> Result<Api> {
    let table = Table::resolve(&library).map_err(|symbol| {
        Error::DriverTooOld(format!(
            "{name} lacks {symbol}, which driver {MINIMUM_DRIVER} and newer have; driver {RECOMMENDED_DRIVER} or newer is recommended"
        ))
    })?;
    // The library is never closed: function pointers and driver threads outlive every owner we could name.
    std::mem::forget(library);
    start(table, name)
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
