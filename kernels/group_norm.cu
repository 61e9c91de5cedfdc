// levels: sm_75
// groupNorm: rows of `columns` elements, `channels` channels of `plane` elements each; row r is group r % groups. Statistics
// in float64, the rest in the array's own type, in float for 16 bits. scale and bias, one of each a channel of all groups,
// may be null. S is 16 / sizeof(T); nothing need be aligned. Launched as layer_norm.cu is.
//   groupNorm_<dt>_lanes(x, scale, bias, y, rows, columns, Groups, epsilon)    columns <= 8 S
//   groupNorm_<dt>_warp                                                        columns <= 64 S
//   groupNorm_<dt>_block                                                       columns <= 2048 S
//   groupNorm_<dt>_wide                                                        columns <= 4096 S; not for 16 bits
// Longer rows after layerNorm_<dt>_partial:
//   groupNorm_<dt>_finish(x, workspace, scale, bias, y, columns, chunk, parts, Groups, epsilon)
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/row.cuh"
#include "common/moments.cuh"

struct Groups {
    unsigned long long plane;
    unsigned long long magic;  // of plane, as in common/divide.cuh
    unsigned long long channels;
    unsigned long long groups;
    unsigned long long groups_magic;
};

// The first channel of a row.
WW_DEVICE unsigned long long first_of(unsigned long long row, const Groups& g) {
    unsigned long long group;
    ww_divide(row, g.groups, g.groups_magic, group);
    return group * g.channels;
}

#define ROW_PARAMS(T)                                                                                           \
    const T *x, const T *scale, const T *bias, T *y, unsigned long long rows, unsigned columns, const Groups g, \
        WwCompute<T> epsilon
#define ROW_PASS x, scale, bias, y, rows, columns, g, epsilon

// Deviations to results; `first` is the row's first channel, `begin` the column of the values' first, of 32 bits for rows
// that are held whole.
template <class Index, class T, int VECTORS>
WW_DEVICE void normalize(WwRow<T, VECTORS>& r, const T* scale, const T* bias, WwCompute<T> factor, const Groups& g,
                         unsigned long long first, Index begin, unsigned columns, unsigned lane,
                         unsigned lanes, bool vectors) {
#pragma unroll
    for (int k = 0; k < r.count; k++) {
        const unsigned column = r.column(k, lane, lanes, vectors);
        if (column >= columns) continue;
        Index rest;
        const unsigned long long channel = first + ww_divide(begin + column, g.plane, g.magic, rest);
        WwCompute<T> value = r.value[k] * factor;
        if (scale) value *= (WwCompute<T>)scale[channel];
        if (bias) value += (WwCompute<T>)bias[channel];
        r.value[k] = value;
    }
}

template <class T> WW_DEVICE WwCompute<T> factor_of(double squares, double columns, WwCompute<T> epsilon) {
    return (WwCompute<T>)rsqrt(squares / columns + (double)epsilon);
}

template <int LANES, int VECTORS, class T> WW_DEVICE void group_rows(ROW_PARAMS(T)) {
    unsigned long long row = blockIdx.x * (unsigned long long)(256 / LANES) + threadIdx.x / LANES;
    unsigned lane = threadIdx.x % LANES, count = row < rows ? columns : 0;
    unsigned long long at = row < rows ? row * columns : 0;
    bool vectors = WwRow<T, VECTORS>::vectors(x, y, columns);
    auto add = [](double p, double q) { return p + q; };
    WwRow<T, VECTORS> r;
    r.load(x + at, count, lane, LANES, vectors, WwCompute<T>(0));
    double mean = ww_lanes_reduce<LANES>(ww_row_sum(r), add) / columns;
    double squares = ww_lanes_reduce<LANES>(ww_row_squares(r, mean, count, lane, LANES, vectors), add);
    unsigned long long first = first_of(row, g);
    normalize(r, scale, bias, factor_of<T>(squares, columns, epsilon), g, first, 0u, count, lane, LANES, vectors);
    r.store(y + at, count, lane, LANES, vectors);
}

