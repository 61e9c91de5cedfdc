// levels: sm_75
// Attention in one pass over the keys, without the matrix of weights: softmax with a running maximum (Milakov, Gimelshein 2018;
// Dao et al. 2022).
//   attention_f32_fused_<d>(q, k, v, mask, y, Fused)
//       heads of up to d elements; a block of 128 threads takes 64 queries of a head, grid.x = ceil(queries / 64) * heads * batch,
//       dynamic shared memory: fused_bytes(d)
#include "common/math.cuh"

typedef unsigned long long u64;
typedef unsigned int u32;

struct Fused {
    u64 heads, group, queries, keys, size, value_size;
    // Elements from one batch, head and place to the next, of q, k, v and y.
    u64 q[3], k[3], v[3], y[3];
    // The same of the mask, for a query in place of a place, and how many keys it has.
    u64 mask_batch, mask_head, mask_query, mask_keys;
    float scale;
    // mask: 0 none, 1 bool, 2 float. masking: -Infinity in the mask 0 hides, 1 is added, 2 is added and weights that are NaN are 0.
    u32 mask, causal, masking;
};

constexpr int QUERIES = 64, KEYS = 64, THREADS = 128, ROWS = 4;
// Rows of weights, which take the place of the keys once these are multiplied.
constexpr int WEIGHTS = KEYS + 4;

// `count` rows of up to D elements into rows of `pitch`, zeros beyond.
template <int D> WW_DEVICE void load(float *to, int pitch, const float *from, u64 step, u64 first, u64 end, u64 size, float factor) {
#pragma unroll 4
    for (int i = threadIdx.x; i < 64 * D; i += THREADS) {
        const int row = i / D, d = i % D;
        const u64 at = first + row;
        to[row * pitch + d] = at < end && d < size ? from[at * step + d] * factor : 0.0f;
    }
}

WW_DEVICE float masked(float x, const void *mask, u64 at, u64 key, const Fused &f) {
    if (f.mask == 0) return x;
    if (key >= f.mask_keys) return -WwLimits<float>::infinity();
    if (f.mask == 1) return ((const unsigned char *)mask)[at + key] ? x : -WwLimits<float>::infinity();
    const float term = ((const float *)mask)[at + key];
    return f.masking == 0 && term == -WwLimits<float>::infinity() ? term : x + term;
}

template <int D>
WW_DEVICE void attend(const float *q, const float *k, const float *v, const void *mask, float *y, const Fused &f) {
    constexpr int PITCH = D + 4, COLUMNS = KEYS / 8, PARTS = D / 32;
    extern __shared__ __align__(16) float shared[];
    float *queries = shared, *keys = queries + QUERIES * PITCH;
    float *values = keys + KEYS * (PITCH > WEIGHTS ? PITCH : WEIGHTS), *weights = keys;
    const u64 tiles = (f.queries + QUERIES - 1) / QUERIES, first = blockIdx.x % tiles * QUERIES;
    const u64 head = blockIdx.x / tiles % f.heads, batch = blockIdx.x / tiles / f.heads;
    q += batch * f.q[0] + head * f.q[1];
    k += batch * f.k[0] + head / f.group * f.k[1];
    v += batch * f.v[0] + head / f.group * f.v[1];
    y += batch * f.y[0] + head * f.y[1];
    const u64 mask_at = batch * f.mask_batch + head * f.mask_head;
    const int column = threadIdx.x % 8, row = threadIdx.x / 8 * ROWS;
    load<D>(queries, PITCH, q, f.q[2], first, f.queries, f.size, f.scale);

    float most[ROWS], sum[ROWS], out[ROWS][PARTS * 4];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        most[r] = -WwLimits<float>::infinity();
        sum[r] = 0.0f;
#pragma unroll
        for (int c = 0; c < PARTS * 4; ++c) out[r][c] = 0.0f;
    }
