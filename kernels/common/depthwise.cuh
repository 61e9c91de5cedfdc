// Convolutions with one input channel a group (depthwise.cu).
#pragma once
#include "conv_tile.cuh"
#include "half.cuh"

#ifndef DEPTHWISE_ROWS
#define DEPTHWISE_ROWS (STRIDE == 2 ? 2 : sizeof(T) == 4 && COLUMNS == 4 && K == 5 ? 7 : 4)
#endif

// COLUMNS outputs side by side, ROWS below each other.
template <class T_, int K_, int STRIDE_, int COLUMNS_> struct Depthwise {
    using T = T_;
    using C = WwCompute<T>;
    static constexpr int K = K_, STRIDE = STRIDE_, COLUMNS = COLUMNS_, ROWS = DEPTHWISE_ROWS;
    // Of the input: columns that a row of outputs sees, and rows.
    static constexpr int WIDTH = (COLUMNS - 1) * STRIDE + K, HEIGHT = (ROWS - 1) * STRIDE + K;
    // Columns of it by vectors as wide as the outputs, from the first output's own on.
    static constexpr int VECTORS = STRIDE;
};

// Elements that are moved at once.
template <class T, int SIZE> struct alignas(SIZE * sizeof(T)) DepthwiseVector {
    T lane[SIZE];
};

template <int SIZE, class T> WW_INLINE void depthwise_load(WwCompute<T> (&v)[SIZE], const T *from) {
    const DepthwiseVector<T, SIZE> vector = *(const DepthwiseVector<T, SIZE> *)from;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) v[i] = (WwCompute<T>)vector.lane[i];
}

template <int SIZE, class T> WW_INLINE void depthwise_store(T *to, const WwCompute<T> *v) {
    DepthwiseVector<T, SIZE> vector;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) vector.lane[i] = T(v[i]);
    *(DepthwiseVector<T, SIZE> *)to = vector;
}

// Columns of it from FIRST + more on, which are within the row or in the padding as one.
template <int FIRST, int SIZE, class D> WW_INLINE void depthwise_part(typename D::C (&v)[D::WIDTH], const typename D::T *line, bool in, int x0, const Conv &p, int more = 0) {
    using C = typename D::C;
    const int at = x0 + FIRST + more;
    const bool there = in && (unsigned)at < p.in[2];
    if constexpr (SIZE == 1) {
        v[FIRST + more] = there ? (C)line[at] : C(0);
    } else {
        C some[SIZE];
#pragma unroll
        for (int i = 0; i < SIZE; ++i) some[i] = C(0);
        if (there) depthwise_load<SIZE>(some, line + at);
#pragma unroll
        for (int i = 0; i < SIZE; ++i)
            if (FIRST + more + i < D::WIDTH) v[FIRST + more + i] = some[i];
    }
}

// What the thread's outputs see of a row of the input, zeros in the padding; `line` is the row, x0 its first column.
template <class D> WW_INLINE void depthwise_row(typename D::C (&v)[D::WIDTH], const typename D::T *line, bool in, int x0, const Conv &p) {
    using C = typename D::C;
    if constexpr (D::COLUMNS == 1) {
#pragma unroll
        for (int q = 0; q < D::K; ++q) {
            const int at = x0 + q * (int)p.dilation[2];
            v[q] = in && (unsigned)at < p.in[2] ? (C)line[at] : C(0);
        }
    } else {
        constexpr int LEFT = D::K / 2, RIGHT = D::WIDTH - LEFT - D::VECTORS * D::COLUMNS;
        depthwise_part<0, LEFT, D>(v, line, in, x0, p);
#pragma unroll
        for (int i = 0; i < D::VECTORS; ++i) depthwise_part<LEFT, D::COLUMNS, D>(v, line, in, x0, p, i * D::COLUMNS);
        if constexpr (RIGHT > 0) depthwise_part<D::WIDTH - RIGHT, RIGHT, D>(v, line, in, x0, p);
    }
}

