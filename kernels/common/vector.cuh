// 16-byte vectors: one thread's share of a contiguous array, loaded whole where pointers allow it.
#pragma once

template <class T> struct alignas(16) WwVector {
    static constexpr int size = 16 / sizeof(T);
    T lane[size];
};

WW_DEVICE bool ww_aligned(const void* p) { return (reinterpret_cast<unsigned long long>(p) & 15) == 0; }

template <class T> WW_DEVICE WwVector<T> ww_load(const T* p) {
    WwVector<T> v;
    *reinterpret_cast<uint4*>(&v) = *reinterpret_cast<const uint4*>(p);
    return v;
}

template <class T> WW_DEVICE void ww_store(T* p, const WwVector<T>& v) {
    *reinterpret_cast<uint4*>(p) = *reinterpret_cast<const uint4*>(&v);
}
