// Hopper's asynchronous machinery in the form the matrix kernels use: mbarriers, tensor-map copies, warpgroup matrix
// instructions. Tiles lie in shared memory as rows of 128 bytes (64 halves of k) under the 128-byte swizzle, each tile
// on a 1024-byte boundary.
#pragma once

#ifndef WW_INLINE
#define WW_INLINE __device__ __forceinline__
#endif

// CUtensorMap, which the kernel only passes on.
struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

WW_INLINE void barrier_init(unsigned bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

WW_INLINE void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

WW_INLINE void barrier_expect(unsigned bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

WW_INLINE void barrier_arrive(unsigned bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

WW_INLINE void barrier_wait(unsigned bar, unsigned phase) {
    asm volatile(
        "{\n.reg .pred done;\nAGAIN:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(bar),
        "r"(phase)
        : "memory");
}

// Copies a box of the tensor at (x, y, z) to shared memory; elements outside the tensor arrive as zeros.
WW_INLINE void copy_box(unsigned dst, const TensorMap *map, unsigned bar, int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(dst),
        "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar)
        : "memory");
}

WW_INLINE void prefetch_map(const TensorMap *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

// A swizzled tile for the matrix unit: rows of 64 halves of k (k contiguous); +2 steps 16 halves along k.
WW_INLINE unsigned long long tile_descriptor(unsigned address) {
    return (1ull << 62) | (64ull << 32) | (1ull << 16) | ((address & 0x3ffff) >> 4);
}

// The same across k: panels of 8 KB, each 64 rows of k with 64 halves of m or n; +128 steps 16 of k.
WW_INLINE unsigned long long panel_descriptor(unsigned address) {
    return (1ull << 62) | (64ull << 32) | (512ull << 16) | ((address & 0x3ffff) >> 4);
}

WW_INLINE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

WW_INLINE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Until at most PENDING committed groups run.
template <int PENDING = 0> WW_INLINE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }

// Keeps uses of the accumulators behind the wait.
template <int COUNT> WW_INLINE void wgmma_touch(float (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Waits until the launches before this one are done; nothing of theirs may be read or overwritten before.
WW_INLINE void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Lets the next launch begin, as far as it does not wait.
WW_INLINE void grid_release() { asm volatile("griddepcontrol.launch_dependents;"); }

WW_INLINE unsigned cluster_rank() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

WW_INLINE unsigned cluster_ranks() {
    unsigned ranks;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(ranks));
    return ranks;
}

WW_INLINE void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }

WW_INLINE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

// The address of a block's shared memory as seen from the whole cluster.
WW_INLINE unsigned shared_of(unsigned address, unsigned rank) {
    unsigned mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

WW_INLINE void shared_store_at(unsigned address, unsigned rank, unsigned value) {
    asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], %1;" ::"r"(shared_of(address, rank)), "r"(value) : "memory");
}

// As other blocks of the cluster have left it.
WW_INLINE unsigned shared_load_fresh(unsigned address) {
    unsigned value;
    asm volatile("ld.relaxed.cluster.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

// ACROSS_A, ACROSS_B: the operand is given by a panel_descriptor.
template <int N, bool BF16, int ACROSS_A = 0, int ACROSS_B = 0> struct Wgmma;

#define WG_32                                                                                                              \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define WG_48 WG_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define WG_64 WG_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define WG_72 WG_64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define WG_96 WG_72 ",%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define WG_128                                                                                                            \
    WG_96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,"     \
          "%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define WG_OUT8(C, i) C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3]), C(d[i + 4]), C(d[i + 5]), C(d[i + 6]), C(d[i + 7])
#define WG_OUT32(C) WG_OUT8(C, 0), WG_OUT8(C, 8), WG_OUT8(C, 16), WG_OUT8(C, 24)
#define WG_OUT48(C) WG_OUT32(C), WG_OUT8(C, 32), WG_OUT8(C, 40)
#define WG_OUT64(C) WG_OUT48(C), WG_OUT8(C, 48), WG_OUT8(C, 56)
#define WG_OUT72(C) WG_OUT64(C), WG_OUT8(C, 64)
#define WG_OUT96(C) WG_OUT72(C), WG_OUT8(C, 72), WG_OUT8(C, 80), WG_OUT8(C, 88)
#define WG_OUT128(C) WG_OUT96(C), WG_OUT8(C, 96), WG_OUT8(C, 104), WG_OUT8(C, 112), WG_OUT8(C, 120)

// set() starts a sum, add() continues one. A, B, P, TA, TB number the operands after the accumulators.
#define WG_ISSUE(N, R, TYPE, A, B, P, TA, TB, CONSTRAINT, MORE)                                                            \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" P ", 0;\n"                                                           \
                 "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" WG_##R "}, %" A ", %" B            \
                 ", p, 1, 1, %" TA ", %" TB ";\n}"                                                                        \
                 : WG_OUT##R(CONSTRAINT)                                                                                   \
                 : "l"(a), "l"(b), "r"(MORE), "n"(ACROSS_A), "n"(ACROSS_B))

#define WG_DEFINE(N, R, BF, TYPE, ...)                                                                                     \
    template <int ACROSS_A, int ACROSS_B> struct Wgmma<N, BF, ACROSS_A, ACROSS_B> {                                        \
        static WW_INLINE void set(float(&d)[R], unsigned long long a, unsigned long long b) {                              \
            WG_ISSUE(N, R, TYPE, __VA_ARGS__, "=f", 0);                                                                    \
        }                                                                                                                  \
        static WW_INLINE void add(float(&d)[R], unsigned long long a, unsigned long long b) {                              \
            WG_ISSUE(N, R, TYPE, __VA_ARGS__, "+f", 1);                                                                    \
        }                                                                                                                  \
    };

WG_DEFINE(64, 32, false, "f16", "32", "33", "34", "35", "36")
WG_DEFINE(128, 64, false, "f16", "64", "65", "66", "67", "68")
WG_DEFINE(192, 96, false, "f16", "96", "97", "98", "99", "100")
WG_DEFINE(256, 128, false, "f16", "128", "129", "130", "131", "132")
WG_DEFINE(64, 32, true, "bf16", "32", "33", "34", "35", "36")
WG_DEFINE(128, 64, true, "bf16", "64", "65", "66", "67", "68")
WG_DEFINE(192, 96, true, "bf16", "96", "97", "98", "99", "100")
WG_DEFINE(256, 128, true, "bf16", "128", "129", "130", "131", "132")
