// levels: sm_75
// Padding: y is as long along each axis as the host says, and index c of it is index c + shift of x, mapped by `mode`
// where x has none: 0 the constant, 1 mirrored about the ends, 2 the end itself, 3 from the other end (there the host
// makes `shift` positive). x and y are contiguous; axes innermost first. Elements are moved as in copy.cu.
//   pad_u<bits>(x, y, n, Pad)     n units of y; 256 threads, ceil(n / 1024) blocks, of 128 bits ceil(n / 256)
// `fill` repeats the constant's bits over its 64.
#include "common/math.cuh"
#include "common/walk.cuh"

struct Pad {
    u32 axes, mode;
    u64 fill;
    u64 size[8];   // of y
    u64 magic[8];  // as in common/divide.cuh
    u64 dim[8];    // of x
    u64 dim_magic[8];
    long long shift[8];
};

// The place in x, or -1 for the constant.
template <class Index> WW_DEVICE long long source(Index index, const Pad& p) {
    long long at = 0, stride = 1;
    bool outside = false;
#pragma unroll 1
    for (u32 d = 0; d < p.axes; d++) {
        Index rest;
        index = ww_divide(index, p.size[d], p.magic[d], rest);
        const long long dim = (long long)p.dim[d];
        long long c = (long long)rest + p.shift[d];
        if (p.mode == 0) {
            outside = outside || (u64)c >= (u64)dim;
        } else if (p.mode == 1) {
            c = c < 0 ? -c : c;
            c = c >= dim ? 2 * (dim - 1) - c : c;
        } else if (p.mode == 2) {
            c = c < 0 ? 0 : c >= dim ? dim - 1 : c;
        } else {
            u64 within;
            ww_divide((u64)c, p.dim[d], p.dim_magic[d], within);
            c = (long long)within;
        }
        at += c * stride;
        stride *= dim;
    }
    return outside ? -1 : at;
}

template <class T> struct Fill {
    WW_DEVICE T of(u64 bits) { return (T)bits; }
};
template <> struct Fill<u128> {
    WW_DEVICE u128 of(u64 bits) { return make_uint4((u32)bits, (u32)(bits >> 32), (u32)bits, (u32)(bits >> 32)); }
};

template <class T> WW_DEVICE void pad(const T* x, T* y, u64 n, const Pad& p) {
    constexpr int units = sizeof(T) == 16 ? 1 : 4;
    const u64 base = blockIdx.x * (u64)(256 * units) + threadIdx.x;
    T value[units];
#pragma unroll
    for (int k = 0; k < units; k++) {
        const u64 i = base + k * 256;
        if (i >= n) continue;
        const long long from = n <= 0xffffffffull ? source((u32)i, p) : source(i, p);
        value[k] = from < 0 ? Fill<T>::of(p.fill) : x[from];
    }
#pragma unroll
    for (int k = 0; k < units; k++)
        if (base + k * 256 < n) y[base + k * 256] = value[k];
}

#define PAD(T) \
    extern "C" __global__ void __launch_bounds__(256) pad_##T(const T* x, T* y, u64 n, Pad p) { pad(x, y, n, p); }
PAD(u8)
PAD(u16)
PAD(u32)
PAD(u64)
PAD(u128)
