//! Capture, replay and the update of a kernel's parameters.

mod common;

use common::*;
use warpwright_emulator::driver::abi::types::{Array, Handle, Slot};
use warpwright_emulator::driver::abi::*;

fn end(stream: Handle) -> Result<Handle, i32> {
    got(|slot| cuStreamEndCapture(stream, slot))
}

fn instantiate(graph: Handle) -> Handle {
    got(|slot| cuGraphInstantiateWithFlags(slot, graph, 0)).unwrap()
}

fn nodes(graph: Handle) -> Vec<Handle> {
    let mut count = 0;
    assert_eq!(cuGraphGetNodes(graph, Array::NULL, Slot::from(&mut count)), 0);
    let mut nodes = vec![0; count];
    assert_eq!(cuGraphGetNodes(graph, Array::from(&mut nodes[..]), Slot::from(&mut count)), 0);
    nodes
}

#[test]
fn captured_work_runs_at_each_launch_and_not_before() {
    let _machine = ready("");
    let (function, stream, device) = (adder(), stream(), filled(&[1, 2]));
    let host = pinned(&[10, 20]);
    assert_eq!(cuStreamBeginCapture_v2(stream, 0), 0);
    assert_eq!(cuMemcpyHtoDAsync_v2(device, host.0, 8, stream), 0);
    assert_eq!(add(function, device, 1, 2, stream), 0);
    let graph = end(stream).unwrap();
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(read(device, 2), [1, 2]);
    let exec = instantiate(graph);
    assert_eq!(cuGraphDestroy(graph), 0);
    for words in [[10, 20], [30, 40]] {
        host.set(&words);
        assert_eq!(cuGraphLaunch(exec, stream), 0);
        assert_eq!(cuStreamSynchronize(stream), 0);
        assert_eq!(read(device, 2), words.map(|word| word + 1));
    }
    assert_eq!(cuGraphExecDestroy(exec), 0);
    host.free();
}

#[test]
fn a_source_that_changes_between_launch_and_run_is_found() {
    let machine = ready("");
    let (stream, device, host) = (stream(), filled(&[1]), pinned(&[10]));
    assert_eq!(cuStreamBeginCapture_v2(stream, 0), 0);
    assert_eq!(cuMemcpyHtoDAsync_v2(device, host.0, 4, stream), 0);
    let exec = instantiate(end(stream).unwrap());
    assert_eq!(cuGraphLaunch(exec, stream), 0);
    host.set(&[20]);
    assert_eq!(cuStreamSynchronize(stream), 0);
    machine.found("source", "changed");
    host.free();
}

#[test]
fn a_kernels_parameters_change_in_an_instantiated_graph() {
    let machine = ready("");
    let (function, stream, device) = (adder(), stream(), filled(&[1, 2]));
    assert_eq!(cuStreamBeginCapture_v2(stream, 1), 0);
    assert_eq!(add(function, device, 1, 1, stream), 0);
    assert_eq!(cuMemsetD8Async(device + 4, 0, 4, stream), 0);
    let graph = end(stream).unwrap();
    let (exec, nodes) = (instantiate(graph), nodes(graph));
    let kinds: Vec<i32> =
        nodes.iter().map(|node| got(|slot| cuGraphNodeGetType(*node, slot)).unwrap()).collect();
    assert_eq!(kinds, [0, 2]);
    let (mut address, mut amount, mut count) = (device, 7u32, 1u32);
    let mut pointers = [&raw mut address as usize, &raw mut amount as usize, &raw mut count as usize];
    let mut values = [KernelNode {
        function,
        grid: [1, 1, 1],
        block: [32, 1, 1],
        shared: 0,
        addresses: Array::from(&mut pointers[..]),
        extra: Array::NULL,
        kernel: 0,
        context: 0,
    }];
    let values = Array::from(&mut values[..]);
    assert_eq!(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], values), 0);
    assert_eq!(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], values), 1, "no kernel");
    assert_eq!(cuGraphExecKernelNodeSetParams_v2(graph, nodes[0], values), 400);
    machine.found("handles", "an instantiated graph");
    assert_eq!(cuGraphLaunch(exec, stream), 0);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(read(device, 2), [8, 0]);
    let original = instantiate(graph);
    assert_eq!(cuGraphLaunch(original, stream), 0);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!(read(device, 1), [9], "the graph itself is as captured");
}

