// A tile of a product of 16-bit operands for mma.sync: its shape, the copies of its operands to shared memory, and a warp's
// fragments. An operand lies along k (k contiguous) or across it (rows contiguous): ldmatrix reads either.
#pragma once
#include "half_product.cuh"
#include "mma.cuh"

struct MmaHalf : Half {
    // Elements from one line to the next, a multiple of 8, and from one matrix to the next.
    Wide a_pitch, a_matrix, b_pitch, b_matrix;
};

enum : unsigned { MMA_ACROSS_A = 8, MMA_ACROSS_B = 16 };

// Warps of WM x 64.
template <int BM_, int BN_, int WM_, bool BF16_, bool PROMOTES_> struct MmaHalfTile {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = 64, BK = 32, THREADS = BM / WM * (BN / WN) * 32;
    static constexpr bool BF16 = BF16_, PROMOTES = PROMOTES_;
#if __CUDA_ARCH__ >= 800
    static constexpr bool ASYNC = true;
#else
    static constexpr bool ASYNC = false;
#endif
    static constexpr unsigned SIDE_A = BM * BK * 2, STAGE = (BM + BN) * BK * 2;
    static constexpr int PARTS = WM / 16;
    using Sums = float[PARTS][WN / 8][4];
};

// One side of a tile: ROWS rows by 32 of k, in chunks of 16 bytes. Along k a row of shared memory holds four chunks of a
// row, chunk c at c ^ (row / 2 % 4); across it the chunks of one k, at c ^ (k % 8): eight that are read together meet
// all banks.
template <int ROWS, int THREADS, bool ASYNC> struct HalfSide {
    static constexpr int COUNT = ROWS * 4 / THREADS, WIDE = ROWS / 8;
    static_assert(ROWS * 4 % THREADS == 0 && THREADS % WIDE == 0 && THREADS / 4 % 8 == 0 && THREADS / WIDE % 8 == 0, "tile shape");
    const char *from;
    unsigned step, offset[COUNT], to, k_first, k_step;
    uint4 held[ASYNC ? 1 : COUNT];

    WW_INLINE HalfSide(const unsigned short *operand, bool across, unsigned first, unsigned rows, const Wide &wide_pitch) {
        const unsigned at = threadIdx.x, pitch = (unsigned)wide_pitch.get() * 2;
        if (across) {
            const unsigned k = at / WIDE, chunk = at % WIDE, last = (pitch / 16 - 1) - first / 8;
            to = k * (ROWS * 2) + (chunk ^ (k & 7)) * 16;
            k_first = k, k_step = THREADS / WIDE;
            from = (const char *)(operand + first);
            step = 32 * pitch;
#pragma unroll
            for (int i = 0; i < COUNT; ++i) offset[i] = (k + i * k_step) * pitch + min(chunk, last) * 16;
        } else {
            const unsigned row = at / 4, chunk = at % 4, last = rows - 1 - first;
            to = row * 64 + (chunk ^ (row >> 1 & 3)) * 16;
            k_first = chunk * 8, k_step = 0;
            from = (const char *)operand + (unsigned long long)first * pitch;
            step = 64;
#pragma unroll
            for (int i = 0; i < COUNT; ++i) offset[i] = min(row + i * (THREADS / 4), last) * pitch + chunk * 16;
        }
    }

    // Brings the next stage, of which `left` of k are there; the rest becomes zeros.
    WW_INLINE void fetch(unsigned stage, int left) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const bool there = (int)(k_first + i * k_step) < left;
            if constexpr (ASYNC)
                copy_async_or_zeros(stage + to + i * THREADS * 16, there ? from + offset[i] : from, there);
            else
                held[i] = there ? *(const uint4 *)(from + offset[i]) : make_uint4(0, 0, 0, 0);
        }
        from += step;
    }

    WW_INLINE void flush(unsigned stage) {
        if constexpr (!ASYNC) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) shared_store_vector(stage + to + i * THREADS * 16, held[i]);
        }
    }
};

// Where a warp's lanes find the four matrices of 16 rows by 16 of k. B's come in the other order: b0 and b1 of eight
// columns, then of the next.
template <int ROWS, bool B> struct HalfFragments {
    unsigned base;
    bool across;

    WW_INLINE HalfFragments(bool across_, unsigned first) : across(across_) {
        const unsigned lane = threadIdx.x & 31, inner = lane & 7, low = lane >> 3 & 1, high = lane >> 4;
        const unsigned row = inner + (B ? high : low) * 8, chunk = B ? low : high;
        if (across) {
            const unsigned k = inner + chunk * 8;
            base = k * (ROWS * 2) + ((first / 8 + (row >> 3)) ^ inner) * 16;
        } else {
            base = (first + row) * 64 + (chunk ^ (row >> 1 & 3)) * 16;
        }
    }

    WW_INLINE void load(unsigned (&to)[4], unsigned side, int part, int step) const {
        const unsigned turn = (across ? part : step) * 32, by = across ? step * (16 * ROWS * 2) : part * (16 * 64);
        load_matrices_either(to, side + (base ^ turn) + by, across);
    }
};