#pragma unroll 1
    for (u64 start = 0; start < f.keys; start += KEYS) {
        __syncthreads();
        load<D>(keys, PITCH, k, f.k[2], start, f.keys, f.size, 1.0f);
        load<D>(values, D, v, f.v[2], start, f.keys, f.value_size, 1.0f);
        __syncthreads();
        float s[ROWS][COLUMNS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) s[r][c] = 0.0f;
#pragma unroll 1
        for (int d = 0; d < D; d += 4) {
            float4 a[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) a[r] = *(const float4 *)(queries + (row + r) * PITCH + d);
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const float4 b = *(const float4 *)(keys + (column + 8 * c) * PITCH + d);
#pragma unroll
                for (int r = 0; r < ROWS; ++r) {
                    s[r][c] = ww_fma(a[r].x, b.x, s[r][c]);
                    s[r][c] = ww_fma(a[r].y, b.y, s[r][c]);
                    s[r][c] = ww_fma(a[r].z, b.z, s[r][c]);
                    s[r][c] = ww_fma(a[r].w, b.w, s[r][c]);
                }
            }
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const u64 query = first + row + r, at = mask_at + query * f.mask_query;
            const u64 seen = query >= f.queries ? 0 : f.causal && query + 1 < f.keys ? query + 1 : f.keys;
            float largest = most[r];
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const u64 key = start + column + 8 * c;
                s[r][c] = key < seen ? masked(s[r][c], mask, at, key, f) : -WwLimits<float>::infinity();
                largest = fmaxf(largest, s[r][c]);
            }
#pragma unroll
            for (int lane = 1; lane < 8; lane *= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, lane));
            const float shrink = largest == most[r] ? 1.0f : ww_exp(most[r] - largest);
            float part = 0.0f;
#pragma unroll
            for (int c = 0; c < COLUMNS; ++c) {
                const float weight = s[r][c] == -WwLimits<float>::infinity() ? 0.0f : ww_exp(s[r][c] - largest);
                part += weight;
                weights[(row + r) * WEIGHTS + column + 8 * c] = weight;
            }
#pragma unroll
            for (int lane = 1; lane < 8; lane *= 2) part += __shfl_xor_sync(~0u, part, lane);
            sum[r] = sum[r] * shrink + part;
            most[r] = largest;
#pragma unroll
            for (int c = 0; c < PARTS * 4; ++c) out[r][c] *= shrink;
        }
        // A warp reads the weights of its own rows alone.
        __syncwarp();
#pragma unroll 1
        for (int key = 0; key < KEYS; key += 4) {
            float4 w[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; ++r) w[r] = *(const float4 *)(weights + (row + r) * WEIGHTS + key);
#pragma unroll
            for (int p = 0; p < PARTS; ++p) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float4 b = *(const float4 *)(values + (key + i) * D + p * 32 + column * 4);
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) {
                        const float weight = i == 0 ? w[r].x : i == 1 ? w[r].y : i == 2 ? w[r].z : w[r].w;
                        out[r][p * 4 + 0] = ww_fma(weight, b.x, out[r][p * 4 + 0]);
                        out[r][p * 4 + 1] = ww_fma(weight, b.y, out[r][p * 4 + 1]);
                        out[r][p * 4 + 2] = ww_fma(weight, b.z, out[r][p * 4 + 2]);
                        out[r][p * 4 + 3] = ww_fma(weight, b.w, out[r][p * 4 + 3]);
                    }
                }
            }
        }
    }
    u32 guarded = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const u64 query = first + row + r;
        if (query >= f.queries) continue;
        // A row of nothing but -Infinity has no maximum: 0 / 0 is the softmax that is written out.
        const bool none = most[r] == -WwLimits<float>::infinity() && sum[r] == 0.0f;
        const float total = !none ? sum[r] : f.masking == 1 ? nanf("") : 1.0f;
        if (f.masking == 2 && sum[r] != sum[r]) guarded |= 1u << r;
#pragma unroll
        for (int c = 0; c < PARTS * 4; ++c) {
            const u64 d = c / 4 * 32 + column * 4 + c % 4;
            if (d < f.value_size) y[query * f.y[2] + d] = out[r][c] / total;
        }
    }
    __syncwarp();
    // Weights of 0 in place of NaN: products that are NaN where a value is not finite.
#pragma unroll 1
    for (int r = 0; r < ROWS; ++r) {
        if (!(guarded >> r & 1)) continue;
#pragma unroll 1
        for (u64 d = column; d < f.value_size; d += 8) {
            float result = 0.0f;
#pragma unroll 1
            for (u64 key = 0; key < f.keys; ++key) result = ww_fma(0.0f, v[key * f.v[2] + d], result);
            y[(first + row + r) * f.y[2] + d] = result;
        }
    }
}

#define FUSED(D, BLOCKS)                                                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                                     \
        attention_f32_fused_##D(const float *q, const float *k, const float *v, const void *mask, float *y, const Fused f) { \
        attend<D>(q, k, v, mask, y, f);                                                                               \
    }

FUSED(32, 3)
FUSED(64, 2)
