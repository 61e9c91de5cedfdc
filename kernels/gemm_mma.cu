// levels: sm_75 sm_80
// Matrix products d = act(alpha * a b + beta * c + bias) of float32 on the tensor cores by mma.sync, batched, from the
// planes that split.cu makes (common/split.cuh): hi hi is summed over 32 of k by the tensor core, which truncates, and
// added to a float32 master in registers; the cross sums hi lo + lo hi are 2^-11 of it and stay in the tensor core. The
// _half forms multiply the hi planes alone (22 bits less: 2^-11 a product). Operands that do not suit this are
// multiplied by float32 chains instead (common/split_chain.cuh).
// One tile of BM x BN a block: grid.x = tiles * batch, THREADS of the tile, dynamic shared memory of 3 or 4 stages of STAGE
// bytes, 2 at the sm_75 level, and at least 17408.
// a, b: planes of p.m and p.n rows, (p.k + 63) / 64 * 64 halves long, fewer than 2^23. k >= 1; c must not be d.
#include "common/mma_tile.cuh"
#include "common/split_chain.cuh"

// A warp's fragments: of B both steps of 16 along k, of A both steps of this part and, with cp.async, of the next one.
template <class Tl> struct MmaWarp {
    unsigned row_a, row_b;
    unsigned ah[Tl::ASYNC ? 2 : 1][2][4], al[Tl::ASYNC ? 2 : 1][2][4], bh[2][Tl::PAIRS][4], bl[2][Tl::PAIRS][4];

    WW_INLINE MmaWarp(unsigned first_row, unsigned first_column) {
        const unsigned lane = threadIdx.x & 31, ra = lane & 15, rb = (lane & 7) + (lane >> 4) * 8;
        row_a = (first_row + ra) * Tl::ROW + ((lane >> 4) ^ mma_turn(ra)) * 16;
        row_b = Tl::TILE_B + (first_column + rb) * Tl::ROW + ((lane >> 3 & 1) ^ mma_turn(rb)) * 16;
    }

    WW_INLINE void load_a(unsigned stage, int part, int to) {
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            const unsigned from = stage + (row_a ^ step * 32) + part * 16 * Tl::ROW;
            if (!Tl::HALF) load_matrices(al[to][step], from + Tl::PLANE_A);
            load_matrices(ah[to][step], from);
        }
    }

    WW_INLINE void load_b(unsigned stage, int step) {
        const unsigned from = stage + (row_b ^ step * 32);
#pragma unroll
        for (int pair = 0; pair < Tl::PAIRS; ++pair) load_matrices(bh[step][pair], from + pair * 16 * Tl::ROW);
        if (!Tl::HALF) {
#pragma unroll
            for (int pair = 0; pair < Tl::PAIRS; ++pair) load_matrices(bl[step][pair], from + Tl::PLANE_B + pair * 16 * Tl::ROW);
        }
    }

    // One step of a part; high is set by the first.
    WW_INLINE void multiply(float (&high)[Tl::COLUMNS8][4], float (&cross)[Tl::COLUMNS8][4], int at, int step) const {
        if (!Tl::HALF) {
#pragma unroll
            for (int j = 0; j < Tl::COLUMNS8; ++j) mma_add(cross[j], al[at][step], &bh[step][j / 2][j % 2 * 2]);
        }
#pragma unroll
        for (int j = 0; j < Tl::COLUMNS8; ++j) {
            if (step == 0)
                mma_set(high[j], ah[at][step], &bh[step][j / 2][j % 2 * 2]);
            else
                mma_add(high[j], ah[at][step], &bh[step][j / 2][j % 2 * 2]);
        }
        if (!Tl::HALF) {
#pragma unroll
            for (int j = 0; j < Tl::COLUMNS8; ++j) mma_add(cross[j], ah[at][step], &bl[step][j / 2][j % 2 * 2]);
        }
    }

    WW_INLINE void multiply_part(typename Tl::Sums &master, typename Tl::Sums &cross, int part, int at, unsigned next) {
        float high[Tl::COLUMNS8][4];
        multiply(high, cross[part], at, 0);
        if (Tl::ASYNC && part + 1 == Tl::PARTS) load_b(next, 0);
        multiply(high, cross[part], at, 1);
#pragma unroll
        for (int j = 0; j < Tl::COLUMNS8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) master[part][j][i] += high[j][i];
    }

    // The stage `now`, whose first fragments are loaded, while the loader brings a stage to `to` if there are more; then
    // loads the first fragments of `next`. `pending` of the stages on their way may still be.
    WW_INLINE void multiply_stage(typename Tl::Sums &master, typename Tl::Sums &cross, unsigned now, unsigned next, PlaneLoader<Tl> &loader, unsigned to, bool more, unsigned pending) {
#pragma unroll
        for (int part = 0; part < Tl::PARTS; ++part) {
            if (part == Tl::SHARES) {
                copy_wait_for(pending);
                // Now the next stage is there for all, and the one before this is free.
                __syncthreads();
            }
            if (part == 0) load_b(now, 1);
            load_a(part + 1 < Tl::PARTS ? now : next, (part + 1) % Tl::PARTS, (part + 1) % 2);
            if (part >= Tl::SHARES) loader.fetch(part - Tl::SHARES, to, more);
            multiply_part(master, cross, part, part % 2, next);
        }
        copy_commit();
        loader.next();
    }

    // The same without cp.async: two stages, and nothing is loaded ahead.
    WW_INLINE void multiply_stage_plain(typename Tl::Sums &master, typename Tl::Sums &cross, unsigned now, PlaneLoader<Tl> &loader, unsigned to, bool more) {
        __syncthreads();
        load_b(now, 0);
        load_b(now, 1);
#pragma unroll
        for (int part = 0; part < Tl::PARTS; ++part) {
            load_a(now, part, 0);
            loader.fetch(part, to, more);
            multiply_part(master, cross, part, 0, now);
            loader.flush(part, to, more);
        }
        loader.next();
    }
};

