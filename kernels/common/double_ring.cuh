// The float64 matrix product on Hopper's tensor cores: a warpgroup brings tiles by tensor maps into a ring of STAGES slots,
// eight warps multiply. KA, KB: whether k lies side by side in memory. A slot holds 16 of k as rows of 128 bytes under the
// 128-byte swizzle: a row of the matrix each where k is contiguous, else panels of 16 rows, a row of k each.
#pragma once
#include "double.cuh"
#include "hopper.cuh"

template <int BN_, bool KA_, bool KB_> struct RingTile {
    using T = double;
    static constexpr int BM = 128, BN = BN_, BK = 16, WARP_M = BN / 2, WARP_N = 32, WARPS_N = BN / WARP_N, WARPS = 8;
    // All together 192 KiB.
    static constexpr int STAGES = 1536 / (BM + BN);
    static constexpr bool KA = KA_, KB = KB_;
    // 8 of k go into one instruction.
    static constexpr int Q = 2, TM = WARP_M / 8, TN = WARP_N / 4;
    static constexpr int BYTES_A = BM * 128, BYTES = (BM + BN) * 128;
    // Warps that bring, of which one thread works.
    static constexpr int FIRST = 4;
};

// A lane's rows g and g + 8 of an instruction, and its columns, are those of the tile that keep its reads from meeting a bank
// twice: neighbours where k is contiguous, four apart in a panel.
template <int N, bool A, bool B> struct Place<RingTile<N, A, B>> {
    using Tl = RingTile<N, A, B>;
    int row, column;
    WW_INLINE Place() {
        const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) - Tl::FIRST, g = lane >> 2, t = lane & 3;
        row = warp / Tl::WARPS_N * Tl::WARP_M + (A ? 2 * g : (g >> 1 & 1) * 8 + (g >> 2) * 2 + (g & 1));
        column = warp % Tl::WARPS_N * Tl::WARP_N + (B ? 4 * t : (t & 1) * 8 + (t >> 1) * 2);
    }
    static WW_INLINE int row_offset(int i) { return i / 2 * 16 + i % 2 * (A ? 1 : 4); }
    static WW_INLINE int column_offset(int j) { return j / 4 * 16 + j % 4 / 2 * (B ? 2 : 4) + j % 2; }
};

// Where a lane's elements lie: row 16 i + h of k = 4 q + t at ((slot + base) ^ flip(q, h)) + offset(q, h, i).
template <bool K> struct RingLane {
    unsigned base;
    WW_INLINE RingLane(int first) {
        const int lane = threadIdx.x & 31, t = lane & 3, g = lane >> 2;
        if (K)
            base = (first + 2 * g) * 128 + (g & 3) * 32 + (t >> 1) * 16 + (t & 1) * 8;
        else
            base = first * 128 + t * 128 + (((g >> 1 & 1) * 4 + (g >> 2)) ^ t) * 16 + (g & 1) * 8;
    }
    static WW_INLINE unsigned flip(int q, int h) { return K ? (q << 5) ^ (h << 4) : ((q & 1) << 6) ^ (h << 5); }
    static WW_INLINE int offset(int q, int h, int i) { return (K ? h * 128 : q * 512) + i * 2048; }
};

