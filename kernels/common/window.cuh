// Windows over three axes, and their taps that lie inside.
#pragma once
#include "divide.cuh"

struct Axis {
    unsigned input, output, kernel, stride, dilation, pad_begin, pad_end, unused;
    unsigned long long output_magic;  // as in common/divide.cuh
};

struct Window {
    Axis depth, height, width;
    unsigned count_include_pad;
    unsigned wide;  // 1 unless n < 2^32 and every axis' input + pads + kernel * dilation < 2^31
};

// Taps of one axis: input positions first + k dilation for k below count, all inside; `padded` counts padding too.
template <class Int> struct Taps {
    Int first;
    unsigned count, padded;
};

template <class Int> WW_DEVICE Taps<Int> taps_of(const Axis& axis, unsigned output) {
    Int start = (Int)output * (Int)axis.stride - (Int)axis.pad_begin, step = (Int)axis.dilation;
    Int end = (Int)axis.input, padded_end = end + (Int)axis.pad_end, kernel = (Int)axis.kernel;
    if (start >= 0 && start + (kernel - 1) * step < end) return Taps<Int>{start, axis.kernel, axis.kernel};
    Int skipped = start >= 0 ? 0 : (-start + step - 1) / step;
    Int inside = end > start ? (end - start + step - 1) / step : 0;
    Int padded = padded_end > start ? (padded_end - start + step - 1) / step : 0;
    inside = inside < kernel ? inside : kernel;
    padded = padded < kernel ? padded : kernel;
    return Taps<Int>{start + skipped * step, inside > skipped ? (unsigned)(inside - skipped) : 0u, (unsigned)padded};
}
