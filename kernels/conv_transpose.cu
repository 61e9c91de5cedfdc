// levels: sm_75 sm_80
// Transposed convolution, x [images, channels, (D, H,) W], w [channels, channels out / groups, (kD, kH,) kW], bias, activation;
// accumulated in the element type. Conv.in is x's size, Conv.out the result's, pad the begin pads.
//   conv_transpose_*_pack    weights to [group][channel block][tap][16][m_pad]; sets *flag (zeroed before) at a non-finite weight
//   conv_transpose_*_<tile>  outputs of equal residue modulo the strides form one product over the taps that reach them;
//                            grid.x = row tiles * column tiles * splits * groups * residues
//   conv_transpose_*_direct  one thread an output
//   conv_transpose_*_reduce  sums splits
// Inputs beyond the edge take no part, so that a non-finite weight reaches only the outputs that it touches: the
// product, which multiplies zeros there, gives way to the direct sum when the flag is set.
#include "common/conv_tile.cuh"

template <class T> WW_INLINE T transpose_sum(const T *x, const T *w, const Conv &p, unsigned image, unsigned channel, int od, int oh, int ow) {
    const unsigned group = channel / p.group_out, taps = conv_taps(p);
    const long long plane = (long long)p.in[0] * p.in[1] * p.in[2];
    const T *from = x + ((long long)image * p.groups + group) * p.group_in * plane;
    const T *weight = w + ((long long)group * p.group_in * p.group_out + channel % p.group_out) * taps;
    T sum = T(0);
    for (unsigned kd = 0; kd < p.kernel[0]; ++kd) {
        const int d = od + p.pad[0] - (int)(kd * p.dilation[0]);
        if (d < 0 || d % p.stride[0] || d / p.stride[0] >= p.in[0]) continue;
        for (unsigned kh = 0; kh < p.kernel[1]; ++kh) {
            const int h = oh + p.pad[1] - (int)(kh * p.dilation[1]);
            if (h < 0 || h % p.stride[1] || h / p.stride[1] >= p.in[1]) continue;
            for (unsigned kw = 0; kw < p.kernel[2]; ++kw) {
                const int q = ow + p.pad[2] - (int)(kw * p.dilation[2]);
                if (q < 0 || q % p.stride[2] || q / p.stride[2] >= p.in[2]) continue;
                const T *v = from + ((long long)(d / p.stride[0]) * p.in[1] + h / p.stride[1]) * p.in[2] + q / p.stride[2];
                const T *u = weight + (kd * p.kernel[1] + kh) * p.kernel[2] + kw;
                for (unsigned c = 0; c < p.group_in; ++c) sum = ww_fma(v[c * plane], u[(long long)c * p.group_out * taps], sum);
            }
        }
    }
    return sum;
}

// The outputs of one residue: size per dim and the taps that reach them.
struct Residue {
    int at[3], size[3], start[3];

    WW_INLINE Residue(unsigned index, const Conv &p, ConvCursor &cursor) {
#pragma unroll
        for (int i = 2; i >= 0; --i) {
            const int stride = p.stride[i], dilation = p.dilation[i];
            at[i] = index % stride;
            index /= stride;
            size[i] = at[i] < (int)p.out[i] ? ((int)p.out[i] - at[i] + stride - 1) / stride : 0;
            int pitch = 1, first = 0;
            while (pitch * dilation % stride) ++pitch;
            while (first < pitch && (at[i] + p.pad[i] - first * dilation) % stride) ++first;
            const int kernel = p.kernel[i];
            const int count = first < pitch && first < kernel ? (kernel - 1 - first) / pitch + 1 : 0;
            start[i] = count ? (at[i] + p.pad[i] - first * dilation) / stride : 0;
            cursor.axis[i] = ConvAxis{-(pitch * dilation / stride), count, first, pitch};
        }
    }
};

