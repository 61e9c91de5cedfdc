// levels: sm_75
// Gates of recurrent layers, one element of the state a thread: step `step` of every sequence in every direction. States
// are [directions, batch, hidden]; `inputs` holds what x gives to the gates, [directions, rows of x, gates * hidden],
// `products` what the state gives, [directions, batch, gates * hidden]. Arithmetic in the array's own type.
//   lstm_<dtype>, gru_<dtype>, rnn_<dtype>(inputs, products, h, c, reset, y, bias, peepholes, lengths, clip, Step)
//   gru_<dtype>_reset    the first two gates, whose products are [directions, batch, 2 hidden], and reset = r * h
//   gru_<dtype>_update   the last gate, whose products of the state after its reset lie behind, [directions, batch, hidden]
//   rnn_<dtype>_state(from, to, n, hidden, batch, from_direction, from_row, to_direction, to_row)
//       copies a state between memories of other strides; zeros where `from` is null
//   256 threads, ceil(n / 256) blocks for n elements of a state
#include "common/math.cuh"

typedef unsigned long long u64;
typedef unsigned int u32;

struct Step {
    u64 step, steps, batch, hidden;
    // Rows of x from one step and one sequence to the next; elements of y from one step, direction and sequence to the next.
    u64 input_step, input_row, y_step, y_direction, y_row;
    u32 directions, backwards, variant;
    u32 code[2][3];
    u32 unused;
    double parameter[2][3][2];
};

template <class T> WW_DEVICE T gate(T x, T most, const Step& s, u32 d, int index) {
    x = ww_clip(x, -most, most);
    const T alpha = T(s.parameter[d][index][0]), beta = T(s.parameter[d][index][1]);
    switch (s.code[d][index]) {
    case 0: return ww_sigmoid(x);
    case 1: return ww_tanh(x);
    case 2: return ww_relu(x);
    case 3: return ww_fma(alpha, x, beta);
    case 4: return ww_leaky_relu(x, alpha);
    case 5: return x <= alpha ? T(0) : x;
    case 6: return alpha * ww_tanh(beta * x);
    case 7: return ww_hard_sigmoid(x, alpha, beta);
    case 8: return ww_elu(x, alpha);
    case 9: return x / (T(1) + ww_abs(x));
    default: return ww_softplus(x);
    }
}

// Where one element of the state has its part of everything.
struct Place {
    u64 element, row, column, input, y;
    u32 d;
};

// Whether there is such an element and its sequence has such a step; beyond a sequence's end y is 0.
template <class T> WW_DEVICE bool place(Place& p, const Step& s, const int* lengths, u32 gates, T* y) {
    p.element = blockIdx.x * 256ull + threadIdx.x;
    if (p.element >= s.directions * s.batch * s.hidden) return false;
    p.row = p.element / s.hidden;
    p.column = p.element - p.row * s.hidden;
    p.d = p.row >= s.batch;
    const u64 sequence = p.row - p.d * s.batch;
    long long length = lengths ? lengths[sequence] : (long long)s.steps;
    length = length < 0 ? 0 : length > (long long)s.steps ? (long long)s.steps : length;
    const bool inside = s.step < (u64)length;
    const u64 time = inside && (s.backwards >> p.d & 1) ? length - 1 - s.step : s.step;
    p.y = time * s.y_step + p.d * s.y_direction + sequence * s.y_row + p.column;
    p.input = ((p.d * s.steps * s.batch + time * s.input_step + sequence * s.input_row) * gates) * s.hidden + p.column;
    if (!inside) y[p.y] = T(0);
    return inside;
}

// Bias of a gate: those of the inputs come first, then those of the state.
template <class T> WW_DEVICE T bias_of(const T* bias, const Step& s, const Place& p, u32 gates, u32 index) {
    return bias ? bias[(p.d * 2 * gates + index) * s.hidden + p.column] : T(0);
}

template <class T>
WW_DEVICE void lstm(const T* inputs, const T* products, T* h, T* c, T* y, const T* bias, const T* peepholes,
                    const int* lengths, T most, const Step& s) {
    Place p;
    if (!place(p, s, lengths, 4, y)) return;
    T sum[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        sum[k] = inputs[p.input + k * s.hidden] + products[(p.row * 4 + k) * s.hidden + p.column];
        sum[k] += bias_of(bias, s, p, 4, k) + bias_of(bias, s, p, 4, 4 + k);
    }
    const T before = c[p.element];
    const T* peep = peepholes ? peepholes + p.d * 3 * s.hidden + p.column : 0;
    const T i = gate(peep ? ww_fma(peep[0], before, sum[0]) : sum[0], most, s, p.d, 0);
    const T f = s.variant ? T(1) - i : gate(peep ? ww_fma(peep[2 * s.hidden], before, sum[2]) : sum[2], most, s, p.d, 0);
    const T cell = ww_fma(f, before, i * gate(sum[3], most, s, p.d, 1));
    const T o = gate(peep ? ww_fma(peep[s.hidden], cell, sum[1]) : sum[1], most, s, p.d, 0);
    const T state = o * gate(cell, most, s, p.d, 2);
    c[p.element] = cell;
    h[p.element] = state;
    y[p.y] = state;
}

