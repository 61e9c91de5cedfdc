// levels: sm_75
// Conversions between element types as ONNX Cast has them. To a float: nearest, ties to even, beyond the range
// infinity. From a float to a whole number: truncated; beyond the range the nearest, NaN to 0. Between whole numbers:
// the lower bits. To bool: whether it is not 0.
//   cast_<from>_<to>(x, y, n)        between floats: 256 threads, ceil(n / 2048) blocks, 8 elements a thread
//   cast_<from>(x, y, n, to)         anything to type number `to` of src/dtype.rs: 256 threads, ceil(n / 1024) blocks
#include "common/math.cuh"
#include "common/half.cuh"

typedef long long i64;
typedef int i32;
typedef short i16;
typedef signed char i8;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

struct WwBool {
    u8 bits;
};

// float32 with the lowest bit set where digits were lost: rounding that to fewer digits rounds `x` once.
WW_DEVICE float to_odd(double x) {
    const float y = __double2float_rz(x);
    return (double)y == x ? y : __uint_as_float(__float_as_uint(y) | 1u);
}
WW_DEVICE float to_odd(i64 x) {
    const float y = __ll2float_rz(x);
    return (i64)y == x ? y : __uint_as_float(__float_as_uint(y) | 1u);
}
WW_DEVICE float to_odd(u64 x) {
    const float y = __ull2float_rz(x);
    return (u64)y == x ? y : __uint_as_float(__float_as_uint(y) | 1u);
}
WW_DEVICE float to_odd(float x) { return x; }

// Every type is exactly a float, a double, an i64 or a u64.
WW_DEVICE float wide(float x) { return x; }
WW_DEVICE double wide(double x) { return x; }
WW_DEVICE float wide(WwHalf x) { return x; }
WW_DEVICE float wide(WwBfloat x) { return x; }
WW_DEVICE i64 wide(i64 x) { return x; }
WW_DEVICE i64 wide(i32 x) { return x; }
WW_DEVICE i64 wide(i16 x) { return x; }
WW_DEVICE i64 wide(i8 x) { return x; }
WW_DEVICE u64 wide(u64 x) { return x; }
WW_DEVICE i64 wide(u32 x) { return x; }
WW_DEVICE i64 wide(u16 x) { return x; }
WW_DEVICE i64 wide(u8 x) { return x; }
WW_DEVICE i64 wide(WwBool x) { return x.bits != 0; }

// The conversions of the hardware go to the nearest number of the range.
WW_DEVICE i64 whole(i64 x, i64) { return x; }
WW_DEVICE i64 whole(u64 x, i64) { return (i64)x; }
WW_DEVICE i64 whole(float x, i64) { return x != x ? 0 : __float2ll_rz(x); }
WW_DEVICE i64 whole(double x, i64) { return x != x ? 0 : __double2ll_rz(x); }
WW_DEVICE u64 whole(i64 x, u64) { return (u64)x; }
WW_DEVICE u64 whole(u64 x, u64) { return x; }
WW_DEVICE u64 whole(float x, u64) { return x != x ? 0 : __float2ull_rz(x); }
WW_DEVICE u64 whole(double x, u64) { return x != x ? 0 : __double2ull_rz(x); }

template <class To, class W> WW_DEVICE To narrower(W x, i64 low, i64 high) {
    constexpr bool is_float = W(0.5) != W(0);
    const i64 y = whole(x, (i64)0);
    return (To)(is_float && y < low ? low : is_float && y > high ? high : y);
}

template <class To> struct Narrow;
template <> struct Narrow<float> {
    template <class W> WW_DEVICE float from(W x) { return (float)x; }
};
template <> struct Narrow<double> {
    template <class W> WW_DEVICE double from(W x) { return (double)x; }
};
template <> struct Narrow<WwHalf> {
    template <class W> WW_DEVICE WwHalf from(W x) { return WwHalf(to_odd(x)); }
};
template <> struct Narrow<WwBfloat> {
    template <class W> WW_DEVICE WwBfloat from(W x) { return WwBfloat(to_odd(x)); }
};
template <> struct Narrow<i64> {
    template <class W> WW_DEVICE i64 from(W x) { return whole(x, (i64)0); }
};
template <> struct Narrow<u64> {
    template <class W> WW_DEVICE u64 from(W x) { return whole(x, (u64)0); }
};
template <> struct Narrow<WwBool> {
    template <class W> WW_DEVICE WwBool from(W x) { return WwBool{(u8)(x != W(0))}; }
};

