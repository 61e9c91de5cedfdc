// levels: sm_75
// softmax and logSoftmax over one axis; arithmetic in the array's own type, in float for 16 bits.
// Contiguous rows stay in registers: one read, one write. S is 16 / sizeof(T); rows need not be aligned. A row's vectors
// are the 16-byte lines that it touches: columns / S where rows lie on lines, else up to one and a part more.
//   <op>_<dt>_lanes(x, y, rows, columns)   8 vectors: 256 threads, ceil(rows / 32) blocks
//   <op>_<dt>_pairs                        16 vectors: 256 threads, ceil(rows / 32) blocks
//   <op>_<dt>_half                         32 vectors: 256 threads, ceil(rows / 16) blocks
//   <op>_<dt>_warp                         64 vectors: 256 threads, ceil(rows / 8) blocks
//   <op>_<dt>_block                        2048 vectors: vectors / 4 threads in whole warps, one block a row
//                                          16 bits: 1024 vectors, vectors / 2 threads
//   <op>_<dt>_wide                         4096 vectors, rows on lines: vectors / 8 threads, one block a row
//                                          16 bits: 2048 vectors of any rows, vectors / 2 threads
// Longer rows in two launches of rows * parts blocks of 512 threads, with 2 * rows * parts numbers of workspace:
//   softmax_<dt>_partial(x, workspace, columns, chunk, parts)
//                                          chunk: whole strips of 512 threads; chunk * parts covers the row and its first line
//   <op>_<dt>_finish(x, workspace, y, columns, chunk, parts)
// Any axis of [outer, length, inner]; parts a power of two up to 256, register-resident if length <= 4 S parts:
//   <op>_<dt>_strided(x, y, outer * inner, length, inner, magic of inner, parts)
//                                          256 threads, ceil(outer * inner * parts / 256) blocks
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/row.cuh"
#include "common/stretch.cuh"
#include "common/softmax.cuh"

#define PARAMS(T) const T *x, T *y, unsigned long long rows, unsigned columns
#define STRIDED_PARAMS(T)                                                                                        \
    const T *x, T *y, unsigned long long columns, unsigned long long length, unsigned long long inner,           \
        unsigned long long magic, unsigned parts

// One row that a group of LANES threads, or for 0 the block, holds.
template <int LANES, int VECTORS, bool LOG, bool LINES, class T> WW_DEVICE void whole_row(const T* x, T* y, const WwPlace<LINES>& p) {
    WwRow<T, VECTORS> r;
    r.load(x, p, -WwLimits<WwCompute<T>>::infinity());
    const WwPair<WwCompute<T>> own = ww_exponentials<LANES == 0 ? 32 : LANES, LOG>(r);
    ww_scale<LOG>(r, own, LANES == 0 ? ww_block_pair(own) : own);
    r.store(y, p.again());
}

template <class T> WW_DEVICE bool on_lines(const T* x, const T* y, unsigned columns) {
    return columns % WwVector<T>::size == 0 && ww_aligned(x) && ww_aligned(y);
}

// Groups of LANES threads, a row each, in blocks of 256.
template <int LANES, int VECTORS, bool LOG, class T> WW_DEVICE void group_rows(PARAMS(T)) {
    const unsigned long long row = blockIdx.x * (unsigned long long)(256 / LANES) + threadIdx.x / LANES;
    const bool inside = row < rows, lines = on_lines(x, y, columns);
    const unsigned count = inside ? columns : 0, lane = threadIdx.x % LANES;
    const unsigned long long at = inside ? row * columns : 0;
    x += at;
    y += at;
    if (lines)
        whole_row<LANES, VECTORS, LOG>(x, y, WwPlace<true>{count, lane, LANES, 0});
    else
        whole_row<LANES, VECTORS, LOG>(x, y, WwPlace<false>{count, lane, LANES, ww_shift(x)});
}

template <int VECTORS, bool LOG, class T> WW_DEVICE void block_row(PARAMS(T)) {
    const unsigned long long at = blockIdx.x * (unsigned long long)columns;
    const bool lines = on_lines(x, y, columns);
    x += at;
    y += at;
    if (lines)
        whole_row<0, VECTORS, LOG>(x, y, WwPlace<true>{columns, threadIdx.x, blockDim.x, 0});
    else
        whole_row<0, VECTORS, LOG>(x, y, WwPlace<false>{columns, threadIdx.x, blockDim.x, ww_shift(x)});
}

