// levels: sm_75
// The kernels of reduce.cu that read 16 bits.
#define WW_HALVES
#include "reduce.cu"
