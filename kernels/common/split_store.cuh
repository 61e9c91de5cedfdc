// The end of a split matrix product: scaled sums to act(alpha * sum + beta * c + bias) in memory.
#pragma once
#include "activation.cuh"
#include "split.cuh"

struct SplitOut {
    const float *c, *bias;
    float *d;
    float alpha, beta, p0, p1;

    WW_INLINE SplitOut at(const Split &p, unsigned batch) const {
        SplitOut out = *this;
        out.d += batch * p.d_batch.get();
        if (c) out.c += batch * p.c_batch.get();
        return out;
    }

    // One sum.
    WW_INLINE void put(unsigned row, unsigned column, float sum, const Split &p) const {
        float v = sum * alpha;
        if (c) v = ww_fma(beta, c[row * p.c_row.get() + column * p.c_column.get()], v);
        if (bias) v += bias[row * p.bias_row.get() + column * p.bias_column.get()];
        d[row * p.d_row.get() + column] = activate(v, p.act, p0, p1);
    }
};

// Where a thread's accumulators lie among the 64 rows of a warpgroup: element i at row(i), column(i).
struct SplitPlace {
    unsigned first_row, first_column;
    WW_INLINE SplitPlace(unsigned row0, unsigned column0) {
        const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
        first_row = row0 + warp * 16 + (lane >> 2);
        first_column = column0 + (lane & 3) * 2;
    }
    // The same of one warp's 16 rows.
    static WW_INLINE SplitPlace of_warp(unsigned row0, unsigned column0) {
        SplitPlace at(row0, column0);
        at.first_row = row0 + ((threadIdx.x & 31) >> 2);
        return at;
    }
    WW_INLINE unsigned row(int i) const { return first_row + (i >> 1 & 1) * 8; }
    WW_INLINE unsigned column(int i) const { return first_column + (i >> 2) * 8 + (i & 1); }
};

// Exponents of a tile's rows and columns in shared memory, zeros beyond the matrix.
template <int BM, int BN> struct SplitScales {
    // far: whether some lie so far out that a sum of two needs care.
    int rows[BM], columns[BN], far;
};

WW_INLINE bool split_far(int e) { return e > 60 || e < -60; }

// v *= 2^(ea + eb); `at` within the tile.
template <int PIECE, class Scales> WW_INLINE void split_scale(float (&v)[PIECE], const SplitPlace &at, const Scales &scales) {
    const int row[2] = {scales.rows[at.row(0)], scales.rows[at.row(2)]};
    int2 column[PIECE / 4];
#pragma unroll
    for (int j = 0; j < PIECE / 4; ++j) column[j] = *(const int2 *)(scales.columns + at.first_column + j * 8);
    if (scales.far) {
#pragma unroll
        for (int i = 0; i < PIECE; ++i) v[i] = scale_clamped(v[i], row[i >> 1 & 1] + (i & 1 ? column[i >> 2].y : column[i >> 2].x));
    } else {
        const float factor[2] = {power_of_two(row[0]), power_of_two(row[1])};
#pragma unroll
        for (int i = 0; i < PIECE; ++i) v[i] = v[i] * factor[i >> 1 & 1] * power_of_two(i & 1 ? column[i >> 2].y : column[i >> 2].x);
    }
}

// v += factor * from[row, column], within the matrix.
template <int PIECE> WW_INLINE void split_add(float (&v)[PIECE], const SplitPlace &at, const float *from, long long row, long long column, float factor, const Split &p) {
    const int left = (int)(p.n - at.first_column);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (at.row(half * 2) >= p.m) continue;
        const float *x = from + at.row(half * 2) * row + at.first_column * column;
#pragma unroll
        for (int j = 0; j < PIECE / 4; ++j, x += 8 * column) {
            if (left > j * 8) v[j * 4 + half * 2] = ww_fma(factor, *x, v[j * 4 + half * 2]);
            if (left > j * 8 + 1) v[j * 4 + half * 2 + 1] = ww_fma(factor, x[column], v[j * 4 + half * 2 + 1]);
        }
    }
}

template <int PIECE> WW_INLINE void split_store(float (&v)[PIECE], const SplitPlace &at, const SplitOut &out, const Split &p) {
#pragma unroll
    for (int i = 0; i < PIECE; ++i) v[i] *= out.alpha;
#pragma unroll 1
    for (int bias = 0; bias < 2; ++bias) {
        const float *from = bias ? out.bias : out.c;
        if (from) split_add(v, at, from, bias ? p.bias_row.get() : p.c_row.get(), bias ? p.bias_column.get() : p.c_column.get(), bias ? 1.0f : out.beta, p);
    }
    activate_short(v, p.act, out.p0, out.p1);
    const int left = (int)(p.n - at.first_column);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (at.row(half * 2) >= p.m) continue;
        float *to = out.d + at.row(half * 2) * p.d_row.get() + at.first_column;
        if (p.flags & SPLIT_VECTOR_D) {
#pragma unroll
            for (int j = 0; j < PIECE / 4; ++j)
                if (left > j * 8) *(float2 *)(to + j * 8) = make_float2(v[j * 4 + half * 2], v[j * 4 + half * 2 + 1]);
        } else {
#pragma unroll
            for (int j = 0; j < PIECE / 4; ++j) {
                if (left > j * 8) to[j * 8] = v[j * 4 + half * 2];
                if (left > j * 8 + 1) to[j * 8 + 1] = v[j * 4 + half * 2 + 1];
            }
        }
    }
    if (p.act < ACT_SIGMOID) return;
#pragma unroll 1
    for (int i = 0; i < PIECE; ++i) {
        const unsigned r = at.row(i), q = at.column(i);
        if (r < p.m && q < p.n) {
            float *to = out.d + r * p.d_row.get() + q;
            *to = activate(*to, p.act, out.p0, out.p1);
        }
    }
}

// R accumulators of a thread, in pieces, since the code of a piece is long. inner: their place within the tile.
template <int R, class Scales> WW_INLINE void split_finish(float (&v)[R], SplitPlace at, SplitPlace inner, const Scales &scales, const SplitOut &out, const Split &p) {
    constexpr int PIECE = R < 32 ? R : 32;
    static_assert(R % PIECE == 0, "whole pieces");
#pragma unroll 1
    for (int done = 0; done < R; done += PIECE) {
        float piece[PIECE];
#pragma unroll
        for (int i = 0; i < PIECE; ++i) piece[i] = v[i];
#pragma unroll
        for (int i = PIECE; i < R; ++i) v[i - PIECE] = v[i];
        split_scale(piece, inner, scales);
        split_store(piece, at, out, p);
        at.first_column += 2 * PIECE;
        inner.first_column += 2 * PIECE;
    }
}
