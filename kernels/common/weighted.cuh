// Weighted medians and means of columns, and what other statistics of columns share with them. Parameters: columns.cu.
#pragma once
#include "common/median.cuh"

#define COLUMN_PARAMS(T)                                                                                               \
    const T *rows, T *out, unsigned long long d, unsigned long long stride, const unsigned long long *table, unsigned n, \
        unsigned nan

// Sums over a block's warps, in their order: the same bits on every run.
template <int WARPS> struct WwSums {
    double part[WARPS][32];

    __device__ __forceinline__ double total(double value) {
        unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
        __syncthreads();
        part[threadIdx.x / 32][lane] = value;
        __syncthreads();
        double sum = 0.0;
        for (unsigned warp = 0; warp < warps; warp++) sum += part[warp][lane];
        return sum;
    }
};

template <class T> __device__ __forceinline__ WwRows<T> column_of(const T* rows, unsigned long long d,
                                                                  unsigned long long stride,
                                                                  const unsigned long long* table) {
    // Lanes past the end repeat the last column and store nothing.
    unsigned long long x = coordinate();
    return WwRows<T>{rows + (x < d ? x : d - 1), stride, table};
}

// Values as they are, NaN too, and the rows that they come from.
template <class T> struct WwRaw {
    WwRows<T> from;
    const T* column;
    unsigned n;

    template <class F> __device__ __forceinline__ void each(F visit) const {
        unsigned warps = blockDim.x / 32;
#pragma unroll 4
        for (unsigned row = threadIdx.x / 32; row < n; row += warps) visit(column ? column[row * 32] : from.at(row), row);
    }
};

// Halves the range of keys until the least value is left up to which the weights reach half of the total.
template <class T, int WARPS>
__device__ __forceinline__ void weighted(WwRaw<T> source, T* out, unsigned long long d, unsigned nan, const double* weights,
                                         unsigned even) {
    typedef typename WwReal<T>::Key Key;
    __shared__ WwSums<WARPS> sums;
    __shared__ Key least[32];
    double real = 0.0, lost_weight = 0.0;
    source.each([&](T v, unsigned row) {
        double weight = __ldg(weights + row);
        if (v == v) real += weight;
        else lost_weight += weight;
    });
    real = sums.total(real);
    lost_weight = sums.total(lost_weight);
    double total = nan == 1 ? real : real + lost_weight, reached = real;
    bool lost = 2.0 * real < total || real == 0.0 || (nan == 2 && lost_weight > 0.0);
    Key low = ww_key(-WwReal<T>::infinity()) - 1, high = ww_key(WwReal<T>::infinity());
    while (__any_sync(0xffffffffu, high - low > 1)) {
        Key middle = low + (high - low) / 2;
        double sum = 0.0;
        source.each([&](T v, unsigned row) {
            if (v == v && ww_key(v) <= middle) sum += __ldg(weights + row);
        });
        sum = sums.total(sum);
        if (2.0 * sum >= total) {
            high = middle;
            reached = sum;
        } else {
            low = middle;
        }
    }
    T value = ww_from_key<T>(high), next = value;
    if (even != 1 && __any_sync(0xffffffffu, 2.0 * reached == total)) {
        Key above = ~Key(0);
        source.each([&](T v, unsigned) {
            if (v > value) above = min(above, ww_key(v));
        });
        if (threadIdx.x < 32) least[threadIdx.x] = ~Key(0);
        __syncthreads();
        atomicMin(&least[threadIdx.x % 32], above);
        __syncthreads();
        Key found = least[threadIdx.x % 32];
        if (2.0 * reached == total) {
            if (found != ~Key(0)) next = ww_from_key<T>(found);
            else lost = lost || (nan == 0 && lost_weight > 0.0);
        }
    }
    T result = even == 0 ? next : even == 1 || next == value ? value : ww_halves(value, next);
    if (lost || result != result) result = WwReal<T>::nan();
    unsigned long long x = coordinate();
    if (threadIdx.x < 32 && x < d) out[x] = result;
}

// Sums of float64 in the order of the rows, a column a thread.
template <class T, bool OMIT>
__device__ __forceinline__ void column_mean(COLUMN_PARAMS(T), const double* weights, double whole) {
    unsigned long long x = blockIdx.x * 256ull + threadIdx.x;
    if (x >= d) return;
    WwRows<T> from{rows + x, stride, table};
    double sum = 0.0, total = OMIT ? 0.0 : whole;
#pragma unroll 8
    for (unsigned row = 0; row < n; row++) {
        T v = from.at(row);
        double weight = weights ? __ldg(weights + row) : 1.0;
        if (!OMIT || v == v) {
            sum = __dadd_rn(sum, __dmul_rn(weight, double(v)));
            if (OMIT) total += weight;
        }
    }
    double mean = sum / total;
    out[x] = mean != mean ? WwReal<T>::nan() : T(mean);
}
