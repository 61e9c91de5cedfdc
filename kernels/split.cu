// levels: sm_75 sm_90a
// Prepares float32 matrices for products by float16 (common/split.cuh): planes hi and lo, [matrix][2][row][pitch] with k
// contiguous and zeros up to the pitch, an exponent for each row, and the operand's range. One launch for up to two operands, each with its own
// blocks; every operand is read once from memory.
// split_f32: an operand whose k is contiguous takes `width` threads a row (32 to 256, a power of two). One whose rows lie
// side by side is turned: a cluster of blocks a panel of 16 rows, `width` of k a block, whose largest values the blocks
// exchange. 256 threads, grid.x = the blocks of both, each a multiple of the cluster, cluster.x = 1 to 8, below sm_90a 1.
#if __CUDA_ARCH__ >= 900
#include "common/hopper.cuh"
#else
#include "common/alone.cuh"
#endif
#include "common/split.cuh"

enum : unsigned { OPERAND_TURNED = 1, OPERAND_VECTOR = 2, OPERAND_HI_ONLY = 4 };

struct SplitOperand {
    // rows of A or columns of B; blocks of this launch.
    unsigned rows, k, pitch, flags, matrices, blocks, width, epoch;
    Wide ld, matrix;
};

struct SplitPair {
    SplitOperand operand[2];
};

// What one launch makes of an operand.
struct SplitTarget {
    unsigned short *planes;
    int *exponents;
    unsigned long long *range;
};

constexpr unsigned PANEL = 16, PANEL_LANES = PANEL / 4, PANEL_STEP = 256 / PANEL_LANES * 8;

template <class Combine> WW_INLINE unsigned warp_combine(unsigned v, Combine combine) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) v = combine(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}

WW_INLINE unsigned warp_largest(unsigned v) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, v);
#else
    return warp_combine(v, [](unsigned a, unsigned b) { return max(a, b); });
#endif
}

WW_INLINE unsigned warp_total(unsigned v) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xffffffffu, v);
#else
    return warp_combine(v, [](unsigned a, unsigned b) { return a + b; });
#endif
}

WW_INLINE unsigned magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// Largest magnitude, and the smallest but zero, less one.
struct Extent {
    unsigned largest = 0, least = ~0u;
    WW_INLINE void see(float x) {
        const unsigned m = magnitude(x);
        largest = max(largest, m);
        least = min(least, m - 1);
    }
};

// Scales a row of exponent e. What becomes of a special row does not matter: nothing reads it.
struct Scale {
    float first, second;
    WW_INLINE Scale(int e) : first(power_of_two(-e >> 1)), second(power_of_two(-e - (-e >> 1))) {}
    WW_INLINE float operator()(float x) const { return __fmul_rn(__fmul_rn(x, first), second); }
    // Whether a magnitude less one, as Extent keeps it, is tiny.
    WW_INLINE bool tiny(unsigned least) const { return least != ~0u && (*this)(__uint_as_float(least + 1)) < 0x1p-15f; }
};

// Two values to a word, the first below.
WW_INLINE unsigned pack_halves(float low, float high) {
    unsigned word;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
#else
    asm("{\n.reg .b16 a, b;\ncvt.rn.f16.f32 a, %1;\ncvt.rn.f16.f32 b, %2;\nmov.b32 %0, {a, b};\n}" : "=r"(word) : "f"(low), "f"(high));
#endif
    return word;
}

// Two values to a word of each plane.
WW_INLINE void split_two(const Scale &scale, float x, float y, unsigned &hi, unsigned &lo) {
    const float v = scale(x), w = scale(y);
    float hv, hw;
    hi = pack_halves(v, w);
    asm("{\n.reg .b16 a, b;\nmov.b32 {a, b}, %2;\ncvt.f32.f16 %0, a;\ncvt.f32.f16 %1, b;\n}" : "=f"(hv), "=f"(hw) : "r"(hi));
    lo = pack_halves(__fmul_rn(__fsub_rn(v, hv), SPLIT_LOW), __fmul_rn(__fsub_rn(w, hw), SPLIT_LOW));
}

// Collects what a block finds for the operand's range.
struct Found {
    unsigned *words;
    WW_INLINE explicit Found(unsigned *shared) : words(shared) {
        if (threadIdx.x < 3) words[threadIdx.x] = 0;
    }
    WW_INLINE void raise(int which, unsigned value) {
        const unsigned most = warp_largest(value);
        if ((threadIdx.x & 31) == 0 && most) atomicMax(words + which, most);
    }
    WW_INLINE void publish(unsigned long long *range, unsigned epoch) {
        __syncthreads();
        if (threadIdx.x < 3 && words[threadIdx.x]) Range::raise(range, threadIdx.x, epoch, words[threadIdx.x]);
    }
};

