// levels: sm_75
// The first coordinate of each row of rows[n][d] that is NaN or infinite.
//   nonfinite_<dt>(rows, first, d, stride, chunks)  first[row] = lowest such coordinate, where it is lower than what stands there
//                  (all bits set before the call); n * chunks blocks of 256 threads, chunks = ceil(d / 8192)

// Blocks go row by row, a chunk of 8192 coordinates each.
template <class T>
__device__ __forceinline__ void nonfinite(const T* rows, unsigned long long* first, unsigned long long d,
                                          unsigned long long stride, unsigned chunks) {
    unsigned long long row = blockIdx.x / chunks;
    unsigned long long start = (blockIdx.x % chunks) * 8192ull + threadIdx.x;
    const T* at = rows + row * stride;
    unsigned long long found = ~0ull;
#pragma unroll 8
    for (int i = 31; i >= 0; i--) {
        unsigned long long x = start + i * 256ull;
        T v = x < d ? at[x] : T(0);
        if (!(v - v == T(0))) found = x;
    }
    if (found != ~0ull) atomicMin(first + row, found);
}

#define KERNEL(T, dt)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) nonfinite_##dt(                                                    \
        const T* rows, unsigned long long* first, unsigned long long d, unsigned long long stride, unsigned chunks) {    \
        nonfinite(rows, first, d, stride, chunks);                                                                       \
    }

KERNEL(float, f32)
KERNEL(double, f64)
