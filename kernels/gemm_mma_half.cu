// levels: sm_75 sm_80
// Matrix products d = act(alpha * a b + beta * c + bias) of float16, and from sm_80 on of bfloat16, on the tensor cores by
// mma.sync, batched, sums in float32, one rounding; operands as they lie in memory.
// One tile of BM x BN a block: grid.x = tiles * batch, THREADS of the tile, dynamic shared memory of 3 or 4 stages of STAGE
// bytes, 2 at the sm_75 level, and at least 4096 a warp. Lines of a and b begin at multiples of 16 bytes, fewer than 2^23
// elements apart. k >= 1; d is [batch][m][n]; c must not be d.
// WGMMA_PROMOTE, which only the 64x128 form knows, keeps the tensor core's sums to 128 terms.
// mma_half_pad: rows of such elements copied to rows of `pitch`, a multiple of 8, and zeros after them; a warp a row, 256
// threads.
#include "common/mma_half.cuh"

template <class Tl> struct HalfWarp {
    HalfFragments<Tl::BM, false> places_a;
    HalfFragments<Tl::BN, true> places_b;
    unsigned a[Tl::ASYNC ? 2 : 1][Tl::PARTS][4], b[Tl::ASYNC ? 2 : 1][Tl::WN / 16][4];

    WW_INLINE HalfWarp(unsigned flags, unsigned row, unsigned column) : places_a(flags & MMA_ACROSS_A, row), places_b(flags & MMA_ACROSS_B, column) {}

    WW_INLINE void load(unsigned stage, int step, int to) {
#pragma unroll
        for (int part = 0; part < Tl::PARTS; ++part) places_a.load(a[to][part], stage, part, step);
#pragma unroll
        for (int pair = 0; pair < Tl::WN / 16; ++pair) places_b.load(b[to][pair], stage + Tl::SIDE_A, pair, step);
    }

    WW_INLINE void multiply(typename Tl::Sums &sums, int at) const {
#pragma unroll
        for (int part = 0; part < Tl::PARTS; ++part)
#pragma unroll
            for (int j = 0; j < Tl::WN / 8; ++j) {
#if __CUDA_ARCH__ >= 800
                if (Tl::BF16) {
                    mma_step_bfloat(sums[part][j], a[at][part], &b[at][j / 2][j % 2 * 2], sums[part][j]);
                    continue;
                }
#endif
                mma_add(sums[part][j], a[at][part], &b[at][j / 2][j % 2 * 2]);
            }
    }
};

template <class Tl> struct HalfLoader {
    HalfSide<Tl::BM, Tl::THREADS, Tl::ASYNC> a;
    HalfSide<Tl::BN, Tl::THREADS, Tl::ASYNC> b;
    int left;

    WW_INLINE void fetch_a(unsigned stage) { a.fetch(stage, left); }
    WW_INLINE void fetch_b(unsigned stage) {
        b.fetch(stage + Tl::SIDE_A, left);
        copy_commit();
        left -= Tl::BK;
    }
    WW_INLINE void flush_a(unsigned stage) { a.flush(stage); }
    WW_INLINE void flush_b(unsigned stage) { b.flush(stage + Tl::SIDE_A); }
    WW_INLINE void whole(unsigned stage) {
        fetch_a(stage);
        flush_a(stage);
        fetch_b(stage);
        flush_b(stage);
    }
};

