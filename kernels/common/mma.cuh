// Tensor-core products of halves with float32 sums as every card from Turing on has them: fragments from shared memory
// by ldmatrix, products by mma.sync. A warp's A is 16 rows by 16 of k, its B 16 of k by 8 columns, its result 16 by 8.
#pragma once

#ifndef WW_INLINE
#define WW_INLINE __device__ __forceinline__
#endif

// Four 8 x 8 matrices of halves; lane l gives the address of row l % 8 of matrix l / 8, 16 bytes.
WW_INLINE void load_matrices(unsigned (&to)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// The same, or with each matrix transposed.
WW_INLINE void load_matrices_either(unsigned (&to)[4], unsigned address, bool transposed) {
    asm volatile("{\n.reg .pred t;\nsetp.ne.b32 t, %5, 0;\n"
                 "@t ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 "@!t ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n}"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address), "r"((int)transposed)
                 : "memory");
}

#if __CUDA_ARCH__ >= 800
// d = a b + c
WW_INLINE void mma_step(float (&d)[4], const unsigned (&a)[4], const unsigned *b, const float *c) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

// The same of bfloat16.
WW_INLINE void mma_step_bfloat(float (&d)[4], const unsigned (&a)[4], const unsigned *b, const float *c) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
#else
WW_INLINE void mma_half_step(float (&d)[4], unsigned a0, unsigned a1, unsigned b, const float *c) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a0), "r"(a1), "r"(b), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

WW_INLINE void mma_step(float (&d)[4], const unsigned (&a)[4], const unsigned *b, const float *c) {
    mma_half_step(d, a[0], a[1], b[0], c);
    mma_half_step(d, a[2], a[3], b[1], d);
}
#endif

WW_INLINE void mma_add(float (&d)[4], const unsigned (&a)[4], const unsigned *b) { mma_step(d, a, b, d); }

WW_INLINE void mma_set(float (&d)[4], const unsigned (&a)[4], const unsigned *b) {
    const float zero[4] = {};
    mma_step(d, a, b, zero);
}

// Copies 16 bytes from global to shared memory, later, where `go` is set.
WW_INLINE void copy_async_if(unsigned dst, const void *src, bool go) {
#if __CUDA_ARCH__ >= 800
    asm volatile("{\n.reg .pred go;\nsetp.ne.b32 go, %2, 0;\n@go cp.async.cg.shared.global [%0], [%1], 16;\n}" ::"r"(dst), "l"(src), "r"((int)go) : "memory");
#endif
}

// Copies 16 bytes from global to shared memory, later, or zeros where they are not there.
WW_INLINE void copy_async_or_zeros(unsigned dst, const void *src, bool there) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(there ? 16 : 0) : "memory");
#endif
}

// Waits until at most that many groups of copies are on their way, 0, 1 or 2.
WW_INLINE void copy_wait_for(unsigned pending) {
#if __CUDA_ARCH__ >= 800
    if (pending == 0)
        asm volatile("cp.async.wait_group 0;" ::: "memory");
    else if (pending == 1)
        asm volatile("cp.async.wait_group 1;" ::: "memory");
    else
        asm volatile("cp.async.wait_group 2;" ::: "memory");
#endif
}

WW_INLINE void shared_store_vector(unsigned dst, const uint4 &v) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(dst), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

WW_INLINE unsigned dynamic_shared() {
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}
