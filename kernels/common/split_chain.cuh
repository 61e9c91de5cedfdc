// Products that do not suit the split: float32 chains over the operands themselves, by the threads that otherwise
// multiply planes. Sync waits for all of them.
#pragma once
#include "split_store.cuh"

template <class Loader> WW_INLINE void chain_load(Loader &load, const float *x, const SplitSteps &steps, unsigned matrix, unsigned origin, unsigned limit, unsigned k) {
    const bool along_k = steps.k.get() == 1;
    load.init(x + matrix * steps.matrix.get(), along_k ? steps.row.get() : steps.k.get(), along_k, false, origin, limit, 0, k);
}

template <class Tl, class LoadA, class LoadB, class Sync>
WW_INLINE void chain_sums(float (&acc)[Tl::TM][Tl::TN], float *shared, LoadA &load_a, LoadB &load_b, unsigned k, Sync sync) {
    constexpr unsigned AHEAD = Tl::STAGES - 1;
    // Steps of k whose code stands in a row.
#if __CUDA_ARCH__ >= 900
    constexpr int RUN = Tl::BK;
#else
    constexpr int RUN = 4;
#endif
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
            sync();
        }
        if (t < steps) {
            const unsigned to_a = address_a + coming * Tl::STAGE_A * 4, to_b = address_b + coming * Tl::STAGE_B * 4;
            load_a.fetch(to_a);
            load_a.flush(to_a);
            load_b.fetch(to_b);
            load_b.flush(to_b);
            coming = coming == AHEAD ? 0 : coming + 1;
        }
        copy_commit();
        if (t < AHEAD) continue;
        const float *a = shared + at * Tl::STAGE_A + place.row, *b = base_b + at * Tl::STAGE_B + place.column;
#pragma unroll 1
        for (int k = 0; k < Tl::BK; k += RUN) multiply<Tl, 0, RUN>(acc, a + k * Tl::PITCH_A, b + k * Tl::PITCH_B);
        at = at == AHEAD ? 0 : at + 1;
    }
    sync();
}

// Bytes of shared memory that it takes.
template <class Tl> struct ChainShared {
    static constexpr unsigned SUMS = Tl::BM * (Tl::BN + 4), BYTES = 4 * (SUMS > Tl::SHARED ? SUMS : Tl::SHARED);
};

// The whole product; `shared` is the block's.
template <class Tl, class Sync>
WW_INLINE void chain_product(float *shared, const float *a, const float *b, const SplitOut &result, const Split &p, Sync sync) {
    constexpr int PITCH = Tl::BN + 4;
    const Place<Tl> place;
    const unsigned tiles_n = (p.n + Tl::BN - 1) / Tl::BN, tiles = (p.m + Tl::BM - 1) / Tl::BM * tiles_n;
#pragma unroll 1
    for (unsigned at = blockIdx.x; at < tiles * p.batch_count; at += gridDim.x) {
        const unsigned batch = at / tiles, row0 = at % tiles / tiles_n * Tl::BM, column0 = at % tiles % tiles_n * Tl::BN;
        MatrixLoader<float, Tl::BM, Tl::BK, Tl::THREADS> load_a;
        MatrixLoader<float, Tl::BN, Tl::BK, Tl::THREADS> load_b;
        chain_load(load_a, a, p.a_steps, p.a_index(batch), row0, p.m, p.k);
        chain_load(load_b, b, p.b_steps, p.b_index(batch), column0, p.n, p.k);
        float acc[Tl::TM][Tl::TN];
        chain_sums<Tl>(acc, shared, load_a, load_b, p.k, sync);
#pragma unroll
        for (int i = 0; i < Tl::TM; ++i)
#pragma unroll
            for (int j = 0; j < Tl::TN; j += Tl::VEC)
                store_vector(shared + (place.row + Place<Tl>::row_offset(i)) * PITCH + place.column + Place<Tl>::column_offset(j), acc[i] + j);
        sync();
        const SplitOut out = result.at(p, batch);
#pragma unroll 1
        for (unsigned e = threadIdx.x; e < Tl::BM * Tl::BN; e += Tl::THREADS) {
            const unsigned row = e / Tl::BN, column = e % Tl::BN;
            if (row0 + row < p.m && column0 + column < p.n) out.put(row0 + row, column0 + column, shared[row * PITCH + column], p);
        }
        sync();
    }
}
