// Float32 products on the matrix instructions that take TF32: each operand is split in registers into two parts, and
// three products are summed. Sums of hi hi leave the tensor core, which truncates, after 16 of k and go on in float32.
//
// One operand ("long", rows l) plays the 16 rows of mma.m16n8k8, the other ("short", rows s) its 8 columns:
// out[l, s] = sum over k of L[l, k] * S[s, k]. A block owns LT x ST outputs and a range of k; its WK groups of warps
// take turns along k and are summed in order, and so are the splits of a tile, by the block that comes last.
#pragma once
#include "activation.cuh"
#include "divide.cuh"
#include "gemm_product.cuh"

enum : unsigned {
    DIRECT_VECTOR_L = 1,
    DIRECT_VECTOR_S = 2,
    DIRECT_L_IS_B = 4,
    // The result has l side by side, not s.
    DIRECT_FLIPPED = 8,
    DIRECT_VECTOR_D = 16,
    // The long operand is older than the launch before and may be read while that one still runs.
    DIRECT_EARLY = 32,
};

struct Direct {
    unsigned rows_l, rows_s, k, flags, act, splits, chunks, tiles_l, tiles_s, batch_count, magic_l, magic_s, magic_splits;
    // Steps of the bias along rows and columns of the result as it lies.
    unsigned bias_row, bias_column;
    // Elements from one row, and from one k, to the next; from one row of the result to the next, and steps of c.
    Wide l_row, l_k, s_row, s_k, ldd, c_row, c_column, d_batch;
    Batch batch;
};

#define DIRECT_ARGS                                                                                                         \
    const float *a, const float *b, const float *c, const float *bias, float *d, float alpha, float beta, float p0, float p1, \
        float *partial, unsigned *tickets, Direct p
#define DIRECT_PASS a, b, c, bias, d, alpha, beta, p0, p1, partial, tickets, p

// Waits for the launch before; lets the one behind start.
WW_INLINE void grid_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

WW_INLINE void grid_release() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

WW_INLINE unsigned direct_divide(unsigned index, unsigned size, unsigned magic, unsigned &rest) {
    return ww_divide(index, (unsigned long long)size, (unsigned long long)magic << 32, rest);
}

// What one block computes.
struct DirectJob {
    const float *l, *s;
    int l0, s0, k_begin, k_end;
    unsigned split, tile, batch;
    long long offset_c;
    bool flipped;

    WW_INLINE DirectJob(const float *a, const float *b, const Direct &p, int lt, int st) {
        flipped = p.flags & DIRECT_FLIPPED;
        const bool l_is_b = p.flags & DIRECT_L_IS_B;
        unsigned tile_s, tile_l, at = direct_divide(blockIdx.x, p.tiles_s, p.magic_s, tile_s);
        at = direct_divide(at, p.tiles_l, p.magic_l, tile_l);
        batch = direct_divide(at, p.splits, p.magic_splits, split);
        tile = (batch * p.tiles_l + tile_l) * p.tiles_s + tile_s;
        long long offset_a = 0, offset_b = 0;
        offset_c = 0;
        if (p.batch.rank == 1) {
            offset_a = batch * p.batch.stride_a[0].get();
            offset_b = batch * p.batch.stride_b[0].get();
            offset_c = batch * p.batch.stride_c[0].get();
        } else if (p.batch.rank > 1) {
            batch_offsets(p.batch, batch, offset_a, offset_b, offset_c);
        }
        l = l_is_b ? b + offset_b : a + offset_a;
        s = l_is_b ? a + offset_a : b + offset_b;
        // The last tile along l moves back to stay inside; what overlaps is the same.
        const int last = (int)p.rows_l - lt;
        l0 = (int)tile_l * lt;
        l0 = l0 > last && last > 0 ? last : l0;
        s0 = (int)tile_s * st;
        k_begin = (int)(split * p.chunks) * 16;
        k_end = p.k - k_begin < p.chunks * 16 ? (int)p.k : k_begin + (int)p.chunks * 16;
    }
};

// x = hi + lo * 2^-13. The matrix unit takes 11 bits of each and drops the rest. LONG_ rows are cut, with lo raised so
// that what is dropped of it comes to nothing on average; short ones are rounded, so that lo has either sign and the
// products lo lo, which are left out, do too. lo overflows from 2^126 on, which direct_is_exact turns away.
template <bool LONG_> WW_INLINE void direct_split(float x, unsigned &hi, unsigned &lo) {
    hi = (LONG_ ? __float_as_uint(x) : __float_as_uint(x) + 0x1000u) & 0xffffe000u;
    lo = __float_as_uint((x - __uint_as_float(hi)) * (LONG_ ? 8194.67f : 8192.0f));
}

