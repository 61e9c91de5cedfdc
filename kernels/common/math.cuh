// Scalar functions for float and double, right over the whole range: NaN in gives NaN out, infinities
// give what the defining formula gives in IEEE arithmetic, small results keep their digits.
#pragma once

#define WW_DEVICE static __device__ __forceinline__

template <class T> struct WwLimits;
template <> struct WwLimits<float> {
    WW_DEVICE float infinity() { return __int_as_float(0x7f800000); }
};
template <> struct WwLimits<double> {
    WW_DEVICE double infinity() { return __longlong_as_double(0x7ff0000000000000ll); }
};

WW_DEVICE float ww_exp(float x) { return expf(x); }
WW_DEVICE double ww_exp(double x) { return exp(x); }
WW_DEVICE float ww_expm1(float x) { return expm1f(x); }
WW_DEVICE double ww_expm1(double x) { return expm1(x); }
WW_DEVICE float ww_log(float x) { return logf(x); }
WW_DEVICE double ww_log(double x) { return log(x); }
WW_DEVICE float ww_log1p(float x) { return log1pf(x); }
WW_DEVICE double ww_log1p(double x) { return log1p(x); }
WW_DEVICE float ww_sqrt(float x) { return sqrtf(x); }
WW_DEVICE double ww_sqrt(double x) { return sqrt(x); }
WW_DEVICE float ww_erf(float x) { return erff(x); }
WW_DEVICE double ww_erf(double x) { return erf(x); }
WW_DEVICE float ww_tanh(float x) { return tanhf(x); }
WW_DEVICE double ww_tanh(double x) { return tanh(x); }
WW_DEVICE float ww_sin(float x) { return sinf(x); }
WW_DEVICE double ww_sin(double x) { return sin(x); }
WW_DEVICE float ww_cos(float x) { return cosf(x); }
WW_DEVICE double ww_cos(double x) { return cos(x); }
WW_DEVICE float ww_abs(float x) { return fabsf(x); }
WW_DEVICE double ww_abs(double x) { return fabs(x); }
WW_DEVICE float ww_floor(float x) { return floorf(x); }
WW_DEVICE double ww_floor(double x) { return floor(x); }
WW_DEVICE float ww_ceil(float x) { return ceilf(x); }
WW_DEVICE double ww_ceil(double x) { return ceil(x); }
WW_DEVICE float ww_round(float x) { return rintf(x); }
WW_DEVICE double ww_round(double x) { return rint(x); }
WW_DEVICE float ww_pow(float x, float y) { return powf(x, y); }
WW_DEVICE double ww_pow(double x, double y) { return pow(x, y); }

WW_DEVICE float ww_fma(float a, float b, float c) { return fmaf(a, b, c); }
WW_DEVICE double ww_fma(double a, double b, double c) { return fma(a, b, c); }

// max and min with NaN passed on; sm_75 has no instruction for it.
template <class T> WW_DEVICE T ww_max(T a, T b) { return (a > b || a != a) ? a : b; }
template <class T> WW_DEVICE T ww_min(T a, T b) { return (a < b || a != a) ? a : b; }

template <class T> WW_DEVICE T ww_sign(T x) {
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? T(0) : x;
}

// 1/d for d well inside the normal range.
WW_DEVICE float ww_reciprocal_mid(float d) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
    return fmaf(r, fmaf(-d, r, 1.0f), r);
}
WW_DEVICE double ww_reciprocal_mid(double d) { return 1.0 / d; }

template <class T> WW_DEVICE T ww_sigmoid(T x) {
    T e = ww_exp(-ww_abs(x));
    T r = ww_reciprocal_mid(T(1) + e);
    return x >= T(0) ? r : e * r;
}

template <class T> WW_DEVICE T ww_silu(T x) { return x * ww_sigmoid(x); }

template <class T> WW_DEVICE T ww_clip(T x, T low, T high) {
    T y = x < low ? low : x;
    return y > high ? high : y;
}

