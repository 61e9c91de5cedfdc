// The end of a product by warpgroups: act(alpha * sum + beta * c + bias), rounded once, to memory. A warp's 16 rows pass
// through 4 KB of shared memory of its own, 64 columns at a time, so that all the rest is one rolled loop over four
// neighbouring elements.
#pragma once
#include "activation.cuh"
#include "half.cuh"
#include "wgmma_tile.cuh"

constexpr unsigned WGMMA_STAGE = 4096;

enum : unsigned { WGMMA_VECTOR_D = 1, WGMMA_FLOAT_D = 2, WGMMA_PROMOTE = 4 };

// Element type T of c and bias, and of d without WGMMA_FLOAT_D.
template <class T> struct WgmmaOut {
    const T *c, *bias;
    void *d;
    float alpha, beta, p0, p1;
};

// Sums as they are.
struct Unscaled {
    WW_INLINE void columns(unsigned, unsigned) {}
    WW_INLINE void apply(float (&)[4], unsigned) const {}
};

WW_INLINE void store_pair(unsigned address, float x, float y) { asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory"); }

WW_INLINE void load_quad(float (&v)[4], unsigned address) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(address) : "memory");
}

// Of a row of 64, units of 16 bytes are turned so that eight rows' pairs and a row's units meet all banks.
WW_INLINE unsigned staged(unsigned row, unsigned unit) { return row * 256 + ((unit ^ (row & 3) << 1) << 4); }

template <class T> WW_INLINE unsigned pack_pair(float x, float y);
template <> WW_INLINE unsigned pack_pair<WwHalf>(float x, float y) {
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(y), "f"(x));
    return word;
}
template <> WW_INLINE unsigned pack_pair<WwBfloat>(float x, float y) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(y), "f"(x));
    return word;
}

WW_INLINE void store_quad(float *to, const float (&v)[4]) { *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]); }
template <class T> WW_INLINE void store_quad(T *to, const float (&v)[4]) { *(uint2 *)to = make_uint2(pack_pair<T>(v[0], v[1]), pack_pair<T>(v[2], v[3])); }

// The first `count` of four elements.
template <class D> WW_INLINE void store_some(D *to, const float (&v)[4], unsigned count, bool vectors) {
    if (vectors && count >= 4) {
        store_quad(to, v);
    } else {
#pragma unroll
        for (unsigned j = 0; j < 4; ++j)
            if (j < count) to[j] = D(v[j]);
    }
}

// v[j] += factor * from[j * step] for the first `count`.
template <class T> WW_INLINE void add_some(float (&v)[4], const T *from, long long step, float factor, unsigned count) {
#pragma unroll
    for (unsigned j = 0; j < 4; ++j)
        if (j < count) v[j] = ww_fma(factor, (float)from[j * step], v[j]);
}

// Four sums at (row, column), `count` of them within the matrix.
template <class T, class P> WW_INLINE void wgmma_finish(float (&v)[4], unsigned row, unsigned column, unsigned count, const WgmmaOut<T> &out, const P &p) {
#pragma unroll
    for (int j = 0; j < 4; ++j) v[j] *= out.alpha;
    if (out.c) add_some(v, out.c + row * p.c_row.get() + column * p.c_column.get(), p.c_column.get(), out.beta, count);
    if (out.bias) add_some(v, out.bias + row * p.bias_row.get() + column * p.bias_column.get(), p.bias_column.get(), 1.0f, count);
    if (p.act >= ACT_SIGMOID) {
        // One copy of the long code: the four take turns.
#pragma unroll 1
        for (int j = 0; j < 4; ++j) {
            const float y = activate(v[0], p.act, out.p0, out.p1);
            v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = y;
        }
    } else {
        activate_short(v, p.act, out.p0, out.p1);
    }
    const unsigned long long at = (unsigned long long)row * p.n + column;
    if (p.flags & WGMMA_FLOAT_D)
        store_some((float *)out.d + at, v, count, p.flags & WGMMA_VECTOR_D);
    else
        store_some((T *)out.d + at, v, count, p.flags & WGMMA_VECTOR_D);
}

// 64 of a warp's columns, from accumulator FIRST on.
template <int FIRST, int R> WW_INLINE void stage_columns(const float (&d)[R], unsigned stage) {
    const unsigned lane = threadIdx.x & 31, row = lane >> 2;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const unsigned unit = j * 2 + (lane >> 1 & 1), in = (lane & 1) * 8;
        store_pair(stage + staged(row, unit) + in, d[FIRST + j * 4], d[FIRST + j * 4 + 1]);
        store_pair(stage + staged(row + 8, unit) + in, d[FIRST + j * 4 + 2], d[FIRST + j * 4 + 3]);
    }
}

// A warp's accumulators; row and column are those of its first. `stage` is the warp's own shared memory.
template <int R, class T, class P, class Scale>
WW_INLINE void wgmma_store(const float (&d)[R], unsigned stage, unsigned row, unsigned column, const WgmmaOut<T> &out, const P &p, Scale scale) {
    const unsigned lane = threadIdx.x & 31;
    column += (lane & 15) * 4;
    // Rolled, so that the code of the end stands once.
#pragma unroll 1
    for (unsigned q = 0; q < R / 32; ++q, column += 64) {
        __syncwarp();
        if (q == 0) stage_columns<0>(d, stage);
        if (R > 32 && q == 1) stage_columns<32 % R>(d, stage);
        if (R > 64 && q == 2) stage_columns<64 % R>(d, stage);
        if (R > 96 && q == 3) stage_columns<96 % R>(d, stage);
        __syncwarp();
        if (column >= p.n) continue;
        scale.columns(column, p.n);
#pragma unroll 1
        for (unsigned r = lane >> 4; r < 16; r += 2) {
            if (row + r >= p.m) break;
            float v[4];
            load_quad(v, stage + staged(r, lane & 15));
            scale.apply(v, row + r);
            wgmma_finish(v, row + r, column, p.n - column, out, p);
        }
    }
}
