// levels: sm_75
// The index of the largest or smallest element of each column of x [outer, length, inner], as int64. NaN counts as larger
// (smaller) than any number; of equal elements the first, or the last. `chunk` elements of a column, at most 2^31, are a
// part; where there are several, each gives its best to a workspace of 16 bytes a part, column by column.
//   arg_<dt>_rows(x, y, columns, length, chunk, parts, width, flags)      inner is 1
//       256 threads, ceil(columns * parts * width / 256) blocks; width is a power of two up to 256: threads of a part.
//       Whole vectors are read where x, length and chunk allow it.
//   arg_<dt>_columns(x, y, columns, length, chunk, parts, width, flags, inner, magic of inner)
//       the same over S = 16 bytes / element neighbouring columns at a time, whole vectors; ceil(columns / S * ...) blocks
//   arg_<dt>_column                                                        the same over one column at a time
//   arg_<dt>_merge(workspace, y, columns, parts, width, flags)
//       256 threads, ceil(columns * width / 256) blocks; width is a power of two up to 256: threads of a column
// flags: 1 for the smallest, 2 for the last of equal ones.
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/half.cuh"
#include "common/vector.cuh"

typedef unsigned long long u64;
constexpr unsigned SMALLEST = 1, LAST = 2;

template <class T> struct alignas(16) Best {
    T value;          // negated where the smallest is looked for
    long long index;  // -1 where nothing was seen
};

// What a thread has found so far.
template <bool ATEND, class T> struct Search {
    T value;
    unsigned index;

    WW_DEVICE Search starting(unsigned first) { return Search{-WwLimits<T>::infinity(), first}; }

    // An element that comes after all others.
    __device__ __forceinline__ void take(T next, unsigned at) {
        const bool better = ATEND ? next >= value || next != next : value == value && !(next <= value);
        value = better ? next : value;
        index = better ? at : index;
    }
};

template <class T> WW_DEVICE bool beats(Best<T> a, Best<T> b, unsigned flags) {
    if (a.index < 0 || b.index < 0) return b.index < 0 && a.index >= 0;
    const bool odd_a = a.value != a.value, odd_b = b.value != b.value;
    if (odd_a != odd_b) return odd_a;
    if (!odd_a && a.value != b.value) return a.value > b.value;
    return flags & LAST ? a.index > b.index : a.index < b.index;
}

// The best of `width` threads of a block, `lane` of which there are others; all threads of the block take part.
template <class T>
WW_DEVICE Best<T> settle(Best<T> best, Best<T>* slots, unsigned lane, unsigned part, unsigned width, unsigned flags) {
    slots[lane * width + part] = best;
    for (unsigned step = width / 2; step > 0; step /= 2) {
        __syncthreads();
        if (part >= step) continue;
        const Best<T> other = slots[lane * width + part + step];
        if (beats(other, best, flags)) best = other;
        slots[lane * width + part] = best;
    }
    return best;
}

template <class T> WW_DEVICE void give(void* y, u64 column, u64 piece, unsigned parts, Best<T> best) {
    if (parts == 1)
        ((long long*)y)[column] = best.index;
    else
        ((Best<T>*)y)[column * parts + piece] = best;
}

template <bool ATEND, class S, class T>
WW_DEVICE Best<T> search_row(const S* x, unsigned count, unsigned part, unsigned width, bool vectors, T sign) {
    constexpr unsigned size = WwVector<S>::size;
    const unsigned step = vectors ? width * size : width, first = vectors ? part * size : part;
    auto best = Search<ATEND, T>::starting(first);
    if (first >= count) return Best<T>{T(0), -1};
    if (vectors) {
        unsigned i = first;
        for (; (u64)i + 3 * step < count; i += 4 * step) {
            WwVector<S> v[4];
#pragma unroll
            for (int k = 0; k < 4; k++) v[k] = ww_load(x + i + k * step);
#pragma unroll
            for (int k = 0; k < 4; k++)
#pragma unroll
                for (int e = 0; e < size; e++) best.take(sign * (T)v[k].lane[e], i + k * step + e);
        }
        for (; i < count; i += step) {
            const WwVector<S> v = ww_load(x + i);
#pragma unroll
            for (int e = 0; e < size; e++) best.take(sign * (T)v.lane[e], i + e);
        }
    } else {
        unsigned i = first;
        for (; (u64)i + 7 * step < count; i += 8 * step) {
            T v[8];
#pragma unroll
            for (int k = 0; k < 8; k++) v[k] = sign * (T)x[i + k * step];
#pragma unroll
            for (int k = 0; k < 8; k++) best.take(v[k], i + k * step);
        }
        for (; i < count; i += step) best.take(sign * (T)x[i], i);
    }
    return Best<T>{best.value, (long long)best.index};
}

#define ARG_PARAMS(S) \
    const S *x, void *y, u64 columns, u64 length, u64 chunk, unsigned parts, unsigned width, unsigned flags

