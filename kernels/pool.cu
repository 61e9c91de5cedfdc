// levels: sm_75
// maxPool and averagePool of [planes, depth, height, width], one output a thread, and global pools of contiguous rows.
// Lower ranks have leading dims of 1. Sums in the array's own type, in float for 16 bits, row of the window by row; global sums in float64.
//   maxPool_<dtype>(x, y, planes * outputs of a plane, Window)
//   averagePool_<dtype>(x, y, planes * outputs of a plane, Window)
//       256 threads, ceil(n / 256) blocks. The output dims say what ceil mode gives: windows are clipped to the
//       input, and with count_include_pad taps count up to the end of the padding.
//   globalMaxPool_<dt>_<form>(x, y, rows, columns) and globalAveragePool_<dt>_<form>: 256 threads and
//       lanes: ceil(rows / 32) blocks, meant for columns <= 64; warp: ceil(rows / 8) blocks, for columns <= 2048;
//       block: one block a row
#include "common/math.cuh"
#include "common/divide.cuh"
#include "common/row.cuh"
#include "common/window.cuh"

struct Largest {
    template <class T> WW_DEVICE T start() { return -WwLimits<T>::infinity(); }
    template <class T> WW_DEVICE T join(T a, T b) { return ww_max(a, b); }
    template <class T> WW_DEVICE T finish(T a, T count) { return a; }
};

struct Mean {
    template <class T> WW_DEVICE T start() { return T(0); }
    template <class T> WW_DEVICE T join(T a, T b) { return a + b; }
    template <class T> WW_DEVICE T finish(T a, T count) { return a / count; }
};

// WIDTH is a row's number of taps where it is known, 0 otherwise.
template <class Op, int WIDTH, class S> WW_DEVICE WwCompute<S> join_row(const S* row, unsigned count, unsigned step) {
    using T = WwCompute<S>;
    T result = Op::template start<T>();
    if (WIDTH) {
        T value[WIDTH ? WIDTH : 1];
#pragma unroll
        for (int k = 0; k < WIDTH; k++) value[k] = row[k * step];
#pragma unroll
        for (int k = 0; k < WIDTH; k++) result = Op::join(result, value[k]);
    } else {
#pragma unroll 4
        for (unsigned k = 0; k < count; k++) result = Op::join(result, (T)row[k * (unsigned long long)step]);
    }
    return result;
}

template <class Op, int HEIGHT, int WIDTH, class S>
WW_DEVICE WwCompute<S> join_plane(const S* plane, unsigned long long pitch, unsigned rows, unsigned count, unsigned step) {
    using T = WwCompute<S>;
    T result = Op::template start<T>();
    if (HEIGHT) {
        T value[HEIGHT ? HEIGHT : 1];
#pragma unroll
        for (int k = 0; k < HEIGHT; k++) value[k] = join_row<Op, WIDTH>(plane + k * pitch, count, step);
#pragma unroll
        for (int k = 0; k < HEIGHT; k++) result = Op::join(result, value[k]);
    } else {
        for (unsigned k = 0; k < rows; k++) result = Op::join(result, join_row<Op, WIDTH>(plane + k * pitch, count, step));
    }
    return result;
}

template <class T> struct Pooled {
    T value, count;
};

template <class Op, class Index, class Int, class S>
WW_DEVICE Pooled<WwCompute<S>> pool_one(const S* x, Index index, const Window& p) {
    using T = WwCompute<S>;
    Index ow, oh, od;
    Index rest = ww_divide(index, p.width.output, p.width.output_magic, ow);
    rest = ww_divide(rest, p.height.output, p.height.output_magic, oh);
    unsigned long long outer = ww_divide(rest, p.depth.output, p.depth.output_magic, od);
    Taps<Int> w = taps_of<Int>(p.width, (unsigned)ow), h = taps_of<Int>(p.height, (unsigned)oh);
    Taps<Int> d = taps_of<Int>(p.depth, (unsigned)od);
    unsigned long long width = p.width.input, plane = width * p.height.input;
    x += ((outer * p.depth.input + d.first) * p.height.input + h.first) * width + w.first;
    unsigned long long pitch = p.height.dilation * width;
    unsigned step = p.width.dilation;
    T result = Op::template start<T>();
    for (unsigned k = 0; k < d.count; k++) {
        const S* at = x + k * p.depth.dilation * plane;
        T part;
        // The 64-bit form is rare: one loop serves it.
        if (sizeof(Int) == 8) part = join_plane<Op, 0, 0>(at, pitch, h.count, w.count, step);
        else if (w.count == 3 && h.count == 3) part = join_plane<Op, 3, 3>(at, pitch, 3, 3, step);
        else if (w.count == 2 && h.count == 2) part = join_plane<Op, 2, 2>(at, pitch, 2, 2, step);
        else part = join_plane<Op, 0, 0>(at, pitch, h.count, w.count, step);
        result = Op::join(result, part);
    }
    T count = p.count_include_pad ? T(w.padded) * T(h.padded) * T(d.padded) : T(w.count) * T(h.count) * T(d.count);
    return Pooled<T>{result, count};
}

template <class Op, class T> WW_DEVICE void pool(const T* x, T* y, unsigned long long n, const Window& p) {
    unsigned long long index = blockIdx.x * 256ull + threadIdx.x;
    if (index >= n) return;
    Pooled<WwCompute<T>> all;
    if (p.wide) all = pool_one<Op, unsigned long long, long long>(x, index, p);
    else all = pool_one<Op, unsigned, int>(x, (unsigned)index, p);
    y[index] = T(Op::finish(all.value, all.count));
}

