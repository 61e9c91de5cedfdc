// float64 products on tensor cores: instructions and the end of a product. An instruction is a chain of FMAs in ascending
// k, so every output is one such chain; compared bit for bit on an H200.
#pragma once
#include "gemm_product.cuh"

WW_INLINE double shared_load(unsigned at) {
    double v;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(v) : "r"(at) : "memory");
    return v;
}

// c0, c1 and c2, c3 are columns 2 t and 2 t + 1 of rows g and g + 8 of 16 x 8; a holds those rows and b column g for k = t
// and, where Q is 2, t + 4; g and t are lane / 4 and lane % 4. sm_80 has Q = 1 alone, and 8 rows at a time.
template <int Q> WW_INLINE void mma_f64(double &c0, double &c1, double &c2, double &c3, const double (&a)[2 * Q], const double (&b)[Q]) {
#if __CUDA_ARCH__ >= 900
    if constexpr (Q == 1)
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+d"(c0), "+d"(c1), "+d"(c2), "+d"(c3)
            : "d"(a[0]), "d"(a[1]), "d"(b[0]));
    else
        asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+d"(c0), "+d"(c1), "+d"(c2), "+d"(c3)
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#elif __CUDA_ARCH__ >= 800
    static_assert(Q == 1, "sm_80");
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c0), "+d"(c1) : "d"(a[0]), "d"(b[0]));
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c2), "+d"(c3) : "d"(a[1]), "d"(b[0]));
#endif
}

// alpha * acc + beta * c + bias, then the activation, of one thread's outputs; `d` is of its product and split. Sums are
// stored first and taken up again where there is more to do, because registers hold nothing beside them.
template <class Tl>
WW_INLINE void double_finish(double (&acc)[Tl::TM][Tl::TN], const double *c, const double *bias, double *d, double alpha, double beta,
                             double p0, double p1, const Matmul &p, unsigned row0, unsigned column0) {
    const Place<Tl> place;
    const unsigned row = row0 + place.row, column = column0 + place.column;
    const bool plain = p.splits > 1, vectors = p.flags & VECTOR_D;
    const double scale = plain ? 1.0 : alpha;
#pragma unroll
    for (int i = 0; i < Tl::TM; ++i) {
        const unsigned r = row + Place<Tl>::row_offset(i);
        double *to = d + r * p.ldd.get() + column;
#pragma unroll
        for (int j = 0; j < Tl::TN; j += 2) {
            const unsigned at = Place<Tl>::column_offset(j);
            const double v[2] = {scale * acc[i][j], scale * acc[i][j + 1]};
            const bool first = r < p.m && column + at < p.n, second = r < p.m && column + at + 1 < p.n;
            if (vectors) {
                if (first) store_vector(to + at, v);
            } else {
                if (first) to[at] = v[0];
                if (second) to[at + 1] = v[1];
            }
        }
    }
    if (plain) return;
    const bool is_long = p.act >= ACT_SIGMOID;
    auto place_of = [&](int e, unsigned &r, unsigned &q) {
        r = row + Place<Tl>::row_offset(e / Tl::TN);
        q = column + Place<Tl>::column_offset(e % Tl::TN);
        return r < p.m && q < p.n;
    };
    if (c || bias || (p.act && !is_long)) {
#pragma unroll 4
        for (int e = 0; e < Tl::TM * Tl::TN; ++e) {
            unsigned r, q;
            if (!place_of(e, r, q)) continue;
            double *at = d + r * p.ldd.get() + q, v[1] = {*at};
            if (c) v[0] = ww_fma(beta, c[r * p.c_row.get() + q * p.c_column.get()], v[0]);
            if (bias) v[0] += bias[p.flags & BIAS_ROWS ? r : q];
            activate_short(v, p.act, p0, p1);
            *at = v[0];
        }
    }
    if (!is_long) return;
#pragma unroll 1
    for (int e = 0; e < Tl::TM * Tl::TN; ++e) {
        unsigned r, q;
        if (!place_of(e, r, q)) continue;
        double *at = d + r * p.ldd.get() + q;
        *at = activate(*at, p.act, p0, p1);
    }
}
