/** Sizes about the tile sizes of the kernels: one less, exactly, one more. */
export const edges = [0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257];

/** The same with sizes that cross thread blocks and vector widths, for flat ops. */
export const lengths = [...edges, 3, 4, 5, 255, 256, 511, 1023, 1024, 1025, 4097, 70001];