// Adds in T over 16 values at a time, then in float64.
template <class T> struct GlobalMean {
    double total = 0.0;
    __device__ __forceinline__ void take(T part) { total += (double)part; }
    WW_DEVICE T combine(T a, T b) { return a + b; }
    WW_DEVICE T start() { return T(0); }
    WW_DEVICE double merge(double a, double b) { return a + b; }
    WW_DEVICE T result(double total, unsigned long long columns) { return (T)(total / (double)columns); }
};

template <class T> struct GlobalMax {
    T total = -WwLimits<T>::infinity();
    __device__ __forceinline__ void take(T part) { total = ww_max(total, part); }
    WW_DEVICE T combine(T a, T b) { return ww_max(a, b); }
    WW_DEVICE T start() { return -WwLimits<T>::infinity(); }
    WW_DEVICE T merge(T a, T b) { return ww_max(a, b); }
    WW_DEVICE T result(T total, unsigned long long) { return total; }
};

template <class Op, class S>
WW_DEVICE void take_row(Op& op, const S* row, unsigned long long columns, unsigned lane, unsigned lanes) {
    using T = WwCompute<S>;
    constexpr unsigned size = WwVector<S>::size;
    unsigned long long whole = ww_aligned(row) ? columns / size : 0;
    for (unsigned long long i = lane; i < whole; i += 4 * lanes) {
        T part[4];
#pragma unroll
        for (int v = 0; v < 4; v++) {
            WwVector<S> u;
#pragma unroll
            for (int k = 0; k < size; k++) u.lane[k] = S(Op::start());
            if (i + v * lanes < whole) u = ww_load(row + (i + v * lanes) * size);
            part[v] = u.lane[0];
#pragma unroll
            for (int k = 1; k < size; k++) part[v] = Op::combine(part[v], (T)u.lane[k]);
        }
        op.take(Op::combine(Op::combine(part[0], part[1]), Op::combine(part[2], part[3])));
    }
    for (unsigned long long i = whole * size + lane; i < columns; i += 8 * lanes) {
        T part[8];
#pragma unroll
        for (int k = 0; k < 8; k++) part[k] = i + k * lanes < columns ? (T)row[i + k * lanes] : Op::start();
#pragma unroll
        for (int half = 4; half > 0; half /= 2) {
#pragma unroll
            for (int k = 0; k < half; k++) part[k] = Op::combine(part[k], part[k + half]);
        }
        op.take(part[0]);
    }
}

#define GLOBAL_PARAMS(T) const T *x, T *y, unsigned long long rows, unsigned long long columns

template <class Op, class T> WW_DEVICE void global_block(GLOBAL_PARAMS(T)) {
    Op op;
    take_row(op, x + blockIdx.x * columns, columns, threadIdx.x, 256u);
    auto total = op.total;
    __shared__ decltype(total) slots[8];
    auto merge = [](decltype(total) a, decltype(total) b) { return Op::merge(a, b); };
    total = ww_lanes_reduce<32>(total, merge);
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x < 32) {
        total = ww_lanes_reduce<8>(slots[threadIdx.x % 8], merge);
        if (threadIdx.x == 0) y[blockIdx.x] = T(Op::result(total, columns));
    }
}

template <int LANES, class Op, class T> WW_DEVICE void global_group(GLOBAL_PARAMS(T)) {
    unsigned long long row = blockIdx.x * (256ull / LANES) + threadIdx.x / LANES;
    bool inside = row < rows;
    unsigned lane = threadIdx.x % LANES;
    Op op;
    take_row(op, x + (inside ? row * columns : 0), inside ? columns : 0, lane, (unsigned)LANES);
    auto total = op.total;
    total = ww_lanes_reduce<LANES>(total, [](decltype(total) a, decltype(total) b) { return Op::merge(a, b); });
    if (inside && lane == 0) y[row] = T(Op::result(total, columns));
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)

#define GLOBAL(op, Op, T, dt)                                                                                    \
    KERNEL op##_##dt##_lanes(GLOBAL_PARAMS(T)) { global_group<8, Op<WwCompute<T>>>(x, y, rows, columns); }                  \
    KERNEL op##_##dt##_warp(GLOBAL_PARAMS(T)) { global_group<32, Op<WwCompute<T>>>(x, y, rows, columns); }                  \
    KERNEL op##_##dt##_block(GLOBAL_PARAMS(T)) { global_block<Op<WwCompute<T>>>(x, y, rows, columns); }

#define POOL(T, dt)                                                                                              \
    KERNEL maxPool_##dt(const T* x, T* y, unsigned long long n, Window p) { pool<Largest>(x, y, n, p); }         \
    KERNEL averagePool_##dt(const T* x, T* y, unsigned long long n, Window p) { pool<Mean>(x, y, n, p); }        \
    GLOBAL(globalMaxPool, GlobalMax, T, dt)                                                                      \
    GLOBAL(globalAveragePool, GlobalMean, T, dt)

#ifdef WW_HALVES
POOL(WwHalf, f16)
POOL(WwBfloat, bf16)
#else
POOL(float, f32)
POOL(double, f64)
#endif
