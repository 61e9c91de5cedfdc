// Convolution as a matrix product: rows are a group's output channels, columns the output pixels of all images, k runs
// over blocks of 16 input channels and, inside a block, over the taps. Padded taps are zeros that multiply.
#pragma once
#include "activation.cuh"
#include "gemm_tile.cuh"

enum : unsigned { CONV_POINTWISE_VECTORS = 1, CONV_VECTOR_D = 2 };
constexpr int CONV_BK = 16;

// Depth, height, width in this order; 1-d and 2-d have leading ones.
struct Conv {
    unsigned images, groups, group_in, group_out, in[3], out[3], kernel[3], stride[3], dilation[3];
    int pad[3];
    unsigned flags, act, splits, split_tiles, channel_blocks, m_pad, pixels, residues;
    Wide d_split;
};

WW_INLINE unsigned conv_taps(const Conv &p) { return p.kernel[0] * p.kernel[1] * p.kernel[2]; }

// One dim of a product's geometry: input index = column's origin + step * t for t in 0..count, weight tap = first + pitch * t.
struct ConvAxis {
    int step, count, first, pitch;
};

// The K tile that comes next; shared by both loaders, advanced by the second.
struct ConvCursor {
    ConvAxis axis[3];
    int at[3];
    unsigned block;

    WW_INLINE void seek(unsigned tile) {
        const unsigned w = axis[2].count, h = axis[1].count, d = axis[0].count, taps = d * h * w;
        block = tile / taps;
        unsigned tap = tile - block * taps;
        at[2] = tap % w;
        tap /= w;
        at[1] = tap % h;
        at[0] = tap / h;
    }
    WW_INLINE void advance() {
        if (++at[2] < axis[2].count) return;
        at[2] = 0;
        if (++at[1] < axis[1].count) return;
        at[1] = 0;
        if (++at[0] < axis[0].count) return;
        at[0] = 0;
        ++block;
    }
    WW_INLINE unsigned weight_tile(const Conv &p) const {
        const unsigned d = axis[0].first + axis[0].pitch * at[0], h = axis[1].first + axis[1].pitch * at[1];
        return ((block * p.kernel[0] + d) * p.kernel[1] + h) * p.kernel[2] + axis[2].first + axis[2].pitch * at[2];
    }
};

// Packed weights: [group][channel block][tap][16][m_pad], zeros beyond the channels.
template <class T, int BM, int BK, int THREADS> struct WeightLoader {
    static constexpr int COUNT = BM * BK / THREADS, VEC = 16 / sizeof(T), WIDTH = BM / VEC, K_STEP = THREADS / WIDTH;
    static constexpr int PITCH = BM + VEC;
    static_assert(COUNT % VEC == 0 && THREADS % WIDTH == 0, "tile shape");
    Mover<T, COUNT> mover;
    const T *src;
    unsigned dst, bytes;
    const ConvCursor &cursor;
    const Conv &p;

    WW_INLINE WeightLoader(const T *packed, unsigned group, unsigned m0, const ConvCursor &cursor_, const Conv &p_)
        : cursor(cursor_), p(p_) {
        const unsigned m = threadIdx.x % WIDTH * VEC, k = threadIdx.x / WIDTH;
        src = packed + (long long)group * p.channel_blocks * conv_taps(p) * BK * p.m_pad + k * p.m_pad + m0 + m;
        bytes = m0 + m < p.m_pad ? 16 : 0;
        dst = (k * PITCH + m) * sizeof(T);
    }
    WW_INLINE void fetch(unsigned stage) {
        const char *from = (const char *)(src + (long long)cursor.weight_tile(p) * (BK * p.m_pad));
#pragma unroll
        for (int i = 0; i < COUNT / VEC; ++i)
            mover.put_vector(i, stage + dst + i * K_STEP * PITCH * (unsigned)sizeof(T), from + (long long)i * K_STEP * p.m_pad * sizeof(T), bytes);
    }
    WW_INLINE void flush(unsigned stage) { mover.flush(stage + dst, K_STEP * PITCH * sizeof(T), true); }
};

