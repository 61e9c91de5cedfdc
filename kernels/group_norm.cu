// levels: sm_75
// groupNorm: rows of `columns` elements, `channels` channels of `plane` elements each; row r is group r % groups. As
// layer_norm.cu, with one scale and one bias a channel of all groups: the same forms and launches.
//   groupNorm_<dt>_<form>(x, scale, bias, y, rows, columns, Groups, epsilon)
//   groupNorm_<dt>_finish(x, workspace, scale, bias, y, columns, chunk, parts, Groups, epsilon)   after layerNorm_<dt>_partial
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/norm.cuh"

struct Groups {
    unsigned long long plane;
    unsigned long long magic;  // of plane, as in common/divide.cuh
    unsigned long long channels;
    unsigned long long groups;
    unsigned long long groups_magic;
};

// One scale and one bias a channel; `first` is the row's first channel, `begin` the column that position 0 stands for.
template <class T> struct Channels {
    static constexpr bool CENTERED = true, BIAS = true;
    const T *scale, *bias;
    const Groups& g;
    unsigned long long first, begin;

    __device__ __forceinline__ unsigned long long channel(unsigned column) const {
        unsigned long long rest;
        return first + ww_divide(begin + column, g.plane, g.magic, rest);
    }
    // On lines a vector lies in one channel.
    template <bool WHOLE, bool LINES>
    __device__ __forceinline__ WwAffineVector<T> fetch(const WwPlace<LINES>& p, unsigned i) const {
        WwAffineVector<T> a;
        if constexpr (LINES) {
            const unsigned long long at = channel(p.meets(i) ? i : 0);
            const T s = scale ? scale[at] : T(1.0f), b = bias ? bias[at] : T(0.0f);
#pragma unroll
            for (int k = 0; k < WwVector<T>::size; k++) a.scale.lane[k] = s, a.bias.lane[k] = b;
        } else {
#pragma unroll
            for (int k = 0; k < WwVector<T>::size; k++) {
                a.scale.lane[k] = T(1.0f), a.bias.lane[k] = T(0.0f);
                if (!p.holds(i + k)) continue;
                const unsigned long long at = channel(i + k - p.shift);
                if (scale) a.scale.lane[k] = scale[at];
                if (bias) a.bias.lane[k] = bias[at];
            }
        }
        return a;
    }
    __device__ __forceinline__ bool lines() const { return g.plane % WwVector<T>::size == 0; }
    __device__ __forceinline__ Channels of_row(unsigned long long row) const {
        unsigned long long group;
        ww_divide(row, g.groups, g.groups_magic, group);
        return Channels{scale, bias, g, group * g.channels, begin};
    }
    __device__ __forceinline__ Channels beyond(unsigned long long columns) const {
        return Channels{scale, bias, g, first, begin + columns};
    }
};

#define ROW_PARAMS(T)                                                                                           \
    const T *x, const T *scale, const T *bias, T *y, unsigned long long rows, unsigned columns, const Groups g, \
        WwCompute<T> epsilon
#define AFFINE(T) Channels<T>{scale, bias, g, 0, 0}
#define KERNEL(T, dt, form, ...) \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) groupNorm_##dt##_##form(ROW_PARAMS(T))
#include "common/norm_forms.cuh"

#define GROUP_NORM(T, dt)                                                                              \
    NORM_FORMS(T, dt)                                                                                  \
    extern "C" __global__ void __launch_bounds__(512, 2) groupNorm_##dt##_finish(                      \
        const T* x, const double* workspace, const T* scale, const T* bias, T* y, unsigned long long columns, \
        unsigned long long chunk, unsigned parts, const Groups g, WwCompute<T> epsilon) {              \
        ww_norm_finish(x, workspace, y, columns, chunk, parts, AFFINE(T), epsilon);                    \
    }

#ifdef WW_HALVES
GROUP_NORM(WwHalf, f16)
GROUP_NORM(WwBfloat, bf16)
#else
GROUP_NORM(float, f32)
GROUP_NORM(double, f64)
#endif
