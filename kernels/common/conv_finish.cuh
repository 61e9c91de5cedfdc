// The end of split convolutions (conv_split.cu): bias, residual, activation; results as float32 and as planes. A party is
// what finishes rows together: a warpgroup with 64, or a warp with 16 where the blocks of a cluster share a tile.
#pragma once
#include "conv_stream.cuh"

template <int ROWS_> struct ConvParty {
    static constexpr unsigned ROWS = ROWS_, THREADS = ROWS * 2, COLUMNS = 32, PITCH = ROWS + 4, BYTES = COLUMNS * PITCH * 4;
    // Room in shared memory for 32 columns of its rows; of each warp, for a plane of 16 rows.
    unsigned room, row0, column0;

    static WW_INLINE unsigned thread() { return threadIdx.x & (THREADS - 1); }
    static WW_INLINE unsigned warp() { return ROWS == 64 ? threadIdx.x >> 5 & 3 : 0; }
    static WW_INLINE void sync() {
        if constexpr (ROWS == 64)
            asm volatile("bar.sync %0, 128;" ::"r"(4 + (threadIdx.x >> 7)) : "memory");
        else
            __syncwarp();
    }
    WW_INLINE unsigned place(unsigned row, unsigned column) const { return room + (column * PITCH + row) * 4; }
    // The chunk of eight channels of a row of the warp's plane, swizzled.
    WW_INLINE unsigned chunk(unsigned row, unsigned at) const { return room + warp() * 2176 + row * 128 + (at ^ (row & 7)) * 16; }
    WW_INLINE unsigned warp_row() const { return row0 + warp() * 16; }
};

WW_INLINE void shared_put(unsigned address, float v) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(v) : "memory"); }
WW_INLINE void shared_put(unsigned address, unsigned v) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(v) : "memory"); }
WW_INLINE void shared_put(unsigned address, const uint4 &v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

WW_INLINE float shared_float(unsigned address) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address) : "memory");
    return v;
}

WW_INLINE unsigned shared_word(unsigned address) {
    unsigned v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
    return v;
}

WW_INLINE uint4 shared_four(unsigned address) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
    return v;
}

// Where pixel `row` of filter 0 lies; null beyond the last one.
WW_INLINE float *conv_place(float *d, unsigned row, const Conv &p) {
    const unsigned plane = p.out[0] * p.out[1] * p.out[2], image = row / plane;
    return row < p.pixels ? d + ((unsigned long long)image * p.group_out * plane + (row - image * plane)) : nullptr;
}

// 32 staged columns, from filter `column0` on, as float32.
template <int ROWS> WW_INLINE void conv_write(const ConvParty<ROWS> &party, unsigned column0, const ConvOut &out, const Conv &p) {
    const unsigned long long plane = p.out[0] * p.out[1] * p.out[2];
    const unsigned tid = party.thread();
    const bool lengthy = p.act >= ACT_SIGMOID;
    if ((p.flags & CONV_VECTOR_D) && !lengthy) {
        const unsigned row = tid % (ROWS / 4) * 4;
        float *const to = conv_place(out.d, party.row0 + row, p);
        if (!to) return;
#pragma unroll
        for (unsigned c = tid / (ROWS / 4); c < party.COLUMNS; c += 8) {
            if (column0 + c < p.group_out) *(uint4 *)(to + (column0 + c) * plane) = shared_four(party.place(row, c));
        }
        return;
    }
    const unsigned row = tid % ROWS;
    float *const to = conv_place(out.d, party.row0 + row, p);
    if (!to) return;
    if (lengthy) {
#pragma unroll 1
        for (unsigned c = tid / ROWS; c < party.COLUMNS; c += 2)
            if (column0 + c < p.group_out) to[(column0 + c) * plane] = activate(shared_float(party.place(row, c)), p.act, out.p0, out.p1);
    } else {
#pragma unroll
        for (unsigned c = tid / ROWS; c < party.COLUMNS; c += 2)
            if (column0 + c < p.group_out) to[(column0 + c) * plane] = shared_float(party.place(row, c));
    }
}

template <int R, int ROWS> WW_INLINE void conv_floats(const float (&v)[R], const ConvParty<ROWS> &party, const ConvOut &out, const Conv &p) {
    constexpr int PIECE = ConvParty<ROWS>::COLUMNS / 2;
    const unsigned lane = threadIdx.x & 31, row = party.warp() * 16 + (lane >> 2), column = (lane & 3) * 2;
#pragma unroll
    for (int done = 0; done < R; done += PIECE) {
        party.sync();
#pragma unroll
        for (int i = 0; i < PIECE; ++i) shared_put(party.place(row + (i >> 1 & 1) * 8, column + (i >> 2) * 8 + (i & 1)), v[done + i]);
        party.sync();
        conv_write(party, party.column0 + done * 2, out, p);
    }
}

