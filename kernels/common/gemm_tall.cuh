// Products of very many rows with k side by side by a matrix that fits into shared memory: blocks stay, each splits the small
// operand once, its warps then walk over 16 rows at a time, whose fragments come straight from memory one tile ahead. Rows
// of the long operand and of the result, up to 64 columns in whole vectors, begin at multiples of 16 bytes.
#pragma once
#include "gemm_direct.cuh"

template <int WARPS_> struct TallTile {
    static constexpr int WARPS = WARPS_, THREADS = 32 * WARPS;
    // Rows of a warp's tile, columns of the result in fragments of 8, times 16 of k that a lane holds.
    static constexpr int ROWS = 16, SN = 8, GROUP = 2;
    // Words of shared memory for 16 of k.
    static constexpr int CHUNK = SN * 2 * 32 * 4;

    // A pair of fragments gives each lane four neighbours of a row.
    static WW_INLINE int column(int j, int p) { return j / 2 * 16 + p / 2 * 4 + j % 2 * 2 + p % 2; }
};

// The short operand as fragments, [chunk][fragment][hi, lo][lane][4], with zeros beyond its ends.
template <class Tl> WW_INLINE void tall_stage(uint4 *to, const float *b, const Direct &p, int chunks) {
    const long long s_row = p.s_row.get(), s_k = p.s_k.get();
#pragma unroll 1
    for (int i = threadIdx.x; i < chunks * Tl::SN * 32; i += Tl::THREADS) {
        const int lane = i & 31, j = i / 32 % Tl::SN, k = i / (32 * Tl::SN) * 16 + (lane & 3) * 4, column = Tl::column(j, lane >> 2);
        unsigned hi[4], lo[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
            direct_split<false>(column < (int)p.rows_s && k + e < (int)p.k ? b[column * s_row + (k + e) * s_k] : 0.0f, hi[e], lo[e]);
        to[(i - lane) * 2 + lane] = make_uint4(hi[0], hi[1], hi[2], hi[3]);
        to[(i - lane) * 2 + 32 + lane] = make_uint4(lo[0], lo[1], lo[2], lo[3]);
    }
}

WW_INLINE uint4 tall_read(const uint4 *from) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"((unsigned)__cvta_generic_to_shared(from)));
    return v;
}

// Where a warp's tile begins; the last one moves back to stay inside.
template <class Tl> WW_INLINE int tall_row(int tile, const Direct &p) {
    const int last = (int)p.rows_l - Tl::ROWS, row = tile * Tl::ROWS;
    return row < last ? row : last;
}

// Where this lane reads a tile's elements from a k on: rows 2 g and 2 g + 1 at k + 4 t.
template <class Tl> WW_INLINE const float *tall_from(const float *a, const Direct &p, int tile, int k) {
    const int lane = threadIdx.x & 31;
    return a + (tall_row<Tl>(tile, p) + (lane >> 2) * 2) * p.l_row.get() + k + (lane & 3) * 4;
}

// A chunk's elements. Beyond the end of k, where `left` of it are to come, it is others, which meet zeros.
WW_INLINE void tall_load(float (&x)[2][4], const float *from, const Direct &p, int at, int left) {
    from += at < left ? at : 0;
    load_stream<4, true>(x[0], from);
    load_stream<4, true>(x[1], from + p.l_row.get());
}

// One sum by a float32 chain, for operands that do not split.
WW_INLINE float tall_chain(const float *l, const float *s, const Direct &p) {
    const long long s_k = p.s_k.get();
    float sum = 0.0f;
#pragma unroll 1
    for (int k = 0; k < (int)p.k; ++k) sum = fmaf(l[k], s[k * s_k], sum);
    return sum;
}

