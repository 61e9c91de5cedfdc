// levels: sm_90a
// Matrix products d = act(alpha * a b + beta * c + bias) of float32 on the tensor cores, batched, from the planes that
// split.cu makes (common/split.cuh). hh = hi hi is summed over 64 of k by the tensor core, which truncates, and added to
// a float32 master in registers; the cross sums hi lo + lo hi are 2^-11 of it and stay in the tensor core. The
// _half forms multiply the hi planes alone (22 bits less: 2^-11 a product).
// 384 threads: a warpgroup that brings tiles, two that multiply 64 x BN each. grid.x = min(tiles, multiprocessors),
// dynamic shared memory UNITS * (128 + BN) * 128 + 1024 bytes. map_a: float16, dims (k, m, 2 * matrices), box (64, 128,
// 1), 128-byte swizzle, plane 0 hi, plane 1 lo; map_b the same with n and BN. k >= 1; c must not be d.
// matmul_f32_chain (gemm_chain.cu) follows every launch: these forms leave wide operands alone.
#include "common/hopper.cuh"
#include "common/split_store.cuh"

template <int BN_, int UNITS_, bool HALF_, bool ORDERED_ = false> struct SplitTile {
    static constexpr int BM = 128, BN = BN_, UNITS = UNITS_, R = BN / 2;
    static constexpr bool HALF = HALF_, ORDERED = ORDERED_;
    // A unit is a tile of A and a tile of B. Of the two of a block of 64 along k, the first holds A lo and B hi, the
    // second A hi and B lo; the half forms have one, A hi and B hi.
    static constexpr unsigned BYTES_A = BM * 128, BYTES = (BM + BN) * 128;
    static_assert(UNITS * BYTES + 2048 <= 227 * 1024, "shared memory");
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

// Addresses of the ring: tiles, then for each unit a barrier "full" and one "empty".
struct SplitShared {
    unsigned tiles, full, empty;
};

// Blocks of 64 along k. The half forms take them in pairs; beyond k there are zeros.
template <class Tl> WW_INLINE unsigned split_blocks(const Split &p) {
    return Tl::HALF ? (p.k + 127) / 128 * 2 : (p.k + 63) / 64;
}

template <class Tl> WW_INLINE void split_bring(const TensorMap *map_a, const TensorMap *map_b, const SplitShared &shared, const Split &p) {
    const SplitWalk walk(p, Tl::BM, Tl::BN);
    const unsigned blocks = split_blocks<Tl>(p);
    Ring<Tl::UNITS> ring;
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
        unsigned tm, tn;
        const unsigned batch = walk.place(tile, tm, tn);
        const int za = 2 * p.a_index(batch), zb = 2 * p.b_index(batch);
        for (unsigned b = 0; b < blocks; ++b) {
#pragma unroll
            for (int unit = 0; unit < (Tl::HALF ? 1 : 2); ++unit) {
                const unsigned to = shared.tiles + ring.slot * Tl::BYTES, full = shared.full + ring.slot * 8;
                barrier_wait(shared.empty + ring.slot * 8, ring.phase ^ 1);
                barrier_expect(full, Tl::BYTES);
                copy_box(to, map_a, full, b * 64, tm * Tl::BM, za + (Tl::HALF ? 0 : 1 - unit));
                copy_box(to + Tl::BYTES_A, map_b, full, b * 64, tn * Tl::BN, zb + (Tl::HALF ? 0 : unit));
                ring.step();
            }
        }
    }
}

// The two multiplying warpgroups issue in turn, so that one adds while the other's products run.
template <bool ORDERED> WW_INLINE void turn_wait(unsigned group) {
    if (ORDERED) asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory");
}

template <bool ORDERED> WW_INLINE void turn_pass(unsigned group) {
    if (ORDERED) asm volatile("bar.arrive %0, 256;" ::"r"(2 - group) : "memory");
}

// One block of 64 along k: cross += lo hi + hi lo, then master += hi hi.
template <class Tl>
WW_INLINE void split_block(float (&master)[Tl::R], float (&cross)[Tl::R], Ring<Tl::UNITS> &ring, const SplitShared &shared, unsigned group) {
    using Mma = Wgmma<Tl::BN, false>;
    float high[Tl::R];
    const unsigned slot0 = ring.slot, at0 = shared.tiles + slot0 * Tl::BYTES;
    const unsigned long long a0 = tile_descriptor(at0 + group * 8192), b0 = tile_descriptor(at0 + Tl::BYTES_A);
    barrier_wait(shared.full + slot0 * 8, ring.phase);
    ring.step();
    turn_wait<Tl::ORDERED>(group);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) Mma::add(cross, a0 + 2 * i, b0 + 2 * i);
    const unsigned slot1 = ring.slot, at1 = shared.tiles + slot1 * Tl::BYTES;
    const unsigned long long a1 = tile_descriptor(at1 + group * 8192), b1 = tile_descriptor(at1 + Tl::BYTES_A);
    barrier_wait(shared.full + slot1 * 8, ring.phase);
    ring.step();
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) Mma::add(cross, a1 + 2 * i, b1 + 2 * i);
    Mma::set(high, a1, b0);
#pragma unroll
    for (int i = 1; i < 4; ++i) Mma::add(high, a1 + 2 * i, b0 + 2 * i);
    wgmma_commit();
    turn_pass<Tl::ORDERED>(group);
    wgmma_wait();
    wgmma_touch(high);
    wgmma_touch(cross);
    if ((threadIdx.x & 31) == 0) {
        barrier_arrive(shared.empty + slot0 * 8);
        barrier_arrive(shared.empty + slot1 * 8);
    }
#pragma unroll
    for (int i = 0; i < Tl::R; ++i) master[i] += high[i];
}