template <class Tl> WW_INLINE void mma_fold(typename Tl::Sums &master, typename Tl::Sums &cross) {
#pragma unroll
    for (int part = 0; part < Tl::PARTS; ++part)
#pragma unroll
        for (int j = 0; j < Tl::COLUMNS8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                master[part][j][i] = ww_fma(cross[part][j][i], 1.0f / SPLIT_LOW, master[part][j][i]);
                cross[part][j][i] = 0.0f;
            }
}

template <class Tl> WW_INLINE void mma_sum(typename Tl::Sums &master, MmaWarp<Tl> &warp, PlaneLoader<Tl> &loader, unsigned shared, unsigned stages) {
    const unsigned held = dynamic_shared() / Tl::STAGE, end = shared + held * Tl::STAGE;
    typename Tl::Sums cross;
#pragma unroll
    for (int part = 0; part < Tl::PARTS; ++part)
#pragma unroll
        for (int j = 0; j < Tl::COLUMNS8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) master[part][j][i] = cross[part][j][i] = 0.0f;
#pragma unroll 1
    for (unsigned s = 0; s < held - 1; ++s) loader.whole(shared + s * Tl::STAGE, s < stages);
    if constexpr (Tl::ASYNC) {
        copy_wait_for(held - 2);
        __syncthreads();
        warp.load_a(shared, 0, 0);
        warp.load_b(shared, 0);
    }
    unsigned now = shared, to = end - Tl::STAGE;
    for (unsigned s = 0; s < stages; ++s) {
        const unsigned after = now + Tl::STAGE == end ? shared : now + Tl::STAGE;
        const bool more = s + held - 1 < stages;
        if constexpr (Tl::ASYNC)
            warp.multiply_stage(master, cross, now, s + 1 < stages ? after : now, loader, to, more, held - 3);
        else
            warp.multiply_stage_plain(master, cross, now, loader, to, more);
        // Truncation grows with the length of a sum: at 8192 it is still 2^-26 of the result here.
        if (!Tl::HALF && s % (8192 / Tl::BK) == 8192 / Tl::BK - 1) mma_fold<Tl>(master, cross);
        now = after;
        to = to + Tl::STAGE == end ? shared : to + Tl::STAGE;
    }
    if (!Tl::HALF) mma_fold<Tl>(master, cross);
}

// The exponents of a tile's rows and columns, by all threads of the block.
template <class Tl> WW_INLINE void mma_scales(SplitScales<Tl::BM, Tl::BN> &scales, const MmaPlace<Tl> &place, const SplitSource &from, const Split &p) {
    const int *a = from.ea + (long long)place.ia * p.m, *b = from.eb + (long long)place.ib * p.n;
    if (threadIdx.x == 0) scales.far = 0;
    __syncthreads();
    bool far = false;
    for (unsigned i = threadIdx.x; i < Tl::BM + Tl::BN; i += Tl::THREADS) {
        const bool row = i < Tl::BM;
        const unsigned at = row ? place.row + i : place.column + i - Tl::BM;
        const int e = at < (row ? p.m : p.n) ? (row ? a : b)[at] : 0;
        (row ? scales.rows[i] : scales.columns[i - Tl::BM]) = e;
        far |= split_far(e);
    }
    if (far) atomicOr(&scales.far, 1);
    __syncthreads();
}

