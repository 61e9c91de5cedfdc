//! A device's primary context: the owner that every other handle refers to.

use super::load::{Api, api};
use super::status;
use super::table::{DeviceId, RawContext, Status};
use crate::{Error, Result};
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};

/// What the driver says of a device without a context.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct DeviceProperties {
    pub ordinal: usize,
    pub name: String,
    pub uuid: String,
    /// (major, minor).
    pub compute_capability: (u32, u32),
    pub multiprocessors: u32,
    /// Highest clock of the multiprocessors in kHz.
    pub clock: u32,
    /// Bytes a second of the device's memory at its highest clock; 0 where the driver does not say.
    pub bandwidth: u64,
    /// Bytes.
    pub total_memory: u64,
    /// Bytes of shared memory that one block may ask for.
    pub shared_memory_per_block: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_memory: u32,
    /// Whether stream-ordered memory pools are there.
    pub memory_pools: bool,
}

/// Number of devices; an error where the driver is absent or lists none.
pub fn device_count() -> Result<usize> {
    let api = api()?;
    let mut count: c_int = 0;
    // SAFETY: `count` is a live c_int that the call writes once.
    let answer = unsafe { (api.table.device_get_count)(&mut count) };
    status::check(api, "cuDeviceGetCount", answer)?;
    if count < 1 {
        return Err(Error::GpuUnavailable("the NVIDIA driver is installed but lists no device".into()));
    }
    Ok(count as usize)
}

fn device_id(api: &Api, ordinal: usize) -> Result<DeviceId> {
    let count = device_count()?;
    if ordinal >= count {
        return Err(Error::DeviceNotFound(format!(
            "no device 'cuda:{ordinal}': {count} present, numbered from 0"
        )));
    }
    let mut device: DeviceId = 0;
    // SAFETY: `device` is a live slot and the ordinal was checked against the count.
    let answer = unsafe { (api.table.device_get)(&mut device, ordinal as c_int) };
    status::check(api, "cuDeviceGet", answer)?;
    Ok(device)
}

/// Asks the driver for a device's properties. Creates no context.
pub fn device_properties(ordinal: usize) -> Result<DeviceProperties> {
    let api = api()?;
    let device = device_id(api, ordinal)?;
    let attribute = |number: c_int| -> Result<u32> {
        let mut value: c_int = 0;
        // SAFETY: `value` is a live slot; the number is a CUdevice_attribute and the device was given by the driver.
        let answer = unsafe { (api.table.device_get_attribute)(&mut value, number, device) };
        status::check(api, "cuDeviceGetAttribute", answer)?;
        Ok(value.max(0) as u32)
    };
    let mut name = [0u8; 256];
    // SAFETY: the buffer is live and its length is passed.
    let answer =
        unsafe { (api.table.device_get_name)(name.as_mut_ptr().cast(), name.len() as c_int, device) };
    status::check(api, "cuDeviceGetName", answer)?;
    let mut total_memory = 0usize;
    // SAFETY: `total_memory` is a live slot of the type the call writes.
    let answer = unsafe { (api.table.device_total_mem)(&mut total_memory, device) };
    status::check(api, "cuDeviceTotalMem_v2", answer)?;
    let mut uuid = [0u8; 16];
    // SAFETY: CUuuid is 16 bytes, the size of the live array.
    let answer = unsafe { (api.table.device_get_uuid)(&mut uuid, device) };
    status::check(api, "cuDeviceGetUuid", answer)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(DeviceProperties {
        ordinal,
        name: String::from_utf8_lossy(&name[..end]).into_owned(),
        uuid: uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
        compute_capability: (attribute(75)?, attribute(76)?),
        multiprocessors: attribute(16)?,
        clock: attribute(13)?,
        // kHz, two transfers each, and bits.
        bandwidth: u64::from(attribute(36).unwrap_or(0)) * 2000 * u64::from(attribute(37).unwrap_or(0)) / 8,
        total_memory: total_memory as u64,
        shared_memory_per_block: attribute(97)?,
        shared_memory: attribute(81)?,
        memory_pools: attribute(115).unwrap_or(0) != 0 && api.table.mem_alloc_async.is_some(),
    })
}

/// A retained primary context. Handles made from it keep it alive through an `Arc`.
pub struct Context {
    pub(super) api: &'static Api,
    pub(super) device: DeviceId,
    pub(super) raw: RawContext,
    properties: DeviceProperties,
    /// What the driver said of the fault that made the context unusable.
    fault: OnceLock<String>,
    reason: Mutex<Option<String>>,
    /// Whether the driver has destroyed the context's state. Every driver call holds it for reading, so that the reset,
    /// which ends the life of all handles, happens beside none.
    destroyed: RwLock<bool>,
    /// Live handles (allocations, streams, events, modules) for the leak tests.
    pub(super) handles: AtomicUsize,
}

// SAFETY: the driver API may be called from any thread; the raw handle is only passed to it, and every wrapper makes
// the context current on its own thread first.
unsafe impl Send for Context {}
// SAFETY: as for Send: the fields that change are atomics and a mutex.
unsafe impl Sync for Context {}

/// The context is current on this thread and stays alive while this is held.
#[must_use]
pub(super) struct Bound<'a>(#[allow(dead_code)] RwLockReadGuard<'a, bool>);

