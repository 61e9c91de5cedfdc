// levels: sm_75 sm_80
// Convolution forward, x [images, channels, (D, H,) W], w [channels out, channels in / groups, (kD, kH,) kW], bias, activation;
// accumulated in the element type by one FMA chain per output and split.
//   conv_*_pack       weights to [group][channel block][tap][16][m_pad], 256 threads, 32 x 32 elements a block
//   conv_*_<tile>     implicit product over packed weights; grid.x = row tiles * column tiles * splits * groups
//   conv_*_table_<tile>  the same over weights as they are, for few input channels
//   conv_*_direct     one thread an output (few channels per group)
//   conv_*_reduce     sums splits: with splits > 1 the product writes [split] copies of the output to a workspace
#include "common/conv_tile.cuh"

template <class Tl, bool TABLE>
WW_INLINE void conv_tile(const typename Tl::T *x, const typename Tl::T *w, const typename Tl::T *bias, typename Tl::T *d,
                         typename Tl::T p0, typename Tl::T p1, const Conv &p) {
    using T = typename Tl::T;
    using Table = TableLoader<T, Tl::BN, Tl::BK, Tl::THREADS>;
    static_assert(Tl::BK == CONV_BK, "packed weights");
    __shared__ __align__(16) T shared[Tl::SHARED];
    const unsigned tiles_m = (p.group_out + Tl::BM - 1) / Tl::BM, tiles_n = (p.pixels + Tl::BN - 1) / Tl::BN, tiles = tiles_m * tiles_n;
    const unsigned at = blockIdx.x / tiles, split = at % p.splits, group = at / p.splits;
    const unsigned tile = blockIdx.x % tiles, m0 = tile % tiles_m * Tl::BM, column0 = tile / tiles_m * Tl::BN;
    const unsigned taps = conv_taps(p), k_total = p.group_in * taps;
    const unsigned all = TABLE ? (k_total + Tl::BK - 1) / Tl::BK : p.channel_blocks * taps, first = split * p.split_tiles;
    const int count = (int)(all - first < p.split_tiles ? all - first : p.split_tiles);
    T acc[Tl::TM][Tl::TN];
    if constexpr (TABLE) {
        __shared__ typename Table::Table table;
        Table load_b(table, p, first * Tl::BK);
        __syncthreads();
        start_pixel(load_b, x, p, group, column0);
        MatrixLoader<T, Tl::BM, Tl::BK, Tl::THREADS> load_a;
        load_a.init(w + (long long)group * p.group_out * k_total, k_total, true, false, m0, p.group_out, first * Tl::BK, k_total);
        multiply_tiles<Tl>(acc, shared, load_a, load_b, count);
    } else {
        ConvCursor cursor;
#pragma unroll
        for (int i = 0; i < 3; ++i) cursor.axis[i] = ConvAxis{(int)p.dilation[i], (int)p.kernel[i], 0, 1};
        cursor.seek(first);
        WeightLoader<T, Tl::BM, Tl::BK, Tl::THREADS> load_a(w, group, m0, cursor, p);
        TapLoader<T, Tl::BN, Tl::BK, Tl::THREADS> load_b(cursor, p);
        start_pixel(load_b, x, p, group, column0);
        multiply_tiles<Tl>(acc, shared, load_a, load_b, count);
    }
    const unsigned plane = p.out[0] * p.out[1] * p.out[2];
    const ForwardWhere where{column0, p.pixels, plane, (long long)p.groups * p.group_out * plane};
    conv_finish<Tl>(acc, bias, d + split * p.d_split.get(), p0, p1, p, group, m0, plane, p.flags & CONV_VECTOR_D, where);
}

// Blocks: groups * ceil(m_pad / 32) * ceil(channel blocks * 16 * taps / 32).
template <class T> WW_INLINE void conv_pack(const T *w, T *packed, const Conv &p) {
    __shared__ T tile[32][33];
    const unsigned taps = conv_taps(p), k_in = p.group_in * taps, k_all = p.channel_blocks * CONV_BK * taps;
    const unsigned k_blocks = (k_all + 31) / 32, m_blocks = (p.m_pad + 31) / 32;
    const unsigned k0 = blockIdx.x % k_blocks * 32, rest = blockIdx.x / k_blocks, m0 = rest % m_blocks * 32, group = rest / m_blocks;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int r = warp; r < 32; r += 8) {
        const unsigned m = m0 + r, k = k0 + lane;
        tile[r][lane] = m < p.group_out && k < k_in ? w[((long long)group * p.group_out + m) * k_in + k] : T(0);
    }
    __syncthreads();
    for (int r = warp; r < 32; r += 8) {
        const unsigned m = m0 + lane, k = k0 + r, c = k / taps, tap = k - c * taps;
        if (m < p.m_pad && k < k_all) {
            const unsigned row = ((group * p.channel_blocks + c / CONV_BK) * taps + tap) * CONV_BK + c % CONV_BK;
            packed[(long long)row * p.m_pad + m] = tile[lane][r];
        }
    }
}

