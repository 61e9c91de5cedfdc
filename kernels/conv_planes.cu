// levels: sm_90a
// Prepares float32 operands of a convolution for products by float16 (common/conv_split.cuh). One launch for both, each with
// its own blocks: 64 channels of 64 pixels of an image, or a filter. x [images, channels, plane], w [filters, channels, taps].
// conv_f32_planes_lines is for few channels; there a block has a line of an image, or two. 256 threads, grid.x = the blocks of both.
#include "common/hopper.cuh"
#include "common/conv_split.cuh"

enum : unsigned { PLANES_HI_ONLY = 1 };

struct ConvPlanes {
    // plane: pixels of an image. pitch: channels of a pixel in the planes, a multiple of 8.
    unsigned images, channels, plane, pitch, filters, taps, blocks_x, flags, epoch_x, epoch_w;
    // Of lines: pixels, those before the first and with all padding in the planes, windows, and the kernel's width.
    unsigned width, begin, padded, windows, kernel;
    // Lines of the planes that an image has. Where two lines of four channels take the place of one of eight, the lines of an
    // image and those before the first, else 0.
    unsigned lines, height, above;
};

struct PlanesTarget {
    unsigned short *planes;
    unsigned long long *range;
};

// Of scaled values: below 2^-30 of the largest, and below 2^-8.
WW_INLINE bool is_tiny(float v) { return v != 0.0f && fabsf(v) < 0x1p-15f; }
WW_INLINE bool is_small(float v) { return fabsf(v) < 64.0f; }

struct PixelTile {
    // Chunks of eight channels, rotated by the pixel so that columns are written without conflicts.
    uint4 chunks[2][64][8];
    unsigned largest[8][64];
    // Channels that are not large, and 2^16 for one that holds a tiny value.
    unsigned counts[64];
};

// Eight channels of a pixel, scaled by 2^-e.
WW_INLINE unsigned split_pixel(PixelTile &tile, const float (&v)[8], float scale, unsigned pixel, unsigned chunk, unsigned channels) {
    float s[8];
    unsigned count = 0;
    bool tiny = false;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        s[i] = v[i] * scale;
        tiny |= is_tiny(s[i]);
        count += (unsigned)i < channels && is_small(s[i]);
    }
    uint4 hi, lo;
    split_two(s[0], s[1], hi.x, lo.x);
    split_two(s[2], s[3], hi.y, lo.y);
    split_two(s[4], s[5], hi.z, lo.z);
    split_two(s[6], s[7], hi.w, lo.w);
    const unsigned at = chunk ^ (pixel & 7);
    tile.chunks[0][pixel][at] = hi;
    tile.chunks[1][pixel][at] = lo;
    return count | (tiny ? 1u << 16 : 0u);
}

WW_INLINE void split_pixels(const float *x, const PlanesTarget &to, float *scales, const ConvPlanes &p, unsigned block) {
    __shared__ PixelTile tile;
    const unsigned tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const unsigned per_plane = (p.plane + 63) / 64, blocks = conv_blocks(p.channels);
    const unsigned rest = block / per_plane, first = (block - rest * per_plane) * 64, image = rest / blocks, part = rest - image * blocks;
    const unsigned channel = part * CONV_CHANNELS + warp * 8, channels = channel < p.channels ? min(8u, p.channels - channel) : 0;
    float v[2][8];
    const float *from = x + ((unsigned long long)image * p.channels + channel) * p.plane + first + lane;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const bool there = first + lane + h * 32 < p.plane;
#pragma unroll
        for (int i = 0; i < 8; ++i) v[h][i] = there && (unsigned)i < channels ? from[(unsigned long long)i * p.plane + h * 32] : 0.0f;
    }
    if (tid < 64) tile.counts[tid] = 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        unsigned most = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) most = max(most, magnitude(v[h][i]));
        tile.largest[warp][lane + h * 32] = most;
    }
    __syncthreads();
    int exponent[2];
    bool counts[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const unsigned pixel = lane + h * 32;
        unsigned most = 0;
#pragma unroll
        for (int w = 0; w < 8; ++w) most = max(most, tile.largest[w][pixel]);
        int e = split_exponent(most);
        e = max(e, CONV_LEAST);
        counts[h] = most != 0;
        exponent[h] = e <= CONV_MOST ? e : SPLIT_SPECIAL;
        e = min(e, CONV_MOST);
        const unsigned found = split_pixel(tile, v[h], power_of_two(-e), pixel, warp, channels);
        if (found) atomicAdd(tile.counts + pixel, found);
        if (warp == 0 && first + pixel < p.plane)
            scales[((unsigned long long)part * p.images + image) * p.plane + first + pixel] = power_of_two(e);
    }
    __syncthreads();
    const unsigned planes = p.flags & PLANES_HI_ONLY ? 1 : 2;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned index = tid + i * 256, chunk = index & 7, pixel = index >> 3 & 63, plane = index >> 9, c = part * CONV_CHANNELS + chunk * 8;
        if (plane < planes && first + pixel < p.plane && c < p.pitch) {
            const unsigned long long row = ((unsigned long long)plane * p.images + image) * p.plane + first + pixel;
            *(uint4 *)(to.planes + row * p.pitch + c) = tile.chunks[plane][pixel][chunk ^ (pixel & 7)];
        }
    }
    if (warp == 0) {
        unsigned e = 0, tiny = 0, defect = 0;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const unsigned word = tile.counts[lane + h * 32], small = word & 0xffff;
            if (!counts[h]) continue;
            e = max(e, biased(exponent[h]));
            defect = max(defect, small);
            if (word >> 16) tiny = max(tiny, small + 1);
        }
        raise_range(to.range, Range::EXPONENT, p.epoch_x, e);
        raise_range(to.range, Range::TINY, p.epoch_x, tiny);
        raise_range(to.range, Range::DEFECT, p.epoch_x, defect);
    }
}