template <int VECTORS, class T> WW_DEVICE void block_row(ROW_PARAMS(T)) {
    __shared__ double slots[2][32];
    unsigned long long at = blockIdx.x * (unsigned long long)columns;
    bool vectors = WwRow<T, VECTORS>::vectors(x, y, columns);
    unsigned lane = threadIdx.x, lanes = blockDim.x;
    WwRow<T, VECTORS> r;
    r.load(x + at, columns, lane, lanes, vectors, WwCompute<T>(0));
    double mean = ww_block_sum(ww_row_sum(r), slots[0]) / columns;
    double squares = ww_block_sum(ww_row_squares(r, mean, columns, lane, lanes, vectors), slots[1]);
    unsigned long long first = first_of(blockIdx.x, g);
    normalize(r, scale, bias, factor_of<T>(squares, columns, epsilon), g, first, 0u, columns, lane, lanes, vectors);
    r.store(y + at, columns, lane, lanes, vectors);
}

template <class T>
WW_DEVICE void finish(const T* x, const double* workspace, const T* scale, const T* bias, T* y, unsigned long long columns,
                      unsigned long long chunk, unsigned parts, const Groups& g, WwCompute<T> epsilon) {
    constexpr unsigned strip = 512 * WwStrip<T>::count;
    unsigned long long row = blockIdx.x / parts, begin = blockIdx.x % parts * chunk;
    unsigned long long end = begin + chunk < columns ? begin + chunk : columns;
    WwMoments all = ww_merge_parts(workspace + 2 * row * parts, columns, chunk, parts);
    WwCompute<T> factor = factor_of<T>(all.squares, (double)columns, epsilon);
    unsigned long long first = first_of(row, g);
    x += row * columns;
    y += row * columns;
    bool vectors = WwStrip<T>::vectors(x, y, (unsigned)(columns % WwVector<T>::size));
    for (unsigned long long i = begin; i < end; i += strip) {
        WwStrip<T> r;
        unsigned count = end - i < strip ? (unsigned)(end - i) : strip;
        r.load(x + i, count, threadIdx.x, 512, vectors, WwCompute<T>(0));
#pragma unroll
        for (int k = 0; k < r.count; k++) r.value[k] = ww_deviation(r.value[k], all.mean);
        normalize(r, scale, bias, factor, g, first, i, count, threadIdx.x, 512, vectors);
        r.store(y + i, count, threadIdx.x, 512, vectors);
    }
}

#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#ifdef WW_HALVES
#define WIDE(T, dt)
#else
#define WIDE(T, dt) KERNEL(512) groupNorm_##dt##_wide(ROW_PARAMS(T)) { block_row<8>(ROW_PASS); }
#endif
#define GROUP_NORM(T, dt)                                                                                       \
    KERNEL(256, 2) groupNorm_##dt##_lanes(ROW_PARAMS(T)) { group_rows<8, 1>(ROW_PASS); }                           \
    KERNEL(256, 2) groupNorm_##dt##_warp(ROW_PARAMS(T)) { group_rows<32, 2>(ROW_PASS); }                           \
    KERNEL(1024, 1) groupNorm_##dt##_block(ROW_PARAMS(T)) { block_row<2>(ROW_PASS); }                              \
    WIDE(T, dt)                                                                                                 \
    KERNEL(512, 2) groupNorm_##dt##_finish(const T* x, const double* workspace, const T* scale, const T* bias, T* y, \
                                           unsigned long long columns, unsigned long long chunk, unsigned parts, \
                                           const Groups g, WwCompute<T> epsilon) {                              \
        finish(x, workspace, scale, bias, y, columns, chunk, parts, g, epsilon);                                \
    }

#ifdef WW_HALVES
GROUP_NORM(WwHalf, f16)
GROUP_NORM(WwBfloat, bf16)
#else
GROUP_NORM(float, f32)
GROUP_NORM(double, f64)
#endif
