"""The peer of the benchmarks: the same cases by PyTorch (cuBLAS, cuDNN) in a child process.

    python3 torch_peer.py cuda:0

Greets with one JSON line, then answers each case, a JSON line on standard input, with a line {"ms", "how"} or
{"error"}. float32 means float32 here too: TF32 is on only where the case's precision is 'high' or 'medium'. Each figure
is the best of the forms that a user could pick.
"""
import json
import statistics
import sys
import time

SAMPLES = 9
SAMPLE_MS = 20
WARM_UP_MS = 100
MOST_CALLS = 1000
CALLS_IN_GRAPH = 20
LONG_CALL_MS = 1
COPY_ELEMENTS = 1 << 30


def say(message):
    print(json.dumps(message), flush=True)


def open_device(name):
    """torch and the device, or an error that says what is missing."""
    try:
        import torch
    except ImportError:
        raise RuntimeError("Python has no torch") from None
    if name != "cpu" and not torch.cuda.is_available():
        raise RuntimeError(f"torch {torch.__version__} sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    if name != "cpu":
        torch.cuda.set_device(name)
    return torch, torch.device(name)


class Clock:
    """Median milliseconds of one call."""

    def __init__(self, torch, device):
        self.torch, self.cuda, self.sample_ms = torch, device.type == "cuda", SAMPLE_MS

    def host(self, call, count):
        start = time.perf_counter()
        for _ in range(count):
            call()
        if self.cuda:
            self.torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1000 / count

    def events(self, call, count):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / count

    def time(self, call, by_host=False):
        sample = self.events if self.cuda and not by_host else self.host
        call()
        per_call = max(sample(call, 3), 1e-4)
        sample(call, min(MOST_CALLS, int(WARM_UP_MS / per_call) + 1))
        count = min(MOST_CALLS, int(self.sample_ms / per_call) + 1)
        return statistics.median(sample(call, count) for _ in range(SAMPLES))

    def in_graph(self, call):
        """The same from a captured graph, which spares the launches' cost; None where it cannot be captured."""
        if not self.cuda:
            return None
        try:
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph):
                for _ in range(CALLS_IN_GRAPH):
                    call()
            return self.time(graph.replay) / CALLS_IN_GRAPH
        except RuntimeError:
            self.torch.cuda.synchronize()
            return None


def matmul_forms(torch, inputs, options, operands):
    a, b = inputs
    if options.get("transB"):
        b = b.mT
    tf32 = options.get("precision") in ("high", "medium")

    def multiply():
        torch.backends.cuda.matmul.allow_tf32 = tf32
        return a @ b

    yield "torch.matmul in TF32" if tf32 else "torch.matmul", multiply


def conv_forms(torch, inputs, options, operands):
    top, left, bottom, right = options["pads"]
    assert (top, left) == (bottom, right)
    arguments = {"stride": options["strides"], "padding": (top, left), "groups": options["group"]}
    tf32 = options.get("precision") in ("high", "medium")

    def convolve(x, w):
        torch.backends.cudnn.allow_tf32 = tf32
        return torch.nn.functional.conv2d(x, w, **arguments)

    for name, layout in (("NCHW", torch.contiguous_format), ("channels last", torch.channels_last)):
        x, w = (tensor.contiguous(memory_format=layout) for tensor in inputs)
        yield f"conv2d {name}{' in TF32' if tf32 else ''}", lambda x=x, w=w: convolve(x, w)


def median_forms(torch, inputs, options, operands):
    (rows,) = inputs
    middle = len(rows) // 2
    yield "torch.median", lambda: rows.median(dim=0).values
    yield "torch.sort", lambda: rows.sort(dim=0).values[middle]


def nearest_mean(rows, centre, count):
    order = (rows - centre).abs().argsort(dim=0)[:count]
    return rows.gather(0, order).mean(dim=0)


def aggregate_forms(torch, inputs, options, operands):
    """A rule as a user would write it."""
    (rows,) = inputs
    n, f = len(rows), options["f"]

    def trimmed():
        return rows.sort(dim=0).values[f : n - f].mean(dim=0)

    forms = {
        "mean": lambda: rows.mean(dim=0),
        "median": lambda: rows.median(dim=0).values,
        "trimmedMean": trimmed,
        "meamed": lambda: nearest_mean(rows, rows.median(dim=0).values, n - f),
        "phocas": lambda: nearest_mean(rows, trimmed(), n - f),
    }
    yield options["rule"], forms[options["rule"]]


