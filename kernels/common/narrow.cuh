// Numbers that were computed with to a vector as it is stored, rounded to nearest even; and 16-byte loads on a condition.
#pragma once
#include "half.cuh"

#if __CUDA_ARCH__ >= 800
// Two floats to two numbers of 16 bits.
WW_DEVICE unsigned ww_narrow_pair(WwHalf, float low, float high) {
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}
WW_DEVICE unsigned ww_narrow_pair(WwBfloat, float low, float high) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}
#else
template <class T> WW_DEVICE unsigned ww_narrow_pair(T, float low, float high) { return T(low).bits | (unsigned)T(high).bits << 16; }
#endif

template <class T> WW_DEVICE WwVector<T> ww_narrow(const WwCompute<T>* value) {
    WwVector<T> vector;
    if constexpr (sizeof(T) == 2) {
        unsigned word[4];
#pragma unroll
        for (int k = 0; k < 4; k++) word[k] = ww_narrow_pair(T{}, value[2 * k], value[2 * k + 1]);
        memcpy(&vector, word, 16);
    } else {
#pragma unroll
        for (int k = 0; k < WwVector<T>::size; k++) vector.lane[k] = value[k];
    }
    return vector;
}

// Reads a vector where `wanted`, else leaves it. By a predicate, since branches would wait for one load before the next.
template <class T> WW_DEVICE void ww_load_where(bool wanted, const T* from, WwVector<T>& vector) {
    unsigned word[4];
    memcpy(word, &vector, 16);
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, %5, 0;\n\t@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "+r"(word[0]), "+r"(word[1]), "+r"(word[2]), "+r"(word[3])
                 : "l"(from), "r"((unsigned)wanted));
    memcpy(&vector, word, 16);
}
