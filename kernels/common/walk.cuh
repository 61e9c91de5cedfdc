// Two arrays walked side by side over up to 8 axes, innermost first; strides count elements and may be negative.
#pragma once
#include "divide.cuh"

struct WwWalk {
    unsigned axes;
    unsigned contiguous;  // whether y is walked in order, so that a place in it is the index itself
    unsigned long long size[8];
    unsigned long long magic[8];  // as in divide.cuh
    long long x[8];
    long long y[8];
};

struct WwPlace {
    long long x, y;
};

template <class Index> WW_DEVICE WwPlace ww_place_of(Index index, const WwWalk& w) {
    WwPlace at{0, w.contiguous ? (long long)index : 0};
    const unsigned last = w.axes - 1;
#pragma unroll 1
    for (unsigned d = 0; d < last; d++) {
        Index rest;
        index = ww_divide(index, w.size[d], w.magic[d], rest);
        at.x += (long long)rest * w.x[d];
        if (!w.contiguous) at.y += (long long)rest * w.y[d];
    }
    at.x += (long long)index * w.x[last];
    if (!w.contiguous) at.y += (long long)index * w.y[last];
    return at;
}

// `n` is the number of places: below 2^32 the divisions are of 32 bits.
WW_DEVICE WwPlace ww_place(unsigned long long index, unsigned long long n, const WwWalk& w) {
    return n <= 0xffffffffull ? ww_place_of((unsigned)index, w) : ww_place_of(index, w);
}

// The unsigned types that elements are moved as; 16 bytes are a vector of smaller ones.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef uint4 u128;
