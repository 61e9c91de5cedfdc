// The end of a product by warpgroups: act(alpha * sum + beta * c + bias), rounded once, to memory. A warp's 16 rows pass
// through 4 KB of shared memory of its own, 64 columns at a time, so that lanes hold neighbours and rows are written whole.
#pragma once
#include "activation.cuh"
#include "half.cuh"
#include "gemm_tile.cuh"

constexpr unsigned WGMMA_STAGE = 4096;

enum : unsigned { WGMMA_ALIGNED_D = 1, WGMMA_FLOAT_D = 2, WGMMA_PROMOTE = 4 };

// Element type T of c and bias, and of d without WGMMA_FLOAT_D.
template <class T> struct WgmmaOut {
    const T *c, *bias;
    void *d;
    float alpha, beta, p0, p1;
};

WW_INLINE void store_pair(unsigned address, float x, float y) { asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory"); }

WW_INLINE void load_quad(float (&v)[4], unsigned address) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(address) : "memory");
}

WW_INLINE void store_word(unsigned address, unsigned word) { asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory"); }

WW_INLINE uint4 load_words(unsigned address) {
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
    return v;
}

// Of a row of 64, units of 16 bytes are turned so that eight rows' pairs and a row's units meet all banks.
WW_INLINE unsigned staged(unsigned row, unsigned unit) { return row * 256 + ((unit ^ (row & 3) << 1) << 4); }

// Two elements to a word, the first below.
template <class T> WW_INLINE unsigned pack_pair(float x, float y) { return T(x).bits | (unsigned)T(y).bits << 16; }
#if __CUDA_ARCH__ >= 800
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
#endif

WW_INLINE void store_quad(float *to, const float (&v)[4]) { *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]); }
template <class T> WW_INLINE void store_quad(T *to, const float (&v)[4]) { *(uint2 *)to = make_uint2(pack_pair<T>(v[0], v[1]), pack_pair<T>(v[2], v[3])); }

// v[j] += factor * from[j * step] for the first `count`.
template <class T> WW_INLINE void add_some(float (&v)[4], const T *from, long long step, float factor, unsigned count) {
#pragma unroll
    for (unsigned j = 0; j < 4; ++j)
        if (j < count) v[j] = ww_fma(factor, (float)from[j * step], v[j]);
}

// A lane's share of 8 rows by 64 columns: four columns of every other row, `count` of the columns within the matrix.
struct WgmmaQuads {
    static constexpr int ROWS = 4, SIZE = 4 * ROWS;
    unsigned row, column, count;
    float v[SIZE];

    template <class P> WW_INLINE bool is_within(int i, const P &p) const { return row + 2 * i < p.m; }
    WW_INLINE float (&quad(int i))[4] { return *(float (*)[4])(v + 4 * i); }
};

template <class T, class P> WW_INLINE void add_c(WgmmaQuads &q, const WgmmaOut<T> &out, const P &p) {
    const T *from = out.c + q.row * p.c_row.get() + q.column * p.c_column.get();
#pragma unroll
    for (int i = 0; i < q.ROWS; ++i, from += 2 * p.c_row.get())
        if (q.is_within(i, p)) add_some(q.quad(i), from, p.c_column.get(), out.beta, q.count);
}

// A bias has one number for each row or each column.
template <class T, class P> WW_INLINE void add_bias(WgmmaQuads &q, const WgmmaOut<T> &out, const P &p) {
    if (p.bias_column.get()) {
        float bias[4] = {};
        add_some(bias, out.bias + q.column, 1, 1.0f, q.count);
#pragma unroll
        for (int i = 0; i < q.SIZE; ++i) q.v[i] += bias[i & 3];
    } else {
#pragma unroll
        for (int i = 0; i < q.ROWS; ++i) {
            const float bias = q.is_within(i, p) ? (float)out.bias[q.row + 2 * i] : 0.0f;
#pragma unroll
            for (int j = 0; j < 4; ++j) q.v[4 * i + j] += bias;
        }
    }
}

template <class T, class P> WW_INLINE void store_one(void *d, unsigned long long at, float x, const P &p) {
    if (p.flags & WGMMA_FLOAT_D)
        ((float *)d)[at] = x;
    else
        ((T *)d)[at] = T(x);
}

// Element by element, so that the long code stands once: long activations, and stores where vectors do not fit.
template <class T, class P> WW_INLINE void finish_slowly(WgmmaQuads &q, const WgmmaOut<T> &out, const P &p, bool vectors) {
#pragma unroll 1
    for (unsigned i = 0; i < q.SIZE; ++i) {
        const float x = activate(q.v[0], p.act, out.p0, out.p1);
        const unsigned row = q.row + (i >> 2) * 2, j = i & 3;
        if (!vectors && row < p.m && j < q.count) store_one<T>(out.d, (unsigned long long)row * p.n + q.column + j, x, p);
#pragma unroll
        for (int j = 0; j < q.SIZE - 1; ++j) q.v[j] = q.v[j + 1];
        q.v[q.SIZE - 1] = x;
    }
}

