"""The peer of the networks on a GPU: onnxruntime's CUDA provider in a child process.

    python3 onnxruntime_peer.py cuda:0

Greets with one JSON line, then answers requests, a JSON line each on standard input: {"open": {"path", "part", "shapes"}}
prepares what is timed, {"round": milliseconds} makes calls for so long (0: one call) and answers {"times": [...]},
{"close": true} ends it. float32 means float32: TF32 is off, and cuDNN's algorithms are searched exhaustively.
"""
import json
import sys
import time


def say(message):
    print(json.dumps(message), flush=True)


def load():
    """onnxruntime with its CUDA provider, or an error that says what is missing."""
    try:
        import numpy
        import onnxruntime
    except ImportError as error:
        raise RuntimeError(f"Python has no {error.name}") from None
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise RuntimeError(f"onnxruntime {onnxruntime.__version__} has no CUDA provider")
    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    return numpy, onnxruntime


class Networks:
    def __init__(self, numpy, onnxruntime, device):
        self.numpy, self.onnxruntime = numpy, onnxruntime
        self.device = int(device.partition(":")[2] or 0)
        self.call = None

    def create(self, path):
        options = self.onnxruntime.SessionOptions()
        options.log_severity_level = 3
        cuda = {"device_id": self.device, "use_tf32": 0, "cudnn_conv_algo_search": "EXHAUSTIVE"}
        providers = [("CUDAExecutionProvider", cuda), "CPUExecutionProvider"]
        session = self.onnxruntime.InferenceSession(path, options, providers=providers)
        if session.get_providers()[0] != "CUDAExecutionProvider":
            raise RuntimeError("the CUDA provider did not start")
        return session

    def feeds(self, session, dims):
        """The feeds that our side makes too: floats between 0 and 1, small whole numbers."""
        place = self.numpy.arange(self.numpy.prod(dims))

        def one(name, type_name):
            if type_name != "tensor(int64)":
                return (place % 97 / 97).astype(self.numpy.float32).reshape(dims)
            whole = 1 + place % 7 if not ("mask" in name or "type" in name) else place * 0 + ("mask" in name)
            return whole.astype(self.numpy.int64).reshape(dims)

        return {value.name: one(value.name, value.type) for value in session.get_inputs()}

    def bound(self, session, feeds):
        """A call whose values stay on the GPU."""
        binding = session.io_binding()
        for name, value in feeds.items():
            binding.bind_ortvalue_input(name, self.onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", self.device))
        for value in session.get_outputs():
            binding.bind_output(value.name, "cuda", self.device)
        return lambda: session.run_with_iobinding(binding)

    def open(self, path, part, shapes):
        if part == "create":
            self.call = lambda: self.create(path)
            return
        session = self.create(path)
        feeds = [self.feeds(session, dims) for dims in shapes]
        if part in ("first", "new"):
            following = iter(feeds)
            self.call = lambda: session.run(None, next(following))
            return
        self.call = self.bound(session, feeds[0]) if part == "bound" else lambda: session.run(None, feeds[0])
        self.call()

    def round(self, milliseconds):
        times = []
        begin = time.perf_counter()
        while True:
            start = time.perf_counter()
            self.call()
            end = time.perf_counter()
            times.append((end - start) * 1000)
            if (end - begin) * 1000 >= milliseconds:
                return times


def answer(networks, request):
    if "open" in request:
        networks.open(**request["open"])
        return {"opened": True}
    if "round" in request:
        return {"times": networks.round(request["round"])}
    networks.call = None
    return {"closed": True}


def main():
    try:
        numpy, onnxruntime = load()
    except RuntimeError as error:
        say({"error": str(error)})
        return
    networks = Networks(numpy, onnxruntime, sys.argv[1])
    say({"name": f"onnxruntime {onnxruntime.__version__}, CUDA provider", "version": onnxruntime.__version__})
    for line in sys.stdin:
        try:
            say(answer(networks, json.loads(line)))
        except Exception as error:  # the run goes on without this case
            networks.call = None
            say({"error": str(error)[:500]})


main()
