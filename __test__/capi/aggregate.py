"""Drives the C ABI through ctypes. Usage: aggregate.py LIBRARY. Prints one line for each failed check."""

import ctypes
import math
import sys

INPUT = [[1, 5, 3], [2, 2, 8], [9, 1, 4]]
UNTOUCHED = -77.0
failed = []


def check(what, ok):
    if not ok:
        failed.append(what)


def load(path):
    library = ctypes.CDLL(path)
    i32 = ctypes.c_int32
    for suffix, number in (("", ctypes.c_double), ("_f32", ctypes.c_float)):
        pointer = ctypes.POINTER(number)
        getattr(library, f"median_aggregate{suffix}").argtypes = [pointer, i32, i32, pointer]
        i64 = ctypes.c_int64
        getattr(library, f"median_aggregate_64{suffix}").argtypes = [pointer, i64, i64, pointer]
        getattr(library, f"trimmed_mean_aggregate{suffix}").argtypes = [pointer, i64, i64, i64, pointer]
        getattr(library, f"geometric_median_aggregate{suffix}").argtypes = [pointer, i64, i64, ctypes.c_double, pointer]
    library.warpwright_last_error.restype = ctypes.c_char_p
    library.warpwright_error_text.restype = ctypes.c_char_p
    library.warpwright_error_text.argtypes = [ctypes.c_int]
    return library


class Caller:
    """One element type: calls with guards round the result and a check that the input is not written."""

    def __init__(self, library, suffix, number):
        self.library, self.suffix, self.number = library, suffix, number

    def array(self, values):
        return (self.number * max(len(values), 1))(*values)

    def call(self, name, rows, *extra):
        n, d = len(rows), len(rows[0]) if rows else 0
        flat = [float(v) for row in rows for v in row]
        source = self.array(flat)
        before = bytes(source)
        whole = self.array([UNTOUCHED] * (d + 2))
        result = ctypes.cast(ctypes.byref(whole, ctypes.sizeof(self.number)), ctypes.POINTER(self.number))
        code = getattr(self.library, name + self.suffix)(source, n, d, *extra, result)
        check(f"{name}{self.suffix}: input written", bytes(source) == before)
        check(f"{name}{self.suffix}: memory beside the result written", whole[0] == UNTOUCHED and whole[d + 1] == UNTOUCHED)
        return code, list(whole)[1 : d + 1]


def medians(c):
    def gives(what, rows, want):
        code, got = c.call("median_aggregate", rows)
        same = len(got) == len(want) and all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(got, want))
        check(f"median{c.suffix} of {what}: code {code}, {got}, expected {want}", code == 0 and same)

    gives("three rows", INPUT, [2, 2, 4])
    gives("one row", [[4, -1]], [4, -1])
    gives("an even number of rows", [[4], [1], [3], [2]], [3])
    gives("two rows", [[1, 9], [2, 8]], [2, 9])
    gives("NaN and infinity", [[math.nan, math.inf], [1, -math.inf], [2, 5]], [2, 5])
    gives("NaN alone", [[math.nan], [math.nan], [1]], [math.nan])
    gives("101 rows", [[i * 37 % 101] for i in range(101)], [50])
    gives("many columns", [[i + j for j in range(5000)] for i in (2, 0, 1)], [j + 1 for j in range(5000)])


def rules(c):
    rows = [[0, 5, 1], [1, 4, 1], [2, 3, 1], [3, 2, math.nan], [1e30, math.inf, -math.inf]]
    for name, extra, want in (
        ("median_aggregate_64", (), [2, 4, 1]),
        ("trimmed_mean_aggregate", (2,), [2, 4, 1]),
        ("trimmed_mean_aggregate", (1,), [2, 4, 1]),
        ("geometric_median_aggregate", (0.0,), [1, 4, 1]),
    ):
        code, got = c.call(name, rows, *extra)
        near = all(abs(a - b) < 1e-5 for a, b in zip(got, want))
        check(f"{name}{c.suffix} {extra}: code {code}, {got}, expected {want}", code == 0 and near)
    for name, extra in (("trimmed_mean_aggregate", (3,)), ("trimmed_mean_aggregate", (-1,)), ("geometric_median_aggregate", (-1.0,))):
        code, got = c.call(name, rows, *extra)
        check(f"{name}{c.suffix} {extra}: code {code}, {got}", code != 0 and got == [UNTOUCHED] * 3)


def refusals(c):
    name = "median_aggregate" + c.suffix
    source, result = c.array([1.0, 2.0, 3.0, 4.0]), c.array([UNTOUCHED])

    def call(n, d, s=source, r=result):
        return getattr(c.library, name)(s, n, d, r)

    for what, n, d in (("n = 0", 0, 1), ("n = -1", -1, 1), ("d = -1", 4, -1), ("least n", -(2**31), 1), ("least d", 1, -(2**31))):
        code = call(n, d)
        check(f"{name} {what}: code {code}, result {result[0]}", code != 0 and result[0] == UNTOUCHED)
        check(f"{name} {what}: no text", bool(c.library.warpwright_error_text(code)))
        check(f"{name} {what}: no last error", bool(c.library.warpwright_last_error()))
    check(f"{name} null input", call(2, 2, s=None) != 0 and result[0] == UNTOUCHED)
    check(f"{name} null result", call(2, 2, r=None) != 0)
    check(f"{name} no columns", call(4, 0) == 0 and result[0] == UNTOUCHED)
    check(f"{name} works after refusals", call(4, 1) == 0 and result[0] != UNTOUCHED)


def main():
    library = load(sys.argv[1])
    for suffix, number in (("", ctypes.c_double), ("_f32", ctypes.c_float)):
        caller = Caller(library, suffix, number)
        medians(caller)
        rules(caller)
        refusals(caller)
    check("text of code 0", library.warpwright_error_text(0) is not None)
    for code in (-1, 99999, -(2**31)):
        library.warpwright_error_text(code)  # may be null, must not crash
    for line in failed:
        print(line)
    print("done")


main()
