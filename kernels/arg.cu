// levels: sm_75
// The index of the largest or smallest element of each column of x [outer, length, inner], as int64. NaN counts as larger
// (smaller) than any number; of equal elements the first, or the last.
//   arg_<dt>(x, y, outer * inner, length, inner, magic of inner, width, flags)
//       256 threads, ceil(outer * inner * width / 256) blocks; width is a power of two up to 256: threads of a column.
//       flags: 1 for the smallest, 2 for the last of equal ones.
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/half.cuh"

constexpr unsigned SMALLEST = 1, LAST = 2;

template <class T> struct Best {
    T value;
    long long index;  // -1 where nothing was seen
};

template <class T> WW_DEVICE bool beats(Best<T> a, Best<T> b, unsigned flags) {
    if (a.index < 0 || b.index < 0) return b.index < 0 && a.index >= 0;
    const bool odd_a = a.value != a.value, odd_b = b.value != b.value;
    if (odd_a != odd_b) return odd_a;
    if (!odd_a && a.value != b.value) return flags & SMALLEST ? a.value < b.value : a.value > b.value;
    return flags & LAST ? a.index > b.index : a.index < b.index;
}

// Threads of a column are neighbours where its elements are, else neighbours read neighbouring columns.
template <class S>
WW_DEVICE void arg(const S* x, long long* y, unsigned long long columns, unsigned long long length, unsigned long long inner,
                   unsigned long long magic, unsigned width, unsigned flags) {
    using T = WwCompute<S>;
    __shared__ Best<T> slots[256];
    const unsigned lanes = 256 / width;
    const unsigned lane = inner == 1 ? threadIdx.x / width : threadIdx.x % lanes;
    const unsigned part = inner == 1 ? threadIdx.x % width : threadIdx.x / lanes;
    const unsigned long long column = blockIdx.x * (unsigned long long)lanes + lane;
    const bool inside = column < columns;
    unsigned long long rest;
    const unsigned long long outer = ww_divide(inside ? column : 0ull, inner, magic, rest);
    x += outer * length * inner + rest;
    Best<T> best{T(0), -1};
    for (unsigned long long i = part; inside && i < length; i += 4 * width) {
        T value[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const unsigned long long at = i + (unsigned long long)k * width;
            value[k] = at < length ? (T)x[at * inner] : T(0);
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const unsigned long long at = i + (unsigned long long)k * width;
            const Best<T> next{value[k], at < length ? (long long)at : -1};
            if (beats(next, best, flags)) best = next;
        }
    }
    slots[lane * width + part] = best;
    for (unsigned step = width / 2; step > 0; step /= 2) {
        __syncthreads();
        if (part >= step) continue;
        const Best<T> other = slots[lane * width + part + step];
        if (beats(other, best, flags)) best = other;
        slots[lane * width + part] = best;
    }
    if (part == 0 && inside) y[column] = best.index;
}

#define ARG(T, dt)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256) arg_##dt(                                                        \
        const T* x, long long* y, unsigned long long columns, unsigned long long length, unsigned long long inner,     \
        unsigned long long magic, unsigned width, unsigned flags) {                                                    \
        arg(x, y, columns, length, inner, magic, width, flags);                                                        \
    }
ARG(float, f32)
ARG(double, f64)
ARG(WwHalf, f16)
ARG(WwBfloat, bf16)