// 1 - Phi(a) for a >= 0: exp(-a^2/2) times a polynomial in t = 1/(1 + 0.3 a), which keeps its digits in the tail.
WW_DEVICE float ww_upper_tail(float x) {
    float a = x < 14.5f ? x : 14.5f;
    float square = a * a;
    float rest = fmaf(a, a, -square);
    float e = expf(-0.5f * square);
    e = fmaf(e, -0.5f * rest, e);
    float t = ww_reciprocal_mid(fmaf(0.3f, a, 1.0f));
    float p = -0.02058465f;
    p = fmaf(p, t, 0.11221709f);
    p = fmaf(p, t, -0.22767951f);
    p = fmaf(p, t, 0.19104201f);
    p = fmaf(p, t, -0.078777701f);
    p = fmaf(p, t, 0.095793247f);
    p = fmaf(p, t, 0.07852187f);
    p = fmaf(p, t, 0.11020554f);
    p = fmaf(p, t, 0.11957561f);
    p = fmaf(p, t, 0.11968648f);
    return e * (t * p);
}

// x Phi(x).
WW_DEVICE float ww_gelu(float x) {
    float h = ww_upper_tail(fabsf(x));
    float phi = x > 0.0f ? 1.0f - h : h;
    return x != x ? x : x * phi;
}
WW_DEVICE double ww_gelu(double x) { return x * normcdf(x); }

// The tanh form, 0.5 x (1 + tanh(u)), as x sigmoid(2u). In float 2u is carried in two parts, since the exponential
// turns its absolute error into a relative one; beyond 20 it no longer matters.
WW_DEVICE float ww_gelu_tanh(float x) {
    float c = ww_clip(x, -20.0f, 20.0f);
    float square = c * c;
    // Plain operators would be contracted into one rounding, and `rest` would count the other's error twice.
    float product = __fmul_rn(0.0713548163f, square);
    float rest = fmaf(0.0713548163f, square, -product);
    rest = fmaf(0.0713548163f, fmaf(c, c, -square), fmaf(2.399e-09f, square, rest));
    float sum = __fadd_rn(product, 1.59576917f);
    float part = sum - product;
    rest += (product - (sum - part)) + (1.59576917f - part) - 4.5341e-08f;
    float u = c * sum;
    rest = fmaf(c, rest, fmaf(c, sum, -u));
    float e = expf(-fabsf(u));
    e = fmaf(e, u < 0.0f ? rest : -rest, e);
    float r = ww_reciprocal_mid(1.0f + e);
    return x * (u >= 0.0f ? r : e * r);
}
WW_DEVICE double ww_gelu_tanh(double x) {
    double u = x * fma(0.071354816272600247, x * x, 1.5957691216057308);
    return x * ww_sigmoid(u);
}

template <class T> WW_DEVICE T ww_softplus(T x) {
    return (x > T(0) ? x : T(0)) + ww_log1p(ww_exp(-ww_abs(x)));
}

// x tanh(softplus(x)), written as a ratio of polynomials in exp(-|x|) so that neither tail cancels.
template <class T> WW_DEVICE T ww_mish(T x) {
    T w = ww_exp(-ww_abs(x));
    T above = ww_fma(T(2), w, T(1));
    T below = w * (w + T(2));
    T tanh_softplus = x >= T(0) ? above * ww_reciprocal_mid(ww_fma(w + w, w, above))
                                : below * ww_reciprocal_mid(below + T(2));
    return x * tanh_softplus;
}

template <class T> WW_DEVICE T ww_hard_sigmoid(T x, T alpha, T beta) {
    return ww_clip(ww_fma(alpha, x, beta), T(0), T(1));
}

template <class T> WW_DEVICE T ww_hard_swish(T x) {
    return x * (ww_clip(x + T(3), T(0), T(6)) * T(1.0 / 6.0));
}

template <class T> WW_DEVICE T ww_relu(T x) { return x <= T(0) ? T(0) : x; }
template <class T> WW_DEVICE T ww_leaky_relu(T x, T alpha) { return x < T(0) ? alpha * x : x; }
template <class T> WW_DEVICE T ww_elu(T x, T alpha) { return x > T(0) ? x : alpha * ww_expm1(x); }
template <class T> WW_DEVICE T ww_selu(T x, T alpha, T gamma) { return gamma * ww_elu(x, alpha); }
