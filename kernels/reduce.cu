// levels: sm_75
// One step of a reduction: y [outer, parts, inner] from x [outer, length, inner], parts stretches of `chunk` elements
// along length (the last one shorter), folded in a fixed order in the array's own type. S is 16 / sizeof(T).
// inner == 1, a group of threads a stretch, rows = outer * parts:
//   reduce_<op>_<dt>_lanes   8 threads: 256 a block, ceil(rows / 32) blocks
//   reduce_<op>_<dt>_warp    32 threads: 256 a block, ceil(rows / 8) blocks
//   reduce_<op>_<dt>_block   256 threads: one block a stretch
// inner > 1, tiles = ceil(inner / (width * V)), 256 threads, tiles * outer * parts blocks, width a power of two to 32:
//   reduce_<op>_<dt>_vectors V = S: x aligned to 16 bytes, inner a multiple of S
//   reduce_<op>_<dt>_scalars V = 1
#include "common/math.cuh"
#include "common/vector.cuh"
#include "common/row.cuh"
#include "common/reduce.cuh"

#define REDUCE_PARAMS(T)                                                                                       \
    const T *x, T *y, unsigned long long rows, unsigned parts, unsigned long long length, unsigned long long chunk, \
        unsigned long long inner, unsigned width, T divisor, unsigned finish
#define REDUCE_PASS x, y, rows, parts, length, chunk, inner, width, divisor, finish

constexpr int LOADS = 4;

// Folds `count` elements from `x` on, `step` threads taking turns; this thread is number `lane`.
template <class Op, class T> WW_DEVICE T fold_row(const T *x, unsigned long long count, unsigned lane, unsigned step) {
    constexpr int S = WwVector<T>::size;
    T sums[LOADS * S];
#pragma unroll
    for (int k = 0; k < LOADS * S; k++) sums[k] = Op::template identity<T>();
    if (ww_aligned(x) && count % S == 0) {
        for (unsigned long long i = lane * S; i < count; i += (unsigned long long)step * LOADS * S) {
            WwVector<T> v[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; k++) {
                const unsigned long long at = i + (unsigned long long)k * step * S;
                if (at < count) v[k] = ww_load(x + at);
            }
#pragma unroll
            for (int k = 0; k < LOADS; k++) {
                if (i + (unsigned long long)k * step * S >= count) continue;
#pragma unroll
                for (int s = 0; s < S; s++) sums[k * S + s] = Op::fold(sums[k * S + s], Op::map(v[k].lane[s]));
            }
        }
    } else {
        for (unsigned long long i = lane; i < count; i += (unsigned long long)step * LOADS * S) {
            T v[LOADS * S];
#pragma unroll
            for (int k = 0; k < LOADS * S; k++) {
                const unsigned long long at = i + (unsigned long long)k * step;
                if (at < count) v[k] = x[at];
            }
#pragma unroll
            for (int k = 0; k < LOADS * S; k++)
                if (i + (unsigned long long)k * step < count) sums[k] = Op::fold(sums[k], Op::map(v[k]));
        }
    }
#pragma unroll
    for (int width = LOADS * S / 2; width > 0; width /= 2)
#pragma unroll
        for (int k = 0; k < width; k++) sums[k] = Op::fold(sums[k], sums[k + width]);
    return sums[0];
}