/// Contexts in use. A device has one primary context, and a fault or a reset strikes all handles made from it, so there
/// is one owner for each device.
fn contexts() -> MutexGuard<'static, Vec<Weak<Context>>> {
    static CONTEXTS: Mutex<Vec<Weak<Context>>> = Mutex::new(Vec::new());
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// The primary context of that device, retained at the first call and again after a loss.
    pub fn new(ordinal: usize) -> Result<Arc<Context>> {
        let properties = device_properties(ordinal)?;
        let api = api()?;
        let device = device_id(api, ordinal)?;
        let mut contexts = contexts();
        contexts.retain(|context| context.strong_count() > 0);
        for context in contexts.iter().filter_map(Weak::upgrade) {
            if !std::ptr::eq(context.api, api) || context.device != device || context.is_destroyed() {
                continue;
            }
            if !context.is_lost() {
                return Ok(context);
            }
            context.destroy();
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a live slot and the device was given by the driver.
        let answer = unsafe { (api.table.primary_ctx_retain)(&mut raw, device) };
        status::check(api, "cuDevicePrimaryCtxRetain", answer)?;
        let context = Arc::new(Context {
            api,
            device,
            raw,
            properties,
            fault: OnceLock::new(),
            reason: Mutex::new(None),
            destroyed: RwLock::new(false),
            handles: AtomicUsize::new(0),
        });
        contexts.push(Arc::downgrade(&context));
        Ok(context)
    }

    /// The device's properties.
    pub fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    /// Makes the context current on this thread. Calls that pass its handles to the driver hold the answer meanwhile.
    pub(super) fn bind(&self) -> Result<Bound<'_>> {
        let bound = Bound(self.destroyed.read().unwrap_or_else(PoisonError::into_inner));
        if let Some(fault) = self.fault.get() {
            let reason = self.reason.lock().ok().and_then(|reason| reason.clone());
            return Err(Error::DeviceLost(reason.unwrap_or_else(|| fault.clone())));
        }
        // SAFETY: `raw` was retained in `new`; `destroy` needs `destroyed` for writing, which `bound` keeps from it.
        let answer = unsafe { (self.api.table.ctx_set_current)(self.raw) };
        self.check("cuCtxSetCurrent", answer).map(|()| bound)
    }

    /// Turns a status into a result; codes that mean a lost context mark it.
    pub(super) fn check(&self, call: &str, answer: Status) -> Result<()> {
        if !status::is_sticky(answer) {
            return status::check(self.api, call, answer);
        }
        let told = self.fault.get_or_init(|| status::describe(self.api, call, answer));
        Err(Error::DeviceLost(told.clone()))
    }

    /// Names the operation in the error of a lost context. The first caller's name stays: device faults show at the
    /// next wait, and waits happen in the order of submission.
    pub fn blame(&self, operation: &str, error: Error) -> Error {
        let Error::DeviceLost(text) = error else { return error };
        // The error may tell of a tensor that an earlier context took along.
        if !self.is_lost() {
            return Error::DeviceLost(text);
        }
        let Ok(mut reason) = self.reason.lock() else { return Error::DeviceLost(text) };
        let ordinal = self.properties.ordinal;
        let told =
            reason.get_or_insert_with(|| format!("cuda:{ordinal} was lost while '{operation}' ran: {text}"));
        Error::DeviceLost(told.clone())
    }

    /// An error unless the other handle's context is this one. The driver does not promise to notice a stale handle.
    pub(super) fn same(&self, other: &Arc<Context>) -> Result<()> {
        if std::ptr::eq(self, Arc::as_ptr(other)) {
            return Ok(());
        }
        Err(Error::Internal("a stream, event or kernel of another context was used".into()))
    }

    /// Whether a fault has made the context unusable.
    pub fn is_lost(&self) -> bool {
        self.fault.get().is_some()
    }

    /// Live handles that refer to this context.
    pub fn live_handles(&self) -> usize {
        self.handles.load(Ordering::Acquire)
    }

    /// Free and total device memory in bytes.
    pub fn memory_info(&self) -> Result<(u64, u64)> {
        let _bound = self.bind()?;
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: both are live slots of the type that the call writes.
        let answer = unsafe { (self.api.table.mem_get_info)(&mut free, &mut total) };
        self.check("cuMemGetInfo_v2", answer)?;
        Ok((free as u64, total as u64))
    }

    /// Waits for everything that was submitted to the context.
    pub fn synchronize(&self) -> Result<()> {
        let _bound = self.bind()?;
        // SAFETY: no arguments; the context is current.
        let answer = unsafe { (self.api.table.ctx_synchronize)() };
        self.check("cuCtxSynchronize", answer)
    }

    /// Whether the driver has destroyed what belonged to the context, so that the device uses none of it any more.
    pub(super) fn is_destroyed(&self) -> bool {
        *self.destroyed.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Destroys the state of a lost primary context, so that retaining it again gives a working one. Does nothing to a
    /// context that works, nor a second time.
    pub fn reset_lost(&self) {
        let _contexts = contexts();
        self.destroy();
    }

    /// For holders of the list of contexts, so that nobody retains the primary context meanwhile.
    fn destroy(&self) {
        let mut destroyed = self.destroyed.write().unwrap_or_else(PoisonError::into_inner);
        if *destroyed || !self.is_lost() {
            return;
        }
        *destroyed = true;
        if let Some(reset) = self.api.table.primary_ctx_reset {
            // SAFETY: the device id is valid. Handles end here: every call through them asks `bind` first, which
            // refuses once the context is lost, and none is under way while `destroyed` is held for writing.
            unsafe { reset(self.device) };
        }
        // SAFETY: pairs with the retain in `new`; drop leaves a destroyed context alone. A driver without the reset
        // destroys the state here, with the last reference.
        unsafe { (self.api.table.primary_ctx_release)(self.device) };
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.is_destroyed() {
            // SAFETY: pairs with the retain in `new`; every handle holds an Arc of this, so none is left.
            unsafe { (self.api.table.primary_ctx_release)(self.device) };
        }
    }
}
