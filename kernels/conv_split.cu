// levels: sm_90a
// Convolutions d = act(x * w + bias) of float32 on the tensor cores, one group, from the planes that conv_planes.cu makes
// (common/conv_split.cuh): an implicit product whose rows are output pixels of all images, whose columns are filters, and
// whose k runs over taps and, within a tap, blocks of 64 channels. The copy engine walks over pixels and fills in zeros
// (im2col mode). hi hi and the cross sums hi lo + lo hi are summed over a block by the tensor core, which truncates, and
// added to a float32 master in registers, times the scale of each row's pixel. The _half forms multiply the hi planes alone.
// Operands that do not suit this are multiplied by float32 chains instead (common/conv_chain.cuh).
// BM / 64 warpgroups that multiply 64 rows each, and one of which a thread brings tiles and three warps bring scales. grid.x = min(tiles, multiprocessors), dynamic
// shared memory UNITS * (BM + BN) * 256 (128 for the half forms) + BM * 136 + 1024 bytes. map_x: float16, im2col, dims (pitch, W, H, 2 * images) or (pitch, W, H,
// D, 2 * images) where p.conv.flags says so, BM pixels of 64 channels, 128-byte swizzle, hi planes before lo; map_w: float16,
// dims (taps * channels, filters, 2), box (64, BN, 1), same swizzle.
#include "common/hopper.cuh"
#include "common/conv_chain.cuh"

// Beside those of conv_tile.cuh.
enum : unsigned { CONV_VOLUME = 4 };

template <int BM_, int BN_, int UNITS_, bool HALF_> struct ConvTile {
    static constexpr int BM = BM_, BN = BN_, UNITS = UNITS_, R = BN / 2, GROUPS = BM / 64, THREADS = 128 * (GROUPS + 1);
    static constexpr bool HALF = HALF_;
    // A unit is what a block needs: the pixels' hi, their lo, the weights' hi and lo; the half forms have both hi alone.
    static constexpr unsigned PLANES = HALF ? 1 : 2, BYTES_X = BM * 128, BYTES_W = BN * 128, AT_W = PLANES * BYTES_X, BYTES = PLANES * (BYTES_X + BYTES_W);
    static_assert(UNITS * BYTES + GROUPS * 8704 + 1024 + 16 * UNITS + 4096 + 16 * BN <= 227 * 1024 && UNITS * BYTES >= CONV_CHAIN_SHARED, "shared memory");
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

// Output tiles in the order in which blocks take them: all filters of some pixels, then the next pixels.
struct ConvWalk {
    unsigned tiles_n, total;
    WW_INLINE ConvWalk(const Conv &p, unsigned bm, unsigned bn) : tiles_n((p.group_out + bn - 1) / bn), total((p.pixels + bm - 1) / bm * tiles_n) {}
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
        const ConvWalk walk(p, Tl::BM, Tl::BN);
        const unsigned blocks = conv_blocks(p.group_in) * conv_taps(p);
        for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
            const ConvPixel first(tile / walk.tiles_n * Tl::BM, p);
            const unsigned column = tile % walk.tiles_n * Tl::BN;
            ConvSteps steps(p);
#pragma unroll 1
            for (unsigned b = 0; b < blocks; ++b) {
                bring(first, steps, b * CONV_CHANNELS, column);
                steps.advance(p);
            }
        }
    }
};

// The scales of rows `row` and row + STEP, for one block after the other.
template <unsigned STEP> struct RowScales {
    ConvPixel pixel[2];
    ConvSteps steps;
    const float *from;
    long long all;

    WW_INLINE RowScales(const float *scales, unsigned row, const Conv &p)
        : pixel{ConvPixel(row, p), ConvPixel(row + STEP, p)}, steps(p), from(scales), all((long long)p.images * p.in[0] * p.in[1] * p.in[2]) {
#pragma unroll
        for (int i = 0; i < 2; ++i)
            if (row + i * STEP >= p.pixels) pixel[i].at[2] = -(1 << 30);
    }

    // Those of the next block; padding has none. As instructions that stay here, ahead of their use.
    WW_INLINE void next(float (&scale)[2], const Conv &p) {
        const float *const part = from + steps.part * all;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int d = pixel[i].at[0] + (int)(steps.tap[0] * p.dilation[0]), h = pixel[i].at[1] + (int)(steps.tap[1] * p.dilation[1]);
            const int w = pixel[i].at[2] + (int)(steps.tap[2] * p.dilation[2]);
            const bool in = (unsigned)d < p.in[0] & (unsigned)h < p.in[1] & (unsigned)w < p.in[2];
            const int at = ((pixel[i].image * (int)p.in[0] + d) * (int)p.in[1] + h) * (int)p.in[2] + w;
            asm volatile("{\n.reg .pred in;\nsetp.ne.u32 in, %2, 0;\nmov.f32 %0, 0f00000000;\n@in ld.global.f32 %0, [%1];\n}" : "=f"(scale[i]) : "l"(part + at), "r"((unsigned)in) : "memory");
        }
        steps.advance(p);
    }
};

