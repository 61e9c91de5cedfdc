//! Modules, logs, launches and the linker.

mod common;

use common::*;
use std::ffi::CString;
use warpwright_emulator::driver::abi::types::{Array, Bytes, Handle, Slot, Text};
use warpwright_emulator::driver::abi::*;
use warpwright_emulator::driver::control::{self, Launch};

/// What `cuModuleLoadDataEx` answers, and the error log.
fn load_with_log(text: &str) -> (Result<Handle, i32>, String) {
    let text = CString::new(text).unwrap();
    let mut log = [1u8; 512];
    let mut keys = [5, 6, 2];
    let mut values = [log.as_mut_ptr() as usize, log.len(), 77];
    let (keys, places) = (Array::from(&mut keys[..]), Array::from(&mut values[..]));
    let answer = got(|slot| cuModuleLoadDataEx(slot, Bytes::from(text.as_c_str()), 3, keys, places));
    let end = log.iter().position(|byte| *byte == 0).unwrap();
    assert_eq!(values[1], if end == 0 { 0 } else { end + 1 }, "the size becomes the bytes filled");
    (answer, String::from_utf8_lossy(&log[..end]).into_owned())
}

#[test]
fn a_module_and_its_functions() {
    let _machine = ready("");
    let (module, log) = load_with_log(PTX);
    let module = module.unwrap();
    assert_eq!(log, "");
    let name = function(module, "nothing").unwrap();
    assert_eq!(function(module, "nothing"), Ok(name));
    assert_eq!(function(module, "something"), Err(500));
    let attribute = |number| got(|slot| cuFuncGetAttribute(slot, number, name));
    assert_eq!((attribute(0), attribute(1), attribute(8)), (Ok(64), Ok(0), Ok(48 << 10)));
    assert_eq!(attribute(99), Err(1));
    assert_eq!(cuFuncSetAttribute(name, 8, 163 << 10), 0);
    assert_eq!(cuFuncSetAttribute(name, 8, 164 << 10), 1);
    assert_eq!(cuFuncSetAttribute(name, 0, 3), 1);
    assert_eq!(cuModuleUnload(module), 0);
}

#[test]
fn texts_that_are_refused_say_why() {
    for (config, text, status, part) in [
        ("driver=11.0", PTX.replace(".version 7.0", ".version 7.1"), 222, "7.1"),
        ("ptx=6.5", PTX.to_string(), 222, "7.0"),
        ("cc=75", PTX.replace("sm_75", "sm_80"), 218, "sm_80"),
        ("", PTX.replace("add.s64", "conjure.s64"), 218, "conjure"),
        ("", "no text of a module".to_string(), 218, ""),
    ] {
        let _machine = ready(config);
        let (answer, log) = load_with_log(&text);
        assert_eq!(answer, Err(status), "{config}: {log}");
        assert!(log.contains(part), "{config}: {log}");
        assert!(load(PTX).is_ok() || config == "ptx=6.5", "the next call works");
    }
}

#[test]
fn a_kernel_runs_when_it_is_waited_for() {
    let _machine = ready("");
    let (function, stream) = (adder(), stream());
    let device = filled(&[1, 2, 3]);
    assert_eq!(add(function, device, 10, 3, stream), 0);
    assert_eq!(read(device, 3), [1, 2, 3]);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(read(device, 3), [11, 12, 13]);
    let many: Vec<u32> = (0..10_000).collect();
    let device = filled(&many);
    assert_eq!(add(function, device, 5, 10_000, stream), 0);
    assert_eq!(cuCtxSynchronize(), 0);
    assert!(read(device, 10_000).into_iter().eq(5..10_005));
}

#[test]
fn launches_beyond_the_card() {
    let machine = ready("");
    let module = load(PTX).unwrap();
    let (small, large) = (function(module, "nothing").unwrap(), function(module, "add_u32").unwrap());
    let launch = |function, grid: [u32; 3], block: [u32; 3], shared| {
        let mut words = [0u64; 3];
        let mut pointers = [words.as_mut_ptr() as usize; 3];
        let parameters = Array::from(&mut pointers[..]);
        let [x, y, z] = grid;
        let [bx, by, bz] = block;
        cuLaunchKernel(function, x, y, z, bx, by, bz, shared, 0, parameters, Array::NULL)
    };
    let one = [1, 1, 1];
    assert_eq!(launch(small, one, [64, 1, 1], 0), 0);
    assert_eq!(launch(small, one, [65, 1, 1], 0), 701, "more threads than .maxntid");
    assert_eq!(launch(large, [0, 1, 1], one, 0), 1);
    assert_eq!(launch(large, one, [1, 0, 1], 0), 1);
    assert_eq!(launch(large, [1, 65_536, 1], one, 0), 1);
    assert_eq!(launch(large, [65_536, 65_535, 1], [1, 1, 1], 0), 0);
    assert_eq!(launch(large, one, [1025, 1, 1], 0), 1);
    assert_eq!(launch(large, one, [1, 1, 65], 0), 1);
    assert_eq!(launch(large, one, one, 49 << 10), 1, "not asked for");
    assert_eq!(cuFuncSetAttribute(large, 8, 49 << 10), 0);
    assert_eq!(launch(large, one, one, 49 << 10), 0);
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
    machine.found("leaks", "modules: 1");
}

