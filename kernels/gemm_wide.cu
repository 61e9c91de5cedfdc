// levels: sm_90a
// matmul_f32_wide: second half of a split product (gemm_split.cu). Does nothing unless the operands are wide, or hold
// Inf, NaN or values so large that a partial sum may leave float32's range.
// Wide: the whole product from the operands themselves, each value split exactly into three bfloat16 on the way to
// shared memory, six products. hi hi is added to a float32 master every 16 of k, the others, 2^-8 of it, every 64: where
// one product outweighs the rest, each step of the tensor core cuts off up to 2^-21. Outputs so small beside the largest
// values of their row and column that digits of what they sum may be lost are summed in float64 instead, and those of
// special rows and columns by one float32 chain each, so that infinities and NaN are those of plain arithmetic.
// 256 threads, grid.x = min(tiles of 128 x 128, multiprocessors), dynamic shared memory 2 * 98304 + 1024 bytes.
#include "common/hopper.cuh"
#include "common/split_store.cuh"

constexpr unsigned WIDE_PLANE = 128 * 128, WIDE_STAGE = 6 * WIDE_PLANE;
// bfloat16 keeps float32's range: rows are scaled to 2^47 here, so that no sum of products overflows.
constexpr int WIDE_SHIFT = 32;
// A scaled value may lose up to 2^-124 to the planes and meets at most 2^47, on either side: for a sum of k terms the
// loss stays below this times k times 2^-21.
constexpr float WIDE_LEAST = 0x1p-55f;

// One operand's matrix: element (row, k) at x[row * step + k * step_k].
struct WideOperand {
    const float *x;
    const int *e;
    long long step, step_k;
    unsigned rows;
    bool vectors;

    WW_INLINE void load(float (&v)[8], unsigned row, unsigned k0, unsigned k) const {
        const float *from = x + row * step + k0 * step_k;
        if (vectors && k0 + 8 <= k) {
            const float4 a = *(const float4 *)from, b = *(const float4 *)(from + 4);
            v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
            v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
        } else {
#pragma unroll
            for (int i = 0; i < 8; ++i) v[i] = row < rows && k0 + i < k ? from[i * step_k] : 0.0f;
        }
    }
};

// Eight values as three planes of bfloat16, 16 bytes each.
WW_INLINE void wide_split(float (&v)[8], int e, unsigned to) {
    const bool special = e >= SPLIT_SPECIAL;
    const int n = special ? 0 : WIDE_SHIFT - e;
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = special ? 0.0f : scale_by(v[i], n);
#pragma unroll
    for (int plane = 0; plane < 3; ++plane) {
        unsigned word[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            word[i] = __byte_perm(__float_as_uint(v[2 * i]), __float_as_uint(v[2 * i + 1]), 0x7632);
            v[2 * i] = __fsub_rn(v[2 * i], __uint_as_float(word[i] << 16));
            v[2 * i + 1] = __fsub_rn(v[2 * i + 1], __uint_as_float(word[i] & 0xffff0000u));
        }
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to + plane * WIDE_PLANE), "r"(word[0]), "r"(word[1]), "r"(word[2]),
                     "r"(word[3])
                     : "memory");
    }
}

// 128 rows by 64 of k.
WW_INLINE void wide_fill(const WideOperand &from, unsigned to, unsigned origin, unsigned k0, unsigned k) {
    const bool along_k = from.step_k == 1;
    float v[4][8];
    int e[4];
    unsigned at[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned g = i * 256 + threadIdx.x, r = along_k ? g >> 3 : g & 127, chunk = along_k ? g & 7 : g >> 7;
        const unsigned row = origin + r;
        at[i] = to + r * 128 + ((chunk ^ (r & 7)) << 4);
        e[i] = row < from.rows ? from.e[row] : SPLIT_SPECIAL;
#pragma unroll
        for (int j = 0; j < 8; ++j) v[i][j] = 0.0f;
        if (row < from.rows) from.load(v[i], row, k0 + chunk * 8, k);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) wide_split(v[i], e[i], at[i]);
}

// Planes hi, mid, lo of A, then of B: all products but hi hi, small ones first.
WW_INLINE void wide_products(float (&acc)[64], unsigned stage, unsigned group) {
    using Mma = Wgmma<128, true>;
    unsigned long long a[3], b[3];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        a[i] = tile_descriptor(stage + i * WIDE_PLANE + group * 8192);
        b[i] = tile_descriptor(stage + (3 + i) * WIDE_PLANE);
    }
    Mma::set(acc, a[2], b[0]);
#pragma unroll
    for (int i = 1; i < 4; ++i) Mma::add(acc, a[2] + 2 * i, b[0] + 2 * i);
#pragma unroll
    for (int i = 0; i < 4; ++i) Mma::add(acc, a[0] + 2 * i, b[2] + 2 * i);
#pragma unroll
    for (int i = 0; i < 4; ++i) Mma::add(acc, a[1] + 2 * i, b[1] + 2 * i);
#pragma unroll
    for (int i = 0; i < 4; ++i) Mma::add(acc, a[1] + 2 * i, b[0] + 2 * i);
#pragma unroll
    for (int i = 0; i < 4; ++i) Mma::add(acc, a[0] + 2 * i, b[1] + 2 * i);
}

// master += acc, once its products are there.
WW_INLINE void wide_raise(float (&master)[64], float (&acc)[64]) {
    wgmma_wait();
    wgmma_touch(acc);
#pragma unroll
    for (int i = 0; i < 64; ++i) master[i] += acc[i];
}