// The largest of a block's magnitudes.
WW_INLINE unsigned block_most(unsigned most) {
    __shared__ unsigned of_warps[8];
    most = __reduce_max_sync(0xffffffffu, most);
    if ((threadIdx.x & 31) == 0) of_warps[threadIdx.x >> 5] = most;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) most = max(most, of_warps[i]);
    return most;
}

// Where the eight "channels" of a line's pixels lie: its first one, from an image of `plane` elements a channel, and which of
// them there are.
struct LinePlace {
    const float *from[2];
    unsigned there;

    WW_INLINE LinePlace(const float *x, unsigned image, unsigned line, const ConvPlanes &p) {
        const float *const own = x + (unsigned long long)image * p.channels * p.plane;
        const unsigned channels = (1u << p.channels) - 1;
        if (p.height == 0) {
            from[0] = own + line * p.width, from[1] = from[0] + 4ull * p.plane;
            there = channels;
            return;
        }
        const int first = (int)(line * 2) - (int)p.above;
        from[0] = own + (long long)first * p.width, from[1] = from[0] + p.width;
        there = ((unsigned)first < p.height ? channels : 0u) | ((unsigned)(first + 1) < p.height ? channels << 4 : 0u);
    }

    // Pixel `at`; zeros in the padding and beyond the channels.
    WW_INLINE void load(float (&v)[8], unsigned at, const ConvPlanes &p) const {
        const unsigned here = at >= p.begin && at - p.begin < p.width ? there : 0u;
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) v[i] = here >> i & 1 ? from[i >> 2][(unsigned long long)(i & 3) * p.plane + (at - p.begin)] : 0.0f;
    }
};

// A line of up to eight channels, or two of up to four. No window is known to hold a large number beside a tiny one.
WW_INLINE void split_line(const float *x, const PlanesTarget &to, float *scales, const ConvPlanes &p, unsigned block) {
    const unsigned tid = threadIdx.x, image = block / p.lines;
    const LinePlace from(x, image, block - image * p.lines, p);
    float v[8];
    unsigned most = 0;
#pragma unroll 1
    for (unsigned at = tid; at < p.padded; at += 256) {
        from.load(v, at, p);
#pragma unroll
        for (int i = 0; i < 8; ++i) most = max(most, magnitude(v[i]));
    }
    most = block_most(most);
    const int e = max(split_exponent(most), CONV_LEAST), within = min(e, CONV_MOST);
    const float scale = power_of_two(-within);
    const unsigned long long plane = (unsigned long long)p.images * p.lines * p.padded;
    uint4 *hi = (uint4 *)to.planes + (unsigned long long)block * p.padded, *lo = hi + plane;
    bool tiny = false;
#pragma unroll 1
    for (unsigned at = tid; at < p.padded; at += 256) {
        if (p.padded > 256) from.load(v, at, p);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            v[i] *= scale;
            tiny |= is_tiny(v[i]);
        }
        uint4 h, l;
        split_two(v[0], v[1], h.x, l.x);
        split_two(v[2], v[3], h.y, l.y);
        split_two(v[4], v[5], h.z, l.z);
        split_two(v[6], v[7], h.w, l.w);
        hi[at] = h;
        if (!(p.flags & PLANES_HI_ONLY)) lo[at] = l;
    }
    for (unsigned at = tid; at < p.windows; at += 256) scales[(unsigned long long)block * p.windows + at] = power_of_two(within);
    if (most == 0) return;
    raise_range(to.range, Range::TINY, p.epoch_x, tiny ? CONV_CHANNELS + 1 : 0);
    if (tid >= 32) return;
    raise_range(to.range, Range::EXPONENT, p.epoch_x, biased(e <= CONV_MOST ? e : SPLIT_SPECIAL));
    raise_range(to.range, Range::DEFECT, p.epoch_x, CONV_CHANNELS);
}

