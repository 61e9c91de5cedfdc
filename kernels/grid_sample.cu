// levels: sm_75
// y [images, channels, points]: what lies at each place of grid [images, points, axes] in each channel of x [images, channels,
// slices, rows, columns]; two axes leave one slice. Places and weights in float64, sums in the array's own type, in float for
// 16 bits. mode: 0 nearest, 1 linear, 2 cubic; padding: 0 zeros, 1 border, 2 reflection; align: -1 and 1 are middles.
//   gridSample_<dt>(x, grid, y, n, channels, points, slices, rows, columns, axes, mode, padding, align)
//       n = images * channels * points; 256 threads, ceil(n / 256) blocks
#include "common/math.cuh"
#include "common/half.cuh"

typedef unsigned long long u64;

struct Taps {
    long long first;
    double low, high, last;
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

// Keys' cubic with a of -0.75, up to a distance of 1 and from there to 2.
WW_DEVICE double cubic_near(double x) { return (1.25 * x - 2.25) * x * x + 1.0; }
WW_DEVICE double cubic_far(double x) { return ((-0.75 * x + 3.75) * x - 6.0) * x + 3.0; }

WW_DEVICE double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

WW_DEVICE Taps taps_of(double place, u64 size, unsigned mode, unsigned padding, unsigned align) {
    constexpr double far = 1e15;
    Taps t;
    t.last = (double)(size - 1);
    t.low = align ? 0.0 : -0.5;
    t.high = align ? t.last : t.last + 0.5;
    // Step by step as on the host: nothing is contracted.
    place = align ? __dmul_rn((place + 1.0) / 2.0, t.last) : __dadd_rn(__dmul_rn(place + 1.0, (double)size), -1.0) / 2.0;
    // NaN is far outside, as infinity is.
    place = place > -far ? (place < far ? place : far) : -far;
    if (mode == 0) place = rint(place);
    if (place < t.low || place > t.high) {
        if (padding == 1) place = clamped(place, 0.0, t.last);
        if (padding == 2) place = reflected(place, t.low, t.high);
    }
    const double first = floor(place), rest = place - first;
    t.count = mode == 0 ? 1 : mode == 1 ? 2 : 4;
    t.first = (long long)(mode == 0 ? rint(place) : mode == 1 ? first : first - 1.0);
    t.weight[0] = mode == 0 ? 1.0 : mode == 1 ? 1.0 - rest : cubic_far(1.0 + rest);
    t.weight[1] = mode == 1 ? rest : cubic_near(rest);
    t.weight[2] = cubic_near(1.0 - rest);
    t.weight[3] = cubic_far(2.0 - rest);
    return t;
}

// The element under a tap, -1 where there are zeros.
WW_DEVICE long long element(const Taps& t, int tap, unsigned padding) {
    const double at = (double)(t.first + tap);
    if (padding == 0 && (at < 0.0 || at > t.last)) return -1;
    const bool outside = at < t.low || at > t.high;
    return (long long)clamped(padding == 2 && outside ? reflected(at, t.low, t.high) : at, 0.0, t.last);
}

WW_DEVICE double weight(const Taps& t, int tap) {
    return tap == 0 ? t.weight[0] : tap == 1 ? t.weight[1] : tap == 2 ? t.weight[2] : t.weight[3];
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
        d = Taps{0, 0.0, 0.0, 0.0, {1.0, 0.0, 0.0, 0.0}, 1};
    T sum = T(0);
#pragma unroll 1
    for (int a = 0; a < d.count; a++) {
        const long long slice = element(d, a, padding);
#pragma unroll 1
        for (int b = 0; b < h.count; b++) {
            const long long row = element(h, b, padding);
#pragma unroll 1
            for (int c = 0; c < w.count; c++) {
                const long long column = element(w, c, padding);
                if (slice < 0 || row < 0 || column < 0) continue;
                const T value = x[(slice * (long long)rows + row) * (long long)columns + column];
                sum = ww_fma((T)(weight(d, a) * weight(h, b) * weight(w, c)), value, sum);
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
