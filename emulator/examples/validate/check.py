"""Runs the kernels that the example `validate` wrote on a card and compares with the emulator's bits.

    python3 check.py <folder> <result.json> [path of libcuda.so.1]

Needs Python 3 and the driver. Ends with 1 where an exact instruction differs. The results hold checksums of the
card's words, which the emulator's own tests compare with, and `<result>.bin` what differs."""

import ctypes
import json
import math
import os
import struct
import sys
import time
import zlib
from array import array
from collections import Counter
from pathlib import Path

FOLDER, RESULT = Path(sys.argv[1]), Path(sys.argv[2])
CUDA = ctypes.CDLL(sys.argv[3] if len(sys.argv) > 3 else "libcuda.so.1")
POINTER = ctypes.c_void_p
SHOWN = int(os.environ.get("SHOWN", 4))


def call(name, *arguments):
    status = getattr(CUDA, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: error {status}")


def attribute(number):
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


def start():
    """Makes the first card's context current; tells what the card is."""
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


def upload(data):
    pointer = allocate(len(data))
    call("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))
    return pointer


def words(data):
    values = array("Q")
    values.frombytes(data)
    return values


def launch(module, test, given):
    """The words that a kernel writes."""
    function, size = POINTER(), 8 * test["words"]
    call("cuModuleGetFunction", ctypes.byref(function), module, test["entry"].encode())
    out = allocate(size)
    call("cuMemsetD8Async", out, ctypes.c_ubyte(0), ctypes.c_size_t(size), None)
    arguments = (POINTER * 2)(ctypes.cast(ctypes.byref(given), POINTER), ctypes.cast(ctypes.byref(out), POINTER))
    call("cuLaunchKernel", function, test["blocks"], 1, 1, test["threads"], 1, 1, 0, None, arguments, None)
    host = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", host, out, ctypes.c_size_t(size))
    call("cuMemFree_v2", out)
    return host.raw


# Errors of approximate instructions.


def single(bits):
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def half(bits):
    return struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0]


def brain(bits):
    return single((bits & 0xFFFF) << 16)


# How a type is read, its least normal and its greatest number.
TYPES = {
    "f64": (double, 2.0**-1022, 1.7e308),
    "f32": (single, 2.0**-126, 3.4e38),
    "f16": (half, 2.0**-14, 65504.0),
    "bf16": (brain, 2.0**-126, 3.3e38),
}


def relative(got, want):
    return abs(got - want) / abs(want)


def absolute(got, want):
    return abs(got - want)


def logarithm(got, want):
    # Absolute between 0.5 and 2, where the logarithm is within (-1, 1); relative beyond.
    return absolute(got, want) if abs(want) < 1 else relative(got, want)


def units(got, want):
    return abs(got - want) / 2.0 ** (math.floor(math.log2(abs(want))) - 23)


def everywhere(*_):
    return True


ROUND = 2 * math.pi
# Function, error, documented bound, where it holds.
DOCUMENTED = {
    "ex2": (lambda x: 2.0**x, relative, 2.0**-22, everywhere),
    "lg2": (math.log2, logarithm, 2.0**-22, lambda x: x > 0),
    "sin": (math.sin, absolute, 2.0**-20.5, lambda x: abs(x) <= ROUND),
    "cos": (math.cos, absolute, 2.0**-20.5, lambda x: abs(x) <= ROUND),
    "rcp": (lambda x: 1 / x, relative, 2.0**-23, everywhere),
    "rsqrt": (lambda x: 1 / math.sqrt(x), relative, 2.0**-22.4, lambda x: x > 0),
    "sqrt": (math.sqrt, relative, 2.0**-23, lambda x: x > 0),
    "tanh": (math.tanh, relative, 2.0**-11, everywhere),
    "div": (lambda x, y: x / y, units, 2.0, lambda x, y: 2.0**-126 <= abs(y) <= 2.0**126),
}
OTHERS = {
    "rcp f64": (relative, 2.0**-20),
    "rsqrt f64": (relative, 2.0**-20),
    "ex2 f16": (relative, 2.0**-9.9),
    "ex2 bf16": (relative, 2.0**-7),
    "tanh f16": (absolute, 2.0**-10.987),
    "tanh bf16": (absolute, 2.0**-8),
}


def approximate(test, given, card, own):
    """Largest errors of the card and the emulator where the bound holds; results of another class."""
    parts = test["name"].split(".")
    ftz, is_division, ty = "ftz" in parts and parts[-1] != "f64", parts[0] == "div", parts[-1]
    function, error, bound, holds = DOCUMENTED[parts[0]]
    error, bound = OTHERS.get(f"{parts[0]} {ty}", (error, bound))
    read, least, most = TYPES[ty]
    largest, classes, shown = {"card": 0.0, "emulator": 0.0}, 0, []
    for n in range(test["words"]):
        x = [read(given[3 * n + k]) for k in range(2 if is_division else 1)]
        if ftz:
            x = [math.copysign(0.0, value) if abs(value) < least else value for value in x]
        got = {"card": read(card[n]), "emulator": read(own[n])}
        if kind(got["card"], least) != kind(got["emulator"], least):
            classes += 1
            if len(shown) < SHOWN:
                shown.append({"input": [repr(value) for value in x], **{key: repr(value) for key, value in got.items()}})
        if not all(map(math.isfinite, x)) or not holds(*x):
            continue
        try:
            want = function(*x)
        except (ZeroDivisionError, OverflowError, ValueError):
            continue
        # A numerator below the normal range, and results next to the ends of the range, are beyond the bounds.
        if not 4 * least <= abs(want) <= most / 4 or any(0 < abs(value) < least for value in x):
            continue
        for who, value in got.items():
            largest[who] = max(largest[who], error(value, want))
    return {"bound": bound, "errorOfCard": largest["card"], "errorOfEmulator": largest["emulator"], "otherClass": classes, "shown": shown}


def kind(x, least):
    if math.isnan(x) or math.isinf(x) or x == 0:
        return f"{x}"
    return "subnormal" if abs(x) < least else "normal"


# Exact instructions.


# Bits, exponent and fraction of a format.
FORMATS = {"f64": (64, 0x7FF << 52, (1 << 52) - 1), "f32": (32, 0xFF << 23, (1 << 23) - 1), "f16": (16, 0x1F << 10, (1 << 10) - 1), "bf16": (16, 0xFF << 7, (1 << 7) - 1)}


def result_type(name):
    """The type of an instruction's result, by its words."""
    parts = name.split(" ")[0].split(".")
    if parts[0] == "mma":
        return parts[6]
    return parts[-2] if parts[0] in ("cvt", "set") else parts[-1]


def both_nan(ty, a, b):
    """Whether two results differ only in the bits of NaNs."""
    count = 2 if ty.endswith("x2") else 1
    if ty.removesuffix("x2") not in FORMATS:
        return False
    bits, exponent, fraction = FORMATS[ty.removesuffix("x2")]
    for n in range(count):
        x, y = ((value >> bits * n) & ((1 << bits) - 1) for value in (a, b))
        if x != y and not all(value & exponent == exponent and value & fraction for value in (x, y)):
            return False
    return True


def exact(test, given, card, own):
    differing = [n for n in range(test["words"]) if card[n] != own[n]]
    ty = result_type(test["name"])
    nans = [n for n in differing if both_nan(ty, card[n], own[n])]
    alike = set(nans)
    real = [n for n in differing if n not in alike]
    each = len(given) // test["words"] if len(given) == 3 * test["words"] else 0
    shown = [
        {"case": n, "input": [hex(value) for value in given[each * n : each * n + each]], "card": hex(card[n]), "emulator": hex(own[n])}
        for n in (real or nans)[:SHOWN]
    ]
    return {"different": len(real), "nanBits": len(nans), "shown": shown}


def main():
    began = time.time()
    card = start()
    manifest = json.loads((FOLDER / "tests.json").read_text())
    module = POINTER()
    call("cuModuleLoadDataEx", ctypes.byref(module), (FOLDER / "kernels.ptx").read_bytes() + b"\0", 0, None, None)
    loaded = time.time() - began
    expected = (FOLDER / "outputs.bin").read_bytes()
    given, rows, sums, kept, totals = {}, [], {}, {}, Counter()
    for test in manifest["tests"]:
        name = test["inputs"]
        if name not in given:
            data = (FOLDER / f"{name}.bin").read_bytes()
            given[name] = (upload(data), words(data))
        got = launch(module, test, given[name][0])
        own = expected[8 * test["offset"] : 8 * (test["offset"] + test["words"])]
        row = {"instruction": test["name"], "promise": test["promise"], "cases": test["words"]}
        totals[f"{test['promise']} instructions"] += 1
        totals[f"{test['promise']} cases"] += test["words"]
        if test["promise"] == "approximate":
            row |= approximate(test, given[name][1], words(got), words(own))
            totals["approximate beyond the bound"] += row["errorOfCard"] > row["bound"] or row["errorOfEmulator"] > row["bound"]
            rows.append(row)
            continue
        sums[test["name"]] = f"{zlib.crc32(got):08x}"
        if got == own:
            continue
        row |= exact(test, given[name][1], words(got), words(own))
        totals[f"{test['promise']} instructions that differ"] += row["different"] > 0
        totals[f"{test['promise']} instructions that differ in bits of NaN alone"] += row["different"] == 0
        rows.append(row)
        kept[test["entry"]] = got
    seconds = {"load": round(loaded, 1), "all": round(time.time() - began, 1)}
    RESULT.write_text(render({**card, "seconds": seconds, "totals": totals, "notInTheEmulator": manifest["unknown"], "approximateOrDifferent": rows, "checksumsOfCard": sums}))
    if kept:
        keep(RESULT.with_suffix(".bin"), kept)
    print(json.dumps({**card, **totals}, indent=1))
    for row in rows:
        if row["promise"] != "approximate":
            print(row["instruction"], row["different"], row["nanBits"], row["shown"][:1])
        elif row["errorOfCard"] > row["bound"] or row["otherClass"]:
            print(row["instruction"], row["errorOfCard"] / row["bound"], row["otherClass"], row["shown"][:1])
    return 1 if totals["exact instructions that differ"] else 0


def render(result):
    """JSON with one instruction a line."""
    rows = ",\n".join(json.dumps(row) for row in result["approximateOrDifferent"])
    sums = ",\n".join(f"{json.dumps(name)}: {json.dumps(sum)}" for name, sum in result["checksumsOfCard"].items())
    head = {key: value for key, value in result.items() if key not in ("approximateOrDifferent", "checksumsOfCard")}
    head["notInTheEmulator"] = " ".join(head["notInTheEmulator"])
    start = json.dumps(head, indent=1)[:-2]
    return f'{start},\n "approximateOrDifferent": [\n{rows}\n ],\n "checksumsOfCard": {{\n{sums}\n }}\n}}\n'


def keep(path, kept):
    """The card's words of every instruction that differs: entry names and data, for finding the rule."""
    head = json.dumps({entry: len(data) for entry, data in kept.items()}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(kept.values()))


if __name__ == "__main__":
    sys.exit(main())
