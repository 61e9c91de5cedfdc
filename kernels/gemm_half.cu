// levels: sm_90a
// Matrix products d = act(alpha * a b + beta * c + bias) of float16 or bfloat16 on the tensor cores, batched, sums in
// float32, one rounding. Names end in the tile and in how a and b are stored: n as they are multiplied, t transposed.
// 384 threads, grid.x = min(tiles, multiprocessors), dynamic shared memory WGMMA_SHARED = 230400 bytes. Tensor maps with
// 128-byte swizzle: an operand whose k is contiguous has dims (k, rows, matrices) and boxes (64, tile rows, 1), the
// other kind dims (rows, k, matrices) and boxes (64, 64, 1). k >= 1; d is [batch][m][n]; c must not be d.
// WGMMA_PROMOTE, which only the 128x128 forms know, keeps the tensor core's sums to 128 terms.
#include "common/wgmma_store.cuh"

struct Half {
    unsigned m, n, k, batch_count, act, flags;
    // The operand's matrix of a batch index: index / div % mod.
    unsigned a_div, a_mod, b_div, b_mod;
    Wide c_row, c_column, c_batch, bias_row, bias_column;

    WW_INLINE unsigned a_index(unsigned batch) const { return batch / a_div % a_mod; }
    WW_INLINE unsigned b_index(unsigned batch) const { return batch / b_div % b_mod; }
};

template <class T> WW_INLINE WgmmaOut<T> half_out(WgmmaOut<T> out, const Half &p, unsigned batch) {
    const unsigned long long matrix = (unsigned long long)p.m * p.n * batch;
    out.d = (char *)out.d + matrix * (p.flags & WGMMA_FLOAT_D ? 4 : 2);
    if (out.c) out.c += batch * p.c_batch.get();
    return out;
}

template <class Tl, class T> WW_INLINE void half_multiply(const WgmmaOut<T> &out, const WgmmaShared &shared, const Half &p, unsigned blocks) {
    const WgmmaWalk<Tl, Half> walk(p);
    const unsigned group = (threadIdx.x >> 7) - 1, warp = (threadIdx.x >> 5) - 4;
    WgmmaRing<Tl::SLOTS> ring;
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
        unsigned row, column;
        const unsigned batch = walk.place(tile, row, column);
        float d[Tl::R];
        if (Tl::BN == 128 && (p.flags & WGMMA_PROMOTE))
            wgmma_sum_promoted<Tl>(d, ring, shared, group, blocks);
        else
            wgmma_sum<Tl>(d, ring, shared, group, blocks);
        wgmma_store(d, shared.stage + warp * WGMMA_STAGE, row + warp * 16, column, half_out(out, p, batch), p, Unscaled());
    }
}

template <class Tl, class T> WW_INLINE void half_matmul(const TensorMap &map_a, const TensorMap &map_b, const WgmmaOut<T> &out, const Half &p) {
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * Tl::SLOTS];
    WgmmaShared shared;
    wgmma_shared<Tl>(shared, dynamic, barriers);
    const unsigned blocks = (p.k + 127) / 128 * 2;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) wgmma_bring<Tl>(&map_a, &map_b, shared, p, blocks);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        half_multiply<Tl>(out, shared, p, blocks);
    }
}

#define HALF_MATMUL(NAME, T, ...)                                                                                          \
    extern "C" __global__ void __launch_bounds__(384, 1)                                                                   \
        NAME(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, const T *c, const T *bias, void *d, \
             float alpha, float beta, float p0, float p1, const __grid_constant__ Half p) {                                \
        half_matmul<WgmmaTile<__VA_ARGS__>>(map_a, map_b, WgmmaOut<T>{c, bias, d, alpha, beta, p0, p1}, p);                \
    }

#define HALF_MATMULS(TYPE, T, BF16, BN)                                                                                    \
    HALF_MATMUL(matmul_##TYPE##_128x##BN##_nn, T, BN, BF16, false, true)                                                   \
    HALF_MATMUL(matmul_##TYPE##_128x##BN##_nt, T, BN, BF16, false, false)                                                  \
    HALF_MATMUL(matmul_##TYPE##_128x##BN##_tn, T, BN, BF16, true, true)                                                    \
    HALF_MATMUL(matmul_##TYPE##_128x##BN##_tt, T, BN, BF16, true, false)

HALF_MATMULS(f16, WwHalf, false, 64)
HALF_MATMULS(f16, WwHalf, false, 128)
HALF_MATMULS(f16, WwHalf, false, 256)
HALF_MATMULS(bf16, WwBfloat, true, 64)
HALF_MATMULS(bf16, WwBfloat, true, 128)
HALF_MATMULS(bf16, WwBfloat, true, 256)