def softmax_forms(torch, inputs, options, operands):
    yield "softmax", lambda: torch.softmax(inputs[0], options["axis"])


def layer_norm_forms(torch, inputs, options, operands):
    (x,) = inputs
    shape = x.shape[options["axis"] :]
    yield "layer_norm", lambda: torch.nn.functional.layer_norm(x, shape, operands["scale"], operands["bias"])


def cast_forms(torch, inputs, options, operands):
    dtype = getattr(torch, options["to"])
    yield "to", lambda: inputs[0].to(dtype)


def reduction(name, function):
    def forms(torch, inputs, options, operands):
        (x,), axes = inputs, options["axes"]
        yield name, lambda: function(torch)(x, axes)
        if len(axes) == x.dim():
            yield f"{name} of a flat view", lambda: function(torch)(x.flatten(), [0])

    return forms


def product_forms(torch, inputs, options, operands):
    (x,), (axis,) = inputs, options["axes"]
    yield "prod", lambda: torch.prod(x, axis)


def transpose_forms(torch, inputs, options, operands):
    yield "permute", lambda: inputs[0].permute(options["perm"]).contiguous()


def slice_forms(torch, inputs, options, operands):
    cut = tuple(slice(*bounds) for bounds in zip(options["starts"], options["ends"], options["steps"]))
    yield "slice", lambda: inputs[0][cut].contiguous()


