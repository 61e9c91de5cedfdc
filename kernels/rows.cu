// levels: sm_75
// Numbers of rows as wholes, and sums of weighted rows. table: addresses of n rows of d values; a null one stands for a row that takes
// part as zeros. Sums are float64; a launch's order of them depends on n, d and the number of pieces alone.
//   rows_scan_<dt>(table, out, d, first, pieces)       n pieces blocks of 256 threads; out[row][piece] = the lowest column that is not
//                                                      finite, counted from `first` (all bits set: none), whether one is NaN,
//                                                      and the bits of the largest finite magnitude as float64
//   rows_length_<dt>(table, from, parts, d, scale, n)  n pieces blocks of 256 threads; parts[piece][row] = sum of the squares of
//                                                      (row - from) * scale, of row * scale where `from` is null
//   rows_sum_<dt>(table, weights, out, d, divisor, n)  ceil(d / 256) blocks of 256 threads; out = sum of weight * row / divisor,
//                                                      products and sums rounded one by one
// Pairs of rows: tiles of R rows by R, upper triangle, row after row of tiles; block = piece * tiles + tile, 256 threads;
// parts[block][R][R]. piece: columns of a block.
//   rows_distance_f32_16|64(table, centre, parts, d, scale, n, piece)  squares of differences in float32, joined in float64 after
//                                                      32 columns; R = 16, 64; centre and scale are not looked at
//   rows_distance_<dt>(..), rows_product_<dt>(..)      in float64 throughout, R = 32: of rows times scale, of their
//                                                      differences to `centre` times scale
//   rows_total_f64(parts, out, size, pieces)           ceil(size / 256) blocks of 256 threads; out[i] += sum of parts[piece][i]

typedef unsigned long long u64;

template <class T> __device__ __forceinline__ const T* row_at(const u64* table, u64 row) {
    return reinterpret_cast<const T*>(table[row]);
}

// The columns of a piece: as many as fill whole rounds of 256 threads, but for the last.
__device__ __forceinline__ u64 piece_width(u64 d, unsigned pieces) {
    return ((d + pieces - 1) / pieces + 255) / 256 * 256;
}

template <class T>
__device__ __forceinline__ void scan(const u64* table, u64* out, u64 d, u64 first, unsigned pieces) {
    __shared__ u64 lowest[8], nans[8];
    __shared__ double most[8];
    const T* row = row_at<T>(table, blockIdx.x / pieces);
    u64 width = piece_width(d, pieces), start = blockIdx.x % pieces * width, end = start + width < d ? start + width : d;
    u64 found = ~0ull, nan = 0;
    double largest = 0.0;
#pragma unroll 4
    for (u64 x = start + threadIdx.x; x < end; x += 256) {
        T v = row[x];
        if (v - v == T(0)) {
            double magnitude = fabs(double(v));
            largest = magnitude > largest ? magnitude : largest;
        } else {
            found = x < found ? x : found;
            nan |= v != v;
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        u64 other = __shfl_down_sync(~0u, found, step);
        found = other < found ? other : found;
        nan |= __shfl_down_sync(~0u, nan, step);
        double more = __shfl_down_sync(~0u, largest, step);
        largest = more > largest ? more : largest;
    }
    if (threadIdx.x % 32 == 0) {
        lowest[threadIdx.x / 32] = found;
        nans[threadIdx.x / 32] = nan;
        most[threadIdx.x / 32] = largest;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 8; warp++) {
            found = lowest[warp] < found ? lowest[warp] : found;
            nan |= nans[warp];
            largest = most[warp] > largest ? most[warp] : largest;
        }
        out[3ull * blockIdx.x] = found == ~0ull ? found : found + first;
        out[3ull * blockIdx.x + 1] = nan;
        out[3ull * blockIdx.x + 2] = u64(__double_as_longlong(largest));
    }
}

template <class T>
__device__ __forceinline__ void length(const u64* table, const T* from, double* parts, u64 d, double scale,
                                       unsigned n) {
    __shared__ double sums[8];
    const T* row = row_at<T>(table, blockIdx.x % n);
    u64 width = piece_width(d, gridDim.x / n), start = blockIdx.x / n * width, end = start + width < d ? start + width : d;
    double sum = 0.0;
#pragma unroll 4
    for (u64 x = start + threadIdx.x; row && x < end; x += 256) {
        double gap = double(row[x]) * scale;
        if (from) gap -= double(from[x]) * scale;
        sum = fma(gap, gap, sum);
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < 8; warp++) sum += sums[warp];
        parts[blockIdx.x] = sum;
    }
}

template <class T>
__device__ __forceinline__ void weighted_sum(const u64* table, const double* weights, T* out, u64 d, double divisor,
                                             unsigned n) {
    u64 x = blockIdx.x * 256ull + threadIdx.x;
    if (x >= d) return;
    double total = 0.0;
#pragma unroll 8
    for (unsigned row = 0; row < n; row++) {
        total = __dadd_rn(total, __dmul_rn(weights[row], double(row_at<T>(table, row)[x])));
    }
    total = __ddiv_rn(total, divisor);
    out[x] = total != total ? T(__longlong_as_double(0x7ff8000000000000ll)) : T(total);
}

constexpr int COLUMNS = 32;

// Values of a row that are read at once.
template <class Sum, int STEP> struct alignas(sizeof(Sum) * STEP) Few {
    Sum at[STEP];
};

