// levels: sm_75
// One step of a reduction: y [outer, parts, inner] from x [outer, length, inner], parts stretches of `chunk` elements
// along length (the last one shorter), folded in a fixed order in the array's own type, in float for 16 bits; y is of
// that type too unless `finish` asks for 16 bits. S is 16 / sizeof(T).
// Blocks have 256 threads; `width` is a power of two.
//   reduce_<op>_<dt>_rows     inner == 1: width = 8, 32 or 256 threads a stretch, ceil(outer * parts * width / 256) blocks
//   reduce_<op>_<dt>_short    the same for rows of whole vectors, at most 32, in one stretch, x aligned to 16 bytes:
//                             width threads a vector each, ceil(outer * width / 1024) blocks
//   reduce_<op>_<dt>_vectors  x aligned to 16 bytes, inner a multiple of S: width vectors side by side, at most 32;
//                             tiles * outer * parts blocks, tiles = ceil(inner / (width * S))
//   reduce_<op>_<dt>_scalars  the same with S = 1
#include "common/math.cuh"
#include "common/half.cuh"
#include "common/vector.cuh"
#include "common/row.cuh"
#include "common/reduce.cuh"

#define REDUCE_PARAMS(T)                                                                                    \
    const T *x, void *y, unsigned long long rows, unsigned parts, unsigned long long length,                \
        unsigned long long chunk, unsigned long long inner, unsigned width, WwCompute<T> divisor, unsigned finish
#define REDUCE_PASS x, y, rows, parts, length, chunk, inner, width, divisor, finish

// Vectors that a thread loads before it folds them.
constexpr int LOADS = 4;

// Folds `count` elements from `x` on, `step` threads taking turns; this thread is number `lane`.
template <class Op, class T>
WW_DEVICE WwCompute<T> fold_row(const T *x, unsigned long long count, unsigned lane, unsigned step) {
    using A = WwCompute<T>;
    constexpr int S = WwVector<T>::size;
    A sums[S];
#pragma unroll
    for (int s = 0; s < S; s++) sums[s] = Op::template identity<A>();
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
                for (int s = 0; s < S; s++) sums[s] = Op::fold(sums[s], Op::map(A(v[k].lane[s])));
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
                if (i + (unsigned long long)k * step < count) sums[k % S] = Op::fold(sums[k % S], Op::map(A(v[k])));
        }
    }
#pragma unroll
    for (int s = 1; s < S; s++) sums[0] = Op::fold(sums[0], sums[s]);
    return sums[0];
}

