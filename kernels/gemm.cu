// levels: sm_75 sm_80
// Matrix products d = act(alpha * op(a) op(b) + beta * c + bias), row-major, batched; accumulated in the element type.
// 256, 128 or 64 threads (the tile's), grid.x = row tiles * column tiles * splits * batch. With splits > 1, d is a
// workspace of [split][batch][m][n] partial sums and matmul_*_reduce finishes. alpha == 0 is passed as k = 0.
// Skinny forms (dot, axpy) have one operand ("large", p rows) streamed once and the other ("small") of up to 8 rows.
#include "common/gemm_product.cuh"
#include "common/gemm_skinny.cuh"

// Finishes one output from its sum; used where a thread has few of them.
template <class T>
WW_INLINE T matmul_value(T sum, const T *c, const T *bias, T alpha, T beta, T p0, T p1, const Matmul &p, unsigned r, unsigned q) {
    T v = alpha * sum;
    if (c) v = ww_fma(beta, c[r * p.c_row.get() + q * p.c_column.get()], v);
    if (bias) v += bias[p.flags & BIAS_ROWS ? r : q];
    return activate(v, p.act, p0, p1);
}

// Sums the splits in order. One thread an output.
template <class T>
WW_INLINE void matmul_reduce(const T *partial, const T *c, const T *bias, T *d, T alpha, T beta, T p0, T p1, const Matmul &p) {
    const unsigned long long total = (unsigned long long)p.batch_count * p.m * p.n;
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= total) return;
    T sum = T(0);
#pragma unroll 8
    for (unsigned s = 0; s < p.splits; ++s) sum += partial[s * total + i];
    const unsigned long long row = i / p.n, batch = row / p.m;
    const unsigned q = (unsigned)(i - row * p.n), r = (unsigned)(row - batch * p.m);
    long long a, b, offset_c;
    batch_offsets(p.batch, (unsigned)batch, a, b, offset_c);
    d[batch * p.d_batch.get() + r * p.ldd.get() + q] = matmul_value(sum, c ? c + offset_c : c, bias, alpha, beta, p0, p1, p, r, q);
}

// The skinny forms count rows along the large operand: m when it is a, n when it is b (LARGE_B).
enum : unsigned { LARGE_B = 32 };

template <class T> struct Skinny {
    const T *large, *small;
    long long ld, ss, sk, offset_c;
    T *d;
    unsigned rows, count, split, k_begin, k_end;
    bool flipped;

    WW_INLINE Skinny(const T *a, const T *b, T *d_, const Matmul &p, unsigned at) {
        split = at % p.splits;
        const unsigned batch = at / p.splits;
        long long oa, ob;
        batch_offsets(p.batch, batch, oa, ob, offset_c);
        flipped = p.flags & LARGE_B;
        const bool trans_small = flipped ? p.flags & TRANS_A : !(p.flags & TRANS_B);
        large = flipped ? b + ob : a + oa;
        small = flipped ? a + oa : b + ob;
        ld = flipped ? p.ldb.get() : p.lda.get();
        const long long lds = flipped ? p.lda.get() : p.ldb.get();
        ss = trans_small ? 1 : lds;
        sk = trans_small ? lds : 1;
        rows = flipped ? p.n : p.m;
        count = flipped ? p.m : p.n;
        k_begin = split * p.split_k;
        k_end = p.k - k_begin < p.split_k ? p.k : k_begin + p.split_k;
        d = d_ + batch * p.d_batch.get() + split * p.d_split.get();
    }

    WW_INLINE void put(T sum, const T *c, const T *bias, T alpha, T beta, T p0, T p1, const Matmul &p, unsigned row, unsigned s) {
        if (row >= rows || s >= count) return;
        const unsigned r = flipped ? s : row, q = flipped ? row : s;
        T *to = d + r * p.ldd.get() + q;
        *to = p.splits > 1 ? sum : matmul_value(sum, c ? c + offset_c : c, bias, alpha, beta, p0, p1, p, r, q);
    }
};

// Large operand with k contiguous: eight warps, each with ROWS rows.
template <class T, int S>
WW_INLINE void matmul_dot(const T *a, const T *b, const T *c, const T *bias, T *d, T alpha, T beta, T p0, T p1, const Matmul &p) {
    constexpr int ROWS = S <= 2 ? 2 : 4;
    const unsigned rows = p.flags & LARGE_B ? p.n : p.m, blocks = (rows + 8 * ROWS - 1) / (8 * ROWS);
    Skinny<T> job(a, b, d, p, blockIdx.x / blocks);
    const unsigned row = (blockIdx.x % blocks * 8 + (threadIdx.x >> 5)) * ROWS;
    if (row >= job.rows) return;
    T acc[ROWS][S] = {};
    const T *large = job.large + (long long)row * job.ld;
    const unsigned left = job.rows - row;
    const long long ss = job.count == 1 ? 0 : job.ss;
    if (p.flags & (job.flipped ? VECTOR_B : VECTOR_A))
        skinny_dot_range<T, S, ROWS, true>(acc, large, job.ld, left, job.small, ss, job.sk, job.count, job.k_begin, job.k_end);
    else
        skinny_dot_range<T, S, ROWS, false>(acc, large, job.ld, left, job.small, ss, job.sk, job.count, job.k_begin, job.k_end);
    const int lane = threadIdx.x & 31;
    T mine = T(0);
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int s = 0; s < S; ++s) {
            const T sum = warp_sum(acc[r][s]);
            if (lane == r * S + s) mine = sum;
        }
    if (lane < ROWS * S) job.put(mine, c, bias, alpha, beta, p0, p1, p, row + lane / S, lane % S);
}

