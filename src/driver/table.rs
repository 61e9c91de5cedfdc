//! The driver's functions, each listed once: field, exported symbol, prototype as cuda.h maps it today.

// The table is the whole surface that later kernels and sessions build on; some of it is not called yet.
#![allow(missing_docs, dead_code)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

/// `CUresult`.
pub type Status = c_int;
pub type DeviceId = c_int;
pub type RawContext = *mut c_void;
pub type RawModule = *mut c_void;
pub type RawFunction = *mut c_void;
pub type RawStream = *mut c_void;
pub type RawEvent = *mut c_void;
pub type RawGraph = *mut c_void;
pub type RawGraphExec = *mut c_void;
pub type RawGraphNode = *mut c_void;
pub type RawPool = *mut c_void;
pub type RawLink = *mut c_void;
/// `CUdeviceptr`.
pub type RawPtr = u64;
/// Address of an exported function.
pub type Address = NonNull<c_void>;

macro_rules! driver_table {
    (required { $($field:ident : $symbol:literal ($($arg:ty),*);)* }
     optional { $($ofield:ident : $osymbol:literal ($($oarg:ty),*);)* }) => {
        /// The resolved functions. Optional ones are `None` where the driver is too old to have them.
        pub struct Table {
            $(pub $field: unsafe extern "system" fn($($arg),*) -> Status,)*
            $(pub $ofield: Option<unsafe extern "system" fn($($oarg),*) -> Status>,)*
        }

        /// Symbols without which no driver is accepted.
        pub const REQUIRED: &[&str] = &[$($symbol),*];
        /// Symbols whose absence is a normal value.
        pub const OPTIONAL: &[&str] = &[$($osymbol),*];

        impl Table {
            /// Resolves every symbol; the error is the first required one that is absent.
            ///
            /// # Safety
            /// `lookup` gives the address of the driver function of that name, or of a stand-in of the same prototype,
            /// which stays valid for as long as the table is used.
            pub unsafe fn resolve(lookup: &dyn Fn(&str) -> Option<Address>) -> Result<Table, &'static str> {
                Ok(Table {
                    $($field: {
                        let address = lookup($symbol).ok_or($symbol)?;
                        // SAFETY: by the caller's promise a function of the prototype that this list pairs with the
                        // symbol, which is how cuda.h declares it.
                        unsafe { std::mem::transmute::<Address, unsafe extern "system" fn($($arg),*) -> Status>(address) }
                    },)*
                    $($ofield: lookup($osymbol).map(|address| {
                        // SAFETY: as for the required functions.
                        unsafe { std::mem::transmute::<Address, unsafe extern "system" fn($($oarg),*) -> Status>(address) }
                    }),)*
                })
            }
        }
    };
}

