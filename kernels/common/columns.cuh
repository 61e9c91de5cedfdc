// Means of a part of each column, for any number of rows. A block owns 32 columns, a lane each; its warps
// share the rows. Parameters: columns.cu.
#pragma once
#include "common/weighted.cuh"

template <class T> __device__ __forceinline__ void store_column(T* out, unsigned long long d, double value, bool lost) {
    unsigned long long x = coordinate();
    if (threadIdx.x < 32 && x < d) out[x] = lost || value != value ? WwReal<T>::nan() : T(value);
}

// Distances of a source's values to a centre; an infinity is at no distance from itself.
template <class Source, class T> struct WwGaps {
    const Source& source;
    double centre;
    unsigned total;

    static __device__ __forceinline__ double of(double v, double centre) { return v == centre ? 0.0 : fabs(v - centre); }
    template <class F> __device__ __forceinline__ void each(F visit) const {
        double c = centre;
        source.each([&](T v) { visit(of(v, c)); });
    }
    template <class F> __device__ __forceinline__ void sample(unsigned quota, F visit) const {
        double c = centre;
        source.sample(quota, [&](T v) { visit(of(v, c)); });
    }
};

// The values of two ranks. One text of the selection for both.
template <class Source, class T>
__device__ __forceinline__ void two_ranks(const Source& source, WwBoard<T>& board, unsigned first, unsigned second, T& low,
                                          T& high) {
#pragma unroll 1
    for (int i = 0; i < 2; i++) {
        if (i == 1 && __all_sync(0xffffffffu, first == second)) break;
        high = ww_select(source, board, i == 0 ? first : second);
        if (i == 0) low = high;
    }
}

// The mean of ranks cut .. left - cut - 1 of the values, which run from `low` to `high`; `cut` is less than half of `left`.
template <class Source, class T, int WARPS>
__device__ __forceinline__ double mean_between(const Source& source, WwSums<WARPS>& sums, T low, T high, unsigned left,
                                               unsigned cut) {
    unsigned upto = 0, below = 0;
    double sum = 0.0;
    source.each([&](T v) {
        upto += v <= low;
        below += v < high;
        if (v > low && v < high) sum += v;
    });
    sum = sums.total(sum);
    double lows = sums.total(upto) - cut, highs = left - cut - sums.total(below);
    if (low == high) return low;
    sum += double(low) * lows + double(high) * highs;
    return sum / (left - 2.0 * cut);
}

template <class Source, class T, int WARPS>
__device__ __forceinline__ void trimmed(Source& source, COLUMN_PARAMS(T), unsigned cut, double share) {
    __shared__ WwBoard<T> board;
    __shared__ WwSums<WARPS> sums;
    board.clear();
    __syncthreads();
    atomicAdd(&board.nans[threadIdx.x % 32], source.load(column_of(rows, d, stride, table), n));
    __syncthreads();
    unsigned nans = board.nans[threadIdx.x % 32], left = nan == 1 ? n - nans : n;
    if (share >= 0.0) cut = min(unsigned(floor(share * left + 1e-9)), left == 0 ? 0 : (left - 1) / 2);
    bool lost = left <= 2ull * cut || (nan == 2 && nans > 0) || left - cut > n - nans;
    if (lost) left = n, cut = 0;
    T low, high;
    two_ranks(source, board, cut, left - cut - 1, low, high);
    double mean = mean_between(source, sums, low, high, left, cut);
    store_column(out, d, mean, lost);
}

// The mean of the `keep` values nearest to `centre`, of equally near ones the lower; of the last `nans` of `n` values, which the
// source gives as +Inf, none.
template <class Source, class T, int WARPS>
__device__ __forceinline__ double nearest_mean(const Source& source, WwBoard<double>& board, WwSums<WARPS>& sums,
                                               double centre, unsigned keep, double nans, double real) {
    WwGaps<Source, T> gaps{source, centre, source.total};
    double reach = ww_select(gaps, board, keep - 1);
    double sum = 0.0, low_sum = 0.0, high_sum = 0.0;
    unsigned inners = 0, lows = 0, highs = 0, leasts = 0, mosts = 0;
    source.each([&](T v) {
        double gap = WwGaps<Source, T>::of(v, centre);
        bool under = v < centre;
        if (gap < reach) sum += v, inners++;
        if (gap == reach && under) low_sum += v, lows++;
        if (gap == reach && !under) high_sum += v, highs++;
        leasts += v == -WwReal<T>::infinity();
        mosts += v == WwReal<T>::infinity();
    });
    sum = sums.total(sum);
    low_sum = sums.total(low_sum);
    high_sum = sums.total(high_sum);
    double inner = sums.total(inners), low = sums.total(lows), high = sums.total(highs);
    double least = sums.total(leasts), most = sums.total(mosts) - nans;
    double none = WwReal<double>::nan(), infinity = WwReal<double>::infinity();
    // About an infinity only those of its own sign are near, then the lower ones count.
    if (keep > real) return none;
    if (centre == infinity) return keep > most && least > 0.0 ? none : centre;
    if (centre == -infinity) return keep > real - most ? none : centre;
    if (reach == infinity) high -= nans;
    double from_low = fmin(keep - inner, low), from_high = keep - inner - from_low;
    if (from_high > high) return none;
    if (from_low > 0.0) sum += from_low < low ? low_sum / low * from_low : low_sum;
    // NaN stand among these as +Inf; then the sum is infinite whatever their number.
    if (from_high > 0.0) sum += from_high < high ? high_sum / high * from_high : high_sum;
    return sum / keep;
}

