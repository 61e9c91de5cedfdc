// How the tiles of split convolutions and the scales of their rows reach shared memory (conv_split.cu).
#pragma once
#include "conv_split.cuh"
#include "hopper.cuh"

// Beside those of conv_tile.cuh.
enum : unsigned { CONV_VOLUME = 4 };

template <int BM_, int BN_, int UNITS_, bool HALF_> struct ConvTile {
    static constexpr int BM = BM_, BN = BN_, UNITS = UNITS_, R = BN / 2, GROUPS = BM / 64, THREADS = 128 * (GROUPS + 1);
    static constexpr bool HALF = HALF_;
    // A unit is what a block needs: the pixels' hi, their lo, the weights' hi and lo; the half forms have both hi alone.
    static constexpr unsigned PLANES = HALF ? 1 : 2, BYTES_X = BM * 128, BYTES_W = BN * 128, AT_W = PLANES * BYTES_X, BYTES = PLANES * (BYTES_X + BYTES_W);
    static_assert(UNITS * BYTES + GROUPS * (GROUPS == 1 ? 10240 : 8704) + 1024 + 16 * UNITS + 4096 + 16 * BN <= 227 * 1024 && UNITS * BYTES >= CONV_CHAIN_SHARED<typename ConvChainOf<GROUPS>::Type>, "shared memory");
};

template <int UNITS> struct Ring {
    unsigned slot = 0, phase = 0;
    WW_INLINE void step() {
        if (++slot == UNITS) {
            slot = 0;
            phase ^= 1;
        }
    }
};

// Addresses of the ring: tiles, and for each unit a barrier "full" and one "empty".
struct ConvShared {
    unsigned tiles, full, empty;
};

// What three warps bring: the scales of the rows of a block, and factors and biases of a tile's columns.
template <class Tl> struct ConvScales {
    static constexpr unsigned BLOCKS = 4, TILES = 2;
    float rows[BLOCKS][Tl::BM], factors[TILES][Tl::BN], biases[TILES][Tl::BN];
    // Whether the operands do not suit the planes; as known as factors and biases are.
    unsigned unsuited;
    // Full, then empty.
    unsigned long long rows_barriers[2][BLOCKS], ends_barriers[2][TILES];

    WW_INLINE unsigned rows_barrier(bool empty, unsigned slot) { return shared_address(&rows_barriers[empty][slot]); }
    WW_INLINE unsigned ends_barrier(bool empty, unsigned slot) { return shared_address(&ends_barriers[empty][slot]); }
    WW_INLINE void init(unsigned thread) {
        if (thread >= BLOCKS + TILES) return;
        const bool rows_own = thread < BLOCKS;
        const unsigned slot = rows_own ? thread : thread - BLOCKS;
        barrier_init(rows_own ? rows_barrier(false, slot) : ends_barrier(false, slot), 3);
        barrier_init(rows_own ? rows_barrier(true, slot) : ends_barrier(true, slot), 4 * Tl::GROUPS);
        barrier_init_fence();
    }
};

// Copies 64 channels from c on of BM pixels, the first of which is at (w, h, n), each moved by the offsets.
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

