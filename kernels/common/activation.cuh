// Activations that kernels fuse into their epilogues. The piecewise ones compare and select, so that NaN passes
// through and clip with min > max gives max.
#pragma once
#include "math.cuh"

enum Activation : unsigned {
    ACT_NONE = 0,
    ACT_RELU = 1,
    ACT_LEAKY_RELU = 2,
    ACT_CLIP = 3,
    // From here on the formula is long: apply it in a rolled loop (activate), not on unrolled registers.
    ACT_SIGMOID = 4,
    ACT_TANH = 5,
    ACT_GELU = 6,
    ACT_SILU = 7,
    ACT_ELU = 8,
    ACT_SELU = 9,
    ACT_GELU_TANH = 10,
    ACT_HARD_SIGMOID = 11,
    ACT_HARD_SWISH = 12,
    ACT_SOFTPLUS = 13,
    ACT_MISH = 14,
};

template <class T> __device__ __forceinline__ T act_relu(T x) { return x <= T(0) ? T(0) : x; }

template <class T> __device__ __forceinline__ T act_leaky_relu(T x, T slope) { return x < T(0) ? slope * x : x; }

template <class T> __device__ __forceinline__ T act_clip(T x, T low, T high) {
    T y = x < low ? low : x;
    return y > high ? high : y;
}

template <class T> __device__ __forceinline__ T activate(T x, unsigned code, T p0, T p1) {
    switch (code) {
    case ACT_RELU: return act_relu(x);
    case ACT_LEAKY_RELU: return act_leaky_relu(x, p0);
    case ACT_CLIP: return act_clip(x, p0, p1);
    case ACT_SIGMOID: return ww_sigmoid(x);
    case ACT_TANH: return ww_tanh(x);
    case ACT_GELU: return ww_gelu(x);
    case ACT_SILU: return ww_silu(x);
    case ACT_ELU: return ww_elu(x, p0);
    case ACT_SELU: return ww_selu(x, p0, p1);
    case ACT_GELU_TANH: return ww_gelu_tanh(x);
    case ACT_HARD_SIGMOID: return ww_hard_sigmoid(x, p0, p1);
    case ACT_HARD_SWISH: return ww_hard_swish(x);
    case ACT_SOFTPLUS: return ww_softplus(x);
    case ACT_MISH: return ww_mish(x);
    default: return x;
    }
}

// The short activations over registers, the branch being uniform.
template <class T, int COUNT> __device__ __forceinline__ void activate_short(T (&v)[COUNT], unsigned code, T p0, T p1) {
    if (code == ACT_RELU) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) v[i] = act_relu(v[i]);
    } else if (code == ACT_LEAKY_RELU) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) v[i] = act_leaky_relu(v[i], p0);
    } else if (code == ACT_CLIP) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) v[i] = act_clip(v[i], p0, p1);
    }
}
