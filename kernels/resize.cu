// levels: sm_75
// resize of one axis: x [outer, input, inner] to y [outer, output, inner], in the array's own type, in float for 16 bits.
//   resize_table_<f32|f64>(firsts, weights, Axis)
//       for each output the first element that it takes (the least int64 for none) and `taps` weights; in float64, and step
//       by step as src/ops/resize/weights.rs. 256 threads, ceil(output / 256) blocks
//   resize_<dt>(x, firsts, weights, y, n, inner, magic, output, magic, input, taps, extrapolation)
//   resize_<dt>_widen, resize_<dt>_narrow       of 16 bits: y is, or x is, of float32
//       n elements of y; 256 threads, ceil(n / 1024) blocks; magic as in common/divide.cuh. Elements beyond the ends are
//       those at the ends; what weighs nothing is not read.
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/half.cuh"

typedef unsigned long long u64;

struct Axis {
    u64 input, output;
    double scale, offset, start, end, cubic;
    unsigned taps;
    unsigned method, transform, rounding;  // numbered as in weights.rs
    unsigned exclude_outside, antialias;
};

constexpr long long OUTSIDE = -0x7fffffffffffffffll - 1;

// Products and sums are rounded one by one, so that the host computes the same places.
WW_DEVICE double place_of(u64 index, const Axis& a) {
    const double x = (double)index, input = (double)a.input, length = __dmul_rn(a.scale, input);
    switch (a.transform) {
        case 0: return __dadd_rn(__dadd_rn(x, 0.5) / a.scale, -0.5);
        case 1: return __dadd_rn(__dadd_rn(a.offset, __dadd_rn(x, 0.5) / a.scale), -0.5);
        case 2: return a.output > 1 ? __dadd_rn(__dadd_rn(x, 0.5) / a.scale, -0.5) : 0.0;
        case 3: return length == 1.0 ? 0.0 : __dmul_rn(x, input - 1.0) / (length - 1.0);
        case 4: return x / a.scale;
        default: {
            const double part = __dadd_rn(a.end, -a.start);
            const double within = length == 1.0 ? __dmul_rn(part, input - 1.0) / 2.0
                                                : __dmul_rn(__dmul_rn(x, part), input - 1.0) / (length - 1.0);
            return __dadd_rn(within, __dmul_rn(a.start, input - 1.0));
        }
    }
}

WW_DEVICE double cubic_of(double x, double a) {
    if (x <= 1.0) return (1.0 - x) * (1.0 + x - (a + 2.0) * x * x);
    return x < 2.0 ? a * (x - 1.0) * (2.0 - x) * (2.0 - x) : 0.0;
}

WW_DEVICE double weight_of(long long at, double place, double shrink, const Axis& a) {
    if (a.exclude_outside && (u64)at >= a.input) return 0.0;
    const double distance = fabs(((double)at - place) * shrink);
    return a.method == 2 ? cubic_of(distance, a.cubic) : fmax(1.0 - distance, 0.0);
}

template <class T> WW_DEVICE void table(long long* firsts, T* weights, const Axis& a) {
    const u64 index = blockIdx.x * 256ull + threadIdx.x;
    if (index >= a.output) return;
    weights += index * a.taps;
    const double place = place_of(index, a);
    if (a.transform == 5 && !(place >= 0.0 && place <= (double)(a.input - 1))) {
        firsts[index] = OUTSIDE;
        for (unsigned k = 0; k < a.taps; k++) weights[k] = T(0);
        return;
    }
    const double left = ceil(place) - 1.0, ratio = place - left;
    if (a.method == 0) {
        const bool right = ratio == 1.0 || a.rounding == 3 || (a.rounding == 0 && ratio > 0.5) || (a.rounding == 1 && ratio >= 0.5);
        firsts[index] = (long long)left + right;
        weights[0] = T(1);
        return;
    }
    const double shrink = a.antialias && a.scale < 1.0 ? a.scale : 1.0;
    const long long first = (long long)left + 1 - a.taps / 2;
    double total = 0.0;
    for (unsigned k = 0; k < a.taps; k++) total += weight_of(first + k, place, shrink, a);
    if (!a.antialias && !a.exclude_outside) total = 1.0;
    for (unsigned k = 0; k < a.taps; k++) weights[k] = T(weight_of(first + k, place, shrink, a) / total);
    firsts[index] = first;
}

// TAPS is the number of taps where it is known, 0 otherwise.
template <int TAPS, class S, class D>
WW_DEVICE void resize(const S* x, const long long* firsts, const WwCompute<S>* weights, D* y, u64 n, u64 inner, u64 inner_magic,
                      u64 output, u64 output_magic, u64 input, unsigned taps, WwCompute<S> extrapolation) {
    using T = WwCompute<S>;
#pragma unroll
    for (int part = 0; part < 4; part++) {
        const u64 i = blockIdx.x * 1024ull + part * 256 + threadIdx.x;
        if (i >= n) return;
        u64 column, index;
        const u64 outer = ww_divide(ww_divide(i, inner, inner_magic, column), output, output_magic, index);
        const S* from = x + outer * input * inner + column;
        const long long first = firsts[index], last = (long long)input - 1;
        T sum = T(0);
        auto take = [&](unsigned k, T weight) {
            long long at = first + k;
            at = at < 0 ? 0 : at > last ? last : at;
            if (weight != T(0)) sum = ww_fma(weight, (T)from[at * inner], sum);
        };
        if (first == OUTSIDE) {
            sum = extrapolation;
        } else if (TAPS == 1) {
            take(0, T(1));
        } else if (TAPS) {
#pragma unroll
            for (int k = 0; k < TAPS; k++) take(k, weights[index * TAPS + k]);
        } else {
#pragma unroll 1
            for (unsigned k = 0; k < taps; k++) take(k, weights[index * taps + k]);
        }
        y[i] = D(sum);
    }
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define RESIZE(S, D, name)                                                                                              \
    KERNEL resize_##name(const S* x, const long long* firsts, const WwCompute<S>* weights, D* y, u64 n, u64 inner,      \
                         u64 inner_magic, u64 output, u64 output_magic, u64 input, unsigned taps,                       \
                         WwCompute<S> extrapolation) {                                                                  \
        if (taps == 1)                                                                                                  \
            resize<1>(x, firsts, weights, y, n, inner, inner_magic, output, output_magic, input, taps, extrapolation);  \
        else if (taps == 2)                                                                                             \
            resize<2>(x, firsts, weights, y, n, inner, inner_magic, output, output_magic, input, taps, extrapolation);  \
        else if (taps == 4)                                                                                             \
            resize<4>(x, firsts, weights, y, n, inner, inner_magic, output, output_magic, input, taps, extrapolation);  \
        else                                                                                                            \
            resize<0>(x, firsts, weights, y, n, inner, inner_magic, output, output_magic, input, taps, extrapolation);  \
    }
#define RESIZE_HALF(S, name)       \
    RESIZE(S, S, name)             \
    RESIZE(S, float, name##_widen) \
    RESIZE(float, S, name##_narrow)
#define TABLE(T, dt) \
    KERNEL resize_table_##dt(long long* firsts, T* weights, const Axis a) { table(firsts, weights, a); }

TABLE(float, f32)
TABLE(double, f64)
RESIZE(float, float, f32)
RESIZE(double, double, f64)
RESIZE_HALF(WwHalf, f16)
RESIZE_HALF(WwBfloat, bf16)
