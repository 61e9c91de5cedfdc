// levels: sm_80 sm_90a
// Products d = act(alpha * op(a) op(b) + beta * c + bias) of float64 on the tensor cores, batched as in gemm.cu, whose
// matmul_f64_reduce adds the splits. Each sum is one FMA chain in ascending k.
// matmul_f64_mma_*: any layout, 16-byte copies where flags say so, in whichever order an operand lies. A block a tile and
// split, 256 threads (64x64) or 128 (32x32); dynamic shared memory 3 or 4 * (rows + columns) * 160 bytes.
// matmul_f64_tma_*: names end in how a and b are stored, n as they are multiplied, t transposed. 384 threads, grid.x
// = min(tiles * splits, multiprocessors), dynamic shared memory 193 KiB. Tensor maps with 128-byte swizzle: an operand whose
// k is contiguous has dims (k, rows, matrices) and boxes (16, tile rows, 1), the other kind dims (rows, k, matrices) and boxes
// (16, 16, 1). The batch's strides of a and b are in matrices. c must not be d.
// matmul_f64_pad: rows copied to rows of `pitch`, a multiple of 2; a warp a row, 256 threads.
#include "common/double_tile.cuh"
#if __CUDA_ARCH__ >= 900
#include "common/double_ring.cuh"
#endif

#define DOUBLE_TILE(NAME, BLOCKS, ...)                                                                                     \
    extern "C" __global__ void __launch_bounds__(DoubleTile<__VA_ARGS__>::THREADS, BLOCKS) NAME(MATMUL_ARGS(double)) {     \
        double_matmul<DoubleTile<__VA_ARGS__>>(MATMUL_PASS);                                                               \
    }

DOUBLE_TILE(matmul_f64_mma_64x64, 2, 64, 64, 32, 16, 3)
DOUBLE_TILE(matmul_f64_mma_32x32, 4, 32, 32, 16, 16, 4)

#if __CUDA_ARCH__ >= 900
#define DOUBLE_RING(NAME, ...)                                                                                             \
    extern "C" __global__ void __launch_bounds__(384, 1) NAME(RING_ARGS) {                                                 \
        ring_matmul<RingTile<__VA_ARGS__>>(map_a, map_b, c, bias, d, alpha, beta, p0, p1, p);                              \
    }

#define DOUBLE_RINGS(BN)                                                                                                   \
    DOUBLE_RING(matmul_f64_tma_128x##BN##_nn, BN, true, false)                                                             \
    DOUBLE_RING(matmul_f64_tma_128x##BN##_nt, BN, true, true)                                                              \
    DOUBLE_RING(matmul_f64_tma_128x##BN##_tn, BN, false, false)                                                            \
    DOUBLE_RING(matmul_f64_tma_128x##BN##_tt, BN, false, true)

DOUBLE_RINGS(128)
DOUBLE_RINGS(64)

extern "C" __global__ void __launch_bounds__(256)
    matmul_f64_pad(const double *from, double *to, unsigned rows, unsigned columns, unsigned pitch) {
    const unsigned row = blockIdx.x * 8 + (threadIdx.x >> 5);
    if (row >= rows) return;
    from += (unsigned long long)row * columns;
    to += (unsigned long long)row * pitch;
    // Eight loads under way at a time.
    for (unsigned first = threadIdx.x & 31; first < columns; first += 256) {
        double held[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) held[i] = first + 32 * i < columns ? from[first + 32 * i] : 0.0;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (first + 32 * i < columns) to[first + 32 * i] = held[i];
    }
}
#endif
