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

FUNCTION float function_where_f32(float condition, float a, float b) { return condition != 0.0f ? a : b; }
FUNCTION double function_where_f64(double condition, double a, double b) { return condition != 0.0 ? a : b; }
