// levels: sm_75
// layerNorm over contiguous rows. Moments as in common/moments.cuh, the rest in the array's own type, in float for 16 bits.
// scale and bias may be null. S is 16 / sizeof(T); nothing need be aligned. A row's vectors are the 16-byte lines that it
// touches: columns / S where rows lie on lines, else up to one and a part more.
//   layerNorm_<dt>_lanes(x, scale, bias, y, rows, columns, epsilon)
//                               8 vectors: 256 threads, ceil(rows / 32) blocks
//   layerNorm_<dt>_pairs        16 vectors: 256 threads, ceil(rows / 32) blocks
//   layerNorm_<dt>_half         32 vectors: 256 threads, ceil(rows / 16) blocks
//   layerNorm_<dt>_warp         64 vectors: 256 threads, ceil(rows / 8) blocks
//   layerNorm_<dt>_block        2048 vectors: vectors / 4 threads in whole warps, one block a row
//                               16 bits: 1024 vectors
//   layerNorm_<dt>_wide         4096 vectors, 16 bits: 2048 vectors; vectors / 4 threads, one block a row
// Longer rows in two launches of rows * parts blocks of 512 threads, with 2 * rows * parts doubles of workspace:
//   layerNorm_<dt>_partial(x, workspace, columns, chunk, parts)
//                               chunk: whole strips of 512 threads; chunk * parts covers the row and its first line
//   layerNorm_<dt>_finish(x, workspace, scale, bias, y, columns, chunk, parts, epsilon)
#include "common/math.cuh"
#include "common/norm.cuh"

#define ROW_PARAMS(T) \
    const T *x, const T *scale, const T *bias, T *y, unsigned long long rows, unsigned columns, WwCompute<T> epsilon
#define AFFINE(T) WwAffine<T, true>{scale, bias}
#define KERNEL(T, dt, form, ...) \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) layerNorm_##dt##_##form(ROW_PARAMS(T))
#include "common/norm_forms.cuh"

#define LAYER_NORM(T, dt)                                                                              \
    NORM_FORMS(T, dt)                                                                                  \
    extern "C" __global__ void __launch_bounds__(512, 2) layerNorm_##dt##_partial(                     \
        const T* x, double* workspace, unsigned long long columns, unsigned long long chunk, unsigned parts) { \
        ww_norm_partial<true>(x, workspace, columns, chunk, parts);                                    \
    }                                                                                                  \
    extern "C" __global__ void __launch_bounds__(512, 2) layerNorm_##dt##_finish(                      \
        const T* x, const double* workspace, const T* scale, const T* bias, T* y, unsigned long long columns, \
        unsigned long long chunk, unsigned parts, WwCompute<T> epsilon) {                              \
        ww_norm_finish(x, workspace, y, columns, chunk, parts, AFFINE(T), epsilon);                    \
    }

#ifdef WW_HALVES
LAYER_NORM(WwHalf, f16)
LAYER_NORM(WwBfloat, bf16)
#else
LAYER_NORM(float, f32)
LAYER_NORM(double, f64)
#endif