// Rows of a tile, a stretch of 32 columns: lines lie so that 16 neighbours are read without conflicts.
template <class T, class Sum, int ROWS, int STEP> struct Tile {
    alignas(16) Sum at[ROWS][COLUMNS + STEP];

    __device__ __forceinline__ void load(const u64* table, const T* centre, u64 first, u64 n, u64 x, u64 end, double scale) {
        unsigned lane = threadIdx.x % 32;
        bool inside = x + lane < end;
        Sum middle = centre && inside ? Sum(Sum(centre[x + lane]) * Sum(scale)) : Sum(0);
#pragma unroll
        for (int line = threadIdx.x / 32; line < ROWS; line += 8) {
            const T* row = first + line < n ? row_at<T>(table, first + line) : nullptr;
            at[line][lane] = row && inside ? Sum(Sum(row[x + lane]) * Sum(scale)) - middle : Sum(0);
        }
    }
};

// A block's tile of pairs; thread (i, j) has rows i + 16 r of one side and j + 16 s of the other.
template <class T, class Sum, int R, bool PRODUCT>
__device__ __forceinline__ void pairs(const u64* table, const T* centre, double* parts, u64 d, double scale, unsigned n,
                                      u64 piece) {
    // Two values at once leave the registers for 16 pairs a thread.
    constexpr int ROWS = 16 * R, STEP = R == 4 ? 2 : 16 / int(sizeof(Sum));
    typedef Tile<T, Sum, ROWS, STEP> Side;
    __shared__ Side one, two;
    unsigned bands = (n + ROWS - 1) / ROWS, tiles = bands * (bands + 1) / 2;
    unsigned left = blockIdx.x % tiles, band = 0;
    while (left >= bands - band) left -= bands - band++;
    unsigned other = band + left, i = threadIdx.x / 16, j = threadIdx.x % 16;
    u64 start = blockIdx.x / tiles * piece, end = start + piece < d ? start + piece : d;
    const Side& second = other == band ? one : two;
    double total[R][R] = {};
    for (u64 x = start; x < end; x += COLUMNS) {
        one.load(table, centre, u64(band) * ROWS, n, x, end, scale);
        if (other != band) two.load(table, centre, u64(other) * ROWS, n, x, end, scale);
        __syncthreads();
        Sum sum[R][R] = {};
#pragma unroll 4
        for (int k = 0; k < COLUMNS; k += STEP) {
            Few<Sum, STEP> a[R], b[R];
#pragma unroll
            for (int r = 0; r < R; r++) {
                a[r] = *reinterpret_cast<const Few<Sum, STEP>*>(&one.at[i + 16 * r][k]);
                b[r] = *reinterpret_cast<const Few<Sum, STEP>*>(&second.at[j + 16 * r][k]);
            }
#pragma unroll
            for (int r = 0; r < R; r++) {
#pragma unroll
                for (int s = 0; s < R; s++) {
#pragma unroll
                    for (int t = 0; t < STEP; t++) {
                        Sum gap = a[r].at[t] - b[s].at[t];
                        sum[r][s] = PRODUCT ? a[r].at[t] * b[s].at[t] + sum[r][s] : gap * gap + sum[r][s];
                    }
                }
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
#pragma unroll
            for (int s = 0; s < R; s++) total[r][s] += double(sum[r][s]);
        }
        __syncthreads();
    }
    double* out = parts + u64(blockIdx.x) * ROWS * ROWS;
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int s = 0; s < R; s++) out[(i + 16 * r) * ROWS + j + 16 * s] = total[r][s];
    }
}

extern "C" __global__ void __launch_bounds__(256) rows_total_f64(const double* parts, double* out, u64 size,
                                                                 unsigned pieces) {
    u64 x = blockIdx.x * 256ull + threadIdx.x;
    if (x >= size) return;
    double total = 0.0;
#pragma unroll 8
    for (unsigned piece = 0; piece < pieces; piece++) total += parts[piece * size + x];
    out[x] += total;
}

#define PAIRS(T, name, Sum, R, PRODUCT)                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        name(const u64* table, const T* centre, double* parts, u64 d, double scale, unsigned n, u64 piece) {           \
        pairs<T, Sum, R, PRODUCT>(table, centre, parts, d, scale, n, piece);                                           \
    }

#define KERNELS(T, dt)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        rows_scan_##dt(const u64* table, u64* out, u64 d, u64 first, unsigned pieces) {                                \
        scan<T>(table, out, d, first, pieces);                                                                         \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        rows_length_##dt(const u64* table, const T* from, double* parts, u64 d, double scale, unsigned n) {            \
        length<T>(table, from, parts, d, scale, n);                                                                    \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(256)                                                                  \
        rows_sum_##dt(const u64* table, const double* weights, T* out, u64 d, double divisor, unsigned n) {            \
        weighted_sum<T>(table, weights, out, d, divisor, n);                                                           \
    }                                                                                                                  \
    PAIRS(T, rows_distance_##dt, double, 2, false)                                                                     \
    PAIRS(T, rows_product_##dt, double, 2, true)

KERNELS(float, f32)
KERNELS(double, f64)
PAIRS(float, rows_distance_f32_16, float, 1, false)
PAIRS(float, rows_distance_f32_64, float, 4, false)
