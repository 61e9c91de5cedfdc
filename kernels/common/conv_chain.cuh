// Convolutions that do not suit the split: float32 chains over the operands themselves, by the first 256 or 128 of the threads
// of conv_split.cu that otherwise multiply planes.
#pragma once
#include "conv_split.cuh"

using ConvChain = Tile<float, 64, 128, 4, 8>;
using ConvChainSmall = Tile<float, 64, 64, 4, 8>;
// The tile for as many warpgroups.
template <int GROUPS> struct ConvChainOf { using Type = ConvChain; };
template <> struct ConvChainOf<1> { using Type = ConvChainSmall; };
template <class Tl> using ConvChainTable = TableLoader<float, Tl::BN, Tl::BK, Tl::THREADS>;

// Bytes that it takes of the block's shared memory.
template <class Tl> constexpr unsigned CONV_CHAIN_SHARED = Tl::SHARED * 4 + sizeof(typename ConvChainTable<Tl>::Table);

template <class Tl> WW_INLINE void chain_sync() { asm volatile("bar.sync 3, %0;" ::"n"(Tl::THREADS) : "memory"); }

template <class Tl, class LoadA, class LoadB>
WW_INLINE void conv_chain_sums(float (&acc)[Tl::TM][Tl::TN], float *shared, LoadA &load_a, LoadB &load_b, unsigned tiles) {
    const Place<Tl> place;
    float *const base_b = shared + Tl::STAGES * Tl::STAGE_A;
    const unsigned address_a = shared_address(shared), address_b = shared_address(base_b);
#pragma unroll
    for (int i = 0; i < Tl::TM; ++i)
#pragma unroll
        for (int j = 0; j < Tl::TN; ++j) acc[i][j] = 0.0f;
#pragma unroll 1
    for (unsigned t = 0; t <= tiles; ++t) {
        const unsigned coming = t & 1, at = coming ^ 1;
        copy_wait<0>();
        chain_sync<Tl>();
        if (t < tiles) {
            load_a.fetch(address_a + coming * Tl::STAGE_A * 4);
            load_b.fetch(address_b + coming * Tl::STAGE_B * 4);
        }
        copy_commit();
        if (t) multiply<Tl, 0, Tl::BK>(acc, shared + at * Tl::STAGE_A + place.row, base_b + at * Tl::STAGE_B + place.column);
    }
}

// The whole convolution; `shared` is the block's.
template <class Tl> WW_INLINE void conv_chain(float *shared, const float *x, const float *w, const float *bias, float *d, float p0, float p1, const Conv &p) {
    using Loader = ConvChainTable<Tl>;
    static_assert(Tl::STAGES == 2, "one tile ahead");
    typename Loader::Table &table = *(typename Loader::Table *)(shared + Tl::SHARED);
    const unsigned tiles_m = (p.group_out + Tl::BM - 1) / Tl::BM, tiles_n = (p.pixels + Tl::BN - 1) / Tl::BN;
    const unsigned terms = p.group_in * conv_taps(p), plane = p.out[0] * p.out[1] * p.out[2];
#pragma unroll 1
    for (unsigned long long at = blockIdx.x; at < (unsigned long long)tiles_m * tiles_n; at += gridDim.x) {
        const unsigned m0 = (unsigned)(at % tiles_m) * Tl::BM, column0 = (unsigned)(at / tiles_m) * Tl::BN;
        Loader load_b(table, p, 0);
        start_pixel(load_b, x, p, 0, column0);
        MatrixLoader<float, Tl::BM, Tl::BK, Tl::THREADS> load_a;
        load_a.init(w, terms, true, false, m0, p.group_out, 0, terms);
        float acc[Tl::TM][Tl::TN];
        conv_chain_sums<Tl>(acc, shared, load_a, load_b, (terms + Tl::BK - 1) / Tl::BK);
        const ForwardWhere where{column0, p.pixels, plane, (long long)p.group_out * plane};
        conv_finish<Tl>(acc, bias, d, p0, p1, p, 0, m0, plane, false, where);
        chain_sync<Tl>();
    }
}