#[test]
fn capture_follows_events_into_other_streams() {
    let _machine = ready("");
    let (function, main, side, device) = (adder(), stream(), stream(), filled(&[1]));
    let (fork, join) = (event(), event());
    assert_eq!(cuStreamBeginCapture_v2(main, 0), 0);
    assert_eq!(cuEventRecord(fork, main), 0);
    assert_eq!(cuStreamWaitEvent(side, fork, 0), 0);
    assert_eq!(add(function, device, 1, 1, side), 0);
    assert_eq!(cuEventRecord(join, side), 0);
    assert_eq!(cuEventSynchronize(join), 907, "an event in a capture cannot be waited for");
    assert_eq!(cuStreamWaitEvent(main, join, 0), 0);
    assert_eq!(add(function, device, 2, 1, main), 0);
    let exec = instantiate(end(main).unwrap());
    assert_eq!(cuGraphLaunch(exec, main), 0);
    assert_eq!(cuStreamSynchronize(main), 0);
    assert_eq!(read(device, 1), [4]);
    assert_eq!(add(function, device, 1, 1, side), 0);
    assert_eq!(cuStreamSynchronize(side), 0);
    assert_eq!(read(device, 1), [5], "the side stream is free again");
}

#[test]
fn capture_that_does_not_come_together() {
    let _machine = ready("");
    let (main, side, device) = (stream(), stream(), filled(&[1]));
    let fork = event();
    let fill = |stream| cuMemsetD8Async(device, 1, 4, stream);
    assert_eq!(end(main), Err(401));
    assert_eq!(cuStreamBeginCapture_v2(main, 0), 0);
    assert_eq!(cuStreamBeginCapture_v2(main, 0), 401);
    assert_eq!(cuEventRecord(fork, main), 0);
    assert_eq!(cuStreamWaitEvent(side, fork, 0), 0);
    assert_eq!(fill(side), 0);
    assert_eq!(end(side), Err(903));
    assert_eq!(end(main), Err(904));
    assert_eq!(fill(side), 0);
    assert_eq!(cuStreamSynchronize(side), 0);

    let outside = event();
    assert_eq!(cuEventRecord(outside, side), 0);
    assert_eq!(cuStreamBeginCapture_v2(main, 0), 0);
    assert_eq!(cuStreamWaitEvent(main, outside, 0), 905);
    let ended = std::thread::spawn(move || {
        retain(0);
        end(main)
    });
    assert_eq!(ended.join().unwrap(), Err(908));
    end(main).unwrap();
    assert_eq!(cuStreamBeginCapture_v2(0, 0), 900);
    assert_eq!(cuStreamBeginCapture_v2(main, 3), 1);
}

#[test]
fn calls_that_would_wait_end_a_capture() {
    let _machine = ready("");
    let (stream, device) = (stream(), filled(&[1]));
    let calls: [&dyn Fn() -> i32; 5] = [
        &|| cuStreamSynchronize(stream),
        &|| cuCtxSynchronize(),
        &|| got(|slot: Slot<u64>| cuMemAlloc_v2(slot, 4)).err().unwrap_or(0),
        &|| cuMemFree_v2(device),
        &|| got(|slot: Slot<u64>| cuMemAllocAsync(slot, 4, stream)).err().unwrap_or(0),
    ];
    for call in calls {
        assert_eq!(cuStreamBeginCapture_v2(stream, 0), 0);
        assert_eq!(call(), 900);
        assert_eq!(cuMemsetD8Async(device, 1, 4, stream), 901);
        assert_eq!(end(stream), Err(901));
        assert_eq!(cuMemsetD8Async(device, 1, 4, stream), 0, "the stream works again");
    }
    assert_eq!(cuStreamBeginCapture_v2(stream, 2), 0);
    let other = got(|slot| cuMemAlloc_v2(slot, 4));
    end(stream).unwrap();
    assert_eq!(cuMemFree_v2(other.unwrap()), 0, "a relaxed capture allows it");
}
