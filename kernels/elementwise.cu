// levels: sm_75
// Unary functions and binary arithmetic on contiguous arrays, one 16-byte vector a thread. Arithmetic in the
// array's own type, in float for 16 bits. Launch: 128 threads, ceil(n / (128 * 16 / sizeof(T))) blocks, no shared memory.
//   <op>_<dtype>(x, y, n, alpha, beta)   alpha and beta are the op's attributes, ignored where it has none
//   <op>_<dtype>(a, b, y, n)
// Operands that are broadcast take the kernels of expressions (src/kernels/fused).
#include "common/math.cuh"
#include "common/narrow.cuh"
#include "common/binary.cuh"

#define THREADS 128
#ifndef ELEMENT
#define ELEMENT float
#define DTYPE f32
#endif

// Where a thread's k-th element lies: neighbours when vectors are used, a block apart when they cannot be.
struct Share {
    unsigned long long base;
    unsigned step;
};

template <class T> WW_DEVICE Share share_of(bool vectors) {
    constexpr unsigned size = WwVector<T>::size;
    unsigned long long block = blockIdx.x * (unsigned long long)(THREADS * size);
    return vectors ? Share{block + threadIdx.x * size, 1} : Share{block + threadIdx.x, THREADS};
}

template <class T> WW_DEVICE WwVector<T> load_share(const T* x, Share s, bool whole, unsigned long long n) {
    if (whole) return ww_load(x + s.base);
    WwVector<T> v;
#pragma unroll
    for (int k = 0; k < WwVector<T>::size; k++) {
        unsigned long long i = s.base + k * s.step;
        v.lane[k] = i < n ? x[i] : T(0);
    }
    return v;
}

template <class T> WW_DEVICE void store_share(T* y, Share s, bool whole, unsigned long long n, const WwVector<T>& v) {
    if (whole) {
        ww_store(y + s.base, v);
        return;
    }
#pragma unroll
    for (int k = 0; k < WwVector<T>::size; k++) {
        unsigned long long i = s.base + k * s.step;
        if (i < n) y[i] = v.lane[k];
    }
}

template <class Op, class T> WW_DEVICE void unary(const T* x, T* y, unsigned long long n, WwCompute<T> alpha, WwCompute<T> beta) {
    bool vectors = ww_aligned(x) && ww_aligned(y);
    Share s = share_of<T>(vectors);
    bool whole = vectors && s.base + WwVector<T>::size <= n;
    WwVector<T> v = load_share(x, s, whole, n);
    WwCompute<T> result[WwVector<T>::size];
#pragma unroll
    for (int k = 0; k < WwVector<T>::size; k++) result[k] = Op::apply((WwCompute<T>)v.lane[k], alpha, beta);
    store_share(y, s, whole, n, ww_narrow<T>(result));
}

template <class Op, class T> WW_DEVICE void binary(const T* a, const T* b, T* y, unsigned long long n) {
    bool vectors = ww_aligned(a) && ww_aligned(b) && ww_aligned(y);
    Share s = share_of<T>(vectors);
    bool whole = vectors && s.base + WwVector<T>::size <= n;
    WwVector<T> u = load_share(a, s, whole, n);
    WwVector<T> v = load_share(b, s, whole, n);
    WwCompute<T> result[WwVector<T>::size];
#pragma unroll
    for (int k = 0; k < WwVector<T>::size; k++) result[k] = Op::apply((WwCompute<T>)u.lane[k], (WwCompute<T>)v.lane[k]);
    store_share(y, s, whole, n, ww_narrow<T>(result));
}

// Results of 16 bits take functions of their precision.
#ifdef WW_HALVES
#include "common/math_half.cuh"
#define GRADED(function) function##_half
#else
#define GRADED(function) function
#endif

#define UNARY_OF(op, T, dtype) UNARY_KERNEL(op, T, dtype)
#define UNARY_KERNEL(op, T, dtype)                                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                        \
        op##_##dtype(const T* x, T* y, unsigned long long n, WwCompute<T> alpha, WwCompute<T> beta) {            \
        unary<Op_##op, T>(x, y, n, alpha, beta);                                                                 \
    }

#define UNARY(op, expression)                                                                                    \
    struct Op_##op {                                                                                             \
        template <class T> WW_DEVICE T apply(T x, T alpha, T beta) { return expression; }                        \
    };                                                                                                           \
    UNARY_OF(op, ELEMENT, DTYPE)

#include "common/unary.cuh"

#define BINARY_OF(op, T, dtype) BINARY_KERNEL(op, T, dtype)
#define BINARY_KERNEL(op, T, dtype)                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                        \
        op##_##dtype(const T* a, const T* b, T* y, unsigned long long n) {                                       \
        binary<WwBinary_##op, T>(a, b, y, n);                                                                    \
    }

#define BINARY(op) BINARY_OF(op, ELEMENT, DTYPE)

BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(pow)
BINARY(max)
BINARY(min)
