// One row held in the registers of a group of threads, and sums over the group.
#pragma once
#include "narrow.cuh"

// A group is `lanes` threads of a warp (a power of two), or the whole block where lanes > 32.
template <int LANES, class T, class Op> WW_DEVICE T ww_lanes_reduce(T value, Op op) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

template <int LANES, class T> WW_DEVICE T ww_lanes_sum(T value) {
    return ww_lanes_reduce<LANES>(value, [](T a, T b) { return a + b; });
}

// Elements from the 16-byte line that a row begins in to its first.
template <class T> WW_DEVICE unsigned ww_shift(const T* row) {
    return (unsigned)(reinterpret_cast<unsigned long long>(row) & 15) / (unsigned)sizeof(T);
}

// Where a thread's vectors lie in a row: every `lanes`-th from number `lane` on, counted from the line that the row begins
// in, `shift` elements before it. Vectors that the row does not fill are read and written element by element.
// LINES: rows, and all that is beside them, begin at lines and fill whole vectors; shift is 0.
template <bool LINES> struct WwPlace {
    unsigned columns, lane, lanes, shift;

    // Position, from that line, of the first element of vector v of SIZE elements.
    template <int SIZE> __device__ __forceinline__ unsigned position(int v) const { return (v * lanes + lane) * SIZE; }
    // Does the row fill the vector there? Does it hold any of it?
    template <int SIZE> __device__ __forceinline__ bool fills(unsigned i) const {
        return LINES ? i < columns : i >= shift && i + SIZE <= shift + columns;
    }
    __device__ __forceinline__ bool meets(unsigned i) const { return LINES ? i < columns : i < shift + columns; }
    __device__ __forceinline__ bool holds(unsigned i) const { return LINES ? i < columns : i - shift < columns; }
    // The same, of which the compiler does not know it: it works positions out again instead of keeping them in registers.
    __device__ __forceinline__ WwPlace again() const {
        WwPlace place = *this;
        asm volatile("" : "+r"(place.lane));
        return place;
    }
};

// The elements from number `apart` on of two neighbouring vectors; 0 < apart < size.
template <class T> WW_DEVICE WwVector<T> ww_between(const WwVector<T>& low, const WwVector<T>& high, unsigned apart) {
    const unsigned bytes = apart * (unsigned)sizeof(T);
    unsigned word[9];
    memcpy(word, &low, 16);
    memcpy(word + 4, &high, 16);
    word[8] = 0;
#pragma unroll
    for (int k = 0; k < 7; k++) word[k] = bytes & 4 ? word[k + 1] : word[k];
#pragma unroll
    for (int k = 0; k < 5; k++) word[k] = bytes & 8 ? word[k + 2] : word[k];
    if constexpr (sizeof(T) == 2)
#pragma unroll
        for (int k = 0; k < 4; k++) word[k] = bytes & 2 ? __funnelshift_r(word[k], word[k + 1], 16) : word[k];
    WwVector<T> between;
    memcpy(&between, word, 16);
    return between;
}

// Reads, for the vector at position i, what lies at the same columns of a row that may begin elsewhere in its line: out of
// the two vectors of that row about it, or for want of registers (WHOLE is false) element by element.
template <bool WHOLE, class T> WW_DEVICE WwVector<T> ww_load_beside(const T* row, const WwPlace<false>& p, unsigned i) {
    constexpr unsigned size = WwVector<T>::size;
    WwVector<T> part;
    const unsigned column = i - p.shift, apart = (ww_shift(row) - p.shift) % size;
    if (WHOLE && (apart == 0 ? p.fills<size>(i) : (int)(column - apart) >= 0 && column - apart + 2 * size <= p.columns)) {
        part = ww_load(row + (column - apart));
        if (apart != 0) part = ww_between(part, ww_load(row + (column - apart + size)), apart);
    } else {
#pragma unroll
        for (int k = 0; k < size; k++) part.lane[k] = p.holds(i + k) ? row[column + k] : T(0.0f);
    }
    return part;
}

// A row of up to VECTORS vectors a thread, as numbers to compute with; `fill` stands where the row holds nothing.
template <class T, int VECTORS> struct WwRow {
    static constexpr int size = WwVector<T>::size;
    static constexpr int count = VECTORS * size;
    using Value = WwCompute<T>;
    Value value[count];

    template <bool LINES> __device__ __forceinline__ void load(const T* row, const WwPlace<LINES>& p, Value fill) {
        WwVector<T> part[VECTORS];
        const T* line = row - p.shift;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
#pragma unroll
            for (int k = 0; k < size; k++) part[v].lane[k] = T(fill);
            const unsigned i = p.template position<size>(v);
            ww_load_where(p.template fills<size>(i), line + i, part[v]);
        }
        if (!LINES)
#pragma unroll
            for (int v = 0; v < VECTORS; v++) load_edge(line, p, p.template position<size>(v), part[v]);
#pragma unroll
        for (int k = 0; k < count; k++) value[k] = part[k / size].lane[k % size];
    }

    template <bool LINES> __device__ __forceinline__ void store(T* out, const WwPlace<LINES>& p) const {
        T* line = out - p.shift;
        const bool whole = LINES || ww_shift(out) == p.shift;
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const unsigned i = p.template position<size>(v);
            if (!p.meets(i)) continue;
            const WwVector<T> part = ww_narrow<T>(value + v * size);
            if (LINES || (whole && p.template fills<size>(i)))
                ww_store(line + i, part);
            else
#pragma unroll
                for (int k = 0; k < size; k++)
                    if (p.holds(i + k)) line[i + k] = part.lane[k];
        }
    }

    // Puts a value where the row holds nothing.
    template <bool LINES> __device__ __forceinline__ void fill(const WwPlace<LINES>& p, Value filling) {
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            const unsigned i = p.template position<size>(v);
            if (p.template fills<size>(i)) continue;
#pragma unroll
            for (int k = 0; k < size; k++)
                if (!p.holds(i + k)) value[v * size + k] = filling;
        }
    }

private:
    template <bool LINES>
    static __device__ __forceinline__ void load_edge(const T* line, const WwPlace<LINES>& p, unsigned i, WwVector<T>& part) {
        if (p.template fills<size>(i) || !p.meets(i)) return;
#pragma unroll
        for (int k = 0; k < size; k++)
            if (p.holds(i + k)) part.lane[k] = line[i + k];
    }
};
