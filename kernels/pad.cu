// levels: sm_75
// Padding: y is as long along each axis as the host says, and index c of it is index c + shift of x, mapped by `mode`
// where x has none: 0 the constant, 1 mirrored about the ends, 2 the end itself, 3 from the other end (there the host
// makes `shift` positive). x and y are contiguous; axes innermost first.
//   pad_u<bits>(x, y, n, Pad)     n elements of y; 256 threads, ceil(n / (256 S)) blocks, S = 16 bytes / element
// `fill` repeats the constant's bits over its 64.
#include "common/runs.cuh"

struct Pad {
    u32 axes, mode;
    u64 fill;
    u64 size[8];   // of y
    u64 magic[8];  // as in common/divide.cuh
    u64 dim[8];    // of x
    u64 dim_magic[8];
    long long shift[8];
};

// The index of x along an axis, which may lie outside where the mode is the constant.
WW_DEVICE long long mapped(long long c, u32 d, const Pad& p) {
    const long long dim = (long long)p.dim[d];
    if (p.mode == 1) {
        c = c < 0 ? -c : c;
        return c >= dim ? 2 * (dim - 1) - c : c;
    }
    if (p.mode == 2) return c < 0 ? 0 : c >= dim ? dim - 1 : c;
    if (p.mode != 3 || c < dim) return c;
    if (c < 2 * dim) return c - dim;
    u64 within;
    ww_divide((u64)c, p.dim[d], p.dim_magic[d], within);
    return (long long)within;
}

// The row of x behind a row of y, or -1 for the constant.
template <class Index> WW_DEVICE long long source_row(Index row, const Pad& p) {
    long long at = 0, stride = 1;
    bool outside = false;
#pragma unroll 1
    for (u32 d = 1; d < p.axes; d++) {
        Index rest;
        row = ww_divide(row, p.size[d], p.magic[d], rest);
        const long long c = mapped((long long)rest + p.shift[d], d, p);
        outside = outside || (u64)c >= p.dim[d];
        at += c * stride;
        stride *= (long long)p.dim[d];
    }
    return outside ? -1 : at;
}

template <class Index, class T> WW_DEVICE void pad_run(const T* x, T* y, Index i, Index n, const Pad& p) {
    constexpr int size = WwVector<T>::size;
    const long long width = (long long)p.size[0], dim = (long long)p.dim[0];
    Index rest;
    Index row = ww_divide(i, p.size[0], p.magic[0], rest);
    long long from = source_row(row, p), column = (long long)rest;
    const T fill = (T)p.fill;
    if (column + size <= width) {
        long long at = column + p.shift[0];
        if (p.mode == 3 && at >= dim) at -= dim;
        if (from >= 0 && at >= 0 && at + size <= dim) {
            const T* first = x + from * dim;
            return ww_store_run(y + i, ww_load_run(first + at, first, first + dim));
        }
        if (from < 0 || (p.mode == 0 && (at >= dim || at + size <= 0))) {
            WwVector<T> none;
#pragma unroll
            for (int k = 0; k < size; k++) none.lane[k] = fill;
            return ww_store_run(y + i, none);
        }
    }
    // Rows of a run and more: its end lies in this row or the next.
    if (width >= size && i + size <= n) {
        const long long next = column + size > width ? source_row((Index)(row + 1), p) : from;
        WwVector<T> v;
#pragma unroll
        for (int k = 0; k < size; k++) {
            const bool beyond = column + k >= width;
            const long long at = mapped(column + k - (beyond ? width : 0) + p.shift[0], 0, p), line = beyond ? next : from;
            v.lane[k] = line < 0 || (u64)at >= (u64)dim ? fill : x[line * dim + at];
        }
        return ww_store_run(y + i, v);
    }
#pragma unroll 1
    for (int k = 0; k < size && i + k < n; k++) {
        const long long at = mapped(column + p.shift[0], 0, p);
        y[i + k] = from < 0 || (u64)at >= (u64)dim ? fill : x[from * dim + at];
        if (++column < width) continue;
        column = 0;
        from = source_row(++row, p);
    }
}

template <class T> WW_DEVICE void pad(const T* x, T* y, u64 n, const Pad& p) {
    const u64 i = (blockIdx.x * 256ull + threadIdx.x) * WwVector<T>::size;
    if (i >= n) return;
    if (n <= 0xffffffffull)
        pad_run(x, y, (u32)i, (u32)n, p);
    else
        pad_run(x, y, i, n, p);
}

#define PAD(T) \
    extern "C" __global__ void __launch_bounds__(256) pad_##T(const T* x, T* y, u64 n, Pad p) { pad(x, y, n, p); }
PAD(u8)
PAD(u16)
PAD(u32)
PAD(u64)
