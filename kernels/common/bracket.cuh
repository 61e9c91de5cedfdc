// Selection of one rank in each of a block's 32 columns, a lane each. All warps keep the same bracket (lo, hi] of a column and
// narrow it by pivots from a sorted sample of the bracket, then by interpolated pivots, until few enough values are left to sort.
#pragma once

// Values that a column's list takes: a sample of the bracket, or all of it at the end.
#define WW_LIST 22

template <class T> struct WwReal;

template <> struct WwReal<float> {
    typedef unsigned Key;
    static __device__ __forceinline__ Key bits(float v) { return __float_as_uint(v); }
    static __device__ __forceinline__ float value(Key bits) { return __uint_as_float(bits); }
    static __device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }
    static __device__ __forceinline__ float nan() { return __uint_as_float(0x7fc00000u); }
};

template <> struct WwReal<double> {
    typedef unsigned long long Key;
    static __device__ __forceinline__ Key bits(double v) { return __double_as_longlong(v); }
    static __device__ __forceinline__ double value(Key bits) { return __longlong_as_double(bits); }
    static __device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000ull); }
    static __device__ __forceinline__ double nan() { return __longlong_as_double(0x7ff8000000000000ull); }
};

// Keys are integers in the order of the values; both zeros have one key.
template <class T> __device__ __forceinline__ typename WwReal<T>::Key ww_key(T v) {
    typedef typename WwReal<T>::Key Key;
    Key bits = WwReal<T>::bits(v), sign = Key(1) << (sizeof(T) * 8 - 1);
    return bits & sign ? 0 - bits : bits | sign;
}

template <class T> __device__ __forceinline__ T ww_from_key(typename WwReal<T>::Key key) {
    typedef typename WwReal<T>::Key Key;
    Key sign = Key(1) << (sizeof(T) * 8 - 1);
    return WwReal<T>::value(key & sign ? key ^ sign : 0 - key);
}

// NaN joins +Inf.
template <class T> __device__ __forceinline__ T ww_last(T v) { return v != v ? WwReal<T>::infinity() : v; }

__device__ __forceinline__ float ww_halves(float a, float b) { return __fadd_rn(__fmul_rn(0.5f, a), __fmul_rn(0.5f, b)); }
__device__ __forceinline__ double ww_halves(double a, double b) { return __dadd_rn(__dmul_rn(0.5, a), __dmul_rn(0.5, b)); }

// A column of rows that lie a stride apart, or, where there is a table, of rows at those addresses; then `column` counts from null.
template <class T> struct WwRows {
    const T* column;
    unsigned long long stride;
    const unsigned long long* table;

    __device__ __forceinline__ T at(unsigned row) const {
        if (table) return __ldg(reinterpret_cast<const T*>(__ldg(table + row) + reinterpret_cast<unsigned long long>(column)));
        return __ldg(column + row * stride);
    }
};

// What the warps of a block tell each other.
template <class T> struct WwBoard {
    unsigned nans[32];
    unsigned taken[32];
    unsigned count[2][2][32];
    typename WwReal<T>::Key least[32];
    T pivot[2][32];
    T answer[32];
    T list[WW_LIST][32];

    __device__ __forceinline__ void clear() {
        if (threadIdx.x < 32) {
            nans[threadIdx.x] = taken[threadIdx.x] = 0;
            count[0][0][threadIdx.x] = count[0][1][threadIdx.x] = 0;
            count[1][0][threadIdx.x] = count[1][1][threadIdx.x] = 0;
            least[threadIdx.x] = ~typename WwReal<T>::Key(0);
        }
    }
    __device__ __forceinline__ void push(T v) {
        unsigned lane = threadIdx.x % 32, slot = atomicAdd(&taken[lane], 1);
        if (slot < WW_LIST) list[slot][lane] = v;
    }
};

