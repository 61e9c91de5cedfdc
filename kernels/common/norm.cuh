// Rows normalised by their moments: what layerNorm, rmsNorm and groupNorm share. An affine step has
//   CENTERED, BIAS                  whether the mean is taken off; whether there are biases
//   lines()                         whether they can be read by whole vectors where rows lie on lines
//   fetch<WHOLE>(place, i)          the scales and biases of the vector at position i, 1 and 0 where absent
//   of_row(number)                  the step for a row
//   beyond(columns)                 the step for what follows those columns
#pragma once
#include "moments.cuh"
#include "stretch.cuh"

template <class T> struct WwAffineVector {
    WwVector<T> scale, bias;
};

// One scale and, unless BIAS is false, one bias a column.
template <class T, bool CENTERED_, bool BIAS_ = true> struct WwAffine {
    static constexpr bool CENTERED = CENTERED_, BIAS = BIAS_;
    const T *scale, *bias;

    template <bool WHOLE, bool LINES>
    __device__ __forceinline__ WwAffineVector<T> fetch(const WwPlace<LINES>& p, unsigned i) const {
        WwAffineVector<T> a;
#pragma unroll
        for (int k = 0; k < WwVector<T>::size; k++) a.scale.lane[k] = T(1.0f), a.bias.lane[k] = T(0.0f);
        if constexpr (LINES) {
            ww_load_where(scale && p.meets(i), scale + i, a.scale);
            if (BIAS) ww_load_where(bias && p.meets(i), bias + i, a.bias);
        } else {
            if (scale) a.scale = ww_load_beside<WHOLE>(scale, p, i);
            if (BIAS && bias) a.bias = ww_load_beside<WHOLE>(bias, p, i);
        }
        return a;
    }
    // Does it lie on lines?
    __device__ __forceinline__ bool lines() const { return ww_aligned(scale) && (!BIAS || ww_aligned(bias)); }
    __device__ __forceinline__ WwAffine of_row(unsigned long long) const { return *this; }
    __device__ __forceinline__ WwAffine beyond(unsigned long long columns) const {
        return WwAffine{scale ? scale + columns : nullptr, BIAS && bias ? bias + columns : nullptr};
    }
};

// What normalises a row: the mean, in two parts since one number of type T is not enough, and 1 / sqrt(variance + epsilon).
template <class T> struct WwNorm {
    WwCompute<T> mean, rest, factor;
};

WW_DEVICE float ww_inverse_root(float x) {
    const float r = rsqrtf(x);
    return fmaf(0.5f * r, fmaf(-x * r, r, 1.0f), r);
}

// Of values near the ends of float32 the variance has none, but its root has.
WW_DEVICE float ww_norm_factor(const WwMoments<float>& m, float share, float epsilon) {
    if (m.back == 1.0f) {
        const float variance = fmaf(m.squares, share, epsilon);
        if (variance > 1e-36f && variance < 1e36f) return ww_inverse_root(variance);
    }
    return (float)rsqrt(fma((double)m.squares * share, (double)m.back * m.back, (double)epsilon));
}
WW_DEVICE double ww_norm_factor(const WwMoments<double>& m, double share, double epsilon) { return rsqrt(fma(m.squares, share, epsilon)); }

template <class T> WW_DEVICE WwNorm<T> ww_norm_of(const WwMoments<WwCompute<T>>& m, unsigned columns, WwCompute<T> epsilon) {
    const WwCompute<T> factor = ww_norm_factor(m, ww_share<WwCompute<T>>(columns), epsilon);
    // One part is enough for 16 bits.
    if (sizeof(T) == 2) return WwNorm<T>{(m.mean + m.rest) * m.back, WwCompute<T>(0), factor};
    return WwNorm<T>{m.mean * m.back, m.rest * m.back, factor};
}

