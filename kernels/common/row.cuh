// One row held in the registers of a group of threads, and sums over the group.
#pragma once
#include "half.cuh"

// A group is `lanes` threads of a warp (a power of two), or the whole block where lanes > 32.
template <int LANES, class T, class Op> WW_DEVICE T ww_lanes_reduce(T value, Op op) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// A row of up to VECTORS vectors a thread. Ragged or misaligned rows are read element by element, with the
// elements of a thread a group apart, so that the row keeps coalesced accesses; `fill` stands past the end.
template <class T, int VECTORS> struct WwRow {
    static constexpr int size = WwVector<T>::size;
    static constexpr int count = VECTORS * size;
    using Value = WwCompute<T>;
    Value value[count];

    WW_DEVICE bool vectors(const T* row, const T* out, unsigned columns) {
        return columns % size == 0 && ww_aligned(row) && ww_aligned(out);
    }

    __device__ __forceinline__ void load(const T* row, unsigned columns, unsigned lane, unsigned lanes, bool vectors, Value fill) {
        if (vectors) {
#pragma unroll
            for (int v = 0; v < VECTORS; v++) {
                unsigned i = (v * lanes + lane) * size;
                WwVector<T> part;
#pragma unroll
                for (int k = 0; k < size; k++) part.lane[k] = T(fill);
                if (i < columns) part = ww_load(row + i);
#pragma unroll
                for (int k = 0; k < size; k++) value[v * size + k] = part.lane[k];
            }
        } else {
#pragma unroll
            for (int k = 0; k < count; k++) {
                unsigned i = k * lanes + lane;
                value[k] = i < columns ? (Value)row[i] : fill;
            }
        }
    }

    __device__ __forceinline__ void store(T* out, unsigned columns, unsigned lane, unsigned lanes, bool vectors) const {
        if (vectors) {
#pragma unroll
            for (int v = 0; v < VECTORS; v++) {
                unsigned i = (v * lanes + lane) * size;
                WwVector<T> part;
#pragma unroll
                for (int k = 0; k < size; k++) part.lane[k] = T(value[v * size + k]);
                if (i < columns) ww_store(out + i, part);
            }
        } else {
#pragma unroll
            for (int k = 0; k < count; k++) {
                unsigned i = k * lanes + lane;
                if (i < columns) out[i] = T(value[k]);
            }
        }
    }

    // The column that value[k] comes from.
    WW_DEVICE unsigned column(int k, unsigned lane, unsigned lanes, bool vectors) {
        return vectors ? (k / size * lanes + lane) * size + k % size : k * lanes + lane;
    }
};

// What a block of 512 threads holds of a long row at a time: 16 numbers a thread, 8 of float64.
template <class T> using WwStrip = WwRow<T, sizeof(T) == 2 ? 2 : 4>;