// A sum that the compiler does not take apart, so that the flips of its bits become immediates.
WW_INLINE unsigned opaque_sum(unsigned a, unsigned b) {
    unsigned c;
    asm volatile("add.u32 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
    return c;
}

template <class Tl> struct RingPart {
    static constexpr int Q = Tl::Q;
    double a[Tl::TM / 2][2 * Q], b[Tl::TN / 2][Q];

    WW_INLINE void read(unsigned slot, const RingLane<Tl::KA> &of_a, const RingLane<Tl::KB> &of_b, int step) {
        const unsigned at_a = opaque_sum(slot, of_a.base), at_b = opaque_sum(slot, of_b.base);
#pragma unroll
        for (int q = 0; q < Q; ++q) {
            const int k = step * Q + q;
#pragma unroll
            for (int i = 0; i < Tl::TM; ++i) a[i / 2][2 * q + i % 2] = shared_load((at_a ^ of_a.flip(k, i % 2)) + of_a.offset(k, i % 2, i / 2));
#pragma unroll
            for (int j = 0; j < Tl::TN / 2; ++j) b[j][q] = shared_load((at_b ^ of_b.flip(k, j % 2)) + Tl::BYTES_A + of_b.offset(k, j % 2, j / 2));
        }
    }

    WW_INLINE void multiply(double (&acc)[Tl::TM][Tl::TN]) const {
#pragma unroll
        for (int i = 0; i < Tl::TM; i += 2)
#pragma unroll
            for (int j = 0; j < Tl::TN / 2; ++j) {
                // Columns 2 t and 2 t + 1 of an instruction.
                const int x = j / 2 * 4 + j % 2 * (Tl::KB ? 1 : 2), y = x + (Tl::KB ? 2 : 1);
                mma_f64<Q>(acc[i][x], acc[i][y], acc[i + 1][x], acc[i + 1][y], a[i / 2], b[j]);
            }
    }
};

struct RingSlot {
    unsigned at = 0, phase = 0;
    template <int STAGES> WW_INLINE void step() {
        if (++at == STAGES) {
            at = 0;
            phase ^= 1;
        }
    }
};

// The ring: slots, and for each a barrier "full" and one "empty".
template <class Tl> struct Ring {
    unsigned slots, full, empty;

    WW_INLINE Ring(void *dynamic, void *barriers) {
        slots = (shared_address(dynamic) + 1023) & ~1023u;
        full = shared_address(barriers);
        empty = full + 8 * Tl::STAGES;
        if (threadIdx.x == 0) {
            for (int i = 0; i < Tl::STAGES; ++i) {
                barrier_init(full + 8 * i, 1);
                barrier_init(empty + 8 * i, Tl::WARPS);
            }
            barrier_init_fence();
        }
        __syncthreads();
    }

    // 16 of k of both operands; what lies outside a matrix arrives as zeros.
    WW_INLINE void bring(const TensorMap *map_a, const TensorMap *map_b, unsigned slot, int row, int column, int k, int a, int b) const {
        const unsigned to = slots + slot * Tl::BYTES, to_b = to + Tl::BYTES_A, bar = full + slot * 8;
        barrier_expect(bar, Tl::BYTES);
        if (Tl::KA) {
            copy_box(to, map_a, bar, k, row, a);
        } else {
#pragma unroll
            for (int i = 0; i < Tl::BM / 16; ++i) copy_box(to + i * 2048, map_a, bar, row + 16 * i, k, a);
        }
        if (Tl::KB) {
            copy_box(to_b, map_b, bar, k, column, b);
        } else {
#pragma unroll
            for (int i = 0; i < Tl::BN / 16; ++i) copy_box(to_b + i * 2048, map_b, bar, column + 16 * i, k, b);
        }
    }
};

// The sums of one output tile; the next fragments are read while some are multiplied.
template <class Tl> WW_INLINE void ring_sum(double (&acc)[Tl::TM][Tl::TN], const Ring<Tl> &ring, RingSlot &slot, int tiles) {
    constexpr int STEPS = Tl::BK / (4 * Tl::Q);
    const int warp = (threadIdx.x >> 5) - Tl::FIRST;
    const RingLane<Tl::KA> of_a(warp / Tl::WARPS_N * Tl::WARP_M);
    const RingLane<Tl::KB> of_b(warp % Tl::WARPS_N * Tl::WARP_N);
#pragma unroll
    for (int i = 0; i < Tl::TM; ++i)
#pragma unroll
        for (int j = 0; j < Tl::TN; ++j) acc[i][j] = 0.0;
    if (tiles == 0) return;
    RingPart<Tl> part[2];
    barrier_wait(ring.full + slot.at * 8, slot.phase);
    part[0].read(ring.slots + slot.at * Tl::BYTES, of_a, of_b, 0);
#pragma unroll 1
    for (int t = 0; t < tiles; ++t) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step + 1 < STEPS) {
                part[(step + 1) & 1].read(ring.slots + slot.at * Tl::BYTES, of_a, of_b, step + 1);
            } else {
                const unsigned used = ring.empty + slot.at * 8;
                slot.step<Tl::STAGES>();
                if (t + 1 < tiles) {
                    barrier_wait(ring.full + slot.at * 8, slot.phase);
                    part[(step + 1) & 1].read(ring.slots + slot.at * Tl::BYTES, of_a, of_b, 0);
                }
                if ((threadIdx.x & 31) == 0) barrier_arrive(used);
            }
            part[step & 1].multiply(acc);
        }
    }
}

#define RING_ARGS                                                                                                          \
    const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const double *c, const double *bias, double *d, \
        double alpha, double beta, double p0, double p1, const __grid_constant__ Matmul p

template <class Tl>
WW_INLINE void ring_matmul(const TensorMap &map_a, const TensorMap &map_b, const double *c, const double *bias, double *d, double alpha,
                           double beta, double p0, double p1, const Matmul &p) {
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * Tl::STAGES];
    const Ring<Tl> ring(dynamic, barriers);
    const unsigned blocks = ((p.m + Tl::BM - 1) / Tl::BM) * ((p.n + Tl::BN - 1) / Tl::BN) * p.splits * p.batch_count;
    RingSlot slot;
    if (threadIdx.x < 32 * Tl::FIRST) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0) {
            prefetch_map(&map_a);
            prefetch_map(&map_b);
            for (unsigned block = blockIdx.x; block < blocks; block += gridDim.x) {
                const MatmulBlock<Tl> at(p, block);
                const int tiles = at.depth();
#pragma unroll 1
                for (int t = 0; t < tiles; ++t) {
                    barrier_wait(ring.empty + slot.at * 8, slot.phase ^ 1);
                    ring.bring(&map_a, &map_b, slot.at, at.row, at.column, at.k_begin + t * Tl::BK, (int)at.offset_a, (int)at.offset_b);
                    slot.step<Tl::STAGES>();
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        for (unsigned block = blockIdx.x; block < blocks; block += gridDim.x) {
            const MatmulBlock<Tl> at(p, block);
            double acc[Tl::TM][Tl::TN];
            ring_sum<Tl>(acc, ring, slot, at.depth());
            double_finish<Tl>(acc, c ? c + at.offset_c : c, bias, d + at.offset_d(p), alpha, beta, p0, p1, p, at.row, at.column);
        }
    }
}