driver_table! {
    required {
        init: "cuInit" (c_uint);
        driver_get_version: "cuDriverGetVersion" (*mut c_int);
        get_error_name: "cuGetErrorName" (Status, *mut *const c_char);
        get_error_string: "cuGetErrorString" (Status, *mut *const c_char);
        device_get_count: "cuDeviceGetCount" (*mut c_int);
        device_get: "cuDeviceGet" (*mut DeviceId, c_int);
        device_get_name: "cuDeviceGetName" (*mut c_char, c_int, DeviceId);
        device_get_attribute: "cuDeviceGetAttribute" (*mut c_int, c_int, DeviceId);
        device_total_mem: "cuDeviceTotalMem_v2" (*mut usize, DeviceId);
        device_get_uuid: "cuDeviceGetUuid" (*mut [u8; 16], DeviceId);
        primary_ctx_retain: "cuDevicePrimaryCtxRetain" (*mut RawContext, DeviceId);
        primary_ctx_release: "cuDevicePrimaryCtxRelease_v2" (DeviceId);
        ctx_set_current: "cuCtxSetCurrent" (RawContext);
        ctx_synchronize: "cuCtxSynchronize" ();
        module_load_data_ex: "cuModuleLoadDataEx" (*mut RawModule, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
        module_unload: "cuModuleUnload" (RawModule);
        module_get_function: "cuModuleGetFunction" (*mut RawFunction, RawModule, *const c_char);
        func_get_attribute: "cuFuncGetAttribute" (*mut c_int, c_int, RawFunction);
        func_set_attribute: "cuFuncSetAttribute" (RawFunction, c_int, c_int);
        mem_alloc: "cuMemAlloc_v2" (*mut RawPtr, usize);
        mem_free: "cuMemFree_v2" (RawPtr);
        mem_host_alloc: "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
        mem_free_host: "cuMemFreeHost" (*mut c_void);
        mem_host_register: "cuMemHostRegister_v2" (*mut c_void, usize, c_uint);
        mem_host_unregister: "cuMemHostUnregister" (*mut c_void);
        memcpy_htod: "cuMemcpyHtoD_v2" (RawPtr, *const c_void, usize);
        memcpy_dtoh: "cuMemcpyDtoH_v2" (*mut c_void, RawPtr, usize);
        memcpy_dtod: "cuMemcpyDtoD_v2" (RawPtr, RawPtr, usize);
        memcpy_htod_async: "cuMemcpyHtoDAsync_v2" (RawPtr, *const c_void, usize, RawStream);
        memcpy_dtoh_async: "cuMemcpyDtoHAsync_v2" (*mut c_void, RawPtr, usize, RawStream);
        memcpy_dtod_async: "cuMemcpyDtoDAsync_v2" (RawPtr, RawPtr, usize, RawStream);
        memset_d8_async: "cuMemsetD8Async" (RawPtr, u8, usize, RawStream);
        mem_get_info: "cuMemGetInfo_v2" (*mut usize, *mut usize);
        launch_kernel: "cuLaunchKernel" (RawFunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, RawStream, *mut *mut c_void, *mut *mut c_void);
        stream_create: "cuStreamCreate" (*mut RawStream, c_uint);
        stream_destroy: "cuStreamDestroy_v2" (RawStream);
        stream_synchronize: "cuStreamSynchronize" (RawStream);
        stream_wait_event: "cuStreamWaitEvent" (RawStream, RawEvent, c_uint);
        event_create: "cuEventCreate" (*mut RawEvent, c_uint);
        event_record: "cuEventRecord" (RawEvent, RawStream);
        event_synchronize: "cuEventSynchronize" (RawEvent);
        event_query: "cuEventQuery" (RawEvent);
        event_elapsed_time: "cuEventElapsedTime" (*mut f32, RawEvent, RawEvent);
        event_destroy: "cuEventDestroy_v2" (RawEvent);
    }
    optional {
        get_proc_address: "cuGetProcAddress_v2" (*const c_char, *mut *mut c_void, c_int, u64, *mut c_int);
        primary_ctx_reset: "cuDevicePrimaryCtxReset_v2" (DeviceId);
        memcpy_peer_async: "cuMemcpyPeerAsync" (RawPtr, RawContext, RawPtr, RawContext, usize, RawStream);
        mem_alloc_async: "cuMemAllocAsync" (*mut RawPtr, usize, RawStream);
        mem_free_async: "cuMemFreeAsync" (RawPtr, RawStream);
        device_get_default_mem_pool: "cuDeviceGetDefaultMemPool" (*mut RawPool, DeviceId);
        mem_pool_set_attribute: "cuMemPoolSetAttribute" (RawPool, c_int, *mut c_void);
        mem_pool_trim_to: "cuMemPoolTrimTo" (RawPool, usize);
        stream_begin_capture: "cuStreamBeginCapture_v2" (RawStream, c_int);
        stream_end_capture: "cuStreamEndCapture" (RawStream, *mut RawGraph);
        graph_instantiate: "cuGraphInstantiateWithFlags" (*mut RawGraphExec, RawGraph, u64);
        graph_launch: "cuGraphLaunch" (RawGraphExec, RawStream);
        graph_exec_destroy: "cuGraphExecDestroy" (RawGraphExec);
        graph_destroy: "cuGraphDestroy" (RawGraph);
        graph_exec_kernel_node_set_params: "cuGraphExecKernelNodeSetParams_v2" (RawGraphExec, RawGraphNode, *const c_void);
        launch_kernel_ex: "cuLaunchKernelEx" (*const c_void, RawFunction, *mut *mut c_void, *mut *mut c_void);
        tensor_map_encode_tiled: "cuTensorMapEncodeTiled" (*mut c_void, c_int, u32, *mut c_void, *const u64, *const u64, *const u32, *const u32, c_int, c_int, c_int, c_int);
        tensor_map_encode_im2col: "cuTensorMapEncodeIm2col" (*mut c_void, c_int, u32, *mut c_void, *const u64, *const u64, *const c_int, *const c_int, u32, u32, *const u32, c_int, c_int, c_int, c_int);
        occupancy_max_active_blocks: "cuOccupancyMaxActiveBlocksPerMultiprocessor" (*mut c_int, RawFunction, c_int, usize);
        occupancy_max_active_clusters: "cuOccupancyMaxActiveClusters" (*mut c_int, RawFunction, *const c_void);
        link_create: "cuLinkCreate_v2" (c_uint, *mut c_int, *mut *mut c_void, *mut RawLink);
        link_add_data: "cuLinkAddData_v2" (RawLink, c_int, *mut c_void, usize, *const c_char, c_uint, *mut c_int, *mut *mut c_void);
        link_complete: "cuLinkComplete" (RawLink, *mut *mut c_void, *mut usize);
        link_destroy: "cuLinkDestroy" (RawLink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_symbol_is_listed_once() {
        let mut seen = std::collections::HashSet::new();
        for symbol in REQUIRED.iter().chain(OPTIONAL) {
            assert!(seen.insert(symbol), "{symbol} appears twice");
            assert!(symbol.starts_with("cu"));
        }
    }
}
