//! One emulated machine at a time, and short forms of calls.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::ffi::{CString, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};
use warpwright_emulator::driver::abi::types::{Array, Bytes, Handle, Slot, Text};
use warpwright_emulator::driver::abi::*;
use warpwright_emulator::driver::{Config, Finding, report, restart};

/// The machine, which no other test of the program uses meanwhile. At its end no finding may be left.
pub struct Machine(#[allow(dead_code)] MutexGuard<'static, ()>);

impl Drop for Machine {
    fn drop(&mut self) {
        let left = report::take();
        if !std::thread::panicking() {
            assert_eq!(left, [], "findings that the test did not expect");
        }
    }
}

impl Machine {
    /// The findings so far: checker and message.
    pub fn findings(&self) -> Vec<(String, String)> {
        report::take().into_iter().map(|Finding { checker, message, .. }| (checker, message)).collect()
    }

    /// Takes the one finding, which must be of that checker and hold that text.
    #[track_caller]
    pub fn found(&self, checker: &str, part: &str) {
        let found = self.findings();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, checker, "{found:?}");
        assert!(found[0].1.contains(part), "{found:?}");
    }
}

/// A machine before cuInit.
pub fn machine(config: &str) -> Machine {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    report::take();
    restart(Config::parse(config).unwrap());
    cuCtxSetCurrent(0);
    Machine(guard)
}

/// A machine whose first card's context is current.
pub fn ready(config: &str) -> Machine {
    let machine = machine(config);
    assert_eq!(cuInit(0), 0);
    retain(0);
    machine
}

/// Retains a card's context and makes it current.
pub fn retain(device: c_int) -> Handle {
    let mut context = 0;
    assert_eq!(cuDevicePrimaryCtxRetain(Slot::from(&mut context), device), 0);
    assert_eq!(cuCtxSetCurrent(context), 0);
    context
}

/// What a call writes, or its code.
pub fn got<T: Default>(call: impl FnOnce(Slot<T>) -> c_int) -> Result<T, c_int> {
    let mut value = T::default();
    match call(Slot::from(&mut value)) {
        0 => Ok(value),
        status => Err(status),
    }
}

#[track_caller]
pub fn alloc(size: usize) -> u64 {
    got(|slot| cuMemAlloc_v2(slot, size)).unwrap()
}

/// Memory that holds these words.
#[track_caller]
pub fn filled(words: &[u32]) -> u64 {
    let address = alloc(words.len() * 4);
    assert_eq!(cuMemcpyHtoD_v2(address, words.as_ptr() as usize, words.len() * 4), 0);
    address
}

#[track_caller]
pub fn read(address: u64, count: usize) -> Vec<u32> {
    let mut words = vec![0u32; count];
    assert_eq!(cuMemcpyDtoH_v2(words.as_mut_ptr() as usize, address, count * 4), 0);
    words
}

/// A stream that does not wait for the default stream.
pub fn stream() -> Handle {
    got(|slot| cuStreamCreate(slot, 1)).unwrap()
}

pub fn event() -> Handle {
    got(|slot| cuEventCreate(slot, 0)).unwrap()
}

/// Page-locked memory of the driver's.
pub struct Pinned(pub Handle, usize);

pub fn pinned(words: &[u32]) -> Pinned {
    let address = got(|slot| cuMemHostAlloc(slot, words.len() * 4, 0)).unwrap();
    let block = Pinned(address, words.len());
    block.set(words);
    block
}

impl Pinned {
    pub fn set(&self, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        pages::copy_in(self.0, &bytes);
    }

    pub fn get(&self) -> Vec<u32> {
        let bytes = pages::copy_out(self.0, self.1 * 4);
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect()
    }

    pub fn free(self) {
        assert_eq!(cuMemFreeHost(self.0), 0);
    }
}

/// A kernel that adds a number to each of some words, and one that writes nothing.
pub const PTX: &str = "
.version 7.0
.target sm_75
.address_size 64

.visible .entry add_u32(
	.param .u64 add_u32_param_0,
	.param .u32 add_u32_param_1,
	.param .u32 add_u32_param_2
)
{
	.reg .pred 	%p<2>;
	.reg .b32 	%r<8>;
	.reg .b64 	%rd<5>;
	ld.param.u64 	%rd1, [add_u32_param_0];
	ld.param.u32 	%r1, [add_u32_param_1];
	ld.param.u32 	%r2, [add_u32_param_2];
	mov.u32 	%r3, %ctaid.x;
	mov.u32 	%r4, %ntid.x;
	mov.u32 	%r5, %tid.x;
	mad.lo.s32 	%r6, %r3, %r4, %r5;
	setp.ge.u32 	%p1, %r6, %r2;
	@%p1 bra 	$DONE;
	cvta.to.global.u64 	%rd2, %rd1;
	mul.wide.u32 	%rd3, %r6, 4;
	add.s64 	%rd4, %rd2, %rd3;
	ld.global.u32 	%r7, [%rd4];
	add.u32 	%r7, %r7, %r1;
	st.global.u32 	[%rd4], %r7;
$DONE:
	ret;
}

.visible .entry nothing()
.maxntid 64, 1, 1
{
	ret;
}
";

pub fn load(text: &str) -> Result<Handle, c_int> {
    let text = CString::new(text).unwrap();
    got(|slot| cuModuleLoadDataEx(slot, Bytes::from(text.as_c_str()), 0, Array::NULL, Array::NULL))
}

pub fn function(module: Handle, name: &str) -> Result<Handle, c_int> {
    let name = CString::new(name).unwrap();
    got(|slot| cuModuleGetFunction(slot, module, Text::from(name.as_c_str())))
}

/// The function `add_u32`.
pub fn adder() -> Handle {
    function(load(PTX).unwrap(), "add_u32").unwrap()
}

/// Adds `amount` to `count` words.
pub fn add(function: Handle, address: u64, amount: u32, count: u32, stream: Handle) -> c_int {
    let (mut address, mut amount, mut count) = (address, amount, count);
    let mut pointers = [&raw mut address as usize, &raw mut amount as usize, &raw mut count as usize];
    let parameters = Array::from(&mut pointers[..]);
    cuLaunchKernel(function, count.div_ceil(32).max(1), 1, 1, 32, 1, 1, 0, stream, parameters, Array::NULL)
}

/// Launches the kernel `nothing` of a module.
pub fn nothing(module: Handle, stream: Handle) -> c_int {
    let function = function(module, "nothing").unwrap();
    cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, Array::NULL, Array::NULL)
}
