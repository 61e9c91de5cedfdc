// levels: sm_75
// Copies into an array that is written in order, 16 bytes a thread, from rows that lie anywhere.
//   runs_u<bits>(x, y, n, Walk)        the walk's innermost axis lies side by side in x
//   concat_u<bits>(y, n, total, magic, Parts)
//       rows of `total` elements, each made of a row of every part; magic as in common/divide.cuh
// n elements; 256 threads, ceil(n / (256 S)) blocks, S = 16 bytes / element.
#include "common/runs.cuh"

constexpr int PARTS = 128;

struct Parts {
    u32 count, unused;
    u64 x[PARTS];
    u64 start[PARTS + 1];  // first column of each part, then `total`; no part is empty
};

template <class Index, class T> WW_DEVICE void run(const T* x, T* y, Index i, Index n, const WwWalk& walk) {
    constexpr int size = WwVector<T>::size;
    Index column;
    ww_divide(i, walk.size[0], walk.magic[0], column);
    if (column + size <= walk.size[0]) {
        const T* from = x + ww_place_of(i, walk).x;
        ww_store_run(y + i, ww_load_run(from, from - column, from - column + walk.size[0]));
    } else {
#pragma unroll 1
        for (int k = 0; k < size && i + k < n; k++) y[i + k] = x[ww_place_of((Index)(i + k), walk).x];
    }
}

template <class T> WW_DEVICE void runs(const T* x, T* y, u64 n, const WwWalk& walk) {
    const u64 i = (blockIdx.x * 256ull + threadIdx.x) * WwVector<T>::size;
    if (i >= n) return;
    if (n <= 0xffffffffull)
        run(x, y, (u32)i, (u32)n, walk);
    else
        run(x, y, i, n, walk);
}

template <class T> WW_DEVICE void concat(T* y, u64 n, u64 total, u64 magic, const Parts& parts) {
    constexpr int size = WwVector<T>::size;
    const u64 i = (blockIdx.x * 256ull + threadIdx.x) * size;
    if (i >= n) return;
    u64 column, row;
    if (n <= 0xffffffffull) {
        u32 rest;
        row = ww_divide((u32)i, total, magic, rest);
        column = rest;
    } else {
        row = ww_divide(i, total, magic, column);
    }
    u32 part = 0;
#pragma unroll 1
    for (u32 past = parts.count; past - part > 1;) {
        const u32 middle = (part + past) / 2;
        if (parts.start[middle] <= column) part = middle;
        else past = middle;
    }
    const u64 start = parts.start[part], end = parts.start[part + 1];
    if (column + size <= end) {
        const T* first = reinterpret_cast<const T*>(parts.x[part]) + row * (end - start);
        ww_store_run(y + i, ww_load_run(first + (column - start), first, first + (end - start)));
        return;
    }
#pragma unroll 1
    for (int k = 0; k < size && i + k < n; k++) {
        const u64 begin = parts.start[part], length = parts.start[part + 1] - begin;
        y[i + k] = reinterpret_cast<const T*>(parts.x[part])[row * length + (column - begin)];
        if (++column < begin + length || ++part < parts.count) continue;
        part = 0;
        column = 0;
        row++;
    }
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define KERNELS(T)                                                                              \
    KERNEL runs_##T(const T* x, T* y, u64 n, WwWalk walk) { runs(x, y, n, walk); }              \
    KERNEL concat_##T(T* y, u64 n, u64 total, u64 magic, const Parts parts) { concat(y, n, total, magic, parts); }

KERNELS(u8)
KERNELS(u16)
KERNELS(u32)
KERNELS(u64)
