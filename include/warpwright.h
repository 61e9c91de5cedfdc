/* Warpwright: robust aggregation of gradients, through C.
 *
 * Link with libwarpwright, or load it (or the Node addon's .node file, which exports the same functions) at run time.
 * The device is chosen by the environment variable WARPWRIGHT_DEVICE (cpu, cuda, cuda:N or auto); without it the first
 * GPU is used where there is one, else the CPU. All functions may be called from any thread.
 */
#ifndef WARPWRIGHT_H
#define WARPWRIGHT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Coordinate-wise median of n rows of d numbers, stored row after row: result[j] is element n/2 (rounded down) of the
 * sorted column j, so the upper median when n is even. Order: -Inf < finite < +Inf < NaN.
 *
 * grads   n * d numbers, only read
 * n       rows, at least 1
 * d       columns, at least 0
 * result  d numbers, not overlapping grads; untouched unless 0 is returned
 *
 * Returns 0, or the number of an error code of docs/errors.md. */
int32_t median_aggregate(const double *grads, int32_t n, int32_t d, double *result);
int32_t median_aggregate_f32(const float *grads, int32_t n, int32_t d, float *result);

/* The same with sizes of 64 bits, as have all functions below. */
int32_t median_aggregate_64(const double *grads, int64_t n, int64_t d, double *result);
int32_t median_aggregate_64_f32(const float *grads, int64_t n, int64_t d, float *result);

/* Rules that withstand f hostile rows of n; definitions, bounds and the treatment of NaN (policy "last") are those of
 * docs/aggregation.md. Arguments and the returned code are as for median_aggregate. They run on the CPU so far, whatever the
 * device.
 *
 * Trimmed mean: the mean of each column without its f smallest and f largest values; n > 2f. */
int32_t trimmed_mean_aggregate(const double *grads, int64_t n, int64_t d, int64_t f, double *result);
int32_t trimmed_mean_aggregate_f32(const float *grads, int64_t n, int64_t d, int64_t f, float *result);

/* Krum and multi-Krum: the mean of the m rows (1 to n - f) whose n - f - 2 nearest rows are nearest; n - f - 2 at least 1.
 * m = 1 is Krum and gives that row as it is.
 *
 * chosen  NULL, or room for m row numbers, best first; written only when 0 is returned */
int32_t krum_aggregate(const double *grads, int64_t n, int64_t d, int64_t f, int64_t m, double *result, int64_t *chosen);
int32_t krum_aggregate_f32(const float *grads, int64_t n, int64_t d, int64_t f, int64_t m, float *result, int64_t *chosen);

/* Geometric median: the point with the least sum of distances to the rows. Distances below nu (0 or more) count as nu. */
int32_t geometric_median_aggregate(const double *grads, int64_t n, int64_t d, double nu, double *result);
int32_t geometric_median_aggregate_f32(const float *grads, int64_t n, int64_t d, double nu, float *result);

/* Text of the calling thread's last error, "" when there was none. Valid until the thread's next failing call. */
const char *warpwright_last_error(void);

/* What a code means: "" for 0, NULL for a number that is no code. The text is static. */
const char *warpwright_error_text(int32_t code);

#ifdef __cplusplus
}
#endif

#endif