// The three warps that bring scales.
template <class Tl> WW_INLINE void conv_bring_scales(ConvScales<Tl> &to, const float *scales, const int *exponents, const float *bias, const Conv &p) {
    constexpr unsigned COUNT = 96;
    const ConvWalk walk(p, Tl::BM, Tl::BN);
    const unsigned blocks = conv_blocks(p.group_in) * conv_taps(p), thread = threadIdx.x - (Tl::THREADS - COUNT);
    const bool first = (threadIdx.x & 31) == 0;
    Ring<ConvScales<Tl>::BLOCKS> ring;
    Ring<ConvScales<Tl>::TILES> ends;
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x, ends.step()) {
        RowScales<COUNT> rows(scales, tile / walk.tiles_n * Tl::BM + thread, p);
        float now[2], coming[2];
        rows.next(coming, p);
        barrier_wait(to.ends_barrier(true, ends.slot), ends.phase ^ 1);
        for (unsigned i = thread; i < Tl::BN; i += COUNT) {
            const unsigned c = tile % walk.tiles_n * Tl::BN + i;
            const bool there = c < p.group_out;
            to.factors[ends.slot][i] = there ? power_of_two(exponents[c]) : 0.0f;
            to.biases[ends.slot][i] = there && bias ? bias[c] : -0.0f;
        }
        __syncwarp();
        if (first) barrier_arrive(to.ends_barrier(false, ends.slot));
#pragma unroll 1
        for (unsigned b = 0; b < blocks; ++b) {
            now[0] = coming[0], now[1] = coming[1];
            if (b + 1 < blocks) rows.next(coming, p);
            barrier_wait(to.rows_barrier(true, ring.slot), ring.phase ^ 1);
            to.rows[ring.slot][thread] = now[0];
            if (thread + COUNT < Tl::BM) to.rows[ring.slot][thread + COUNT] = now[1];
            __syncwarp();
            if (first) barrier_arrive(to.rows_barrier(false, ring.slot));
            ring.step();
        }
    }
}

template <int R> WW_INLINE void conv_add(float (&master)[R], const float *sum, const float (&scale)[2]) {
#pragma unroll
    for (int i = 0; i < R; ++i) master[i] = ww_fma(sum[i], scale[i >> 1 & 1], master[i]);
}

// One block: master += scale * (hi hi + (lo hi + hi lo) 2^-11). The weights' planes lie one after the other, so that one
// product of twice the columns gives hi hi and hi lo.
template <class Tl>
WW_INLINE void conv_block(float (&master)[Tl::R], Ring<Tl::UNITS> &ring, Ring<ConvScales<Tl>::BLOCKS> &rows, const ConvShared &shared, ConvScales<Tl> &scales, unsigned group) {
    constexpr int R = Tl::R, ALL = R * Tl::PLANES;
    using Both = Wgmma<Tl::BN * Tl::PLANES, false>;
    float sum[ALL];
    const unsigned slot = ring.slot, unit = shared.tiles + slot * Tl::BYTES;
    const unsigned long long x = tile_descriptor(unit + group * 8192), w = tile_descriptor(unit + Tl::AT_W);
    barrier_wait(shared.full + slot * 8, ring.phase);
    ring.step();
    wgmma_fence();
    Both::set(sum, x, w);
#pragma unroll
    for (int i = 1; i < 4; ++i) Both::add(sum, x + 2 * i, w + 2 * i);
    wgmma_commit();
    barrier_wait(scales.rows_barrier(false, rows.slot), rows.phase);
    const float *const row = scales.rows[rows.slot] + (threadIdx.x >> 5) * 16 + (threadIdx.x >> 2 & 7);
    const float scale[2] = {row[0], row[8]};
    wgmma_wait();
    wgmma_touch(sum);
    if constexpr (Tl::HALF) {
        if ((threadIdx.x & 31) == 0) barrier_arrive(shared.empty + slot * 8);
        conv_add<R>(master, sum, scale);
    } else {
        const float less[2] = {scale[0] * (1.0f / SPLIT_LOW), scale[1] * (1.0f / SPLIT_LOW)};
        float cross[R];
        const unsigned long long low = x + Tl::BYTES_X / 16;
        wgmma_fence();
        Wgmma<Tl::BN, false>::set(cross, low, w);
#pragma unroll
        for (int i = 1; i < 4; ++i) Wgmma<Tl::BN, false>::add(cross, low + 2 * i, w + 2 * i);
        wgmma_commit();
        conv_add<R>(master, sum, scale);
        conv_add<R>(master, sum + R, less);
        wgmma_wait();
        wgmma_touch(cross);
        if ((threadIdx.x & 31) == 0) barrier_arrive(shared.empty + slot * 8);
        conv_add<R>(master, cross, less);
    }
    if ((threadIdx.x & 31) == 0) barrier_arrive(scales.rows_barrier(true, rows.slot));
    rows.step();
}

