// Convolutions of 16-bit operands by warpgroups (conv_half.cu).
#pragma once
#include "conv_images.cuh"
#include "wgmma_store.cuh"
#include "wgmma_tile.cuh"

// Multiprocessors have 227 KB of shared memory; 2 KB go to alignment and barriers.
constexpr unsigned CONV_HALF_ROOM = 225 << 10;

// TURNS: the two warpgroups take every other block of k of one tile. Otherwise each has half of the filters.
template <bool TURNS_, int BN_, bool BF16_> struct ConvHalfTile {
    static constexpr bool TURNS = TURNS_, BF16 = BF16_;
    static constexpr int BM = TURNS ? 64 : 128, BN = BN_, R = BN / 2;
    static constexpr unsigned BYTES_A = BM * 128, BYTES = (BM + BN) * 128;
    // What the warpgroups exchange, and 16 rows of 32 pixels for each warp.
    static constexpr unsigned EXCHANGED = TURNS ? 16 << 10 : 0, STAGED = 8 << 10;
    // A slot always serves the same warpgroup where they take turns.
    static constexpr int FIT = (CONV_HALF_ROOM - EXCHANGED - STAGED) / BYTES, SLOTS = TURNS ? FIT & ~1 : FIT;
    static constexpr unsigned SHARED = SLOTS * BYTES + EXCHANGED + STAGED + 1024;
};

// Element type T of bias and result.
template <class T> struct ConvHalfOut {
    const T *bias;
    T *d;
    float p0, p1;
};

// Output tiles: all filters of some pixels, then the next pixels.
template <class Tl> struct ConvHalfWalk {
    unsigned tiles_m, total;
    WW_INLINE explicit ConvHalfWalk(const Conv &p) : tiles_m((p.group_out + Tl::BM - 1) / Tl::BM), total((p.pixels + Tl::BN - 1) / Tl::BN * tiles_m) {}
    WW_INLINE unsigned filter(unsigned tile) const { return tile % tiles_m * Tl::BM; }
    WW_INLINE unsigned pixel(unsigned tile) const { return tile / tiles_m * Tl::BN; }
};

// As wgmma_shared, with a slot's readers.
template <class Tl> WW_INLINE WgmmaShared conv_half_shared(void *dynamic, void *barriers) {
    WgmmaShared shared;
    shared.slots = (shared_address(dynamic) + 1023) & ~1023u;
    shared.stage = shared.slots + Tl::SLOTS * Tl::BYTES;
    shared.full = shared_address(barriers);
    shared.empty = shared.full + 8 * Tl::SLOTS;
    if (threadIdx.x < Tl::SLOTS) {
        barrier_init(shared.full + 8 * threadIdx.x, 1);
        barrier_init(shared.empty + 8 * threadIdx.x, Tl::TURNS ? 4 : 8);
        barrier_init_fence();
    }
    __syncthreads();
    return shared;
}

// One thread's work.
template <class Tl> WW_INLINE void conv_half_bring(const TensorMap *map_x, const TensorMap *map_w, const WgmmaShared &shared, unsigned blocks, const Conv &p) {
    const ConvHalfWalk<Tl> walk(p);
    WgmmaRing<Tl::SLOTS> ring;
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
        const ConvPixel first(walk.pixel(tile), p);
        const unsigned filter = walk.filter(tile);
        ConvSteps steps(p);
#pragma unroll 1
        for (unsigned block = 0; block < blocks; ++block) {
            const unsigned to = shared.slots + ring.slot * Tl::BYTES, full = shared.full + ring.slot * 8;
            barrier_wait(shared.empty + ring.slot * 8, ring.phase ^ 1);
            barrier_expect(full, Tl::BYTES);
            copy_box(to, map_w, full, block * CONV_CHANNELS, filter, 0);
            copy_block(to + Tl::BYTES_A, map_x, full, first, steps, p);
            steps.advance(p);
            ring.step();
        }
    }
}

