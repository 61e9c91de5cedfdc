// levels: sm_90a
// matmul_f32_chain: second half of a split product (gemm_split.cu). Does nothing unless the operands are wide, or hold
// Inf, NaN or values so large that a partial sum may leave float32's range; then the whole product again by float32
// chains, which are right for all of them. 128 threads, grid.x = at most the tiles of 128 x 64 * batch (few blocks end
// sooner where there is nothing to do), no dynamic shared memory.
#include "common/gemm_product.cuh"
#include "common/split.cuh"

extern "C" __global__ void __launch_bounds__(128, 3)
    matmul_f32_chain(MATMUL_ARGS(float), const unsigned long long *range_a, const unsigned long long *range_b, const Split s) {
    if (!split_wide(range_a, range_b, s) && !split_special(range_a, range_b, s)) return;
    const unsigned tiles = (p.m + 127) / 128 * ((p.n + 63) / 64) * p.batch_count;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        matmul_tile<Tile<float, 128, 64, 8, 8>>(MATMUL_PASS, tile);
        __syncthreads();
    }
}