// lo is exclusive, NaN for "below everything"; hi is inclusive. `below` values are <= lo, `upto` are <= hi. Once the answer
// is on the board the bracket is empty.
template <class T> struct WwBracket {
    T lo, hi;
    unsigned below, upto, rank;

    __device__ __forceinline__ WwBracket(unsigned total, unsigned rank)
        : lo(WwReal<T>::nan()), hi(WwReal<T>::infinity()), below(0), upto(total), rank(rank) {}

    __device__ __forceinline__ unsigned size() const { return upto - below; }
    __device__ __forceinline__ bool holds(T v) const { return !(v <= lo) && v <= hi; }

    __device__ __forceinline__ typename WwReal<T>::Key floor() const {
        return lo != lo ? ww_key(-WwReal<T>::infinity()) - 1 : ww_key(lo);
    }
    __device__ __forceinline__ void cut(T pivot, unsigned count, WwBoard<T>& board) {
        if (size() == 0 || pivot <= lo || !(pivot < hi)) return;
        if (count > rank) {
            hi = pivot;
            upto = count;
        } else {
            lo = pivot;
            below = count;
        }
        if (ww_key(hi) - floor() == 1) {
            below = upto;
            if (threadIdx.x < 32) board.answer[threadIdx.x] = hi;
        }
    }
    // Two values that should stand close below and above the wanted one.
    __device__ __forceinline__ void guess(T pivot[2], bool by_value) const {
        T width = hi - lo;
        if (by_value && width - width == T(0)) {
            float size = upto - below, part = (rank - below + 0.5f) / size;
            float error = 2.0f * sqrtf(part * (1.0f - part) / size);
            pivot[0] = lo + width * T(part - error);
            pivot[1] = lo + width * T(part + error);
        } else {
            typename WwReal<T>::Key first = floor(), third = (ww_key(hi) - first) / 3;
            pivot[0] = ww_from_key<T>(first + third + (third == 0));
            pivot[1] = ww_from_key<T>(first + 2 * third + (third == 0));
        }
    }
};

template <int LOW, int HIGH, class T> __device__ __forceinline__ void ww_order(T (&v)[WW_LIST]) {
    // Wires from WW_LIST on would hold +Inf.
    if constexpr (HIGH < WW_LIST) {
        T a = v[LOW], b = v[HIGH];
        v[LOW] = b < a ? b : a;
        v[HIGH] = b < a ? a : b;
    }
}

// Batcher's network on registers; templates keep every index constant.
template <int WIRE, int END, int STRIDE, class T> __device__ __forceinline__ void ww_order_row(T (&v)[WW_LIST]) {
    if constexpr (WIRE + STRIDE < END) {
        ww_order<WIRE, WIRE + STRIDE>(v);
        ww_order_row<WIRE + 2 * STRIDE, END, STRIDE>(v);
    }
}

template <int FIRST, int SIZE, int STRIDE, class T> __device__ __forceinline__ void ww_merge(T (&v)[WW_LIST]) {
    if constexpr (2 * STRIDE >= SIZE) {
        ww_order<FIRST, FIRST + STRIDE>(v);
    } else {
        ww_merge<FIRST, SIZE, 2 * STRIDE>(v);
        ww_merge<FIRST + STRIDE, SIZE, 2 * STRIDE>(v);
        ww_order_row<FIRST + STRIDE, FIRST + SIZE, STRIDE>(v);
    }
}

template <int FIRST, int SIZE, class T> __device__ __forceinline__ void ww_sort(T (&v)[WW_LIST]) {
    if constexpr (SIZE > 1) {
        ww_sort<FIRST, SIZE / 2>(v);
        ww_sort<FIRST + SIZE / 2, SIZE / 2>(v);
        ww_merge<FIRST, SIZE, 1>(v);
    }
}