template <class Tl> WW_INLINE void half_clear(typename Tl::Sums &sums) {
#pragma unroll
    for (int part = 0; part < Tl::PARTS; ++part)
#pragma unroll
        for (int j = 0; j < Tl::WN / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[part][j][i] = 0.0f;
}

template <class Tl> WW_INLINE void half_promote(typename Tl::Sums &master, typename Tl::Sums &sums) {
#pragma unroll
    for (int part = 0; part < Tl::PARTS; ++part)
#pragma unroll
        for (int j = 0; j < Tl::WN / 8; ++j)
#pragma unroll
            for (int i = 0; i < 4; ++i) master[part][j][i] += sums[part][j][i];
    half_clear<Tl>(sums);
}

template <class Tl> WW_INLINE void half_sum(typename Tl::Sums &sums, HalfWarp<Tl> &warp, HalfLoader<Tl> &loader, unsigned shared, unsigned stages, bool promote) {
    const unsigned held = dynamic_shared() / Tl::STAGE, end = shared + held * Tl::STAGE;
    typename Tl::Sums master;
    half_clear<Tl>(sums);
    if (Tl::PROMOTES) half_clear<Tl>(master);
#pragma unroll 1
    for (unsigned s = 0; s < held - 1; ++s) loader.whole(shared + s * Tl::STAGE);
    if constexpr (Tl::ASYNC) {
        copy_wait_for(held - 2);
        __syncthreads();
        warp.load(shared, 0, 0);
    }
    unsigned now = shared, to = end - Tl::STAGE;
#pragma unroll 1
    for (unsigned s = 0; s < stages; ++s) {
        const unsigned after = now + Tl::STAGE == end ? shared : now + Tl::STAGE;
        if constexpr (Tl::ASYNC) {
            warp.load(now, 1, 1);
            loader.fetch_a(to);
            loader.fetch_b(to);
            warp.multiply(sums, 0);
            copy_wait_for(held - 2);
            // Now the next stage is there for all, and this one is free.
            __syncthreads();
            warp.load(after, 0, 0);
            warp.multiply(sums, 1);
        } else {
            __syncthreads();
            warp.load(now, 0, 0);
            loader.fetch_a(after);
            warp.multiply(sums, 0);
            loader.flush_a(after);
            warp.load(now, 1, 0);
            loader.fetch_b(after);
            warp.multiply(sums, 0);
            loader.flush_b(after);
        }
        if (Tl::PROMOTES && promote && s % 4 == 3) half_promote<Tl>(master, sums);
        now = after;
        to = to + Tl::STAGE == end ? shared : to + Tl::STAGE;
    }
    if (Tl::PROMOTES) {
        half_promote<Tl>(master, sums);
#pragma unroll
        for (int part = 0; part < Tl::PARTS; ++part)
#pragma unroll
            for (int j = 0; j < Tl::WN / 8; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i) sums[part][j][i] = master[part][j][i];
    }
}

// A block's tile: found before the sums and again after them, so that no register holds it meanwhile.
template <class Tl> struct HalfPlace {
    unsigned batch, row, column;
    WW_INLINE explicit HalfPlace(const MmaHalf &p) {
        const unsigned tiles_m = (p.m + Tl::BM - 1) / Tl::BM, tiles_n = (p.n + Tl::BN - 1) / Tl::BN;
        unsigned block;
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
        batch = block / (tiles_m * tiles_n);
        raster(block - batch * (tiles_m * tiles_n), tiles_m, tiles_n, row, column);
        row *= Tl::BM;
        column *= Tl::BN;
    }
};

template <class Tl, class T>
WW_INLINE void mma_half(const unsigned short *a, const unsigned short *b, const WgmmaOut<T> &out, const MmaHalf &p) {
    extern __shared__ __align__(128) unsigned char dynamic[];
    const unsigned index = threadIdx.x >> 5, first_row = index / (Tl::BN / Tl::WN) * Tl::WM, first_column = index % (Tl::BN / Tl::WN) * Tl::WN;
    typename Tl::Sums sums;
    {
        const HalfPlace<Tl> place(p);
        HalfLoader<Tl> loader{{a + p.a_index(place.batch) * p.a_matrix.get(), (p.flags & MMA_ACROSS_A) != 0, place.row, p.m, p.a_pitch},
                              {b + p.b_index(place.batch) * p.b_matrix.get(), (p.flags & MMA_ACROSS_B) != 0, place.column, p.n, p.b_pitch},
                              (int)p.k};
        HalfWarp<Tl> warp(p.flags, first_row, first_column);
        half_sum<Tl>(sums, warp, loader, shared_address(dynamic), (p.k + Tl::BK - 1) / Tl::BK, p.flags & WGMMA_PROMOTE);
    }
    // The stages have been read.
    __syncthreads();
    const HalfPlace<Tl> place(p);
    const unsigned stage = shared_address(dynamic) + index * WGMMA_STAGE, column = place.column + first_column;
    const WgmmaOut<T> here = half_out(out, p, place.batch);
    const bool plain = is_plain(out, p);
    // One copy of the code for all rows: the accumulators move up.
#pragma unroll 1
    for (unsigned part = 0; part < Tl::PARTS; ++part) {
        float v[Tl::WN / 2];
#pragma unroll
        for (int i = 0; i < Tl::WN / 2; ++i) {
            v[i] = sums[0][i / 4][i % 4];
#pragma unroll
            for (int up = 1; up < Tl::PARTS; ++up) sums[up - 1][i / 4][i % 4] = sums[up][i / 4][i % 4];
        }
        const unsigned row = place.row + first_row + part * 16;
        if (plain)
            wgmma_store_plain(v, stage, row, column, here, p);
        else
            wgmma_store(v, stage, row, column, here, p, Unscaled());
    }
}

#define MMA_HALF(NAME, T, BLOCKS, ...)                                                                                     \
    extern "C" __global__ void __launch_bounds__(MmaHalfTile<__VA_ARGS__>::THREADS, BLOCKS)                                \
        NAME(const unsigned short *a, const unsigned short *b, const T *c, const T *bias, void *d, float alpha, float beta, float p0, \
             float p1, const __grid_constant__ MmaHalf p) {                                                                \
        mma_half<MmaHalfTile<__VA_ARGS__>>(a, b, WgmmaOut<T>{c, bias, d, alpha, beta, p0, p1}, p);                         \
    }

#define MMA_HALVES(TYPE, T, BF16)                                     \
    MMA_HALF(matmul_##TYPE##_mma_256x128, T, 1, 256, 128, 64, BF16, false) \
    MMA_HALF(matmul_##TYPE##_mma_64x128, T, 2, 64, 128, 32, BF16, true)

MMA_HALVES(f16, WwHalf, false)
#if __CUDA_ARCH__ >= 800
MMA_HALF(matmul_f16_mma_64x64, WwHalf, 4, 64, 64, 32, false, false)
MMA_HALVES(bf16, WwBfloat, true)
MMA_HALF(matmul_bf16_mma_64x64, WwBfloat, 4, 64, 64, 32, true, false)
#endif

extern "C" __global__ void __launch_bounds__(256) mma_half_pad(const unsigned short *from, unsigned short *to, unsigned rows, unsigned columns, unsigned pitch) {
    const unsigned row = blockIdx.x * 8 + (threadIdx.x >> 5);
    if (row >= rows) return;
    from += (unsigned long long)row * columns;
    to += (unsigned long long)row * pitch;
    for (unsigned at = threadIdx.x & 31; at < pitch; at += 32) to[at] = at < columns ? from[at] : (unsigned short)0;
}
