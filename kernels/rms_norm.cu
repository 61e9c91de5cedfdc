// levels: sm_75
// rmsNorm over contiguous rows. Squares are summed in float64, the rest is in the array's own type, in float for 16 bits.
// scale may be null. S is 16 / sizeof(T); nothing need be aligned. Launched as layer_norm.cu is.
//   rmsNorm_<dt>_lanes(x, scale, y, rows, columns, epsilon)       columns <= 8 S
//   rmsNorm_<dt>_warp                                             columns <= 64 S
//   rmsNorm_<dt>_block                                            columns <= 2048 S
//   rmsNorm_<dt>_wide                                             columns <= 4096 S; not for 16 bits
// Longer rows in two launches, with rows * parts doubles of workspace:
//   rmsNorm_<dt>_partial(x, workspace, columns, chunk, parts)
//   rmsNorm_<dt>_finish(x, workspace, scale, y, columns, chunk, parts, epsilon)
#include "common/math.cuh"
#include "common/row.cuh"
#include "common/moments.cuh"

#define ROW_PARAMS(T) const T *x, const T *scale, T *y, unsigned long long rows, unsigned columns, WwCompute<T> epsilon

template <class T, int VECTORS> WW_DEVICE double squares_of(const WwRow<T, VECTORS>& r) {
    double sum = 0.0;
#pragma unroll
    for (int k = 0; k < r.count; k++) sum = fma((double)r.value[k], (double)r.value[k], sum);
    return sum;
}

template <class T, int VECTORS>
WW_DEVICE void scaled(WwRow<T, VECTORS>& r, const WwRow<T, VECTORS>& s, bool given, WwCompute<T> factor) {
#pragma unroll
    for (int k = 0; k < r.count; k++) r.value[k] = given ? r.value[k] * factor * s.value[k] : r.value[k] * factor;
}

template <class T> WW_DEVICE WwCompute<T> factor_of(double squares, double columns, WwCompute<T> epsilon) {
    return (WwCompute<T>)rsqrt(squares / columns + (double)epsilon);
}

// The scale is asked for before the row is summed, so that both come from memory at once.
template <int LANES, int VECTORS, class T> WW_DEVICE void group_rows(ROW_PARAMS(T)) {
    unsigned long long row = blockIdx.x * (unsigned long long)(256 / LANES) + threadIdx.x / LANES;
    unsigned lane = threadIdx.x % LANES, count = row < rows ? columns : 0;
    unsigned long long at = row < rows ? row * columns : 0;
    bool vectors = WwRow<T, VECTORS>::vectors(x, y, columns) && ww_aligned(scale);
    WwRow<T, VECTORS> r, s;
    r.load(x + at, count, lane, LANES, vectors, WwCompute<T>(0));
    if (scale) s.load(scale, count, lane, LANES, vectors, WwCompute<T>(0));
    double squares = ww_lanes_reduce<LANES>(squares_of(r), [](double p, double q) { return p + q; });
    scaled(r, s, scale != nullptr, factor_of<T>(squares, columns, epsilon));
    r.store(y + at, count, lane, LANES, vectors);
}

template <int VECTORS, class T> WW_DEVICE void block_row(ROW_PARAMS(T)) {
    __shared__ double slots[32];
    unsigned long long at = blockIdx.x * (unsigned long long)columns;
    bool vectors = WwRow<T, VECTORS>::vectors(x, y, columns) && ww_aligned(scale);
    WwRow<T, VECTORS> r, s;
    r.load(x + at, columns, threadIdx.x, blockDim.x, vectors, WwCompute<T>(0));
    if (scale) s.load(scale, columns, threadIdx.x, blockDim.x, vectors, WwCompute<T>(0));
    double squares = ww_block_sum(squares_of(r), slots);
    scaled(r, s, scale != nullptr, factor_of<T>(squares, columns, epsilon));
    r.store(y + at, columns, threadIdx.x, blockDim.x, vectors);
}

