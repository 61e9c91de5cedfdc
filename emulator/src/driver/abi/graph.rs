//! Capture and graphs.

use super::super::graphs as inner;
use super::super::modules::Shape;
use super::super::status::*;
use super::bound;
use super::launch::parameters;
use super::types::*;
use std::ffi::{c_int, c_uint};

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    pub function: Handle,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub addresses: Array<usize>,
    pub extra: Array<usize>,
    pub kernel: Handle,
    pub context: Handle,
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(stream: Handle, mode: c_int) -> Status {
    bound("cuStreamBeginCapture_v2", |ordinal| inner::begin(ordinal, stream, mode))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamEndCapture(stream: Handle, graph: Slot<Handle>) -> Status {
    bound("cuStreamEndCapture", |ordinal| {
        graph.put(0)?;
        graph.put(inner::end(ordinal, stream)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphInstantiateWithFlags(exec: Slot<Handle>, graph: Handle, flags: u64) -> Status {
    bound("cuGraphInstantiateWithFlags", |ordinal| {
        if exec.is_null() {
            return Err(INVALID_VALUE);
        }
        exec.put(inner::instantiate(ordinal, graph, flags)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(exec: Handle, stream: Handle) -> Status {
    bound("cuGraphLaunch", |ordinal| inner::launch(ordinal, exec, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphGetNodes(graph: Handle, nodes: Array<Handle>, count: Slot<usize>) -> Status {
    bound("cuGraphGetNodes", |ordinal| {
        let found = inner::nodes(ordinal, graph)?;
        if nodes.is_null() {
            return count.put(found.len());
        }
        let room = count.get().ok_or(INVALID_VALUE)?;
        // Places beyond the number of nodes are cleared, as the driver does.
        (0..room).for_each(|index| nodes.set(index, found.get(index).copied().unwrap_or(0)));
        count.put(found.len().min(room))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphNodeGetType(node: Handle, kind: Slot<c_int>) -> Status {
    bound("cuGraphNodeGetType", |_| kind.put(inner::node_type(node)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecKernelNodeSetParams_v2(
    exec: Handle,
    node: Handle,
    values: Struct<KernelNode>,
) -> Status {
    bound("cuGraphExecKernelNodeSetParams_v2", |ordinal| {
        let values = values.list(1)?[0];
        let packed = parameters(ordinal, values.function, values.addresses, values.extra)?;
        let shape = Shape {
            grid: values.grid,
            block: values.block,
            shared: values.shared,
            cluster: None,
            early: false,
        };
        inner::set_kernel(ordinal, exec, node, values.function, shape, packed)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(exec: Handle) -> Status {
    bound("cuGraphExecDestroy", |ordinal| inner::destroy_exec(ordinal, exec))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(graph: Handle) -> Status {
    bound("cuGraphDestroy", |ordinal| inner::destroy_graph(ordinal, graph))
}