// Sorts the list of the lane's column: the answer if all of the bracket is in it, otherwise two pivots around the rank.
template <class T> __device__ __forceinline__ void ww_judge(WwBoard<T>& board, const WwBracket<T>& bracket) {
    unsigned lane = threadIdx.x, size = bracket.size();
    unsigned filled = min(board.taken[lane], unsigned(WW_LIST));
    T v[WW_LIST];
#pragma unroll
    for (int i = 0; i < WW_LIST; i++) v[i] = i < filled ? board.list[i][lane] : WwReal<T>::infinity();
    ww_sort<0, 32>(v);
    unsigned offset = bracket.rank - bracket.below;
    unsigned low = offset, high = offset;
    if (size > WW_LIST) {
        float place = (offset + 0.5f) / size * filled;
        low = place > 3.0f ? unsigned(place - 3.0f) : 0;
        high = min(unsigned(place + 2.0f), filled - 1);
    }
    T first = v[0], second = v[0];
#pragma unroll
    for (int i = 0; i < WW_LIST; i++) {
        if (i == low) first = v[i];
        if (i == high) second = v[i];
    }
    if (size > 0) board.answer[lane] = first;
    board.pivot[0][lane] = first < second ? first : ww_from_key<T>(ww_key(second) - 1);
    board.pivot[1][lane] = second;
    board.taken[lane] = 0;
    board.count[0][0][lane] = board.count[0][1][lane] = 0;
    board.count[1][0][lane] = board.count[1][1][lane] = 0;
}

template <class Source, class T>
__device__ __forceinline__ void ww_count(const Source& source, WwBoard<T>& board, WwBracket<T>& bracket, int phase,
                                         T low, T high) {
    unsigned lane = threadIdx.x % 32, first = 0, second = 0;
    source.each([&](T v) {
        first += v <= low;
        second += v <= high;
    });
    atomicAdd(&board.count[phase][0][lane], first);
    atomicAdd(&board.count[phase][1][lane], second);
    __syncthreads();
    bracket.cut(low, board.count[phase][0][lane], board);
    bracket.cut(high, board.count[phase][1][lane], board);
}

// The value of that rank among the source's values (no NaN), the same in all warps. Leaves the counters at zero.
// Branches on votes are uniform over the block, since all warps hold the same brackets.
template <class Source, class T>
__device__ __forceinline__ T ww_select(const Source& source, WwBoard<T>& board, unsigned rank) {
    unsigned lane = threadIdx.x % 32;
    WwBracket<T> bracket(source.total, rank);
    for (unsigned cycle = 0;; cycle++) {
        unsigned size = bracket.size(), warps = blockDim.x / 32, quota = (WW_LIST - 1 + warps) / warps;
        if (cycle == 0 && size > WW_LIST) {
            source.sample(quota, [&](T v) { board.push(v); });
        } else if (size > 0) {
            unsigned most = size > WW_LIST ? quota : WW_LIST, pushed = 0;
            source.each([&](T v) {
                if (bracket.holds(v) && pushed < most) {
                    board.push(v);
                    pushed++;
                }
            });
        }
        __syncthreads();
        if (threadIdx.x < 32) ww_judge(board, bracket);
        __syncthreads();
        if (__all_sync(0xffffffffu, size <= WW_LIST)) return board.answer[lane];
        if (size <= WW_LIST) bracket.below = bracket.upto;
        ww_count(source, board, bracket, 0, board.pivot[0][lane], board.pivot[1][lane]);
        if (__any_sync(0xffffffffu, bracket.size() > WW_LIST)) {
            T pivot[2];
            bracket.guess(pivot, cycle % 3 != 2);
            ww_count(source, board, bracket, 1, pivot[0], pivot[1]);
        }
    }
}

// The value of rank + 1, given that `value` has that rank. Ends the use of the board.
template <class Source, class T>
__device__ __forceinline__ T ww_next(const Source& source, WwBoard<T>& board, T value, unsigned rank) {
    unsigned lane = threadIdx.x % 32, upto = 0;
    T next = WwReal<T>::infinity();
    source.each([&](T v) {
        upto += v <= value;
        next = v > value && v < next ? v : next;
    });
    atomicAdd(&board.count[0][0][lane], upto);
    atomicMin(&board.least[lane], ww_key(next));
    __syncthreads();
    return board.count[0][0][lane] > rank + 1 ? value : ww_from_key<T>(board.least[lane]);
}
