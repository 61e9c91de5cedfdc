// The forms of one launch, of kernels that KERNEL(T, dt, form, launch bounds) begins and AFFINE(T) the step of.
#define NORM_GROUPS(T, dt, form, lanes, vectors)                                                       \
    KERNEL(T, dt, form, 256, 4) {                                                                      \
        ww_norm_groups<lanes, vectors, false>(x, y, rows, columns, AFFINE(T), epsilon);                \
    }
#define NORM_BLOCK(T, dt, form, threads, vectors, blocks)                                              \
    KERNEL(T, dt, form, threads, blocks) { ww_norm_block<vectors, false>(x, y, columns, AFFINE(T), epsilon); }

// Of 16 bits a thread holds twice the numbers.
#ifdef WW_HALVES
#define NORM_LARGE(T, dt) NORM_BLOCK(T, dt, block, 256, 4, 2) NORM_BLOCK(T, dt, wide, 512, 4, 1)
#else
#define NORM_LARGE(T, dt) NORM_BLOCK(T, dt, block, 512, 4, 2) NORM_BLOCK(T, dt, wide, 1024, 4, 1)
#endif

#define NORM_FORMS(T, dt)                                                                              \
    NORM_GROUPS(T, dt, lanes, 8, 1)                                                                    \
    NORM_GROUPS(T, dt, pairs, 8, 2)                                                                    \
    NORM_GROUPS(T, dt, half, 16, 2)                                                                    \
    NORM_GROUPS(T, dt, warp, 32, 2)                                                                    \
    NORM_LARGE(T, dt)
