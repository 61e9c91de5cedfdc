// levels: sm_75
// Parts of attention. Arithmetic in the array's own type, in float for 16 bits.
//   attention_<dtype>_weights(scores, mask, lengths, kept, softcap, Scores)
//       rows of `scores` [batch, heads, queries, keys], products of queries and keys, become weights in place: within
//       softcap where it is above 0, masked, softmax; zeros where no key is seen, unless masking says otherwise. `kept` takes
//       what they are at a stage.
//       a block of 256 threads a row
//   rotaryEmbedding_<dtype>(x, cos, sin, positions, y, n, heads, places, size, pairs, rows, flags)
//       flags: 1 x is [batch, heads, places, size] instead of [batch, places, heads, size], 2 pairs are neighbours,
//       4 positions are int64; positions out of range of `rows` give zeros. 256 threads, ceil(n / 256) blocks
#include "common/math.cuh"
#include "common/half.cuh"

typedef unsigned long long u64;
typedef unsigned int u32;

struct Scores {
    u64 heads, queries, past, keys;
    // Elements of the mask from one batch, head and query to the next, and how many keys it has.
    u64 mask_batch, mask_head, mask_query, mask_keys;
    // mask: 0 none, 1 bool, 2 float, 3 double. kept: 1 products, 2 within softcap, 3 masked, 4 weights.
    // masking: -Infinity in the mask 0 hides, 1 is added, 2 is added and weights that are NaN are 0.
    u32 mask, kept, causal, ragged, wide, masking;
};

template <class T> WW_DEVICE T block_all(T value, bool largest, T* shared) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (u32 half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const T a = shared[threadIdx.x], b = shared[threadIdx.x + half];
            shared[threadIdx.x] = largest ? ww_max(a, b) : a + b;
        }
        __syncthreads();
    }
    const T all = shared[0];
    __syncthreads();
    return all;
}

// The number of keys that a query may see, before the mask.
WW_DEVICE u64 seen_keys(const void* lengths, u64 batch, u64 query, const Scores& s) {
    u64 end = s.keys;
    long long before = (long long)s.past;
    if (s.ragged) {
        long long length = s.wide ? ((const long long*)lengths)[batch] : (long long)((const int*)lengths)[batch];
        length = length < 0 ? 0 : length;
        end = (u64)length < end ? (u64)length : end;
        if (s.past == 0) before = length - (long long)s.queries;
    }
    if (!s.causal) return end;
    const long long last = before + (long long)query + 1;
    return last < 0 ? 0 : (u64)last < end ? (u64)last : end;
}

template <class T> WW_DEVICE T masked(T x, const void* mask, u64 at, u64 key, const Scores& s) {
    if (s.mask == 0) return x;
    if (key >= s.mask_keys) return -WwLimits<T>::infinity();
    if (s.mask == 1) return ((const unsigned char*)mask)[at + key] ? x : -WwLimits<T>::infinity();
    const T term = s.mask == 2 ? T(((const float*)mask)[at + key]) : T(((const double*)mask)[at + key]);
    return s.masking == 0 && term == -WwLimits<T>::infinity() ? term : x + term;
}

template <class T>
WW_DEVICE void weights(T* scores, const void* mask, const void* lengths, T* kept, T softcap, const Scores& s) {
    __shared__ T shared[256];
    const u64 row = blockIdx.x, query = row % s.queries, head = row / s.queries % s.heads, batch = row / s.queries / s.heads;
    T* x = scores + row * s.keys;
    T* out = kept + row * s.keys;
    const u64 at = batch * s.mask_batch + head * s.mask_head + query * s.mask_query;
    const u64 seen = seen_keys(lengths, batch, query, s);
    T most = -WwLimits<T>::infinity();
#pragma unroll 1
    for (u64 key = threadIdx.x; key < s.keys; key += 256) {
        T value = x[key];
        if (s.kept == 1) out[key] = value;
        if (softcap > T(0)) value = softcap * ww_tanh(value / softcap);
        if (s.kept == 2) out[key] = value;
        value = key < seen ? masked(value, mask, at, key, s) : -WwLimits<T>::infinity();
        if (s.kept == 3) out[key] = value;
        x[key] = value;
        most = ww_max(most, value);
    }
    most = block_all(most, true, shared);
    const bool none = s.masking == 0 && most == -WwLimits<T>::infinity();
    T sum = T(0);
#pragma unroll 1
    for (u64 key = threadIdx.x; key < s.keys; key += 256) {
        const T value = none ? T(0) : ww_exp(x[key] - most);
        x[key] = value;
        sum += value;
    }
    sum = block_all(sum, false, shared);
    const bool zero = none || s.masking == 2 && sum != sum;
#pragma unroll 1
    for (u64 key = threadIdx.x; key < s.keys; key += 256) {
        const T value = zero ? T(0) : x[key] / sum;
        x[key] = value;
        if (s.kept == 4) out[key] = value;
    }
}

template <class T>
WW_DEVICE void rotate(const T* x, const T* cos, const T* sin, const void* positions, T* y, u64 n, u64 heads, u64 places,
                      u64 size, u64 pairs, u64 rows, u32 flags) {
    const u64 i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= n) return;
    const u64 head = i / size, place = i - head * size;
    if (place >= 2 * pairs) {
        y[i] = x[i];
        return;
    }
    u64 row = flags & 1 ? head / (heads * places) * places + head % places : head / heads;
    if (positions) {
        const long long position = flags & 4 ? ((const long long*)positions)[row] : (long long)((const int*)positions)[row];
        if ((u64)position >= rows) {
            y[i] = T(0.0f);
            return;
        }
        row = (u64)position;
    }
    const bool neighbours = flags & 2;
    const bool second = neighbours ? place & 1 : place >= pairs;
    const u64 pair = neighbours ? place / 2 : second ? place - pairs : place;
    const u64 apart = neighbours ? 1 : pairs;
    const u64 other = second ? i - apart : i + apart;
    typedef WwCompute<T> C;
    const C c = (C)cos[row * pairs + pair], s = (C)sin[row * pairs + pair], mine = (C)x[i], their = (C)x[other];
    y[i] = T(second ? ww_fma(s, their, c * mine) : ww_fma(c, mine, -(s * their)));
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define WEIGHTS(T, dtype)                                                                                             \
    KERNEL attention_##dtype##_weights(T* scores, const void* mask, const void* lengths, T* kept, T softcap, const Scores s) { \
        weights(scores, mask, lengths, kept, softcap, s);                                                             \
    }
#define ROTATE(T, dtype)                                                                                              \
    KERNEL rotaryEmbedding_##dtype(const T* x, const T* cos, const T* sin, const void* positions, T* y, u64 n, u64 heads, \
                                   u64 places, u64 size, u64 pairs, u64 rows, u32 flags) {                            \
        rotate(x, cos, sin, positions, y, n, heads, places, size, pairs, rows, flags);                                \
    }

WEIGHTS(float, f32)
WEIGHTS(double, f64)
ROTATE(float, f32)
ROTATE(double, f64)
ROTATE(WwHalf, f16)
ROTATE(WwBfloat, bf16)