// A row's exponent as its operand's range keeps it.
WW_INLINE unsigned biased(int e) { return (unsigned)(e + SPLIT_BIAS); }

// Whether a row's values matter to the guard: rows of zeros give zeros, and special ones are computed again.
WW_INLINE bool split_counts(unsigned largest) { return largest != 0 && largest < 0x7f800000u; }

// Stores where asked to; as one predicated instruction, since a branch would double the code around it.
WW_INLINE void store_if(bool want, void *to, uint2 v) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.v2.u32 [%1], {%2, %3};\n}" ::"r"((unsigned)want), "l"(to), "r"(v.x), "r"(v.y) : "memory");
}

WW_INLINE void store_if(bool want, void *to, uint4 v) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, 0;\n@p st.global.v4.u32 [%1], {%2, %3, %4, %5};\n}" ::"r"((unsigned)want), "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// Four values at k. Without vectors some may lie beyond the end and are zeros.
template <bool VECTORS> WW_INLINE void load_four(float (&v)[4], const float *row, unsigned k, unsigned end) {
    if (VECTORS) {
        const float4 q = k < end ? *(const float4 *)(row + k) : make_float4(0, 0, 0, 0);
        v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = k + i < end ? row[k + i] : 0.0f;
    }
}

WW_INLINE void store_four(const Scale &scale, float (&v)[4], unsigned short *hi, unsigned short *lo, bool hi_only) {
    uint2 h, l;
    split_two(scale, v[0], v[1], h.x, l.x);
    split_two(scale, v[2], v[3], h.y, l.y);
    store_if(true, hi, h);
    store_if(!hi_only, lo, l);
}

// A row by `width` threads; the first 32 values of each thread stay in registers, longer rows are read again.
template <bool VECTORS> WW_INLINE void split_straight(const float *x, const SplitTarget &to, const SplitOperand &o, unsigned block) {
    constexpr int HELD = 8;
    __shared__ unsigned shared[8], words[3];
    Found found(words);
    const unsigned tid = threadIdx.x, width = o.width, lane = tid & (width - 1), warps = width / 32;
    const unsigned index = block * (256 / width) + tid / width, matrix = index / o.rows, row = index - matrix * o.rows;
    const bool live = matrix < o.matrices, hi_only = o.flags & OPERAND_HI_ONLY;
    const unsigned end = live ? o.k : 0, pitch = live ? o.pitch : 0, step = width * 4;
    const float *from = x + matrix * o.matrix.get() + row * o.ld.get();
    float held[HELD][4];
    Extent extent;
#pragma unroll
    for (int i = 0; i < HELD; ++i) load_four<VECTORS>(held[i], from, i * step + lane * 4, end);
#pragma unroll
    for (int i = 0; i < HELD; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) extent.see(held[i][j]);
#pragma unroll 1
    for (unsigned k = HELD * step + lane * 4; k < end; k += step) {
        float v[4];
        load_four<VECTORS>(v, from, k, end);
#pragma unroll
        for (int j = 0; j < 4; ++j) extent.see(v[j]);
    }
    unsigned largest = warp_largest(extent.largest);
    if ((tid & 31) == 0) shared[tid >> 5] = largest;
    __syncthreads();
#pragma unroll 1
    for (unsigned w = 0; w < warps; ++w) largest = max(largest, shared[(tid >> 5 & ~(warps - 1)) + w]);
    const int e = split_exponent(largest);
    const Scale scale(e);
    unsigned short *hi = to.planes + (2ull * matrix * o.rows + row) * o.pitch + lane * 4, *lo = hi + (unsigned long long)o.rows * o.pitch;
    unsigned defect = 0;
    if (lane < 32) {
#pragma unroll
        for (int j = 0; j < 4; ++j) defect += lane * 4 + j < end && fabsf(scale(held[0][j])) < 64.0f;
        defect = warp_total(defect);
    }
#pragma unroll
    for (int i = 0; i < HELD; ++i)
        if (i * step + lane * 4 < pitch) store_four(scale, held[i], hi + i * step, lo + i * step, hi_only);
#pragma unroll 1
    for (unsigned at = HELD * step; at + lane * 4 < pitch; at += step) {
        float v[4];
        load_four<VECTORS>(v, from, at + lane * 4, end);
        store_four(scale, v, hi + at, lo + at, hi_only);
    }
    if (live && lane == 0) to.exponents[index] = e;
    found.raise(Range::EXPONENT, live && lane == 0 ? biased(e) : 0);
    found.raise(Range::TINY, live && scale.tiny(extent.least));
    found.raise(Range::DEFECT, live && lane == 0 && split_counts(largest) ? defect : 0);
    found.publish(to.range, o.epoch);
}

