// levels: sm_90a
// Convolutions d = act(x * w + bias) of float16 and bfloat16 on Hopper's tensor cores, one group: an implicit product whose
// rows are filters, whose columns are output pixels of all images, and whose k runs over taps and, within a tap, blocks of
// 64 channels (common/conv_images.cuh). Sums are float32 in the tensor core, rounded once.
//   conv_*_filters_<N>  tiles of 128 filters by N pixels, two warpgroups of 64 filters
//   conv_*_turns_<N>    tiles of 64 filters by N pixels, two warpgroups that take turns along k and then share the pixels
// 384 threads, of which one brings tiles; grid.x = min(tiles, multiprocessors); dynamic shared memory ConvHalfTile::SHARED.
// map_x: the input as conv_nhwc.cu leaves it, 16 bits, im2col, N pixels of 64 channels, dims (pitch, W, H, images) or (pitch, W, H, D,
// images) where p.flags says so; map_w: dims (taps * channels to whole 64, filters, 1), box (64, filters of a tile, 1). Both
// with the 128-byte swizzle.
#include "common/conv_half.cuh"

#define CONV_HALF(NAME, T, ...)                                                                                            \
    extern "C" __global__ void __launch_bounds__(384, 1)                                                                   \
        NAME(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w, const T *bias, T *d, float p0, \
             float p1, const __grid_constant__ Conv p) {                                                                   \
        conv_half<ConvHalfTile<__VA_ARGS__>>(map_x, map_w, ConvHalfOut<T>{bias, d, p0, p1}, p);                            \
    }

#define CONV_HALVES(TYPE, T, BF16)                                                                                         \
    CONV_HALF(conv_##TYPE##_filters_256, T, false, 256, BF16)                                                              \
    CONV_HALF(conv_##TYPE##_filters_192, T, false, 192, BF16)                                                              \
    CONV_HALF(conv_##TYPE##_turns_192, T, true, 192, BF16)                                                                 \
    CONV_HALF(conv_##TYPE##_turns_128, T, true, 128, BF16)                                                                 \
    CONV_HALF(conv_##TYPE##_turns_64, T, true, 64, BF16)

CONV_HALVES(f16, WwHalf, false)
CONV_HALVES(bf16, WwBfloat, true)