struct ConvOut {
    float *d;
    float p0, p1;
};

// A warpgroup's results on their way to memory, a channel's pixels side by side: 32 columns of 64 rows.
struct ConvStage {
    static constexpr unsigned COLUMNS = 32, PITCH = 68, BYTES = COLUMNS * PITCH * 4;
    unsigned address;

    static WW_INLINE void sync(unsigned group) { asm volatile("bar.sync %0, 128;" ::"r"(4 + group) : "memory"); }
    WW_INLINE void put(unsigned row, unsigned column, float v) const {
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(address + (column * PITCH + row) * 4), "f"(v) : "memory");
    }
    WW_INLINE float get(unsigned row, unsigned column) const {
        float v;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address + (column * PITCH + row) * 4) : "memory");
        return v;
    }
    WW_INLINE float4 get_four(unsigned row, unsigned column) const {
        float4 v;
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(address + (column * PITCH + row) * 4) : "memory");
        return v;
    }
};

// Where pixel `row` of filter 0 lies; null beyond the last one.
WW_INLINE float *conv_place(float *d, unsigned row, const Conv &p) {
    const unsigned plane = p.out[0] * p.out[1] * p.out[2], image = row / plane;
    return row < p.pixels ? d + ((unsigned long long)image * p.group_out * plane + (row - image * plane)) : nullptr;
}

// 32 columns of what is staged, to the rows from row0 and filters from column0 on.
WW_INLINE void conv_write(const ConvStage &stage, unsigned row0, unsigned column0, const ConvOut &out, const Conv &p) {
    const unsigned long long plane = p.out[0] * p.out[1] * p.out[2];
    const unsigned tid = threadIdx.x & 127;
    const bool lengthy = p.act >= ACT_SIGMOID;
    if ((p.flags & CONV_VECTOR_D) && !lengthy) {
        const unsigned row = (tid & 15) * 4;
        float *const to = conv_place(out.d, row0 + row, p);
        if (!to) return;
#pragma unroll
        for (unsigned c = tid >> 4; c < ConvStage::COLUMNS; c += 8)
            if (column0 + c < p.group_out) *(float4 *)(to + (column0 + c) * plane) = stage.get_four(row, c);
        return;
    }
    const unsigned row = tid & 63;
    float *const to = conv_place(out.d, row0 + row, p);
    if (!to) return;
    if (lengthy) {
#pragma unroll 1
        for (unsigned c = tid >> 6; c < ConvStage::COLUMNS; c += 2)
            if (column0 + c < p.group_out) to[(column0 + c) * plane] = activate(stage.get(row, c), p.act, out.p0, out.p1);
    } else {
#pragma unroll
        for (unsigned c = tid >> 6; c < ConvStage::COLUMNS; c += 2)
            if (column0 + c < p.group_out) to[(column0 + c) * plane] = stage.get(row, c);
    }
}

// A warpgroup's R accumulators a thread, of rows from row0 and filters from column0 on.
template <int R>
WW_INLINE void conv_finish_rows(float (&v)[R], const ConvStage &stage, unsigned group, unsigned row0, unsigned column0, const float *factors, const float *biases, const ConvOut &out, const Conv &p) {
    constexpr int PIECE = ConvStage::COLUMNS / 2;
    const unsigned lane = threadIdx.x & 31, row = (threadIdx.x >> 5 & 3) * 16 + (lane >> 2), column = (lane & 3) * 2;
#pragma unroll 1
    for (unsigned done = 0; done < 2 * R; done += ConvStage::COLUMNS) {
        float piece[PIECE];
#pragma unroll
        for (int i = 0; i < PIECE; ++i) piece[i] = v[i];
#pragma unroll
        for (int i = PIECE; i < R; ++i) v[i - PIECE] = v[i];
#pragma unroll
        for (int i = 0; i < PIECE; i += 4) {
            const float2 factor = *(const float2 *)(factors + done + column + i * 2), bias = *(const float2 *)(biases + done + column + i * 2);
            piece[i] = ww_fma(piece[i], factor.x, bias.x);
            piece[i + 1] = ww_fma(piece[i + 1], factor.y, bias.y);
            piece[i + 2] = ww_fma(piece[i + 2], factor.x, bias.x);
            piece[i + 3] = ww_fma(piece[i + 3], factor.y, bias.y);
        }
        activate_short(piece, p.act, out.p0, out.p1);
        ConvStage::sync(group);
#pragma unroll
        for (int i = 0; i < PIECE; ++i) stage.put(row + (i >> 1 & 1) * 8, column + (i >> 2) * 8 + (i & 1), piece[i]);
        ConvStage::sync(group);
        conv_write(stage, row0, column0 + done, out, p);
    }
}

