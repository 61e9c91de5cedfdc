// levels: sm_75
// The scalar functions as device functions, without a kernel: src/kernels/fused puts their bodies into the kernels that it
// makes of expressions. They are the very functions of elementwise.cu.
//   function_<name>_<f32|f64>(x, alpha, beta)   alpha and beta are the op's attributes, ignored where it has none
//   function_<name>_<f32|f64>(a, b)
//   function_<name>_<f32|f64>(condition, a, b)
// Conditions are numbers: 1 or 0 as results, anything but 0 holds.
#include "common/math.cuh"
#include "common/binary.cuh"

#define FUNCTION extern "C" __device__ __attribute__((used)) __noinline__

#define UNARY(name, expression)                                                                                  \
    template <class T> WW_DEVICE T apply_##name(T x, T alpha, T beta) { return expression; }                     \
    FUNCTION float function_##name##_f32(float x, float alpha, float beta) { return apply_##name(x, alpha, beta); } \
    FUNCTION double function_##name##_f64(double x, double alpha, double beta) { return apply_##name(x, alpha, beta); }

#define GRADED(function) function
#include "common/unary.cuh"

// Functions that have no kernels of their own.
UNARY(softsign, x / (T(1) + ww_abs(x)))
UNARY(celu, x > T(0) ? x : alpha * ww_expm1(x / alpha))
UNARY(thresholdedRelu, x <= alpha ? T(0) : x)
UNARY(shrink, x < -beta ? x + alpha : x > beta ? x - alpha : x != x ? x : T(0))
UNARY(tan, tan(x))
UNARY(asin, asin(x))
UNARY(acos, acos(x))
UNARY(atan, atan(x))
UNARY(sinh, sinh(x))
UNARY(cosh, cosh(x))
UNARY(asinh, asinh(x))
UNARY(acosh, acosh(x))
UNARY(atanh, atanh(x))
UNARY(not, x == T(0) ? T(1) : T(0))
UNARY(isNaN, x != x ? T(1) : T(0))
UNARY(isInf, (x == WwLimits<T>::infinity() && beta != T(0)) || (x == -WwLimits<T>::infinity() && alpha != T(0)) ? T(1) : T(0))

#define BINARY(name)                                                                                             \
    FUNCTION float function_##name##_f32(float a, float b) { return WwBinary_##name::apply(a, b); }              \
    FUNCTION double function_##name##_f64(double a, double b) { return WwBinary_##name::apply(a, b); }

BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(pow)
BINARY(max)
BINARY(min)

FUNCTION float function_fmod_f32(float a, float b) { return fmodf(a, b); }
FUNCTION double function_fmod_f64(double a, double b) { return fmod(a, b); }
FUNCTION float function_prelu_f32(float x, float slope) { return ww_leaky_relu(x, slope); }
FUNCTION double function_prelu_f64(double x, double slope) { return ww_leaky_relu(x, slope); }

#define CONDITION(name, expression)                                                                              \
    FUNCTION float function_##name##_f32(float a, float b) { return expression ? 1.0f : 0.0f; }                  \
    FUNCTION double function_##name##_f64(double a, double b) { return expression ? 1.0 : 0.0; }

CONDITION(less, a < b)
CONDITION(lessOrEqual, a <= b)
CONDITION(greater, a > b)
CONDITION(greaterOrEqual, a >= b)
CONDITION(equal, a == b)
CONDITION(notEqual, a != b)
CONDITION(and, a != 0 && b != 0)
CONDITION(or, a != 0 || b != 0)
CONDITION(xor, (a != 0) != (b != 0))

FUNCTION float function_where_f32(float condition, float a, float b) { return condition != 0.0f ? a : b; }
FUNCTION double function_where_f64(double condition, double a, double b) { return condition != 0.0 ? a : b; }
