// levels: sm_75
// rmsNorm over contiguous rows, as layer_norm.cu without means and biases: the same forms and launches.
//   rmsNorm_<dt>_<form>(x, scale, y, rows, columns, epsilon)
//   rmsNorm_<dt>_partial(x, workspace, columns, chunk, parts)
//   rmsNorm_<dt>_finish(x, workspace, scale, y, columns, chunk, parts, epsilon)
#include "common/math.cuh"
#include "common/norm.cuh"

#define ROW_PARAMS(T) const T *x, const T *scale, T *y, unsigned long long rows, unsigned columns, WwCompute<T> epsilon
#define AFFINE(T) WwAffine<T, false, false>{scale, nullptr}
#define KERNEL(T, dt, form, ...) \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) rmsNorm_##dt##_##form(ROW_PARAMS(T))
#include "common/norm_forms.cuh"

#define RMS_NORM(T, dt)                                                                                \
    NORM_FORMS(T, dt)                                                                                  \
    extern "C" __global__ void __launch_bounds__(512, 2) rmsNorm_##dt##_partial(                       \
        const T* x, double* workspace, unsigned long long columns, unsigned long long chunk, unsigned parts) { \
        ww_norm_partial<false>(x, workspace, columns, chunk, parts);                                   \
    }                                                                                                  \
    extern "C" __global__ void __launch_bounds__(512, 2) rmsNorm_##dt##_finish(                        \
        const T* x, const double* workspace, const T* scale, T* y, unsigned long long columns, unsigned long long chunk, \
        unsigned parts, WwCompute<T> epsilon) {                                                        \
        ww_norm_finish(x, workspace, y, columns, chunk, parts, AFFINE(T), epsilon);                    \
    }

#ifdef WW_HALVES
RMS_NORM(WwHalf, f16)
RMS_NORM(WwBfloat, bf16)
#else
RMS_NORM(float, f32)
RMS_NORM(double, f64)
#endif
