// Products where one side has at most eight rows: the large operand streams once, each output's sum is formed in a
// fixed order. out[p, s] = sum over k of large[p, k] * small[s, k].
#pragma once
#include "gemm_tile.cuh"

template <class T, int W> WW_INLINE void read_run(T (&to)[W], const T *from) {
    if constexpr (W == 1)
        to[0] = from[0];
    else
        read_fragment<T, W>(to, from, 0);
}

// Large operand with k contiguous. A warp owns ROWS rows; lanes walk along k.
template <class T, int S, int ROWS, bool VECTORS>
WW_INLINE void skinny_dot_range(T (&acc)[ROWS][S], const T *large, long long ld, unsigned rows_left, const T *small, long long ss,
                                long long sk, unsigned count, unsigned k_begin, unsigned k_end) {
    constexpr int W = VECTORS ? 16 / sizeof(T) : 1;
    const int lane = threadIdx.x & 31;
    const unsigned whole = k_begin + (k_end - k_begin) / (32 * W) * (32 * W);
#pragma unroll (S > 4 ? 1 : 2)
    for (unsigned k = k_begin + lane * W; k < whole; k += 32 * W) {
        T x[ROWS][W];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const T *p = large + (r < (int)rows_left ? r : 0) * ld + k;
            read_run<T, W>(x[r], p);
        }
#pragma unroll
        for (int s = 0; s < S; ++s)
#pragma unroll
            for (int v = 0; v < W; ++v) {
                const T y = small[(s < (int)count ? s : 0) * ss + (long long)(k + v) * sk];
#pragma unroll
                for (int r = 0; r < ROWS; ++r) acc[r][s] = ww_fma(x[r][v], y, acc[r][s]);
            }
    }
    for (unsigned k = whole + lane; k < k_end; k += 32)
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const T x = large[(r < (int)rows_left ? r : 0) * ld + k];
#pragma unroll
            for (int s = 0; s < S; ++s) acc[r][s] = ww_fma(x, small[(s < (int)count ? s : 0) * ss + (long long)k * sk], acc[r][s]);
        }
}

template <class T> WW_INLINE T warp_sum(T v) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

// Large operand with p contiguous. A block owns 32 * W columns p; its eight warps take interleaved k and are summed
// in warp order. `stage` holds the small operand, 64 values of k by S, then the partial sums.
template <class T, int S, int W>
WW_INLINE void skinny_axpy(T (&acc)[S][W], const T *large, long long ld, int room, bool vectors, const T *small, long long ss,
                           long long sk, unsigned s_count, unsigned k_begin, unsigned k_end, T *stage) {
    constexpr int CHUNK = 128;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (unsigned k0 = k_begin; k0 < k_end; k0 += CHUNK) {
        __syncthreads();
        for (int e = threadIdx.x; e < CHUNK * S; e += 256) {
            const unsigned k = k0 + e / S, s = e % S;
            stage[e] = k < k_end && s < s_count ? small[s * ss + (long long)k * sk] : T(0);
        }
        __syncthreads();
        const int count = k_end - k0 < CHUNK ? (int)(k_end - k0) : CHUNK;
        const T *p = large + (long long)(k0 + warp) * ld + lane * W;
#pragma unroll 4
        for (int k = warp; k < count; k += 8, p += 8 * ld) {
            T x[W];
            if (vectors && room >= W)
                read_run<T, W>(x, p);
            else
#pragma unroll
                for (int v = 0; v < W; ++v) x[v] = v < room ? p[v] : T(0);
#pragma unroll
            for (int s = 0; s < S; ++s)
#pragma unroll
                for (int v = 0; v < W; ++v) acc[s][v] = ww_fma(x[v], stage[k * S + s], acc[s][v]);
        }
    }
}
