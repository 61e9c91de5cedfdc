// Long rows, which blocks of 512 threads take in parts, each strip by strip.
#pragma once
#include "row.cuh"

// What a block holds at a time.
template <class T> using WwStrip = WwRow<T, sizeof(T) == 2 ? 1 : 2>;

// A stretch of a long row: the positions, counted from the line that the row begins in, that one block takes, a strip of
// 512 threads after the other.
template <class T> struct WwStretch {
    static constexpr unsigned strip = 512 * WwStrip<T>::count;
    unsigned long long row, begin, end;
    unsigned shift;

    __device__ __forceinline__ WwStretch(const T* x, unsigned long long columns, unsigned long long chunk, unsigned parts) {
        row = blockIdx.x / parts;
        shift = ww_shift(x + row * columns);
        begin = blockIdx.x % parts * chunk;
        end = begin + chunk < columns + shift ? begin + chunk : columns + shift;
    }
    // The first column at a position or after it.
    __device__ __forceinline__ unsigned long long column(unsigned long long at) const { return at > shift ? at - shift : 0; }
    // The strip at a position, as columns from that one on.
    template <bool LINES> __device__ __forceinline__ WwPlace<LINES> place(unsigned long long at) const {
        const unsigned long long stop = end < at + strip ? end : at + strip;
        return WwPlace<LINES>{(unsigned)(column(stop) - column(at)), threadIdx.x, 512, at < shift ? shift - (unsigned)at : 0};
    }
    // Columns of a part of the row.
    __device__ __forceinline__ double count(unsigned part, unsigned long long chunk, unsigned long long columns) const {
        const unsigned long long low = column(part * chunk), high = column((part + 1) * chunk);
        return (double)((high < columns ? high : columns) - (low < columns ? low : columns));
    }
};
