// levels: sm_75
// values, indices [outer, k, inner] of the k elements of x [outer, length, inner] whose keys are largest, in order; of equal
// keys the lower index comes first. Types by code, as in common/order.cuh.
//   topK_sorted(x, values, indices, length, inner, k, code, smallest)    length <= 1024: a block sorts its column
//   topK_picked                                          any length: a block looks k times for the next one
//       256 threads, a block a column: outer * inner blocks
#include "common/math.cuh"
#include "common/order.cuh"

typedef unsigned long long u64;

struct Entry {
    u64 key, index;
};

WW_DEVICE bool before(Entry a, Entry b) { return a.key > b.key || (a.key == b.key && a.index < b.index); }

WW_DEVICE void give(const void* x, void* values, long long* indices, u64 from, u64 to, u64 index, unsigned code) {
    ww_store_whole(values, to, ww_load_whole(x, from, code & WW_BYTES), code);
    indices[to] = (long long)index;
}

#define PARAMS \
    const void *x, void *values, long long *indices, u64 length, u64 inner, u64 k, unsigned code, unsigned smallest
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

KERNEL topK_sorted(PARAMS) {
    __shared__ Entry entries[1024];
    const u64 row = blockIdx.x / inner, column = blockIdx.x % inner;
    const u64 from = row * length * inner + column, to = row * k * inner + column;
    unsigned size = 2;
    while (size < length) size *= 2;
    // What fills up to a power of two comes last.
    for (unsigned i = threadIdx.x; i < size; i += 256)
        entries[i] = i < length ? Entry{ww_key(x, from + i * inner, code, smallest), i} : Entry{0, ~0ull};
    for (unsigned run = 2; run <= size; run *= 2)
        for (unsigned step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            for (unsigned pair = threadIdx.x; pair < size / 2; pair += 256) {
                const unsigned a = pair / step * 2 * step + pair % step, b = a + step;
                const Entry first = entries[a], second = entries[b];
                if (before(second, first) == ((a & run) == 0)) entries[a] = second, entries[b] = first;
            }
        }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < k; i += 256)
        give(x, values, indices, from + entries[i].index * inner, to + i * inner, entries[i].index, code);
}

KERNEL topK_picked(PARAMS) {
    __shared__ Entry bests[8];
    const u64 row = blockIdx.x / inner, column = blockIdx.x % inner;
    const u64 from = row * length * inner + column, to = row * k * inner + column;
    Entry last{~0ull, 0};
    for (u64 rank = 0; rank < k; rank++) {
        Entry best{0, ~0ull};
        for (u64 i = threadIdx.x; i < length; i += 256) {
            const Entry next{ww_key(x, from + i * inner, code, smallest), i};
            if ((rank == 0 || before(last, next)) && before(next, best)) best = next;
        }
        for (int step = 16; step > 0; step /= 2) {
            const Entry other{__shfl_xor_sync(0xffffffffu, best.key, step), __shfl_xor_sync(0xffffffffu, best.index, step)};
            if (before(other, best)) best = other;
        }
        if (threadIdx.x % 32 == 0) bests[threadIdx.x / 32] = best;
        __syncthreads();
        last = bests[0];
        for (int warp = 1; warp < 8; warp++)
            if (before(bests[warp], last)) last = bests[warp];
        __syncthreads();
        if (threadIdx.x == 0) give(x, values, indices, from + last.index * inner, to + rank * inner, last.index, code);
    }
}
