//! The stand-in functions for devices, contexts and modules, and the table of all.

use super::super::module::LaunchConfig;
use super::super::status::is_sticky;
use super::super::table::{DeviceId, RawContext, RawFunction, RawModule, RawStream, Status, Table};
use super::device::{Code, INVALID_HANDLE, INVALID_VALUE, Launch, Outcome, State, Work};
use super::work::{self, enqueue};
use super::{CURRENT, HERE, instance};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::PoisonError;

const INVALID_CONTEXT: Status = 201;

/// Answers a call that needs no context.
fn plain(symbol: &'static str, id: Option<usize>, body: impl FnOnce(&mut State) -> Outcome) -> Status {
    let Some(state) = id.or_else(|| HERE.get().map(|here| here.0)).and_then(instance) else { return 4 };
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    state.enter(symbol).and_then(|()| body(&mut state)).err().unwrap_or(0)
}

/// Answers a call on the thread's current context: its device's number goes to `body`.
pub(super) fn bound(symbol: &'static str, body: impl FnOnce(&mut State, usize) -> Outcome) -> Status {
    let current = CURRENT.get();
    let ordinal = current & 0xff;
    let status = plain(symbol, Some(current >> 8).filter(|id| *id != 0), |state| {
        if current == 0 || state.devices[ordinal].retained == 0 {
            return state.wrong(format!("{symbol} without a context"), INVALID_CONTEXT);
        }
        state.devices[ordinal].fault.map_or(Ok(()), Err)?;
        body(state, ordinal)
    });
    // A failure on demand poisons the device like one of its own.
    if is_sticky(status)
        && let Some(state) = instance(current >> 8)
    {
        state.lock().unwrap_or_else(PoisonError::into_inner).poison(ordinal, status);
    }
    status
}

/// Answers a call on a device.
fn owned(symbol: &'static str, device: DeviceId, body: impl FnOnce(&mut State, usize) -> Outcome) -> Status {
    let ordinal = (device & 0xff) as usize;
    plain(symbol, Some((device >> 8) as usize), |state| {
        if ordinal < state.devices.len() { body(state, ordinal) } else { Err(101) }
    })
}

pub(super) fn put<T>(slot: *mut T, value: T) {
    // SAFETY: the wrappers under test pass live slots of the type that the prototype names.
    unsafe { slot.write(value) };
}

pub(super) fn host_bytes<'a>(address: usize, size: usize) -> &'a [u8] {
    // SAFETY: the wrappers under test promise that the range is live until the copy has run.
    unsafe { std::slice::from_raw_parts(address as *const u8, size) }
}

pub(super) fn host_bytes_mut<'a>(address: usize, size: usize) -> &'a mut [u8] {
    // SAFETY: as above; nobody else uses the range before the copy has run.
    unsafe { std::slice::from_raw_parts_mut(address as *mut u8, size) }
}

fn text<'a>(pointer: *const c_char) -> &'a str {
    // SAFETY: the wrappers under test pass zero-terminated text.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or("")
}

pub(super) fn handle(value: usize) -> *mut c_void {
    value as *mut c_void
}

extern "system" fn init(_: c_uint) -> Status {
    plain("cuInit", None, |state| if state.config.init == 0 { Ok(()) } else { Err(state.config.init) })
}

extern "system" fn driver_get_version(version: *mut c_int) -> Status {
    plain("cuDriverGetVersion", None, |state| {
        put(version, state.config.version);
        Ok(())
    })
}

const TEXTS: &[(Status, &CStr)] = &[
    (1, c"invalid argument"),
    (2, c"out of memory"),
    (100, c"no CUDA-capable device is detected"),
    (101, c"invalid device ordinal"),
    (201, c"invalid device context"),
    (218, c"a PTX JIT compilation failed"),
    (222, c"the provided PTX was compiled with an unsupported toolchain."),
    (400, c"invalid resource handle"),
    (500, c"named symbol not found"),
    (700, c"an illegal memory access was encountered"),
    (701, c"too many resources requested for launch"),
    (719, c"unspecified launch failure"),
    (803, c"system has unsupported display driver / cuda driver combination"),
    (999, c"unknown error"),
];

extern "system" fn get_error_name(_: Status, name: *mut *const c_char) -> Status {
    plain("cuGetErrorName", None, |_| {
        put(name, c"CUDA_ERROR".as_ptr());
        Ok(())
    })
}