template <class D, class P> WW_INLINE void store_quads(D *d, WgmmaQuads &q, const P &p) {
    D *to = d + (unsigned long long)q.row * p.n + q.column;
#pragma unroll
    for (int i = 0; i < q.ROWS; ++i, to += 2ull * p.n)
        if (q.is_within(i, p)) store_quad(to, q.quad(i));
}

template <class T, class P> WW_INLINE void wgmma_finish(WgmmaQuads &q, const WgmmaOut<T> &out, const P &p) {
#pragma unroll
    for (int i = 0; i < q.SIZE; ++i) q.v[i] *= out.alpha;
    if (out.c) add_c(q, out, p);
    if (out.bias) add_bias(q, out, p);
    const bool vectors = (p.flags & WGMMA_ALIGNED_D) && p.n % 4 == 0;
    if (p.act >= ACT_SIGMOID || !vectors)
        finish_slowly(q, out, p, vectors);
    else
        activate_short(q.v, p.act, out.p0, out.p1);
    if (!vectors) return;
    if (p.flags & WGMMA_FLOAT_D)
        store_quads((float *)out.d, q, p);
    else
        store_quads((T *)out.d, q, p);
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

// Sums as they are.
struct Unscaled {
    template <class P> WW_INLINE void apply(WgmmaQuads &, const P &) const {}
};

// A warp's accumulators; row and column are those of its first. `stage` is the warp's own shared memory.
template <int R, class T, class P, class Scale>
WW_INLINE void wgmma_store(const float (&d)[R], unsigned stage, unsigned row, unsigned column, const WgmmaOut<T> &out, const P &p, Scale scale) {
    const unsigned lane = threadIdx.x & 31;
    // Rolled, so that the code of the end stands once.
#pragma unroll 1
    for (unsigned part = 0; part < R / 32; ++part) {
        __syncwarp();
        if (part == 0) stage_columns<0>(d, stage);
        if (R > 32 && part == 1) stage_columns<32 % R>(d, stage);
        if (R > 64 && part == 2) stage_columns<64 % R>(d, stage);
        if (R > 96 && part == 3) stage_columns<96 % R>(d, stage);
        __syncwarp();
        WgmmaQuads q;
        q.column = column + part * 64 + (lane & 15) * 4;
        if (q.column >= p.n) continue;
        q.count = p.n - q.column;
#pragma unroll 1
        for (unsigned r = lane >> 4; r < 16; r += 2 * q.ROWS) {
            q.row = row + r;
#pragma unroll
            for (int i = 0; i < q.ROWS; ++i) load_quad(q.quad(i), stage + staged(r + 2 * i, lane & 15));
            scale.apply(q, p);
            wgmma_finish(q, out, p);
        }
    }
}

// The same where there is nothing to do but alpha and the rounding to T, at 16-byte places of d: halves pass through
// shared memory in pairs.
template <int R, class T, class P> WW_INLINE void wgmma_store_plain(const float (&d)[R], unsigned stage, unsigned row, unsigned column, const WgmmaOut<T> &out, const P &p) {
    const unsigned lane = threadIdx.x & 31, from = lane >> 2, at = lane >> 3, unit = lane & 7;
    T *to = (T *)out.d + (unsigned long long)(row + at) * p.n + column + unit * 8;
#pragma unroll
    for (int part = 0; part < R / 32; ++part) {
        const unsigned here = stage + (part & 1) * 2048;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const float *v = d + part * 32 + j * 4;
            const unsigned place = here + from * 128 + ((j ^ from) << 4) + (lane & 3) * 4;
            store_word(place, pack_pair<T>(v[0] * out.alpha, v[1] * out.alpha));
            store_word(place + 1024, pack_pair<T>(v[2] * out.alpha, v[3] * out.alpha));
        }
        __syncwarp();
        if (column + part * 64 + unit * 8 >= p.n) continue;
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned r = i * 4 + at;
            const uint4 words = load_words(here + r * 128 + ((unit ^ (r & 7)) << 4));
            if (row + r < p.m) *(uint4 *)(to + (unsigned long long)i * 4 * p.n + part * 64) = words;
        }
    }
    // The next product's sums come here again.
    __syncwarp();
}

template <class T, class P> WW_INLINE bool is_plain(const WgmmaOut<T> &out, const P &p) {
    return !out.c && !out.bias && p.act == ACT_NONE && (p.flags & (WGMMA_ALIGNED_D | WGMMA_FLOAT_D)) == WGMMA_ALIGNED_D && p.n % 8 == 0;
}
