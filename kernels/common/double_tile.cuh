// The float64 matrix product on tensor cores by cp.async: any layout and alignment. An output tile of BM x BN per block,
// WM x WN per warp; loaders, fragments in shared memory, the loop over k.
#pragma once
#include "double.cuh"

// The tile of an operand lies as in memory, [row][k] or [k][row], with four elements of padding: then neither 8 rows by 4 of
// k, which a warp reads at once, nor a copy meets a bank twice.
constexpr int DOUBLE_PAD = 4;

template <int BM_, int BN_, int WM_, int WN_, int STAGES_> struct DoubleTile {
    using T = double;
    static constexpr int BM = BM_, BN = BN_, BK = 16, STAGES = STAGES_;
    // 4 Q of k go into one instruction; sm_80 has 4 alone.
#if __CUDA_ARCH__ >= 900
    static constexpr int Q = 2;
#else
    static constexpr int Q = 1;
#endif
    static constexpr int WARP_M = WM_, WARP_N = WN_, WARPS_N = BN / WARP_N, THREADS = BM / WARP_M * WARPS_N * 32;
    // Outputs of a thread: 2 x 2 of each 16 x 8.
    static constexpr int TM = WARP_M / 8, TN = WARP_N / 4;
    // Either order fits.
    static constexpr unsigned BYTES_A = BM * (BK + DOUBLE_PAD) * 8, BYTES = BYTES_A + BN * (BK + DOUBLE_PAD) * 8;
    static_assert(BM >= BK && BN >= BK, "tile shape");
};

template <int... P> struct Place<DoubleTile<P...>> {
    using Tl = DoubleTile<P...>;
    int row, column;
    WW_INLINE Place() {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        row = warp / Tl::WARPS_N * Tl::WARP_M + lane / 4;
        column = warp % Tl::WARPS_N * Tl::WARP_N + lane % 4 * 2;
    }
    static WW_INLINE int row_offset(int i) { return i * 8; }
    static WW_INLINE int column_offset(int j) { return j / 2 * 8 + j % 2; }
};

// Brings one operand's tiles of MN rows by BK, by 16 bytes where pointer and pitch allow.
template <int MN, int BK, int THREADS> struct DoubleLoader {
    static constexpr int COUNT = MN * BK / 2 / THREADS;
    static_assert(COUNT * 2 * THREADS == MN * BK && THREADS % MN == 0 && THREADS % BK == 0, "tile shape");
    const char *src;
    long long step, advance;
    unsigned dst, dst_step;
    int row, row_step, rows, column, columns;
    bool along_k, vectors;

    WW_INLINE void init(const double *base, long long ld, bool along_k_, bool vectors_, unsigned origin, unsigned limit, unsigned k_begin,
                        unsigned k_end) {
        along_k = along_k_;
        vectors = vectors_;
        const int length = along_k ? BK : MN, width = vectors ? length / 2 : length;
        column = threadIdx.x % width * (vectors ? 2 : 1);
        row = threadIdx.x / width;
        row_step = THREADS / width;
        rows = along_k ? limit - origin : k_end - k_begin;
        columns = along_k ? k_end - k_begin : limit - origin;
        src = (const char *)(base + (along_k ? (origin + row) * ld + k_begin + column : (k_begin + row) * ld + origin + column));
        step = row_step * ld * 8;
        advance = along_k ? BK * 8 : BK * ld * 8;
        dst = (row * (length + DOUBLE_PAD) + column) * 8;
        dst_step = row_step * (length + DOUBLE_PAD) * 8;
    }

    WW_INLINE void fetch(unsigned tile) {
        const char *p = src;
        unsigned q = tile + dst;
        const int left = columns - column;
        if (vectors) {
            const unsigned bytes = left >= 2 ? 16 : left > 0 ? 8 : 0;
#pragma unroll
            for (int i = 0; i < COUNT; ++i, p += step, q += dst_step) copy_async<16>(q, p, row + i * row_step < rows ? bytes : 0);
        } else {
#pragma unroll
            for (int i = 0; i < 2 * COUNT; ++i, p += step, q += dst_step) copy_async<8>(q, p, left > 0 && row + i * row_step < rows ? 8 : 0);
        }
        src += advance;
        (along_k ? columns : rows) -= BK;
    }
};

// Where a lane finds its elements in an operand's tile: bytes from row 0 to its first, between 8 rows, between 4 of k.
template <int MN, int BK> struct DoubleSteps {
    int first, rows, k;

    WW_INLINE DoubleSteps(bool along_k, int row) {
        const int lane = threadIdx.x & 31, per_row = along_k ? (BK + DOUBLE_PAD) * 8 : 8, per_k = along_k ? 8 : (MN + DOUBLE_PAD) * 8;
        first = (row + lane / 4) * per_row + lane % 4 * per_k;
        rows = 8 * per_row;
        k = 4 * per_k;
    }
};

