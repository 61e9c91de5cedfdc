// Convolutions that do not suit the split and whose input or result are planes: a warp has a pixel and 64 filters, two a
// lane, and goes through terms one after the other. Slow, and rare: for Inf, NaN and numbers beyond some 2^60.
#pragma once
#include "conv_finish.cuh"

WW_INLINE float half_float(unsigned short v) { return halves_of(v).x; }

// The input's channel `c` at a place of an image.
WW_INLINE float conv_scan_value(const ConvSource &from, const Conv &p, unsigned image, unsigned place, unsigned c) {
    const unsigned plane = p.in[0] * p.in[1] * p.in[2];
    if (from.x) return from.x[((unsigned long long)image * p.group_in + c) * plane + place];
    const unsigned long long pitch = (p.group_in + 7) / 8 * 8, all = (unsigned long long)p.images * plane, row = (unsigned long long)image * plane + place;
    return conv_value(half_float(from.planes[row * pitch + c]), half_float(from.planes[(all + row) * pitch + c]), from.scales[c / CONV_CHANNELS * all + row]);
}

WW_INLINE void conv_scan_sums(float (&sum)[2], const ConvSource &from, const Conv &p, unsigned pixel, unsigned filter) {
    const ConvPixel first(pixel, p);
    const unsigned taps = conv_taps(p);
#pragma unroll 1
    for (unsigned tap = 0; tap < taps; ++tap) {
        unsigned rest = tap, place = 0;
        bool in = true;
        unsigned at[3];
        at[2] = rest % p.kernel[2], rest /= p.kernel[2];
        at[1] = rest % p.kernel[1], at[0] = rest / p.kernel[1];
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            const unsigned here = (unsigned)first.at[i] + at[i] * p.dilation[i];
            in &= here < p.in[i];
            place = place * p.in[i] + here;
        }
#pragma unroll 1
        for (unsigned c = 0; c < p.group_in; ++c) {
            const float x = in ? conv_scan_value(from, p, first.image, place, c) : 0.0f;
#pragma unroll
            for (unsigned i = 0; i < 2; ++i)
                if (filter + i < p.group_out) sum[i] = ww_fma(x, from.w[((unsigned long long)(filter + i) * p.group_in + c) * taps + tap], sum[i]);
        }
    }
}

// A lane's two results of a pixel as planes.
WW_INLINE void conv_scan_planes(const float (&v)[2], const ConvOut &out, const ConvSplit &p, unsigned pixel, unsigned filter) {
    unsigned most = 0, range = 0, hi, lo;
    bool finite = true;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const unsigned m = magnitude(v[i]);
        finite &= m < 0x7f800000u;
        most = max(most, m < 0x7f800000u ? m : 0u);
    }
    most = __reduce_max_sync(0xffffffffu, most);
    const int e = conv_exponent(most, finite, range);
    raise_range(out.range, Range::EXPONENT, p.epoch_d, range);
    const float scale = power_of_two(-e);
    split_two(v[0] * scale, v[1] * scale, hi, lo);
    if ((threadIdx.x & 31) == 0) out.scales[(unsigned long long)(filter / CONV_CHANNELS) * p.own.pixels + pixel] = power_of_two(e);
    if (filter >= p.pitch_d) return;
    unsigned *const to = (unsigned *)(out.planes + (unsigned long long)pixel * p.pitch_d + filter);
    to[0] = hi;
    to[(unsigned long long)p.own.pixels * p.pitch_d / 2] = lo;
}

// The whole convolution by the first THREADS threads of each block, with short activations.
template <unsigned THREADS> WW_INLINE void conv_scan(const ConvSource &from, const ConvOut &out, const ConvSplit &p) {
    const Conv &own = p.own;
    const unsigned parts = conv_blocks(own.group_out), lane = threadIdx.x & 31, plane = own.out[0] * own.out[1] * own.out[2];
    const unsigned long long items = (unsigned long long)own.pixels * parts, all = (unsigned long long)own.pixels * p.pitch_d;
#pragma unroll 1
    for (unsigned long long item = blockIdx.x * (THREADS / 32) + (threadIdx.x >> 5); item < items; item += gridDim.x * (THREADS / 32)) {
        const unsigned pixel = (unsigned)(item / parts), part = (unsigned)(item % parts), filter = part * CONV_CHANNELS + lane * 2;
        float v[2] = {0.0f, 0.0f};
        conv_scan_sums(v, from, own, pixel, filter);
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) {
            const unsigned f = filter + i;
            if (f >= own.group_out) continue;
            if (from.bias) v[i] += from.bias[f];
            if (from.residual) {
                const unsigned short *const r = from.residual + (unsigned long long)pixel * p.pitch_d + f;
                v[i] += conv_value(half_float(r[0]), half_float(r[all]), from.residual_scales[(unsigned long long)part * own.pixels + pixel]);
            }
        }
        activate_short(v, own.act, out.p0, out.p1);
        float *const to = conv_place(out.d, pixel, own);
        for (unsigned i = 0; i < 2; ++i) {
            if (filter + i >= own.group_out) v[i] = 0.0f;
            else if (out.d) to[(unsigned long long)(filter + i) * plane] = v[i];
        }
        if (out.planes) conv_scan_planes(v, out, p, pixel, filter);
    }
}
