// The register-tiled matrix product that matmul and the convolutions share: an output tile of BM x BN per block,
// TM x TN per thread, operands in shared memory as [k][row] and [k][column], multiplied by one FMA chain per output
// in ascending k. Loaders fill the shared tiles; the caller's epilogue takes the accumulators.
#pragma once
#include "math.cuh"
#include "vector.cuh"

#define WW_INLINE __device__ __forceinline__

// 64-bit value in a parameter struct of 32-bit words.
struct Wide {
    unsigned lo, hi;
    WW_INLINE long long get() const { return (long long)(((unsigned long long)hi << 32) | lo); }
};

template <class T_, int BM_, int BN_, int TM_, int TN_, int BK_ = 16, int STAGES_ = 2> struct Tile {
    using T = T_;
    static constexpr int BM = BM_, BN = BN_, BK = BK_, TM = TM_, TN = TN_;
#if __CUDA_ARCH__ >= 800
    static constexpr int STAGES = STAGES_;
#else
    static constexpr int STAGES = 2;
#endif
    static constexpr int VEC = 16 / sizeof(T);
    // A warp's lanes lie 4 (rows) by 8 (columns).
    static constexpr int WARP_M = 4 * TM, WARP_N = 8 * TN;
    static constexpr int WARPS_M = BM / WARP_M, WARPS_N = BN / WARP_N;
    static constexpr int WARPS = WARPS_M * WARPS_N, THREADS = 32 * WARPS;
    // One vector of padding keeps 16-byte alignment and makes the transposing stores conflict-free.
    static constexpr int PITCH_A = BM + VEC, PITCH_B = BN + VEC;
    static constexpr int STAGE_A = BK * PITCH_A, STAGE_B = BK * PITCH_B;
    static constexpr int SHARED = STAGES * (STAGE_A + STAGE_B);
    static_assert(SHARED * sizeof(T) <= 48 * 1024, "static shared memory");
};

WW_INLINE unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Copies `bytes` (0 to SIZE) from global to shared memory and zero-fills the rest of SIZE.
template <int SIZE> WW_INLINE void copy_async(unsigned dst, const void *src, unsigned bytes) {
#if __CUDA_ARCH__ >= 800
    if (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes));
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(dst), "l"(src), "n"(SIZE), "r"(bytes));
#endif
}

WW_INLINE void copy_commit() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int PENDING> WW_INLINE void copy_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

template <class T> WW_INLINE void shared_store(unsigned dst, T v) {
    if (sizeof(T) == 4)
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(dst), "f"((float)v) : "memory");
    else
        asm volatile("st.shared.f64 [%0], %1;" ::"r"(dst), "d"((double)v) : "memory");
}

// What one thread moves of one operand's tile: COUNT elements, or COUNT / VEC vectors. With cp.async the copies go
// straight to shared memory; without, put() keeps them in registers until flush().
template <class T, int COUNT_> struct Mover {
    static constexpr int COUNT = COUNT_, VEC = 16 / sizeof(T);
#if __CUDA_ARCH__ >= 800
    WW_INLINE void put(int, unsigned dst, const char *src, bool in) { copy_async<sizeof(T)>(dst, src, in ? sizeof(T) : 0); }
    WW_INLINE void put_vector(int, unsigned dst, const char *src, unsigned bytes) { copy_async<16>(dst, src, bytes); }
    WW_INLINE void flush(unsigned, unsigned, bool) {}
#else
    T held[COUNT];
    WW_INLINE void put(int i, unsigned, const char *src, bool in) { held[i] = in ? *(const T *)src : T(0); }
    WW_INLINE void put_vector(int i, unsigned, const char *src, unsigned bytes) {
        if (bytes == 16) {
            const WwVector<T> q = ww_load((const T *)src);
#pragma unroll
            for (int v = 0; v < VEC; ++v) held[i * VEC + v] = q.lane[v];
        } else {
#pragma unroll
            for (int v = 0; v < VEC; ++v) held[i * VEC + v] = v * sizeof(T) < bytes ? ((const T *)src)[v] : T(0);
        }
    }
    WW_INLINE void flush(unsigned dst, unsigned step, bool vectors) {
        if (vectors) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) shared_store(dst + (i / VEC) * step + (i % VEC) * (unsigned)sizeof(T), held[i]);
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) shared_store(dst + i * step, held[i]);
        }
    }
#endif
};