def split_forms(torch, inputs, options, operands):
    (x,), axis = inputs, options["axis"]
    size = -(-x.shape[axis] // options["numOutputs"])
    yield "split", lambda: [part.contiguous() for part in x.split(size, axis)]
    yield "split_copy", lambda: torch.split_copy(x, size, axis)


def pad_forms(torch, inputs, options, operands):
    (x,), (before, after) = inputs, (options["pads"][: inputs[0].dim()], options["pads"][inputs[0].dim() :])
    pairs = [pads for axis in zip(reversed(before), reversed(after)) for pads in axis]
    while pairs[-2:] == [0, 0]:
        pairs = pairs[:-2]
    mode = {"edge": "replicate", "wrap": "circular"}.get(options["mode"], options["mode"])
    yield f"pad {mode}", lambda: torch.nn.functional.pad(x, pairs, mode)


def gather_forms(torch, inputs, options, operands):
    x, indices = inputs
    flat, dims = indices.flatten(), list(x.shape)
    dims[options["axis"] : options["axis"] + 1] = indices.shape
    yield "index_select", lambda: x.index_select(options["axis"], flat).view(dims)


def indexed(name, function):
    def forms(torch, inputs, options, operands):
        yield name, lambda: function(torch)(inputs[0], options["axis"], *inputs[1:])

    return forms


def plain(name, function):
    def forms(torch, inputs, options, operands):
        yield name, lambda: function(torch)(*inputs)

    return forms


def evaluate_forms(torch, inputs, options, operands):
    """The same text, which is Python as well."""
    functions = {name: getattr(torch, name) for name in ("relu", "sigmoid")}
    functions |= {name: getattr(torch.nn.functional, name) for name in ("gelu", "silu")}
    # Not eval: torch.compile wants a function of its own.
    exec(f"def expression({', '.join(options['names'])}): return {options['text']}", functions)
    expression = functions["expression"]
    yield "eager", lambda: expression(*inputs)
    # Past eight functions of one form it would give up.
    torch._dynamo.reset()
    compiled = torch.compile(expression, dynamic=False)
    try:
        compiled(*inputs)
    except Exception as error:
        print(f"torch.compile: {type(error).__name__}", file=sys.stderr)
    else:
        yield "torch.compile", lambda: compiled(*inputs)


FORMS = {
    "evaluate": evaluate_forms,
    "matmul": matmul_forms,
    "conv2d": conv_forms,
    "median": median_forms,
    "aggregate": aggregate_forms,
    "softmax": softmax_forms,
    "layerNorm": layer_norm_forms,
    "cast": cast_forms,
    "reduceSum": reduction("sum", lambda torch: torch.sum),
    "reduceMean": reduction("mean", lambda torch: torch.mean),
    "reduceMax": reduction("amax", lambda torch: torch.amax),
    "reduceL2": reduction("vector_norm", lambda torch: lambda x, axes: torch.linalg.vector_norm(x, 2, axes)),
    "reduceProd": product_forms,
    "transpose": transpose_forms,
    "slice": slice_forms,
    "split": split_forms,
    "concat": lambda torch, inputs, options, operands: [("cat", lambda: torch.cat(inputs, options["axis"]))],
    "pad": pad_forms,
    "gather": gather_forms,
    "gatherElements": indexed("gather", lambda torch: torch.gather),
    "scatterElements": indexed("scatter", lambda torch: torch.scatter),
    "argMax": indexed("argmax", lambda torch: torch.argmax),
    "relu": plain("relu", lambda torch: torch.relu),
    "gelu": plain("gelu", lambda torch: torch.nn.functional.gelu),
    "silu": plain("silu", lambda torch: torch.nn.functional.silu),
    "sigmoid": plain("sigmoid", lambda torch: torch.sigmoid),
    "tanh": plain("tanh", lambda torch: torch.tanh),
    "exp": plain("exp", lambda torch: torch.exp),
    "add": plain("add", lambda torch: torch.add),
    "mul": plain("mul", lambda torch: torch.mul),
}


def time_op(torch, device, clock, case):
    dtype = getattr(torch, case["type"])

    def make(dims):
        if not dtype.is_floating_point:
            return torch.randint(0, 256, dims, dtype=dtype, device=device)
        return torch.randn(dims, dtype=dtype, device=device)

    inputs = [make(dims) for dims in case["inputs"]]
    if indices := case.get("indices"):
        dims = case["inputs"][indices["operand"]]
        inputs[indices["operand"]] = torch.randint(0, indices["below"], dims, device=device)
    operands = {name: make(dims) for name, dims in case.get("operands", {}).items()}
    timings = []
    with torch.inference_mode():
        for name, call in FORMS[case["op"]](torch, inputs, {**case, **case["options"]}, operands):
            eager = clock.time(call)
            timings.append((eager, name))
            replayed = clock.in_graph(call) if eager < LONG_CALL_MS else None
            if replayed is not None:
                timings.append((replayed, f"{name}, captured graph"))
    ms, how = min(timings)
    return {"ms": ms, "how": how, "forms": {name: ms for ms, name in timings}}


def time_copy(torch, device, clock, case):
    """Copies queued back to back, as the host's clock sees them."""
    host = torch.ones(case["inputs"][0])
    if case["memory"] == "pinned":
        host = host.pin_memory()
    on_device = torch.ones_like(host, device=device)
    to, source = (on_device, host) if case["op"] == "upload" else (host, on_device)
    return {"ms": clock.time(lambda: to.copy_(source, non_blocking=True), by_host=True), "how": f"copy_, {case['memory']}"}


def greeting(torch, device, clock):
    if device.type == "cpu":
        return {"name": f"torch {torch.__version__}, {torch.get_num_threads()} threads"}
    properties = torch.cuda.get_device_properties(device)
    elements = min(COPY_ELEMENTS, properties.total_memory // 32)
    source = torch.ones(elements, device=device)
    target = torch.empty_like(source)
    seconds = clock.time(lambda: target.copy_(source)) / 1000
    return {
        "name": f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}",
        "device": properties.name,
        "copyBytesPerSecond": 2 * 4 * elements / seconds,
    }


def main():
    try:
        torch, device = open_device(sys.argv[1])
    except RuntimeError as error:
        return say({"error": str(error)})
    clock = Clock(torch, device)
    say(greeting(torch, device, clock))
    for line in sys.stdin:
        case = json.loads(line)
        clock.sample_ms = case.get("sampleMs", SAMPLE_MS)
        is_copy = case["op"] in ("upload", "download")
        try:
            say((time_copy if is_copy else time_op)(torch, device, clock, case))
        except (RuntimeError, KeyError) as error:
            say({"error": f"{type(error).__name__}: {error}"})
        if device.type == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
