// levels: sm_90a
// Operands of 16 bits of a convolution as conv_half.cu takes them. One launch for both, each with its own blocks. x [images,
// channels, plane] becomes [image][pixel][pitch]; w [filters, channels, taps] becomes [filter][tap][channels to whole 64].
// conv_half_windows is for few channels, where a window's line takes the place of a pixel: [image][line][window][pitch], of
// which element s * channels + c is tap s of channel c, and a line of the kernel is one tap of the weights. Only what a window
// sees is there, so that numbers that are not finite stay within theirs. 256 threads; grid.x = blocks_x + filters.
#include "common/conv_images.cuh"

// Vectors of eight or of four pixels.
enum : unsigned { NHWC_EIGHTS = 1, NHWC_FOURS = 2 };

struct ConvNhwc {
    // plane: pixels of an image. pitch: elements from one pixel to the next, a multiple of 8.
    unsigned images, channels, plane, pitch, filters, taps, blocks_x, flags;
    // Of windows: lines of an image, their pixels, pixels of padding before the first, and the windows.
    unsigned lines, width, begin, windows, stride, dilation, kernel;
};

// 64 channels of 64 pixels, as chunks of eight channels, which are turned so that columns are written without conflicts.
struct NhwcTile {
    unsigned words[64 * 32];

    static WW_INLINE unsigned place(unsigned pixel, unsigned chunk) { return pixel * 32 + ((chunk ^ pixel ^ pixel >> 3) & 7) * 4; }
    // Two neighbouring channels of a pixel.
    WW_INLINE void put(unsigned pixel, unsigned pair, unsigned word) { words[place(pixel, pair >> 2) + (pair & 3)] = word; }
};

WW_INLINE unsigned nhwc_pair(unsigned low, unsigned high) { return low | high << 16; }

// Eight pixels of two channels a thread.
WW_INLINE void nhwc_read_eights(NhwcTile &tile, const unsigned short *from, unsigned first, unsigned channels, const ConvNhwc &p) {
    const unsigned pair = threadIdx.x >> 3, pixel = (threadIdx.x & 7) * 8;
    const bool there = first + pixel < p.plane;
    uint4 rows[2];
#pragma unroll
    for (unsigned i = 0; i < 2; ++i)
        rows[i] = there && pair * 2 + i < channels ? *(const uint4 *)(from + (unsigned long long)(pair * 2 + i) * p.plane + pixel) : uint4{0, 0, 0, 0};
    const unsigned low[4] = {rows[0].x, rows[0].y, rows[0].z, rows[0].w}, high[4] = {rows[1].x, rows[1].y, rows[1].z, rows[1].w};
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        tile.put(pixel + i * 2, pair, nhwc_pair(low[i] & 0xffff, high[i] & 0xffff));
        tile.put(pixel + i * 2 + 1, pair, nhwc_pair(low[i] >> 16, high[i] >> 16));
    }
}

// Four pixels of two channels, twice.
WW_INLINE void nhwc_read_fours(NhwcTile &tile, const unsigned short *from, unsigned first, unsigned channels, const ConvNhwc &p) {
    const unsigned pixel = (threadIdx.x & 15) * 4;
    const bool there = first + pixel < p.plane;
    uint2 rows[2][2];
#pragma unroll
    for (unsigned i = 0; i < 2; ++i)
#pragma unroll
        for (unsigned c = 0; c < 2; ++c) {
            const unsigned channel = ((threadIdx.x >> 4) + i * 16) * 2 + c;
            rows[i][c] = there && channel < channels ? *(const uint2 *)(from + (unsigned long long)channel * p.plane + pixel) : uint2{0, 0};
        }
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
        const unsigned pair = (threadIdx.x >> 4) + i * 16, low[2] = {rows[i][0].x, rows[i][0].y}, high[2] = {rows[i][1].x, rows[i][1].y};
#pragma unroll
        for (unsigned h = 0; h < 2; ++h) {
            tile.put(pixel + h * 2, pair, nhwc_pair(low[h] & 0xffff, high[h] & 0xffff));
            tile.put(pixel + h * 2 + 1, pair, nhwc_pair(low[h] >> 16, high[h] >> 16));
        }
    }
}

// The same by elements.
WW_INLINE void nhwc_read(NhwcTile &tile, const unsigned short *from, unsigned first, unsigned channels, const ConvNhwc &p) {
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned short v[4][2][2];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
#pragma unroll
        for (unsigned h = 0; h < 2; ++h)
#pragma unroll
            for (unsigned c = 0; c < 2; ++c) {
                const unsigned channel = (warp + i * 8) * 2 + c, pixel = lane + h * 32;
                v[i][h][c] = channel < channels && first + pixel < p.plane ? from[(unsigned long long)channel * p.plane + pixel] : 0;
            }
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
#pragma unroll
        for (unsigned h = 0; h < 2; ++h) tile.put(lane + h * 32, warp + i * 8, nhwc_pair(v[i][h][0], v[i][h][1]));
}

