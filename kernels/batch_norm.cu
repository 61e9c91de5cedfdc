// levels: sm_75
// batchNorm of [N, channels, inner] with given statistics, in the array's own type, in float for 16 bits. scale and bias may be null.
//   batchNorm_<dtype>(x, scale, bias, mean, variance, y, n, inner, magic of inner, channels, magic of channels, epsilon)
// Launch: 256 threads, ceil(n / (256 * 16 / sizeof(T))) blocks, no shared memory.
#include "common/math.cuh"
#include "common/half.cuh"
#include "common/divide.cuh"

#define PARAMS(T)                                                                                                \
    const T *x, const T *scale, const T *bias, const T *mean, const T *variance, T *y, unsigned long long n,     \
        unsigned long long inner, unsigned long long inner_magic, unsigned long long channels,                   \
        unsigned long long channels_magic, WwCompute<T> epsilon

template <class T> struct Channel {
    using Value = WwCompute<T>;
    Value mean, factor, bias;
    WW_DEVICE Channel at(const T* scale, const T* bias, const T* mean, const T* variance, unsigned long long c, Value epsilon) {
        Value root = ww_sqrt(variance[c] + epsilon);
        return Channel{mean[c], (scale ? (Value)scale[c] : Value(1)) / root, bias ? (Value)bias[c] : Value(0)};
    }
};

template <class T> WW_DEVICE void batch_norm(PARAMS(T)) {
    constexpr int size = WwVector<T>::size;
    bool vectors = ww_aligned(x) && ww_aligned(y);
    unsigned long long block = blockIdx.x * (unsigned long long)(256 * size);
    unsigned long long base = vectors ? block + threadIdx.x * size : block + threadIdx.x;
    unsigned step = vectors ? 1 : 256;
    if (base >= n) return;
    bool whole = vectors && base + size <= n;
    WwVector<T> v;
    if (whole) v = ww_load(x + base);
    Channel<T> c;
    unsigned long long left = 0;
#pragma unroll
    for (int k = 0; k < size; k++) {
        unsigned long long i = base + k * step;
        if (i >= n) break;
        if (!whole) v.lane[k] = x[i];
        if (left == 0) {
            unsigned long long rest, channel;
            ww_divide(ww_divide(i, inner, inner_magic, rest), channels, channels_magic, channel);
            c = Channel<T>::at(scale, bias, mean, variance, channel, epsilon);
            left = vectors ? inner - rest : 1;
        }
        left--;
        v.lane[k] = T(ww_fma(v.lane[k] - c.mean, c.factor, c.bias));
        if (!whole) y[i] = v.lane[k];
    }
    if (whole) ww_store(y + base, v);
}

#define BATCH_NORM(T, dt)                                                                                        \
    extern "C" __global__ void __launch_bounds__(256) batchNorm_##dt(PARAMS(T)) {                                \
        batch_norm(x, scale, bias, mean, variance, y, n, inner, inner_magic, channels, channels_magic, epsilon); \
    }

#ifdef WW_HALVES
BATCH_NORM(WwHalf, f16)
BATCH_NORM(WwBfloat, bf16)
#else
BATCH_NORM(float, f32)
BATCH_NORM(double, f64)
#endif
