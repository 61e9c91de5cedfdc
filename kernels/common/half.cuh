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
    // Two of them in a word, the first in its lower half.
    WW_DEVICE void unpack(unsigned word, float& first, float& second) {
        asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
            : "=f"(first), "=f"(second) : "r"(word));
    }
    WW_DEVICE unsigned pack(float first, float second) {
        unsigned word;
        asm("{ .reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h}; }"
            : "=r"(word) : "f"(first), "f"(second));
        return word;
    }
};

struct WwBfloat {
    unsigned short bits;
    WwBfloat() = default;
    __device__ __forceinline__ explicit WwBfloat(float x) : bits(rounded(x) >> 16) {}
    __device__ __forceinline__ operator float() const { return __uint_as_float((unsigned)bits << 16); }
    WW_DEVICE void unpack(unsigned word, float& first, float& second) {
        first = __uint_as_float(word << 16);
        second = __uint_as_float(word & 0xffff0000u);
    }
    WW_DEVICE unsigned pack(float first, float second) { return __byte_perm(rounded(first), rounded(second), 0x7632); }

    // The result in the upper half; sm_75 has no instruction for it.
    WW_DEVICE unsigned rounded(float x) {
        const unsigned word = __float_as_uint(x);
        return x != x ? 0x7fff0000u : word + 0x7fffu + (word >> 16 & 1u);
    }
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

// Eight elements of 16 bits, as floats.
struct WwEight {
    static constexpr int size = 8;
    float lane[size];
};
template <> struct WwVector<WwHalf> : WwEight {};
template <> struct WwVector<WwBfloat> : WwEight {};

template <class S> WW_DEVICE WwVector<S> ww_load_eight(const S* p) {
    const uint4 words = *reinterpret_cast<const uint4*>(p);
    WwVector<S> v;
    S::unpack(words.x, v.lane[0], v.lane[1]);
    S::unpack(words.y, v.lane[2], v.lane[3]);
    S::unpack(words.z, v.lane[4], v.lane[5]);
    S::unpack(words.w, v.lane[6], v.lane[7]);
    return v;
}

template <class S> WW_DEVICE void ww_store_eight(S* p, const WwVector<S>& v) {
    uint4 words;
    words.x = S::pack(v.lane[0], v.lane[1]);
    words.y = S::pack(v.lane[2], v.lane[3]);
    words.z = S::pack(v.lane[4], v.lane[5]);
    words.w = S::pack(v.lane[6], v.lane[7]);
    *reinterpret_cast<uint4*>(p) = words;
}

WW_DEVICE WwVector<WwHalf> ww_load(const WwHalf* p) { return ww_load_eight(p); }
WW_DEVICE WwVector<WwBfloat> ww_load(const WwBfloat* p) { return ww_load_eight(p); }
WW_DEVICE void ww_store(WwHalf* p, const WwVector<WwHalf>& v) { ww_store_eight(p, v); }
WW_DEVICE void ww_store(WwBfloat* p, const WwVector<WwBfloat>& v) { ww_store_eight(p, v); }
