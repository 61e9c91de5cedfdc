// levels: sm_75
// layerNorm over contiguous rows. Statistics in float64, the rest in the array's own type, in float for 16 bits.
// scale and bias may be null. S is 16 / sizeof(T); nothing need be aligned.
//   layerNorm_<dt>_lanes(x, scale, bias, y, rows, columns, epsilon)
//                               columns <= 8 S: 256 threads, ceil(rows / 32) blocks
//   layerNorm_<dt>_warp         columns <= 64 S: 256 threads, ceil(rows / 8) blocks
//   layerNorm_<dt>_block        columns <= 2048 S: a power of two of threads, 64 to 1024 and at least
//                               columns / (2 S); one block a row
//   layerNorm_<dt>_wide         columns <= 4096 S: 512 threads, one block a row; not for 16 bits
// Longer rows in two launches of rows * parts blocks of 512 threads, with 2 * rows * parts doubles of workspace:
//   layerNorm_<dt>_partial(x, workspace, columns, chunk, parts)     chunk: a multiple of S, chunk * (parts - 1) < columns
//   layerNorm_<dt>_finish(x, workspace, scale, bias, y, columns, chunk, parts, epsilon)
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/row.cuh"
#include "common/moments.cuh"

template <class T> struct Affine {
    const T *scale, *bias;
};

#define ROW_PARAMS(T) \
    const T *x, const T *scale, const T *bias, T *y, unsigned long long rows, unsigned columns, WwCompute<T> epsilon

template <class T> WW_DEVICE bool affine_aligned(Affine<T> a) { return ww_aligned(a.scale) && ww_aligned(a.bias); }

// Deviations to results.
template <class T, int VECTORS>
WW_DEVICE void normalize(WwRow<T, VECTORS>& r, Affine<T> a, WwCompute<T> factor, unsigned columns, unsigned lane, unsigned lanes, bool vectors) {
    WwRow<T, VECTORS> s;
    if (a.scale) {
        s.load(a.scale, columns, lane, lanes, vectors, WwCompute<T>(0));
#pragma unroll
        for (int k = 0; k < r.count; k++) r.value[k] = r.value[k] * factor * s.value[k];
    } else {
#pragma unroll
        for (int k = 0; k < r.count; k++) r.value[k] *= factor;
    }
    if (a.bias) {
        s.load(a.bias, columns, lane, lanes, vectors, WwCompute<T>(0));
#pragma unroll
        for (int k = 0; k < r.count; k++) r.value[k] += s.value[k];
    }
}

template <int LANES, int VECTORS, class T> WW_DEVICE void group_rows(ROW_PARAMS(T)) {
    unsigned long long row = blockIdx.x * (unsigned long long)(256 / LANES) + threadIdx.x / LANES;
    unsigned lane = threadIdx.x % LANES, count = row < rows ? columns : 0;
    unsigned long long at = row < rows ? row * columns : 0;
    Affine<T> a{scale, bias};
    bool vectors = WwRow<T, VECTORS>::vectors(x, y, columns) && affine_aligned(a);
    auto add = [](double p, double q) { return p + q; };
    WwRow<T, VECTORS> r;
    r.load(x + at, count, lane, LANES, vectors, WwCompute<T>(0));
    double mean = ww_lanes_reduce<LANES>(ww_row_sum(r), add) / columns;
    double squares = ww_lanes_reduce<LANES>(ww_row_squares(r, mean, count, lane, LANES, vectors), add);
    normalize(r, a, (WwCompute<T>)rsqrt(squares / columns + epsilon), count, lane, LANES, vectors);
    r.store(y + at, count, lane, LANES, vectors);
}

template <int VECTORS, class T> WW_DEVICE void block_row(ROW_PARAMS(T)) {
    __shared__ double slots[2][32];
    unsigned long long at = blockIdx.x * (unsigned long long)columns;
    Affine<T> a{scale, bias};
    bool vectors = WwRow<T, VECTORS>::vectors(x, y, columns) && affine_aligned(a);
    unsigned lane = threadIdx.x, lanes = blockDim.x;
    WwRow<T, VECTORS> r;
    r.load(x + at, columns, lane, lanes, vectors, WwCompute<T>(0));
    double mean = ww_block_sum(ww_row_sum(r), slots[0]) / columns;
    double squares = ww_block_sum(ww_row_squares(r, mean, columns, lane, lanes, vectors), slots[1]);
    normalize(r, a, (WwCompute<T>)rsqrt(squares / columns + epsilon), columns, lane, lanes, vectors);
    r.store(y + at, columns, lane, lanes, vectors);
}

