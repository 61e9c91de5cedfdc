/* Warpwright: order statistics for gradient aggregation, through C.
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

/* Text of the calling thread's last error, "" when there was none. Valid until the thread's next failing call. */
const char *warpwright_last_error(void);

/* What a code means: "" for 0, NULL for a number that is no code. The text is static. */
const char *warpwright_error_text(int32_t code);

#ifdef __cplusplus
}
#endif

#endif
