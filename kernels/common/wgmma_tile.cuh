// Matrix products of 16-bit operands on sm_90a: how tiles reach shared memory and are multiplied. 384 threads: a
// warpgroup that brings tiles, two that multiply 64 x BN each. An operand lies along k (k contiguous, a tensor map of
// boxes of 64 k by all rows of a tile) or across it (rows contiguous, boxes of 64 rows by 64 of k).
#pragma once
#include "gemm_tile.cuh"
#include "hopper.cuh"

template <int BN_, bool BF16_> struct WgmmaTile {
    static constexpr int BM = 128, BN = BN_, R = BN / 2;
    static constexpr bool BF16 = BF16_;
    // A slot holds 64 of k of both operands; all together 192 KB.
    static constexpr int SLOTS = 1536 / (BM + BN);
    static constexpr unsigned BYTES_A = BM * 128, BYTES = (BM + BN) * 128;
};

template <int SLOTS> struct WgmmaRing {
    unsigned slot = 0, phase = 0;
    WW_INLINE void step() {
        if (++slot == SLOTS) {
            slot = 0;
            phase ^= 1;
        }
    }
};

// Addresses: the slots, for each a barrier "full" and one "empty", and the room of the end of a product.
struct WgmmaShared {
    unsigned slots, full, empty, stage;
};

template <class Tl> WW_INLINE void wgmma_shared(WgmmaShared &shared, void *dynamic, void *barriers) {
    shared.slots = (shared_address(dynamic) + 1023) & ~1023u;
    shared.stage = shared.slots + Tl::SLOTS * Tl::BYTES;
    shared.full = shared_address(barriers);
    shared.empty = shared.full + 8 * Tl::SLOTS;
    if (threadIdx.x == 0) {
        for (int i = 0; i < Tl::SLOTS; ++i) {
            barrier_init(shared.full + 8 * i, 1);
            barrier_init(shared.empty + 8 * i, 8);
        }
        barrier_init_fence();
    }
    __syncthreads();
}

// Output tiles, fewer than 2^31, in the order in which blocks take them: groups of 16 tile rows, column by column.
template <class Tl, class P> struct WgmmaWalk {
    unsigned tiles_m, tiles_n, per_matrix, total;

    WW_INLINE WgmmaWalk(const P &p) {
        tiles_m = (p.m + Tl::BM - 1) / Tl::BM;
        tiles_n = (p.n + Tl::BN - 1) / Tl::BN;
        per_matrix = tiles_m * tiles_n;
        total = per_matrix * p.batch_count;
    }

    // Returns the matrix of the batch.
    WW_INLINE unsigned place(unsigned tile, unsigned &row, unsigned &column) const {
        const unsigned batch = tile / per_matrix, in = tile - batch * per_matrix;
        const unsigned group = in / (16 * tiles_n), first = group * 16, at = in - first * tiles_n;
        const unsigned rows = tiles_m - first < 16 ? tiles_m - first : 16;
        row = (first + at % rows) * Tl::BM;
        column = at / rows * Tl::BN;
        return batch;
    }
};

// ROWS of an operand by 64 of k; what lies outside the matrix arrives as zeros.
template <int ROWS> WW_INLINE void bring_tile(unsigned to, const TensorMap *map, bool across, unsigned full, unsigned row, unsigned k, unsigned matrix) {
    if (across) {
#pragma unroll
        for (int i = 0; i < ROWS / 64; ++i) copy_box(to + i * 8192, map, full, row + i * 64, k, matrix);
    } else {
        copy_box(to, map, full, k, row, matrix);
    }
}

// One thread's work. `blocks` of 64 along k; beyond k there are zeros.
template <class Tl, class P>
WW_INLINE void wgmma_bring(const TensorMap *map_a, bool across_a, const TensorMap *map_b, bool across_b, const WgmmaShared &shared, const P &p, unsigned blocks) {
    const WgmmaWalk<Tl, P> walk(p);
    WgmmaRing<Tl::SLOTS> ring;
    prefetch_map(map_a);
    prefetch_map(map_b);
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
        unsigned row, column;
        const unsigned batch = walk.place(tile, row, column), a = p.a_index(batch), b = p.b_index(batch);
#pragma unroll 1
        for (unsigned block = 0; block < blocks; ++block) {
            const unsigned to = shared.slots + ring.slot * Tl::BYTES, full = shared.full + ring.slot * 8;
            barrier_wait(shared.empty + ring.slot * 8, ring.phase ^ 1);
            barrier_expect(full, Tl::BYTES);
            bring_tile<Tl::BM>(to, map_a, across_a, full, row, block * 64, a);
            bring_tile<Tl::BN>(to + Tl::BYTES_A, map_b, across_b, full, column, block * 64, b);
            ring.step();
        }
    }
}

