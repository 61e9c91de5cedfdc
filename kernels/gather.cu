// levels: sm_75
// Elements by index. Indices are int64, or int32 where `wide` is 0; negative ones count from the end, ones out of range
// give zeros and are not written to. Elements are moved as in copy.cu.
//   gather_u<bits>(x, indices, y, n, length, count, count_magic, inner, inner_magic, wide)
//       y [outer, count, inner] from x [outer, length, inner], n units of y and indices [count]; inner counts units
//       256 threads, ceil(n / 1024) blocks, of 128 bits ceil(n / 256)
//   gatherElements_u<bits>(x, indices, y, n, length, stride, wide, Walk)
//       y[i] = x[place i of x, moved by indices[i] * stride]; the walk's place in x has index 0 along the axis
//   scatterElements_u<bits>(updates, indices, y, n, length, stride, wide, Walk)
//       y[place i, moved by indices[i] * stride] = updates[i]; where indices meet, any of them may be the last
//       256 threads, ceil(n / 1024) blocks
#include "common/math.cuh"
#include "common/walk.cuh"

// The index counted from the start, or -1 out of range.
WW_DEVICE long long index_at(const void* indices, u64 i, u64 length, u32 wide) {
    long long index = wide ? ((const long long*)indices)[i] : (long long)((const int*)indices)[i];
    index += index < 0 ? (long long)length : 0;
    return (u64)index < length ? index : -1;
}

template <class T> WW_DEVICE T zero() { return T(0); }
template <> __device__ __forceinline__ u128 zero<u128>() { return make_uint4(0, 0, 0, 0); }

template <class T>
WW_DEVICE void gather(const T* x, const void* indices, T* y, u64 n, u64 length, u64 count, u64 count_magic, u64 inner,
                      u64 inner_magic, u32 wide) {
    constexpr int units = sizeof(T) == 16 ? 1 : 4;
    const u64 base = blockIdx.x * (u64)(256 * units) + threadIdx.x;
    T value[units];
#pragma unroll
    for (int k = 0; k < units; k++) {
        const u64 i = base + k * 256;
        if (i >= n) continue;
        u64 column, chosen;
        const u64 row = ww_divide(i, inner, inner_magic, column);
        const u64 outer = ww_divide(row, count, count_magic, chosen);
        const long long index = index_at(indices, chosen, length, wide);
        value[k] = index < 0 ? zero<T>() : x[(outer * length + index) * inner + column];
    }
#pragma unroll
    for (int k = 0; k < units; k++)
        if (base + k * 256 < n) y[base + k * 256] = value[k];
}

template <class T>
WW_DEVICE void gather_elements(const T* x, const void* indices, T* y, u64 n, u64 length, u64 stride, u32 wide, const WwWalk& walk) {
    const u64 base = blockIdx.x * 1024ull + threadIdx.x;
    T value[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const u64 i = base + k * 256;
        if (i >= n) continue;
        const long long index = index_at(indices, i, length, wide);
        value[k] = index < 0 ? T(0) : x[ww_place(i, n, walk).x + index * (long long)stride];
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (base + k * 256 < n) y[base + k * 256] = value[k];
}

template <class T>
WW_DEVICE void scatter_elements(const T* updates, const void* indices, T* y, u64 n, u64 length, u64 stride, u32 wide, const WwWalk& walk) {
    const u64 base = blockIdx.x * 1024ull + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const u64 i = base + k * 256;
        if (i >= n) continue;
        const long long index = index_at(indices, i, length, wide);
        if (index >= 0) y[ww_place(i, n, walk).x + index * (long long)stride] = updates[i];
    }
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define GATHER(T)                                                                                                     \
    KERNEL gather_##T(const T* x, const void* indices, T* y, u64 n, u64 length, u64 count, u64 count_magic, u64 inner, \
                      u64 inner_magic, u32 wide) {                                                                    \
        gather(x, indices, y, n, length, count, count_magic, inner, inner_magic, wide);                               \
    }
#define ELEMENTS(name, function, T)                                                                                   \
    KERNEL name##_##T(const T* x, const void* indices, T* y, u64 n, u64 length, u64 stride, u32 wide, WwWalk walk) {   \
        function(x, indices, y, n, length, stride, wide, walk);                                                       \
    }
#define KERNELS(T)                                                                                                    \
    GATHER(T)                                                                                                         \
    ELEMENTS(gatherElements, gather_elements, T)                                                                      \
    ELEMENTS(scatterElements, scatter_elements, T)

KERNELS(u8)
KERNELS(u16)
KERNELS(u32)
KERNELS(u64)
GATHER(u128)
