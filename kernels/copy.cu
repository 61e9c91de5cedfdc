// levels: sm_75
// Strided copies. Elements are moved as units of 8 to 128 bits, whatever their type: the host takes the widest unit
// that sizes, strides and both addresses allow, so that no kernel looks at alignment.
//   copy_u<bits>(x, y, n, Walk)        n units; 256 threads, ceil(n / 1024) blocks, of 128 bits ceil(n / 256)
// Transposes through shared memory, up to 64 bits: x runs along `columns`, y along `rows`, side by side each; the axes of
// `outer` hold one such matrix each. Tiles have 16 R by 16 R elements, R = 8 of 16 bits, 2 of 64, 4 of the others.
//   transpose_u<bits>(x, y, matrices, Matrix, Walk outer)
//                                      256 threads, across * down * matrices blocks
// `vectors`: both sizes, all strides and both addresses are multiples of R elements.
// The same with few columns, 2 to 4, all of one pixel after the other on one side: S = 16 bytes / element pixels a thread;
// `pitch` elements from channel to channel on the other side; sizes, strides and addresses are multiples of S elements.
//   interleave_u<bits>_<channels>(x, y, matrices, groups of S pixels, pitch, Walk outer)      channels of x apart
//   deinterleave_u<bits>_<channels>(...)                                                      channels of y apart
//                                      256 threads, matrices * ceil(groups / 256) blocks
#include "common/math.cuh"
#include "common/vector.cuh"
#include "common/walk.cuh"

struct Matrix {
    u32 across, down;  // tiles along columns and rows
    u32 vectors, unused;
    u64 columns, rows;
    u64 x_pitch;  // elements of x from row to row
    u64 y_pitch;  // elements of y from column to column
};

template <class T> WW_DEVICE void copy(const T* x, T* y, u64 n, const WwWalk& walk) {
    constexpr int units = sizeof(T) == 16 ? 1 : 4;
    const u64 base = blockIdx.x * (u64)(256 * units) + threadIdx.x;
    T value[units];
    long long to[units];
#pragma unroll
    for (int k = 0; k < units; k++) {
        const u64 i = base + k * 256;
        if (i >= n) continue;
        const WwPlace at = ww_place(i, n, walk);
        value[k] = x[at.x];
        to[k] = at.y;
    }
#pragma unroll
    for (int k = 0; k < units; k++)
        if (base + k * 256 < n) y[to[k]] = value[k];
}

template <class T, int V> struct alignas(V * sizeof(T)) Run {
    T lane[V];
};

// A thread turns a block of V by V in registers. Runs of V neighbours lie in shared memory where those of eight threads
// in a row meet no bank twice, when they are written and when they are read.
template <class T, int V>
WW_DEVICE void turn_runs(const T* x, T* y, const Matrix& m, u32 columns, u32 rows, T* shared) {
    Run<T, V>* tile = reinterpret_cast<Run<T, V>*>(shared);
    const u32 right = threadIdx.x % 16, below = threadIdx.x / 16;
    Run<T, V> in[V];
#pragma unroll
    for (int k = 0; k < V; k++) {
        const u32 row = below * V + k;
        if (row < rows && right * V < columns)
            in[k] = *reinterpret_cast<const Run<T, V>*>(x + row * m.x_pitch + right * V);
    }
#pragma unroll
    for (int c = 0; c < V; c++) {
        Run<T, V> out;
#pragma unroll
        for (int k = 0; k < V; k++) out.lane[k] = in[k].lane[c];
        tile[(right * V + c) * 16 + (below ^ right)] = out;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < V; k++) {
        const u32 column = below + 16 * k;
        if (column < columns && right * V < rows)
            *reinterpret_cast<Run<T, V>*>(y + column * m.y_pitch + right * V) = tile[column * 16 + (right ^ (column / V))];
    }
}

// FULL: the tile has all its elements.
template <bool FULL, class T, int V>
WW_DEVICE void turn_elements(const T* x, T* y, const Matrix& m, u32 columns, u32 rows, T* tile) {
    constexpr u32 side = 16 * V, step = 256 / side;
    const u32 right = threadIdx.x % side, below = threadIdx.x / side;
    T value[V * V];
    x += below * m.x_pitch + right;
#pragma unroll
    for (int k = 0; k < V * V; k++) {
        if (FULL || (below + k * step < rows && right < columns)) value[k] = x[k * step * m.x_pitch];
    }
#pragma unroll
    for (int k = 0; k < V * V; k++) {
        if (FULL || (below + k * step < rows && right < columns)) tile[right * (side + 1) + below + k * step] = value[k];
    }
    __syncthreads();
    y += below * m.y_pitch + right;
#pragma unroll
    for (int k = 0; k < V * V; k++) {
        const u32 column = below + k * step;
        if (FULL || (right < rows && column < columns)) y[k * step * m.y_pitch] = tile[column * (side + 1) + right];
    }
}

