// Column medians by selection: a block owns 32 columns, a lane each; its warps share the rows. NaN count as +Inf on the way,
// their number settles the result. Parameters: select.cu.
#pragma once
#include "common/bracket.cuh"

#define MEDIAN_PARAMS(T)                                                                                               \
    const T *rows, T *out, unsigned long long d, unsigned long long stride, const unsigned long long *table, unsigned n, \
        unsigned even, unsigned nan

// Values of a column that one thread looks after.
template <class T, int COUNT> struct WwHeld {
    T value[COUNT];
    unsigned total;

    __device__ __forceinline__ unsigned load(const WwRows<T>& from, unsigned n) {
        unsigned nans = 0, first = threadIdx.x / 32 * COUNT;
        total = blockDim.x / 32 * COUNT;
#pragma unroll
        for (int i = 0; i < COUNT; i++) value[i] = first + i < n ? from.at(first + i) : WwReal<T>::infinity();
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            nans += value[i] != value[i];
            value[i] = ww_last(value[i]);
        }
        return nans;
    }
    template <class F> __device__ __forceinline__ void each(F visit) const {
#pragma unroll
        for (int i = 0; i < COUNT; i++) visit(value[i]);
    }
    template <class F> __device__ __forceinline__ void sample(unsigned quota, F visit) const {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (i < quota) visit(value[i]);
    }
};

template <class T> struct WwTile {
    T* column;
    unsigned total;

    __device__ __forceinline__ unsigned load(const WwRows<T>& from, unsigned n) {
        unsigned nans = 0, warps = blockDim.x / 32;
        total = n;
#pragma unroll 8
        for (unsigned row = threadIdx.x / 32; row < n; row += warps) {
            T v = from.at(row);
            nans += v != v;
            column[row * 32] = ww_last(v);
        }
        return nans;
    }
    template <class F> __device__ __forceinline__ void each(F visit) const {
        unsigned warps = blockDim.x / 32;
#pragma unroll 4
        for (unsigned row = threadIdx.x / 32; row < total; row += warps) visit(column[row * 32]);
    }
    template <class F> __device__ __forceinline__ void sample(unsigned quota, F visit) const {
        unsigned warps = blockDim.x / 32, own = (total + warps - 1 - threadIdx.x / 32) / warps;
        for (unsigned i = 0; i < quota && i < own; i++) visit(column[(threadIdx.x / 32 + i * warps) * 32]);
    }
};

template <class T> struct WwStream {
    WwRows<T> from;
    unsigned total;

    __device__ __forceinline__ unsigned load(const WwRows<T>& rows, unsigned n) {
        unsigned nans = 0, warps = blockDim.x / 32;
        from = rows;
        total = n;
#pragma unroll 8
        for (unsigned row = threadIdx.x / 32; row < n; row += warps) {
            T v = from.at(row);
            nans += v != v;
        }
        return nans;
    }
    template <class F> __device__ __forceinline__ void each(F visit) const {
        unsigned warps = blockDim.x / 32;
#pragma unroll 4
        for (unsigned row = threadIdx.x / 32; row < total; row += warps) visit(ww_last(from.at(row)));
    }
    template <class F> __device__ __forceinline__ void sample(unsigned quota, F visit) const {
        unsigned taken = quota * (blockDim.x / 32), step = total / taken + 1;
        for (unsigned i = 0; i < quota; i++) {
            unsigned row = (threadIdx.x / 32 * quota + i) * step;
            if (row < total) visit(ww_last(from.at(row)));
        }
    }
};

__device__ __forceinline__ unsigned long long coordinate() {
    // Volatile, so that it is read again for the store and holds no register in between.
    unsigned block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block * 32ull + threadIdx.x % 32;
}

// What the option makes of `left` values: the rank to pick, and whether the next one is averaged with it.
__device__ __forceinline__ unsigned wanted(unsigned left, unsigned even) {
    return left == 0 ? 0 : even == 0 ? left / 2 : (left - 1) / 2;
}

template <class Source, class T> __device__ __forceinline__ void median(Source& source, MEDIAN_PARAMS(T)) {
    __shared__ WwBoard<T> board;
    board.clear();
    __syncthreads();
    {
        // Lanes past the end repeat the last column and store nothing.
        unsigned long long x = coordinate();
        WwRows<T> from{rows + (x < d ? x : d - 1), stride, table};
        atomicAdd(&board.nans[threadIdx.x % 32], source.load(from, n));
    }
    __syncthreads();
    T result = ww_select(source, board, wanted(nan == 1 ? n - board.nans[threadIdx.x % 32] : n, even));
    unsigned nans = board.nans[threadIdx.x % 32], left = nan == 1 ? n - nans : n, top = wanted(left, even);
    if (even == 2) {
        T upper = ww_next(source, board, result, top);
        if (left % 2 == 0 && left > 0) {
            result = ww_halves(result, upper);
            top++;
        }
    }
    bool lost = nan == 2 ? nans > 0 : top >= n - nans;
    if (lost || result != result) result = WwReal<T>::nan();
    unsigned long long x = coordinate();
    if (threadIdx.x < 32 && x < d) out[x] = result;
}

// The kernels of one type, with their largest block sizes.
#define MEDIAN_KERNELS(T, dt, held, tile, stream)                                                                             \
    extern "C" __global__ void __launch_bounds__(held) median_##dt##_held(MEDIAN_PARAMS(T)) {                          \
        WwHeld<T, 16> source;                                                                                          \
        median(source, rows, out, d, stride, table, n, even, nan);                                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(tile, 1) median_##dt##_tile(MEDIAN_PARAMS(T)) {                          \
        extern __shared__ double values[];                                                                             \
        WwTile<T> source;                                                                                              \
        source.column = reinterpret_cast<T*>(values) + threadIdx.x % 32;                                               \
        median(source, rows, out, d, stride, table, n, even, nan);                                                      \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(stream) median_##dt##_stream(MEDIAN_PARAMS(T)) {                      \
        WwStream<T> source;                                                                                            \
        median(source, rows, out, d, stride, table, n, even, nan);                                                      \
    }
