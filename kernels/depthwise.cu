// levels: sm_75
// Convolutions with one input channel a group, x [images, groups, H, W], w [groups * group_out, 1, K, K], bias, activation; one
// FMA chain per output in the element type, in float for 16 bits. A thread has outputs below each other, as many rows apart as
// the dilation, so that they share rows of the input. 256 threads.
//   conv_<dtype>_depthwise_k<K>s<S>   one output wide; blocks: ceil(images * channels * depthwise_strips * W out / 256)
//   conv_<dtype>_depthwise_k<K>s<S>x<N> N outputs wide, by vectors, where x and d begin at multiples of 16 bytes, W in and W out are
//                                multiples of N, the padding on the left is K / 2 and the dilation along W is 1; blocks / N
#include "common/depthwise.cuh"

#ifndef DEPTHWISE_BLOCKS
#define DEPTHWISE_BLOCKS 2
#endif

#define DEPTHWISE(T, N, K, S)                                                                                              \
    extern "C" __global__ void __launch_bounds__(256, DEPTHWISE_BLOCKS)                                               \
        conv_##N##_depthwise_k##K##s##S(const T *x, const T *w, const T *bias, T *d, WwCompute<T> p0, WwCompute<T> p1, Conv p) { \
        depthwise<Depthwise<T, K, S, 1>>(x, w, bias, d, p0, p1, p);                                                        \
    }
#define DEPTHWISE_WIDE(T, N, K, S, COLUMNS)                                                                                \
    extern "C" __global__ void __launch_bounds__(256, DEPTHWISE_BLOCKS)                                                    \
        conv_##N##_depthwise_k##K##s##S##x##COLUMNS(const T *x, const T *w, const T *bias, T *d, WwCompute<T> p0, WwCompute<T> p1, Conv p) { \
        depthwise<Depthwise<T, K, S, COLUMNS>>(x, w, bias, d, p0, p1, p);                                                  \
    }
#define DEPTHWISE_FOUR(T, N, K, S) DEPTHWISE_WIDE(T, N, K, S, 4)
#define DEPTHWISE_EIGHTS(T, N) DEPTHWISE_WIDE(T, N, 3, 1, 8) DEPTHWISE_WIDE(T, N, 3, 2, 8)
#define DEPTHWISE_ALL(FORM, T, N) FORM(T, N, 3, 1) FORM(T, N, 3, 2) FORM(T, N, 5, 1) FORM(T, N, 5, 2)

#ifdef WW_HALVES
DEPTHWISE_ALL(DEPTHWISE, WwHalf, f16)
DEPTHWISE_ALL(DEPTHWISE, WwBfloat, bf16)
DEPTHWISE_ALL(DEPTHWISE_FOUR, WwHalf, f16)
DEPTHWISE_ALL(DEPTHWISE_FOUR, WwBfloat, bf16)
DEPTHWISE_EIGHTS(WwHalf, f16)
DEPTHWISE_EIGHTS(WwBfloat, bf16)
#else
DEPTHWISE_ALL(DEPTHWISE, float, f32)
DEPTHWISE_ALL(DEPTHWISE, double, f64)
DEPTHWISE_ALL(DEPTHWISE_FOUR, float, f32)
#endif