WW_INLINE void mma_tf32(float (&d)[4], const unsigned (&a)[2][4], int k, const unsigned (&b)[4]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0][k]), "r"(a[1][k]), "r"(a[0][k + 1]), "r"(a[1][k + 1]), "r"(b[k]), "r"(b[k + 1]));
}

// A warp's share of 16 of k: lane (g, t) = (lane / 4, lane % 4) holds rows by g and k = 4 t to 4 t + 3.
template <class Tl> struct DirectChunk {
    float l[Tl::LM][2][4], s[Tl::SN][4];
};

// Sums of a warp's fragments of the result.
template <class Tl> using DirectSums = float[Tl::LM][Tl::SN][4];

template <class Tl> WW_INLINE void direct_multiply(DirectSums<Tl> &sums, const DirectChunk<Tl> &chunk) {
    unsigned s_hi[Tl::SN][4], s_lo[Tl::SN][4];
#pragma unroll
    for (int j = 0; j < Tl::SN; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) direct_split<false>(chunk.s[j][e], s_hi[j][e], s_lo[j][e]);
#pragma unroll
    for (int i = 0; i < Tl::LM; ++i) {
        unsigned l_hi[2][4], l_lo[2][4];
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int e = 0; e < 4; ++e) direct_split<true>(chunk.l[i][h][e], l_hi[h][e], l_lo[h][e]);
#pragma unroll
        for (int j = 0; j < Tl::SN; ++j) {
            float high[4] = {}, cross[4] = {};
#pragma unroll
            for (int k = 0; k < 4; k += 2) {
                mma_tf32(cross, l_lo, k, s_hi[j]);
                mma_tf32(high, l_hi, k, s_hi[j]);
                mma_tf32(cross, l_hi, k, s_lo[j]);
            }
#pragma unroll
            for (int c = 0; c < 4; ++c) sums[i][j][c] = fmaf(cross[c], 1.0f / 8192, sums[i][j][c] + high[c]);
        }
    }
}

// Whether the split was exact enough: no infinity, NaN or value near the end of the range took part.
template <class Tl> WW_INLINE bool direct_is_exact(const DirectSums<Tl> &sums) {
    bool exact = true;
#pragma unroll
    for (int i = 0; i < Tl::LM; ++i)
#pragma unroll
        for (int j = 0; j < Tl::SN; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c) exact = exact && fabsf(sums[i][j][c]) < 0x1p126f;
    return exact;
}

// Shape and arrangement of a tile.
template <int LM_, int SN_, int WL_, int WS_, int WK_> struct DirectShape {
    static constexpr int LM = LM_, SN = SN_, WL = WL_, WS = WS_, WK = WK_;
    static constexpr int LW = 16 * LM, SW = 8 * SN, LT = LW * WL, ST = SW * WS, OUT = LT * ST;
    static constexpr int WARPS = WL * WS * WK, THREADS = 32 * WARPS, SN4 = SN < 4 ? SN : 4;
    // Row of fragment i, half h, lane group g; column of fragment j, position p: neighbours to one lane, as vectors across k
    // bring them.
    static WW_INLINE int row(int i, int h, int g) { return LM == 1 ? 2 * g + h : (i >> 1) * 32 + 4 * g + 2 * (i & 1) + h; }
    static WW_INLINE int column(int j, int p) { return j / 4 * 32 + p * SN4 + j % 4; }
};

// Outputs of a tile in shared memory: along l where the result has l side by side (flipped), else along s; swizzled.
template <class Tl> WW_INLINE int direct_at(int l, int s, bool flipped) {
    if (flipped) return s * Tl::LT + (Tl::LT >= 32 ? l ^ (s / (2 * Tl::SN4) & 3) << 3 : l);
    return l * Tl::ST + (Tl::ST >= 32 ? s ^ (l >> 2 & 1) << 2 : s);
}

