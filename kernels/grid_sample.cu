// levels: sm_75
// y [images, channels, points]: what lies at each place of grid [images, points, axes] in each channel of x [images, channels,
// slices, rows, columns]; two axes leave one slice. Places and weights in float64, sums in the array's own type, in float for
// 16 bits. mode: 0 nearest, 1 linear, 2 cubic; padding: 0 zeros, 1 border, 2 reflection; align: -1 and 1 are middles.
//   gridSample_<dt>(x, grid, y, n, channels, points, slices, rows, columns, axes, mode, padding, align)
//       n = images * channels * points; 256 threads, ceil(n / 256) blocks
#include "common/math.cuh"
#include "common/half.cuh"

typedef unsigned long long u64;

// Elements along an axis, -1 where there are zeros, and their weights.
struct Taps {
    long long at[4];
    double weight[4];
    int count;
};

// The place after mirrors at both ends.
WW_DEVICE double reflected(double place, double low, double high) {
    const double range = high - low;
    if (range <= 0.0) return low;
    const double beyond = place < low ? low - place : place - high;
    const double times = floor(beyond / range), rest = __dadd_rn(beyond, -__dmul_rn(times, range));
    const bool even = times == 2.0 * floor(times * 0.5);
    return (place < low) == even ? low + rest : high - rest;
}

WW_DEVICE double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

WW_DEVICE Taps taps_of(double place, u64 size, unsigned mode, unsigned padding, unsigned align) {
    constexpr double far = 1e15;
    const double last = (double)(size - 1), low = align ? 0.0 : -0.5, high = align ? last : last + 0.5;
    // Step by step as on the host: nothing is contracted.
    place = align ? __dmul_rn((place + 1.0) / 2.0, last) : __dadd_rn(__dmul_rn(place + 1.0, (double)size), -1.0) / 2.0;
    // NaN is far outside, as infinity is.
    place = place > -far ? (place < far ? place : far) : -far;
    if (mode == 0) place = rint(place);
    if (place < low || place > high) {
        if (padding == 1) place = clamped(place, 0.0, last);
        if (padding == 2) place = reflected(place, low, high);
    }
    const double floored = floor(place), rest = place - floored;
    const double first = mode == 0 ? rint(place) : mode == 1 ? floored : floored - 1.0;
    Taps t;
    t.count = mode == 0 ? 1 : mode == 1 ? 2 : 4;
#pragma unroll
    for (int tap = 0; tap < 4; tap++) {
        double at = first + (double)tap;
        if (padding == 2 && tap < t.count && (at < low || at > high)) at = reflected(at, low, high);
        const bool nothing = padding == 0 && (at < 0.0 || at > last);
        t.at[tap] = nothing ? -1 : (long long)clamped(at, 0.0, last);
    }
    // Keys' cubic with a of -0.75, as products that keep their digits.
    const double left = 1.0 - rest;
    t.weight[0] = mode == 0 ? 1.0 : mode == 1 ? left : -0.75 * rest * left * left;
    t.weight[1] = mode == 1 ? rest : left * (1.0 + rest - 1.25 * rest * rest);
    t.weight[2] = rest * (1.0 + left - 1.25 * left * left);
    t.weight[3] = -0.75 * left * rest * rest;
    return t;
}

template <class T> WW_DEVICE T chosen(const T (&of)[4], int tap) {
    return tap == 0 ? of[0] : tap == 1 ? of[1] : tap == 2 ? of[2] : of[3];
}

#define PARAMS(S)                                                                                                     \
    const S *x, const S *grid, S *y, u64 n, u64 channels, u64 points, u64 slices, u64 rows, u64 columns, unsigned axes, \
        unsigned mode, unsigned padding, unsigned align

template <class S> WW_DEVICE void sample(PARAMS(S)) {
    using T = WwCompute<S>;
    const u64 i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= n) return;
    const u64 plane = i / points, point = i % points;
    grid += (plane / channels * points + point) * axes;
    x += plane * slices * rows * columns;
    const Taps w = taps_of((double)(T)grid[0], columns, mode, padding, align);
    const Taps h = taps_of((double)(T)grid[1], rows, mode, padding, align);
    Taps d;
    if (axes == 3)
        d = taps_of((double)(T)grid[2], slices, mode, padding, align);
    else
        d = Taps{{0, 0, 0, 0}, {1.0, 0.0, 0.0, 0.0}, 1};
    T sum = T(0);
#pragma unroll 1
    for (int a = 0; a < d.count; a++) {
        const long long slice = chosen(d.at, a);
#pragma unroll 1
        for (int b = 0; b < h.count; b++) {
            const long long row = chosen(h.at, b);
#pragma unroll 1
            for (int c = 0; c < w.count; c++) {
                const long long column = chosen(w.at, c);
                if (slice < 0 || row < 0 || column < 0) continue;
                const T value = x[(slice * (long long)rows + row) * (long long)columns + column];
                sum = ww_fma((T)(chosen(d.weight, a) * chosen(h.weight, b) * chosen(w.weight, c)), value, sum);
            }
        }
    }
    y[i] = S(sum);
}

#define SAMPLE(S, dt)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) gridSample_##dt(PARAMS(S)) {                                     \
        sample(x, grid, y, n, channels, points, slices, rows, columns, axes, mode, padding, align);                    \
    }

SAMPLE(float, f32)
SAMPLE(double, f64)
SAMPLE(WwHalf, f16)
SAMPLE(WwBfloat, bf16)