// The input seen through one tap: a thread has one pixel (or one vector of pixels, for pointwise products) and some
// channels of the block.
template <class T, int BN, int BK, int THREADS> struct TapLoader {
    static constexpr int COUNT = BN * BK / THREADS, VEC = 16 / sizeof(T), PITCH = BN + VEC;
    static constexpr int K_STEP = THREADS / BN, ROW = PITCH * sizeof(T);
    static_assert(THREADS % BN == 0 && COUNT % VEC == 0, "tile shape");
    Mover<T, COUNT> mover;
    const T *src;
    long long plane;
    int origin[3];
    unsigned dst;
    int k_first;
    bool vectors;
    ConvCursor &cursor;
    const Conv &p;

    WW_INLINE TapLoader(ConvCursor &cursor_, const Conv &p_) : cursor(cursor_), p(p_) {
        vectors = p.flags & CONV_POINTWISE_VECTORS;
        k_first = threadIdx.x / (vectors ? BN / VEC : BN);
        dst = (k_first * PITCH + column()) * sizeof(T);
        plane = (long long)p.in[0] * p.in[1] * p.in[2];
    }
    WW_INLINE int column() const { return vectors ? threadIdx.x % (BN / VEC) * VEC : threadIdx.x % BN; }
    WW_INLINE void place(const T *x, unsigned group, unsigned image, bool valid, int d, int h, int w) {
        // A column beyond the last pixel sees nothing but padding.
        origin[0] = d, origin[1] = h, origin[2] = valid ? w : -(1 << 30);
        src = x + (((long long)image * p.groups + group) * p.group_in + k_first) * plane;
    }
    WW_INLINE void fetch(unsigned stage) {
        const int d = origin[0] + cursor.at[0] * cursor.axis[0].step, h = origin[1] + cursor.at[1] * cursor.axis[1].step;
        const int w = origin[2] + cursor.at[2] * cursor.axis[2].step;
        const bool in = (unsigned)d < p.in[0] && (unsigned)h < p.in[1] && (unsigned)w < p.in[2];
        const int room = in ? (int)(p.group_in - cursor.block * BK) - k_first : 0;
        const char *from = (const char *)(src + cursor.block * BK * plane + ((long long)d * p.in[1] + h) * p.in[2] + w);
        const long long step = K_STEP * plane * sizeof(T);
        const unsigned to = stage + dst;
        if (vectors) {
#pragma unroll
            for (int i = 0; i < COUNT / VEC; ++i, from += VEC * step)
                mover.put_vector(i, to + i * VEC * K_STEP * ROW, from, i * VEC * K_STEP < room ? 16 : 0);
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; ++i, from += step) mover.put(i, to + i * K_STEP * ROW, from, i * K_STEP < room);
        }
        cursor.advance();
    }
    WW_INLINE void flush(unsigned stage) { mover.flush(stage + dst, (vectors ? VEC : 1) * K_STEP * ROW, vectors); }
};

// Few input channels: k runs as the weights lie in memory, (channel, tap), and a table in shared memory, made one tile
// ahead, says where each k looks. Its threads meet at a barrier before the first fetch and between fetches.
template <class T, int BN, int BK, int THREADS> struct TableLoader {
    static constexpr int COUNT = BN * BK / THREADS, VEC = 16 / sizeof(T), PITCH = BN + VEC, K_STEP = THREADS / BN;
    static_assert(THREADS % BN == 0 && THREADS >= BK, "tile shape");
    struct Table {
        long long offset[2][BK];
        int4 tap[2][BK];
    };
    Mover<T, COUNT> mover;
    const T *src;
    int origin[3];
    unsigned dst, k_next;
    int k_first, buffer;
    bool valid;
    Table &table;
    const Conv &p;

    WW_INLINE TableLoader(Table &table_, const Conv &p_, unsigned k_begin) : table(table_), p(p_) {
        k_first = threadIdx.x / BN;
        dst = (k_first * PITCH + column()) * sizeof(T);
        k_next = k_begin;
        buffer = 0;
        tabulate();
    }
    WW_INLINE int column() const { return threadIdx.x % BN; }
    WW_INLINE void place(const T *x, unsigned group, unsigned image, bool valid_, int d, int h, int w) {
        valid = valid_;
        origin[0] = d, origin[1] = h, origin[2] = w;
        const long long plane = (long long)p.in[0] * p.in[1] * p.in[2];
        src = x + ((long long)image * p.groups + group) * p.group_in * plane + ((long long)d * p.in[1] + h) * p.in[2] + w;
    }
    WW_INLINE void tabulate() {
        if (threadIdx.x < BK) {
            const unsigned k = k_next + threadIdx.x;
            const unsigned w = k % p.kernel[2], row = k / p.kernel[2], h = row % p.kernel[1], rest = row / p.kernel[1];
            const unsigned d = rest % p.kernel[0], c = rest / p.kernel[0];
            const int4 tap = make_int4(d * p.dilation[0], h * p.dilation[1], w * p.dilation[2], c < p.group_in);
            table.tap[buffer][threadIdx.x] = tap;
            table.offset[buffer][threadIdx.x] = (((long long)c * p.in[0] + tap.x) * p.in[1] + tap.y) * p.in[2] + tap.z;
        }
        k_next += BK;
    }
    WW_INLINE void fetch(unsigned stage) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int4 tap = table.tap[buffer][k_first + i * K_STEP];
            const bool in = valid && tap.w && (unsigned)(origin[0] + tap.x) < p.in[0] && (unsigned)(origin[1] + tap.y) < p.in[1] &&
                            (unsigned)(origin[2] + tap.z) < p.in[2];
            mover.put(i, stage + dst + i * K_STEP * PITCH * (unsigned)sizeof(T),
                      (const char *)(src + table.offset[buffer][k_first + i * K_STEP]), in);
        }
        buffer ^= 1;
        tabulate();
    }
    WW_INLINE void flush(unsigned stage) { mover.flush(stage + dst, K_STEP * PITCH * sizeof(T), false); }
};