template <class T> WW_DEVICE T mix(T z, T g, T h) { return ww_fma(z, h, (T(1) - z) * g); }

template <class T>
WW_DEVICE void gru(const T* inputs, const T* products, T* h, T* y, const T* bias, const int* lengths, T most,
                   const Step& s) {
    Place p;
    if (!place(p, s, lengths, 3, y)) return;
    T first[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const T sum = inputs[p.input + k * s.hidden] + products[(p.row * 3 + k) * s.hidden + p.column];
        first[k] = gate(sum + (bias_of(bias, s, p, 3, k) + bias_of(bias, s, p, 3, 3 + k)), most, s, p.d, 0);
    }
    const T product = products[(p.row * 3 + 2) * s.hidden + p.column] + bias_of(bias, s, p, 3, 5);
    const T input = inputs[p.input + 2 * s.hidden] + bias_of(bias, s, p, 3, 2);
    const T state = mix(first[0], gate(ww_fma(first[1], product, input), most, s, p.d, 1), h[p.element]);
    h[p.element] = state;
    y[p.y] = state;
}

// The update gate stays in the place of its product.
template <class T>
WW_DEVICE void gru_reset(const T* inputs, T* products, const T* h, T* reset, T* y, const T* bias, const int* lengths,
                         T most, const Step& s) {
    Place p;
    if (!place(p, s, lengths, 3, y)) return;
    T value[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const T sum = inputs[p.input + k * s.hidden] + products[(p.row * 2 + k) * s.hidden + p.column];
        value[k] = gate(sum + (bias_of(bias, s, p, 3, k) + bias_of(bias, s, p, 3, 3 + k)), most, s, p.d, 0);
    }
    products[p.row * 2 * s.hidden + p.column] = value[0];
    reset[p.element] = value[1] * h[p.element];
}

template <class T>
WW_DEVICE void gru_update(const T* inputs, const T* products, T* h, T* y, const T* bias, const int* lengths, T most,
                          const Step& s) {
    Place p;
    if (!place(p, s, lengths, 3, y)) return;
    const u64 behind = s.directions * s.batch * 2 * s.hidden;
    const T sum = inputs[p.input + 2 * s.hidden] + products[behind + p.element];
    const T g = gate(sum + (bias_of(bias, s, p, 3, 2) + bias_of(bias, s, p, 3, 5)), most, s, p.d, 1);
    const T state = mix(products[p.row * 2 * s.hidden + p.column], g, h[p.element]);
    h[p.element] = state;
    y[p.y] = state;
}

template <class T>
WW_DEVICE void rnn(const T* inputs, const T* products, T* h, T* y, const T* bias, const int* lengths, T most,
                   const Step& s) {
    Place p;
    if (!place(p, s, lengths, 1, y)) return;
    const T sum = inputs[p.input] + products[p.element] + (bias_of(bias, s, p, 1, 0) + bias_of(bias, s, p, 1, 1));
    const T state = gate(sum, most, s, p.d, 0);
    h[p.element] = state;
    y[p.y] = state;
}

template <class T>
WW_DEVICE void copy_state(const T* from, T* to, u64 n, u64 hidden, u64 batch, u64 from_direction, u64 from_row,
                          u64 to_direction, u64 to_row) {
    const u64 i = blockIdx.x * 256ull + threadIdx.x;
    if (i >= n) return;
    const u64 row = i / hidden, column = i - row * hidden;
    const u64 d = row >= batch, sequence = row - d * batch;
    const T value = from ? from[d * from_direction + sequence * from_row + column] : T(0);
    to[d * to_direction + sequence * to_row + column] = value;
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define GATES(name, T, call)                                                                                          \
    KERNEL name(const T* inputs, T* products, T* h, T* c, T* reset, T* y, const T* bias, const T* peepholes,          \
                const int* lengths, T clip, const Step s) {                                                           \
        call;                                                                                                         \
    }
#define KERNELS(T, dtype)                                                                                             \
    GATES(lstm_##dtype, T, lstm(inputs, products, h, c, y, bias, peepholes, lengths, clip, s))                        \
    GATES(gru_##dtype, T, gru(inputs, products, h, y, bias, lengths, clip, s))                                        \
    GATES(gru_##dtype##_reset, T, gru_reset(inputs, products, h, reset, y, bias, lengths, clip, s))                   \
    GATES(gru_##dtype##_update, T, gru_update(inputs, products, h, y, bias, lengths, clip, s))                        \
    GATES(rnn_##dtype, T, rnn(inputs, products, h, y, bias, lengths, clip, s))                                        \
    KERNEL rnn_##dtype##_state(const T* from, T* to, u64 n, u64 hidden, u64 batch, u64 from_direction, u64 from_row,  \
                               u64 to_direction, u64 to_row) {                                                        \
        copy_state(from, to, n, hidden, batch, from_direction, from_row, to_direction, to_row);                       \
    }

KERNELS(float, f32)
KERNELS(double, f64)
