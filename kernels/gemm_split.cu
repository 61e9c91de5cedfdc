// levels: sm_90a
// Matrix products d = act(alpha * a b + beta * c + bias) of float32 on the tensor cores, batched, from the planes that
// split.cu makes (common/split.cuh). hh = hi hi is summed over 64 of k by the tensor core, which truncates, and added to
// a float32 master in registers; the cross sums hi lo + lo hi are 2^-11 of it and stay in the tensor core. The
// _half forms multiply the hi planes alone (22 bits less: 2^-11 a product); the widest of them leaves its sums in the
// tensor core to the end. Operands that do not suit this are
// multiplied by float32 chains instead (common/split_chain.cuh).
// 384 threads: two warpgroups that multiply, one that brings tiles. Tiles of 128 rows: each multiplies 64 rows. Tiles of 64
// rows: each takes every other block of 64 along k. grid.x = min(tiles, multiprocessors), dynamic shared memory UNITS *
// (BM + BN) * 128 + 1024 bytes, 256 * BN more with 64 rows. map_a: float16, dims (k, m, 2 * matrices), box (64, BM, 1),
// 128-byte swizzle, plane 0 hi, plane 1 lo; map_b the same with n and BN. k >= 1; c must not be d.
#include "common/hopper.cuh"
#include "common/split_chain.cuh"

// Of the multiplying threads.
WW_INLINE void multipliers_sync() { asm volatile("bar.sync 3, 256;" ::: "memory"); }

// 128 rows by 64 or 128 columns, with a step of k that keeps the unrolled code short; 256 threads.
template <int COLUMNS> using ChainTile = Tile<float, 128, COLUMNS, 8, COLUMNS / 16, COLUMNS == 64 ? 16 : 8>;

enum class Form { THREE, ORDERED, HALF, WHOLE };

template <int BM_, int BN_, int UNITS_, Form FORM> struct SplitTile {
    static constexpr int BM = BM_, BN = BN_, UNITS = UNITS_, R = BN / 2;
    static constexpr bool WHOLE = FORM == Form::WHOLE, HALF = WHOLE || FORM == Form::HALF, ORDERED = FORM == Form::ORDERED, ALONG_K = BM == 64;
    // A unit is a tile of A and a tile of B. Of the two of a block of 64 along k, the first holds A lo and B hi, the
    // second A hi and B lo; the half forms have one, A hi and B hi.
    static constexpr unsigned BYTES_A = BM * 128, BYTES = (BM + BN) * 128, PER_BLOCK = HALF ? 1 : 2;
    using Scales = SplitScales<BM, BN>;
    // A slot of the ring is always the same warpgroup's: one that waited for units of the other might take a slot's earlier
    // phase for its own, as copies do not arrive in order.
    static_assert(!ALONG_K || UNITS % 4 == 0, "slots of a warpgroup");
    static_assert(UNITS * BYTES + (ALONG_K ? 128 * R * 4 : 0) + 1024 + 16 * UNITS + 16 + sizeof(Scales) <= 227 * 1024, "shared memory");
};

template <int UNITS> struct Ring {
    unsigned slot = 0, phase = 0;
    WW_INLINE void step(unsigned count = 1) {
        slot += count;
        if (slot >= UNITS) {
            slot -= UNITS;
            phase ^= 1;
        }
    }
};

// Addresses of the ring: tiles, then for each unit a barrier "full" and one "empty"; the same of the exponents; the
// warpgroups' exchange.
struct SplitShared {
    unsigned tiles, full, empty, scales_full, scales_empty, exchange;
};

// Blocks of 64 along k. The half forms take them in pairs; beyond k there are zeros.
template <class Tl> WW_INLINE unsigned split_blocks(const Split &p) {
    return Tl::HALF ? (p.k + 127) / 128 * 2 : (p.k + 63) / 64;
}

// Units of a block's first tile that the ring holds at once.
template <class Tl> WW_INLINE unsigned first_units(const Split &p) {
    const unsigned all = split_blocks<Tl>(p) * Tl::PER_BLOCK;
    return all < Tl::UNITS ? all : Tl::UNITS;
}

