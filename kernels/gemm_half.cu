// levels: sm_90a
// Matrix products d = act(alpha * a b + beta * c + bias) of float16 or bfloat16 on the tensor cores, batched, sums in
// float32, one rounding. Names end in the tile and in how a and b are stored: n as they are multiplied, t transposed.
// 384 threads, grid.x = min(tiles, multiprocessors), dynamic shared memory WGMMA_SHARED = 230400 bytes. Tensor maps with
// 128-byte swizzle: an operand whose k is contiguous has dims (k, rows, matrices) and boxes (64, tile rows, 1), the
// other kind dims (rows, k, matrices) and boxes (64, 64, 1). k >= 1; d is [batch][m][n]; c must not be d.
// matmul_half_pad: rows of such elements copied to rows of `pitch`, a multiple of 8; a warp a row, 256 threads.
// WGMMA_PROMOTE, which only the 128x128 forms know, keeps the tensor core's sums to 128 terms.
#include "common/half_product.cuh"
#include "common/wgmma_tile.cuh"

template <class Tl, bool ACROSS_A, bool ACROSS_B, class T>
WW_INLINE void half_multiply(const WgmmaOut<T> &out, const WgmmaShared &shared, const Half &p, unsigned blocks) {
    const WgmmaWalk<Tl, Half> walk(p);
    const unsigned group = (threadIdx.x >> 7) - 1, warp = (threadIdx.x >> 5) - 4, stage = shared.stage + warp * WGMMA_STAGE;
    const bool plain = is_plain(out, p);
    WgmmaRing<Tl::SLOTS> ring;
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
        unsigned row, column;
        const unsigned batch = walk.place(tile, row, column);
        float d[Tl::R];
        if (Tl::BN == 128 && (p.flags & WGMMA_PROMOTE))
            wgmma_sum_promoted<Tl, ACROSS_A, ACROSS_B>(d, ring, shared, group, blocks);
        else
            wgmma_sum<Tl, ACROSS_A, ACROSS_B>(d, ring, shared, group, blocks);
        const WgmmaOut<T> here = half_out(out, p, batch);
        if (plain)
            wgmma_store_plain(d, stage, row + warp * 16, column, here, p);
        else
            wgmma_store(d, stage, row + warp * 16, column, here, p, Unscaled());
    }
}

template <class Tl, bool ACROSS_A, bool ACROSS_B, class T>
WW_INLINE void half_matmul(const TensorMap &map_a, const TensorMap &map_b, const WgmmaOut<T> &out, const Half &p) {
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * Tl::SLOTS];
    WgmmaShared shared;
    wgmma_shared<Tl>(shared, dynamic, barriers);
    const unsigned blocks = (p.k + 127) / 128 * 2;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) wgmma_bring<Tl>(&map_a, ACROSS_A, &map_b, ACROSS_B, shared, p, blocks);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        half_multiply<Tl, ACROSS_A, ACROSS_B>(out, shared, p, blocks);
    }
}

#define HALF_MATMUL(NAME, T, BF16, BN, ...)                                                                                \
    extern "C" __global__ void __launch_bounds__(384, 1)                                                                   \
        NAME(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const T *c, const T *bias, void *d, \
             float alpha, float beta, float p0, float p1, const __grid_constant__ Half p) {                                \
        half_matmul<WgmmaTile<BN, BF16>, __VA_ARGS__>(map_a, map_b, WgmmaOut<T>{c, bias, d, alpha, beta, p0, p1}, p);      \
    }

#define HALF_MATMULS(TYPE, T, BF16, BN)                                                                                    \
    HALF_MATMUL(matmul_##TYPE##_128x##BN##_nn, T, BF16, BN, false, true)                                                   \
    HALF_MATMUL(matmul_##TYPE##_128x##BN##_nt, T, BF16, BN, false, false)                                                  \
    HALF_MATMUL(matmul_##TYPE##_128x##BN##_tn, T, BF16, BN, true, true)                                                    \
    HALF_MATMUL(matmul_##TYPE##_128x##BN##_tt, T, BF16, BN, true, false)

HALF_MATMULS(f16, WwHalf, false, 64)
HALF_MATMULS(f16, WwHalf, false, 128)
HALF_MATMULS(f16, WwHalf, false, 192)
HALF_MATMULS(f16, WwHalf, false, 256)
HALF_MATMULS(bf16, WwBfloat, true, 64)
HALF_MATMULS(bf16, WwBfloat, true, 128)
HALF_MATMULS(bf16, WwBfloat, true, 192)
HALF_MATMULS(bf16, WwBfloat, true, 256)

extern "C" __global__ void __launch_bounds__(256) matmul_half_pad(const unsigned short *from, unsigned short *to, unsigned rows, unsigned columns, unsigned pitch) {
    const unsigned row = blockIdx.x * 8 + (threadIdx.x >> 5);
    if (row >= rows) return;
    from += (unsigned long long)row * columns;
    to += (unsigned long long)row * pitch;
    for (unsigned at = threadIdx.x & 31; at < columns; at += 32) to[at] = from[at];
}