WW_INLINE void nhwc_pixels(const unsigned short *x, unsigned short *to, const ConvNhwc &p, unsigned block) {
    __shared__ __align__(16) NhwcTile tile;
    const unsigned per_plane = (p.plane + 63) / 64, parts = conv_blocks(p.channels);
    const unsigned rest = block / per_plane, first = (block - rest * per_plane) * 64, image = rest / parts, part = rest - image * parts;
    const unsigned channel = part * CONV_CHANNELS, channels = min(p.channels - channel, CONV_CHANNELS);
    const unsigned short *const from = x + ((unsigned long long)image * p.channels + channel) * p.plane + first;
    if (p.flags & NHWC_EIGHTS)
        nhwc_read_eights(tile, from, first, channels, p);
    else if (p.flags & NHWC_FOURS)
        nhwc_read_fours(tile, from, first, channels, p);
    else
        nhwc_read(tile, from, first, channels, p);
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
        const unsigned index = threadIdx.x + i * 256, chunk = index & 7, pixel = index >> 3, c = channel + chunk * 8;
        if (first + pixel < p.plane && c < p.pitch)
            *(uint4 *)(to + ((unsigned long long)image * p.plane + first + pixel) * p.pitch + c) = *(const uint4 *)(tile.words + NhwcTile::place(pixel, chunk));
    }
}

// Eight elements of a window a thread.
WW_INLINE void nhwc_windows(const unsigned short *x, unsigned short *to, const ConvNhwc &p, unsigned block) {
    const unsigned chunks = p.pitch / 8;
    const unsigned long long index = block * 256ull + threadIdx.x, at = index / chunks, line = at / p.windows;
    if (line >= (unsigned long long)p.images * p.lines) return;
    const unsigned first = (unsigned)(index - at * chunks) * 8, window = (unsigned)(at - line * p.windows);
    const unsigned long long image = line / p.lines;
    const unsigned short *const from = x + image * p.channels * p.plane + (line - image * p.lines) * p.width;
    unsigned tap = first / p.channels, channel = first - tap * p.channels, v[8];
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
        const unsigned pixel = window * p.stride + tap * p.dilation - p.begin;
        v[i] = tap < p.kernel && pixel < p.width ? from[(unsigned long long)channel * p.plane + pixel] : 0;
        if (++channel == p.channels) channel = 0, ++tap;
    }
    *(uint4 *)(to + index * 8) = uint4{nhwc_pair(v[0], v[1]), nhwc_pair(v[2], v[3]), nhwc_pair(v[4], v[5]), nhwc_pair(v[6], v[7])};
}

// A filter's weight `c` of block `at`.
template <bool WINDOWS> WW_INLINE unsigned nhwc_weight(const unsigned short *row, unsigned at, unsigned c, const ConvNhwc &p) {
    if (WINDOWS) {
        const unsigned tap = c / p.channels, channel = c - tap * p.channels;
        return tap < p.kernel ? row[(unsigned long long)channel * p.taps + at * p.kernel + tap] : 0;
    }
    const unsigned parts = conv_blocks(p.channels), tap = at / parts, channel = (at - tap * parts) * CONV_CHANNELS + c;
    return channel < p.channels ? row[(unsigned long long)channel * p.taps + tap] : 0;
}

template <bool WINDOWS> WW_INLINE void nhwc_filter(const unsigned short *w, unsigned short *to, const ConvNhwc &p, unsigned filter) {
    const unsigned warp = threadIdx.x >> 5, lane = threadIdx.x & 31, blocks = WINDOWS ? p.taps / p.kernel : p.taps * conv_blocks(p.channels);
    const unsigned short *const row = w + (unsigned long long)filter * p.channels * p.taps;
    unsigned *const words = (unsigned *)(to + (unsigned long long)filter * blocks * CONV_CHANNELS) + lane;
#pragma unroll 4
    for (unsigned at = warp; at < blocks; at += 8)
        words[at * (CONV_CHANNELS / 2)] = nhwc_pair(nhwc_weight<WINDOWS>(row, at, lane * 2, p), nhwc_weight<WINDOWS>(row, at, lane * 2 + 1, p));
}

#define CONV_NHWC(NAME, WINDOWS)                                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        NAME(const unsigned short *x, unsigned short *x_copy, const unsigned short *w, unsigned short *w_copy, ConvNhwc p) { \
        grid_wait();                                                                                                       \
        grid_release();                                                                                                    \
        if (blockIdx.x >= p.blocks_x)                                                                                      \
            nhwc_filter<WINDOWS>(w, w_copy, p, blockIdx.x - p.blocks_x);                                                   \
        else if (WINDOWS)                                                                                                  \
            nhwc_windows(x, x_copy, p, blockIdx.x);                                                                        \
        else                                                                                                               \
            nhwc_pixels(x, x_copy, p, blockIdx.x);                                                                         \
    }

CONV_NHWC(conv_half_nhwc, false)
CONV_NHWC(conv_half_windows, true)
