// levels: sm_75 sm_80
// rates_f32: clocks that one multiprocessor takes for 8 * 8 float32 multiply-adds a thread, to[0], and for 8 * 8
// tensor-core products of float16 with float32 sums a warp, to[1]. One block of 256 threads. x, y: factors that keep the
// sums finite; to holds 3 words.
#include "common/mma.cuh"

// Eight independent sums.
struct PlainSums {
    float sum[8];
    WW_INLINE void step(float x, float y) {
#pragma unroll
        for (int i = 0; i < 8; ++i) sum[i] = __fmaf_rn(sum[i], x, y);
    }
    WW_INLINE float all() const { return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7]; }
};

struct TensorSums {
    float sum[8][4];
    WW_INLINE void step(float x, float y) {
        const unsigned a[4] = {__float_as_uint(x), __float_as_uint(y), __float_as_uint(x), __float_as_uint(y)}, b[2] = {a[0], a[1]};
#pragma unroll
        for (int i = 0; i < 8; ++i) mma_add(sum[i], a, b);
    }
    WW_INLINE float all() const {
        float v = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) v += sum[i][0] + sum[i][1] + sum[i][2] + sum[i][3];
        return v;
    }
};

// What 8 * REPEAT steps more take, so that starting and ending do not count.
template <class Sums, int REPEAT> WW_INLINE unsigned rates_clocks(float x, float y, float &all) {
    Sums sums = {};
    unsigned clocks[2] = {};
    // The first round brings the instructions near.
#pragma unroll 1
    for (int round = 0; round < 3; ++round) {
        const int steps = round == 2 ? 12 : 4;
        __syncthreads();
        const long long start = clock64();
#pragma unroll 1
        for (int i = 0; i < steps; ++i)
#pragma unroll
            for (int j = 0; j < REPEAT; ++j) sums.step(x, y);
        __syncthreads();
        clocks[round == 2] = (unsigned)(clock64() - start);
    }
    all += sums.all();
    return (clocks[1] - clocks[0]) / REPEAT;
}

extern "C" __global__ void __launch_bounds__(256) rates_f32(unsigned *to, float x, float y) {
    float all = 0.0f;
    const unsigned plain = rates_clocks<PlainSums, 16>(x, y, all), tensor = rates_clocks<TensorSums, 1>(x, y, all);
    if (threadIdx.x == 0) {
        to[0] = plain;
        to[1] = tensor;
        to[2] = all == x;
    }
}