template <class Op, class T> WW_DEVICE T fold_lanes(T value, unsigned lanes) {
    for (unsigned step = lanes / 2; step > 0; step /= 2)
        value = Op::fold(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// Which stretch of which of the outer parts `row` is, and how many elements it has. More than one stretch is launched
// only where their number fits 32 bits, which spares a long division.
struct Stretch {
    unsigned long long outer, begin, count;
    __device__ __forceinline__ Stretch(unsigned long long row, unsigned parts, unsigned long long chunk, unsigned long long length) {
        outer = parts == 1 ? row : (unsigned)row / parts;
        begin = parts == 1 ? 0 : (unsigned)row % parts * chunk;
        count = length - begin < chunk ? length - begin : chunk;
    }
};

WW_DEVICE unsigned log2_of(unsigned power) { return 31 - __clz(power); }

template <class Op, class T> WW_DEVICE void reduce_rows(REDUCE_PARAMS(T)) {
    const unsigned lane = threadIdx.x & (width - 1);
    const unsigned long long row = ((unsigned long long)blockIdx.x << 8 | threadIdx.x) >> log2_of(width);
    const Stretch part(row, parts, chunk, length);
    const unsigned long long count = row < rows ? part.count : 0;
    const T *from = x + (row < rows ? part.outer * length + part.begin : 0);
    WwCompute<T> value = fold_lanes<Op>(fold_row<Op>(from, count, lane, width), width < 32 ? width : 32);
    if (width > 32) {
        __shared__ WwCompute<T> warps[8];
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
        __syncthreads();
        value = fold_lanes<Op>(warps[threadIdx.x % 8], 8);
    }
    if (lane == 0 && row < rows) ww_finish(y, row, value, divisor, finish);
}

// A thread holds a vector of each of LOADS neighbouring rows, so that short rows have as many loads on their way as long ones.
template <class Op, class T> WW_DEVICE void reduce_short(REDUCE_PARAMS(T)) {
    using A = WwCompute<T>;
    constexpr int S = WwVector<T>::size;
    const unsigned lane = threadIdx.x & (width - 1);
    const unsigned long long row = ((unsigned long long)blockIdx.x << 8 | threadIdx.x) / width * LOADS;
    const bool inside = lane * S < length;
    WwVector<T> v[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) v[k] = ww_load(x + (row + k < rows && inside ? (row + k) * length + lane * S : 0));
    A sums[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++) {
        sums[k] = Op::map(A(v[k].lane[0]));
#pragma unroll
        for (int s = 1; s < S; s++) sums[k] = Op::fold(sums[k], Op::map(A(v[k].lane[s])));
        sums[k] = fold_lanes<Op>(inside ? sums[k] : Op::template identity<A>(), width);
    }
    for (unsigned k = lane; k < LOADS && row + k < rows; k += width)
        ww_finish(y, row + k, k == 0 ? sums[0] : k == 1 ? sums[1] : k == 2 ? sums[2] : sums[3], divisor, finish);
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
    using A = WwCompute<T>;
    __shared__ A shared[256 * V];
    const unsigned shift = log2_of(width), height = 256u >> shift, lane = threadIdx.x & (width - 1), line = threadIdx.x >> shift;
    const unsigned tiles = (unsigned)((inner + (unsigned long long)width * V - 1) / V >> shift), row = blockIdx.x / tiles;
    const unsigned long long column = ((unsigned long long)(blockIdx.x % tiles << shift) + lane) * V;
    const Stretch part(row, parts, chunk, length);
    A sums[V];
#pragma unroll
    for (int v = 0; v < V; v++) sums[v] = Op::template identity<A>();
    if (column < inner) {
        const T *from = x + (part.outer * length + part.begin) * inner + column;
        for (unsigned long long i = line; i < part.count; i += LOADS * height) {
            Slice<T, V> slices[LOADS];
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (i + k * height < part.count) slices[k] = load_slice<V>(from + (i + k * height) * inner);
#pragma unroll
            for (int k = 0; k < LOADS; k++)
                if (i + k * height < part.count)
#pragma unroll
                    for (int v = 0; v < V; v++) sums[v] = Op::fold(sums[v], Op::map(A(slices[k].lane[v])));
        }
    }
#pragma unroll
    for (int v = 0; v < V; v++) shared[v * 256 + threadIdx.x] = sums[v];
    for (unsigned half = height / 2; half > 0; half /= 2) {
        __syncthreads();
        if (line < half)
#pragma unroll
            for (int v = 0; v < V; v++) {
                A *mine = shared + v * 256 + threadIdx.x;
                *mine = Op::fold(*mine, mine[half * width]);
            }
    }
    if (line > 0 || column >= inner) return;
#pragma unroll 1
    for (int v = 0; v < V; v++) ww_finish(y, (unsigned long long)row * inner + column + v, shared[v * 256 + threadIdx.x], divisor, finish);
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)

#define REDUCE(op, Op, T, dt)                                                                                  \
    KERNEL reduce_##op##_##dt##_rows(REDUCE_PARAMS(T)) { reduce_rows<Op, T>(REDUCE_PASS); }                     \
    KERNEL reduce_##op##_##dt##_short(REDUCE_PARAMS(T)) { reduce_short<Op, T>(REDUCE_PASS); }                   \
    KERNEL reduce_##op##_##dt##_vectors(REDUCE_PARAMS(T)) { reduce_columns<16 / sizeof(T), Op, T>(REDUCE_PASS); } \
    KERNEL reduce_##op##_##dt##_scalars(REDUCE_PARAMS(T)) { reduce_columns<1, Op, T>(REDUCE_PASS); }

#define REDUCES(T, dt)                 \
    REDUCE(sum, WwSum, T, dt)          \
    REDUCE(abs, WwAbs, T, dt)          \
    REDUCE(square, WwSquare, T, dt)    \
    REDUCE(product, WwProduct, T, dt)  \
    REDUCE(max, WwMax, T, dt)          \
    REDUCE(min, WwMin, T, dt)

#ifdef WW_HALVES
REDUCES(WwHalf, f16)
REDUCES(WwBfloat, bf16)
#else
REDUCES(float, f32)
REDUCES(double, f64)
#endif
