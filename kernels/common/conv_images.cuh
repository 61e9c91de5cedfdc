// How products over the pixels of images walk: output pixels of all images one after the other, taps and, within a tap,
// blocks of 64 channels. The copy engine brings pixels in im2col mode, with zeros for padding, from channels that lie side by
// side.
#pragma once
#include "conv_tile.cuh"
#include "hopper.cuh"

constexpr unsigned CONV_CHANNELS = 64;

// Beside those of conv_tile.cuh: images have a depth; vectors of eight and of four results lie in one image, aligned.
enum : unsigned { CONV_VOLUME = 4, CONV_EIGHTS = 8, CONV_FOURS = 16 };

WW_INLINE unsigned conv_blocks(unsigned channels) { return (channels + CONV_CHANNELS - 1) / CONV_CHANNELS; }

// Copies 64 channels from c on of a map's pixels, the first of which is at (w, h, n), each moved by the offsets.
WW_INLINE void copy_pixels(unsigned dst, const TensorMap *map, unsigned bar, int c, int w, int h, int n, unsigned off_w, unsigned off_h) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(dst),
                 "l"(map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(bar), "h"((unsigned short)off_w), "h"((unsigned short)off_h)
                 : "memory");
}

WW_INLINE void copy_voxels(unsigned dst, const TensorMap *map, unsigned bar, int c, const int (&at)[3], int n, const unsigned (&off)[3]) {
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10};" ::"r"(dst),
                 "l"(map), "r"(c), "r"(at[2]), "r"(at[1]), "r"(at[0]), "r"(n), "r"(bar), "h"((unsigned short)off[2]), "h"((unsigned short)off[1]), "h"((unsigned short)off[0])
                 : "memory");
}

// An output pixel: its image and where the window's first tap lies, along depth, height and width.
struct ConvPixel {
    int image, at[3];
    WW_INLINE ConvPixel(unsigned pixel, const Conv &p) {
        unsigned out[3];
        out[2] = pixel % p.out[2], pixel /= p.out[2];
        out[1] = pixel % p.out[1], pixel /= p.out[1];
        out[0] = pixel % p.out[0];
        image = (int)(pixel / p.out[0]);
#pragma unroll
        for (int i = 0; i < 3; ++i) at[i] = (int)(out[i] * p.stride[i]) - p.pad[i];
    }
};

// The next block of 64 channels of a tap: channels run fastest.
struct ConvSteps {
    unsigned tap[3] = {0, 0, 0}, part = 0, parts;
    WW_INLINE explicit ConvSteps(const Conv &p) : parts(conv_blocks(p.group_in)) {}
    WW_INLINE void advance(const Conv &p) {
        if (++part < parts) return;
        part = 0;
        if (++tap[2] < p.kernel[2]) return;
        tap[2] = 0;
        if (++tap[1] < p.kernel[1]) return;
        tap[1] = 0;
        if (++tap[0] < p.kernel[0]) return;
        tap[0] = 0;
    }
};

// The pixels of a block of `steps`, from `first` on.
WW_INLINE void copy_block(unsigned dst, const TensorMap *map, unsigned bar, const ConvPixel &first, const ConvSteps &steps, const Conv &p) {
    const unsigned off[3] = {steps.tap[0] * p.dilation[0], steps.tap[1] * p.dilation[1], steps.tap[2] * p.dilation[2]};
    const int c = steps.part * CONV_CHANNELS;
    if (p.flags & CONV_VOLUME)
        copy_voxels(dst, map, bar, c, first.at, first.image, off);
    else
        copy_pixels(dst, map, bar, c, first.at[2], first.at[1], first.image, off[2], off[1]);
}