template <class T, int VECTORS, class A>
WW_DEVICE void ww_normalize(WwRow<T, VECTORS>& r, int v, const A& affine, const WwAffineVector<T>& a, const WwNorm<T>& n) {
    constexpr int size = WwVector<T>::size;
#pragma unroll
    for (int k = 0; k < size; k++) {
        WwCompute<T>& value = r.value[v * size + k];
        if (A::CENTERED) value -= n.mean;
        if (A::CENTERED && sizeof(T) > 2) value -= n.rest;
        const WwCompute<T> factor = n.factor * (WwCompute<T>)a.scale.lane[k];
        value = A::BIAS ? ww_fma(value, factor, (WwCompute<T>)a.bias.lane[k]) : value * factor;
    }
}

// Normalises one row that a group of LANES threads, or for 0 the block, holds. EARLY: scales and biases are asked for before
// the moments are known.
template <int LANES, int VECTORS, bool EARLY, bool LINES, class T, class A>
WW_DEVICE void ww_norm_row(const T* x, T* y, unsigned long long at, const A& affine, WwPlace<LINES> p, unsigned columns,
                           WwCompute<T> epsilon) {
    using Row = WwRow<T, VECTORS>;
    Row r;
    r.load(x + at, p, WwCompute<T>(0));
    WwAffineVector<T> a[VECTORS];
    if (EARLY)
#pragma unroll
        for (int v = 0; v < VECTORS; v++) a[v] = affine.template fetch<true>(p, p.template position<Row::size>(v));
    const WwNorm<T> norm = ww_norm_of<T>(ww_moments<A::CENTERED, LANES>(r, p, columns), columns, epsilon);
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        p = p.again();
        // Keeps loads of later vectors behind, for which there are no registers.
        if (VECTORS >= 4) __syncwarp();
        if (!EARLY) a[v] = affine.template fetch<true>(p, p.template position<Row::size>(v));
        ww_normalize(r, v, affine, a[v], norm);
    }
    // Worked out again from where the row lies, for the same reason.
    asm volatile("" : "+l"(at));
    r.store(y + at, p);
}

template <class T, class A> WW_DEVICE bool ww_on_lines(const T* x, const T* y, unsigned columns, const A& affine) {
    return columns % WwVector<T>::size == 0 && ww_aligned(x) && ww_aligned(y) && affine.lines();
}

// Groups of LANES threads, a row each, in blocks of 256.
template <int LANES, int VECTORS, bool EARLY, class T, class A>
WW_DEVICE void ww_norm_groups(const T* x, T* y, unsigned long long rows, unsigned columns, A affine, WwCompute<T> epsilon) {
    const unsigned long long row = blockIdx.x * (unsigned long long)(256 / LANES) + threadIdx.x / LANES;
    const bool inside = row < rows;
    const unsigned long long at = inside ? row * columns : 0;
    const unsigned count = inside ? columns : 0, lane = threadIdx.x % LANES;
    const bool lines = ww_on_lines(x, y, columns, affine);
    const A step = affine.of_row(inside ? row : 0);
    if (lines)
        ww_norm_row<LANES, VECTORS, EARLY>(x, y, at, step, WwPlace<true>{count, lane, LANES, 0}, columns, epsilon);
    else
        ww_norm_row<LANES, VECTORS, false>(x, y, at, step, WwPlace<false>{count, lane, LANES, ww_shift(x + at)}, columns, epsilon);
}

// One row a block.
template <int VECTORS, bool EARLY, class T, class A>
WW_DEVICE void ww_norm_block(const T* x, T* y, unsigned columns, A affine, WwCompute<T> epsilon) {
    const unsigned long long at = blockIdx.x * (unsigned long long)columns;
    const unsigned lane = threadIdx.x, lanes = blockDim.x;
    const A step = affine.of_row(blockIdx.x);
    if (ww_on_lines(x, y, columns, affine))
        ww_norm_row<0, VECTORS, EARLY>(x, y, at, step, WwPlace<true>{columns, lane, lanes, 0}, columns, epsilon);
    else
        ww_norm_row<0, VECTORS, false>(x, y, at, step, WwPlace<false>{columns, lane, lanes, ww_shift(x + at)}, columns, epsilon);
}