// A warpgroup's way through the slots.
template <class Tl> struct ConvHalfRing {
    WgmmaRing<Tl::SLOTS> ring;
    unsigned group;
    // Whose turn the next block is.
    unsigned turn = 0;

    WW_INLINE explicit ConvHalfRing(unsigned group_) : group(group_) {
        if (Tl::TURNS && group) ring.step();
    }
    // Blocks of a tile's that are this warpgroup's.
    WW_INLINE unsigned own(unsigned blocks) {
        if (!Tl::TURNS) return blocks;
        const unsigned count = (blocks + 1 - (turn ^ group)) / 2;
        turn ^= blocks & 1;
        return count;
    }
    // Starts the products of the next block; its slot.
    WW_INLINE unsigned start(float (&d)[Tl::R], const WgmmaShared &shared) {
        const unsigned slot = ring.slot;
        barrier_wait(shared.full + slot * 8, ring.phase);
        wgmma_fence();
        wgmma_slot<Tl, false, false>(d, shared.slots + slot * Tl::BYTES, Tl::TURNS ? 0 : group);
        wgmma_commit();
        ring.step();
        if (Tl::TURNS) ring.step();
        return slot;
    }
};

template <class Tl> WW_INLINE void conv_half_sum(float (&d)[Tl::R], ConvHalfRing<Tl> &ring, const WgmmaShared &shared, unsigned blocks) {
#pragma unroll
    for (int i = 0; i < Tl::R; ++i) d[i] = 0.0f;
    // In flight across the loop's edge, some compilers would wait for each.
#pragma unroll 1
    for (; blocks >= 2; blocks -= 2) {
        const unsigned one = ring.start(d, shared), other = ring.start(d, shared);
        wgmma_wait<1>();
        wgmma_release(shared.empty + one * 8);
        wgmma_wait();
        wgmma_release(shared.empty + other * 8);
    }
    if (blocks) {
        const unsigned slot = ring.start(d, shared);
        wgmma_wait();
        wgmma_release(shared.empty + slot * 8);
    }
    wgmma_touch(d);
}

// Of a thread's sums, those of 32 pixels.
constexpr int CONV_PIECE = 16;

// Both warpgroups' sums: each adds what the other has of its half of the pixels to its own, v.
template <int N> WW_INLINE void conv_half_exchange(float (&v)[N], const float *own, const float *given, unsigned room, unsigned group) {
    const unsigned thread = (threadIdx.x & 127) * 4, to = room + group * 8192 + thread, from = room + (group ^ 1) * 8192 + thread;
#pragma unroll
    for (int first = 0; first < N; first += CONV_PIECE) {
#pragma unroll
        for (int i = 0; i < CONV_PIECE; ++i) asm volatile("st.shared.f32 [%0], %1;" ::"r"(to + i * 512), "f"(given[first + i]) : "memory");
        asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
        for (int i = 0; i < CONV_PIECE; ++i) {
            float other;
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(other) : "r"(from + i * 512) : "memory");
            v[first + i] = own[first + i] + other;
        }
        asm volatile("bar.sync 1, 256;" ::: "memory");
    }
}

// Of a warp's 16 rows of 32 staged pixels, units of 16 bytes are turned so that pairs and units meet all banks.
WW_INLINE unsigned conv_staged(unsigned row, unsigned unit) { return row * 64 + ((unit ^ (row >> 1 & 3)) << 4); }

WW_INLINE void conv_move(unsigned short *to, unsigned from) {
    unsigned short v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(from) : "memory");
    *to = v;
}
WW_INLINE void conv_move(uint2 *to, unsigned from) {
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(from) : "memory");
    *to = v;
}
WW_INLINE void conv_move(uint4 *to, unsigned from) { *to = load_words(from); }

// A warp's results, 16 filters from `filter` on, of pixels from `pixel` on, in vectors V, which do not cross images.
template <class V, int N, class T> WW_INLINE void conv_half_write(const float (&v)[N], unsigned stage, unsigned filter, unsigned pixel, T *d, const Conv &p) {
    constexpr unsigned SIZE = sizeof(V) / 2, LANES = 32 / SIZE;
    const unsigned lane = threadIdx.x & 31, first = lane >> 2, row0 = lane / LANES, at = lane % LANES * SIZE, plane = p.out[0] * p.out[1] * p.out[2];
    // The lane's pixel: its image, and the place there.
    pixel += at;
    unsigned image = pixel / plane, in = pixel - image * plane;
#pragma unroll
    for (int piece = 0; piece < N / CONV_PIECE; ++piece, pixel += 32) {
        __syncwarp();
#pragma unroll
        for (unsigned i = 0; i < CONV_PIECE / 2; ++i)
            store_word(stage + conv_staged(first + (i & 1) * 8, i >> 1) + (lane & 3) * 4, pack_pair<T>(v[piece * CONV_PIECE + i * 2], v[piece * CONV_PIECE + i * 2 + 1]));
        __syncwarp();
        if (pixel >= p.pixels) continue;
        T *to = d + ((unsigned long long)image * p.group_out + filter + row0) * plane + in;
#pragma unroll
        for (unsigned row = 0; row < 16; row += SIZE, to += (unsigned long long)SIZE * plane)
            if (filter + row0 + row < p.group_out) conv_move((V *)to, stage + conv_staged(row0 + row, at >> 3) + (at & 7) * 2);
        for (in += 32; in >= plane; in -= plane) ++image;
    }
}

