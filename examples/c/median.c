/* Column medians of a small matrix through the C ABI.
 *
 *   cargo build --release --no-default-features
 *   cc examples/c/median.c -Iinclude -Ltarget/release -lwarpwright -Wl,-rpath,$PWD/target/release -o median
 *   ./median
 *
 * WARPWRIGHT_DEVICE=cpu or cuda chooses the device; without it the GPU is used where there is one.
 */
#include <stdint.h>
#include <stdio.h>

#include "warpwright.h"

int main(void)
{
    const double gradients[3][3] = {{1, 5, 3}, {2, 2, 8}, {9, 1, 4}};
    const double expected[3] = {2, 2, 4};
    double result[3];

    int32_t code = median_aggregate(&gradients[0][0], 3, 3, result);
    if (code != 0) {
        fprintf(stderr, "median_aggregate: %s\n", warpwright_last_error());
        return 1;
    }
    printf("medians of 3 rows: %g %g %g\n", result[0], result[1], result[2]);
    for (int32_t i = 0; i < 3; i++) {
        if (result[i] != expected[i]) {
            fprintf(stderr, "column %d: expected %g\n", (int)i, expected[i]);
            return 1;
        }
    }
    return 0;
}
