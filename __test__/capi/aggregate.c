/* Drives the C ABI from C. Prints one line for each failed check, then "done". */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "warpwright.h"

#define CHECK(condition) \
    do { \
        if (!(condition)) printf("line %d: %s\n", __LINE__, #condition); \
    } while (0)

static void doubles(void) {
    const double rows[9] = {1, 5, 3, 2, 2, 8, 9, 1, 4};
    const double even[4] = {4, 1, 3, 2};
    double result[5] = {-7, -7, -7, -7, -7};
    CHECK(median_aggregate(rows, 3, 3, result + 1) == 0);
    CHECK(result[0] == -7 && result[1] == 2 && result[2] == 2 && result[3] == 4 && result[4] == -7);
    CHECK(median_aggregate(even, 4, 1, result) == 0 && result[0] == 3);
}

static void floats(void) {
    const float rows[9] = {1, 5, 3, 2, 2, 8, 9, 1, 4};
    const float outlier[3] = {NAN, 1, INFINITY};
    float result[3] = {-7, -7, -7};
    CHECK(median_aggregate_f32(rows, 3, 3, result) == 0);
    CHECK(result[0] == 2 && result[1] == 2 && result[2] == 4);
    CHECK(median_aggregate_f32(outlier, 3, 1, result) == 0 && isinf(result[0]));
}

static void refusals(void) {
    const double rows[4] = {1, 2, 3, 4};
    double result[1] = {-7};
    int code = median_aggregate(rows, 0, 1, result);
    CHECK(code != 0);
    CHECK(strlen(warpwright_error_text(code)) > 0);
    CHECK(strlen(warpwright_last_error()) > 0);
    CHECK(median_aggregate(rows, -1, 1, result) != 0);
    CHECK(median_aggregate(rows, 1, -1, result) != 0);
    CHECK(median_aggregate(NULL, 1, 1, result) != 0);
    CHECK(median_aggregate(rows, 1, 1, NULL) != 0);
    CHECK(result[0] == -7);
    CHECK(median_aggregate(rows, 4, 1, result) == 0 && result[0] == 3);
}

static void rules(void) {
    const double rows[10] = {0, 0, 1, 1, 0.5, 0.5, 90, NAN, 0.4, 0.6};
    const float singles[6] = {1, 2, 3, 4, 1e30f, 5};
    double result[2] = {-7, -7};
    float single[2] = {-7, -7};
    int64_t chosen[3] = {-1, -1, -1};
    CHECK(median_aggregate_64(rows, 5, 2, result) == 0 && result[0] == 0.5 && result[1] == 0.6);
    CHECK(trimmed_mean_aggregate(rows, 5, 2, 2, result) == 0 && result[0] == 0.5 && result[1] == 0.6);
    CHECK(krum_aggregate(rows, 5, 2, 1, 2, result, chosen) == 0);
    CHECK(chosen[0] == 2 && chosen[1] == 4 && chosen[2] == -1);
    CHECK(krum_aggregate(rows, 5, 2, 1, 1, result, NULL) == 0 && result[0] == 0.5 && result[1] == 0.5);
    CHECK(geometric_median_aggregate(rows, 5, 2, 0, result) == 0 && result[0] > 0.3 && result[0] < 0.7);
    CHECK(median_aggregate_64_f32(singles, 3, 2, single) == 0 && single[0] == 3 && single[1] == 4);
    CHECK(trimmed_mean_aggregate_f32(singles, 3, 2, 1, single) == 0 && single[0] == 3 && single[1] == 4);
    CHECK(krum_aggregate_f32(singles, 3, 2, 0, 1, single, chosen) == 0 && chosen[0] == 0 && single[1] == 2);
    CHECK(geometric_median_aggregate_f32(singles, 3, 2, 0, single) == 0 && single[1] < 10);
    result[0] = -7;
    CHECK(trimmed_mean_aggregate(rows, 5, 2, 3, result) != 0 && strstr(warpwright_last_error(), "n > 2f") != NULL);
    CHECK(trimmed_mean_aggregate(rows, 5, 2, -1, result) != 0);
    CHECK(krum_aggregate(rows, 5, 2, 1, 0, result, chosen) != 0);
    CHECK(krum_aggregate(rows, 5, INT64_MAX, 1, 1, result, chosen) != 0);
    CHECK(geometric_median_aggregate(rows, 5, 2, -1, result) != 0);
    CHECK(median_aggregate_64(rows, INT64_MAX, 2, result) != 0);
    CHECK(krum_aggregate(NULL, 5, 2, 1, 1, result, chosen) != 0);
    CHECK(result[0] == -7);
}

int main(void) {
    doubles();
    floats();
    rules();
    refusals();
    puts("done");
    return 0;
}
