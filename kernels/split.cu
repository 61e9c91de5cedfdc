// levels: sm_75
// Prepares float32 matrices for products by float16 (common/split.cuh): planes hi and lo, [matrix][2][row][pitch] with k
// contiguous, an exponent for each row, and the operand's range. Two operands in one launch, each with its own blocks.
// split_f32_first: operands whose k is contiguous, whole (a warp a row for k <= 1024, else a block); of the others the
// largest magnitudes of chunks of k, [matrix][chunk][row], 128 rows a block. split_f32_second: those others, transposed;
// 64 rows by 128 of k a block. 256 threads, grid.x = the blocks of both.
#include "common/split.cuh"

enum : unsigned { OPERAND_TRANSPOSE = 1, OPERAND_VECTOR = 2, OPERAND_HI_ONLY = 4 };

struct SplitOperand {
    // rows of A or columns of B; blocks of this launch; chunk = values of k whose largest is found together.
    unsigned rows, k, pitch, flags, matrices, blocks, chunk, chunks, epoch;
    Wide ld, matrix;
};

struct SplitPair {
    SplitOperand a, b;
};

WW_INLINE unsigned short half_bits(float x) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

WW_INLINE float half_value(unsigned short h) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

WW_INLINE unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

WW_INLINE unsigned warp_largest(unsigned v) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
        const unsigned other = __shfl_xor_sync(0xffffffffu, v, d);
        v = other > v ? other : v;
    }
    return v;
}

// Whether a row's values matter to the guard: rows of zeros give zeros, and special ones are computed again.
WW_INLINE bool split_counts(unsigned largest) { return largest != 0 && largest < 0x7f800000u; }

// Two values to a word of each plane. tiny and defect as common/split.cuh defines them.
struct Splitter {
    int n;
    bool dead, tiny = false;
    unsigned defect = 0;

    WW_INLINE Splitter(int e) : n(e >= SPLIT_SPECIAL ? 0 : -e), dead(e >= SPLIT_SPECIAL) {}

    WW_INLINE unsigned short one(float x, unsigned short &lo) {
        const float v = dead ? 0.0f : scale_by(x, n);
        const unsigned short hi = half_bits(v);
        lo = half_bits(__fmul_rn(__fsub_rn(v, half_value(hi)), SPLIT_LOW));
        tiny |= x != 0.0f && !dead && fabsf(v) < 0x1p-15f;
        defect += fabsf(v) < 64.0f;
        return hi;
    }

    WW_INLINE void two(float x, float y, unsigned &hi, unsigned &lo) {
        unsigned short lx, ly;
        const unsigned hx = one(x, lx), hy = one(y, ly);
        hi = hx | hy << 16;
        lo = lx | (unsigned)ly << 16;
    }
};

// Four values at k, zeros beyond the end.
WW_INLINE void load_four(float (&v)[4], const float *row, unsigned k, unsigned end, bool vectors) {
    if (vectors && k + 4 <= end) {
        const float4 q = *(const float4 *)(row + k);
        v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = k + i < end ? row[k + i] : 0.0f;
    }
}

WW_INLINE void store_four(Splitter &split, const float (&v)[4], unsigned short *hi, unsigned short *lo, bool hi_only) {
    uint2 h, l;
    split.two(v[0], v[1], h.x, l.x);
    split.two(v[2], v[3], h.y, l.y);
    *(uint2 *)hi = h;
    if (!hi_only) *(uint2 *)lo = l;
}

