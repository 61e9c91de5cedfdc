// What hopper.cuh has of clusters and of launches that overlap, for levels without them: each block is its own cluster.
#pragma once

#ifndef WW_INLINE
#define WW_INLINE __device__ __forceinline__
#endif

WW_INLINE void grid_wait() {}

WW_INLINE void grid_release() {}

WW_INLINE unsigned cluster_rank() { return 0; }

WW_INLINE unsigned cluster_ranks() { return 1; }

WW_INLINE void cluster_arrive() {}

WW_INLINE void cluster_wait() { __syncthreads(); }

WW_INLINE void shared_store_at(unsigned address, unsigned, unsigned value) {
    asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

WW_INLINE unsigned shared_load_fresh(unsigned address) {
    unsigned value;
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}
