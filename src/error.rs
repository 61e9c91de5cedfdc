//! The one error type of the crate. Every variant has a stable code that JavaScript sees as `error.code`.

/// What can go wrong, with the text a caller reads. `code()` names the kind.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The driver library is absent, broken or lists no device.
    #[error("{0}")]
    GpuUnavailable(String),
    /// The driver is there but older than this package needs.
    #[error("{0}")]
    DriverTooOld(String),
    /// A device name that is malformed or beyond the devices present.
    #[error("{0}")]
    DeviceNotFound(String),
    /// Host or device memory is exhausted.
    #[error("{0}")]
    OutOfMemory(String),
    /// An allocation would pass the limit set by the caller.
    #[error("{0}")]
    MemoryLimit(String),
    /// An argument or option of the wrong kind, name or value.
    #[error("{0}")]
    InvalidArgument(String),
    /// Dims that do not fit each other or the operation.
    #[error("{0}")]
    ShapeMismatch(String),
    /// An element type that the operation does not take.
    #[error("{0}")]
    UnsupportedDtype(String),
    /// An operation that does not exist or has no form on the device asked for.
    #[error("{0}")]
    UnsupportedOp(String),
    /// A model file that cannot be read.
    #[error("{0}")]
    InvalidModel(String),
    /// A tensor or session used after `dispose()`.
    #[error("{0}")]
    Disposed(String),
    /// The call's AbortSignal fired.
    #[error("{0}")]
    Aborted(String),
    /// The device context is lost (an illegal access or a hardware fault).
    #[error("{0}")]
    DeviceLost(String),
    /// Any other failure that the driver reported: `<call> failed: error <number> (<text>)`.
    #[error("{0}")]
    Driver(String),
    /// A defect of this package: a panic that was caught, a broken invariant.
    #[error("{0}")]
    Internal(String),
    /// An element whose value is outside what the operation takes, such as an index past its axis.
    #[error("{0}")]
    OutOfRange(String),
}

/// `Result` with the crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// One row of the table of codes: what `docs/errors.md` and the typings are made of.
#[derive(Debug, Clone, Copy)]
pub struct ErrorCode {
    /// Upper-case name, stable across versions.
    pub code: &'static str,
    /// Number used by the C ABI; 0 means success and is never listed.
    pub number: i32,
    /// What it means and what to do, in one sentence.
    pub meaning: &'static str,
}

const fn row(code: &'static str, number: i32, meaning: &'static str) -> ErrorCode {
    ErrorCode { code, number, meaning }
}

/// All codes in the order of [`Error`]'s variants.
pub const CODES: &[ErrorCode] = &[
    row(
        "GPU_UNAVAILABLE",
        1,
        "No usable NVIDIA driver or device was found; the message names what is missing.",
    ),
    row(
        "DRIVER_TOO_OLD",
        2,
        "The NVIDIA driver is older than needed; the message gives the version found and the one needed.",
    ),
    row("DEVICE_NOT_FOUND", 3, "The device name is malformed, or no device of that number exists."),
    row("OUT_OF_MEMORY", 4, "Host or device memory is exhausted; dispose tensors or use smaller inputs."),
    row("MEMORY_LIMIT", 5, "The allocation would pass the memory limit that was set for the device."),
    row("INVALID_ARGUMENT", 6, "An argument or option has the wrong type, name or value."),
    row("SHAPE_MISMATCH", 7, "Dims do not fit each other, the data or the operation."),
    row("UNSUPPORTED_DTYPE", 8, "The operation does not take this element type."),
    row("UNSUPPORTED_OP", 9, "The operation does not exist, or has no form on the device asked for."),
    row("INVALID_MODEL", 10, "The model file is malformed or beyond the limits set for it."),
    row("DISPOSED", 11, "A tensor or session was used after dispose()."),
    row("ABORTED", 12, "The AbortSignal of the call fired."),
    row(
        "DEVICE_LOST",
        13,
        "The device faulted while the named operation ran, and its tensors are gone. A new context is tried at the next call; where the driver refuses one, the process must be restarted to use that GPU again.",
    ),
    row(
        "DRIVER_ERROR",
        14,
        "The driver reported a failure; the message holds the call, its number and the driver's text.",
    ),
    row("INTERNAL", 15, "A defect in Warpwright itself; please report it with the message."),
    row(
        "OUT_OF_RANGE",
        16,
        "An element has a value that the operation does not take, such as an index past the end of its axis.",
    ),
];

impl Error {
    /// The row of [`CODES`] that this error belongs to.
    pub fn row(&self) -> &'static ErrorCode {
        &CODES[match self {
            Error::GpuUnavailable(_) => 0,
            Error::DriverTooOld(_) => 1,
            Error::DeviceNotFound(_) => 2,
            Error::OutOfMemory(_) => 3,
            Error::MemoryLimit(_) => 4,
            Error::InvalidArgument(_) => 5,
            Error::ShapeMismatch(_) => 6,
            Error::UnsupportedDtype(_) => 7,
            Error::UnsupportedOp(_) => 8,
            Error::InvalidModel(_) => 9,
            Error::Disposed(_) => 10,
            Error::Aborted(_) => 11,
            Error::DeviceLost(_) => 12,
            Error::Driver(_) => 13,
            Error::Internal(_) => 14,
            Error::OutOfRange(_) => 15,
        }]
    }

    /// The same error with another text.
    pub fn reworded(mut self, word: impl FnOnce(&str) -> String) -> Error {
        let text = self.text_mut();
        *text = word(text);
        self
    }

    fn text_mut(&mut self) -> &mut String {
        match self {
            Error::GpuUnavailable(text)
            | Error::DriverTooOld(text)
            | Error::DeviceNotFound(text)
            | Error::OutOfMemory(text)
            | Error::MemoryLimit(text)
            | Error::InvalidArgument(text)
            | Error::ShapeMismatch(text)
            | Error::UnsupportedDtype(text)
            | Error::UnsupportedOp(text)
            | Error::InvalidModel(text)
            | Error::Disposed(text)
            | Error::Aborted(text)
            | Error::DeviceLost(text)
            | Error::Driver(text)
            | Error::Internal(text)
            | Error::OutOfRange(text) => text,
        }
    }

    /// The stable code, for example `SHAPE_MISMATCH`.
    pub fn code(&self) -> &'static str {
        self.row().code
    }
}

/// A name that came from outside, as messages show it: escaped, and cut where it is long.
pub(crate) fn quoted(name: &str) -> String {
    const SHOWN: usize = 80;
    let shown: String = name.chars().take(SHOWN).collect();
    let more = if shown.len() < name.len() { "..." } else { "" };
    format!("'{}{more}'", shown.escape_debug())
}

/// `Err(Error::InvalidArgument(..))` from a format string.
#[macro_export]
macro_rules! invalid {
    ($($arg:tt)*) => { Err($crate::Error::InvalidArgument(format!($($arg)*))) };
}

/// `Err(Error::ShapeMismatch(..))` from a format string.
#[macro_export]
macro_rules! mismatch {
    ($($arg:tt)*) => { Err($crate::Error::ShapeMismatch(format!($($arg)*))) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_order_and_codes_are_unique() {
        for (index, row) in CODES.iter().enumerate() {
            assert_eq!(row.number as usize, index + 1, "{}", row.code);
            assert!(CODES.iter().filter(|other| other.code == row.code).count() == 1);
        }
        assert_eq!(Error::OutOfRange(String::new()).row().number as usize, CODES.len());
    }
}