struct TransposeWhere {
    unsigned column0, pixels;
    Residue residue;
    const Conv &p;
    WW_INLINE bool split(int column, unsigned &image, int &d, int &h, int &w) const {
        const unsigned j = column0 + column;
        if (j >= pixels) return false;
        const unsigned row = j / residue.size[2], rest = row / residue.size[1];
        w = j % residue.size[2], h = row % residue.size[1], d = rest % residue.size[0];
        image = rest / residue.size[0];
        return true;
    }
    WW_INLINE long long operator()(int column) const {
        unsigned image;
        int d, h, w;
        if (!split(column, image, d, h, w)) return -1;
        const long long od = d * (int)p.stride[0] + residue.at[0], oh = h * (int)p.stride[1] + residue.at[1];
        const long long base = (long long)image * p.groups * p.group_out * p.out[0];
        return ((base + od) * p.out[1] + oh) * p.out[2] + w * (int)p.stride[2] + residue.at[2];
    }
};

// Every output of the block's tile by the direct sum.
template <class Tl>
WW_INLINE void transpose_tile_direct(const typename Tl::T *x, const typename Tl::T *w, const typename Tl::T *bias,
                                     typename Tl::T *d, typename Tl::T p0, typename Tl::T p1, const Conv &p, unsigned group,
                                     unsigned m0, unsigned split, const TransposeWhere &where) {
    using T = typename Tl::T;
    const long long plane = (long long)p.out[0] * p.out[1] * p.out[2];
    for (int e = threadIdx.x; e < Tl::BM * Tl::BN; e += Tl::THREADS) {
        const unsigned m = m0 + e / Tl::BN;
        unsigned image;
        int qd, qh, qw;
        if (m >= p.group_out || !where.split(e % Tl::BN, image, qd, qh, qw)) continue;
        const unsigned channel = group * p.group_out + m;
        const Residue &r = where.residue;
        T sum = T(0);
        if (split == 0)
            sum = transpose_sum(x, w, p, image, channel, qd * (int)p.stride[0] + r.at[0], qh * (int)p.stride[1] + r.at[1],
                                qw * (int)p.stride[2] + r.at[2]);
        if (p.splits == 1) {
            if (bias) sum += bias[channel];
            sum = activate(sum, p.act, p0, p1);
        }
        d[where(e % Tl::BN) + channel * plane] = sum;
    }
}

template <class Tl>
WW_INLINE void transpose_tile(const typename Tl::T *x, const typename Tl::T *w, const typename Tl::T *packed,
                              const typename Tl::T *bias, typename Tl::T *d, const unsigned *flag, typename Tl::T p0,
                              typename Tl::T p1, const Conv &p) {
    using T = typename Tl::T;
    static_assert(Tl::BK == CONV_BK, "packed weights");
    __shared__ __align__(16) T shared[Tl::SHARED];
    const unsigned tiles_m = (p.group_out + Tl::BM - 1) / Tl::BM, tiles_n = (p.pixels + Tl::BN - 1) / Tl::BN, tiles = tiles_m * tiles_n;
    const unsigned at = blockIdx.x / tiles, split = at % p.splits, rest = at / p.splits, group = rest % p.groups;
    const unsigned tile = blockIdx.x % tiles, m0 = tile % tiles_m * Tl::BM, column0 = tile / tiles_m * Tl::BN;
    ConvCursor cursor;
    const Residue residue(rest / p.groups, p, cursor);
    const unsigned pixels = p.images * residue.size[0] * residue.size[1] * residue.size[2];
    if (column0 >= pixels) return;
    const TransposeWhere where{column0, pixels, residue, p};
    d += split * p.d_split.get();
    if (*flag) {
        transpose_tile_direct<Tl>(x, w, bias, d, p0, p1, p, group, m0, split, where);
        return;
    }
    // Tiles per split differ between residues: each spreads its own.
    const int all = p.channel_blocks * cursor.axis[0].count * cursor.axis[1].count * cursor.axis[2].count;
    const int per_split = (all + (int)p.splits - 1) / (int)p.splits, first = split * per_split;
    const int count = all - first < per_split ? all - first : per_split;
    if (count > 0) cursor.seek(first);
    WeightLoader<T, Tl::BM, Tl::BK, Tl::THREADS> load_a(packed, group, m0, cursor, p);
    TapLoader<T, Tl::BN, Tl::BK, Tl::THREADS> load_b(cursor, p);
    unsigned image = 0;
    int qd = 0, qh = 0, qw = 0;
    const bool valid = where.split(load_b.column(), image, qd, qh, qw);
    load_b.place(x, group, image, valid, qd + residue.start[0], qh + residue.start[1], qw + residue.start[2]);
    T acc[Tl::TM][Tl::TN];
    multiply_tiles<Tl>(acc, shared, load_a, load_b, count);
    conv_finish<Tl>(acc, bias, d, p0, p1, p, group, m0, (long long)p.out[0] * p.out[1] * p.out[2], false, where);
}