// The long activations, rolled so that their code stands once.
template <int N> WW_INLINE void conv_half_activate(float (&v)[N], unsigned act, float p0, float p1) {
#pragma unroll 1
    for (int piece = 0; piece < N; piece += CONV_PIECE) {
#pragma unroll 1
        for (int i = 0; i < CONV_PIECE; ++i) {
            const float x = activate(v[0], act, p0, p1);
#pragma unroll
            for (int j = 0; j < CONV_PIECE - 1; ++j) v[j] = v[j + 1];
            v[CONV_PIECE - 1] = x;
        }
        float done[CONV_PIECE];
#pragma unroll
        for (int i = 0; i < CONV_PIECE; ++i) done[i] = v[i];
#pragma unroll
        for (int i = 0; i < N - CONV_PIECE; ++i) v[i] = v[i + CONV_PIECE];
#pragma unroll
        for (int i = 0; i < CONV_PIECE; ++i) v[N - CONV_PIECE + i] = done[i];
    }
}

// The end of a warp's sums: bias, activation, rounding.
template <int N, class T> WW_INLINE void conv_half_finish(float (&v)[N], unsigned stage, unsigned filter, unsigned pixel, const ConvHalfOut<T> &out, const Conv &p) {
    if (out.bias) {
        const unsigned first = filter + (threadIdx.x >> 2 & 7);
        float bias[2];
#pragma unroll
        for (unsigned h = 0; h < 2; ++h) bias[h] = first + h * 8 < p.group_out ? (float)out.bias[first + h * 8] : 0.0f;
#pragma unroll
        for (int i = 0; i < N; ++i) v[i] += bias[i >> 1 & 1];
    }
    activate_short(v, p.act, out.p0, out.p1);
    if (p.act >= ACT_SIGMOID) conv_half_activate(v, p.act, out.p0, out.p1);
    if (p.flags & CONV_EIGHTS)
        conv_half_write<uint4>(v, stage, filter, pixel, out.d, p);
    else if (p.flags & CONV_FOURS)
        conv_half_write<uint2>(v, stage, filter, pixel, out.d, p);
    else
        conv_half_write<unsigned short>(v, stage, filter, pixel, out.d, p);
}

template <class Tl, class T> WW_INLINE void conv_half_multiply(const ConvHalfOut<T> &out, const WgmmaShared &shared, unsigned blocks, const Conv &p) {
    const ConvHalfWalk<Tl> walk(p);
    const unsigned group = __shfl_sync(0xffffffffu, (threadIdx.x >> 7) - 1, 0), warp = threadIdx.x >> 5 & 3;
    const unsigned stage = shared.stage + Tl::EXCHANGED + (group * 4 + warp) * 1024;
    ConvHalfRing<Tl> ring(group);
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
        float d[Tl::R];
        conv_half_sum(d, ring, shared, ring.own(blocks));
        const unsigned filter = walk.filter(tile) + warp * 16, pixel = walk.pixel(tile);
        if constexpr (Tl::TURNS) {
            constexpr int OWN = Tl::R / 2;
            float v[OWN];
            if (group == 0)
                conv_half_exchange(v, d, d + OWN, shared.stage, group);
            else
                conv_half_exchange(v, d + OWN, d, shared.stage, group);
            conv_half_finish(v, stage, filter, pixel + group * (Tl::BN / 2), out, p);
        } else {
            conv_half_finish(d, stage, filter + group * 64, pixel, out, p);
        }
    }
}

template <class Tl, class T> WW_INLINE void conv_half(const TensorMap &map_x, const TensorMap &map_w, const ConvHalfOut<T> &out, const Conv &p) {
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long barriers[2 * Tl::SLOTS];
    const WgmmaShared shared = conv_half_shared<Tl>(dynamic, barriers);
    const unsigned blocks = conv_blocks(p.group_in) * conv_taps(p);
    grid_wait();
    grid_release();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (threadIdx.x == 0) {
            prefetch_map(&map_x);
            prefetch_map(&map_w);
            conv_half_bring<Tl>(&map_x, &map_w, shared, blocks, p);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        conv_half_multiply<Tl>(out, shared, blocks, p);
    }
}
