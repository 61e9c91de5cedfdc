// levels: sm_90a
// Convolutions d = act(x * w + bias + residual) of float32 on the tensor cores, one group, from the planes that conv_planes.cu
// makes or the convolution before has left (common/conv_split.cuh): an implicit product whose rows are output pixels of all
// images, whose columns are filters, and whose k runs over taps and, within a tap, blocks of 64 channels. The copy engine walks
// over pixels and fills in zeros (im2col mode). hi hi and the cross sums hi lo + lo hi are summed over a block by the tensor
// core, which truncates, and added to a float32 master in registers, times the scale of each row's pixel. The _half forms
// multiply the hi planes alone. Results leave as float32, as planes, or both. Operands that do not suit this are multiplied by
// float32 chains instead (common/conv_chain.cuh, and common/conv_scan.cuh where planes come in or go out).
// BM / 64 warpgroups that multiply 64 rows each, and one of which a thread brings tiles and three warps bring scales. grid.x =
// min(tiles, multiprocessors), or clusters of 2 to 8 blocks that share the k of a tile: grid.x = tiles * blocks of a cluster.
// Dynamic shared memory UNITS * (BM + BN) * 256 (128 for the half forms) + BM * 136 (160 of 64 rows) + 1024 bytes. map_x: float16, im2col, dims
// (pitch, W, H, 2 * images) or (pitch, W, H, D, 2 * images) where p.conv.flags says so, BM pixels of 64 channels, 128-byte
// swizzle, hi planes before lo; map_w: float16, dims (taps * channels, filters, 2), box (64, BN, 1), same swizzle.
#include "common/conv_chain.cuh"
#include "common/conv_scan.cuh"

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

// Returns whether the operands do not suit the planes; nothing is written then.
template <class Tl> WW_INLINE bool conv_multiply(ConvScales<Tl> &scales, const ConvSource &from, const ConvOut &out, const ConvShared &shared, const ConvSplit &p) {
    const ConvWalk<Tl> walk(p.conv);
    bool unsuited = false;
    unsigned raised = 0;
    const unsigned group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    Ring<Tl::UNITS> ring;
    Ring<ConvScales<Tl>::BLOCKS> rows;
    Ring<ConvScales<Tl>::TILES> ends;
    for (unsigned tile = walk.first; tile < walk.total; tile += walk.step, ends.step()) {
        float master[Tl::R];
#pragma unroll
        for (int i = 0; i < Tl::R; ++i) master[i] = 0.0f;
#pragma unroll 1
        for (unsigned b = walk.begin; b < walk.end; ++b) conv_block<Tl>(master, ring, rows, shared, scales, group);
        barrier_wait(scales.ends_barrier(false, ends.slot), ends.phase);
        const unsigned row0 = tile / walk.tiles_n * Tl::BM, column0 = tile % walk.tiles_n * Tl::BN;
        const float *const factors = scales.factors[ends.slot], *const biases = scales.biases[ends.slot];
        unsuited = scales.unsuited;
        bool finishes = true;
        if constexpr (Tl::GROUPS == 1)
            if (walk.ranks > 1) finishes = conv_gather<Tl>(master, shared.tiles, walk);
        if (finishes && !unsuited) {
            using Party = ConvParty<Tl::GROUPS == 1 ? 16 : 64>;
            const unsigned party = threadIdx.x / Party::THREADS;
            conv_finish_rows(master, Party{shared.tiles + Tl::UNITS * Tl::BYTES + party * Party::BYTES, row0 + party * Party::ROWS, column0}, factors, biases, from, out, p, raised);
        }
        if ((threadIdx.x & 31) == 0) barrier_arrive(scales.ends_barrier(true, ends.slot));
    }
    // The blocks of a cluster stay until all have read.
    if constexpr (Tl::GROUPS == 1)
        if (walk.ranks > 1) cluster_arrive(), cluster_wait();
    return unsuited;
}

// What does not suit the planes, by the threads that multiply.
template <class Tl> WW_INLINE void conv_otherwise(unsigned char *dynamic, const ConvSource &from, const ConvOut &out, const ConvSplit &p) {
    using Chain = typename ConvChainOf<Tl::GROUPS>::Type;
    // Others may still multiply what lies where the chains have their tiles.
    asm volatile("bar.sync 2, %0;" ::"n"(Tl::GROUPS * 128) : "memory");
    if (threadIdx.x >= Chain::THREADS) return;
    if (!from.x || from.residual || out.planes)
        conv_scan<Chain::THREADS>(from, out, p);
    else
        conv_chain<Chain>((float *)dynamic, from.x, from.w, from.bias, out.d, out.p0, out.p1, p.own);
}

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
    grid_release();
    // Whoever reads or writes what launches ahead did, waits for them first.
    if (threadIdx.x >= Tl::THREADS - 128) {
        if constexpr (Tl::GROUPS == 1)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
        else
            asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (threadIdx.x >= Tl::THREADS - 96)
            conv_bring_scales(scales, from, p);
        else if (threadIdx.x == Tl::THREADS - 128)
            ConvBringer<Tl>{&map_x, &map_w, shared, p.conv}.run();
    } else {
        if constexpr (Tl::GROUPS == 3)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 152;");
        else if constexpr (Tl::GROUPS == 2)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        else
            asm volatile("setmaxnreg.inc.sync.aligned.u32 184;");
        grid_wait();
        if (conv_multiply<Tl>(scales, from, out, shared, p)) conv_otherwise<Tl>(dynamic + (shared.tiles - shared_address(dynamic)), from, out, p);
    }
}

#define SPLIT_CONV(NAME, ...)                                                                                              \
    extern "C" __global__ void __launch_bounds__(ConvTile<__VA_ARGS__>::THREADS, ConvTile<__VA_ARGS__>::BM == 64 ? 2 : 1)  \
        NAME(const __grid_constant__ TensorMap map_x, const __grid_constant__ TensorMap map_w, const float *scales,       \
             const int *exponents, const unsigned long long *range_x, const unsigned long long *range_w, const float *x,   \
             const float *w, const float *bias, float *d, float p0, float p1, const unsigned short *planes,                \
             const unsigned short *residual, const float *residual_scales, unsigned short *d_planes, float *d_scales,      \
             unsigned long long *d_range, const __grid_constant__ ConvSplit p) {                                           \
        const ConvSource from{x, w, bias, scales, planes, residual, residual_scales, exponents, range_x, range_w};         \
        conv_split<ConvTile<__VA_ARGS__>>(map_x, map_w, from, ConvOut{d, p0, p1, d_planes, d_scales, d_range}, p);         \
    }

SPLIT_CONV(conv_f32_split_192x64, 192, 64, 3, false)
SPLIT_CONV(conv_f32_split_128x64, 128, 64, 4, false)
SPLIT_CONV(conv_f32_split_64x64, 64, 64, 3, false)
SPLIT_CONV(conv_f32_half_192x64, 192, 64, 6, true)
SPLIT_CONV(conv_f32_half_128x64, 128, 64, 8, true)
SPLIT_CONV(conv_f32_half_64x64, 64, 64, 6, true)