// Products of the slot at an address by one of the two warpgroups. FRESH starts a sum.
template <class Tl, bool ACROSS_A, bool ACROSS_B, bool FRESH = false> WW_INLINE void wgmma_slot(float (&d)[Tl::R], unsigned at, unsigned group) {
    using Mma = Wgmma<Tl::BN, Tl::BF16, ACROSS_A, ACROSS_B>;
    const unsigned at_a = at + group * 8192, at_b = at + Tl::BYTES_A;
    const unsigned long long a = ACROSS_A ? panel_descriptor(at_a) : tile_descriptor(at_a);
    const unsigned long long b = ACROSS_B ? panel_descriptor(at_b) : tile_descriptor(at_b);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned long long ai = a + i * (ACROSS_A ? 128 : 2), bi = b + i * (ACROSS_B ? 128 : 2);
        if (FRESH && i == 0)
            Mma::set(d, ai, bi);
        else
            Mma::add(d, ai, bi);
    }
}

WW_INLINE void wgmma_release(unsigned empty) {
    if ((threadIdx.x & 31) == 0) barrier_arrive(empty);
}

// d = the sum, in the tensor core from end to end; `blocks` is even. It truncates: sums of one sign come out low by up to
// some 2^-27 of themselves for each 64 of k.
template <class Tl, bool ACROSS_A, bool ACROSS_B> WW_INLINE void wgmma_sum(float (&d)[Tl::R], WgmmaRing<Tl::SLOTS> &ring, const WgmmaShared &shared, unsigned group, unsigned blocks) {
#pragma unroll
    for (int i = 0; i < Tl::R; ++i) d[i] = 0.0f;
    // Unrolled further, it takes some compilers a minute. In flight across the loop's edge, some would wait for each.
#pragma unroll 1
    for (unsigned block = 0; block < blocks; block += 2) {
        const unsigned slot0 = ring.slot;
        barrier_wait(shared.full + slot0 * 8, ring.phase);
        wgmma_fence();
        wgmma_slot<Tl, ACROSS_A, ACROSS_B>(d, shared.slots + slot0 * Tl::BYTES, group);
        wgmma_commit();
        ring.step();
        const unsigned slot1 = ring.slot;
        barrier_wait(shared.full + slot1 * 8, ring.phase);
        wgmma_fence();
        wgmma_slot<Tl, ACROSS_A, ACROSS_B>(d, shared.slots + slot1 * Tl::BYTES, group);
        wgmma_commit();
        ring.step();
        wgmma_wait<1>();
        wgmma_release(shared.empty + slot0 * 8);
        wgmma_wait();
        wgmma_release(shared.empty + slot1 * 8);
    }
    wgmma_touch(d);
}

// The same with sums of 128 added to d in registers, rounded to nearest.
template <class Tl, bool ACROSS_A, bool ACROSS_B> WW_INLINE void wgmma_sum_promoted(float (&d)[Tl::R], WgmmaRing<Tl::SLOTS> &ring, const WgmmaShared &shared, unsigned group, unsigned blocks) {
#pragma unroll
    for (int i = 0; i < Tl::R; ++i) d[i] = 0.0f;
#pragma unroll 1
    for (unsigned block = 0; block < blocks; block += 2) {
        float part[Tl::R];
        const unsigned slot0 = ring.slot;
        barrier_wait(shared.full + slot0 * 8, ring.phase);
        ring.step();
        const unsigned slot1 = ring.slot;
        barrier_wait(shared.full + slot1 * 8, ring.phase);
        ring.step();
        wgmma_fence();
        wgmma_slot<Tl, ACROSS_A, ACROSS_B, true>(part, shared.slots + slot0 * Tl::BYTES, group);
        wgmma_slot<Tl, ACROSS_A, ACROSS_B>(part, shared.slots + slot1 * Tl::BYTES, group);
        wgmma_commit();
        wgmma_wait();
        wgmma_touch(part);
        wgmma_release(shared.empty + slot0 * 8);
        wgmma_release(shared.empty + slot1 * 8);
#pragma unroll
        for (int i = 0; i < Tl::R; ++i) d[i] += part[i];
    }
}