template <class Tl> WW_INLINE void direct_place(int e, bool flipped, int &l, int &s) {
    if (flipped) {
        s = e / Tl::LT, l = e % Tl::LT;
        if (Tl::LT >= 32) l ^= (s / (2 * Tl::SN4) & 3) << 3;
    } else {
        l = e / Tl::ST, s = e % Tl::ST;
        if (Tl::ST >= 32) s ^= (l >> 2 & 1) << 2;
    }
}

// A warp's sums to its part of shared memory. Fragment element c: row half c / 2, column position 2 t + c % 2.
template <class Tl> WW_INLINE void direct_put(float *part, const DirectSums<Tl> &sums, int l0, int s0, bool flipped) {
    const int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
    if (flipped) {
#pragma unroll
        for (int j = 0; j < Tl::SN; ++j)
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const int s = s0 + Tl::column(j, 2 * t + c);
                if constexpr (Tl::LM == 1) {
                    *(float2 *)(part + direct_at<Tl>(l0 + 2 * g, s, true)) = make_float2(sums[0][j][c], sums[0][j][c + 2]);
                } else {
#pragma unroll
                    for (int i = 0; i < Tl::LM; i += 2)
                        *(float4 *)(part + direct_at<Tl>(l0 + Tl::row(i, 0, g), s, true)) =
                            make_float4(sums[i][j][c], sums[i][j][c + 2], sums[i + 1][j][c], sums[i + 1][j][c + 2]);
                }
            }
        return;
    }
#pragma unroll
    for (int i = 0; i < Tl::LM; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const int l = l0 + Tl::row(i, c >> 1, g);
#pragma unroll
            for (int j = 0; j < Tl::SN; j += Tl::SN4) {
                float *to = part + direct_at<Tl>(l, s0 + Tl::column(j, 2 * t + (c & 1)), false);
                if constexpr (Tl::SN4 == 4)
                    *(float4 *)to = make_float4(sums[i][j][c], sums[i][j + 1][c], sums[i][j + 2][c], sums[i][j + 3][c]);
                else if constexpr (Tl::SN4 == 2)
                    *(float2 *)to = make_float2(sums[i][j][c], sums[i][j + 1][c]);
                else
                    *to = sums[i][j][c];
            }
        }
}

// Four of a tile's sums, its warps' parts added in order.
template <class Tl> WW_INLINE float4 direct_sum(const float *parts, int q) {
    float4 v = ((const float4 *)parts)[q];
#pragma unroll
    for (int w = 1; w < Tl::WK; ++w) {
        const float4 x = ((const float4 *)(parts + w * Tl::OUT))[q];
        v.x += x.x, v.y += x.y, v.z += x.z, v.w += x.w;
    }
    return v;
}

// Four of a tile's sums from `count` partial ones, `step` vectors apart, added in order. Sixteen are on their way at once. A
// function for all kernels, as direct_store.
__device__ __noinline__ float4 direct_gather(const float4 *from, unsigned count, unsigned step) {
    constexpr unsigned AT_ONCE = 16;
    float4 v = __ldcg(from);
#pragma unroll 1
    for (unsigned i = 1; i < count; i += AT_ONCE) {
        float4 x[AT_ONCE];
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j)
            if (i + j < count) x[j] = __ldcg(from + (unsigned long long)(i + j) * step);
#pragma unroll
        for (unsigned j = 0; j < AT_ONCE; ++j)
            if (i + j < count) v.x += x[j].x, v.y += x[j].y, v.z += x[j].z, v.w += x[j].w;
    }
    return v;
}

// Whether this block is the last of `count` to come here, with what it wrote before; the ticket is 0 again afterwards.
// Takes a word of shared memory.
WW_INLINE bool direct_last(unsigned *ticket, unsigned count, unsigned *turn) {
    __syncthreads();
    if (threadIdx.x == 0) {
        // Behind the barrier this thread's fences stand for the block's.
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        *turn = atomicAdd(ticket, 1u);
        if (*turn == count - 1) *ticket = 0;
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
    }
    __syncthreads();
    return *turn == count - 1;
}