#define NARROW(To, low, high)                                                                                    \
    template <> struct Narrow<To> {                                                                              \
        template <class W> WW_DEVICE To from(W x) { return narrower<To>(x, low, high); }                         \
    };
NARROW(i32, -0x80000000ll, 0x7fffffffll)
NARROW(i16, -0x8000, 0x7fff)
NARROW(i8, -0x80, 0x7f)
NARROW(u32, 0, 0xffffffffll)
NARROW(u16, 0, 0xffff)
NARROW(u8, 0, 0xff)

// Eight neighbours a thread where both arrays allow vectors, eight elements a block apart elsewhere.
template <class From, class To> WW_DEVICE void cast_floats(const From* x, To* y, u64 n) {
    const bool vectors = ww_aligned(x) && ww_aligned(y);
    const u64 block = blockIdx.x * 2048ull, base = vectors ? block + threadIdx.x * 8 : block + threadIdx.x;
    const unsigned step = vectors ? 1 : 256;
    if (vectors && base + 8 <= n) {
        From in[8];
        constexpr int from = WwVector<From>::size, to = WwVector<To>::size;
#pragma unroll
        for (int v = 0; v < 8 / from; v++) {
            const WwVector<From> part = ww_load(x + base + v * from);
#pragma unroll
            for (int k = 0; k < from; k++) in[v * from + k] = part.lane[k];
        }
#pragma unroll
        for (int v = 0; v < 8 / to; v++) {
            WwVector<To> part;
#pragma unroll
            for (int k = 0; k < to; k++) part.lane[k] = Narrow<To>::from(wide(in[v * to + k]));
            ww_store(y + base + v * to, part);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const u64 i = base + k * step;
        if (i < n) y[i] = Narrow<To>::from(wide(x[i]));
    }
}

template <class From, class To> WW_DEVICE void cast_one(const From* x, void* y, u64 n) {
    const u64 base = blockIdx.x * 1024ull + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const u64 i = base + k * 256;
        if (i < n) ((To*)y)[i] = Narrow<To>::from(wide(x[i]));
    }
}

template <class From> WW_DEVICE void cast_any(const From* x, void* y, u64 n, unsigned to) {
    switch (to) {
    case 0: return cast_one<From, float>(x, y, n);
    case 1: return cast_one<From, double>(x, y, n);
    case 2: return cast_one<From, WwHalf>(x, y, n);
    case 3: return cast_one<From, WwBfloat>(x, y, n);
    case 4: return cast_one<From, i64>(x, y, n);
    case 5: return cast_one<From, i32>(x, y, n);
    case 6: return cast_one<From, i16>(x, y, n);
    case 7: return cast_one<From, i8>(x, y, n);
    case 8: return cast_one<From, u64>(x, y, n);
    case 9: return cast_one<From, u32>(x, y, n);
    case 10: return cast_one<From, u16>(x, y, n);
    case 11: return cast_one<From, u8>(x, y, n);
    default: return cast_one<From, WwBool>(x, y, n);
    }
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define CAST_FLOATS(From, from, To, to) \
    KERNEL cast_##from##_##to(const From* x, To* y, u64 n) { cast_floats(x, y, n); }
#define CAST_ANY(From, from) \
    KERNEL cast_##from(const From* x, void* y, u64 n, unsigned to) { cast_any(x, y, n, to); }

CAST_FLOATS(float, f32, double, f64)
CAST_FLOATS(float, f32, WwHalf, f16)
CAST_FLOATS(float, f32, WwBfloat, bf16)
CAST_FLOATS(double, f64, float, f32)
CAST_FLOATS(double, f64, WwHalf, f16)
CAST_FLOATS(double, f64, WwBfloat, bf16)
CAST_FLOATS(WwHalf, f16, float, f32)
CAST_FLOATS(WwHalf, f16, double, f64)
CAST_FLOATS(WwHalf, f16, WwBfloat, bf16)
CAST_FLOATS(WwBfloat, bf16, float, f32)
CAST_FLOATS(WwBfloat, bf16, double, f64)
CAST_FLOATS(WwBfloat, bf16, WwHalf, f16)
CAST_ANY(float, f32)
CAST_ANY(double, f64)
CAST_ANY(WwHalf, f16)
CAST_ANY(WwBfloat, bf16)
CAST_ANY(i64, i64)
CAST_ANY(i32, i32)
CAST_ANY(i16, i16)
CAST_ANY(i8, i8)
CAST_ANY(u64, u64)
CAST_ANY(u32, u32)
CAST_ANY(u16, u16)
CAST_ANY(u8, u8)
CAST_ANY(WwBool, bool)
