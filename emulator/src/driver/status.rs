//! The driver's result codes: names, texts and which of them end a context.

use std::ffi::{CStr, c_int};

/// `CUresult`.
pub type Status = c_int;
/// The answer of a call: nothing, or the code of what went wrong.
pub type Outcome<T = ()> = Result<T, Status>;

macro_rules! codes {
    ($($name:ident = $number:literal $symbol:literal $words:literal;)*) => {
        $(#[doc = $words] pub const $name: Status = $number;)*

        /// Number, name and text of each code.
        pub const CODES: &[(Status, &CStr, &CStr)] = &[
            (0, c"CUDA_SUCCESS", c"no error"),
            $(($number, {
                const NAME: &[u8] = concat!("CUDA_ERROR_", $symbol, "\0").as_bytes();
                zero_ended(NAME)
            }, {
                const WORDS: &[u8] = concat!($words, "\0").as_bytes();
                zero_ended(WORDS)
            })),*
        ];
    };
}

const fn zero_ended(bytes: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_with_nul(bytes) {
        Ok(text) => text,
        Err(_) => panic!("a text with a zero inside"),
    }
}

codes! {
    INVALID_VALUE = 1 "INVALID_VALUE" "invalid argument";
    OUT_OF_MEMORY = 2 "OUT_OF_MEMORY" "out of memory";
    NOT_INITIALIZED = 3 "NOT_INITIALIZED" "initialization error";
    DEINITIALIZED = 4 "DEINITIALIZED" "driver shutting down";
    STUB_LIBRARY = 34 "STUB_LIBRARY" "CUDA driver is a stub library";
    DEVICE_UNAVAILABLE = 46 "DEVICE_UNAVAILABLE" "CUDA-capable device(s) is/are busy or unavailable";
    NO_DEVICE = 100 "NO_DEVICE" "no CUDA-capable device is detected";
    INVALID_DEVICE = 101 "INVALID_DEVICE" "invalid device ordinal";
    INVALID_IMAGE = 200 "INVALID_IMAGE" "device kernel image is invalid";
    INVALID_CONTEXT = 201 "INVALID_CONTEXT" "invalid device context";
    NO_BINARY_FOR_GPU = 209 "NO_BINARY_FOR_GPU" "no kernel image is available for execution on the device";
    ECC_UNCORRECTABLE = 214 "ECC_UNCORRECTABLE" "uncorrectable ECC error encountered";
    INVALID_PTX = 218 "INVALID_PTX" "a PTX JIT compilation failed";
    NVLINK_UNCORRECTABLE = 220 "NVLINK_UNCORRECTABLE" "uncorrectable NVLink error detected during the execution";
    JIT_COMPILER_NOT_FOUND = 221 "JIT_COMPILER_NOT_FOUND" "PTX JIT compiler library not found";
    UNSUPPORTED_PTX_VERSION = 222 "UNSUPPORTED_PTX_VERSION" "the provided PTX was compiled with an unsupported toolchain.";
    CONTAINED = 226 "CONTAINED" "Invalid error containment";
    INVALID_SOURCE = 300 "INVALID_SOURCE" "device kernel image is invalid";
    FILE_NOT_FOUND = 301 "FILE_NOT_FOUND" "file not found";
    OPERATING_SYSTEM = 304 "OPERATING_SYSTEM" "OS call failed or operation not supported on this OS";
    INVALID_HANDLE = 400 "INVALID_HANDLE" "invalid resource handle";
    ILLEGAL_STATE = 401 "ILLEGAL_STATE" "the operation cannot be performed in the present state";
    NOT_FOUND = 500 "NOT_FOUND" "named symbol not found";
    NOT_READY = 600 "NOT_READY" "device not ready";
    ILLEGAL_ADDRESS = 700 "ILLEGAL_ADDRESS" "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701 "LAUNCH_OUT_OF_RESOURCES" "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702 "LAUNCH_TIMEOUT" "the launch timed out and was terminated";
    CONTEXT_IS_DESTROYED = 709 "CONTEXT_IS_DESTROYED" "context is destroyed";
    ASSERT = 710 "ASSERT" "device-side assert triggered";
    HOST_MEMORY_ALREADY_REGISTERED = 712 "HOST_MEMORY_ALREADY_REGISTERED" "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713 "HOST_MEMORY_NOT_REGISTERED" "pointer does not correspond to a registered memory region";
    HARDWARE_STACK_ERROR = 714 "HARDWARE_STACK_ERROR" "hardware stack error";
    ILLEGAL_INSTRUCTION = 715 "ILLEGAL_INSTRUCTION" "an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716 "MISALIGNED_ADDRESS" "misaligned address";
    INVALID_ADDRESS_SPACE = 717 "INVALID_ADDRESS_SPACE" "operation not supported on global/shared address space";
    INVALID_PC = 718 "INVALID_PC" "invalid program counter";
    LAUNCH_FAILED = 719 "LAUNCH_FAILED" "unspecified launch failure";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720 "COOPERATIVE_LAUNCH_TOO_LARGE" "too many blocks in cooperative launch";
    TENSOR_MEMORY_LEAK = 721 "TENSOR_MEMORY_LEAK" "tensor memory not completely freed";
    NOT_PERMITTED = 800 "NOT_PERMITTED" "operation not permitted";
    NOT_SUPPORTED = 801 "NOT_SUPPORTED" "operation not supported";
    SYSTEM_NOT_READY = 802 "SYSTEM_NOT_READY" "system not yet initialized";
    SYSTEM_DRIVER_MISMATCH = 803 "SYSTEM_DRIVER_MISMATCH" "system has unsupported display driver / cuda driver combination";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804 "COMPAT_NOT_SUPPORTED_ON_DEVICE" "forward compatibility was attempted on non supported HW";
    STREAM_CAPTURE_UNSUPPORTED = 900 "STREAM_CAPTURE_UNSUPPORTED" "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901 "STREAM_CAPTURE_INVALIDATED" "operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE = 902 "STREAM_CAPTURE_MERGE" "operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED = 903 "STREAM_CAPTURE_UNMATCHED" "capture was not ended in the same stream as it began";
    STREAM_CAPTURE_UNJOINED = 904 "STREAM_CAPTURE_UNJOINED" "capturing stream has unjoined work";
    STREAM_CAPTURE_ISOLATION = 905 "STREAM_CAPTURE_ISOLATION" "dependency created on uncaptured work in another stream";
    STREAM_CAPTURE_IMPLICIT = 906 "STREAM_CAPTURE_IMPLICIT" "operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907 "CAPTURED_EVENT" "operation not permitted on an event last recorded in a capturing stream";
    STREAM_CAPTURE_WRONG_THREAD = 908 "STREAM_CAPTURE_WRONG_THREAD" "attempt to terminate a thread-local capture sequence from another thread";
    TIMEOUT = 909 "TIMEOUT" "wait operation timed out";
    GRAPH_EXEC_UPDATE_FAILURE = 910 "GRAPH_EXEC_UPDATE_FAILURE" "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
    EXTERNAL_DEVICE = 911 "EXTERNAL_DEVICE" "an async error has occured in external entity outside of CUDA";
    INVALID_CLUSTER_SIZE = 912 "INVALID_CLUSTER_SIZE" "a kernel launch error has occurred due to cluster misconfiguration";
    UNKNOWN = 999 "UNKNOWN" "unknown error";
}

/// Codes after which every later call on the context gives the same code.
const STICKY: &[Status] = &[214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721];

/// Whether the code ends the context it happens in.
pub fn is_sticky(status: Status) -> bool {
    STICKY.contains(&status)
}

/// Name and text of a code.
pub fn describe(status: Status) -> Option<(&'static CStr, &'static CStr)> {
    CODES.iter().find(|(number, ..)| *number == status).map(|(_, name, words)| (*name, *words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_listed_once_and_in_order() {
        assert!(CODES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(describe(700).unwrap().0, c"CUDA_ERROR_ILLEGAL_ADDRESS");
        assert_eq!(describe(0).unwrap().1, c"no error");
        assert!(describe(5000).is_none());
        assert!(STICKY.iter().all(|status| describe(*status).is_some()));
    }
}