template <class S> WW_DEVICE void rows(ARG_PARAMS(S)) {
    using T = WwCompute<S>;
    constexpr unsigned size = WwVector<S>::size;
    __shared__ Best<T> slots[256];
    const unsigned lane = threadIdx.x / width, part = threadIdx.x % width;
    const u64 all = blockIdx.x * (u64)(256 / width) + lane, column = all / parts, piece = all % parts;
    const bool inside = column < columns, vectors = ww_aligned(x) && length % size == 0 && chunk % size == 0;
    const u64 begin = piece * chunk;
    const unsigned count = inside ? (unsigned)(length - begin < chunk ? length - begin : chunk) : 0;
    const T sign = flags & SMALLEST ? T(-1) : T(1);
    x += inside ? column * length + begin : 0;
    Best<T> best = flags & LAST ? search_row<true, S, T>(x, count, part, width, vectors, sign)
                                : search_row<false, S, T>(x, count, part, width, vectors, sign);
    best.index += best.index < 0 ? 0 : (long long)begin;
    best = settle(best, slots, lane, part, width, flags);
    if (part == 0 && inside) give(y, column, piece, parts, best);
}

template <int V, class S> WW_DEVICE void read(S (&value)[V], const S* x) {
    if (V == 1) {
        value[0] = x[0];
    } else {
        const WwVector<S> v = ww_load(x);
#pragma unroll
        for (int k = 0; k < V; k++) value[k] = v.lane[k];
    }
}

template <bool ATEND, int V, class S, class T>
WW_DEVICE void search_columns(Best<T> (&best)[V], const S* x, unsigned count, unsigned part, unsigned width, u64 inner, T sign) {
    Search<ATEND, T> found[V];
#pragma unroll
    for (int v = 0; v < V; v++) found[v] = Search<ATEND, T>::starting(part);
    unsigned i = part;
    for (; (u64)i + 3 * width < count; i += 4 * width) {
        S value[4][V];
#pragma unroll
        for (int k = 0; k < 4; k++) read<V>(value[k], x + (i + k * width) * inner);
#pragma unroll
        for (int k = 0; k < 4; k++)
#pragma unroll
            for (int v = 0; v < V; v++) found[v].take(sign * (T)value[k][v], i + k * width);
    }
    for (; i < count; i += width) {
        S value[V];
        read<V>(value, x + i * inner);
#pragma unroll
        for (int v = 0; v < V; v++) found[v].take(sign * (T)value[v], i);
    }
#pragma unroll
    for (int v = 0; v < V; v++) best[v] = Best<T>{found[v].value, part < count ? (long long)found[v].index : -1};
}

// Threads of a block that are neighbours read neighbouring columns.
template <int V, class S> WW_DEVICE void columns_of(ARG_PARAMS(S), u64 inner, u64 magic) {
    using T = WwCompute<S>;
    __shared__ Best<T> slots[256];
    const unsigned lanes = 256 / width, lane = threadIdx.x % lanes, part = threadIdx.x / lanes;
    const u64 all = blockIdx.x * (u64)lanes + lane, units = columns / V, piece = all / units;
    const bool inside = piece < parts;
    const u64 column = all % units * V, begin = inside ? piece * chunk : 0;
    u64 rest;
    const u64 outer = ww_divide(column, inner, magic, rest);
    const unsigned count = inside ? (unsigned)(length - begin < chunk ? length - begin : chunk) : 0;
    const T sign = flags & SMALLEST ? T(-1) : T(1);
    x += (outer * length + begin) * inner + rest;
    Best<T> best[V];
    if (flags & LAST) search_columns<true, V, S, T>(best, x, count, part, width, inner, sign);
    else search_columns<false, V, S, T>(best, x, count, part, width, inner, sign);
#pragma unroll
    for (int v = 0; v < V; v++) {
        best[v].index += best[v].index < 0 ? 0 : (long long)begin;
        if (width > 1) {
            best[v] = settle(best[v], slots, lane, part, width, flags);
            __syncthreads();
        }
        if (part == 0 && inside) give(y, column + v, piece, parts, best[v]);
    }
}

template <class T>
WW_DEVICE void merge(const Best<T>* workspace, long long* y, u64 columns, unsigned parts, unsigned width, unsigned flags) {
    __shared__ Best<T> slots[256];
    const unsigned lane = threadIdx.x / width, part = threadIdx.x % width;
    const u64 column = blockIdx.x * (u64)(256 / width) + lane;
    Best<T> best{T(0), -1};
    for (unsigned i = part; column < columns && i < parts; i += width) {
        const Best<T> next = workspace[column * parts + i];
        if (beats(next, best, flags)) best = next;
    }
    best = settle(best, slots, lane, part, width, flags);
    if (part == 0 && column < columns) y[column] = best.index;
}

#define ARG_PASS x, y, columns, length, chunk, parts, width, flags
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)
#define ARG(S, dt)                                                                                                   \
    KERNEL arg_##dt##_rows(ARG_PARAMS(S)) { rows(ARG_PASS); }                                                        \
    KERNEL arg_##dt##_columns(ARG_PARAMS(S), u64 inner, u64 magic) {                                                 \
        columns_of<WwVector<S>::size>(ARG_PASS, inner, magic);                                                       \
    }                                                                                                                \
    KERNEL arg_##dt##_column(ARG_PARAMS(S), u64 inner, u64 magic) { columns_of<1>(ARG_PASS, inner, magic); }         \
    KERNEL arg_##dt##_merge(const void* workspace, long long* y, u64 columns, unsigned parts, unsigned width,        \
                            unsigned flags) {                                                                        \
        merge((const Best<WwCompute<S>>*)workspace, y, columns, parts, width, flags);                                \
    }
ARG(float, f32)
ARG(double, f64)
ARG(WwHalf, f16)
ARG(WwBfloat, bf16)
