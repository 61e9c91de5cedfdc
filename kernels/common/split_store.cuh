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
};

// A warpgroup's accumulators: 64 rows, 2 * R columns. Element i of a thread lies at row(i), column(i).
struct SplitPlace {
    unsigned first_row, first_column;
    WW_INLINE SplitPlace(unsigned row0, unsigned column0) {
        const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3;
        first_row = row0 + warp * 16 + (lane >> 2);
        first_column = column0 + (lane & 3) * 2;
    }
    WW_INLINE unsigned row(int i) const { return first_row + (i >> 1 & 1) * 8; }
    WW_INLINE unsigned column(int i) const { return first_column + (i >> 2) * 8 + (i & 1); }
};

WW_INLINE bool split_far(int e) { return e > 60 || e < -60; }

// v *= 2^(ea + eb + offset).
template <int R> WW_INLINE void split_scale(float (&v)[R], const SplitPlace &at, const int *ea, const int *eb, int offset, const Split &p) {
    int column[R / 2];
    const int row0 = at.row(0) < p.m ? ea[at.row(0)] : 0, row1 = at.row(2) < p.m ? ea[at.row(2)] : 0;
    bool far = offset != 0 || split_far(row0) || split_far(row1);
#pragma unroll
    for (int j = 0; j < R / 2; ++j) {
        const unsigned q = at.column((j >> 1) * 4 + (j & 1));
        column[j] = q < p.n ? eb[q] : 0;
        far |= split_far(column[j]);
    }
    if (__any_sync(0xffffffffu, far)) {
#pragma unroll
        for (int i = 0; i < R; ++i)
            v[i] = scale_clamped(v[i], (i & 2 ? row1 : row0) + column[(i >> 2) * 2 + (i & 1)] + offset);
    } else {
        const float factor0 = power_of_two(row0), factor1 = power_of_two(row1);
#pragma unroll
        for (int i = 0; i < R; ++i) v[i] = (v[i] * (i & 2 ? factor1 : factor0)) * power_of_two(column[(i >> 2) * 2 + (i & 1)]);
    }
}

// v += factor * from[row, column], within the matrix.
template <int R> WW_INLINE void split_add(float (&v)[R], const SplitPlace &at, const float *from, long long row, long long column, float factor, const Split &p) {
    const int left = (int)(p.n - at.first_column);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (at.row(half * 2) >= p.m) continue;
        const float *x = from + at.row(half * 2) * row + at.first_column * column;
#pragma unroll
        for (int j = 0; j < R / 4; ++j, x += 8 * column) {
            if (left > j * 8) v[j * 4 + half * 2] = ww_fma(factor, *x, v[j * 4 + half * 2]);
            if (left > j * 8 + 1) v[j * 4 + half * 2 + 1] = ww_fma(factor, x[column], v[j * 4 + half * 2 + 1]);
        }
    }
}

template <int R> WW_INLINE void split_store(float (&v)[R], const SplitPlace &at, const SplitOut &out, const Split &p) {
#pragma unroll
    for (int i = 0; i < R; ++i) v[i] *= out.alpha;
    if (out.c) split_add(v, at, out.c, p.c_row.get(), p.c_column.get(), out.beta, p);
    if (out.bias) split_add(v, at, out.bias, p.bias_row.get(), p.bias_column.get(), 1.0f, p);
    activate_short(v, p.act, out.p0, out.p1);
    const int left = (int)(p.n - at.first_column);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (at.row(half * 2) >= p.m) continue;
        float *to = out.d + at.row(half * 2) * p.d_row.get() + at.first_column;
        if (p.flags & SPLIT_VECTOR_D) {
#pragma unroll
            for (int j = 0; j < R / 4; ++j)
                if (left > j * 8) *(float2 *)(to + j * 8) = make_float2(v[j * 4 + half * 2], v[j * 4 + half * 2 + 1]);
        } else {
#pragma unroll
            for (int j = 0; j < R / 4; ++j) {
                if (left > j * 8) to[j * 8] = v[j * 4 + half * 2];
                if (left > j * 8 + 1) to[j * 8 + 1] = v[j * 4 + half * 2 + 1];
            }
        }
    }
    if (p.act < ACT_SIGMOID) return;
#pragma unroll 1
    for (int i = 0; i < R; ++i) {
        const unsigned r = at.row(i), q = at.column(i);
        if (r < p.m && q < p.n) {
            float *to = out.d + r * p.d_row.get() + q;
            *to = activate(*to, p.act, out.p0, out.p1);
        }
    }
}
