// levels: sm_75
// Statistics of the columns of n rows in float32 or float64: means, and for row counts beyond the networks in registers means of a
// part; sums in float64, 64-bit offsets. nan: 0 last, 1 omit, 2 propagate. table: addresses of n rows, for which `rows` is
// null, or null for rows that lie `stride` elements apart. weights: one for each row, above 0.
//   column_mean_<dt>_all(rows, out, d, stride, table, n, nan, weights or null, sum of weights)    ceil(d / 256) blocks of 256 threads
//   column_mean_<dt>_omit    the same; NaN do not count
// A block of 512 (f32) or 256 (f64) threads owns 32 columns: ceil(d / 32) blocks. _tile holds values in 32 n sizeof(T) bytes of
// dynamic shared memory, _stream reads the columns again in every pass.
//   trimmed_<dt>_tile|stream(.., nan, cut, share)    the mean without `cut` values at each end, or that share of them from 0 on
//   nearest_<dt>_tile|stream(.., nan, centre, cut, leave, least)    the mean of all but `leave` values, the nearest to a centre:
//       0 upper, 1 lower middle value, 2 their mean, 3 the mean without `cut` values at each end; NaN below `least` values
//   weighted_median_<dt>_tile|stream(.., nan, weights, even)    even: 0 upper, 1 lower, 2 mean
#include "common/columns.cuh"

COLUMN_KERNELS(float, f32, 512)
COLUMN_KERNELS(double, f64, 256)