// Rows of outputs that a thread has: from `first` on, `step` apart.
struct DepthwiseStrip {
    unsigned first, step;
    // Each of `step` residues has as many strips.
    static WW_INLINE unsigned count(unsigned height, unsigned rows, unsigned step) { return (height + rows * step - 1) / (rows * step) * step; }
    WW_INLINE DepthwiseStrip(unsigned strip, unsigned rows, unsigned step_) : first(strip / step_ * rows * step_ + strip % step_), step(step_) {}
};

template <class D>
WW_INLINE void depthwise(const typename D::T *x, const typename D::T *w, const typename D::T *bias, typename D::T *d, typename D::C p0, typename D::C p1, const Conv &p) {
    using T = typename D::T;
    using C = typename D::C;
    const unsigned width = p.out[2] / D::COLUMNS, dilation = p.dilation[1], channels = p.groups * p.group_out;
    const unsigned per_plane = width * DepthwiseStrip::count(p.out[1], D::ROWS, dilation);
    const unsigned long long index = blockIdx.x * 256ull + threadIdx.x, all = index / per_plane;
    if (all >= (unsigned long long)p.images * channels) return;
    const unsigned rest = (unsigned)(index - all * per_plane), image = (unsigned)(all / channels), channel = (unsigned)(all - (unsigned long long)image * channels);
    const DepthwiseStrip strip(rest / width, D::ROWS, dilation);
    const unsigned ow = rest % width * D::COLUMNS;
    const int y0 = (int)(strip.first * D::STRIDE) - p.pad[1], x0 = (int)(ow * D::STRIDE) - p.pad[2];
    const T *const from = x + ((unsigned long long)image * p.groups + channel / p.group_out) * p.in[1] * p.in[2];
    C weight[D::K * D::K], sum[D::ROWS * D::COLUMNS];
#pragma unroll
    for (int k = 0; k < D::K * D::K; ++k) weight[k] = (C)w[(unsigned long long)channel * (D::K * D::K) + k];
#pragma unroll
    for (int i = 0; i < D::ROWS * D::COLUMNS; ++i) sum[i] = C(0);
#pragma unroll
    for (int y = 0; y < D::HEIGHT; ++y) {
        const int row = y0 + y * (int)dilation;
        C v[D::WIDTH];
        depthwise_row<D>(v, from + (long long)row * p.in[2], (unsigned)row < p.in[1], x0, p);
#pragma unroll
        for (int r = 0; r < D::ROWS; ++r) {
            const int k = y - r * D::STRIDE;
            if (k < 0 || k >= D::K) continue;
#pragma unroll
            for (int q = 0; q < D::K; ++q)
#pragma unroll
                for (int c = 0; c < D::COLUMNS; ++c) sum[r * D::COLUMNS + c] = ww_fma(v[c * D::STRIDE + q], weight[k * D::K + q], sum[r * D::COLUMNS + c]);
        }
    }
    if (bias) {
        const C b = (C)bias[channel];
#pragma unroll
        for (int i = 0; i < D::ROWS * D::COLUMNS; ++i) sum[i] += b;
    }
    activate_short(sum, p.act, p0, p1);
    if (p.act >= ACT_SIGMOID) {
        // Rolled, so that the long code stands once.
#pragma unroll 1
        for (int i = 0; i < D::ROWS * D::COLUMNS; ++i) {
            const C value = activate(sum[0], p.act, p0, p1);
#pragma unroll
            for (int j = 0; j < D::ROWS * D::COLUMNS - 1; ++j) sum[j] = sum[j + 1];
            sum[D::ROWS * D::COLUMNS - 1] = value;
        }
    }
    T *to = d + (all * p.out[1] + strip.first) * p.out[2] + ow;
#pragma unroll
    for (int r = 0; r < D::ROWS; ++r, to += (unsigned long long)dilation * p.out[2]) {
        if (strip.first + r * dilation >= p.out[1]) break;
        if constexpr (D::COLUMNS == 1)
            *to = T(sum[r]);
        else
            depthwise_store<D::COLUMNS>(to, sum + r * D::COLUMNS);
    }
}
