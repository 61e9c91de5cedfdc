// What the split matrix products share: float32 operands as scaled halves, and when that is not enough.
//
// A row of A (a column of B) is x = v * 2^e with its largest |v| in [2^14, 2^15); v is kept as two float16 planes, hi =
// half(v) and lo = half((v - hi) * 2^11). e and the planes come from split.cu. A row that holds Inf or NaN has e =
// SPLIT_SPECIAL and planes that nothing reads.
//
// A value below 2^-30 of its row's largest ("tiny") may have lost digits. That is harmless where every output also has
// a large product, which is certain if among the first SPLIT_WINDOW values of k those that are not large (2^-8 of the
// largest) are together fewer than the window in any row and any column. Otherwise the matrices are "wide" and take the
// float32 chains of split_chain.cuh, which read the operands themselves.
#pragma once
#include "gemm_tile.cuh"

constexpr int SPLIT_SPECIAL = 1 << 20, SPLIT_BIAS = 1 << 16, SPLIT_WINDOW = 128;
// An all-zero row's: low enough never to look like an overflow, near enough for the short scaling.
constexpr int SPLIT_ZERO = -56;
constexpr float SPLIT_LOW = 2048.0f;

// An operand's range: words that are only raised, each tagged with the epoch of the call that wrote it, so that they
// need no clearing between calls. A stale word of the same epoch costs time, never digits.
struct Range {
    enum : int { EXPONENT, TINY, DEFECT };

    static WW_INLINE void raise(unsigned long long *words, int which, unsigned epoch, unsigned value) {
        atomicMax(words + which, (unsigned long long)epoch << 32 | value);
    }

    static WW_INLINE unsigned read(const unsigned long long *words, int which, unsigned epoch) {
        const unsigned long long word = words[which];
        return (unsigned)(word >> 32) == epoch ? (unsigned)word : 0u;
    }
};

// 2^n for n in -126..127.
WW_INLINE float power_of_two(int n) { return __int_as_float((n + 127) << 23); }

// v * 2^n, rounded once where the result is normal; n within twice the range of power_of_two.
WW_INLINE float scale_by(float v, int n) {
    const int half = n >> 1;
    return __fmul_rn(__fmul_rn(v, power_of_two(half)), power_of_two(n - half));
}

WW_INLINE float scale_clamped(float v, int n) {
    n = n < -252 ? -252 : n > 252 ? 252 : n;
    return scale_by(v, n);
}

// e for a row whose largest magnitude has these bits.
WW_INLINE int split_exponent(unsigned largest) {
    if (largest >= 0x7f800000u) return SPLIT_SPECIAL;
    if (largest == 0) return SPLIT_ZERO;
    const int top = largest >= 0x00800000u ? (int)(largest >> 23) - 127 : 31 - __clz((int)largest) - 149;
    return top - 14;
}

// Elements from one row of A (column of B), one k and one matrix to the next.
struct SplitSteps {
    Wide row, k, matrix;
};

struct Split {
    unsigned m, n, k, batch_count, act, flags, epoch_a, epoch_b;
    // The operand's matrix of a batch index: index / div % mod.
    unsigned a_div, a_mod, b_div, b_mod;
    Wide d_row, d_batch, c_row, c_column, c_batch, bias_row, bias_column;
    // The operands themselves, in elements.
    SplitSteps a_steps, b_steps;

    WW_INLINE unsigned a_index(unsigned batch) const { return batch / a_div % a_mod; }
    WW_INLINE unsigned b_index(unsigned batch) const { return batch / b_div % b_mod; }
};

enum : unsigned { SPLIT_VECTOR_D = 1 };

WW_INLINE bool split_wide(const unsigned long long *range_a, const unsigned long long *range_b, const Split &p) {
    const unsigned tiny = Range::read(range_a, Range::TINY, p.epoch_a) | Range::read(range_b, Range::TINY, p.epoch_b);
    const unsigned defect = Range::read(range_a, Range::DEFECT, p.epoch_a) + Range::read(range_b, Range::DEFECT, p.epoch_b);
    const unsigned window = p.k < SPLIT_WINDOW ? p.k : SPLIT_WINDOW;
    return (tiny != 0) & (defect >= window);
}

// The sum of exponents from which a partial sum might leave the range of float32.
WW_INLINE int split_limit(const Split &p) { return 97 - (32 - __clz((int)(p.k - 1))); }

WW_INLINE bool split_special(const unsigned long long *range_a, const unsigned long long *range_b, const Split &p) {
    const int a = (int)Range::read(range_a, Range::EXPONENT, p.epoch_a) - SPLIT_BIAS;
    const int b = (int)Range::read(range_b, Range::EXPONENT, p.epoch_b) - SPLIT_BIAS;
    return a + b > split_limit(p);
}

// Whether the product takes float32 chains.
WW_INLINE bool split_unsuited(const unsigned long long *range_a, const unsigned long long *range_b, const Split &p) {
    return split_wide(range_a, range_b, p) | split_special(range_a, range_b, p);
}

// The operands as they are, and what split.cu found of them.
struct SplitSource {
    const float *a, *b;
    const int *ea, *eb;
    const unsigned long long *range_a, *range_b;
};

// Output tiles, fewer than 2^31, in the order in which blocks take them: groups of eight tile rows, column by column.
struct SplitWalk {
    unsigned tiles_m, tiles_n, per_matrix;
    unsigned total;

    WW_INLINE SplitWalk(const Split &p, unsigned bm, unsigned bn) {
        tiles_m = (p.m + bm - 1) / bm;
        tiles_n = (p.n + bn - 1) / bn;
        per_matrix = tiles_m * tiles_n;
        total = per_matrix * p.batch_count;
    }

    WW_INLINE unsigned place(unsigned tile, unsigned &tm, unsigned &tn) const {
        const unsigned batch = tile / per_matrix;
        raster(tile - batch * per_matrix, tiles_m, tiles_n, tm, tn);
        return batch;
    }
};
