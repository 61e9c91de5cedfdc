// One row held in the registers of a group of threads, and sums over the group.
#pragma once

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
    T value[count];

    WW_DEVICE bool vectors(const T* row, const T* out, unsigned columns) {
        return columns % size == 0 && ww_aligned(row) && ww_aligned(out);
    }

    __device__ __forceinline__ void load(const T* row, unsigned columns, unsigned lane, unsigned lanes, bool vectors, T fill) {
        if (vectors) {
#pragma unroll
            for (int v = 0; v < VECTORS; v++) {
                unsigned i = (v * lanes + lane) * size;
                WwVector<T> part;
#pragma unroll
                for (int k = 0; k < size; k++) part.lane[k] = fill;
                if (i < columns) part = ww_load(row + i);
#pragma unroll
                for (int k = 0; k < size; k++) value[v * size + k] = part.lane[k];
            }
        } else {
#pragma unroll
            for (int k = 0; k < count; k++) {
                unsigned i = k * lanes + lane;
                value[k] = i < columns ? row[i] : fill;
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
                for (int k = 0; k < size; k++) part.lane[k] = value[v * size + k];
                if (i < columns) ww_store(out + i, part);
            }
        } else {
#pragma unroll
            for (int k = 0; k < count; k++) {
                unsigned i = k * lanes + lane;
                if (i < columns) out[i] = value[k];
            }
        }
    }

    // The column that value[k] comes from.
    WW_DEVICE unsigned column(int k, unsigned lane, unsigned lanes, bool vectors) {
        return vectors ? (k / size * lanes + lane) * size + k % size : k * lanes + lane;
    }
};