// On lines.
template <int VECTORS, bool LOG, class T> WW_DEVICE void wide_row(PARAMS(T)) {
    const unsigned long long at = blockIdx.x * (unsigned long long)columns;
    whole_row<0, VECTORS, LOG>(x + at, y + at, WwPlace<true>{columns, threadIdx.x, blockDim.x, 0});
}

template <class T>
WW_DEVICE void partial(const T* x, WwCompute<T>* workspace, unsigned long long columns, unsigned long long chunk, unsigned parts) {
    const WwStretch<T> s(x, columns, chunk, parts);
    x += s.row * columns;
    WwPair<WwCompute<T>> own{-WwLimits<WwCompute<T>>::infinity(), WwCompute<T>(0)};
#pragma unroll 1
    for (unsigned long long i = s.begin; i < s.end; i += s.strip) {
        WwStrip<T> r;
        r.load(x + s.column(i), s.template place<false>(i), -WwLimits<WwCompute<T>>::infinity());
        WwCompute<T> best = own.most;
#pragma unroll
        for (int k = 0; k < r.count; k++) best = ww_max_number(best, r.value[k]);
        own = ww_rebase(own, best);
        WwCompute<T> base = ww_finite_base(best);
#pragma unroll
        for (int k = 0; k < r.count; k++) own.sum += ww_exp_of<T>(r.value[k] - base);
    }
    WwPair<WwCompute<T>> all = ww_block_pair(ww_merge_lanes(own));
    if (threadIdx.x == 0) {
        workspace[2ull * blockIdx.x] = all.most;
        workspace[2ull * blockIdx.x + 1] = all.sum;
    }
}

template <bool LOG, class T>
WW_DEVICE void finish(const T* x, const WwCompute<T>* workspace, T* y, unsigned long long columns, unsigned long long chunk, unsigned parts) {
    const WwStretch<T> s(x, columns, chunk, parts);
    WwPair<WwCompute<T>> own{-WwLimits<WwCompute<T>>::infinity(), WwCompute<T>(0)};
    for (unsigned p = threadIdx.x % 32; p < parts; p += 32) {
        const WwCompute<T>* pair = workspace + 2 * (s.row * parts + p);
        own = ww_merge(own, WwPair<WwCompute<T>>{pair[0], pair[1]});
    }
    const WwPair<WwCompute<T>> all = ww_merge_lanes(own);
    const WwCompute<T> factor = LOG ? ww_log(all.sum) : WwCompute<T>(1) / all.sum;
    x += s.row * columns;
    y += s.row * columns;
#pragma unroll 1
    for (unsigned long long i = s.begin; i < s.end; i += s.strip) {
        WwStrip<T> r;
        const WwPlace<false> p = s.template place<false>(i);
        r.load(x + s.column(i), p, WwCompute<T>(0));
#pragma unroll
        for (int k = 0; k < r.count; k++) {
            WwCompute<T> d = r.value[k] - all.most;
            r.value[k] = LOG ? d - factor : ww_exp_of<T>(d) * factor;
        }
        r.store(y + s.column(i), p.again());
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

#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#define GROUPS(op, LOG, T, dt, form, lanes, vectors)                                                             \
    KERNEL(256, 4) op##_##dt##_##form(PARAMS(T)) { group_rows<lanes, vectors, LOG>(x, y, rows, columns); }
#define BLOCK(op, LOG, T, dt, form, threads, vectors, blocks)                                                    \
    KERNEL(threads, blocks) op##_##dt##_##form(PARAMS(T)) { block_row<vectors, LOG>(x, y, rows, columns); }

#ifdef WW_HALVES
#define LARGE(op, LOG, T, dt) BLOCK(op, LOG, T, dt, block, 512, 2, 2) BLOCK(op, LOG, T, dt, wide, 1024, 2, 1)
#else
#define LARGE(op, LOG, T, dt)                                                                                  \
    BLOCK(op, LOG, T, dt, block, 512, 4, 2)                                                                      \
    KERNEL(512, LOG ? 1 : 2) op##_##dt##_wide(PARAMS(T)) { wide_row<8, LOG>(x, y, rows, columns); }
#endif

#define SOFTMAX(op, LOG, T, dt)                                                                                  \
    GROUPS(op, LOG, T, dt, lanes, 8, 1)                                                                          \
    GROUPS(op, LOG, T, dt, pairs, 8, 2)                                                                          \
    GROUPS(op, LOG, T, dt, half, 16, 2)                                                                          \
    GROUPS(op, LOG, T, dt, warp, 32, 2)                                                                          \
    LARGE(op, LOG, T, dt)                                                                                        \
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
