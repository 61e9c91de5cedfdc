// A tile of a split matrix product for mma.sync: its shape, its place, and the copies of its planes to shared memory.
#pragma once
#include "mma.cuh"
#include "split.cuh"

template <int BM_, int BN_, int WM_, int WN_, bool HALF_ = false> struct MmaTile {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, BK = 32;
    static constexpr bool HALF = HALF_;
#if __CUDA_ARCH__ >= 800
    static constexpr bool ASYNC = true;
#else
    static constexpr bool ASYNC = false;
#endif
    static constexpr int WARPS_N = BN / WN, THREADS = BM / WM * WARPS_N * 32;
    // A stage holds the tiles A hi, A lo, B hi, B lo: rows of BK halves, four chunks of 16 bytes. Chunk c of row r lies
    // at c ^ (r / 2 % 4), so that eight rows of one chunk meet all banks.
    static constexpr int PLANES = HALF ? 1 : 2, ROW = BK * 2;
    static constexpr unsigned PLANE_A = BM * ROW, PLANE_B = BN * ROW, TILE_B = PLANES * PLANE_A, STAGE = PLANES * (PLANE_A + PLANE_B);
    // A thread copies chunks of rows ROW_STEP apart, a share of them beside each part of a stage, with cp.async beside
    // each of the second half. A part is 16 rows of a warp by BK.
    static constexpr int ROW_STEP = THREADS / 4, ROWS_A = BM / ROW_STEP, ROWS_B = BN / ROW_STEP, COPIES = PLANES * (ROWS_A + ROWS_B);
    static constexpr int PARTS = WM / 16, SHARES = ASYNC ? PARTS / 2 : PARTS, SHARE = (COPIES + SHARES - 1) / SHARES, COLUMNS8 = WN / 8, PAIRS = WN / 16;
    static_assert(BM % ROW_STEP == 0 && BN % ROW_STEP == 0 && ROW_STEP % 8 == 0 && PARTS % 2 == 0 && WN % 16 == 0, "tile shape");
    using Sums = float[PARTS][COLUMNS8][4];
};

WW_INLINE unsigned mma_turn(unsigned row) { return row >> 1 & 3; }

// A block's tile: found before the sums and again after them, so that no register holds it meanwhile.
template <class Tl> struct MmaPlace {
    unsigned batch, ia, ib, row, column;

    WW_INLINE explicit MmaPlace(const Split &p) {
        const SplitWalk walk(p, Tl::BM, Tl::BN);
        unsigned block;
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
        batch = walk.place(block, row, column);
        row *= Tl::BM;
        column *= Tl::BN;
        ia = p.a_index(batch);
        ib = p.b_index(batch);
    }
};

// Brings stages along k in order. Rows past the end repeat the last one: their products go nowhere. Without cp.async a
// share waits in registers until flush().
template <class Tl> struct PlaneLoader {
    // The planes hi and lo of the tile's first row, at the next stage; bytes from there to this thread's chunks.
    const char *a[2], *b[2];
    unsigned rows_a[Tl::ROWS_A], rows_b[Tl::ROWS_B], to;
    uint4 held[Tl::ASYNC ? 1 : Tl::SHARE];

    template <int COUNT> static WW_INLINE void place(const char *(&planes)[2], unsigned (&offsets)[COUNT], const unsigned short *from, unsigned matrix, unsigned rows,
                                                     unsigned first, unsigned pitch) {
        planes[0] = (const char *)(from + (2ull * matrix * rows + first) * pitch);
        planes[1] = planes[0] + 2ull * rows * pitch;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) offsets[i] = min(threadIdx.x / 4 + i * Tl::ROW_STEP, rows - 1 - first) * pitch * 2 + threadIdx.x % 4 * 16;
    }

    WW_INLINE PlaneLoader(const unsigned short *from_a, const unsigned short *from_b, const MmaPlace<Tl> &at, const Split &p) {
        const unsigned row = threadIdx.x / 4, pitch = (p.k + 63) / 64 * 64;
        place(a, rows_a, from_a, at.ia, p.m, at.row, pitch);
        place(b, rows_b, from_b, at.ib, p.n, at.column, pitch);
        to = row * Tl::ROW + (threadIdx.x % 4 ^ mma_turn(row)) * 16;
    }

    // Copy e: A hi, A lo, B hi, B lo, each by rows.
    WW_INLINE const char *source(int e) const {
        const int f = e - Tl::PLANES * Tl::ROWS_A;
        return f < 0 ? a[e / Tl::ROWS_A] + rows_a[e % Tl::ROWS_A] : b[f / Tl::ROWS_B] + rows_b[f % Tl::ROWS_B];
    }
    WW_INLINE unsigned target(int e) const {
        const int f = e - Tl::PLANES * Tl::ROWS_A;
        return to + (f < 0 ? e / Tl::ROWS_A * Tl::PLANE_A + e % Tl::ROWS_A * (Tl::ROW_STEP * Tl::ROW)
                           : Tl::TILE_B + f / Tl::ROWS_B * Tl::PLANE_B + f % Tl::ROWS_B * (Tl::ROW_STEP * Tl::ROW));
    }

    WW_INLINE void fetch(int share, unsigned stage, bool more) {
#pragma unroll
        for (int n = 0; n < Tl::SHARE; ++n) {
            const int e = share * Tl::SHARE + n;
            if (e >= Tl::COPIES) continue;
            if constexpr (Tl::ASYNC) {
                copy_async_if(stage + target(e), source(e), more);
            } else {
                if (more) held[n] = *(const uint4 *)source(e);
            }
        }
    }

    WW_INLINE void flush(int share, unsigned stage, bool more) {
        if constexpr (!Tl::ASYNC) {
#pragma unroll
            for (int n = 0; n < Tl::SHARE; ++n) {
                const int e = share * Tl::SHARE + n;
                if (more && e < Tl::COPIES) shared_store_vector(stage + target(e), held[n]);
            }
        }
    }

    WW_INLINE void next() {
#pragma unroll
        for (int plane = 0; plane < 2; ++plane) {
            a[plane] += Tl::ROW;
            b[plane] += Tl::ROW;
        }
    }

    WW_INLINE void whole(unsigned stage, bool more) {
#pragma unroll
        for (int share = 0; share < Tl::SHARES; ++share) {
            fetch(share, stage, more);
            flush(share, stage, more);
        }
        copy_commit();
        next();
    }
};
