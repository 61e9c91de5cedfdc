// Keys of elements of any type: whole numbers as in whole.cuh, 64 for floats, 128 beside it for bfloat16. The larger key comes
// first; NaN has the largest.
#pragma once
#include "half.cuh"
#include "whole.cuh"

enum : unsigned { WW_FLOAT = 64, WW_BFLOAT = 128 };

WW_DEVICE double ww_load_float(const void* x, unsigned long long i, unsigned code) {
    if (code & WW_BFLOAT) return (double)(float)((const WwBfloat*)x)[i];
    switch (code & WW_BYTES) {
        case 2: return (double)(float)((const WwHalf*)x)[i];
        case 4: return (double)((const float*)x)[i];
        default: return ((const double*)x)[i];
    }
}

WW_DEVICE unsigned long long ww_key(const void* x, unsigned long long i, unsigned code, unsigned smallest) {
    unsigned long long key;
    if (code & WW_FLOAT) {
        const double value = ww_load_float(x, i, code) + 0.0;
        if (value != value) return ~0ull;
        const unsigned long long bits = (unsigned long long)__double_as_longlong(value);
        key = bits >> 63 ? ~bits : bits | 1ull << 63;
    } else {
        key = ww_order_whole(ww_load_whole(x, i, code), code);
    }
    return smallest ? ~key : key;
}