// What a warp multiplies at once: 4 Q of k by WARP_M rows and WARP_N columns.
template <class Tl> struct DoublePart {
    static constexpr int Q = Tl::Q;
    double a[Tl::TM / 2][2 * Q], b[Tl::TN / 2][Q];

    WW_INLINE void read(unsigned tile, const DoubleSteps<Tl::BM, Tl::BK> &of_a, const DoubleSteps<Tl::BN, Tl::BK> &of_b, int step) {
#pragma unroll
        for (int q = 0; q < Q; ++q) {
            const int k = step * Q + q;
            const unsigned at_a = tile + of_a.first + k * of_a.k, at_b = tile + Tl::BYTES_A + of_b.first + k * of_b.k;
#pragma unroll
            for (int i = 0; i < Tl::TM; ++i) a[i / 2][2 * q + i % 2] = shared_load(at_a + i * of_a.rows);
#pragma unroll
            for (int j = 0; j < Tl::TN / 2; ++j) b[j][q] = shared_load(at_b + j * of_b.rows);
        }
    }

    WW_INLINE void multiply(double (&acc)[Tl::TM][Tl::TN]) const {
#pragma unroll
        for (int i = 0; i < Tl::TM; i += 2)
#pragma unroll
            for (int j = 0; j < Tl::TN; j += 2) mma_f64<Q>(acc[i][j], acc[i][j + 1], acc[i + 1][j], acc[i + 1][j + 1], a[i / 2], b[j / 2]);
    }
};

// Multiplies `tiles` K tiles that the loaders bring in order; the next fragments are read while some are multiplied.
template <class Tl, class LoadA, class LoadB>
WW_INLINE void double_tiles(double (&acc)[Tl::TM][Tl::TN], unsigned begin, LoadA &load_a, LoadB &load_b, int tiles) {
    constexpr int STEPS = Tl::BK / (4 * Tl::Q);
    const int warp = threadIdx.x >> 5;
    const DoubleSteps<Tl::BM, Tl::BK> of_a(load_a.along_k, warp / Tl::WARPS_N * Tl::WARP_M);
    const DoubleSteps<Tl::BN, Tl::BK> of_b(load_b.along_k, warp % Tl::WARPS_N * Tl::WARP_N);
#pragma unroll
    for (int i = 0; i < Tl::TM; ++i)
#pragma unroll
        for (int j = 0; j < Tl::TN; ++j) acc[i][j] = 0.0;
    if (tiles == 0) return;
    const unsigned end = begin + Tl::STAGES * Tl::BYTES;
    unsigned to = begin, from = begin;
    auto next = [&](unsigned &at) { at = at + Tl::BYTES == end ? begin : at + Tl::BYTES; };
    auto bring = [&](bool live) {
        if (live) {
            load_a.fetch(to);
            load_b.fetch(to + Tl::BYTES_A);
        }
        copy_commit();
        next(to);
    };
#pragma unroll 1
    for (int s = 0; s < Tl::STAGES - 1; ++s) bring(s < tiles);
    DoublePart<Tl> part[2];
    copy_wait<Tl::STAGES - 2>();
    __syncthreads();
    part[0].read(from, of_a, of_b, 0);
#pragma unroll 1
    for (int t = 0; t < tiles; ++t) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step == 0) bring(t + Tl::STAGES - 1 < tiles);
            if (step + 1 < STEPS) {
                part[(step + 1) & 1].read(from, of_a, of_b, step + 1);
            } else if (t + 1 < tiles) {
                copy_wait<Tl::STAGES - 2>();
                __syncthreads();
                next(from);
                part[(step + 1) & 1].read(from, of_a, of_b, 0);
            }
            part[step & 1].multiply(acc);
        }
    }
}

template <class Tl> WW_INLINE void double_matmul(MATMUL_ARGS(double)) {
    extern __shared__ __align__(16) unsigned char dynamic[];
    const MatmulBlock<Tl> at(p, blockIdx.x);
    DoubleLoader<Tl::BM, Tl::BK, Tl::THREADS> load_a;
    DoubleLoader<Tl::BN, Tl::BK, Tl::THREADS> load_b;
    at.load_a(load_a, a, p);
    at.load_b(load_b, b, p);
    double acc[Tl::TM][Tl::TN];
    double_tiles<Tl>(acc, shared_address(dynamic), load_a, load_b, at.depth());
    double_finish<Tl>(acc, c ? c + at.offset_c : c, bias, d + at.offset_d(p), alpha, beta, p0, p1, p, at.row, at.column);
}
