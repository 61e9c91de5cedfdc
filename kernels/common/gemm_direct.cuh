// Products whose operands go straight from global memory into fragments of the matrix unit (gemm_tf32.cuh): for few rows
// by many, where the long operand streams by once, and for products that are small in all.
#pragma once
#include "gemm_skinny.cuh"
#include "gemm_tf32.cuh"

// K_MAJOR: operands with k side by side rather than rows.
template <int LM_, int SN_, int WL_, int WS_, int WK_, int DEPTH_, bool K_MAJOR_L_, bool K_MAJOR_S_>
struct DirectTile : DirectShape<LM_, SN_, WL_, WS_, WK_> {
    // Chunks that a warp has in flight.
    static constexpr int DEPTH = DEPTH_;
    static constexpr bool K_MAJOR_L = K_MAJOR_L_, K_MAJOR_S = K_MAJOR_S_;
};

template <int N> WW_INLINE void load_run(float (&to)[N], const float *p) {
    if constexpr (N == 4) {
        const float4 v = *(const float4 *)p;
        to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
    } else if constexpr (N == 2) {
        const float2 v = *(const float2 *)p;
        to[0] = v.x, to[1] = v.y;
    } else {
        to[0] = *p;
    }
}

// What is read once passes by the first cache. LINES: reads of less than 128 bytes in a row bring the rest to L2.
template <int N, bool LINES> WW_INLINE void load_stream(float (&to)[N], const float *p) {
#if __CUDA_ARCH__ >= 900
    if constexpr (N == 4 && LINES)
        asm volatile("ld.global.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "l"(p));
    else if constexpr (N == 4)
        asm volatile("ld.global.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3]) : "l"(p));
    else
        asm volatile("ld.global.L1::no_allocate.L2::128B.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "l"(p));
#else
    load_run(to, p);
#endif
}

// Brings whole chunks whose vectors are aligned.
template <class Tl> struct DirectLoader {
    static constexpr int STEP = 16 * Tl::WK;
    // Where this lane's next chunk begins.
    const float *l, *s;
    // Elements to the next row or k, and to the next chunk.
    unsigned l_pitch, s_pitch;
    long long l_step, s_step;
    int rows_s, s0;

    static WW_INLINE int g() { return (threadIdx.x & 31) >> 2; }
    static WW_INLINE int t() { return threadIdx.x & 3; }

    WW_INLINE DirectLoader(const float *l_, const float *s_, const Direct &p, int l0, int s0_, int k0) : rows_s((int)p.rows_s), s0(s0_) {
        const int k = k0 + 4 * t(), row = l0 + Tl::row(0, 0, g());
        l_pitch = Tl::K_MAJOR_L ? p.l_row.lo : p.l_k.lo;
        l = Tl::K_MAJOR_L ? l_ + (unsigned long long)row * l_pitch + k : l_ + (unsigned long long)k * l_pitch + row;
        l_step = Tl::K_MAJOR_L ? STEP : (long long)STEP * l_pitch;
        s_pitch = Tl::K_MAJOR_S ? p.s_row.lo : p.s_k.lo;
        s = Tl::K_MAJOR_S ? s_ + k : s_ + (unsigned long long)k * s_pitch;
        s_step = Tl::K_MAJOR_S ? STEP : (long long)STEP * s_pitch;
    }

    WW_INLINE void load_l(DirectChunk<Tl> &to) {
        if constexpr (Tl::K_MAJOR_L) {
#pragma unroll
            for (int i = 0; i < Tl::LM; ++i)
#pragma unroll
                for (int h = 0; h < 2; ++h) load_stream<4, true>(to.l[i][h], l + (unsigned long long)l_pitch * Tl::row(i, h, 0));
        } else {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float *p = l + (unsigned long long)l_pitch * e;
                if constexpr (Tl::LM == 1) {
                    float v[2];
                    load_stream<2, true>(v, p);
                    to.l[0][0][e] = v[0], to.l[0][1][e] = v[1];
                } else {
#pragma unroll
                    for (int i = 0; i < Tl::LM; i += 2) {
                        float v[4];
                        load_stream<4, false>(v, p + i * 16);
                        to.l[i][0][e] = v[0], to.l[i][1][e] = v[1], to.l[i + 1][0][e] = v[2], to.l[i + 1][1][e] = v[3];
                    }
                }
            }
        }
        l += l_step;
    }

    WW_INLINE void load_s(DirectChunk<Tl> &to) {
        if constexpr (Tl::K_MAJOR_S) {
#pragma unroll
            for (int j = 0; j < Tl::SN; ++j) {
                const int row = s0 + Tl::column(j, g());
                load_run<4>(to.s[j], s + (unsigned long long)s_pitch * (row < rows_s ? row : rows_s - 1));
            }
        } else {
            // Vectors are allowed where the number of rows is a multiple of theirs, so that none crosses the end.
#pragma unroll
            for (int e = 0; e < 4; ++e)
#pragma unroll
                for (int j = 0; j < Tl::SN; j += Tl::SN4) {
                    const int row = s0 + Tl::column(j, g());
                    float v[Tl::SN4];
                    load_run<Tl::SN4>(v, s + (unsigned long long)s_pitch * e + (row < rows_s ? row : rows_s - Tl::SN4));
#pragma unroll
                    for (int i = 0; i < Tl::SN4; ++i) to.s[j + i][e] = v[i];
                }
        }
        s += s_step;
    }
};

// The same for any strides, and for a chunk that the end of k cuts off.
template <class Tl> WW_INLINE void load_any(DirectChunk<Tl> &to, const DirectJob &job, const Direct &p, int l0, int s0, int k0) {
    const int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3, k = k0 + 4 * t;
    const long long l_row = p.l_row.get(), l_k = p.l_k.get(), s_row = p.s_row.get(), s_k = p.s_k.get();
#pragma unroll
    for (int i = 0; i < Tl::LM; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = l0 + Tl::row(i, h, g);
            const float *at = job.l + (row < (int)p.rows_l ? row : 0) * l_row + k * l_k;
#pragma unroll
            for (int e = 0; e < 4; ++e, at += l_k) to.l[i][h][e] = k + e < job.k_end ? *at : 0.0f;
        }
#pragma unroll
    for (int j = 0; j < Tl::SN; ++j) {
        const int row = s0 + Tl::column(j, g);
        const float *at = job.s + (row < (int)p.rows_s ? row : 0) * s_row + k * s_k;
#pragma unroll
        for (int e = 0; e < 4; ++e, at += s_k) to.s[j][e] = k + e < job.k_end ? *at : 0.0f;
    }
}

template <class Tl> WW_INLINE void matmul_direct(DIRECT_ARGS) {
    extern __shared__ __align__(16) float parts[];
    const DirectJob job(a, b, p, Tl::LT, Tl::ST);
    const int warp = threadIdx.x >> 5, wk = warp / (Tl::WL * Tl::WS), wl = warp / Tl::WS % Tl::WL, ws = warp % Tl::WS;
    const int l_warp = job.l0 + wl * Tl::LW, s_warp = job.s0 + ws * Tl::SW;
    constexpr int STEP = Tl::WK * 16;
    float sums[Tl::LM][Tl::SN][4] = {};
    int k = job.k_begin + wk * 16;
    if ((p.flags & DIRECT_VECTOR_L) && (p.flags & DIRECT_VECTOR_S) && (int)p.rows_l - l_warp >= Tl::LW) {
        DirectLoader<Tl> load(job.l, job.s, p, l_warp, s_warp, k);
        DirectChunk<Tl> chunk[Tl::DEPTH];
        const int full = job.k_end - 15;
        if (!(p.flags & DIRECT_EARLY)) grid_wait();
#pragma unroll
        for (int i = 0; i < Tl::DEPTH; ++i)
            if (k + i * STEP < full) load.load_l(chunk[i]);
        if (p.flags & DIRECT_EARLY) grid_wait();
        grid_release();
#pragma unroll
        for (int i = 0; i < Tl::DEPTH; ++i)
            if (k + i * STEP < full) load.load_s(chunk[i]);
        while (k < full) {
#pragma unroll
            for (int i = 0; i < Tl::DEPTH; ++i) {
                if (k >= full) break;
                direct_multiply<Tl>(sums, chunk[i]);
                if (k + Tl::DEPTH * STEP < full) {
                    load.load_l(chunk[i]);
                    load.load_s(chunk[i]);
                }
                k += STEP;
            }
        }
    } else {
        grid_wait();
        grid_release();
    }
#pragma unroll 1
    for (; k < job.k_end; k += STEP) {
        DirectChunk<Tl> chunk;
        load_any<Tl>(chunk, job, p, l_warp, s_warp, k);
        direct_multiply<Tl>(sums, chunk);
    }
    const bool exact = direct_is_exact<Tl>(sums);
    direct_put<Tl>(parts + wk * Tl::OUT, sums, wl * Tl::LW, ws * Tl::SW, job.flipped);
    direct_finish<Tl>(parts, job, exact, c, bias, d, alpha, beta, p0, p1, p, partial, tickets);
}