// The thread that brings tiles.
template <class Tl> struct SplitBringer {
    const TensorMap *map_a, *map_b;
    SplitShared shared;
    SplitWalk walk;
    unsigned units, row, column;
    int za, zb;
    Ring<Tl::UNITS> ring;

    WW_INLINE SplitBringer(const TensorMap *a, const TensorMap *b, const SplitShared &s, const Split &p)
        : map_a(a), map_b(b), shared(s), walk(p, Tl::BM, Tl::BN), units(split_blocks<Tl>(p) * Tl::PER_BLOCK) {}

    WW_INLINE void enter(unsigned tile, const Split &p) {
        const unsigned batch = walk.place(tile, row, column);
        row *= Tl::BM;
        column *= Tl::BN;
        za = 2 * p.a_index(batch);
        zb = 2 * p.b_index(batch);
    }

    // Units of the tile entered.
    WW_INLINE void bring(unsigned from, unsigned to) {
#pragma unroll 1
        for (unsigned u = from; u < to; ++u) {
            const unsigned at = shared.tiles + ring.slot * Tl::BYTES, full = shared.full + ring.slot * 8;
            const int k = u / Tl::PER_BLOCK * 64, plane = u % Tl::PER_BLOCK;
            barrier_wait(shared.empty + ring.slot * 8, ring.phase ^ 1);
            barrier_expect(full, Tl::BYTES);
            copy_box(at, map_a, full, k, row, za + (Tl::HALF ? 0 : 1 - plane));
            copy_box(at + Tl::BYTES_A, map_b, full, k, column, zb + plane);
            ring.step();
        }
    }

    // The first tile's units that fit at once come before it is known whether they are wanted.
    WW_INLINE void run(const unsigned long long *range_a, const unsigned long long *range_b, const Split &p) {
        unsigned tile = blockIdx.x;
        enter(tile, p);
        const unsigned first = first_units<Tl>(p);
        bring(0, first);
        if (split_unsuited(range_a, range_b, p)) return;
        for (unsigned from = first; tile < walk.total; tile += gridDim.x, from = 0) {
            enter(tile, p);
            bring(from, units);
        }
    }
};

// The warp that brings the exponents of tiles.
template <class Tl> WW_INLINE void split_bring_scales(typename Tl::Scales &scales, const SplitShared &shared, const int *ea, const int *eb, const Split &p) {
    const SplitWalk walk(p, Tl::BM, Tl::BN);
    const unsigned lane = threadIdx.x & 31;
    unsigned phase = 1;
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x, phase ^= 1) {
        unsigned tm, tn;
        const unsigned batch = walk.place(tile, tm, tn);
        const int *a = ea + (long long)p.a_index(batch) * p.m, *b = eb + (long long)p.b_index(batch) * p.n;
        barrier_wait(shared.scales_empty, phase);
        bool far = false;
        const auto bring = [&](int &to, const int *from, unsigned at, unsigned end) {
            to = at < end ? from[at] : 0;
            far |= split_far(to);
        };
#pragma unroll
        for (unsigned i = 0; i < Tl::BM; i += 32) bring(scales.rows[i + lane], a, tm * Tl::BM + i + lane, p.m);
#pragma unroll
        for (unsigned i = 0; i < Tl::BN; i += 32) bring(scales.columns[i + lane], b, tn * Tl::BN + i + lane, p.n);
        far = __any_sync(0xffffffffu, far);
        if (lane == 0) scales.far = far;
        barrier_arrive(shared.scales_full);
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
    const unsigned row = Tl::ALONG_K ? 0 : group * 8192;
    const unsigned slot0 = ring.slot, at0 = shared.tiles + slot0 * Tl::BYTES;
    const unsigned long long a0 = tile_descriptor(at0 + row), b0 = tile_descriptor(at0 + Tl::BYTES_A);
    barrier_wait(shared.full + slot0 * 8, ring.phase);
    ring.step();
    turn_wait<Tl::ORDERED>(group);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i) Mma::add(cross, a0 + 2 * i, b0 + 2 * i);
    const unsigned slot1 = ring.slot, at1 = shared.tiles + slot1 * Tl::BYTES;
    const unsigned long long a1 = tile_descriptor(at1 + row), b1 = tile_descriptor(at1 + Tl::BYTES_A);
    barrier_wait(shared.full + slot1 * 8, ring.phase);
    ring.step(Tl::ALONG_K ? 3 : 1);
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

