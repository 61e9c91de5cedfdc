// Maximum and sum of exponentials relative to it, kept as a pair that can be merged. NaN reaches the sum.
#pragma once
#include "math_half.cuh"

// The exponential to the precision of results of type S.
template <class S, class T> WW_DEVICE T ww_exp_of(T x) {
    if constexpr (sizeof(S) == 2)
        return ww_exp_half(x);
    else
        return ww_exp(x);
}

WW_DEVICE float ww_max_number(float a, float b) { return fmaxf(a, b); }
WW_DEVICE double ww_max_number(double a, double b) { return b > a ? b : a; }

template <class T> struct WwPair {
    T most, sum;
};

// A maximum of -inf means that nothing was seen yet: exponentials relative to 0 are then 0, not NaN.
template <class T> WW_DEVICE T ww_finite_base(T most) {
    return most == -WwLimits<T>::infinity() ? T(0) : most;
}

template <class T> WW_DEVICE WwPair<T> ww_rebase(WwPair<T> p, T most) {
    return WwPair<T>{most, p.sum * ww_exp(p.most - ww_finite_base(most))};
}

template <class T> WW_DEVICE WwPair<T> ww_merge(WwPair<T> a, WwPair<T> b) {
    T most = ww_max_number(a.most, b.most);
    return WwPair<T>{most, ww_rebase(a, most).sum + ww_rebase(b, most).sum};
}

template <class T> WW_DEVICE WwPair<T> ww_merge_lanes(WwPair<T> p) {
    T most = ww_lanes_reduce<32>(p.most, [](T a, T b) { return ww_max_number(a, b); });
    T sum = ww_lanes_reduce<32>(ww_rebase(p, most).sum, [](T a, T b) { return a + b; });
    return WwPair<T>{most, sum};
}

// Merges one pair a warp over the block, in warp order; every thread gets the result.
template <class T> WW_DEVICE WwPair<T> ww_block_pair(WwPair<T> own) {
    __shared__ WwPair<T> pairs[32];
    unsigned lane = threadIdx.x % 32;
    if (lane == 0) pairs[threadIdx.x / 32] = own;
    __syncthreads();
    WwPair<T> p = lane < blockDim.x / 32 ? pairs[lane] : WwPair<T>{-WwLimits<T>::infinity(), T(0)};
    return ww_merge_lanes(p);
}

// Replaces a row's values by exponentials relative to the group's maximum (LOG keeps the values) and returns the pair.
template <int LANES, bool LOG, class S, int VECTORS> WW_DEVICE WwPair<WwCompute<S>> ww_exponentials(WwRow<S, VECTORS>& r) {
    using T = WwCompute<S>;
    T most = r.value[0];
#pragma unroll
    for (int k = 1; k < r.count; k++) most = ww_max_number(most, r.value[k]);
    most = ww_lanes_reduce<LANES>(most, [](T a, T b) { return ww_max_number(a, b); });
    T base = ww_finite_base(most), sum = T(0);
#pragma unroll
    for (int k = 0; k < r.count; k++) {
        T e = ww_exp_of<S>(r.value[k] - base);
        sum += e;
        if (!LOG) r.value[k] = e;
    }
    return WwPair<T>{most, ww_lanes_reduce<LANES>(sum, [](T a, T b) { return a + b; })};
}

// Turns exponentials relative to `own` (or values, for LOG) into the result for the whole row's pair.
template <bool LOG, class S, int VECTORS, class T> WW_DEVICE void ww_scale(WwRow<S, VECTORS>& r, WwPair<T> own, WwPair<T> all) {
    T factor = LOG ? ww_log(all.sum) : ww_exp(own.most - all.most) / all.sum;
#pragma unroll
    for (int k = 0; k < r.count; k++) r.value[k] = LOG ? r.value[k] - all.most - factor : r.value[k] * factor;
}