// A row by GROUP threads; the first 32 values of each thread stay in registers, longer rows are read again.
template <int GROUP>
WW_INLINE void split_row(const float *x, unsigned short *planes, int *exponents, unsigned long long *range, const SplitOperand &o, unsigned block) {
    constexpr int HELD = 8, STEP = GROUP * 4;
    __shared__ unsigned shared[8];
    const unsigned lane = threadIdx.x % GROUP;
    const unsigned index = block * (256 / GROUP) + threadIdx.x / GROUP, matrix = index / o.rows, row = index - matrix * o.rows;
    const bool live = matrix < o.matrices;
    const bool vectors = o.flags & OPERAND_VECTOR, hi_only = o.flags & OPERAND_HI_ONLY;
    const unsigned end = live ? o.k : 0;
    const float *from = x + matrix * o.matrix.get() + row * o.ld.get();
    float held[HELD][4];
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < HELD; ++i) load_four(held[i], from, i * STEP + lane * 4, end, vectors);
#pragma unroll
    for (int i = 0; i < HELD; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) largest = max(largest, magnitude(held[i][j]));
    for (unsigned k = HELD * STEP + lane * 4; k < end; k += STEP) {
        float v[4];
        load_four(v, from, k, end, vectors);
#pragma unroll
        for (int j = 0; j < 4; ++j) largest = max(largest, magnitude(v[j]));
    }
    largest = warp_largest(largest);
    if (GROUP > 32) {
        if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = largest;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i) largest = max(largest, shared[i]);
    }
    if (!live) return;
    const int e = split_exponent(largest);
    Splitter split(e);
    unsigned short *hi = planes + (2ull * matrix * o.rows + row) * o.pitch, *lo = hi + (unsigned long long)o.rows * o.pitch;
    unsigned defect = 0;
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
        const unsigned k = i * STEP + lane * 4;
        if (k < end) store_four(split, held[i], hi + k, lo + k, hi_only);
        if (i == 0) defect = lane < 32 ? split.defect : 0;
    }
    for (unsigned k = HELD * STEP + lane * 4; k < end; k += STEP) {
        float v[4];
        load_four(v, from, k, end, vectors);
        store_four(split, v, hi + k, lo + k, hi_only);
    }
    const bool tiny = __any_sync(0xffffffffu, split.tiny);
    if (tiny && (threadIdx.x & 31) == 0) Range::raise(range, Range::TINY, o.epoch, 1);
    if (lane < 32) {
        // Values past the end were counted as zeros.
        if (end < SPLIT_WINDOW) {
            const unsigned k = lane * 4, over = k >= end ? 0 : k + 4 > end ? k + 4 - end : 0;
            defect -= over;
        }
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) defect += __shfl_xor_sync(0xffffffffu, defect, d);
        if (lane == 0) {
            exponents[index] = e;
            Range::raise(range, Range::EXPONENT, o.epoch, (unsigned)(e + SPLIT_BIAS));
            if (split_counts(largest)) Range::raise(range, Range::DEFECT, o.epoch, defect);
        }
    }
}

// Rows contiguous: the largest magnitudes of 128 rows over a chunk of k.
WW_INLINE void largest_of_chunk(const float *x, unsigned *partial, const SplitOperand &o, unsigned block) {
    __shared__ unsigned shared[8][128];
    const unsigned panels = (o.rows + 127) / 128, panel = block % panels, chunk = block / panels % o.chunks, matrix = block / panels / o.chunks;
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, first = panel * 128, begin = chunk * o.chunk;
    const unsigned end = o.k - begin < o.chunk ? o.k : begin + o.chunk;
    const bool vectors = (o.flags & OPERAND_VECTOR) && first + 128 <= o.rows;
    const unsigned step = vectors ? 1 : 32, at = vectors ? lane * 4 : lane;
    unsigned largest[4] = {};
    const float *from = x + matrix * o.matrix.get() + first;
    if (vectors) {
#pragma unroll 8
        for (unsigned k = begin + warp; k < end; k += 8) {
            const float4 q = *(const float4 *)(from + k * o.ld.get() + at);
            largest[0] = max(largest[0], magnitude(q.x));
            largest[1] = max(largest[1], magnitude(q.y));
            largest[2] = max(largest[2], magnitude(q.z));
            largest[3] = max(largest[3], magnitude(q.w));
        }
    } else {
#pragma unroll 4
        for (unsigned k = begin + warp; k < end; k += 8)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                if (first + at + j * 32 < o.rows) largest[j] = max(largest[j], magnitude(from[k * o.ld.get() + at + j * 32]));
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) shared[warp][at + j * step] = largest[j];
    __syncthreads();
    const unsigned r = threadIdx.x;
    if (r >= 128 || first + r >= o.rows) return;
    unsigned all = 0;
#pragma unroll
    for (int w = 0; w < 8; ++w) all = max(all, shared[w][r]);
    partial[((unsigned long long)matrix * o.chunks + chunk) * o.rows + first + r] = all;
}

WW_INLINE void split_first(const float *x, unsigned short *planes, int *exponents, unsigned *partial, unsigned long long *range, const SplitOperand &o, unsigned block) {
    if (o.flags & OPERAND_TRANSPOSE)
        largest_of_chunk(x, partial, o, block);
    else if (o.k <= 1024)
        split_row<32>(x, planes, exponents, range, o, block);
    else
        split_row<256>(x, planes, exponents, range, o, block);
}

