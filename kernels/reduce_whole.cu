// levels: sm_75
// One step of a reduction of whole numbers or truth: y [outer, inner] from x [outer, length, inner]; types by code, as in
// common/whole.cuh. Numbers are folded in 64 bits, which wrap; `start` is the fold's identity.
//   reduceWhole_<op>(x, y, columns, length, inner, start, count, width, from, to, finish)
//       columns = outer * inner; finish: 1 divides by count, truncating, 0 where that is 0; 2 takes the truncated root
//   argWhole(x, y, columns, length, inner, width, from, flags)
//       y int64: the index of the largest element; flags: 1 for the smallest, 2 for the last of equal ones
//       256 threads, ceil(columns * width / 256) blocks; width is a power of two up to 32: threads of a column
#include "common/math.cuh"
#include "common/whole.cuh"

typedef unsigned long long u64;

struct Sum {
    WW_DEVICE u64 map(u64 x, unsigned) { return x; }
    WW_DEVICE u64 fold(u64 a, u64 b, unsigned) { return a + b; }
};
struct Abs : Sum {
    WW_DEVICE u64 map(u64 x, unsigned code) { return code & WW_SIGNED && (long long)x < 0 ? 0 - x : x; }
};
struct Square : Sum {
    WW_DEVICE u64 map(u64 x, unsigned) { return x * x; }
};
struct Product : Sum {
    WW_DEVICE u64 fold(u64 a, u64 b, unsigned) { return a * b; }
};
struct Max : Sum {
    WW_DEVICE u64 fold(u64 a, u64 b, unsigned code) { return ww_order_whole(b, code) > ww_order_whole(a, code) ? b : a; }
};
struct Min : Sum {
    WW_DEVICE u64 fold(u64 a, u64 b, unsigned code) { return ww_order_whole(b, code) < ww_order_whole(a, code) ? b : a; }
};

// A root is that of the number in float64.
WW_DEVICE u64 finished(u64 value, u64 count, unsigned code, unsigned finish) {
    const bool sign = code & WW_SIGNED;
    if (finish == 1) return count == 0 ? 0 : sign ? (u64)((long long)value / (long long)count) : value / count;
    if (finish == 2) {
        const double root = sqrt(sign ? (double)(long long)value : (double)value);
        return root != root ? 0 : (u64)root;
    }
    return value;
}

template <class Op>
WW_DEVICE void reduce(const void* x, void* y, u64 columns, u64 length, u64 inner, u64 start, u64 count, unsigned width,
                      unsigned from, unsigned to, unsigned finish) {
    const u64 thread = (u64)blockIdx.x << 8 | threadIdx.x;
    const unsigned lane = threadIdx.x & (width - 1), shift = 31 - __clz(width);
    const u64 column = thread >> shift, row = column / inner, base = row * length * inner + column % inner;
    u64 value = start;
    if (column < columns)
        for (u64 i = lane; i < length; i += width)
            value = Op::fold(value, Op::map(ww_load_whole(x, base + i * inner, from), from), from);
    for (unsigned step = width / 2; step > 0; step /= 2)
        value = Op::fold(value, __shfl_xor_sync(0xffffffffu, value, step), from);
    if (lane == 0 && column < columns) ww_store_whole(y, column, finished(value, count, from, finish), to);
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define REDUCE(op, Op)                                                                                                   \
    KERNEL reduceWhole_##op(const void* x, void* y, u64 columns, u64 length, u64 inner, u64 start, u64 count,            \
                            unsigned width, unsigned from, unsigned to, unsigned finish) {                               \
        reduce<Op>(x, y, columns, length, inner, start, count, width, from, to, finish);                                 \
    }

REDUCE(sum, Sum)
REDUCE(abs, Abs)
REDUCE(square, Square)
REDUCE(product, Product)
REDUCE(max, Max)
REDUCE(min, Min)

KERNEL argWhole(const void* x, long long* y, u64 columns, u64 length, u64 inner, unsigned width, unsigned from, unsigned flags) {
    const u64 thread = (u64)blockIdx.x << 8 | threadIdx.x;
    const unsigned lane = threadIdx.x & (width - 1), shift = 31 - __clz(width);
    const u64 column = thread >> shift, row = column / inner, base = row * length * inner + column % inner;
    const u64 turned = flags & 1 ? ~0ull : 0ull;
    const bool last = flags & 2;
    u64 best = 0, index = ~0ull;  // no index: nothing was seen
    auto take = [&](u64 value, u64 at) {
        if (at == ~0ull) return;
        const bool closer = last ? at > index : at < index;
        if (index == ~0ull || value > best || (value == best && closer)) best = value, index = at;
    };
    if (column < columns)
        for (u64 i = lane; i < length; i += width)
            take(ww_order_whole(ww_load_whole(x, base + i * inner, from), from) ^ turned, i);
    for (unsigned step = width / 2; step > 0; step /= 2) {
        const u64 value = __shfl_xor_sync(0xffffffffu, best, step), at = __shfl_xor_sync(0xffffffffu, index, step);
        take(value, at);
    }
    if (lane == 0 && column < columns) y[column] = (long long)index;
}