template <class T>
WW_DEVICE void partial(const T* x, double* workspace, unsigned long long columns, unsigned long long chunk, unsigned parts) {
    __shared__ double slots[32];
    constexpr unsigned strip = 512 * WwStrip<T>::count;
    unsigned long long begin = blockIdx.x % parts * chunk;
    unsigned long long end = begin + chunk < columns ? begin + chunk : columns;
    x += blockIdx.x / parts * columns;
    bool vectors = ww_aligned(x) && columns % WwVector<T>::size == 0;
    double squares = 0.0;
    for (unsigned long long i = begin; i < end; i += strip) {
        WwStrip<T> r;
        r.load(x + i, end - i < strip ? (unsigned)(end - i) : strip, threadIdx.x, 512, vectors, WwCompute<T>(0));
        squares += squares_of(r);
    }
    squares = ww_block_sum(squares, slots);
    if (threadIdx.x == 0) workspace[blockIdx.x] = squares;
}

template <class T>
WW_DEVICE void finish(const T* x, const double* workspace, const T* scale, T* y, unsigned long long columns,
                      unsigned long long chunk, unsigned parts, WwCompute<T> epsilon) {
    __shared__ double slots[32];
    constexpr unsigned strip = 512 * WwStrip<T>::count;
    unsigned long long row = blockIdx.x / parts, begin = blockIdx.x % parts * chunk;
    unsigned long long end = begin + chunk < columns ? begin + chunk : columns;
    double squares = 0.0;
    for (unsigned p = threadIdx.x; p < parts; p += 512) squares += workspace[row * parts + p];
    WwCompute<T> factor = factor_of<T>(ww_block_sum(squares, slots), (double)columns, epsilon);
    x += row * columns;
    y += row * columns;
    bool vectors = ww_aligned(x) && ww_aligned(y) && ww_aligned(scale) && columns % WwVector<T>::size == 0;
    for (unsigned long long i = begin; i < end; i += strip) {
        WwStrip<T> r, s;
        unsigned count = end - i < strip ? (unsigned)(end - i) : strip;
        r.load(x + i, count, threadIdx.x, 512, vectors, WwCompute<T>(0));
        if (scale) s.load(scale + i, count, threadIdx.x, 512, vectors, WwCompute<T>(0));
        scaled(r, s, scale != nullptr, factor);
        r.store(y + i, count, threadIdx.x, 512, vectors);
    }
}

#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define WHOLE(T, dt, form, threads, ...) \
    KERNEL(threads) rmsNorm_##dt##_##form(ROW_PARAMS(T)) { __VA_ARGS__(x, scale, y, rows, columns, epsilon); }
#ifdef WW_HALVES
#define WIDE(T, dt)
#else
#define WIDE(T, dt) WHOLE(T, dt, wide, 512, block_row<8>)
#endif
#define KERNELS(T, dt)                                                                                              \
    WHOLE(T, dt, lanes, 256, group_rows<8, 1>)                                                                    \
    WHOLE(T, dt, warp, 256, group_rows<32, 2>)                                                                    \
    WHOLE(T, dt, block, 1024, block_row<2>)                                                                         \
    WIDE(T, dt)                                                                                                     \
    KERNEL(512) rmsNorm_##dt##_partial(const T* x, double* workspace, unsigned long long columns,                   \
                                       unsigned long long chunk, unsigned parts) {                                  \
        partial(x, workspace, columns, chunk, parts);                                                               \
    }                                                                                                               \
    KERNEL(512) rmsNorm_##dt##_finish(const T* x, const double* workspace, const T* scale, T* y,                    \
                                      unsigned long long columns, unsigned long long chunk, unsigned parts,         \
                                      WwCompute<T> epsilon) {                                                       \
        finish(x, workspace, scale, y, columns, chunk, parts, epsilon);                                             \
    }

#ifdef WW_HALVES
KERNELS(WwHalf, f16)
KERNELS(WwBfloat, bf16)
#else
KERNELS(float, f32)
KERNELS(double, f64)
#endif