template <class T, int V>
WW_DEVICE void transpose(const T* x, T* y, u64 matrices, const Matrix& m, const WwWalk& outer) {
    constexpr u32 side = 16 * V;
    __shared__ __align__(16) T tile[side * (side + 1)];
    const u32 across = blockIdx.x % m.across, next = blockIdx.x / m.across;
    const u32 down = next % m.down;
    const WwPlace at = ww_place(next / m.down, matrices, outer);
    const u64 column = (u64)across * side, row = (u64)down * side;
    x += at.x + (long long)(row * m.x_pitch + column);
    y += at.y + (long long)(column * m.y_pitch + row);
    const u32 columns = m.columns - column < side ? (u32)(m.columns - column) : side;
    const u32 rows = m.rows - row < side ? (u32)(m.rows - row) : side;
    if (m.vectors)
        turn_runs<T, V>(x, y, m, columns, rows, tile);
    else if (columns == side && rows == side)
        turn_elements<true, T, V>(x, y, m, columns, rows, tile);
    else
        turn_elements<false, T, V>(x, y, m, columns, rows, tile);
}

// Where thread t's j-th run lies, so that those of eight threads meet no bank twice, nor those of eight runs in order.
template <int C> WW_DEVICE u32 run_slot(u32 t, u32 j) { return t * C + (C & (C - 1) ? j : j ^ (t * C / 8 & (C - 1))); }

// Element e of a thread's pixels in order is channel e % C of pixel e / C.
template <class T, int C> WW_DEVICE void interleave(const T* x, T* y, u64 matrices, u64 groups, u64 pitch, const WwWalk& outer) {
    constexpr u32 size = WwVector<T>::size;
    __shared__ WwVector<T> tile[256 * C];
    const u64 across = (groups + 255) / 256, first = blockIdx.x % across * 256;
    const WwPlace at = ww_place(blockIdx.x / across, matrices, outer);
    const u32 count = groups - first < 256 ? (u32)(groups - first) : 256;
    x += at.x + (long long)((first + threadIdx.x) * size);
    y += at.y + (long long)(first * C * size);
    if (threadIdx.x < count) {
        WwVector<T> channel[C], run[C];
#pragma unroll
        for (u32 c = 0; c < C; c++) channel[c] = ww_load(x + c * pitch);
#pragma unroll
        for (u32 e = 0; e < C * size; e++) run[e / size].lane[e % size] = channel[e % C].lane[e / C];
#pragma unroll
        for (u32 j = 0; j < C; j++) tile[run_slot<C>(threadIdx.x, j)] = run[j];
    }
    __syncthreads();
#pragma unroll
    for (u32 j = 0; j < C; j++) {
        const u32 s = j * 256 + threadIdx.x;
        if (s < count * C) ww_store(y + s * size, tile[run_slot<C>(s / C, s % C)]);
    }
}

template <class T, int C> WW_DEVICE void deinterleave(const T* x, T* y, u64 matrices, u64 groups, u64 pitch, const WwWalk& outer) {
    constexpr u32 size = WwVector<T>::size;
    __shared__ WwVector<T> tile[256 * C];
    const u64 across = (groups + 255) / 256, first = blockIdx.x % across * 256;
    const WwPlace at = ww_place(blockIdx.x / across, matrices, outer);
    const u32 count = groups - first < 256 ? (u32)(groups - first) : 256;
    x += at.x + (long long)(first * C * size);
    y += at.y + (long long)((first + threadIdx.x) * size);
#pragma unroll
    for (u32 j = 0; j < C; j++) {
        const u32 s = j * 256 + threadIdx.x;
        if (s < count * C) tile[run_slot<C>(s / C, s % C)] = ww_load(x + s * size);
    }
    __syncthreads();
    if (threadIdx.x >= count) return;
    WwVector<T> channel[C], run[C];
#pragma unroll
    for (u32 j = 0; j < C; j++) run[j] = tile[run_slot<C>(threadIdx.x, j)];
#pragma unroll
    for (u32 e = 0; e < C * size; e++) channel[e % C].lane[e / C] = run[e / size].lane[e % size];
#pragma unroll
    for (u32 c = 0; c < C; c++) ww_store(y + c * pitch, channel[c]);
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define COPY(T) \
    KERNEL copy_##T(const T* x, T* y, u64 n, WwWalk walk) { copy(x, y, n, walk); }
#define TRANSPOSE(T, V) \
    KERNEL transpose_##T(const T* x, T* y, u64 matrices, Matrix m, WwWalk outer) { transpose<T, V>(x, y, matrices, m, outer); }
#define CHANNELS_OF(T, C)                                                                                \
    KERNEL interleave_##T##_##C(const T* x, T* y, u64 matrices, u64 groups, u64 pitch, WwWalk outer) {   \
        interleave<T, C>(x, y, matrices, groups, pitch, outer);                                          \
    }                                                                                                    \
    KERNEL deinterleave_##T##_##C(const T* x, T* y, u64 matrices, u64 groups, u64 pitch, WwWalk outer) { \
        deinterleave<T, C>(x, y, matrices, groups, pitch, outer);                                        \
    }
#define CHANNELS(T) CHANNELS_OF(T, 2) CHANNELS_OF(T, 3) CHANNELS_OF(T, 4)

COPY(u8)
COPY(u16)
COPY(u32)
COPY(u64)
COPY(u128)
TRANSPOSE(u8, 4)
TRANSPOSE(u16, 8)
TRANSPOSE(u32, 4)
TRANSPOSE(u64, 2)
CHANNELS(u8)
CHANNELS(u16)
CHANNELS(u32)
CHANNELS(u64)