template <class Tl> WW_INLINE void conv_multiply(ConvScales<Tl> &scales, const ConvOut &out, const ConvShared &shared, const Conv &p) {
    const ConvWalk walk(p, Tl::BM, Tl::BN);
    const unsigned blocks = conv_blocks(p.group_in) * conv_taps(p), group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    const ConvStage stage{shared.tiles + Tl::UNITS * Tl::BYTES + group * ConvStage::BYTES};
    Ring<Tl::UNITS> ring;
    Ring<ConvScales<Tl>::BLOCKS> rows;
    Ring<ConvScales<Tl>::TILES> ends;
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x, ends.step()) {
        float master[Tl::R];
#pragma unroll
        for (int i = 0; i < Tl::R; ++i) master[i] = 0.0f;
#pragma unroll 1
        for (unsigned b = 0; b < blocks; ++b) conv_block<Tl>(master, ring, rows, shared, scales, group);
        barrier_wait(scales.ends_barrier(false, ends.slot), ends.phase);
        const unsigned row0 = tile / walk.tiles_n * Tl::BM + group * 64, column0 = tile % walk.tiles_n * Tl::BN;
        conv_finish_rows(master, stage, group, row0, column0, scales.factors[ends.slot], scales.biases[ends.slot], out, p);
        if ((threadIdx.x & 31) == 0) barrier_arrive(scales.ends_barrier(true, ends.slot));
    }
}

struct ConvSource {
    const float *x, *w, *bias, *scales;
    const int *exponents;
    const unsigned long long *range_x, *range_w;
};

template <class Tl> WW_INLINE void conv_split(const TensorMap &map_x, const TensorMap &map_w, const ConvSource &from, const ConvOut &out, const ConvSplit &p) {
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * Tl::UNITS];
    __shared__ __align__(16) ConvScales<Tl> scales;
    ConvShared shared;
    shared.tiles = (shared_address(dynamic) + 1023) & ~1023u;
    shared.full = shared_address(barriers);
    shared.empty = shared.full + 8 * Tl::UNITS;
    if (threadIdx.x < Tl::UNITS) {
        barrier_init(shared.full + 8 * threadIdx.x, 1);
        barrier_init(shared.empty + 8 * threadIdx.x, 4 * Tl::GROUPS);
        barrier_init_fence();
    } else if (threadIdx.x >= 64 && threadIdx.x < 128) {
        scales.init(threadIdx.x - 64);
    } else if (threadIdx.x == Tl::THREADS - 128) {
        prefetch_map(&map_x);
        prefetch_map(&map_w);
    }
    __syncthreads();
    grid_wait();
    grid_release();
    const bool unsuited = conv_unsuited(from.range_x, from.range_w, p);
    if (threadIdx.x >= Tl::THREADS - 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (unsuited) return;
        if (threadIdx.x >= Tl::THREADS - 96)
            conv_bring_scales(scales, from.scales, from.exponents, from.bias, p.conv);
        else if (threadIdx.x == Tl::THREADS - 128)
            ConvBringer<Tl>{&map_x, &map_w, shared, p.conv}.run();
    } else {
        if constexpr (Tl::GROUPS == 3)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 152;");
        else
            asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        if (!unsuited)
            conv_multiply<Tl>(scales, out, shared, p.conv);
        else if (threadIdx.x < 256)
            conv_chain((float *)(dynamic + (shared.tiles - shared_address(dynamic))), from.x, from.w, from.bias, out.d, out.p0, out.p1, p.own);
    }
}

#define SPLIT_CONV(NAME, ...)                                                                                              \
    extern "C" __global__ void __launch_bounds__(ConvTile<__VA_ARGS__>::THREADS, 1)                                        \
        NAME(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w, const float *scales,       \
             const int *exponents, const unsigned long long *range_x, const unsigned long long *range_w, const float *x,   \
             const float *w, const float *bias, float *d, float p0, float p1, const __grid_constant__ ConvSplit p) {       \
        const ConvSource from{x, w, bias, scales, exponents, range_x, range_w};                                            \
        conv_split<ConvTile<__VA_ARGS__>>(map_x, map_w, from, ConvOut{d, p0, p1}, p);                                       \
    }

SPLIT_CONV(conv_f32_split_192x64, 192, 64, 3, false)
SPLIT_CONV(conv_f32_split_128x64, 128, 64, 4, false)
SPLIT_CONV(conv_f32_half_192x64, 192, 64, 6, true)
SPLIT_CONV(conv_f32_half_128x64, 128, 64, 8, true)