template <class T>
WW_DEVICE void partial(const T* x, double* workspace, unsigned long long columns, unsigned long long chunk, unsigned parts) {
    __shared__ double slots[2][32];
    constexpr unsigned strip = 512 * WwStrip<T>::count;
    unsigned long long begin = blockIdx.x % parts * chunk;
    unsigned long long end = begin + chunk < columns ? begin + chunk : columns;
    x += blockIdx.x / parts * columns;
    bool vectors = ww_aligned(x) && columns % WwVector<T>::size == 0;
    WwMoments all{0.0, 0.0, 0.0};
    for (unsigned long long i = begin; i < end; i += strip) {
        WwStrip<T> r;
        unsigned count = end - i < strip ? (unsigned)(end - i) : strip;
        r.load(x + i, count, threadIdx.x, 512, vectors, WwCompute<T>(0));
        WwMoments own;
        own.count = count;
        own.mean = ww_block_sum(ww_row_sum(r), slots[0]) / count;
        own.squares = ww_block_sum(ww_row_squares(r, own.mean, count, threadIdx.x, 512, vectors), slots[1]);
        all = ww_merge(all, own);
    }
    if (threadIdx.x == 0) {
        workspace[2ull * blockIdx.x] = all.mean;
        workspace[2ull * blockIdx.x + 1] = all.squares;
    }
}

template <class T>
WW_DEVICE void finish(const T* x, const double* workspace, Affine<T> a, T* y, unsigned long long columns,
                      unsigned long long chunk, unsigned parts, WwCompute<T> epsilon) {
    constexpr unsigned strip = 512 * WwStrip<T>::count;
    unsigned long long row = blockIdx.x / parts, begin = blockIdx.x % parts * chunk;
    unsigned long long end = begin + chunk < columns ? begin + chunk : columns;
    WwMoments all = ww_merge_parts(workspace + 2 * row * parts, columns, chunk, parts);
    WwCompute<T> factor = (WwCompute<T>)rsqrt(all.squares / (double)columns + epsilon);
    x += row * columns;
    y += row * columns;
    bool vectors = WwStrip<T>::vectors(x, y, (unsigned)(columns % WwVector<T>::size)) && affine_aligned(a);
    for (unsigned long long i = begin; i < end; i += strip) {
        WwStrip<T> r;
        unsigned count = end - i < strip ? (unsigned)(end - i) : strip;
        r.load(x + i, count, threadIdx.x, 512, vectors, WwCompute<T>(0));
#pragma unroll
        for (int k = 0; k < r.count; k++) r.value[k] = ww_deviation(r.value[k], all.mean);
        Affine<T> shifted{a.scale ? a.scale + i : nullptr, a.bias ? a.bias + i : nullptr};
        normalize(r, shifted, factor, count, threadIdx.x, 512, vectors);
        r.store(y + i, count, threadIdx.x, 512, vectors);
    }
}

#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)

#ifdef WW_HALVES
#define WIDE(T, dt)
#else
#define WIDE(T, dt)                                                                                              \
    KERNEL(512) layerNorm_##dt##_wide(ROW_PARAMS(T)) { block_row<8>(x, scale, bias, y, rows, columns, epsilon); }
#endif

#define LAYER_NORM(T, dt)                                                                                        \
    KERNEL(256) layerNorm_##dt##_lanes(ROW_PARAMS(T)) { group_rows<8, 1>(x, scale, bias, y, rows, columns, epsilon); } \
    KERNEL(256) layerNorm_##dt##_warp(ROW_PARAMS(T)) { group_rows<32, 2>(x, scale, bias, y, rows, columns, epsilon); } \
    KERNEL(1024) layerNorm_##dt##_block(ROW_PARAMS(T)) { block_row<2>(x, scale, bias, y, rows, columns, epsilon); } \
    WIDE(T, dt)                                                                                                  \
    KERNEL(512) layerNorm_##dt##_partial(const T* x, double* workspace, unsigned long long columns,              \
                                         unsigned long long chunk, unsigned parts) {                             \
        partial(x, workspace, columns, chunk, parts);                                                            \
    }                                                                                                            \
    KERNEL(512, 2) layerNorm_##dt##_finish(const T* x, const double* workspace, const T* scale, const T* bias, T* y, \
                                        unsigned long long columns, unsigned long long chunk, unsigned parts, WwCompute<T> epsilon) { \
        finish(x, workspace, Affine<T>{scale, bias}, y, columns, chunk, parts, epsilon);                         \
    }

#ifdef WW_HALVES
LAYER_NORM(WwHalf, f16)
LAYER_NORM(WwBfloat, bf16)
#else
LAYER_NORM(float, f32)
LAYER_NORM(double, f64)
#endif
