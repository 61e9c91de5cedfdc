// Runs of 16 bytes from any place, for arrays that are written in order.
#pragma once
#include "math.cuh"
#include "vector.cuh"
#include "walk.cuh"

// The run that begins at `p`, within the row from `first` up to `end`: by the widest accesses that its place allows; types
// of less than four bytes by whole words and shifts, where the words lie within the row.
template <class T> WW_DEVICE WwVector<T> ww_load_run(const T* p, const T* first, const T* end) {
    constexpr int size = WwVector<T>::size;
    const u64 at = reinterpret_cast<u64>(p);
    if ((at & 15) == 0) return ww_load(p);
    WwVector<T> v;
    if (sizeof(T) < 8 && (at & 7) == 0) {
        uint2* out = reinterpret_cast<uint2*>(&v);
#pragma unroll
        for (int k = 0; k < 2; k++) out[k] = reinterpret_cast<const uint2*>(p)[k];
    } else if (sizeof(T) < 4 && (at & 3) == 0) {
        u32* out = reinterpret_cast<u32*>(&v);
#pragma unroll
        for (int k = 0; k < 4; k++) out[k] = reinterpret_cast<const u32*>(p)[k];
    } else if (sizeof(T) < 4) {
        const u32* words = reinterpret_cast<const u32*>(at & ~3ull);
        if (reinterpret_cast<const T*>(words) >= first && reinterpret_cast<const T*>(words + 5) <= end) {
            u32* out = reinterpret_cast<u32*>(&v);
            u32 word[5];
#pragma unroll
            for (int k = 0; k < 5; k++) word[k] = words[k];
#pragma unroll
            for (int k = 0; k < 4; k++) out[k] = __funnelshift_r(word[k], word[k + 1], (u32)(at & 3) * 8);
        } else {
#pragma unroll
            for (int k = 0; k < size; k++) v.lane[k] = p[k];
        }
    } else {
#pragma unroll
        for (int k = 0; k < size; k++) v.lane[k] = p[k];
    }
    return v;
}

template <class T> WW_DEVICE void ww_store_run(T* p, const WwVector<T>& v) {
    if (ww_aligned(p)) return ww_store(p, v);
#pragma unroll
    for (int k = 0; k < v.size; k++) p[k] = v.lane[k];
}
