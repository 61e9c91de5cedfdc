// levels: sm_75
// scatterElements with a reduction, into y that holds x. A thread takes all updates of a line along the axis, one after the
// other, so that no two threads meet and sums have one order. Sums and products of 16 bits are rounded each time.
//   scatterReduce_<dt>(updates, indices, y, n, lines, count, inner, length, stride, wide, way, Walk)
//       updates and indices [lines / inner, count, inner], n of them; indices are int64, or int32 where `wide` is 0, negative
//       ones count from the end of `length`, nothing is written to ones out of range; the walk gives an update's place in y
//       with index 0, steps of the axis are `stride`. way: 0 sum, 1 product, 2 maximum, 3 minimum.
//       256 threads, ceil(lines / 256) blocks
#include "common/math.cuh"
#include "common/half.cuh"
#include "common/walk.cuh"

WW_DEVICE long long index_at(const void* indices, u64 i, u64 length, u32 wide) {
    long long index = wide ? ((const long long*)indices)[i] : (long long)((const int*)indices)[i];
    index += index < 0 ? (long long)length : 0;
    return (u64)index < length ? index : -1;
}

template <class T> WW_DEVICE T join(T a, T b, u32 way) {
    switch (way) {
        case 0: return a + b;
        case 1: return a * b;
        case 2: return ww_max(a, b);
        default: return ww_min(a, b);
    }
}

template <class S>
WW_DEVICE void scatter(const S* updates, const void* indices, S* y, u64 n, u64 lines, u64 count, u64 inner, u64 length,
                       u64 stride, u32 wide, u32 way, const WwWalk& walk) {
    using T = WwCompute<S>;
    const u64 line = blockIdx.x * 256ull + threadIdx.x;
    if (line >= lines) return;
    const u64 first = line / inner * count * inner + line % inner;
    S* to = y + ww_place(first, n, walk).x;
    for (u64 k = 0; k < count; k++) {
        const u64 i = first + k * inner;
        const long long index = index_at(indices, i, length, wide);
        if (index < 0) continue;
        S* at = to + index * (long long)stride;
        *at = S(join((T)*at, (T)updates[i], way));
    }
}

#define SCATTER(S, dt)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256) scatterReduce_##dt(                                                  \
        const S* updates, const void* indices, S* y, u64 n, u64 lines, u64 count, u64 inner, u64 length, u64 stride,       \
        u32 wide, u32 way, WwWalk walk) {                                                                                  \
        scatter(updates, indices, y, n, lines, count, inner, length, stride, wide, way, walk);                             \
    }

SCATTER(float, f32)
SCATTER(double, f64)
SCATTER(WwHalf, f16)
SCATTER(WwBfloat, bf16)
SCATTER(long long, i64)
SCATTER(int, i32)
SCATTER(short, i16)
SCATTER(signed char, i8)
SCATTER(u64, u64)
SCATTER(u32, u32)
SCATTER(u16, u16)
SCATTER(u8, u8)