template <class Tl> WW_INLINE void matmul_tall(DIRECT_ARGS) {
    extern __shared__ __align__(16) float parts[];
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const int tiles = ((int)p.rows_l + Tl::ROWS - 1) / Tl::ROWS, step = (int)gridDim.x * Tl::WARPS;
    const int groups = ((int)p.k + Tl::GROUP * 16 - 1) / (Tl::GROUP * 16);
    float *own = parts + threadIdx.x * 4;
    uint4 *s = (uint4 *)(parts + Tl::THREADS * 4);
    const int first = (int)blockIdx.x * Tl::WARPS + (int)(threadIdx.x >> 5);
    int tile = first;
    float x[Tl::GROUP][2][4];
    if (!(p.flags & DIRECT_EARLY)) grid_wait();
#pragma unroll
    for (int i = 0; i < Tl::GROUP; ++i) tall_load(x[i], tall_from<Tl>(a, p, tile, 0), p, i * 16, (int)p.k - 4 * t);
    if (p.flags & DIRECT_EARLY) grid_wait();
    grid_release();
    tall_stage<Tl>(s, b, p, groups * Tl::GROUP);
    __syncthreads();
    const bool plain = !c && !bias && p.act == 0;
    const float factor = plain ? alpha : 1.0f;
    bool bad = false;
    const int n = (int)p.rows_s;
    const long long ldd = p.ldd.get();
#pragma unroll 1
    for (; tile < tiles; tile += step) {
        float sums[Tl::SN][4] = {}, cross[Tl::SN][4] = {};
#pragma unroll 1
        for (int group = 0; group < groups; ++group) {
            const bool more = group + 1 < groups;
            const int next = more ? tile : tile + step, next_k = more ? (group + 1) * Tl::GROUP * 16 : 0, left = (int)p.k - next_k - 4 * t;
            const float *next_from = tall_from<Tl>(a, p, next, left > 0 ? next_k : 0);
#pragma unroll
            for (int i = 0; i < Tl::GROUP; ++i) {
                // Keeps the compiler from reading fragments further ahead than there are registers.
                __syncwarp();
                // Rounded, not cut: sums are short, and a chain's error small.
                unsigned hi[2][4], lo[2][4];
#pragma unroll
                for (int h = 0; h < 2; ++h)
#pragma unroll
                    for (int e = 0; e < 4; ++e) direct_split<false>(x[i][h][e], hi[h][e], lo[h][e]);
                tall_load(x[i], next_from, p, i * 16, left);
                const uint4 *from = s + (group * Tl::GROUP + i) * (Tl::SN * 64) + lane;
#pragma unroll
                for (int j = 0; j < Tl::SN; ++j) {
                    const uint4 u = tall_read(from + j * 64), v = tall_read(from + j * 64 + 32);
                    const unsigned s_hi[4] = {u.x, u.y, u.z, u.w}, s_lo[4] = {v.x, v.y, v.z, v.w};
                    float high[4] = {};
#pragma unroll
                    for (int k = 0; k < 4; k += 2) {
                        mma_tf32(cross[j], lo, k, s_hi);
                        mma_tf32(high, hi, k, s_hi);
                        mma_tf32(cross[j], hi, k, s_lo);
                    }
#pragma unroll
                    for (int e = 0; e < 4; ++e) sums[j][e] += high[e];
                }
            }
        }
        bool exact = true;
#pragma unroll
        for (int j = 0; j < Tl::SN; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                sums[j][e] = fmaf(cross[j][e], 1.0f / 8192, sums[j][e]);
                exact = exact && fabsf(sums[j][e]) < 0x1p126f;
            }
        const int row0 = tall_row<Tl>(tile, p);
        const bool good = __all_sync(0xffffffffu, exact);
        const float scale = good ? factor : __int_as_float(0x7fc00000);
        bad = bad || !good;
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int j = 0; j < Tl::SN; j += 2) {
                const int row = row0 + 2 * g + h, column = j * 8 + 4 * t;
                if (row < tile * Tl::ROWS) continue;
                float *to = d + row * ldd + column;
                const float v[4] = {scale * sums[j][2 * h], scale * sums[j][2 * h + 1], scale * sums[j + 1][2 * h], scale * sums[j + 1][2 * h + 1]};
                if (column < n) store_vector(to, v);
            }
    }
    if (plain && !bad) return;
    // What is more than a factor is done by each warp to what it wrote, and sums that are NaN are made anew.
    __syncwarp();
    const long long c_row = p.c_row.get(), c_step = p.c_column.get();
#pragma unroll 1
    for (tile = first; tile < tiles; tile += step) {
        // Rows that the last tile shares with the one before are done once.
        const int row0 = tile * Tl::ROWS, rows = (int)p.rows_l - row0 < Tl::ROWS ? (int)p.rows_l - row0 : Tl::ROWS;
#pragma unroll 1
        for (int e = lane; e < rows * Tl::SN * 2; e += 32) {
            const int row = row0 + e / (Tl::SN * 2), column = e % (Tl::SN * 2) * 4;
            if (column >= n) continue;
            float *to = d + row * ldd + column;
            if (bad) {
                // NaN stands for sums that are to be made anew.
#pragma unroll 1
                for (int i = 0; i < 4; ++i)
                    if (to[i] != to[i]) to[i] = factor * tall_chain(a + row * p.l_row.get(), b + (column + i) * p.s_row.get(), p);
            }
            if (plain) continue;
            direct_store_here(*(const float4 *)to, own, to, 4, true, c ? c + row * c_row + column * c_step : nullptr, c_step,
                              bias ? bias + row * p.bias_row + column * p.bias_column : nullptr, p.bias_column, alpha, beta, p.act, p0, p1);
        }
    }
}