// Moments of one part of a row to workspace, mean and squares.
template <bool CENTERED, class T>
WW_DEVICE void ww_norm_partial(const T* x, double* workspace, unsigned long long columns, unsigned long long chunk, unsigned parts) {
    const WwStretch<T> s(x, columns, chunk, parts);
    x += s.row * columns;
    WwPart all{0.0, 0.0, 0.0};
#pragma unroll 1
    for (unsigned long long i = s.begin; i < s.end; i += s.strip) {
        WwStrip<T> r;
        const WwPlace<false> p = s.template place<false>(i);
        r.load(x + s.column(i), p, WwCompute<T>(0));
        const WwPart own = ww_part(ww_moments<CENTERED, 0>(r, p, p.columns), p.columns);
        all = i == s.begin ? own : ww_merge(all, own);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        workspace[2ull * blockIdx.x] = all.mean;
        workspace[2ull * blockIdx.x + 1] = all.squares;
    }
}

// What normalises a whole row, out of its parts, by the first warp; every thread gets it.
template <bool CENTERED, class T>
WW_DEVICE WwNorm<T> ww_merge_parts(const double* workspace, const WwStretch<T>& s, unsigned long long columns, unsigned long long chunk,
                                   unsigned parts, WwCompute<T> epsilon) {
    __shared__ WwNorm<T> shared;
    if (threadIdx.x < 32) {
        const double* pairs = workspace + 2 * s.row * parts;
        const double share = 1.0 / (double)columns;
        double mean = 0.0, squares = 0.0;
        if (CENTERED) {
            for (unsigned p = threadIdx.x; p < parts; p += 32) mean = fma(pairs[2 * p], s.count(p, chunk, columns), mean);
            mean = ww_lanes_sum<32>(mean) * share;
        }
        for (unsigned p = threadIdx.x; p < parts; p += 32) {
            const double apart = pairs[2 * p] - mean;
            squares += CENTERED ? fma(apart * apart, s.count(p, chunk, columns), pairs[2 * p + 1]) : pairs[2 * p + 1];
        }
        squares = ww_lanes_sum<32>(squares);
        if (threadIdx.x == 0) {
            const WwCompute<T> high = (WwCompute<T>)mean;
            shared = WwNorm<T>{high, (WwCompute<T>)(mean - high), (WwCompute<T>)rsqrt(fma(squares, share, (double)epsilon))};
        }
    }
    __syncthreads();
    return shared;
}

// x, y and `step` are a row's.
template <bool LINES, class T, class A>
WW_DEVICE void ww_norm_strips(const T* x, T* y, const A& step, const WwStretch<T>& s, const WwNorm<T>& norm) {
#pragma unroll 1
    for (unsigned long long i = s.begin; i < s.end; i += s.strip) {
        WwStrip<T> r;
        const WwPlace<LINES> p = s.template place<LINES>(i);
        const A here = step.beyond(s.column(i));
        r.load(x + s.column(i), p, WwCompute<T>(0));
#pragma unroll
        for (int v = 0; v < WwStrip<T>::count / WwStrip<T>::size; v++) {
            const WwPlace<LINES> q = p.again();
            ww_normalize(r, v, here, here.template fetch<LINES>(q, q.template position<WwStrip<T>::size>(v)), norm);
        }
        r.store(y + s.column(i), p.again());
    }
}

template <class T, class A>
WW_DEVICE void ww_norm_finish(const T* x, const double* workspace, T* y, unsigned long long columns, unsigned long long chunk,
                              unsigned parts, A affine, WwCompute<T> epsilon) {
    const WwStretch<T> s(x, columns, chunk, parts);
    const WwNorm<T> norm = ww_merge_parts<A::CENTERED>(workspace, s, columns, chunk, parts, epsilon);
    const A step = affine.of_row(s.row);
    const bool lines = ww_on_lines(x, y, (unsigned)(columns % WwVector<T>::size), affine);
    x += s.row * columns;
    y += s.row * columns;
    if (lines)
        ww_norm_strips<true>(x, y, step, s, norm);
    else
        ww_norm_strips<false>(x, y, step, s, norm);
}