// Where a filter keeps the weight of channel `c` of block `at` of its plane, -1 where that holds none. Of lines, a block is a
// line of the kernel and channel 8 s + c is tap s of channel c; of two lines, channel 8 s + 4 r + c is that of line r.
template <bool LINES> WW_INLINE long long weight_place(unsigned at, unsigned c, const ConvPlanes &p) {
    if (LINES) {
        const unsigned tap = c >> 3, channel = p.height ? c & 3 : c & 7, line = p.height ? at * 2 + (c >> 2 & 1) : at;
        return tap < p.kernel && channel < p.channels && line < p.taps / p.kernel ? (long long)channel * p.taps + line * p.kernel + tap : -1;
    }
    const unsigned blocks = conv_blocks(p.channels), tap = at / blocks, channel = (at - tap * blocks) * CONV_CHANNELS + c;
    return channel < p.channels ? (long long)channel * p.taps + tap : -1;
}

template <bool LINES> WW_INLINE void split_filter(const float *w, const PlanesTarget &to, int *exponents, const ConvPlanes &p, unsigned filter) {
    const unsigned tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const unsigned lines = LINES ? p.taps / p.kernel : 0, blocks = LINES ? p.height ? (lines + 1) / 2 : lines : p.taps * conv_blocks(p.channels);
    const unsigned long long terms = (unsigned long long)p.channels * p.taps;
    const float *row = w + filter * terms;
    unsigned most = 0;
#pragma unroll 4
    for (unsigned long long i = tid; i < terms; i += 256) most = max(most, magnitude(row[i]));
    most = block_most(most);
    const int e = split_exponent(most), within = e == SPLIT_SPECIAL ? 0 : max(e, -126);
    const float first = power_of_two(-within >> 1), second = power_of_two(-within - (-within >> 1));
    const unsigned long long length = (unsigned long long)blocks * CONV_CHANNELS;
    unsigned *hi = (unsigned *)(to.planes + filter * length) + lane, *lo = (unsigned *)(to.planes + (p.filters + filter) * length) + lane;
    bool tiny = false;
    unsigned defect = 0;
#pragma unroll 2
    for (unsigned at = warp; at < blocks; at += 8) {
        float v[2];
        unsigned small = 0;
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) {
            const long long place = weight_place<LINES>(at, lane * 2 + i, p);
            v[i] = place < 0 ? 0.0f : row[place] * first * second;
            tiny |= is_tiny(v[i]);
            small += __popc(__ballot_sync(0xffffffffu, place >= 0 && is_small(v[i])));
        }
        defect = max(defect, small);
        unsigned h, l;
        split_two(v[0], v[1], h, l);
        hi[at * (CONV_CHANNELS / 2)] = h;
        if (!(p.flags & PLANES_HI_ONLY)) lo[at * (CONV_CHANNELS / 2)] = l;
    }
    if (tid == 0) exponents[filter] = within;
    if (most == 0) return;
    raise_range(to.range, Range::EXPONENT, p.epoch_w, biased(e));
    raise_range(to.range, Range::TINY, p.epoch_w, tiny);
    raise_range(to.range, Range::DEFECT, p.epoch_w, defect);
}

#define CONV_PLANES(NAME, LINES, BLOCKS)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS)                                                                 \
        NAME(const float *x, unsigned short *x_planes, float *x_scales, unsigned long long *x_range, const float *w,       \
             unsigned short *w_planes, int *w_exponents, unsigned long long *w_range, ConvPlanes p) {                      \
        grid_wait();                                                                                                       \
        grid_release();                                                                                                    \
        if (blockIdx.x >= p.blocks_x)                                                                                      \
            split_filter<LINES>(w, PlanesTarget{w_planes, w_range}, w_exponents, p, blockIdx.x - p.blocks_x);              \
        else if (LINES)                                                                                                    \
            split_line(x, PlanesTarget{x_planes, x_range}, x_scales, p, blockIdx.x);                                       \
        else                                                                                                               \
            split_pixels(x, PlanesTarget{x_planes, x_range}, x_scales, p, blockIdx.x);                                     \
    }

CONV_PLANES(conv_f32_planes, false, 6)
CONV_PLANES(conv_f32_planes_lines, true, 8)