// K values of k by four rows that lie side by side, of which `rows` are there.
template <bool VECTORS, int K = 8> struct Patch {
    float v[K][4];

    WW_INLINE void load(const float *from, long long ld, unsigned k, unsigned end, unsigned rows) {
#pragma unroll
        for (int i = 0; i < K; ++i, from += ld) {
            if (VECTORS) {
                const float4 q = k + i < end ? *(const float4 *)from : make_float4(0, 0, 0, 0);
                v[i][0] = q.x, v[i][1] = q.y, v[i][2] = q.z, v[i][3] = q.w;
            } else {
#pragma unroll
                for (unsigned j = 0; j < 4; ++j) v[i][j] = k + i < end && j < rows ? from[j] : 0.0f;
            }
        }
    }

    WW_INLINE void see(Extent (&extent)[4]) const {
#pragma unroll
        for (int i = 0; i < K; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) extent[j].see(v[i][j]);
    }

    // Row j along k.
    WW_INLINE void store(int j, const Scale &scale, unsigned short *hi, unsigned short *lo, bool hi_only) {
        uint4 h, l;
        split_two(scale, v[0][j], v[1][j], h.x, l.x);
        split_two(scale, v[2][j], v[3][j], h.y, l.y);
        split_two(scale, v[4][j], v[5][j], h.z, l.z);
        split_two(scale, v[6][j], v[7][j], h.w, l.w);
        store_if(true, hi, h);
        store_if(!hi_only, lo, l);
    }
};

// The largest magnitudes of a panel's rows over all blocks of a cluster: a word for each block and row, with SEEN set
// once it is there, so that nothing else has to say so.
struct Exchange {
    static constexpr unsigned SEEN = 0x80000000u;
    unsigned words[8][PANEL];

    // Before the first cluster barrier.
    WW_INLINE void clear() {
        if (threadIdx.x < 8 * PANEL) words[threadIdx.x / PANEL][threadIdx.x % PANEL] = 0;
    }

    // Thread (target, row) hands this block's largest of a row to one block; after the first cluster barrier.
    WW_INLINE void hand_over(unsigned largest, unsigned rank, unsigned ranks) {
        const unsigned target = threadIdx.x / PANEL, row = threadIdx.x % PANEL;
        if (target < ranks) shared_store_at(shared_address(&words[rank][row]), target, largest | SEEN);
    }

    WW_INLINE unsigned largest(unsigned row, unsigned ranks) const {
        unsigned most = 0;
#pragma unroll 1
        for (unsigned rank = 0; rank < ranks; ++rank) most = max(most, wait_word(shared_address(&words[rank][row])));
        return most & ~SEEN;
    }

    static WW_INLINE unsigned wait_word(unsigned address) {
        unsigned word;
        do {
            word = shared_load_fresh(address);
        } while (!(word & SEEN));
        return word;
    }
};

// The block's largest of row threadIdx.x % PANEL.
WW_INLINE unsigned block_largest(const Extent (&extent)[4], unsigned (&of_warps)[8][PANEL]) {
    unsigned own[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        own[j] = extent[j].largest;
#pragma unroll
        for (int d = PANEL_LANES; d < 32; d <<= 1) own[j] = max(own[j], __shfl_xor_sync(0xffffffffu, own[j], d));
    }
    const unsigned lane = threadIdx.x & 31;
    if (lane < PANEL_LANES) *(uint4 *)&of_warps[threadIdx.x >> 5][lane * 4] = make_uint4(own[0], own[1], own[2], own[3]);
    __syncthreads();
    unsigned most = 0;
#pragma unroll
    for (int w = 0; w < 8; ++w) most = max(most, of_warps[w][threadIdx.x % PANEL]);
    return most;
}

