// Products of float16 or bfloat16 as their kernels are told of them.
#pragma once
#include "wgmma_store.cuh"

struct Half {
    unsigned m, n, k, batch_count, act, flags;
    // The operand's matrix of a batch index: index / div % mod.
    unsigned a_div, a_mod, b_div, b_mod;
    Wide c_row, c_column, c_batch, bias_row, bias_column;

    WW_INLINE unsigned a_index(unsigned batch) const { return batch / a_div % a_mod; }
    WW_INLINE unsigned b_index(unsigned batch) const { return batch / b_div % b_mod; }
};

template <class T> WW_INLINE WgmmaOut<T> half_out(WgmmaOut<T> out, const Half &p, unsigned batch) {
    const unsigned long long matrix = (unsigned long long)p.m * p.n * batch;
    out.d = (char *)out.d + matrix * (p.flags & WGMMA_FLOAT_D ? 4 : 2);
    if (out.c) out.c += batch * p.c_batch.get();
    return out;
}
