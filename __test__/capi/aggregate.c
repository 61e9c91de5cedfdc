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

int main(void) {
    doubles();
    floats();
    refusals();
    puts("done");
    return 0;
}
