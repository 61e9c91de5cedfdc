// levels: sm_75
// softmax and logSoftmax over one axis; arithmetic in the array's own type, in float for 16 bits.
// Contiguous rows stay in registers: one read, one write. S is 16 / sizeof(T); rows need not be aligned.
//   <op>_<dt>_lanes(x, y, rows, columns)   columns <= 8 S: 256 threads, ceil(rows / 32) blocks
//   <op>_<dt>_warp                         columns <= 64 S: 256 threads, ceil(rows / 8) blocks
//   <op>_<dt>_block                        columns <= 2048 S: a power of two of threads, 64 to 1024 and at least
//                                          columns / (2 S); one block a row
//   <op>_<dt>_wide                         columns <= 4096 S: 512 threads, one block a row; not for 16 bits
// Longer rows in two launches of rows * parts blocks of 512 threads, with 2 * rows * parts numbers of workspace:
//   softmax_<dt>_partial(x, workspace, columns, chunk, parts)      chunk: a multiple of S, chunk * parts >= columns
//   <op>_<dt>_finish(x, workspace, y, columns, chunk, parts)
// Any axis of [outer, length, inner]; parts a power of two up to 256, register-resident if length <= 4 S parts:
//   <op>_<dt>_strided(x, y, outer * inner, length, inner, magic of inner, parts)
//                                          256 threads, ceil(outer * inner * parts / 256) blocks
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/row.cuh"
#include "common/softmax.cuh"

#define PARAMS(T) const T *x, T *y, unsigned long long rows, unsigned columns
#define STRIDED_PARAMS(T)                                                                                        \
    const T *x, T *y, unsigned long long columns, unsigned long long length, unsigned long long inner,           \
        unsigned long long magic, unsigned parts

// Groups of LANES threads, a row each, in blocks of 256.
template <int LANES, int VECTORS, bool LOG, class T> WW_DEVICE void group_rows(PARAMS(T)) {
    unsigned long long row = blockIdx.x * (unsigned long long)(256 / LANES) + threadIdx.x / LANES;
    unsigned lane = threadIdx.x % LANES;
    bool inside = row < rows;
    unsigned long long at = inside ? row * columns : 0;
    bool vectors = WwRow<T, VECTORS>::vectors(x, y, columns);
    WwRow<T, VECTORS> r;
    r.load(x + at, inside ? columns : 0, lane, LANES, vectors, -WwLimits<WwCompute<T>>::infinity());
    WwPair<WwCompute<T>> own = ww_exponentials<LANES, LOG>(r);
    ww_scale<LOG>(r, own, own);
    r.store(y + at, inside ? columns : 0, lane, LANES, vectors);
}

template <int VECTORS, bool LOG, class T> WW_DEVICE void block_row(PARAMS(T)) {
    unsigned long long at = blockIdx.x * (unsigned long long)columns;
    bool vectors = WwRow<T, VECTORS>::vectors(x, y, columns);
    WwRow<T, VECTORS> r;
    r.load(x + at, columns, threadIdx.x, blockDim.x, vectors, -WwLimits<WwCompute<T>>::infinity());
    WwPair<WwCompute<T>> own = ww_exponentials<32, LOG>(r);
    ww_scale<LOG>(r, own, ww_block_pair(own));
    r.store(y + at, columns, threadIdx.x, blockDim.x, vectors);
}

template <class T>
WW_DEVICE void partial(const T* x, WwCompute<T>* workspace, unsigned long long columns, unsigned long long chunk, unsigned parts) {
    constexpr unsigned strip = 512 * WwStrip<T>::count;
    unsigned long long row = blockIdx.x / parts, begin = blockIdx.x % parts * chunk;
    unsigned long long end = begin + chunk < columns ? begin + chunk : columns;
    x += row * columns;
    bool vectors = ww_aligned(x) && columns % WwVector<T>::size == 0;
    WwPair<WwCompute<T>> own{-WwLimits<WwCompute<T>>::infinity(), T(0)};
    for (unsigned long long i = begin; i < end; i += strip) {
        WwStrip<T> r;
        unsigned count = end - i < strip ? (unsigned)(end - i) : strip;
        r.load(x + i, count, threadIdx.x, 512, vectors, -WwLimits<WwCompute<T>>::infinity());
        WwCompute<T> best = own.most;
#pragma unroll
        for (int k = 0; k < r.count; k++) best = ww_max_number(best, r.value[k]);
        own = ww_rebase(own, best);
        WwCompute<T> base = ww_finite_base(best);
#pragma unroll
        for (int k = 0; k < r.count; k++) own.sum += ww_exp(r.value[k] - base);
    }
    WwPair<WwCompute<T>> all = ww_block_pair(ww_merge_lanes(own));
    if (threadIdx.x == 0) {
        workspace[2ull * blockIdx.x] = all.most;
        workspace[2ull * blockIdx.x + 1] = all.sum;
    }
}

