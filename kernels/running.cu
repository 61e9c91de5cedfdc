// levels: sm_75
// Running sums and products along the middle axis of x [outer, length, inner]; whole numbers wrap, 16 bits are float. With
// `exclusive` an element counts from the next place on; with `reverse` the axis is walked from its end.
//   <op>_<dt>_rows(x, y, columns, length, inner, exclusive, reverse)
//       inner is 1: a warp a row, ceil(columns / 8) blocks
//   <op>_<dt>_columns    the same for any inner: a thread a column, ceil(columns / 256) blocks
//       columns = outer * inner; 256 threads
#include "common/math.cuh"
#include "common/half.cuh"

typedef unsigned u32;
typedef unsigned long long u64;

struct Sum {
    template <class T> WW_DEVICE T start() { return T(0); }
    template <class T> WW_DEVICE T fold(T a, T b) { return a + b; }
};
struct Product {
    template <class T> WW_DEVICE T start() { return T(1); }
    template <class T> WW_DEVICE T fold(T a, T b) { return a * b; }
};

#define PARAMS(S) const S *x, S *y, u64 columns, u64 length, u64 inner, unsigned exclusive, unsigned reverse

template <class Op, class S> WW_DEVICE void columns_of(PARAMS(S)) {
    using T = WwCompute<S>;
    const u64 column = blockIdx.x * 256ull + threadIdx.x;
    if (column >= columns) return;
    const u64 base = column / inner * length * inner + column % inner;
    T total = Op::template start<T>();
    for (u64 i = 0; i < length; i++) {
        const u64 at = base + (reverse ? length - 1 - i : i) * inner;
        const T before = total;
        total = Op::fold(total, (T)x[at]);
        y[at] = S(exclusive ? before : total);
    }
}

template <class Op, class S> WW_DEVICE void rows_of(PARAMS(S)) {
    using T = WwCompute<S>;
    const u64 row = blockIdx.x * 8ull + threadIdx.x / 32;
    const unsigned lane = threadIdx.x % 32;
    if (row >= columns) return;
    T carried = Op::template start<T>();
    for (u64 first = 0; first < length; first += 32) {
        const u64 i = first + lane, at = row * length + (reverse ? length - 1 - i : i);
        const bool inside = i < length;
        T total = inside ? (T)x[at] : Op::template start<T>();
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const T before = __shfl_up_sync(0xffffffffu, total, step);
            if (lane >= step) total = Op::fold(before, total);
        }
        total = Op::fold(carried, total);
        const T left = __shfl_up_sync(0xffffffffu, total, 1);
        const T before = lane == 0 ? carried : left;
        if (inside) y[at] = S(exclusive ? before : total);
        carried = __shfl_sync(0xffffffffu, total, 31);
    }
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define RUNNING(op, Op, S, dt)                                                                                          \
    KERNEL op##_##dt##_columns(PARAMS(S)) { columns_of<Op>(x, y, columns, length, inner, exclusive, reverse); }          \
    KERNEL op##_##dt##_rows(PARAMS(S)) { rows_of<Op>(x, y, columns, length, inner, exclusive, reverse); }
#define BOTH(S, dt)                \
    RUNNING(cumSum, Sum, S, dt)    \
    RUNNING(cumProd, Product, S, dt)

BOTH(float, f32)
BOTH(double, f64)
BOTH(WwHalf, f16)
BOTH(WwBfloat, bf16)
BOTH(u32, u32)
BOTH(u64, u64)
