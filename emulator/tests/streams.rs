//! Order within and between streams.

mod common;

use common::*;
use warpwright_emulator::driver::abi::types::Slot;
use warpwright_emulator::driver::abi::*;

fn fill(device: u64, byte: u8, stream: usize) {
    assert_eq!(cuMemsetD8Async(device, byte, 4, stream), 0);
}

#[test]
fn a_stream_keeps_its_order() {
    let _machine = ready("");
    let (stream, first, second) = (stream(), filled(&[1]), filled(&[2]));
    fill(first, 3, stream);
    assert_eq!(cuMemcpyDtoDAsync_v2(second, first, 4, stream), 0);
    fill(first, 4, stream);
    assert_eq!(cuStreamSynchronize(stream), 0);
    assert_eq!((read(first, 1)[0], read(second, 1)[0]), (0x0404_0404, 0x0303_0303));
}

#[test]
fn streams_without_an_event_between_them_are_in_no_order() {
    let _machine = ready("");
    let (writer, reader, device, host) = (stream(), stream(), filled(&[1]), pinned(&[0]));
    fill(device, 2, writer);
    assert_eq!(cuMemcpyDtoHAsync_v2(host.0, device, 4, reader), 0);
    assert_eq!(cuStreamSynchronize(reader), 0);
    assert_eq!(host.get(), [1], "the write was not waited for");
    assert_eq!(cuStreamSynchronize(writer), 0);
    host.free();
}

#[test]
fn a_stream_waits_for_another_ones_event() {
    let _machine = ready("");
    let (writer, reader, device, host, event) = (stream(), stream(), filled(&[1]), pinned(&[0]), event());
    fill(device, 2, writer);
    assert_eq!(cuEventRecord(event, writer), 0);
    fill(device, 3, writer);
    assert_eq!(cuStreamWaitEvent(reader, event, 0), 0);
    assert_eq!(cuMemcpyDtoHAsync_v2(host.0, device, 4, reader), 0);
    assert_eq!(cuStreamSynchronize(reader), 0);
    assert_eq!(host.get(), [0x0202_0202], "up to the event and no further");
    assert_eq!(cuCtxSynchronize(), 0);
    assert_eq!(read(device, 1), [0x0303_0303]);
    host.free();
}

#[test]
fn blocking_streams_and_the_default_stream_wait_for_each_other() {
    let _machine = ready("");
    let blocking = got(|slot| cuStreamCreate(slot, 0)).unwrap();
    let (first, second) = (filled(&[1]), filled(&[1]));
    fill(first, 2, blocking);
    assert_eq!(cuMemcpyDtoDAsync_v2(second, first, 4, 0), 0);
    fill(first, 3, blocking);
    assert_eq!(cuStreamSynchronize(blocking), 0);
    assert_eq!((read(first, 1)[0], read(second, 1)[0]), (0x0303_0303, 0x0202_0202));
    assert_eq!(cuStreamDestroy_v2(0), 400);
}

#[test]
fn the_default_stream_does_not_wait_for_other_streams() {
    let _machine = ready("");
    let (free, device) = (stream(), filled(&[1]));
    fill(device, 2, free);
    assert_eq!(read(device, 1), [1], "a synchronous copy waits for the default stream alone");
    assert_eq!(cuStreamSynchronize(free), 0);
}

#[test]
fn an_events_state() {
    let _machine = ready("");
    let (stream, device, event) = (stream(), filled(&[1]), event());
    assert_eq!(cuEventQuery(event), 0, "never recorded");
    assert_eq!(cuEventSynchronize(event), 0);
    fill(device, 2, stream);
    assert_eq!(cuEventRecord(event, stream), 0);
    assert_eq!(cuEventQuery(event), 600);
    assert_eq!(cuEventSynchronize(event), 0);
    assert_eq!(cuEventQuery(event), 0);
    assert_eq!(got(|slot: Slot<usize>| cuEventCreate(slot, 64)), Err(1));
}

#[test]
fn polling_ends() {
    let _machine = ready("");
    let (stream, device, event) = (stream(), filled(&[1]), event());
    (0..10).for_each(|byte| fill(device, byte, stream));
    assert_eq!(cuEventRecord(event, stream), 0);
    let queries = (1..100).find(|_| cuEventQuery(event) == 0);
    assert!(queries.is_some_and(|count| count > 10), "{queries:?}");
}

#[test]
fn times_between_events() {
    let machine = ready("slow=nothing:20");
    let (start, end, untimed) = (event(), event(), got(|slot| cuEventCreate(slot, 2)).unwrap());
    let module = load(PTX).unwrap();
    let elapsed = |from, to| got(|slot: Slot<f32>| cuEventElapsedTime(slot, from, to));
    assert_eq!(elapsed(start, end), Err(400), "not recorded");
    assert_eq!(cuEventRecord(start, 0), 0);
    assert_eq!(nothing(module, 0), 0);
    assert_eq!(cuEventRecord(end, 0), 0);
    assert_eq!(cuEventRecord(untimed, 0), 0);
    assert_eq!(elapsed(start, end), Err(600));
    assert_eq!(cuEventSynchronize(untimed), 0);
    assert!(elapsed(start, end).unwrap() >= 20.0);
    assert!(elapsed(end, start).unwrap() <= -20.0);
    assert_eq!(elapsed(start, untimed), Err(400));
    drop(machine);
}

#[test]
fn a_stream_that_is_destroyed_ends_its_work() {
    let _machine = ready("");
    let (stream, device) = (stream(), filled(&[1]));
    fill(device, 2, stream);
    assert_eq!(cuStreamDestroy_v2(stream), 0);
    assert_eq!(cuCtxSynchronize(), 0);
    assert_eq!(read(device, 1), [0x0202_0202]);
}

#[test]
fn an_event_that_is_recorded_again_moves() {
    let _machine = ready("");
    let (stream, device, event) = (stream(), filled(&[1]), event());
    assert_eq!(cuEventRecord(event, stream), 0);
    fill(device, 2, stream);
    assert_eq!(cuEventRecord(event, stream), 0);
    assert_eq!(cuEventSynchronize(event), 0);
    assert_eq!(read(device, 1), [0x0202_0202]);
}