// Chunks of eight channels of a warp's rows between memory and its room: pixel `at`, channel `c` of a plane.
struct ConvChunk {
    unsigned row, index;
    unsigned long long offset;
    bool there;

    template <int ROWS> WW_INLINE ConvChunk(const ConvParty<ROWS> &party, unsigned i, unsigned plane, const ConvSplit &p) {
        const unsigned lane = threadIdx.x & 31;
        row = i * 4 + (lane >> 3), index = lane & 7;
        const unsigned at = party.warp_row() + row, c = party.column0 + index * 8;
        there = at < p.conv.pixels && c < p.pitch_d;
        offset = ((unsigned long long)plane * p.conv.pixels + at) * p.pitch_d + c;
    }
};

// Adds the residual. Fragment i is of row (i >> 1 & 1) * 8 + lane / 4 and columns (i >> 2) * 8 + lane % 4 * 2 + (i & 1).
template <int R, int ROWS> WW_INLINE void conv_residual(float (&v)[R], const ConvParty<ROWS> &party, const ConvSource &from, const ConvSplit &p) {
    const unsigned lane = threadIdx.x & 31, row = lane >> 2;
    uint4 chunks[2][4];
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
        const ConvChunk chunk(party, i & 3, i >> 2, p);
        chunks[i >> 2][i & 3] = chunk.there ? *(const uint4 *)(from.residual + chunk.offset) : uint4{0, 0, 0, 0};
    }
    float scale[2];
    const float *const scales = from.residual_scales + (unsigned long long)(party.column0 / CONV_CHANNELS) * p.conv.pixels;
#pragma unroll
    for (unsigned h = 0; h < 2; ++h) {
        const unsigned at = party.warp_row() + row + h * 8;
        scale[h] = at < p.conv.pixels ? scales[at] : 0.0f;
    }
    unsigned words[2][R / 2];
#pragma unroll
    for (unsigned plane = 0; plane < 2; ++plane) {
        __syncwarp();
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) shared_put(party.chunk(i * 4 + (lane >> 3), lane & 7), chunks[plane][i]);
        __syncwarp();
#pragma unroll
        for (unsigned i = 0; i < R / 2; ++i) words[plane][i] = shared_word(party.chunk(row + (i & 1) * 8, i >> 1) + (lane & 3) * 4);
    }
#pragma unroll
    for (unsigned i = 0; i < R / 2; ++i) {
        const float2 hi = halves_of(words[0][i]), lo = halves_of(words[1][i]);
        v[i * 2] += conv_value(hi.x, lo.x, scale[i & 1]);
        v[i * 2 + 1] += conv_value(hi.y, lo.y, scale[i & 1]);
    }
}

// The exponent of a pixel's scale from the largest finite magnitude of its 64 channels, and as the range takes it.
WW_INLINE int conv_exponent(unsigned most, bool finite, unsigned &range) {
    const int e = max(split_exponent(most), CONV_LEAST);
    const unsigned counts = biased(finite && e <= CONV_MOST ? e : SPLIT_SPECIAL);
    if (most || !finite) range = max(range, counts);
    return e;
}

// The largest magnitude below a limit, as bits, of a row of 64 channels that four lanes have; h as in the fragment's number.
template <int R> WW_INLINE unsigned largest_of(const float (&v)[R], int h, unsigned limit) {
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < R; ++i) {
        if ((i >> 1 & 1) != h) continue;
        const unsigned m = magnitude(v[i]);
        most = max(most, m < limit ? m : 0u);
    }
#pragma unroll
    for (int step = 1; step < 4; step *= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, step));
    return most;
}