template <bool LOG, class T>
WW_DEVICE void finish(const T* x, const WwCompute<T>* workspace, T* y, unsigned long long columns, unsigned long long chunk, unsigned parts) {
    constexpr unsigned strip = 512 * WwStrip<T>::count;
    unsigned long long row = blockIdx.x / parts, begin = blockIdx.x % parts * chunk;
    unsigned long long end = begin + chunk < columns ? begin + chunk : columns;
    WwPair<WwCompute<T>> own{-WwLimits<WwCompute<T>>::infinity(), T(0)};
    for (unsigned p = threadIdx.x; p < parts; p += 512) {
        const WwCompute<T>* pair = workspace + 2 * (row * parts + p);
        own = ww_merge(own, WwPair<WwCompute<T>>{pair[0], pair[1]});
    }
    WwPair<WwCompute<T>> all = ww_block_pair(ww_merge_lanes(own));
    WwCompute<T> factor = LOG ? ww_log(all.sum) : WwCompute<T>(1) / all.sum;
    x += row * columns;
    y += row * columns;
    bool vectors = ww_aligned(x) && ww_aligned(y) && columns % WwVector<T>::size == 0;
    for (unsigned long long i = begin; i < end; i += strip) {
        WwStrip<T> r;
        unsigned count = end - i < strip ? (unsigned)(end - i) : strip;
        r.load(x + i, count, threadIdx.x, 512, vectors, WwCompute<T>(0));
#pragma unroll
        for (int k = 0; k < r.count; k++) {
            WwCompute<T> d = r.value[k] - all.most;
            r.value[k] = LOG ? d - factor : ww_exp(d) * factor;
        }
        r.store(y + i, count, threadIdx.x, 512, vectors);
    }
}

template <bool LOG, class T> WW_DEVICE T strided_value(T x, WwPair<T> all, T factor) {
    T d = x - all.most;
    return LOG ? d - factor : ww_exp(d) * factor;
}

// A thread holds every parts-th element of its column; the parts of a column meet in shared memory.
template <bool LOG, class T> WW_DEVICE void strided(STRIDED_PARAMS(T)) {
    __shared__ WwPair<WwCompute<T>> pairs[256];
    constexpr int held = 64 / sizeof(WwCompute<T>);
    unsigned lanes = 256 / parts, lane = threadIdx.x % lanes, part = threadIdx.x / lanes;
    unsigned long long column = blockIdx.x * (unsigned long long)lanes + lane, rest;
    bool inside = column < columns;
    unsigned long long outer = ww_divide(inside ? column : columns - 1, inner, magic, rest);
    unsigned long long at = outer * length * inner + rest;
    bool resident = length <= (unsigned long long)held * parts;
    WwCompute<T> value[held];
    WwPair<WwCompute<T>> own{-WwLimits<WwCompute<T>>::infinity(), T(0)};
    for (unsigned long long i = 0; i < length; i += (unsigned long long)held * parts) {
        WwCompute<T> best = own.most;
#pragma unroll
        for (int k = 0; k < held; k++) {
            unsigned long long row = i + part + k * parts;
            value[k] = row < length ? (WwCompute<T>)x[at + row * inner] : -WwLimits<WwCompute<T>>::infinity();
        }
#pragma unroll
        for (int k = 0; k < held; k++) best = ww_max_number(best, value[k]);
        own = ww_rebase(own, best);
        WwCompute<T> base = ww_finite_base(best);
#pragma unroll
        for (int k = 0; k < held; k++) own.sum += ww_exp(value[k] - base);
    }
    pairs[threadIdx.x] = own;
    __syncthreads();
    WwPair<WwCompute<T>> all = pairs[lane];
    for (unsigned p = 1; p < parts; p++) all = ww_merge(all, pairs[p * lanes + lane]);
    WwCompute<T> factor = LOG ? ww_log(all.sum) : WwCompute<T>(1) / all.sum;
    if (!inside) return;
    if (resident) {
#pragma unroll
        for (int k = 0; k < held; k++) {
            unsigned long long row = part + k * parts;
            if (row < length) y[at + row * inner] = T(strided_value<LOG>(value[k], all, factor));
        }
        return;
    }
    for (unsigned long long i = part; i < length; i += parts) {
        y[at + i * inner] = T(strided_value<LOG>((WwCompute<T>)x[at + i * inner], all, factor));
    }
}

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)

#ifdef WW_HALVES
#define WIDE(op, LOG, T, dt)
#else
#define WIDE(op, LOG, T, dt)                                                                                     \
    KERNEL(512) op##_##dt##_wide(PARAMS(T)) { block_row<8, LOG, T>(x, y, rows, columns); }
#endif

#define SOFTMAX(op, LOG, T, dt)                                                                                  \
    KERNEL(256) op##_##dt##_lanes(PARAMS(T)) { group_rows<8, 1, LOG, T>(x, y, rows, columns); }                  \
    KERNEL(256) op##_##dt##_warp(PARAMS(T)) { group_rows<32, 2, LOG, T>(x, y, rows, columns); }                  \
    KERNEL(1024) op##_##dt##_block(PARAMS(T)) { block_row<2, LOG, T>(x, y, rows, columns); }                     \
    WIDE(op, LOG, T, dt)                                                                                         \
    KERNEL(512) op##_##dt##_finish(const T* x, const WwCompute<T>* workspace, T* y, unsigned long long columns,             \
                                   unsigned long long chunk, unsigned parts) {                                   \
        finish<LOG, T>(x, workspace, y, columns, chunk, parts);                                                  \
    }                                                                                                            \
    KERNEL(256) op##_##dt##_strided(STRIDED_PARAMS(T)) {                                                         \
        strided<LOG, T>(x, y, columns, length, inner, magic, parts);                                             \
    }

#define PARTIAL(T, dt)                                                                                           \
    KERNEL(512) softmax_##dt##_partial(const T* x, WwCompute<T>* workspace, unsigned long long columns,          \
                                       unsigned long long chunk, unsigned parts) {                               \
        partial(x, workspace, columns, chunk, parts);                                                            \
    }

#ifndef ELEMENT
#define ELEMENT float
#define DTYPE f32
#endif
#define KERNELS(T, dt)                                                                                           \
    SOFTMAX(softmax, false, T, dt)                                                                               \
    SOFTMAX(logSoftmax, true, T, dt)                                                                             \
    PARTIAL(T, dt)
KERNELS(ELEMENT, DTYPE)