// Large operand with its rows contiguous: a block has 32 * W of them.
template <class T, int S>
WW_INLINE void matmul_axpy(const T *a, const T *b, const T *c, const T *bias, T *d, T alpha, T beta, T p0, T p1, const Matmul &p) {
    constexpr int W = 16 / sizeof(T), COLUMNS = 32 * W, CHUNK = 128;
    __shared__ T shared[S * (8 * COLUMNS > CHUNK ? 8 * COLUMNS : CHUNK)];
    const unsigned rows = p.flags & LARGE_B ? p.n : p.m, blocks = (rows + COLUMNS - 1) / COLUMNS;
    Skinny<T> job(a, b, d, p, blockIdx.x / blocks);
    const unsigned first = blockIdx.x % blocks * COLUMNS;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, room = (int)(job.rows - first) - lane * W;
    T acc[S][W] = {};
    skinny_axpy<T, S, W>(acc, job.large + first, job.ld, room, p.flags & (job.flipped ? VECTOR_B : VECTOR_A), job.small, job.ss, job.sk, job.count, job.k_begin, job.k_end, shared);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < S; ++s)
#pragma unroll
        for (int v = 0; v < W; ++v) shared[(warp * S + s) * COLUMNS + lane * W + v] = acc[s][v];
    __syncthreads();
    for (int e = threadIdx.x; e < S * COLUMNS; e += 256) {
        T sum = shared[e];
#pragma unroll
        for (int w = 1; w < 8; ++w) sum += shared[w * S * COLUMNS + e];
        job.put(sum, c, bias, alpha, beta, p0, p1, p, first + e % COLUMNS, e / COLUMNS);
    }
}

#define MATMUL_TILE(NAME, BLOCKS, T, ...)                                                                                  \
    extern "C" __global__ void __launch_bounds__(Tile<T, __VA_ARGS__>::THREADS, BLOCKS) NAME(MATMUL_ARGS(T)) {             \
        matmul_tile<Tile<T, __VA_ARGS__>>(MATMUL_PASS, blockIdx.x);                                                                  \
    }

#define MATMUL_SKINNY(T, N, S, DOT_BLOCKS, AXPY_BLOCKS)                                                                    \
    extern "C" __global__ void __launch_bounds__(256, DOT_BLOCKS) matmul_##N##_dot##S(MATMUL_ARGS(T)) {                    \
        matmul_dot<T, S>(MATMUL_PASS);                                                                                     \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256, AXPY_BLOCKS) matmul_##N##_axpy##S(MATMUL_ARGS(T)) {                  \
        matmul_axpy<T, S>(MATMUL_PASS);                                                                                    \
    }

#define MATMUL_REDUCE(T, N)                                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        matmul_##N##_reduce(const T *partial, const T *c, const T *bias, T *d, T alpha, T beta, T p0, T p1, Matmul p) {    \
        matmul_reduce(partial, c, bias, d, alpha, beta, p0, p1, p);                                                        \
    }

MATMUL_TILE(matmul_f32_128x256, 1, float, 128, 256, 8, 16, 8, 3)
MATMUL_TILE(matmul_f32_128x64, 3, float, 128, 64, 8, 8)
MATMUL_TILE(matmul_f32_64x64, 4, float, 64, 64, 8, 4)
MATMUL_TILE(matmul_f32_32x32, 8, float, 32, 32, 4, 4)
// From 8.0 on gemm_double.cu has these.
#if __CUDA_ARCH__ < 800
MATMUL_TILE(matmul_f64_64x64, 2, double, 64, 64, 8, 4)
MATMUL_TILE(matmul_f64_32x32, 6, double, 32, 32, 4, 4)
#endif
MATMUL_SKINNY(float, f32, 1, 4, 3)
MATMUL_SKINNY(float, f32, 4, 2, 2)
MATMUL_SKINNY(float, f32, 8, 2, 2)
MATMUL_SKINNY(double, f64, 1, 3, 2)
MATMUL_SKINNY(double, f64, 4, 2, 2)
MATMUL_REDUCE(float, f32)
MATMUL_REDUCE(double, f64)