// Column of the product to its place in one image's output channel.
struct ForwardWhere {
    unsigned column0, pixels, plane;
    long long image_step;
    WW_INLINE long long operator()(int column) const {
        const unsigned j = column0 + column;
        if (j >= pixels) return -1;
        const unsigned image = j / plane;
        return image * image_step + (j - image * plane);
    }
};

// Starts a loader at the thread's pixel.
template <class T, class Loader>
WW_INLINE void start_pixel(Loader &load, const T *x, const Conv &p, unsigned group, unsigned column0) {
    unsigned j = column0 + load.column();
    const bool valid = j < p.pixels;
    const unsigned w = j % p.out[2], row = j / p.out[2], h = row % p.out[1], rest = row / p.out[1];
    const unsigned d = rest % p.out[0], image = rest / p.out[0];
    load.place(x, group, valid ? image : 0, valid, (int)(d * p.stride[0]) - p.pad[0], (int)(h * p.stride[1]) - p.pad[1],
               (int)(w * p.stride[2]) - p.pad[2]);
}

// bias and activation over one thread's outputs. `where(column)` gives the pixel's offset in d for channel 0, or a
// negative number beyond the last pixel; channels lie `plane` apart.
template <class Tl, class Where>
WW_INLINE void conv_finish(typename Tl::T (&acc)[Tl::TM][Tl::TN], const typename Tl::T *bias, typename Tl::T *d,
                           typename Tl::T p0, typename Tl::T p1, const Conv &p, unsigned group, unsigned m0,
                           long long plane, bool vectors, Where where) {
    using T = typename Tl::T;
    constexpr int VEC = Tl::VEC;
    const Place<Tl> place;
    const bool plain = p.splits > 1;
    const unsigned row = m0 + place.row;
    long long offset[Tl::TN];
#pragma unroll
    for (int j = 0; j < Tl::TN; ++j)
        if (j % VEC == 0 || !vectors) offset[j] = where(place.column + Place<Tl>::column_offset(j));
#pragma unroll
    for (int i = 0; i < Tl::TM; ++i) {
        const unsigned r = row + Place<Tl>::row_offset(i), channel = group * p.group_out + r;
        if (r >= p.group_out) continue;
        // Always added, so that no store of vectors says in which registers the sums are kept. A sum that underflowed to -0
        // becomes 0.
        const T b = bias && !plain ? bias[channel] : T(0);
#pragma unroll
        for (int j = 0; j < Tl::TN; ++j) acc[i][j] += b;
        if (!plain) activate_short(acc[i], p.act, p0, p1);
        T *to = d + channel * plane;
        if (vectors) {
#pragma unroll
            for (int g = 0; g < Tl::TN; g += VEC)
                if (offset[g] >= 0) store_vector(to + offset[g], &acc[i][g]);
        } else {
#pragma unroll
            for (int j = 0; j < Tl::TN; ++j)
                if (offset[j] >= 0) to[offset[j]] = acc[i][j];
        }
    }
    if (plain || p.act < ACT_SIGMOID) return;
    for (int e = 0; e < Tl::TM * Tl::TN; ++e) {
        const unsigned r = row + Place<Tl>::row_offset(e / Tl::TN);
        const long long at = where(place.column + Place<Tl>::column_offset(e % Tl::TN));
        if (r < p.group_out && at >= 0) {
            T *to = d + (group * p.group_out + r) * plane + at;
            *to = activate(*to, p.act, p0, p1);
        }
    }
}

// Sums the splits in order; one thread an output. `plane` is the number of pixels of one output channel.
template <class T>
WW_INLINE void conv_reduce(const T *partial, const T *bias, T *d, T p0, T p1, const Conv &p) {
    const unsigned plane = p.out[0] * p.out[1] * p.out[2], channels = p.groups * p.group_out;
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= (unsigned long long)p.images * channels * plane) return;
    T sum = T(0);
#pragma unroll 8
    for (unsigned s = 0; s < p.splits; ++s) sum += partial[s * p.d_split.get() + i];
    if (bias) sum += bias[i / plane % channels];
    d[i] = activate(sum, p.act, p0, p1);
}
