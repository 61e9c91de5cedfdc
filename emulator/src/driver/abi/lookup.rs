//! The list of exported functions, and their addresses by name.

use super::super::state::state;
use super::super::status::*;
use super::early;
use super::types::*;
use std::ffi::c_int;

macro_rules! functions {
    ($($name:ident)*) => {
        /// Every exported function.
        pub const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        /// The address of an exported function; 0 where there is none of that name.
        pub fn address(symbol: &str) -> usize {
            $(if symbol == stringify!($name) {
                return super::$name as *const () as usize;
            })*
            0
        }
    };
}

functions! {
    cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString cuDeviceGetCount cuDeviceGet cuDeviceGetName
    cuDeviceGetAttribute cuDeviceTotalMem_v2 cuDeviceGetUuid cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2
    cuDevicePrimaryCtxReset_v2 cuCtxSetCurrent cuCtxSynchronize
    cuModuleLoadDataEx cuModuleUnload cuModuleGetFunction cuFuncGetAttribute cuFuncSetAttribute
    cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc cuMemFreeHost cuMemHostRegister_v2 cuMemHostUnregister
    cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyDtoD_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2
    cuMemcpyPeerAsync cuMemsetD8Async cuMemGetInfo_v2
    cuMemAllocAsync cuMemFreeAsync cuDeviceGetDefaultMemPool cuMemPoolSetAttribute cuMemPoolTrimTo
    cuLaunchKernel cuLaunchKernelEx cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveClusters
    cuTensorMapEncodeTiled cuTensorMapEncodeIm2col
    cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize cuStreamWaitEvent
    cuEventCreate cuEventRecord cuEventSynchronize cuEventQuery cuEventElapsedTime cuEventDestroy_v2
    cuStreamBeginCapture_v2 cuStreamEndCapture cuGraphInstantiateWithFlags cuGraphLaunch cuGraphGetNodes
    cuGraphNodeGetType cuGraphExecKernelNodeSetParams_v2 cuGraphExecDestroy cuGraphDestroy
    cuLinkCreate_v2 cuLinkAddData_v2 cuLinkComplete cuLinkDestroy
    cuGetProcAddress_v2
}

const FOUND: c_int = 0;
const NOT_THERE: c_int = 1;

/// The exported function that a name without its version stands for.
fn versioned(name: &str) -> Option<&'static str> {
    let plain = |symbol: &&&str| **symbol == name || symbol.strip_suffix("_v2") == Some(name);
    SYMBOLS.iter().find(plain).copied()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetProcAddress_v2(
    name: Text,
    function: Slot<usize>,
    cuda_version: c_int,
    _flags: u64,
    found: Slot<c_int>,
) -> Status {
    early("cuGetProcAddress_v2", || {
        let name = name.get()?;
        let driver = state();
        let known = versioned(&name).filter(|symbol| !driver.config.absent.iter().any(|one| one == symbol));
        // A driver does not give functions of a CUDA version that is newer than it is.
        let known = known.filter(|_| cuda_version <= driver.config.driver);
        function.put(known.map_or(0, address))?;
        if !found.is_null() {
            return found.put(if known.is_some() { FOUND } else { NOT_THERE });
        }
        known.map(|_| ()).ok_or(NOT_FOUND)
    })
}
