// levels: sm_75
// Strided copies. Elements are moved as units of 8 to 128 bits, whatever their type: the host takes the widest unit
// that sizes, strides and both addresses allow, so that no kernel looks at alignment.
//   copy_u<bits>(x, y, n, Walk)        n units; 256 threads, ceil(n / 1024) blocks, of 128 bits ceil(n / 256)
// Transposes through shared memory, up to 64 bits: x runs along `columns`, y along `rows`, side by side each; the axes of
// `outer` hold one such matrix each. Tiles have 64 by 64 elements, of 64 bits 32 by 32.
//   transpose_u<bits>(x, y, matrices, Matrix, Walk outer)
//                                      256 threads, across * down * matrices blocks
// `vectors`: both sizes, all strides and both addresses are multiples of four elements (of 64 bits two).
#include "common/math.cuh"
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

template <class T, int V>
WW_DEVICE void turn_elements(const T* x, T* y, const Matrix& m, u32 columns, u32 rows, T* tile) {
    constexpr u32 side = 16 * V;
    T value[V * V];
#pragma unroll
    for (int k = 0; k < V * V; k++) {
        const u32 e = threadIdx.x + k * 256, column = e % side, row = e / side;
        if (row < rows && column < columns) value[k] = x[row * m.x_pitch + column];
    }
#pragma unroll
    for (int k = 0; k < V * V; k++) {
        const u32 e = threadIdx.x + k * 256, column = e % side, row = e / side;
        if (row < rows && column < columns) tile[column * (side + 1) + row] = value[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < V * V; k++) {
        const u32 e = threadIdx.x + k * 256, row = e % side, column = e / side;
        if (row < rows && column < columns) y[column * m.y_pitch + row] = tile[column * (side + 1) + row];
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
    else
        turn_elements<T, V>(x, y, m, columns, rows, tile);
}

#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define COPY(T) \
    KERNEL copy_##T(const T* x, T* y, u64 n, WwWalk walk) { copy(x, y, n, walk); }
#define TRANSPOSE(T, V) \
    KERNEL transpose_##T(const T* x, T* y, u64 matrices, Matrix m, WwWalk outer) { transpose<T, V>(x, y, matrices, m, outer); }

COPY(u8)
COPY(u16)
COPY(u32)
COPY(u64)
COPY(u128)
TRANSPOSE(u8, 4)
TRANSPOSE(u16, 4)
TRANSPOSE(u32, 4)
TRANSPOSE(u64, 2)