extern "system" fn get_error_string(status: Status, words: *mut *const c_char) -> Status {
    let found = TEXTS.iter().find(|(number, _)| *number == status);
    plain("cuGetErrorString", None, |_| {
        put(words, found.map_or(std::ptr::null(), |(_, words)| words.as_ptr()));
        if found.is_some() { Ok(()) } else { Err(INVALID_VALUE) }
    })
}

extern "system" fn device_get_count(count: *mut c_int) -> Status {
    plain("cuDeviceGetCount", None, |state| {
        put(count, state.devices.len() as c_int);
        Ok(())
    })
}

extern "system" fn device_get(device: *mut DeviceId, ordinal: c_int) -> Status {
    let id = HERE.get().map_or(0, |here| here.0);
    plain("cuDeviceGet", None, |state| {
        if ordinal < 0 || ordinal as usize >= state.devices.len() {
            return Err(101);
        }
        put(device, (id << 8) as DeviceId | ordinal);
        Ok(())
    })
}

extern "system" fn device_get_name(name: *mut c_char, size: c_int, device: DeviceId) -> Status {
    owned("cuDeviceGetName", device, |_, ordinal| {
        let words = format!("Stand-in {ordinal}\0");
        host_bytes_mut(name as usize, size as usize)[..words.len()].copy_from_slice(words.as_bytes());
        Ok(())
    })
}

extern "system" fn device_get_attribute(value: *mut c_int, attribute: c_int, device: DeviceId) -> Status {
    owned("cuDeviceGetAttribute", device, |_, _| {
        let known = [
            (13, 1_980_000),
            (16, 132),
            (36, 3_201_000),
            (37, 6016),
            (75, 9),
            (76, 0),
            (81, 233_472),
            (97, 232_448),
            (115, 1),
        ];
        let found = known.iter().find(|(number, _)| *number == attribute).ok_or(INVALID_VALUE)?;
        put(value, found.1);
        Ok(())
    })
}

extern "system" fn device_total_mem(bytes: *mut usize, device: DeviceId) -> Status {
    owned("cuDeviceTotalMem_v2", device, |state, _| {
        put(bytes, state.config.memory);
        Ok(())
    })
}

extern "system" fn device_get_uuid(uuid: *mut [u8; 16], device: DeviceId) -> Status {
    owned("cuDeviceGetUuid", device, |_, ordinal| {
        put(uuid, [ordinal as u8; 16]);
        Ok(())
    })
}

extern "system" fn primary_ctx_retain(context: *mut RawContext, device: DeviceId) -> Status {
    owned("cuDevicePrimaryCtxRetain", device, |state, ordinal| {
        state.devices[ordinal].fault.map_or(Ok(()), Err)?;
        state.devices[ordinal].retained += 1;
        put(context, handle(device as usize));
        Ok(())
    })
}

extern "system" fn primary_ctx_release(device: DeviceId) -> Status {
    owned("cuDevicePrimaryCtxRelease_v2", device, |state, ordinal| {
        match state.devices[ordinal].retained {
            0 => return state.wrong("a context that is not retained was released".into(), INVALID_CONTEXT),
            1 => {
                let live = state.live();
                if state.config.devices == 1
                    && live != Default::default()
                    && state.devices[ordinal].fault.is_none()
                {
                    state.leaks.push(live);
                }
                state.destroy(ordinal);
            }
            _ => {}
        }
        state.devices[ordinal].retained -= 1;
        Ok(())
    })
}

extern "system" fn primary_ctx_reset(device: DeviceId) -> Status {
    owned("cuDevicePrimaryCtxReset_v2", device, |state, ordinal| {
        if state.devices[ordinal].fault.is_none() {
            state.misuse.push(format!("device {ordinal} was reset without a fault"));
        }
        state.destroy(ordinal);
        Ok(())
    })
}

extern "system" fn ctx_set_current(context: RawContext) -> Status {
    plain("cuCtxSetCurrent", Some(context as usize >> 8), |_| {
        CURRENT.set(context as usize);
        Ok(())
    })
}

extern "system" fn ctx_synchronize() -> Status {
    bound("cuCtxSynchronize", |state, ordinal| state.run_all(ordinal))
}

const ERROR_LOG_BUFFER: c_int = 5;
const ERROR_LOG_SIZE: c_int = 6;

