// The binary operators.
#pragma once

#define WW_BINARY(op, expression)                                                                                \
    struct WwBinary_##op {                                                                                       \
        template <class T> WW_DEVICE T apply(T a, T b) { return expression; }                                    \
    };

WW_BINARY(add, a + b)
WW_BINARY(sub, a - b)
WW_BINARY(mul, a * b)
WW_BINARY(div, a / b)
WW_BINARY(pow, ww_pow(a, b))
WW_BINARY(max, ww_max(a, b))
WW_BINARY(min, ww_min(a, b))