// `count` blocks.
template <class Tl> WW_INLINE void split_sum(float (&master)[Tl::R], Ring<Tl::UNITS> &ring, const SplitShared &shared, unsigned group, unsigned count) {
    float cross[Tl::R];
#pragma unroll
    for (int i = 0; i < Tl::R; ++i) cross[i] = 0.0f;
    for (unsigned b = 0; b < count; ++b) {
        split_block<Tl>(master, cross, ring, shared, group);
        // Truncation grows with the length of a sum: at 8192 it is still 2^-26 of the result here.
        if ((b & 127) == 127) split_fold(master, cross);
    }
    split_fold(master, cross);
}

// The same for the hi planes alone, master being raised every two blocks.
template <class Tl> WW_INLINE void half_sum(float (&master)[Tl::R], Ring<Tl::UNITS> &ring, const SplitShared &shared, unsigned group, unsigned count) {
    using Mma = Wgmma<Tl::BN, false>;
    for (unsigned b = 0; b < count; b += 2) {
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

// The same without a master: sums come low by up to some 2^-27 of themselves for each 64 of k.
template <class Tl> WW_INLINE void whole_sum(float (&sum)[Tl::R], Ring<Tl::UNITS> &ring, const SplitShared &shared, unsigned group, unsigned count) {
    using Mma = Wgmma<Tl::BN, false>;
    // Unrolled, it takes some compilers a minute.
#pragma unroll 1
    for (unsigned b = 0; b < count; b += 2) {
        unsigned slots[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned slot = slots[half] = ring.slot, at = shared.tiles + slot * Tl::BYTES;
            const unsigned long long a = tile_descriptor(at + group * 8192), b = tile_descriptor(at + Tl::BYTES_A);
            barrier_wait(shared.full + slot * 8, ring.phase);
            ring.step();
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i) Mma::add(sum, a + 2 * i, b + 2 * i);
            wgmma_commit();
        }
        wgmma_wait<1>();
        if ((threadIdx.x & 31) == 0) barrier_arrive(shared.empty + slots[0] * 8);
        wgmma_wait();
        if ((threadIdx.x & 31) == 0) barrier_arrive(shared.empty + slots[1] * 8);
    }
    wgmma_touch(sum);
}

// Adds the two warpgroups' sums over their halves of k; each keeps half of the columns.
template <int R> WW_INLINE void offer_half(const float (&master)[R], unsigned exchange, unsigned group) {
    const unsigned to = exchange + (group * (R / 2) * 128 + (threadIdx.x & 127)) * 4;
#pragma unroll
    for (int i = 0; i < R / 2; ++i) asm volatile("st.shared.f32 [%0], %1;" ::"r"(to + i * 512), "f"(group ? master[i] : master[R / 2 + i]) : "memory");
}

template <int R> WW_INLINE void take_half(float (&half)[R / 2], const float (&master)[R], unsigned exchange, unsigned group) {
    const unsigned from = exchange + ((1 - group) * (R / 2) * 128 + (threadIdx.x & 127)) * 4;
#pragma unroll
    for (int i = 0; i < R / 2; ++i) {
        float x;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from + i * 512) : "memory");
        half[i] = (group ? master[R / 2 + i] : master[i]) + x;
    }
}

template <class Tl> WW_INLINE void split_multiply(const typename Tl::Scales &scales, const SplitOut &result, const SplitShared &shared, const Split &p) {
    const SplitWalk walk(p, Tl::BM, Tl::BN);
    const unsigned blocks = split_blocks<Tl>(p), group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
    Ring<Tl::UNITS> ring;
    unsigned scales_phase = 0;
    // Where the warpgroups take turns along k: the first block of the tile that is this one's.
    unsigned next = group;
    if (Tl::ALONG_K) ring.step(2 * group);
    if (group == 1) turn_pass<Tl::ORDERED>(group);
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x, scales_phase ^= 1) {
        unsigned tm, tn;
        const unsigned batch = walk.place(tile, tm, tn);
        float master[Tl::R];
#pragma unroll
        for (int i = 0; i < Tl::R; ++i) master[i] = 0.0f;
        const SplitOut out = result.at(p, batch);
        if constexpr (Tl::ALONG_K) {
            const unsigned mine = (blocks + 1 - next) / 2, column = group * (Tl::BN / 2);
            split_sum<Tl>(master, ring, shared, group, mine);
            next = next + 2 * mine - blocks;
            // What was exchanged before has been read.
            multipliers_sync();
            offer_half(master, shared.exchange, group);
            multipliers_sync();
            float half[Tl::R / 2];
            take_half(half, master, shared.exchange, group);
            barrier_wait(shared.scales_full, scales_phase);
            split_finish(half, SplitPlace(tm * Tl::BM, tn * Tl::BN + column), SplitPlace(0, column), scales, out, p);
        } else {
            if constexpr (Tl::WHOLE)
                whole_sum<Tl>(master, ring, shared, group, blocks);
            else if constexpr (Tl::HALF)
                half_sum<Tl>(master, ring, shared, group, blocks);
            else
                split_sum<Tl>(master, ring, shared, group, blocks);
            barrier_wait(shared.scales_full, scales_phase);
            split_finish(master, SplitPlace(tm * Tl::BM + group * 64, tn * Tl::BN), SplitPlace(group * 64, 0), scales, out, p);
        }
        if ((threadIdx.x & 31) == 0) barrier_arrive(shared.scales_empty);
    }
}