extern "system" fn module_load_data_ex(
    module: *mut RawModule,
    image: *const c_void,
    count: c_uint,
    options: *mut c_int,
    values: *mut *mut c_void,
) -> Status {
    let words = size_of::<*mut c_void>();
    let options: &[c_int] = bytemuck::cast_slice(host_bytes(options as usize, count as usize * 4));
    let values: &[usize] = bytemuck::cast_slice(host_bytes(values as usize, count as usize * words));
    let option = |wanted| options.iter().position(|option| *option == wanted).map(|index| values[index]);
    let status = bound("cuModuleLoadDataEx", |state, ordinal| {
        let source = text(image.cast());
        let first = source.lines().find(|line| !line.starts_with("//") && !line.trim().is_empty());
        if !first.is_some_and(|line| line.starts_with(".version")) {
            return Err(218);
        }
        let id = state.fresh();
        state.modules.insert(id, Code { ordinal, text: source.to_string() });
        put(module, handle(id));
        Ok(())
    });
    if let (218 | 222, Some(buffer), Some(size)) = (status, option(ERROR_LOG_BUFFER), option(ERROR_LOG_SIZE))
    {
        let state = instance(CURRENT.get() >> 8);
        let log = state.map_or("", |state| state.lock().unwrap_or_else(PoisonError::into_inner).config.log);
        let buffer = host_bytes_mut(buffer, size);
        let written = log.len().min(size - 1);
        buffer[..written].copy_from_slice(&log.as_bytes()[..written]);
        buffer[written] = 0;
    }
    status
}

extern "system" fn module_unload(module: RawModule) -> Status {
    bound("cuModuleUnload", |state, ordinal| {
        state.run_all(ordinal)?;
        match state.modules.remove(&(module as usize)) {
            Some(_) => Ok(()),
            None => state.wrong("a stale module was unloaded".into(), INVALID_HANDLE),
        }
    })
}

extern "system" fn module_get_function(
    function: *mut RawFunction,
    module: RawModule,
    name: *const c_char,
) -> Status {
    bound("cuModuleGetFunction", |state, _| {
        let name = text(name);
        let Some(code) = state.modules.get(&(module as usize)) else {
            return state.wrong("a stale module was asked for a function".into(), INVALID_HANDLE);
        };
        parameters(&code.text, name).ok_or(500)?;
        let id = state.fresh();
        state.functions.insert(id, (module as usize, name.to_string()));
        put(function, handle(id));
        Ok(())
    })
}

/// Sizes of an entry's parameters in bytes; `None` where the text has no such entry.
fn parameters(ptx: &str, name: &str) -> Option<Vec<usize>> {
    let head = ptx.split(".entry ").skip(1).find(|part| part.split(['(', '\n', ' ']).next() == Some(name))?;
    let list = head.split_once('(')?.1.split_once(')')?.0;
    list.split(',').map(str::trim).filter(|item| !item.is_empty()).map(parameter_size).collect()
}

fn parameter_size(item: &str) -> Option<usize> {
    let kind = item.split_whitespace().find(|word| {
        ["8", "16", "32", "64"].iter().any(|bits| word.ends_with(bits) && word.starts_with('.'))
    })?;
    let bits: usize = kind.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    let count = item.split_once('[').map_or(Some(1), |(_, size)| size.strip_suffix(']')?.parse().ok())?;
    Some(bits / 8 * count)
}

fn code(state: &mut State, function: RawFunction) -> Result<(String, Vec<usize>), Status> {
    let (module, name) = state.functions.get(&(function as usize)).cloned().ok_or(INVALID_HANDLE)?;
    match state.modules.get(&module).and_then(|code| parameters(&code.text, &name)) {
        Some(sizes) => Ok((name, sizes)),
        None => state.wrong(format!("kernel '{name}' of an unloaded module was used"), INVALID_HANDLE),
    }
}

extern "system" fn func_get_attribute(value: *mut c_int, attribute: c_int, function: RawFunction) -> Status {
    bound("cuFuncGetAttribute", |state, _| {
        code(state, function)?;
        put(value, if attribute == 4 { 32 } else { 0 });
        Ok(())
    })
}

extern "system" fn func_set_attribute(function: RawFunction, _: c_int, value: c_int) -> Status {
    bound("cuFuncSetAttribute", |state, _| {
        code(state, function)?;
        if (0..=232_448).contains(&value) { Ok(()) } else { Err(INVALID_VALUE) }
    })
}

