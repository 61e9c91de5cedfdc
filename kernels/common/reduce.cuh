// What a reduction folds: an identity, a map of each element and an associative step.
#pragma once

struct WwSum {
    template <class T> WW_DEVICE T identity() { return T(0); }
    template <class T> WW_DEVICE T map(T x) { return x; }
    template <class T> WW_DEVICE T fold(T a, T b) { return a + b; }
};

struct WwAbs : WwSum {
    template <class T> WW_DEVICE T map(T x) { return ww_abs(x); }
};

struct WwSquare : WwSum {
    template <class T> WW_DEVICE T map(T x) { return x * x; }
};

struct WwProduct {
    template <class T> WW_DEVICE T identity() { return T(1); }
    template <class T> WW_DEVICE T map(T x) { return x; }
    template <class T> WW_DEVICE T fold(T a, T b) { return a * b; }
};

struct WwMax {
    template <class T> WW_DEVICE T identity() { return -WwLimits<T>::infinity(); }
    template <class T> WW_DEVICE T map(T x) { return x; }
    template <class T> WW_DEVICE T fold(T a, T b) { return ww_max(a, b); }
};

struct WwMin {
    template <class T> WW_DEVICE T identity() { return WwLimits<T>::infinity(); }
    template <class T> WW_DEVICE T map(T x) { return x; }
    template <class T> WW_DEVICE T fold(T a, T b) { return ww_min(a, b); }
};

enum : unsigned { WW_REDUCE_ROOT = 1, WW_REDUCE_LOG = 2, WW_REDUCE_F16 = 4, WW_REDUCE_BF16 = 8 };

// Stores what stands in the result for a folded value: after a mean's division, a root or a logarithm.
template <class T> WW_DEVICE void ww_finish(void *y, unsigned long long at, T value, T divisor, unsigned finish) {
    value = value / divisor;
    if (finish & WW_REDUCE_ROOT) value = ww_sqrt(value);
    if (finish & WW_REDUCE_LOG) value = ww_log(value);
    if (finish & WW_REDUCE_F16)
        static_cast<WwHalf *>(y)[at] = WwHalf((float)value);
    else if (finish & WW_REDUCE_BF16)
        static_cast<WwBfloat *>(y)[at] = WwBfloat((float)value);
    else
        static_cast<T *>(y)[at] = value;
}
