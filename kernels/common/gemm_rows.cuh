// Products of a matrix with k contiguous by one vector, by float32 chains: a warp owns four rows, its lanes walk along k
// with four vectors of each row in flight, two groups of warps take turns.
#pragma once
#include "gemm_direct.cuh"

struct RowsTile {
    static constexpr int ROWS = 4, UNROLL = 4, WARPS = 8, THREADS = 32 * WARPS, WK = 2;
    static constexpr int LT = ROWS * WARPS / WK, ST = 1, OUT = LT, SN4 = 1;
};

WW_INLINE void matmul_rows(DIRECT_ARGS) {
    using Tl = RowsTile;
    constexpr int ROWS = Tl::ROWS, UNROLL = Tl::UNROLL, RUN = 128 * UNROLL, STEP = RUN * Tl::WK;
    __shared__ __align__(16) float parts[Tl::WK * Tl::OUT + 4];
    const DirectJob job(a, b, p, Tl::LT, Tl::ST);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, wk = warp / (Tl::WARPS / Tl::WK), first = warp % (Tl::WARPS / Tl::WK) * ROWS;
    const float *l[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = job.l0 + first + r;
        l[r] = job.l + (row < (int)p.rows_l ? row : 0) * p.l_row.get();
    }
    float sums[ROWS] = {};
    int k = job.k_begin + wk * RUN;
    if ((p.flags & DIRECT_VECTOR_L) && (p.flags & DIRECT_VECTOR_S)) {
        float x[UNROLL][ROWS][4];
        if (!(p.flags & DIRECT_EARLY)) grid_wait();
        if (k + RUN <= job.k_end) {
#pragma unroll
            for (int u = 0; u < UNROLL; ++u)
#pragma unroll
                for (int r = 0; r < ROWS; ++r) load_stream<4, false>(x[u][r], l[r] + k + u * 128 + lane * 4);
        }
        if (p.flags & DIRECT_EARLY) grid_wait();
        grid_release();
#pragma unroll 1
        for (; k + RUN <= job.k_end; k += STEP) {
            const bool more = k + STEP + RUN <= job.k_end;
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                const int at = k + u * 128 + lane * 4;
                float y[4];
                load_run<4>(y, job.s + at);
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
#pragma unroll
                    for (int v = 0; v < 4; ++v) sums[r] = fmaf(x[u][r][v], y[v], sums[r]);
                if (more) {
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) load_stream<4, false>(x[u][r], l[r] + at + STEP);
                }
            }
        }
    } else {
        grid_wait();
        grid_release();
    }
    // What is left of this warp's last run, or all of it where vectors are not aligned.
#pragma unroll 1
    for (; k < job.k_end; k += STEP) {
        const int end = job.k_end - k < RUN ? job.k_end : k + RUN;
#pragma unroll 1
        for (int at = k + lane; at < end; at += 32) {
            const float y = job.s[at];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) sums[r] = fmaf(l[r][at], y, sums[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const float sum = warp_sum(sums[r]);
        if (lane == 0) parts[wk * Tl::OUT + first + r] = sum;
    }
    direct_finish<Tl>(parts, job, true, c, bias, d, alpha, beta, p0, p1, p, partial, tickets);
}
