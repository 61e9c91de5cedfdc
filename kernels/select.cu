// levels: sm_75
// Medians of the columns of rows[n][d] in float32 for row counts beyond the networks in registers; 64-bit offsets.
// A block of whole warps owns 32 columns: ceil(d / 32) blocks. even: 0 upper, 1 lower, 2 mean; nan: 0 last, 1 omit,
// 2 propagate. table: addresses of n rows, for which `rows` is null, or null for rows that lie a stride apart.
//   median_f32_held(rows, out, d, stride, table, n, even, nan)    n <= 512: values in registers, 16 a thread; 32 ceil(n / 16) threads
//   median_f32_tile    the same parameters; values in 32 n sizeof(T) bytes of dynamic shared memory; 1024 threads
//   median_f32_stream  the same parameters; any n, reads the columns again in every pass; 512 threads
#include "common/median.cuh"

MEDIAN_KERNELS(float, f32, 1024, 1024, 512)
