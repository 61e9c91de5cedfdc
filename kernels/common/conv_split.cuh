// What the split convolutions share: float32 operands as scaled halves (split.cuh) and when that is not enough.
//
// The input becomes planes [hi, lo][image][pixel][pitch] with channels contiguous; each pixel has a scale 2^e for every 64
// channels, so that one pass suffices, and the products of those 64 channels are scaled by it when they are summed. The
// weights become planes [hi, lo][filter][tap][channels to whole 64], each filter with an exponent.
//
// Of up to eight channels whose kernel is up to eight wide, a window's line takes the place of a pixel: eight pixels of
// eight channels side by side, of which 64 "channels" a kernel's line is one tap. Windows overlap in the planes [hi,
// lo][image][line][pixel with padding][8], and all of a line have one scale. Of up to four channels whose windows start at every
// other line, or every fourth and so on, two lines lie in one, as eight channels, and padding above and below is there too.
//
// A value below 2^-30 of the largest that its scale was made for ("tiny") may have lost digits. That is harmless where the
// same 64 channels hold a large product for every filter, which is certain if those channels that are not large (2^-8 of the
// largest) are together fewer than the channels in the pixel and any filter's tap.
#pragma once
#include "conv_tile.cuh"
#include "split.cuh"

constexpr unsigned CONV_CHANNELS = 64;
// Exponents of the input's scales: beyond, sums might leave the range of float32.
constexpr int CONV_LEAST = -96, CONV_MOST = 60;

// The convolution as the planes hold it, and as the operands do.
struct ConvSplit {
    Conv conv, own;
    // pitch_d: channels of a pixel in the result's planes and in the residual's.
    unsigned epoch_x, epoch_w, epoch_d, pitch_d;
};

// The operands as they are; x is null where it exists as planes alone. Of the residual, planes like the result's, or null.
struct ConvSource {
    const float *x, *w, *bias, *scales;
    const unsigned short *planes, *residual;
    const float *residual_scales;
    const int *exponents;
    const unsigned long long *range_x, *range_w;
};

// Where results go: as float32, as planes, or both; null where not.
struct ConvOut {
    float *d;
    float p0, p1;
    unsigned short *planes;
    float *scales;
    unsigned long long *range;
};

WW_INLINE unsigned conv_blocks(unsigned channels) { return (channels + CONV_CHANNELS - 1) / CONV_CHANNELS; }

WW_INLINE unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// An exponent as a range keeps it.
WW_INLINE unsigned biased(int e) { return (unsigned)(e + SPLIT_BIAS); }

// Raises a word of a range from a warp's values; few are higher than what is there.
WW_INLINE void raise_range(unsigned long long *range, int which, unsigned epoch, unsigned value) {
    const unsigned most = __reduce_max_sync(0xffffffffu, value);
    if ((threadIdx.x & 31) || !most) return;
    unsigned long long there;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(there) : "l"(range + which) : "memory");
    if (there < ((unsigned long long)epoch << 32 | most)) Range::raise(range, which, epoch, most);
}

// The two halves of a word.
WW_INLINE float2 halves_of(unsigned word) {
    float2 v;
    asm("{\n.reg .b16 a, b;\nmov.b32 {a, b}, %2;\ncvt.f32.f16 %0, a;\ncvt.f32.f16 %1, b;\n}" : "=f"(v.x), "=f"(v.y) : "r"(word));
    return v;
}

// Two values to a word of each plane.
WW_INLINE void split_two(float v, float w, unsigned &hi, unsigned &lo) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(hi) : "f"(w), "f"(v));
    const float2 high = halves_of(hi);
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(lo) : "f"(__fmul_rn(__fsub_rn(w, high.y), SPLIT_LOW)), "f"(__fmul_rn(__fsub_rn(v, high.x), SPLIT_LOW)));
}

// The value of halves of both planes; of what is not finite the high one has it.
WW_INLINE float conv_value(float hi, float lo, float scale) {
    const float v = fabsf(hi) <= 65504.0f ? ww_fma(lo, 1.0f / SPLIT_LOW, hi) : hi;
    return v * scale;
}

// What a range's TINY holds: 0, or one more than the most channels that are not large beside a tiny one.
WW_INLINE bool conv_unsuited(const unsigned long long *range_x, const unsigned long long *range_w, const ConvSplit &p) {
    const unsigned tiny_x = Range::read(range_x, Range::TINY, p.epoch_x), tiny_w = Range::read(range_w, Range::TINY, p.epoch_w);
    const unsigned defect_x = Range::read(range_x, Range::DEFECT, p.epoch_x), defect_w = Range::read(range_w, Range::DEFECT, p.epoch_w);
    const int e_x = (int)Range::read(range_x, Range::EXPONENT, p.epoch_x) - SPLIT_BIAS;
    const int e_w = (int)Range::read(range_w, Range::EXPONENT, p.epoch_w) - SPLIT_BIAS;
    // Of the last block, which may have fewer.
    const unsigned channels = (p.conv.group_in - 1) % CONV_CHANNELS + 1, terms = p.own.group_in * conv_taps(p.own);
    const bool wide_x = (tiny_x != 0) & (tiny_x - 1 + defect_w >= channels), wide_w = (tiny_w != 0) & (defect_x + defect_w >= channels);
    return wide_x | wide_w | (e_x + e_w > 97 - (32 - __clz((int)(terms - 1))));
}