template <class Tl> WW_INLINE void mma_matmul(const unsigned short *planes_a, const unsigned short *planes_b, const SplitSource &from, const SplitOut &out, const Split &p) {
    extern __shared__ __align__(128) unsigned char dynamic[];
    if (split_unsuited(from.range_a, from.range_b, p)) {
        using Chain = Tile<float, Tl::THREADS / 2, 64, 8, 4>;
        static_assert(ChainShared<Chain>::BYTES <= (2 * Tl::STAGE < 17408 ? 17408 : 2 * Tl::STAGE), "shared memory");
        chain_product<Chain>((float *)dynamic, from.a, from.b, out, p, [] { __syncthreads(); });
        return;
    }
    const unsigned index = threadIdx.x >> 5, first_row = index / Tl::WARPS_N * Tl::WM, first_column = index % Tl::WARPS_N * Tl::WN;
    PlaneLoader<Tl> loader(planes_a, planes_b, MmaPlace<Tl>(p), p);
    MmaWarp<Tl> warp(first_row, first_column);
    typename Tl::Sums master;
    mma_sum<Tl>(master, warp, loader, shared_address(dynamic), (p.k + Tl::BK - 1) / Tl::BK);
    const MmaPlace<Tl> place(p);
    // The stages have been read.
    __syncthreads();
    SplitScales<Tl::BM, Tl::BN> &scales = *(SplitScales<Tl::BM, Tl::BN> *)dynamic;
    mma_scales(scales, place, from, p);
    // One copy of the code for all rows: the accumulators move up.
#pragma unroll 1
    for (int part = 0; part < Tl::PARTS; ++part) {
        float v[Tl::COLUMNS8 * 4];
#pragma unroll
        for (int i = 0; i < Tl::COLUMNS8 * 4; ++i) {
            v[i] = master[0][i / 4][i % 4];
#pragma unroll
            for (int up = 1; up < Tl::PARTS; ++up) master[up - 1][i / 4][i % 4] = master[up][i / 4][i % 4];
        }
        split_scale(v, SplitPlace::of_warp(first_row + part * 16, first_column), scales);
        split_store(v, SplitPlace::of_warp(place.row + first_row + part * 16, place.column + first_column), out.at(p, place.batch), p);
    }
}

// Turing's shared memory holds two.
#if __CUDA_ARCH__ >= 800
#define MMA_BLOCKS(BLOCKS) BLOCKS
#else
#define MMA_BLOCKS(BLOCKS) (BLOCKS < 2 ? BLOCKS : 2)
#endif

#define MMA_MATMUL(NAME, BLOCKS, ...)                                                                                      \
    extern "C" __global__ void __launch_bounds__(MmaTile<__VA_ARGS__>::THREADS, MMA_BLOCKS(BLOCKS))                        \
        NAME(const unsigned short *planes_a, const unsigned short *planes_b, const int *ea, const int *eb,                 \
             const unsigned long long *range_a, const unsigned long long *range_b, const float *a, const float *b, const float *c, \
             const float *bias, float *d, float alpha, float beta, float p0, float p1, const __grid_constant__ Split p) {  \
        const SplitSource from{a, b, ea, eb, range_a, range_b};                                                            \
        mma_matmul<MmaTile<__VA_ARGS__>>(planes_a, planes_b, from, SplitOut{c, bias, d, alpha, beta, p0, p1}, p);          \
    }

MMA_MATMUL(matmul_f32_mma_128x128, 1, 128, 128, 64, 32)
MMA_MATMUL(matmul_f32_mma_64x64, 3, 64, 64, 32, 32)
MMA_MATMUL(matmul_f32_mma_half_256x128, 1, 256, 128, 64, 64, true)
MMA_MATMUL(matmul_f32_mma_half_64x64, 4, 64, 64, 32, 32, true)
// Where shared memory is small others hold as many.
#if __CUDA_ARCH__ >= 800
MMA_MATMUL(matmul_f32_mma_64x128, 2, 64, 128, 64, 32)
MMA_MATMUL(matmul_f32_mma_half_64x128, 3, 64, 128, 32, 64, true)
#endif