// Results as planes; `raised` is what this warp has raised the range to. Unlike those of conv_planes.cu they hold what is not finite, in the high one.
template <int R, int ROWS> WW_INLINE void conv_planes(float (&v)[R], const ConvParty<ROWS> &party, const ConvOut &out, const ConvSplit &p, unsigned &raised) {
    const unsigned lane = threadIdx.x & 31, row = lane >> 2, column = party.column0 + (lane & 3) * 2;
    if (party.column0 + CONV_CHANNELS > p.conv.group_out) {
#pragma unroll
        for (int i = 0; i < R; ++i)
            if (column + (i >> 2) * 8 + (i & 1) >= p.conv.group_out) v[i] = 0.0f;
    }
    unsigned words[2][R / 2], range = 0;
#pragma unroll
    for (unsigned h = 0; h < 2; ++h) {
        unsigned most = largest_of<R>(v, h, ~0u);
        const bool finite = most < 0x7f800000u;
        if (__any_sync(0xffffffffu, !finite)) most = largest_of<R>(v, h, 0x7f800000u);
        const int e = conv_exponent(most, finite, range);
        const unsigned at = party.warp_row() + row + h * 8;
        if ((lane & 3) == 0 && at < p.conv.pixels)
            out.scales[(unsigned long long)(party.column0 / CONV_CHANNELS) * p.conv.pixels + at] = power_of_two(e);
        const float scale = power_of_two(-e);
#pragma unroll
        for (int i = 0; i < R / 4; ++i) split_two(v[i * 4 + h * 2] * scale, v[i * 4 + h * 2 + 1] * scale, words[0][i * 2 + h], words[1][i * 2 + h]);
    }
    range = __reduce_max_sync(0xffffffffu, range);
    if (range > raised && lane == 0) Range::raise(out.range, Range::EXPONENT, p.epoch_d, range);
    raised = max(raised, range);
#pragma unroll
    for (unsigned plane = 0; plane < 2; ++plane) {
        __syncwarp();
#pragma unroll
        for (unsigned i = 0; i < R / 2; ++i) shared_put(party.chunk(row + (i & 1) * 8, i >> 1) + (lane & 3) * 4, words[plane][i]);
        __syncwarp();
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            const ConvChunk chunk(party, i, plane, p);
            if (chunk.there) *(uint4 *)(out.planes + chunk.offset) = shared_four(party.chunk(chunk.row, chunk.index));
        }
    }
}

// A party's sums, R a thread. Activations from ACT_SIGMOID on do not go with planes.
template <int R, int ROWS>
WW_INLINE void conv_finish_rows(float (&v)[R], const ConvParty<ROWS> &party, const float *factors, const float *biases, const ConvSource &from, const ConvOut &out, const ConvSplit &p, unsigned &raised) {
    const unsigned column = (threadIdx.x & 3) * 2;
#pragma unroll
    for (int i = 0; i < R; i += 4) {
        const float2 factor = *(const float2 *)(factors + column + i * 2), bias = *(const float2 *)(biases + column + i * 2);
        v[i] = ww_fma(v[i], factor.x, bias.x);
        v[i + 1] = ww_fma(v[i + 1], factor.y, bias.y);
        v[i + 2] = ww_fma(v[i + 2], factor.x, bias.x);
        v[i + 3] = ww_fma(v[i + 3], factor.y, bias.y);
    }
    if (from.residual) {
        party.sync();
        conv_residual(v, party, from, p);
        party.sync();
    }
    activate_short(v, p.conv.act, out.p0, out.p1);
    if (out.d) conv_floats(v, party, out, p.conv);
    if (out.planes) {
        party.sync();
        conv_planes(v, party, out, p, raised);
    }
}

// Adds up what the blocks of a cluster have of a tile, in the order of their ranks; whether this warp is one that has the
// sum then. It takes the place of tiles, which the blocks no longer need.
template <class Tl> WW_INLINE bool conv_gather(float (&v)[Tl::R], unsigned room, const ConvWalk<Tl> &walk) {
    constexpr unsigned THREADS = Tl::GROUPS * 128;
    const unsigned at = room + threadIdx.x * 16;
    asm volatile("bar.sync 3, %0;" ::"n"(THREADS) : "memory");
#pragma unroll
    for (int i = 0; i < Tl::R; i += 4)
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at + i * THREADS * 4), "f"(v[i]), "f"(v[i + 1]), "f"(v[i + 2]), "f"(v[i + 3]) : "memory");
    cluster_arrive();
    cluster_wait();
    if ((threadIdx.x >> 5) % walk.ranks != walk.rank) return false;
#pragma unroll
    for (int i = 0; i < Tl::R; ++i) v[i] = 0.0f;
#pragma unroll 1
    for (unsigned rank = 0; rank < walk.ranks; ++rank) {
        const unsigned there = shared_of(at, rank);
        float4 part[Tl::R / 4];
#pragma unroll
        for (int i = 0; i < Tl::R / 4; ++i)
            asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(part[i].x), "=f"(part[i].y), "=f"(part[i].z), "=f"(part[i].w) : "r"(there + i * THREADS * 16) : "memory");
#pragma unroll
        for (int i = 0; i < Tl::R / 4; ++i) v[i * 4] += part[i].x, v[i * 4 + 1] += part[i].y, v[i * 4 + 2] += part[i].z, v[i * 4 + 3] += part[i].w;
    }
    return true;
}