// One thread an element of the packed weights.
template <class T> WW_INLINE void transpose_pack(const T *w, T *packed, unsigned *flag, const Conv &p) {
    const unsigned taps = conv_taps(p), channels = p.channel_blocks * CONV_BK;
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= (unsigned long long)p.groups * channels * taps * p.m_pad) return;
    const unsigned m = (unsigned)(i % p.m_pad);
    const unsigned long long rest = i / p.m_pad, all = rest / taps;
    const unsigned tap = (unsigned)(rest % taps), c = (unsigned)(all % channels), group = (unsigned)(all / channels);
    T v = T(0);
    if (c < p.group_in && m < p.group_out) v = w[(((long long)group * p.group_in + c) * p.group_out + m) * taps + tap];
    if (!(v - v == T(0))) *flag = 1;
    const unsigned long long row = ((all / CONV_BK) * taps + tap) * CONV_BK + c % CONV_BK;
    packed[row * p.m_pad + m] = v;
}

template <class T> WW_INLINE void transpose_direct(const T *x, const T *w, const T *bias, T *d, T p0, T p1, const Conv &p) {
    const unsigned plane = p.out[0] * p.out[1] * p.out[2], channels = p.groups * p.group_out;
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= (unsigned long long)p.images * channels * plane) return;
    const unsigned long long all = i / plane;
    const unsigned pixel = (unsigned)(i - all * plane), channel = (unsigned)(all % channels), row = pixel / p.out[2];
    T sum = transpose_sum(x, w, p, (unsigned)(all / channels), channel, row / p.out[1], row % p.out[1], pixel % p.out[2]);
    if (bias) sum += bias[channel];
    d[i] = activate(sum, p.act, p0, p1);
}

#define TRANSPOSE_TILE(NAME, BLOCKS, T, ...)                                                                               \
    extern "C" __global__ void __launch_bounds__(Tile<T, __VA_ARGS__>::THREADS, BLOCKS)                                    \
        NAME(const T *x, const T *w, const T *packed, const T *bias, T *d, const unsigned *flag, T p0, T p1, Conv p) {     \
        transpose_tile<Tile<T, __VA_ARGS__>>(x, w, packed, bias, d, flag, p0, p1, p);                                      \
    }
#define TRANSPOSE_COMMON(T, N)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        conv_transpose_##N##_pack(const T *w, T *packed, unsigned *flag, Conv p) {                                         \
        transpose_pack(w, packed, flag, p);                                                                                \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        conv_transpose_##N##_direct(const T *x, const T *w, const T *bias, T *d, T p0, T p1, Conv p) {                     \
        transpose_direct(x, w, bias, d, p0, p1, p);                                                                        \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        conv_transpose_##N##_reduce(const T *partial, const T *bias, T *d, T p0, T p1, Conv p) {                           \
        conv_reduce(partial, bias, d, p0, p1, p);                                                                          \
    }

#if __CUDA_ARCH__ >= 800
#define BLOCKS_64 4
#define F64_BLOCKS 3
#else
#define BLOCKS_64 3
#define F64_BLOCKS 2
#endif

TRANSPOSE_TILE(conv_transpose_f32_64x64, BLOCKS_64, float, 64, 64, 8, 4)
TRANSPOSE_TILE(conv_transpose_f32_32x32, 8, float, 32, 32, 4, 4)
TRANSPOSE_TILE(conv_transpose_f64_32x32, 6, double, 32, 32, 4, 4)
TRANSPOSE_COMMON(float, f32)
TRANSPOSE_COMMON(double, f64)