template <class Tl> WW_INLINE void split_matmul(const TensorMap &map_a, const TensorMap &map_b, const SplitSource &from, const SplitOut &out, const Split &p) {
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * Tl::UNITS + 2];
    __shared__ __align__(8) typename Tl::Scales scales;
    SplitShared shared;
    shared.tiles = (shared_address(dynamic) + 1023) & ~1023u;
    shared.full = shared_address(barriers);
    shared.empty = shared.full + 8 * Tl::UNITS;
    shared.scales_full = shared.empty + 8 * Tl::UNITS;
    shared.scales_empty = shared.scales_full + 8;
    shared.exchange = shared.tiles + Tl::UNITS * Tl::BYTES;
    if (threadIdx.x <= Tl::UNITS) {
        const bool unit = threadIdx.x < Tl::UNITS;
        barrier_init(unit ? shared.full + 8 * threadIdx.x : shared.scales_full, unit ? 1 : 32);
        barrier_init(unit ? shared.empty + 8 * threadIdx.x : shared.scales_empty, unit && Tl::ALONG_K ? 4 : 8);
        barrier_init_fence();
    } else if (threadIdx.x == 256) {
        prefetch_map(&map_a);
        prefetch_map(&map_b);
    }
    __syncthreads();
    grid_wait();
    grid_release();
    if (threadIdx.x >= 256) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 256)
            SplitBringer<Tl>(&map_a, &map_b, shared, p).run(from.range_a, from.range_b, p);
        else if (threadIdx.x >= 352 && !split_unsuited(from.range_a, from.range_b, p))
            split_bring_scales<Tl>(scales, shared, from.ea, from.eb, p);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        if (split_unsuited(from.range_a, from.range_b, p)) {
            for (unsigned u = 0; u < first_units<Tl>(p); ++u) barrier_wait(shared.full + u * 8, 0);
            chain_product<ChainTile<Tl::ALONG_K ? 64 : 128>>((float *)(dynamic + (shared.tiles - shared_address(dynamic))), from.a, from.b, out, p, multipliers_sync);
        } else {
            split_multiply<Tl>(scales, out, shared, p);
        }
    }
}

#define SPLIT_MATMUL(NAME, ...)                                                                                            \
    extern "C" __global__ void __launch_bounds__(384, 1)                                                                   \
        NAME(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const int *ea, const int *eb, \
             const unsigned long long *range_a, const unsigned long long *range_b, const float *a, const float *b, const float *c, \
             const float *bias, float *d, float alpha, float beta, float p0, float p1, const __grid_constant__ Split p) {   \
        const SplitSource from{a, b, ea, eb, range_a, range_b};                                                            \
        split_matmul<SplitTile<__VA_ARGS__>>(map_a, map_b, from, SplitOut{c, bias, d, alpha, beta, p0, p1}, p);             \
    }

SPLIT_MATMUL(matmul_f32_split_64x64, 64, 64, 12, Form::THREE)
SPLIT_MATMUL(matmul_f32_split_64x128, 64, 128, 8, Form::THREE)
SPLIT_MATMUL(matmul_f32_split_128x128, 128, 128, 7, Form::ORDERED)
SPLIT_MATMUL(matmul_f32_half_128x128, 128, 128, 7, Form::HALF)
SPLIT_MATMUL(matmul_f32_half_128x256, 128, 256, 4, Form::WHOLE)