// A strided matrix operand, tile of MN (rows of op(A) or columns of op(B)) by BK. Either k or mn is contiguous; both
// go through one scalar path with run-time steps, the second also through 16-byte copies.
template <class T, int MN, int BK, int THREADS> struct MatrixLoader {
    static constexpr int COUNT = MN * BK / THREADS, VEC = 16 / sizeof(T), PITCH = MN + VEC;
    static constexpr int WARPS = THREADS / 32, K_GROUPS = BK / 8, MN_STEP = 4 * WARPS / K_GROUPS;
    static_assert(WARPS % K_GROUPS == 0 && (THREADS % MN == 0), "tile shape");
    static_assert(COUNT % VEC == 0 && COUNT <= 32, "tile shape");
    Mover<T, COUNT> mover;
    const char *src;
    long long step, advance;
    unsigned dst, dst_step, mask, bytes, flushed;
    int k_first, k_step, left;
    bool vectors;

    WW_INLINE void init(const T *base, long long ld, bool k_contiguous, bool vectors_, unsigned origin, unsigned limit,
                        unsigned k_begin, unsigned k_end) {
        const int tid = threadIdx.x;
        vectors = vectors_;
        left = (int)(k_end - k_begin);
        unsigned mn;
        if (k_contiguous) {
            const int lane = tid & 31, warp = tid >> 5;
            k_first = (lane & 7) + 8 * (warp % K_GROUPS);
            mn = (lane >> 3) + 4 * (warp / K_GROUPS);
            k_step = 0;
            mask = 0;
#pragma unroll
            for (int i = 0; i < COUNT; ++i) mask |= (origin + mn + i * MN_STEP < limit ? 1u : 0u) << i;
            src = (const char *)(base + (long long)(origin + mn) * ld + (k_begin + k_first));
            step = (long long)MN_STEP * ld * sizeof(T);
            dst_step = MN_STEP * sizeof(T);
            advance = BK * sizeof(T);
        } else {
            const int width = vectors ? MN / VEC : MN;
            mn = (tid % width) * (vectors ? VEC : 1);
            k_first = tid / width;
            k_step = THREADS / width;
            const int room = (int)(limit - origin) - (int)mn;
            mask = room > 0 ? 0xffffffffu : 0u;
            bytes = room >= VEC ? 16u : (room > 0 ? room * (unsigned)sizeof(T) : 0u);
            src = (const char *)(base + (long long)(k_begin + k_first) * ld + (origin + mn));
            step = (long long)k_step * ld * sizeof(T);
            dst_step = k_step * PITCH * sizeof(T);
            advance = (long long)BK * ld * sizeof(T);
        }
        dst = (k_first * PITCH + mn) * sizeof(T);
    }

    WW_INLINE void fetch(unsigned stage) {
        unsigned live = mask;
        if (left < BK) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i)
                if (k_first + i * k_step >= left) live &= ~(1u << i);
        }
        const char *p = src;
        unsigned q = stage + dst;
        if (vectors) {
#pragma unroll
            for (int i = 0; i < COUNT / VEC; ++i, p += step, q += dst_step) mover.put_vector(i, q, p, live >> i & 1 ? bytes : 0u);
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i, p += step, q += dst_step) mover.put(i, q, p, live >> i & 1);
        }
        src += advance;
        left -= BK;
    }

    WW_INLINE void flush(unsigned stage) { mover.flush(stage + dst, dst_step, vectors); }
};

// Where a thread's outputs lie inside the block's tile.
template <class Tl> struct Place {
    int row, column;
    WW_INLINE Place() {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        // This order of lanes lets two quarter-warps share one shared-memory wavefront for both operands.
        const int lane_m = (lane & 1) | (lane >> 4 & 1) << 1, lane_n = lane >> 1 & 7;
        row = (warp / Tl::WARPS_N) * Tl::WARP_M + lane_m * Tl::VEC;
        column = (warp % Tl::WARPS_N) * Tl::WARP_N + lane_n * Tl::VEC;
    }
    static WW_INLINE int row_offset(int i) { return i / Tl::VEC * 4 * Tl::VEC + i % Tl::VEC; }
    static WW_INLINE int column_offset(int j) { return j / Tl::VEC * 8 * Tl::VEC + j % Tl::VEC; }
};

template <class T, int COUNT> WW_INLINE void read_fragment(T (&to)[COUNT], const T *from, int group_step) {
    constexpr int VEC = 16 / sizeof(T);
#pragma unroll
    for (int g = 0; g < COUNT / VEC; ++g) {
        const WwVector<T> q = ww_load(from + g * group_step);
#pragma unroll
        for (int v = 0; v < VEC; ++v) to[g * VEC + v] = q.lane[v];
    }
}

