// levels: sm_75
// Whole numbers that stand for floats, one element a thread. `Blocks` says which scale and zero point an element has;
// a zero point is 0 where there is none. Quotients are rounded to the type that is divided in, float for 16 bits.
//   quantizeLinear_<dtype>(x, scale, zero, y, n, to, Blocks)    y = x / scale, rounded to even, plus zero, in the range
//   requantizeLinear_f32(x, scale, zero, y, n, to, Blocks)      the same of int32 times a scale
//   dequantizeLinear_<dtype>(x, scale, zero, y, n, from, Blocks)   y = (x - zero) * scale; without scale where it is null
//   dynamicQuantizeLinear_f32(x, ends, y, y_scale, y_zero, n)   ends: least and largest number of x; null for no x
//   256 threads, ceil(n / 256) blocks
#include "common/math.cuh"
#include "common/half.cuh"

typedef unsigned long long u64;
typedef unsigned int u32;

struct Blocks {
    u64 length, inner, block, outer_step, step, inner_step;
};

// Codes of element types, as in src/dtype.rs.
enum : u32 { I32 = 5, I16 = 6, I8 = 7, U16 = 10, U8 = 11 };

WW_DEVICE u64 scale_of(u64 i, const Blocks& b) {
    const u64 row = i / b.inner, column = i - row * b.inner;
    const u64 outer = row / b.length, place = row - outer * b.length;
    return outer * b.outer_step + place / b.block * b.step + column * b.inner_step;
}

WW_DEVICE long long whole_at(const void* x, u64 i, u32 type) {
    switch (type) {
    case U8: return ((const unsigned char*)x)[i];
    case I8: return ((const signed char*)x)[i];
    case U16: return ((const unsigned short*)x)[i];
    case I16: return ((const short*)x)[i];
    default: return ((const int*)x)[i];
    }
}

// The nearest whole number plus the zero point, kept within the range.
template <class T> WW_DEVICE void store_whole(void* y, u64 i, T value, int zero, u32 type) {
    const T whole = (value != value ? T(0) : ww_round(value)) + T(zero);
    const T low = type == I8 ? T(-128) : type == I16 ? T(-32768) : T(0);
    const T high = type == U8 ? T(255) : type == I8 ? T(127) : type == U16 ? T(65535) : T(32767);
    const int kept = (int)ww_clip(whole, low, high);
    if (type == U8 || type == I8) ((unsigned char*)y)[i] = (unsigned char)kept;
    else ((unsigned short*)y)[i] = (unsigned short)kept;
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define QUANTIZE(T, dtype)                                                                                            \
    KERNEL quantizeLinear_##dtype(const T* x, const T* scale, const void* zero, void* y, u64 n, u32 to, const Blocks b) { \
        const u64 i = blockIdx.x * 256ull + threadIdx.x;                                                              \
        if (i >= n) return;                                                                                           \
        const u64 at = scale_of(i, b);                                                                                \
        const WwCompute<T> value = (WwCompute<T>)x[i] / (WwCompute<T>)scale[at];                                      \
        store_whole(y, i, value, zero ? (int)whole_at(zero, at, to) : 0, to);                                         \
    }
// Products are exact in double but for the widest, so that a result is rounded once.
#define DEQUANTIZE(T, dtype)                                                                                          \
    KERNEL dequantizeLinear_##dtype(const void* x, const T* scale, const void* zero, T* y, u64 n, u32 from, const Blocks b) { \
        const u64 i = blockIdx.x * 256ull + threadIdx.x;                                                              \
        if (i >= n) return;                                                                                           \
        const u64 at = scale_of(i, b);                                                                                \
        const long long number = whole_at(x, i, from) - (zero ? whole_at(zero, at, from) : 0);                        \
        const T factor = scale ? scale[at] : T(1);                                                                    \
        y[i] = from == I32 ? T((double)number * (double)factor) : T((int)number) * factor;                            \
    }

QUANTIZE(float, f32)
QUANTIZE(double, f64)
QUANTIZE(WwHalf, f16)
QUANTIZE(WwBfloat, bf16)
DEQUANTIZE(float, f32)
DEQUANTIZE(double, f64)

KERNEL requantizeLinear_f32(const int* x, const float* scale, const void* zero, void* y, u64 n, u32 to, const Blocks b) {
    const u64 i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= n) return;
    const u64 at = scale_of(i, b);
    store_whole(y, i, (float)x[i] * scale[at], zero ? (int)whole_at(zero, at, to) : 0, to);
}

KERNEL dynamicQuantizeLinear_f32(const float* x, const float* ends, unsigned char* y, float* y_scale, unsigned char* y_zero,
                                 u64 n) {
    const u64 i = blockIdx.x * 256ull + threadIdx.x;
    float least = ends ? ends[0] : 0.0f, most = ends ? ends[1] : 0.0f;
    least = least < 0.0f ? least : 0.0f;
    most = most <= 0.0f ? 0.0f : most;
    const float scale = most == least ? 1.0f : (most - least) / 255.0f;
    const float place = -least / scale;
    const int zero = place != place ? 0 : (int)ww_round(ww_clip(place, 0.0f, 255.0f));
    if (i == 0) {
        y_scale[0] = scale;
        y_zero[0] = (unsigned char)zero;
    }
    if (i < n) store_whole(y, i, x[i] / scale, zero, U8);
}