// 64 rows by 128 of k, read along the rows, written along k. In shared memory the row index is turned by k / 8, so that
// 16 groups of 8 k and two rows meet 32 banks.
WW_INLINE void split_second(const float *x, unsigned short *planes, int *exponents, const unsigned *partial, unsigned long long *range, const SplitOperand &o, unsigned block) {
    __shared__ __align__(16) float tile[128 * 64];
    __shared__ unsigned largest[64];
    const unsigned tid = threadIdx.x, panels = (o.rows + 63) / 64, steps = (o.k + 127) / 128;
    const unsigned step = block % steps, panel = block / steps % panels, matrix = block / steps / panels;
    const unsigned first = panel * 64, k0 = step * 128, r4 = (tid & 15) * 4;
    const bool vectors = (o.flags & OPERAND_VECTOR) && first + 64 <= o.rows, hi_only = o.flags & OPERAND_HI_ONLY;
    const float *from = x + matrix * o.matrix.get() + first + r4;
    float v[8][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const unsigned k = k0 + i * 16 + (tid >> 4);
        const unsigned left = k >= o.k || first + r4 >= o.rows ? 0 : vectors ? 4 : o.rows - first - r4;
        if (vectors && left) {
            const float4 q = *(const float4 *)(from + k * o.ld.get());
            v[i][0] = q.x, v[i][1] = q.y, v[i][2] = q.z, v[i][3] = q.w;
        } else {
#pragma unroll
            for (unsigned j = 0; j < 4; ++j) v[i][j] = j < left ? from[k * o.ld.get() + j] : 0.0f;
        }
    }
    if (tid < 64) {
        unsigned most = 0;
        if (first + tid < o.rows)
            for (unsigned c = 0; c < o.chunks; ++c) most = max(most, partial[((unsigned long long)matrix * o.chunks + c) * o.rows + first + tid]);
        largest[tid] = most;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const unsigned k = i * 16 + (tid >> 4), turn = (k >> 3) * 2;
        const bool swap = turn & 2;
        *(float4 *)(tile + k * 64 + (r4 ^ (turn & ~2u))) =
            make_float4(swap ? v[i][2] : v[i][0], swap ? v[i][3] : v[i][1], swap ? v[i][0] : v[i][2], swap ? v[i][1] : v[i][3]);
    }
    __syncthreads();
    bool tiny = false;
    unsigned worst = 0;
    const unsigned group = tid & 15, k = k0 + group * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned r = i * 16 + (tid >> 4), row = first + r;
        Splitter split(split_exponent(largest[r]));
        uint4 hi, lo;
        const float *at = tile + group * 8 * 64 + (r ^ (group * 2));
        split.two(at[0], at[64], hi.x, lo.x);
        split.two(at[128], at[192], hi.y, lo.y);
        split.two(at[256], at[320], hi.z, lo.z);
        split.two(at[384], at[448], hi.w, lo.w);
        tiny |= split.tiny;
        if (row < o.rows && k < o.k) {
            unsigned short *to = planes + (2ull * matrix * o.rows + row) * o.pitch + k;
            *(uint4 *)to = hi;
            if (!hi_only) *(uint4 *)(to + (unsigned long long)o.rows * o.pitch) = lo;
        }
        if (step == 0) {
            const unsigned past = k >= o.k ? 8 : k + 8 > o.k ? k + 8 - o.k : 0;
            unsigned defect = split.defect - past;
#pragma unroll
            for (int d = 8; d > 0; d >>= 1) defect += __shfl_xor_sync(0xffffffffu, defect, d);
            if (row < o.rows && split_counts(largest[r])) worst = max(worst, defect);
        }
    }
    if (__any_sync(0xffffffffu, tiny) && (tid & 31) == 0) Range::raise(range, Range::TINY, o.epoch, 1);
    if (step == 0) {
        worst = warp_largest(worst);
        if ((tid & 31) == 0) Range::raise(range, Range::DEFECT, o.epoch, worst);
        if (tid < 64 && first + tid < o.rows) {
            const int e = split_exponent(largest[tid]);
            exponents[(unsigned long long)matrix * o.rows + first + tid] = e;
            Range::raise(range, Range::EXPONENT, o.epoch, (unsigned)(e + SPLIT_BIAS));
        }
    }
}

#define SPLIT_SIDE(S) const float *S, unsigned short *S##_planes, int *S##_exponents, unsigned *S##_partial, unsigned long long *S##_range

#define SPLIT_LAUNCH(NAME, FORM)                                                                                           \
    extern "C" __global__ void __launch_bounds__(256) NAME(SPLIT_SIDE(a), SPLIT_SIDE(b), SplitPair p) {                    \
        const bool first = blockIdx.x < p.a.blocks;                                                                        \
        const SplitOperand o = first ? p.a : p.b;                                                                          \
        FORM(first ? a : b, first ? a_planes : b_planes, first ? a_exponents : b_exponents, first ? a_partial : b_partial,  \
             first ? a_range : b_range, o, first ? blockIdx.x : blockIdx.x - p.a.blocks);                                  \
    }

SPLIT_LAUNCH(split_f32_first, split_first)
SPLIT_LAUNCH(split_f32_second, split_second)
