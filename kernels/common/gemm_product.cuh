// The tiled matrix product: what gemm.cu and gemm_chain.cu make kernels of.
#pragma once
#include "activation.cuh"
#include "gemm_tile.cuh"

enum : unsigned { TRANS_A = 1, TRANS_B = 2, VECTOR_A = 4, VECTOR_B = 8, VECTOR_D = 16, BIAS_ROWS = 64 };

struct Batch {
    unsigned rank, size[6];
    Wide stride_a[6], stride_b[6], stride_c[6];
};

struct Matmul {
    unsigned m, n, k, flags, act, splits, split_k, batch_count;
    Wide lda, ldb, ldd, c_row, c_column, d_batch, d_split;
    Batch batch;
};

WW_INLINE void batch_offsets(const Batch &batch, unsigned index, long long &a, long long &b, long long &c) {
    a = b = c = 0;
    for (int i = (int)batch.rank - 1; i >= 0; --i) {
        const unsigned size = batch.size[i], at = index % size;
        index /= size;
        a += at * batch.stride_a[i].get();
        b += at * batch.stride_b[i].get();
        c += at * batch.stride_c[i].get();
    }
}

// alpha * acc + beta * c + bias over one thread's outputs, then the activation.
template <class Tl>
WW_INLINE void matmul_finish(typename Tl::T (&acc)[Tl::TM][Tl::TN], const typename Tl::T *c, const typename Tl::T *bias,
                             typename Tl::T *d, typename Tl::T alpha, typename Tl::T beta, typename Tl::T p0,
                             typename Tl::T p1, const Matmul &p, unsigned row0, unsigned column0) {
    using T = typename Tl::T;
    constexpr int VEC = Tl::VEC;
    const Place<Tl> place;
    const unsigned row = row0 + place.row, column = column0 + place.column;
    const bool plain = p.splits > 1;
    const bool vectors = p.flags & VECTOR_D;
    const T scale = plain ? T(1) : alpha;
#pragma unroll
    for (int i = 0; i < Tl::TM; ++i) {
        const unsigned r = row + Place<Tl>::row_offset(i);
        if (r >= p.m) continue;
        // Always multiplied, so that no store of vectors says in which registers the sums are kept.
#pragma unroll
        for (int j = 0; j < Tl::TN; ++j) acc[i][j] *= scale;
        if (!plain) {
            if (c) {
                const T *cr = c + r * p.c_row.get();
#pragma unroll
                for (int j = 0; j < Tl::TN; ++j) {
                    const unsigned q = column + Place<Tl>::column_offset(j);
                    if (q < p.n) acc[i][j] = ww_fma(beta, cr[q * p.c_column.get()], acc[i][j]);
                }
            }
            if (bias) {
#pragma unroll
                for (int j = 0; j < Tl::TN; ++j) {
                    const unsigned q = column + Place<Tl>::column_offset(j);
                    if (q < p.n) acc[i][j] += bias[p.flags & BIAS_ROWS ? r : q];
                }
            }
            activate_short(acc[i], p.act, p0, p1);
        }
        T *dr = d + r * p.ldd.get() + column;
#pragma unroll
        for (int g = 0; g < Tl::TN / VEC; ++g) {
            const int at = Place<Tl>::column_offset(g * VEC);
            if (vectors && column + at + VEC <= p.n) {
                store_vector(dr + at, &acc[i][g * VEC]);
            } else {
#pragma unroll
                for (int v = 0; v < VEC; ++v)
                    if (column + at + v < p.n) dr[at + v] = acc[i][g * VEC + v];
            }
        }
    }
    if (plain || p.act < ACT_SIGMOID) return;
    for (int e = 0; e < Tl::TM * Tl::TN; ++e) {
        const unsigned r = row + Place<Tl>::row_offset(e / Tl::TN), q = column + Place<Tl>::column_offset(e % Tl::TN);
        if (r < p.m && q < p.n) {
            T *at = d + r * p.ldd.get() + q;
            *at = activate(*at, p.act, p0, p1);
        }
    }
}

// What a block computes: the tile at (row, column) of one product of the batch, summed over [k_begin, k_end).
template <class Tl> struct MatmulBlock {
    unsigned row, column, split, batch, k_begin, k_end;
    long long offset_a, offset_b, offset_c;

    WW_INLINE MatmulBlock(const Matmul &p, unsigned block) {
        const unsigned tiles_m = (p.m + Tl::BM - 1) / Tl::BM, tiles_n = (p.n + Tl::BN - 1) / Tl::BN, tiles = tiles_m * tiles_n;
        unsigned at = block / tiles, tm, tn;
        raster(block % tiles, tiles_m, tiles_n, tm, tn);
        row = tm * Tl::BM;
        column = tn * Tl::BN;
        split = at % p.splits;
        batch = at / p.splits;
        batch_offsets(p.batch, batch, offset_a, offset_b, offset_c);
        k_begin = split * p.split_k;
        k_end = p.k - k_begin < p.split_k ? p.k : k_begin + p.split_k;
    }

    template <class Load> WW_INLINE void load_a(Load &load, const typename Tl::T *a, const Matmul &p) const {
        load.init(a + offset_a, p.lda.get(), !(p.flags & TRANS_A), p.flags & VECTOR_A, row, p.m, k_begin, k_end);
    }

    template <class Load> WW_INLINE void load_b(Load &load, const typename Tl::T *b, const Matmul &p) const {
        load.init(b + offset_b, p.ldb.get(), p.flags & TRANS_B, p.flags & VECTOR_B, column, p.n, k_begin, k_end);
    }

    // K tiles of the block.
    WW_INLINE int depth() const { return (int)((k_end - k_begin + Tl::BK - 1) / Tl::BK); }

    WW_INLINE long long offset_d(const Matmul &p) const { return batch * p.d_batch.get() + split * p.d_split.get(); }
};

template <class Tl>
WW_INLINE void matmul_tile(const typename Tl::T *a, const typename Tl::T *b, const typename Tl::T *c, const typename Tl::T *bias,
                           typename Tl::T *d, typename Tl::T alpha, typename Tl::T beta, typename Tl::T p0,
                           typename Tl::T p1, const Matmul &p, unsigned block) {
    using T = typename Tl::T;
    __shared__ __align__(16) T shared[Tl::SHARED];
    const MatmulBlock<Tl> at(p, block);
    MatrixLoader<T, Tl::BM, Tl::BK, Tl::THREADS> load_a;
    MatrixLoader<T, Tl::BN, Tl::BK, Tl::THREADS> load_b;
    at.load_a(load_a, a, p);
    at.load_b(load_b, b, p);
    T acc[Tl::TM][Tl::TN];
    multiply_tiles<Tl>(acc, shared, load_a, load_b, at.depth());
    matmul_finish<Tl>(acc, c ? c + at.offset_c : c, bias, d + at.offset_d(p), alpha, beta, p0, p1, p, at.row, at.column);
}

#define MATMUL_ARGS(T) const T *a, const T *b, const T *c, const T *bias, T *d, T alpha, T beta, T p0, T p1, Matmul p
#define MATMUL_PASS a, b, c, bias, d, alpha, beta, p0, p1, p