// A panel of rows by a cluster; the first 8 of k of each thread stay in registers.
template <bool VECTORS> WW_INLINE void split_turned(const float *x, const SplitTarget &to, const SplitOperand &o, unsigned block) {
    __shared__ __align__(16) unsigned of_warps[8][PANEL];
    __shared__ __align__(16) int exponents[PANEL];
    __shared__ Exchange exchange;
    __shared__ unsigned counts[PANEL], words[3];
    const unsigned tid = threadIdx.x, rank = cluster_rank(), ranks = cluster_ranks();
    exchange.clear();
    Found found(words);
    if (tid < PANEL) counts[tid] = 0;
    const unsigned panels = (o.rows + PANEL - 1) / PANEL, place = block / ranks, matrix = place / panels;
    const unsigned row0 = (place - matrix * panels) * PANEL, lane = tid % PANEL_LANES * 4, first = row0 + lane;
    const bool live = matrix < o.matrices && first < o.rows, hi_only = o.flags & OPERAND_HI_ONLY;
    const unsigned begin = rank * o.width, end = min(o.k, begin + o.width), pitch = min(o.pitch, begin + o.width);
    const unsigned k0 = live ? begin + tid / PANEL_LANES * 8 : pitch, rows = live ? min(4u, o.rows - first) : 0;
    const long long ld = o.ld.get();
    const float *from = x + matrix * o.matrix.get() + k0 * ld + first;
    Patch<VECTORS> held;
    held.load(from, ld, k0, end, rows);
    cluster_arrive();
    Extent extent[4];
    held.see(extent);
#pragma unroll 1
    for (unsigned at = PANEL_STEP; k0 + at < end; at += PANEL_STEP) {
#pragma unroll 1
        for (unsigned half = 0; half < 8; half += 4) {
            Patch<VECTORS, 4> patch;
            patch.load(from + (at + half) * ld, ld, k0 + at + half, end, rows);
            patch.see(extent);
        }
    }
    const unsigned own = block_largest(extent, of_warps);
    cluster_wait();
    exchange.hand_over(own, rank, ranks);
    unsigned largest = 0;
    if (tid < PANEL) {
        largest = exchange.largest(tid, ranks);
        exponents[tid] = split_exponent(largest);
    }
    __syncthreads();
    unsigned short *planes = to.planes + (2ull * matrix * o.rows + first) * o.pitch + k0;
    const unsigned long long plane = (unsigned long long)o.rows * o.pitch;
    unsigned tiny = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j, planes += o.pitch) {
        const Scale scale(exponents[lane + j]);
        tiny |= scale.tiny(extent[j].least);
        if (k0 < SPLIT_WINDOW) {
            unsigned defect = 0;
#pragma unroll
            for (int i = 0; i < 8; ++i) defect += k0 + i < end && fabsf(scale(held.v[i][j])) < 64.0f;
            if (defect) atomicAdd(counts + lane + j, defect);
        }
        if (k0 < pitch && j < rows) held.store(j, scale, planes, planes + plane, hi_only);
    }
#pragma unroll 1
    for (unsigned at = PANEL_STEP; k0 + at < pitch; at += PANEL_STEP) {
        Patch<VECTORS> patch;
        patch.load(from + at * ld, ld, k0 + at, end, rows);
        unsigned short *hi = planes - 4ull * o.pitch + at;
#pragma unroll
        for (int j = 0; j < 4; ++j, hi += o.pitch)
            if (j < rows) patch.store(j, Scale(exponents[lane + j]), hi, hi + plane, hi_only);
    }
    found.raise(Range::TINY, tiny);
    if (rank == 0) {
        __syncthreads();
        const bool here = tid < PANEL && matrix < o.matrices && row0 + tid < o.rows;
        if (here) to.exponents[(unsigned long long)matrix * o.rows + row0 + tid] = exponents[tid];
        found.raise(Range::EXPONENT, here ? biased(exponents[tid]) : 0);
        found.raise(Range::DEFECT, here && split_counts(largest) ? counts[tid] : 0);
    }
    found.publish(to.range, o.epoch);
}

#define SPLIT_SIDE(S) const float *S, unsigned short *S##_planes, int *S##_exponents, unsigned long long *S##_range

template <bool VECTORS> WW_INLINE void split_operand(const float *x, const SplitTarget &to, const SplitOperand &o, unsigned block) {
    if (o.flags & OPERAND_TURNED)
        split_turned<VECTORS>(x, to, o, block);
    else
        split_straight<VECTORS>(x, to, o, block);
}

#define SPLIT_LAUNCH(NAME, VECTORS)                                                                                        \
    extern "C" __global__ void __launch_bounds__(256, 3) NAME(SPLIT_SIDE(a), SPLIT_SIDE(b), const __grid_constant__ SplitPair p) {                 \
        grid_wait();                                                                                                       \
        grid_release();                                                                                                    \
        const bool first = blockIdx.x < p.operand[0].blocks;                                                                        \
        const SplitTarget to = first ? SplitTarget{a_planes, a_exponents, a_range} : SplitTarget{b_planes, b_exponents, b_range}; \
        split_operand<VECTORS>(first ? a : b, to, p.operand[!first], first ? blockIdx.x : blockIdx.x - p.operand[0].blocks);        \
    }

SPLIT_LAUNCH(split_f32, true)
SPLIT_LAUNCH(split_f32_unaligned, false)