template <int R> WW_INLINE void split_fold(float (&master)[R], float (&cross)[R]) {
#pragma unroll
    for (int i = 0; i < R; ++i) {
        master[i] = ww_fma(cross[i], 1.0f / SPLIT_LOW, master[i]);
        cross[i] = 0.0f;
    }
}

template <class Tl> WW_INLINE void split_sum(float (&master)[Tl::R], Ring<Tl::UNITS> &ring, const SplitShared &shared, unsigned group, unsigned blocks) {
    float cross[Tl::R];
#pragma unroll
    for (int i = 0; i < Tl::R; ++i) cross[i] = 0.0f;
    for (unsigned b = 0; b < blocks; ++b) {
        split_block<Tl>(master, cross, ring, shared, group);
        // Truncation grows with the length of a sum: at 8192 it is still 2^-26 of the result here.
        if ((b & 127) == 127) split_fold(master, cross);
    }
    split_fold(master, cross);
}

// The same for the hi planes alone, master being raised every two blocks.
template <class Tl> WW_INLINE void half_sum(float (&master)[Tl::R], Ring<Tl::UNITS> &ring, const SplitShared &shared, unsigned group, unsigned blocks) {
    using Mma = Wgmma<Tl::BN, false>;
    for (unsigned b = 0; b < blocks; b += 2) {
        float high[Tl::R];
        const unsigned slot0 = ring.slot, at0 = shared.tiles + slot0 * Tl::BYTES;
        barrier_wait(shared.full + slot0 * 8, ring.phase);
        ring.step();
        const unsigned slot1 = ring.slot, at1 = shared.tiles + slot1 * Tl::BYTES;
        barrier_wait(shared.full + slot1 * 8, ring.phase);
        ring.step();
        const unsigned long long a0 = tile_descriptor(at0 + group * 8192), b0 = tile_descriptor(at0 + Tl::BYTES_A);
        const unsigned long long a1 = tile_descriptor(at1 + group * 8192), b1 = tile_descriptor(at1 + Tl::BYTES_A);
        wgmma_fence();
        Mma::set(high, a0, b0);
#pragma unroll
        for (int i = 1; i < 4; ++i) Mma::add(high, a0 + 2 * i, b0 + 2 * i);
#pragma unroll
        for (int i = 0; i < 4; ++i) Mma::add(high, a1 + 2 * i, b1 + 2 * i);
        wgmma_commit();
        wgmma_wait();
        wgmma_touch(high);
        if ((threadIdx.x & 31) == 0) {
            barrier_arrive(shared.empty + slot0 * 8);
            barrier_arrive(shared.empty + slot1 * 8);
        }
#pragma unroll
        for (int i = 0; i < Tl::R; ++i) master[i] += high[i];
    }
}

template <class Tl>
WW_INLINE void split_multiply(const int *ea, const int *eb, const SplitOut &out, const SplitShared &shared, const Split &p) {
    const SplitWalk walk(p, Tl::BM, Tl::BN);
    const unsigned blocks = split_blocks<Tl>(p), group = (threadIdx.x >> 7) - 1;
    Ring<Tl::UNITS> ring;
    if (group == 1) turn_pass<Tl::ORDERED>(group);
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
        unsigned tm, tn;
        const unsigned batch = walk.place(tile, tm, tn);
        float master[Tl::R];
#pragma unroll
        for (int i = 0; i < Tl::R; ++i) master[i] = 0.0f;
        if constexpr (Tl::HALF)
            half_sum<Tl>(master, ring, shared, group, blocks);
        else
            split_sum<Tl>(master, ring, shared, group, blocks);
        const SplitPlace at(tm * Tl::BM + group * 64, tn * Tl::BN);
        split_scale(master, at, ea + (long long)p.a_index(batch) * p.m, eb + (long long)p.b_index(batch) * p.n, 0, p);
        split_store(master, at, out.at(p, batch), p);
    }
}

template <class Tl>
WW_INLINE void split_matmul(const TensorMap &map_a, const TensorMap &map_b, const int *ea, const int *eb, const unsigned long long *range_a,
                            const unsigned long long *range_b, const SplitOut &out, const Split &p) {
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * Tl::UNITS];
    if (split_wide(range_a, range_b, p)) return;
    SplitShared shared;
    shared.tiles = (shared_address(dynamic) + 1023) & ~1023u;
    shared.full = shared_address(barriers);
    shared.empty = shared.full + 8 * Tl::UNITS;
    if (threadIdx.x == 0) {
        prefetch_map(&map_a);
        prefetch_map(&map_b);
        for (int i = 0; i < Tl::UNITS; ++i) {
            barrier_init(shared.full + 8 * i, 1);
            barrier_init(shared.empty + 8 * i, 8);
        }
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) split_bring<Tl>(&map_a, &map_b, shared, p);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        split_multiply<Tl>(ea, eb, out, shared, p);
    }
}

#define SPLIT_MATMUL(NAME, ...)                                                                                            \
    extern "C" __global__ void __launch_bounds__(384, 1)                                                                   \
        NAME(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const int *ea, const int *eb, \
             const unsigned long long *range_a, const unsigned long long *range_b, const float *c, const float *bias, float *d, \
             float alpha, float beta, float p0, float p1, const __grid_constant__ Split p) {                               \
        split_matmul<SplitTile<__VA_ARGS__>>(map_a, map_b, ea, eb, range_a, range_b, SplitOut{c, bias, d, alpha, beta, p0, p1}, p); \
    }

SPLIT_MATMUL(matmul_f32_split_128x64, 64, 9, false)
SPLIT_MATMUL(matmul_f32_split_128x128, 128, 7, false, true)
SPLIT_MATMUL(matmul_f32_half_128x128, 128, 7, true)
SPLIT_MATMUL(matmul_f32_half_128x192, 192, 5, true)