// K steps FROM to TO of one shared tile.
template <class Tl, int FROM, int TO>
WW_INLINE void multiply(typename Tl::T (&acc)[Tl::TM][Tl::TN], const typename Tl::T *a, const typename Tl::T *b) {
    using T = typename Tl::T;
    T fa[2][Tl::TM], fb[2][Tl::TN];
    read_fragment<T, Tl::TM>(fa[0], a + FROM * Tl::PITCH_A, 4 * Tl::VEC);
    read_fragment<T, Tl::TN>(fb[0], b + FROM * Tl::PITCH_B, 8 * Tl::VEC);
#pragma unroll
    for (int k = FROM; k < TO; ++k) {
        const int now = (k - FROM) & 1;
        if (k + 1 < TO) {
            read_fragment<T, Tl::TM>(fa[now ^ 1], a + (k + 1) * Tl::PITCH_A, 4 * Tl::VEC);
            read_fragment<T, Tl::TN>(fb[now ^ 1], b + (k + 1) * Tl::PITCH_B, 8 * Tl::VEC);
        }
#pragma unroll
        for (int j = 0; j < Tl::TN; ++j)
#pragma unroll
            for (int i = 0; i < Tl::TM; ++i) {
                // There and back, so that each multiply-add shares an operand with the one before it.
                const int at = j & 1 ? Tl::TM - 1 - i : i;
                acc[at][j] = ww_fma(fa[now][at], fb[now][j], acc[at][j]);
            }
    }
}

// Multiplies `tiles` K tiles that the loaders bring in order.
template <class Tl, class LoadA, class LoadB>
WW_INLINE void multiply_tiles(typename Tl::T (&acc)[Tl::TM][Tl::TN], typename Tl::T *shared, LoadA &load_a, LoadB &load_b, int tiles) {
    using T = typename Tl::T;
    const Place<Tl> place;
    T *const base_b = shared + Tl::STAGES * Tl::STAGE_A;
    const unsigned address_a = shared_address(shared), address_b = shared_address(base_b);
    constexpr unsigned BYTES_A = Tl::STAGE_A * sizeof(T), BYTES_B = Tl::STAGE_B * sizeof(T);
#pragma unroll
    for (int i = 0; i < Tl::TM; ++i)
#pragma unroll
        for (int j = 0; j < Tl::TN; ++j) acc[i][j] = T(0);
#if __CUDA_ARCH__ >= 800
#pragma unroll
    for (int s = 0; s < Tl::STAGES - 1; ++s) {
        if (s < tiles) {
            load_a.fetch(address_a + s * BYTES_A);
            load_b.fetch(address_b + s * BYTES_B);
        }
        copy_commit();
    }
    int stage = 0, next = Tl::STAGES - 1;
    for (int t = 0; t < tiles; ++t) {
        copy_wait<Tl::STAGES - 2>();
        __syncthreads();
        if (t + Tl::STAGES - 1 < tiles) {
            load_a.fetch(address_a + next * BYTES_A);
            load_b.fetch(address_b + next * BYTES_B);
        }
        copy_commit();
        multiply<Tl, 0, Tl::BK>(acc, shared + stage * Tl::STAGE_A + place.row, base_b + stage * Tl::STAGE_B + place.column);
        stage = stage + 1 == Tl::STAGES ? 0 : stage + 1;
        next = next + 1 == Tl::STAGES ? 0 : next + 1;
    }
#else
    if (tiles > 0) {
        load_a.fetch(address_a);
        load_a.flush(address_a);
        load_b.fetch(address_b);
        load_b.flush(address_b);
    }
    for (int t = 0; t < tiles; ++t) {
        const int stage = t & 1, next = stage ^ 1;
        const bool more = t + 1 < tiles;
        __syncthreads();
        const T *a = shared + stage * Tl::STAGE_A + place.row, *b = base_b + stage * Tl::STAGE_B + place.column;
        if (more) load_a.fetch(address_a + next * BYTES_A);
        multiply<Tl, 0, Tl::BK / 2>(acc, a, b);
        if (more) {
            load_a.flush(address_a + next * BYTES_A);
            load_b.fetch(address_b + next * BYTES_B);
        }
        multiply<Tl, Tl::BK / 2, Tl::BK>(acc, a, b);
        if (more) load_b.flush(address_b + next * BYTES_B);
    }
#endif
}

template <class T> WW_INLINE void store_vector(T *to, const T *v) {
    WwVector<T> q;
#pragma unroll
    for (int i = 0; i < WwVector<T>::size; ++i) q.lane[i] = v[i];
    ww_store(to, q);
}

// Tile number to (row tile, column tile), in groups of eight row tiles so that neighbours share operands in L2.
WW_INLINE void raster(unsigned tile, unsigned tiles_m, unsigned tiles_n, unsigned &tm, unsigned &tn) {
    const unsigned per_group = 8 * tiles_n, group = tile / per_group, first = group * 8;
    const unsigned rows = tiles_m - first < 8 ? tiles_m - first : 8, at = tile - group * per_group;
    tm = first + at % rows;
    tn = at / rows;
}