#[test]
fn the_extended_launch() {
    let _machine = ready("");
    let (function, device) = (adder(), filled(&[1]));
    let (mut address, mut amount, mut count) = (device, 2u32, 1u32);
    let mut pointers = [&raw mut address as usize, &raw mut amount as usize, &raw mut count as usize];
    let mut attributes = [LaunchAttribute { id: 4, pad: [0; 4], value: [1; 16] }];
    let mut config = [LaunchConfig {
        grid: [1, 1, 1],
        block: [32, 1, 1],
        shared: 0,
        stream: 0,
        attributes: Array::from(&mut attributes[..]),
        count: 1,
    }];
    let parameters = Array::from(&mut pointers[..]);
    assert_eq!(cuLaunchKernelEx(Array::from(&mut config[..]), function, parameters, Array::NULL), 0);
    assert_eq!(read(device, 1), [3]);
    config[0].attributes.set(0, LaunchAttribute { id: 4, pad: [0; 4], value: [2; 16] });
    assert_eq!(
        cuLaunchKernelEx(Array::from(&mut config[..]), function, parameters, Array::NULL),
        801,
        "no clusters"
    );
    let mut block = 0;
    assert_eq!(
        cuOccupancyMaxActiveClusters(Slot::from(&mut block), function, Array::from(&mut config[..])),
        801
    );
}

#[test]
fn launches_that_do_not_run_are_noted() {
    let machine = ready("run=off");
    let (function, device) = (adder(), filled(&[1]));
    assert_eq!(add(function, device, 2, 40, 0), 0);
    assert_eq!(read(device, 1), [1]);
    let arguments =
        [&device.to_ne_bytes()[..], &2u32.to_ne_bytes(), &40u32.to_ne_bytes()].map(<[u8]>::to_vec);
    let noted = Launch {
        kernel: "add_u32".into(),
        blocks: (2, 1, 1),
        threads: (32, 1, 1),
        arguments: arguments.into(),
        ..Launch::default()
    };
    assert_eq!(control::launches(), [noted]);
    control::fail("cuLaunchKernel", 2, 1);
    assert_eq!([(); 3].map(|()| add(function, device, 2, 1, 0)), [0, 1, 0]);
    control::fault_in("add_u32", 719);
    control::heal();
    assert_eq!((add(function, device, 2, 1, 0), cuCtxSynchronize()), (0, 0));
    assert_eq!((control::calls("cuLaunchKernel"), control::live().allocations), (5, 1));
    control::fault_in("add_u32", 719);
    assert_eq!((add(function, device, 2, 1, 0), cuCtxSynchronize()), (0, 719));
    assert_eq!(machine.findings(), []);
}

#[test]
fn clusters_divide_the_grid() {
    let _machine = ready("cc=90");
    let (function, device) = (adder(), filled(&[0; 192]));
    let (mut address, mut amount, mut count) = (device, 1u32, 192u32);
    let mut pointers = [&raw mut address as usize, &raw mut amount as usize, &raw mut count as usize];
    let mut launch = |blocks: u32, size: [u32; 3]| {
        let mut value = [0; 16];
        value[..3].copy_from_slice(&size);
        let mut attributes = [LaunchAttribute { id: 4, pad: [0; 4], value }];
        let attributes = Array::from(&mut attributes[..]);
        let mut config = [LaunchConfig {
            grid: [blocks, 1, 1],
            block: [32, 1, 1],
            shared: 0,
            stream: 0,
            attributes,
            count: 1,
        }];
        cuLaunchKernelEx(Array::from(&mut config[..]), function, Array::from(&mut pointers[..]), Array::NULL)
    };
    assert_eq!([2, 3, 6].map(|size| launch(6, [size, 1, 1])), [0; 3]);
    assert_eq!(read(device, 192), [3; 192]);
    let refused = [(6, [4, 1, 1]), (6, [0, 1, 1]), (6, [2, 2, 1]), (16, [16, 1, 1])];
    assert_eq!(refused.map(|(blocks, size)| launch(blocks, size)), [912; 4]);
}