template <class Op, class T> WW_DEVICE T fold_lanes(T value, int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) value = Op::fold(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// Where a stretch begins and how many elements it has.
WW_DEVICE unsigned long long stretch(unsigned part, unsigned long long chunk, unsigned long long length, unsigned long long &begin) {
    begin = part * chunk;
    return length - begin < chunk ? length - begin : chunk;
}

template <int LANES, class Op, class T> WW_DEVICE void reduce_rows(REDUCE_PARAMS(T)) {
    const unsigned long long row = blockIdx.x * (unsigned long long)(256 / LANES) + threadIdx.x / LANES;
    unsigned long long begin = 0, count = 0;
    const T *from = x;
    if (row < rows) {
        count = stretch((unsigned)(row % parts), chunk, length, begin);
        from = x + row / parts * length + begin;
    }
    T value = fold_row<Op>(from, count, threadIdx.x % LANES, LANES);
    if (LANES <= 32) {
        value = fold_lanes<Op>(value, LANES);
    } else {
        __shared__ T warps[8];
        value = fold_lanes<Op>(value, 32);
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
        __syncthreads();
        value = fold_lanes<Op>(warps[threadIdx.x % 8], 8);
    }
    if (threadIdx.x % LANES == 0 && row < rows) y[row] = ww_reduced(value, divisor, finish);
}

template <class T, int V> struct Slice {
    T lane[V];
};

template <int V, class T> WW_DEVICE Slice<T, V> load_slice(const T *from) {
    Slice<T, V> slice;
    if constexpr (V == 1)
        slice.lane[0] = *from;
    else
        *reinterpret_cast<WwVector<T> *>(&slice) = ww_load(from);
    return slice;
}

template <int V, class Op, class T> WW_DEVICE void reduce_columns(REDUCE_PARAMS(T)) {
    __shared__ T shared[256 * V];
    const unsigned height = 256 / width, lane = threadIdx.x % width, line = threadIdx.x / width;
    const unsigned long long tiles = (inner + width * V - 1) / (width * V), row = blockIdx.x / tiles;
    const unsigned long long column = (blockIdx.x % tiles * width + lane) * V;
    unsigned long long begin;
    const unsigned long long count = stretch((unsigned)(row % parts), chunk, length, begin);
    T sums[V];
#pragma unroll
    for (int v = 0; v < V; v++) sums[v] = Op::template identity<T>();
    if (column < inner) {
        const T *from = x + (row / parts * length + begin) * inner + column;
        for (unsigned long long i = line; i < count; i += LOADS * height) {
            Slice<T, V> part[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (i + k * height < count) part[k] = load_slice<V>(from + (i + k * height) * inner);
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (i + k * height < count)
#pragma unroll
                    for (int v = 0; v < V; v++) sums[v] = Op::fold(sums[v], Op::map(part[k].lane[v]));
        }
    }
#pragma unroll
    for (int v = 0; v < V; v++) shared[v * 256 + threadIdx.x] = sums[v];
    for (unsigned half = height / 2; half > 0; half /= 2) {
        __syncthreads();
        if (line < half)
#pragma unroll
            for (int v = 0; v < V; v++) {
                T *mine = shared + v * 256 + threadIdx.x;
                *mine = Op::fold(*mine, mine[half * width]);
            }
    }
    if (line > 0 || column >= inner) return;
#pragma unroll
    for (int v = 0; v < V; v++) y[row * inner + column + v] = ww_reduced(shared[v * 256 + threadIdx.x], divisor, finish);
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)

#define REDUCE(op, Op, T, dt)                                                                                \
    KERNEL reduce_##op##_##dt##_lanes(REDUCE_PARAMS(T)) { reduce_rows<8, Op, T>(REDUCE_PASS); }                \
    KERNEL reduce_##op##_##dt##_warp(REDUCE_PARAMS(T)) { reduce_rows<32, Op, T>(REDUCE_PASS); }                \
    KERNEL reduce_##op##_##dt##_block(REDUCE_PARAMS(T)) { reduce_rows<256, Op, T>(REDUCE_PASS); }              \
    KERNEL reduce_##op##_##dt##_vectors(REDUCE_PARAMS(T)) { reduce_columns<16 / sizeof(T), Op, T>(REDUCE_PASS); } \
    KERNEL reduce_##op##_##dt##_scalars(REDUCE_PARAMS(T)) { reduce_columns<1, Op, T>(REDUCE_PASS); }

#define REDUCES(T, dt)                 \
    REDUCE(sum, WwSum, T, dt)          \
    REDUCE(abs, WwAbs, T, dt)          \
    REDUCE(square, WwSquare, T, dt)    \
    REDUCE(product, WwProduct, T, dt)  \
    REDUCE(max, WwMax, T, dt)          \
    REDUCE(min, WwMin, T, dt)

REDUCES(float, f32)
REDUCES(double, f64)