// The block's sums by float32 chains, for operands that do not split.
template <class Tl> WW_INLINE void direct_chains(float *parts, const DirectJob &job, const Direct &p) {
    const long long l_row = p.l_row.get(), l_k = p.l_k.get(), s_row = p.s_row.get(), s_k = p.s_k.get();
#pragma unroll 1
    for (int e = threadIdx.x; e < Tl::OUT; e += Tl::THREADS) {
        int l, s;
        direct_place<Tl>(e, job.flipped, l, s);
        float sum = 0.0f;
        if (job.l0 + l < (int)p.rows_l && job.s0 + s < (int)p.rows_s) {
            const float *x = job.l + (job.l0 + l) * l_row, *y = job.s + (job.s0 + s) * s_row;
#pragma unroll 1
            for (int k = job.k_begin; k < job.k_end; ++k) sum = fmaf(x[k * l_k], y[k * s_k], sum);
        }
        parts[e] = sum;
#pragma unroll 1
        for (int w = 1; w < Tl::WK; ++w) parts[w * Tl::OUT + e] = 0.0f;
    }
    __syncthreads();
}

#define DIRECT_STORE_ARGS                                                                                                    \
    float4 sum, float *own, float *to, int left, bool vector, const float *c, long long c_step, const float *bias, unsigned bias_step, \
        float alpha, float beta, unsigned act, float p0, float p1

// Four neighbours of the result, or the `left` that are there, from their sums; `own`: four words of memory.
WW_INLINE void direct_store_here(DIRECT_STORE_ARGS) {
    float v[4] = {alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w};
    if (c) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < left) v[i] = fmaf(beta, c[i * c_step], v[i]);
    }
    if (bias) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < left) v[i] += bias[i * bias_step];
    }
    activate_short(v, act, p0, p1);
    if (act >= ACT_SIGMOID) {
        // By way of memory, so that the long formulas stand here once.
#pragma unroll
        for (int i = 0; i < 4; ++i) own[i] = v[i];
#pragma unroll 1
        for (int i = 0; i < 4; ++i) own[i] = activate(own[i], act, p0, p1);
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = own[i];
    }
    if (vector && left >= 4) {
        store_vector(to, v);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < left) to[i] = v[i];
    }
}

// The same as a function, so that the text of the activations is there once for all kernels.
__device__ __noinline__ void direct_store(DIRECT_STORE_ARGS) {
    direct_store_here(sum, own, to, left, vector, c, c_step, bias, bias_step, alpha, beta, act, p0, p1);
}

// From the warps' parts of the sums in shared memory, which a word follows, to the result. `exact`: whether this thread's
// sums are.
template <class Tl>
WW_INLINE void direct_finish(float *parts, const DirectJob &job, bool exact, const float *c, const float *bias, float *d, float alpha,
                             float beta, float p0, float p1, const Direct &p, float *partial, unsigned *tickets) {
    if (__syncthreads_or(!exact)) direct_chains<Tl>(parts, job, p);
    const bool joined = p.splits > 1;
    if (joined) {
        partial += (unsigned long long)job.tile * p.splits * Tl::OUT;
        float4 *mine = (float4 *)(partial + (unsigned long long)job.split * Tl::OUT);
#pragma unroll 1
        for (int q = threadIdx.x; q < Tl::OUT / 4; q += Tl::THREADS) __stcg(mine + q, direct_sum<Tl>(parts, q));
        if (!direct_last(tickets + job.tile, p.splits, (unsigned *)(parts + Tl::WK * Tl::OUT))) return;
    }
    const int m = (int)(job.flipped ? p.rows_s : p.rows_l), n = (int)(job.flipped ? p.rows_l : p.rows_s);
    d += job.batch * p.d_batch.get();
    if (c) c += job.offset_c;
#pragma unroll 1
    for (int q = threadIdx.x; q < Tl::OUT / 4; q += Tl::THREADS) {
        int l, s;
        direct_place<Tl>(4 * q, job.flipped, l, s);
        const int row = job.flipped ? job.s0 + s : job.l0 + l, column = job.flipped ? job.l0 + l : job.s0 + s, left = n - column;
        if (row >= m || left <= 0) continue;
        const float4 sum = joined ? direct_gather((const float4 *)partial + q, p.splits, Tl::OUT / 4) : direct_sum<Tl>(parts, q);
        const long long c_step = p.c_column.get();
        const float *c_from = c ? c + row * p.c_row.get() + column * c_step : nullptr;
        const float *bias_from = bias ? bias + row * p.bias_row + column * p.bias_column : nullptr;
        direct_store(sum, parts + 4 * q, d + row * p.ldd.get() + column, left, p.flags & DIRECT_VECTOR_D, c_from, c_step, bias_from, p.bias_column, alpha, beta,
                     p.act, p0, p1);
    }
}
