"""Runs the kernels that the example `hopper` wrote on a card of compute capability 9.0 and compares with the emulator's bytes.

    python3 check.py <folder> <result.json> [path of libcuda.so.1]

Needs Python 3 and the driver. Ends with 1 where something differs."""

import base64
import ctypes
import json
import subprocess
import sys
import threading
import time
import zlib
from array import array
from pathlib import Path

FOLDER, RESULT = Path(sys.argv[1]), Path(sys.argv[2])
CUDA = ctypes.CDLL(sys.argv[3] if len(sys.argv) > 3 and not sys.argv[3].startswith("--") else "libcuda.so.1")
POINTER = ctypes.c_void_p
DYNAMIC_SHARED = 8
# Bytes of a result that differs, as text: all of it, but for so many of them.
ROOM = 90_000
# Seconds for all tests.
LIMIT = 12
END = time.monotonic() + LIMIT


def call(name, *arguments):
    status = getattr(CUDA, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: error {status}")


def attribute(number):
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


def start():
    context, name, version = POINTER(), ctypes.create_string_buffer(100), ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGetName", name, 100, 0)
    call("cuDriverGetVersion", ctypes.byref(version))
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    capability = f"{attribute(75)}.{attribute(76)}"
    return {"device": name.value.decode(), "computeCapability": capability, "driver": version.value}


def allocate(size):
    pointer = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
    return pointer


def encode(entry, address):
    """The driver's code, and the map's 128 bytes at a multiple of 64."""
    room = ctypes.create_string_buffer(192)
    place = (ctypes.addressof(room) + 63) // 64 * 64
    wide = lambda values: (ctypes.c_uint64 * max(len(values), 1))(*values)
    words = lambda values: (ctypes.c_int32 * max(len(values), 1))(*values)
    head = [POINTER(place), entry["type"], len(entry["dims"]), POINTER(address + entry["offset"]), wide(entry["dims"]), wide(entry["strides"])]
    tail = [words(entry["steps"]), entry["interleave"], entry["swizzle"], entry["promotion"], entry["fill"]]
    pixels = entry["pixels"]
    if pixels:
        middle = [words(pixels["lower"]), words(pixels["upper"]), pixels["channels"], pixels["count"]]
        status = CUDA.cuTensorMapEncodeIm2col(*head, *middle, *tail)
    else:
        status = CUDA.cuTensorMapEncodeTiled(*head, words(entry["box"]), *tail)
    return status, place, room


def run(module, test, given):
    function, size = POINTER(), test["bytes"]
    call("cuModuleGetFunction", ctypes.byref(function), module, test["entry"].encode())
    call("cuFuncSetAttribute", function, DYNAMIC_SHARED, test["shared"])
    out = allocate(size)
    call("cuMemsetD8Async", out, ctypes.c_ubyte(0), ctypes.c_size_t(size), None)
    entry = test["map"]
    status, place, _room = encode(entry, out.value if entry["over_output"] else given.value) if entry else (0, 0, None)
    if status != 0:
        raise RuntimeError(f"the driver makes no map: error {status}")
    nothing = ctypes.create_string_buffer(128)
    arguments = (POINTER * 3)(ctypes.addressof(given), ctypes.addressof(out), place or ctypes.addressof(nothing))
    call("cuLaunchKernel", function, 1, 1, 1, test["threads"], 1, 1, test["shared"], None, arguments, None)
    call("cuCtxSynchronize")
    host = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", host, out, ctypes.c_size_t(size))
    call("cuMemFree_v2", out)
    return host.raw


def words(data):
    values = array("I")
    values.frombytes(data)
    return values


def compare(got, want):
    """How many words are equal, and the first that are not."""
    differing = [n for n, (a, b) in enumerate(zip(words(got), words(want))) if a != b]
    first = [f"{n}: {words(got)[n]:08x} for {words(want)[n]:08x}" for n in differing[:4]]
    return {"words": len(want) // 4, "equal": len(want) // 4 - len(differing), "first": first}


def image():
    """What ptxas made of the text where it has been run, for the driver's compiler takes its time."""
    cubin = FOLDER / "hopper.cubin"
    return cubin.read_bytes() if cubin.exists() else (FOLDER / "hopper.ptx").read_bytes() + b"\0"


def worker(first):
    """Runs the tests from a number on; a line of JSON for each. An error ends it, for it ends the context."""
    manifest = json.loads((FOLDER / "hopper.json").read_text())
    wanted = (FOLDER / "hopper.bin").read_bytes()
    start()
    module = POINTER()
    call("cuModuleLoadDataEx", ctypes.byref(module), image(), 0, None, None)
    given = allocate(manifest["input"])
    call("cuMemcpyHtoD_v2", given, array("I", range(manifest["input"] // 4)).tobytes(), ctypes.c_size_t(manifest["input"]))
    for test in manifest["tests"][first:]:
        want = wanted[test["offset"] : test["offset"] + test["bytes"]]
        try:
            got = run(module, test, given)
        except RuntimeError as error:
            print(json.dumps({"name": test["name"], "error": str(error)}), flush=True)
            return
        result = {"name": test["name"], **compare(got, want)}
        if got != want:
            result["got"] = base64.b64encode(zlib.compress(got, 9)).decode()
        print(json.dumps(result), flush=True)


def main():
    manifest = json.loads((FOLDER / "hopper.json").read_text())
    results = []
    while len(results) < len(manifest["tests"]):
        before = len(results)
        process = subprocess.Popen([sys.executable, *sys.argv, "--from", str(before)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        late = threading.Timer(max(0.0, END - time.monotonic()), process.kill)
        late.start()
        results += [json.loads(line) for line in process.stdout if line.endswith("\n")]
        late.cancel()
        if len(results) == before or time.monotonic() > END:
            results.append({"name": "the worker ended", "error": process.stderr.read()[-2000:]})
            break
    card, place = start(), allocate(1 << 20)
    codes = [[encode(entry, place.value)[0], want, entry] for entry, want in manifest["maps"]]
    room = ROOM
    for result in results:
        room -= len(result.get("got", ""))
        if room < 0:
            result.pop("got", None)
    wrong = [result for result in results if "error" in result or result["equal"] < result["words"]]
    summary = {
        **card,
        "tests": len(results),
        "differing": len(wrong),
        "words": sum(result.get("words", 0) for result in results),
        "equal": sum(result.get("equal", 0) for result in results),
        "maps": len(codes),
        "mapsDiffering": [[got, want, entry] for got, want, entry in codes if got != want],
    }
    RESULT.write_text(json.dumps({**summary, "wrong": wrong}, indent=1) + "\n")
    print(json.dumps(summary)[:3000])
    for result in wrong:
        print({key: value for key, value in result.items() if key != "got"})
    return 1 if wrong or summary["mapsDiffering"] else 0


if "--from" in sys.argv:
    worker(int(sys.argv[sys.argv.index("--from") + 1]))
else:
    sys.exit(main())
