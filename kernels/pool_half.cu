// levels: sm_75
// The float16 and bfloat16 kernels of pool.cu.
#define WW_HALVES
#include "pool.cu"
