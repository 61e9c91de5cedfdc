// levels: sm_75
// The largest element of each window of [planes, depth, height, width], one window a thread, and its place in the whole of x:
// the first of equal ones, the first NaN before all others; a window of padding has the least number and -1.
//   maxPoolPlaces_<dt>(x, y, indices, n, first_fastest, Window)
//       indices may be null; first_fastest: they count a plane's places with its first axis fastest, not its last
//       n = planes * outputs of a plane; 256 threads, ceil(n / 256) blocks
#include "common/math.cuh"
#include "common/half.cuh"
#include "common/window.cuh"

typedef unsigned long long u64;

template <class S> struct Least {
    WW_DEVICE S value() { return S(-WwLimits<WwCompute<S>>::infinity()); }
};
template <> struct Least<signed char> {
    WW_DEVICE signed char value() { return -128; }
};
template <> struct Least<unsigned char> {
    WW_DEVICE unsigned char value() { return 0; }
};

template <class S> WW_DEVICE void places(const S* x, S* y, long long* indices, u64 n, unsigned first_fastest, const Window& p) {
    using T = WwCompute<S>;
    const u64 index = blockIdx.x * 256ull + threadIdx.x;
    if (index >= n) return;
    u64 ow, oh, od;
    u64 rest = ww_divide(index, (u64)p.width.output, p.width.output_magic, ow);
    rest = ww_divide(rest, (u64)p.height.output, p.height.output_magic, oh);
    const u64 outer = ww_divide(rest, (u64)p.depth.output, p.depth.output_magic, od);
    const auto w = taps_of<long long>(p.width, (unsigned)ow), h = taps_of<long long>(p.height, (unsigned)oh);
    const auto d = taps_of<long long>(p.depth, (unsigned)od);
    const u64 plane = outer * p.depth.input;
    long long place = -1;
    unsigned best_d = 0, best_h = 0, best_w = 0;
    T most = T(0);
#pragma unroll 1
    for (unsigned i = 0; i < d.count; i++)
#pragma unroll 1
        for (unsigned j = 0; j < h.count; j++)
#pragma unroll 1
            for (unsigned k = 0; k < w.count; k++) {
                const u64 at_d = d.first + (u64)i * p.depth.dilation, at_h = h.first + (u64)j * p.height.dilation;
                const u64 at_w = w.first + (u64)k * p.width.dilation;
                const u64 at = ((plane + at_d) * p.height.input + at_h) * p.width.input + at_w;
                const T next = x[at];
                if (place >= 0 && !(next > most) && !(next != next && most == most)) continue;
                most = next;
                place = (long long)at;
                best_d = i, best_h = j, best_w = k;
            }
    y[index] = place < 0 ? Least<S>::value() : x[place];
    if (!indices) return;
    if (first_fastest && place >= 0) {
        const u64 at_d = d.first + (u64)best_d * p.depth.dilation, at_h = h.first + (u64)best_h * p.height.dilation;
        const u64 at_w = w.first + (u64)best_w * p.width.dilation;
        place = (long long)(((outer * p.width.input + at_w) * p.height.input + at_h) * p.depth.input + at_d);
    }
    indices[index] = place;
}

#define PLACES(S, dt)                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) maxPoolPlaces_##dt(                                  \
        const S* x, S* y, long long* indices, u64 n, unsigned first_fastest, Window p) {                   \
        places(x, y, indices, n, first_fastest, p);                                                        \
    }

PLACES(float, f32)
PLACES(double, f64)
PLACES(WwHalf, f16)
PLACES(WwBfloat, bf16)
PLACES(signed char, i8)
PLACES(unsigned char, u8)
