// levels: sm_75
// The functions of whole numbers as device functions, without a kernel, for src/kernels/fused.
//   function_<name>_<i32|u32|i64|u64>(operands, then the op's numbers)
// Narrower types are computed with in 32 bits, and what stands around a function keeps the lower bits of its result.
// Arithmetic wraps; a division by 0 gives 0. Results of conditions are 1 or 0.
#define WW_DEVICE static __device__ __forceinline__
#define FUNCTION extern "C" __device__ __attribute__((used)) __noinline__

typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;

template <class T> struct WwUnsigned { typedef T type; };
template <> struct WwUnsigned<i32> { typedef u32 type; };
template <> struct WwUnsigned<i64> { typedef u64 type; };
#define UNSIGNED typename WwUnsigned<T>::type

WW_DEVICE bool below_0(i32 x) { return x < 0; }
WW_DEVICE bool below_0(i64 x) { return x < 0; }
WW_DEVICE bool below_0(u32) { return false; }
WW_DEVICE bool below_0(u64) { return false; }
template <class T> WW_DEVICE bool is_minus_1(T x) { return below_0(x) && x == T(-1); }
// Overflow is defined for numbers without a sign alone.
template <class T> WW_DEVICE UNSIGNED wrapped(T x) { return UNSIGNED(x); }
template <class T> WW_DEVICE T negated(T x) { return T(UNSIGNED(0) - UNSIGNED(x)); }

// The least number divided by -1 wraps; the instruction says nothing of it.
template <class T> WW_DEVICE T quotient(T a, T b) {
    if (b == T(0)) return T(0);
    return is_minus_1(b) ? negated(a) : a / b;
}

template <class T> WW_DEVICE T remainder_of(T a, T b) {
    return b == T(0) || is_minus_1(b) ? T(0) : a % b;
}

template <class T> WW_DEVICE T modulo(T a, T b) {
    T rest = remainder_of(a, b);
    return rest != T(0) && below_0(rest) != below_0(b) ? rest + b : rest;
}

template <class T> WW_DEVICE T power(T a, T b) {
    if (below_0(b)) return a == T(1) || (is_minus_1(a) && (b & T(1)) == T(0)) ? T(1) : is_minus_1(a) ? a : T(0);
    UNSIGNED result = 1, base = UNSIGNED(a);
#pragma unroll 1
    for (UNSIGNED rest = UNSIGNED(b); rest != 0; rest >>= 1) {
        if (rest & 1) result *= base;
        base *= base;
    }
    return T(result);
}

template <class T> WW_DEVICE T limited(T x, T low, T high) {
    T y = x < low ? low : x;
    return y > high ? high : y;
}

#define OF(name, parameters, expression, T) \
    FUNCTION T function_##name##_##T parameters { return expression; }

#define UNARY_OF(name, expression, T) OF(name, (T x), T(expression), T)
#define BINARY_OF(name, expression, T) OF(name, (T a, T b), T(expression), T)

#define SIGNED(kind, name, expression) kind(name, expression, i32) kind(name, expression, i64)
#define UNSIGNED_ONES(kind, name, expression) kind(name, expression, u32) kind(name, expression, u64)
#define ALL(kind, name, expression) SIGNED(kind, name, expression) UNSIGNED_ONES(kind, name, expression)

ALL(BINARY_OF, add, wrapped(a) + wrapped(b))
ALL(BINARY_OF, sub, wrapped(a) - wrapped(b))
ALL(BINARY_OF, mul, wrapped(a) * wrapped(b))
ALL(BINARY_OF, div, quotient(a, b))
ALL(BINARY_OF, mod, modulo(a, b))
ALL(BINARY_OF, fmod, remainder_of(a, b))
ALL(BINARY_OF, pow, power(a, b))
ALL(BINARY_OF, max, a > b ? a : b)
ALL(BINARY_OF, min, a < b ? a : b)
ALL(BINARY_OF, less, a < b)
ALL(BINARY_OF, lessOrEqual, a <= b)
ALL(BINARY_OF, greater, a > b)
ALL(BINARY_OF, greaterOrEqual, a >= b)
ALL(BINARY_OF, equal, a == b)
ALL(BINARY_OF, notEqual, a != b)
ALL(BINARY_OF, bitwiseAnd, a & b)
ALL(BINARY_OF, bitwiseOr, a | b)
ALL(BINARY_OF, bitwiseXor, a ^ b)
ALL(BINARY_OF, prelu, below_0(a) ? wrapped(a) * wrapped(b) : wrapped(a))
UNSIGNED_ONES(BINARY_OF, shiftLeft, b < 8 * sizeof a ? a << b : 0)
UNSIGNED_ONES(BINARY_OF, shiftRight, b < 8 * sizeof a ? a >> b : 0)

ALL(UNARY_OF, bitwiseNot, ~x)
ALL(UNARY_OF, abs, below_0(x) ? negated(x) : x)
ALL(UNARY_OF, neg, negated(x))
ALL(UNARY_OF, sign, (x > 0) - below_0(x))
ALL(UNARY_OF, relu, x > 0 ? x : 0)

#define CLIP_OF(name, expression, T) OF(name, (T x, T low, T high), expression, T)
ALL(CLIP_OF, clip, limited(x, low, high))

#define CHOICE_OF(name, expression, T) OF(name, (T condition, T a, T b), expression, T)
UNSIGNED_ONES(CHOICE_OF, where, condition != 0 ? a : b)

BINARY_OF(and, a != 0 && b != 0, u32)
BINARY_OF(or, a != 0 || b != 0, u32)
BINARY_OF(xor, (a != 0) != (b != 0), u32)
UNARY_OF(not, x == 0, u32)
