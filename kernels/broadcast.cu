// levels: sm_75
// Binary arithmetic with operands broadcast to a contiguous output of up to 8 collapsed dims, one 16-byte vector
// of the output a thread. Launch: 256 threads, ceil(n / (256 * 16 / sizeof(T))) blocks, no shared memory.
//   <op>_<dtype>_broadcast(a, b, y, n, Broadcast)
// Dim 0 is the innermost; strides count elements, 0 where an operand is broadcast. The host collapses dims that
// are contiguous (or broadcast) in both operands, so that a scalar operand leaves one dim. `vectors` may be 1 only
// if each operand's stride[0] is 0 or 1, all other strides of one with stride[0] = 1 are multiples of
// 16 / sizeof(T), and so is size[0] unless dims is 1; pointers are looked at here.
#include "common/math.cuh"
#include "common/half.cuh"
#include "common/divide.cuh"
#include "common/binary.cuh"

#define THREADS 256
#ifndef ELEMENT
#define ELEMENT float
#define DTYPE f32
#endif

struct Broadcast {
    unsigned dims;
    unsigned vectors;
    unsigned long long size[8];
    unsigned long long magic[8];  // as in common/divide.cuh
    unsigned long long stride_a[8];
    unsigned long long stride_b[8];
};

struct Offsets {
    unsigned long long a, b;
};

template <class Index> WW_DEVICE Offsets locate(Index index, const Broadcast& p) {
    Offsets at{0, 0};
    unsigned last = p.dims - 1;
#pragma unroll 1
    for (unsigned d = 0; d < last; d++) {
        Index rest;
        index = ww_divide(index, p.size[d], p.magic[d], rest);
        at.a += rest * p.stride_a[d];
        at.b += rest * p.stride_b[d];
    }
    at.a += index * p.stride_a[last];
    at.b += index * p.stride_b[last];
    return at;
}

WW_DEVICE Offsets locate_any(unsigned long long index, unsigned long long n, const Broadcast& p) {
    return n <= 0xffffffffull ? locate((unsigned)index, p) : locate(index, p);
}

template <class T> WW_DEVICE WwVector<T> load_run(const T* x, unsigned long long stride) {
    if (stride) return ww_load(x);
    WwVector<T> v;
    T value = *x;
#pragma unroll
    for (int k = 0; k < WwVector<T>::size; k++) v.lane[k] = value;
    return v;
}

template <class Op, class T>
WW_DEVICE void broadcast(const T* a, const T* b, T* y, unsigned long long n, const Broadcast& p) {
    constexpr int size = WwVector<T>::size;
    unsigned long long block = blockIdx.x * (unsigned long long)(THREADS * size);
    bool vectors = p.vectors && ww_aligned(y) && (!p.stride_a[0] || ww_aligned(a)) && (!p.stride_b[0] || ww_aligned(b));
    unsigned long long base = block + threadIdx.x * size;
    if (vectors && base + size <= n) {
        Offsets at = locate_any(base, n, p);
        WwVector<T> u = load_run(a + at.a, p.stride_a[0]);
        WwVector<T> v = load_run(b + at.b, p.stride_b[0]);
#pragma unroll
        for (int k = 0; k < size; k++) v.lane[k] = T(Op::apply((WwCompute<T>)u.lane[k], (WwCompute<T>)v.lane[k]));
        ww_store(y + base, v);
        return;
    }
    unsigned step = vectors ? 1 : THREADS;
    base = vectors ? base : block + threadIdx.x;
    T u[size], v[size];
#pragma unroll
    for (int k = 0; k < size; k++) {
        unsigned long long i = base + k * step;
        if (i < n) {
            Offsets at = locate_any(i, n, p);
            u[k] = a[at.a];
            v[k] = b[at.b];
        }
    }
#pragma unroll
    for (int k = 0; k < size; k++) {
        unsigned long long i = base + k * step;
        if (i < n) y[i] = T(Op::apply((WwCompute<T>)u[k], (WwCompute<T>)v[k]));
    }
}

#define BROADCAST_OF(op, T, dtype) BROADCAST_KERNEL(op, T, dtype)
#define BROADCAST_KERNEL(op, T, dtype)                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                        \
        op##_##dtype##_broadcast(const T* a, const T* b, T* y, unsigned long long n, Broadcast p) {              \
        broadcast<WwBinary_##op, T>(a, b, y, n, p);                                                              \
    }

#define BROADCAST(op) BROADCAST_OF(op, ELEMENT, DTYPE)

BROADCAST(add)
BROADCAST(sub)
BROADCAST(mul)
BROADCAST(div)
BROADCAST(pow)
BROADCAST(max)
BROADCAST(min)
