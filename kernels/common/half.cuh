// float16 and bfloat16 as they are stored. Arithmetic is done in float: an element becomes one when it is read and is
// rounded, to nearest even, when it is written.
#pragma once
#include "vector.cuh"

struct WwHalf {
    unsigned short bits;
    WwHalf() = default;
    __device__ __forceinline__ explicit WwHalf(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    __device__ __forceinline__ operator float() const {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};

struct WwBfloat {
    unsigned short bits;
    WwBfloat() = default;
    // sm_75 has no instruction for it.
    __device__ __forceinline__ explicit WwBfloat(float x) {
        const unsigned word = __float_as_uint(x);
        bits = (x != x ? 0x7fff0000u : word + 0x7fffu + (word >> 16 & 1u)) >> 16;
    }
    __device__ __forceinline__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
};

// The type that arithmetic on stored elements is done in.
template <class S> struct WwArithmetic {
    using type = S;
};
template <> struct WwArithmetic<WwHalf> {
    using type = float;
};
template <> struct WwArithmetic<WwBfloat> {
    using type = float;
};
template <class S> using WwCompute = typename WwArithmetic<S>::type;