// Blocks of 64 channels of a tap, from some block on: channels run fastest.
struct ConvSteps {
    unsigned tap[3], part, parts;
    WW_INLINE ConvSteps(const Conv &p, unsigned block) : parts(conv_blocks(p.group_in)) {
        part = block % parts, block /= parts;
        tap[2] = block % p.kernel[2], block /= p.kernel[2];
        tap[1] = block % p.kernel[1];
        tap[0] = block / p.kernel[1];
    }
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

// Output tiles in the order in which blocks take them: all filters of some pixels, then the next pixels. With one group, the
// blocks of a cluster may share a tile, each with a part of k; they take one only.
template <class Tl> struct ConvWalk {
    unsigned tiles_n, total, rank, ranks, first, step, begin, end;
    WW_INLINE ConvWalk(const Conv &p) : tiles_n((p.group_out + Tl::BN - 1) / Tl::BN), total((p.pixels + Tl::BM - 1) / Tl::BM * tiles_n) {
        const unsigned blocks = conv_blocks(p.group_in) * conv_taps(p);
        rank = 0, ranks = 1, first = blockIdx.x, step = gridDim.x, begin = 0, end = blocks;
        if constexpr (Tl::GROUPS == 1) {
            rank = cluster_rank(), ranks = cluster_ranks(), first /= ranks, step /= ranks;
            const unsigned each = blocks / ranks, rest = blocks - each * ranks;
            begin = rank * each + min(rank, rest), end = begin + each + (rank < rest);
        }
    }
};

// The thread that brings tiles.
template <class Tl> struct ConvBringer {
    const TensorMap *map_x, *map_w;
    ConvShared shared;
    const Conv &p;
    Ring<Tl::UNITS> ring;

    // One unit. Plane 1 of the pixels lies after all images of plane 0.
    WW_INLINE void bring(const ConvPixel &first, const ConvSteps &steps, unsigned k, unsigned column) {
        const unsigned unit = shared.tiles + ring.slot * Tl::BYTES, full = shared.full + ring.slot * 8;
        barrier_wait(shared.empty + ring.slot * 8, ring.phase ^ 1);
        barrier_expect(full, Tl::BYTES);
        const int c = steps.part * CONV_CHANNELS;
        const unsigned off[3] = {steps.tap[0] * p.dilation[0], steps.tap[1] * p.dilation[1], steps.tap[2] * p.dilation[2]};
#pragma unroll
        for (unsigned plane = 0; plane < Tl::PLANES; ++plane) {
            const unsigned at = unit + plane * Tl::BYTES_X;
            const int n = first.image + plane * p.images;
            if (p.flags & CONV_VOLUME)
                copy_voxels(at, map_x, full, c, first.at, n, off);
            else
                copy_pixels(at, map_x, full, c, first.at[2], first.at[1], n, off[2], off[1]);
            copy_box(unit + Tl::AT_W + plane * Tl::BYTES_W, map_w, full, k, column, plane);
        }
        ring.step();
    }

    WW_INLINE void run() {
        const ConvWalk<Tl> walk(p);
        ConvPixel first(walk.first / walk.tiles_n * Tl::BM, p);
        grid_wait();
        for (unsigned tile = walk.first; tile < walk.total; tile += walk.step) {
            const unsigned column = tile % walk.tiles_n * Tl::BN;
            ConvSteps steps(p, walk.begin);
#pragma unroll 1
            for (unsigned b = walk.begin; b < walk.end; ++b) {
                bring(first, steps, b * CONV_CHANNELS, column);
                steps.advance(p);
            }
            first = ConvPixel((tile + walk.step) / walk.tiles_n * Tl::BM, p);
        }
    }
};

// The scales of rows `row`, row + STEP, and so on, COUNT of them, for one block after the other.
template <unsigned STEP, unsigned COUNT> struct RowScales {
    int image[COUNT], first[COUNT][3];
    ConvSteps steps;
    const float *from;
    long long all;

    WW_INLINE RowScales(const float *scales, unsigned row, unsigned block, const Conv &p)
        : steps(p, block), from(scales), all((long long)p.images * p.in[0] * p.in[1] * p.in[2]) {
#pragma unroll
        for (unsigned i = 0; i < COUNT; ++i) {
            const ConvPixel pixel(row + i * STEP, p);
            image[i] = pixel.image, first[i][0] = pixel.at[0], first[i][1] = pixel.at[1];
            first[i][2] = row + i * STEP < p.pixels ? pixel.at[2] : -(1 << 30);
        }
    }

    // Those of the next block; padding has none. As instructions that stay here, ahead of their use.
    WW_INLINE void next(float (&scale)[COUNT], const Conv &p) {
        const float *const part = from + steps.part * all;
#pragma unroll
        for (unsigned i = 0; i < COUNT; ++i) {
            const int d = first[i][0] + (int)(steps.tap[0] * p.dilation[0]), h = first[i][1] + (int)(steps.tap[1] * p.dilation[1]);
            const int w = first[i][2] + (int)(steps.tap[2] * p.dilation[2]);
            const bool in = (unsigned)d < p.in[0] & (unsigned)h < p.in[1] & (unsigned)w < p.in[2];
            const int at = ((image[i] * (int)p.in[0] + d) * (int)p.in[1] + h) * (int)p.in[2] + w;
            asm volatile("{\n.reg .pred in;\nsetp.ne.u32 in, %2, 0;\nmov.f32 %0, 0f00000000;\n@in ld.global.f32 %0, [%1];\n}" : "=f"(scale[i]) : "l"(part + at), "r"((unsigned)in) : "memory");
        }
        steps.advance(p);
    }
};

// Has a tile's rows of the residual in the second cache before they are read.
template <class Tl> WW_INLINE void conv_await_residual(const unsigned short *residual, unsigned thread, unsigned row0, unsigned column0, const ConvSplit &p) {
#pragma unroll
    for (unsigned i = thread; i < Tl::BM * 2; i += 96) {
        const unsigned at = row0 + (i >> 1);
        const unsigned long long row = (unsigned long long)(i & 1) * p.conv.pixels + at;
        if (at < p.conv.pixels) asm volatile("prefetch.global.L2 [%0];" ::"l"(residual + row * p.pitch_d + column0) : "memory");
    }
}

// The three warps that bring scales.
template <class Tl> WW_INLINE void conv_bring_scales(ConvScales<Tl> &to, const ConvSource &from, const ConvSplit &all) {
    constexpr unsigned COUNT = 96, EACH = (Tl::BM + COUNT - 1) / COUNT;
    const Conv &p = all.conv;
    const ConvWalk<Tl> walk(p);
    const unsigned thread = threadIdx.x - (Tl::THREADS - COUNT);
    const bool first = (threadIdx.x & 31) == 0;
    Ring<ConvScales<Tl>::BLOCKS> ring;
    Ring<ConvScales<Tl>::TILES> ends;
    for (unsigned tile = walk.first; tile < walk.total; tile += walk.step, ends.step()) {
        const unsigned row0 = tile / walk.tiles_n * Tl::BM, column0 = tile % walk.tiles_n * Tl::BN;
        RowScales<COUNT, EACH> rows(from.scales, row0 + thread, walk.begin, p);
        if (tile == walk.first) grid_wait();
        float now[EACH], coming[EACH];
        rows.next(coming, p);
        barrier_wait(to.ends_barrier(true, ends.slot), ends.phase ^ 1);
        for (unsigned i = thread; i < Tl::BN; i += COUNT) {
            const unsigned c = column0 + i;
            const bool there = c < p.group_out;
            to.factors[ends.slot][i] = there ? power_of_two(from.exponents[c]) : 0.0f;
            to.biases[ends.slot][i] = there && from.bias ? from.bias[c] : -0.0f;
        }
        if (thread == 0 && tile == walk.first) to.unsuited = conv_unsuited(from.range_x, from.range_w, all);
        __syncwarp();
        if (first) barrier_arrive(to.ends_barrier(false, ends.slot));
        if (from.residual) conv_await_residual<Tl>(from.residual, thread, row0, column0, all);
#pragma unroll 1
        for (unsigned b = walk.begin; b < walk.end; ++b) {
#pragma unroll
            for (unsigned i = 0; i < EACH; ++i) now[i] = coming[i];
            if (b + 1 < walk.end) rows.next(coming, p);
            barrier_wait(to.rows_barrier(true, ring.slot), ring.phase ^ 1);
#pragma unroll
            for (unsigned i = 0; i < EACH; ++i)
                if (thread + i * COUNT < Tl::BM) to.rows[ring.slot][thread + i * COUNT] = now[i];
            __syncwarp();
            if (first) barrier_arrive(to.rows_barrier(false, ring.slot));
            ring.step();
        }
    }
}
