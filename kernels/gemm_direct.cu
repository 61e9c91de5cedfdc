// levels: sm_80 sm_90a
// Float32 products of few rows by many, where the long operand streams by once, and of small matrices: d = act(alpha * op(a)
// op(b) + beta * c + bias), row-major, batched, float32 accurate by three TF32 products (direct_*) or by chains (rows).
// Names: outputs of a block along the long and the short operand, then whether k lies side by side in them (k) or rows (m).
// grid.x = tiles along s * tiles along l * splits * batch, s innermost. Dynamic shared memory: the tile's outputs times its
// groups of warps along k, and 16 bytes; rows has none. With splits > 1, partial holds [tile][split][outputs] and tickets one
// word a tile, which is 0 before and after. At sm_90a a launch waits for the one before by itself.
#include "common/gemm_rows.cuh"
#include "common/gemm_tall.cuh"

#define MATMUL_DIRECT(NAME, BLOCKS, ...)                                                                                   \
    extern "C" __global__ void __launch_bounds__(DirectTile<__VA_ARGS__>::THREADS, BLOCKS) matmul_f32_##NAME(DIRECT_ARGS) { \
        matmul_direct<DirectTile<__VA_ARGS__>>(DIRECT_PASS);                                                               \
    }

#define MATMUL_LAYOUTS(NAME, BLOCKS, ...)                                                                                  \
    MATMUL_DIRECT(NAME##_kk, BLOCKS, __VA_ARGS__, true, true)                                                              \
    MATMUL_DIRECT(NAME##_km, BLOCKS, __VA_ARGS__, true, false)                                                             \
    MATMUL_DIRECT(NAME##_mk, BLOCKS, __VA_ARGS__, false, true)

// Fragments of a warp, warps along l, s and k, chunks in flight. 80 registers, three blocks, do not hold the smallest tile.
MATMUL_LAYOUTS(direct_16x8, 2, 1, 1, 1, 1, 8, 3)
MATMUL_LAYOUTS(direct_32x16, 2, 2, 2, 1, 1, 6, 2)
MATMUL_LAYOUTS(direct_32x32, 2, 2, 4, 1, 1, 4, 2)
MATMUL_LAYOUTS(direct_32x8_stream, 1, 2, 1, 1, 1, 16, 3)
MATMUL_LAYOUTS(direct_32x16_stream, 1, 2, 2, 1, 1, 12, 2)
MATMUL_LAYOUTS(direct_64x16_stream, 2, 2, 2, 2, 1, 3, 2)

extern "C" __global__ void __launch_bounds__(RowsTile::THREADS, 2) matmul_f32_rows(DIRECT_ARGS) { matmul_rows(DIRECT_PASS); }

extern "C" __global__ void __launch_bounds__(TallTile<8>::THREADS, 1) matmul_f32_tall(DIRECT_ARGS) { matmul_tall<TallTile<8>>(DIRECT_PASS); }
