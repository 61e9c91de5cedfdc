// Mean and sum of squared deviations of a row, in float64 whatever the row's type: float32 rows of a large mean or of
// values near 1e30 keep their variance. Deviations are taken from the mean, never squares from squares.
#pragma once

struct WwMoments {
    double mean, squares, count;
};

WW_DEVICE WwMoments ww_merge(WwMoments a, WwMoments b) {
    double count = a.count + b.count;
    if (count == 0.0) return a;
    double apart = b.mean - a.mean, share = b.count / count;
    return WwMoments{a.mean + apart * share, a.squares + b.squares + apart * apart * (a.count * share), count};
}

// Sums over the whole block, in warp order; every thread gets the sum. `slots` holds 32 values and is not reused
// before the next barrier but one.
WW_DEVICE double ww_block_sum(double value, double* slots) {
    value = ww_lanes_reduce<32>(value, [](double a, double b) { return a + b; });
    unsigned lane = threadIdx.x % 32;
    if (lane == 0) slots[threadIdx.x / 32] = value;
    __syncthreads();
    return ww_lanes_reduce<32>(lane < blockDim.x / 32 ? slots[lane] : 0.0, [](double a, double b) { return a + b; });
}

// x - mean to the accuracy of T.
WW_DEVICE float ww_deviation(float x, double mean) {
    float high = (float)mean;
    return (x - high) - (float)(mean - high);
}
WW_DEVICE double ww_deviation(double x, double mean) { return x - mean; }

template <class T, int VECTORS> WW_DEVICE double ww_row_sum(const WwRow<T, VECTORS>& r) {
    double sum = 0.0;
#pragma unroll
    for (int k = 0; k < r.count; k++) sum += (double)r.value[k];
    return sum;
}

// Replaces values by deviations (0 past the row's end) and returns the sum of their squares.
template <class T, int VECTORS>
WW_DEVICE double ww_row_squares(WwRow<T, VECTORS>& r, double mean, unsigned columns, unsigned lane, unsigned lanes, bool vectors) {
    double squares = 0.0;
#pragma unroll
    for (int k = 0; k < r.count; k++) {
        WwCompute<T> d = ww_deviation(r.value[k], mean);
        r.value[k] = r.column(k, lane, lanes, vectors) < columns ? d : WwCompute<T>(0);
        squares = fma((double)r.value[k], (double)r.value[k], squares);
    }
    return squares;
}

// Merges a row's parts: a stretch each by the first 32 threads, then those by the first.
WW_DEVICE WwMoments ww_merge_parts(const double* workspace, unsigned long long columns, unsigned long long chunk, unsigned parts) {
    __shared__ WwMoments slots[32];
    if (threadIdx.x < 32) {
        WwMoments own{0.0, 0.0, 0.0};
        for (unsigned p = threadIdx.x; p < parts; p += 32) {
            unsigned long long rest = columns - p * chunk;
            own = ww_merge(own, WwMoments{workspace[2 * p], workspace[2 * p + 1], (double)(rest < chunk ? rest : chunk)});
        }
        slots[threadIdx.x] = own;
    }
    __syncthreads();
    WwMoments all = slots[0];
    for (int k = 1; k < 32 && k < parts; k++) all = ww_merge(all, slots[k]);
    return all;
}