// centre: 0 the upper, 1 the lower middle value, 2 their mean, 3 the mean without `cut` values at each end.
template <class Source, class T, int WARPS>
__device__ __forceinline__ void nearest(Source& source, COLUMN_PARAMS(T), unsigned centre, unsigned cut, unsigned leave,
                                        unsigned least) {
    __shared__ WwBoard<T> board;
    __shared__ WwBoard<double> gaps;
    __shared__ WwSums<WARPS> sums;
    board.clear();
    gaps.clear();
    __syncthreads();
    atomicAdd(&board.nans[threadIdx.x % 32], source.load(column_of(rows, d, stride, table), n));
    __syncthreads();
    unsigned nans = board.nans[threadIdx.x % 32], left = nan == 1 ? n - nans : n, real = n - nans;
    bool lost = left < least || left <= leave || left == 0 || (nan == 2 && nans > 0);
    unsigned held = lost ? n : left, first = wanted(held, centre), second = centre == 2 ? held / 2 : first;
    if (centre == 3) {
        lost = lost || left <= 2ull * cut;
        held = lost ? n : left;
        first = lost ? 0 : cut;
        second = held - first - 1;
    }
    lost = lost || second >= real;
    T low, high;
    two_ranks(source, board, first, second, low, high);
    double about = first == second ? double(low) : 0.5 * low + 0.5 * high;
    if (centre == 3) about = mean_between(source, sums, low, high, held, first);
    lost = lost || about != about;
    double mean = nearest_mean<Source, T>(source, gaps, sums, lost ? 0.0 : about, lost ? 1 : left - leave, nans, real);
    store_column(out, d, mean, lost);
}

#define COLUMN_FORM(T, dt, form, threads, SOURCE)                                                                      \
    extern "C" __global__ void __launch_bounds__(threads, 1) trimmed_##dt##_##form(COLUMN_PARAMS(T), unsigned cut,        \
                                                                                double share) {                       \
        SOURCE(T);                                                                                                     \
        trimmed<decltype(source), T, threads / 32>(source, rows, out, d, stride, table, n, nan, cut, share);          \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(threads, 1) nearest_##dt##_##form(                                       \
        COLUMN_PARAMS(T), unsigned centre, unsigned cut, unsigned leave, unsigned least) {                             \
        SOURCE(T);                                                                                                     \
        nearest<decltype(source), T, threads / 32>(source, rows, out, d, stride, table, n, nan, centre, cut, leave,   \
                                                   least);                                                             \
    }

#define TILE_SOURCE(T)                                                                                                 \
    extern __shared__ double values[];                                                                                 \
    WwTile<T> source;                                                                                                  \
    source.column = reinterpret_cast<T*>(values) + threadIdx.x % 32
#define STREAM_SOURCE(T) WwStream<T> source

#define COLUMN_KERNELS(T, dt, threads)                                                                                 \
    COLUMN_FORM(T, dt, tile, threads, TILE_SOURCE)                                                                     \
    COLUMN_FORM(T, dt, stream, threads, STREAM_SOURCE)                                                                 \
    extern "C" __global__ void __launch_bounds__(threads, 1) weighted_median_##dt##_tile(                                 \
        COLUMN_PARAMS(T), const double *weights, unsigned even) {                                                      \
        extern __shared__ double values[];                                                                             \
        T* column = reinterpret_cast<T*>(values) + threadIdx.x % 32;                                                   \
        WwRows<T> from = column_of(rows, d, stride, table);                                                            \
        for (unsigned row = threadIdx.x / 32; row < n; row += blockDim.x / 32) column[row * 32] = from.at(row);        \
        weighted<T, threads / 32>(WwRaw<T>{from, column, n}, out, d, nan, weights, even);                              \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(threads, 1) weighted_median_##dt##_stream(                               \
        COLUMN_PARAMS(T), const double *weights, unsigned even) {                                                      \
        WwRows<T> from = column_of(rows, d, stride, table);                                                            \
        weighted<T, threads / 32>(WwRaw<T>{from, nullptr, n}, out, d, nan, weights, even);                             \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 1) column_mean_##dt##_all(COLUMN_PARAMS(T), const double *weights,  \
                                                                             double whole) {                          \
        column_mean<T, false>(rows, out, d, stride, table, n, nan, weights, whole);                                    \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256, 1) column_mean_##dt##_omit(COLUMN_PARAMS(T), const double *weights, \
                                                                              double whole) {                         \
        column_mean<T, true>(rows, out, d, stride, table, n, nan, weights, whole);                                     \
    }
