// levels: sm_75
// One step of reduceLogSumExp: y [outer, inner] from x [outer, length, inner], relative to the largest element of a column,
// in the array's own type, in float for 16 bits; y is of that type too unless `finish` asks for 16 bits.
//   reduceLogSumExp_<dt>(x, y, columns, length, inner, width, finish)
//       columns = outer * inner; 256 threads, ceil(columns * width / 256) blocks; width is a power of two up to 32:
//       threads of a column. finish as in common/reduce.cuh.
#include "common/math.cuh"
#include "common/half.cuh"
#include "common/vector.cuh"
#include "common/reduce.cuh"

typedef unsigned long long u64;

template <class S> WW_DEVICE void log_sum_exp(const S* x, void* y, u64 columns, u64 length, u64 inner, unsigned width, unsigned finish) {
    using T = WwCompute<S>;
    const u64 thread = (u64)blockIdx.x << 8 | threadIdx.x;
    const unsigned lane = threadIdx.x & (width - 1), shift = 31 - __clz(width);
    const u64 column = thread >> shift, row = column / inner, base = row * length * inner + column % inner;
    const u64 count = column < columns ? length : 0;
    T most = -WwLimits<T>::infinity();
    for (u64 i = lane; i < count; i += width) most = ww_max(most, (T)x[base + i * inner]);
    for (unsigned step = width / 2; step > 0; step /= 2) most = ww_max(most, __shfl_xor_sync(0xffffffffu, most, step));
    // Infinities are not subtracted from themselves.
    const T from = ww_abs(most) == WwLimits<T>::infinity() ? T(0) : most;
    T sum = T(0);
    for (u64 i = lane; i < count; i += width) sum += ww_exp((T)x[base + i * inner] - from);
    for (unsigned step = width / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0 && column < columns) ww_finish(y, column, from + ww_log(sum), T(1), finish);
}

#define KERNEL(S, dt)                                                                                                     \
    extern "C" __global__ void __launch_bounds__(256) reduceLogSumExp_##dt(                                               \
        const S* x, void* y, u64 columns, u64 length, u64 inner, unsigned width, unsigned finish) {                       \
        log_sum_exp(x, y, columns, length, inner, width, finish);                                                         \
    }

KERNEL(float, f32)
KERNEL(double, f64)
KERNEL(WwHalf, f16)
KERNEL(WwBfloat, bf16)