WW_INLINE void wide_sum(float (&master)[64], const WideOperand &a, const WideOperand &b, unsigned tiles, unsigned row0, unsigned column0, unsigned k) {
    const unsigned blocks = (k + 63) / 64, group = threadIdx.x >> 7;
#pragma unroll
    for (int i = 0; i < 64; ++i) master[i] = 0.0f;
    __syncthreads();
    wide_fill(a, tiles, row0, 0, k);
    wide_fill(b, tiles + 3 * WIDE_PLANE, column0, 0, k);
    for (unsigned block = 0; block < blocks; ++block) {
        float acc[64];
        const unsigned stage = tiles + (block & 1) * WIDE_STAGE, other = tiles + (~block & 1) * WIDE_STAGE;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        wgmma_fence();
        wide_products(acc, stage, group);
        wgmma_commit();
        if (block + 1 < blocks) {
            wide_fill(a, other, row0, (block + 1) * 64, k);
            wide_fill(b, other + 3 * WIDE_PLANE, column0, (block + 1) * 64, k);
        }
        wide_raise(master, acc);
#pragma unroll 1
        for (unsigned i = 0; i < 4; ++i) {
            wgmma_fence();
            Wgmma<128, true>::set(acc, tile_descriptor(stage + group * 8192) + 2 * i, tile_descriptor(stage + 3 * WIDE_PLANE) + 2 * i);
            wgmma_commit();
            wide_raise(master, acc);
        }
    }
}

// The accumulators too small to trust, a bit each.
WW_INLINE unsigned long long wide_lost(const float (&master)[64], const Split &p) {
    const float least = WIDE_LEAST * (float)p.k;
    unsigned long long lost = 0;
#pragma unroll
    for (int i = 0; i < 64; ++i) lost |= (unsigned long long)(fabsf(master[i]) < least) << i;
    return lost;
}

// Those outputs again.
WW_INLINE void lost_tile(unsigned long long lost, const WideOperand &a, const WideOperand &b, const SplitOut &out, const Split &p, const SplitPlace &at) {
    for (; lost; lost &= lost - 1) {
        const int i = __ffsll((long long)lost) - 1;
        const unsigned r = at.row(i), q = at.column(i);
        if (r >= p.m || q >= p.n) continue;
        const float *x = a.x + r * a.step, *y = b.x + q * b.step;
        double sum = 0.0;
#pragma unroll 4
        for (unsigned k = 0; k < p.k; ++k) sum = __fma_rn((double)x[k * a.step_k], (double)y[k * b.step_k], sum);
        out.put((float)sum, p, r, q);
    }
}

// Outputs of one tile whose row and column exponents say that a chain may leave the finite range.
WW_INLINE void special_tile(const WideOperand &a, const WideOperand &b, const SplitOut &out, const Split &p, unsigned row0, unsigned column0) {
    __shared__ int exponents[256];
    const unsigned tid = threadIdx.x, column = column0 + (tid & 127);
    __syncthreads();
    if (tid < 128)
        exponents[tid] = row0 + tid < p.m ? a.e[row0 + tid] : -SPLIT_SPECIAL;
    else
        exponents[tid] = column < p.n ? b.e[column] : -SPLIT_SPECIAL;
    __syncthreads();
    const int limit = split_limit(p), e = exponents[128 + (tid & 127)];
    for (unsigned r = tid >> 7; r < 128; r += 2) {
        if (exponents[r] + e <= limit) continue;
        const float *x = a.x + (row0 + r) * a.step, *y = b.x + column * b.step;
        float sum = 0.0f;
#pragma unroll 4
        for (unsigned k = 0; k < p.k; ++k) sum = ww_fma(x[k * a.step_k], y[k * b.step_k], sum);
        out.put(sum, p, row0 + r, column);
    }
}

extern "C" __global__ void __launch_bounds__(256, 1)
    matmul_f32_wide(const float *a, const float *b, const int *ea, const int *eb, const unsigned long long *range_a,
                    const unsigned long long *range_b, const float *c, const float *bias, float *d, float alpha, float beta, float p0,
                    float p1, const __grid_constant__ Split p) {
    extern __shared__ unsigned char dynamic[];
    const bool wide = split_wide(range_a, range_b, p), special = split_special(range_a, range_b, p);
    if (!wide && !special) return;
    const unsigned tiles = (shared_address(dynamic) + 1023) & ~1023u;
    const SplitWalk walk(p, 128, 128);
    for (unsigned tile = blockIdx.x; tile < walk.total; tile += gridDim.x) {
        unsigned tm, tn;
        const unsigned batch = walk.place(tile, tm, tn), ia = p.a_index(batch), ib = p.b_index(batch);
        const WideOperand from_a = {a + ia * p.a_batch.get(), ea + (long long)ia * p.m, p.a_row.get(), p.a_k.get(), p.m,
                                    (p.flags & SPLIT_VECTOR_A) != 0};
        const WideOperand from_b = {b + ib * p.b_batch.get(), eb + (long long)ib * p.n, p.b_column.get(), p.b_k.get(), p.n,
                                    (p.flags & SPLIT_VECTOR_B) != 0};
        const SplitOut to = SplitOut{c, bias, d, alpha, beta, p0, p1}.at(p, batch);
        if (wide) {
            float master[64];
            wide_sum(master, from_a, from_b, tiles, tm * 128, tn * 128, p.k);
            const SplitPlace at(tm * 128 + (threadIdx.x >> 7) * 64, tn * 128);
            const unsigned long long lost = wide_lost(master, p);
            split_scale(master, at, from_a.e, from_b.e, -2 * WIDE_SHIFT, p);
            split_store(master, at, to, p);
            lost_tile(lost, from_a, from_b, to, p, at);
        }
        if (special) special_tile(from_a, from_b, to, p, tm * 128, tn * 128);
    }
}