#[test]
fn parameters_in_one_block() {
    let _machine = ready("");
    let (function, device) = (adder(), filled(&[1]));
    let mut block = [device, 2 | 1 << 32];
    let mut size = 16usize;
    let mut extra = [1, block.as_mut_ptr() as usize, 2, &raw mut size as usize, 0];
    let extra = Array::from(&mut extra[..]);
    assert_eq!(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, Array::NULL, extra), 0);
    assert_eq!(read(device, 1), [3]);
    let mut short = 8usize;
    extra.set(3, &raw mut short as usize);
    assert_eq!(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, Array::NULL, extra), 1);
    assert_eq!(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, Array::NULL, Array::NULL), 1);
}

#[test]
fn blocks_of_a_multiprocessor() {
    let _machine = ready("cc=75");
    let function = adder();
    let blocks = |threads, shared| {
        got(|slot| cuOccupancyMaxActiveBlocksPerMultiprocessor(slot, function, threads, shared))
    };
    assert_eq!(blocks(1024, 0), Ok(1));
    assert_eq!(blocks(256, 0), Ok(4));
    assert_eq!(blocks(32, 30 << 10), Ok(2));
    assert_eq!(blocks(0, 0), Err(1));
}

#[test]
fn what_the_linker_gives_loads_where_it_belongs() {
    let machine = ready("cc=80");
    let linker = got(|slot| cuLinkCreate_v2(0, Array::NULL, Array::NULL, slot)).unwrap();
    let add_data = |kind, text: &str| {
        let text = CString::new(text).unwrap();
        let (data, size) = (Bytes::from(text.as_c_str()), text.as_bytes_with_nul().len());
        cuLinkAddData_v2(linker, kind, data, size, Text::from(c"test"), 0, Array::NULL, Array::NULL)
    };
    let (mut image, mut size) = (0, 0);
    assert_eq!(cuLinkComplete(linker, Slot::from(&mut image), Slot::from(&mut size)), 1, "no input");
    assert_eq!(add_data(1, "not a module"), 218);
    assert_eq!(add_data(3, PTX), 801);
    assert_eq!(add_data(1, PTX), 0);
    assert_eq!(cuLinkComplete(linker, Slot::from(&mut image), Slot::from(&mut size)), 0);
    let image = pages::copy_out(image, size);
    assert_eq!(cuLinkDestroy(linker), 0);
    assert_eq!(cuLinkDestroy(linker), 400);
    machine.found("handles", "a linker");
    assert_eq!(&image[..4], b"\x7fELF");
    let load = || got(|slot| cuModuleLoadDataEx(slot, Bytes::from(&image[..]), 0, Array::NULL, Array::NULL));
    let (function, device) = (function(load().unwrap(), "add_u32").unwrap(), filled(&[1]));
    assert_eq!(add(function, device, 1, 1, 0), 0);
    assert_eq!(read(device, 1), [2]);
    drop(machine);
    let _machine = ready("cc=90");
    assert_eq!(load(), Err(209), "made for another generation");
}

#[test]
fn addresses_by_name() {
    let _machine = machine("driver=12.0,absent=cuMemAllocAsync");
    let find = |name: &str, version| {
        let name = CString::new(name).unwrap();
        let (mut address, mut found) = (0, 7);
        let places = (Slot::from(&mut address), Slot::from(&mut found));
        let status = cuGetProcAddress_v2(Text::from(name.as_c_str()), places.0, version, 0, places.1);
        (status, address != 0, found)
    };
    assert_eq!(find("cuMemAlloc", 12000), (0, true, 0));
    assert_eq!(find("cuMemAlloc_v2", 12000), (0, true, 0));
    assert_eq!(find("cuMemAllocAsync", 12000), (0, false, 1));
    assert_eq!(find("cuConjure", 12000), (0, false, 1));
    assert_eq!(find("cuMemAlloc", 12010), (0, false, 1));
}

#[test]
fn a_kernel_out_of_bounds_ends_the_context() {
    let machine = ready("");
    let (function, device) = (adder(), filled(&[1, 2]));
    assert_eq!(add(function, device, 1, 3, 0), 0);
    assert_eq!(cuCtxSynchronize(), 700);
    machine.found("kernel", "add_u32");
    assert_eq!(got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 4)), Err(700));
    assert_eq!(cuDevicePrimaryCtxReset_v2(0), 0);
    retain(0);
    let (function, device) = (adder(), filled(&[1, 2]));
    assert_eq!(add(function, device, 1, 2, 0), 0);
    assert_eq!(read(device, 2), [2, 3]);
}
