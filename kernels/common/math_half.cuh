// Functions whose result is rounded to 16 bits, in float: as right over the whole range as those of math.cuh, but good to an
// eighth of the result's last place only, so that arithmetic keeps up with memory. Errors are relative, before the rounding.
#pragma once

WW_DEVICE float ww_power_of_two(float x) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
WW_DEVICE float ww_reciprocal_near(float d) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
    return r;
}

// 6e-6.
WW_DEVICE float ww_exp_half(float x) { return ww_power_of_two(1.44269504f * x); }

// 6e-6.
WW_DEVICE float ww_sigmoid_half(float x) {
    float e = ww_exp_half(-fabsf(x));
    float r = ww_reciprocal_near(1.0f + e);
    return x >= 0.0f ? r : e * r;
}
WW_DEVICE float ww_silu_half(float x) { return x * ww_sigmoid_half(x); }

// Taylor's series to 0.35, from there on 1 - 2 / (1 + exp(2 |x|)); 5e-6.
WW_DEVICE float ww_tanh_half(float x) {
    float a = fabsf(x), square = x * x;
    float far = fmaf(-2.0f, ww_reciprocal_near(1.0f + ww_power_of_two(2.88539008f * a)), 1.0f);
    float near = fmaf(square, fmaf(square, fmaf(square, -0.053968254f, 0.13333334f), -0.33333334f), 1.0f);
    return a < 0.35f ? x * near : copysignf(far, x);
}

// x Phi(x), with 1 - Phi(a) = exp(-a^2/2) t P(t) for t = 1/(1 + a/4); P is a minimax fit. 3e-5 to |x| = 10, 5e-4 beyond, where
// float16 has no numbers so small and bfloat16 no digits so fine.
WW_DEVICE float ww_gelu_half(float x) {
    float a = fminf(fabsf(x), 14.5f);
    float e = ww_power_of_two(-0.72134752f * (a * a));
    float t = ww_reciprocal_near(fmaf(0.25f, a, 1.0f));
    float p = fmaf(t, fmaf(t, fmaf(t, fmaf(t, 0.24582243f, -0.11414195f), 0.1892861f), 0.077280246f), 0.10176493f);
    float tail = (x > 14.5f ? 14.5f : x) * (t * p) * e;
    return x > 0.0f ? x - tail : tail;
}

// The tanh form as x sigmoid(2u); 2e-5.
WW_DEVICE float ww_gelu_tanh_half(float x) {
    float c = ww_clip(x, -20.0f, 20.0f);
    return x * ww_sigmoid_half(c * fmaf(0.0713548163f, c * c, 1.59576912f));
}
