// Mean and sum of squared deviations of a row's values, in its own type or float32, without float64: by two passes over the
// registers of a warp, the mean corrected by what deviations are left (Chan, Golub and LeVeque 1983), then merged over the
// warps by Chan's formula. Squares that overflow or vanish are summed again of values times a power of two, so that rows of
// values near 1e30 or 1e-30 keep their variance. Deviations are taken from a mean, never squares from squares.
// CENTERED is false for squares about 0.
#pragma once
#include "row.cuh"

// mean + rest is the mean; all of them of values times `scale`, a power of two, `back` its reciprocal.
template <class A> struct WwMoments {
    A mean, rest, squares, scale, back;
};

// Elements of a row that a group of LANES threads within a warp holds.
template <int LANES, class T, int VECTORS, bool LINES> WW_DEVICE unsigned ww_held(const WwPlace<LINES>& p) {
    constexpr unsigned size = WwVector<T>::size;
    const unsigned first = p.lane & ~(unsigned)(LANES - 1), end = p.shift + p.columns;
    unsigned held = 0;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        const unsigned from = (v * p.lanes + first) * size, to = from + LANES * size;
        const unsigned low = from > p.shift ? from : p.shift, high = to < end ? to : end;
        held += high > low ? high - low : 0u;
    }
    return held;
}

template <class A> WW_DEVICE A ww_share(unsigned count) { return ww_reciprocal_mid((A)(count > 0 ? count : 1)); }

// What a group of LANES threads within a warp holds; every thread of the group gets it. Puts the mean where the row holds
// nothing, which was 0.
template <bool CENTERED, int LANES, class T, int VECTORS, bool LINES, class A>
WW_DEVICE void ww_group_moments(WwRow<T, VECTORS>& r, const WwPlace<LINES>& p, unsigned held, WwMoments<A>& m) {
    // Without a correction the mean is as good as exact for numbers of 16 bits.
    constexpr bool corrected = CENTERED && sizeof(T) > 2;
    const A share = ww_share<A>(held);
    m.mean = m.rest = m.squares = A(0);
    if (CENTERED) {
#pragma unroll
        for (int k = 0; k < r.count; k++) m.mean = ww_fma(r.value[k], m.scale, m.mean);
        m.mean = ww_lanes_sum<LANES>(m.mean) * share;
        r.fill(p, m.mean * m.back);
    }
#pragma unroll
    for (int k = 0; k < r.count; k++) {
        const A d = CENTERED ? ww_fma(r.value[k], m.scale, -m.mean) : r.value[k] * m.scale;
        if (corrected) m.rest += d;
        m.squares = ww_fma(d, d, m.squares);
    }
    m.squares = ww_lanes_sum<LANES>(m.squares);
    if (!corrected) return;
    m.rest = ww_lanes_sum<LANES>(m.rest);
    const A apart = m.rest * share;
    m.squares = ww_fma(-m.rest, apart, m.squares);
    m.squares = m.squares < A(0) ? A(0) : m.squares;
    m.rest = apart;
}

// Did squares overflow or vanish?
WW_DEVICE bool ww_squares_lost(float squares) { return !(squares > 1e-30f && squares < 1e30f); }
WW_DEVICE bool ww_squares_lost(double) { return false; }

// The power of two that brings a largest magnitude near 1.
WW_DEVICE void ww_scale_to(float most, WwMoments<float>& m) {
    const unsigned exponent = __float_as_uint(most) >> 23;
    if (exponent == 255) return;
    const unsigned field = exponent == 0 ? 1 : exponent;
    m.scale = __uint_as_float((254 - field) << 23);
    m.back = __uint_as_float(field << 23);
}
WW_DEVICE void ww_scale_to(double, WwMoments<double>&) {}

template <int LANES, class T, int VECTORS> WW_DEVICE WwCompute<T> ww_magnitude(const WwRow<T, VECTORS>& r) {
    using A = WwCompute<T>;
    A most = A(0);
#pragma unroll
    for (int k = 0; k < r.count; k++) most = ww_abs(r.value[k]) > most ? ww_abs(r.value[k]) : most;
    return ww_lanes_reduce<LANES>(most, [](A a, A b) { return a > b ? a : b; });
}

template <class A> struct alignas(4 * sizeof(A)) WwShare {
    A mean, rest, squares, held;
};

// The moments of a row of `columns` that a group of LANES threads, or for 0 the block, holds; every thread gets them.
template <bool CENTERED, int LANES, class T, int VECTORS, bool LINES>
WW_DEVICE WwMoments<WwCompute<T>> ww_moments(WwRow<T, VECTORS>& r, WwPlace<LINES> p, unsigned columns) {
    using A = WwCompute<T>;
    constexpr int WIDTH = LANES == 0 ? 32 : LANES;
    __shared__ WwShare<A> slots[LANES == 0 ? 32 : 1];
    __shared__ A largest[LANES == 0 ? 32 : 1];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned held = LANES == 0 ? ww_held<32, T, VECTORS>(p) : p.columns;
    WwMoments<A> m;
    m.scale = m.back = A(1);
    WwShare<A> own;
#pragma unroll 1
    for (bool again = false;; again = true) {
        p = p.again();
        ww_group_moments<CENTERED, WIDTH>(r, p, held, m);
        own = WwShare<A>{m.mean, m.rest, m.squares, (A)held};
        if (LANES == 0) {
            if (lane == 0) slots[warp] = own;
            __syncthreads();
            own = lane < blockDim.x / 32 ? slots[lane] : WwShare<A>{A(0), A(0), A(0), A(0)};
        }
        if (sizeof(A) == 8 || again || !__any_sync(0xffffffffu, own.held > A(0) && ww_squares_lost(own.squares))) break;
        if (CENTERED) r.fill(p, A(0));
        A most = ww_magnitude<WIDTH>(r);
        if (LANES == 0) {
            if (lane == 0) largest[warp] = most;
            __syncthreads();
            most = lane < blockDim.x / 32 ? largest[lane] : A(0);
            most = ww_lanes_reduce<32>(most, [](A a, A b) { return a > b ? a : b; });
        }
        ww_scale_to(most, m);
    }
    if (LANES != 0) return m;
    // From the first warp's mean, to which deviations are small.
    m.mean = slots[0].mean;
    const A apart = own.held > A(0) ? own.mean - m.mean + own.rest : A(0);
    if (CENTERED) m.rest = ww_lanes_sum<32>(apart * own.held) * ww_share<A>(columns);
    const A d = CENTERED ? apart - m.rest : A(0);
    m.squares = ww_lanes_sum<32>(ww_fma(d * d, own.held, own.squares));
    return m;
}

// Moments of parts of a row in float64.
struct WwPart {
    double mean, squares, count;
};

WW_DEVICE WwPart ww_merge(WwPart a, WwPart b) {
    const double count = a.count + b.count;
    if (count == 0.0) return a;
    const double apart = b.mean - a.mean, share = b.count / count;
    return WwPart{a.mean + apart * share, a.squares + b.squares + apart * apart * (a.count * share), count};
}

template <class A> WW_DEVICE WwPart ww_part(const WwMoments<A>& m, unsigned count) {
    return WwPart{((double)m.mean + (double)m.rest) * m.back, (double)m.squares * m.back * m.back, (double)count};
}
