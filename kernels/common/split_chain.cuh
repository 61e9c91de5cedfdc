// Products that do not suit the split: float32 chains over the operands themselves, by the 256 threads of gemm_split.cu
// that otherwise multiply planes.
#pragma once
#include "split_store.cuh"

// 128 rows by 64 or 128 columns, with a step of k that keeps the unrolled code short.
template <int COLUMNS> using ChainTile = Tile<float, 128, COLUMNS, 8, COLUMNS / 16, COLUMNS == 64 ? 16 : 8>;

template <class Loader> WW_INLINE void chain_load(Loader &load, const float *x, const SplitSteps &steps, unsigned matrix, unsigned origin, unsigned limit, unsigned k) {
    const bool along_k = steps.k.get() == 1;
    load.init(x + matrix * steps.matrix.get(), along_k ? steps.row.get() : steps.k.get(), along_k, false, origin, limit, 0, k);
}

// Of the multiplying threads.
WW_INLINE void multipliers_sync() { asm volatile("bar.sync 3, 256;" ::: "memory"); }

template <class Tl, class LoadA, class LoadB> WW_INLINE void chain_sums(float (&acc)[Tl::TM][Tl::TN], float *shared, LoadA &load_a, LoadB &load_b, unsigned k) {
    constexpr unsigned AHEAD = Tl::STAGES - 1;
    const Place<Tl> place;
    float *const base_b = shared + Tl::STAGES * Tl::STAGE_A;
    const unsigned address_a = shared_address(shared), address_b = shared_address(base_b), steps = (k + Tl::BK - 1) / Tl::BK;
#pragma unroll
    for (int i = 0; i < Tl::TM; ++i)
#pragma unroll
        for (int j = 0; j < Tl::TN; ++j) acc[i][j] = 0.0f;
    unsigned coming = 0, at = 0;
#pragma unroll 1
    for (unsigned t = 0; t < steps + AHEAD; ++t) {
        if (t >= AHEAD) {
            copy_wait<AHEAD - 1>();
            multipliers_sync();
        }
        if (t < steps) {
            load_a.fetch(address_a + coming * Tl::STAGE_A * 4);
            load_b.fetch(address_b + coming * Tl::STAGE_B * 4);
            coming = coming == AHEAD ? 0 : coming + 1;
        }
        copy_commit();
        if (t < AHEAD) continue;
        multiply<Tl, 0, Tl::BK>(acc, shared + at * Tl::STAGE_A + place.row, base_b + at * Tl::STAGE_B + place.column);
        at = at == AHEAD ? 0 : at + 1;
    }
    multipliers_sync();
}

// The whole product; `shared` is the block's.
template <class Tl> WW_INLINE void chain_product(float *shared, const float *a, const float *b, const SplitOut &result, const Split &p) {
    static_assert(Tl::THREADS == 256, "the threads that multiply");
    constexpr int PITCH = Tl::BN + 4;
    const Place<Tl> place;
    const unsigned tiles_n = (p.n + Tl::BN - 1) / Tl::BN, tiles = (p.m + Tl::BM - 1) / Tl::BM * tiles_n;
#pragma unroll 1
    for (unsigned at = blockIdx.x; at < tiles * p.batch_count; at += gridDim.x) {
        const unsigned batch = at / tiles, row0 = at % tiles / tiles_n * Tl::BM, column0 = at % tiles % tiles_n * Tl::BN;
        MatrixLoader<float, Tl::BM, Tl::BK, 256> load_a;
        MatrixLoader<float, Tl::BN, Tl::BK, 256> load_b;
        chain_load(load_a, a, p.a_steps, p.a_index(batch), row0, p.m, p.k);
        chain_load(load_b, b, p.b_steps, p.b_index(batch), column0, p.n, p.k);
        float acc[Tl::TM][Tl::TN];
        chain_sums<Tl>(acc, shared, load_a, load_b, p.k);
#pragma unroll
        for (int i = 0; i < Tl::TM; ++i)
#pragma unroll
            for (int j = 0; j < Tl::TN; j += Tl::VEC)
                store_vector(shared + (place.row + Place<Tl>::row_offset(i)) * PITCH + place.column + Place<Tl>::column_offset(j), acc[i] + j);
        multipliers_sync();
        const SplitOut out = result.at(p, batch);
#pragma unroll 1
        for (unsigned e = threadIdx.x; e < Tl::BM * Tl::BN; e += 256) {
            const unsigned row = e / Tl::BN, column = e % Tl::BN;
            if (row0 + row < p.m && column0 + column < p.n) out.put(row0 + row, column0 + column, shared[row * PITCH + column], p);
        }
        multipliers_sync();
    }
}