template <class T> WW_INLINE void conv_direct(const T *x, const T *w, const T *bias, T *d, T p0, T p1, const Conv &p) {
    const unsigned plane = p.out[0] * p.out[1] * p.out[2], channels = p.groups * p.group_out;
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= (unsigned long long)p.images * channels * plane) return;
    const unsigned long long all = i / plane;
    const unsigned pixel = (unsigned)(i - all * plane), channel = (unsigned)(all % channels), image = (unsigned)(all / channels);
    const unsigned ow = pixel % p.out[2], row = pixel / p.out[2];
    const int w0 = (int)(ow * p.stride[2]) - p.pad[2], h0 = (int)(row % p.out[1] * p.stride[1]) - p.pad[1];
    const int d0 = (int)(row / p.out[1] * p.stride[0]) - p.pad[0];
    const long long in_plane = (long long)p.in[0] * p.in[1] * p.in[2];
    const T *from = x + ((long long)image * p.groups + channel / p.group_out) * p.group_in * in_plane;
    const T *weight = w + (long long)channel * p.group_in * conv_taps(p);
    T sum = T(0);
    for (unsigned c = 0; c < p.group_in; ++c, from += in_plane)
        for (unsigned kd = 0; kd < p.kernel[0]; ++kd)
            for (unsigned kh = 0; kh < p.kernel[1]; ++kh) {
                const int z = d0 + (int)(kd * p.dilation[0]), y = h0 + (int)(kh * p.dilation[1]);
                const bool in = (unsigned)z < p.in[0] && (unsigned)y < p.in[1];
                const T *line = from + ((long long)z * p.in[1] + y) * p.in[2];
                for (unsigned kw = 0; kw < p.kernel[2]; ++kw) {
                    const int q = w0 + (int)(kw * p.dilation[2]);
                    sum = ww_fma(in && (unsigned)q < p.in[2] ? line[q] : T(0), *weight++, sum);
                }
            }
    if (bias) sum += bias[channel];
    d[i] = activate(sum, p.act, p0, p1);
}

#define CONV_ARGS(T) const T *x, const T *w, const T *bias, T *d, T p0, T p1, Conv p
#define CONV_TILE(NAME, BLOCKS, TABLE, T, ...)                                                                             \
    extern "C" __global__ void __launch_bounds__(Tile<T, __VA_ARGS__>::THREADS, BLOCKS) NAME(CONV_ARGS(T)) {               \
        conv_tile<Tile<T, __VA_ARGS__>, TABLE>(x, w, bias, d, p0, p1, p);                                                  \
    }
#define CONV_COMMON(T, N)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) conv_##N##_pack(const T *w, T *packed, Conv p) {                     \
        conv_pack(w, packed, p);                                                                                           \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                      \
        conv_##N##_reduce(const T *partial, const T *bias, T *d, T p0, T p1, Conv p) {                                     \
        conv_reduce(partial, bias, d, p0, p1, p);                                                                          \
    }                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) conv_##N##_direct(CONV_ARGS(T)) {                                    \
        conv_direct(x, w, bias, d, p0, p1, p);                                                                             \
    }

#if __CUDA_ARCH__ >= 800
#define F64_BLOCKS 3
#else
#define F64_BLOCKS 2
#endif

CONV_TILE(conv_f32_64x128, 3, false, float, 64, 128, 8, 8)
CONV_TILE(conv_f32_64x64, 4, false, float, 64, 64, 8, 4)
CONV_TILE(conv_f32_32x128, 4, false, float, 32, 128, 8, 4)
CONV_TILE(conv_f32_32x32, 8, false, float, 32, 32, 4, 4)
CONV_TILE(conv_f32_table_64x128, 3, true, float, 64, 128, 8, 8)
CONV_TILE(conv_f32_table_64x64, 4, true, float, 64, 64, 8, 4)
CONV_TILE(conv_f32_table_32x32, 8, true, float, 32, 32, 4, 4)
CONV_TILE(conv_f64_64x64, F64_BLOCKS, false, double, 64, 64, 8, 4)
CONV_TILE(conv_f64_32x32, 6, false, double, 32, 32, 4, 4)
CONV_TILE(conv_f64_table_32x32, 5, true, double, 32, 32, 4, 4)
CONV_COMMON(float, f32)
CONV_COMMON(double, f64)