extern "system" fn launch_kernel(
    function: RawFunction,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    threads: c_uint,
    threads_y: c_uint,
    threads_z: c_uint,
    shared: c_uint,
    stream: RawStream,
    arguments: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> Status {
    let launch =
        Launch { blocks: (x, y, z), threads: (threads, threads_y, threads_z), shared, ..Launch::default() };
    bound("cuLaunchKernel", |state, _| launched(state, function, stream, arguments, launch))
}

extern "system" fn launch_kernel_ex(
    config: *const c_void,
    function: RawFunction,
    arguments: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> Status {
    bound("cuLaunchKernelEx", |state, _| {
        // SAFETY: the wrapper under test passes a live structure.
        let config = unsafe { &*config.cast::<LaunchConfig>() };
        // SAFETY: it points to as many live attributes as it says.
        let attributes = unsafe { std::slice::from_raw_parts(config.attributes, config.count as usize) };
        let value = |id: c_int| attributes.iter().find(|one| one.id == id).map(|one| one.value[0]);
        let ([x, y, z], [a, b, c]) = (config.grid, config.block);
        let cluster = value(4).unwrap_or(1);
        if attributes.iter().any(|one| one.id != 4 && one.id != 6)
            || cluster == 0
            || x % cluster != 0
            || cluster > 8
        {
            return Err(INVALID_VALUE);
        }
        let launch = Launch {
            blocks: (x, y, z),
            threads: (a, b, c),
            shared: config.shared,
            cluster,
            early: value(6) == Some(1),
            ..Launch::default()
        };
        launched(state, function, config.stream, arguments, launch)
    })
}

/// Enqueues a launch and writes it down, with the kernel's name and arguments.
fn launched(
    state: &mut State,
    function: RawFunction,
    stream: RawStream,
    arguments: *mut *mut c_void,
    launch: Launch,
) -> Outcome {
    let (kernel, sizes) = code(state, function)?;
    let ((x, y, z), threads) = (launch.blocks, launch.threads.0);
    if x == 0 || y == 0 || z == 0 || y > 65_535 || z > 65_535 || threads == 0 || threads > 1024 {
        return Err(INVALID_VALUE);
    }
    let words = host_bytes(arguments as usize, sizes.len() * size_of::<*mut c_void>());
    let pointers: &[usize] = bytemuck::cast_slice(words);
    let arguments = pointers.iter().zip(&sizes).map(|(at, size)| host_bytes(*at, *size).to_vec()).collect();
    enqueue(state, stream, Work::Launch { kernel: kernel.clone() })?;
    state.launches.push(Launch { kernel, arguments, ..launch });
    Ok(())
}

/// Writes down what the map was made of: address, dims, strides, rows of a box.
extern "system" fn tensor_map_encode_tiled(
    map: *mut c_void,
    _kind: c_int,
    rank: u32,
    address: *mut c_void,
    dims: *const u64,
    strides: *const u64,
    boxes: *const u32,
    _steps: *const u32,
    _interleave: c_int,
    swizzle: c_int,
    _promotion: c_int,
    _outside: c_int,
) -> Status {
    plain("cuTensorMapEncodeTiled", None, |_| {
        let list = |at: *const u64, count: usize| -> Vec<u64> {
            host_bytes(at as usize, 8 * count).chunks_exact(8).map(bytemuck::pod_read_unaligned).collect()
        };
        let (dims, strides) = (list(dims, rank as usize), list(strides, rank as usize - 1));
        let boxes: &[u32] = bytemuck::cast_slice(host_bytes(boxes as usize, 4 * rank as usize));
        let fits = dims.iter().all(|dim| (1..=1 << 32).contains(dim))
            && strides.iter().all(|stride| stride % 16 == 0 && *stride < 1 << 40)
            && boxes.iter().all(|size| (1..=256).contains(size));
        let aligned = (map as usize).is_multiple_of(64) && (address as usize).is_multiple_of(16);
        if !fits || !aligned || swizzle == 3 && boxes[0] > 64 {
            return Err(INVALID_VALUE);
        }
        let mut words = [0u64; 16];
        let told = [&[address as u64][..], &dims, &strides, &[u64::from(boxes[1])]].concat();
        words[..told.len()].copy_from_slice(&told);
        put(map.cast(), words);
        Ok(())
    })
}

/// Writes down what the map was made of: address, dims, strides, steps, corners of both ends, pixels.
extern "system" fn tensor_map_encode_im2col(
    map: *mut c_void,
    _kind: c_int,
    rank: u32,
    address: *mut c_void,
    dims: *const u64,
    strides: *const u64,
    lower: *const c_int,
    upper: *const c_int,
    channels: u32,
    pixels: u32,
    steps: *const u32,
    _interleave: c_int,
    swizzle: c_int,
    _promotion: c_int,
    _fill: c_int,
) -> Status {
    plain("cuTensorMapEncodeIm2col", None, |_| {
        let rank = rank as usize;
        let wide = |at: *const u64, count: usize| -> Vec<u64> {
            host_bytes(at as usize, 8 * count).chunks_exact(8).map(bytemuck::pod_read_unaligned).collect()
        };
        let narrow = |at: usize, count: usize| -> &[i32] { bytemuck::cast_slice(host_bytes(at, 4 * count)) };
        let (dims, strides) = (wide(dims, rank), wide(strides, rank - 1));
        let steps = narrow(steps as usize, rank);
        let corners = [lower, upper].map(|at| narrow(at as usize, rank - 2));
        let most = 1 << [15, 7, 3][rank - 3];
        let fits = dims.iter().all(|dim| (1..=1 << 32).contains(dim))
            && strides.iter().all(|stride| stride % 16 == 0 && *stride < 1 << 40)
            && steps.iter().all(|step| (1..=8).contains(step))
            && corners.iter().all(|ends| ends.iter().all(|end| (-most..most).contains(end)))
            && (1..=1024).contains(&pixels);
        let aligned = (map as usize).is_multiple_of(64) && (address as usize).is_multiple_of(16);
        if !fits || !aligned || swizzle == 3 && channels > 64 {
            return Err(INVALID_VALUE);
        }
        let mut bytes: Vec<u64> = [&[address as u64][..], &dims, &strides].concat();
        let pixels = pixels as i32;
        let small = steps.iter().chain(corners[0]).chain(corners[1]).chain([&pixels]);
        let small: Vec<u8> = small.map(|value| *value as i8 as u8).collect();
        bytes.extend(small.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        let mut words = [0u64; 16];
        words[..bytes.len()].copy_from_slice(&bytes);
        put(map.cast(), words);
        Ok(())
    })
}

/// The table, without the optional functions of those names.
pub(super) fn table(absent: &[&str]) -> Table {
    let has = |symbol: &str| !absent.contains(&symbol);
    Table {
        init,
        driver_get_version,
        get_error_name,
        get_error_string,
        device_get_count,
        device_get,
        device_get_name,
        device_get_attribute,
        device_total_mem,
        device_get_uuid,
        primary_ctx_retain,
        primary_ctx_release,
        ctx_set_current,
        ctx_synchronize,
        module_load_data_ex,
        module_unload,
        module_get_function,
        func_get_attribute,
        func_set_attribute,
        launch_kernel,
        mem_alloc: work::mem_alloc,
        mem_free: work::mem_free,
        mem_host_alloc: work::mem_host_alloc,
        mem_free_host: work::mem_free_host,
        mem_host_register: work::mem_host_register,
        mem_host_unregister: work::mem_host_unregister,
        memcpy_htod: work::memcpy_htod,
        memcpy_dtoh: work::memcpy_dtoh,
        memcpy_dtod: work::memcpy_dtod,
        memcpy_htod_async: work::memcpy_htod_async,
        memcpy_dtoh_async: work::memcpy_dtoh_async,
        memcpy_dtod_async: work::memcpy_dtod_async,
        memset_d8_async: work::memset_d8_async,
        mem_get_info: work::mem_get_info,
        stream_create: work::stream_create,
        stream_destroy: work::stream_destroy,
        stream_synchronize: work::stream_synchronize,
        stream_wait_event: work::stream_wait_event,
        event_create: work::event_create,
        event_record: work::event_record,
        event_synchronize: work::event_synchronize,
        event_query: work::event_query,
        event_elapsed_time: work::event_elapsed_time,
        event_destroy: work::event_destroy,
        primary_ctx_reset: if has("cuDevicePrimaryCtxReset_v2") { Some(primary_ctx_reset) } else { None },
        mem_alloc_async: if has("cuMemAllocAsync") { Some(work::mem_alloc_async) } else { None },
        get_proc_address: None,
        memcpy_peer_async: None,
        mem_free_async: None,
        device_get_default_mem_pool: None,
        mem_pool_set_attribute: None,
        mem_pool_trim_to: None,
        stream_begin_capture: None,
        stream_end_capture: None,
        graph_instantiate: None,
        graph_launch: None,
        graph_exec_destroy: None,
        graph_destroy: None,
        graph_exec_kernel_node_set_params: None,
        launch_kernel_ex: if has("cuLaunchKernelEx") { Some(launch_kernel_ex) } else { None },
        tensor_map_encode_tiled: if has("cuTensorMapEncodeTiled") {
            Some(tensor_map_encode_tiled)
        } else {
            None
        },
        tensor_map_encode_im2col: if has("cuTensorMapEncodeIm2col") {
            Some(tensor_map_encode_im2col)
        } else {
            None
        },
        occupancy_max_active_blocks: None,
        occupancy_max_active_clusters: None,
        link_create: None,
        link_add_data: None,
        link_complete: None,
        link_destroy: None,
    }
}
